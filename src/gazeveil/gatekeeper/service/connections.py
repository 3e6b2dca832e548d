"""From the core's callbacks to the sockets: bounded queues, counted drops, one wake-up of the event
loop for each push.

The core calls back inside `push`, on the thread of the tracker. A
:class:`~gazeveil.gatekeeper.service.wire.Channel` (one subscription) turns what it gets
into messages on the queue of its :class:`Connection` (one WebSocket); the event loop sends them. A
queue that is full drops its oldest messages and counts what was in them: a slow reader loses
samples, never the memory of the device. Answers to commands and the last message of a channel are
never dropped, and their number is bounded because no further command is read while many of them
wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.wire import Channel, Outgoing, SampleEncoder, resume

#: Answers that may wait before further commands are left unread.
WAITING_ANSWERS = 64

#: Ends after which what waits is still sent, as long as the app may have it.
PAID_FOR = frozenset({"budget", "ledger"})

Send = Callable[[dict[str, object]], Awaitable[None]]


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
            sending: Any = self._send(message)
            try:
                # Most sends end at once. Run here, without a task of their own, they cost a third.
                waits_for = sending.send(None)
            except StopIteration:
                self._sent(outgoing)
            except Exception as error:
                self._fail(error)
            else:
                self._sending = True
                self._task = asyncio.get_running_loop().create_task(
                    self._wait(sending, waits_for, outgoing)
                )

    def _sent_now(self, payload: bytes, text: bool) -> bool:
        """Send a whole message at once, where nothing waits in the socket; whether it was sent.

        A server's frames are not masked and there are no extensions, so a message is its length and
        itself. Of what a short message costs, the layers that it would else go through are half as
        much as the socket.
        """
        transport, size = self._transport, len(payload)
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
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

    async def _wait(self, sending: Any, waits_for: object, outgoing: Outgoing | None) -> None:
        """Wait for a send that the socket does not take yet, then go on."""
        try:
            await resume(sending, waits_for)
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
            return (
                wire.batch_header(channel.id, block.count, outgoing.sequence, channel.dropped)
                + block.binary,
                False,
            )
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
        self._pushing = 0
        self._lock = threading.Lock()
        self.encoder = SampleEncoder()

    def touch(self, connection: Connection) -> None:
        """Have what waits sent; cheap when many connections are touched in one push."""
        with self._lock:
            self._dirty.add(connection)
            if self._woken or self.loop is None or self._pushing == threading.get_ident():
                return
            self._woken = True
        try:
            self.loop.call_soon_threadsafe(self.flush)
        except RuntimeError:
            # The loop has ended: no connection is left.
            return

    @contextlib.contextmanager
    def pushing(self) -> Iterator[None]:
        """Suppress wake-ups of single connections while the core handles a block.

        The caller flushes afterwards.
        """
        self._pushing = threading.get_ident()
        try:
            yield
        finally:
            self._pushing = 0

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
