"""`lpa`, the Laplace perturbation algorithm: independent Laplace noise on every value.

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

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.exact import discrete_laplace, tail_delta
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number
from gazeveil.privacy.tables.noisy import BOZKIR2021, Estimator, Noisy, NoisyTable
from gazeveil.privacy.tables.published import (
    documents,
    everything,
    largest_distance,
    plain_generator,
)
from gazeveil.privacy.tables.recordings import STEPS, Sequences, Share
from gazeveil.privacy.tables.spectrum import dct, idct, public_cosine, wiener
from gazeveil.privacy.tables.transform import coarsening, laplace_steps


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
    kind: ClassVar[str] = "table"
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

    def estimator(self, n: int, epsilon: float) -> Estimator:
        """The identity, or the Wiener filter."""
        variance = 2.0 * (n / epsilon) ** 2
        cosines = dct(np.eye(n), axis=0)
        back = (
            cosines.T * wiener(public_cosine(n), variance) @ cosines if self.shrinks else np.eye(n)
        )
        return Estimator.of(back, np.eye(n), variance)

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


def lpa_error(n: int, delta_1: float, epsilon: float) -> float:
    """Expected sum of squared errors of a sequence of `n` values: 2 n (Delta_1 / epsilon)**2.

    Parameters
    ----------
    n : int
        Values.
    delta_1 : float
        L1 sensitivity in the unit of the feature; n (hi - lo) in the corrected reading.
    epsilon : float
        Budget of the sequence.

    Examples
    --------
    >>> lpa_error(10, 10.0, 1.0)
    2000.0
    """
    return 2.0 * n * (delta_1 / epsilon) ** 2
