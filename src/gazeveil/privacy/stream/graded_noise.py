"""Noise at many levels at once: every coarser level is a finer one plus an increment that is
independent of it.

For a law with scale b let N_b be its noise. In each of the three families there is a process b ->
N_b with independent increments:

* `gaussian`, scale sigma: N_2 - N_1 is Gaussian with variance sigma_2**2 - sigma_1**2;
* `laplace`, scale b: N_2 - N_1 is 0 with probability c_1 / c_2, else Laplace with scale b_2. On
  whole numbers, P(k) proportional to a**|k| with a = exp(-1/b), this is exact with c = a / (1 -
  a)**2, because its characteristic function is 1 / (1 + c (2 - 2 cos t));
* `planar-laplace`, scale b: PL(b) is normal with variance 2 V, V Gamma(3/2, b**2), whose Laplace
  transform is (1 + b**2 s)**(-3/2). The ratio of two of these is that of a compound Poisson sum:
  points w of rate 3/2 per unit of ln w between b_1**2 and b_2**2, each an exponential of mean w.
  One cloud of points gives every level: N_b is N_finest plus all points with w <= b**2.

A level that comes late is drawn from its conditional law given its neighbours, so the joint law of
all levels never depends on the order in which they were asked for. After Koufogiannis, Han and
Pappas, "Gradual Release of Sensitive Data under Differential Privacy" (2015), for the first two.
Noise comes in blocks of :data:`BLOCK` samples, each block of each level from a key of its own.

Planar Laplace noise at many levels: N_b is N_finest plus all points of a cloud with w <= b**2
(:mod:`gazeveil.privacy.stream.graded_noise`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn, Protocol

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import (
    discrete_gaussian,
    discrete_laplace,
    draw_laplace,
    laplace_scale,
)
from gazeveil.privacy.randomness.rng import Source, WordArray, Words

#: Samples whose noise is drawn together.
BLOCK = 256

#: Fewest steps of the lattice in a scale, and in the increment between two levels.
LEAST_STEPS = 16

#: Blocks in memory, 4 KB each.
KEPT = 256


#: `draw(*keys)` gives the source of those keys, the same each time.
Draw = Callable[..., Source]


class LevelNoise(Protocol):
    """Noise of one family at the levels that were declared."""

    def declare(self, scale: Fraction) -> None:
        """Make a level known."""
        ...

    def block(self, scale: Fraction, number: int) -> Ints | Floats:
        """Noise in steps, shape (BLOCK, 2), of a declared level."""
        ...

    def forget(self, draw: Draw) -> None:
        """Go on under another key."""
        ...


@dataclass(frozen=True)
class _Rule:
    """How a level is drawn: from the one below it, the one above it, both, or by itself."""

    below: Fraction | None = None
    above: Fraction | None = None


def _refuse_near(scale: Fraction) -> NoReturn:
    allowed, instead = "farther from the levels there are", "Use the level that is there."
    refuse("graded", "scale_deg", allowed, scale, instead)


@dataclass
class LevelChain(ABC):
    """Levels on whole numbers, each tied to its neighbours at the time it was declared; `draw` is a
    :data:`Draw`.
    """

    draw: Draw = field(repr=False)
    rules: dict[Fraction, _Rule] = field(default_factory=dict)
    _kept: OrderedDict[tuple[Fraction, int], Ints] = field(default_factory=OrderedDict, repr=False)

    def declare(self, scale: Fraction) -> None:
        """Make a level known."""
        if scale in self.rules:
            return
        below = max((s for s in self.rules if s < scale), default=None)
        above = min((s for s in self.rules if s > scale), default=None)
        self.check(scale, below, above)
        self.rules[scale] = _Rule(below, above)

    def block(self, scale: Fraction, number: int) -> Ints:
        """Noise in steps, shape (BLOCK, 2)."""
        noise = self._kept.get((scale, number))
        if noise is None:
            rule = self.rules[scale]
            below = None if rule.below is None else self.block(rule.below, number).reshape(-1)
            above = None if rule.above is None else self.block(rule.above, number).reshape(-1)
            words = Words(self.draw(str(scale), str(rule.below), str(rule.above), number))
            noise = self.values(scale, rule, below, above, words).reshape(BLOCK, 2)
            self._kept[scale, number] = noise
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return noise

    def forget(self, draw: Draw) -> None:
        """Go on under another key: what was drawn belongs to the old one."""
        self.draw, self._kept = draw, OrderedDict()

    def __getstate__(self) -> dict[str, object]:
        # A copy has no key until it is given one of its own.
        return {"rules": dict(self.rules), "_kept": OrderedDict()}

    def check(self, scale: Fraction, below: Fraction | None, above: Fraction | None) -> None:
        """Refuse a level that lies too near to another."""
        for other in (below, above):
            if other is not None and abs(scale * scale - other * other) < LEAST_STEPS**2:
                _refuse_near(scale)

    @abstractmethod
    def values(
        self, scale: Fraction, rule: _Rule, below: Ints | None, above: Ints | None, words: Words
    ) -> Ints:
        """Noise of a level given its neighbours."""


# --- Gaussian
# --------------------------------------------------------------------------------------------------


@dataclass
class GaussianChain(LevelChain):
    """Discrete Gaussian noise; a level between or below others has the conditional law, a discrete
    Gaussian around another centre.
    """

    variances: dict[Fraction, Fraction] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "variances": dict(self.variances)}

    def check(self, scale: Fraction, below: Fraction | None, above: Fraction | None) -> None:
        """Fix the variance of a level: the increment to a coarser one is whole steps, so it may be
        a little more than asked for.
        """
        low = Fraction(0) if below is None else self.variances[below]
        wanted = scale * scale - low
        enough = wanted >= LEAST_STEPS**2 and (
            above is None or self.variances[above] - scale * scale >= LEAST_STEPS**2
        )
        if not enough:
            _refuse_near(scale)
        self.variances[scale] = scale * scale if above is not None else low + _root_up(wanted) ** 2

    def values(
        self, scale: Fraction, rule: _Rule, below: Ints | None, above: Ints | None, words: Words
    ) -> Ints:
        """Noise of a level given its neighbours."""
        start: Ints = np.zeros(2 * BLOCK, dtype=np.int64) if below is None else below
        low = Fraction(0) if rule.below is None else self.variances[rule.below]
        middle = self.variances[scale] - low
        if above is None:
            return start + discrete_gaussian(_root_up(middle), 2 * BLOCK, words)
        assert rule.above is not None
        high = self.variances[rule.above] - low
        centre = np.asarray((above - start) * float(middle / high), dtype=np.float64)
        return start + around(centre, math.sqrt(float(middle * (high - middle) / high)), words)


def _root_up(square: Fraction) -> int:
    return math.isqrt(math.ceil(square) - 1) + 1


def around(centre: Floats, sigma: float, words: Words) -> Ints:
    """Integers with P(k) proportional to exp(-(k - centre)**2 / (2 sigma**2)), by rejection from
    discrete Laplace around the centre.
    """

    def kernel(out: Ints, done: int, fresh_words: WordArray, position: int) -> tuple[int, int]:
        return _around(centre, sigma, out, done, fresh_words, position)

    return words.run(kernel, len(centre), 6)


@compiled
def _around(
    centre: Floats, sigma: float, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    t = np.floor(sigma) + 1.0
    most = (
        sigma * sigma / (2.0 * t * t) + 0.5 / t
    )  # of the exponent below: the centre is at most half a step from a whole number
    while done < len(out):
        after = position
        middle = np.rint(centre[done])
        while True:
            step, after = draw_laplace(np.uint64(t), np.uint64(1), words, after)
            if after < 0 or after >= len(words):
                return done, position
            gap = float(step) - (centre[done] - middle)
            chance = math.exp(abs(float(step)) / t - gap * gap / (2.0 * sigma * sigma) - most)
            word = words[after]
            after += 1
            if np.float64(word) * 2.0**-64 < chance:
                break
        out[done] = np.int64(middle) + step
        done += 1
        position = after
    return done, position


# --- Laplace
# --------------------------------------------------------------------------------------------------


def _ratio(scale: Fraction) -> float:
    t, s = laplace_scale(scale)
    return math.exp(-s / t)


def _unchanged(finer: Fraction, coarser: Fraction) -> float:
    """Probability c_1 / c_2 that the noise of two levels is the same."""
    return (math.sinh(0.5 / float(coarser)) / math.sinh(0.5 / float(finer))) ** 2


class LaplaceChain(LevelChain):
    """Discrete Laplace noise on each axis; levels between or below others by the conditional law,
    which is made of geometric pieces.
    """

    def values(
        self, scale: Fraction, rule: _Rule, below: Ints | None, above: Ints | None, words: Words
    ) -> Ints:
        """Noise of a level given its neighbours."""
        n = 2 * BLOCK
        if above is None:
            if below is None:
                return discrete_laplace(scale, n, words)
            assert rule.below is not None
            return below + changed(_unchanged(rule.below, scale), scale, n, words)
        assert rule.above is not None
        high = _ratio(rule.above)
        start = np.zeros(n, dtype=np.int64) if below is None else below
        # The increment from the level below is 0 with probability `same_low`; from zero noise it is
        # never "unchanged".
        same_low = 0.0 if rule.below is None else _unchanged(rule.below, scale)
        same_high = _unchanged(scale, rule.above)
        return start + pieces(above - start, _ratio(scale), high, same_low, same_high, words)


def changed(same: float, scale: Fraction, count: int, words: Words) -> Ints:
    """0 with probability `same`, else discrete Laplace."""
    t, s = laplace_scale(scale)

    def kernel(out: Ints, done: int, fresh_words: WordArray, position: int) -> tuple[int, int]:
        return _changed(same, np.uint64(t), np.uint64(s), out, done, fresh_words, position)

    return words.run(kernel, count, 3)


@compiled
def _changed(
    same: float, t: np.uint64, s: np.uint64, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    while done < len(out):
        if position >= len(words):
            return done, position
        after = position + 1
        value = np.int64(0)
        if np.float64(words[position]) * 2.0**-64 >= same:
            value, after = draw_laplace(t, s, words, after)
            if after < 0:
                return done, position
        out[done] = value
        done += 1
        position = after
    return done, position


def pieces(
    total: Ints, a: float, b: float, same_low: float, same_high: float, words: Words
) -> Ints:
    """The first of two independent increments given their sum.

    The first is 0 with probability `same_low`, else discrete Laplace with ratio a; the second 0
    with `same_high`, else with ratio b > a.
    """

    def kernel(out: Ints, done: int, fresh_words: WordArray, position: int) -> tuple[int, int]:
        return _pieces(total, a, b, same_low, same_high, out, done, fresh_words, position)

    return words.run(kernel, len(total), 2)


@compiled
def _pieces(
    total: Ints,
    a: float,
    b: float,
    same_low: float,
    same_high: float,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    unit_a, unit_b = (1.0 - a) / (1.0 + a), (1.0 - b) / (1.0 + b)  # probability of 0
    both = (1.0 - same_low) * (1.0 - same_high) * unit_a * unit_b
    log_tau, log_rho = math.log(a / b), math.log(a * b)
    rho = a * b
    tail = rho / (1.0 - rho)
    while done < len(out):
        if position + 2 > len(words):
            return done, position
        y = float(abs(total[done]))
        tau_y = math.exp(log_tau * y)
        # Weights over b**y: no first increment; no second one; both, with the first below 0, from 0
        # to y, above y.
        none_first = same_low * ((1.0 - same_high) * unit_b + (same_high if y == 0.0 else 0.0))
        none_second = (1.0 - same_low) * same_high * unit_a * tau_y
        below = both * tail
        inside = both * (1.0 - tau_y * math.exp(log_tau)) / (1.0 - math.exp(log_tau))
        beyond = both * tau_y * tail
        pick = (
            np.float64(words[position])
            * 2.0**-64
            * (none_first + none_second + below + inside + beyond)
        )
        u = (np.float64(words[position + 1]) + 0.5) * 2.0**-64
        if pick < none_first:
            x = 0.0
        elif pick < none_first + none_second:
            x = y
        elif pick < none_first + none_second + inside:
            x = min(np.floor(math.log1p(-u * (1.0 - tau_y * math.exp(log_tau))) / log_tau), y)
        else:
            far = 1.0 + np.floor(math.log(u) / log_rho)
            x = -far if pick < none_first + none_second + inside + below else y + far
        out[done] = np.int64(x) if total[done] >= 0 else -np.int64(x)
        done += 1
        position += 2
    return done, position


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
