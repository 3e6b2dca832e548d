"""The plan of a Kaleido stream, made of public numbers, and the stage that carries it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.noise.rng import Source, WordArray
from gazeveil.privacy.stream import kaleido_step as step
from gazeveil.privacy.stream import kaleido_sure as sure
from gazeveil.privacy.stream.kaleido_ahead import Records
from gazeveil.privacy.stream.kaleido_noise import WIDE_RAD
from gazeveil.privacy.stream.session import Samples, Stage

#: What may be done to a published point.
AFTER = ("none", "clamp", "snap", "posterior-mean")

#: How much farther apart two places can be after rounding both to the lattice, in steps: sqrt(2), rounded up.
ROUNDING_STEPS = Fraction(1414214, 10**6)

_UNIT_BITS = 20
_MOST_SCALE_STEPS = 1 << 32
_SPHERE_PRIOR_DEG = 20.0


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
    whole = np.zeros(16, dtype=np.int64)
    whole[step.RULE], whole[step.SKIP], whole[step.WINDOW], whole[step.SLOTS], whole[step.UNITS] = rule, skip, w, slots, units
    whole[step.LEAST_UNITS] = max(1, math.ceil(r_steps * units / (publish * _MOST_SCALE_STEPS)))
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
    whole[step.NARROW] = sphere and float(real[step.SCALE_TIMES_UNITS]) / max(usual, 1) <= WIDE_RAD
    nodes, weights = roots_genlaguerre(step.QUADRATURE, 0.5)
    real[step.NODES : step.NODES + step.QUADRATURE] = nodes
    real[step.NODES + step.QUADRATURE :] = np.log(weights / gamma(1.5))
    return Plan(whole, real, g, r_steps, tests / slots, publish)


class _Run:
    """One block of samples as the work of :meth:`Records.serve`; `trace` is empty where none is kept."""

    def __init__(
        self,
        plan: Plan,
        states: NDArray[np.int64],
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
        trace: NDArray[np.int64],
    ) -> None:
        self.plan, self.states, self.trace = plan, states, trace
        self.x_deg, self.y_deg, self.valid = x_deg, y_deg, valid
        self.known = np.zeros(5, dtype=np.int64)

    def __call__(self, done: int, words: WordArray, position: int, ahead: NDArray[np.float64], made: int) -> tuple[int, int]:
        whole, real = self.plan.whole, self.plan.real
        while True:
            done, position, why, where = step.run(
                self.x_deg, self.y_deg, self.valid, done, self.states, whole, real, self.known, self.trace, words, position, ahead, made
            )
            if why in (step.FINISHED, step.NEEDS_WORDS):
                return done, position
            after = self._surely(done, why, where, words)
            if after < 0:
                return done, position
            position = after

    def _surely(self, done: int, why: int, where: int, words: WordArray) -> int:
        """Decide one test or one try with whole numbers; the position after it, -1 when the words do not suffice."""
        whole, real = self.plan.whole, self.plan.real
        stream, i = divmod(done, self.x_deg.shape[1])
        state = self.states[stream]
        sphere, g = bool(whole[step.SPHERE]), float(real[step.STEP])
        ix, iy = round(self.x_deg[stream, i] / g), round(self.y_deg[stream, i] / g)
        if why == step.UNSETTLED_TEST:
            begun = 1
        else:
            units = self._units(state)
            scale = self.plan.scale(units)
            begun = 4 if sphere and scale <= WIDE_RAD else 3
        # whole records are used up, so that the next one begins where it would anyway
        lead = int(whole[step.TESTS]) if why == step.UNSETTLED_POINT else 0
        needed, per = sure.words_needed(begun), step.words_of_record(whole)
        end = where - lead - (-(lead + needed) // per) * per
        if end > len(words):
            return -1
        given = words[where : where + needed]
        self.known[step.TEST_KNOWN] = 1
        if why == step.UNSETTLED_TEST:
            last = int(state[step.LAST_X]), int(state[step.LAST_Y])
            distance = sure.distance_rad(ix, iy, *last, g) if sphere else sure.distance_steps(ix - last[0], iy - last[1])
            self.known[step.NEAR] = sure.test_passes(distance, float(real[step.THRESHOLD]), float(real[step.TEST_SCALE]), given)
            return end
        if sphere:
            found = sure.sphere_noise(ix, iy, scale, g, given)
        else:
            zx, zy = sure.screen_noise(scale, given)
            found = (ix + zx, iy + zy)
        if found is not None:
            self.known[step.POINT_KNOWN], self.known[step.POINT_X], self.known[step.POINT_Y] = 1, *found
        return end

    def _units(self, state: NDArray[np.int64]) -> int:
        # The run that stopped here has expired what is old, so the share is what it would have been.
        return self.plan.share(int(state[step.SPENT]))[0]


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
        self.words = [Records(s) for s in sources]
        self.states = plan.state(streams)
        self.trace: NDArray[np.int64] | None = None
        self.traced = False
        self._no_words = np.empty(0, dtype=np.uint64)
        self._nothing_known, self._no_trace = np.zeros(5, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._nothing_made = np.empty((0, step.NUMBERS))

    def reset(self) -> None:
        """Forget the last publication.

        What the last w samples spent stays charged and the next test keeps its distance from the last one, so that no window across the
        reset spends more than epsilon; until then samples come out as lost.
        """
        self.states[:, step.HAS] = 0

    def run(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> Samples:
        """Publish, repeat, or pass a lost sample on."""
        rows, n = x_deg.shape
        if rows * n == 1 and not self.traced:
            # Most single samples are between two tests and need no noise.
            done, *_ = step.run(
                x_deg, y_deg, valid, 0, self.states, self.plan.whole, self.plan.real, self._nothing_known, self._no_trace, self._no_words, 0,
                self._nothing_made, 0,
            )  # fmt: skip
            if done == 1:
                return t_ns, x_deg, y_deg, valid
        trace = np.empty((rows, n), dtype=np.int64) if self.traced else np.empty((rows, 0), dtype=np.int64)
        if len(self.words) == 1:
            self.words[0].serve(_Run(self.plan, self.states, x_deg, y_deg, valid, trace.reshape(-1)), rows * n, self.plan.whole, self.plan.real)
        else:
            for s, words in enumerate(self.words):
                row = slice(s, s + 1)
                words.serve(_Run(self.plan, self.states[row], x_deg[row], y_deg[row], valid[row], trace[s]), n, self.plan.whole, self.plan.real)
        if self.traced:
            self.trace = trace
        return t_ns, x_deg, y_deg, valid
