"""Writing a publication: by one process or many, to the end or not at all, and on from where it was
interrupted.

::

    names = begun_names(out) if resume else None
    publication = protected(cohort, mechanism, choices, names=names)
    run(publication, out, raw=cohort, executor=8, resume=resume)

Everything happens in a hidden work folder beside the release (:mod:`gazeveil.release.work_folder`).
When a run is killed, the parts that are finished stay there; the next one says so and goes on with
`resume`. Parts of mechanisms that draw something for all recordings first (`noise_unit` is `fit` or
`release`) cannot be continued: their draw starts anew. Nothing of the first one was published.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np

from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.io.source import free
from gazeveil.privacy.publication.certificate import SigningKey
from gazeveil.privacy.publication.ledger import Charging
from gazeveil.privacy.publication.names import PublicNames, check_key_file, read_key
from gazeveil.privacy.publication.outputs import Part, PartSummary
from gazeveil.privacy.publication.publication import Publication
from gazeveil.privacy.randomness.supply import drawn_anew
from gazeveil.privacy.registry import get
from gazeveil.privacy.stream.mechanism import shapes_of
from gazeveil.release.work_folder import (
    Journal,
    JournalHead,
    WorkFolder,
    WrittenPart,
    WrittenTask,
    begin_journal,
    clean,
    do_task,
    note_finished,
    note_part,
)
from gazeveil.workers import LostTask, ThisProcess, Workers, workers_for

__all__ = ["RunResult", "Running", "begun_names", "check_out", "clean", "run"]

#: Raw files below this many bytes in all are protected faster than processes start.
SMALL_BYTES = 1 << 26

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Told (parts done, parts in all).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RunResult:
    """Result of a complete release.

    It holds the summaries of its parts by number, the number of parts resumed from an interrupted
    run, and notes for the data holder.
    """

    summaries: tuple[PartSummary, ...]
    resumed: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Running:
    """Workers of a release, and whether to resume it.

    Parameters
    ----------
    executor : int or str, optional
        How many processes protect recordings, each with one in memory; or the address of a Dask
        scheduler, whose workers share this disk. Left out, as many as there is work for.
    resume : bool
        Whether to go on with a run that was interrupted.
    """

    executor: int | str | None = None
    resume: bool = False


def interrupted_names(out: Path) -> PublicNames | None:
    """The names of a run that was interrupted, whether it can go on or not; None where there is
    none.
    """
    journal = WorkFolder(out).journal()
    return None if journal is None or journal.finished else journal.head.names


def begun_names(out: Path) -> PublicNames | None:
    """Return the names of an interrupted run that can go on; None where there is none.

    A resumed run uses these names, because the finished parts have them already.
    """
    journal = WorkFolder(out).journal()
    return journal.head.names if journal is not None and journal.head.can_go_on else None


def begun(out: Path, resume: bool, charging: Charging) -> PublicNames | None:
    """The names of an interrupted run that goes on; one that has to start anew is not charged
    twice.

    Parameters
    ----------
    out : Path
        The release.
    resume : bool
        Whether it is to go on.
    charging : Charging
        Takes the charge of a run back that starts anew.
    """
    if not resume:
        return None
    names, earlier = begun_names(out), interrupted_names(out)
    if names is None and earlier is not None:
        charging.cancel(out, earlier)
    return names


def check_out(out: Path, resume: bool) -> None:
    """Refuse a place that is taken, before any work is done.

    Raises
    ------
    DataError
        If the place holds other data, if another run is writing it, or if a run was interrupted and
        `resume` is off.
    """
    folder = WorkFolder(out)
    if not folder.exists:
        free(out)
        return
    with folder.locked():
        journal = folder.journal()
    if journal is not None and journal.finished and resume:
        return
    free(out)
    if not resume:
        done = 0 if journal is None else len(journal.parts)
        total = "" if journal is None else f" of {len(journal.head.names.recordings)}"
        raise DataError(
            f"A run that writes {out} was interrupted: {done}{total} recordings are finished in"
            f" {folder.path}. Go on with --resume, or remove it with --instead-of {out}."
        )


def run(
    publication: Publication,
    out: Path,
    *,
    raw: Cohort | None = None,
    executor: int | str | None = None,
    resume: bool = False,
    progress: Progress = lambda done, total: None,
    signing_key: SigningKey | None = None,
) -> RunResult:
    """Write a publication whole, or not at all.

    Parameters
    ----------
    publication : Publication
        What to write. To resume, it was prepared with :func:`begun_names`.
    out : Path
        A folder that does not exist yet or is empty.
    raw : Cohort, optional
        The raw recordings; with them `resume` sees which of their files have changed.
    executor, resume
        As of :class:`Running`; left out, as many processes as cores, or this one alone where there
        is little to do.
    progress : callable
        Told (parts done, parts in all).
    signing_key : SigningKey, optional
        Signs the certificate.

    Raises
    ------
    DataError
        If the place is taken, what is to be resumed was made of something else, a recording cannot
        be read, or the disk is full. Nothing is released then.
    """
    check_out(out, resume)
    folder = WorkFolder(out)
    folder.make()
    with folder.locked():
        try:
            job = ReleaseJob(publication, folder, raw, resume)
            return job.go(executor, progress, signing_key)
        except GazeveilError as error:
            left = _left(folder)
            if left and not isinstance(error, ParameterError):
                raise DataError(f"{error} {left}") from error
            raise
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Stopped, nothing was released. {_left(folder)}") from None
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise DataError(
                f"There is no room for the release on the disk of {folder.path.parent}. Nothing"
                f" was released. {_left(folder)}"
            ) from error


def _left(folder: WorkFolder) -> str:
    """Describe the remains of an interrupted run; remove a folder without a finished part."""
    journal = folder.journal()
    if journal is None or not journal.parts or not journal.head.can_go_on:
        folder.remove()
        return ""
    return (
        f"{len(journal.parts)} of {len(journal.head.names.recordings)} recordings are finished: go"
        " on with --resume, or remove them with --instead-of, the same folder."
    )


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
        self.head = JournalHead(unit, _made(publication), publication.names)
        self.notes: list[str] = []
        self.ready: list[WrittenPart] = []
        self.complete = False
        noted = (shapes_of(part.load) for part in publication.parts)
        self._shapes = next((shapes for shapes in noted if shapes is not None), None)
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
        self.ready = [p for p in journal.parts if self.folder.whole(p)]
        self.folder.keep_only(self.ready)
        self.folder.make()
        self.notes.append(
            f"{len(self.ready)} of {len(self.raw_of)} recordings were finished before the"
            " interruption."
        )

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
                " --instead-of, the same folder. Nothing was released."
            )

    def tasks(self) -> list[list[Part]]:
        """Return the unfinished parts, together where they share noise."""
        finished = {p.summary.number for p in self.ready}
        left = [p for p in self.publication.parts if p.number not in finished]
        if self.head.noise_unit in ("recording", "fit"):
            return [[part] for part in left]
        return [left] if left else []

    def go(
        self, executor: int | str | None, progress: Progress, signing_key: SigningKey | None
    ) -> RunResult:
        """Write what is missing, then give the release its name."""
        resumed, total = len(self.ready), len(self.raw_of)
        if not self.complete:
            self._check_key()
            progress(resumed, total)
            tasks = self.tasks()
            with workers_for("publish", self._executor(executor), len(tasks), ahead=1) as workers:
                for task in _written(workers, tasks, self.folder.attempts):
                    self._take(task)
                    progress(len(self.ready), total)
            summaries = [p.summary for p in self.ready]
            self.publication.finish(self.folder.release, summaries, signing_key=signing_key)
            note_finished(self.folder.journal_file)
            self.folder.publish()
        self.folder.remove()
        ordered = sorted((p.summary for p in self.ready), key=lambda s: s.number)
        return RunResult(tuple(ordered), resumed, tuple(self.notes))

    def _executor(self, executor: int | str | None) -> int | str | None:
        """One process where none was named and there is little to do."""
        size = sum(int(s.partition(":")[0] or 0) for s in self.stamps.values())
        return 1 if executor is None and size < SMALL_BYTES else executor

    def _take(self, task: WrittenTask) -> None:
        self.folder.take(task)
        for written in task.parts:
            raw = self.raw_of[written.summary.number]
            part = replace(written, raw=raw, stamp=self.stamps.get(raw, ""))
            note_part(self.folder.journal_file, part)
            self.ready.append(part)
            # What a worker saw goes into the promise, so that no file is read again for it.
            if self._shapes is not None:
                self._shapes.learn(written.shapes)

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


def _written(
    workers: Workers, tasks: Sequence[Sequence[Part]], attempts: Path
) -> Iterator[WrittenTask]:
    """Tasks as they are finished, each in a folder of its own in `attempts`."""
    mark = attempts / f"{uuid4().hex}.mark"
    mark.touch()
    if not workers.sees([str(mark)], os.W_OK):
        raise DataError(
            f"Not all workers see {attempts.parent.parent}. Name a folder on a disk that all of"
            " them share. Nothing was released."
        )
    mark.unlink()
    if isinstance(workers, ThisProcess):
        answers = workers.do(do_task, [partial(tuple, (parts, attempts)) for parts in tasks])
    else:
        sent = [partial(_packed, parts, attempts) for parts in tasks]
        answers = workers.do(_do_packed, sent)
    for answer in answers:
        if isinstance(answer, LostTask):
            number = tasks[answer.number][0].number
            raise DataError(
                f"Recording {number} was not protected. {answer.reason} Nothing was released."
            )
        if answer is not None:
            yield answer.value


def _packed(parts: Sequence[Part], attempts: Path) -> tuple[bytes, Path]:
    """Parts for sending; the receiver draws keys of its own."""
    with drawn_anew():
        return pickle.dumps(tuple(parts)), attempts


def _do_packed(sent: bytes, attempts: Path) -> WrittenTask:
    return do_task(pickle.loads(sent), attempts)


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
