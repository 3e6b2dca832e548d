"""Planar Laplace noise at many levels: N_b is N_finest plus all points of a cloud with w <= b**2
(:mod:`gazeveil.privacy.stream.graded.noise`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.checks import refuse
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.graded.noise import BLOCK, KEPT, Draw

_OCTAVE = math.log(2.0)
_TURN = 2.0 * math.pi


@dataclass
class PlanarCloud:
    """Planar Laplace noise at every level from the finest on, from one cloud of points; in floating
    point.

    Parameters
    ----------
    draw : callable
        See :data:`Draw`.
    finest : Fraction
        The finest level, in steps; drawn and kept, given out only to who asks for it.
    """

    draw: Draw = field(repr=False)
    finest: Fraction
    _kept: OrderedDict[tuple[int, int], tuple[Floats, ...]] = field(
        default_factory=OrderedDict, repr=False
    )

    def forget(self, draw: Draw) -> None:
        """Go on under another key: what was drawn belongs to the old one."""
        self.draw, self._kept = draw, OrderedDict()

    def __getstate__(self) -> dict[str, object]:
        # A copy has no key until it is given one of its own.
        return {"finest": self.finest, "_kept": OrderedDict()}

    def declare(self, scale: Fraction) -> None:
        """Refuse a level finer than the finest."""
        if scale < self.finest:
            refuse(
                "graded",
                "scale_deg",
                "not finer than the finest level of the session",
                scale,
                "The law of finer planar Laplace noise given coarser noise is not known in closed"
                " form: open a session with a finer level.",
            )

    def block(self, scale: Fraction, number: int) -> Floats:
        """Noise in steps, shape (BLOCK, 2)."""
        sample, mark, x, y = self._octave(-1, number)
        noise = np.stack((x, y), axis=1)
        limit = math.log(float(scale / self.finest)) * 2.0
        for octave in range(math.ceil(limit / _OCTAVE)):
            sample, mark, x, y = self._octave(octave, number)
            use = mark <= limit
            at = sample[use].astype(np.int64)
            noise[:, 0] += np.bincount(at, x[use], BLOCK)
            noise[:, 1] += np.bincount(at, y[use], BLOCK)
        return noise

    def _octave(self, octave: int, number: int) -> tuple[Floats, ...]:
        """Points with ln(w / finest**2) between octave ln 2 and (octave + 1) ln 2: sample, that
        logarithm, x, y; octave -1 is the finest noise.
        """
        points = self._kept.get((octave, number))
        if points is None:
            source = self.draw("cloud", octave, number)
            finest = float(self.finest)
            if octave < 0:
                u = _uniforms(source, 3 * BLOCK).reshape(3, BLOCK)
                radius = -finest * np.log(u[0] * u[1])
                points = (
                    np.arange(BLOCK, dtype=np.float64),
                    np.zeros(BLOCK),
                    radius * np.cos(_TURN * u[2]),
                    radius * np.sin(_TURN * u[2]),
                )
            else:
                counts = np.searchsorted(_POISSON, _uniforms(source, BLOCK), side="right")
                u = _uniforms(source, 4 * int(counts.sum())).reshape(4, -1)
                mark = (octave + u[0]) * _OCTAVE
                # sqrt(2 J) times a standard normal pair, J exponential of mean w
                radius = finest * np.exp(mark / 2) * 2.0 * np.sqrt(np.log(u[1]) * np.log(u[2]))
                points = (
                    np.repeat(np.arange(BLOCK, dtype=np.float64), counts),
                    mark,
                    radius * np.cos(_TURN * u[3]),
                    radius * np.sin(_TURN * u[3]),
                )
            self._kept[octave, number] = points
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return points


def _poisson_table(rate: float) -> Floats:
    """Distribution function of a Poisson number, as far as doubles tell it from 1."""
    terms = [math.exp(-rate)]
    for k in range(1, 40):
        terms.append(terms[-1] * rate / k)
    return np.cumsum(terms)


_POISSON = _poisson_table(1.5 * _OCTAVE)


def _uniforms(source: Source, count: int) -> Floats:
    """Doubles strictly between 0 and 1."""
    words = source.take(count)
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
