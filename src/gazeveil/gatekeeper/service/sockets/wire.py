"""What is written on the service's WebSockets: messages as values, JSON text, and the compact
binary batch.

Incoming messages are decoded by msgspec into the structs below and nothing else: unknown types,
unknown fields, wrong types, deep nesting and numbers that are none are all the same
:class:`BadMessageError` with one sentence. A message never quotes what came.

The binary batch is little endian: a header `<BBHIQQ` of version (1), kind (1), subscription id,
count, sequence and dropped, then `int64 t_ns[count]`, `float32 x_deg[count]`, `float32
y_deg[count]`, `uint8 valid[count]`, without padding. `sequence` is the number of the batch's first
sample, counted from 0 over all that the subscription was given; `dropped` says how many of those
were thrown away because the reader was slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import HEADER
from gazeveil.gatekeeper.core.selection import DWELL_MS
from gazeveil.gatekeeper.core.targets import LONGEST_NAME, MOST_TARGETS
from gazeveil.gatekeeper.service.http.limits import depth

VERSION = 1
KIND_SAMPLES = 1

Id = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Word = Annotated[str, msgspec.Meta(max_length=512)]


class BadMessageError(DataError):
    """A message that cannot be read; the sentence never quotes it."""


class Hello(msgspec.Struct, tag="hello", forbid_unknown_fields=True):
    """The first message: an app's token, or the owner's token or session."""

    token: Annotated[str, msgspec.Meta(max_length=256)] = ""
    session: Annotated[str, msgspec.Meta(max_length=256)] = ""


class TargetMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A rectangle that the wearer may choose."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


class Subscribe(msgspec.Struct, tag="subscribe", forbid_unknown_fields=True):
    """An app asks for events, tiles, protected samples, or for the wearer's choice among its
    targets.
    """

    id: Id
    what: Literal["fixation", "saccade", "pursuit", "tile", "samples", "select", "areas", "region"]
    mode: Literal["end", "start-stop", "start"] = "end"
    mechanism: Word | None = None
    encoding: Literal["json", "binary"] = "json"
    batch: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    targets: Annotated[list[TargetMessage], msgspec.Meta(max_length=MOST_TARGETS)] = []
    by: Literal["confirm", "dwell"] = "confirm"
    dwell_ms: int = DWELL_MS


class Move(msgspec.Struct, tag="move", forbid_unknown_fields=True):
    """Targets of a selection, or areas, at new places."""

    id: Id
    targets: Annotated[list[TargetMessage], msgspec.Meta(max_length=MOST_TARGETS)]


class Mouse(msgspec.Struct, tag="mouse", forbid_unknown_fields=True):
    """Where the pointer is, for a service whose tracker is the mouse; null where it has left."""

    x_deg: float | None = None
    y_deg: float | None = None
    confirm: bool = False


class Unsubscribe(msgspec.Struct, tag="unsubscribe", forbid_unknown_fields=True):
    """An app has had enough."""

    id: Id


class Ping(msgspec.Struct, tag="ping", forbid_unknown_fields=True):
    """Asks for a pong."""


Command = Hello | Subscribe | Move | Unsubscribe | Mouse | Ping

_COMMANDS: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_ENCODER = msgspec.json.Encoder()


def read_command(text: str | bytes, most_bytes: int, most_depth: int) -> Command:
    """An app's message.

    Raises
    ------
    BadMessageError
        For anything that is not exactly one of the messages above.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > most_bytes:
        raise BadMessageError(f"A message may have {most_bytes} bytes. Send less at once.")
    if depth(data) > most_depth:
        raise BadMessageError(f"A message may nest {most_depth} deep. Send it flat.")
    try:
        return _COMMANDS.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError):
        # The decoder's own sentence may quote the message, so it goes no further.
        raise BadMessageError(
            "This is not a message of this protocol. Send one JSON object of type hello, subscribe,"
            " move, unsubscribe or ping with the fields that the manual names."
        ) from None


def encode(message: Mapping[str, object]) -> bytes:
    """A message as JSON; NaN becomes null."""
    return _ENCODER.encode(message)


def raw_samples(t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> bytes:
    """The binary batch without its header; shared by all subscribers of one stream."""
    return b"".join(
        (
            t_ns.astype("<i8").tobytes(),
            x_deg.astype("<f4").tobytes(),
            y_deg.astype("<f4").tobytes(),
            valid.astype(np.uint8).tobytes(),
        )
    )


def batch_header(subscription: int, count: int, sequence: int, dropped: int) -> bytes:
    """Header of a binary batch."""
    return HEADER.pack(VERSION, KIND_SAMPLES, subscription, count, sequence, dropped)


def json_samples(t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> bytes:
    """The fields of a samples message that all subscribers of one stream share, without braces;
    times in milliseconds, lost places null.
    """
    body = {
        "t_ms": (t_ns / 1e6).round(3).tolist(),
        "x_deg": x_deg.astype(np.float64).round(4).tolist(),
        "y_deg": y_deg.astype(np.float64).round(4).tolist(),
        "valid": valid.tolist(),
    }
    return _ENCODER.encode(body)[1:-1]
