"""From the core's callbacks to the sockets: bounded queues, counted drops, one wake-up of the event loop for each push.

The core calls back inside `push`, on the thread of the tracker. A :class:`Feed` (one subscription) turns what it gets into packets on the
queue of its :class:`Line` (one WebSocket); the event loop sends them. A queue that is full drops its oldest packets and counts what
was in them: a slow reader loses samples, never the memory of the device. Answers to commands and the last word of a feed are never dropped,
and their number is bounded because no further command is read while many of them wait.

Samples are encoded once for all feeds that share a stream; only the head with the subscription's id and counters differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
import types
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper import wire

#: Answers that may wait before further commands are left unread.
WAITING_ANSWERS = 64

#: Ends after which what waits is still sent.
PAID_FOR = frozenset({"budget", "ledger"})

Send = Callable[[dict[str, object]], Awaitable[None]]


class Shared:
    """Samples that several feeds send, encoded at most once for each encoding."""

    __slots__ = ("_binary", "_json", "count", "t_ns", "valid", "x_deg", "y_deg")

    def __init__(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> None:
        self.t_ns, self.x_deg, self.y_deg, self.valid = t_ns, x_deg, y_deg, valid
        self.count = len(t_ns)
        self._json: bytes | None = None
        self._binary: bytes | None = None

    @property
    def json(self) -> bytes:
        """The fields of a JSON message, without braces."""
        if self._json is None:
            self._json = wire.json_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._json

    @property
    def binary(self) -> bytes:
        """The binary batch after its header."""
        if self._binary is None:
            self._binary = wire.raw_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._binary


@dataclass(eq=False, slots=True)
class Packet:
    """Something that waits to be sent; a packet without a feed is an answer."""

    text: str | None = None
    feed: Feed | None = None
    samples: Shared | None = None
    sequence: int = 0


@dataclass(eq=False)
class Feed:
    """One subscription of one WebSocket, with its counters.

    Parameters
    ----------
    line : Line
        The WebSocket.
    id : int
        The app's number for it.
    what : str
        `fixation`, `saccade`, `pursuit`, `tile`, `samples`, or `raw` for the owner's own view.
    mechanism : str or None
        Of a stream of samples.
    binary : bool
        Whether samples go as binary batches.
    batch : int
        Samples that are gathered for one message; what comes in larger blocks goes as it comes.
    """

    line: Line
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
    guarantee: dict[str, object] | None = None
    _gathered: list[Shared] = field(default_factory=list)
    _early: list[Packet] = field(default_factory=list)
    _gathered_count: int = 0

    def samples(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> None:
        """Take samples of the core; called on the tracker's thread."""
        if not len(t_ns):
            return
        block = self.line.hub.shared(t_ns, x_deg, y_deg, valid)
        if self._gathered or block.count < self.batch:
            self._gathered.append(block)
            self._gathered_count += block.count
            if self._gathered_count < self.batch:
                return
            block = self.line.hub.joined(self._gathered)
            self._gathered, self._gathered_count = [], 0
        self.line.offer(Packet(feed=self, samples=block, sequence=self.given))
        self.given += block.count
        if self.line.hub.viewers:
            lists = {"t_ms": (block.t_ns / 1e6).tolist(), "x_deg": block.x_deg.tolist(), "y_deg": block.y_deg.tolist(), "valid": block.valid.tolist()}
            self.line.hub.show(self.line.app, {"what": "samples", "mechanism": self.mechanism, **lists})

    def message(self, fields: dict[str, object]) -> None:
        """Take an event, a tile or an onset of the core."""
        self.given += 1
        self.line.offer(Packet(wire.encode({"type": "event", "id": self.id, **fields}).decode(), self))
        if self.line.hub.viewers:
            self.line.hub.show(self.line.app, {**fields, "what": self.what if fields.get("type", "event") == "event" else fields["type"]})


