"""A privacy loss: how much the probability of any outcome may change, in one of three measures.

* `pure`: epsilon-DP; no outcome is more than exp(epsilon) times as likely.
* `concentrated`: rho-zCDP (Bun and Steinke 2016), the measure of Gaussian noise.
* `approximate`: (epsilon, delta)-DP.

Three operations, and each says where it is right:

* `a + b`, `a.repeated(n)`: composition. Two releases about the same change whose noise is
  independent, or the second of which was chosen after seeing the first.
* `worst(a, b)`: the change falls into one of several parts, and the part is unknown.
* `a.grouped(n)`: a change that is n steps of one this loss speaks of, in the same release. In zCDP
  that costs n squared.

From one measure of privacy loss to another, rounded up: a number that is printed is never better
than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.privacy.rational import Number, exact

_GRID = 10**9


def raised(value: float) -> Fraction:
    """A float as a fraction that is certainly not below the number it stands for."""
    return Fraction(math.ceil(value * (1 + 1e-12) * _GRID + 1e-6), _GRID)


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """Pure epsilon-DP is epsilon**2 / 2 zCDP (Bun and Steinke 2016), exactly."""
    return epsilon * epsilon / 2


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon at which rho-zCDP gives (epsilon, delta)-DP, rounded up.

    Proposition 12 of Canonne, Kamath and Steinke 2020 holds for every order alpha > 1, so an
    inexact search for the best one costs tightness, never truth; the result is raised by one part
    in 10**12 for the rounding of the logarithms and then to the grid.
    """
    if rho == 0:
        return Fraction(0)
    r, d = float(rho) * (1 + 1e-15), _above_zero("epsilon_of_rho", delta) * (1 - 1e-15)

    def at(log_step: float) -> float:
        step = math.exp(log_step)  # alpha - 1
        alpha = 1 + step
        return alpha * r + math.log1p(-1 / alpha) - (math.log(d) + math.log(alpha)) / step

    return raised(max(0.0, _smallest(at, -30.0, 30.0)))


