"""The step of Kaleido on lattice points: skip, test, publish; compiled, for one stream or many.

Everything that a step does besides its noise is whole numbers: places are points of a public lattice, budgets are counted in units of
E / U, and tests and publications are counted by sample. A stream keeps the publications of the last w - 1 samples, never more than n_test,
in a ring. The noise is that of :mod:`gazeveil.privacy.stream.kaleido_noise`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.privacy.noise.rng import WordArray
from gazeveil.privacy.stream.kaleido_noise import UNSETTLED, arc, screen_noise, sphere_noise, test_passes, unit_vector

# Whole-number settings, by place.
RULE, SKIP, WINDOW, SLOTS, UNITS, LEAST_UNITS, TESTS, SPHERE, AFTER, X_LOW, X_HIGH, Y_LOW, Y_HIGH, TURN, SNAP = range(15)

# Settings in floating point, by place; the quadrature of the posterior mean follows (nodes, then log weights).
STEP, THRESHOLD, TEST_SCALE, SCALE_TIMES_UNITS, PRIOR_X, PRIOR_Y, NODES = range(7)
QUADRATURE = 16

#: Rules that share the budget of a window among its publications.
HALVING, RESERVE, UNIFORM = range(3)

#: What is done to a published point, free of charge.
NOTHING, CLAMP, SNAPPED, POSTERIOR_MEAN = range(4)

# State of a stream, by place; the ring follows (sample numbers, then units).
COUNT, LAST_TEST, HAS, LAST_X, LAST_Y, HEAD, LENGTH, SPENT, RING = range(9)

#: What the trace says of a sample that was not published; a published one has its units.
SKIPPED, REPEATED, LOST, STARVED = 0, -1, -2, -3

#: Why a run stopped.
FINISHED, NEEDS_WORDS, UNSETTLED_TEST, UNSETTLED_POINT = range(4)

# What was decided with whole numbers about the sample at hand, by place: is the test known, its answer, is the point known, the point.
TEST_KNOWN, NEAR, POINT_KNOWN, POINT_X, POINT_Y = range(5)


@compiled
def _expire(state: NDArray[np.int64], sample: int, window: int, slots: int) -> None:
    """Give back what was spent w or more samples ago."""
    while state[LENGTH] > 0 and state[RING + state[HEAD]] <= sample - window:
        state[SPENT] -= state[RING + slots + state[HEAD]]
        state[HEAD] = (state[HEAD] + 1) % slots
        state[LENGTH] -= 1


@compiled
def share(whole: NDArray[np.int64], spent: int) -> tuple[int, int]:
    """Units of the next publication, and the part of them that later ones must know of."""
    units = whole[UNITS]
    if whole[RULE] == HALVING:
        share = (units - spent) // 2
        return share, share
    if whole[RULE] == RESERVE:
        adaptive = (units // 2 - spent) // 2
        return units // (2 * whole[SLOTS]) + adaptive, adaptive
    share = units // whole[SLOTS]
    return share, share


@compiled
def _mean_on_axis(z: float, prior: float, variance: float) -> float:
    return z * (prior * prior / (prior * prior + variance)) if prior > 0.0 else z


@compiled
def _posterior_mean(x: float, y: float, scale: float, real: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of the place given the noisy one, both from the prior's centre: planar Laplace is normal with variance 2 b**2 Gamma(3/2)."""
    highest = -np.inf
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * real[NODES + i]
        log = real[NODES + QUADRATURE + i]
        for prior, z in ((real[PRIOR_X], x), (real[PRIOR_Y], y)):
            if prior > 0.0:
                log -= 0.5 * math.log(prior * prior + v) + 0.5 * z * z / (prior * prior + v)
        highest = max(highest, log)
    total, mean_x, mean_y = 0.0, 0.0, 0.0
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * real[NODES + i]
        log = real[NODES + QUADRATURE + i]
        for prior, z in ((real[PRIOR_X], x), (real[PRIOR_Y], y)):
            if prior > 0.0:
                log -= 0.5 * math.log(prior * prior + v) + 0.5 * z * z / (prior * prior + v)
        weight = math.exp(log - highest)
        total += weight
        mean_x += weight * _mean_on_axis(x, real[PRIOR_X], v)
        mean_y += weight * _mean_on_axis(y, real[PRIOR_Y], v)
    return mean_x / total, mean_y / total


