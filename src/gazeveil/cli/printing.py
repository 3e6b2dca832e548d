"""How results are printed: tables of rates, the strongest attacker, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import console, say

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

#: How a rate is shown; see :func:`rate_words`.
RATE_COLUMNS = ("found", "95 %", "chance", "p")


def show(results: Results) -> None:
    """Print what the strongest attacker gets of every release, the sentences of the summary, and
    what could not be computed.
    """
    from gazeveil.evaluation.report import headline
    from gazeveil.evaluation.report.findings import Findings
    from gazeveil.evaluation.report.labels import percent
    from gazeveil.evaluation.report.summary import FOOTNOTE, called_safe

    findings = Findings(results)
    if findings.attacked:
        table = rate_table(f"The {findings.strongest} on each release", "release", "best of all")
        for release in findings.attacked:
            shown, worst = release.shown, release.worst
            if shown is not None and worst is not None:
                best = f"{percent(worst.value)} {worst.attack} {worst.scenario}"
                numbers = {n: None if v != v else v for n, v in vars(shown).items()}  # NaN
                table.add_row(release.label, best, *rate_words(numbers))
        console().print(table)
        say(FOOTNOTE)
    for sentence in filter(None, (called_safe(findings), *headline(results))):
        say(sentence)
    _show_missing(results)


def say_called_safe(results: Results) -> None:
    """Print how many releases of all parts the RBF network alone would have called safe."""
    from gazeveil.evaluation.report.findings import strongest_of

    counts = results.called_safe()
    if not counts["releases"]:
        return
    tried = results.strongest_against()["tried"].unique().sort().to_list()
    several = f"{tried[0]} to {tried[-1]}" if len(tried) > 1 else str(tried[0])
    strongest = strongest_of(several, str(results.study.get("battery") or ""))
    say(
        f"Over all parts the RBF network alone would have called {counts['called_safe']} of"
        f" {counts['releases']} releases safe where the {strongest} recognises people."
    )


def _show_missing(results: Results) -> None:
    """Print what could not be computed, and what was left out."""
    reasons: dict[str, int] = {}
    for failure in results.failures:
        reasons[failure["sentence"]] = reasons.get(failure["sentence"], 0) + 1
    for sentence, count in reasons.items():
        say(f"{count} cell{'s' if count > 1 else ''} could not be computed: {sentence}")
    # What would only repeat another figure stands in study.json alone: nothing is missing for it.
    left_out: Any = results.study.get("left_out", [])
    missing = left_out[: len(left_out) - int(str(results.study.get("repeats", 0)))]
    if missing:
        more = f" ({len(missing) - 1} more in study.json)" if len(missing) > 1 else ""
        say(f"Left out: {missing[0]}{more}")


def rate_table(title: str, *columns: str) -> Table:
    """A table of rates that fits a narrow terminal; figures are never folded."""
    table = Table(
        title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True
    )
    for column in (*columns, *RATE_COLUMNS):
        table.add_column(
            column,
            justify="right" if column in RATE_COLUMNS else "left",
            overflow="fold",
            no_wrap=column in RATE_COLUMNS,
        )
    return table


def rate_words(row: dict[str, Any]) -> tuple[str, ...]:
    """A rate as people and share, interval, guessing and test."""
    interval = "" if row["low"] is None else f"{100 * row['low']:.0f}-{100 * row['high']:.0f} %"
    p = row["p_value"]
    rate = f"{round(row['value'] * row['n'], 1):g}/{row['n']} {100 * row['value']:3.0f} %"
    return (
        rate,
        interval,
        f"{100 * row['chance']:.1f} %",
        "" if p is None else ("<.0001" if p < 1e-4 else f"{p:.2g}"),
    )


def figures(results: Results) -> dict[str, object]:
    """The results as JSON has them."""
    return {
        "study": {k: v for k, v in results.study.items() if k != "times"},
        "strongest": results.strongest().to_dicts(),
        "strongest_against": results.strongest_against().to_dicts(),
        "called_safe": results.called_safe(),
        "results": results.frame.to_dicts(),
        "guarantees": list(results.guarantees),
        "failures": list(results.failures),
    }
