"""`gazeveil serve`: the Gatekeeper as a service on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.errors import MissingExtraError

HELP = """\
Example: `gazeveil serve --port 8765`

It starts with a simulated tracker and SQLite under `$GAZEVEIL_HOME` on 127.0.0.1 and prints a link
for the owner that works once. Every setting can also come from the environment as `GAZEVEIL_...`;
the manual lists them."""

#: Exit code where the port is taken, after which systemd starts the service again (EX_TEMPFAIL).
_AGAIN_LATER = 75

_PACKAGES = {
    "fastapi",
    "uvicorn",
    "starlette",
    "pydantic",
    "pydantic_settings",
    "msgspec",
    "websockets",
    "uvloop",
    "h11",
}


def command(
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one. [default: 8765]"),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on. [default: 127.0.0.1]")
    ] = None,
    tracker: Annotated[
        str | None,
        typer.Option(
            "--tracker",
            metavar="TRACKER",
            help=(
                "simulated, mouse, replay:PATH, pupil://host:port, neon://host:port, lsl[:name],"
                " or websocket. [default: simulated]"
            ),
        ),
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", metavar="DIR", help="Folder of database and keys. [default: $GAZEVEIL_HOME]"
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="sqlite:///... or postgresql://..., without a password.",
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="Policy (TOML) to import at the first start."
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            metavar="coarse|fine",
            help="How fine places and times are that any app ever sees. [default: coarse]",
        ),
    ] = None,
    rate_hz: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="HZ", help="Nominal rate of the tracker, where it does not say it."
        ),
    ] = None,
) -> None:
    """Serve."""
    try:
        from gazeveil.gatekeeper.errors import PortTakenError
        from gazeveil.gatekeeper.service.server import serve
        from gazeveil.gatekeeper.service.settings import load_settings, no_password
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _PACKAGES:
            raise MissingExtraError(missing, "service") from None
        raise
    if database is not None:
        no_password(database)
    settings = load_settings(
        port=port,
        host=host,
        tracker=tracker,
        home=home,
        database=database,
        policy=policy,
        level=level,
        rate_hz=rate_hz,
    )
    try:
        serve(settings, typer.echo)
    except PortTakenError as error:
        typer.echo(f"gazeveil: {error}", err=True)
        raise typer.Exit(_AGAIN_LATER) from None
