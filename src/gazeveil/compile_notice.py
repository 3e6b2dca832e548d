"""One line on standard error where a command compiles for longer than a second.

Numba compiles a function when it is first called and keeps the machine code, which later runs find.
Half a minute without a word looks like a standstill, so the command line says what it does; in
Python nothing is said. Worker processes compile too: whichever process is first says it, the others
do not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore, Timer
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

#: What is said. A command compiles what it needs: another command may say it again.
SENTENCE = "Compiling parts of this command for this machine: once, for half a minute to two."

#: After how many seconds of compiling it is said.
AFTER_S = 1.0


class Turn(Protocol):
    """Who takes it may speak: a semaphore of threads or of processes."""

    def acquire(self, block: bool, /) -> bool:
        """Take it; False where it is taken."""


class CompileNotice:
    """Counts the seconds that this process compiles, and speaks once where it is allowed to.

    Numba holds a lock while it compiles, so no two threads are in here at once.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.after_s = AFTER_S
        self.clear_line = ""
        self._depth = 0
        self.spent_s = self._begun_s = 0.0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """A function is being compiled, perhaps for another that is."""
        self._depth += 1
        if self._depth > 1 or self.turn is None:
            return
        self._begun_s = time.monotonic()
        self._timer = Timer(max(self.after_s - self.spent_s, 0.0), self._speak)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.spent_s += time.monotonic() - self._begun_s

    def _speak(self) -> None:
        turn, self.turn = self.turn, None
        if turn is not None and turn.acquire(False):
            # Not through rich: a bar on the screen lets the stream pass and is drawn below it.
            sys.stderr.write(f"{self.clear_line}{SENTENCE}\n")


_NOTICE = CompileNotice()


@contextmanager
def compiling_is_said() -> Iterator[None]:
    """Let this process and the workers that it starts say once that they compile."""
    _NOTICE.turn = Semaphore(1)
    _NOTICE.after_s, _NOTICE.spent_s = AFTER_S, 0.0
    try:
        yield
    finally:
        _NOTICE.turn = None


def turn_of_workers(context: BaseContext) -> tuple[Turn, float] | None:
    """What new worker processes are given, for :func:`said_by_worker`; None where there is nothing
    to say, or it has been said.
    """
    if _NOTICE.turn is None or not _NOTICE.turn.acquire(False):
        _NOTICE.turn = None
        return None
    _NOTICE.turn = context.Semaphore(1)
    return _NOTICE.turn, _NOTICE.after_s


def said_by_worker(given: tuple[Turn, float] | None) -> None:
    """Let this worker process say that it compiles, unless another process has."""
    if given is not None:
        _NOTICE.turn, _NOTICE.after_s = given
        if sys.stderr.isatty():
            # The bar of the process that started this one stands in that line.
            _NOTICE.clear_line = "\r\x1b[K"


def listen() -> None:
    """Hear of every function that numba compiles: of none that it finds compiled."""
    from numba.core import event

    class Compiling(event.Listener):
        def on_start(self, event: Any) -> None:
            _NOTICE.begin()

        def on_end(self, event: Any) -> None:
            _NOTICE.end()

    event.register("numba:compile", Compiling())  # type: ignore[no-untyped-call]
