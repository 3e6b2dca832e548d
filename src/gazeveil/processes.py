"""Worker processes: how they start without the user's script, and end with whoever started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve_parent() -> None:
    """Make this worker process end with the process that started it, and leave Ctrl-C to that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent cannot end its workers: without this they would wait for work forever.
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing.connection import wait as wait_for

    wait_for([sentinel])
    os._exit(1)


@contextmanager
def no_main() -> Iterator[None]:
    """Let new processes start without importing the user's script: it is not needed, and without a
    guard it would run again in each of them.
    """
    own = sys.modules["__main__"]
    empty: Any = ModuleType("__main__")
    empty.__spec__ = None
    sys.modules["__main__"] = empty
    try:
        yield
    finally:
        sys.modules["__main__"] = own


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let new processes start deaf to Ctrl-C, which is for this one: it comes when they run."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
