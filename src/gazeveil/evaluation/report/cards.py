"""The card of a release and the card of all results, which a notebook shows.

Measurement and promise stand in two lines with different words. A proof is then not mistaken for a
re-identification rate of zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gazeveil.evaluation.report import summary
from gazeveil.evaluation.report.canvas import Markup, badge, join, people, tag
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import mechanism_label, metric_label, number_text, percent
from gazeveil.gaze.cards import bar_picture, card

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

# Releases on the card of all results.
_MOST_ROWS = 20


def release_card(findings: Findings, release: ReleaseFindings, note: str) -> Markup:
    """Card of one release of the summary; empty where it was not attacked."""
    worst = release.shown
    if worst is None:
        return Markup("")
    warned, kept = summary.rbfn_warning(release), _kept(findings, release)
    return tag(
        "li",
        tag("h3", f"{release.number}. {release.label}" if release.number else "No protection"),
        tag(
            "p",
            worst.people,
            " ",
            tag("small", f"recognised by the {release.strongest}"),
            class_="figure",
        ),
        people(worst.found, worst.n, release.colour),
        tag("p", _unbroken(summary.result(release))),
        tag("p", warned, class_="warning") if warned else "",
        "" if release.baseline else _promise(release),
        tag("p", tag("b", "Kept:"), f" {kept}.") if kept else "",
        tag("p", f"This is {note}.", class_="small") if note else "",
        class_="card",
    )


def _promise(release: ReleaseFindings) -> Markup:
    """The line of the promise; a tick where it is proved and no participant is re-identified."""
    kept = release.guarantee.get("status") == "proved" and not release.recognised
    ticked = kept and release.guarantee.get("definition") != "none"
    words = tag("p", tag("b", "Promise:"), f" {summary.promise(release)}")
    return join([words, tag("p", badge("proved")) if ticked else ""])


def _unbroken(text: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return text.replace(" %", "\u00a0%")


def _kept(findings: Findings, release: ReleaseFindings) -> str:
    """The first figure of two utilities, with the raw one in brackets."""
    phrases: list[str] = []
    for utility, metric in findings.drawn_metrics:
        m, raw = (
            release.measure(utility, metric),
            (findings.baseline.measure(utility, metric) if findings.baseline is not None else None),
        )
        if m is not None and math.isfinite(m.value) and len(phrases) < 2:
            beside = (
                f" (raw {number_text(raw.value)})"
                if raw is not None and not release.baseline
                else ""
            )
            figure = "no fixation found" if m.without_fixations else number_text(m.value)
            phrases.append(f"{metric_label(utility, metric)} {figure}{beside}")
    return "; ".join(phrases)


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
