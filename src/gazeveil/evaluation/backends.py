"""Backends of a study: this process, processes of its own, any executor, or a Dask cluster. Dask is
known here and nowhere else.

Work goes out batch by batch. A worker that is lost (killed, out of memory, its machine gone) loses
the batch it had, which is given out again; a batch that loses its worker a second time is tried
alone, and if that fails too its cells are reported as broken. Cells are deterministic, so none of
this shows in the figures.
"""

from __future__ import annotations

import os
import pickle
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.context import BaseContext
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from gazeveil import __version__, checks
from gazeveil.errors import DataError, GazeveilError, MissingExtraError
from gazeveil.evaluation.plan import Cell, CellBatch, Content, Store
from gazeveil.evaluation.sources import in_memory, scratch_paths
from gazeveil.evaluation.worker import Worker, compute, forget_parts
from gazeveil.features.recording_set import RecordingSet
from gazeveil.processes import ATTEMPTS, LostTask, WorkerPool, return_memory, serve_parent

#: How often it is looked which cells of the batches in hand are finished, in seconds.
LOOK_S = 0.5

#: How long a scheduler may take to answer, in seconds.
ANSWER_S = 10.0


@dataclass(frozen=True)
class FailedBatch:
    """A batch without a result."""

    sentence: str


@dataclass(frozen=True)
class Finished:
    """The cells are finished, and their content follows with the rest of their batch."""


Answer: TypeAlias = dict[Cell, Content] | FailedBatch


class Backend(ABC):
    """A backend that computes batches; a context manager."""

    @abstractmethod
    def work(
        self, worker: Worker, batches: Sequence[CellBatch], folder: Path | None
    ) -> Iterator[tuple[CellBatch, Answer | Finished]]:
        """Answers in any order; a batch may be answered in parts, and say before which of its cells
        are finished.

        Parameters
        ----------
        worker : Worker
            The study.
        batches : sequence of CellBatch
            What to compute.
        folder : Path, optional
            Where workers that share this machine's disk write each cell as soon as it is finished.
        """

    def __enter__(self) -> Backend:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


def make_backend(executor: Executor | str | int | None, batches: int) -> Backend:
    """Make a backend from an executor, the address of a Dask scheduler, or a number of processes;
    default one process per core.
    """
    if isinstance(executor, Executor):
        return ExecutorBackend(executor)
    if isinstance(executor, str):
        return Cluster(executor)
    workers = (
        len(os.sched_getaffinity(0))
        if executor is None and hasattr(os, "sched_getaffinity")
        else (executor or os.cpu_count() or 1)
    )
    workers = min(checks.count("evaluate", "executor", workers), max(1, batches))
    return InProcess() if workers == 1 else Processes(workers)


class InProcess(Backend):
    """The process itself, one cell after the other."""

    def work(
        self, worker: Worker, batches: Sequence[CellBatch], folder: Path | None
    ) -> Iterator[tuple[CellBatch, Answer]]:
        """Answers cell by cell."""
        # Batches of one repetition share what is known of the raw recordings: one after the other.
        for batch in sorted(batches, key=lambda b: (_is_about(b), b.events, b.repetition)):
            for cell, content in compute(worker, batch):
                yield replace(batch, cells=(cell,)), {cell: content}
        # This process goes on to something else.
        forget_parts()


def _is_about(batch: CellBatch) -> bool:
    """Whether a batch is of promises and examples, which come last."""
    return all(cell.kind == "about" for cell in batch.cells)


