"""The step of Kaleido on lattice points: skip, test, publish; compiled, for one stream or many.

Everything that a step does besides its noise is whole numbers: places are points of a public
lattice, budgets are counted in units of E / U, and tests and publications are counted by sample. A
stream keeps the publications of the last w - 1 samples, never more than n_test, in a ring.

The test bit is `d <= l + eta`, eta Laplace with scale b; distances are in steps on a screen, arcs
in radians on a sphere. Doubles give eta and a bound on its error; where the answer is closer to its
boundary than that, :mod:`gazeveil.privacy.noise.bigint` decides with whole numbers. Points are
drawn by :mod:`gazeveil.privacy.noise.lattice` and :mod:`gazeveil.privacy.noise.spherical`. Proof:
proofs/kaleido.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.arithmetic import cos_sin, log
from gazeveil.privacy.noise.lattice import around, lattice_point, planar_unit, shown_y_deg
from gazeveil.privacy.noise.spherical import (
    LARGE_WORD,
    LEAST_WORD,
    REJECTED,
    SETTLED,
    UNSETTLED,
    WIDE_RAD,
    arc_kept,
    axes,
    sphere_point,
)
from gazeveil.privacy.randomness.rng import WordArray
from gazeveil.privacy.stream.losses.expected_gaze import Memory, expected_gaze, note

_PER_RADIAN = 0.5 / math.pi


@fused
def laplace_unit(word: np.uint64) -> tuple[float, float]:
    """Laplace noise of scale 1 from one word, and a bound on its error: the last bit is the sign,
    the others begin a uniform.

    Words from 2**44 on tell the uniform to within 2**-42 of itself, large ones to within 2**-50;
    below, the bound is infinite.
    """
    e = -log((np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63)
    cut = 2.0**-50 if word > LARGE_WORD else (2.0**-42 if word >= LEAST_WORD else np.inf)
    return (e if word & np.uint64(1) else -e), cut + (1.0 + e) * 2.0**-48


@fused
def near_or_far(
    square: float, threshold: float, scale: float, unit: float, error: float
) -> tuple[bool, int]:
    """Whether sqrt(square) <= threshold + scale * unit, for a whole `square` within its rounding,
    and whether that is settled.

    No root is taken: for tau = threshold + scale * unit above zero the question is whether square
    <= tau**2.
    """
    eta = scale * unit
    tau = threshold + eta
    # doubled because the bound is itself rounded
    error = 2.0 * (scale * error + (abs(threshold) + abs(eta)) * 2.0**-51)
    if not abs(tau) > error:
        return False, UNSETTLED
    margin = tau * tau - square
    if tau > 0.0 and not abs(margin) > 3.0 * tau * error + square * 2.0**-50:
        return False, UNSETTLED
    return tau > 0.0 and margin > 0.0, SETTLED


@fused
def test_passes(
    distance: float, threshold: float, scale: float, word: np.uint64
) -> tuple[bool, int]:
    """Whether distance <= threshold + Laplace(scale), for a whole distance, and whether that is
    settled.
    """
    unit, error = laplace_unit(word)
    return near_or_far(distance * distance, threshold, scale, unit, error)


@fused
def arc_limit(threshold: float, scale: float, unit: float, error: float) -> tuple[float, float]:
    """The squared chord of an arc of threshold + scale * unit radians, and a bound on the error of
    comparing one with it.

    An arc is at most tau, from 0 to pi, if the square of its chord is at most 4 sin(tau / 2)**2.
    Where no arc is that short the limit is below every square, where every arc is, above; where
    doubles cannot tell which case it is, the bound is infinite.
    """
    eta = scale * unit
    tau = threshold + eta
    error = 2.0 * (scale * error + (abs(threshold) + abs(eta)) * 2.0**-51)
    _, half = cos_sin(min(max(tau, 0.0), math.pi) * (0.5 * _PER_RADIAN))
    limit = 4.0 * half * half if tau > 0.0 else -1.0
    limit = limit if tau < math.pi else 8.0
    # the derivative of 4 sin(tau / 2)**2 is at most 2; directions are within 2**-47, chords at most
    # 2
    sure = error <= 1.0 and abs(tau) > error and abs(tau - math.pi) > error
    return limit, (4.0 * error + 2.0**-42 if sure else np.inf)


@fused
def arc_test_passes(
    square: float, threshold: float, scale: float, word: np.uint64
) -> tuple[bool, int]:
    """Whether an arc is at most threshold + Laplace(scale), in radians, and whether that is
    settled; `square` is that of its chord.
    """
    unit, error = laplace_unit(word)
    limit, bound = arc_limit(threshold, scale, unit, error)
    return square < limit, (SETTLED if abs(limit - square) > bound else UNSETTLED)


#: Rules that share the budget of a window among its publications.
HALVING, UNIFORM = range(2)

# State of a stream, by place; the ring follows (sample numbers, then units).
COUNT, LAST_TEST, HAS, LAST_X, LAST_Y, HEAD, LENGTH, SPENT, RING = range(9)

#: What the trace says of a sample that was not published; a published one has its units.
SKIPPED, REPEATED, LOST, STARVED = 0, -1, -2, -3

#: Numbers made ahead on a screen: of the word of a test noise of scale 1 and a bound on its error,
#: of the words of a point those of :func:`planar_unit`.
TEST_NUMBERS, POINT_NUMBERS = 2, 4

#: Why a run stopped.
FINISHED, NEEDS_TESTS, NEEDS_POINTS, UNSETTLED_TEST, UNSETTLED_POINT = range(5)

# How far a run is, by place: samples done, the next words of tests and of points; and what was
# decided already about the sample at hand: is the test known, its answer, is the point known, the
# point.
DONE, TEST, POINT, TEST_KNOWN, NEAR, POINT_KNOWN, POINT_X, POINT_Y, PROGRESS = range(9)


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
    x_low, x_high, y_low, y_high : int
        Where a released point can lie.
    turn : int
        Steps of 360 degrees.
    step_deg : float
        Step of the lattice, in degrees.
    threshold, test_scale : float
        Of the test, and the scale of its noise.
    scale_times_units : float
        Scale of the noise of a publication with one unit.
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
    x_low: int
    x_high: int
    y_low: int
    y_high: int
    turn: int
    step_deg: float
    threshold: float
    test_scale: float
    scale_times_units: float
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
    trace: Ints,
    states: Ints,
    settings: KaleidoSettings,
    progress: Ints,
    tests: WordArray,
    ahead_tests: Floats,
    points: WordArray,
    ahead_points: Floats,
    memory: Memory,
    vague: Floats,
) -> int:
    """Samples, stream after stream, as far as the words go; in place.

    Parameters
    ----------
    x_deg, y_deg, valid : contiguous arrays of shape (streams, n)
        Samples; overwritten by what is released.
    trace : array of int64, shape (streams * n,) or (0,)
        At each slot: the units it was published with, or why it was not; not kept if it is empty.
    states : array of int64, shape (streams, RING + 2 n_test)
    settings : KaleidoSettings
        Public numbers.
    progress : array of int64, shape (PROGRESS,)
        Zeros at first. A sample that stops a run for want of words or precision is begun again.
    tests, points : arrays of uint64
        Words of tests and of points.
    ahead_tests, ahead_points : arrays of float64
        Room for numbers made of some of the words.
    memory : Memory
        Where losses are filled, of slots: what is lost at one is what the public model expects.
    vague : array of float64, shape (2,) or (0,)
        Where losses are filled, in degrees squared along an axis: variance of a publication with
        one unit, and of a repetition.

    Returns
    -------
    int
        Why it stopped.
    """
    n = x_deg.shape[1]
    total = x_deg.shape[0] * n
    xs, ys, seen = x_deg.reshape(total), y_deg.reshape(total), valid.reshape(total)
    test, position = progress[TEST], progress[POINT]
    step, threshold, test_scale = settings.step_deg, settings.threshold, settings.test_scale
    skip, slots, sphere = settings.skip, settings.slots, settings.sphere
    x_low, x_high, y_low, y_high = settings.x_low, settings.x_high, settings.y_low, settings.y_high
    each = settings.units // slots
    per_step = 1.0 / step  # the step is a power of two
    per, traced, fills = words_of_record(settings.narrow), len(trace) == total, len(vague) > 0
    near_x, near_y, near_z = 0.0, 0.0, 0.0
    # On a screen noise of scale 1 is made ahead of the decisions it waits for: that is twice as
    # fast as making it in between. From these on:
    first_test, first_point, made_tests, made_points = test, position // per, 0, 0
    i, why = progress[DONE], FINISHED
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
            # Without a branch, so that several samples are written at a time.
            for k in range(i, until):
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
            if settings.tests and test == len(tests):
                why = NEEDS_TESTS
                break
            if fills and np.isnan(xs[i]):
                xs[i], ys[i] = expected_gaze(memory, s)
            ix, iy = np.int64(np.rint(xs[i] * per_step)), np.int64(np.rint(ys[i] * per_step))
            near, settled = False, SETTLED
            if progress[TEST_KNOWN] == 1:
                near = progress[NEAR] == 1
            elif has and settings.tests:
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
                while length > 0 and states[s, RING + head] <= i + offset - settings.window:
                    spent -= states[s, RING + slots + head]
                    head = head + 1 if head + 1 < slots else 0
                    length -= 1
                units, tracked = share(settings.rule, settings.units, each, spent)
                outcome = STARVED
                if units >= settings.least_units:
                    scale = scale_of(units, settings.scale_times_units)
                    shrink, lead = tangent_of(
                        units, settings.fitted, settings.shrink, settings.lead
                    )
                    x = progress[POINT_X]
                    y = progress[POINT_Y]
                    used = records_of_try(scale, per, sphere) * per
                    if progress[POINT_KNOWN] == 0:
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
                        progress[TEST_KNOWN], progress[NEAR] = 1, 0
                        break
                    position += used
                    # Brought into the space: a function of the noisy point alone.
                    if sphere:
                        x = around(x, settings.turn)
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
            progress[TEST_KNOWN], progress[NEAR], progress[POINT_KNOWN] = 0, 0, 0
            xs[i], ys[i], seen[i] = shown_x, shown_y, has
            if fills:
                variance = vague[1] if outcome == REPEATED else np.inf
                if outcome > 0:
                    variance = vague[0] / (float(outcome) * float(outcome))
                note(memory, s, shown_x, shown_y, variance)
            test += 1 if settings.tests else 0
            due = i + skip
            i += 1
        states[s, COUNT] = i + offset
        states[s, LAST_TEST] = due - skip + offset
        states[s, HAS] = has
        states[s, HEAD], states[s, LENGTH], states[s, SPENT] = head, length, spent
        states[s, LAST_X], states[s, LAST_Y] = last_x, last_y
    progress[DONE], progress[TEST], progress[POINT] = i, test, position
    return why
