"""One subscription of one WebSocket: what the core gives becomes messages of its connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.encoded_samples import EncodedSamples, SampleEncoder
from gazeveil.gatekeeper.streams.subscription import Subscription


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
    close: Callable[[], None] | None = None
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
        text = wire.encode({"type": "event", "id": self.id, **fields}).decode()
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
