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
from gazeveil.privacy.stream.kaleido_noise import REJECTED, SETTLED, UNSETTLED, WIDE_RAD, arc_test_passes, axes, screen_noise, sphere_noise, test_passes

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

# The south pole is shown just inside [0, 180).
_LAST_Y = math.nextafter(180.0, 0.0)

#: Why a run stopped.
FINISHED, NEEDS_WORDS, UNSETTLED_TEST, UNSETTLED_POINT = range(4)

# What was decided with whole numbers about the sample at hand, by place: is the test known, its answer, is the point known, the point.
TEST_KNOWN, NEAR, POINT_KNOWN, POINT_X, POINT_Y = range(5)


@compiled
def share(rule: int, units: int, slots: int, spent: int) -> tuple[int, int]:
    """Units of the next publication, and the part of them that later ones must know of."""
    if rule == HALVING:
        half = (units - spent) >> 1
        return half, half
    if rule == RESERVE:
        adaptive = ((units >> 1) - spent) >> 1
        return units // (2 * slots) + adaptive, adaptive
    return units // slots, units // slots


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
def _within(x: np.int64, low: np.int64, high: np.int64) -> np.int64:
    return low if x < low else (high if x > high else x)


@compiled
def scale_of(units: int, times_units: float) -> float:
    """Scale of the noise of a publication, in steps (in radians on the sphere); never below the exact one."""
    return times_units / units


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
    vectors : array of float64, shape (streams, 3)
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
    # Arrays are not handed to other compiled functions in this loop: counting their references costs more than the noise.
    streams, n = x_deg.shape
    step, threshold, test_scale, times_units = real[STEP], real[THRESHOLD], real[TEST_SCALE], real[SCALE_TIMES_UNITS]
    rule, skip, window, slots, units_of_window, least = whole[RULE], whole[SKIP], whole[WINDOW], whole[SLOTS], whole[UNITS], whole[LEAST_UNITS]
    sphere, tests, after_rule, turn, grid = whole[SPHERE] == 1, whole[TESTS] == 1, whole[AFTER], whole[TURN], whole[SNAP]
    x_low, x_high, y_low, y_high = whole[X_LOW], whole[X_HIGH], whole[Y_LOW], whole[Y_HIGH]
    middle_y = turn // 4 if sphere else np.int64(0)
    per_step, radians = 1.0 / step, step * (math.pi / 180.0)  # the step is a power of two
    cos_lon, sin_lon, up, flat = 0.0, 0.0, 0.0, 0.0
    end = len(words)
    i = done
    while i < streams * n:
        s = i // n
        stop = (s + 1) * n
        j = i - s * n
        sample, due, has = states[s, COUNT], states[s, LAST_TEST] + skip, states[s, HAS] == 1
        last_x, last_y = states[s, LAST_X], states[s, LAST_Y]
        shown_x, shown_y = (last_x * step, last_y * step) if has else (np.nan, np.nan)
        if sphere and shown_y > _LAST_Y:
            shown_y = _LAST_Y
        while i < stop:
            if not valid[s, j]:
                trace[i] = LOST
                x_deg[s, j], y_deg[s, j] = np.nan, np.nan
            elif sample < due:
                trace[i] = SKIPPED
                x_deg[s, j], y_deg[s, j] = shown_x, shown_y
                valid[s, j] = has
            else:
                at = position
                ix, iy = np.int64(np.rint(x_deg[s, j] * per_step)), np.int64(np.rint(y_deg[s, j] * per_step))
                if sphere:
                    cos_lon, sin_lon, up, flat = axes(ix, iy, step)
                near, settled = False, SETTLED
                if known[TEST_KNOWN] == 1:
                    near = known[NEAR] == 1
                elif has and tests:
                    if at >= end:
                        states[s, COUNT] = sample
                        return i, position, NEEDS_WORDS, 0
                    if sphere:
                        dx, dy = flat * sin_lon - vectors[s, 0], up - vectors[s, 1]
                        dz = flat * cos_lon - vectors[s, 2]
                        near, settled = arc_test_passes(dx * dx + dy * dy + dz * dz, threshold, test_scale, words[at])
                    else:
                        dx, dy = float(ix - last_x), float(iy - last_y)
                        near, settled = test_passes(math.sqrt(dx * dx + dy * dy), threshold, test_scale, words[at])
                    if settled == UNSETTLED:
                        states[s, COUNT] = sample
                        return i, position, UNSETTLED_TEST, at
                    at += 1
                trace[i] = REPEATED
                if not near:
                    # Give back what was spent w or more samples ago.
                    head, length = states[s, HEAD], states[s, LENGTH]
                    while length > 0 and states[s, RING + head] <= sample - window:
                        states[s, SPENT] -= states[s, RING + slots + head]
                        head = head + 1 if head + 1 < slots else 0
                        length -= 1
                    states[s, HEAD], states[s, LENGTH] = head, length
                    units, tracked = share(rule, units_of_window, slots, states[s, SPENT])
                    if units < least:
                        trace[i] = STARVED
                    else:
                        scale = scale_of(units, times_units)
                        if known[POINT_KNOWN] == 1:
                            x, y = known[POINT_X], known[POINT_Y]
                        elif sphere:
                            settled, x, y = REJECTED, np.int64(0), np.int64(0)
                            need = 3 if scale > WIDE_RAD else 4
                            while settled == REJECTED:
                                if at + need > end:
                                    states[s, COUNT] = sample
                                    return i, position, NEEDS_WORDS, 0
                                x, y, settled = sphere_noise(
                                    cos_lon, sin_lon, up, flat, scale, step, words[at], words[at + 1], words[at + 2], words[at + need - 1]
                                )
                                at += need
                            at -= need if settled == UNSETTLED else 0
                        else:
                            if at + 3 > end:
                                states[s, COUNT] = sample
                                return i, position, NEEDS_WORDS, 0
                            x, y, settled = screen_noise(scale, words[at], words[at + 1], words[at + 2])
                            x, y = x + ix, y + iy
                            at += 3 if settled == SETTLED else 0
                        if settled == UNSETTLED:
                            states[s, COUNT] = sample
                            return i, position, UNSETTLED_POINT, at
                        # The point as it is released: a function of the noisy point and of public numbers alone.
                        if after_rule == POSTERIOR_MEAN:
                            mean_x, mean_y = _posterior_mean(float(x), float(y - middle_y), scale / radians if sphere else scale, real)
                            x = x if sphere else np.int64(np.rint(mean_x))
                            y = np.int64(np.rint(mean_y)) + middle_y
                        if sphere and x >= turn:
                            x -= turn
                        x, y = _within(x, x_low, x_high), _within(y, y_low, y_high)
                        if after_rule == SNAPPED:
                            x, y = (x + grid // 2) // grid * grid, (y + grid // 2) // grid * grid
                            x, y = _within(x, x_low, x_high), _within(y, y_low, y_high)
                        place = head + length
                        place -= slots if place >= slots else 0
                        states[s, RING + place], states[s, RING + slots + place] = sample, tracked
                        states[s, LENGTH] = length + 1
                        states[s, SPENT] += tracked
                        states[s, HAS], states[s, LAST_X], states[s, LAST_Y] = 1, x, y
                        has, last_x, last_y = True, x, y
                        shown_x, shown_y = x * step, y * step
                        if sphere:
                            cos_lon, sin_lon, up, flat = axes(x, y, step)
                            vectors[s, 0], vectors[s, 1], vectors[s, 2] = flat * sin_lon, up, flat * cos_lon
                            if shown_y > _LAST_Y:
                                shown_y = _LAST_Y
                        trace[i] = units
                states[s, LAST_TEST], due = sample, sample + skip
                known[TEST_KNOWN], known[NEAR], known[POINT_KNOWN] = 0, 0, 0
                position = at
                x_deg[s, j], y_deg[s, j] = shown_x, shown_y
                valid[s, j] = has
            i += 1
            j += 1
            sample += 1
        states[s, COUNT] = sample
    return i, position, FINISHED, 0
