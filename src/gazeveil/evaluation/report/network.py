"""The strongest attacker tried beside the papers' RBF network: paired differences over people, and
how often the network alone would have called a release safe.
"""

from __future__ import annotations

import math

from gazeveil.evaluation.report.comparison import NetworkComparison
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import interval, percent, points
from gazeveil.evaluation.report.markup import Markup, join, table, tag
from gazeveil.evaluation.report.summary import by_luck, called_safe

#: Columns of the comparison, for the page and for a terminal.
HEAD = (
    "release",
    "RBF network",
    "it alone would say",
    "strongest (95 %)",
    "less network, points (95 %)",
    "chosen on the other repetitions (95 %)",
    "less network, points (95 %)",
    "attackers tried",
)


def beside_network(findings: Findings) -> Markup:
    """The section: a count in words, and the table; nothing where the network did not attack."""
    rows = comparison_rows(findings)
    if not rows:
        return Markup("")
    caption = (
        f"The {findings.strongest} beside the RBF network at its best, on the same people and"
        " releases. The strongest is chosen by the rates it is quoted with (an upper envelope); the"
        " chosen one is, in each repetition, whoever is the strongest on all the others. Intervals"
        " are over people."
    )
    return join([tag("p", called_safe(findings)), table(caption, HEAD, rows)])


def comparison_rows(findings: Findings) -> list[tuple[str, ...]]:
    """One row of :data:`HEAD` for every release that the RBF network attacked too."""
    return [
        _row(r, r.comparison)
        for r in findings.attacked
        if r.comparison is not None and math.isfinite(r.comparison.network)
    ]


def _row(release: ReleaseFindings, compared: NetworkComparison) -> tuple[str, ...]:
    worst = release.worst
    assert worst is not None  # of the attacked ones
    says = "recognised" if release.rbfn and release.rbfn.above_chance else "safe"
    wrongly = ""
    if release.missed_by_rbfn:
        wrongly = ", perhaps wrongly" if by_luck(release) else ", wrongly"
    return (
        f"{release.number}. {release.label}",
        percent(compared.network),
        says + wrongly,
        _rate(worst.value, worst.low, worst.high),
        _points(compared.difference, compared.low, compared.high),
        _rate(compared.chosen, compared.chosen_low, compared.chosen_high),
        _points(
            compared.chosen_difference,
            compared.chosen_difference_low,
            compared.chosen_difference_high,
        ),
        str(release.tried),
    )


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
