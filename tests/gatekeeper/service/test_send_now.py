"""Frames that go straight to the socket: what a client reads is what was sent, at every length that
a head is written in another way.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from gazeveil.gatekeeper.service.sockets.protocol import SocketProtocol


class Socket:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closing


def connection(**changes: object) -> Any:
    writable = asyncio.Event()
    writable.set()
    state = {
        "handshake_complete": True,
        "close_sent": False,
        "disconnected": False,
        "writable": writable,
        "transport": Socket(),
        **changes,
    }
    return SimpleNamespace(**state)


def send(one: Any, payload: bytes, text: bool) -> bool:
    return SocketProtocol.send_now(cast("SocketProtocol", one), payload, text)


def frames(data: bytes) -> list[Frame]:
    """What a client's parser makes of bytes."""
    reader = StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    found = []
    while reader.buffer:
        parser = Frame.parse(reader.read_exact, mask=False)
        with pytest.raises(StopIteration) as done:
            next(parser)
        found.append(done.value.value)
    return found


@pytest.mark.parametrize("text", [True, False])
def test_a_client_reads_every_length_as_it_was_sent(text: bool) -> None:
    one = connection()
    payloads = [b"a" * size for size in (0, 1, 125, 126, 127, 65_535, 65_536, 200_000)]
    assert all(send(one, payload, text) for payload in payloads)
    found = frames(one.transport.written)
    assert [bytes(frame.data) for frame in found] == payloads
    assert {frame.opcode for frame in found} == {Opcode.TEXT if text else Opcode.BINARY}
    assert all(frame.fin for frame in found)


def test_nothing_is_sent_to_a_connection_that_is_not_open_or_does_not_read() -> None:
    full = asyncio.Event()
    closing = Socket()
    closing.closing = True
    for changes in (
        {"handshake_complete": False},
        {"close_sent": True},
        {"disconnected": True},
        {"writable": full},
        {"transport": closing},
    ):
        one = connection(**changes)
        assert not send(one, b"a", True)
        assert one.transport.written == b""
