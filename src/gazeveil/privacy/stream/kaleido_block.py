"""Kaleido on the sphere for long blocks: decided by first opinions, placed afterwards.

:func:`gazeveil.privacy.stream.kaleido_step.run` takes a slot at a time and knows each point before the next test. Here three loops follow each
other, and each may run in a thread of its own: :func:`decide` says at which slots there are publications and which try is kept, by the
opinions of :mod:`gazeveil.privacy.stream.kaleido_quick` and, where these are open, in double precision; :func:`place` finds the points of the
publications in double precision; :func:`show` writes them into the samples. What is not settled in double precision stops a loop and is
decided with whole numbers. Every decision is the one that exact numbers make, so what is released is the same as with `run`, bit for bit.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.rng import WordArray
from gazeveil.privacy.stream import kaleido_quick as quick
from gazeveil.privacy.stream.kaleido_math import cos_sin, turn_of
from gazeveil.privacy.stream.kaleido_noise import (
    REJECTED,
    SETTLED,
    UNSETTLED,
    WIDE_ERROR,
    WIDE_RAD,
    arc,
    arc_kept,
    arc_test_passes,
    axes,
    bearing,
    moved,
    narrow_arc,
    narrow_unit,
    rounded_turns,
    sphere_point,
    wide_arc,
)
from gazeveil.privacy.stream.kaleido_step import (
    COUNT,
    FINISHED,
    FITTED,
    HAS,
    HEAD,
    LAST_TEST,
    LAST_X,
    LAST_Y,
    LEAD,
    LEAST_UNITS,
    LENGTH,
    NARROW,
    NEAR,
    NEEDS_LAST,
    NEEDS_POINTS,
    NEEDS_TESTS,
    POINT_KNOWN,
    POINT_X,
    POINT_Y,
    REPEATED,
    RING,
    RULE,
    SCALE_TIMES_UNITS,
    SHRINK,
    SKIP,
    SLOTS,
    SPENT,
    STARVED,
    STEP,
    TEST_KNOWN,
    TEST_SCALE,
    TESTS,
    THRESHOLD,
    TURN,
    UNIFORM,
    UNITS,
    UNSETTLED_POINT,
    UNSETTLED_TEST,
    WINDOW,
    around,
    fourth_word,
    scale_of,
    share,
    shown_y_deg,
    tangent_of,
    words_of_record,
)

Rows: TypeAlias = NDArray[np.float32]

#: Drafts of publications, by place: sample, column and row (of gaze, until the point is placed), position of its words, side, units (0: it is placed).
SAMPLE, COLUMN, ROW, WORD, SIDE, SHARE, DRAFT = range(7)

#: Slots or drafts that go through a function together.
TOGETHER = 256

# Rows of what is made of gaze at slots: cosine and sine of the longitude, height and distance from the axis, and the two other parts of the direction.
_COS_LON, _SIN_LON, _UP, _FLAT, _ACROSS, _ALONG, _AXES = range(7)

_ZERO, _HALF, _ONE, _TWO, _QUARTER, _LN2, _FAR = (np.float32(v) for v in (0.0, 0.5, 1.0, 2.0, 0.5 * math.pi, math.log(2.0), np.inf))


@compiled
def loose_square(step: float) -> float:
    """How much the square of a chord may differ when one end is rounded to the lattice: half a step each way, and rounding of doubles."""
    rounding = 0.7072 * step * (math.pi / 180.0) + 2.0**-40
    return 4.0 * rounding + rounding * rounding


@fused
def test_opinions(words: WordArray, limits: Rows, threshold: float, test_scale: float) -> None:
    """First opinions on tests."""
    for begin in range(0, len(words), TOGETHER):
        quick.tests(words[begin:], limits[begin : min(begin + TOGETHER, len(words))], threshold, test_scale)


@fused
def point_opinions(words: WordArray, rows: Rows, whole: NDArray[np.int64], real: NDArray[np.float64]) -> None:
    """First opinions on tries of points; where all scales are the same, whether they are kept, and their sides."""
    per, fixed = words_of_record(whole), whole[RULE] == UNIFORM
    scale = scale_of(whole[UNITS] // whole[SLOTS], real[SCALE_TIMES_UNITS])
    for begin in range(0, rows.shape[1], TOGETHER):
        end = min(begin + TOGETHER, rows.shape[1])
        there, keep, reach, cos_arc = words[begin * per :], rows[quick.KEEP, begin:end], rows[quick.REACH, begin:end], rows[quick.COS_ARC, begin:end]
        if not fixed:  # there are tests, which have to know the direction
            quick.bearings(there[2:], per, rows[quick.COS_TURN, begin:end], rows[quick.SIN_TURN, begin:end])
        if whole[NARROW] == 1:
            quick.narrow_arcs(there, per, keep, reach, cos_arc)
            if fixed:
                quick.narrow_answers(keep, reach, scale, real[SHRINK], real[LEAD])
        else:
            quick.wide_arcs(there, per, keep, reach, cos_arc, rows[quick.SIN_ARC, begin:end])
            if fixed:
                quick.wide_answers(keep, reach, scale)


@compiled
def most_wide_units(times_units: float) -> int:
    """The most units with which noise is wide."""
    units = int(min(times_units / WIDE_RAD, 2.0**62)) + 2  # far more than a window has, and fits in 64 bits
    while units > 0 and not scale_of(units, times_units) > WIDE_RAD:
        units -= 1
    return units


@compiled
def _lattice(deg: float, step: float) -> np.int64:
    return np.int64(np.rint(deg * (1.0 / step)))


@fused
def decide(
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    seen: NDArray[np.bool_],
    done: int,
    state: NDArray[np.int64],
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
    known: NDArray[np.int64],
    trace: NDArray[np.int64],
    tests: WordArray,
    test: int,
    limits: Rows,
    points: WordArray,
    position: int,
    rows: Rows,
    drafts: NDArray[np.int64],
    near: NDArray[np.float64],
) -> tuple[int, int, int, int, int]:
    """Slots of one stream from a sample on, as far as the words go.

    Parameters
    ----------
    xs, ys, seen : arrays of shape (n,)
        Samples; not changed.
    done, state, whole, real, known, trace
        As in :func:`gazeveil.privacy.stream.kaleido_step.run`.
    tests, test, limits
        Words of tests, the next one to use, and the opinions on them.
    points, position, rows
        Words of points, the place among them to go on from, and the opinions on them.
    drafts : array of int64, shape (DRAFT, most)
        Publications are written here; `most` is no less than the tries that words are there for.
    near : array of shape (4,)
        Direction of the last publication, and how far off the square of a chord from it may be; infinite if it is that of the state.

    Returns
    -------
    done, test, position, why, drafted
    """
    n, many_tests, made = len(xs), len(limits), rows.shape[1]
    step, threshold, test_scale, times_units = real[STEP], real[THRESHOLD], real[TEST_SCALE], real[SCALE_TIMES_UNITS]
    own_shrink, own_lead, fitted, per_units = real[SHRINK], real[LEAD], whole[FITTED], np.float32(1.0 / real[SCALE_TIMES_UNITS])
    rule, skip, window, slots, units_of_window, least = whole[RULE], whole[SKIP], whole[WINDOW], whole[SLOTS], whole[UNITS], whole[LEAST_UNITS]
    fixed = rule == UNIFORM
    testing, narrow_made, turn, each = whole[TESTS] == 1, whole[NARROW] == 1, whole[TURN], whole[UNITS] // whole[SLOTS]
    per, traced, loose = words_of_record(whole), len(trace) == n, loose_square(step)
    keeps, reaches, cos_arcs, sin_arcs = rows[quick.KEEP], rows[quick.REACH], rows[quick.COS_ARC], rows[quick.SIN_ARC]
    cos_turns, sin_turns = rows[quick.COS_TURN], rows[quick.SIN_TURN]
    at = np.empty(TOGETHER, dtype=np.int64)
    axis = np.empty((_AXES, TOGETHER), dtype=np.float32)
    cos_lons, sin_lons, ups, flats, acrosses, alongs = axis[_COS_LON], axis[_SIN_LON], axis[_UP], axis[_FLAT], axis[_ACROSS], axis[_ALONG]
    open_test = np.float32(2.0 * quick.test_error(threshold, test_scale) + quick.SQUARE_ERROR)
    level_error = np.float32(quick.LEVEL_ERROR)
    exponential_error, arc_error = np.float32(2.0 * quick.EXPONENTIAL_ERROR), np.float32(2.0 * quick.ARC_ERROR)
    least_inside, short_loose = np.float32(quick.LEAST_INSIDE), np.float32(loose)
    i, why = np.int64(done), FINISHED
    offset = state[COUNT] - i  # number of a sample in the stream, less its place in the block
    due, has = state[LAST_TEST] + skip - offset, state[HAS] == 1
    head, length, spent = state[HEAD], state[LENGTH], state[SPENT]
    last_x, last_y = state[LAST_X], state[LAST_Y]
    near_x, near_y, near_z, slack = np.float32(near[0]), np.float32(near[1]), np.float32(near[2]), np.float32(near[3])
    placed = slack == _FAR  # whether the last point is known
    taken, drafted = np.uint64(position // per), 0
    one, two = np.uint64(1), np.uint64(2)
    most_wide, more_tests = most_wide_units(times_units), whole[TESTS]
    while why == FINISHED:
        # Which samples are slots depends on what is lost, not on noise: the next ones, all at a time.
        m, k = 0, max(i, due)
        while m < TOGETHER:
            while k < n and not seen[k]:
                k += 1
            if k >= n:
                break
            at[m] = k
            k += skip
            m += 1
        if m == 0:
            i = np.int64(n)
            break
        if testing:
            quick.look(xs, ys, at[:m], step, cos_lons[:m], sin_lons[:m], ups[:m], flats[:m], acrosses[:m], alongs[:m])
        j = np.uint64(0)
        while j < np.uint64(m):
            i = at[j]
            if testing and test == many_tests:
                why = NEEDS_TESTS
                break
            # Give back what was spent w or more samples ago; the share of a publication does not wait for the test.
            while length > 0 and state[RING + head] <= i + offset - window:
                spent -= state[RING + slots + head]
                head = head + 1 if head + 1 < slots else np.int64(0)
                length -= 1
            units, tracked = share(rule, units_of_window, each, spent)
            wide, per_radian = units <= most_wide, np.float32(units) * per_units
            short = _ONE / per_radian
            if known[TEST_KNOWN] == 1:
                is_near = known[NEAR] == 1
            elif has and testing:
                limit = limits[np.uint64(test)]
                dx, dy, dz = acrosses[j] - near_x, ups[j] - near_y, alongs[j] - near_z
                square = dx * dx + dy * dy + dz * dz
                is_near = square < limit
                if not abs(limit - square) > open_test + slack:
                    if not placed:
                        settled = UNSETTLED
                        if drafted > 0:
                            p = drafted - 1
                            word, scale, row = drafts[WORD, p], scale_of(drafts[SHARE, p], times_units), drafts[ROW, p]
                            four = points[fourth_word(word, scale)]
                            shrink, _ = tangent_of(drafts[SHARE, p], fitted, own_shrink, own_lead)
                            x, y, settled = sphere_point(row, scale, step, points[word], points[word + 2], four, shrink, float(drafts[SIDE, p]))
                            last_x, last_y = around(x + drafts[COLUMN, p], turn), y
                        if settled == UNSETTLED:
                            why = NEEDS_LAST
                            break
                        placed = True
                    a, b, c, d = axes(last_x, last_y, step)
                    to_x, to_y, to_z = d * b, c, d * a
                    near_x, near_y, near_z, slack = np.float32(to_x), np.float32(to_y), np.float32(to_z), _ZERO
                    a, b, c, d = axes(_lattice(xs[i], step), _lattice(ys[i], step), step)
                    ex, ey, ez = d * b - to_x, c - to_y, d * a - to_z
                    is_near, settled = arc_test_passes(ex * ex + ey * ey + ez * ez, threshold, test_scale, tests[test])
                    if settled == UNSETTLED:
                        why = UNSETTLED_TEST
                        break
            else:
                is_near = False
            if not is_near and units >= least:
                if known[POINT_KNOWN] == 1:
                    drafts[COLUMN, drafted], drafts[ROW, drafted], drafts[SHARE, drafted] = around(known[POINT_X], turn), known[POINT_Y], 0
                    last_x, last_y, placed, slack = drafts[COLUMN, drafted], drafts[ROW, drafted], True, _FAR
                    taken += two if per == 3 and units > most_wide else one
                else:
                    used = two if per == 3 and not wide else one
                    settled, inside, side = REJECTED, _ONE, _ONE
                    cos_rho, sin_rho, half = _ONE, _ZERO, _ZERO
                    shrink, lead = tangent_of(units, fitted, own_shrink, own_lead)
                    short_shrink, short_lead = np.float32(shrink), np.float32(lead)
                    log_most = quick.log_cosh(_QUARTER * per_radian) if wide else _ZERO
                    while taken + used <= np.uint64(made):
                        word = int(taken) * per
                        e, reach = keeps[taken], reaches[taken]
                        if fixed:
                            margin, bound, side = e, _ZERO, reach
                        elif wide:
                            cos_rho, sin_rho = cos_arcs[taken], sin_arcs[taken]
                            if narrow_made:  # the opinions are for another scale
                                e, reach, cos_rho, sin_rho = quick.wide_try(points[word], points[word + 1])
                            # logarithms of what the exponential is compared with: that of keeping either point, and that of keeping this one
                            level = reach * per_radian
                            margin, likely = e - log_most + quick.log_cosh(level), e - log_most - _LN2 + level
                            bound = (_ONE + e) * level_error
                            bound = bound if abs(likely) > bound else _FAR
                            side = _ONE if likely > _ZERO else -_ONE
                            cos_rho, sin_rho = side * cos_rho, side * sin_rho
                        else:
                            if not narrow_made:
                                e, reach = quick.narrow_try(points[word], points[word + 1], points[word + 3])
                            half = _HALF * short * short_shrink * reach
                            longest_arc = _HALF * (short * (e + reach) - short_lead)
                            margin = quick.sine(min(max(longest_arc, _ZERO), _QUARTER)) - half
                            bound = short * (_TWO + e + reach) * exponential_error + arc_error
                            inside = max(_ONE - half * half, _ZERO)
                            cos_rho, sin_rho = inside - half * half, _TWO * half * np.float32(np.sqrt(inside))
                        settled = SETTLED if margin > _ZERO else REJECTED
                        if not abs(margin) > bound:
                            scale = scale_of(units, times_units)
                            four = points[fourth_word(word, scale)]
                            settled, exact_side = arc_kept(scale, points[word], points[word + 1], four, shrink, lead)
                            cos_exact, sin_exact, _ = arc(scale, points[word], four, shrink, exact_side)
                            cos_rho, sin_rho, inside, side = np.float32(cos_exact), np.float32(sin_exact), _ONE, np.float32(exact_side)
                        if settled != REJECTED:
                            break
                        taken += used
                    if settled != SETTLED:
                        # what was tried is settled: go on from here with further words, or with whole numbers
                        why = NEEDS_POINTS if settled == REJECTED else UNSETTLED_POINT
                        known[TEST_KNOWN], known[NEAR] = 1, 0
                        break
                    if testing:
                        cos_lon, sin_lon, up, flat = cos_lons[j], sin_lons[j], ups[j], flats[j]
                        north = sin_rho * sin_turns[taken]
                        out, east = cos_rho * flat - north * up, sin_rho * cos_turns[taken]
                        near_x, near_y, near_z = out * sin_lon + east * cos_lon, cos_rho * up + north * flat, out * cos_lon - east * sin_lon
                        slack = short_loose if inside > least_inside else _FAR
                    drafts[COLUMN, drafted], drafts[ROW, drafted], drafts[SHARE, drafted] = _lattice(xs[i], step), _lattice(ys[i], step), units
                    drafts[WORD, drafted], drafts[SIDE, drafted] = np.int64(taken) * per, np.int64(side)
                    placed = False
                    taken += used
                drafts[SAMPLE, drafted] = i
                drafted += 1
                ring = head + length
                ring -= slots if ring >= slots else np.int64(0)
                state[RING + ring], state[RING + slots + ring] = i + offset, tracked
                length += 1
                spent += tracked
                has = True
            if traced:
                trace[i] = REPEATED if is_near else (units if units >= least else STARVED)
            known[TEST_KNOWN], known[NEAR], known[POINT_KNOWN] = 0, 0, 0
            test += more_tests
            due = i + skip
            i += 1
            j += one
    state[COUNT], state[LAST_TEST], state[HAS] = i + offset, due - skip + offset, has
    state[HEAD], state[LENGTH], state[SPENT] = head, length, spent
    near[0], near[1], near[2], near[3] = near_x, near_y, near_z, slack
    if placed:
        state[LAST_X], state[LAST_Y] = last_x, last_y
    return int(i), test, int(taken) * per, why, drafted


@fused
def _directions(
    up: NDArray[np.float64], flat: NDArray[np.float64], cos_rho: NDArray[np.float64], sin_rho: NDArray[np.float64],
    cos_turn: NDArray[np.float64], sin_turn: NDArray[np.float64], away: NDArray[np.float64],
) -> None:  # fmt: skip
    """Columns and rows in turns, into the arrays of `cos_turn` and `sin_turn`, and distances from the axis."""
    for k in range(len(up)):
        out, east, height = moved(up[k], flat[k], cos_rho[k], sin_rho[k], cos_turn[k], sin_turn[k])
        away[k], up[k] = math.sqrt(out * out + east * east), height
        per = 1.0 / away[k]
        cos_turn[k], sin_turn[k] = out * per, east * per
    for k in range(len(up)):
        cos_turn[k] = turn_of(sin_turn[k], cos_turn[k])
    for k in range(len(up)):
        sin_turn[k] = turn_of(away[k], up[k])


@fused
def place(drafts: NDArray[np.int64], begin: int, drafted: int, points: WordArray, whole: NDArray[np.int64], real: NDArray[np.float64]) -> int:
    """Round drafts to the lattice, from one on; how many are placed when this ends, fewer than there are if the next one is not settled."""
    step, turn, times_units, fitted, narrow_made = real[STEP], whole[TURN], real[SCALE_TIMES_UNITS], whole[FITTED], whole[NARROW] == 1
    up, flat, away, error, shrinks = np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER)
    cos_rho, sin_rho, cos_turn, sin_turn, scales = np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER), np.empty(TOGETHER)
    one, three, four = np.empty(TOGETHER, dtype=np.uint64), np.empty(TOGETHER, dtype=np.uint64), np.empty(TOGETHER, dtype=np.uint64)
    while begin < drafted:
        if drafts[SHARE, begin] == 0:
            begin += 1
            continue
        # A short loop for each function: a processor then works on several points at a time.
        m = 0
        while m < min(TOGETHER, drafted - begin) and drafts[SHARE, begin + m] > 0:
            m += 1
        for k in range(m):
            word = drafts[WORD, begin + k]
            scales[k] = scale_of(drafts[SHARE, begin + k], times_units)
            shrinks[k], _ = tangent_of(drafts[SHARE, begin + k], fitted, real[SHRINK], real[LEAD])
            one[k], three[k], four[k] = points[word], points[word + 2], points[fourth_word(word, scales[k])]
        for k in range(m):
            up[k], flat[k] = cos_sin(drafts[ROW, begin + k] * step * (1.0 / 360.0))
        for k in range(m):
            cos_turn[k], sin_turn[k] = bearing(three[k])
        # as if all were of the usual kind, then the others
        if narrow_made:
            for k in range(m):
                cos_rho[k], error[k] = narrow_unit(one[k], four[k])
            for k in range(m):
                cos_rho[k], sin_rho[k], error[k] = narrow_arc(scales[k], cos_rho[k], error[k], shrinks[k])
        else:
            for k in range(m):
                cos, sin = wide_arc(one[k])
                side = float(drafts[SIDE, begin + k])
                cos_rho[k], sin_rho[k], error[k] = side * cos, side * sin, WIDE_ERROR
        for k in range(m):
            if (scales[k] <= WIDE_RAD) != narrow_made:
                cos_rho[k], sin_rho[k], error[k] = arc(scales[k], one[k], four[k], shrinks[k], float(drafts[SIDE, begin + k]))
        _directions(up[:m], flat[:m], cos_rho[:m], sin_rho[:m], cos_turn[:m], sin_turn[:m], away[:m])
        for k in range(m):
            x, y, settled = rounded_turns(cos_turn[k], sin_turn[k], away[k], step, error[k])
            if settled == UNSETTLED:
                return begin + k
            drafts[COLUMN, begin + k], drafts[ROW, begin + k], drafts[SHARE, begin + k] = around(x + drafts[COLUMN, begin + k], turn), y, 0
        begin += m
    return drafted


@compiled
def show(
    x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_], begin: int, end: int, drafts: NDArray[np.int64], drafted: int, step: float
) -> None:
    """Overwrite samples, up to before one, by the last publication; without any, those from `begin` on are lost."""
    if drafted == 0:
        x_deg[begin:end], y_deg[begin:end], valid[begin:end] = np.nan, np.nan, False
        return
    lost = 0
    for k in range(begin, end):
        lost += not valid[k]
    for p in range(drafted):
        until = np.uint64(drafts[SAMPLE, p + 1] if p + 1 < drafted else end)
        shown_x, shown_y = drafts[COLUMN, p] * step, shown_y_deg(drafts[ROW, p], step, True)
        at = np.uint64(drafts[SAMPLE, p])
        while at < until:
            x_deg[at], y_deg[at] = shown_x, shown_y
            at += np.uint64(1)
    if lost > 0:
        for k in range(begin, end):  # without a branch, so that several samples are written at a time
            x_deg[k], y_deg[k] = (x_deg[k] if valid[k] else np.nan), (y_deg[k] if valid[k] else np.nan)
