"""Arguments several verbs share: a path to read, its format, and the format's options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gazeveil.cli.tables import TableConsole
from gazeveil.cli.wording import without_controls
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.geometry import Screen

PathArgument = Annotated[Path, typer.Argument(help="A file or a folder of recordings.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Format name; found by looking at the files if not given."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="An option of the format or method, e.g. unit=px or columns.x=GX. May be repeated.",
    ),
]
ScreenOption = Annotated[
    str | None,
    typer.Option(
        "--screen",
        metavar="WxHpx,WxHmm,Dmm",
        help="Screen geometry, e.g. 1280x720px,400x225mm,450mm.",
    ),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")
]
MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        "-m",
        metavar="NAME:PARAMETER=VALUE,...",
        help="See `gazeveil list mechanisms`.",
    ),
]
TestSeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="For tests only: repeatable noise, which protects nobody."),
]
AttackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        "-a",
        metavar="NAME:...",
        help="An attacker; see `gazeveil list attacks`. May be repeated.",
    ),
]
BatteryOption = Annotated[
    str | None,
    typer.Option(
        "--attacks",
        metavar="quick|strong|all|none",
        help="A battery of attackers, beside those of --attack; strong if nobody is named.",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Processes; one per core if not given.")
]

#: What is printed about noise from `--seed`.
SEEDED = "This is a test: the noise came from a seed, so whoever knows it can undo the noise."

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_SCREEN = re.compile(rf"^{_NUMBER}x{_NUMBER}px,{_NUMBER}x{_NUMBER}mm,{_NUMBER}mm$")


def counted(count: int, word: str) -> str:
    """A number and what is counted.

    Examples
    --------
    >>> counted(1, "message"), counted(1200, "message"), counted(2, "person")
    ('1 message', '1,200 messages', '2 people')
    """
    return f"{count:,} {word if count == 1 else {'person': 'people'}.get(word, word + 's')}"


def console() -> Console:
    """Where tables are printed: names and paths of any text as they are, square brackets too."""
    return TableConsole(markup=False, highlight=False)


def say(sentence: object) -> None:
    """Print a sentence as it is, on one line however long; control characters are written out."""
    console().print(without_controls(str(sentence)), soft_wrap=True)


def options(
    pairs: list[str] | None,
    screen: str | None = None,
    taken: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, object]:
    """`NAME=VALUE` pairs as keyword arguments; a value is JSON where it can be, else text, and a
    name with a dot is an entry of an option (`columns.x=GX`).

    `taken` maps names that have an argument of their own to that argument.
    """
    result: dict[str, object] = {}
    for pair in pairs or []:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise ParameterError(
                f"The '--set' option must be NAME=VALUE. Got '{pair}' instead.",
                name="--set",
                got=pair,
            )
        if name.strip() in taken:
            raise ParameterError(
                f"'{name.strip()}' is not given as NAME=VALUE but by {taken[name.strip()]}. Got"
                f" '{pair}'.",
                name=name.strip(),
                got=pair,
            )
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            value = text
        # `columns.x=GX` is the entry x of the option columns.
        outer, dot, inner = name.strip().partition(".")
        entries = result.setdefault(outer, {}) if dot else None
        if isinstance(entries, dict):
            entries[inner] = value
        else:
            result[name.strip()] = value
    if screen is not None:
        result["screen"] = parse_screen(screen)
    return result


def attackers(named: list[str] | None, battery: str | None) -> tuple[str, ...]:
    """Who attacks: those named, and a battery; the default battery where nobody is named."""
    from gazeveil.attacks.battery import BATTERIES, DEFAULT

    chosen = [battery] if battery is not None else []
    if battery is not None and battery not in BATTERIES:
        raise ParameterError(
            f"The '--attacks' option must be one of {', '.join(BATTERIES)}. Got '{battery}'"
            " instead. One attacker is named with --attack.",
            name="--attacks",
            got=battery,
        )
    return (*chosen, *(named or ())) or (DEFAULT,)


def parse_screen(text: str) -> Screen:
    """A screen from text such as `1280x720px,400x225mm,450mm`."""
    from gazeveil.gaze.geometry import Screen

    match = _SCREEN.match(text.replace(" ", ""))
    if match is None:
        raise ParameterError(
            f"The '--screen' option must look like 1280x720px,400x225mm,450mm. Got '{text}'"
            " instead.",
            name="--screen",
            got=text,
        )
    return Screen(*(float(part) for part in match.groups()))


def read_cohort(
    path: Path, format_name: str | None, pairs: list[str] | None, screen: str | None
) -> Cohort:
    """Read what the shared arguments name."""
    from gazeveil.io.reading import read

    return read(path, format_name, **reading_options(pairs, screen))


def reading_options(pairs: list[str] | None, screen: str | None) -> dict[str, object]:
    """Options of :func:`gazeveil.read` from the shared arguments."""
    taken = {"path": "the argument PATH", "format": "--format", "screen": "--screen"}
    return options(pairs, screen, taken)


def write_json(path: Path | None, figures: object) -> None:
    """Write figures where `--json` was given."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
    # Bytes of a path that are no text become escapes, which JSON has too.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
