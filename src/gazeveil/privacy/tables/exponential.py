"""Exponential-DP: noise on every value of a feature table (Steil et al. 2019, as restated in "For Your Eyes Only", ETRA 2022).

Three readings, with t_max the longest recording of a task (of a stimulus where no task is named), R a feature's public range and delta
its range in the data:

* `published`, to the letter: lambda = epsilon / (2 t_max delta), y exponential with mean 1/lambda, noise +-ln(y) / (lambda t_max). With
  b = 2 delta / epsilon and c = ln(2 t_max delta / epsilon) the noise is +-b (ln E + c) with E standard exponential, so its variance is
  b**2 (pi**2/6 + (gamma_E - c)**2). Its claim is false: :func:`published_loss` gives the loss of one value, and b does not grow with t_max.
* `intended`: Laplace noise with scale 1/lambda = 2 t_max delta / epsilon, which the printed recipe turns into if y is uniform and the
  second division by t_max is dropped. False only because delta and t_max come from the data and the noise from floats.
* `corrected`: discrete Laplace noise with scale t_max R / epsilon on a public grid, at a public length.

proofs/exponential-dp.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.exactly import Number, exact
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, tail_delta
from gazeveil.privacy.noise.rng import Words, source
from gazeveil.privacy.noise.uniform import generator
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.promise import Share, proved, refuted
from gazeveil.privacy.tables.sequences import (
    STEPS,
    RecordingKey,
    Sequences,
    lattice,
    rebuild,
    rebuild_rows,
    sequences,
)

#: Units the budget may be given for: this mechanism has no chunks.
UNITS = ("recording-feature", "recording", "user")

_PUBLISHED_FALSE = (
    "the noise does not grow with the length of the recording, so a recording of t vectors loses at least t/2 times epsilon; its law is not Laplace:"
    " at a range of 1 and 100 vectors a single value loses {loss:.2f}, and all of them a hundred times that, where {claimed:g} is claimed;"
    " and the range it is scaled by is taken from the data"
)
_INTENDED_FALSE = (
    "the range and the length that scale the noise are taken from the data, so one person's values change the noise of all others, and floating-point"
    " Laplace noise tells the value it was added to"
)


def task_of(key: RecordingKey) -> str:
    """The task of a recording as the papers' loops over tasks mean it: the stimulus where no task is named."""
    return key[3] or key[1]


