"""What a worker does for a release: load some recordings, protect them and write them into a folder
of its own.

A task is sent as bytes. It carries no secret: the keys of noise are drawn anew by whoever does it
(:func:`gazeveil.privacy.randomness.keys.drawn_anew`), and all recordings that share noise are in
one task. A task that is done twice, because a worker was thought to be lost, has two folders, of
which one is taken.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import RecordingKey
from gazeveil.io.staging import plain_os_errors
from gazeveil.privacy.publication.part import Part, PartSummary
from gazeveil.privacy.randomness.keys import drawn_anew
from gazeveil.privacy.stream.cohorts import shapes_of

#: Rate in Hz, space and number of samples of recordings, as their promise needs them.
Shapes = Mapping[RecordingKey, tuple[float, Space, int]]


@dataclass(frozen=True)
class WrittenPart:
    """A part that lies in a folder.

    Parameters
    ----------
    summary : PartSummary
        What it says of itself.
    hashes : mapping of file to SHA-256
        Of all its files.
    shapes : mapping
        What was noted of the raw recording while it was protected.
    """

    summary: PartSummary
    hashes: Mapping[str, str]
    shapes: Shapes


@dataclass(frozen=True)
class WrittenTask:
    """Parts that were written into one folder, beside the release."""

    folder: str
    parts: tuple[WrittenPart, ...]


def packed(parts: Sequence[Part]) -> bytes:
    """Parts as they are sent; whoever unpacks them draws keys of their own."""
    with drawn_anew():
        return pickle.dumps((__version__, tuple(parts)))


def do_packed(sent: bytes, attempts: Path) -> WrittenTask:
    """Do a task that was sent.

    Raises
    ------
    DataError
        If this worker has another version of Gazeveil.
    """
    version, parts = pickle.loads(sent)
    if version != __version__:
        raise DataError(
            f"A worker has Gazeveil {__version__} and the release is made with {version}. Install"
            " the same one everywhere."
        )
    return do_task(parts, attempts)


def do_task(parts: Sequence[Part], attempts: Path) -> WrittenTask:
    """Write parts into a new folder in `attempts`, one recording in memory at a time."""
    folder = attempts / uuid4().hex
    folder.mkdir()
    written = []
    for part in parts:
        with plain_os_errors(folder):
            summary = part.write(folder)
        shapes = shapes_of(part.load)
        seen = {} if shapes is None else shapes.taken()
        hashes = {name: file_hash(folder / name) for name in summary.files}
        written.append(WrittenPart(summary, hashes, seen))
    return WrittenTask(folder.name, tuple(written))


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
