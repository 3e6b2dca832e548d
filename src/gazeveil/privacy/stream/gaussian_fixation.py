"""`gaussian-fixation`: one noisy place for each fixation, released again and again until gaze has
moved on.

Independent noise on every sample is averaged away: the mean of n samples of a fixation has an error
of sigma / sqrt(n). Here the place of a fixation is released once with noise, and that release is
repeated, so averaging gains nothing and a fixation of any length costs what one sample costs.
Nothing of how the eye moves within a fixation is released.

A new place is released

* `changes="clock"`, the default: at the first good sample of every slot of `slot_s`, whatever gaze
  does. Then nothing but the places depends on gaze; a long fixation shows several independent
  draws.
* `changes="detected"`: when gaze has stayed within `near_deg` of one place for `least_s`, and that
  place is more than `apart_deg` away from the one released last; or when gaze has been away from
  that one for twice as long without coming to rest. The moments of change follow the fixations and
  are *not* protected: gaze that moves a little may change them, so there is no promise about any
  change of gaze.

The place that is released is the newest sample alone, rounded to the public grid, plus integer
Gaussian noise; so one release costs the rho of one sample of `gaussian`. Proof:
proofs/gaussian-fixation.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.blocks import gaussian_by_blocks
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.supply import Bits, Integers, PerBlock, Supply
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.gaussian import (
    Gaussian,
    GaussianLattice,
    GaussianMap,
    fold,
    gaussian_guarantee,
    noisy_place,
    stop,
)
from gazeveil.privacy.stream.losses.expected_gaze import Memory, expected_gaze, note, turn
from gazeveil.privacy.stream.losses.fill_stages import stream_keys
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.stage import Samples, Stage


@dataclass(frozen=True)
class GaussianFixation(StreamMechanism):
    """One noisy place per fixation.

    Parameters
    ----------
    sigma_deg : number
        Standard deviation of the noise along each axis, in degrees.
    r_deg : number
        How far a sample may move for the promise to hold, in degrees.
    w : int
        Samples of the window that the promise is about.
    changes : {"clock", "detected"}
        When a new place is released; with `detected` nothing is promised.
    near_deg, apart_deg, least_s : float
        Detection: how close samples stay in a fixation, how far a new fixation is from the last
        place, and how long gaze must stay.
    slot_s : float
        Clock: seconds between releases.
    """

    name: ClassVar[str] = "gaussian-fixation"
    label: ClassVar[str] = "Gaussian noise per fixation"
    summary: ClassVar[str] = "Adds one Gaussian draw to all samples of a fixation."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = "After David-John et al. 2021, with one draw per fixation"
    fills: ClassVar[str] = "released"
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("rho-zcdp", "window", "proved", "one draw per slot of a public clock")}
    )

    sigma_deg: Number
    r_deg: Number = 1
    w: int = 60
    changes: str = "clock"
    near_deg: float = 1.0
    apart_deg: float = 1.5
    least_s: float = 0.06
    slot_s: float = 0.25

    def check(self) -> None:
        """Store exact numbers where the promise uses them."""
        try:
            plain = Gaussian(self.sigma_deg, self.r_deg, self.w)
        except ParameterError as error:
            raise ParameterError(
                str(error).replace("of gaussian must", f"of {self.name} must"),
                name=error.name,
                got=error.got,
            ) from None
        for name in ("sigma_deg", "r_deg", "w"):
            self.store(name, getattr(plain, name))
        checks.one_of(self.name, "changes", self.changes, ("detected", "clock"))
        for name in ("near_deg", "apart_deg", "least_s", "slot_s"):
            self.store(name, checks.positive(self.name, name, getattr(self, name)))
        if self.changes == "detected":
            # Moments that follow gaze are no function of what was released.
            self.store("fills", "recorded")
        if self.apart_deg < self.near_deg:
            # a fixation may be as wide as near_deg and must not count as two
            checks.refuse(
                self.name, "apart_deg", f"at least near_deg = {self.near_deg:g}", self.apart_deg
            )

    @property
    def claim(self) -> Claim:
        """Moments that follow gaze promise nothing."""
        return (
            super().claim
            if self.changes == "clock"
            else Claim(
                "none", "user", "empirical", "one draw per fixation, at moments that follow gaze"
            )
        )

    def ticks(self, rate_hz: float) -> int:
        """Samples between two releases, at least."""
        return max(
            1, round((self.least_s if self.changes == "detected" else self.slot_s) * rate_hz)
        )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """The zCDP of the releases that fall into one window; none where
        their moments follow gaze.
        """
        rate = checks.positive(self.name, "rate_hz", rate_hz)
        if self.changes == "detected":
            return no_promise(
                self.title,
                "the moments at which new places are released follow gaze, so a small move of gaze"
                " may be told with certainty; use changes='clock'",
                ("when new places are released, which is when fixations begin",),
            )
        losses = GaussianMap(
            rate,
            space,
            GaussianLattice.of(exact(self.name, "sigma_deg", self.sigma_deg)),
            self.ticks(rate),
        )
        return gaussian_guarantee(
            self.title, losses, self.w, Fraction(self.r_deg), "proofs/gaussian-fixation.md"
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The place released last, and a candidate for the next."""
        lattice = GaussianLattice.of(exact(self.name, "sigma_deg", self.sigma_deg))
        gap = self.ticks(rate_hz)
        sources = bits.sources(streams, self.name, self.reading)
        supply = Supply(
            [Integers(partial(gaussian_by_blocks, lattice.sigma_steps), s) for s in sources],
            streams,
        )
        noise, sphere = PerBlock(supply, gap, 2), isinstance(space, Sphere)
        if self.losses == "fill" and self.changes == "clock":
            keys = stream_keys(streams, bits.sources(streams, self.name, self.reading, "losses"))
            memory = Memory.of(space, gap / rate_hz, keys)
            return _FilledSlots(lattice, sphere, gap, memory, noise)
        detection = (self.near_deg, self.apart_deg, self.changes == "detected")
        made = _FixationStage(lattice.bits, sphere, gap, detection, streams, noise)
        return self.filled(made, rate_hz, space, streams, bits)


