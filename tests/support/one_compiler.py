"""Each kernel is compiled by one process of a run: the others wait, then load what it has written.

Numba's cache has no lock. Processes that start at once on an empty cache compile the same kernels
beside each other, and of two that write the list of what is compiled, one is lost.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: After how many seconds a process that waits compiles by itself: whoever compiles may be stopped.
WAIT_S = 120.0

#: Locks that a process holds, with its number: a fork holds none. One thread compiles at a time.
_HELD: set[tuple[int, Path]] = set()


@contextmanager
def alone(path: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a file among processes; within one that holds it, nothing happens."""
    import fcntl

    mine = os.getpid(), path
    if mine in _HELD:
        yield
        return
    with path.open("w") as file:
        end_s = time.monotonic() + wait_s
        while time.monotonic() < end_s:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
        _HELD.add(mine)
        try:
            yield
        finally:
            _HELD.discard(mine)
            # To close the file is not enough: a child that was forked meanwhile has it open too.
            fcntl.flock(file, fcntl.LOCK_UN)


def lock_of(dispatcher: Any) -> Path | None:
    """The lock of a function whose machine code is kept, None of another."""
    if dispatcher._cache.cache_path is None:
        return None
    code = dispatcher.py_func.__code__
    name = f"{dispatcher._cache.cache_path} {code.co_filename} {code.co_name} {code.co_firstlineno}"
    folder = Path(tempfile.gettempdir()) / f"gazeveil-compiling-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / hashlib.sha1(name.encode()).hexdigest()


def compile_in_one_process() -> None:
    """Let this process and its forks wait for others that compile what they need."""
    if os.name != "posix":
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_here = Dispatcher.compile
    if compile_here.__name__ == "compile_once":
        return

    def compile_once(self: Any, sig: Any) -> Any:
        # The lock of threads comes first: two threads that took these locks in another order would
        # wait for each other. Processes take them from callers to callees, which has no circle.
        with global_compiler_lock:
            path = lock_of(self)
            if path is None:
                return compile_here(self, sig)
            with alone(path):
                return compile_here(self, sig)

    setattr(Dispatcher, "compile", compile_once)  # noqa: B010 - a method
