"""The plan of a Kaleido stream, made of public numbers, and the stage that carries it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.noise.rng import Source, WordArray
from gazeveil.privacy.stream import kaleido_block as block
from gazeveil.privacy.stream import kaleido_step as step
from gazeveil.privacy.stream import kaleido_sure as sure
from gazeveil.privacy.stream.kaleido_ahead import MANY, Drafts, Draws, Numbers, Records
from gazeveil.privacy.stream.kaleido_noise import FITTING, MOST_TRIES, PLANAR, WIDE_RAD, most_tries, tangent
from gazeveil.privacy.stream.kaleido_quick import ROWS
from gazeveil.privacy.stream.session import Samples, Stage

#: What may be done to a published point.
AFTER = ("none", "clamp", "snap", "posterior-mean")

#: How much farther apart two places can be after rounding both to the lattice, in steps: sqrt(2), rounded up.
ROUNDING_STEPS = Fraction(1414214, 10**6)

_UNIT_BITS = 20
_MOST_SCALE_STEPS = 1 << 32
_SPHERE_PRIOR_DEG = 20.0
_AHEAD = 32
_NO_WORDS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings of :mod:`gazeveil.privacy.stream.kaleido_step` and the exact numbers behind them.

    Parameters
    ----------
    whole, real : arrays
        See the places named there.
    step_deg : Fraction
        Step of the lattice.
    r_steps : Fraction
        How far two neighbours can lie apart on the lattice, in steps.
    epsilon_test : Fraction
        Budget of one test; 0 without tests.
    epsilon_publish : Fraction
        Budget of all publications of a window.
    """

    whole: NDArray[np.int64] = field(repr=False)
    real: NDArray[np.float64] = field(repr=False)
    step_deg: Fraction
    r_steps: Fraction
    epsilon_test: Fraction
    epsilon_publish: Fraction

    @property
    def slots(self) -> int:
        """Most tests, and most publications, of a window."""
        return int(self.whole[step.SLOTS])

    @property
    def skip(self) -> int:
        """Samples from one test to the next."""
        return int(self.whole[step.SKIP])

    @property
    def units(self) -> int:
        """Units that a window's publications share."""
        return int(self.whole[step.UNITS])

    def share(self, spent: int) -> tuple[int, int]:
        """Units of the next publication, and what later ones must know of, when so much is spent."""
        units, tracked = step.share(int(self.whole[step.RULE]), self.units, self.units // self.slots, spent)
        return int(units), int(tracked)

    def scale(self, units: int) -> float:
        """Scale of the noise of a publication, in steps or on a sphere in radians."""
        return float(step.scale_of(units, float(self.real[step.SCALE_TIMES_UNITS])))

    def tries(self) -> float:
        """As many tries as a point takes on average, or more, whatever part of the budget it is given; 1 where nothing is rejected."""
        if not self.whole[step.SPHERE]:
            return 1.0
        # A share shrinks with what is spent, and nothing is published with less than the least.
        least, most = max(int(self.whole[step.LEAST_UNITS]), self.share(self.units)[0]), self.share(0)[0]
        found, fitted, own = 1.0, int(self.whole[step.FITTED]), (float(self.real[step.SHRINK]), float(self.real[step.LEAD]))
        for low, high, line in ((least, min(most, fitted), own), (max(least, fitted + 1), most, PLANAR)):
            if low <= high:
                found = max(found, most_tries(self.scale(high), self.scale(low), *line))
        return found

    def state(self, streams: int) -> NDArray[np.int64]:
        """Streams that have not begun."""
        states = np.zeros((streams, step.RING + 2 * self.slots), dtype=np.int64)
        states[:, step.LAST_TEST] = -self.skip
        return states


def lattice_bits(r_deg: Fraction) -> int:
    """2**bits steps to a degree: between 1024 and 2048 in r, so that rounding costs less than 1.4 parts in 1000; at least 32 to a degree."""
    bits = 5
    while r_deg * (1 << bits) < 1024:
        bits += 1
    return bits


def _up(value: Fraction, factor: float = 1.0) -> float:
    """A double that is not below value * factor, however its products and quotients are rounded afterwards."""
    return float(value) * factor * (1.0 + 2.0**-50)


def plan(
    rule: int,
    space: Space,
    epsilon: Fraction,
    w: int,
    r_deg: Fraction,
    h: Fraction | None,
    skip: int,
    slots: int,
    l_thresh_deg: Fraction,
    after: str,
    snap_deg: Fraction,
) -> Plan:
    """The plan of a stream; `h=None` leaves the tests out."""
    from scipy.special import gamma, roots_genlaguerre

    bits = lattice_bits(r_deg)
    g = Fraction(1, 1 << bits)
    r_steps = r_deg / g + ROUNDING_STEPS
    tests = Fraction(0) if h is None else epsilon / h
    publish = epsilon - tests
    sphere = isinstance(space, Sphere)
    # On the sphere scales are in radians.
    unit = math.radians(float(g)) * (1.0 + 2.0**-50) if sphere else 1.0
    units = slots << _UNIT_BITS
    whole = np.zeros(step.WHOLE, dtype=np.int64)
    whole[step.RULE], whole[step.SKIP], whole[step.WINDOW], whole[step.SLOTS], whole[step.UNITS] = rule, skip, w, slots, units
    # with more than all units nothing is ever published
    whole[step.LEAST_UNITS] = min(max(1, math.ceil(r_steps * units / (publish * _MOST_SCALE_STEPS))), units + 1)
    whole[step.TESTS], whole[step.SPHERE], whole[step.AFTER] = h is not None, sphere, AFTER.index(after)
    whole[step.TURN], whole[step.SNAP] = 360 << bits, max(1, round(snap_deg / g))
    if sphere:
        limits = (0, (360 << bits) - 1, 0, 180 << bits)
    elif after == "none":
        limits = (1 - (90 << bits), (90 << bits) - 1, 1 - (90 << bits), (90 << bits) - 1)
    else:
        wide, high = (math.floor(side / 2 * (1 << bits)) for side in (space.width_deg, space.height_deg))
        limits = (-wide, wide, -high, high)
    whole[step.X_LOW : step.Y_HIGH + 1] = limits
    real = np.zeros(step.NODES + 2 * step.QUADRATURE)
    real[step.STEP] = float(g)
    real[step.THRESHOLD] = float(l_thresh_deg / g) * unit
    real[step.TEST_SCALE] = 0.0 if h is None else _up(r_steps * slots / tests, unit)
    real[step.SCALE_TIMES_UNITS] = _up(r_steps * units / publish, unit)
    if sphere:
        real[step.PRIOR_Y] = _SPHERE_PRIOR_DEG * (1 << bits)
    else:
        real[step.PRIOR_X], real[step.PRIOR_Y] = space.width_deg / 4 * (1 << bits), space.height_deg / 4 * (1 << bits)
    # What is made ahead is for the scale that publications have when nearly every slot publishes; any other is made on the spot.
    usual = {step.HALVING: units // (slots + 1), step.RESERVE: units // slots // 2 + units // 2 // (slots + 1), step.UNIFORM: units // slots}[rule]
    scale = float(real[step.SCALE_TIMES_UNITS]) / max(usual, 1)
    whole[step.NARROW] = sphere and scale <= WIDE_RAD
    if sphere:
        real[step.SHRINK], real[step.LEAD] = tangent(min(scale, WIDE_RAD))
        whole[step.FITTED] = int(min(float(real[step.SCALE_TIMES_UNITS]) / (FITTING * min(scale, WIDE_RAD)), float(units)))
    nodes, weights = roots_genlaguerre(step.QUADRATURE, 0.5)
    real[step.NODES : step.NODES + step.QUADRATURE] = nodes
    real[step.NODES + step.QUADRATURE :] = np.log(weights / gamma(1.5))
    made = Plan(whole, real, g, r_steps, tests / slots, publish)
    if made.tries() > MOST_TRIES:
        checks.refuse("noise on a sphere", "epsilon", f"so small that a point takes at most {MOST_TRIES:g} tries on average", float(epsilon), "Choose less.")
    return made


class _Run:
    """One block of samples as the work of :meth:`Draws.serve`; `trace` is empty where none is kept."""

    def __init__(
        self,
        plan: Plan,
        draws: Draws,
        states: NDArray[np.int64],
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
        trace: NDArray[np.int64],
    ) -> None:
        self.plan, self.draws, self.states, self.trace = plan, draws, states, trace
        self.x_deg, self.y_deg, self.valid = x_deg, y_deg, valid
        self.known = np.zeros(step.KNOWN, dtype=np.int64)
        # On the sphere the points of long blocks are placed afterwards if nothing but their places is needed.
        after = int(plan.whole[step.AFTER])
        self.sphere = bool(plan.whole[step.SPHERE])
        self.drafting = self.sphere and after in (step.NOTHING, step.CLAMP) and len(states) == 1
        self.near = np.array([0.0, 0.0, 0.0, np.inf])
        self._spare: list[NDArray[np.int64]] = []  # arrays of drafts to be used again

    def make_tests(self, words: WordArray) -> Numbers:
        real = self.plan.real
        if self.drafting:
            limits = np.empty(len(words), dtype=np.float32)
            block.test_opinions(words, limits, float(real[step.THRESHOLD]), float(real[step.TEST_SCALE]))
            return limits
        numbers = np.empty((0 if self.sphere else len(words), step.TEST_NUMBERS))
        step.make_tests(words, 0, len(numbers), numbers)
        return numbers

    def make_points(self, words: WordArray) -> Numbers:
        count = len(words) // self.draws.points.per
        if self.drafting:
            rows = np.empty((ROWS, count), dtype=np.float32)
            block.point_opinions(words, rows, self.plan.whole, self.plan.real)
            return rows
        numbers = np.empty((0 if self.sphere else count, step.POINT_NUMBERS))
        step.make_points(words, 0, len(numbers), numbers)
        return numbers

    def decide(self, done: int, catch_up: Callable[[Drafts], None]) -> tuple[int, int, Drafts | None]:
        tests, points = self.draws.tests, self.draws.points
        if self.drafting and points.numbers is not None:
            return self._draft(done, catch_up)
        room = 0 if self.sphere else _AHEAD  # on the sphere nothing is made ahead but opinions
        ahead_tests = np.empty((room, step.TEST_NUMBERS)) if tests.numbers is None else tests.numbers
        ahead_points = np.empty((room, step.POINT_NUMBERS)) if points.numbers is None else points.numbers
        made_tests, made_points = (0 if r.numbers is None else len(r.numbers) for r in (tests, points))
        while True:
            done, tests.position, points.position, why = step.run(
                self.x_deg, self.y_deg, self.valid, done, self.states, self.plan.whole, self.plan.real, self.known, self.trace,
                tests.words, tests.position, ahead_tests, made_tests, points.words, points.position, ahead_points, made_points,
            )  # fmt: skip
            if why in (step.FINISHED, step.NEEDS_TESTS, step.NEEDS_POINTS):
                break
            self._surely(done, why)
        if room and tests.numbers is None:
            ahead_tests[...], ahead_points[...] = 0, 0  # as words, what is made of them must not linger in memory
        return done, why, None

    def _draft(self, done: int, catch_up: Callable[[Drafts], None]) -> tuple[int, int, Drafts]:
        tests, points = self.draws.tests, self.draws.points
        limits, rows = cast("block.Rows", tests.numbers), cast("block.Rows", points.numbers)
        while True:
            most = len(points.words) // points.per + 1
            spare = self._spare.pop() if self._spare else None
            drafts = spare if spare is not None and spare.shape[1] >= most else np.empty((block.DRAFT, most), dtype=np.int64)
            done, tests.position, points.position, why, count = block.decide(
                self.x_deg[0], self.y_deg[0], self.valid[0], done, self.states[0], self.plan.whole, self.plan.real, self.known, self.trace,
                tests.words, tests.position, limits, points.words, points.position, rows, drafts, self.near,
            )  # fmt: skip
            decided = Drafts(drafts, count, int(drafts[block.SAMPLE, 0]) if count else done, done, points.words, points.first)
            if why in (step.FINISHED, step.NEEDS_TESTS, step.NEEDS_POINTS):
                return done, why, decided
            catch_up(decided)  # what comes next has to know the last point
            if why != step.NEEDS_LAST:
                self._surely(done, why)

    def shown(self, done: int) -> Drafts:
        state = self.states[0]
        lines = np.zeros((block.DRAFT, 1), dtype=np.int64)
        lines[block.SAMPLE], lines[block.COLUMN], lines[block.ROW] = done, state[step.LAST_X], state[step.LAST_Y]
        return Drafts(lines, int(state[step.HAS]), done, done, _NO_WORDS, 0)

    def finish(self, drafts: Drafts) -> None:
        whole, real, lines, placed = self.plan.whole, self.plan.real, drafts.drafts, 0
        while (placed := block.place(lines, placed, drafts.count, drafts.words, whole, real)) < drafts.count:
            ix, iy, word, units = (int(lines[k, placed]) for k in (block.COLUMN, block.ROW, block.WORD, block.SHARE))
            found = self._point(drafts.words, word, drafts.first, ix, iy, units)
            assert found is not None  # it was settled that the arc is kept
            lines[block.COLUMN, placed], lines[block.ROW, placed], lines[block.SHARE, placed] = step.around(found[0], int(whole[step.TURN])), found[1], 0
            placed += 1
        block.show(self.x_deg[0], self.y_deg[0], self.valid[0], drafts.begin, drafts.end, lines, drafts.count, float(real[step.STEP]))
        self._spare.append(lines)

    def settle(self, drafts: Drafts) -> None:
        if drafts.count:
            last = drafts.drafts[:, drafts.count - 1]
            self.states[0, step.LAST_X], self.states[0, step.LAST_Y] = last[block.COLUMN], last[block.ROW]
        self.near[3] = np.inf

    def _surely(self, done: int, why: int) -> None:
        """Decide one test or one try with whole numbers."""
        real = self.plan.real
        stream, i = divmod(done, self.x_deg.shape[1])
        state, g = self.states[stream], float(real[step.STEP])
        ix, iy = round(self.x_deg[stream, i] / g), round(self.y_deg[stream, i] / g)
        tests, points = self.draws.tests, self.draws.points
        if why == step.UNSETTLED_TEST:
            last = int(state[step.LAST_X]), int(state[step.LAST_Y])
            distance = sure.distance_rad(ix, iy, *last, g) if self.sphere else sure.distance_steps(ix - last[0], iy - last[1])
            given = _drawn_on(tests, tests.words, tests.position, tests.first, 1)
            self.known[step.NEAR] = sure.test_passes(distance, float(real[step.THRESHOLD]), float(real[step.TEST_SCALE]), given)
            self.known[step.TEST_KNOWN] = 1
            return
        # The run that stopped here has expired what is old, so the share is what it would have been.
        units = self.plan.share(int(state[step.SPENT]))[0]
        found = self._point(points.words, points.position, points.first, ix, iy, units)
        if found is None:
            points.position += step.records_of_try(self.plan.scale(units), points.per, self.sphere) * points.per
        else:
            self.known[step.POINT_KNOWN], self.known[step.POINT_X], self.known[step.POINT_Y] = 1, *found

    def _point(self, words: WordArray, position: int, first: int, ix: int, iy: int, units: int) -> tuple[int, int] | None:
        """The lattice point of the try at a position; None if it is rejected."""
        scale, real = self.plan.scale(units), self.plan.real.tolist()
        given = _drawn_on(self.draws.points, words, position, first, 4 if self.sphere and scale <= WIDE_RAD else 3)
        if not self.sphere:
            zx, zy = sure.screen_noise(scale, given)
            return ix + zx, iy + zy
        shrink, lead = step.tangent_of(units, int(self.plan.whole[step.FITTED]), real[step.SHRINK], real[step.LEAD])
        return sure.sphere_noise(ix, iy, scale, real[step.STEP], given, shrink, lead)


def _drawn_on(records: Records, words: WordArray, position: int, first: int, begun: int) -> WordArray:
    """The words of a draw, and those in which they go on."""
    further = records.further(first + position // records.per, sure.MORE * begun)
    return np.concatenate((words[position : position + begun], further))


class LatticeStage(Stage):
    """Kaleido on the lattice, for one stream or many.

    Parameters
    ----------
    plan : Plan
        What to do.
    streams : int
        How many streams.
    sources : sequence of Source
        One for each stream, or one secure one for all.
    """

    def __init__(self, plan: Plan, streams: int, sources: Sequence[Source]) -> None:
        self.plan = plan
        self.draws = [Draws(s, plan.whole) for s in sources]
        self.states = plan.state(streams)
        self.trace: NDArray[np.int64] | None = None
        self.traced = False
        self._sphere, self._step_deg, self._skip = bool(plan.whole[step.SPHERE]), float(plan.real[step.STEP]), plan.skip

    def reset(self) -> None:
        """Forget the last publication.

        What the last w samples spent stays charged and the next test keeps its distance from the last one, so that no window across the
        reset spends more than epsilon; until then samples come out as lost.
        """
        self.states[:, step.HAS] = 0

    def run(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> Samples:
        """Publish, repeat, or pass a lost sample on."""
        # Most single samples are between two slots and need no noise.
        if x_deg.size == 1 and not self.traced and step.repeat(x_deg, y_deg, valid, self.states, self._skip, self._step_deg, self._sphere):
            return t_ns, x_deg, y_deg, valid
        return self.run_behind(_nothing, t_ns, x_deg, y_deg, valid)

    def run_behind(
        self, front: Callable[[], None], t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]
    ) -> Samples:
        """The same; in a long block noise is made while `front` is busy."""
        rows, n = x_deg.shape
        skip = self._skip
        if rows > 1 or self.traced or n // skip < MANY:
            front()
            front = _nothing
        trace = np.where(valid, step.SKIPPED, step.LOST) if self.traced else np.empty((rows, 0), dtype=np.int64)
        # one stream after another if they have words of their own, or if each is long
        size = rows if len(self.draws) == 1 and (rows == 1 or n // skip < MANY) else 1
        for s in range(0, rows, size):
            row, draws = slice(s, s + size), self.draws[s if len(self.draws) > 1 else 0]
            work = _Run(self.plan, draws, self.states[row], x_deg[row], y_deg[row], valid[row], trace[row].reshape(-1))
            draws.serve(work, size * n, skip, front)
        if self.traced:
            self.trace = trace
        return t_ns, x_deg, y_deg, valid


def _nothing() -> None:
    """The samples have passed the front."""
