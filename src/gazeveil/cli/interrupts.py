"""Ctrl-C that got lost is raised again at the next step of a progress bar.

Python raises KeyboardInterrupt wherever it is when the signal comes. Where that is a function that
C code called, such as numba's while it loads a compiled kernel, C may drop the error: the program
goes on as if nobody had pressed anything.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Set by Ctrl-C until it has ended what was running.
_pressed = threading.Event()


def _press(number: int, frame: FrameType | None) -> None:
    _pressed.set()
    signal.default_int_handler(number, frame)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Remember Ctrl-C in the main thread, unless it is ignored or somebody else handles it."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return
    _pressed.clear()
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _pressed.clear()


def raise_lost_interrupt() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and the main thread is still at work."""
    if _pressed.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
