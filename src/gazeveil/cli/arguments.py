"""Arguments several verbs share: a path to read, its format, and the format's options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

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


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    figures_from: int = 1_000,
    caption: str = "",
) -> None:
    """Print a table; columns from `figures_from` on are figures, which are never folded."""
    table = Table(
        title=title,
        title_justify="left",
        caption=caption or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for number, head in enumerate(heads):
        figure = number >= figures_from
        justify: Literal["left", "right"] = "right" if figure else "left"
        table.add_column(head, justify=justify, no_wrap=figure, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


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
    """Return the named attackers and a battery; the default battery if none are named."""
    from gazeveil.attacks.registry import BATTERIES, DEFAULT

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


class TableConsole(Console):
    """A console that breaks no word of a table; where the terminal is too narrow, lines are longer
    than it is.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, tables wide enough for their longest words."""
        for table in (o for o in objects if isinstance(o, Table)):
            for column in table.columns:
                if not (column.no_wrap and column.overflow == "ellipsis" and column.max_width):
                    column.min_width = _longest(column)
                    column.max_width = column.max_width and max(column.max_width, column.min_width)
            # Where this is more than there is, rich would leave whole columns out.
            needed = 1 + sum(3 + (column.min_width or 0) for column in table.columns)
            table.width = needed if needed > self.width else table.width
        super().print(*objects, **{"crop": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """Text as rich shows it, with control characters written out."""
        return super().render_str(without_controls(text), **options)


def _longest(column: Column) -> int:
    """Characters of the longest word of a column, or of its longest line where lines stay whole."""
    parts = str.splitlines if column.no_wrap else str.split
    cells = map(str, (column.header, *column.cells))
    return max((cell_len(without_controls(part)) for c in cells for part in parts(c)), default=1)
