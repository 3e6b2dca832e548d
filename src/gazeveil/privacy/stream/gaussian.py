"""`gaussian`: independent Gaussian noise on every sample.

David-John et al. ("A privacy-preserving approach to streaming eye-tracking data", IEEE TVCG
2021):

    X' = X + N(0, sigma**2),   Y' = Y + N(0, sigma**2),   T' = T,  E' = E,

with sigma in degrees, up to 10 in the paper, and no formal promise.

* `published`: floating-point noise; times and labels pass unchanged.
* `corrected`: positions are rounded to a public grid of 2**-10 degrees (finer for a small sigma)
  and get integer discrete Gaussian noise. That is rho-zCDP: for one sample moved by at most r, rho
  = (r/g + sqrt 2)**2 / (2 (sigma/g)**2) with the grid step g (the sqrt 2 is what rounding may add),
  and w times that for a window of w samples. Proof: proofs/gaussian.md. Lost samples of a release
  are filled with what the released samples before let expect, and the same noise:
  proofs/losses.md.

Both bring the result back into the space: on a sphere x goes round at 360 and y is reflected at the
poles; on a screen angles stop short of 90 degrees.
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
from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.blocks import gaussian_by_blocks
from gazeveil.privacy.noise.exact import MOST_SIGMA, TAIL_DELTA
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.promise.privacy_map import StreamMap, farthest_coordinates_deg
from gazeveil.privacy.randomness.rng import ASSUMPTION
from gazeveil.privacy.randomness.supply import Bits, Integers, Normals, Supply
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.losses.expected_gaze import (
    Memory,
    expected_gaze,
    note_run,
    stream_keys,
    ticks_left,
)
from gazeveil.privacy.stream.mechanism import DAVIDJOHN2021, StreamMechanism
from gazeveil.privacy.stream.session import Samples, Stage

#: Coarsest grid: 2**10 steps to a degree, finer than trackers resolve.
GRID_BITS = 10
_FINEST_BITS = 30
_LEAST_STEPS = 64  # steps of the grid in one sigma, so that rounding costs next to nothing
_SQRT_8 = Fraction(2829, 1000)  # rounded up


@dataclass(frozen=True)
class GaussianLattice:
    """The public grid and the noise on it, both known from sigma alone.

    Parameters
    ----------
    bits : int
        2**bits steps to a degree.
    sigma_steps : int
        Noise in steps of the grid, rounded up.
    """

    bits: int
    sigma_steps: int

    @classmethod
    def of(cls, sigma_deg: Fraction) -> GaussianLattice:
        """The coarsest grid with at least 64 steps in sigma, not coarser than 2**-10 degrees."""
        bits = GRID_BITS
        while sigma_deg * (1 << bits) < _LEAST_STEPS and bits < _FINEST_BITS:
            bits += 1
        return cls(bits, max(1, math.ceil(sigma_deg * (1 << bits))))

    @property
    def variance_deg2(self) -> float:
        """Of the noise along an axis, in degrees squared."""
        return (self.sigma_steps / (1 << self.bits)) ** 2

    def rho(self, r_deg: Fraction) -> Fraction:
        """The zCDP of one noisy position that moves by at most `r_deg` degrees.

        Rounding adds at most one step to the move along each axis, so its square is at most (R +
        sqrt 2)**2 with R = r in steps.
        """
        steps = r_deg * (1 << self.bits)
        return (steps * steps + _SQRT_8 * steps + 2) / (2 * self.sigma_steps * self.sigma_steps)


@dataclass(frozen=True)
class GaussianMap(StreamMap):
    """Gaussian noise of its own on every released place: the places of a change add up.

    Parameters
    ----------
    lattice : GaussianLattice
        The grid and the noise.
    """

    lattice: GaussianLattice

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Each sample costs the same."""
        rho = self.lattice.rho(farthest_coordinates_deg(self.space, move_deg, metric))
        return Loss.concentrated(samples * rho, 2 * samples * TAIL_DELTA)


