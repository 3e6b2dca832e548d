"""From the core's callbacks to the sockets: bounded queues, counted drops, one wake-up of the event
loop for each push.

The core calls back inside `push`, on the thread of the tracker. A
:class:`Channel` (one subscription) turns what it gets
into messages on the queue of its :class:`Connection` (one WebSocket); the event loop sends them. A
queue that is full drops its oldest messages and counts what was in them: a slow reader loses
samples, never the memory of the device. Answers to commands and the last message of a channel are
never dropped, and their number is bounded because no further command is read while many of them
wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gatekeeper.blocks import HEADER
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.wire import EncodedSamples, SampleEncoder
from gazeveil.gatekeeper.streams.subscription import Subscription

#: Answers that may wait before further commands are left unread.
WAITING_ANSWERS = 64

#: Ends after which what waits is still sent, as long as the app may have it.
PAID_FOR = frozenset({"budget", "ledger"})

#: Bytes that may wait in a socket for more to be written at once: what one turn of the event loop
#: sends, and less than what uvicorn waits for.
FEW = 1 << 14

Send = Callable[[dict[str, object]], Awaitable[None]]


@dataclass(eq=False, slots=True)
class Outgoing:
    """Something that waits to be sent; without a channel it is an answer."""

    text: str | None = None
    channel: Channel | None = None
    samples: EncodedSamples | None = None
    sequence: int = 0


@dataclass(eq=False)
class Channel:
    """One subscription of one WebSocket, with its counters.

    Parameters
    ----------
    connection : Connection
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

    connection: Connection
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
        self.connection.offer(
            Outgoing(wire.encode({"type": "event", "id": self.id, **fields}).decode(), self)
        )
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


