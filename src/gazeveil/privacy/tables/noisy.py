"""What the Laplace and Fourier mechanisms on tables share: the parameters, the steps from table to
table, and the words of their claims.

A corrected release always goes the same way: rows to recordings, recordings to whole numbers of a
public grid at a public length, those into blocks (whole recordings, or chunks), integer noise on a
transform of each block, and then post-processing alone: the inverse transform, shrinkage towards
the public midpoint, clamping to the bounds. A mechanism of the family says what happens to a block.

`lpa`, the Laplace perturbation algorithm: independent Laplace noise on every value.

Bozkir et al. ("Differential privacy for eye tracking with temporal correlations", PLOS ONE
2021), after Dwork et al. 2006:

    X~_t = X_t + Lap(Delta_1 / epsilon),   t = 1..n.

* `published`: Delta_1 is the largest L1 distance between two participants, per feature and
  document, a secret of the data; noise in floating point. Refuted: where all participants agree
  there is no noise at all.
* `corrected`: Delta_1 = n (hi - lo) from the public bounds and the public length n. A value is a
  whole number of public grid steps, so Delta_1 is exact, and the noise is integer discrete Laplace.
  Clamping the result to the bounds is post-processing.

Its error grows with the length: the root mean square of the noise is sqrt(2) n (hi - lo) / epsilon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.exact import discrete_laplace, tail_delta
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.published import (
    documents,
    everything,
    largest_distance,
    plain_generator,
)
from gazeveil.privacy.tables.recordings import (
    STEPS,
    WHOLE,
    Sequences,
    Share,
    TableLattice,
    lattice,
    proved,
    public_bounds,
    rebuild,
    rebuild_rows,
    refuted,
    sequences,
)
from gazeveil.privacy.tables.spectrum import (
    coarsening,
    dct,
    idct,
    laplace_steps,
    public_cosine,
    wiener,
)

#: Post-processing the family offers.
SHRINK = ("none", "wiener")

BOZKIR2021 = (
    "Bozkir, Gunlu, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking with temporal"
    " correlations. PLOS ONE 16(8), 2021"
)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Blocks with noise.

    Parameters
    ----------
    values : array of float64, shape (rows, blocks)
        In grid steps.
    delta_num : Fraction
        What the finite arithmetic of all draws costs.
    assumptions : tuple of str
        What the sampler assumes.
    """

    values: Floats
    delta_num: Fraction
    assumptions: tuple[str, ...] = ()


