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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, refuse_budget, tail_delta
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.uniform import generator
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.exponential.published import (
    intended_noise,
    published_loss,
    published_noise,
)
from gazeveil.privacy.tables.sequences.recordings import (
    STEPS,
    WHOLE,
    Sequences,
    lattice,
    rebuild,
    rebuild_rows,
    sequences,
    task_of,
)
from gazeveil.privacy.tables.sequences.table_guarantee import Share, proved, refuted

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
        from gazeveil.privacy.tables.exponential.audit import exponential

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
