"""Whether a tracker sends at the rate that it says.

Released times lie on the grid of the nominal rate, one step for each sample: a tracker that sends
faster would have released times run ahead of the clock without end, and every window that is
counted in samples would be shorter than promised. So such a stream is refused, and one that is much
slower is logged once.
"""

from __future__ import annotations

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gatekeeper.trackers.tracker import LOG

#: Seconds of the tracker's own time, and samples, that a judgement needs.
_SECONDS, _SAMPLES = 2.0, 50

#: A sample that comes so much later begins a new stretch.
_GAP_NS = 1_000_000_000

#: Faster or slower by more than this is another rate, not jitter.
_FASTER, _SLOWER = 1.2, 0.5


class RateWatch:
    """Counts samples against the tracker's own times.

    Parameters
    ----------
    name : str
        Of the tracker, for the sentence.
    rate_hz : float
        Nominal samples per second.
    also : str
        What to write besides `--rate` where the tracker is faster.
    """

    def __init__(self, name: str, rate_hz: float, also: str = "") -> None:
        self._name, self._rate_hz, self._also = name, rate_hz, also
        self._first_ns = self._last_ns = 0
        self._count = 0
        #: What to tell of a tracker that is much slower than it says; empty where it is not.
        self.slow = ""

    def see(self, t_ns: Ints) -> None:
        """Take in the times of samples that came.

        Raises
        ------
        DataError
            Where more come in a second than the nominal rate allows.
        """
        for t in t_ns.tolist():
            if self._count and not 0 <= t - self._last_ns < _GAP_NS:
                self._count = 0
            if not self._count:
                self._first_ns = t
            self._count += 1
            self._last_ns = t
        seconds = (self._last_ns - self._first_ns) / 1e9
        if seconds < _SECONDS or self._count < _SAMPLES:
            return
        measured_hz = (self._count - 1) / seconds
        self._count = 0
        if measured_hz > _FASTER * self._rate_hz:
            raise DataError(
                f"The tracker {self._name} sends {measured_hz:.0f} samples in a second of its own"
                f" time, and its nominal rate is {self._rate_hz:g}. Name its rate with --rate"
                f" {measured_hz:.0f}{self._also}."
            )
        if measured_hz < _SLOWER * self._rate_hz and not self.slow:
            self.slow = (
                f"The tracker {self._name}: {measured_hz:.0f} samples come in a second, the nominal"
                f" rate is {self._rate_hz:g}. Name its rate with --rate"
                f" {measured_hz:.0f}{self._also}."
            )
            LOG.warning("%s", self.slow)
