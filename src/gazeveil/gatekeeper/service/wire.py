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

Samples are encoded once for all channels that share a stream; only the head with the subscription's
id and counters differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

import msgspec
import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import ONE
from gazeveil.gatekeeper.core.areas import MOST_TARGETS, Target
from gazeveil.gatekeeper.core.selection import DWELL_MS
from gazeveil.gatekeeper.service.guard import depth

VERSION = 1
KIND_SAMPLES = 1

Id = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Word = Annotated[str, msgspec.Meta(max_length=512)]


class BadMessageError(DataError):
    """A message that cannot be read; the sentence never quotes it."""


class Hello(msgspec.Struct, tag="hello", forbid_unknown_fields=True):
    """The first message: an app's token, or the owner's token or signature of the GET."""

    token: Annotated[str, msgspec.Meta(max_length=256)] = ""
    session: Annotated[str, msgspec.Meta(max_length=256)] = ""


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
    targets: Annotated[list[Target], msgspec.Meta(max_length=MOST_TARGETS)] = []
    by: Literal["confirm", "dwell"] = "confirm"
    dwell_ms: int = DWELL_MS


class Move(msgspec.Struct, tag="move", forbid_unknown_fields=True):
    """Targets of a selection, or areas, at new places."""

    id: Id
    targets: Annotated[list[Target], msgspec.Meta(max_length=MOST_TARGETS)]


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


def read_command(text: str | bytes, most_depth: int) -> Command:
    """An app's message; how large one may be, the server sees to.

    Raises
    ------
    BadMessageError
        For anything that is not exactly one of the messages above.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
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


class EncodedSamples:
    """Samples that several channels send, encoded at most once for each encoding."""

    def __init__(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        self.t_ns, self.x_deg, self.y_deg, self.valid = t_ns, x_deg, y_deg, valid
        self.count = len(t_ns)

    @cached_property
    def json(self) -> bytes:
        """The fields of a JSON message, without braces."""
        return json_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)

    @cached_property
    def binary(self) -> bytes:
        """The binary batch after its header."""
        if self.count == 1:  # as most messages have it; bytes of arrays cost three times as much
            return ONE.pack(
                self.t_ns.item(), self.x_deg.item(), self.y_deg.item(), self.valid.item()
            )
        places = (column.astype("<f4").tobytes() for column in (self.x_deg, self.y_deg))
        return b"".join(
            (self.t_ns.astype("<i8").tobytes(), *places, self.valid.astype(np.uint8).tobytes())
        )


class SampleEncoder:
    """Gives channels that send the same samples the same :class:`EncodedSamples`."""

    def __init__(self) -> None:
        self._last: EncodedSamples | None = None
        self._joined: tuple[EncodedSamples, int, EncodedSamples] | None = None

    def encoded(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> EncodedSamples:
        """The same samples once: channels of one stream get the same arrays one after the other."""
        last = self._last
        if last is not None and last.x_deg is x_deg and last.y_deg is y_deg and last.t_ns is t_ns:
            return last
        self._last = EncodedSamples(t_ns, x_deg, y_deg, valid)
        return self._last

    def joined(self, blocks: list[EncodedSamples]) -> EncodedSamples:
        """Several blocks as one; channels that gather alike share it."""
        last = self._joined
        if last is not None and last[0] is blocks[0] and last[1] == len(blocks):
            return last[2]
        joined = EncodedSamples(
            np.concatenate([b.t_ns for b in blocks]),
            np.concatenate([b.x_deg for b in blocks]),
            np.concatenate([b.y_deg for b in blocks]),
            np.concatenate([b.valid for b in blocks]),
        )
        self._joined = (blocks[0], len(blocks), joined)
        return joined
