"""How identification changes with the size of the gallery and with the age of what the attacker
holds.

**Gallery size.** Let b of the other N - 1 people of a gallery score above a person. In a random
gallery of m people that person is identified if none of those b is in it:

    P(found among m) = C(N - 1 - b, m - 1) / C(N - 1, m - 1),

and a tie with t others is found in the mean 1 / (1 + ties that are in it). So one attack on all
people gives the whole curve, without drawing galleries. It assumes that scores against one person
do not depend on who else is in the gallery.

**Template age.** The same split by stimulus at every age: the gallery holds some stimuli of one
session, the probe the other stimuli of a session so much later. Age 0 is then the usual split
within a session, and what differs is time alone.

How well one score tells two groups of people apart: the area under the receiver operating
characteristic, and the true positive rate at a small false positive rate.

The area's interval is Newcombe's (Statistics in Medicine 2006, method 5): the areas that lie no
further from the one found than their own Hanley-McNeil deviation allows. Unlike DeLong's it keeps a
width where the groups do not overlap at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Scores
from gazeveil.attacks.result import (
    ERROR,
    AttackResult,
    beaten_by,
    rate_result,
    share_result,
    tied_with,
)
from gazeveil.errors import DataError


def roc_area(positive: ArrayLike, negative: ArrayLike) -> float:
    """Probability that a positive scores above a negative, ties counting one half."""
    p, n = _clean(positive, negative)
    ordered = np.sort(n)
    above, level = (
        np.searchsorted(ordered, p, side="left"),
        np.searchsorted(ordered, p, side="right"),
    )
    return float((above + level).sum() / (2 * len(p) * len(n)))


def auc(positive: ArrayLike, negative: ArrayLike, protocol: str = "") -> AttackResult:
    """Area under the curve with its 95 % interval and the one-sided rank test against 0.5.

    Parameters
    ----------
    positive, negative : array of float64
        Scores of the two groups, one per person; larger should mean positive. NaN counts as the
        smallest.
    protocol : str
        How they were made.
    """
    from scipy.stats import mannwhitneyu

    p, n = _clean(positive, negative)
    value = roc_area(p, n)
    low, high = roc_area_interval(value, len(p), len(n))
    test = mannwhitneyu(p, n, alternative="greater")
    return AttackResult("auc", value, low, high, len(p) + len(n), 0.5, float(test.pvalue), protocol)


def roc_area_interval(value: float, positives: int, negatives: int) -> tuple[float, float]:
    """Newcombe's 95 % interval of an area found with that many people."""
    from scipy.special import ndtri

    z = float(ndtri(1 - ERROR / 2))
    typical = (positives + negatives) / 2 - 1

    def deviation(theta: float) -> float:
        spread = 1 + typical * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return math.sqrt(max(0.0, theta * (1 - theta) * spread / (positives * negatives)))

    def edge(inside: float, outside: float) -> float:
        for _ in range(80):
            middle = (inside + outside) / 2
            inside, outside = (
                (middle, outside)
                if abs(middle - value) <= z * deviation(middle)
                else (inside, middle)
            )
        return inside

    return edge(value, 0.0), edge(value, 1.0)


def tpr_at_fpr(
    positive: ArrayLike, negative: ArrayLike, fpr: float, protocol: str = ""
) -> AttackResult:
    """Share of positives above a threshold that at most this share of negatives passes.

    Parameters
    ----------
    positive, negative : array of float64
        Scores, as in :func:`auc`.
    fpr : float
        Share of negatives that may pass, e.g. 0.001. With fewer negatives than 1 / fpr no
        negative passes; `protocol` says how many there were, because the rate among negatives at
        large is then only known to be small.

    Returns
    -------
    AttackResult
        Metric `tpr_at_fpr_<share>`; the interval is Clopper-Pearson over the positives at that
        threshold. `chance` is what a score that tells nothing gives: (allowed + 1) / (negatives +
        1).
    """
    p, n = _clean(positive, negative)
    share = checks.number("tpr_at_fpr", "fpr", fpr)
    if not 0 <= share < 1:
        checks.refuse("tpr_at_fpr", "fpr", "a share from 0 to below 1", share)
    allowed = math.floor(share * len(n) + 1e-9)
    threshold = np.sort(n)[len(n) - 1 - allowed]
    full_protocol = f"{allowed} of {len(n)} negatives may pass" + (
        f"; {protocol}" if protocol else ""
    )
    tpr = float(np.mean(p > threshold))
    result = rate_result(f"tpr_at_fpr_{share:g}", tpr, len(p), math.nan, full_protocol)
    return replace(result, chance=(allowed + 1) / (len(n) + 1))


def _clean(positive: ArrayLike, negative: ArrayLike) -> tuple[Floats, Floats]:
    parts = [np.asarray(x, dtype=np.float64) for x in (positive, negative)]
    if any(x.ndim != 1 or len(x) == 0 for x in parts):
        raise DataError(
            "Telling two groups apart needs scores of at least one person in each. Got"
            f" {parts[0].size} and {parts[1].size}."
        )
    p, n = (np.where(np.isnan(x), -np.inf, x) for x in parts)
    return p, n


@dataclass(frozen=True)
class Point:
    """One point of a curve.

    Parameters
    ----------
    at : float
        Gallery size, or age.
    result : AttackResult
        What was achieved there.
    """

    at: float
    result: AttackResult


def found_among(beaten: int, tied: int, known: int, size: int) -> float:
    """Probability of being found in a random gallery of `size` of the `known` people, oneself among
    them; exact.
    """
    others, drawn = known - 1, size - 1
    if beaten > others:
        return 0.0
    rest = others - beaten - tied
    whole = math.comb(others, drawn)
    return sum(
        math.comb(tied, j) * math.comb(rest, drawn - j) / ((j + 1) * whole)
        for j in range(min(tied, drawn) + 1)
    )


def gallery_curve(
    scores_per_repetition: Sequence[Scores], sizes: Iterable[int] | None = None
) -> tuple[Point, ...]:
    """Identification rate by the size of the gallery, in closed form.

    Parameters
    ----------
    scores_per_repetition : sequence of Scores
        As for :func:`gazeveil.attacks.result.identification`.
    sizes : iterable of int, optional
        From 2 to the number of people known; default all of them, at most 50 evenly spread.

    Returns
    -------
    tuple of Point
        The last one, at the full size, is the identification rate itself.
    """
    known = min((len(s.known) for s in scores_per_repetition), default=0)
    if known < 2:
        raise DataError(f"A gallery curve needs at least two people known. Got {known}.")
    wanted = (
        sorted({round(m) for m in np.linspace(2, known, min(known - 1, 50))})
        if sizes is None
        else sorted(set(sizes))
    )
    for size in wanted:
        if not 2 <= checks.count("gallery_curve", "sizes", size) <= known:
            checks.refuse("gallery_curve", "sizes", f"from 2 to {known}, the people known", size)
    rivals = [
        (beaten_by(s).tolist(), tied_with(s).tolist(), len(s.known)) for s in scores_per_repetition
    ]
    people = sorted({p for s in scores_per_repetition for p in s.probes})
    points = []
    for size in wanted:
        found = [
            {
                p: found_among(b, t, known, size)
                for p, b, t in zip(s.probes, above, level, strict=True)
            }
            for s, (above, level, known) in zip(scores_per_repetition, rivals, strict=True)
        ]
        credit = [[own.get(p, np.nan) for own in found] for p in people]
        protocol = f"random galleries of {size}, closed form"
        result = share_result("identification_rate", credit, 1 / size, protocol)
        points.append(Point(size, result))
    return tuple(points)
