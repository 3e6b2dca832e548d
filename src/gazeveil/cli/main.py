"""`gazeveil`: every verb, and what happens when something goes wrong.

Bad input ends with one sentence on standard error and exit code 2, never with a traceback. A bug
still shows its traceback.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console

from gazeveil import __version__
from gazeveil.cli.arguments import in_options, without_controls
from gazeveil.compile_notice import compiling_is_said
from gazeveil.errors import GazeveilError

#: Panel of the help -> modules of its verbs, which are called as the verbs, with their first lines.
PANELS = {
    "Start": {
        "inspect": "Show what a file or folder holds.",
        "advise": "Rank mechanisms for a purpose.",
        "publish": "Protect, attack and certify recordings.",
        "verify": "Check a release against its certificate.",
        "evaluate": "Attack releases and measure their use.",
        "demo": "Run everything on simulated participants.",
        "explore": "Try mechanisms in the browser.",
    },
    "Analyse": {
        "simulate": "Simulate participants and their recordings.",
        "events": "Detect fixations, saccades, pursuits, blinks.",
        "features": "Compute features of events or windows.",
        "train": "Train the network of the attacker `ekyt`.",
    },
    "Protect and publish": {
        "protect": "Protect recordings, features or people.",
        "scrub": "Remove identifiers from vendors' files; gaze stays as it is.",
        "randomize": "Write locally private messages for a curator.",
        "curate": "Draw synthetic recordings from such messages.",
    },
    "Attack and evaluate": {
        "attack": "Attack a protected copy with raw recordings.",
        "audit": "Try to prove a promise false.",
        "check": "Test a mechanism, format, attack or tracker of your own.",
        "reproduce": "Repeat a paper's experiment.",
    },
    "Live": {
        "serve": "Serve gaze to untrusted apps: never raw samples.",
        "relay": "Put a mechanism between a tracker and its programs.",
    },
    "Reference": {"list": "List mechanisms, attacks, utilities, formats or datasets."},
}
VERBS = tuple(verb for verbs in PANELS.values() for verb in verbs)


#: Verbs that write at the end, or remove what they had written.
_ALL_OR_NOTHING = frozenset(
    {
        "advise",
        "attack",
        "audit",
        "check",
        "events",
        "features",
        "inspect",
        "list",
        "protect",
        "randomize",
        "scrub",
        "simulate",
        "verify",
    }
)


def build(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The command line. The modules of these verbs are imported now; of the others it knows the
    names and the first lines of their help.
    """
    app = typer.Typer(
        name="gazeveil",
        help="Protect eye-tracking data, see what is promised and what an attacker still gets.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for panel, names in PANELS.items():
        for name, line in names.items():
            command, text = _not_imported, line
            if name in verbs:
                verb = import_module(f"gazeveil.cli.{name}")
                command, text = verb.command, f"{line}\n\n{verb.HELP}"
            app.command(name, help=text, rich_help_panel=panel)(command)
    app.callback()(_options)
    return app


def _not_imported() -> None:
    """Stand for a verb in the list of verbs."""


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return build()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    """Protect eye-tracking data, see what is promised and what an attacker still gets."""


def _say(message: str) -> None:
    said = without_controls(message)
    Console(stderr=True, highlight=False, soft_wrap=True).print(said, markup=False)


def _options_of(arguments: Sequence[str], command: Any) -> frozenset[str]:
    """The options of the verb that a command line names."""
    verbs = getattr(command, "commands", {})
    verb = next((verbs[a] for a in arguments if a in verbs), None)
    return frozenset(o for p in getattr(verb, "params", ()) for o in (*p.opts, *p.secondary_opts))


def _wanted(arguments: Sequence[str]) -> Sequence[str]:
    """The verb that a command line, or the line that a shell completes, names. To import all of
    them takes many times as long as most of them run.
    """
    words = arguments
    if "_GAZEVEIL_COMPLETE" in os.environ:  # bash sets the first of these, the other shells do not
        line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = line.split()[1:]
    return [word for word in words[:1] if word in VERBS]


def _stopped(arguments: Sequence[str]) -> str:
    """Return the message printed on Ctrl-C by verbs that print none."""
    verb = next((a for a in arguments if not a.startswith("-")), "")
    return "Stopped, nothing was written." if verb in _ALL_OR_NOTHING else "Stopped."


def _tidy_help(command: Any) -> None:
    """Print flags as flags (newer typer writes `<bool>` behind them, as if they took a value), and
    options that are not everyday ones in a panel of their own.
    """
    everyday = getattr(sys.modules.get(command.callback.__module__), "EVERYDAY", ())
    find = command.get_help_option

    def help_option(context: Any) -> Any:
        option = find(context)
        if option is not None:
            option.metavar = ""
        return option

    setattr(command, "get_help_option", help_option)  # noqa: B010 - a method of this one object
    for parameter in command.params:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
        if everyday and parameter.opts[0].startswith("-") and parameter.opts[0] not in everyday:
            parameter.rich_help_panel = "More options"


def _command(arguments: Sequence[str]) -> Any:
    """Build the command line; on Ctrl-C it prints a message, where typer would only exit."""
    command: Any = typer.main.get_command(build(_wanted(arguments)))
    for each in (command, *getattr(command, "commands", {}).values()):
        _tidy_help(each)
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
    given = sys.argv[1:] if arguments is None else arguments
    options: frozenset[str] = frozenset()
    about_recordings = 0

    def show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
        nonlocal about_recordings
        if getattr(category, "about_recording", False):
            about_recordings += 1
            if about_recordings > 2:  # a line for each of hundreds would hide everything else
                return
            if about_recordings == 2:
                message = "The same holds for other recordings, which are not named."
        _say(f"Note: {in_options(str(message), options)}")

    warnings.showwarning = show_warning  # type: ignore[assignment]
    try:
        command = _command(given)
        options = _options_of(given, command)
        # Nothing asked for is no mistake: the help goes to standard output.
        # Who calls this function with arguments is a program, to which nothing is said.
        with compiling_is_said() if arguments is None else nullcontext():
            code = command.main(given or ["--help"], prog_name="gazeveil", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except GazeveilError as error:
        _say(in_options(str(error), options))
    except _USAGE as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        _say(message.rstrip(".") + ". See --help.")
    except (typer.Abort, KeyboardInterrupt) as error:
        _say(str(error) or _stopped(given))
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except MemoryError:
        _say(
            "This needs more memory than there is. Read fewer recordings at once, or ask for less."
        )
    except FileNotFoundError as error:
        _say(f"{error.filename or error}: there is no such file or folder. Check the path.")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(
            f"{place}{(error.strerror or str(error)).lower()}. Check the path, the permissions and"
            " the free space."
        )
    sys.exit(2)


if __name__ == "__main__":
    main()
