"""Whether the ledger still answers: it is asked twice a second, and after two seconds of silence
nothing more leaves.

Two threads, because the one that asks may itself be held up by a database that hangs; the other one
only looks at the clock. Both are daemons, so that such a database does not keep the process from
ending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gazeveil.errors import GazeveilError

#: After so many seconds without a success nothing more leaves; as long as a stream waits for its
#: next lease.
SILENCE_S = 2.0

#: How often the ledger is asked.
ASK_S = 0.5

#: How often the clock is looked at.
LOOK_S = 0.25


class LedgerWatch:
    """Asks the ledger, and tells when it is silent.

    Parameters
    ----------
    ask : callable
        Asks the ledger; raises where it does not answer.
    heard_s : callable
        When it last did what it was asked, on the clock of `time.monotonic`.
    on_silence : callable
        Called every :data:`LOOK_S` while the ledger is silent.
    """

    def __init__(
        self, ask: Callable[[], None], heard_s: Callable[[], float], on_silence: Callable[[], None]
    ) -> None:
        self._ask, self._heard_s, self._on_silence = ask, heard_s, on_silence
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        #: Whether it answered when it was last asked, and not too long ago.
        self.up = True

    def start(self) -> None:
        """Begin."""
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._asking, "ask-ledger"), (self._looking, "ledger-clock"))
        ]
        for thread in self._threads:
            thread.start()

    def silent_s(self) -> float:
        """For how long nothing has been heard."""
        return time.monotonic() - self._heard_s()

    def _asking(self) -> None:
        while not self._stop.wait(ASK_S):
            try:
                self._ask()
            except GazeveilError:
                self.up = False
            else:
                self.up = True

    def _looking(self) -> None:
        waited = False
        while True:
            before = time.monotonic()
            if self._stop.wait(LOOK_S):
                return
            if self.silent_s() <= SILENCE_S:
                waited = False
                continue
            # Where this thread itself was held up (a compiler, a stopped process), the ledger gets
            # one more look to answer in.
            if not waited and time.monotonic() - before > 2 * LOOK_S:
                waited = True
                continue
            self.up = False
            self._on_silence()

    def close(self) -> None:
        """End both threads, without waiting for a database that hangs."""
        self._stop.set()
        for thread in self._threads:
            thread.join(1.0)
