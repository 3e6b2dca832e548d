"""Worker processes: how they start without the user's script, end with their parent process, and
which task it is that ends one.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import Any, Generic, TypeVar

from gazeveil.compile_notice import Turn, said_by_worker, turn_of_workers

R = TypeVar("R")

#: How often a task is given to a process before it counts as lost.
ATTEMPTS = 3

#: From how many processes there will be, and how they are made, to what each begins with.
Beginning = Callable[[int, BaseContext], tuple[Callable[..., None], tuple[Any, ...]]]


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


def return_memory() -> None:
    """Give memory that was freed back to the system. The C library of Linux keeps what lies between
    blocks in use, which for a long task may be as much as the task needs.
    """
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def _end_with(sentinel: int) -> None:
    from multiprocessing.connection import wait as wait_for

    wait_for([sentinel])
    os._exit(1)


def _begin(
    turn: tuple[Turn, float] | None, initializer: Callable[..., None], given: tuple[Any, ...]
) -> None:
    said_by_worker(turn)
    initializer(*given)
    # Modules and what the worker begins with stay to its end: the garbage collector would look
    # through all of it again and again.
    gc.freeze()


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


@dataclass(frozen=True)
class TaskResult(Generic[R]):
    """What a task gave.

    Parameters
    ----------
    number : int
        Which task.
    value : object
        Its result.
    """

    number: int
    value: R


@dataclass(frozen=True)
class LostTask:
    """A task whose process ended without an answer each time.

    Parameters
    ----------
    number : int
        Which task.
    """

    number: int


class _TaskQueue:
    """Numbers of tasks that wait, in order but for what they work on."""

    def __init__(self, waiting: deque[int], material: Sequence[object] | None) -> None:
        self._waiting, self._material = waiting, material
        self._ended: deque[int] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ended(self, number: int) -> None:
        """The process that had this task is free."""
        self._ended.append(number)

    def next(self) -> int:
        """The first task on what a free process has just worked on, or the first of all."""
        chosen = self._waiting[0]
        if self._ended and self._material is not None:
            last = self._material[self._ended.popleft()]
            chosen = next((n for n in self._waiting if self._material[n] == last), chosen)
        self._waiting.remove(chosen)
        return chosen


class WorkerPool:
    """New processes on this machine that do tasks in any order.

    A process that is killed, or out of memory, takes the tasks in flight with it, and they are
    given out again to new processes; after a second loss each is tried alone, to find out which of
    them it was.

    Parameters
    ----------
    count : int
        How many processes.
    begin : callable
        Says what new processes begin with; called anew for each set of them, because a killed
        process may hold the locks of what it shared.
    ahead : int
        How many tasks wait in the hands of the processes. What is sent is held in memory.
    """

    def __init__(self, count: int, begin: Beginning, ahead: int = 0) -> None:
        self.count, self.begin, self.ahead = count, begin, ahead
        self._pool: ProcessPoolExecutor | None = None

    def do(
        self,
        function: Callable[..., R],
        tasks: Sequence[Callable[[], tuple[Any, ...]]],
        look_s: float | None = None,
        material: Sequence[object] | None = None,
    ) -> Iterator[TaskResult[R] | LostTask | None]:
        """Results as they come, and tasks that were lost :data:`ATTEMPTS` times. An error of the
        function is raised.

        Parameters
        ----------
        function : callable
            What a process does.
        tasks : sequence of callables
            Each gives the arguments of one call when it is sent.
        look_s : float, optional
            A None comes at least so often, in seconds, and before every result.
        material : sequence, optional
            What each task works on: a process that has finished one gets another on the same
            before the next in order, because it may have kept what it made of it.
        """
        waiting, alone = deque(range(len(tasks))), deque[int]()
        tries: Counter[int] = Counter()
        while waiting or alone:
            queue = _TaskQueue(waiting or alone, material)
            lost = yield from self._flights(function, tasks, queue, not waiting, look_s)
            self.stop()
            for number in dict.fromkeys(lost):
                tries[number] += 1
                if tries[number] >= ATTEMPTS:
                    yield LostTask(number)
                else:
                    (alone if tries[number] == ATTEMPTS - 1 else waiting).append(number)

    def _flights(
        self,
        function: Callable[..., R],
        tasks: Sequence[Callable[[], tuple[Any, ...]]],
        queue: _TaskQueue,
        single: bool,
        look_s: float | None,
    ) -> Generator[TaskResult[R] | None, None, list[int]]:
        """Results until the queue is empty or a process ends; returns the tasks that were lost."""
        most = 1 if single else self.count + self.ahead
        pool = self._start(1 if single else self.count)
        flying: dict[Future[R], int] = {}
        lost: list[int] = []
        while (queue or flying) and not lost:
            try:
                while queue and len(flying) < most:
                    number = queue.next()
                    lost.append(number)
                    given = tasks[number]()
                    with no_main(), undisturbed():
                        flying[pool.submit(function, *given)] = number
                    lost.pop()
                done, _ = wait(flying, timeout=look_s, return_when=FIRST_COMPLETED)
            except BrokenExecutor:
                break
            if look_s is not None:
                yield None
            for future in done:
                number = flying.pop(future)
                queue.ended(number)
                try:
                    yield TaskResult(number, future.result())
                except BrokenExecutor:
                    lost.append(number)
        return [*lost, *flying.values()]

    def _start(self, count: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        initializer, given = self.begin(count, context)
        self._pool = ProcessPoolExecutor(
            count,
            mp_context=context,
            initializer=_begin,
            initargs=(turn_of_workers(context), initializer, given),
        )
        return self._pool

    def stop(self) -> None:
        """End the processes, also those in the midst of a task."""
        if self._pool is None:
            return
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None