class Line:
    """One WebSocket and the packets that wait for it.

    Parameters
    ----------
    hub : Hub
        All lines.
    app : str
        Whose it is.
    send : callable
        ASGI's send of the WebSocket.
    most : int
        Packets of feeds that may wait.
    """

    _numbers = itertools.count(1)

    def __init__(self, hub: Hub, app: str, send: Send, most: int) -> None:
        self.hub, self.app, self.most = hub, app, most
        self.number = next(self._numbers)
        self.feeds: dict[int, Feed] = {}
        self.done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.room.set()
        self.closing: tuple[int, str] | None = None
        self.expires_ns: int | None = None
        self._send = send
        self._sending = False
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Packet] = deque()
        self._data = 0
        self._lock = threading.Lock()

    def offer(self, packet: Packet) -> None:
        """Queue a packet of a feed; the oldest go where there is no room."""
        feed = packet.feed
        assert feed is not None
        lost = 0
        with self._lock:
            if feed.ended or self.closing is not None:
                return
            if not feed.announced:
                # The app must know the subscription before its first sample.
                feed._early.append(packet)
                del feed._early[: -self.most]
                return
            lost = self._put(packet)
        if lost:
            self.hub.dropped(feed, lost)
        self.hub.touch(self)

    def _put(self, packet: Packet) -> int:
        lost = 0
        if self._data >= self.most:
            for at, old in enumerate(self._waiting):
                if old.feed is not None:
                    del self._waiting[at]
                    self._data -= 1
                    count = old.samples.count if old.samples is not None else 1
                    old.feed.dropped += count
                    lost += count
                    break
        self._waiting.append(packet)
        self._data += 1
        return lost

    def answer(self, message: dict[str, object]) -> None:
        """Queue the answer to a command."""
        with self._lock:
            if self.closing is not None:
                return
            self._answer(message)
        self.hub.touch(self)

    def _answer(self, message: dict[str, object]) -> None:
        self._waiting.append(Packet(wire.encode(message).decode()))

    def announce(self, feed: Feed, message: dict[str, object]) -> None:
        """Tell the app that a feed is open, then let go what came meanwhile."""
        with self._lock:
            if feed.ended or self.closing is not None:
                return
            self._answer(message)
            feed.announced = True
            for packet in feed._early:
                self._put(packet)
            feed._early.clear()
        self.hub.touch(self)

    def end(self, feed: Feed, code: str, reason: str) -> None:
        """Say the last word of a feed.

        What waits of it is thrown away, so that a revoked app gets nothing more; where only the budget or the ledger has ended it, what was
        paid for is still sent.
        """
        with self._lock:
            if feed.ended:
                return
            feed.ended = True
            if code not in PAID_FOR:
                kept = deque(p for p in self._waiting if p.feed is not feed)
                self._data -= len(self._waiting) - len(kept)
                self._waiting = kept
            feed._early.clear()
            if self.closing is None:
                self._answer({"type": "ended", "id": feed.id, "code": code, "reason": reason})
            self.feeds.pop(feed.id, None)
        self.hub.touch(self)

    def hang_up(self, code: int, reason: str) -> None:
        """Close the WebSocket after what waits now of answers; from any thread."""
        with self._lock:
            if self.closing is None:
                self.closing = (code, reason)
                self._waiting = deque(p for p in self._waiting if p.feed is None)
                self._data = 0
        self.hub.touch(self)

    def stop(self) -> None:
        """Send nothing more, and leave no task behind."""
        self._fail(ConnectionError("the line is closed"))
        if self._task is not None:
            self._task.cancel()

    @property
    def answers(self) -> int:
        """Answers that wait."""
        return len(self._waiting) - self._data

    def _next(self) -> Packet | None:
        with self._lock:
            if not self._waiting:
                return None
            packet = self._waiting.popleft()
            if packet.feed is not None:
                self._data -= 1
            return packet

    def drain(self) -> None:
        """Send what waits, as far as the socket takes it without waiting; on the event loop."""
        while not self._sending:
            packet = self._next()
            if packet is None:
                if self.closing is None or self.done.done():
                    self.room.set()
                    return
                message: dict[str, object] = {"type": "websocket.close", "code": self.closing[0], "reason": self.closing[1]}
            else:
                message = self._message(packet)
            sending: Any = self._send(message)
            try:
                # Most sends end at once. Run here, without a task of their own, they cost a third.
                waits_for = sending.send(None)
            except StopIteration:
                self._sent(packet)
            except Exception as error:
                self._fail(error)
            else:
                self._sending = True
                self._task = asyncio.get_running_loop().create_task(self._wait(sending, waits_for, packet))

    async def _wait(self, sending: Any, waits_for: object, packet: Packet | None) -> None:
        """Wait for a send that the socket does not take yet, then go on."""
        try:
            await _resume(sending, waits_for)
        except Exception as error:
            self._fail(error)
        else:
            self._sending = False
            self._sent(packet)
            self.drain()

    def _sent(self, packet: Packet | None) -> None:
        if packet is None:
            if not self.done.done():
                self.done.set_result(None)
            return
        self.hub.messages += 1
        feed = packet.feed
        if feed is not None:
            count = packet.samples.count if packet.samples is not None else 1
            feed.sent += count
            if packet.samples is not None:
                self.hub.samples_sent += count
        elif self.answers < WAITING_ANSWERS:
            self.room.set()
        else:
            self.room.clear()

    def _fail(self, error: Exception) -> None:
        """The other side is gone: nothing more is sent."""
        self._sending = True
        with self._lock:
            self.closing = self.closing or (1006, "")
            self._waiting.clear()
            self._data = 0
        self.room.set()
        if not self.done.done():
            self.done.set_result(error)

    @staticmethod
    def _message(packet: Packet) -> dict[str, object]:
        feed, block = packet.feed, packet.samples
        if feed is None or block is None:
            return {"type": "websocket.send", "text": packet.text}
        if feed.binary:
            return {"type": "websocket.send", "bytes": wire.batch_header(feed.id, block.count, packet.sequence, feed.dropped) + block.binary}
        head = b'{"type":"samples","id":%d,"sequence":%d,"dropped":%d,' % (feed.id, packet.sequence, feed.dropped)
        return {"type": "websocket.send", "text": (head + block.json + b"}").decode()}


