"""`temporal` and `spatial`: fewer samples, or fewer places.

David-John et al. (IEEE TVCG 2021). They add no noise, so none of them promises anything: they
are obfuscation, to be judged by attacks.

* `temporal`: of samples 1, 2, ... those numbered K p + 1 are released. The paper lets p run to G /
  K, which names a sample after the last one where K divides G; there is none to release. With
  `hold` the last released place is repeated, so that the rate stays.
* `spatial`: x <- floor(x / dx) dx and y likewise. The grid is 3840 x 2160 over 360 x 180 degrees,
  made L times coarser: N = 3840 / L columns and M = 2160 / L rows, not always whole numbers, so the
  last cell of a row or column may be short. The paper's table of variables has dx = 360 / N and dy
  = 180 / M (`steps="table"`), its prose dx = 180 / M and dy = 360 / N (`steps="prose"`).
  `published` gives the cell's corner, `corrected` its centre, which is right on average.

`smoothing` and `kalman`: the light defences of newer work, which blur gaze in time. They add no
noise and promise nothing.

* `smoothing` (Wilson et al., "Privacy-preserving gaze data streaming in immersive interactive
  virtual reality", IEEE TVCG 2024): two weighted means one after the other, over the last `first`
  and then the last `second` samples; the newest of n samples weighs n, the oldest 1.  `published`
  averages the two angles and fills the buffers with straight ahead before the first sample, as the
  authors' program does, so a trace begins far off and jumps through the whole range where x passes
  0. `corrected` averages directions on a sphere and takes only samples there have been.
* `kalman` (after Raju and Komogortsev 2025, arXiv 2511.09846, "an extremely lightweight Kalman
  filter"): a Kalman filter with the state position and velocity, white-noise acceleration and noisy
  positions, over directions on a sphere and over angles on a screen.

Weighted sums run in whole numbers (directions in steps of 2**-36, angles in steps of 2**-30
degrees), so each sample costs the same whatever the window and nothing drifts: with S the sum and T
the weighted sum of the last n values, a new value v gives T' = T - S + n v and S' = S + v - oldest.

A single sample is not smoothed by anything, so nothing is released before the second good sample in
the window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.mechanism import DAVIDJOHN2021, StreamMechanism
from gazeveil.privacy.stream.session import Samples, Stage

_MOST_K = 1_000_000
_MOST_L = 2160
_BELOW_90 = 89.99999999999999

_CLAIMS = MappingProxyType(
    {
        "corrected": Claim(
            "none",
            "user",
            "empirical",
            "no noise, so no promise; times on the nominal grid, no labels",
        ),
        "published": Claim(
            "none", "user", "empirical", "no noise, so no promise; times and labels pass"
        ),
    }
)


@dataclass(frozen=True)
class Filter(StreamMechanism):
    """Base of what draws nothing but what fills losses."""

    fills: ClassVar[str] = "recorded"

    @property
    def is_fixed(self) -> bool:
        """Whether nothing at all is drawn."""
        return self.losses == "keep" or not self.can_fill


@dataclass(frozen=True)
class Temporal(Filter):
    """Every K-th sample.

    Parameters
    ----------
    K : int
        The rate is divided by this.
    hold : bool
        Repeat the last released place instead of leaving samples out.
    """

    name: ClassVar[str] = "temporal"
    label: ClassVar[str] = "temporal downsampling"
    summary: ClassVar[str] = "Lowers the sampling rate."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":K=12", ":K=12,hold=True"))
    paper: ClassVar[str] = DAVIDJOHN2021
    claims: ClassVar[Mapping[str, Claim]] = _CLAIMS

    K: int
    hold: bool = False

    def check(self) -> None:
        """A whole number and a truth value."""
        self.store("K", checks.count(self.name, "K", self.K))
        if self.K > _MOST_K:
            checks.refuse(self.name, "K", f"at most {_MOST_K}", self.K)
        if not isinstance(self.hold, bool):
            checks.refuse(self.name, "hold", "True or False", self.hold)

    @property
    def stride(self) -> int:
        """K where samples are left out."""
        return 1 if self.hold else self.K

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(
            self.title,
            "leaving samples out is not random, so the samples that stay are as they were",
            ("every sample that stays",),
        )

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction]:
        """A window of w samples holds at most ceil(w / K) released ones; held, each of them K
        times.
        """
        some = -(-w // self.K)
        return (some * self.K if self.hold else some), r_deg

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """A counter, and the held place."""
        made = _Hold(self.K, streams) if self.hold else _Drop(self.K, streams)
        return self.filled(made, rate_hz, space, streams, bits)


class _Drop(Stage):
    def __init__(self, every: int, streams: int) -> None:
        self.every, self.phase = every, 0
        self.none: Samples = (
            np.empty((streams, 0), dtype=np.int64),
            np.empty((streams, 0)),
            np.empty((streams, 0)),
            np.empty((streams, 0), dtype=np.bool_),
        )

    # A reset leaves the count as it is: begun anew it would let more samples through than one of
    # every K.

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        n = x_deg.shape[1]
        first = -self.phase % self.every
        self.phase = (self.phase + n) % self.every
        if first >= n:
            return self.none
        if n == 1 or self.every == 1:
            return t_ns, x_deg, y_deg, valid
        kept = slice(first, None, self.every)
        return (
            t_ns[:, kept].copy(),
            x_deg[:, kept].copy(),
            y_deg[:, kept].copy(),
            valid[:, kept].copy(),
        )


class _Hold(Stage):
    def __init__(self, every: int, streams: int) -> None:
        self.every, self.phase = every, 0
        self.held = np.full((streams, 2), np.nan)

    def reset(self) -> None:
        # The count goes on: begun anew it would let more samples through than one of every K.
        self.held[...] = np.nan

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        _hold(x_deg, y_deg, valid, self.held, self.phase, self.every)
        self.phase = (self.phase + x_deg.shape[1]) % self.every
        return t_ns, x_deg, y_deg, valid


@compiled
def _hold(x: Floats, y: Floats, valid: Bools, held: Floats, phase: int, every: int) -> None:
    for s in range(x.shape[0]):
        a, b = held[s, 0], held[s, 1]
        for i in range(x.shape[1]):
            if (phase + i) % every == 0:
                a, b = x[s, i], y[s, i]
            x[s, i], y[s, i], valid[s, i] = a, b, not np.isnan(a)
        held[s, 0], held[s, 1] = a, b


@dataclass(frozen=True)
class Spatial(Filter):
    """Places on a coarse grid.

    Parameters
    ----------
    L : int
        How many times coarser than 3840 x 2160 over the sphere; 64 makes steps of 6 by 5.33
        degrees.
    steps : {"table", "prose"}
        Which of the paper's two statements of the step sizes.
    """

    name: ClassVar[str] = "spatial"
    label: ClassVar[str] = "spatial downsampling"
    summary: ClassVar[str] = "Rounds positions to a grid."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":L=64", ":L=64,reading=published"))
    paper: ClassVar[str] = DAVIDJOHN2021
    claims: ClassVar[Mapping[str, Claim]] = _CLAIMS

    L: int
    steps: str = "table"

    def check(self) -> None:
        """A whole number and a word."""
        self.store("L", checks.count(self.name, "L", self.L))
        if self.L > _MOST_L:
            checks.refuse(self.name, "L", f"at most {_MOST_L}", self.L)
        checks.one_of(self.name, "steps", self.steps, ("table", "prose"))

    @property
    def steps_deg(self) -> tuple[Fraction, Fraction]:
        """Step along x and along y, in degrees."""
        across, down = Fraction(360 * self.L, 3840), Fraction(180 * self.L, 2160)
        return (across, down) if self.steps == "table" else (down, across)

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(
            self.title,
            "rounding is not random: the cell of every sample is told",
            ("the cell of every sample, and when it changes",),
        )

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction]:
        """Rounding to a centre moves a place by at most half a step along each axis; to a corner,
        as the paper does, by a whole one.
        """
        across, down = self.steps_deg
        far = across + down
        return w, r_deg + (2 * far if self.reading == "published" else far)

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Two step sizes."""
        across, down = self.steps_deg
        made = _Snap(
            float(across), float(down), isinstance(space, Sphere), self.reading != "published"
        )
        return self.filled(made, rate_hz, space, streams, bits)


