"""What the views of a graded session promise: the loss of the finest one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.stream_map import StreamMap, farthest_coordinates_deg
from gazeveil.privacy.randomness.rng import ASSUMPTION
from gazeveil.privacy.stream.gaussian import GaussianMap
from gazeveil.privacy.stream.losses.option import NEVER_COVERED

_SQRT_2 = Fraction(1414214, 10**6)


@dataclass(frozen=True)
class GradedLaplaceMap(StreamMap):
    """Laplace noise on every sample of the finest view, on both axes (`laplace`) or in the plane
    (`planar-laplace`).

    Parameters
    ----------
    law : str
        One of the two.
    bits : int
        2**bits steps to a degree.
    steps : Fraction
        Scale of the finest view in steps.
    views : int
        How many views there are: each may fall on the other side of a rounding boundary.
    """

    law: str
    bits: int
    steps: Fraction
    views: int

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Each sample by how far its coordinates move."""
        moved = farthest_coordinates_deg(self.space, move_deg, metric) * (1 << self.bits)
        # Laplace on both axes loses by the sum of the two moves; rounding adds at most a step to
        # each.
        far = _SQRT_2 * moved + 2 if self.law == "laplace" else moved + _SQRT_2
        # Planar noise in doubles falls on the other side of a rounding boundary with at most this
        # probability, in each view.
        error = (
            Fraction(1, 1 << 40)
            if self.law == "laplace"
            else self.views * (self.steps / (1 << 40) + Fraction(1, 1 << 30))
        )
        return Loss.pure(samples * far / self.steps, samples * error)


@dataclass(frozen=True)
class GradedGaussianMap(GaussianMap):
    """As Gaussian noise, with the numerical error of levels that were declared late."""

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """By samples."""
        return replace(
            super().run(samples, move_deg, metric), delta_num=samples * Fraction(1, 1 << 40)
        )


def guarantee(law: str, losses: StreamMap, finest_deg: Fraction, r_deg: Fraction) -> Guarantee:
    """What everybody who sees views of a law, the finest of that scale, is promised."""
    numbers = (
        "whole numbers; a level declared late rests on probabilities in floating point"
        if law != "planar-laplace"
        else "floating point, rounded"
    )
    return Guarantee(
        "rho-zcdp" if law == "gaussian" else "geo-indistinguishability",
        losses,
        Change.sample(r_deg, "coordinates"),
        mechanism=f"graded ({law}, finest view {float(finest_deg):g} degrees)",
        assumptions=(ASSUMPTION, "the session's key stays secret", f"the noise is {numbers}"),
        not_covered=(*NEVER_COVERED, "views finer than the one named"),
        reason="proofs/graded.md",
    )