def _above_zero(owner: str, delta: Fraction) -> float:
    """Delta as a float, refused where it is none: Gaussian noise has no finite epsilon at delta =
    0.
    """
    d = float(delta)
    if not 0.0 < d < 1.0:
        checks.refuse(
            owner,
            "delta",
            "above 0 and below 1: with delta = 0 there is no finite epsilon",
            delta,
            "Choose one, such as 1e-6.",
        )
    return d


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value found by a grid and two refinements of it; every value
    is a valid bound.
    """
    for _ in range(3):
        points = [low + (high - low) * i / 400 for i in range(401)]
        values = [function(p) for p in points]
        best = min(range(401), key=lambda i: values[i])
        low, high = points[max(best - 1, 0)], points[min(best + 1, 400)]
    return values[best]


_CERTAIN = Fraction(1)

MEASURES = ("pure", "approximate", "concentrated")


class PromiseError(GazeveilError):
    """A promise was asked for something it cannot know; nothing is answered instead of something
    false.
    """


@dataclass(frozen=True)
class Loss:
    """How much is lost at most.

    Parameters
    ----------
    measure : str
        One of :data:`MEASURES`.
    amount : Fraction
        Epsilon, or rho where the measure is `concentrated`.
    delta : Fraction
        Of the measure `approximate`; 0 otherwise.
    delta_num : Fraction
        Probability that finite arithmetic breaks the promise; to be added to delta.

    Examples
    --------
    >>> (Loss.pure(1) + Loss.pure("1/2")).epsilon
    Fraction(3, 2)
    >>> Loss.concentrated("1/2").repeated(4).rho, Loss.concentrated("1/2").grouped(4).rho
    (Fraction(2, 1), Fraction(8, 1))
    """

    measure: str
    amount: Fraction
    delta: Fraction = Fraction(0)
    delta_num: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        checks.one_of("Loss", "measure", self.measure, MEASURES)
        for name in ("amount", "delta", "delta_num"):
            value = getattr(self, name)
            if not isinstance(value, Fraction):
                checks.refuse("Loss", name, "a Fraction: budgets are exact", value)
            if value < 0:
                # A negative loss would be a refund: an account that took it would allow more than
                # its limit.
                checks.refuse("Loss", name, "at least 0", value)
        if self.delta > 1:
            checks.refuse("Loss", "delta", "at most 1: it is a probability", self.delta)
        if self.delta > 0 and self.measure != "approximate":
            checks.refuse("Loss", "delta", f"0 where the measure is {self.measure}", self.delta)

    @classmethod
    def pure(cls, epsilon: Number, delta_num: Fraction = Fraction(0)) -> Loss:
        """Epsilon-DP."""
        return cls("pure", exact("Loss", "epsilon", epsilon, least=0), Fraction(0), delta_num)

    @classmethod
    def concentrated(cls, rho: Number, delta_num: Fraction = Fraction(0)) -> Loss:
        """Rho-zCDP."""
        return cls("concentrated", exact("Loss", "rho", rho, least=0), Fraction(0), delta_num)

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number, delta_num: Fraction = Fraction(0)) -> Loss:
        """(epsilon, delta)-DP."""
        return cls(
            "approximate",
            exact("Loss", "epsilon", epsilon, least=0),
            exact("Loss", "delta", delta, least=0),
            delta_num,
        )

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon, or None where the measure is `concentrated`."""
        return None if self.measure == "concentrated" else self.amount

    @property
    def rho(self) -> Fraction | None:
        """Rho, or None in the other measures."""
        return self.amount if self.measure == "concentrated" else None

    def numbers(self) -> dict[str, Fraction]:
        """The numbers by name: `epsilon`, `epsilon` and `delta`, or `rho`."""
        if self.measure == "concentrated":
            return {"rho": self.amount}
        return (
            {"epsilon": self.amount}
            if self.measure == "pure"
            else {"epsilon": self.amount, "delta": self.delta}
        )

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """The epsilon of this loss at a delta, rounded up; a pure loss has it at every delta.

        Raises
        ------
        PromiseError
            For a delta below the one that an approximate loss has.
        """
        if self.measure == "concentrated":
            return epsilon_of_rho(self.amount, delta)
        if delta < self.delta:
            raise PromiseError(
                f"This loss has delta = {float(self.delta):g}, so there is no epsilon at delta ="
                f" {float(delta):g}. Ask at a larger delta."
            )
        return self.amount

    def as_concentrated(self) -> Loss:
        """The same loss in zCDP.

        Raises
        ------
        PromiseError
            For an approximate loss, which has no rho.
        """
        if self.measure == "approximate":
            raise PromiseError(
                "(epsilon, delta)-DP has no rho. Convert the other loss with epsilon_at at a delta"
                " of your choice."
            )
        return (
            self
            if self.measure == "concentrated"
            else Loss.concentrated(rho_of_epsilon(self.amount), self.delta_num)
        )

    def __add__(self, other: Loss) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        a, b = _alike(self, other)
        return Loss(
            a.measure,
            a.amount + b.amount,
            min(_CERTAIN, a.delta + b.delta),
            a.delta_num + b.delta_num,
        )

    def repeated(self, times: int) -> Loss:
        """Composition with itself: so many releases with independent noise, each with this loss."""
        n = checks.count("Loss.repeated", "times", times, least=0)
        return Loss(
            self.measure, self.amount * n, min(_CERTAIN, self.delta * n), self.delta_num * n
        )

    def grouped(self, steps: int) -> Loss:
        """Group privacy: a change that is so many steps of the one this loss is about, in one
        release.

        Pure losses add up; in zCDP the steps square (Bun and Steinke 2016, Proposition 27); delta
        grows by (e**(n epsilon) - 1) / (e**epsilon - 1).
        """
        if checks.count("Loss.grouped", "steps", steps, least=0) <= 1:
            return self if steps == 1 else Loss(self.measure, Fraction(0))
        if self.measure == "concentrated":
            return Loss.concentrated(self.amount * steps * steps, self.delta_num * steps)
        if self.measure == "pure":
            return Loss.pure(self.amount * steps, self.delta_num * steps)
        grown = Fraction(steps) if self.amount == 0 else steps * _power(self.amount * (steps - 1))
        return Loss.approximate(
            self.amount * steps, min(_CERTAIN, self.delta * grown), self.delta_num * steps
        )


def worst(losses: Iterable[Loss]) -> Loss:
    """The loss where the change falls into one of several parts: the largest, number by number.

    Raises
    ------
    PromiseError
        For no losses at all, or kinds that have no common measure.
    """
    several = list(losses)
    if not several:
        raise PromiseError("There is nothing to take the worst of.")
    largest = several[0]
    for other in several[1:]:
        a, b = _alike(largest, other)
        largest = Loss(
            a.measure, max(a.amount, b.amount), max(a.delta, b.delta), max(a.delta_num, b.delta_num)
        )
    return largest


def _alike(a: Loss, b: Loss) -> tuple[Loss, Loss]:
    """Both in one measure."""
    kinds = {a.measure, b.measure}
    if len(kinds) == 1:
        return a, b
    if kinds == {"pure", "concentrated"}:
        return a.as_concentrated(), b.as_concentrated()
    if kinds == {"pure", "approximate"}:
        return Loss("approximate", a.amount, a.delta, a.delta_num), Loss(
            "approximate", b.amount, b.delta, b.delta_num
        )
    raise PromiseError(
        "rho-zCDP and (epsilon, delta)-DP cannot be added directly. Convert the first with"
        " epsilon_of_rho at a delta of your choice."
    )


def _power(exponent: Fraction) -> Fraction:
    """A fraction that is certainly not below e to that power."""
    return (
        raised(math.exp(float(exponent))) if exponent < 600 else Fraction(10) ** math.ceil(exponent)
    )
