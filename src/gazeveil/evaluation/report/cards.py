"""The card of all results, which a notebook shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gazeveil.evaluation.report.labels import mechanism_label, percent
from gazeveil.gaze.cards import bar_picture, card

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

# Releases on the card of all results.
_MOST_ROWS = 20


def results_html(results: Results) -> str:
    """Results in HTML: a bar for each release, and a table with attacker and interval."""
    worst = [_headline(r) for r in results.strongest_against().head(_MOST_ROWS).to_dicts()]
    rows: list[tuple[str, object]] = [
        ("figures", f"{results.frame.height:,}"),
        ("could not be computed", len(results.failures)),
    ]
    rows += [(_name(row), _words(row)) for row in worst]
    name = str(results.study.get("name", "")) or "study"
    if not worst:
        return card(f"Results of {name}", rows)
    chances = [row["chance"] for row in worst if row["chance"] is not None]
    picture = bar_picture(
        [_name(row) for row in worst],
        [row["value"] for row in worst],
        "Share of people whom the strongest attacker recognises in each release; dashed: chance.",
        [(_number(row["low"]), _number(row["high"])) for row in worst],
        chances[0] if chances else math.nan,
    )
    return card(f"Results of {name}", rows, picture, "People recognised by the strongest attacker:")


def _headline(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the attacker chosen on other splits in front, where there is more than one."""
    if row["chosen"] is None:
        return row
    return row | {"value": row["chosen"], "low": row["chosen_low"], "high": row["chosen_high"]}


def _name(row: dict[str, Any]) -> str:
    return mechanism_label(row["mechanism"], row["reading"] or "", row["parameters"] or "")


def _words(row: dict[str, Any]) -> str:
    interval = "" if row["low"] is None else f" ({percent(row['low'])} to {percent(row['high'])})"
    return f"{percent(row['value'])}{interval}, {row['strongest']}, {row['scenario']}"


def _number(value: float | None) -> float:
    return math.nan if value is None else value
