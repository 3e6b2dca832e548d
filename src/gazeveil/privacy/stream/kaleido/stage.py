"""The plan of a Kaleido stream, made of public numbers, and the stage that carries it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.noise import bigint
from gazeveil.privacy.noise.lattice import (
    MOST_SCALE_STEPS,
    ROUNDING_STEPS,
    lattice_bits,
    limits,
    rounded_up,
    scale_unit,
)
from gazeveil.privacy.noise.spherical import (
    FITTING,
    MOST_TRIES,
    PLANAR,
    WIDE_RAD,
    most_tries,
    tangent,
    words_of_try,
)
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.draws import Draws
from gazeveil.privacy.stream.stage import Samples, Stage

#: What may be done to a published point.
AFTER = ("none", "clamp", "snap", "posterior-mean")

_UNIT_BITS = 20
_SPHERE_PRIOR_DEG = 20.0
_AHEAD = 32


@dataclass(frozen=True, eq=False)
class KaleidoPlan:
    """Settings of :mod:`gazeveil.privacy.stream.kaleido.step` and the exact numbers behind them.

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

    whole: Ints = field(repr=False)
    real: Floats = field(repr=False)
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
        """Units of the next publication, and what later ones must know of, when
        so much is spent.
        """
        units, tracked = step.share(
            int(self.whole[step.RULE]), self.units, self.units // self.slots, spent
        )
        return int(units), int(tracked)

    def scale(self, units: int) -> float:
        """Scale of the noise of a publication, in steps or on a sphere in radians."""
        return float(step.scale_of(units, float(self.real[step.SCALE_TIMES_UNITS])))

    def tries(self) -> float:
        """As many tries as a point takes on average, or more, whatever part of the budget it is
        given; 1 where nothing is rejected.
        """
        if not self.whole[step.SPHERE]:
            return 1.0
        # A share shrinks with what is spent, and nothing is published with less than the least.
        least, most = (
            max(int(self.whole[step.LEAST_UNITS]), self.share(self.units)[0]),
            self.share(0)[0],
        )
        largest, fitted, own = (
            1.0,
            int(self.whole[step.FITTED]),
            (float(self.real[step.SHRINK]), float(self.real[step.LEAD])),
        )
        for low, high, line in (
            (least, min(most, fitted), own),
            (max(least, fitted + 1), most, PLANAR),
        ):
            if low <= high:
                largest = max(largest, most_tries(self.scale(high), self.scale(low), *line))
        return largest

    def state(self, streams: int) -> Ints:
        """Streams that have not begun."""
        states = np.zeros((streams, step.RING + 2 * self.slots), dtype=np.int64)
        states[:, step.LAST_TEST] = -self.skip
        return states


def _fit_tangent(whole: Ints, real: Floats) -> None:
    """Settings of tries on the sphere: the tangent that fits the scale of publications when nearly
    every slot publishes.
    """
    rule, slots, units = (int(whole[k]) for k in (step.RULE, step.SLOTS, step.UNITS))
    usual = {
        step.HALVING: units // (slots + 1),
        step.RESERVE: units // slots // 2 + units // 2 // (slots + 1),
        step.UNIFORM: units // slots,
    }[rule]
    times_units = float(real[step.SCALE_TIMES_UNITS])
    scale = times_units / max(usual, 1)
    whole[step.NARROW] = scale <= WIDE_RAD
    real[step.SHRINK], real[step.LEAD] = tangent(min(scale, WIDE_RAD))
    whole[step.FITTED] = int(min(times_units / (FITTING * min(scale, WIDE_RAD)), float(units)))


