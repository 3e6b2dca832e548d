"""Exponential-DP: noise on every value of a feature table (Steil et al. 2019, as restated in "For
Your Eyes Only", ETRA 2022).

Three readings, with t_max the longest recording of a task (of a stimulus where no task is named), R
a feature's public range and delta its range in the data:

* `published`, as printed: lambda = epsilon / (2 t_max delta), y exponential with mean 1/lambda,
  noise +-ln(y) / (lambda t_max). With b = 2 delta / epsilon and c = ln(2 t_max delta / epsilon) the
  noise is +-b (ln E + c) with E standard exponential, so its variance is b**2 (pi**2/6 + (gamma_E -
  c)**2). Its claim is false: :func:`published_loss` gives the loss of one value, and b does not
  grow with t_max.
* `intended`: Laplace noise with scale 1/lambda = 2 t_max delta / epsilon, which the printed recipe
  turns into if y is uniform and the second division by t_max is dropped. False only because delta
  and t_max come from the data and the noise from floats.
* `corrected`: discrete Laplace noise with scale t_max R / epsilon on a public grid, at a public
  length.

proofs/exponential-dp.md has the proofs.

Game for exponential-dp: 100 vectors of one feature, all 0 against all 1.

The noise of exponential-dp as printed and as intended, and the true loss of the printed law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.exact import (
    MOST_T,
    discrete_laplace,
    laplace_scale,
    refuse_budget,
    tail_delta,
)
from gazeveil.privacy.randomness.rng import Words, generator, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.published import plain_generator
from gazeveil.privacy.tables.recordings import (
    ROWS,
    STEPS,
    WHOLE,
    Reals,
    Sequences,
    Share,
    batches,
    lattice,
    proved,
    rebuild,
    rebuild_rows,
    refuted,
    sequences,
    table_of,
    task_of,
)


def published_noise(
    epsilon: float, delta: Floats, t_max: int, shape: tuple[int, ...], draw: np.random.Generator
) -> Floats:
    """+-ln(y) / (lambda t_max) with y exponential of mean 1/lambda: the recipe as printed."""
    rate = epsilon / (2 * t_max * delta)
    standard = draw.standard_exponential(shape)
    while (zero := standard == 0).any():  # the logarithm has no value there
        standard[zero] = draw.standard_exponential(int(zero.sum()))
    sign = np.where(draw.integers(0, 2, shape) == 1, 1.0, -1.0)
    noise: Floats = sign * np.log(standard / rate) / (rate * t_max)
    return noise


def intended_noise(
    epsilon: float, delta: Floats, t_max: int, shape: tuple[int, ...], draw: np.random.Generator
) -> Floats:
    """Laplace noise with scale 2 t_max delta / epsilon."""
    return draw.laplace(0.0, np.broadcast_to(2 * t_max * delta / epsilon, shape))


def published_log_density(x: Floats, epsilon: Number, delta: float, t_max: int) -> Floats:
    """Logarithm of the density of the published noise, up to a constant."""
    b, c = _law(epsilon, delta, t_max)
    return _log_density(np.asarray(x, dtype=np.float64) / b, c)


def published_loss(epsilon: Number, delta: float = 1.0, t_max: int = 100, values: int = 1) -> float:
    """The true privacy loss of the published noise: the largest log ratio of two densities whose
    centres differ by at most delta.

    The supremum over outputs and over all shifts up to delta (the largest shift is not always the
    worst one). Noise is independent from value to value, so the loss of `values` of them is that
    many times the loss of one. The result is a density ratio at two points that were evaluated,
    lowered by far more than the rounding of its evaluation: it never overstates, so it may serve to
    refute a claim. It falls short of the supremum by less than one part in a million.

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
    _, c = _law(
        epsilon,
        checks.positive("published_loss", "delta", delta),
        checks.count("published_loss", "t_max", t_max),
    )
    shift = claimed / 2  # delta in units of b
    # Beyond the outer tails the density falls like exp(-|u|) and the loss tends to the shift
    # itself, from below.
    u = np.linspace(-1.0, 1.0, 200_001) * (abs(c) + shift + 50.0)

    def at_shift(x: float) -> float:
        pair = _log_density(np.array([x, x + shift]), c)
        return float(pair[0] - pair[1])

    # Within a window the density is lowest at an end of it or at a local minimum; against a local
    # minimum a local maximum is worst, or an end.
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


