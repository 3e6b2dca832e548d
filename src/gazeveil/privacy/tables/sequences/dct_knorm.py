"""`dct-knorm`: noise as round as the sensitivity, on the few cosine coefficients that carry a
feature, shrunk by a public spectrum.

An improvement on `fpa`, at the same epsilon and unit:

1. **Cosine transform.** The orthonormal DCT-II has no jump where the end meets the beginning, so
   slow features need fewer coefficients than in the DFT, and any number D of them can be taken,
   those with the largest public variance.
2. **Noise in the l2 norm** (Hardt and Talwar 2010). The sensitivity is a ball of radius Delta_2 =
   sqrt(n) (hi - lo). Noise that depends on |z|_2 alone costs

       profile "exponential":  p(z) ~ exp(-epsilon |z| / Delta_2),       E |z|^2 = D (D + 1)
       Delta_2^2 / epsilon^2

   where independent Laplace noise on k = (D + 1) / 2 bins of the DFT costs (8 k^2 - 6 k) Delta_2^2
   / epsilon^2, up to twice as much.
3. **Staircase** (Geng et al. 2015, :mod:`gazeveil.privacy.noise.shells`). The density need not fall
   between radii closer than Delta_2:

       profile "staircase":    p(z) ~ exp(-epsilon j)   for   R_0 + (j - 1) Delta_2 < |z| <= R_0 + j
       Delta_2.

   Where epsilon exceeds D this is orders of magnitude less noise at the same promise.
4. **Wiener shrinkage** towards the public midpoint with the public spectrum.

D, the profile and R_0 are those with the least expected error for the public model: functions of
the length, epsilon and the spectrum. Proof: proofs/dct-knorm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.errors import ParameterError
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, tail_delta
from gazeveil.privacy.noise.knorm import ASSUMPTION, knorm
from gazeveil.privacy.noise.knorm import MOST_DIMENSION as MOST_ROUND
from gazeveil.privacy.noise.shells import (
    LEAST_EPSILON,
    MOST_DIMENSION,
    Shells,
    best_gamma,
    most_sensitivity,
    shell_noise,
    shells,
)
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number
from gazeveil.privacy.tables.sequences.integer_transform import (
    CoefficientGrid,
    coefficients,
    grid_l2,
)
from gazeveil.privacy.tables.sequences.noisy_sequence import Estimator, Noisy, NoisyTable
from gazeveil.privacy.tables.sequences.recordings import STEPS
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum, cosine_rows, idct, wiener

PROFILES = ("exponential", "staircase")

#: How far beyond twice the best number of coefficients a better one is sought.
_PATIENCE = 16

#: Scale beyond which double precision often cannot settle how a vector is rounded.
_MOST_KNORM = 1 << 26


@dataclass(frozen=True)
class Design:
    """What is released of a block, decided without data.

    Parameters
    ----------
    places : tuple of int
        Coefficients of the DCT.
    profile : str
        Shape of the noise.
    gamma : float
        Width of the staircase's first step over the sensitivity; 0 for the exponential profile.
    variance : float
        Of the noise of one coefficient, for Delta_2 = 1.
    """

    places: tuple[int, ...]
    profile: str
    gamma: float
    variance: float


@dataclass(frozen=True)
class DCTKNorm(NoisyTable):
    """Round noise on a few cosine coefficients.

    Parameters
    ----------
    epsilon : number
        Budget at the unit `per`.
    D : int, optional
        Coefficients to release, those with the largest public variance; None takes the number with
        the least expected error for the public model.
    profile : {"exponential", "staircase"}, optional
        Shape of the noise; None takes the one with the smaller variance. The staircase needs
        epsilon of at least 1 for a recording-feature, and D up to 64.
    per, length
        As of :class:`gazeveil.privacy.tables.sequences.laplace.LPA`.
    shrink : {"wiener", "none"}
        Shrink the noisy coefficients by their public variances.
    spectrum : PublicSpectrum or str, optional
        What is publicly assumed about features.
    """

    name: ClassVar[str] = "dct-knorm"
    label: ClassVar[str] = "DCT K-norm"
    summary: ClassVar[str] = (
        "Adds noise of a chosen norm to the cosine coefficients of a feature sequence."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "features",
        ("fpa:epsilon=20,shrink=wiener", ":epsilon=20", ":epsilon=100"),
        ("fpa:shrink=wiener", ":profile=exponential", ":"),
    )
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "an improvement on fpa; Hardt and Talwar 2010, Geng et al. 2015"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "l2 noise on cosine coefficients chosen by a public spectrum",
        )
    }

    epsilon: Number
    D: int | None = None
    profile: str | None = None
    per: str = "recording-feature"
    length: int | None = None
    shrink: str | None = "wiener"
    spectrum: PublicSpectrum | str | None = None

    def check(self) -> None:
        """Check D and the profile besides what the family has."""
        super().check()
        if self.D is not None:
            self.store("D", checks.count(self.name, "D", self.D))
        if self.profile is not None:
            checks.one_of(self.name, "profile", self.profile, PROFILES)

    def design(self, n: int, epsilon: Fraction) -> Design:
        """What is released of a block of n values with that budget.

        Raises
        ------
        ParameterError
            If the block has fewer than D values, or the profile cannot be had.
        """
        if self.D is not None and n < self.D:
            checks.refuse(
                self.name,
                "D",
                f"at most the length of {n} rows",
                self.D,
                "Leave D out to have it chosen.",
            )
        if self.profile == "staircase" and (
            epsilon < LEAST_EPSILON or (self.D or 1) > MOST_DIMENSION
        ):
            raise ParameterError(
                f"The staircase profile of {self.name} needs epsilon of at least {LEAST_EPSILON}"
                f" for one feature of one recording and D of at most {MOST_DIMENSION}. Got epsilon"
                f" {epsilon} and D {self.D}. Leave the profile out to have it chosen.",
                name="profile",
                got=self.profile,
            )
        return design(n, float(epsilon), self.public, self.shrinks, self.D, self.profile)

    def estimator(self, n: int, epsilon: float) -> Estimator:
        """The chosen coefficients, shrunk or not."""
        plan = self.design(n, Fraction(epsilon))
        places = np.array(plan.places)
        rows = cosine_rows(n, places)
        weights = (
            wiener(self.public.cosine(n)[places], n * plan.variance)
            if self.shrinks
            else np.ones(len(places))
        )
        return Estimator.of(rows.T * weights, rows, n * plan.variance)

    def law(self, n: int, epsilon: Fraction) -> tuple[CoefficientGrid, Shells | Fraction]:
        """The grid of the coefficients of a block of n values, and its noise: a staircase, or the
        scale of an exponential profile, in grid steps.
        """
        plan = self.design(n, epsilon)
        size, apart = len(plan.places), (n * STEPS**2, n * STEPS)
        if plan.profile == "staircase":
            grid = grid_l2(
                self.name, n, size, *apart, Fraction(1), most_sensitivity(size, epsilon, plan.gamma)
            )
            return grid, shells(size, epsilon, grid.sensitivity, plan.gamma)
        grid = grid_l2(self.name, n, size, *apart, epsilon, MOST_T if size == 1 else _MOST_KNORM)
        return grid, Fraction(grid.sensitivity) / epsilon

    def whole(self, blocks: Ints, plan: Design) -> Ints:
        """The integer coefficients of blocks about the public midpoint, before they are rounded to
        the grid.
        """
        table = cosine_rows(len(blocks), np.array(plan.places))
        return coefficients(
            lambda first, last: table[first:last], len(plan.places), blocks - STEPS // 2
        )

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """Integer noise on the chosen coefficients about the public
        midpoint, shrinkage, then back.
        """
        n, count = blocks.shape
        plan = self.design(n, epsilon)
        size = len(plan.places)
        places = np.array(plan.places)
        grid, law = self.law(n, epsilon)
        whole = self.whole(blocks, plan)
        assumptions: tuple[str, ...] = ()
        if isinstance(law, Shells):
            noise = shell_noise(law, count, words).T
            delta = count * law.delta
            variance = law.variance
        elif size == 1:
            noise = discrete_laplace(law, count, words)[None, :]
            delta = tail_delta(epsilon, count)
            variance = 2.0 * float(law) ** 2
        else:
            noise = knorm(size, law, count, words).T
            delta = tail_delta(epsilon, count)
            variance = (size + 1) * float(law) ** 2
            assumptions = (ASSUMPTION,)
        noisy = (grid.rounded(whole) + noise).astype(np.float64) * grid.step
        if self.shrinks:
            noisy *= wiener(self.public.cosine(n)[places], variance * (grid.step / STEPS) ** 2)[
                :, None
            ]
        full = np.zeros((n, count))
        full[places] = noisy
        return Noisy(idct(full, axis=0) + STEPS / 2, delta, assumptions)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.sequences.audit import dct_knorm

        return dct_knorm(self, unit)


def noise_variance(size: int, epsilon: float, profile: str | None) -> tuple[str, float, float]:
    """Profile, gamma and variance of one coefficient for Delta_2 = 1; the smaller variance where no
    profile is given.
    """
    exponential = ("exponential", 0.0, (size + 1) / epsilon**2)
    if profile == "exponential" or epsilon < LEAST_EPSILON or size > MOST_DIMENSION:
        return exponential
    gamma, variance = best_gamma(size, epsilon)
    if profile == "staircase" or variance < exponential[2]:
        return ("staircase", gamma, variance)
    return exponential


@lru_cache(maxsize=256)
def design(
    n: int,
    epsilon: float,
    spectrum: PublicSpectrum,
    shrink: bool,
    size: int | None = None,
    profile: str | None = None,
) -> Design:
    """The coefficients and the noise with the least expected error for sequences of the public
    model; public things alone decide.
    """
    variances = spectrum.cosine(n)
    order = np.argsort(-variances, kind="stable")
    ranked = variances[order]
    after = np.append(np.cumsum(ranked[::-1])[::-1], 0.0)
    best: tuple[float, Design] | None = None
    for d in range(1, min(n, MOST_ROUND) + 1) if size is None else (size,):
        if profile == "staircase" and d > MOST_DIMENSION:
            break
        shape, gamma, unit = noise_variance(d, epsilon, profile)
        noise = n * unit
        kept = ranked[:d]
        error = after[d] + (float(np.sum(kept * noise / (kept + noise))) if shrink else d * noise)
        if best is None or error < best[0]:
            best = error, Design(tuple(order[:d].tolist()), shape, gamma, unit)
        elif d > 2 * len(best[1].places) + _PATIENCE:
            break
    assert best is not None
    return best[1]
