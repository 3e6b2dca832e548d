"""How identification changes with the size of the gallery and with the age of what the attacker
holds.

**Gallery size.** Somebody who is beaten by b of the other N - 1 people of a gallery is found in a
random gallery of m people if none of those b is in it:

    P(found among m) = C(N - 1 - b, m - 1) / C(N - 1, m - 1),

and a tie with t others is found in the mean 1 / (1 + ties that are in it). So one attack on all
people gives the whole curve, without drawing galleries. It assumes that scores against one person
do not depend on who else is in the gallery.

**Template age.** The same split by stimulus at every age: the gallery holds some stimuli of one
session, the probe the other stimuli of a session so much later. Age 0 is then the usual split
within a session, and what differs is time alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Scores
from gazeveil.attacks.result import AttackResult, beaten_by, share_result, tied_with
from gazeveil.errors import DataError


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