def _log_density(u: Floats, c: float) -> Floats:
    """Logarithm of the published density in units of b: half of f(u - c) + f(-u - c) with f(z) =
    exp(z - exp(z)).
    """
    with np.errstate(over="ignore"):
        density: Floats = np.logaddexp(u - c - np.exp(u - c), -u - c - np.exp(-u - c)) - math.log(2)
    return density


def _highest(function: Callable[[float], float], u: Floats, place: int) -> float:
    """The highest value of a function near a place of a grid."""
    from scipy.optimize import minimize_scalar

    low, high = float(u[max(place - 1, 0)]), float(u[min(place + 1, len(u) - 1)])
    lowest = minimize_scalar(
        lambda x: -function(x), bounds=(low, high), method="bounded", options={"xatol": 1e-13}
    )
    return max(function(float(u[place])), -float(lowest.fun))


_PUBLISHED_FALSE = (
    "the noise does not grow with the length of the recording, so a recording of t vectors loses at"
    " least t/2 times epsilon; its law is not Laplace: at a range of 1 and 100 vectors a single"
    " value loses {loss:.2f}, and all of them a hundred times that, where {claimed:g} is claimed;"
    " and the range it is scaled by is taken from the data"
)
_INTENDED_FALSE = (
    "the range and the length that scale the noise are taken from the data, so one person's values"
    " change the noise of all others, and floating-point Laplace noise tells the value it was"
    " added to"
)


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
        Public number of rows of a recording (`corrected`); None takes the longest recording's and
        assumes it public.
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
    label: ClassVar[str] = "exponential-DP"
    summary: ClassVar[str] = "Adds noise to every value of a feature table."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "Steil et al. 2019; David-John et al., For Your Eyes Only (ETRA 2022)"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "discrete Laplace noise, public range and length",
        ),
        "intended": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "Laplace noise scaled by the data's own range",
        ),
        "published": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "noise of the wrong law that does not grow with the recording",
        ),
    }

    def check(self) -> None:
        """Store the budget exactly."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        checks.one_of(self.name, "per", self.per, WHOLE)
        if self.length is not None:
            self.store("length", checks.count(self.name, "length", self.length))

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Add noise to every value of a table; see :class:`Mechanism`.

        Raises
        ------
        DataError
            For a table without rows or, where `corrected`, without bounds; for missing values or a
            constant feature otherwise.
        """
        seqs = sequences(self.name, data)
        share = Share.of(self._epsilon, self.per, seqs)
        if self.reading == "corrected":
            return self._corrected(seqs, share, seed)
        return self._with_data_range(seqs, share.block, seed)

    @property
    def _epsilon(self) -> Fraction:
        return exact(self.name, "epsilon", self.epsilon)

    def _corrected(self, seqs: Sequences, share: Share, seed: int | None) -> Release[FeatureTable]:
        grid = lattice(self.name, seqs, self.length)
        scale = Fraction(grid.length * STEPS) / share.block
        if scale > MOST_T:
            least = Fraction(grid.length * STEPS, MOST_T) * (self._epsilon / share.block)
            refuse_budget(self.name, "epsilon", self.epsilon, least, "value")
        words = Words(source(seed, self.name))
        noise = discrete_laplace(scale, grid.values.size, words).reshape(grid.values.shape)
        guarantee = proved(
            self.title,
            share,
            grid.length,
            self.length is None,
            "proofs/exponential-dp.md",
            tail_delta(share.block, grid.values.size),
        )
        table = rebuild(seqs, grid.real(grid.values + noise))
        return self.released(table, guarantee, seed, grid.notes())

    def _with_data_range(
        self, seqs: Sequences, epsilon: Fraction, seed: int | None
    ) -> Release[FeatureTable]:
        values = complete_values(self, seqs)
        delta = values.max(axis=0) - values.min(axis=0)
        if (delta == 0).any():
            constant = seqs.table.columns[int(np.flatnonzero(delta == 0)[0])]
            raise DataError(
                f"{self.title} scales its noise by a feature's range in the data, and '{constant}'"
                " is constant. Drop it, or use reading='corrected'. Nothing was released."
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
        false = (
            _PUBLISHED_FALSE.format(loss=published_loss(epsilon, 1, 100), claimed=claimed)
            if self.reading == "published"
            else _INTENDED_FALSE
        )
        guarantee = refuted(self.title, self._epsilon, self.per, false)
        return Release(rebuild_rows(seqs, parts), guarantee, self.provenance(seed))

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return exponential(self, unit)


def complete_values(mechanism: Mechanism[FeatureTable], seqs: Sequences) -> Floats:
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
            f"{mechanism.title} has no rule for missing values, and row {row} of"
            f" '{seqs.table.columns[column]}' is one. Use table.complete() first, or"
            " reading='corrected'. Nothing was released."
        )
    return seqs.table.values


