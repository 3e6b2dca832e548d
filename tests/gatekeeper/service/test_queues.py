"""The parts of the service alone: settings, messages, queues, frames, log lines."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.logs import JsonLines
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.connections import Broadcaster, Channel, Connection
from gazeveil.gatekeeper.service.settings import CallerLimits, Settings, load_settings
from tests.support.places import ROOT


def test_the_manual_lists_every_setting_as_it_is_and_they_are_few() -> None:
    page = (ROOT / "docs" / "howto" / "gatekeeper" / "running.md").read_text(encoding="utf-8")
    found = run_path(str(ROOT / "docs" / "howto" / "gatekeeper_settings.py"))["table"]()
    assert found in page, "print docs/howto/gatekeeper_settings.py into the page"
    settings = {**Settings.model_fields, **CallerLimits.model_fields}
    assert all(field.description for field in settings.values())
    assert len(Settings.model_fields) <= 25


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "many"),
        ("LEVEL", "raw"),
        ("HOSTS", "gaze.local"),
        ("RATE_HZ", "-1"),
        ("SCREEN", "big"),
        ("LIMITS", '{"json_depth": 100000}'),
        ("LIMITS", '{"no_such": 1}'),
    ],
)
def test_a_bad_setting_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"GAZEVEIL_{name}", value)
    with pytest.raises(ParameterError) as caught:
        load_settings()
    assert "\n" not in str(caught.value)
    assert name.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"[]", b'{"type":"drop table"}', b"\xff\xfe\x00", b"[" * 5000),
        *(b'{"type":"hello","token":7}', b'{"type":"hello","token":"x","more":1}'),
        b'{"type":"subscribe","id":-1,"what":"tile"}',
        b'{"type":"subscribe","id":1.5,"what":"tile"}',
        b'{"type":"subscribe","id":1,"what":"raw"}',
        b'{"type":"subscribe","id":1,"what":"samples","batch":0}',
        b'{"type":"subscribe","id":1,"what":"samples","mechanism":"' + b"x" * 600 + b'"}',
        b'{"type":"subscribe","id":1,"what":"select","targets":[{"name":"radio"}]}',
        b'{"type":"subscribe","id":1,"what":"select","targets":[],"by":"pinch"}',
        b'{"type":"ping"} {"type":"ping"}',
        b'{"type":"unsubscribe","id":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_not_a_message_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(wire.BadMessageError) as caught:
        wire.read_command(text, 16)
    assert not {"drop table", "xxxx", "pinch"} & set(str(caught.value).split())


# --- queues
# --------------------------------------------------------------------------------------------------


class Reader:
    """A connection whose app reads slowly while its gate is closed."""

    def __init__(self, most: int = 4) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.broadcaster = Broadcaster()
        self.broadcaster.loop = asyncio.get_running_loop()
        self.connection = Connection(self.broadcaster, "reader", self._send, most)

    async def _send(self, message: dict[str, object]) -> None:
        await self.gate.wait()
        self.sent.append(message)

    def channel(self, number: int = 1, what: str = "samples", **options: Any) -> Channel:
        """A subscription that the app was told of."""
        made = Channel(self.connection, number, what, **options)
        self.connection.channels[number] = made
        self.connection.announce(made, {"type": "subscribed", "id": number})
        return made

    async def read(self) -> list[dict[str, Any]]:
        """All that has come once the writers wait; by rounds of the loop, since a busy machine may
        stop between two of them for longer than any time.
        """
        for _ in range(500):
            await asyncio.sleep(0)
        return [json.loads(message["text"]) for message in self.sent if "text" in message]


def push(channel: Channel, first: int, count: int = 1) -> None:
    t = np.arange(first, first + count, dtype=np.int64)
    channel.samples(t, t.astype(float), t.astype(float), np.ones(count, dtype=np.bool_))


async def early() -> None:
    reader = Reader()
    channel = Channel(reader.connection, 1, "samples")
    push(channel, 0)
    assert await reader.read() == []
    reader.connection.announce(channel, {"type": "subscribed", "id": 1})
    assert [m["type"] for m in await reader.read()] == ["subscribed", "samples"]


async def answers() -> None:
    reader = Reader(2)
    channel = reader.channel(what="fixation")
    for number in range(5):
        reader.connection.answer({"type": "pong", "n": number})
        channel.message({"number": number})
    found = await reader.read()
    assert [m["n"] for m in found if m["type"] == "pong"] == [0, 1, 2, 3, 4]
    assert [m["number"] for m in found if m["type"] == "event"] == [3, 4]


async def chosen() -> None:
    """A choice is sent though much else waits, and after the word that it may be waited for."""
    for before in (False, True):
        reader = Reader()
        other, channel = reader.channel(what="fixation"), Channel(reader.connection, 2, "select")
        for late in (before, not before):
            if late:
                reader.connection.announce(channel, {"type": "subscribed", "id": 2})
            elif channel.choice is None:
                channel.chosen("lamp")
                reader.connection.end(channel, "chosen", "The wearer has chosen.")
                for number in range(20):
                    other.message({"kind": "fixation", "number": number})
        found = [m["type"] for m in await reader.read() if m["id"] == 2]
        assert found == ["subscribed", "event", "ended"], before


QUEUES = (early, answers, chosen)


@pytest.mark.parametrize("case", QUEUES)
def test_queues_keep_answers_and_last_words_and_drop_the_oldest_samples(
    case: Callable[[], Awaitable[None]],
) -> None:
    asyncio.run(case())  # type: ignore[arg-type]


# --- frames and log lines
# --------------------------------------------------------------------------------------------------


def frames(data: bytes) -> list[Frame]:
    """What a client's parser makes of bytes."""
    reader, found = StreamReader(), []
    reader.feed_data(data)
    reader.feed_eof()
    while reader.buffer:
        parser = Frame.parse(reader.read_exact, mask=False)
        with pytest.raises(StopIteration) as done:
            next(parser)
        found.append(done.value.value)
    return found


def test_a_client_reads_every_length_as_it_was_sent_at_once_and_nothing_goes_to_who_reads_not() -> (
    None
):
    written, state = [], {"closing": False, "waiting": 0}
    transport = SimpleNamespace(
        write=written.append,
        is_closing=lambda: state["closing"],
        get_write_buffer_size=lambda: state["waiting"],
    )

    async def work() -> list[bytes]:
        async def never(_: object) -> None:
            raise AssertionError

        connection = Connection(Broadcaster(), "a", never, 4, transport)  # type: ignore[arg-type]
        payloads = [b"a" * size for size in (0, 1, 125, 126, 127, 65_535, 65_536, 200_000)]
        assert all(connection._sent_now(payload, n % 2 == 0) for n, payload in enumerate(payloads))
        for changed in ({"closing": True}, {"waiting": 1 << 15}):
            state.update({"closing": False, "waiting": 0, **changed})
            assert not connection._sent_now(b"a", True)
        return payloads

    payloads = asyncio.run(work())
    found = frames(b"".join(written))
    assert [bytes(frame.data) for frame in found] == payloads
    assert [frame.opcode for frame in found] == [Opcode.TEXT, Opcode.BINARY] * 4
    assert all(frame.fin for frame in found)


def test_log_lines_are_json_and_hold_no_text_of_errors() -> None:
    try:
        raise ValueError("x_deg was 123.456")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("uvicorn", logging.ERROR, "f", 1, "got %s", ("123.456",), info)
    line = json.loads(JsonLines().format(record))
    assert "123.456" not in json.dumps(line)
    assert line["error"] == "ValueError"
    assert line["at"]
