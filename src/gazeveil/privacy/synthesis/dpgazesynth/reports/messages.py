"""Messages from a device to the curator: bytes whose number depends on public numbers alone
(`corrected` and the one report).

A message is what a device tells of one recording; a file is messages one after the other, so files
can be joined end to end. All numbers are little endian.

======== ================================================================================
bytes    what
======== ================================================================================
8        `gazeveil`
2        version of this format, 1
2        0
16       BLAKE2b digest of the public parameters, as text
4        length of the head
8        length of the body
head     JSON: person, stimulus, session, task, rate_hz, samples, begin_ns, space
body     for each window its noisy start, then all noisy fixation times, then the
         answers of each question in alphabetical order
4        CRC-32 of everything before
======== ================================================================================

A start is two numbers of 4 bytes, in steps of the public lattice; a fixation time is one of 4.
`published` sends the number of fixations of each window (2 bytes), starts and fixation times as
numbers of 8 bytes, and one answer per transition: what it sends differs in length from window to
window.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from mmap import mmap
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, RecordingKey
from gazeveil.privacy.synthesis.dpgazesynth.reports.packing import Bytes

#: What messages are read from: bytes, or a file mapped into memory.
Buffer: TypeAlias = bytes | memoryview | mmap

MAGIC = b"gazeveil"
VERSION = 1

_FRAME = struct.Struct("<8sHH16sIQ")
_MOST_HEAD = 1 << 14
_MOST_TEXT = 500
_MOST_SAMPLES = 1 << 40


@dataclass(frozen=True)
class ReportHeader:
    """What is public about a recording."""

    person: str
    stimulus: str
    session: str
    task: str
    rate_hz: float
    samples: int
    begin_ns: int
    space: Space

    @property
    def key(self) -> RecordingKey:
        """(person, stimulus, session, task)."""
        return self.person, self.stimulus, self.session, self.task

    def to_bytes(self) -> bytes:
        """As JSON."""
        space = (
            {"kind": "sphere"}
            if isinstance(self.space, Sphere)
            else {"kind": "screen", **{n: getattr(self.space, n) for n in SCREEN_SIZES}}
        )
        fields = {
            n: getattr(self, n)
            for n in ("person", "stimulus", "session", "task", "rate_hz", "samples", "begin_ns")
        }
        return json.dumps(
            {**fields, "space": space}, ensure_ascii=False, separators=(",", ":")
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> ReportHeader:
        """Read JSON from a stranger.

        Raises
        ------
        DataError
            For anything that is not such a head.
        """
        try:
            fields = json.loads(bytes(data).decode())
            texts = [fields[n] for n in KEY_NAMES]
            # Half of a pair of characters cannot be written anywhere; encoding it raises a
            # ValueError.
            "".join(texts).encode()
            rate = fields["rate_hz"]
            samples = fields["samples"]
            begin = fields["begin_ns"]
            space = fields["space"]
            sides = [space[n] for n in SCREEN_SIZES] if space["kind"] == "screen" else []
            sphere = space["kind"] == "sphere"
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError("its head cannot be read") from error
        if not all(isinstance(t, str) and len(t) <= _MOST_TEXT for t in texts) or not (
            sphere or sides
        ):
            raise DataError("its head cannot be read")
        for value in (rate, *sides):
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not math.isfinite(value)
                or not 1e-3 < value < 1e7
            ):
                raise DataError("its rate or its screen is not possible")
        for value, least, most in ((samples, 0, _MOST_SAMPLES), (begin, -(2**62), 2**62)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise DataError("its length or its beginning is not possible")
        return cls(
            texts[0],
            texts[1],
            texts[2],
            texts[3],
            float(rate),
            samples,
            begin,
            Sphere() if sphere else Screen(*(float(s) for s in sides)),
        )


@dataclass(frozen=True, eq=False)
class Report:
    """What a device tells of one recording; everything but the head is noisy.

    Parameters
    ----------
    head : ReportHeader
        What is public.
    x_deg, y_deg : array of float64, shape (windows,)
        Noisy starts.
    counts : array of int64, shape (windows,)
        Fixation times of each window: c, or in `published` the true number of fixations; 0 in the
        one report.
    lengths : array of float64, shape (windows, most)
        Noisy fixation times.
    answers : mapping of str to array of uint8, shape (answers, width)
        Packed answers to each question; empty where they were added up already.
    """

    head: ReportHeader
    x_deg: Floats = field(repr=False)
    y_deg: Floats = field(repr=False)
    counts: Ints = field(repr=False)
    lengths: Floats = field(repr=False)
    answers: Mapping[str, Bytes] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.x_deg)


@dataclass(frozen=True)
class Envelope:
    """A message whose frame is sound: the digest of the public parameters it was made under, and
    its parts, looked at where they lie.
    """

    parameters: bytes
    head: memoryview = field(repr=False)
    body: memoryview = field(repr=False)

    @property
    def content(self) -> bytes:
        """A digest of the body: noise never gives the same twice."""
        return hashlib.blake2b(self.body, digest_size=16).digest()


def digest(parameters: str) -> bytes:
    """16 bytes that stand for the public parameters."""
    return hashlib.blake2b(parameters.encode(), digest_size=16).digest()


def seal(parameters: str, head: ReportHeader, body: bytes) -> bytes:
    """A message."""
    head_bytes = head.to_bytes()
    if len(head_bytes) > _MOST_HEAD or any(len(t) > _MOST_TEXT for t in head.key):
        raise DataError(
            "The names of this recording are longer than a message takes: 500 characters each."
            " Shorten them."
        )
    frame = _FRAME.pack(MAGIC, VERSION, 0, digest(parameters), len(head_bytes), len(body))
    framed = frame + head_bytes + body
    return framed + struct.pack("<I", zlib.crc32(framed))


def envelopes(data: Buffer) -> Iterator[Envelope | str]:
    """The messages of a file; for one that cannot be read the reason, in words, instead.

    A message whose frame is sound but whose checksum is not is passed over. Where the frame itself
    is broken nothing tells where the next message begins, so the rest of the file is passed over as
    one.
    """
    view, at = memoryview(data), 0
    while at < len(view):
        if len(view) - at < _FRAME.size:
            yield "it is cut short"
            return
        magic, version, zero, parameters, head, body = _FRAME.unpack_from(view, at)
        if magic != MAGIC:
            yield "it is no message"
            return
        if version != VERSION or zero != 0:
            yield f"it is of version {version}, and this program reads version {VERSION}"
            return
        end = at + _FRAME.size + head + body
        if head > _MOST_HEAD or end + 4 > len(view):
            yield "it is cut short"
            return
        if zlib.crc32(view[at:end]) != struct.unpack_from("<I", view, end)[0]:
            yield "its checksum is wrong"
        else:
            begin = at + _FRAME.size
            yield Envelope(parameters, view[begin : begin + head], view[begin + head : end])
        at = end + 4


class Reader:
    """Takes arrays from a body, one after the other, and never reads past its end."""

    def __init__(self, body: bytes | memoryview) -> None:
        self.body, self.at = body, 0

    def take(self, kind: str, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        """An array of that type and shape.

        Raises
        ------
        DataError
            If the body is too short for it.
        """
        size = math.prod(shape) * np.dtype(kind).itemsize
        if size > len(self.body) - self.at:
            raise DataError("its body is too short")
        values = np.frombuffer(
            self.body, dtype=kind, count=math.prod(shape), offset=self.at
        ).reshape(shape)
        self.at += size
        return values

    def finish(self) -> None:
        """Refuse what is left over."""
        if self.at != len(self.body):
            raise DataError("its body is too long")


def reason(error: GazeveilError) -> str:
    """The words of an error as a clause."""
    return str(error).rstrip(".")
