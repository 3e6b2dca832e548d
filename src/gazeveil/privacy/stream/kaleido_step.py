"""The step of Kaleido on lattice points: skip, test, publish; compiled, for one stream or many.

Everything that a step does besides its noise is whole numbers: places are points of a public lattice, budgets are counted in units of
E / U, and tests and publications are counted by sample. A stream keeps the publications of the last w - 1 samples, never more than n_test,
in a ring. The noise is that of :mod:`gazeveil.privacy.stream.kaleido_noise`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.rng import WordArray
from gazeveil.privacy.stream.kaleido_noise import (
    REJECTED,
    SETTLED,
    UNSETTLED,
    WIDE_ERROR,
    WIDE_RAD,
    arc_limit,
    axes,
    bearing,
    exponential,
    laplace_unit,
    lattice_point,
    moved,
    narrow_kept,
    narrow_unit,
    near_or_far,
    planar_unit,
    rounded_direction,
    uniform_arc,
    wide_kept,
)

# Whole-number settings, by place.
RULE, SKIP, WINDOW, SLOTS, UNITS, LEAST_UNITS, TESTS, SPHERE, AFTER, X_LOW, X_HIGH, Y_LOW, Y_HIGH, TURN, SNAP, NARROW = range(16)

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

#: Numbers made ahead of a record of words. On a screen: noise of a test and a bound on its error, then those of :func:`planar_unit`. On the sphere:
#: those of :func:`arc_limit`; radius and bound of :func:`narrow_unit`, or arc length, cosine, sine and exponential of a uniform point; the bearing.
NUMBERS = 8

# Records that go through a function together.
_TOGETHER = 64

# The south pole is shown just inside [0, 180).
_LAST_Y = math.nextafter(180.0, 0.0)

#: Why a run stopped.
FINISHED, NEEDS_WORDS, UNSETTLED_TEST, UNSETTLED_POINT = range(4)

# What was decided with whole numbers about the sample at hand, by place: is the test known, its answer, is the point known, the point.
TEST_KNOWN, NEAR, POINT_KNOWN, POINT_X, POINT_Y = range(5)


@compiled
def share(rule: int, units: int, each: int, spent: int) -> tuple[int, int]:
    """Units of the next publication, and the part of them that later ones must know of; `each` is units // slots."""
    if rule == HALVING:
        half = (units - spent) >> 1
        return half, half
    if rule == RESERVE:
        adaptive = ((units >> 1) - spent) >> 1
        return (each >> 1) + adaptive, adaptive
    return each, each


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
def scale_of(units: int, times_units: float) -> float:
    """Scale of the noise of a publication, in steps (in radians on the sphere); never below the exact one."""
    return times_units / units


@compiled
def loose_square(step: float) -> float:
    """How much the square of a chord may differ when one end is rounded to the lattice: half a step each way, and rounding of doubles."""
    rounding = 0.7072 * step * (math.pi / 180.0) + 2.0**-40
    return 4.0 * rounding + rounding * rounding


@compiled
def words_of_record(whole: NDArray[np.int64]) -> int:
    """Words of a record: one for the test, if there are tests, and those of a point."""
    return int(whole[TESTS] + 3 + whole[SPHERE])


