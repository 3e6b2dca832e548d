"""What the strong battery finds in finished studies, as a table on a page.

    gazeveil reproduce gazecom --out results/gazecom
    gazeveil reproduce clock-gazecom --out results/clock-gazecom
    python benchmarks/attack_tables.py results/gazecom results/clock-gazecom
        [--page docs/results/attackers.md --name gazecom]

For each release: the RBF network, the strongest of the battery without the luck of choosing it
(chosen on the other repetitions) with 95 % intervals over people, the strongest by name, and
one-to-one matching.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from gazeveil.evaluation.results import Results
from gazeveil.privacy.registry import get
from lines import markdown, put_into

COLUMNS = (
    "release",
    "RBF network",
    "strongest, chosen on other splits",
    "p",
    "attacker",
    "one to one",
)


def percent(value: float | None) -> str:
    """A share of one in per cent."""
    return "" if value is None else f"{100 * value:.0f}"


def interval(low: float, high: float) -> str:
    """An interval in per cent."""
    return f"({100 * low:.0f}\N{EN DASH}{100 * high:.0f})"


def lines_of(results: Results) -> list[dict[str, Any]]:
    """One line per release of a study."""
    matching = results.frame.filter(pl.col("metric") == "matching_rate")
    lines = []
    for row in results.strongest_against().iter_rows(named=True):
        same = matching.filter(
            (pl.col("cohort") == row["cohort"])
            & (pl.col("mechanism") == row["mechanism"])
            & (pl.col("parameters") == row["parameters"])
            & (pl.col("reading").eq_missing(row["reading"]))
        )
        lines.append({**row, "matching": same["value"].max()})
    return lines


def said(row: dict[str, Any]) -> list[str]:
    """The parameters that are not the mechanism's defaults."""
    if row["mechanism"] == "none":
        return []
    usual = {f.name: str(f.default) for f in fields(get(row["mechanism"]))}
    pairs = (part.split("=", 1) for part in str(row["parameters"]).split(",") if "=" in part)
    return [f"{name}={value}" for name, value in pairs if usual.get(name) != value]


def cells(row: dict[str, Any]) -> list[str]:
    """A line of the table."""
    reading = " as published" if row["reading"] == "published" else ""
    name = "as recorded" if row["mechanism"] == "none" else f"`{row['mechanism']}`{reading}"
    parameters = ", ".join(said(row))
    return [
        f"{name} {parameters}".strip(),
        percent(row["other_value"]),
        f"{percent(row['chosen'])} {interval(row['chosen_low'], row['chosen_high'])}",
        f"{row['p_value']:.2g}",
        f"`{row['strongest']}` {row['scenario']}".removesuffix(" private/private"),
        percent(row["matching"]),
    ]


def main() -> None:
    """Print the table, and put it on its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--name", default="gazecom")
    given = parser.parse_args()
    rows: list[list[str]] = []
    total = {"releases": 0, "called_safe": 0}
    for folder in given.folders:
        results = Results.read(folder)
        # Parts of one study each hold the recordings as they are: once is enough.
        rows += [line for row in lines_of(results) if (line := cells(row)) not in rows]
        total = {name: total[name] + count for name, count in results.called_safe().items()}
    text = markdown(COLUMNS, rows)
    text += (
        f"\n\nThe RBF network alone would have called {total['called_safe']} of"
        f" {total['releases']} releases safe in which the strongest of the battery finds people."
    )
    print(text)
    if given.page:
        put_into(given.page, given.name, text)


if __name__ == "__main__":
    main()
