"""The table of advice as text in the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from gazeveil.release.advice.rows import Advice, AdviceRow, command_of

#: Per cent of people found from which on a release is said to hide hardly anybody.
_HARDLY_HIDDEN = 50


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