class _Snap(Stage):
    def __init__(self, across_deg: float, down_deg: float, sphere: bool, centre: bool) -> None:
        self.across_deg = across_deg
        self.down_deg = down_deg
        self.sphere = sphere
        self.centre = centre

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        if self.sphere:
            _snap(x_deg, self.across_deg, 0.0, 360.0, self.centre)
            _snap(y_deg, self.down_deg, 0.0, 180.0, self.centre)
        else:
            _snap(x_deg, self.across_deg, -_BELOW_90, _BELOW_90, self.centre)
            _snap(y_deg, self.down_deg, -_BELOW_90, _BELOW_90, self.centre)
        return t_ns, x_deg, y_deg, valid


@compiled
def _cell(value: float, step: float) -> float:
    """The whole number k with k step <= value < (k + 1) step, as products of doubles have it: a
    corner stays its own corner.
    """
    k = np.floor(value / step)
    if k * step > value:
        k -= 1.0
    elif (k + 1.0) * step <= value:
        k += 1.0
    return k


@compiled
def _snap(values: Floats, step: float, low: float, high: float, centre: bool) -> None:
    """Corner or centre of the cell, cut to the space; NaN stays NaN."""
    for s in range(values.shape[0]):
        for i in range(values.shape[1]):
            k = _cell(values[s, i], step)
            corner = max(k * step, low) if not np.isnan(k) else np.nan
            values[s, i] = 0.5 * (corner + min((k + 1.0) * step, high)) if centre else corner


