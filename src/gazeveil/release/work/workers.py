"""Who writes the parts of a release: this process, processes of its own, or a Dask cluster.

Tasks come back in any order. A worker that is lost (killed, out of memory, its machine gone) loses
the tasks it had, and they are given out again; nothing of what it wrote was taken.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from uuid import uuid4

from gazeveil.errors import DataError, GazeveilError
from gazeveil.privacy.publication.part import Part
from gazeveil.processes import ATTEMPTS, LostTask, WorkerPool, serve_parent
from gazeveil.release.work.journal import WrittenTask, do_packed, do_task, packed

#: Recordings that share noise, or just one.
Parts = Sequence[Part]


class Workers(ABC):
    """Somebody who writes parts; a context manager."""

    @abstractmethod
    def work(self, tasks: Sequence[Parts], attempts: Path) -> Iterator[WrittenTask]:
        """Do tasks, in any order; each makes a folder of its own in `attempts`."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class ThisProcess(Workers):
    """One task after the other, here."""

    def work(self, tasks: Sequence[Parts], attempts: Path) -> Iterator[WrittenTask]:
        """See :class:`Workers`."""
        for parts in tasks:
            yield do_task(parts, attempts)


class OwnProcesses(Workers):
    """New processes on this machine, each with one recording in memory."""

    def __init__(self, count: int) -> None:
        # One more task than processes: a process that is finished need not wait for the next.
        self._pool = WorkerPool(count, _beginning, ahead=1)

    def work(self, tasks: Sequence[Parts], attempts: Path) -> Iterator[WrittenTask]:
        """See :class:`Workers`."""
        given = [partial(_given, parts, attempts) for parts in tasks]
        for answer in self._pool.do(do_packed, given):
            if isinstance(answer, LostTask):
                raise DataError(
                    f"The process that protects recording {tasks[answer.number][0].number} ended"
                    f" {ATTEMPTS} times without an answer: killed, or out of memory. Use fewer"
                    " workers. Nothing was released."
                )
            if answer is not None:
                yield answer.value

    def __exit__(self, *_: object) -> None:
        self._pool.stop()


def _given(parts: Parts, attempts: Path) -> tuple[object, Path]:
    """What a worker gets for one task."""
    return packed(parts), attempts


def _beginning(count: int, _: BaseContext) -> tuple[Callable[[str], None], tuple[str]]:
    return _begin, (str(max(1, (os.cpu_count() or 1) // count)),)


def _begin(threads: str) -> None:
    """A worker process shares the cores with its siblings, and ends with its parent."""
    os.environ.setdefault("POLARS_MAX_THREADS", threads)
    serve_parent()


class OnCluster(Workers):
    """A Dask cluster whose workers see the disk that the release is written to; `address` is its
    scheduler's, for example `tcp://10.0.0.1:8786`.
    """

    def __init__(self, address: str) -> None:
        from gazeveil.evaluation.backends import Cluster  # Dask is known there alone

        self.address, self.cluster = address, Cluster(address)

    def work(self, tasks: Sequence[Parts], attempts: Path) -> Iterator[WrittenTask]:
        """See :class:`Workers`."""
        self._check_disk(attempts)
        waiting, tries = deque(range(len(tasks))), Counter[int]()
        flying: dict[Future[WrittenTask], int] = {}
        while waiting or flying:
            while waiting and len(flying) < 2 * self._workers():
                number = waiting.popleft()
                sent = packed(tasks[number])
                flying[self.cluster.executor.submit(do_packed, sent, attempts)] = number
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                number = flying.pop(future)
                try:
                    written = future.result()
                except (GazeveilError, OSError):
                    raise
                except Exception as error:  # whatever Dask says of a worker that is gone
                    tries[number] += 1
                    if tries[number] >= ATTEMPTS:
                        raise DataError(
                            f"Recording {tasks[number][0].number} lost its worker on"
                            f" {self.address} {ATTEMPTS} times. Nothing was released."
                        ) from error
                    waiting.append(number)
                    continue
                yield written

    def _workers(self) -> int:
        return max(1, len(self.cluster.client.scheduler_info()["workers"]))

    def _check_disk(self, attempts: Path) -> None:
        mark = attempts / f"{uuid4().hex}.mark"
        mark.touch()
        if not all(self.cluster.client.run(_sees, str(mark)).values()):
            raise DataError(
                f"Workers of {self.address} do not see {attempts.parent.parent}. Name a folder on"
                " a disk that all of them share. Nothing was released."
            )
        mark.unlink()

    def __exit__(self, *_: object) -> None:
        self.cluster.client.close()


def _sees(path: str) -> bool:
    return os.path.exists(path) and os.access(os.path.dirname(path), os.W_OK)
