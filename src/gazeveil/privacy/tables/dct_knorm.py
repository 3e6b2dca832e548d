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
3. **Staircase** (Geng et al. 2015, :mod:`gazeveil.privacy.noise.knorm`). The density need not fall
   between radii closer than Delta_2:

       profile "staircase":    p(z) ~ exp(-epsilon j)   for   R_0 + (j - 1) Delta_2 < |z| <= R_0 + j
       Delta_2.

   Where epsilon exceeds D this is orders of magnitude less noise at the same promise.
4. **Wiener shrinkage** towards the public midpoint with the public spectrum.

D, the profile and R_0 are those with the least expected error for the public model: functions of
the length, epsilon and the spectrum. Proof: proofs/dct-knorm.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import ParameterError
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, tail_delta
from gazeveil.privacy.noise.knorm import (
    ASSUMPTION,
    LEAST_EPSILON,
    MOST_DIMENSION,
    Shells,
    best_gamma,
    knorm,
    most_sensitivity,
    shell_noise,
    shells,
)
from gazeveil.privacy.noise.knorm import MOST_DIMENSION as MOST_ROUND
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number
from gazeveil.privacy.tables.noisy import Noisy, NoisyTable
from gazeveil.privacy.tables.recordings import STEPS
from gazeveil.privacy.tables.spectrum import (
    CoefficientGrid,
    coefficients,
    cosine_rows,
    grid_l2,
    idct,
    public_cosine,
    wiener,
)

PROFILES = ("exponential", "staircase")

#: How far beyond twice the best number of coefficients a better one is sought.
_PATIENCE = 16

#: Scale beyond which double precision often cannot settle how a vector is rounded.
_MOST_KNORM = 1 << 26


class NoiseLaw(NamedTuple):
    """Noise on vectors of coefficients, for Delta_2 = 1.

    Parameters
    ----------
    profile : str
        Shape of the noise.
    gamma : float
        Width of the staircase's first step over the sensitivity; 0 for the exponential profile.
    variance : float
        Of one coefficient.
    joint : bool
        Whether one vector holds several blocks.
    """

    profile: str
    gamma: float
    variance: float
    joint: bool = False


@dataclass(frozen=True)
class Design:
    """What is released of a block, decided without data: coefficients of the DCT, and their
    noise.
    """

    places: tuple[int, ...]
    noise: NoiseLaw


