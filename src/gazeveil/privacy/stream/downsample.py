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
"""

from __future__ import annotations

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
class Temporal(StreamMechanism):
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
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = DAVIDJOHN2021
    fills: ClassVar[str] = "recorded"
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
class Spatial(StreamMechanism):
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
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = DAVIDJOHN2021
    fills: ClassVar[str] = "recorded"
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
