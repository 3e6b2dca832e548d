"""The progress bar of every verb: on standard error, once a second has passed, gone at the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType
from typing import TypeVar

from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

Item = TypeVar("Item")

#: When a bar appears, in seconds.
AFTER_S = 1.0


class TimeLeftColumn(ProgressColumn):
    """The time left by the mean pace since the clock started, from the first item on.

    Rich's own column looks at the last 30 s and needs two items in them; cells of a large study
    take longer. What was finished before the clock started (`before` of the task) has no pace.
    """

    def render(self, task: Task) -> Text:
        """`about 4:05 left`; before the first item is done, the time so far."""
        done = task.completed - task.fields.get("before", 0)
        left = seconds_left(task.elapsed, done, task.remaining)
        waiting = task.elapsed is not None and task.remaining
        so_far = f"{clock(task.elapsed or 0.0)} so far" if waiting else ""
        words = so_far if left is None else f"about {clock(left)} left"
        return Text(words, style="progress.remaining")


def seconds_left(elapsed_s: float | None, done: float, left: float | None) -> float | None:
    """Seconds that the remaining items take at the mean pace so far; None where that is not known.

    Examples
    --------
    >>> seconds_left(30.0, 3, 9)
    90.0
    """
    if elapsed_s is None or left is None or done <= 0:
        return None
    return elapsed_s / done * left


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    Examples
    --------
    >>> clock(245), clock(3725)
    ('4:05', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told (done, total); nothing where standard error is not a terminal."""
    screen = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeLeftColumn())
    progress = Progress(*columns, console=screen, transient=True)
    task = progress.add_task(what, total=None)
    before = [-1, -1]

    def update(done: int, total: int) -> None:
        raise_lost_interrupt()
        if total != before[1] or done < before[0]:
            # A study begins: cells that were there already took no time, so the clock starts at
            # them.
            progress.reset(task, total=total, completed=done, before=done)
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
        with interrupts_kept():
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


#: Set by Ctrl-C until it has ended what was running.
_pressed = threading.Event()


def _press(number: int, frame: FrameType | None) -> None:
    _pressed.set()
    signal.default_int_handler(number, frame)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Remember Ctrl-C in the main thread, unless it is ignored or has another handler."""
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
