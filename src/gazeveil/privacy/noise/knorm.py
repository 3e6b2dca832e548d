"""Noise of the l2 K-norm mechanism in R^D, rounded to the whole grid.

Density proportional to exp(-|z| / scale) with the Euclidean norm (Hardt and Talwar 2010, the ball
of the l2 norm): adding it to a vector of l2 sensitivity S gives pure (S / scale)-DP. Its radius is
Gamma(D, scale), its direction uniform.

**One formula, no rejection.** With m = ceil(D / 2) pairs of exponentials E_i and angles T_i, the D
numbers sqrt(E_i) cos T_i, sqrt(E_i) sin T_i (the last sine is left out for odd D) are normal up to
a factor, so they point in a uniform direction, which is independent of their length; and the sum of
the E_i and of floor(D / 2) further exponentials is Gamma(D) and independent of that direction.

**Rounding is right, not nearly right.** A value is a function of D + m uniform reals; the sampler
knows their first 64 bits. Double precision gives the vector and a bound on its error. If no
coordinate is that close to a half-integer, the rounded vector is settled, whatever the further bits
are. Otherwise the uniforms are drawn on to 256, 2,048 and 8,192 bits, until integers
(:mod:`gazeveil.privacy.rational`) settle it. Proof: proofs/noise-knorm.md. It assumes that the
platform's log, sqrt, sin and cos are within 2 units in the last place, which the tests measure.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy import rational
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.rational import Number, exact

MOST_DIMENSION = 1 << 12
LEAST_SCALE = Fraction(1, 1 << 20)
MOST_SCALE = 1 << 40

#: Assumption of every guarantee that rests on this sampler.
ASSUMPTION = "the platform's log, sqrt, sin and cos are within two units in the last place"

_DRAWN_ON = (4, 32, 128)  # words per uniform where the first does not settle a vector
_FINISHED, _NEEDS_WORDS, _UNSETTLED = 0, 1, 2


# Long: one loop over vectors whose words are given back where they do not suffice.
@compiled
def _settled(
    dimension: int,
    scale: float,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
    vector: Floats,
) -> tuple[int, int, int]:
    """Vectors until one is not settled by double precision; `vector` is room for one."""
    pairs, more = (dimension + 1) // 2, dimension // 2
    uniforms = dimension + pairs
    summing = 2.0**-50 + dimension * 2.0**-52  # roundings of the two sums and of the last products
    while done < len(out):
        if position + uniforms > len(words):
            return done, position, _NEEDS_WORDS
        radius, radius_error, worst, sum_square, sum_error = 0.0, 0.0, 0.0, 0.0, 0.0
        settled = True
        for i in range(pairs + more):
            word = words[position + i]
            if word < np.uint64(1 << 44):
                # the first 64 bits of a uniform below 2**-20 say too little about its logarithm
                settled = False
                break
            uniform = (np.float64(word) + 0.5) * 2.0**-64
            e = -math.log(uniform)
            # bits of the uniform not drawn yet, error of log, two roundings of the uniform
            error = 2.0**-64 / uniform + e * 2.0**-51 + 2.0**-51
            radius += e
            radius_error += error
            if i < pairs:
                turn = np.float64(words[position + pairs + more + i]) * (2.0 * math.pi * 2.0**-64)
                h = math.sqrt(abs(e))
                if h <= 0.0:
                    settled = False
                    break
                a, b = h * math.cos(turn), h * math.sin(turn)
                y_error = (
                    error / h + h * 2.0**-48
                )  # three roundings of an angle up to 2 pi, one cosine, one root, one product
                vector[2 * i] = a
                sum_square += a * a
                sum_error += y_error * y_error
                if 2 * i + 1 < dimension:
                    vector[2 * i + 1] = b
                    sum_square += b * b
                    sum_error += y_error * y_error
                worst = max(worst, y_error)
        if settled and sum_square > 0.0:
            length = math.sqrt(sum_square)
            factor = scale * radius / length
            relative = math.sqrt(sum_error) / length
            # doubled, because the bounds are themselves rounded
            bound = 2.0 * (
                factor * worst + scale * radius * (relative + summing) + scale * radius_error
            )
            if not bound < 0.25:
                settled = False
            else:
                for j in range(dimension):
                    z = factor * vector[j]
                    nearest = np.rint(z)
                    if abs(z - nearest) > 0.5 - bound:
                        settled = False
                        break
                    out[done + j] = np.int64(nearest)
        else:
            settled = False
        if not settled:
            return done, position, _UNSETTLED
        done += dimension
        position += uniforms
    return done, position, _FINISHED


def _surely(
    dimension: int, scale: Fraction, words: WordArray, width: int
) -> tuple[list[int], bool]:
    """One vector from uniforms of `width` words each, and whether that settles it.

    The words are the first ones of all uniforms, then what each tier of :data:`_DRAWN_ON` adds to
    them, uniform by uniform.
    """
    pairs, more = (dimension + 1) // 2, dimension // 2
    uniforms = dimension + pairs
    numbers, before = [0] * uniforms, 0
    for tier in (1, *_DRAWN_ON):
        if tier <= width:
            rows = (
                words[before * uniforms : tier * uniforms]
                .reshape(uniforms, tier - before)
                .astype(">u8")
            )
            numbers = [
                (u << (64 * (tier - before))) + int.from_bytes(row.tobytes(), "big")
                for u, row in zip(numbers, rows, strict=True)
            ]
            before = tier
    bits = 64 * width
    work = bits + 1  # the middle of the interval that is left: 2 u + 1 of 2**(bits + 1)
    e = [max(0, -rational.log(2 * u + 1, work)) for u in numbers[: pairs + more]]
    y: list[int] = []
    for i in range(pairs):
        cos, sin = rational.cos_sin_of_turn(2 * numbers[pairs + more + i] + 1, work)
        h = math.isqrt(e[i] << work)
        y += [(h * cos) >> work, (h * sin) >> work]
    y = y[:dimension]
    length = math.isqrt(sum(c * c for c in y))
    radius = Fraction(sum(e), 1 << work) * scale
    z = [radius * c / max(length, 1) for c in y]
    # Each smallness of a number on the way costs that many bits; 100 more cover the dimension, the
    # scale and all roundings.
    small = (
        bits
        - min(numbers[: pairs + more]).bit_length()
        + 2 * work
        - min(e[:pairs]).bit_length()
        - length.bit_length()
    )
    error = Fraction(1, 1 << max(0, bits - max(0, small) - int(radius).bit_length() - 100))
    return [round(c) for c in z], all(abs(c - math.floor(c) - Fraction(1, 2)) > error for c in z)


class _KNormKernel:
    def __init__(self, dimension: int, scale: Fraction) -> None:
        self.dimension, self.scale = dimension, scale
        self.uniforms = dimension + (dimension + 1) // 2
        self.vector = np.empty(dimension + 1, dtype=np.float64)

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        while True:
            done, position, why = _settled(
                self.dimension, float(self.scale), out, done, words, position, self.vector
            )
            if why != _UNSETTLED:
                return done, position
            for width in _DRAWN_ON:
                after = position + width * self.uniforms
                if after > len(words):
                    return done, position
                vector, settled = _surely(self.dimension, self.scale, words[position:after], width)
                if settled:
                    break
            out[done : done + self.dimension] = vector
            done, position = done + self.dimension, after


def knorm(dimension: int, scale_steps: Number, count: int, words: Words) -> Ints:
    """Vectors of l2 K-norm noise, each coordinate rounded to the nearest whole number.

    Added to vectors of whole numbers whose l2 sensitivity is S steps, they give pure (S /
    scale_steps)-DP up to :data:`~gazeveil.privacy.noise.exact.TAIL_DELTA` for each vector and every
    epsilon up to 100: that 8,192 bits do not settle it.

    Parameters
    ----------
    dimension : int
        Numbers per vector, 1 to 4096.
    scale_steps : Fraction or other number
        Scale in grid steps, 2**-20 to 2**40. Beyond 2**28 many values need the slow arithmetic:
        choose a coarser grid.
    count : int
        How many vectors.
    words : Words
        Random bits.

    Returns
    -------
    array of int64, shape (count, dimension)
    """
    size = checks.count("knorm", "dimension", dimension)
    scale = exact("knorm", "scale_steps", scale_steps, above=0)
    if size > MOST_DIMENSION:
        checks.refuse(
            "knorm", "dimension", f"at most {MOST_DIMENSION}", dimension, "Use fewer coefficients."
        )
    if not LEAST_SCALE <= scale <= MOST_SCALE:
        checks.refuse(
            "knorm",
            "scale_steps",
            "from 2**-20 to 2**40 grid steps",
            scale_steps,
            "Choose another grid.",
        )
    many = checks.count("knorm", "count", count, least=0)
    return words.run(_KNormKernel(size, scale), many * size, 2).reshape(many, size)
