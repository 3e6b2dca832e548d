"""Noisy places on a public lattice of a screen or a sphere, at one scale.

On a screen the noise is planar Laplace (density proportional to exp(-|z| / b), radius b (E1 + E2))
rounded to whole steps; on a sphere it is that of :mod:`gazeveil.privacy.noise.spherical`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.compiled import compiled, fused
from gazeveil.gaze.geometry import LAST_Y_DEG, Space, Sphere
from gazeveil.privacy.noise import bigint
from gazeveil.privacy.noise.arithmetic import cos_sin, log
from gazeveil.privacy.noise.spherical import (
    LARGE_WORD,
    LEAST_WORD,
    REJECTED,
    SETTLED,
    UNSETTLED,
    WIDE_RAD,
    arc_kept,
    sphere_point,
    tangent,
    words_of_try,
)
from gazeveil.privacy.randomness.rng import Source, WordArray, WordRecords

#: How much farther apart two places can be after rounding both to the lattice, in steps: sqrt(2),
#: rounded up.
ROUNDING_STEPS = Fraction(1414214, 10**6)

#: Largest scale in steps that the samplers can use.
MOST_SCALE_STEPS = 1 << 32

_TURN = 2.0**-64
# The south pole is shown just inside [0, 180).


@lru_cache(maxsize=64)
def lattice_bits(r_deg: Fraction) -> int:
    """2**bits steps to a degree: between 1024 and 2048 in r, so that rounding costs less than 1.4
    parts in 1000; at least 32 to a degree.
    """
    bits = 5
    while r_deg * (1 << bits) < 1024:
        bits += 1
    return bits


def rounded_up(value: Fraction, factor: float = 1.0) -> float:
    """A double that is not below value * factor, however its products and quotients are rounded
    afterwards.
    """
    return float(value) * factor * (1.0 + 2.0**-50)


def scale_unit(space: Space, step_deg: Fraction) -> float:
    """A step in the unit of scales: radians on a sphere, rounded up, and 1 on a screen."""
    return math.radians(float(step_deg)) * (1.0 + 2.0**-50) if isinstance(space, Sphere) else 1.0


def limits(space: Space, bits: int, inside: bool) -> tuple[int, int, int, int]:
    """Lowest and highest column, lowest and highest row; `inside` keeps places on the screen."""
    if isinstance(space, Sphere):
        return 0, (360 << bits) - 1, 0, 180 << bits
    if not inside:
        return 1 - (90 << bits), (90 << bits) - 1, 1 - (90 << bits), (90 << bits) - 1
    wide, high = (
        math.floor(side / 2 * (1 << bits)) for side in (space.width_deg, space.height_deg)
    )
    return -wide, wide, -high, high


@compiled
def around(x: int, turn: int) -> int:
    """A column from 0 to before `turn`, for one that is at most a turn outside."""
    x = x + turn if x < 0 else x
    return x - turn if x >= turn else x


@compiled
def shown_y_deg(y: int, step: float, sphere: bool) -> float:
    """A row in degrees; the south pole of a sphere just inside [0, 180)."""
    return min(y * step, LAST_Y_DEG) if sphere else y * step


@fused
def planar_unit(
    one: np.uint64, two: np.uint64, three: np.uint64
) -> tuple[float, float, float, float]:
    """Planar Laplace noise of scale 1 from three words: radius, a bound on its error, cosine and
    sine of its bearing.
    """
    e = -log((np.float64(one) + 0.5) * _TURN * ((np.float64(two) + 0.5) * _TURN))
    least = min(one, two)
    cut = 2.0**-48 if least > LARGE_WORD else (2.0**-43 if least >= LEAST_WORD else np.inf)
    cos, sin = cos_sin(np.float64(three) * _TURN)
    # the turn is known to within 2**-53, cosine and sine to within 2**-50
    return e, cut + e * 2.0**-46, cos, sin


@fused
def lattice_point(
    scale: float, radius: float, error: float, cos: float, sin: float
) -> tuple[np.int64, np.int64, int]:
    """The noise rounded to whole steps, and whether it is settled."""
    rho, bound = scale * radius, 2.0 * scale * error
    zx, zy = rho * cos, rho * sin
    nx, ny = np.rint(zx), np.rint(zy)
    if not (bound < 0.25 and abs(zx - nx) < 0.5 - bound and abs(zy - ny) < 0.5 - bound):
        return np.int64(0), np.int64(0), UNSETTLED
    return np.int64(nx), np.int64(ny), SETTLED


@fused
def screen_noise(
    scale: float, one: np.uint64, two: np.uint64, three: np.uint64
) -> tuple[np.int64, np.int64, int]:
    """Planar Laplace noise rounded to whole steps, and whether it is settled."""
    radius, error, cos, sin = planar_unit(one, two, three)
    return lattice_point(scale, radius, error, cos, sin)


class _KernelLaw(NamedTuple):
    """A :class:`LatticeLaw` as the kernel takes it."""

    sphere: bool
    step: float
    scale: float
    shrink: float
    lead: float
    words: int
    turn: int
    x_low: int
    x_high: int
    y_low: int
    y_high: int


@compiled
def _shown(law: _KernelLaw, x: int, y: int) -> tuple[float, float]:
    """A noisy lattice point in degrees."""
    x = around(x, law.turn) if law.sphere else x
    x, y = min(max(x, law.x_low), law.x_high), min(max(y, law.y_low), law.y_high)
    return x * law.step, shown_y_deg(y, law.step, law.sphere)


@compiled
def _add(
    law: _KernelLaw,
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int, int]:
    """Noise on places from one on, in place: places done, words used, and how the last try ended:
    SETTLED at the end, REJECTED for want of words.
    """
    per_step = 1.0 / law.step  # a power of two
    for i in range(done, len(x_deg)):
        if not valid[i]:
            x_deg[i], y_deg[i] = np.nan, np.nan
            continue
        ix, iy = np.int64(np.rint(x_deg[i] * per_step)), np.int64(np.rint(y_deg[i] * per_step))
        x, y, answer = ix, iy, REJECTED
        while answer == REJECTED:
            if position + law.words > len(words):
                return i, position, REJECTED
            one, two, three = words[position], words[position + 1], words[position + 2]
            four = words[position + law.words - 1]  # three words are enough for wide arcs
            if law.sphere:
                answer, side = arc_kept(law.scale, one, two, four, law.shrink, law.lead)
                if answer == SETTLED:
                    x, y, answer = sphere_point(
                        iy, law.scale, law.step, one, three, four, law.shrink, side
                    )
                    x += ix
            else:
                x, y, answer = screen_noise(law.scale, one, two, three)
                x, y = x + ix, y + iy
            if answer == UNSETTLED:
                return i, position, UNSETTLED
            position += law.words
        x_deg[i], y_deg[i] = _shown(law, int(x), int(y))
    return len(x_deg), position, SETTLED


@dataclass(frozen=True)
class LatticeLaw:
    """Noise that makes places r apart epsilon-indistinguishable.

    Parameters
    ----------
    space : Space
        Screen or sphere.
    r_deg : Fraction
        How far two neighbours can lie apart, in degrees.
    epsilon : Fraction
        Budget of one place.
    inside : bool
        Whether places are brought back to the screen.
    """

    space: Space
    r_deg: Fraction
    epsilon: Fraction
    inside: bool = False

    @property
    def step_deg(self) -> Fraction:
        """Step of the lattice."""
        return Fraction(1, 1 << lattice_bits(self.r_deg))

    @property
    def scale_steps(self) -> Fraction:
        """Scale b of the noise in steps, exactly."""
        return (self.r_deg / self.step_deg + ROUNDING_STEPS) / self.epsilon

    @property
    def scale(self) -> float:
        """Scale of the noise, rounded up: in steps, on a sphere in radians."""
        return rounded_up(self.scale_steps, scale_unit(self.space, self.step_deg))

    @property
    def scale_deg(self) -> float:
        """Scale of the noise in degrees."""
        if isinstance(self.space, Sphere):
            return math.degrees(self.scale)
        return self.scale * float(self.step_deg)

    def sampler(self, sources: Sequence[Source]) -> LatticeSampler:
        """What draws the noise: one source for each stream, or one secure one for all."""
        return LatticeSampler(self, sources)


class LatticeSampler:
    """Draws the noise of a :class:`LatticeLaw` for one stream of places or many; one source for
    each, or one secure one for all.
    """

    def __init__(self, law: LatticeLaw, sources: Sequence[Source]) -> None:
        bits, scale = lattice_bits(law.r_deg), law.scale
        sphere = isinstance(law.space, Sphere)
        self._usable = law.scale_steps <= MOST_SCALE_STEPS
        self._law = _KernelLaw(
            sphere,
            float(law.step_deg),
            scale,
            *tangent(min(scale, WIDE_RAD)),
            words_of_try(scale) if sphere else 3,
            360 << bits,
            *limits(law.space, bits, law.inside),
        )
        self._records = [WordRecords(s.child("points"), self._law.words) for s in sources]

    def add(self, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        """Add noise to places in degrees, shape (streams, n), in place; where `valid` is False
        they become NaN. All places are lost if the scale is beyond the samplers.
        """
        if not all(a.flags.c_contiguous for a in (x_deg, y_deg, valid)):
            raise ValueError("Noise is added in place, which needs contiguous arrays.")
        if not self._usable:
            x_deg[...], y_deg[...], valid[...] = np.nan, np.nan, False
            return
        rows = len(x_deg) if len(self._records) == 1 else 1
        for stream in range(0, len(x_deg), rows):
            part = slice(stream, stream + rows)
            self._add(
                self._records[stream if len(self._records) > 1 else 0],
                x_deg[part].reshape(-1),
                y_deg[part].reshape(-1),
                valid[part].reshape(-1),
            )

    def _add(self, records: WordRecords, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        law, done = self._law, 0
        with records:
            while True:
                done, records.position, answer = _add(
                    law, x_deg, y_deg, valid, done, records.words, records.position
                )
                if answer == SETTLED:
                    return
                if answer == REJECTED:
                    records.more(len(x_deg) - done)
                    continue
                words = records.drawn_on(law.words, bigint.MORE * law.words)
                ix, iy = round(x_deg[done] / law.step), round(y_deg[done] / law.step)
                point = bigint.point(
                    law.sphere, ix, iy, law.scale, law.step, words, law.shrink, law.lead
                )
                records.position += law.words
                if point is not None:
                    x_deg[done], y_deg[done] = _shown(law, *point)
                    done += 1
