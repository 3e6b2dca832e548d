"""A block of gaze and its forms on the wire: the binary batch, the JSON messages of trackers,
OpenXR poses. Pure numpy and struct, no web code.

The binary batch is little endian: `<BBHIQQ` = version 1, kind 1, subscription id u16, count u32,
sequence u64, dropped u64; then int64 t_ns[count], float32 x_deg[count], float32 y_deg[count], uint8
valid[count]. A lost sample is NaN and not valid; in JSON it is null.

The JSON messages of a tracker are `{"type": "samples", "t_ns": [..], "x_deg": [..], "y_deg": [..],
"valid": [..]}` and `{"type": "poses", "t_ns": [..], "orientation": [[x, y, z, w], ..], "valid":
[..]}`; `valid` may be left out. A pose is a rotation in OpenXR's axes (x right, y up, -z forward):
the gaze is the rotated (0, 0, -1). Headsets send the rotation that turns nothing when they see no
eye, so that one is read as "no gaze". Nothing else in a message is looked at, and nothing else is
kept.

Everything that reads bytes refuses with a :class:`~gazeveil.errors.DataError` whose sentence holds
no number of the message: it may be logged.

What a tracker says on the service's own channel, read into blocks.

A tracker begins with `{"type": "hello", "token": .., "rate_hz": .., "space": ..}` (all but the type
may be left out where the receiver knows them), then sends binary batches, `samples` and `poses`
(:mod:`gazeveil.gatekeeper.blocks`), `{"type": "lost"}` when it sees no eye any more, `{"type":
"confirm"}` when the wearer made the gesture for a choice, and `{"type": "ping"}`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Space, Sphere, rotate

#: The largest message that is looked at, in bytes.
MOST_BYTES = 1 << 20

#: The most samples in one message.
MOST_SAMPLES = 1 << 16

HEADER = struct.Struct("<BBHIQQ")
_VERSION, _KIND = 1, 1
_BYTES_PER_SAMPLE = 8 + 4 + 4 + 1

#: Times and places on the wire.
_TIMES, _PLACES = np.dtype("<i8"), np.dtype("<f4")

#: One sample after the header, and with it.
ONE = struct.Struct("<qffB")
_WHOLE = struct.Struct(HEADER.format + ONE.format[1:])

# OpenXR looks along -z, we look along +z.
_AHEAD = np.array([0.0, 0.0, -1.0])
_TO_OURS = np.array([1.0, 1.0, -1.0])
_NO_TURN = 1e-7


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive samples of one stream.

    Parameters
    ----------
    t_ns : array of int64, shape (n,)
        Nanoseconds from any origin.
    x_deg, y_deg : arrays of float64, shape (n,)
        Degrees of the stream's space; NaN where lost.
    valid : array of bool, shape (n,)
        False where there is no gaze.
    """

    t_ns: Ints
    x_deg: Floats
    y_deg: Floats
    valid: Bools

    def __len__(self) -> int:
        return len(self.t_ns)


class OneSample(NamedTuple):
    """One sample, as most messages have it: its numbers need no arrays."""

    t_ns: int
    x_deg: float
    y_deg: float
    valid: bool

    def arrays(self) -> tuple[Ints, Floats, Floats, Bools]:
        """Its samples as arrays of one."""
        t_ns, x_deg, y_deg, valid = (np.array([value]) for value in self)
        return t_ns, x_deg, y_deg, valid


def columns(t_ns: Any, x_deg: Any, y_deg: Any, valid: Any) -> tuple[Any, Any, Any, Any]:
    """The same samples; a single one, as most messages have it, as numbers, which have a shorter
    way through a core and a session.
    """
    if isinstance(t_ns, int) or len(t_ns) != 1:
        return t_ns, x_deg, y_deg, valid
    return t_ns.item(), x_deg.item(), y_deg.item(), valid.item()


class ReceivedBatch(NamedTuple):
    """A binary batch taken apart: the block, and what its header says."""

    block: Block
    id: int
    sequence: int
    dropped: int


def block(t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True) -> Block:
    """A block of numbers or arrays; what is not finite is not valid."""
    t = np.atleast_1d(np.asarray(t_ns, dtype=np.int64))
    x, y = (
        np.atleast_1d(np.asarray(x_deg, dtype=np.float64)),
        np.atleast_1d(np.asarray(y_deg, dtype=np.float64)),
    )
    ok = (
        np.broadcast_to(np.asarray(valid, dtype=np.bool_), t.shape)
        & np.isfinite(x)
        & np.isfinite(y)
    )
    return Block(t, x, y, ok)