@fused
def make(words: WordArray, position: int, count: int, ahead: NDArray[np.float64], whole: NDArray[np.int64], real: NDArray[np.float64]) -> None:
    """What can be known of `count` records of words before it is decided how they are used, from a position on, into the first rows of `ahead`."""
    per, tests = words_of_record(whole), whole[TESTS]
    if whole[SPHERE] == 0:
        for k in range(count):
            word = position + k * per
            if tests == 1:
                ahead[k, 0], ahead[k, 1] = laplace_unit(words[word])
            word += tests
            ahead[k, 2], ahead[k, 3], ahead[k, 4], ahead[k, 5] = planar_unit(words[word], words[word + 1], words[word + 2])
        return
    # A short loop for each of the longer functions: a processor then works on several records at a time.
    first, narrow = position + tests, whole[NARROW] == 1
    threshold, test_scale = real[THRESHOLD], real[TEST_SCALE]
    for begin in range(0, count, _TOGETHER):
        end = min(begin + _TOGETHER, count)
        if tests == 1:
            for k in range(begin, end):
                ahead[k, 0], ahead[k, 1] = laplace_unit(words[position + k * per])
            for k in range(begin, end):
                ahead[k, 0], ahead[k, 1] = arc_limit(threshold, test_scale, ahead[k, 0], ahead[k, 1])
        for k in range(begin, end):
            ahead[k, 6], ahead[k, 7] = bearing(words[first + k * per + 2])
        if narrow:
            for k in range(begin, end):
                ahead[k, 2], ahead[k, 3] = narrow_unit(words[first + k * per], words[first + k * per + 3])
        else:
            for k in range(begin, end):
                ahead[k, 5] = exponential(words[first + k * per + 1])
            for k in range(begin, end):
                ahead[k, 2], ahead[k, 3], ahead[k, 4] = uniform_arc(words[first + k * per], words[first + k * per + 1])


