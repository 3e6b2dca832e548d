"""One recording of a publication: loaded, protected, renamed and written by a free worker.

Parts do not know one another, so any process may write any of them, in any order; what a part
writes depends on nothing but the part. Its files appear under their names when they are whole.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.privacy import registry
from gazeveil.privacy.pieces import PieceMechanism
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.choices import PublicationChoices
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


#: What may be kept: the names that pieces have in common.
KEPT_OF_PIECES = ("stimulus", "task")

#: How times are told in a certificate.
TIMES_OF_PIECES = "from the beginning of the stimulus"


def makes_pieces(mechanism: str) -> bool:
    """Whether the mechanism of that name releases pieces."""
    known = mechanism in registry.mechanisms()
    return known and issubclass(registry.get(mechanism), PieceMechanism)


def check_piece_choices(owner: str, choices: PublicationChoices) -> None:
    """Refuse what pieces have not: a lasting name, a person's attributes, a tracker's times."""
    kept = [name for name in choices.keep if name not in KEPT_OF_PIECES]
    if kept:
        checks.refuse(
            owner,
            "keep",
            f"one of {', '.join(KEPT_OF_PIECES)}: pieces have no person, no session and no times of"
            " the tracker",
            kept[0],
            "Leave it out.",
        )
    if choices.key_file is not None:
        checks.refuse(
            owner,
            "key_file",
            "left out: nobody keeps whose a piece is",
            str(choices.key_file),
            "Leave it out.",
        )


def piece_alignment(alignment: Alignment, rates_hz: Iterable[float]) -> Alignment:
    """How pieces are written: with their own times and their one rate.

    Parameters
    ----------
    alignment : Alignment
        Of the recordings.
    rates_hz : iterable of float
        Of pieces.

    Raises
    ------
    DataError
        For pieces of several rates: a rate that one person alone has would link their pieces.
    """
    rates = sorted(set(rates_hz))
    if len(rates) != 1:
        raise DataError(
            f"The pieces of this release have {len(rates)} rates, and a rate of one's own tells"
            " which pieces belong together. Give all recordings one rate before they are protected."
            " Nothing was written."
        )
    return replace(
        alignment, rate_hz=Fraction(repr(float(rates[0]))), times_kept=True, lengths_s={}
    )


def viewers_of(pieces: Iterable[tuple[str, int]]) -> int:
    """The largest number of pieces, each a stimulus and a first time in nanoseconds, at one time of
    one stimulus.
    """
    return max(Counter(pieces).values(), default=0)