@dataclass(frozen=True)
class ExponentialDP(Mechanism[FeatureTable]):
    """Exponential-DP noise on a feature table.

    Parameters
    ----------
    epsilon : number
        Budget of one recording-feature, or of the unit `per` names.
    per : str
        `recording-feature`, `recording` or `user`: what epsilon is the whole budget of.
    length : int, optional
        Public number of rows of a recording (`corrected`); None takes the longest recording's and assumes it public.
    reading : str
        `corrected`, `published` or `intended`.

    Examples
    --------
    >>> print(ExponentialDP("1/2"))
    exponential-dp:epsilon=1/2,per=recording-feature,reading=corrected
    """

    epsilon: Number
    per: str = "recording-feature"
    length: int | None = None

    name: ClassVar[str] = "exponential-dp"
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "Steil et al. 2019; David-John et al., For Your Eyes Only (ETRA 2022)"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim("epsilon-dp", "recording-feature", "proved", "discrete Laplace noise, public range and length"),
        "intended": Claim("epsilon-dp", "recording-feature", "refuted", "Laplace noise scaled by the data's own range"),
        "published": Claim("epsilon-dp", "recording-feature", "refuted", "noise of the wrong law that does not grow with the recording"),
    }

    def check(self) -> None:
        """Store the budget exactly."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        checks.one_of(self.name, "per", self.per, UNITS)
        if self.length is not None:
            self.store("length", checks.count(self.name, "length", self.length))

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Add noise to every value of a table; see :class:`Mechanism`.

        Raises
        ------
        DataError
            For a table without rows or, where `corrected`, without bounds; for missing values or a constant feature otherwise.
        """
        seqs = sequences(self.name, data)
        share = Share.of(self._epsilon, self.per, seqs)
        return self._corrected(seqs, share, seed) if self.reading == "corrected" else self._with_data_range(seqs, share.block, seed)

    @property
    def _epsilon(self) -> Fraction:
        return exact(self.name, "epsilon", self.epsilon)

    def _corrected(self, seqs: Sequences, share: Share, seed: int | None) -> Release[FeatureTable]:
        grid = lattice(self.name, seqs, self.length)
        scale = Fraction(grid.length * STEPS) / share.block
        if scale > MOST_T:
            least = Fraction(grid.length * STEPS, MOST_T) * (self._epsilon / share.block)
            checks.refuse(self.name, "epsilon", f"at least {float(least):.2g} here (below, noise drowns any value)", str(self.epsilon), "Nothing was released.")
        words = Words(source(seed, self.name))
        noise = discrete_laplace(scale, grid.values.size, words).reshape(grid.values.shape)
        guarantee = proved(self.title, share, grid.length, self.length is None, "proofs/exponential-dp.md", tail_delta(share.block, grid.values.size))
        table = rebuild(seqs, grid.real(grid.values + noise))
        return Release(table, guarantee if seed is None else guarantee.tested(), self.provenance(seed), grid.notes())

    def _with_data_range(self, seqs: Sequences, epsilon: Fraction, seed: int | None) -> Release[FeatureTable]:
        values = complete_values(self, seqs)
        delta = values.max(axis=0) - values.min(axis=0)
        if (delta == 0).any():
            constant = seqs.table.columns[int(np.flatnonzero(delta == 0)[0])]
            raise DataError(
                f"{self.title} scales its noise by a feature's range in the data, and '{constant}' is constant. Drop it, or use reading='corrected'."
                " Nothing was released."
            )
        draw = generator(source(seed, self.name, self.reading))
        longest: dict[str, int] = {}
        for key, n in zip(seqs.keys, seqs.lengths.tolist(), strict=True):
            longest[task_of(key)] = max(n, longest.get(task_of(key), 0))
        parts = []
        for i, key in enumerate(seqs.keys):
            rows, t_max = seqs.rows(i), longest[task_of(key)]
            padded = values[np.append(rows, np.full(t_max - len(rows), rows[-1]))]
            make = published_noise if self.reading == "published" else intended_noise
            parts.append(padded + make(float(epsilon), delta, t_max, padded.shape, draw))
        claimed = float(epsilon)
        false = _PUBLISHED_FALSE.format(loss=published_loss(epsilon, 1, 100), claimed=claimed) if self.reading == "published" else _INTENDED_FALSE
        guarantee = refuted(self.title, self._epsilon, self.per, false)
        return Release(rebuild_rows(seqs, parts), guarantee, self.provenance(seed))


def complete_values(mechanism: Mechanism[FeatureTable], seqs: Sequences) -> NDArray[np.float64]:
    """The table's values for a reading that knows no missing ones.

    Raises
    ------
    DataError
        If there are any.
    """
    missing = np.isnan(seqs.table.values)
    if missing.any():
        row, column = (int(i[0]) for i in np.nonzero(missing))
        raise DataError(
            f"{mechanism.title} has no rule for missing values, and row {row} of '{seqs.table.columns[column]}' is one. Use table.complete() first,"
            " or reading='corrected'. Nothing was released."
        )
    return seqs.table.values


# --- the laws of the readings that scale by the data's range -----------------------------------------------------------------------


def published_noise(epsilon: float, delta: NDArray[np.float64], t_max: int, shape: tuple[int, ...], draw: np.random.Generator) -> NDArray[np.float64]:
    """+-ln(y) / (lambda t_max) with y exponential of mean 1/lambda: the recipe as printed."""
    rate = epsilon / (2 * t_max * delta)
    standard = draw.standard_exponential(shape)
    while (zero := standard == 0).any():  # the logarithm has no value there
        standard[zero] = draw.standard_exponential(int(zero.sum()))
    sign = np.where(draw.integers(0, 2, shape) == 1, 1.0, -1.0)
    noise: NDArray[np.float64] = sign * np.log(standard / rate) / (rate * t_max)
    return noise


def intended_noise(epsilon: float, delta: NDArray[np.float64], t_max: int, shape: tuple[int, ...], draw: np.random.Generator) -> NDArray[np.float64]:
    """Laplace noise with scale 2 t_max delta / epsilon."""
    return draw.laplace(0.0, np.broadcast_to(2 * t_max * delta / epsilon, shape))


def published_variance(epsilon: Number, delta: float, t_max: int) -> float:
    """Variance of the published noise: b**2 (pi**2/6 + (gamma_E + ln lambda)**2) with b = 2 delta / epsilon, lambda = epsilon / (2 t_max delta)."""
    b, c = _law(epsilon, delta, t_max)
    return b * b * (math.pi**2 / 6 + (np.euler_gamma - c) ** 2)