def _fill_quadrature(real: Floats) -> None:
    """Nodes and log weights of the posterior mean."""
    from scipy.special import gamma, roots_genlaguerre  # heavy

    nodes, weights = roots_genlaguerre(step.QUADRATURE, 0.5)
    real[step.NODES : step.NODES + step.QUADRATURE] = nodes
    real[step.NODES + step.QUADRATURE :] = np.log(weights / gamma(1.5))


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
) -> KaleidoPlan:
    """The plan of a stream; `h=None` leaves the tests out."""
    bits = lattice_bits(r_deg)
    g = Fraction(1, 1 << bits)
    r_steps = r_deg / g + ROUNDING_STEPS
    tests = Fraction(0) if h is None else epsilon / h
    publish = epsilon - tests
    sphere = isinstance(space, Sphere)
    unit = scale_unit(space, g)
    units = slots << _UNIT_BITS
    whole = np.zeros(step.WHOLE, dtype=np.int64)
    whole[step.RULE], whole[step.SKIP], whole[step.WINDOW], whole[step.SLOTS], whole[step.UNITS] = (
        rule,
        skip,
        w,
        slots,
        units,
    )
    # with more than all units nothing is ever published
    whole[step.LEAST_UNITS] = min(
        max(1, math.ceil(r_steps * units / (publish * MOST_SCALE_STEPS))), units + 1
    )
    whole[step.TESTS], whole[step.SPHERE], whole[step.AFTER] = (
        h is not None,
        sphere,
        AFTER.index(after),
    )
    whole[step.TURN], whole[step.SNAP] = 360 << bits, max(1, round(snap_deg / g))
    whole[step.X_LOW : step.Y_HIGH + 1] = limits(space, bits, after != "none")
    real = np.zeros(step.NODES + 2 * step.QUADRATURE)
    real[step.STEP] = float(g)
    real[step.THRESHOLD] = float(l_thresh_deg / g) * unit
    real[step.TEST_SCALE] = 0.0 if h is None else rounded_up(r_steps * slots / tests, unit)
    real[step.SCALE_TIMES_UNITS] = rounded_up(r_steps * units / publish, unit)
    if sphere:
        real[step.PRIOR_Y] = _SPHERE_PRIOR_DEG * (1 << bits)
    else:
        real[step.PRIOR_X], real[step.PRIOR_Y] = (
            space.width_deg / 4 * (1 << bits),
            space.height_deg / 4 * (1 << bits),
        )
    if sphere:
        _fit_tangent(whole, real)
    _fill_quadrature(real)
    made = KaleidoPlan(whole, real, g, r_steps, tests / slots, publish)
    if made.tries() > MOST_TRIES:
        checks.refuse(
            "noise on a sphere",
            "epsilon",
            f"so small that a point takes at most {MOST_TRIES:g} tries on average",
            float(epsilon),
            "Choose less.",
        )
    return made