class Connection:
    """One WebSocket of an app, with at most so many messages of channels that wait for it. `send`
    is ASGI's, the transport a shorter way for what can be sent at once.
    """

    def __init__(
        self,
        broadcaster: Broadcaster,
        app: str,
        send: Send,
        most: int,
        transport: asyncio.Transport | None = None,
    ) -> None:
        self.broadcaster, self.app, self.most = broadcaster, app, most
        self.encoder = broadcaster.encoder
        self._transport = transport
        self.channels: dict[int, Channel] = {}
        self.done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.accepts_commands = asyncio.Event()
        self.accepts_commands.set()
        self.closing: tuple[int, str] | None = None
        self.expires_ns: int | None = None
        #: Whether the app had a grant when that was last looked at.
        self.granted = False
        #: The program at the other end, where it is the app by that and not by a token.
        self.local: int | None = None
        self._send = send
        self._sending = False
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Outgoing] = deque()
        self._data = 0
        self._lock = threading.Lock()

    def offer(self, outgoing: Outgoing) -> None:
        """Queue a message of a channel; where too many wait, the oldest is dropped."""
        channel = outgoing.channel
        assert channel is not None
        with self._lock:
            if channel.ended or self.closing is not None:
                return
            if not channel.announced:
                # The app must know the subscription before its first sample.
                channel.early.append(outgoing)
                del channel.early[: -self.most]
                return
            self._put(outgoing)
        self.broadcaster.touch(self)

    def _put(self, outgoing: Outgoing) -> None:
        if self._data >= self.most:
            for at, old in enumerate(self._waiting):
                if old.channel is not None:
                    del self._waiting[at]
                    self._data -= 1
                    old.channel.dropped += old.samples.count if old.samples is not None else 1
                    break
        self._waiting.append(outgoing)
        self._data += 1

    def answer(self, message: dict[str, object]) -> None:
        """Queue the answer to a command."""
        with self._lock:
            if self.closing is not None:
                return
            self._answer(message)
        self.broadcaster.touch(self)

    def _answer(self, message: dict[str, object]) -> None:
        self._waiting.append(Outgoing(wire.encode(message).decode()))

    def announce(self, channel: Channel, message: dict[str, object]) -> None:
        """Tell the app that a channel is open, then let go what came meanwhile."""
        with self._lock:
            if (channel.ended and channel.ended_with is None) or self.closing is not None:
                return
            self._answer(message)
            channel.announced = True
            for outgoing in channel.early:
                self._put(outgoing)
            channel.early.clear()
            if channel.ended_with is not None:
                self._last_words(channel, *channel.ended_with)
        self.broadcaster.touch(self)

    def end(self, channel: Channel, code: str, reason: str) -> None:
        """Say the last message of a channel.

        What waits of it is thrown away, so that a revoked app gets nothing more; where only the
        budget or the ledger has ended it, what was paid for is still sent.
        """
        with self._lock:
            if channel.ended:
                return
            channel.ended = True
            if code not in PAID_FOR or channel.what != "samples":
                kept = deque(p for p in self._waiting if p.channel is not channel)
                self._data -= len(self._waiting) - len(kept)
                self._waiting = kept
            channel.early.clear()
            if channel.choice is not None and not channel.announced:
                # The wearer chose before the app could be told that it may wait: both are said when
                # it is.
                channel.ended_with = (code, reason)
            elif self.closing is None:
                self._last_words(channel, code, reason)
            self.channels.pop(channel.id, None)
        self.broadcaster.touch(self)

    def discard_ended(self, may_have: Callable[[str], bool]) -> None:
        """Throw away what still waits of streams that have ended, by their mechanism, where the app
        may not have it any more.
        """
        with self._lock:
            kept = deque(
                p
                for p in self._waiting
                if p.channel is None or not p.channel.ended or may_have(p.channel.mechanism or "")
            )
            self._data -= len(self._waiting) - len(kept)
            self._waiting = kept

    def _last_words(self, channel: Channel, code: str, reason: str) -> None:
        if channel.choice is not None:
            self._answer(channel.choice)
            channel.sent += 1
        self._answer({"type": "ended", "id": channel.id, "code": code, "reason": reason})

    def hang_up(self, code: int, reason: str) -> None:
        """Close the WebSocket after what waits now of answers; from any thread."""
        with self._lock:
            if self.closing is None:
                self.closing = (code, reason)
                self._waiting = deque(p for p in self._waiting if p.channel is None)
                self._data = 0
        self.broadcaster.touch(self)

    def stop(self) -> None:
        """Send nothing more, and leave no task behind."""
        self._fail(ConnectionError("the connection is closed"))
        if self._task is not None:
            self._task.cancel()

    @property
    def waiting(self) -> int:
        """Messages that wait."""
        return len(self._waiting)

    @property
    def answers(self) -> int:
        """Answers that wait."""
        return len(self._waiting) - self._data

    def _next(self) -> Outgoing | None:
        if not self._waiting:  # who adds one touches the connection afterwards
            return None
        with self._lock:
            if not self._waiting:
                return None
            outgoing = self._waiting.popleft()
            if outgoing.channel is not None:
                self._data -= 1
            return outgoing

    def drain(self) -> None:
        """Send what waits, as far as the socket takes it without waiting; on the event loop."""
        while not self._sending:
            outgoing = self._next()
            if outgoing is None:
                if self.closing is None or self.done.done():
                    self.accepts_commands.set()
                    return
                message: dict[str, object] = {
                    "type": "websocket.close",
                    "code": self.closing[0],
                    "reason": self.closing[1],
                }
            else:
                payload, text = self._payload(outgoing)
                if self._sent_now(payload, text):
                    self._sent(outgoing)
                    continue
                message = (
                    {"type": "websocket.send", "text": payload.decode()}
                    if text
                    else {"type": "websocket.send", "bytes": payload}
                )
            self._sending = True
            self._task = asyncio.get_running_loop().create_task(self._wait(message, outgoing))

    def _sent_now(self, payload: bytes, text: bool) -> bool:
        """Send a whole message at once, where little waits in the socket; whether it was sent.

        A server's frames are not masked and there are no extensions, so a message is its length and
        itself. Of what a short message costs, the layers that it would else go through are half as
        much as the socket.
        """
        transport, size = self._transport, len(payload)
        if transport is None or transport.is_closing() or transport.get_write_buffer_size() > FEW:
            return False
        head = b"\x81" if text else b"\x82"
        if size < 126:
            head += bytes((size,))
        elif size < 65_536:
            head += b"\x7e" + size.to_bytes(2, "big")
        else:
            head += b"\x7f" + size.to_bytes(8, "big")
        transport.write(head + payload)
        return True

    async def _wait(self, message: dict[str, object], outgoing: Outgoing | None) -> None:
        """Wait until the socket takes a message, then go on."""
        try:
            await self._send(message)
        except Exception as error:
            self._fail(error)
        else:
            self._sending = False
            self._sent(outgoing)
            self.drain()

    def _sent(self, outgoing: Outgoing | None) -> None:
        if outgoing is None:
            if not self.done.done():
                self.done.set_result(None)
            return
        channel = outgoing.channel
        if channel is not None:
            channel.sent += outgoing.samples.count if outgoing.samples is not None else 1
        elif self.answers < WAITING_ANSWERS:
            self.accepts_commands.set()
        else:
            self.accepts_commands.clear()

    def _fail(self, error: Exception) -> None:
        """The other side is gone: nothing more is sent."""
        self._sending = True
        with self._lock:
            self.closing = self.closing or (1006, "")
            self._waiting.clear()
            self._data = 0
        self.accepts_commands.set()
        if not self.done.done():
            self.done.set_result(error)

    @staticmethod
    def _payload(outgoing: Outgoing) -> tuple[bytes, bool]:
        """The bytes of a message, and whether it is text."""
        channel, block = outgoing.channel, outgoing.samples
        if channel is None or block is None:
            return (outgoing.text or "").encode(), True
        if channel.binary:
            counts = block.count, outgoing.sequence, channel.dropped
            head = HEADER.pack(wire.VERSION, wire.KIND_SAMPLES, channel.id, *counts)
            return head + block.binary, False
        head = b'{"type":"samples","id":%d,"sequence":%d,"dropped":%d,' % (
            channel.id,
            outgoing.sequence,
            channel.dropped,
        )
        return head + block.json + b"}", True


