"""The part of pylsl's interface that Gazeveil uses, without the network: the real package needs the
system's library liblsl.
"""

from __future__ import annotations

import time
from collections import deque


class Node:
    """An XML node of a stream's description."""

    def __init__(self, name: str = "", value: str = "", parent: Node | None = None) -> None:
        self.name, self.value, self.parent = name, value, parent
        self.children: list[Node] = []

    def append_child(self, name: str) -> Node:
        self.children.append(Node(name, parent=self))
        return self.children[-1]

    def append_child_value(self, name: str, value: str) -> Node:
        self.children.append(Node(name, value, self))
        return self

    def child(self, name: str) -> Node:
        return next((c for c in self.children if c.name == name), Node())

    def child_value(self, name: str) -> str:
        return self.child(name).value

    def next_sibling(self) -> Node:
        if self.parent is None:
            return Node()
        at = next(i for i, c in enumerate(self.parent.children) if c is self)
        return self.parent.children[at + 1] if at + 1 < len(self.parent.children) else Node()


class StreamInfo:
    """A stream: its name, its type and its channels."""

    def __init__(
        self,
        name: str = "untitled",
        type: str = "",  # noqa: A002 - the name pylsl has
        channel_count: int = 1,
        nominal_srate: float = 0.0,
        channel_format: int = 1,
        source_id: str = "",
    ) -> None:
        self._name, self._type, self._count, self.rate, self.format, self._source = (
            name,
            type,
            channel_count,
            nominal_srate,
            channel_format,
            source_id,
        )
        self._desc = Node("desc")

    def source_id(self) -> str:
        return self._source

    def name(self) -> str:
        return self._name

    def type(self) -> str:
        return self._type

    def channel_count(self) -> int:
        return self._count

    def nominal_srate(self) -> float:
        return self.rate

    def channel_format(self) -> int:
        return self.format

    def desc(self) -> Node:
        return self._desc


class LostError(RuntimeError):
    """The stream is gone."""


class Network:
    """The streams that are there."""

    def __init__(self) -> None:
        self.streams: dict[str, tuple[StreamInfo, deque[tuple[list[float], float]], bool]] = {}
        self.sent: list[tuple[str, list[float], float]] = []
        self.outlets: list[StreamInfo] = []


class FakePylsl:
    """Stands in for the module `pylsl`."""

    cf_float32 = 1
    cf_double64 = 2
    proc_clocksync = 1
    IRREGULAR_RATE = 0.0
    LostError = LostError

    def __init__(self) -> None:
        network = Network()
        self.network = network
        self.StreamInfo = StreamInfo

        class StreamInlet:
            def __init__(
                self, info: StreamInfo, recover: bool = True, processing_flags: int = 0
            ) -> None:
                assert not recover
                assert processing_flags == FakePylsl.proc_clocksync
                self._info = info

            def info(self, timeout: float = 0.0) -> StreamInfo:
                return self._info

            def time_correction(self, timeout: float = 0.0) -> float:
                return 0.0

            def open_stream(self, timeout: float = 0.0) -> None:
                pass

            def pull_sample(self, timeout: float = 0.0) -> tuple[list[float] | None, float | None]:
                rows, times = self.pull_chunk(timeout, 1)
                if not times:
                    time.sleep(timeout)
                return (rows[0], times[0]) if times else (None, None)

            def pull_chunk(
                self, timeout: float = 0.0, max_samples: int = 1024
            ) -> tuple[list[list[float]], list[float]]:
                if self._info.name() not in network.streams:
                    raise LostError("the stream is gone")
                waiting = network.streams[self._info.name()][1]
                found = [waiting.popleft() for _ in range(min(max_samples, len(waiting)))]
                return [row for row, _ in found], [t for _, t in found]

            def close_stream(self) -> None:
                pass

        class StreamOutlet:
            def __init__(self, info: StreamInfo) -> None:
                self.info = info
                network.outlets.append(info)

            def push_sample(self, row: list[float], timestamp: float = 0.0) -> None:
                network.sent.append((self.info.name(), list(row), timestamp))

        self.StreamInlet, self.StreamOutlet = StreamInlet, StreamOutlet

    def resolve_byprop(
        self, prop: str, value: str, minimum: int = 1, timeout: float = 1.0
    ) -> list[StreamInfo]:
        return [s[0] for s in self.network.streams.values() if getattr(s[0], prop)() == value]

    def local_clock(self) -> float:
        return 0.0

    def offer(
        self,
        name: str,
        labels: list[str],
        rows: list[tuple[list[float], float]],
        rate_hz: float = 100.0,
        **fields: str,
    ) -> None:
        """Put a stream on the network; `fields` are those of every channel."""
        info = StreamInfo(name, "Gaze", len(labels), rate_hz, self.cf_float32)
        channels = info.desc().append_child("channels")
        for label in labels:
            channel = channels.append_child("channel").append_child_value("label", label)
            for field, value in fields.items():
                channel.append_child_value(field, value)
        self.network.streams[name] = (info, deque(rows), True)
