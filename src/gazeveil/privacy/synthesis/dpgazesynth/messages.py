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

Answers of frequency oracles are packed by the device, and added up by the curator without unpacking
them:

======== ================================================================================
oracle   one answer
======== ================================================================================
`grr`    one whole number of 1, 2 or 4 bytes
`oue`    one bit per category, lowest bit first, filled up with zeros to whole bytes
`subset` the same, with as many ones as the subset has members
======== ================================================================================

Bits are added up byte by byte: how often each value occurs in each byte says how many ones each
category has.
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
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, RecordingKey
from gazeveil.privacy.noise.local import GRR, FrequencyOracle, Subset, Tally

Bytes = NDArray[np.uint8]

#: An honest OUE answer has a number of ones farther than this many standard deviations from the
#: mean less than once in 10**22 answers.
_DEVIATIONS = 10.0

_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
    np.int64
)
_COUNT = _ONES.sum(axis=1)

_TILE = 16


def _number(oracle: FrequencyOracle) -> np.dtype[np.unsignedinteger]:
    """The type of one whole number of an answer."""
    return np.dtype(
        "u1" if oracle.categories <= 1 << 8 else "<u2" if oracle.categories <= 1 << 16 else "<u4"
    )


def width(oracle: FrequencyOracle) -> int:
    """Bytes of one answer: they depend on the oracle alone."""
    if isinstance(oracle, GRR):
        return oracle._shape[0] * _number(oracle).itemsize
    return -(-oracle.categories // 8)


def pack(oracle: FrequencyOracle, rows: NDArray[np.generic]) -> Bytes:
    """Answers as bytes, shape (answers, width)."""
    if isinstance(oracle, GRR):
        return (
            np.ascontiguousarray(rows.astype(_number(oracle)))
            .view(np.uint8)
            .reshape(len(rows), width(oracle))
        )
    if isinstance(oracle, Subset):
        bits = np.zeros((len(rows), oracle.categories), dtype=np.uint8)
        np.put_along_axis(bits, rows.astype(np.int64), np.uint8(1), axis=1)
        rows = bits
    return np.packbits(rows.astype(np.uint8), axis=1, bitorder="little")


@compiled
def _values(packed: NDArray[np.uint8], ones: Ints, often: Ints) -> tuple[int, int]:
    """How often each byte has each value, and the least and the largest number of ones of an
    answer.
    """
    rows, width = packed.shape
    count = np.zeros(rows, dtype=np.int64)
    # A few bytes of all answers at a time: what is counted then stays in the fastest memory.
    for begin in range(0, width, _TILE):
        for row in range(rows):
            for place in range(begin, min(begin + _TILE, width)):
                value = packed[row, place]
                often[place, value] += 1
                count[row] += ones[value]
    return count.min(), count.max()


def tally(oracle: FrequencyOracle, packed: Bytes) -> Tally:
    """Add answers up.

    Raises
    ------
    DataError
        For answers that no honest device sends.
    """
    if packed.ndim != 2 or packed.shape[1] != width(oracle):
        raise DataError(f"an answer has {packed.shape[-1]} bytes where {width(oracle)} are due")
    if len(packed) == 0:
        return Tally(np.zeros(oracle.categories, dtype=np.int64), 0)
    if isinstance(oracle, GRR):
        rows: Ints = (
            np.ascontiguousarray(packed)
            .view(_number(oracle))
            .reshape(len(packed), -1)
            .astype(np.int64)
        )
        return oracle.tally(rows)
    often = np.zeros((packed.shape[1], 256), dtype=np.int64)
    least, most = _values(np.ascontiguousarray(packed), _COUNT, often)
    supports = (often @ _ONES).ravel()
    if supports[oracle.categories :].any():
        raise DataError("a bit is set beyond the last category")
    if isinstance(oracle, Subset):
        low = high = float(oracle.size)
    else:
        q = float(oracle.q)
        mean = (oracle.categories - 1) * q + 0.5
        deviation = math.sqrt((oracle.categories - 1) * q * (1 - q) + 0.25)
        low, high = mean - _DEVIATIONS * deviation, mean + _DEVIATIONS * deviation
    if least < low or most > high:
        raise DataError("an answer has too few or too many ones to be an honest one")
    return Tally(supports[: oracle.categories], len(packed))


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
