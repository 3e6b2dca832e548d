"""The table of advice as text: in the terminal and in `docs/howto/choose.md`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from gazeveil.release.advice.rows import (
    KINDS,
    PURPOSES,
    Advice,
    AdviceRow,
    advice_rows,
    advise,
    command_of,
)

BEGIN, END = "<!-- begin advice -->", "<!-- end advice -->"

HEADER = ("rank", "mechanism", "parameters", "promise", "what is kept", "attack", "command")

#: Per cent of people found from which on a release is said to hide hardly anybody.
_HARDLY_HIDDEN = 50

#: Enough people for everything in the table.
_EVERYBODY = 1_000_000


def cells(row: AdviceRow, rank: str) -> tuple[str, ...]:
    """One line of the table."""
    return (
        rank,
        row.mechanism.partition(":")[0],
        row.words + (f"; from {row.least_people} people" if row.least_people > 1 else ""),
        row.promise,
        kept(row),
        attack(row),
        command_of(row) if rank[-1:].isdigit() else "",
    )


def kept(row: AdviceRow) -> str:
    """The error of an analysis, between raw recordings and no data."""
    unit = f" {row.unit}" if row.unit else ""
    raw = f"raw against raw {row.raw:.2g}; " if row.raw else ""
    return f"{row.metric} {row.value:.2g}{unit} ({raw}{row.reference_words} {row.reference:.2g})"


def attack(row: AdviceRow) -> str:
    """The re-identification rate of the strongest attacker."""
    if row.found is None:
        return "not attacked" + ("; the promise covers whole participants" * row.of_people)
    whom = "participants" if row.names_last else "pieces"
    between = "" if row.low is None else f"95 % CI {row.low:g} to {row.high:g}; "
    words = f"{row.found:g} % of {whom} ({between}chance {row.guessing:g} %)"
    if row.tried and not row.fully_attacked:
        words += f"; attackers: {row.tried}"
    return words + ("; hides hardly anyone" if row.found >= _HARDLY_HIDDEN else "")


def card(row: AdviceRow, rank: int) -> Iterator[str]:
    """One mechanism in lines of at most 80 columns."""
    yield from wrap(f"{rank}. {row.mechanism.partition(':')[0]}: {row.words}", "   ")
    for title, text in (
        ("Re-identified", attack(row)),
        ("Error", kept(row)),
        ("Promise", row.promise),
        ("Note", row.note),
    ):
        if text:
            yield from wrap(f"   {title}: {text}", "     ")
    yield f"   {command_of(row)}"
    yield ""


def wrap(text: str, indent: str) -> list[str]:
    """Lines of a text that fit a terminal of 80 columns."""
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False)


def notes(rows: Iterable[AdviceRow]) -> dict[str, str]:
    """What must be known beside the figures, of each mechanism that has such a note."""
    return {row.mechanism: row.note for row in rows if row.note}


def as_dict(advice: Advice) -> dict[str, object]:
    """The advice as JSON has it."""
    groups = {
        "usable": advice.usable,
        "pieces": advice.pieces,
        "no_use": advice.useless,
        "too_few": advice.too_few,
    }
    return {
        "purpose": advice.purpose,
        "kind": advice.kind,
        "people": advice.people,
        **{
            name: [{**asdict(row), "command": command_of(row)} for row in rows]
            for name, rows in groups.items()
        },
    }


def lines(advice: Advice) -> Iterator[tuple[str, ...]]:
    """All lines, with what is of no use and what needs more people at the end."""
    for rank, row in enumerate(advice.usable, start=1):
        yield cells(row, str(rank))
    for rank, row in enumerate(advice.pieces, start=1):
        yield cells(row, f"pieces {rank}")
    for row in advice.useless:
        yield cells(row, "no use")
    for row in advice.too_few:
        yield cells(row, f"from {row.least_people} people")


def markdown() -> str:
    """All tables, as the page has them."""
    parts = []
    for kind, who in KINDS.items():
        for purpose, about in PURPOSES.items():
            advice = advise(purpose, _EVERYBODY, kind)
            data = sorted({r.data for r in advice_rows() if r.kind == kind})[0].partition(",")[0]
            parts.append(f"### {purpose}, {kind}: {about}\n")
            parts.append(f"Measured with {who} ({data}).\n")
            parts.append(_row(HEADER))
            parts.append(_row(("---",) * len(HEADER)))
            for line in lines(advice):
                *told, command = line
                parts.append(_row((*told, f"`{command}`" if command else "")))
            parts.append("")
        parts.append(f"### Read with it, {kind}\n")
        said = notes(row for row in advice_rows() if row.kind == kind)
        parts += [f"- `{name}`: {note}" for name, note in said.items()]
        parts.append("")
    return "\n".join(parts)


def _row(values: tuple[str, ...]) -> str:
    return "| " + " | ".join(values) + " |"


def write_page(path: Path) -> None:
    """Put the tables between the marks of a page."""
    text = path.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{markdown()}\n{END}{after}", "utf-8")