@compiled
def run(
    x_deg: NDArray[np.float64],
    y_deg: NDArray[np.float64],
    valid: NDArray[np.bool_],
    done: int,
    states: NDArray[np.int64],
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
    known: NDArray[np.int64],
    trace: NDArray[np.int64],
    words: WordArray,
    position: int,
    ahead: NDArray[np.float64],
    made: int,
) -> tuple[int, int, int, int]:
    """Samples, stream after stream, from the done-th on; in place.

    Parameters
    ----------
    x_deg, y_deg, valid : contiguous arrays of shape (streams, n)
        Samples; overwritten by what is released.
    done : int
        Samples that earlier calls dealt with; a sample that stops a run for want of words or precision is begun again.
    states : array of int64, shape (streams, RING + 2 n_test)
    known : array of int64, shape (5,)
        What was decided already about the sample at hand; zeros at first.
    trace : array of int64, shape (streams * n,) or (0,)
        Per sample: the units it was published with, or why it was not; not kept if it is empty.

    Returns
    -------
    done, position, why, where
        `where` is the position of the try that is not settled.
    """
    # Arrays are not handed to other compiled functions in this loop: counting their references costs more than the noise.
    n = x_deg.shape[1]
    total = x_deg.shape[0] * n
    xs, ys, seen = x_deg.reshape(total), y_deg.reshape(total), valid.reshape(total)
    step, threshold, test_scale, times_units = real[STEP], real[THRESHOLD], real[TEST_SCALE], real[SCALE_TIMES_UNITS]
    rule, skip, window, slots, units_of_window, least = whole[RULE], whole[SKIP], whole[WINDOW], whole[SLOTS], whole[UNITS], whole[LEAST_UNITS]
    sphere, tests, after_rule, turn, grid = whole[SPHERE] == 1, whole[TESTS] == 1, whole[AFTER], whole[TURN], whole[SNAP]
    x_low, x_high, y_low, y_high = whole[X_LOW], whole[X_HIGH], whole[Y_LOW], whole[Y_HIGH]
    each = units_of_window // slots
    middle_y = turn // 4 if sphere else np.int64(0)
    per_step, radians = 1.0 / step, step * (math.pi / 180.0)  # the step is a power of two
    narrow_made = whole[NARROW] == 1
    # Direction of the last publication on the sphere, as it was before it was rounded to the lattice (and to doubles): a squared chord from it
    # is within `slack` of the one that counts. Few tests are that close; those, and the first, take the direction of the lattice point.
    near_x, near_y, near_z, slack = 0.0, 0.0, 0.0, np.inf
    loose = loose_square(step) if after_rule in (NOTHING, CLAMP) else np.inf
    cos_lon, sin_lon, up, flat = 0.0, 0.0, 0.0, 0.0
    to_x, to_y, to_z = 0.0, 0.0, 0.0
    end, traced = len(words), len(trace) == total
    # A slot takes whole records of words, one for the test and the first try of a point and one for each further try. So noise of scale 1
    # can be made ahead of the decisions it waits for: that is twice as fast as making it in between.
    per, lead = words_of_record(whole), whole[TESTS]
    taken = position // per if made > 0 else 0
    i, why, where = done, FINISHED, 0
    while i < total and why == FINISHED:
        s = i // n
        stop = (s + 1) * n
        sample, due, has = states[s, COUNT], states[s, LAST_TEST] + skip, states[s, HAS] == 1
        head, length, spent = states[s, HEAD], states[s, LENGTH], states[s, SPENT]
        last_x, last_y = states[s, LAST_X], states[s, LAST_Y]
        shown_x, shown_y = (last_x * step, last_y * step) if has else (np.nan, np.nan)
        if sphere and shown_y > _LAST_Y:
            shown_y = _LAST_Y
        slack = np.inf
        while i < stop:
            # Between two slots what was shown last is shown again.
            until = min(stop, i + max(due - sample, np.int64(0)))
            sample += until - i
            for k in range(i, until):  # without a branch, so that several samples are written at a time
                xs[k] = shown_x if seen[k] else np.nan
                ys[k] = shown_y if seen[k] else np.nan
            if traced:
                for k in range(i, until):
                    trace[k] = SKIPPED if seen[k] else LOST
            if not has:
                for k in range(i, until):
                    seen[k] = False
            i = until
            if i == stop:
                break
            if not seen[i]:
                xs[i], ys[i] = np.nan, np.nan
                if traced:
                    trace[i] = LOST
                i += 1
                sample += 1
                continue
            at = position
            ix, iy = np.int64(np.rint(xs[i] * per_step)), np.int64(np.rint(ys[i] * per_step))
            if sphere:
                cos_lon, sin_lon, up, flat = axes(ix, iy, step)
            near, settled = False, SETTLED
            if taken == made and known[POINT_KNOWN] == 0:
                taken, made = 0, min(len(ahead), (end - at) // per, (total - i) // skip + 1)
                if made <= 0:
                    why, taken, made = NEEDS_WORDS, 0, 0
                    break
                make(words, at, made, ahead, whole, real)
            if known[TEST_KNOWN] == 1:
                near = known[NEAR] == 1
            elif has and tests:
                if sphere:
                    limit, bound = ahead[taken, 0], ahead[taken, 1]
                    dx, dy, dz = flat * sin_lon - near_x, up - near_y, flat * cos_lon - near_z
                    square = dx * dx + dy * dy + dz * dz
                    if not abs(limit - square) > bound + slack:
                        c, d, e, f = axes(last_x, last_y, step)
                        near_x, near_y, near_z, slack = f * d, e, f * c, 0.0
                        dx, dy, dz = flat * sin_lon - near_x, up - near_y, flat * cos_lon - near_z
                        square = dx * dx + dy * dy + dz * dz
                        if not abs(limit - square) > bound:
                            settled = UNSETTLED
                    near = square < limit
                else:
                    ex, ey = float(ix - last_x), float(iy - last_y)
                    near, settled = near_or_far(ex * ex + ey * ey, threshold, test_scale, ahead[taken, 0], ahead[taken, 1])
                if settled == UNSETTLED:
                    why, where = UNSETTLED_TEST, at
                    break
            tried = False
            outcome = REPEATED
            if not near:
                # Give back what was spent w or more samples ago.
                while length > 0 and states[s, RING + head] <= sample - window:
                    spent -= states[s, RING + slots + head]
                    head = head + 1 if head + 1 < slots else 0
                    length -= 1
                units, tracked = share(rule, units_of_window, each, spent)
                outcome = STARVED
                if units >= least:
                    scale = scale_of(units, times_units)
                    fresh = np.inf
                    if known[POINT_KNOWN] == 1:
                        x, y = known[POINT_X], known[POINT_Y]
                    elif sphere:
                        tried = True
                        x, y = np.int64(0), np.int64(0)
                        while True:
                            word = at + lead
                            if scale > WIDE_RAD:
                                error = WIDE_ERROR
                                if narrow_made:
                                    arc, cos_rho, sin_rho = uniform_arc(words[word], words[word + 1])
                                    settled = wide_kept(scale, arc, exponential(words[word + 1]))
                                else:
                                    cos_rho, sin_rho = ahead[taken, 3], ahead[taken, 4]
                                    settled = wide_kept(scale, ahead[taken, 2], ahead[taken, 5])
                            elif narrow_made:
                                cos_rho, sin_rho, error, settled = narrow_kept(scale, ahead[taken, 2], ahead[taken, 3], words[word + 1])
                            else:
                                radius, error = narrow_unit(words[word], words[word + 3])
                                cos_rho, sin_rho, error, settled = narrow_kept(scale, radius, error, words[word + 1])
                            if settled != REJECTED:
                                break
                            at += per
                            taken += 1
                            if taken == made:
                                taken, made = 0, min(len(ahead), (end - at) // per, (total - i) // skip + 1)
                                if made <= 0:
                                    break
                                make(words, at, made, ahead, whole, real)
                        if settled == REJECTED:
                            # what was tried is settled: go on from here with further words
                            why, position, made = NEEDS_WORDS, at, 0
                            known[TEST_KNOWN], known[NEAR] = 1, 0
                            break
                        if settled == SETTLED:
                            to_x, to_y, to_z = moved(cos_lon, sin_lon, up, flat, cos_rho, sin_rho, ahead[taken, 6], ahead[taken, 7])
                            x, y, settled = rounded_direction(to_x, to_y, to_z, step, error)
                            fresh = loose
                    else:
                        tried = True
                        x, y, settled = lattice_point(scale, ahead[taken, 2], ahead[taken, 3], ahead[taken, 4], ahead[taken, 5])
                        x, y = x + ix, y + iy
                    if settled == UNSETTLED:
                        why, where = UNSETTLED_POINT, at + lead
                        break
                    # The point as it is released: a function of the noisy point and of public numbers alone.
                    if after_rule == POSTERIOR_MEAN:
                        mean_x, mean_y = _posterior_mean(float(x), float(y - middle_y), scale / radians if sphere else scale, real)
                        x = x if sphere else np.int64(np.rint(mean_x))
                        y = np.int64(np.rint(mean_y)) + middle_y
                    if sphere and x >= turn:
                        x -= turn
                    x, y = min(max(x, x_low), x_high), min(max(y, y_low), y_high)
                    if after_rule == SNAPPED:
                        x, y = (x + grid // 2) // grid * grid, (y + grid // 2) // grid * grid
                        x, y = min(max(x, x_low), x_high), min(max(y, y_low), y_high)
                    place = head + length
                    place -= slots if place >= slots else 0
                    states[s, RING + place], states[s, RING + slots + place] = sample, tracked
                    length += 1
                    spent += tracked
                    has, last_x, last_y = True, x, y
                    near_x, near_y, near_z, slack = to_x, to_y, to_z, fresh
                    shown_x, shown_y = x * step, y * step
                    if sphere and shown_y > _LAST_Y:
                        shown_y = _LAST_Y
                    outcome = units
            if traced:
                trace[i] = outcome
            due = sample + skip
            if tried or known[TEST_KNOWN] == 0:  # the record at hand was used
                at += per
                taken += 1
            known[TEST_KNOWN], known[NEAR], known[POINT_KNOWN] = 0, 0, 0
            position = at
            xs[i], ys[i], seen[i] = shown_x, shown_y, has
            i += 1
            sample += 1
        states[s, COUNT], states[s, LAST_TEST], states[s, HAS] = sample, due - skip, has
        states[s, HEAD], states[s, LENGTH], states[s, SPENT] = head, length, spent
        states[s, LAST_X], states[s, LAST_Y] = last_x, last_y
    return i, position, why, where
