"""The promise of the noise mechanisms on tables: one wording and one sum for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.noise.rng import ASSUMPTION
from gazeveil.privacy.tables.sequences import TABLE_NOT_COVERED, Sequences, per_feature_epsilon, user_epsilon

#: What is replaced between neighbours, per unit.
_OTHERS = "are replaced by any others within the public bounds"
_REPLACED = {
    "chunk": f"all values of one chunk of one feature of one recording {_OTHERS}",
    "recording-feature": f"all values of one feature of one recording {_OTHERS}, in any number up to the public length",
    "recording": f"all values of one recording {_OTHERS}, in any number up to the public length",
    "user": f"all values of all recordings of one person {_OTHERS}, in any number up to the public length",
}

#: What every proof about tables takes for granted.
PUBLIC = ("the bounds of the features and the parameters of the mechanism are public and were not taken from this data",)


@dataclass(frozen=True)
class Share:
    """How a budget at one unit is shared by the blocks that get noise of their own.

    Parameters
    ----------
    epsilon : Fraction
        The budget at the unit.
    per : str
        The unit, one of :data:`gazeveil.privacy.tables.sequences.PER`.
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
        return per_feature_epsilon(self.epsilon, self.per, self.features, self.recordings, self.chunks)

    @property
    def user(self) -> Fraction:
        """What everything of one person adds up to."""
        return user_epsilon(self.block, self.features, self.recordings, self.chunks)


def proved(
    title: str, share: Share, length: int, assumed: bool, proof: str, delta_num: Fraction, more: tuple[str, ...] = (), chunk: int | None = None
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
    replaced = _REPLACED[share.per].replace("one chunk", f"one chunk of {chunk} rows") if share.per == "chunk" else _REPLACED[share.per]
    origin = " (it was taken from the longest recording)" if assumed else ""
    return Guarantee(
        "epsilon-dp",
        share.per,
        replaced,
        {"epsilon": share.epsilon},
        {"epsilon": share.user},
        title,
        (
            *PUBLIC,
            f"the length of {length} rows is public{origin}",
            "how many recordings each person has is public",
            ASSUMPTION,
            *more,
        ),
        TABLE_NOT_COVERED,
        "proved",
        proof,
        delta_num,
    )


def refuted(title: str, epsilon: Fraction, unit: str, reason: str) -> Guarantee:
    """The guarantee of a published reading whose claim fails."""
    return Guarantee(
        "epsilon-dp",
        unit,
        _REPLACED[unit],
        {"epsilon": epsilon},
        {},
        title,
        (),
        (*TABLE_NOT_COVERED, "the length of each recording"),
        "refuted",
        reason,
    )


def midpoints(seqs: Sequences) -> NDArray[np.float64]:
    """What stands for a missing value in a published reading: the middle of the bounds, or 0 where the table has none; shape (features,)."""
    bounds = seqs.table.bounds
    return np.zeros(len(seqs.table.columns)) if bounds is None else bounds.mean(axis=1)
