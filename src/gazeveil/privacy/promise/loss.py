"""A change of the data (:class:`Change`) and what a release loses for it (:class:`Loss`).

A privacy loss: how much the probability of any outcome may change, in one of three measures.

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

What differs between two datasets that an attacker tries to tell apart.

A promise without its change is half a sentence: "epsilon = 1" for a sample that moves by a degree
and "epsilon = 1" for a person who is replaced are different things. A :class:`Change` says which
unit, how many of them, how long, and how far gaze moves.

Streams of gaze: a `sample`, a `window` (so many samples, or so many seconds at the nominal rate, in
a row), a `recording`, everything of a `user`, or a `place`: all gaze in one public cell, however
often it is looked at. Tables: a `chunk` of rows of one feature, a `recording-feature`, a
`recording`, a `user`. Of events: one `event` more or less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.privacy.rational import Number, exact, format_exact

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


#: Units of privacy from the smallest to the largest.
UNITS = ("sample", "event", "window", "chunk", "recording-feature", "recording", "user")

#: How a move is measured: by the space's own distance (along a great circle on a sphere, in the
#: plane of the two angles on a screen), or by the coordinates x and y as numbers (x going round on
#: a sphere).
METRICS = ("space", "coordinates")

#: Units that a change of gaze can have.
GAZE_UNITS = ("sample", "window", "recording", "user")


@dataclass(frozen=True)
class Change:
    """One change of the data; times and losses of samples stay as they are unless a unit is said to
    be replaced.

    Parameters
    ----------
    unit : str
        One of :data:`UNITS`.
    count : int
        How many of that unit change. They may overlap, so that what lies in several of them moves
        several times as far.
    samples, seconds : int, Fraction, optional
        Of a window: how long it is; one of them.
    rows : int, optional
        Of a chunk: its rows.
    move_deg : Fraction, optional
        How far every changed sample moves at most, in degrees; None is anywhere.
    metric : str
        One of :data:`METRICS`.
    start_deg : Fraction, optional
        Of a window on the public grid of windows: all of it is replaced, and only its first place
        moves by at most this many degrees.

    Examples
    --------
    >>> print(Change.window(seconds="1/2", move_deg=2))
    the gaze of any 0.5 s of one recording, counted in samples at its nominal rate, is moved by at
    most 2 degrees, times and losses being the same
    >>> print(Change.person())
    all gaze of one person is replaced by any other, times and losses being the same
    """

    unit: str
    count: int = 1
    samples: int | None = None
    seconds: Fraction | None = None
    rows: int | None = None
    move_deg: Fraction | None = None
    metric: str = "space"
    start_deg: Fraction | None = None

    def __post_init__(self) -> None:
        checks.one_of("Change", "unit", self.unit, UNITS)
        checks.one_of("Change", "metric", self.metric, METRICS)
        checks.count("Change", "count", self.count)
        if self.unit == "window":
            if (self.samples is None) == (self.seconds is None):
                checks.refuse(
                    "Change",
                    "samples",
                    "given for a window, or seconds instead",
                    (self.samples, self.seconds),
                )
        elif self.samples is not None or self.seconds is not None or self.start_deg is not None:
            checks.refuse(
                "Change",
                "samples",
                "left out for anything but a window",
                (self.samples, self.seconds, self.start_deg),
            )
        if (self.unit == "chunk") != (self.rows is not None):
            checks.refuse("Change", "rows", "given for a chunk, and for nothing else", self.rows)
        for name in ("samples", "rows"):
            if getattr(self, name) is not None:
                checks.count("Change", name, getattr(self, name))
        for name in ("move_deg", "start_deg", "seconds"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, exact("Change", name, getattr(self, name), least=0))
        if self.unit not in GAZE_UNITS and self.move_deg is not None:
            checks.refuse("Change", "move_deg", f"left out for a {self.unit}", self.move_deg)

    @classmethod
    def sample(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """One sample of one recording."""
        return cls("sample", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def window(
        cls,
        samples: int | None = None,
        seconds: Number | None = None,
        move_deg: Number | None = None,
        metric: str = "space",
        start_deg: Number | None = None,
        count: int = 1,
    ) -> Change:
        """So many samples, or seconds at the nominal rate, in a row of one recording."""
        long = None if seconds is None else exact("Change", "seconds", seconds, above=0)
        return cls(
            "window", count, samples, long, None, _degrees(move_deg), metric, _degrees(start_deg)
        )

    @classmethod
    def chunk(cls, rows: int) -> Change:
        """So many rows of one feature of one recording, on the public grid of chunks."""
        return cls("chunk", rows=rows)

    @classmethod
    def recording_feature(cls) -> Change:
        """All values of one feature of one recording."""
        return cls("recording-feature")

    @classmethod
    def recording(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """A whole recording."""
        return cls("recording", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def person(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """Everything of one person."""
        return cls("user", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def event(cls) -> Change:
        """One event is there or is not."""
        return cls("event")

    def clause(self, spaces: frozenset[str] = frozenset(), table: bool = False) -> str:
        """The change as a clause.

        Parameters
        ----------
        spaces : frozenset of str
            `sphere`, `screen` or both: what degrees mean where the change is made.
        table : bool
            Whether the data are the values of a table.
        """
        if self.unit == "event":  # also where larger units are those of a table: counters
            return self._many + "one event is there or is not, all others being the same"
        if table and self.unit in _TABLE_CLAUSES:
            return self._many + _TABLE_CLAUSES[self.unit].format(rows=self.rows)
        if self.start_deg is not None:
            where = (
                f"anything else that begins at most {degrees(self.start_deg)}{self._along(spaces)}"
                " from where it began"
            )
            return (
                f"{self._many}the gaze of one window of {_length(self)} of one recording on the"
                f" public grid of windows is replaced by {where}"
            )
        moved = (
            "replaced by any other"
            if self.move_deg is None
            else f"moved by at most {degrees(self.move_deg)}{self._along(spaces)}"
        )
        return f"{self._many}{self._what()} is {moved}, times and losses being the same"

    def __str__(self) -> str:
        return self.clause()

    @property
    def _many(self) -> str:
        return "" if self.count == 1 else f"{self.count} times: "

    def _what(self) -> str:
        if self.unit == "sample":
            return "one sample of one recording"
        if self.unit == "window":
            if self.samples is not None:
                return f"the gaze of any {self.samples} samples in a row of one recording"
            # In samples: from the first to the last of 30 samples at 60 Hz it is less than half a
            # second, of 31 it is half a second.
            return (
                f"the gaze of any {_length(self)} of one recording, counted in samples at its"
                " nominal rate,"
            )
        return "all gaze of one person" if self.unit == "user" else f"all gaze of one {self.unit}"

    def _along(self, spaces: frozenset[str]) -> str:
        if self.metric == "coordinates":
            return " along x and y together" + (
                " (x goes round on a sphere)" if spaces != {"screen"} else ""
            )
        along = {
            "sphere": " along a great circle",
            "screen": " in the plane of the two angles of the screen",
        }
        if len(spaces) == 2:
            return " (along a great circle on a sphere, in the plane of the two angles on a screen)"
        return "".join(along[s] for s in spaces)


_OTHERS = "are replaced by any others within the public bounds"

#: What is replaced in a table, per unit.
_TABLE_CLAUSES = {
    "chunk": f"all values of one chunk of {{rows}} rows of one feature of one recording {_OTHERS}",
    "recording-feature": (
        f"all values of one feature of one recording {_OTHERS}, in any number up to the public"
        " length"
    ),
    "recording": f"all values of one recording {_OTHERS}, in any number up to the public length",
    "user": (
        f"all values of all recordings of one person {_OTHERS}, in any number up to the public"
        " length"
    ),
}


def degrees(value: Fraction) -> str:
    """A distance in words, rounded down: a larger one would be the better promise."""
    return "1 degree" if value == 1 else f"{format_exact(value, down=True)} degrees"


def _degrees(value: Number | None) -> Fraction | None:
    return None if value is None else exact("Change", "move_deg", value, least=0)


def _length(change: Change) -> str:
    return (
        f"{change.samples} samples"
        if change.samples is not None
        else f"{format_exact(change.seconds or Fraction(0), down=True)} s"
    )
