"""Intervals a study draws: over people for rates, over repetitions or parts for everything else.

Rates are judged in :mod:`gazeveil.attacks.result`; here is what utilities need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gazeveil.attacks.result import bootstrap


def utility_interval(
    values: Sequence[float], parts: Sequence[float], seed: int
) -> tuple[float, float]:
    """95 % interval of a utility's figure.

    Parameters
    ----------
    values : sequence of float
        The figure in each repetition.
    parts : sequence of float
        Its parts (people, stimuli, recordings) in one repetition.
    seed : int
        Of the bootstrap.

    Returns
    -------
    (low, high)
        A bootstrap over repetitions where they differ; else over the parts, because repetitions
        that all say the same say nothing of how other people would fare. NaN where there are fewer
        than two of either.
    """
    several = np.array([v for v in values if math.isfinite(v)], dtype=np.float64)
    if len(several) > 1 and np.ptp(several) > 0:
        return bootstrap(several, seed)
    own = np.array([v for v in parts if math.isfinite(v)], dtype=np.float64)
    if len(own) < 2 or len(several) == 0:
        return math.nan, math.nan
    low, high = bootstrap(own, seed)
    # Where the figure is not the mean of its parts, their spread is still its own.
    shift = float(several[0]) - float(own.mean())
    return low + shift, high + shift


def spread(values: Sequence[float]) -> float:
    """Standard deviation over repetitions; NaN for fewer than two."""
    found = np.array([v for v in values if math.isfinite(v)], dtype=np.float64)
    return float(found.std(ddof=1)) if len(found) > 1 else math.nan