@types.coroutine
def _resume(sending: Any, waits_for: object) -> Generator[object, Any, None]:
    """Await a coroutine that has already been begun and waits for something."""
    while True:
        try:
            answer = yield waits_for
        except BaseException as error:
            step = partial(sending.throw, error)
        else:
            step = partial(sending.send, answer)
        try:
            waits_for = step()
        except StopIteration:
            return


class Hub:
    """All open lines, and the owner's viewers."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lines: set[Line] = set()
        self.viewers: set[Line] = set()
        self.messages = 0
        self.samples_dropped = 0
        self.events_dropped = 0
        self.samples_sent = 0
        self._dirty: set[Line] = set()
        self._woken = False
        self._pushing = 0
        self._lock = threading.Lock()
        self._last: Shared | None = None
        self._joined: tuple[Shared, int, Shared] | None = None

    def touch(self, line: Line) -> None:
        """Have what waits sent; cheap when many lines are touched in one push."""
        with self._lock:
            self._dirty.add(line)
            if self._woken or self.loop is None or self._pushing == threading.get_ident():
                return
            self._woken = True
        try:
            self.loop.call_soon_threadsafe(self.flush)
        except RuntimeError:
            # The loop has ended: nobody is there to send to.
            return

    @contextlib.contextmanager
    def pushing(self) -> Iterator[None]:
        """While the core works off a block nobody is woken for each line: who pushes flushes afterwards."""
        self._pushing = threading.get_ident()
        try:
            yield
        finally:
            self._pushing = 0

    def flush(self) -> None:
        """Send what waits on lines that were touched; on the event loop."""
        with self._lock:
            dirty, self._dirty, self._woken = self._dirty, set(), False
        for line in dirty:
            line.drain()

    def shared(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> Shared:
        """The same samples once: feeds of one stream get the same arrays one after the other."""
        last = self._last
        if last is not None and last.x_deg is x_deg and last.y_deg is y_deg and last.t_ns is t_ns:
            return last
        self._last = Shared(t_ns, x_deg, y_deg, valid)
        return self._last

    def joined(self, blocks: list[Shared]) -> Shared:
        """Several blocks as one; feeds that gather alike share it."""
        last = self._joined
        if last is not None and last[0] is blocks[0] and last[1] == len(blocks):
            return last[2]
        one = Shared(
            np.concatenate([b.t_ns for b in blocks]),
            np.concatenate([b.x_deg for b in blocks]),
            np.concatenate([b.y_deg for b in blocks]),
            np.concatenate([b.valid for b in blocks]),
        )
        self._joined = (blocks[0], len(blocks), one)
        return one

    def dropped(self, feed: Feed, count: int) -> None:
        """Count what a slow reader lost."""
        if feed.what == "samples":
            self.samples_dropped += count
        else:
            self.events_dropped += count

    def show(self, app: str, fields: dict[str, object]) -> None:
        """Show the owner what an app was sent."""
        if self.viewers:
            self.tell({**fields, "type": "sent", "app": app})

    def tell(self, message: dict[str, object]) -> None:
        """Tell every viewer something they may also miss."""
        if not self.viewers:
            return
        text = wire.encode(message).decode()
        for line in tuple(self.viewers):
            feed = line.feeds.get(0)
            if feed is not None:
                line.offer(Packet(text, feed))

    def of(self, app: str) -> list[Line]:
        """Open lines of an app."""
        return [line for line in tuple(self.lines) if line.app == app]

    def hang_up(self, lines: Iterable[Line], code: str, reason: str, close_code: int = 4003) -> None:
        """End all feeds of lines with a reason and close them."""
        for line in tuple(lines):
            for feed in tuple(line.feeds.values()):
                line.end(feed, code, reason)
            line.hang_up(close_code, reason[:120])

    def sweep(self, now_ns: int | None = None) -> None:
        """Close lines whose token has expired."""
        now = time.time_ns() if now_ns is None else now_ns
        late = [line for line in tuple(self.lines) if line.expires_ns is not None and line.expires_ns <= now]
        self.hang_up(late, "expired", "The token has expired. Ask the owner for a new one.", 4001)
