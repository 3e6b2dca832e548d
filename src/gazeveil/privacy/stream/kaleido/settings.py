"""The public numbers of a Kaleido stream, and what follows from them alone: shares of the budget,
scales of the noise, the posterior mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.spherical import WIDE_RAD

#: Nodes of the quadrature of the posterior mean.
QUADRATURE = 16

#: Rules that share the budget of a window among its publications.
HALVING, RESERVE, UNIFORM = range(3)

#: What is done to a published point, free of charge.
NOTHING, CLAMP, SNAPPED, POSTERIOR_MEAN = range(4)


class KaleidoSettings(NamedTuple):
    """Public numbers of a stream; lengths are in steps of the lattice unless they say otherwise.

    Parameters
    ----------
    rule : int
        Which one shares the budget.
    skip, window : int
        Samples from one slot to the next, and of a window.
    slots : int
        Slots of a window.
    units, least_units : int
        Units of the budget of a window, and the fewest that anything is published with.
    tests : bool
        Whether slots are tested.
    sphere : bool
        Whether degrees are those of a sphere: scales and the threshold are then in radians.
    after : int
        What is done to a published point.
    x_low, x_high, y_low, y_high : int
        Where a released point can lie.
    turn : int
        Steps of 360 degrees.
    snap : int
        Steps between the points that `snap` leaves.
    step_deg : float
        Step of the lattice, in degrees.
    threshold, test_scale : float
        Of the test, and the scale of its noise.
    scale_times_units : float
        Scale of the noise of a publication with one unit.
    prior_x, prior_y : float
        Standard deviations of the prior; 0 where it is flat.
    narrow : bool
        Whether most tries on the sphere take four words.
    fitted : int
        Most units with which noise on the sphere is proposed by the tangent below.
    shrink, lead : float
        The tangent that fits the usual scale.
    """

    rule: int
    skip: int
    window: int
    slots: int
    units: int
    least_units: int
    tests: bool
    sphere: bool
    after: int
    x_low: int
    x_high: int
    y_low: int
    y_high: int
    turn: int
    snap: int
    step_deg: float
    threshold: float
    test_scale: float
    scale_times_units: float
    prior_x: float
    prior_y: float
    narrow: bool = False
    fitted: int = 0
    shrink: float = 0.0
    lead: float = 0.0


@compiled
def share(rule: int, units: int, each: int, spent: int) -> tuple[int, int]:
    """Units of the next publication, and the part of them that later ones must know of; `each` is
    units // slots.
    """
    if rule == HALVING:
        half = (units - spent) >> 1
        return half, half
    if rule == RESERVE:
        adaptive = ((units >> 1) - spent) >> 1
        return (each >> 1) + adaptive, adaptive
    return each, each


@compiled
def scale_of(units: int, times_units: float) -> float:
    """Scale of the noise of a publication, in steps (in radians on the sphere); never below the
    exact one.
    """
    return times_units / units


@compiled
def tangent_of(units: int, fitted: int, shrink: float, lead: float) -> tuple[float, float]:
    """The tangent that chords of a publication are proposed by: the plan's own, or the one at chord
    0 where the scale is much narrower.

    It is chosen by the units alone, which are public, so that every way to draw a point chooses the
    same one.
    """
    return (shrink, lead) if units <= fitted else (1.0, 0.0)


@compiled
def words_of_record(narrow: bool) -> int:
    """Words of a record for a try of a point: four if most scales are narrow."""
    return 4 if narrow else 3


@compiled
def records_of_try(scale: float, per: int, sphere: bool) -> int:
    """Records that a try takes: a narrow one has four words, and takes two records where these have
    three.
    """
    return 2 if sphere and per == 3 and scale <= WIDE_RAD else 1


@compiled
def fourth_word(word: int, scale: float) -> int:
    """Where the fourth word of a try is, if it has one; else some word of it."""
    return word + 3 if scale <= WIDE_RAD else word


@compiled
def _mean_on_axis(z: float, prior: float, variance: float) -> float:
    return z * (prior * prior / (prior * prior + variance)) if prior > 0.0 else z


@compiled
def posterior_mean(
    x: float, y: float, scale: float, prior_x: float, prior_y: float, quadrature: Floats
) -> tuple[float, float]:
    """Mean of the place given the noisy one, both from the prior's centre: planar Laplace is normal
    with variance 2 b**2 Gamma(3/2).
    """
    highest = -np.inf
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * quadrature[0, i]
        log = quadrature[1, i]
        for prior, z in ((prior_x, x), (prior_y, y)):
            if prior > 0.0:
                log -= 0.5 * math.log(prior * prior + v) + 0.5 * z * z / (prior * prior + v)
        highest = max(highest, log)
    total, mean_x, mean_y = 0.0, 0.0, 0.0
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * quadrature[0, i]
        log = quadrature[1, i]
        for prior, z in ((prior_x, x), (prior_y, y)):
            if prior > 0.0:
                log -= 0.5 * math.log(prior * prior + v) + 0.5 * z * z / (prior * prior + v)
        weight = math.exp(log - highest)
        total += weight
        mean_x += weight * _mean_on_axis(x, prior_x, v)
        mean_y += weight * _mean_on_axis(y, prior_y, v)
    return mean_x / total, mean_y / total