class _KaleidoRun:
    """One block of samples; `trace` is empty where none is kept."""

    def __init__(
        self,
        plan: KaleidoPlan,
        draws: Draws,
        states: Ints,
        x_deg: Floats,
        y_deg: Floats,
        valid: Bools,
        trace: Ints,
    ) -> None:
        self.plan, self.draws, self.states, self.trace = plan, draws, states, trace
        self.x_deg, self.y_deg, self.valid = x_deg, y_deg, valid
        self.known = np.zeros(step.KNOWN, dtype=np.int64)
        self.sphere = bool(plan.whole[step.SPHERE])

    def decide(self, done: int) -> tuple[int, int]:
        """Process samples from `done` on as far as the words at hand go: samples done, and why it
        stopped.
        """
        tests, points = self.draws.tests, self.draws.points
        room = 0 if self.sphere else _AHEAD  # on the sphere nothing is made ahead
        ahead_tests = np.empty((room, step.TEST_NUMBERS))
        ahead_points = np.empty((room, step.POINT_NUMBERS))
        while True:
            done, tests.position, points.position, why = step.run(
                self.x_deg,
                self.y_deg,
                self.valid,
                done,
                self.states,
                self.plan.whole,
                self.plan.real,
                self.known,
                self.trace,
                tests.words,
                tests.position,
                ahead_tests,
                points.words,
                points.position,
                ahead_points,
            )
            if why not in (step.UNSETTLED_TEST, step.UNSETTLED_POINT):
                break
            self._decide_exactly(done, why)
        # as words, what is made of them must not linger in memory
        ahead_tests[...], ahead_points[...] = 0, 0
        return done, why

    def _decide_exactly(self, done: int, why: int) -> None:
        """Decide one test or one try with whole numbers."""
        real = self.plan.real
        stream, i = divmod(done, self.x_deg.shape[1])
        state, g = self.states[stream], float(real[step.STEP])
        ix, iy = round(self.x_deg[stream, i] / g), round(self.y_deg[stream, i] / g)
        if why == step.UNSETTLED_TEST:
            last = int(state[step.LAST_X]), int(state[step.LAST_Y])
            distance = (
                bigint.distance_rad(ix, iy, *last, g)
                if self.sphere
                else bigint.distance_steps(ix - last[0], iy - last[1])
            )
            self.known[step.NEAR] = bigint.test_passes(
                distance,
                float(real[step.THRESHOLD]),
                float(real[step.TEST_SCALE]),
                self.draws.tests.drawn_on(1, bigint.MORE),
            )
            self.known[step.TEST_KNOWN] = 1
            return
        # The run that stopped here has expired what is old, so the share is what it would have
        # been.
        units = self.plan.share(int(state[step.SPENT]))[0]
        point = self._exact_point(ix, iy, units)
        points = self.draws.points
        if point is None:
            points.position += (
                step.records_of_try(self.plan.scale(units), points.per, self.sphere) * points.per
            )
        else:
            self.known[step.POINT_KNOWN], self.known[step.POINT_X], self.known[step.POINT_Y] = (
                1,
                *point,
            )

    def _exact_point(self, ix: int, iy: int, units: int) -> tuple[int, int] | None:
        """The lattice point of the try at hand; None if it is rejected."""
        scale, real = self.plan.scale(units), self.plan.real.tolist()
        begun = words_of_try(scale) if self.sphere else 3
        words = self.draws.points.drawn_on(begun, bigint.MORE * begun)
        shrink, lead = step.tangent_of(
            units, int(self.plan.whole[step.FITTED]), real[step.SHRINK], real[step.LEAD]
        )
        return bigint.point(self.sphere, ix, iy, scale, real[step.STEP], words, shrink, lead)


class LatticeStage(Stage):
    """Kaleido on the lattice, for one stream or many.

    Parameters
    ----------
    plan : KaleidoPlan
        What to do.
    streams : int
        How many streams.
    sources : sequence of Source
        One for each stream, or one secure one for all.
    """

    def __init__(self, plan: KaleidoPlan, streams: int, sources: Sequence[Source]) -> None:
        self.plan = plan
        self.draws = [Draws(s, plan.whole) for s in sources]
        self.states = plan.state(streams)
        self.trace: Ints | None = None
        self.traced = False
        self._sphere, self._step_deg, self._skip = (
            bool(plan.whole[step.SPHERE]),
            float(plan.real[step.STEP]),
            plan.skip,
        )

    def reset(self) -> None:
        """Forget the last publication.

        What the last w samples spent stays charged and the next test keeps its distance from the
        last one, so that no window across the reset spends more than epsilon; until then samples
        come out as lost.
        """
        self.states[:, step.HAS] = 0

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Publish, repeat, or pass a lost sample on."""
        # Most single samples are between two slots and need no noise.
        if (
            x_deg.size == 1
            and not self.traced
            and step.repeat(
                x_deg, y_deg, valid, self.states, self._skip, self._step_deg, self._sphere
            )
        ):
            return t_ns, x_deg, y_deg, valid
        rows, n = x_deg.shape
        trace = (
            np.where(valid, step.SKIPPED, step.LOST)
            if self.traced
            else np.empty((rows, 0), dtype=np.int64)
        )
        # one stream after another if they have words of their own
        size = rows if len(self.draws) == 1 else 1
        for s in range(0, rows, size):
            row, draws = slice(s, s + size), self.draws[s if len(self.draws) > 1 else 0]
            block = _KaleidoRun(
                self.plan,
                draws,
                self.states[row],
                x_deg[row],
                y_deg[row],
                valid[row],
                trace[row].reshape(-1),
            )
            draws.serve(block.decide, size * n, self._skip)
        if self.traced:
            self.trace = trace
        return t_ns, x_deg, y_deg, valid
