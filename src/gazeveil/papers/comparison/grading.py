"""Three verdicts on a published figure or claim, and the reasons why one is not graded.

* *reproduced*: ours is inside a stated tolerance on the paper's own recordings, or equal where no
  recordings are needed;
* *same order*: all orders that the paper claims hold on its recordings, intervals apart;
* *not reproduced*: neither.

A verdict has a reason. What cannot be judged has none, and its reason begins with one of
:data:`UNGRADED`: the short form grades nothing, and simulated people grade nothing that depends on
recordings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from gazeveil.papers.comparison.lookup import Estimate, Lookup
from gazeveil.papers.figure import CellQuery, Formula, Order, PublishedFigure, Row

REPRODUCED, SAME_ORDER, NOT_REPRODUCED = "reproduced", "same order", "not reproduced"

#: The words of a verdict.
VERDICTS = (REPRODUCED, SAME_ORDER, NOT_REPRODUCED)

ABSENT = "not in this run"
QUICK = "short form"
SIMULATED = "simulated people"
OTHER_MODEL = "another model"
NO_TOLERANCE = "no tolerance"
IN_PART = "in part"
OURS = "not claimed by the paper"
IMPOSSIBLE = "impossible here"
CHANCE = "chance level"
FEW = "too few people"

#: Fewest people of a part whose figures are graded.
FEWEST_PEOPLE = 10

#: How the reason of a row without a verdict begins.
UNGRADED = (
    ABSENT,
    QUICK,
    SIMULATED,
    FEW,
    OTHER_MODEL,
    NO_TOLERANCE,
    IN_PART,
    OURS,
    CHANCE,
    IMPOSSIBLE,
)


def _factor(most: float) -> Callable[[float, float], bool]:
    return lambda ours, published: (
        ours > 0 and published > 0 and max(ours / published, published / ours) <= most
    )


#: When numbers on a paper's own recordings agree; rates and accuracies as fractions of 1.
TOLERANCES: Mapping[str, tuple[str, Callable[[float, float], bool]]] = MappingProxyType(
    {
        "identification": (
            "8 points or a quarter",
            lambda ours, published: abs(ours - published) <= max(0.08, 0.25 * published) + 1e-9,
        ),
        "accuracy": ("5 points", lambda ours, published: abs(ours - published) <= 0.05 + 1e-9),
        "prediction": (
            "a quarter",
            lambda ours, published: abs(ours - published) <= 0.25 * published + 1e-9,
        ),
        "dwell": ("a factor of 2", _factor(2.0)),
        "kl": ("a factor of 3", _factor(3.0)),
    }
)


def graded(verdict: str, reason: str) -> Row:
    """The two keys of a row that hold its verdict."""
    return {"verdict": verdict, "reason": reason}


def ungraded(why: str, detail: str = "") -> Row:
    """The two keys of a row without a verdict."""
    return graded("", f"{why}: {detail}" if detail else why)


def verdict_text(row: Row) -> str:
    """The verdict of a row with its reason, for people.

    Examples
    --------
    >>> verdict_text({"verdict": "reproduced", "reason": "within 5 points"})
    'reproduced: within 5 points'
    >>> verdict_text({"verdict": "", "reason": "simulated people"})
    'not graded: simulated people'
    """
    word, reason = str(row.get("verdict") or "not graded"), str(row.get("reason") or "")
    return f"{word}: {reason}" if reason else word


def is_absent(row: Row) -> bool:
    """Whether the run holds nothing of a row."""
    return row.get("reason") == ABSENT


def summary(rows: Sequence[Row]) -> str:
    """One sentence that counts the verdicts, and why the others have none."""
    words = Counter(str(r["verdict"]) for r in rows)
    told = ", ".join(f"{words[v]} {v}" for v in VERDICTS)
    why = Counter(str(r["reason"]).partition(":")[0] for r in rows if not r["verdict"])
    listed = ", ".join(f"{why[w]} {w}" for w in UNGRADED if why[w])
    return f"{told}; {words['']} not graded" + (f": {listed}." if listed else ".")


def grade_formula(asked: Formula, figure: PublishedFigure, quick: bool) -> Row:
    """The verdict on a figure that the package computes alone."""
    if quick:
        return ungraded(QUICK)
    equal = _equal(asked, figure)
    if figure.model == "chance":
        return ungraded(CHANCE, equal)
    verdict = NOT_REPRODUCED if equal == "not equal" else REPRODUCED
    return graded(verdict, ": ".join(filter(None, (equal, asked.note))))


def grade_figure(
    figure: PublishedFigure, cell: CellQuery, estimate: Estimate, lookup: Lookup
) -> Row:
    """The verdict on a figure that depends on recordings."""
    barred = _barred(lookup, [cell])
    if barred:
        return barred
    if cell.other_model:
        return ungraded(OTHER_MODEL, cell.other_model)
    if not cell.tolerance or figure.number != figure.number:
        return ungraded(NO_TOLERANCE, "shown beside the paper's")
    margin, agrees = TOLERANCES[cell.tolerance]
    if agrees(estimate.value / cell.scale, figure.number / cell.scale):
        return graded(REPRODUCED, f"within {margin}")
    known = f"; {cell.why}" if cell.why else ""
    return graded(NOT_REPRODUCED, f"off by more than {margin}{known}")


def grade_order(order: Order, estimates: Sequence[Estimate], lookup: Lookup) -> Row:
    """The verdict on a claim that some cells stand in an order; `estimates` are those of its cells
    that are in this run, two at least.
    """
    holds, sentence = _standing(estimates)
    barred = _barred(lookup, order.cells)
    if barred:
        return ungraded(str(barred["reason"]), sentence)
    if not order.claimed:
        return ungraded(OURS, sentence)
    if len(estimates) < len(order.cells):
        return ungraded(IN_PART, f"{len(estimates)} of {len(order.cells)} are here, {sentence}")
    if holds:
        return graded(SAME_ORDER, sentence)
    return graded(NOT_REPRODUCED, "; ".join(filter(None, (sentence, order.why))))


def _barred(lookup: Lookup, cells: Sequence[CellQuery]) -> Row | None:
    """What stands in the way of every verdict on figures of recordings."""
    if lookup.quick:
        return ungraded(QUICK)
    if not all(lookup.real(c.cohort) for c in cells):
        return ungraded(SIMULATED)
    fewest = min((lookup.people(c.cohort) for c in cells), default=FEWEST_PEOPLE)
    if fewest < FEWEST_PEOPLE:
        return ungraded(FEW, f"{fewest}, of {FEWEST_PEOPLE} at least")
    return None


def _standing(estimates: Sequence[Estimate]) -> tuple[bool, str]:
    """Whether the order holds with intervals apart, and how it stands."""
    steps = list(pairwise(estimates))
    if all(a.high < b.low for a, b in steps):
        return True, "intervals apart"
    if any(a.low > b.high for a, b in steps):
        return False, "in another order, intervals apart"
    if all(a.value < b.value for a, b in steps):
        return False, "holds in the means, intervals overlap"
    return False, "undecided, intervals overlap"


def _equal(asked: Formula, figure: PublishedFigure) -> str:
    if str(asked.ours) == figure.value:
        return "equal"
    if not isinstance(asked.ours, int | float):
        return "not equal"
    if round(float(asked.ours), asked.digits) == figure.number:
        return "equal"
    # 1/18 printed as 5.5 %: cut off, not rounded.
    return (
        "equal but for the last digit"
        if abs(asked.ours - figure.number) < 10.0**-asked.digits
        else "not equal"
    )