class Processes(Backend):
    """Worker processes on this machine.

    Parameters
    ----------
    workers : int
        How many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: WorkerPool | None = None
        self._queue: SimpleQueue[tuple[int, int]] | None = None

    def work(
        self, worker: Worker, batches: Sequence[CellBatch], folder: Path | None
    ) -> Iterator[tuple[CellBatch, Answer | Finished]]:
        """Answers batch by batch, with word of each cell as it is finished; the workers write
        finished cells themselves.
        """
        sent = pickle.dumps(worker)
        if b"__main__" in sent:
            # Something of the study is defined in the user's own script, which a new process could
            # not import without running it.
            yield from InProcess().work(worker, batches, folder)
            return
        self._pool = WorkerPool(self.workers, partial(self._beginning, sent))
        given = [partial(_given, batch, folder, i) for i, batch in enumerate(batches)]
        # Promises and examples stay last, whatever repetition they are of.
        material = [_is_about(batch) or (batch.events, batch.repetition) for batch in batches]
        for answer in self._pool.do(_work_here, given, LOOK_S, material):
            if isinstance(answer, LostTask):
                yield (
                    batches[answer.number],
                    FailedBatch(
                        "The process that computed it ended without an answer,"
                        f" {ATTEMPTS} times: killed, or out of memory. Use fewer workers."
                    ),
                )
            elif answer is not None:
                yield batches[answer.number], answer.value
            else:
                for number, cell in self._finished():
                    cells = batches[number].cells[cell:][:1]
                    yield replace(batches[number], cells=cells), Finished()
                # Also where nothing is finished: the caller may want to stop.
                yield replace(batches[0], cells=()), Finished()

    def _beginning(
        self, sent: bytes, _: int, context: BaseContext
    ) -> tuple[Callable[..., None], tuple[bytes, SimpleQueue[tuple[int, int]]]]:
        # Two numbers at a time: a message as short as that is written whole or not at all, also by
        # a worker that is killed. New processes get a new queue, because a killed worker may hold
        # the lock of the old one.
        self._queue = context.SimpleQueue()
        return _begin, (sent, self._queue)

    def _finished(self) -> Iterator[tuple[int, int]]:
        """Batch and place in it of the cells that were finished since the last look."""
        while self._queue is not None and not self._queue.empty():
            yield self._queue.get()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.stop()


class ExecutorBackend(Backend):
    """Any executor: a thread pool, an MPI pool, a queue system's.

    Parameters
    ----------
    executor : Executor
        It must be able to send Python objects to its workers, and Gazeveil must be installed there.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def work(
        self, worker: Worker, batches: Sequence[CellBatch], folder: Path | None
    ) -> Iterator[tuple[CellBatch, Answer]]:
        """Answers batch by batch; cells are kept here, because the workers
        may have another disk.
        """
        tries: Counter[CellBatch] = Counter()
        flying: dict[Future[Answer], CellBatch] = {}
        waiting = deque(batches)
        while waiting or flying:
            sent: Any = None
            while waiting:
                batch = waiting.popleft()
                try:
                    sent = self.sent(worker) if sent is None else sent
                    flying[self.executor.submit(_work_elsewhere, sent, __version__, batch)] = batch
                except (RuntimeError, OSError) as error:
                    yield (
                        batch,
                        FailedBatch(f"The executor takes no more work ({first_line(error)})."),
                    )
            if not flying:
                return
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                batch = flying.pop(future)
                try:
                    answer = future.result()
                except GazeveilError:
                    raise
                except Exception as error:  # whatever the executor says of a worker that is gone
                    tries[batch] += 1
                    if tries[batch] >= ATTEMPTS:
                        yield (
                            batch,
                            FailedBatch(
                                f"The worker that computed it was lost {ATTEMPTS} times"
                                f" ({first_line(error)})."
                            ),
                        )
                    else:
                        waiting.append(batch)
                    continue
                yield batch, answer

    def sent(self, worker: Worker) -> Any:
        """What every batch is sent with: the recordings too, unless threads or processes of this
        machine compute, who read the scratch file of large ones.
        """
        here = isinstance(self.executor, ThreadPoolExecutor | ProcessPoolExecutor)
        return worker if here else _with_recordings(worker)


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


class Cluster(ExecutorBackend):
    """A Dask cluster.

    Parameters
    ----------
    address : str
        Of its scheduler, for example `tcp://10.0.0.1:8786`.
    """

    def __init__(self, address: str) -> None:
        try:
            self.client = _connected(address)
        except (OSError, TimeoutError, ValueError) as error:
            raise DataError(
                f"No Dask scheduler answers at {address} ({first_line(error)}). Start one with"
                " `dask scheduler`, or check the address."
            ) from error
        if not self.client.scheduler_info()["workers"]:
            self.client.close()
            raise DataError(
                f"The Dask scheduler at {address} has no workers. Start some with `dask worker"
                f" {address}`."
            )
        super().__init__(self.client.get_executor(pure=False))

    def sent(self, worker: Worker) -> Any:
        """The study is sent to every worker once; a batch then carries only its name. Recordings go
        with it where a worker cannot read the scratch file they lie in.
        """
        paths = _scratch_of(worker)
        if paths and not all(self.client.run(_sees, sorted(paths)).values()):
            worker = _with_recordings(worker)
        return self.client.scatter(worker, broadcast=True, hash=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()


# --- in the worker
# --------------------------------------------------------------------------------------------------

_WORKER: Worker | None = None
_QUEUE: SimpleQueue[tuple[int, int]] | None = None


def _begin(sent: bytes, queue: SimpleQueue[tuple[int, int]]) -> None:
    """Initialise a worker process with its study, and end it with its parent process."""
    global _WORKER, _QUEUE
    _WORKER, _QUEUE = pickle.loads(sent), queue
    serve_parent()


def _given(
    batch: CellBatch, folder: Path | None, number: int
) -> tuple[CellBatch, Path | None, int]:
    """A worker's input for one batch."""
    return batch, folder, number


def _work_here(batch: CellBatch, folder: Path | None, number: int) -> dict[Cell, Content]:
    assert _WORKER is not None
    assert _QUEUE is not None
    store = None if folder is None else Store(folder)
    answer = {}
    for cell, content in compute(_WORKER, batch):
        if store is not None and "failure" not in content:
            store.put(_WORKER.key(cell), content)
        answer[cell] = content
        return_memory()
        _QUEUE.put((number, batch.cells.index(cell)))
    return answer


def _work_elsewhere(worker: Worker, version: str, batch: CellBatch) -> dict[Cell, Content]:
    if __version__ != version:
        raise DataError(
            f"A worker has Gazeveil {__version__} and the study {version}. Install the same one"
            " everywhere."
        )
    return dict(compute(worker, batch))


def _sees(paths: Sequence[str]) -> bool:
    """Whether this process can read the files."""
    return all(os.access(path, os.R_OK) for path in paths)


def _scratch_of(worker: Worker) -> frozenset[str]:
    source = worker.study.source
    return scratch_paths(source) if isinstance(source, RecordingSet) else frozenset()


def _with_recordings(worker: Worker) -> Worker:
    """The study with its recordings in memory."""
    if not _scratch_of(worker):
        return worker
    assert isinstance(worker.study.source, RecordingSet)
    return replace(worker, study=replace(worker.study, source=in_memory(worker.study.source)))


def first_line(error: BaseException) -> str:
    """What an error says first, without a full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
