"""The hidden folder beside a release that is being written.

::

    .NAME.gazeveil-work/       mode 0700
      journal.jsonl            what is finished (:mod:`gazeveil.release.work.journal`)
      lock                     held by the process that writes
      release/                 parts that are finished, in their places
      attempts/                parts that workers are writing

It is named after the release, so that a later run finds it. It takes the name of the release when
all is finished, so that nobody ever sees half of one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gazeveil.errors import DataError
from gazeveil.io.staging import remove_abandoned
from gazeveil.release.work.journal import Journal, JournalPart, WrittenTask, file_hash, read_journal

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


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
        """What the journal says; None where the run ended before it began one."""
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
        if fcntl is None:
            yield
            return
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

    def keep_only(self, parts: list[JournalPart]) -> None:
        """Remove attempts, and files of the release that belong to none of these parts."""
        shutil.rmtree(self.attempts, ignore_errors=True)
        kept = {name for part in parts for name in part.written.summary.files}
        for file in sorted(self.release.rglob("*"), reverse=True):
            if file.is_dir():
                with suppress(OSError):  # not empty
                    file.rmdir()
            elif file.relative_to(self.release).as_posix() not in kept:
                file.unlink()

    def whole(self, part: JournalPart) -> bool:
        """Whether all files of a part are as they were written."""
        for name, digest in part.written.hashes.items():
            file = self.release / name
            if not file.is_file() or file_hash(file) != digest:
                return False
        return True

    def take(self, task: WrittenTask) -> None:
        """Put the files of a task in their places."""
        folder = self.attempts / task.folder
        for part in task.parts:
            for name in part.summary.files:
                (self.release / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).replace(self.release / name)
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