@compiled
def _after(x: np.int64, y: np.int64, scale: float, whole: NDArray[np.int64], real: NDArray[np.float64]) -> tuple[np.int64, np.int64]:
    """The point as it is released: a function of the noisy point and of public numbers alone."""
    after = whole[AFTER]
    if after == POSTERIOR_MEAN:
        middle_y = whole[TURN] // 4 if whole[SPHERE] else 0
        mean_x, mean_y = _posterior_mean(float(x), float(y - middle_y), scale, real)
        x = x if whole[SPHERE] else np.int64(np.rint(mean_x))
        y = np.int64(np.rint(mean_y)) + middle_y
    if whole[SPHERE]:
        x %= whole[TURN]
    x, y = min(max(x, whole[X_LOW]), whole[X_HIGH]), min(max(y, whole[Y_LOW]), whole[Y_HIGH])
    if after == SNAPPED:
        grid = whole[SNAP]
        x, y = (x + grid // 2) // grid * grid, (y + grid // 2) // grid * grid
        x, y = min(max(x, whole[X_LOW]), whole[X_HIGH]), min(max(y, whole[Y_LOW]), whole[Y_HIGH])
    return x, y


@compiled
def scale_of(units: int, real: NDArray[np.float64]) -> float:
    """Scale of the noise of a publication, in steps (in radians on the sphere); never below the exact one."""
    return real[SCALE_TIMES_UNITS] / units


@compiled
def publish(
    state: NDArray[np.int64],
    vector: NDArray[np.float64],
    x: np.int64,
    y: np.int64,
    units: int,
    tracked: int,
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
) -> None:
    """Take a noisy point as the last publication and charge it."""
    scale = scale_of(units, real)
    if whole[SPHERE]:
        scale /= real[STEP] * (math.pi / 180.0)
    x, y = _after(x, y, scale, whole, real)
    slots = whole[SLOTS]
    place = (state[HEAD] + state[LENGTH]) % slots
    state[RING + place], state[RING + slots + place] = state[COUNT], tracked
    state[LENGTH] += 1
    state[SPENT] += tracked
    state[HAS], state[LAST_X], state[LAST_Y] = 1, x, y
    if whole[SPHERE]:
        unit_vector(x, y, real[STEP], vector)


@compiled
def lattice(x_deg: float, y_deg: float, whole: NDArray[np.int64], real: NDArray[np.float64]) -> tuple[np.int64, np.int64]:
    """The lattice point next to a place; the step is a power of two, so the division is exact."""
    return np.int64(np.rint(x_deg / real[STEP])), np.int64(np.rint(y_deg / real[STEP]))


@compiled
def run(
    x_deg: NDArray[np.float64],
    y_deg: NDArray[np.float64],
    valid: NDArray[np.bool_],
    done: int,
    states: NDArray[np.int64],
    vectors: NDArray[np.float64],
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
    known: NDArray[np.int64],
    trace: NDArray[np.int64],
    words: WordArray,
    position: int,
) -> tuple[int, int, int, int]:
    """Samples, stream after stream, from the done-th on; in place.

    Parameters
    ----------
    x_deg, y_deg, valid : arrays of shape (streams, n)
        Samples; overwritten by what is released.
    done : int
        Samples that earlier calls dealt with; a sample that stops a run for want of words or precision is begun again.
    states : array of int64, shape (streams, RING + 2 n_test)
    vectors : array of float64, shape (streams, 6)
        Direction of the last publication; used on the sphere.
    known : array of int64, shape (5,)
        What was decided already about the sample at hand; zeros at first.
    trace : array of int64, shape (streams * n,)
        Per sample: the units it was published with, or why it was not.

    Returns
    -------
    done, position, why, where
        `where` is the position of the try that is not settled.
    """
    streams, n = x_deg.shape
    step, skip, slots = real[STEP], whole[SKIP], whole[SLOTS]
    sphere = whole[SPHERE] == 1
    here = np.empty(6)
    last_y = np.nextafter(180.0, 0.0)
    while done < streams * n:
        s = done // n
        state, vector = states[s], vectors[s]
        shown_x, shown_y = state[LAST_X] * step, state[LAST_Y] * step
        if sphere:
            shown_y = min(shown_y, last_y)
        for i in range(done - s * n, n):
            sample = state[COUNT]
            if not valid[s, i]:
                trace[done] = LOST
            elif sample - state[LAST_TEST] < skip:
                trace[done] = SKIPPED
            else:
                ix, iy = lattice(x_deg[s, i], y_deg[s, i], whole, real)
                near, after = False, position
                if sphere:
                    unit_vector(ix, iy, step, here)
                if known[TEST_KNOWN] == 1:
                    near = known[NEAR] == 1
                elif state[HAS] == 1 and whole[TESTS] == 1:
                    if sphere:
                        distance, error = arc(here, vector), 2.0**-46
                    else:
                        dx, dy = float(ix - state[LAST_X]), float(iy - state[LAST_Y])
                        distance, error = math.sqrt(dx * dx + dy * dy), 0.0
                    near, after = test_passes(distance, error, real[THRESHOLD], real[TEST_SCALE], words, position)
                    if after < 0:
                        return done, position, UNSETTLED_TEST if after <= UNSETTLED else NEEDS_WORDS, UNSETTLED - after
                if near:
                    trace[done] = REPEATED
                else:
                    _expire(state, sample, whole[WINDOW], slots)
                    units, tracked = share(whole, state[SPENT])
                    if units < whole[LEAST_UNITS]:
                        trace[done] = STARVED
                    else:
                        if known[POINT_KNOWN] == 1:
                            x, y = known[POINT_X], known[POINT_Y]
                        elif sphere:
                            x, y, after = sphere_noise(here, scale_of(units, real), step, words, after)
                        else:
                            x, y, after = screen_noise(scale_of(units, real), words, after)
                            x, y = x + ix, y + iy
                        if after < 0:
                            return done, position, UNSETTLED_POINT if after <= UNSETTLED else NEEDS_WORDS, UNSETTLED - after
                        publish(state, vector, x, y, units, tracked, whole, real)
                        trace[done] = units
                        shown_x, shown_y = state[LAST_X] * step, state[LAST_Y] * step
                        if sphere:
                            shown_y = min(shown_y, last_y)
                state[LAST_TEST] = sample
                known[:] = 0
                position = after
            if valid[s, i] and state[HAS] == 1:
                x_deg[s, i], y_deg[s, i] = shown_x, shown_y
            else:
                x_deg[s, i], y_deg[s, i], valid[s, i] = np.nan, np.nan, False
            state[COUNT] = sample + 1
            done += 1
    return done, position, FINISHED, 0
