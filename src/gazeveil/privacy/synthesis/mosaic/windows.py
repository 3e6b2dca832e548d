"""Public windows: when pieces begin and end, the same for every viewer of a stimulus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Bools, Ints


@dataclass(frozen=True)
class PublicWindows:
    """Windows of whole slots, one after the other, with a gap after each.

    Parameters
    ----------
    rate_hz : float
        Of the clock, in Hz.
    slot : int
        Samples of a slot.
    piece, gap : int
        Slots of a piece and of the gap after it.
    count : int
        How many windows there are.

    Examples
    --------
    >>> windows = PublicWindows.of(250.0, 63, Fraction(5), Fraction(1), Fraction(18))
    >>> windows.piece, windows.gap, windows.count
    (20, 4, 3)
    """

    rate_hz: float
    slot: int
    piece: int
    gap: int
    count: int

    @classmethod
    def of(
        cls, rate_hz: float, slot: int, piece_s: Fraction, gap_s: Fraction, duration_s: Fraction
    ) -> PublicWindows:
        """The windows that fit into a duration: pieces and gaps have the nearest number of slots,
        pieces at least one; a gap that is asked for has at least one too.
        """
        slot_s = slot / Fraction(repr(float(rate_hz)))
        piece = max(1, round(piece_s / slot_s))
        gap = max(1 if gap_s > 0 else 0, round(gap_s / slot_s))
        slots = math.floor(duration_s / slot_s)
        return cls(rate_hz, slot, piece, gap, max(0, (slots + gap) // (piece + gap)))

    @property
    def slots(self) -> int:
        """Slots from the first window's beginning to the last one's end."""
        return max(0, self.count * (self.piece + self.gap) - self.gap)

    @property
    def duration_s(self) -> Fraction:
        """The same in seconds."""
        return self.slots * self.slot / Fraction(repr(float(self.rate_hz)))

    @property
    def piece_samples(self) -> int:
        """Samples of a piece."""
        return self.piece * self.slot

    @property
    def samples_read(self) -> int:
        """Samples of all pieces of a recording together; outside them nothing is read."""
        return self.count * self.piece_samples

    def slice(self, window: int) -> slice:
        """The slots of a window."""
        begin = window * (self.piece + self.gap)
        return slice(begin, begin + self.piece)

    def times_ns(self, window: int) -> Ints:
        """Times of a window's samples from the beginning of the stimulus, in nanoseconds."""
        first = window * (self.piece + self.gap) * self.slot
        ticks = np.arange(first, first + self.piece_samples)
        return np.rint(ticks * (1e9 / self.rate_hz)).astype(np.int64)

    def inside(self) -> Bools:
        """Whether each sample of the clock lies in a piece."""
        slots = np.arange(self.slots) % (self.piece + self.gap) < self.piece
        return np.repeat(slots, self.slot)
