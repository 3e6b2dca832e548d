"""The progress bar of every verb: on standard error, once a second has passed, gone at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TypeVar

from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")

#: When a bar appears, in seconds.
AFTER_S = 1.0


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told (done, total); nothing where standard error is not a terminal."""
    screen = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=screen, transient=True)
    task = progress.add_task(what, total=None)
    before = [-1, -1]

    def update(done: int, total: int) -> None:
        if total != before[1] or done < before[0]:
            # A study begins: cells that were there already took no time, so the clock starts at
            # them.
            progress.reset(task, total=total, completed=done)
        before[:] = done, total
        progress.update(task, completed=done, total=total)

    def start() -> None:
        with suppress(LiveError):  # a bar around this one is shown already
            progress.start()

    later = Timer(AFTER_S, start)
    later.daemon = True
    if screen.is_terminal:
        later.start()
    try:
        yield update
    finally:
        later.cancel()
        if screen.is_terminal:
            later.join()
            progress.live.stop()


def track(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Iterate with a bar."""
    with bar(what) as update:
        update(0, total)
        for done, item in enumerate(items, 1):
            yield item
            update(done, total)
