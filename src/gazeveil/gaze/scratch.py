"""Recordings set aside in a temporary file, so that many of them do not fill the memory.

The file has no name where the system allows that (Linux): it is gone as soon as nobody holds it,
however the process ends. Other processes of the same user on the same machine read the same file,
so that a study with several workers holds its recordings once, on disk, and not once in each.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, cast

import numpy as np

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.recording import Recording

#: Recordings stay in memory up to this size, in bytes.
IN_MEMORY = 32 << 20


class ScratchFile:
    """A temporary file of recordings; it lives as long as somebody in this process refers to it."""

    def __init__(self) -> None:
        # Open as long as somebody refers to this object, and so outside of any block.
        file: IO[bytes] = tempfile.TemporaryFile(prefix="gazeveil-")  # noqa: SIM115
        place = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        if not place.exists():
            file.close()
            named = tempfile.NamedTemporaryFile(prefix="gazeveil-")  # noqa: SIM115
            file, place = cast(IO[bytes], named), Path(named.name)
        self._file, self.path = file, str(place)
        self._end = 0
        self._lock = threading.Lock()

    # Another process gets the place of the file alone: it reads and never writes.
    def __reduce__(self) -> tuple[type[ScratchReader], tuple[str]]:
        return ScratchReader, (self.path,)

    def add(self, recording: Recording) -> Handle:
        """Write a recording; the handle reads it back.

        Raises
        ------
        DataError
            If the disk has no room.
        """
        content = pickle.dumps(recording, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            begin = self._end
            try:
                self._file.seek(begin)
                self._file.write(content)
                self._file.flush()
            except OSError as error:
                raise DataError(
                    f"Recordings could not be set aside in {tempfile.gettempdir()}"
                    f" ({error.strerror}). Set TMPDIR to a disk with more room, or use fewer"
                    " recordings."
                ) from error
            self._end += len(content)
        return Handle(
            recording.person,
            recording.stimulus,
            SetAside(self, begin, len(content)),
            recording.session,
            recording.task,
        )

    def read(self, begin: int, length: int) -> bytes:
        """Some bytes of the file."""
        with self._lock:
            self._file.seek(begin)
            return self._file.read(length)


@dataclass(frozen=True)
class ScratchReader:
    """The same file as another process sees it.

    Parameters
    ----------
    path : str
        Where it is, as long as the process that wrote it lives.
    """

    path: str

    def read(self, begin: int, length: int) -> bytes:
        """Some bytes of the file."""
        with open(self.path, "rb") as file:
            file.seek(begin)
            return file.read(length)


@dataclass(frozen=True, eq=False)
class SetAside:
    """A recording in a scratch file; calling it reads the recording.

    Parameters
    ----------
    file : ScratchFile or ScratchReader
        Where it is.
    begin, length : int
        Its bytes.
    """

    file: ScratchFile | ScratchReader
    begin: int
    length: int

    def __call__(self) -> Recording:
        """Read it."""
        recording: Recording = pickle.loads(self.file.read(self.begin, self.length))
        return recording


def set_aside(
    recordings: Cohort | Iterable[Recording | Handle],
    people: Mapping[str, Attributes] | None = None,
    name: str = "",
    most_bytes: int | None = None,
) -> Cohort:
    """A cohort whose first recordings are in memory, up to a size, and the others in a scratch
    file.

    Parameters
    ----------
    recordings : Cohort or iterable of Recording or Handle
        Looked at once, one at a time; what lies in a scratch file already stays there.
    people : mapping, optional
        Attributes of the people; default the cohort's.
    name : str
        Of the cohort; default the given one's.
    most_bytes : int, optional
        Size of what stays in memory; default :data:`IN_MEMORY`.
    """
    limit = IN_MEMORY if most_bytes is None else most_bytes
    if os.name == "nt":  # a file that is open cannot be opened again there
        limit = sys.maxsize
    held, file = 0, None
    items: list[Recording | Handle] = []
    given = recordings.items if isinstance(recordings, Cohort) else recordings
    for item in given:
        if is_set_aside(item):
            items.append(item)
            continue
        recording = item.load() if isinstance(item, Handle) else item
        held += size_of(recording)
        if held <= limit:
            items.append(recording)
        else:
            file = file or ScratchFile()
            items.append(file.add(recording))
    if isinstance(recordings, Cohort):
        people = recordings.people if people is None else people
        return Cohort(items, people, recordings.skipped, name or recordings.name)
    return Cohort(items, people, name=name)


def is_set_aside(item: Recording | Handle) -> bool:
    """Whether this is a recording in a scratch file."""
    return isinstance(item, Handle) and isinstance(item.load, SetAside)


def size_of(recording: Recording) -> int:
    """Bytes of a recording's arrays."""
    values = [getattr(recording, f.name) for f in fields(recording)]
    arrays = [v for v in (*values, *recording.labels.values()) if isinstance(v, np.ndarray)]
    return sum(a.nbytes for a in arrays)
