"""Workers that do tasks in any order: this process, new processes on this machine, any executor, or
a Dask cluster. Dask is known here and nowhere else.

A worker that is lost (killed, out of memory, its machine gone) loses the tasks it had, and they are
given out again; after a second loss a task is tried alone, to find out which one ends its worker.
New processes start without the user's script and end with their parent process.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from gazeveil import checks
from gazeveil.compile_notice import Turn, said_by_worker, turn_of_workers
from gazeveil.errors import DataError, GazeveilError, MissingExtraError

R = TypeVar("R")

#: How often a task is given to a worker before it counts as lost.
ATTEMPTS = 3

#: How long a scheduler may take to answer, in seconds.
ANSWER_S = 10.0


@dataclass(frozen=True)
class TaskResult(Generic[R]):
    """The number of a task, and its result."""

    number: int
    value: R


@dataclass(frozen=True)
class LostTask:
    """The number of a task whose worker was lost each time, and a sentence that says so."""

    number: int
    reason: str


class _TaskQueue:
    """Numbers of tasks that wait, in order but for what they work on."""

    def __init__(self, count: int, material: Sequence[object] | None) -> None:
        self._waiting, self._alone = deque(range(count)), deque[int]()
        self._material = material
        self._ended: deque[int] = deque()
        self._tries: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._alone)

    @property
    def alone(self) -> bool:
        """Whether what is left is to be tried one by one."""
        return not self._waiting

    def ended(self, number: int) -> None:
        """The worker that had this task is free."""
        self._ended.append(number)

    def next(self) -> int:
        """The first task on what a free worker has just worked on, or the first of all."""
        queue = self._waiting or self._alone
        chosen = queue[0]
        if self._ended and self._material is not None:
            last = self._material[self._ended.popleft()]
            chosen = next((n for n in queue if self._material[n] == last), chosen)
        queue.remove(chosen)
        return chosen

    def again(self, number: int) -> bool:
        """Queue a lost task again; False where it was lost too often."""
        self._tries[number] += 1
        if self._tries[number] < ATTEMPTS:
            (self._alone if self._tries[number] == ATTEMPTS - 1 else self._waiting).append(number)
        return self._tries[number] < ATTEMPTS


class Workers:
    """Workers behind an executor; a context manager that ends those it started.

    Parameters
    ----------
    executor : Executor
        A thread pool, an MPI pool, a queue system's: it must be able to send Python objects to its
        workers, and Gazeveil must be installed there.
    """

    #: Whether they see the files of this machine.
    here = False

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.here = isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor)

    def do(
        self,
        function: Callable[..., R],
        tasks: Sequence[Callable[[], tuple[Any, ...]]],
        *shared: object,
        look_s: float | None = None,
        material: Sequence[object] | None = None,
    ) -> Iterator[TaskResult[R] | LostTask | None]:
        """Results as they come, and tasks that were lost :data:`ATTEMPTS` times. An error of the
        function is raised.

        Parameters
        ----------
        function : callable
            The work of one task.
        tasks : sequence of callables
            Each gives the last arguments of one call when it is sent.
        *shared
            The first arguments of every call.
        look_s : float, optional
            A None comes at least so often, in seconds, and before every result.
        material : sequence, optional
            What each task works on: a worker that has finished one gets another on the same before
            the next in order, because it may have kept what it made of it.
        """
        queue, handed = _TaskQueue(len(tasks), material), self._handed(shared)
        flying: dict[Future[R], int] = {}
        while queue or flying:
            lost: dict[int, str] = {}
            while queue and not lost and len(flying) < (1 if queue.alone else self._room()):
                number = queue.next()
                given = tasks[number]()
                try:
                    flying[self._submit(function, *handed, *given)] = number
                except (RuntimeError, OSError) as error:
                    lost[number] = f"The executor takes no more work ({first_line(error)})."
            done, _ = wait(flying, timeout=look_s, return_when=FIRST_COMPLETED)
            if look_s is not None:
                yield None
            for future in done:
                number = flying.pop(future)
                queue.ended(number)
                try:
                    value = future.result()
                except Exception as error:
                    if not self._is_loss(error):
                        raise
                    lost[number] = self._reason(error)
                else:
                    yield TaskResult(number, value)
            if lost:
                lost |= dict.fromkeys(self._also_lost(flying), next(iter(lost.values())))
            for number, reason in lost.items():
                if not queue.again(number):
                    yield LostTask(number, reason)

    def sees(self, paths: Iterable[str], mode: int = os.R_OK) -> bool:
        """Whether all workers have these files of this machine."""
        return self.here

    def stop(self) -> None:
        """End workers that were started here, also those in the midst of a task."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _room(self) -> int:
        """How many tasks may be in the hands of the workers; what is sent is held in memory."""
        return sys.maxsize

    def _handed(self, shared: tuple[object, ...]) -> tuple[object, ...]:
        """What is submitted in place of the shared arguments."""
        return shared

    def _submit(self, function: Callable[..., R], *given: Any) -> Future[R]:
        return self.executor.submit(_same_version, version(), function, *given)

    def _is_loss(self, error: Exception) -> bool:
        """Whether an error is of a worker, not of its task: whatever the executor says of a worker
        that is gone. What the operating system refuses has a number.
        """
        return not isinstance(error, GazeveilError) and not getattr(error, "errno", None)

    def _also_lost(self, flying: dict[Future[R], int]) -> list[int]:
        """Tasks in hand that a loss takes along; they are removed from those in hand."""
        return []

    def _reason(self, error: Exception) -> str:
        return f"The worker that computed it was lost {ATTEMPTS} times ({first_line(error)})."


