"""A clock that stands still while the machine does, for tests that say how long something may take.

A busy machine stops a process for seconds now and then. What a test wants to know is whether the
code waited, e.g. for a database, and not whether it was let run. So a metronome ticks beside it:
by how much a tick comes late, nothing of this process ran, and that time is left out. Code that
waits delays no tick. (Code that computes without a pause may: measure that with
`time.process_time`.)
"""

from __future__ import annotations

import threading
import time

_TICK_S = 0.02


class SteadyClock:
    """Seconds in which this process could run.

    Examples
    --------
    >>> with SteadyClock() as clock:
    ...     time.sleep(0.1)
    ...     waited_s = clock()
    >>> 0.05 < waited_s
    True
    """

    def __init__(self) -> None:
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._began_s = self._tick_s = time.monotonic()
        self._lost_s = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(_TICK_S):
            with self._lock:
                now_s = time.monotonic()
                self._lost_s += self._late_s(now_s)
                self._tick_s = now_s

    def _late_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._tick_s - _TICK_S)

    def __call__(self) -> float:
        """Seconds since the clock was started, less those in which nothing ran."""
        with self._lock:
            now_s = time.monotonic()
            return now_s - self._began_s - self._lost_s - self._late_s(now_s)

    def __enter__(self) -> SteadyClock:
        self._began_s = self._tick_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
