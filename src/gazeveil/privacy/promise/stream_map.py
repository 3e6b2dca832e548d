"""Maps of streams: the loss for so many samples in a row that move so far.

A :class:`StreamMap` is about one stream of a nominal rate in one space, of any length, so it bounds
a sample and a window. What a recording and a person add up to needs the lengths of recordings:
:class:`~gazeveil.privacy.promise.algebra.RecordingsMap`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss, PromiseError
from gazeveil.privacy.promise.privacy_map import PrivacyMap

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
