"""The strongest attacker tried beside the papers' RBF network: paired differences over people, and
how often the network alone would have called a release safe.
"""

from __future__ import annotations

import math

from gazeveil.attacks.result import ERROR
from gazeveil.evaluation.report.comparison import Headline
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import interval, percent, points
from gazeveil.evaluation.report.markup import Markup, join, table, tag
from gazeveil.evaluation.report.summary import called_safe

#: Columns of the comparison, for the page and for a terminal.
HEAD = (
    "release",
    "RBF network",
    "it alone would say",
    "strongest, chosen on other splits (95 %)",
    "less network, points (95 %)",
    "best of all",
    "attackers tried",
)


def beside_network(findings: Findings) -> Markup:
    """The section: a count in words, and the table; nothing where the network did not attack."""
    rows = comparison_rows(findings)
    if not rows:
        return Markup("")
    caption = (
        f"The {findings.strongest} beside the RBF network at its best, on the same people and"
        " releases. Intervals are over people."
    )
    return join([tag("p", called_safe(findings)), table(caption, HEAD, rows)])


def comparison_rows(findings: Findings) -> list[tuple[str, ...]]:
    """One row of :data:`HEAD` for every release that the RBF network attacked too."""
    return [
        _row(r, r.headline)
        for r in findings.attacked
        if r.headline is not None and math.isfinite(r.headline.other_value)
    ]


def _row(release: ReleaseFindings, over: Headline) -> tuple[str, ...]:
    shown, worst = release.shown, release.worst
    assert shown is not None  # of the attacked ones
    assert worst is not None
    alone = "-" if release.rbfn is None else _says(release.rbfn.p_value)
    return (
        f"{release.number}. {release.label}",
        percent(over.other_value),
        f"{alone}, wrongly" if release.missed_by_rbfn else alone,
        _rate(shown.value, shown.low, shown.high),
        _points(over.difference, over.difference_low, over.difference_high),
        percent(worst.value),
        str(release.tried),
    )


def _says(p_value: float) -> str:
    return "recognised" if p_value <= ERROR else "safe"


def _rate(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "-"
    between = interval(low, high)
    return percent(value) + (f" ({between})" if between else "")


def _points(difference: float, low: float, high: float) -> str:
    if not math.isfinite(difference):
        return "-"
    return points(difference) + (
        f" ({points(low)} to {points(high)})" if math.isfinite(low) else ""
    )