@dataclass(frozen=True)
class RoundNoise:
    """Noise in the l2 norm on vectors of whole coefficients, as it is drawn.

    Parameters
    ----------
    grid : CoefficientGrid
        What coefficients are rounded to.
    size : int
        Coefficients of a vector.
    epsilon : Fraction
        Budget of a vector.
    law : Shells or Fraction
        A staircase, or the scale of an exponential profile, in grid steps.
    """

    grid: CoefficientGrid
    size: int
    epsilon: Fraction
    law: Shells | Fraction

    @classmethod
    def of(
        cls, owner: str, n: int, size: int, epsilon: Fraction, gamma: float, moved: int = 1
    ) -> RoundNoise:
        """For vectors that hold blocks of n values, of which a neighbour moves so many."""
        apart = (moved * n * STEPS**2, n * STEPS)
        if gamma > 0:
            most = most_sensitivity(size, epsilon, gamma)
            grid = grid_l2(owner, n, size, *apart, Fraction(1), most)
            return cls(grid, size, epsilon, shells(size, epsilon, grid.sensitivity, gamma))
        grid = grid_l2(owner, n, size, *apart, epsilon, MOST_T if size == 1 else _MOST_KNORM)
        return cls(grid, size, epsilon, Fraction(grid.sensitivity) / epsilon)

    def draw(self, count: int, words: Words) -> Ints:
        """So many vectors, shape (count, size)."""
        if isinstance(self.law, Shells):
            return shell_noise(self.law, count, words)
        if self.size == 1:
            return discrete_laplace(self.law, count, words)[:, None]
        return knorm(self.size, self.law, count, words)

    @property
    def variance(self) -> float:
        """Of one coefficient, for range 1."""
        if isinstance(self.law, Shells):
            steps = self.law.variance
        else:
            steps = (2.0 if self.size == 1 else self.size + 1) * float(self.law) ** 2
        return steps * (self.grid.step / STEPS) ** 2

    def delta_num(self, count: int) -> Fraction:
        """What so many vectors cost by finite arithmetic."""
        if isinstance(self.law, Shells):
            return count * self.law.delta
        return tail_delta(self.epsilon, count)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the sampler assumes."""
        return (ASSUMPTION,) if self.size > 1 and not isinstance(self.law, Shells) else ()

    def loss(self, first: Floats, second: Floats) -> float:
        """What two vectors, in grid steps, certainly lose."""
        if isinstance(self.law, Shells):
            return self.law.least_loss
        # The density of noise that is rounded lies within half a diagonal of that of the noise
        # itself; in one dimension it is discrete from the start.
        diagonal = float(np.sqrt(self.size)) if self.size > 1 else 0.0
        return max(0.0, float(np.linalg.norm(first - second)) - diagonal) / float(self.law)


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
        As of :class:`gazeveil.privacy.tables.noisy.LPA`.
    shrink : {"wiener", "none"}
        Shrink the noisy coefficients by their public variances.
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
        check_size(self.name, self.D, n)
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
        return _design(n, float(epsilon), self.shrinks, self.D, self.profile)

    def noise(self, n: int, epsilon: Fraction) -> RoundNoise:
        """The noise of a block of n values."""
        plan = self.design(n, epsilon)
        return RoundNoise.of(self.name, n, len(plan.places), epsilon, plan.noise.gamma)

    def whole(self, blocks: Ints, plan: Design) -> Ints:
        """The integer coefficients of blocks about the public midpoint, before they are rounded to
        the grid.
        """
        return coefficients(cosine_rows(len(blocks), np.array(plan.places)), blocks - STEPS // 2)

    def perturb(self, blocks: Ints, epsilon: Fraction, words: Words) -> Noisy:
        """Integer noise on the chosen coefficients about the public
        midpoint, shrinkage, then back.
        """
        n, count = blocks.shape
        plan, noise = self.design(n, epsilon), self.noise(n, epsilon)
        places = np.array(plan.places)
        steps = noise.grid.rounded(self.whole(blocks, plan)) + noise.draw(count, words).T
        noisy = steps.astype(np.float64) * noise.grid.step
        if self.shrinks:
            noisy *= wiener(public_cosine(n)[places], noise.variance)[:, None]
        full = np.zeros((n, count))
        full[places] = noisy
        values = idct(full, axis=0) + STEPS / 2
        return Noisy(values, noise.delta_num(count), noise.assumptions)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.audit import dct_knorm

        return dct_knorm(self, unit)


def check_size(owner: str, size: int | None, n: int) -> None:
    """Refuse more coefficients than a block has values."""
    if size is not None and n < size:
        checks.refuse(
            owner, "D", f"at most the length of {n} rows", size, "Leave D out to have it chosen."
        )


def noise_law(size: int, epsilon: float, profile: str | None = None) -> NoiseLaw:
    """Noise on so many coefficients; of the smaller variance where no profile is given."""
    exponential = NoiseLaw("exponential", 0.0, (size + 1) / epsilon**2)
    if profile == "exponential" or epsilon < LEAST_EPSILON or size > MOST_DIMENSION:
        return exponential
    staircase = NoiseLaw("staircase", *best_gamma(size, epsilon))
    return staircase if profile or staircase.variance < exponential.variance else exponential


def least_error(
    n: int,
    law: Callable[[int], NoiseLaw | None],
    shrink: bool,
    size: int | None = None,
    divisor: int = 1,
) -> Design | None:
    """The coefficients and the noise with the least expected error for sequences of the public
    model; public things alone decide.

    Parameters
    ----------
    n : int
        Values of a block.
    law : callable
        The noise on so many coefficients; None where there is none.
    shrink : bool
        Whether coefficients are shrunk.
    size : int, optional
        Number of coefficients where it is given.
    divisor : int
        By how much the noise's variance is divided: of an average.
    """
    variances = public_cosine(n)
    order = np.argsort(-variances, kind="stable")
    ranked = variances[order]
    after = np.append(np.cumsum(ranked[::-1])[::-1], 0.0)
    least, best = float("inf"), None
    for d in range(1, min(n, MOST_ROUND) + 1) if size is None else (size,):
        noise = law(d)
        if noise is None:
            break
        each, kept = n * noise.variance / divisor, ranked[:d]
        error = after[d] + (float(np.sum(kept * each / (kept + each))) if shrink else d * each)
        if error < least:
            least, best = error, Design(tuple(order[:d].tolist()), noise)
        elif best is not None and d > 2 * len(best.places) + _PATIENCE:
            break
    return best


@lru_cache(maxsize=256)
def _design(n: int, epsilon: float, shrink: bool, size: int | None, profile: str | None) -> Design:
    """The design of `dct-knorm`."""

    def law(d: int) -> NoiseLaw | None:
        none = profile == "staircase" and d > MOST_DIMENSION
        return None if none else noise_law(d, epsilon, profile)

    best = least_error(n, law, shrink, size)
    assert best is not None
    return best
