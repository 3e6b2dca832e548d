"""The step of Kaleido on lattice points: skip, test, publish; compiled, for one stream or many.

Everything that a step does besides its noise is whole numbers: places are points of a public
lattice, budgets are counted in units of E / U, and tests and publications are counted by sample. A
stream keeps the publications of the last w - 1 samples, never more than n_test, in a ring. The
noise is that of :mod:`gazeveil.privacy.noise.lattice`, the test that of
:mod:`gazeveil.privacy.stream.kaleido.noise`.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.lattice import around, lattice_point, planar_unit, shown_y_deg
from gazeveil.privacy.noise.spherical import (
    REJECTED,
    SETTLED,
    UNSETTLED,
    WIDE_RAD,
    arc_kept,
    axes,
    sphere_point,
)
from gazeveil.privacy.randomness.rng import WordArray
from gazeveil.privacy.stream.kaleido.noise import arc_test_passes, laplace_unit, near_or_far

# Whole-number settings, by place; FITTED are the most units with which noise is proposed by the
# plan's own tangent.
(
    RULE,
    SKIP,
    WINDOW,
    SLOTS,
    UNITS,
    LEAST_UNITS,
    TESTS,
    SPHERE,
    AFTER,
    X_LOW,
    X_HIGH,
    Y_LOW,
    Y_HIGH,
    TURN,
    SNAP,
    NARROW,
    FITTED,
    WHOLE,
) = range(18)

# Settings in floating point, by place; the quadrature of the posterior mean follows (nodes, then
# log weights).
STEP, THRESHOLD, TEST_SCALE, SCALE_TIMES_UNITS, PRIOR_X, PRIOR_Y, SHRINK, LEAD, NODES = range(9)
QUADRATURE = 16

#: Rules that share the budget of a window among its publications.
HALVING, RESERVE, UNIFORM = range(3)

#: What is done to a published point, free of charge.
NOTHING, CLAMP, SNAPPED, POSTERIOR_MEAN = range(4)

# State of a stream, by place; the ring follows (sample numbers, then units).
COUNT, LAST_TEST, HAS, LAST_X, LAST_Y, HEAD, LENGTH, SPENT, RING = range(9)

#: What the trace says of a sample that was not published; a published one has its units.
SKIPPED, REPEATED, LOST, STARVED = 0, -1, -2, -3

#: Numbers made ahead on a screen: of the word of a test noise of scale 1 and a bound on its error,
#: of the words of a point those of :func:`planar_unit`.
TEST_NUMBERS, POINT_NUMBERS = 2, 4

#: Why a run stopped.
FINISHED, NEEDS_TESTS, NEEDS_POINTS, UNSETTLED_TEST, UNSETTLED_POINT = range(5)

# What was decided already about the sample at hand, by place: is the test known, its answer, is the
# point known, the point.
TEST_KNOWN, NEAR, POINT_KNOWN, POINT_X, POINT_Y, KNOWN = range(6)


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
def _mean_on_axis(z: float, prior: float, variance: float) -> float:
    return z * (prior * prior / (prior * prior + variance)) if prior > 0.0 else z


@compiled
def _posterior_mean(x: float, y: float, scale: float, real: Floats) -> tuple[float, float]:
    """Mean of the place given the noisy one, both from the prior's centre: planar Laplace is normal
    with variance 2 b**2 Gamma(3/2).
    """
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
def words_of_record(whole: Ints) -> int:
    """Words of a record for a try of a point: four if most scales are narrow."""
    return int(3 + whole[NARROW])


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


@fused
def make_tests(words: WordArray, test: int, count: int, ahead: Floats) -> None:
    """What can be known of tests on a screen, from one on, before it is decided
    how they are used.
    """
    for k in range(count):
        ahead[k, 0], ahead[k, 1] = laplace_unit(words[test + k])


@fused
def make_points(words: WordArray, position: int, count: int, ahead: Floats) -> None:
    """What can be known of points on a screen, from a position on, before it is decided how they
    are used.
    """
    for k in range(count):
        word = position + 3 * k
        ahead[k, 0], ahead[k, 1], ahead[k, 2], ahead[k, 3] = planar_unit(
            words[word], words[word + 1], words[word + 2]
        )


@compiled
def repeat(
    x_deg: Floats, y_deg: Floats, valid: Bools, states: Ints, skip: int, step: float, sphere: bool
) -> bool:
    """What :func:`run` does with one sample of one stream between two slots, or with a lost one;
    False, and nothing is done, at a slot.
    """
    good = valid[0, 0]
    if good and states[0, COUNT] >= states[0, LAST_TEST] + skip:
        return False
    states[0, COUNT] += 1
    if good and states[0, HAS] == 1:
        x_deg[0, 0], y_deg[0, 0] = (
            states[0, LAST_X] * step,
            shown_y_deg(states[0, LAST_Y], step, sphere),
        )
    else:
        x_deg[0, 0], y_deg[0, 0], valid[0, 0] = np.nan, np.nan, False
    return True


# Long: one loop over samples; arrays that are handed to further functions in it cost more, by the
# counting of their references, than the noise.
@compiled
def run(
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    done: int,
    states: Ints,
    whole: Ints,
    real: Floats,
    known: Ints,
    trace: Ints,
    tests: WordArray,
    test: int,
    ahead_tests: Floats,
    points: WordArray,
    position: int,
    ahead_points: Floats,
) -> tuple[int, int, int, int]:
    """Samples, stream after stream, from the done-th on; in place.

    Parameters
    ----------
    x_deg, y_deg, valid : contiguous arrays of shape (streams, n)
        Samples; overwritten by what is released.
    done : int
        Samples that earlier calls dealt with; a sample that stops a run for want of words or
        precision is begun again.
    states : array of int64, shape (streams, RING + 2 n_test)
    known : array of int64, shape (KNOWN,)
        What was decided already about the sample at hand; zeros at first.
    trace : array of int64, shape (streams * n,) or (0,)
        At each slot: the units it was published with, or why it was not; not kept if it is empty.
    tests, test, ahead_tests
        Words of tests, the next one to use, and room for numbers made of some of them.
    points, position, ahead_points
        Words of points, the place among them to go on from, and room for numbers of some records.

    Returns
    -------
    done, test, position, why
    """
    n = x_deg.shape[1]
    total = x_deg.shape[0] * n
    xs, ys, seen = x_deg.reshape(total), y_deg.reshape(total), valid.reshape(total)
    step, threshold, test_scale, times_units = (
        real[STEP],
        real[THRESHOLD],
        real[TEST_SCALE],
        real[SCALE_TIMES_UNITS],
    )
    rule, skip, window, slots, units_of_window, least = (
        whole[RULE],
        whole[SKIP],
        whole[WINDOW],
        whole[SLOTS],
        whole[UNITS],
        whole[LEAST_UNITS],
    )
    sphere, testing, after_rule, turn, grid = (
        whole[SPHERE] == 1,
        whole[TESTS] == 1,
        whole[AFTER],
        whole[TURN],
        whole[SNAP],
    )
    fitted = whole[FITTED]
    x_low, x_high, y_low, y_high = whole[X_LOW], whole[X_HIGH], whole[Y_LOW], whole[Y_HIGH]
    each = units_of_window // slots
    middle_y = turn // 4 if sphere else np.int64(0)
    per_step, radians = 1.0 / step, step * (math.pi / 180.0)  # the step is a power of two
    per, traced = words_of_record(whole), len(trace) == total
    near_x, near_y, near_z = 0.0, 0.0, 0.0
    # On a screen noise of scale 1 is made ahead of the decisions it waits for: that is twice as
    # fast as making it in between. From these on:
    first_test, first_point, made_tests, made_points = test, position // per, 0, 0
    i, why = done, FINISHED
    while i < total and why == FINISHED:
        s = i // n
        stop = (s + 1) * n
        offset = states[s, COUNT] - i  # number of a sample in its stream, less its place here
        due, has = states[s, LAST_TEST] + skip - offset, states[s, HAS] == 1
        head, length, spent = states[s, HEAD], states[s, LENGTH], states[s, SPENT]
        last_x, last_y = states[s, LAST_X], states[s, LAST_Y]
        shown_x, shown_y = (
            (last_x * step, shown_y_deg(last_y, step, sphere)) if has else (np.nan, np.nan)
        )
        directed = False  # whether the direction of the last publication is known
        while i < stop:
            # Between two slots what was shown last is shown again.
            until = min(stop, max(due, i))
            for k in range(
                i, until
            ):  # without a branch, so that several samples are written at a time
                xs[k] = shown_x if seen[k] else np.nan
                ys[k] = shown_y if seen[k] else np.nan
            if not has:
                for k in range(i, until):
                    seen[k] = False
            i = until
            if i == stop:
                break
            if not seen[i]:
                xs[i], ys[i] = np.nan, np.nan
                i += 1
                continue
            if testing and test == len(tests):
                why = NEEDS_TESTS
                break
            ix, iy = np.int64(np.rint(xs[i] * per_step)), np.int64(np.rint(ys[i] * per_step))
            near, settled = False, SETTLED
            if known[TEST_KNOWN] == 1:
                near = known[NEAR] == 1
            elif has and testing:
                if sphere:
                    if not directed:
                        a, b, c, d = axes(last_x, last_y, step)
                        near_x, near_y, near_z, directed = d * b, c, d * a, True
                    a, b, c, d = axes(ix, iy, step)
                    dx, dy, dz = d * b - near_x, c - near_y, d * a - near_z
                    near, settled = arc_test_passes(
                        dx * dx + dy * dy + dz * dz, threshold, test_scale, tests[test]
                    )
                else:
                    if test - first_test >= made_tests:
                        first_test, made_tests = test, min(len(ahead_tests), len(tests) - test)
                        make_tests(tests, test, made_tests, ahead_tests)
                    row, ex, ey = test - first_test, float(ix - last_x), float(iy - last_y)
                    near, settled = near_or_far(
                        ex * ex + ey * ey,
                        threshold,
                        test_scale,
                        ahead_tests[row, 0],
                        ahead_tests[row, 1],
                    )
                if settled == UNSETTLED:
                    why = UNSETTLED_TEST
                    break
            outcome = REPEATED
            if not near:
                # Give back what was spent w or more samples ago.
                while length > 0 and states[s, RING + head] <= i + offset - window:
                    spent -= states[s, RING + slots + head]
                    head = head + 1 if head + 1 < slots else 0
                    length -= 1
                units, tracked = share(rule, units_of_window, each, spent)
                outcome = STARVED
                if units >= least:
                    scale = scale_of(units, times_units)
                    shrink, lead = tangent_of(units, fitted, real[SHRINK], real[LEAD])
                    x, y, used = (
                        known[POINT_X],
                        known[POINT_Y],
                        records_of_try(scale, per, sphere) * per,
                    )
                    if known[POINT_KNOWN] == 0:
                        settled = REJECTED
                        while settled == REJECTED and position + used <= len(points):
                            if sphere:
                                fourth = fourth_word(position, scale)
                                settled, side = arc_kept(
                                    scale,
                                    points[position],
                                    points[position + 1],
                                    points[fourth],
                                    shrink,
                                    lead,
                                )
                                if settled == SETTLED:
                                    x, y, settled = sphere_point(
                                        iy,
                                        scale,
                                        step,
                                        points[position],
                                        points[position + 2],
                                        points[fourth],
                                        shrink,
                                        side,
                                    )
                                    x += ix
                            else:
                                if position // per - first_point >= made_points:
                                    first_point, made_points = (
                                        position // per,
                                        min(len(ahead_points), (len(points) - position) // per),
                                    )
                                    make_points(points, position, made_points, ahead_points)
                                row = position // per - first_point
                                x, y, settled = lattice_point(
                                    scale,
                                    ahead_points[row, 0],
                                    ahead_points[row, 1],
                                    ahead_points[row, 2],
                                    ahead_points[row, 3],
                                )
                                x, y = x + ix, y + iy
                            position += used if settled == REJECTED else 0
                    if settled != SETTLED:
                        # what was tried is settled: go on from here with further words, or with
                        # whole numbers
                        why = NEEDS_POINTS if settled == REJECTED else UNSETTLED_POINT
                        known[TEST_KNOWN], known[NEAR] = 1, 0
                        break
                    position += used
                    # The point as it is released: a function of the noisy point and of public
                    # numbers alone.
                    if after_rule == POSTERIOR_MEAN:
                        mean_x, mean_y = _posterior_mean(
                            float(x),
                            float(y - middle_y),
                            scale / radians if sphere else scale,
                            real,
                        )
                        x = x if sphere else np.int64(np.rint(mean_x))
                        y = np.int64(np.rint(mean_y)) + middle_y
                    if sphere:
                        x = around(x, turn)
                    x, y = min(max(x, x_low), x_high), min(max(y, y_low), y_high)
                    if after_rule == SNAPPED:
                        x, y = (x + grid // 2) // grid * grid, (y + grid // 2) // grid * grid
                        x, y = min(max(x, x_low), x_high), min(max(y, y_low), y_high)
                    place = head + length
                    place -= slots if place >= slots else 0
                    states[s, RING + place], states[s, RING + slots + place] = i + offset, tracked
                    length += 1
                    spent += tracked
                    has, last_x, last_y, directed = True, x, y, False
                    shown_x, shown_y = x * step, shown_y_deg(y, step, sphere)
                    outcome = units
            if traced:
                trace[i] = outcome
            known[TEST_KNOWN], known[NEAR], known[POINT_KNOWN] = 0, 0, 0
            xs[i], ys[i], seen[i] = shown_x, shown_y, has
            test += whole[TESTS]
            due = i + skip
            i += 1
        states[s, COUNT], states[s, LAST_TEST], states[s, HAS] = (
            i + offset,
            due - skip + offset,
            has,
        )
        states[s, HEAD], states[s, LENGTH], states[s, SPENT] = head, length, spent
        states[s, LAST_X], states[s, LAST_Y] = last_x, last_y
    return i, test, position, why