class _FixationStage(Stage):
    def __init__(
        self,
        bits: int,
        sphere: bool,
        gap: int,
        detection: tuple[float, float, bool],
        streams: int,
        noise: PerBlock,
    ) -> None:
        self.bits = bits
        self.sphere = sphere
        self.gap = gap
        self.detection = detection
        self.noise = noise
        # Per stream: true place of the last release, candidate's place, samples it has lasted (-1:
        # nothing was released yet; -2: nothing may be released before the next slot), and samples
        # in a row away from the last release.
        self.places = np.zeros((streams, 6))
        self.places[:, 4] = -1.0
        self.released = np.zeros((streams, 2))

    def reset(self) -> None:
        """Forget the places. On a clock the slot under way stays used up, so that a window across
        the reset costs no more than any other.
        """
        detected = self.detection[2]
        self.places[...] = 0.0
        self.places[:, 4] = -1.0 if detected else -2.0
        if detected:
            self.noise.restart()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        if x_deg.shape[1]:
            offset, noise = self.noise.advance(x_deg.shape[1])
            _memoise(
                x_deg,
                y_deg,
                valid,
                noise,
                offset,
                self.gap,
                self.bits,
                self.sphere,
                *self.detection,
                self.places,
                self.released,
            )
        return t_ns, x_deg, y_deg, valid


