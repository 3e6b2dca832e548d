"""Maps from a change to the loss it may cause: what every promise is made of.

A mechanism states one base map, with its proof. Everything else follows by operations on maps
(:mod:`gazeveil.privacy.composition`, :meth:`UnitMap.lift`), and none of them guesses: a map
that is asked for a change it has no bound for raises
:class:`~gazeveil.privacy.promise.loss.PromiseError`.

Maps of streams: the loss for so many samples in a row that move so far.

A :class:`StreamMap` is about one stream of a nominal rate in one space, of any length, so it bounds
a sample and a window. What a recording and a person add up to needs the lengths of recordings:
:class:`~gazeveil.privacy.composition.RecordingsMap`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gazeveil import checks
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.promise.loss import UNITS, Change, Loss, PromiseError

#: The next larger unit that a change of a unit is part of: what is proved for a recording holds for
#: every part of it.
LARGER = {
    "sample": "recording",
    "event": "recording",
    "window": "recording",
    "chunk": "recording-feature",
    "recording-feature": "recording",
    "recording": "user",
}


class PrivacyMap(ABC):
    """How much is lost for a change."""

    #: Whether the data are values of a table, which :meth:`Change.clause` then speaks of.
    about_table: ClassVar[bool] = False

    @property
    def spaces(self) -> frozenset[str]:
        """What degrees mean: `sphere`, `screen`, both, or nothing."""
        return frozenset()

    @property
    def rates_hz(self) -> frozenset[float]:
        """The rates of all recordings, where they are known."""
        return frozenset()

    @abstractmethod
    def loss(self, change: Change) -> Loss:
        """The most that is lost for a change.

        Raises
        ------
        PromiseError
            Where no bound is known.
        """

    def samples_of(self, change: Change) -> int | None:
        """How many samples a window of a change has; the least where that differs from recording to
        recording, None where it is no window.
        """
        return change.samples

    def clause(self, change: Change) -> str:
        """The change as a clause, with what degrees mean here."""
        return change.clause(self.spaces, self.about_table)


@dataclass(frozen=True)
class UnitMap(PrivacyMap):
    """Losses by unit: tables, maps, and whatever is replaced as a whole.

    Parameters
    ----------
    losses : tuple of (unit, Loss)
        From the smallest unit that has a loss of its own to the largest.
    rows : int, optional
        Rows of a chunk.
    presence : bool
        Whether it is protected too which recordings a person has.

    Examples
    --------
    >>> chunks = UnitMap.of("chunk", Loss.pure("1/10"), rows=32)
    >>> table = chunks.lift("recording-feature", 4).lift("recording", 2).lift("user", 3)
    >>> table.loss(Change.person()).epsilon
    Fraction(12, 5)
    """

    losses: tuple[tuple[str, Loss], ...]
    rows: int | None = None
    presence: bool = False

    about_table: ClassVar[bool] = True

    @classmethod
    def of(cls, unit: str, loss: Loss, rows: int | None = None, presence: bool = False) -> UnitMap:
        """The loss of one unit, proved; of parts of it, the same bound holds."""
        checks.one_of("UnitMap", "unit", unit, UNITS)
        return cls(((unit, loss),), rows, presence)

    def lift(self, unit: str, parts: int | None) -> UnitMap:
        """The same for a larger unit that has at most so many of the largest one so far, each of
        them with noise of its own.

        Raises
        ------
        PromiseError
            Where that number is not known.
        """
        below, loss = self.losses[-1]
        if parts is None:
            raise PromiseError(
                f"A promise about a {below} cannot be lifted to a {unit} without knowing how many"
                " of them there are at most."
            )
        checks.count("UnitMap.lift", "parts", parts)
        if UNITS.index(checks.one_of("UnitMap.lift", "unit", unit, UNITS)) <= UNITS.index(below):
            checks.refuse("UnitMap.lift", "unit", f"larger than {below}", unit)
        lifted = Loss(
            loss.measure, loss.amount * parts, min(Fraction(1), loss.delta * parts), loss.delta_num
        )  # all draws of the release are in delta_num already
        return replace(self, losses=(*self.losses, (unit, lifted)))

    def loss(self, change: Change) -> Loss:
        """The loss of the smallest unit that holds the change; several units may share their noise,
        so they count as a group.
        """
        losses = dict(self.losses)
        unit: str | None = change.unit
        while unit is not None and unit not in losses:
            unit = LARGER.get(unit)
        if unit is None:
            has = ", ".join(u for u, _ in self.losses)
            raise PromiseError(
                f"This promise is about a {has}, and what that adds up to for a {change.unit} is"
                " not known."
            )
        return losses[unit].grouped(change.count * (self._chunks(change) if unit == "chunk" else 1))

    def clause(self, change: Change) -> str:
        """With whether which recordings there are is protected too."""
        return super().clause(change) + (
            ", and which recordings there are" if self.presence and change.unit == "user" else ""
        )

    def _chunks(self, change: Change) -> int:
        """How many chunks of this map a chunk of the change may touch: chunks of both sizes begin
        with the recording.
        """
        if change.rows is None or self.rows is None:
            raise PromiseError("A change of a chunk must say how many rows the chunk has.")
        mine, theirs = self.rows, change.rows
        # Where chunks of both sizes begin together, everything repeats.
        return max(
            ((i + 1) * theirs - 1) // mine - i * theirs // mine + 1
            for i in range(mine // math.gcd(mine, theirs))
        )


@dataclass(frozen=True)
class WholeMap(UnitMap):
    """Losses by unit of recordings that are replaced as a whole, with lengths and losses."""

    def clause(self, change: Change) -> str:
        """Recordings instead of values."""
        replaced = {
            "recording": "one recording is replaced by any other of the same stimulus",
            "user": "all recordings of one person are replaced by any others",
        }
        more = " and there may be other ones" if self.presence else " of the same stimuli"
        many = "" if change.count == 1 else f"{change.count} times: "
        if change.unit == "user":
            return many + replaced["user"] + more
        return (
            many + replaced["recording"] if change.unit == "recording" else super().clause(change)
        )


#: No two places of a sphere are farther apart along a great circle, in degrees.
HALF_TURN_DEG = Fraction(180)

#: No two pairs of coordinates are farther apart: x and y differ by at most 180 degrees each, on a
#: sphere and on a screen; rounded up.
COORDINATES_DEG = Fraction(2546, 10)


@dataclass(frozen=True)
class StreamMap(PrivacyMap):
    """The loss of one stream.

    Parameters
    ----------
    rate_hz : float
        Nominal samples per second.
    space : Sphere or Screen
        What degrees mean.
    """

    rate_hz: float
    space: Space

    @abstractmethod
    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """The loss if so many samples in a row move by at most so many degrees, measured so; None
        is anywhere.
        """

    @property
    def spaces(self) -> frozenset[str]:
        """One."""
        return frozenset({"sphere" if isinstance(self.space, Sphere) else "screen"})

    @property
    def rates_hz(self) -> frozenset[float]:
        """One."""
        return frozenset({self.rate_hz})

    def samples_of(self, change: Change) -> int | None:
        """Samples of a window: those that were asked for, or as many as fit into its seconds at the
        nominal rate.
        """
        if change.unit == "sample":
            return 1
        if change.seconds is None:
            return change.samples
        return max(1, math.ceil(change.seconds * Fraction(repr(float(self.rate_hz)))))

    def within(self, change: Change) -> Loss:
        """The loss of a sample or a window."""
        samples = self.samples_of(change)
        if samples is None or change.start_deg is not None:
            raise PromiseError(
                "This promise is about samples in a row that move, not about this change:"
                f" {change}."
            )
        # Several windows may overlap, and what lies in two of them moves twice: a group, not so
        # many changes apart.
        return self.run(samples, change.move_deg, change.metric).grouped(change.count)

    def whole(self, change: Change, samples: int) -> Loss:
        """The loss if a recording of so many samples changes."""
        return (
            self.run(samples, change.move_deg, change.metric)
            if samples
            else Loss(self.run(1, change.move_deg, change.metric).measure, Fraction(0))
        )

    def loss(self, change: Change) -> Loss:
        """Of a sample or a window; a stream has no length, so what a recording adds up to is not
        known.
        """
        if change.unit in ("sample", "window"):
            return self.within(change)
        if change.unit in ("recording", "user"):
            raise PromiseError(
                "What a stream adds up to for a recording or a person depends on its length, which"
                " is not known before it has ended."
            )
        raise PromiseError(f"This promise is about gaze and does not speak of a {change.unit}.")


@dataclass(frozen=True)
class WindowBudget(StreamMap):
    """A budget for any `window` samples in a row that move by at most r, by the space's own
    distance.

    Longer changes fall into windows; a move by more than r is a chain of moves by r (both spaces
    are convex: the way between two places lies in them). Where gaze is read at `readings` samples
    of a window at most, each with an equal share, few samples cost the readings they can be.

    Parameters
    ----------
    epsilon : Fraction
        Of a window.
    window : int
        Samples of a window.
    r_deg : Fraction
        How far samples move for that budget, in degrees.
    delta_num : Fraction
        Numerical error of a window.
    readings : int, optional
        See above.
    """

    epsilon: Fraction
    window: int
    r_deg: Fraction
    delta_num: Fraction = Fraction(0)
    readings: int | None = None

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """By windows, and by the readings of the rest."""
        # The coordinates of two places are never nearer to each other than the places themselves,
        # so one number serves both metrics.
        farthest = HALF_TURN_DEG if isinstance(self.space, Sphere) else COORDINATES_DEG
        far = farthest if move_deg is None else min(move_deg, farthest)
        steps = math.ceil(far / self.r_deg)
        windows, rest = divmod(samples, self.window)
        amount = windows * self.epsilon
        if rest:
            amount += self._part(rest)
            windows += 1
        return Loss.pure(amount * steps, self.delta_num * windows * steps)

    def _part(self, samples: int) -> Fraction:
        """Of fewer samples than a window."""
        return (
            self.epsilon
            if self.readings is None
            else self.epsilon * min(samples, self.readings) / self.readings
        )


def farthest_coordinates_deg(space: Space, move_deg: Fraction | None, metric: str) -> Fraction:
    """How far the coordinates x and y may move together, in degrees, for a move by so much."""
    if move_deg is None:
        return COORDINATES_DEG
    if metric == "coordinates" or not isinstance(space, Sphere):
        return min(move_deg, COORDINATES_DEG)
    # Near a pole the least arc turns x by half a turn.
    return min(HALF_TURN_DEG + move_deg, COORDINATES_DEG)