class ThisProcess(Workers):
    """No workers: one task after the other, here."""

    here = True

    def __init__(self) -> None:
        """Nothing is started."""

    def _room(self) -> int:
        return 1

    def _submit(self, function: Callable[..., R], *given: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(function(*given))
        except Exception as error:
            future.set_exception(error)
        return future

    def _is_loss(self, error: Exception) -> bool:
        return False


class OwnProcesses(Workers):
    """New processes on this machine.

    Parameters
    ----------
    count : int
        How many processes.
    ahead : int
        How many tasks wait in the hands of the processes: one that is finished need not wait for
        the next.
    """

    here = True

    def __init__(self, count: int, ahead: int = 0) -> None:
        self.count, self.ahead = count, ahead
        self._pool: ProcessPoolExecutor | None = None
        self._shared: tuple[object, ...] = ()

    def stop(self) -> None:
        """End the processes, also those in the midst of a task."""
        if self._pool is not None:
            for process in list((getattr(self._pool, "_processes", None) or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _room(self) -> int:
        return self.count + self.ahead

    def _handed(self, shared: tuple[object, ...]) -> tuple[object, ...]:
        self._shared = shared  # each process begins with it
        return ()

    def _submit(self, function: Callable[..., R], *given: Any) -> Future[R]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            turn = turn_of_workers(context)
            self._pool = ProcessPoolExecutor(
                self.count, context, _begin, (self.count, turn, self._shared)
            )
        with _no_main(), _undisturbed():
            return self._pool.submit(_with_shared, function, *given)

    def _is_loss(self, error: Exception) -> bool:
        return isinstance(error, BrokenExecutor)

    def _also_lost(self, flying: dict[Future[R], int]) -> list[int]:
        # A process that ends takes all others with it; new ones begin with the next task.
        numbers = list(flying.values())
        flying.clear()
        self.stop()
        return numbers

    def _reason(self, error: Exception) -> str:
        return (
            f"The process that computed it ended without an answer, {ATTEMPTS} times: killed, or"
            " out of memory. Use fewer workers."
        )


class DaskCluster(Workers):
    """The workers of a Dask scheduler.

    Parameters
    ----------
    address : str
        Of the scheduler, for example `tcp://10.0.0.1:8786`.

    Raises
    ------
    DataError
        If nothing answers there, or it has no workers.
    """

    def __init__(self, address: str) -> None:
        try:
            self.client = _connected(address)
        except (OSError, TimeoutError, ValueError) as error:
            raise DataError(
                f"No Dask scheduler answers at {address} ({first_line(error)}). Start one with"
                " `dask scheduler`, or check the address."
            ) from error
        if not self._threads():
            self.client.close()
            raise DataError(
                f"The Dask scheduler at {address} has no workers. Start some with `dask worker"
                f" {address}`."
            )
        super().__init__(self.client.get_executor(pure=False))

    def sees(self, paths: Iterable[str], mode: int = os.R_OK) -> bool:
        """Whether every worker can open these files."""
        return all(self.client.run(_sees, sorted(paths), mode).values())

    def stop(self) -> None:
        """Leave the cluster."""
        self.client.close()

    def _room(self) -> int:
        return 2 * max(1, self._threads())

    def _threads(self) -> int:
        return sum(w["nthreads"] for w in self.client.scheduler_info()["workers"].values())

    def _handed(self, shared: tuple[object, ...]) -> tuple[object, ...]:
        # Each worker is sent it once; a task then carries only its name.
        return tuple(self.client.scatter(s, broadcast=True, hash=False) for s in shared)


def workers_for(
    owner: str, executor: Executor | str | int | None, tasks: int, ahead: int = 0
) -> Workers:
    """Workers by an executor, the address of a Dask scheduler, or a number of processes.

    Parameters
    ----------
    owner : str
        Whose argument it is, for a refusal.
    executor : Executor, str or int, optional
        Default one process per core; 1 is this process.
    tasks : int
        How many there will be: more processes are not started.
    ahead : int
        As of :class:`OwnProcesses`.
    """
    if isinstance(executor, Executor):
        return Workers(executor)
    if isinstance(executor, str):
        return DaskCluster(executor)
    count = checks.count(owner, "workers", cores() if executor is None else executor)
    count = min(count, max(1, tasks))
    # A worker of a pool may not start processes of its own.
    alone = count == 1 or multiprocessing.current_process().daemon
    return ThisProcess() if alone else OwnProcesses(count, ahead)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def version() -> str:
    """The version of the package. It is not imported: its root imports the floors above."""
    return str(sys.modules["gazeveil"].__version__)


def first_line(error: BaseException) -> str:
    """What an error says first, without a full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _connected(address: str) -> Any:
    """A client of the Dask scheduler at an address; Dask's have no types."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("distributed", "cluster") from error

    plain: Any = Client

    class Connection(plain):  # type: ignore[misc]
        """A client that is closed at once where no scheduler answers. Dask leaves that to the
        garbage collector, which may run while another client starts: both then want one lock.
        """

        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:
                self.close()
                raise

    return Connection(address, timeout=ANSWER_S, set_as_default=False)


@contextmanager
def _no_main() -> Iterator[None]:
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
def _undisturbed() -> Iterator[None]:
    """Let new processes start deaf to Ctrl-C, which is for this one: it comes when they run."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in the worker
# --------------------------------------------------------------------------------------------------

_SHARED: tuple[object, ...] = ()


def _begin(count: int, turn: tuple[Turn, float] | None, shared: tuple[object, ...]) -> None:
    """Initialise a worker process, and make it end with the process that started it."""
    global _SHARED
    _SHARED = shared
    said_by_worker(turn)
    os.environ.setdefault("POLARS_MAX_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent cannot end its workers: without this they would wait for work forever.
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    # Modules and what the worker begins with stay to its end: the garbage collector would look
    # through all of it again and again.
    gc.freeze()


def _end_with(sentinel: int) -> None:
    from multiprocessing.connection import wait as wait_for

    wait_for([sentinel])
    os._exit(1)


def _with_shared(function: Callable[..., R], *given: Any) -> R:
    return function(*_SHARED, *given)


def _same_version(other: str, function: Callable[..., R], *given: Any) -> R:
    if version() != other:
        raise DataError(
            f"A worker has Gazeveil {version()}, and the process that started it {other}. Install"
            " the same one everywhere."
        )
    return function(*given)


def _sees(paths: Sequence[str], mode: int) -> bool:
    return all(os.access(path, mode) for path in paths)


def return_memory() -> None:
    """Give memory that was freed back to the system. The C library of Linux keeps what lies between
    blocks in use, which for a long task may be as much as the task needs.
    """
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
