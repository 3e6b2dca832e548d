"""`cfpa` and `dcfpa`: the Fourier perturbation algorithm on chunks, of values or of their
differences.

Bozkir et al. (PLOS ONE 2021): the sequence is cut into chunks of 32, 64 or 128 values. `cfpa`
runs FPA on each. `dcfpa` runs it on

    d_1 = X_1,   d_t = X_t - X_{t-1}    (inside a chunk)

and sums the noisy differences up again; the first value is noised like the others.

* `published`: sensitivities over pairs of participants, the best k of the data, the last chunk as
  short as it is; epsilon is claimed for the complete signal "by parallel composition". Refuted: a
  neighbour changes all chunks of the signal, so C chunks lose C epsilon, and the sensitivities come
  from the data.
* `corrected`: public bounds, public length, the last chunk filled up with the public midpoint,
  public k, integer noise. Epsilon is the recording-feature's and each chunk gets epsilon / C; with
  `per="chunk"` each chunk gets epsilon and the promise is about one chunk.

Differences of values from a range R have the public sensitivity R sqrt(4 n - 3), twice that of the
values, and the running sum spreads the noise: with public bounds `dcfpa` is far worse than `cfpa`.
Its published advantage came from data-dependent sensitivities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.exact import tail_delta
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, format_exact
from gazeveil.privacy.tables.sequences.closed_forms import (
    difference_rows,
    public_difference_k,
    public_k,
)
from gazeveil.privacy.tables.sequences.fourier import (
    bins,
    fourier_estimator,
    fourier_noise,
    from_bins,
    noisy_spectrum,
)
from gazeveil.privacy.tables.sequences.noisy_sequence import (
    BOZKIR2021,
    Estimator,
    Noisy,
    NoisyTable,
)
from gazeveil.privacy.tables.sequences.published import plain_generator, plan
from gazeveil.privacy.tables.sequences.recordings import PER, STEPS, Sequences
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum, Reals, coordinates, synthesis
from gazeveil.privacy.tables.sequences.table_guarantee import Share


@dataclass(frozen=True)
class _Chunked(NoisyTable):
    """What `cfpa` and `dcfpa` share."""

    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = BOZKIR2021
    units: ClassVar[tuple[str, ...]] = PER
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "each of C chunks gets epsilon / C; per=chunk makes the chunk the unit",
        ),
        "published": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "C chunks lose C epsilon; sensitivities come from the data",
        ),
    }

    epsilon: Number
    chunk: int
    k: int | None = None
    per: str = "recording-feature"
    length: int | None = None
    shrink: str | None = None
    spectrum: PublicSpectrum | str | None = None

    def check(self) -> None:
        """Check chunk and k besides what the family has."""
        super().check()
        self.store("chunk", checks.count(self.name, "chunk", self.chunk, least=2))
        if self.k is not None:
            self.store("k", bins(self.name, checks.count(self.name, "k", self.k), self.chunk))

    def block(self, length: int) -> int:
        """Rows of a chunk; the last one is filled up."""
        return self.chunk

    def published(self, seqs: Sequences, seed: int | None) -> list[Reals]:
        """Floating-point noise with the sensitivities and the best k of the data, the full budget
        for every chunk.
        """
        epsilon = float(Share.of(self.budget, self.per, seqs).block)
        work = plan(self.name, seqs, epsilon, self.chunk, self.k, difference=self.name == "dcfpa")
        return work.recordings(work.draw(plain_generator(seed, self.name, self.reading)))

    def refutation(self, seqs: Sequences) -> str:
        """Why the published claim fails, with what the chunks add up to."""
        chunks = -(-int(seqs.lengths.max()) // self.chunk)
        if self.per == "chunk":
            return f"the sensitivities, k and the length come from the data (proofs/{self.name}.md)"
        return (
            f"a neighbour changes every chunk of the signal, so the {chunks} chunks of the longest"
            f" recording add up to {format_exact(chunks * self.budget)}; besides, the"
            f" sensitivities, k and the length come from the data (proofs/{self.name}.md)"
        )


@dataclass(frozen=True)
class CFPA(_Chunked):
    """Laplace noise on the first Fourier coefficients of chunks.

    Parameters
    ----------
    epsilon : number
        Budget at the unit `per`.
    chunk : int
        Rows of a chunk, at least 2; the paper has 32, 64 and 128.
    k : int, optional
        Bins to release of each chunk, from 1 to chunk // 2 + 1. None takes the public rule
        (`corrected`) or the data-optimal ones (`published`).
    per : {"chunk", "recording-feature", "recording", "user"}
        What the budget is for; it is shared evenly by the chunks of the unit.
    length, shrink, spectrum
        As of :class:`gazeveil.privacy.tables.sequences.fourier.FPA`.
    """

    name: ClassVar[str] = "cfpa"
    label: ClassVar[str] = "CFPA"
    summary: ClassVar[str] = (
        "Adds Laplace noise to the Fourier coefficients of each chunk of a feature sequence."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features",
        (
            ":chunk=64,epsilon=20,shrink=wiener",
            ":chunk=64,epsilon=20,per=chunk,shrink=wiener",
            ":chunk=64,epsilon=20,reading=published",
        ),
        (
            ":chunk=32,shrink=wiener",
            ":chunk=64,shrink=wiener",
            ":chunk=128,shrink=wiener",
            "fpa:shrink=wiener",
        ),
    )

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """FPA on each chunk."""
        return fourier_noise(self, blocks, self.bins(float(epsilon)), epsilon, words)

    def bins(self, epsilon: float) -> int:
        """The bins released of a chunk: k, or the public rule's."""
        return (
            public_k(self.chunk, epsilon, self.public, self.shrinks) if self.k is None else self.k
        )

    def estimator(self, n: int, epsilon: float) -> Estimator:
        """The first bins, shrunk or not."""
        return fourier_estimator(
            n, self.bins(epsilon), epsilon, self.public if self.shrinks else None
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.sequences.audit import chunked

        return chunked(self, unit)


@dataclass(frozen=True)
class DCFPA(_Chunked):
    """Laplace noise on the first Fourier coefficients of the differences inside chunks, summed up
    again.

    Parameters are those of :class:`CFPA`. With `shrink="wiener"` the whole linear estimate of the
    chunk from its noisy coefficients is taken, because the coefficients of differences are
    correlated (the first value is in all of them).
    """

    name: ClassVar[str] = "dcfpa"
    label: ClassVar[str] = "DCFPA"
    summary: ClassVar[str] = (
        "Adds Laplace noise to the Fourier coefficients of the differences in each chunk."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features",
        (
            ":chunk=64,epsilon=100",
            ":chunk=64,epsilon=100,shrink=wiener",
            ":chunk=64,epsilon=100,reading=published",
        ),
        (":chunk=32", ":chunk=32,shrink=wiener", "cfpa:chunk=32"),
    )

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """FPA on the differences of each chunk, then their running sum."""
        n = len(blocks)
        k = self.bins(float(epsilon))
        differences = np.diff(blocks, axis=0, prepend=STEPS // 2)
        noisy, scale = noisy_spectrum(
            self.name, differences, k, (4 * n - 3) * STEPS**2, (2 * n - 1) * STEPS, epsilon, words
        )
        if self.shrinks:
            flat = np.concatenate((noisy.real, noisy.imag[1 : coordinates(n, k) - k + 1]))
            out = difference_filter(n, k, scale / STEPS, self.public) @ flat
        else:
            out = np.cumsum(from_bins(noisy, n), axis=0)
        return Noisy(out + STEPS / 2, tail_delta(epsilon, coordinates(n, k) * blocks.shape[1]))

    def bins(self, epsilon: float) -> int:
        """The bins released of a chunk of differences: k, or the public rule's."""
        if self.k is None:
            return public_difference_k(self.chunk, epsilon, self.public, self.shrinks)
        return self.k

    def estimator(self, n: int, epsilon: float) -> Estimator:
        """The running sum of the first bins, or the best linear estimate from them."""
        k = self.bins(epsilon)
        scale = np.sqrt(n * k * (4 * n - 3)) / epsilon
        back = (
            difference_filter(n, k, scale, self.public)
            if self.shrinks
            else np.cumsum(synthesis(n, k), axis=0)
        )
        return Estimator.of(back, difference_rows(n, k), 2.0 * scale**2)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.sequences.audit import chunked

        return chunked(self, unit)


def difference_filter(n: int, k: int, scale: float, spectrum: PublicSpectrum) -> Reals:
    """The linear estimate of a chunk from its noisy difference coefficients that is best under the
    public model, shape (n, coordinates).
    """
    rows = difference_rows(n, k)
    joint = spectrum.covariance(n) @ rows.T
    return np.asarray(
        np.linalg.solve(rows @ joint + 2.0 * scale**2 * np.eye(len(rows)), joint.T).T,
        dtype=np.float64,
    )
