"""The plan of a Kaleido stream, made of public numbers, and the stage that carries it out.

The random words of a Kaleido stream: one sequence for tests, one for tries of points.

A test takes one word, a try of a point a record of a few words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

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
from gazeveil.privacy.randomness.records import WordRecords
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.noise import QUADRATURE
from gazeveil.privacy.stream.kaleido.step import (
    HALVING,
    UNIFORM,
    KaleidoSettings,
    records_of_try,
    scale_of,
    share,
    tangent_of,
    words_of_record,
)
from gazeveil.privacy.stream.session import Samples, Stage


class Draws:
    """The two sequences of a stream; where it is narrow, most tries take four words."""

    def __init__(self, source: Source, narrow: bool) -> None:
        self.tests = WordRecords(source.child("tests"), 1)
        self.points = WordRecords(source.child("points"), words_of_record(narrow))

    def serve(self, decide: Callable[[int], tuple[int, int]], count: int, skip: int) -> None:
        """Run a block of `count` samples with a slot every `skip`, with further words whenever they
        run out. `decide` processes samples from the given one on; it returns the samples done and
        why it stopped.
        """
        with self.tests, self.points:
            done = 0
            while done < count:
                done, why = decide(done)
                if done < count:
                    (self.tests if why == step.NEEDS_TESTS else self.points).more(
                        (count - done) // skip + 1
                    )


#: What may be done to a published point.
AFTER = ("none", "clamp", "snap", "posterior-mean")

_UNIT_BITS = 20
_SPHERE_PRIOR_DEG = 20.0
_AHEAD = 32


@dataclass(frozen=True, eq=False)
class KaleidoPlan:
    """The settings of a stream and the exact numbers behind them.

    Parameters
    ----------
    settings : KaleidoSettings
        What every step needs.
    step_deg : Fraction
        Step of the lattice.
    r_steps : Fraction
        How far two neighbours can lie apart on the lattice, in steps.
    epsilon_test : Fraction
        Budget of one test; 0 without tests.
    epsilon_publish : Fraction
        Budget of all publications of a window.
    """

    settings: KaleidoSettings = field(repr=False)
    step_deg: Fraction
    r_steps: Fraction
    epsilon_test: Fraction
    epsilon_publish: Fraction

    @property
    def slots(self) -> int:
        """Most tests, and most publications, of a window."""
        return self.settings.slots

    @property
    def skip(self) -> int:
        """Samples from one test to the next."""
        return self.settings.skip

    @property
    def units(self) -> int:
        """Units that a window's publications share."""
        return self.settings.units

    def share(self, spent: int) -> tuple[int, int]:
        """Units of the next publication, and what later ones must know of, when
        so much is spent.
        """
        units, tracked = share(self.settings.rule, self.units, self.units // self.slots, spent)
        return int(units), int(tracked)

    def scale(self, units: int) -> float:
        """Scale of the noise of a publication, in steps or on a sphere in radians."""
        return float(scale_of(units, self.settings.scale_times_units))

    def tries(self) -> float:
        """As many tries as a point takes on average, or more, whatever part of the budget it is
        given; 1 where nothing is rejected.
        """
        if not self.settings.sphere:
            return 1.0
        # A share shrinks with what is spent, and nothing is published with less than the least.
        least = max(self.settings.least_units, self.share(self.units)[0])
        most, fitted = self.share(0)[0], self.settings.fitted
        own, largest = (self.settings.shrink, self.settings.lead), 1.0
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


def _with_tangent(settings: KaleidoSettings) -> KaleidoSettings:
    """Settings of tries on the sphere: the tangent that fits the scale of publications when nearly
    every slot publishes.
    """
    slots, units = settings.slots, settings.units
    usual = {HALVING: units // (slots + 1), UNIFORM: units // slots}[settings.rule]
    scale = settings.scale_times_units / max(usual, 1)
    shrink, lead = tangent(min(scale, WIDE_RAD))
    fitted = min(settings.scale_times_units / (FITTING * min(scale, WIDE_RAD)), float(units))
    return settings._replace(
        narrow=scale <= WIDE_RAD, fitted=int(fitted), shrink=float(shrink), lead=float(lead)
    )


@cache
def _quadrature() -> Floats:
    """Nodes and log weights of the posterior mean."""
    from scipy.special import gamma, roots_genlaguerre  # heavy

    nodes, weights = roots_genlaguerre(QUADRATURE, 0.5)
    return np.stack((nodes, np.log(weights / gamma(1.5))))


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
    # With more than all units nothing is ever published.
    least = min(max(1, math.ceil(r_steps * units / (publish * MOST_SCALE_STEPS))), units + 1)
    prior_deg = (
        (0.0, _SPHERE_PRIOR_DEG)
        if isinstance(space, Sphere)
        else (space.width_deg / 4, space.height_deg / 4)
    )
    settings = KaleidoSettings(
        rule,
        skip,
        w,
        slots,
        units,
        least,
        h is not None,
        sphere,
        AFTER.index(after),
        *limits(space, bits, after != "none"),
        turn=360 << bits,
        snap=max(1, round(snap_deg / g)),
        step_deg=float(g),
        threshold=float(l_thresh_deg / g) * unit,
        test_scale=0.0 if h is None else rounded_up(r_steps * slots / tests, unit),
        scale_times_units=rounded_up(r_steps * units / publish, unit),
        prior_x=prior_deg[0] * (1 << bits),
        prior_y=prior_deg[1] * (1 << bits),
    )
    settings = _with_tangent(settings) if sphere else settings
    made = KaleidoPlan(settings, g, r_steps, tests / slots, publish)
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
        self.progress = np.zeros(step.PROGRESS, dtype=np.int64)
        self.sphere = plan.settings.sphere

    def decide(self, done: int) -> tuple[int, int]:
        """Process samples from `done` on as far as the words at hand go: samples done, and why it
        stopped.
        """
        tests, points, progress = self.draws.tests, self.draws.points, self.progress
        progress[step.DONE] = done
        room = 0 if self.sphere else _AHEAD  # on the sphere nothing is made ahead
        ahead_tests = np.empty((room, step.TEST_NUMBERS))
        ahead_points = np.empty((room, step.POINT_NUMBERS))
        while True:
            progress[step.TEST], progress[step.POINT] = tests.position, points.position
            why = step.run(
                self.x_deg,
                self.y_deg,
                self.valid,
                self.trace,
                self.states,
                self.plan.settings,
                _quadrature(),
                progress,
                tests.words,
                ahead_tests,
                points.words,
                ahead_points,
            )
            done, tests.position, points.position = progress[: step.POINT + 1].tolist()
            if why not in (step.UNSETTLED_TEST, step.UNSETTLED_POINT):
                break
            self._decide_exactly(done, why)
        # as words, what is made of them must not linger in memory
        ahead_tests.fill(0)
        ahead_points.fill(0)
        return done, why

    def _decide_exactly(self, done: int, why: int) -> None:
        """Decide one test or one try with whole numbers."""
        settings, progress = self.plan.settings, self.progress
        stream, i = divmod(done, self.x_deg.shape[1])
        state, g = self.states[stream], settings.step_deg
        ix, iy = round(self.x_deg[stream, i] / g), round(self.y_deg[stream, i] / g)
        if why == step.UNSETTLED_TEST:
            last = int(state[step.LAST_X]), int(state[step.LAST_Y])
            distance = (
                bigint.distance_rad(ix, iy, *last, g)
                if self.sphere
                else bigint.distance_steps(ix - last[0], iy - last[1])
            )
            progress[step.NEAR] = bigint.test_passes(
                distance,
                settings.threshold,
                settings.test_scale,
                self.draws.tests.drawn_on(1, bigint.MORE),
            )
            progress[step.TEST_KNOWN] = 1
            return
        # The run that stopped here has expired what is old, so the share is what it would have
        # been.
        units = self.plan.share(int(state[step.SPENT]))[0]
        point = self._exact_point(ix, iy, units)
        points = self.draws.points
        if point is None:
            points.position += (
                records_of_try(self.plan.scale(units), points.per, self.sphere) * points.per
            )
        else:
            progress[step.POINT_KNOWN], progress[step.POINT_X], progress[step.POINT_Y] = (1, *point)

    def _exact_point(self, ix: int, iy: int, units: int) -> tuple[int, int] | None:
        """The lattice point of the try at hand; None if it is rejected."""
        scale, settings = self.plan.scale(units), self.plan.settings
        begun = words_of_try(scale) if self.sphere else 3
        words = self.draws.points.drawn_on(begun, bigint.MORE * begun)
        line = tangent_of(units, settings.fitted, settings.shrink, settings.lead)
        return bigint.point(self.sphere, ix, iy, scale, settings.step_deg, words, *line)


class LatticeStage(Stage):
    """Kaleido on the lattice, for one stream or many; one source for each, or one secure one for
    all.
    """

    def __init__(self, plan: KaleidoPlan, streams: int, sources: Sequence[Source]) -> None:
        self.plan = plan
        self.draws = [Draws(s, plan.settings.narrow) for s in sources]
        self.states = plan.state(streams)
        self.trace: Ints | None = None
        self.traced = False
        self._sphere = plan.settings.sphere
        self._step_deg = plan.settings.step_deg
        self._skip = plan.skip

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
        trace = (
            np.where(valid, step.SKIPPED, step.LOST)
            if self.traced
            else np.empty((len(x_deg), 0), dtype=np.int64)
        )
        if len(self.draws) == 1:
            self._run_block(self.draws[0], self.states, x_deg, y_deg, valid, trace)
        else:  # streams with words of their own, one after another
            for s, draws in enumerate(self.draws):
                row, states = slice(s, s + 1), self.states[s : s + 1]
                self._run_block(draws, states, x_deg[row], y_deg[row], valid[row], trace[row])
        if self.traced:
            self.trace = trace
        return t_ns, x_deg, y_deg, valid

    def run_stream(self, s: int, x_deg: Floats, y_deg: Floats, valid: Bools) -> Ints:
        """Samples of one stream, shape (1, n), in place; the outcome of each slot."""
        trace = np.where(valid, step.SKIPPED, step.LOST)
        # Columns of several streams are no block of memory.
        x, y, ok = x_deg.copy(), y_deg.copy(), valid.copy()
        draws = self.draws[s if len(self.draws) > 1 else 0]
        self._run_block(draws, self.states[s : s + 1], x, y, ok, trace)
        x_deg[...], y_deg[...], valid[...] = x, y, ok
        return trace

    def _run_block(
        self, draws: Draws, states: Ints, x_deg: Floats, y_deg: Floats, valid: Bools, trace: Ints
    ) -> None:
        block = _KaleidoRun(self.plan, draws, states, x_deg, y_deg, valid, trace.reshape(-1))
        draws.serve(block.decide, x_deg.size, self._skip)
