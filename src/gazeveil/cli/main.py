"""`gazeveil`: every verb, and what happens when something goes wrong.

A mistake ends with one sentence on standard error and exit code 2, never with a traceback; a bug
still shows its traceback, because hiding it would help nobody.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError

#: Modules of the verbs in the order of the help; a verb is called as its module, with dashes.
VERBS = (
    "demo",
    "inspect",
    "simulate",
    "datasets",
    "formats",
    "events",
    "features",
    "mechanisms",
    "attacks",
    "utilities",
    "advise",
    "protect",
    "publish",
    "scrub",
    "verify",
    "audit",
    "check",
    "attack",
    "evaluate",
    "train",
    "reproduce",
    "randomize",
    "curate",
    "relay",
    "serve",
    "verify_audit",
)


def build(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The command line with some of the verbs.

    Parameters
    ----------
    verbs : sequence of str
        Their modules, which are imported now.
    """
    app = typer.Typer(
        name="gazeveil",
        help="Privacy for eye tracking: recordings in, events and features out.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in verbs:
        verb = import_module(f"gazeveil.cli.{name}")
        app.command(verb.NAME, help=verb.HELP)(verb.command)
    former = app.command("report", hidden=True, context_settings={"ignore_unknown_options": True})
    former(_report)
    app.callback()(_options)
    return app


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return build()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _report(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """The old name of `randomize`."""
    raise ParameterError(
        "The verb 'report' is called 'randomize' now. Write `gazeveil randomize ...` with the same"
        " arguments.",
        name="report",
        got=arguments,
    )


# Newer typer carries its own copy of click: the base of its errors is found from one of them, not
# imported.
_USAGE: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"gazeveil {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Privacy for eye tracking: recordings in, events and features out."""


def _say(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)


def _show_warning(message: Warning | str, *_: object) -> None:
    _say(f"Note: {message}")


def _wanted(arguments: Sequence[str]) -> tuple[str, ...]:
    """The verbs that a command line needs: the one that is named, or all where none is. To import
    all of them takes many times as long as most of them run.
    """
    first = arguments[0] if arguments else ""
    if first == "--version":
        return ()
    module = first.replace("-", "_")
    return (module,) if module in VERBS and "_" not in first else VERBS


def _command(arguments: Sequence[str]) -> Any:
    """The command line, which passes on what is said when somebody stops it: typer would end with
    nothing but a code.
    """
    command = typer.main.get_command(build(_wanted(arguments)))
    invoke = command.invoke

    def told(context: Any) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as error:
            raise typer.Abort(*error.args) from error

    setattr(command, "invoke", told)  # noqa: B010 - a method of this one object
    return command


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one sentence and exit code 2."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        command = _command(sys.argv[1:] if arguments is None else arguments)
        code = command.main(arguments, prog_name="gazeveil", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except GazeveilError as error:
        _say(str(error))
    except _USAGE as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        _say(message.rstrip(".") + ". See --help.")
    except (typer.Abort, KeyboardInterrupt) as error:
        _say(str(error) or "Stopped.")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except MemoryError:
        _say(
            "This needs more memory than there is. Read fewer recordings at once, or ask for less."
        )
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(
            f"{place}{(error.strerror or str(error)).lower()}. Check the path, the permissions and"
            " the free space."
        )
    sys.exit(2)


if __name__ == "__main__":
    main()
