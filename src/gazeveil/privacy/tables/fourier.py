"""`fpa`, the Fourier perturbation algorithm: noise on the first k coefficients of the discrete
Fourier transform.

Bozkir et al. (PLOS ONE 2021), after Rastogi and Nath 2010: F = DFT(X), keep the first k
coefficients, add Laplace noise of scale

    lambda = sqrt(n) sqrt(k) Delta_2 / epsilon,

set the rest to 0 and transform back. Readings:

* `published`: noise on the real and the imaginary part of bins 0..k-1 of the half spectrum, Delta_2
  the largest L2 distance between two participants, k the one with the least error on the data (by
  the closed form below instead of 100 runs). Refuted: Delta_2, k and n are secrets of the data.
* `published-real`: noise on the real parts alone, the real part of the one-sided inverse. Refuted
  without any further argument: the imaginary parts are released as they are.
* `corrected`: Delta_2 = sqrt(n) (hi - lo) about the public midpoint, public n, k <= n // 2 + 1
  given or chosen by a public rule, integer coefficients and integer noise. That lambda suffices,
  and is the least that does, is shown in proofs/fpa.md.

Closed form of the expected squared error, with omega_j = 1 for DC and Nyquist and 2 otherwise:

    E |X~ - X|^2 = (1/n) sum_{j >= k} omega_j |F_j|^2 + (k Delta_2^2 / epsilon^2) sum_{j < k} nu_j,
    nu_j = 2 for DC and Nyquist, else 8.

`cfpa` and `dcfpa`: the Fourier perturbation algorithm on chunks, of values or of their
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
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, tail_delta
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, format_exact
from gazeveil.privacy.tables.noisy import BOZKIR2021, Noisy, NoisyTable
from gazeveil.privacy.tables.published import plain_generator, plan
from gazeveil.privacy.tables.recordings import PER, STEPS, Sequences, Share
from gazeveil.privacy.tables.spectrum import (
    Reals,
    coefficients,
    coordinates,
    difference_rows,
    fourier_rows,
    grid_l1,
    halves,
    public_covariance,
    public_difference_k,
    public_fourier,
    public_k,
    wiener,
)


@dataclass(frozen=True)
class FPA(NoisyTable):
    """Laplace noise on the first Fourier coefficients of whole recordings.

    Parameters
    ----------
    epsilon : number
        Budget at the unit `per`.
    k : int, optional
        Bins to release, from 1 to n // 2 + 1. None takes :func:`public_k` in `corrected` and the
        data-optimal one in `published`.
    per, length
        As of :class:`gazeveil.privacy.tables.noisy.LPA`.
    shrink : {"none", "wiener"}, optional
        Shrink the noisy coefficients by their public variances.
    """

    name: ClassVar[str] = "fpa"
    label: ClassVar[str] = "FPA"
    summary: ClassVar[str] = (
        "Adds Laplace noise to the first Fourier coefficients of a feature sequence."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features",
        (":epsilon=200", ":epsilon=200,shrink=wiener", ":epsilon=200,reading=published"),
        (":", ":shrink=wiener", ":k=5"),
    )
    paper: ClassVar[str] = BOZKIR2021
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "integer noise on the half spectrum, public sensitivity, length and k",
        ),
        "published": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "sensitivity, k and length come from the data",
        ),
        "published-real": Claim(
            "epsilon-dp",
            "recording-feature",
            "refuted",
            "the imaginary parts are released without noise",
        ),
    }

    epsilon: Number
    k: int | None = None
    per: str = "recording-feature"
    length: int | None = None
    shrink: str | None = None

    def check(self) -> None:
        """Check k besides what the family has."""
        super().check()
        if self.k is not None:
            self.store("k", checks.count(self.name, "k", self.k))

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """Noise on the half spectrum of whole recordings."""
        return fourier_noise(self, blocks, self.bins(len(blocks), float(epsilon)), epsilon, words)

    def bins(self, n: int, epsilon: float) -> int:
        """The bins released of a block: k, or the public rule's."""
        if self.k is None:
            return public_k(n, epsilon, self.shrinks)
        return bins(self.name, self.k, n)

    def published(self, seqs: Sequences, seed: int | None) -> list[Reals]:
        """Floating-point noise with the sensitivity and the best k of the data."""
        epsilon = float(Share.of(self.budget, self.per, seqs).block)
        work = plan(
            self.name, seqs, epsilon, None, self.k, real_only=self.reading == "published-real"
        )
        return work.recordings(work.draw(plain_generator(seed, self.name, self.reading)))

    def refutation(self, seqs: Sequences) -> str:
        """Why the published claims fail."""
        if self.reading == "published-real":
            return (
                "the noise is on the real parts alone, so the imaginary parts of the released"
                " coefficients are exact (proofs/fpa.md)"
            )
        return (
            "the sensitivity is the largest distance between two participants, k is the best one"
            " for the data and the length is the data's own, so all three tell about the data, and"
            " where all participants agree the release has no noise (proofs/fpa.md)"
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.audit import fpa

        return fpa(self, unit)


def bins(owner: str, k: int, n: int) -> int:
    """A number of bins a block of n values has: beyond n // 2 + 1 the spectrum only repeats itself,
    and noise there would be too small.
    """
    if k > n // 2 + 1:
        checks.refuse(
            owner,
            "k",
            f"at most {n // 2 + 1}, half the block length {n} plus 1",
            k,
            "Leave k out to have it chosen.",
        )
    return k


def noisy_spectrum(
    owner: str,
    blocks: Ints,
    k: int,
    delta_2_squared: int,
    delta_1: int,
    epsilon: Fraction,
    words: Words,
) -> tuple[NDArray[np.complex128], float]:
    """Bins 0..k-1 of the unnormalised DFT of every block with discrete Laplace noise, and the scale
    lambda of the noise.

    Parameters
    ----------
    owner : str
        For messages.
    blocks : array of int64, shape (n, blocks)
        Whole numbers of at most 2**17.
    k : int
        Bins.
    delta_2_squared, delta_1 : int
        Square of the largest L2 distance, and largest L1 distance, of two neighbouring blocks.
    epsilon : Fraction
        Budget of a block.
    words : Words
        Random bits.
    """
    n = len(blocks)
    d = coordinates(n, k)
    grid = grid_l1(owner, n, d, n * k * delta_2_squared, delta_1, epsilon, MOST_T)
    whole = grid.rounded(coefficients(fourier_rows(n, k), blocks))
    scale = Fraction(grid.sensitivity) / epsilon
    noisy = (whole + discrete_laplace(scale, whole.size, words).reshape(whole.shape)).astype(
        np.float64
    ) * grid.step
    out = noisy[:k].astype(np.complex128)
    out[1 : d - k + 1].imag = noisy[k:]
    return out, float(scale) * grid.step


def fourier_noise(
    mechanism: NoisyTable, blocks: Ints, k: int, epsilon: Fraction, words: Words
) -> Noisy:
    """Integer noise on the half spectrum of every block about the public midpoint, shrunk where the
    mechanism does, then back.
    """
    n = len(blocks)
    noisy, scale = noisy_spectrum(
        mechanism.name, blocks - STEPS // 2, k, n * STEPS**2, n * STEPS, epsilon, words
    )
    if mechanism.shrinks:
        noisy *= bin_weights(public_fourier(n)[:k], n, scale / STEPS)[:, None]
    delta = tail_delta(epsilon, coordinates(n, k) * blocks.shape[1])
    return Noisy(from_bins(noisy, n) + STEPS / 2, delta)


def from_bins(noisy: NDArray[np.complex128], n: int) -> Reals:
    """Blocks of n values from the first bins of their spectra."""
    full = np.zeros((n // 2 + 1, noisy.shape[1]), dtype=np.complex128)
    full[: len(noisy)] = noisy
    out: Reals = np.fft.irfft(full, n, axis=0)
    return out


def bin_weights(energy: Reals, n: int, scale: float) -> Reals:
    """Wiener weights of the first bins for expected |F_j|**2 and Laplace noise of the given scale
    on both parts.
    """
    omega, _ = halves(n)
    return wiener(energy / omega[: len(energy)], 2.0 * scale**2)


@dataclass(frozen=True)
class _Chunked(NoisyTable):
    """What `cfpa` and `dcfpa` share."""

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
    length, shrink
        As of :class:`FPA`.
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
        return public_k(self.chunk, epsilon, self.shrinks) if self.k is None else self.k

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.audit import chunked

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
            out = difference_filter(n, k, scale / STEPS) @ flat
        else:
            out = np.cumsum(from_bins(noisy, n), axis=0)
        return Noisy(out + STEPS / 2, tail_delta(epsilon, coordinates(n, k) * blocks.shape[1]))

    def bins(self, epsilon: float) -> int:
        """The bins released of a chunk of differences: k, or the public rule's."""
        if self.k is None:
            return public_difference_k(self.chunk, epsilon, self.shrinks)
        return self.k

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.audit import chunked

        return chunked(self, unit)


def difference_filter(n: int, k: int, scale: float) -> Reals:
    """The linear estimate of a chunk from its noisy difference coefficients that is best under the
    public model, shape (n, coordinates).
    """
    rows = difference_rows(n, k)
    joint = public_covariance(n) @ rows.T
    return np.asarray(
        np.linalg.solve(rows @ joint + 2.0 * scale**2 * np.eye(len(rows)), joint.T).T,
        dtype=np.float64,
    )