def published_cdf(x: NDArray[np.float64], epsilon: Number, delta: float, t_max: int) -> NDArray[np.float64]:
    """Distribution function of the published noise: with u = x/b, half of F(u - c) + 1 - F(-u - c), where F(z) = 1 - exp(-exp(z))."""
    b, c = _law(epsilon, delta, t_max)
    u = np.asarray(x, dtype=np.float64) / b
    with np.errstate(over="ignore"):
        return 0.5 * (-np.expm1(-np.exp(u - c)) + np.exp(-np.exp(-u - c)))


def published_log_density(x: NDArray[np.float64], epsilon: Number, delta: float, t_max: int) -> NDArray[np.float64]:
    """Logarithm of the density of the published noise, up to a constant."""
    b, c = _law(epsilon, delta, t_max)
    return _log_density(np.asarray(x, dtype=np.float64) / b, c)


def published_loss(epsilon: Number, delta: float = 1.0, t_max: int = 100, values: int = 1) -> float:
    """The true privacy loss of the published noise: the largest log ratio of two densities whose centres differ by at most delta.

    The supremum over outputs and over all shifts up to delta (the largest shift is not always the worst one). Noise is independent from
    value to value, so the loss of `values` of them is that many times the loss of one. The result is a density ratio at two points that
    were evaluated, lowered by far more than the rounding of its evaluation: it never overstates, so it may serve to refute a claim. It
    falls short of the supremum by less than one part in a million.

    Parameters
    ----------
    epsilon : number
        As claimed.
    delta : float
        Range of the feature in its unit; the published law is not free of it.
    t_max : int
        Vectors of the longest recording.
    values : int
        How many values of a recording change.

    Examples
    --------
    >>> round(published_loss(1, 1.0, 100), 2), round(published_loss(10, 1.0, 100), 1)
    (5.18, 10.4)
    """
    claimed = float(exact("published_loss", "epsilon", epsilon, above=0))
    _, c = _law(epsilon, checks.positive("published_loss", "delta", delta), checks.count("published_loss", "t_max", t_max))
    shift = claimed / 2  # delta in units of b
    # Beyond the outer tails the density falls like exp(-|u|) and the loss tends to the shift itself, from below.
    u = np.linspace(-1.0, 1.0, 200_001) * (abs(c) + shift + 50.0)

    def at_shift(x: float) -> float:
        pair = _log_density(np.array([x, x + shift]), c)
        return float(pair[0] - pair[1])

    # Within a window the density is lowest at an end of it or at a local minimum; against a local minimum a local maximum is worst, or an end.
    coarse = _log_density(u, c) - _log_density(u + shift, c)
    best = max(_highest(at_shift, u, int(coarse.argmax())), at_shift(-shift), at_shift(0.0))
    density = _log_density(u, c)
    rises = np.sign(np.diff(density))
    peaks, troughs = (np.flatnonzero((rises[:-1] == s) & (rises[1:] == -s)) + 1 for s in (1, -1))
    for peak in peaks.tolist():
        for trough in troughs.tolist():
            if abs(u[peak] - u[trough]) <= shift:
                best = max(best, float(density[peak] - density[trough]))
    return checks.count("published_loss", "values", values) * best * (1 - 1e-9)


def _law(epsilon: Number, delta: float, t_max: int) -> tuple[float, float]:
    e = float(exact("exponential-dp", "epsilon", epsilon, above=0))
    return 2 * delta / e, math.log(2 * t_max * delta / e)


def _log_density(u: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """Logarithm of the published density in units of b: half of f(u - c) + f(-u - c) with f(z) = exp(z - exp(z))."""
    with np.errstate(over="ignore"):
        density: NDArray[np.float64] = np.logaddexp(u - c - np.exp(u - c), -u - c - np.exp(-u - c)) - math.log(2)
    return density


def _highest(function: Callable[[float], float], u: NDArray[np.float64], place: int) -> float:
    """The highest value of a function near a place of a grid."""
    from scipy.optimize import minimize_scalar

    low, high = float(u[max(place - 1, 0)]), float(u[min(place + 1, len(u) - 1)])
    found = minimize_scalar(lambda x: -function(x), bounds=(low, high), method="bounded", options={"xatol": 1e-13})
    return max(function(float(u[place])), -float(found.fun))
