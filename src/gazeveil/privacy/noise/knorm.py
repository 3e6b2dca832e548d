"""Joint noise of many numbers whose l2 sensitivity is known: K-norm and staircase.

Noise of the l2 K-norm mechanism in R^D, rounded to the whole grid.

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

The staircase mechanism in the l2 norm: noise that is uniform on shells, exactly, on whole
numbers.

Geng, Kairouz, Oh and Viswanath ("The Staircase Mechanism in Differential Privacy", 2015) show that
in one dimension the least noise is not Laplace but a staircase: constant on steps as wide as the
sensitivity S, lower by exp(-epsilon) from step to step, the first step only gamma S wide. The same
shape in D dimensions,

    p(z) proportional to exp(-epsilon j)   where   R_{j-1} < |z| <= R_j,   R_j = R_0 + j S,   R_0 =
    gamma S,

is epsilon-DP for the same reason: a shift by at most S changes the shell by at most one. Where
epsilon is large against D, its variance is orders of magnitude below that of exp(-epsilon |z| / S);
where epsilon is small the two agree.

**Sampling is exact.** A shell is chosen with 128-bit weights. A whole vector uniform in a ball of
radius R comes by rejection: D discrete Gaussians with sigma about R / sqrt(D), kept with
probability exp(-(R^2 - |z|^2) / (2 sigma^2)) if |z| <= R, which makes every vector of the ball
equally likely; about one in sqrt(pi D) is kept. No floating point touches a vector.

**What is not known exactly** is how many whole vectors a shell has. Their number lies between the
volumes of the shell with its radii moved by sqrt(D) / 2 inwards and outwards, because each vector
owns a unit cube. The weights use volumes; the largest error that makes in the ratio of two
neighbouring shells, with 2**-36 for the floating-point weights themselves, is taken off epsilon
beforehand (:attr:`Shells.inner_epsilon`), so that the promise holds as written. The weight of the
outermost shell, where the staircase ends, is charged as :attr:`Shells.delta`. Proof:
proofs/dct-knorm.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy import rational
from gazeveil.privacy.noise.exact import draw_bernoulli_exp, draw_gaussians, draw_geometric
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


MOST_SHELL_DIMENSION = 64
LEAST_EPSILON = 1
LEAST_GAMMA = 2.0**-12

#: Largest sigma of a proposal: all squares of the kernel stay below 2**63.
_MOST_SIGMA = 1 << 26
_TAIL = -92 * math.log(2.0)
_WEIGHT_ERROR = 2.0**-36

# A fall of exp(-512) from shell to shell is as good as any steeper one, and doubles hold it to more
# digits than `_WEIGHT_ERROR` pays for.
_STEEPEST = 512.0
_GAMMAS = np.exp(np.linspace(math.log(LEAST_GAMMA), 0.0, 161))


@compiled
def _shells(
    dimension: int,
    high: WordArray,
    low: WordArray,
    radius: Ints,
    sigma: WordArray,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    four = np.uint64(4)
    while done < len(out):
        after = position
        if after + 2 > len(words):
            return done, position
        first, second = words[after], words[after + 1]
        after += 2
        shell = 0
        while shell < len(high) and (
            first > high[shell] or (first == high[shell] and second >= low[shell])
        ):
            shell += 1
        outer = np.uint64(radius[shell]) * np.uint64(radius[shell])
        inner = (
            np.uint64(radius[shell - 1]) * np.uint64(radius[shell - 1])
            if shell > 0
            else np.uint64(0)
        )
        b = np.uint64(2) * sigma[shell] * sigma[shell]
        vector = out[done : done + dimension]
        while True:
            filled, after = draw_gaussians(sigma[shell], vector, 0, words, after)
            if filled < dimension:
                return done, position
            total = np.uint64(0)
            for i in range(dimension):
                # a coordinate is below 2**31, so its square fits; the sum stops growing once the
                # vector is outside
                size = np.uint64(abs(vector[i]))
                total += size * size
                if total > outer:
                    break
            if total > outer or (shell > 0 and total <= inner):
                continue
            a4 = four * (outer - total)
            quarters = a4 // b
            if quarters > np.uint64(0):
                # exp(-quarters/4) is the probability that a geometric number reaches it
                v, _, after = draw_geometric(words, after)
                if after < 0:
                    return done, position
                if v < quarters:
                    continue
            kept, after = draw_bernoulli_exp(a4 - quarters * b, four * b, words, after)
            if after < 0:
                return done, position
            if kept:
                break
        done += dimension
        position = after
    return done, position


@dataclass(frozen=True, eq=False)
class Shells:
    """A staircase law on whole vectors, ready to draw from.

    Parameters
    ----------
    dimension : int
        Numbers per vector.
    epsilon : Fraction
        The promise for vectors at most `sensitivity` apart.
    inner_epsilon : float
        The fall from shell to shell; a little less than epsilon, for the counting of whole vectors.
    radius : array of int64, shape (shells,)
        Outer radii in steps.
    sigma : array of uint64, shape (shells,)
        Proposals' sigma.
    high, low : array of uint64, shape (shells - 1,)
        Cumulative weights in 128 bits.
    delta : Fraction
        What the end of the staircase costs, per vector.
    variance : float
        Of one coordinate, in steps squared.
    least_loss : float
        What two vectors one step apart certainly lose somewhere: any shift crosses from a shell to
        the next.
    """

    dimension: int
    epsilon: Fraction
    inner_epsilon: float
    radius: Ints
    sigma: WordArray
    high: WordArray
    low: WordArray
    delta: Fraction
    variance: float
    least_loss: float


def _shell_logs(outer: Floats, inner: Floats, power: int) -> Floats:
    """log(outer**power - inner**power), inner below outer."""
    with np.errstate(divide="ignore"):
        gone = power * (np.log(np.maximum(inner, 0.0)) - np.log(outer))
    return power * np.log(outer) + np.log(-np.expm1(gone))


def _weights(dimension: int, epsilon: float, gamma: Floats) -> tuple[Floats, Floats]:
    """Radii in units of the sensitivity and log weights of shells, as many as matter, shape
    (gammas, shells).
    """
    many = 4 + math.ceil(
        (100.0 + dimension * (8.0 + math.log(dimension + 1.0) - math.log(float(gamma.min()))))
        / epsilon
    )
    outer = gamma[:, None] + np.arange(float(many))
    logs = -epsilon * np.arange(many) + _shell_logs(outer, _inside(outer), dimension)
    return outer, logs - _log_sum(logs)


def _inside(outer: Floats) -> Floats:
    """Inner radii of shells: the outer one of the shell before."""
    inner = np.zeros_like(outer)
    inner[..., 1:] = outer[..., :-1]
    return inner


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=-1, keepdims=True)
    return top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True))


def staircase_variance(dimension: int, epsilon: float, gamma: Floats | float) -> Floats:
    """Variance of one coordinate for sensitivity 1, for each width of the first step."""
    outer, logs = _weights(dimension, epsilon, np.atleast_1d(np.asarray(gamma, dtype=np.float64)))
    inner = _inside(outer)
    # the mean square of the radius in a shell is D / (D + 2) times this quotient
    square = np.exp(_shell_logs(outer, inner, dimension + 2) - _shell_logs(outer, inner, dimension))
    return np.sum(np.exp(logs) * square, axis=-1) / (dimension + 2)


@lru_cache(maxsize=4096)
def best_gamma(dimension: int, epsilon: float) -> tuple[float, float]:
    """The first step's width with the least variance, from a fixed public list, and that variance
    for sensitivity 1.
    """
    variances = staircase_variance(dimension, epsilon, _GAMMAS)
    best = int(np.argmin(variances))
    return float(_GAMMAS[best]), float(variances[best])


def most_sensitivity(dimension: int, epsilon: Fraction, gamma: float) -> int:
    """The largest sensitivity in steps for which all shells fit into the kernel's whole numbers."""
    outer, logs = _weights(dimension, min(float(epsilon), _STEEPEST), np.array([gamma]))
    return int(_MOST_SIGMA * math.sqrt(dimension) / outer[0, _last(logs[0])])