def pack(
    samples: Block,
    id: int = 0,  # noqa: A002 - the name on the wire
    sequence: int = 0,
    dropped: int = 0,
) -> bytes:
    """The binary batch of a block.

    Examples
    --------
    >>> len(pack(block([0, 1], [1.0, 2.0], [3.0, 4.0]), id=7)) == HEADER.size + 2 * 17
    True
    """
    x, y = (
        np.where(samples.valid, v, np.nan).astype("<f4").tobytes()
        for v in (samples.x_deg, samples.y_deg)
    )
    head = HEADER.pack(_VERSION, _KIND, id, len(samples), sequence, dropped)
    return b"".join(
        (head, samples.t_ns.astype("<i8").tobytes(), x, y, samples.valid.astype(np.uint8).tobytes())
    )


def unpack(data: bytes) -> ReceivedBatch:
    """A binary batch taken apart.

    Raises
    ------
    DataError
        For bytes that are not exactly one batch.
    """
    if len(data) > MOST_BYTES:
        raise DataError(f"A batch has at most {MOST_BYTES} bytes. Send shorter ones.")
    if len(data) < HEADER.size:
        raise DataError(
            f"A batch begins with a header of {HEADER.size} bytes; this one is shorter."
        )
    version, kind, number, count, sequence, dropped = HEADER.unpack_from(data)
    if (version, kind) != (_VERSION, _KIND):
        raise DataError("A batch begins with the bytes 1, 1 (version and kind); this one does not.")
    if count > MOST_SAMPLES or len(data) != HEADER.size + count * _BYTES_PER_SAMPLE:
        raise DataError("The length of a batch does not fit the count in its header.")
    at = HEADER.size
    t = np.frombuffer(data, _TIMES, count, at).astype(np.int64)
    x, y = places = (
        np.frombuffer(data, _PLACES, 2 * count, at + 8 * count).reshape(2, count).astype(np.float64)
    )
    finite = np.isfinite(places)
    valid = (np.frombuffer(data, np.uint8, count, at + 16 * count) == 1) & finite[0] & finite[1]
    # As `block` makes it, without asking again what these arrays are: a tracker sends a thousand
    # batches a second.
    return ReceivedBatch(Block(t, x, y, valid), number, sequence, dropped)


def one_sample(data: bytes) -> OneSample | None:
    """The sample of a binary batch of one, as numbers; None for anything else."""
    if len(data) != _WHOLE.size:
        return None
    version, kind, _, count, _, _, t_ns, x_deg, y_deg, ok = _WHOLE.unpack(data)
    if (version, kind, count) != (_VERSION, _KIND, 1):
        return None
    return OneSample(t_ns, x_deg, y_deg, ok == 1 and math.isfinite(x_deg) and math.isfinite(y_deg))


def parse_json(text: str | bytes) -> dict[str, object]:
    """A JSON object; anything else, too much of it, or nesting without end is refused.

    Raises
    ------
    DataError
        As said.
    """
    if len(text) > MOST_BYTES:
        raise DataError(f"A message has at most {MOST_BYTES} bytes. Send shorter ones.")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("The message is not JSON.") from None
    if not isinstance(message, dict):
        raise DataError("A message is a JSON object with a 'type'.")
    return message