@dataclass(frozen=True)
class Gaussian(StreamMechanism):
    """Gaussian noise on every sample.

    Parameters
    ----------
    sigma_deg : number
        Standard deviation of the noise along each axis, in degrees; at most 1024.
    r_deg : number
        How far a sample may move for the promise to hold: along x and y together, in degrees of the
        space.
    w : int
        Samples of the window that the promise is about; 1 makes it a promise about one sample.

    Examples
    --------
    >>> Gaussian(10, r_deg=1, w=60).promise(60.0, Sphere()).numbers["w_samples"]
    Fraction(60, 1)
    """

    name: ClassVar[str] = "gaussian"
    label: ClassVar[str] = "Gaussian noise"
    summary: ClassVar[str] = "Adds Gaussian noise to every gaze sample."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":sigma_deg=1", ":sigma_deg=5"))
    paper: ClassVar[str] = DAVIDJOHN2021
    fills: ClassVar[str] = "released"
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {
            "corrected": Claim(
                "rho-zcdp", "window", "proved", "integer Gaussian noise on a public grid"
            ),
            "published": Claim(
                "none", "user", "empirical", "floating-point noise; the paper promises nothing"
            ),
        }
    )

    sigma_deg: Number
    r_deg: Number = 1
    w: int = 60

    def check(self) -> None:
        """Store exact numbers."""
        sigma = exact(self.name, "sigma_deg", self.sigma_deg, above=0)
        if sigma > MOST_SIGMA >> GRID_BITS or sigma < Fraction(1, 1 << _FINEST_BITS):
            checks.refuse(
                self.name,
                "sigma_deg",
                f"from 2**-{_FINEST_BITS} to {MOST_SIGMA >> GRID_BITS} degrees",
                self.sigma_deg,
            )
        self.store("sigma_deg", sigma)
        self.store("r_deg", exact(self.name, "r_deg", self.r_deg, above=0))
        self.store("w", checks.count(self.name, "w", self.w))

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """The zCDP of one window."""
        if self.reading == "published":
            return no_promise(
                self.title,
                "its paper claims none, and noise in floating point can give the true value away",
                ("anything that is constant over many samples",),
            )
        losses = GaussianMap(
            checks.positive(self.name, "rate_hz", rate_hz),
            space,
            GaussianLattice.of(Fraction(self.sigma_deg)),
        )
        r_deg = Fraction(self.r_deg)
        change = (
            Change.sample(r_deg, "coordinates")
            if self.w == 1
            else Change.window(self.w, move_deg=r_deg, metric="coordinates")
        )
        return Guarantee(
            "rho-zcdp",
            losses,
            change,
            mechanism=self.title,
            assumptions=(ASSUMPTION,),
            reason="proofs/gaussian.md",
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Noise in floating point or in whole steps."""
        sources = bits.sources(streams, self.name, self.reading)
        if self.reading == "published":
            return _FloatStage(
                float(self.sigma_deg), space, Supply([Normals(s) for s in sources], streams)
            )
        lattice = GaussianLattice.of(Fraction(self.sigma_deg))
        supply = Supply(
            [Integers(partial(gaussian_by_blocks, lattice.sigma_steps), s) for s in sources],
            streams,
        )
        if self.losses != "fill":
            return _LatticeStage(lattice.bits, space, supply)
        keys = stream_keys(streams, bits.sources(streams, self.name, self.reading, "losses"))
        return _FilledStage(
            lattice.bits, space, supply, lattice.variance_deg2, Memory.of(space, 1 / rate_hz, keys)
        )


class _FloatStage(Stage):
    def __init__(self, sigma_deg: float, space: Space, supply: Supply) -> None:
        self.sigma_deg, self.sphere, self.supply = sigma_deg, isinstance(space, Sphere), supply

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        noise = self.supply.take(2 * x_deg.shape[1])
        _add_float(x_deg, y_deg, noise, self.sigma_deg, self.sphere)
        return t_ns, x_deg, y_deg, valid


class _LatticeStage(Stage):
    def __init__(self, bits: int, space: Space, supply: Supply) -> None:
        self.bits, self.sphere, self.supply = bits, isinstance(space, Sphere), supply

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        noise = self.supply.take(2 * x_deg.shape[1])
        _add_lattice(x_deg, y_deg, valid, noise, self.bits, self.sphere)
        return t_ns, x_deg, y_deg, valid


class _FilledStage(_LatticeStage):
    """A lost sample is released as gaze that the public model expects, with the same noise."""

    def __init__(
        self, bits: int, space: Space, supply: Supply, variance_deg2: float, memory: Memory
    ) -> None:
        super().__init__(bits, space, supply)
        self.variance_deg2, self.memory = variance_deg2, memory

    def reset(self) -> None:
        self.memory.forget()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        noise = self.supply.take(2 * x_deg.shape[1])
        _add_filled(
            x_deg, y_deg, valid, noise, self.bits, self.sphere, self.variance_deg2, self.memory
        )
        return t_ns, x_deg, y_deg, valid


@inlined
def around(k: np.int64, size: np.int64) -> np.int64:
    """Whole steps that go round at `size`."""
    return k if 0 <= k < size else k % size


@inlined
def fold(k: np.int64, size: np.int64) -> np.int64:
    """Whole steps reflected at both ends into [0, size)."""
    if 0 <= k < size:  # nearly always, and a division is slow
        return k
    k %= 2 * size
    return k if k < size else 2 * size - 1 - k


@inlined
def stop(k: np.int64, size: np.int64) -> np.int64:
    """Whole steps that stay within (-size, size)."""
    return min(max(k, 1 - size), size - 1)


@inlined
def noisy_place(
    x: float, y: float, noise_x: np.int64, noise_y: np.int64, bits: int, sphere: bool
) -> tuple[float, float]:
    """A place rounded to the grid, with whole steps of noise, back in the space."""
    scale = float(np.int64(1) << bits)
    quarter = np.int64(90) << bits
    a, b = np.int64(np.rint(x * scale)) + noise_x, np.int64(np.rint(y * scale)) + noise_y
    if sphere:
        a, b = around(a, 4 * quarter), fold(b, 2 * quarter)
    else:
        a, b = stop(a, quarter), stop(b, quarter)
    return a * (1.0 / scale), b * (1.0 / scale)


@compiled
def _add_filled(
    x: Floats,
    y: Floats,
    valid: Bools,
    noise: Ints,
    bits: int,
    sphere: bool,
    variance: float,
    memory: Memory,
) -> None:
    """As :func:`_add_lattice`, with expected gaze where a sample is lost. What is expected follows
    from what was released, never from what was recorded.
    """
    for s in range(x.shape[0]):
        i = 0
        while i < x.shape[1]:
            last, end = min(x.shape[1], i + ticks_left(memory, s)), i + 1
            if valid[s, i]:
                while end < last and valid[s, end]:
                    end += 1
            else:
                x[s, i], y[s, i] = expected_gaze(memory, s)
                valid[s, i] = True
            for k in range(i, end):
                x[s, k], y[s, k] = noisy_place(
                    x[s, k], y[s, k], noise[s, 2 * k], noise[s, 2 * k + 1], bits, sphere
                )
                noise[s, 2 * k] = 0
                noise[s, 2 * k + 1] = 0
            note_run(memory, s, x, y, i, end, variance)
            i = end


@compiled
def _add_lattice(x: Floats, y: Floats, valid: Bools, noise: Ints, bits: int, sphere: bool) -> None:
    """Round to the grid, add whole steps, come back into the space; the noise is overwritten."""
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            if valid[s, i]:
                x[s, i], y[s, i] = noisy_place(
                    x[s, i], y[s, i], noise[s, 2 * i], noise[s, 2 * i + 1], bits, sphere
                )
            noise[s, 2 * i] = 0
            noise[s, 2 * i + 1] = 0


@compiled
def _add_float(x: Floats, y: Floats, noise: Floats, sigma: float, sphere: bool) -> None:
    """Add normals and come back into the space; NaN stays NaN; the noise is overwritten."""
    below_180, below_90 = 179.99999999999997, 89.99999999999999
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            a, b = x[s, i] + sigma * noise[s, 2 * i], y[s, i] + sigma * noise[s, 2 * i + 1]
            if sphere:
                if a < 0.0 or a >= 360.0:
                    a -= 360.0 * np.floor(a / 360.0)
                    if a < 0.0 or a >= 360.0:
                        a = 0.0
                if b < 0.0 or b >= 180.0:
                    b = abs(b - 360.0 * np.floor((b + 180.0) / 360.0))
                    b = min(b, below_180)
            else:
                a, b = min(max(a, -below_90), below_90), min(max(b, -below_90), below_90)
            x[s, i], y[s, i] = a, b
            noise[s, 2 * i] = 0.0
            noise[s, 2 * i + 1] = 0.0