MOST_WINDOW = 4096
_CORRECTED = Claim("none", "user", "empirical", "no noise, so no promise")
_NOT_COVERED = ("where people look and for how long", "movements slower than the filter")


@dataclass(frozen=True)
class Smoothing(Filter):
    """Two linearly weighted means in a row.

    Parameters
    ----------
    first, second : int
        Samples of the two windows, 1 to 4096; the authors use 10 and 50.
    """

    name: ClassVar[str] = "smoothing"
    label: ClassVar[str] = "weighted smoothing"
    summary: ClassVar[str] = "Replaces each sample by a weighted mean of the last ones."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":", ":reading=published"))
    paper: ClassVar[str] = (
        'Wilson et al., "Privacy-preserving gaze data streaming in immersive interactive virtual'
        ' reality: robustness and user experience", IEEE TVCG 2024'
    )
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {
            "corrected": _CORRECTED,
            "published": Claim(
                "none", "user", "empirical", "no noise, so no promise; times and labels pass"
            ),
        }
    )

    first: int = 10
    second: int = 50

    def check(self) -> None:
        """Two window lengths."""
        for name in ("first", "second"):
            size = checks.count(self.name, name, getattr(self, name))
            if size > MOST_WINDOW:
                checks.refuse(self.name, name, f"at most {MOST_WINDOW} samples", size)
            self.store(name, size)
        if self.first == self.second == 1:
            checks.refuse(
                self.name,
                "second",
                "above 1 where first is 1: windows of one sample release gaze as it is",
                self.second,
            )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(
            self.title,
            "a moving mean is not random, and who knows its weights can undo it",
            _NOT_COVERED,
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Two ring buffers."""
        made = _Weighted(
            self.first, self.second, streams, isinstance(space, Sphere), self.reading == "published"
        )
        return self.filled(made, rate_hz, space, streams, bits)


class _Weighted(Stage):
    def __init__(
        self, first: int, second: int, streams: int, sphere: bool, published: bool
    ) -> None:
        self.sphere, self.published = sphere, published
        # The last component counts samples: 1 where there was one. Rows 0 and 1 of `sums` are the
        # plain and the weighted sum.
        parts = 4 if sphere and not published else 3
        self.rings = (
            np.zeros((streams, first, parts), dtype=np.int64),
            np.zeros((streams, second, parts), dtype=np.int64),
        )
        self.sums = (
            np.zeros((streams, 2, parts), dtype=np.int64),
            np.zeros((streams, 2, parts), dtype=np.int64),
        )
        self.ticks = np.zeros((streams, 2), dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        self.ticks[...] = 0
        for ring, sums in zip(self.rings, self.sums, strict=True):
            ring[...] = 0
            if self.published:
                ring[..., 0] = 180 << 30 if self.sphere else 0
                ring[..., 1] = 90 << 30 if self.sphere else 0
                ring[..., 2] = 1
            n = ring.shape[1]
            sums[:, 0, :] = ring[:, 0, :] * n
            sums[:, 1, :] = ring[:, 0, :] * (n * (n + 1) // 2)

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        if self.published or not self.sphere:
            _smooth_angles(
                x_deg,
                y_deg,
                valid,
                *self.rings,
                *self.sums,
                self.ticks,
                self.sphere,
                self.published,
            )
        else:
            _smooth_directions(x_deg, y_deg, valid, *self.rings, *self.sums, self.ticks)
        return t_ns, x_deg, y_deg, valid


@compiled
def _put(ring: Ints, sums: Ints, s: int, at: int, c: int, value: np.int64) -> None:
    """One more value of component `c` into the window of stream `s`, over the oldest one."""
    sums[s, 1, c] += ring.shape[1] * value - sums[s, 0, c]
    sums[s, 0, c] += value - ring[s, at, c]
    ring[s, at, c] = value


@compiled
def _smooth_angles(
    x: Floats,
    y: Floats,
    valid: Bools,
    ring1: Ints,
    ring2: Ints,
    sums1: Ints,
    sums2: Ints,
    ticks: Ints,
    sphere: bool,
    published: bool,
) -> None:
    scale = float(1 << 30)
    n1, n2 = ring1.shape[1], ring2.shape[1]
    for s in range(x.shape[0]):
        at1, at2 = ticks[s, 0], ticks[s, 1]
        for i in range(x.shape[1]):
            ok = valid[s, i]
            if published and not ok:
                continue  # the authors' program knows no losses: a lost sample passes it by
            weight = np.int64(1) if ok else np.int64(0)
            _put(ring1, sums1, s, at1, 0, np.int64(np.rint(x[s, i] * scale)) if ok else np.int64(0))
            _put(ring1, sums1, s, at1, 1, np.int64(np.rint(y[s, i] * scale)) if ok else np.int64(0))
            _put(ring1, sums1, s, at1, 2, weight)
            share = 1.0 / sums1[s, 1, 2] if ok else 0.0
            _put(ring2, sums2, s, at2, 0, np.int64(np.rint(sums1[s, 1, 0] * share)))
            _put(ring2, sums2, s, at2, 1, np.int64(np.rint(sums1[s, 1, 1] * share)))
            _put(ring2, sums2, s, at2, 2, weight)
            at1, at2 = (at1 + 1 if at1 + 1 < n1 else 0), (at2 + 1 if at2 + 1 < n2 else 0)
            if ok and (sums1[s, 0, 2] > 1 or sums2[s, 0, 2] > 1):
                share = 1.0 / (sums2[s, 1, 2] * scale)
                x[s, i], y[s, i] = sums2[s, 1, 0] * share, sums2[s, 1, 1] * share
                if sphere:
                    # a mean of places below 360 may round to it
                    x[s, i], y[s, i] = (
                        min(x[s, i], 359.99999999999994),
                        min(y[s, i], 179.99999999999997),
                    )
            else:
                x[s, i], y[s, i], valid[s, i] = np.nan, np.nan, False
        ticks[s, 0], ticks[s, 1] = at1, at2


@compiled
def _smooth_directions(
    x: Floats,
    y: Floats,
    valid: Bools,
    ring1: Ints,
    ring2: Ints,
    sums1: Ints,
    sums2: Ints,
    ticks: Ints,
) -> None:
    scale, radian = float(1 << 36), math.pi / 180.0
    n1, n2 = ring1.shape[1], ring2.shape[1]
    for s in range(x.shape[0]):
        at1, at2 = ticks[s, 0], ticks[s, 1]
        for i in range(x.shape[1]):
            ok = valid[s, i]
            a, b, c, weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            if ok:
                lon, lat = (x[s, i] - 180.0) * radian, (90.0 - y[s, i]) * radian
                flat = math.cos(lat) * scale
                a = np.int64(np.rint(flat * math.sin(lon)))
                b = np.int64(np.rint(scale * math.sin(lat)))
                c = np.int64(np.rint(flat * math.cos(lon)))
                weight = np.int64(1)
            _put(ring1, sums1, s, at1, 0, a)
            _put(ring1, sums1, s, at1, 1, b)
            _put(ring1, sums1, s, at1, 2, c)
            _put(ring1, sums1, s, at1, 3, weight)
            share = 1.0 / sums1[s, 1, 3] if ok else 0.0
            for k in range(3):
                _put(ring2, sums2, s, at2, k, np.int64(np.rint(sums1[s, 1, k] * share)))
            _put(ring2, sums2, s, at2, 3, weight)
            at1, at2 = (at1 + 1 if at1 + 1 < n1 else 0), (at2 + 1 if at2 + 1 < n2 else 0)
            right, up, ahead = float(sums2[s, 1, 0]), float(sums2[s, 1, 1]), float(sums2[s, 1, 2])
            if (
                ok
                and (sums1[s, 0, 3] > 1 or sums2[s, 0, 3] > 1)
                and (right != 0.0 or up != 0.0 or ahead != 0.0)
            ):
                x[s, i], y[s, i] = _degrees(right, up, ahead)
            else:
                x[s, i], y[s, i], valid[s, i] = np.nan, np.nan, False
        ticks[s, 0], ticks[s, 1] = at1, at2


@compiled
def _degrees(right: float, up: float, ahead: float) -> tuple[float, float]:
    """Equirectangular degrees of a direction that is not zero."""
    x = math.atan2(right, ahead) * (180.0 / math.pi) + 180.0
    if x >= 360.0 or x < 0.0:
        x = 0.0
    y = 90.0 - math.atan2(up, math.sqrt(right * right + ahead * ahead)) * (180.0 / math.pi)
    return x, min(max(y, 0.0), 179.99999999999997)


@dataclass(frozen=True)
class Kalman(Filter):
    """A Kalman filter with a velocity.

    Parameters
    ----------
    noise_deg : number
        Standard deviation assumed of the tracker's noise; a larger one smooths more.
    acceleration_deg_s2 : number
        Standard deviation assumed of the eye's acceleration, in degrees per second squared; a
        smaller one smooths more.
    """

    name: ClassVar[str] = "kalman"
    label: ClassVar[str] = "Kalman filter"
    summary: ClassVar[str] = "Smooths gaze with a Kalman filter."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":", ":noise_deg=5"))
    paper: ClassVar[str] = (
        'Raju and Komogortsev, "Real-time lightweight gaze privacy-preservation techniques'
        ' validated via offline simulation", 2025'
    )
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType({"corrected": _CORRECTED})

    noise_deg: float = 1.0
    acceleration_deg_s2: float = 2000.0

    def check(self) -> None:
        """Two positive numbers."""
        for name in ("noise_deg", "acceleration_deg_s2"):
            self.store(name, checks.positive(self.name, name, getattr(self, name)))

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(
            self.title, "a filter is not random, and who knows it can undo it", _NOT_COVERED
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Position, velocity and their covariance."""
        made = _Filter(
            self.noise_deg, self.acceleration_deg_s2, rate_hz, streams, isinstance(space, Sphere)
        )
        return self.filled(made, rate_hz, space, streams, bits)


class _Filter(Stage):
    def __init__(
        self,
        noise_deg: float,
        acceleration_deg_s2: float,
        rate_hz: float,
        streams: int,
        sphere: bool,
    ) -> None:
        unit = math.radians(1.0) if sphere else 1.0
        self.sphere = sphere
        self.law = np.array(
            [1.0 / rate_hz, (noise_deg * unit) ** 2, (acceleration_deg_s2 * unit) ** 2]
        )
        # Per stream: three positions, three velocities, covariance (pp, pv, vv), and how many good
        # samples there were.
        self.state = np.zeros((streams, 10))

    def reset(self) -> None:
        self.state[...] = 0

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        _filter(x_deg, y_deg, valid, self.state, self.law, self.sphere)
        return t_ns, x_deg, y_deg, valid


@compiled
def _filter(x: Floats, y: Floats, valid: Bools, state: Floats, law: Floats, sphere: bool) -> None:
    dt, r, q = law[0], law[1], law[2]
    radian = math.pi / 180.0
    for s in range(x.shape[0]):
        z = state[s]
        for i in range(x.shape[1]):
            if z[9] > 0.0:
                for c in range(3):
                    z[c] += dt * z[3 + c]
                z[6] += dt * (2.0 * z[7] + dt * z[8]) + q * dt**4 / 4.0
                z[7] += dt * z[8] + q * dt**3 / 2.0
                z[8] += q * dt**2
            if not valid[s, i]:
                continue
            if sphere:
                lon, lat = (x[s, i] - 180.0) * radian, (90.0 - y[s, i]) * radian
                a = math.cos(lat) * math.sin(lon)
                b = math.sin(lat)
                c_ = math.cos(lat) * math.cos(lon)
            else:
                a, b, c_ = x[s, i], y[s, i], 0.0
            if z[9] == 0.0:
                z[0], z[1], z[2], z[3], z[4], z[5] = a, b, c_, 0.0, 0.0, 0.0
                # the first velocity may be anything an eye does in one step of time
                z[6], z[7], z[8], z[9] = r, 0.0, 2.0 * r / dt**2, 1.0
                x[s, i], y[s, i], valid[s, i] = np.nan, np.nan, False
                continue
            gain, drift = z[6] / (z[6] + r), z[7] / (z[6] + r)
            for c in range(3):
                miss = (a if c == 0 else b if c == 1 else c_) - z[c]
                z[c] += gain * miss
                z[3 + c] += drift * miss
            z[8] -= drift * z[7]
            z[7] *= 1.0 - gain
            z[6] *= 1.0 - gain
            if sphere:
                size = math.sqrt(z[0] ** 2 + z[1] ** 2 + z[2] ** 2)
                if size < 1e-9:
                    x[s, i], y[s, i], valid[s, i] = np.nan, np.nan, False
                    continue
                x[s, i], y[s, i] = _degrees(z[0], z[1], z[2])
            else:
                x[s, i], y[s, i] = (
                    min(max(z[0], -89.99999999999999), 89.99999999999999),
                    min(max(z[1], -89.99999999999999), 89.99999999999999),
                )
