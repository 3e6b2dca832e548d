"""Clock that never goes back: a period that has ended stays ended if the device's clock is set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class ForwardClock:
    """The larger of a clock and the latest time that is known.

    Where the system's clock is set back, time goes on from the latest one by the time that passes,
    so that ends still come. With a clock of the caller's own it stands still until that comes up.

    Parameters
    ----------
    latest_ns : int
        The last time that was written, since the Unix epoch.
    clock_ns : callable, optional
        A clock of the caller's own; by default the system's.

    Examples
    --------
    >>> times = iter([50, 80, 10])
    >>> now_ns = ForwardClock(60, lambda: next(times))
    >>> now_ns(), now_ns(), now_ns()
    (60, 80, 80)
    """

    def __init__(self, latest_ns: int = 0, clock_ns: Callable[[], int] | None = None) -> None:
        self._clock_ns, self._passes = clock_ns or time.time_ns, clock_ns is None
        self._latest_ns, self._at_ns = latest_ns, time.monotonic_ns()
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """Nanoseconds since the Unix epoch."""
        with self._lock:
            # The clock first: a pause after it must not put time ahead for good.
            clock_ns, at_ns = self._clock_ns(), time.monotonic_ns()
            passed_ns = at_ns - self._at_ns if self._passes else 0
            self._latest_ns, self._at_ns = max(clock_ns, self._latest_ns + passed_ns), at_ns
            return self._latest_ns

    def beside(self, clock_ns: Callable[[], int]) -> ForwardClock:
        """A clock of the caller's own, from the same last time on."""
        return ForwardClock(self._latest_ns, clock_ns)
