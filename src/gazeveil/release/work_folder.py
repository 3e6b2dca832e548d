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
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import uuid4

from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import RecordingKey
from gazeveil.io.source import plain_os_errors, remove_abandoned
from gazeveil.privacy.publication.names import PublicNames, recording_key
from gazeveil.privacy.publication.outputs import Part, PartSummary
from gazeveil.privacy.stream.mechanism import shapes_of

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
