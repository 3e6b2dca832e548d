"""Recordings set aside in a temporary file, so that many of them do not fill the memory.

The file has no name where the system allows that (Linux): it is gone when its last holder ends, in
any way. Other processes of the same user on the same machine read the same file. A study with
several workers then holds its recordings once, on disk.
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
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.recording import Recording

#: Recordings stay in memory up to this size, in bytes.
IN_MEMORY = 8 << 20

# Arrays in the file begin at multiples of this many bytes, as compiled code wants them.
_STEP = 16


class ScratchFile:
    """A temporary file of recordings; it lives as long as this process refers to it."""

    def __init__(self) -> None:
        # Open as long as this object is referenced, and so outside of any block.
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
        """Write a recording; the handle reads it back. Raises as :meth:`put`."""
        content, arrays = _bytes_of_recording(recording)
        load = SetAside(
            self, self.put(content), arrays, len(content), recording.rate_hz, recording.duration_s
        )
        return Handle(recording.person, recording.stimulus, load, recording.session, recording.task)

    def put(self, content: bytes | memoryview) -> int:
        """Write some bytes; where they begin.

        Raises
        ------
        DataError
            If the disk has no room.
        """
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
        return begin

    def read(self, begin: int, length: int) -> bytes:
        """Some bytes of the file."""
        with self._lock:
            self._file.seek(begin)
            return self._file.read(length)

    def put_array(self, array: NDArray[Any]) -> int:
        """Write the numbers or texts of an array; where they begin. Raises as :meth:`put`."""
        return self.put(_bytes_of(np.ascontiguousarray(array)))

    def read_array(self, begin: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array of what :meth:`put_array` wrote there."""
        array = np.empty(shape, dtype)
        left = _bytes_of(array)
        with self._lock:
            self._file.seek(begin)
            while len(left):  # the system may give less than is asked for
                left = left[self._file.readinto(left) :]  # type: ignore[attr-defined]
        return array


def _bytes_of_recording(recording: Recording) -> tuple[bytes, int]:
    """A recording as bytes: its arrays as they lie in memory, each filled up to whole steps, then
    all the rest, pickled with where each array is; and how many bytes the arrays take.

    Arrays are most of a recording, and to pickle them takes longer than to copy them.
    """
    state = recording.__getstate__()
    places: dict[str, tuple[tuple[int, ...], str, int]] = {}
    parts: list[bytes | memoryview] = []
    end = 0
    for name, value in list(state.items()):
        if isinstance(value, np.ndarray):
            del state[name]
            places[name] = (value.shape, value.dtype.str, end)
            parts += [_bytes_of(value), bytes(-value.nbytes % _STEP)]
            end += value.nbytes + len(parts[-1])
    rest = pickle.dumps((state, places), protocol=pickle.HIGHEST_PROTOCOL)
    return b"".join([*parts, rest]), end


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


@dataclass(frozen=True)
class ScratchReader:
    """The same file as another process sees it, as long as the process that wrote it lives."""

    path: str

    def read(self, begin: int, length: int) -> bytes:
        """Some bytes of the file."""
        # Without the buffer that comes with it, which would take longer than to read.
        with open(self.path, "rb", buffering=0) as file:
            file.seek(begin)
            content = file.read(length)
            # The system gives at most 2 GiB at a time.
            while len(content) < length and (more := file.read(length - len(content))):
                content += more
            return content


@dataclass(frozen=True, eq=False)
class SetAside:
    """A recording in `length` bytes of a scratch file from `begin`, of which the first `arrays`
    are its arrays; calling it reads the recording. Its rate and its duration are known without
    reading it.
    """

    file: ScratchFile | ScratchReader
    begin: int
    arrays: int
    length: int
    rate_hz: float
    duration_s: float

    def __call__(self) -> Recording:
        """Read it."""
        content = self.file.read(self.begin, self.length)
        state, places = pickle.loads(memoryview(content)[self.arrays :])
        for name, (shape, dtype, begin) in places.items():
            # A read-only view of the bytes read.
            state[name] = np.ndarray(shape, dtype, content, begin)
        recording = Recording.__new__(Recording)
        recording.__setstate__(state)
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


def rates_hz(cohort: Cohort) -> list[float]:
    """The sampling rate of each recording; those in a scratch file are not read for it."""
    return [_known(item).rate_hz for item in cohort.items]


def durations_s(cohort: Cohort) -> list[float]:
    """How long each recording is; those in a scratch file are not read for it."""
    return [_known(item).duration_s for item in cohort.items]


def _known(item: Recording | Handle) -> Recording | SetAside:
    """Something that knows rate and duration of a recording."""
    if not isinstance(item, Handle):
        return item
    return item.load if isinstance(item.load, SetAside) else item.load()


def size_of(recording: Recording) -> int:
    """Bytes of a recording's arrays."""
    values = [getattr(recording, f.name) for f in fields(recording)]
    arrays = [v for v in (*values, *recording.labels.values()) if isinstance(v, np.ndarray)]
    return sum(a.nbytes for a in arrays)