# --- the laws of the readings that scale by the data's range
# -----------------------------------------------------------------------


def exponential(mechanism: ExponentialDP, unit: str | None) -> Game:
    """Noise on the values: 100 vectors, all 0 against all 1."""
    epsilon = Fraction(mechanism.epsilon)
    audited = asked_unit(unit, mechanism.per, WHOLE)
    description = f"One feature of {ROWS} rows: all 0 against all 1."
    if mechanism.reading == "published":
        exact = published_loss(epsilon, 1.0, ROWS, values=ROWS)
        return Game(
            audited,
            float(epsilon),
            description,
            lambda s, n, seed: _play_published(float(epsilon), s, n, seed),
            exact,
        )
    if mechanism.reading == "intended":
        people = np.stack([np.full(ROWS, v) for v in (0.0, 0.0, 1e-9)])
        spread = np.ptp(mechanism.release(table_of(people, ["a", "b", "c"]), seed=1).data.values)
        tiny = spread < 1e-3
        description += (
            " Its scale is the range of the data: where people nearly agree the noise nearly"
            " vanishes, so a neighbour is seen with certainty."
        )
        return Game(audited, float(epsilon), description, None, float("inf") if tiny else None)

    # The game has rows of its own; another length would only pad or cut them.
    plain = replace(mechanism, length=None)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        scores = []
        for number, count in enumerate(batches(trials, 10 * ROWS)):
            values = np.full((count, ROWS), float(side))
            out = plain.release(
                table_of(values, [str(i) for i in range(count)]),
                None if seed is None else seed + number,
            ).data.values
            scores.append(np.clip(out.reshape(count, ROWS), 0.0, 1.0).sum(axis=1))
        return np.concatenate(scores)[:, None]

    t, s = laplace_scale(Fraction(ROWS * STEPS) / epsilon)
    return Game(audited, float(epsilon), description, play, float(Fraction(ROWS * STEPS * s, t)))


def _play_published(epsilon: float, side: int, trials: int, seed: int | None) -> Reals:
    """The exact log likelihood ratio of one value, and of all of them."""
    rng = plain_generator(seed, "audit")
    scores = []
    for count in batches(trials, ROWS):
        values = side + published_noise(epsilon, np.array([1.0]), ROWS, (count, ROWS), rng)
        ratio = published_log_density(values, epsilon, 1.0, ROWS) - published_log_density(
            values - 1.0, epsilon, 1.0, ROWS
        )
        scores.append(np.stack((ratio[:, 0], ratio.sum(axis=1)), axis=1))
    return np.concatenate(scores)