class _FilledSlots(Stage):
    """One place at the first sample of every slot, good or lost."""

    def __init__(
        self, lattice: GaussianLattice, sphere: bool, gap: int, memory: Memory, noise: PerBlock
    ) -> None:
        self.lattice, self.sphere, self.gap = lattice, sphere, gap
        self.memory, self.noise = memory, noise
        self.released = np.full((len(memory.keys), 2), np.nan)

    def reset(self) -> None:
        """Forget the places; samples are lost until the next slot begins."""
        self.memory.forget()
        self.released[...] = np.nan

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        if x_deg.shape[1]:
            offset, noise = self.noise.advance(x_deg.shape[1])
            _fill_slots(
                x_deg,
                y_deg,
                valid,
                noise,
                offset,
                self.gap,
                self.lattice.bits,
                self.sphere,
                self.lattice.variance_deg2,
                self.memory,
                self.released,
            )
        return t_ns, x_deg, y_deg, valid


@compiled
def _fill_slots(
    x: Floats,
    y: Floats,
    valid: Bools,
    noise: Ints,
    offset: int,
    gap: int,
    bits: int,
    sphere: bool,
    variance: float,
    memory: Memory,
    released: Floats,
) -> None:
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            if (offset + i) % gap == 0:
                at = turn(memory, s)
                a, b = x[s, i], y[s, i]
                if not valid[s, i]:
                    a, b = expected_gaze(memory, s, at)
                block = 2 * ((offset + i) // gap)
                released[s, 0], released[s, 1] = noisy_place(
                    a, b, noise[s, block], noise[s, block + 1], bits, sphere
                )
                note(memory, s, at, released[s, 0], released[s, 1], variance)
            x[s, i], y[s, i] = released[s, 0], released[s, 1]
            valid[s, i] = not np.isnan(released[s, 0])


@compiled
def _apart(x0: float, y0: float, x1: float, y1: float, sphere: bool) -> float:
    """Distance in degrees, good for near places; columns of a sphere narrow towards its poles."""
    dx, dy = x1 - x0, y1 - y0
    if sphere:
        dx -= 360.0 * np.rint(dx / 360.0)
        dx *= math.sin(0.5 * (y0 + y1) * (math.pi / 180.0))
    return math.sqrt(dx * dx + dy * dy)


@compiled
def _memoise(
    x: Floats,
    y: Floats,
    valid: Bools,
    noise: Ints,
    offset: int,
    gap: int,
    bits: int,
    sphere: bool,
    near: float,
    apart: float,
    detected: bool,
    places: Floats,
    released: Floats,
) -> None:
    scale = float(np.int64(1) << bits)
    step = 1.0 / scale
    quarter = np.int64(90) << bits
    for s in range(x.shape[0]):
        p = places[s]
        for i in range(x.shape[1]):
            if not detected and (offset + i) % gap == 0:
                p[4] = -1.0
            if p[4] == -2.0:
                x[s, i], y[s, i], valid[s, i] = np.nan, np.nan, False
            if not valid[s, i]:
                continue
            a, b = x[s, i], y[s, i]
            new = p[4] < 0.0
            if detected and not new:
                if _apart(p[2], p[3], a, b, sphere) <= near:
                    p[4] += 1.0
                else:
                    p[2], p[3], p[4] = a, b, 0.0
                p[5] = p[5] + 1.0 if _apart(p[0], p[1], a, b, sphere) > apart else 0.0
                new = (p[4] >= gap and _apart(p[0], p[1], p[2], p[3], sphere) > apart) or p[
                    5
                ] >= 2 * gap
            if new:
                p[0], p[1], p[2], p[3], p[4], p[5] = a, b, a, b, 0.0, 0.0
                block = 2 * ((offset + i) // gap)
                u = np.int64(np.rint(a * scale)) + noise[s, block]
                v = np.int64(np.rint(b * scale)) + noise[s, block + 1]
                if sphere:
                    u, v = u % (4 * quarter), fold(v, 2 * quarter)
                else:
                    u, v = stop(u, quarter), stop(v, quarter)
                released[s, 0], released[s, 1] = u * step, v * step
            x[s, i], y[s, i] = released[s, 0], released[s, 1]
