"""`fpa-private-k`: FPA whose number of bins is chosen from the data, for a stated part of epsilon.

Bozkir et al. 2021 takes the k with the least error on the data and says nothing of what that tells
(`fpa`, reading `published`); the corrected `fpa` takes k from a public model, which may be wrong
about the data. Here each feature has one k for all recordings, chosen by permute-and-flip
(:mod:`gazeveil.privacy.noise.selection`) with epsilon_k = `k_share` epsilon; noise has the rest:

    cost of k = sum over recordings of (what k drops + what the noise of k adds),
    P(k is taken when it is looked at) = exp(-epsilon_k (cost of k - least cost) / 2**20),

costs in units of 2**-20 n (range / 2)**2. One recording changes the costs of a feature by amounts
that differ by at most 2**20 units, so the choice is epsilon_k-DP and the whole release epsilon-DP.
Where public numbers leave one candidate nothing is chosen and the noise has all of epsilon. Proof:
proofs/fpa-private-k.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.exact import tail_delta
from gazeveil.privacy.noise.selection import exponents, permute_and_flip, selection_probabilities
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.tables.sequences.fourier import fourier_estimator, fourier_noise
from gazeveil.privacy.tables.sequences.noisy_sequence import Estimator, Noisy, NoisyTable
from gazeveil.privacy.tables.sequences.private_k.costs import UNITS, candidates, dropped
from gazeveil.privacy.tables.sequences.recordings import STEPS, lattice, sequences
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum
from gazeveil.privacy.tables.sequences.table_guarantee import Share


@dataclass(frozen=True)
class BinChoice:
    """How the bins of a feature are chosen: public.

    Parameters
    ----------
    bins, costs : tuple of int
        Candidates, and what each costs a recording apart from what it drops, in units.
    choosing, noise : Fraction
        Budgets of the choice and of the noise; they add up to the budget of a block.
    """

    bins: tuple[int, ...]
    costs: tuple[int, ...]
    choosing: Fraction
    noise: Fraction

    def totals(self, blocks: Ints) -> list[int]:
        """The cost of each candidate over all blocks of a feature; private."""
        sums = dropped(blocks, self.bins).sum(axis=0)
        return [int(s) + blocks.shape[1] * c for s, c in zip(sums, self.costs, strict=True)]

    def probabilities(self, totals: list[int]) -> Floats:
        """The law of the choice."""
        gaps, unit = exponents(totals, self.choosing, UNITS)
        return selection_probabilities(gaps / unit)


@dataclass(frozen=True)
class FPAPrivateK(NoisyTable):
    """Laplace noise on as many Fourier coefficients as a private choice says.

    Parameters
    ----------
    epsilon : number
        Budget at the unit `per`, of choice and noise together.
    k_share : number
        Share of it for the choice, between 0 and 1.
    per, length, shrink, spectrum
        As of :class:`gazeveil.privacy.tables.sequences.fourier.FPA`.

    Examples
    --------
    >>> FPAPrivateK(100).choice(100, Fraction(100)).bins
    (1, 2, 3, 4, 5, 6, 8, 10, 13)
    """

    name: ClassVar[str] = "fpa-private-k"
    label: ClassVar[str] = "FPA, private k"
    summary: ClassVar[str] = (
        "FPA whose number of Fourier coefficients is chosen from the data for a part of epsilon."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features", (":epsilon=200", "fpa:epsilon=200"), (":", "fpa:", "fpa:k=5")
    )
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "an improvement on fpa; McKenna and Sheldon 2020"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "permute-and-flip on the number of bins, then integer noise on the half spectrum",
        )
    }

    epsilon: Number
    k_share: Number = Fraction(1, 10)
    per: str = "recording-feature"
    length: int | None = None
    shrink: str | None = None
    spectrum: PublicSpectrum | str | None = None

    def check(self) -> None:
        """Check the share besides what the family has."""
        super().check()
        share = exact(self.name, "k_share", self.k_share, above=0)
        if share >= 1:
            checks.refuse(self.name, "k_share", "below 1: noise needs a part too", self.k_share)
        self.store("k_share", share)

    def choice(self, n: int, epsilon: Fraction) -> BinChoice:
        """What is chosen from, and with what, for sequences of n values."""
        choosing = Fraction(self.k_share) * epsilon
        bins, costs = candidates(n, float(epsilon - choosing))
        if len(bins) == 1:
            # Public numbers alone say it: nothing is spent on asking the data.
            return BinChoice(bins, costs, Fraction(0), epsilon)
        return BinChoice(bins, costs, choosing, epsilon - choosing)

    def perturb_features(
        self, blocks: Ints, features: int, epsilon: Fraction, words: Words
    ) -> Noisy:
        """One k for each feature, then noise on that many bins of all its blocks."""
        choice = self.choice(len(blocks), epsilon)
        values, delta = np.empty(blocks.shape), Fraction(0)
        for feature in range(features):
            mine = np.ascontiguousarray(blocks[:, feature::features])
            k = choice.bins[0]
            if len(choice.bins) > 1:
                (at,) = permute_and_flip(choice.totals(mine), choice.choosing, UNITS, words)
                k = choice.bins[int(at)]
                # As many flips as candidates at most.
                delta += tail_delta(choice.choosing, len(choice.bins))
            noisy = fourier_noise(self, mine, k, choice.noise, words)
            values[:, feature::features] = noisy.values
            delta += noisy.delta_num
        return Noisy(values, min(Fraction(1), delta), also=_parts(choice))

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """All blocks as those of one feature."""
        return self.perturb_features(blocks, 1, epsilon, words)

    def estimator(self, n: int, epsilon: float) -> Estimator:
        """With the k that the public model would take; see :meth:`expected_error` for what the
        choice does.
        """
        choice = self.choice(n, Fraction(epsilon))
        energy = self.public.fourier(n)
        tails = [float(np.sum(2.0 * energy[k:])) / n**2 * 4 * UNITS for k in choice.bins]
        k = choice.bins[int(np.argmin(np.array(tails) + np.array(choice.costs)))]
        shrunk = self.public if self.shrinks else None
        return fourier_estimator(n, k, float(choice.noise), shrunk)

    def expected_error(self, data: FeatureTable) -> Floats:
        """Expected mean squared error per feature, in units of the squared range, before clamping:
        of each candidate, weighted by its probability.

        From the data, so for studies and never for publication.
        """
        seqs = sequences(self.name, data)
        grid = lattice(self.name, seqs, self.length)
        _, n, features = grid.values.shape
        choice = self.choice(n, Share.of(self.budget, self.per, seqs).block)
        real = np.arange(n) < np.minimum(seqs.lengths, n)[:, None]
        centred = grid.values / STEPS - 0.5
        shrunk = self.public if self.shrinks else None
        errors = np.empty((len(choice.bins), features))
        for i, k in enumerate(choice.bins):
            shape = fourier_estimator(n, k, float(choice.noise), shrunk)
            bias = np.einsum("ts,rsf->rtf", shape.mean - np.eye(n), centred, optimize=True)
            errors[i] = (bias**2 + shape.noise[:, None])[real].mean(axis=0)
        chances = np.stack(
            [
                choice.probabilities(
                    choice.totals(np.ascontiguousarray(grid.values[:, :, f].T.astype(np.int64)))
                )
                for f in range(features)
            ],
            axis=1,
        )
        out: Floats = (chances * errors).sum(axis=0)
        return out

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.sequences.private_k.audit import private_k

        return private_k(self, unit)


def _parts(choice: BinChoice) -> tuple[tuple[str, Loss], ...]:
    """What of the budget of one recording-feature each part spends."""
    if not choice.choosing:
        return ()
    return (
        (
            "which of " + ", ".join(map(str, choice.bins)) + " bins a feature has, for one feature"
            " of one recording",
            Loss.pure(choice.choosing),
        ),
        ("the noisy bins alone, for one feature of one recording", Loss.pure(choice.noise)),
    )
