"""One recording of a publication: loaded, protected, renamed and written by whoever has time.

Parts do not know one another, so any process may write any of them, in any order; what a part
writes depends on nothing but the part. Its files appear under their names when they are whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.outputs.output import Output

#: Parts of a recording that are neither gaze nor names; they go out if they are kept.
CHANNELS = (
    "left_deg",
    "right_deg",
    "head_deg",
    "eye_in_head_deg",
    "pupil",
    "confidence",
    "labels",
    "events",
    "messages",
    "metadata",
)

_NOTHING: Mapping[str, Any] = {"labels": {}, "messages": (), "metadata": {}}


@dataclass(frozen=True)
class PartSummary:
    """What is said about a part once it is written; plain values, which may be sent and stored.

    Parameters
    ----------
    number : int
        Of the part.
    row : mapping
        Its line of the index, as the format made it.
    files : tuple of str
        What it wrote, relative to the release.
    samples, valid : int
        How many samples there are, and how many have gaze.
    start_ns : int
        Its first time, in nanoseconds.
    """

    number: int
    row: Mapping[str, object]
    files: tuple[str, ...]
    samples: int
    valid: int
    start_ns: int = 0

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON has it."""
        return {
            "number": self.number,
            "row": dict(self.row),
            "files": list(self.files),
            "samples": self.samples,
            "valid": self.valid,
            "start_ns": self.start_ns,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PartSummary:
        """What :meth:`to_dict` wrote."""
        return cls(
            int(stored["number"]),
            dict(stored["row"]),
            tuple(stored["files"]),
            int(stored["samples"]),
            int(stored["valid"]),
            int(stored.get("start_ns", 0)),
        )


@dataclass(frozen=True, eq=False)
class Part:
    """One recording of a publication.

    Parameters
    ----------
    number : int
        From 1, in the published order.
    names : (person, stimulus, session, task)
        As they are published.
    load : callable
        Gives the protected recording; the same one each time.
    output : Output
        The format.
    alignment : Alignment
        Applied to what is loaded; it changes nothing where that was done before the protection.
    kept : tuple of str
        Channels that go out.
    """

    number: int
    names: RecordingKey
    load: Callable[[], Recording] = field(repr=False)
    output: Output = field(repr=False)
    alignment: Alignment = field(repr=False)
    kept: tuple[str, ...] = ()

    def recording(self) -> Recording:
        """What is published."""
        made = self.alignment.applied(self.load())
        dropped = {n: _NOTHING.get(n) for n in CHANNELS if n not in self.kept}
        names = dict(zip(KEY_NAMES, self.names, strict=True))
        return made.with_(**names, **dropped, counts={}, truth=None)

    def write(self, folder: Path) -> PartSummary:
        """Write it below the root of the release; files that are there already under the same names
        are replaced.
        """
        made = self.recording()
        staging = folder / f".{self.number:06d}.{uuid4().hex[:8]}"
        staging.mkdir(parents=True)
        try:
            row = self.output.write_recording(staging, self.number, made)
            files = sorted(p for p in staging.rglob("*") if p.is_file())
            names = tuple(p.relative_to(staging).as_posix() for p in files)
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (staging / name).replace(folder / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        start_ns = int(made.t_ns[0]) if len(made) else 0
        return PartSummary(self.number, row, names, len(made), int(made.valid.sum()), start_ns)