class Broadcaster:
    """All open connections, and the owner's viewers."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.connections: set[Connection] = set()
        self.viewers: set[Connection] = set()
        self._dirty: set[Connection] = set()
        self._woken = False
        self._lock = threading.Lock()
        self.encoder = SampleEncoder()

    def touch(self, connection: Connection) -> None:
        """Have what waits sent; cheap when many connections are touched in one push."""
        with self._lock:
            self._dirty.add(connection)
            if self._woken or self.loop is None:
                return
            self._woken = True
        try:
            self.loop.call_soon_threadsafe(self.flush)
        except RuntimeError:
            # The loop has ended: no connection is left.
            return

    def hold(self) -> None:
        """Have the loop not woken for what is queued from now on: its own thread, which calls this,
        flushes in a moment.
        """
        self._woken = True

    def flush(self) -> None:
        """Send what waits on connections that were touched; on the event loop."""
        with self._lock:
            dirty, self._dirty, self._woken = self._dirty, set(), False
        for connection in dirty:
            connection.drain()

    def show(self, app: str, fields: dict[str, object]) -> None:
        """Show the owner what an app was sent."""
        if self.viewers:
            self.tell({**fields, "type": "sent", "app": app})

    def tell(self, message: dict[str, object]) -> None:
        """Tell every viewer something they may also miss."""
        if not self.viewers:
            return
        text = wire.encode(message).decode()
        for connection in tuple(self.viewers):
            channel = connection.channels.get(0)
            if channel is not None:
                connection.offer(Outgoing(text, channel))

    def of(self, app: str) -> list[Connection]:
        """Open connections of an app."""
        return [connection for connection in tuple(self.connections) if connection.app == app]

    def hang_up(
        self, connections: Iterable[Connection], code: str, reason: str, close_code: int = 4003
    ) -> None:
        """End all channels of connections with a reason and close them."""
        for connection in tuple(connections):
            for channel in tuple(connection.channels.values()):
                connection.end(channel, code, reason)
            connection.hang_up(close_code, reason[:120])

    def sweep(self, now_ns: int) -> None:
        """Close connections whose token has expired."""
        late = [
            connection
            for connection in tuple(self.connections)
            if connection.expires_ns is not None and connection.expires_ns <= now_ns
        ]
        self.hang_up(late, "expired", "The token has expired. Ask the owner for a new one.", 4001)