class NoisyTable(Mechanism[FeatureTable]):
    """Base of the mechanisms that add noise to sequences of a table.

    It is no dataclass: each mechanism has these parameters at their own places among its own.
    """

    kind: ClassVar[str] = "table"
    units: ClassVar[tuple[str, ...]] = WHOLE

    epsilon: Number
    per: str
    length: int | None
    shrink: str | None

    def check(self) -> None:
        """Check what all of the family have; epsilon becomes a Fraction."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        checks.one_of(self.name, "per", self.per, self.units)
        if self.length is not None:
            self.store("length", checks.count(self.name, "length", self.length))
        if self.shrink is not None:
            checks.one_of(self.name, "shrink", self.shrink, SHRINK)

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Protect a table.

        Raises
        ------
        DataError
            For an empty table; without public bounds in a reading that is proved; with one person
            in `published`.
        """
        seqs = sequences(self.name, data)
        if self.reading.startswith("published"):
            guarantee = refuted(
                self.title,
                self.budget,
                self.per,
                self.refutation(seqs),
                self.block(int(seqs.lengths.max())),
            )
            return Release(
                rebuild_rows(seqs, self.published(seqs, seed)), guarantee, self.provenance(seed)
            )
        share, grid, steps, noisy = self._noisy(seqs, seed)
        values = np.clip(grid.real(steps), *public_bounds(self.name, data).T)
        assumed = self.length is None
        proof = f"proofs/{self.name}.md"
        guarantee = proved(
            self.title,
            share,
            grid.length,
            assumed,
            proof,
            noisy.delta_num,
            noisy.assumptions,
            self.block(grid.length),
        )
        return self.released(rebuild(seqs, values), guarantee, seed, grid.notes())

    def _noisy(
        self, seqs: Sequences, seed: int | None
    ) -> tuple[Share, TableLattice, Floats, Noisy]:
        grid = lattice(self.name, seqs, self.length)
        recordings, length, features = grid.values.shape
        size = self.block(length)
        chunks = -(-length // size)
        share = Share.of(self.budget, self.per, seqs, chunks)
        padded = np.full((recordings, chunks * size, features), STEPS // 2, dtype=np.int64)
        padded[:, :length] = grid.values
        # One column per block: rows of a block first, so that a transform is one matrix product.
        blocks = (
            padded.reshape(recordings, chunks, size, features)
            .transpose(2, 0, 1, 3)
            .reshape(size, -1)
        )
        noisy = self.perturb(blocks, share.block, Words(source(seed, self.name)))
        steps = (
            noisy.values.reshape(size, recordings, chunks, features)
            .transpose(1, 2, 0, 3)
            .reshape(recordings, chunks * size, features)[:, :length]
        )
        return share, grid, steps, noisy

    @property
    def budget(self) -> Fraction:
        """Epsilon, exactly."""
        return Fraction(self.epsilon)

    @property
    def shrinks(self) -> bool:
        """Whether noisy coefficients are shrunk."""
        return self.shrink == "wiener"

    def block(self, length: int) -> int:
        """Rows of a block: the whole recording, unless the mechanism has chunks."""
        return length

    @abstractmethod
    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """Noise on every block.

        Parameters
        ----------
        blocks : array of int64, shape (rows, blocks)
            Whole numbers from 0 to :data:`~gazeveil.privacy.tables.recordings.STEPS`.
        epsilon : Fraction
            Budget of one block.
        words : Words
            Random bits.
        """

    def published(self, seqs: Sequences, seed: int | None) -> list[Floats]:
        """The published reading, where there is one: one array (rows, features) per recording."""
        checks.refuse(self.name, "reading", "one that its class defines", self.reading)

    def refutation(self, seqs: Sequences) -> str:
        """Why the published claim fails."""
        return (
            "the scale of the noise is the largest distance between two participants of the data"
            " itself, so it tells about them, and where all participants agree the release is"
            f" exact (proofs/{self.name}.md)"
        )


@dataclass(frozen=True)
class LPA(NoisyTable):
    """Laplace noise on every value.

    Parameters
    ----------
    epsilon : number
        Budget at the unit `per`.
    per : {"recording-feature", "recording", "user"}
        What the budget is for; it is shared evenly by the recording-features of the unit.
    length : int, optional
        The public length every recording is padded (with the public midpoint) or trimmed to; None
        takes the longest recording's.
    shrink : {"none", "wiener"}, optional
        Shrink the noisy sequence towards the public midpoint, coefficient by coefficient of its
        cosine transform.

    Examples
    --------
    >>> LPA(0.5).parameters()["epsilon"]
    Fraction(1, 2)
    """

    name: ClassVar[str] = "lpa"
    label: ClassVar[str] = "LPA"
    summary: ClassVar[str] = "Adds Laplace noise to every value of a feature sequence."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features",
        (":epsilon=100", ":epsilon=100,shrink=wiener", ":epsilon=100,reading=published"),
        (":", ":shrink=wiener"),
    )
    paper: ClassVar[str] = BOZKIR2021
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "integer Laplace noise for public bounds and a public length",
        ),
        "published": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "the scale of the noise comes from the data",
        ),
    }

    epsilon: Number
    per: str = "recording-feature"
    length: int | None = None
    shrink: str | None = None

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """Discrete Laplace noise on every value; with Wiener shrinkage in the cosine transform,
        where white noise stays white.
        """
        n = len(blocks)
        coarse = coarsening(n, epsilon)
        scale = laplace_steps(n, epsilon, coarse)
        # Rounding to a coarser grid is rounding to a public grid again: whole numbers from 0 to
        # STEPS / 2**coarse.
        whole = (blocks + (1 << coarse >> 1)) >> coarse
        values = (whole + discrete_laplace(scale, blocks.size, words).reshape(blocks.shape)).astype(
            np.float64
        ) * (1 << coarse)
        if self.shrinks:
            weights = wiener(public_cosine(n), 2.0 * (float(scale) * (1 << coarse) / STEPS) ** 2)
            values = idct(dct(values - STEPS / 2, axis=0) * weights[:, None], axis=0) + STEPS / 2
        return Noisy(values, tail_delta(epsilon, blocks.size))

    def published(self, seqs: Sequences, seed: int | None) -> list[Floats]:
        """Laplace noise in floating point, scaled by the largest
        distance between two participants.
        """
        docs = documents(self.name, seqs)
        rng = plain_generator(seed, self.name, "published")
        epsilon = float(Share.of(self.budget, self.per, seqs).block)
        parts: list[Floats] = [np.empty((0, 0))] * len(seqs.keys)
        for doc in docs:
            scale = (
                largest_distance(
                    doc.values if doc.people > 1 else everything(seqs, docs).values, 1
                )[:, 0]
                / epsilon
            )
            for recording, length, values in zip(
                doc.recordings.tolist(), doc.lengths.tolist(), doc.values, strict=True
            ):
                parts[recording] = (
                    values[:, :length].T + rng.laplace(0.0, 1.0, (length, len(scale))) * scale
                )
        return parts

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.audit import lpa

        return lpa(self, unit)