def from_message(message: Mapping[str, object]) -> Block:
    """The block of a tracker's parsed JSON message, of type `samples` or `poses`.

    Raises
    ------
    DataError
        For another type, missing parts, unequal lengths, or what are not numbers.
    """
    kind = message.get("type")
    if kind not in ("samples", "poses"):
        raise DataError("A tracker sends messages of type 'samples' or 'poses'.")
    t = _times(message.get("t_ns"))
    valid = _booleans(message.get("valid"), len(t))
    if kind == "samples":
        return block(
            t, _numbers(message, "x_deg", len(t)), _numbers(message, "y_deg", len(t)), valid
        )
    try:
        q = np.asarray(message.get("orientation"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        q = np.empty(0)
    if len(t) == 0 and q.size == 0:
        q = np.empty((0, 4))
    if q.shape == (4,) and len(t) == 1:
        q = q[None]
    if q.shape != (len(t), 4):
        raise DataError("'orientation' is a list of quaternions [x, y, z, w], one for each time.")
    x, y, ok = from_poses(q)
    return block(t, x, y, valid & ok)


def from_poses(orientation: ArrayLike) -> tuple[Floats, Floats, Bools]:
    """Degrees of a :class:`~gazeveil.gaze.geometry.Sphere` of OpenXR orientations. The rotation
    that turns nothing means that there was no gaze.

    Parameters
    ----------
    orientation : array, shape (n, 4)
        Quaternions x, y, z, w of any length above zero.

    Returns
    -------
    x_deg, y_deg, valid : arrays of shape (n,)

    Examples
    --------
    >>> x, y, ok = from_poses([[0.0, 0.0, 0.0, 1.0], [0.0, -0.5, 0.0, 0.5]])
    >>> ok.tolist(), round(float(x[1])), round(float(y[1]))
    ([False, True], 270, 90)
    """
    q = np.asarray(orientation, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.linalg.norm(q, axis=-1)
        known = np.isfinite(size) & (size > 1e-9)
        unit = np.where(known[..., None], q, [0.0, 0.0, 0.0, 1.0])
        least = _NO_TURN * np.where(known, size, 1.0)
        known &= np.abs(unit[..., :3]).max(axis=-1, initial=0.0) > least
        x, y = Sphere().degrees(rotate(unit, _AHEAD) * _TO_OURS)
    return np.where(known, x, np.nan), np.where(known, y, np.nan), known


def parse_space(figures: object) -> Space:
    """The space of a tracker's hello: `{"kind": "sphere"}` or `{"kind": "screen", "width_px": ..}`.

    Raises
    ------
    DataError
        For anything else.
    """
    if isinstance(figures, Mapping) and figures.get("kind") == "sphere":
        return Sphere()
    if isinstance(figures, Mapping) and figures.get("kind") == "screen":
        try:
            return Screen(
                *(checks.positive("space", name, figures.get(name)) for name in SCREEN_SIZES)
            )
        except (ParameterError, OverflowError):
            pass
    raise DataError(
        'A space is {"kind": "sphere"} or {"kind": "screen"} with width_px, height_px, width_mm,'
        " height_mm and distance_mm."
    )


def _times(values: object) -> Ints:
    # A whole number may come alone; `True` is no time, and a float near 10**18 has lost its
    # nanoseconds.
    several = values if isinstance(values, list) else [values]
    if len(several) > MOST_SAMPLES:
        raise DataError(f"A message has at most {MOST_SAMPLES} samples.")
    if not all(type(t) is int and -(2**63) <= t < 2**63 for t in several):
        raise DataError("'t_ns' is a whole number of nanoseconds, or a list of them.")
    return np.array(several, dtype=np.int64)


def _numbers(message: Mapping[str, object], name: str, n: int) -> Floats:
    values = message.get(name)
    several = values if isinstance(values, list) else [values]
    if len(several) != n or not all(v is None or type(v) in (int, float) for v in several):
        raise DataError(f"'{name}' is a number of degrees or null, one for each time.")
    try:
        return np.array([np.nan if v is None else v for v in several], dtype=np.float64)
    except OverflowError:
        raise DataError(f"'{name}' is a number of degrees or null, one for each time.") from None


def _booleans(values: object, n: int) -> Bools:
    if values is None or values is True:
        return np.ones(n, dtype=np.bool_)
    several = values if isinstance(values, list) else [values]
    if len(several) != n or not all(v in (0, 1) and isinstance(v, int) for v in several):
        raise DataError("'valid' is true or false, one for each time.")
    return np.array(several, dtype=np.bool_)


#: A tracker whose rate differs by more from the one expected is refused.
_SAME_RATE = 0.05


def read_message(message: str | bytes, space: Space) -> Block | str | None:
    """A block, `"lost"`, `"confirm"`, `"ping"`, or None for what says nothing about gaze.

    Raises
    ------
    DataError
        Where it cannot be read; the sentence never quotes it.
    """
    if isinstance(message, bytes):
        return unpack(message).block
    figures = parse_json(message)
    kind = figures.get("type")
    if kind in ("hello", "welcome", "pong"):
        return None
    if kind in ("lost", "confirm", "ping"):
        return str(kind)
    if kind == "poses" and not isinstance(space, Sphere):
        raise DataError("Poses are directions on a sphere, and this stream is on a screen.")
    return from_message(figures)


def why_refused(hello: Mapping[str, object], rate_hz: float, space: Space) -> str:
    """Why the rate and space of a tracker's hello are not those expected, as a sentence; empty
    where they are.
    """
    rate = hello.get("rate_hz")
    if rate is not None and not (
        type(rate) in (int, float) and abs(float(str(rate)) / rate_hz - 1) <= _SAME_RATE
    ):
        return (
            f"This channel expects {rate_hz:g} samples per second. Start it with the tracker's"
            " rate."
        )
    if hello.get("space") is not None:
        try:
            same = parse_space(hello["space"]) == space
        except DataError as error:
            return str(error)
        if not same:
            return "This channel expects another space. Start it with the tracker's space."
    return ""
