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

One subscription of one WebSocket: what the core gives becomes messages of its connection.

Samples are encoded once for all channels that share a stream; only the head with the subscription's
id and counters differs.
"""

from __future__ import annotations

import types
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

import msgspec
import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import HEADER
from gazeveil.gatekeeper.core.areas import MOST_TARGETS, Target
from gazeveil.gatekeeper.core.selection import DWELL_MS
from gazeveil.gatekeeper.service.guard import depth
from gazeveil.gatekeeper.streams.subscription import Subscription

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


@types.coroutine
def resume(begun: Any, waits_for: object) -> Generator[object, Any, Any]:
    """Await a coroutine that was begun by hand, as is cheaper where most end at once, and waits for
    something; gives what it returns.
    """
    while True:
        try:
            try:
                answer = yield waits_for
            except BaseException as error:
                waits_for = begun.throw(error)
            else:
                waits_for = begun.send(answer)
        except StopIteration as done:
            return done.value


class EncodedSamples:
    """Samples that several channels send, encoded at most once for each encoding."""

    __slots__ = ("_binary", "_json", "count", "t_ns", "valid", "x_deg", "y_deg")

    def __init__(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        self.t_ns, self.x_deg, self.y_deg, self.valid = t_ns, x_deg, y_deg, valid
        self.count = len(t_ns)
        self._json: bytes | None = None
        self._binary: bytes | None = None

    @property
    def json(self) -> bytes:
        """The fields of a JSON message, without braces."""
        if self._json is None:
            self._json = json_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._json

    @property
    def binary(self) -> bytes:
        """The binary batch after its header."""
        if self._binary is None:
            self._binary = raw_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._binary


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


@dataclass(eq=False, slots=True)
class Outgoing:
    """Something that waits to be sent; without a channel it is an answer."""

    text: str | None = None
    channel: Channel | None = None
    samples: EncodedSamples | None = None
    sequence: int = 0


class Audience(Protocol):
    """The owner's viewers, who see what apps are sent."""

    viewers: set[Any]

    def show(self, app: str, fields: dict[str, object]) -> None:
        """Show the owner what an app was sent."""


class ChannelConnection(Protocol):
    """What a channel needs of its connection."""

    app: str
    encoder: SampleEncoder

    @property
    def broadcaster(self) -> Audience:
        """Who else sees it."""

    def offer(self, outgoing: Outgoing) -> None:
        """Queue a message."""


@dataclass(eq=False)
class Channel:
    """One subscription of one WebSocket, with its counters.

    Parameters
    ----------
    connection : ChannelConnection
        The WebSocket.
    id : int
        The app's number for it.
    what : str
        `fixation`, `saccade`, `pursuit`, `tile`, `region`, `areas`, `samples`, `select`, or `raw`
        for the owner's own view.
    mechanism : str or None
        Of a stream of samples.
    binary : bool
        Whether samples go as binary batches.
    batch : int
        Samples that are gathered for one message; what comes in larger blocks goes as it comes.
    """

    connection: ChannelConnection
    id: int
    what: str
    mechanism: str | None = None
    binary: bool = False
    batch: int = 1
    sent: int = 0
    dropped: int = 0
    given: int = 0
    announced: bool = False
    ended: bool = False
    opened: Subscription | None = None
    guarantee: dict[str, object] | None = None
    choice: dict[str, object] | None = None
    ended_with: tuple[str, str] | None = None
    _gathered: list[EncodedSamples] = field(default_factory=list)
    early: list[Outgoing] = field(default_factory=list)
    _gathered_count: int = 0

    def samples(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        """Take samples of the core; called on the tracker's thread."""
        if not len(t_ns):
            return
        block = self.connection.encoder.encoded(t_ns, x_deg, y_deg, valid)
        if self._gathered or block.count < self.batch:
            self._gathered.append(block)
            self._gathered_count += block.count
            if self._gathered_count < self.batch:
                return
            block = self.connection.encoder.joined(self._gathered)
            self._gathered, self._gathered_count = [], 0
        self.connection.offer(Outgoing(channel=self, samples=block, sequence=self.given))
        self.given += block.count
        if self.connection.broadcaster.viewers:
            lists = {
                "t_ms": (block.t_ns / 1e6).tolist(),
                "x_deg": block.x_deg.tolist(),
                "y_deg": block.y_deg.tolist(),
                "valid": block.valid.tolist(),
            }
            self.connection.broadcaster.show(
                self.connection.app, {"what": "samples", "mechanism": self.mechanism, **lists}
            )

    def message(self, fields: dict[str, object]) -> None:
        """Take an event, a tile or an onset of the core."""
        self.given += 1
        text = encode({"type": "event", "id": self.id, **fields}).decode()
        self.connection.offer(Outgoing(text, self))
        if self.connection.broadcaster.viewers:
            kind = fields.get("type", "event")
            shown_kind = self.what if kind == "event" else kind
            self.connection.broadcaster.show(self.connection.app, {**fields, "what": shown_kind})

    def chosen(self, target: str) -> None:
        """Take the one choice of a selection; it is sent with the channel's last message, and never
        dropped for what else waits.
        """
        self.given += 1
        self.choice = {"type": "event", "id": self.id, "kind": "choice", "target": target}
        self.connection.broadcaster.show(
            self.connection.app, {"what": "select", "kind": "choice", "target": target}
        )