def _last(logs: Floats) -> int:
    """The first shell whose weight is below the tail and stays there."""
    return int(np.flatnonzero(logs >= _TAIL)[-1]) + 1


def shells(dimension: int, epsilon: Fraction, sensitivity: int, gamma: float) -> Shells:
    """A staircase law.

    Parameters
    ----------
    dimension : int
        1 to 64.
    epsilon : Fraction
        At least 1; below, the staircase has next to nothing to gain and many shells.
    sensitivity : int
        l2 distance in steps; at most :func:`most_sensitivity`.
    gamma : float
        Width of the first step over the sensitivity, 2**-12 to 1.
    """
    # Long: the numbers of a law in the order of its proof.
    size = checks.count("shells", "dimension", dimension)
    if size > MOST_SHELL_DIMENSION:
        checks.refuse(
            "shells",
            "dimension",
            f"at most {MOST_SHELL_DIMENSION}",
            dimension,
            "Use l2 K-norm noise for more coefficients.",
        )
    if epsilon < LEAST_EPSILON:
        checks.refuse(
            "shells",
            "epsilon",
            f"at least {LEAST_EPSILON}",
            epsilon,
            "Use l2 K-norm noise for smaller budgets.",
        )
    if not LEAST_GAMMA <= gamma <= 1:
        checks.refuse("shells", "gamma", "from 2**-12 to 1", gamma)
    if not 1 <= sensitivity <= most_sensitivity(size, epsilon, gamma):
        checks.refuse(
            "shells",
            "sensitivity",
            "at least 1 step and small enough for the kernel's whole numbers",
            sensitivity,
            "Choose a coarser grid.",
        )
    first = max(1, math.floor(gamma * sensitivity))
    steep = min(float(epsilon), _STEEPEST)
    count = _last(_weights(size, steep, np.array([gamma]))[1][0]) + 1
    radius = first + sensitivity * np.arange(count, dtype=np.int64)
    real = radius.astype(np.float64)
    inside = _inside(real)
    half = math.sqrt(size) / 2
    if first <= 2 * half * size:
        checks.refuse(
            "shells",
            "gamma",
            "wide enough that the first step has many whole vectors",
            gamma,
            "Choose a finer grid or a larger gamma.",
        )
    volume = _shell_logs(real, inside, size)
    fewest = _shell_logs(real - half, np.where(inside > 0, inside + half, 0.0), size)
    most = _shell_logs(real + half, np.where(inside > 0, inside - half, 0.0), size)
    # p_j is weight over count: p_j / p_(j+1) = exp(inner) (volume_j / count_j) (count_(j+1) /
    # volume_(j+1)).
    counting = float(np.max((volume - fewest)[:-1] + (most - volume)[1:], initial=0.0))
    if counting > steep / 4:
        checks.refuse(
            "shells",
            "sensitivity",
            "so many steps that whole vectors can be counted by volume",
            sensitivity,
            "Choose a finer grid.",
        )
    inner_epsilon = steep - counting - _WEIGHT_ERROR
    weights = -inner_epsilon * np.arange(count) + volume
    weights -= _log_sum(weights)
    probability = np.exp(weights)
    # Doubles sum to 1 only up to 2**-50 or so. What is missing must not fall to the last shell,
    # whose own weight is 2**-92: exact shares of the exact sum.
    exactly = [Fraction(p) for p in probability.tolist()]
    whole, total, cumulative = sum(exactly, Fraction(0)), Fraction(0), []
    for share in exactly[:-1]:
        total += share
        cumulative.append(int(total / whole * (1 << 128)))
    last = Fraction((1 << 128) - (cumulative[-1] if cumulative else 0), 1 << 128)
    square = np.exp(_shell_logs(real, inside, size + 2) - volume)
    return Shells(
        size,
        epsilon,
        inner_epsilon,
        radius,
        np.maximum(1, np.rint(real / math.sqrt(size))).astype(np.uint64),
        np.array([c >> 64 for c in cumulative], dtype=np.uint64),
        np.array([c & ((1 << 64) - 1) for c in cumulative], dtype=np.uint64),
        2 * last + Fraction(1, 1 << 90),
        float(np.sum(probability * square)) / (size + 2),
        inner_epsilon
        - float(np.min((most - volume)[:-1] + (volume - fewest)[1:], initial=inner_epsilon))
        - _WEIGHT_ERROR,
    )


def shell_noise(law: Shells, count: int, words: Words) -> Ints:
    """Whole vectors of a staircase law, shape (count, dimension)."""
    many = checks.count("shell_noise", "count", count, least=0)
    per_value = math.ceil(6 * math.sqrt(math.pi * law.dimension)) + 4
    size = law.dimension
    kernel = partial(_shells, size, law.high, law.low, law.radius, law.sigma)
    return words.run(kernel, many * size, per_value).reshape(many, size)
