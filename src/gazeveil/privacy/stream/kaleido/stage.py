"""The plan of a Kaleido stream, made of public numbers, and the stages that carry it out.

A stage has two sequences of random words: a test takes one word, a try of a point a record of a few
words. Where losses are filled, gaze at a slot whose sample is lost is what
the public model expects, given what was published before, so that slots follow one another every
t_skip, whatever is lost. A publication is an observation whose noise has the variance 3 b**2 along
each axis, b its scale; a repetition is one of what is shown, as vague as the test. Proof:
proofs/losses.md.

A release of Kaleido shows its own noise (:func:`noise_scales_deg`): a value that changes was
published, one that stays was repeated, and what a publication may spend follows from the
publications of the window before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
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
from gazeveil.privacy.randomness.rng import Source, WordRecords
from gazeveil.privacy.stream.kaleido import step
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
from gazeveil.privacy.stream.losses.expected_gaze import NO_MEMORY, Memory
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


_UNIT_BITS = 20
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

    @property
    def vague_deg2(self) -> Floats:
        """How vague what a slot shows is, in degrees squared along an axis: a publication with one
        unit, and a repetition.
        """
        s = self.settings
        # Scales are in radians on a sphere, in steps on a screen.
        unit_deg = math.degrees(1.0) if s.sphere else s.step_deg
        published = 3.0 * (s.scale_times_units * unit_deg) ** 2
        return np.array([published, (s.threshold**2 + 2.0 * s.test_scale**2) * unit_deg**2])

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
    settings = KaleidoSettings(
        rule,
        skip,
        w,
        slots,
        units,
        least,
        h is not None,
        sphere,
        *limits(space, bits, inside=True),
        turn=360 << bits,
        step_deg=float(g),
        threshold=float(l_thresh_deg / g) * unit,
        test_scale=0.0 if h is None else rounded_up(r_steps * slots / tests, unit),
        scale_times_units=rounded_up(r_steps * units / publish, unit),
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
        memory: Memory,
        vague: Floats,
    ) -> None:
        self.plan, self.draws, self.states, self.trace = plan, draws, states, trace
        self.memory, self.vague = memory, vague
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
                progress,
                tests.words,
                ahead_tests,
                points.words,
                ahead_points,
                self.memory,
                self.vague,
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
    all. With a memory of slots no sample is lost.
    """

    def __init__(
        self,
        plan: KaleidoPlan,
        streams: int,
        sources: Sequence[Source],
        memory: Memory | None = None,
    ) -> None:
        self.plan = plan
        self.fills = memory is not None
        self.memory = NO_MEMORY if memory is None else memory
        self.vague = plan.vague_deg2 if self.fills else np.empty(0)
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
        self.memory.forget()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Publish, repeat, or pass a lost sample on; fill it where there is a memory."""
        if self.fills:
            valid[...] = True  # what is lost is still NaN
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
            self._run_block(self.draws[0], self.states, x_deg, y_deg, valid, trace, self.memory)
        else:  # streams with words of their own, one after another
            for s, draws in enumerate(self.draws):
                row, states = slice(s, s + 1), self.states[s : s + 1]
                memory = self.memory.rows(row)
                self._run_block(
                    draws, states, x_deg[row], y_deg[row], valid[row], trace[row], memory
                )
        if self.traced:
            self.trace = trace
        return t_ns, x_deg, y_deg, valid

    def _run_block(
        self,
        draws: Draws,
        states: Ints,
        x_deg: Floats,
        y_deg: Floats,
        valid: Bools,
        trace: Ints,
        memory: Memory,
    ) -> None:
        trace = trace.reshape(-1)
        block = _KaleidoRun(
            self.plan, draws, states, x_deg, y_deg, valid, trace, memory, self.vague
        )
        draws.serve(block.decide, x_deg.size, self._skip)


def noise_scales_deg(
    settings: KaleidoSettings, x_deg: Floats, y_deg: Floats, valid: Bools
) -> Floats:
    """Scale b of the noise of what each sample shows, in degrees, from a released recording alone.

    Parameters
    ----------
    settings : KaleidoSettings
        The public numbers of the mechanism.
    x_deg, y_deg, valid : arrays, shape (samples,)
        As released.

    Returns
    -------
    array of float64, shape (samples,)
        Infinite before the first publication and where nothing is left to publish with.
    """
    unit_deg = math.degrees(1.0) if settings.sphere else settings.step_deg
    units = _units(
        settings.rule, settings.units, settings.slots, settings.window, x_deg, y_deg, valid
    )
    scale = settings.scale_times_units * unit_deg / np.maximum(units, 1e-300)
    return np.where(units > 0, scale, np.inf)


@compiled
def _units(
    rule: int, units: int, slots: int, window: int, x: Floats, y: Floats, valid: Bools
) -> Floats:
    """Units of the publication that each sample shows."""
    n = len(x)
    out = np.zeros(n)
    times, spent_at = np.empty(n, np.int64), np.empty(n, np.int64)
    first, after, spent, shown = 0, 0, 0, 0
    last_x, last_y = math.nan, math.nan
    for i in range(n):
        if valid[i] and not (x[i] == last_x and y[i] == last_y):
            while first < after and i - times[first] >= window:
                spent -= spent_at[first]
                first += 1
            shown, counted = share(rule, units, units // slots, spent)
            times[after], spent_at[after] = i, counted
            spent += counted
            after += 1
            last_x, last_y = x[i], y[i]
        out[i] = shown
    return out
