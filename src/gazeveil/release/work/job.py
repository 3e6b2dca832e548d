"""Workers that write the parts of a release: this process, other processes, or a Dask cluster.

Tasks come back in any order. A worker that is lost (killed, out of memory, its machine gone) loses
the tasks it had, and they are given out again; nothing of what it wrote was taken.

One run of a release in its work folder: what is there already, what is left, and the end.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from uuid import uuid4

import numpy as np

from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.publication.names import check_key_file, read_key
from gazeveil.privacy.publication.part import Part, PartSummary
from gazeveil.privacy.publication.publication import Publication
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.registry import get
from gazeveil.privacy.stream.cohorts import shapes_of
from gazeveil.processes import ATTEMPTS, LostTask, WorkerPool, serve_parent
from gazeveil.release.work.folder import (
    Journal,
    JournalHead,
    JournalPart,
    WorkFolder,
    WrittenTask,
    begin_journal,
    do_packed,
    do_task,
    note_finished,
    note_part,
    packed,
)

#: Recordings that share noise, or just one.
Parts = Sequence[Part]


class Workers(ABC):
    """Workers that write parts; a context manager."""

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
    """Build the arguments of a worker for one task."""
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


#: Told (parts done, parts in all).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RunResult:
    """Result of a complete release.

    It holds the name of its run in ledgers, the summaries of its parts by number, the number of
    parts resumed from an interrupted run, and notes for the data holder.
    """

    run: str
    summaries: tuple[PartSummary, ...]
    resumed: int = 0
    notes: tuple[str, ...] = ()


class ReleaseJob:
    """One run in a locked folder. The files of the raw recordings must not have changed; `resume`
    goes on with what is there.
    """

    def __init__(
        self, publication: Publication, folder: WorkFolder, raw: Cohort | None, resume: bool
    ) -> None:
        self.publication, self.folder = publication, folder
        self.stamps = {} if raw is None else {i.key: _stamp(i) for i in raw.items}
        self.raw_of = dict(enumerate(publication.names.recordings, start=1))
        unit = get(publication.release.provenance.mechanism).noise_unit
        self.head = JournalHead(uuid4().hex, unit, _made(publication), publication.names)
        self.notes: list[str] = []
        self.ready: list[JournalPart] = []
        self.complete = False
        self._shapes = {p.number: shapes_of(p.load) for p in publication.parts}
        journal = folder.journal()
        if journal is not None and resume:
            self._resume(journal)
        elif resume:
            self.notes.append("There was nothing to resume: the release starts from the beginning.")
        if not self.ready and not self.complete:
            folder.empty()
            folder.make()
            begin_journal(folder.journal_file, self.head)

    def _resume(self, journal: Journal) -> None:
        self.head = replace(self.head, run=journal.head.run)
        if journal.finished and self.folder.out.exists():
            self.complete, self.ready = True, list(journal.parts)
            return
        if not journal.head.can_go_on:
            self.notes.append(
                "This mechanism draws something for all recordings first, so the interrupted draw"
                " cannot go on: all recordings are drawn anew. Nothing of the first draw was"
                " published."
            )
            return
        self._check_same(journal)
        whole = [p for p in journal.parts if self.folder.whole(p)]
        if self.head.noise_unit == "person":
            whole = self._whole_people(whole)
        self.folder.keep_only(whole)
        self.folder.make()
        self.ready = whole
        self.notes.append(
            f"{len(whole)} of {len(self.raw_of)} recordings were finished before the interruption."
        )
        for part in whole:
            self._learn(part.written.summary.number, part)

    def _check_same(self, journal: Journal) -> None:
        """Refuse to go on with something else."""
        changed = [n for n, text in self.head.made.items() if journal.head.made.get(n) != text]
        if journal.head.names.recordings != self.publication.names.recordings:
            changed.append("the recordings")
        changed += [
            f"the file of person '{part.raw[0]}', stimulus '{part.raw[1]}'"
            for part in journal.parts
            if part.stamp and self.stamps.get(part.raw, part.stamp) != part.stamp
        ]
        if changed:
            raise DataError(
                f"The interrupted run in {self.folder.path} cannot go on, because something is no"
                f" longer the same: {', '.join(changed[:3])}. Restore it, or start again with"
                " --clean. Nothing was released."
            )

    def _whole_people(self, parts: list[JournalPart]) -> list[JournalPart]:
        """Parts of people all of whose parts are there: their noise hangs together."""
        finished = {p.raw for p in parts}
        missing = {raw[0] for raw in self.raw_of.values() if raw not in finished}
        return [p for p in parts if p.raw[0] not in missing]

    def tasks(self) -> list[list[Part]]:
        """Return the unfinished parts, grouped where they share noise."""
        finished = {p.written.summary.number for p in self.ready}
        left = [p for p in self.publication.parts if p.number not in finished]
        if self.head.noise_unit in ("recording", "fit"):
            return [[part] for part in left]
        grouped: dict[str, list[Part]] = {}
        for part in left:
            person = self.raw_of[part.number][0] if self.head.noise_unit == "person" else ""
            grouped.setdefault(person, []).append(part)
        return list(grouped.values())

    def go(self, workers: Workers, progress: Progress, signing_key: SigningKey | None) -> RunResult:
        """Write what is missing, then give the release its name."""
        resumed, total = len(self.ready), len(self.raw_of)
        if not self.complete:
            self._check_key()
            progress(resumed, total)
            with workers:
                for task in workers.work(self.tasks(), self.folder.attempts):
                    self._take(task)
                    progress(len(self.ready), total)
            summaries = [p.written.summary for p in self.ready]
            self.publication.finish(self.folder.release, summaries, signing_key=signing_key)
            note_finished(self.folder.journal_file)
            self.folder.publish()
        self.folder.remove()
        ordered = sorted((p.written.summary for p in self.ready), key=lambda s: s.number)
        return RunResult(self.head.run, tuple(ordered), resumed, tuple(self.notes))

    def _take(self, task: WrittenTask) -> None:
        self.folder.take(task)
        for written in task.parts:
            raw = self.raw_of[written.summary.number]
            part = JournalPart(written, raw, self.stamps.get(raw, ""))
            note_part(self.folder.journal_file, part)
            self.ready.append(part)
            self._learn(written.summary.number, part)

    def _learn(self, number: int, part: JournalPart) -> None:
        """Tell the promise what a worker saw, so that no file is read again for it."""
        shapes = self._shapes.get(number)
        if shapes is not None:
            shapes.learn(part.written.shapes)

    def _check_key(self) -> None:
        """Refuse a key file that is taken, unless an interrupted run of this release wrote it."""
        file = self.publication.choices.key_file
        if file is None:
            return
        if file.is_file() and self.ready:
            own = read_key(file).recordings == self.publication.names.recordings
            if own:
                file.unlink()
        check_key_file(file, self.folder.out)


def _made(publication: Publication) -> dict[str, str]:
    """Every choice that parts depend on, in words; who resumes a run has to make the same ones."""
    origin, choices = publication.release.provenance, publication.choices
    return {
        "the mechanism": origin.mechanism,
        "its reading": origin.reading,
        "its parameters": repr(sorted(origin.parameters.items())),
        "the seed": repr(origin.seeded),
        "the version of Gazeveil": repr(sorted(origin.versions.items())),
        "what is kept": repr(sorted((*publication.release.kept, *choices.keep))),
        "the alignment": repr(publication.alignment),
        "the format": publication.output.name,
    }


def _stamp(item: Recording | Handle) -> str:
    """Fingerprint of a recording: size and time of its file, or a digest of its values."""
    if isinstance(item, Recording):
        digest = hashlib.blake2b(digest_size=16)
        for values in (item.t_ns, item.x_deg, item.y_deg, item.valid):
            digest.update(np.ascontiguousarray(values).view(np.uint8).data)
        return f"{item.x_deg.nbytes}:{digest.hexdigest()}"
    path = Path(item.source) if item.source else None
    if path is None or not path.is_file():
        return ""
    known = path.stat()
    return f"{known.st_size}:{known.st_mtime_ns}"
