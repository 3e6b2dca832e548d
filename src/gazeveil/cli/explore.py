"""`gazeveil explore`: people, a mechanism and its parameter in the browser, and what a quick
attacker still finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    PathArgument,
    ScreenOption,
    SetOption,
    bar,
    counted,
    read_cohort,
    say,
)

if TYPE_CHECKING:
    from gazeveil.explore.board import Board

HELP = """\
Choose people and a mechanism: the page shows the trace, the map and how many people a few quick
attackers recognise. It is served to this machine alone, or saved as one HTML file.

Example: `gazeveil explore recordings/ --save explore.html`"""


def command(
    path: PathArgument,
    format_name: FormatOption = None,
    pairs: SetOption = None,
    screen: ScreenOption = None,
    mechanisms: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME:PARAMETER=V|V,...",
            help=(
                "A mechanism, with the values of the one parameter to move, e.g."
                " 'gaussian:sigma_deg=1|3|9'. May be repeated; a choice of all kinds if not given."
            ),
        ),
    ] = None,
    people: Annotated[
        int, typer.Option("--people", min=2, help="At most so many people are taken.")
    ] = 12,
    stimuli: Annotated[
        int, typer.Option("--stimuli", min=1, help="At most so many stimuli are taken.")
    ] = 6,
    seconds: Annotated[
        float, typer.Option("--seconds", min=2, help="At most so much of each recording is taken.")
    ] = 20.0,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE", help="Write the page as one HTML file, and serve nothing."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Explore recordings."""
    from gazeveil.explore.board import Board, Limits, sliders, take
    from gazeveil.explore.server import save as save_page

    taken = take(read_cohort(path, format_name, pairs, screen), Limits(people, stimuli, seconds))
    board = Board(taken, sliders(taken[0].rate_hz, tuple(mechanisms or ())))
    say(
        f"{counted(len(board.people), 'person')}, {len(board.stimuli)} stimuli,"
        f" {counted(len(taken), 'recording')}, at most {seconds:g} s of each."
    )
    try:
        if save is not None:
            with bar("Releasing and attacking") as progress:
                say(f"Page: {save_page(board, save, progress)}")
            say("Its pictures are of simulated people: no recorded gaze is in it.")
        else:
            _serve(board, port, show)
    finally:
        board.close()


def _serve(board: Board, port: int, show: bool) -> None:
    from gazeveil.explore.server import ExploreServer

    with ExploreServer(board, port) as server:
        say(f"Open {server.link}")
        say("The page shows recorded gaze, to this machine alone. Ctrl-C ends it.")
        if show:
            import webbrowser

            webbrowser.open(server.link)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped; nothing was written.")
