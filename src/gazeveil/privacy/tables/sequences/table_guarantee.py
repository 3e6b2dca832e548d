"""The promise of the noise mechanisms on tables: one base map for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.privacy.guarantee import Guarantee, PublicNumber
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.randomness.rng import ASSUMPTION
from gazeveil.privacy.tables.sequences.recordings import (
    TABLE_NOT_COVERED,
    Sequences,
    per_feature_epsilon,
)

#: What every proof about tables takes for granted.
PUBLIC = (
    (
        "the bounds of the features and the parameters of the mechanism are public and were not"
        " taken from this data"
    ),
)


@dataclass(frozen=True)
class Share:
    """How a budget at one unit is shared by the blocks that get noise of their own.

    Parameters
    ----------
    epsilon : Fraction
        The budget at the unit.
    per : str
        The unit, one of :data:`gazeveil.privacy.tables.sequences.recordings.PER`.
    features : int
        Features of the table.
    recordings : int
        The largest number of recordings one person has; recordings are public.
    chunks : int
        Blocks of one recording-feature.
    """

    epsilon: Fraction
    per: str
    features: int
    recordings: int
    chunks: int = 1

    @classmethod
    def of(cls, epsilon: Fraction, per: str, seqs: Sequences, chunks: int = 1) -> Share:
        """The share for the recordings of a table."""
        return cls(epsilon, per, len(seqs.table.columns), seqs.most_recordings(), chunks)

    @property
    def block(self) -> Fraction:
        """Budget of one block."""
        return per_feature_epsilon(
            self.epsilon, self.per, self.features, self.recordings, self.chunks
        )

    def losses(self, delta_num: Fraction = Fraction(0), chunk: int | None = None) -> UnitMap:
        """The base map, a block with noise of its own, lifted to recordings and people.

        Parameters
        ----------
        delta_num : Fraction
            Numerical error of all draws of the release.
        chunk : int, optional
            Rows of a chunk, where there are chunks.
        """
        block = (
            UnitMap.of("chunk", Loss.pure(self.block, delta_num), chunk)
            if chunk is not None
            else None
        )
        feature = (
            UnitMap.of("recording-feature", Loss.pure(self.block, delta_num))
            if block is None
            else block.lift("recording-feature", self.chunks)
        )
        return feature.lift("recording", self.features).lift("user", self.recordings)

    def change(self, chunk: int | None) -> Change:
        """The change that the budget is for."""
        return Change(self.per, rows=chunk if self.per == "chunk" else None)


def proved(
    title: str,
    share: Share,
    length: int,
    assumed: bool,
    proof: str,
    delta_num: Fraction,
    more: tuple[str, ...] = (),
    chunk: int | None = None,
) -> Guarantee:
    """The guarantee of a corrected reading.

    Parameters
    ----------
    title : str
        Mechanism and reading.
    share : Share
        The budget.
    length : int
        Rows every released recording has.
    assumed : bool
        Whether the length was taken from the longest recording.
    proof : str
        The proof page.
    delta_num : Fraction
        Numerical error of all samples of noise.
    more : tuple of str
        Further assumptions.
    chunk : int, optional
        Rows of a chunk, where there are chunks: chunks of another size are other neighbours.
    """
    return Guarantee(
        "epsilon-dp",
        share.losses(delta_num, chunk),
        share.change(chunk),
        mechanism=title,
        assumptions=(*PUBLIC, "how many recordings each person has is public", ASSUMPTION, *more),
        not_covered=TABLE_NOT_COVERED,
        reason=proof,
    ).resting_on(public_length(length, assumed))


def public_length(rows: int, derived: bool) -> PublicNumber:
    """The number of rows that every recording of a release has."""
    return PublicNumber(f"the length of {rows} rows", "length", derived)


def refuted(
    title: str, epsilon: Fraction, unit: str, reason: str, chunk: int | None = None
) -> Guarantee:
    """The guarantee of a published reading whose claim fails."""
    return Guarantee(
        "epsilon-dp",
        UnitMap.of(unit, Loss.pure(epsilon), chunk if unit == "chunk" else None),
        Change(unit, rows=chunk if unit == "chunk" else None),
        mechanism=title,
        not_covered=(*TABLE_NOT_COVERED, "the length of each recording"),
        status="refuted",
        reason=reason,
    )


def midpoints(seqs: Sequences) -> Floats:
    """What stands for a missing value in a published reading: the middle of the bounds, or 0 where
    the table has none; shape (features,).
    """
    bounds = seqs.table.bounds
    return np.zeros(len(seqs.table.columns)) if bounds is None else bounds.mean(axis=1)
