"""The hidden folder beside a release that is being written, and the journal in it.

::

    .NAME.gazeveil-work/       mode 0700
      journal.jsonl            what is finished
      lock                     held by the process that writes
      release/                 parts that are finished, in their places
      attempts/                parts that workers are writing

It is named after the release, so that a later run finds it. It gets the name of the release at the
end, so that a partial release is never visible.

The journal has one JSON object to a line, the first about the whole release. A line is written when
its part lies in its place, and is on the disk before the next part begins; a last line that was cut
is as if it had never been written. The journal knows who is who, so it is for its owner alone and
goes when the release is complete.

Writing a publication: by one process or many, to the end or not at all, and on from where it was
interrupted.

::

    names = begun_names(out) if resume else None
    publication = protected(cohort, mechanism, choices, names=names)
    run(publication, out, raw=cohort, executor=8, resume=resume)

Everything happens in a hidden work folder beside the release (:mod:`gazeveil.release.run`).
When a run is killed, the parts that are finished stay there; the next one says so and goes on with
`resume`. Parts of mechanisms that draw something for all recordings first (`noise_unit` is `fit` or
`release`) cannot be continued: their draw starts anew. Nothing of the first one was published.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np

from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.io.source import free, plain_os_errors, remove_abandoned
from gazeveil.privacy.publication.certificate import SigningKey
from gazeveil.privacy.publication.ledger import Charging
from gazeveil.privacy.publication.names import PublicNames, check_key_file, read_key, recording_key
from gazeveil.privacy.publication.outputs import Part, PartSummary
from gazeveil.privacy.publication.publication import Publication
from gazeveil.privacy.randomness.supply import drawn_anew
from gazeveil.privacy.registry import get
from gazeveil.privacy.stream.mechanism import shapes_of
from gazeveil.workers import LostTask, ThisProcess, Workers, workers_for

_FORMAT, _VERSION = "gazeveil-work", 2


@dataclass(frozen=True)
class JournalHead:
    """Head of a journal.

    Parameters
    ----------
    noise_unit : str
        What has noise of its own (:class:`gazeveil.privacy.mechanism.Mechanism`).
    made : mapping of str to str
        Every choice, in words.
    names : PublicNames
        Who is who.
    """

    noise_unit: str
    made: Mapping[str, str]
    names: PublicNames

    @property
    def can_go_on(self) -> bool:
        """Whether parts that are finished stay as they are when the release is resumed."""
        return self.noise_unit == "recording"


@dataclass(frozen=True)
class WrittenPart:
    """A part that lies in a folder.

    Parameters
    ----------
    summary : PartSummary
        What it says of itself.
    hashes : mapping of file to SHA-256
        Of all its files.
    shapes : mapping of recording to rate in Hz, space and samples
        What was noted for the promise while it was protected; it is not kept in a journal.
    raw : (person, stimulus, session, task)
        The recording that it was made from.
    stamp : str
        Fingerprint of that recording's file.
    """

    summary: PartSummary
    hashes: Mapping[str, str]
    shapes: Mapping[RecordingKey, tuple[float, Space, int]] = field(default_factory=dict)
    raw: RecordingKey = ("", "", "", "")
    stamp: str = ""


@dataclass(frozen=True)
class WrittenTask:
    """Parts that were written into one folder, beside the release."""

    folder: str
    parts: tuple[WrittenPart, ...]


@dataclass(frozen=True)
class Journal:
    """Content of a journal: its head, the finished parts, and whether all files are placed."""

    head: JournalHead
    parts: tuple[WrittenPart, ...] = ()
    finished: bool = False


def begin_journal(path: Path, head: JournalHead) -> None:
    """Begin a journal; it is there whole or not at all."""
    made = {"noise_unit": head.noise_unit, "made": dict(head.made), "names": head.names.to_list()}
    temporary = path.with_suffix(".new")
    _append(temporary, {"format": _FORMAT, "version": _VERSION, **made})
    temporary.replace(path)


def note_part(path: Path, part: WrittenPart) -> None:
    """Note a part that lies in its place."""
    about = {"hashes": dict(part.hashes), "raw": list(part.raw), "stamp": part.stamp}
    _append(path, {"part": asdict(part.summary), **about})


def note_finished(path: Path) -> None:
    """Note that all files of the release are in place."""
    _append(path, {"finished": True})


def read_journal(path: Path) -> Journal:
    """Read a journal.

    Raises
    ------
    DataError
        If it is none, or of another version.
    """
    stored = path.read_bytes()
    # Not splitlines, which also breaks at characters that a name may hold.
    whole = stored[: stored.rfind(b"\n") + 1].split(b"\n")[:-1]
    try:
        head, *lines = (json.loads(line.decode("utf-8", "surrogatepass")) for line in whole)
        if head["format"] != _FORMAT or head["version"] != _VERSION:
            raise KeyError("format")
        names = PublicNames.from_list(head["names"])
        parts = tuple(
            WrittenPart(
                PartSummary(**line["part"]),
                line["hashes"],
                raw=recording_key(line["raw"]),
                stamp=line["stamp"],
            )
            for line in lines
            if "part" in line
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is damaged or of another version, so the release cannot go on. Remove"
            f" {path.parent} and start again."
        ) from error
    finished = any(line.get("finished", False) for line in lines)
    return Journal(JournalHead(head["noise_unit"], head["made"], names), parts, finished)


def _append(path: Path, line: Mapping[str, object]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def do_task(parts: Sequence[Part], attempts: Path) -> WrittenTask:
    """Write parts into folders of their own in a new one in `attempts`, one recording in
    memory at a time.
    """
    folder = attempts / uuid4().hex
    folder.mkdir()
    written = []
    for part in parts:
        own = folder / str(part.number)
        own.mkdir()
        with plain_os_errors(own):
            summary = part.write(own)
        shapes = shapes_of(part.load)
        files = sorted(p for p in own.rglob("*") if p.is_file())
        hashes = {p.relative_to(own).as_posix(): file_hash(p) for p in files}
        written.append(WrittenPart(summary, hashes, {} if shapes is None else shapes.taken()))
    return WrittenTask(folder.name, tuple(written))


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class WorkFolder:
    """The work folder of a release that goes to `out`."""

    def __init__(self, out: Path) -> None:
        target = Path(os.path.abspath(out))
        self.out = out
        self.path = target.parent / f".{target.name}.gazeveil-work"
        self.journal_file = self.path / "journal.jsonl"
        self.release, self.attempts = self.path / "release", self.path / "attempts"

    @property
    def exists(self) -> bool:
        """Whether a run was begun and not finished."""
        return self.path.is_dir()

    def journal(self) -> Journal | None:
        """Read the journal; None where the run ended before it began one."""
        return read_journal(self.journal_file) if self.journal_file.is_file() else None

    def make(self) -> None:
        """Make the folders that are missing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        for folder in (self.release, self.attempts):
            folder.mkdir(exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away.

        Raises
        ------
        DataError
            If another one is writing.
        """
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DataError(
                    f"Another run is writing {self.out} at this moment (in {self.path}). Wait for"
                    " it, or choose another name."
                ) from error
            yield

    def empty(self) -> None:
        """Remove everything but the lock."""
        self.journal_file.unlink(missing_ok=True)
        for folder in (self.release, self.attempts):
            shutil.rmtree(folder, ignore_errors=True)

    def keep_only(self, parts: Sequence[WrittenPart]) -> None:
        """Remove attempts, and files of the release that belong to none of these parts."""
        shutil.rmtree(self.attempts, ignore_errors=True)
        kept = {name for part in parts for name in part.hashes}
        for file in sorted(self.release.rglob("*"), reverse=True):
            if file.is_dir():
                with suppress(OSError):  # not empty
                    file.rmdir()
            elif file.relative_to(self.release).as_posix() not in kept:
                file.unlink()

    def whole(self, part: WrittenPart) -> bool:
        """Whether all files of a part are as they were written."""
        for name, digest in part.hashes.items():
            file = self.release / name
            if not file.is_file() or file_hash(file) != digest:
                return False
        return True

    def take(self, task: WrittenTask) -> None:
        """Put the files of a task in their places."""
        folder = self.attempts / task.folder
        for part in task.parts:
            for name in part.hashes:
                (self.release / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / str(part.summary.number) / name).replace(self.release / name)
        shutil.rmtree(folder, ignore_errors=True)

    def publish(self) -> None:
        """Give the release its name."""
        if self.out.exists():
            self.out.rmdir()
        self.release.rename(self.out)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def clean(out: Path) -> bool:
    """Remove what an interrupted run of a release left; whether there was anything.

    Raises
    ------
    DataError
        If the run goes on at this moment.
    """
    folder = WorkFolder(out)
    abandoned = remove_abandoned(folder.out)
    if not folder.exists:
        return abandoned > 0
    with folder.locked():
        folder.remove()
    return True


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
