"""The parts of the service alone: settings, limits, messages, queues, log lines."""

import asyncio
import json
import logging
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.logs import JsonLines
from gazeveil.gatekeeper.service.http.limits import KEYS, Buckets, Guesses, depth
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings, load_settings, table
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.channel import Channel, Outgoing
from gazeveil.gatekeeper.service.sockets.connections import Broadcaster, Connection
from tests.support.places import ROOT


def test_the_manual_lists_every_setting_as_it_is() -> None:
    page = (ROOT / "docs" / "howto" / "gatekeeper" / "running.md").read_text(encoding="utf-8")
    assert table() in page, "print gazeveil.gatekeeper.service.settings.table() into the page"
    assert all(
        f"`{name}`" in page and field.description for name, field in Settings.model_fields.items()
    )


def test_settings_come_from_the_environment_and_the_command_line_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path))
    monkeypatch.setenv("GAZEVEIL_PORT", "1234")
    monkeypatch.setenv("GAZEVEIL_HOSTS", '["gaze.local"]')
    found = load_settings(port=None, level="FINE")
    assert (found.home, found.port, found.hosts, found.level) == (
        tmp_path,
        1234,
        ("gaze.local",),
        "fine",
    )
    assert load_settings(port=99).port == 99
    assert found.database_url == f"sqlite:///{tmp_path / 'gatekeeper.sqlite'}"


@pytest.mark.parametrize("named", [True, False])
def test_a_named_rate_is_that_of_every_tracker(named: bool, tmp_path: Path) -> None:
    settings = load_settings(
        home=tmp_path / "home", tracker="pupil://127.0.0.1:9", rate_hz=250.0 if named else None
    )
    service = Service(settings)
    try:
        assert service.tracker is not None
        assert service.tracker.rate_hz == (250.0 if named else 120.0)
        assert service.keeper.rate_hz == service.tracker.rate_hz
    finally:
        asyncio.run(service.close())


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


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    now = [0.0]
    buckets = Buckets(60, burst=10, clock=lambda: now[0])
    assert sum(buckets.take("a") for _ in range(100)) == 10
    now[0] = 5.0
    assert sum(buckets.take("a") for _ in range(100)) == 5
    now[0] = 4.0  # a clock that goes back gives nothing
    assert not buckets.take("a")


def test_invented_keys_do_not_fill_the_memory() -> None:
    buckets = Buckets(60)
    for number in range(KEYS + 500):
        buckets.take(str(number))
    assert len(buckets) == KEYS


def test_guessing_is_limited_by_who_guesses_and_what() -> None:
    now = [0.0]
    guesses = Guesses(3, clock=lambda: now[0])
    for _ in range(3):
        assert guesses.may_try("here")
        guesses.wrong("here")
    assert not guesses.may_try("here")
    assert guesses.may_try("elsewhere")
    assert guesses.may_try("here", "https://shop.example")
    assert guesses.may_try("here", token_id="0123456789abcdef")
    for _ in range(3):
        guesses.wrong("here", "https://shop.example", "0123456789abcdef")
    assert not guesses.may_try("here", "https://shop.example", "0123456789abcdef")
    assert guesses.may_try("here", None, "0123456789abcdef")
    now[0] = 60.0
    assert guesses.may_try("here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0),
        (b"{}", 1),
        (b'"[[[["', 0),
        (b'["\\"[[",[]]', 2),
        (b'{"a":{"b":[1]}}', 3),
        (b"]]][", 1),
        (b'["[[', 1),
        (b'["\\', 1),
    ],
)
def test_depth_counts_brackets_outside_of_text(text: bytes, expected: int) -> None:
    assert depth(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b'{"type":"hello","token":7}',
        b'{"type":"hello","token":"x","more":1}',
        b'{"type":"subscribe","id":-1,"what":"tile"}',
        b'{"type":"subscribe","id":1.5,"what":"tile"}',
        b'{"type":"subscribe","id":1,"what":"raw"}',
        b'{"type":"subscribe","id":1,"what":"samples","batch":0}',
        b'{"type":"subscribe","id":1,"what":"samples","mechanism":"' + b"x" * 600 + b'"}',
        b'{"type":"drop table"}',
        b"\xff\xfe\x00",
        b"[" * 5000,
        b'{"type":"ping"} {"type":"ping"}',
        b'{"type":"unsubscribe","id":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_not_a_message_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(wire.BadMessageError) as caught:
        wire.read_command(text, 16_384, 16)
    assert "drop table" not in str(caught.value)
    assert "xxxx" not in str(caught.value)


def test_a_binary_batch_is_read_back_as_it_was_written() -> None:
    t, x, y, ok = (
        np.array([5, 6]),
        np.array([1.0, np.nan]),
        np.array([2.0, np.nan]),
        np.array([True, False]),
    )
    batch = blocks.unpack(wire.batch_header(7, 2, 40, 3) + wire.raw_samples(t, x, y, ok))
    assert (batch.id, batch.sequence, batch.dropped) == (7, 40, 3)
    np.testing.assert_array_equal(batch.block.t_ns, t)
    np.testing.assert_array_equal(batch.block.x_deg, x)
    assert batch.block.valid.tolist() == [True, False]
    assert json.loads(b"{" + wire.json_samples(t, x, y, ok) + b"}") == {
        "t_ms": [0.0, 0.0],
        "x_deg": [1.0, None],
        "y_deg": [2.0, None],
        "valid": [True, False],
    }


class Socket:
    """Collects what is sent; a closed gate makes it a slow reader."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, message: dict[str, object]) -> None:
        await self.gate.wait()
        self.sent.append(message)

    @property
    def texts(self) -> list[dict[str, object]]:
        return [json.loads(str(m["text"])) for m in self.sent if "text" in m]


async def written() -> None:
    """Let the writers go on until they wait; by rounds of the loop, since a busy machine may stop
    between two of them for longer than any time.
    """
    for _ in range(500):
        await asyncio.sleep(0)


def connection_of(most: int = 4) -> tuple[Broadcaster, Connection, Socket]:
    broadcaster, socket = Broadcaster(), Socket()
    broadcaster.loop = asyncio.get_running_loop()
    return broadcaster, Connection(broadcaster, "reader", socket.send, most), socket


def push(channel: Channel, first: int, count: int = 1) -> None:
    t = np.arange(first, first + count, dtype=np.int64)
    channel.samples(t, t.astype(float), t.astype(float), np.ones(count, dtype=np.bool_))


def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    async def run() -> None:
        broadcaster, connection, socket = connection_of(most=4)
        channel = connection.channels[1] = Channel(connection, 1, "samples")
        connection.announce(channel, {"type": "subscribed", "id": 1})
        socket.gate.clear()
        await written()
        for number in range(100):
            push(channel, number)
        assert len(connection._waiting) <= 5
        socket.gate.set()
        await written()
        samples = [m for m in socket.texts if m["type"] == "samples"]
        assert [m["sequence"] for m in samples] == [96, 97, 98, 99]
        assert all(m["dropped"] == 96 for m in samples)
        assert channel.dropped == broadcaster.samples_dropped == 96
        assert socket.texts[0]["type"] == "subscribed"

    asyncio.run(run())


def test_samples_that_come_before_the_answer_wait_for_it() -> None:
    async def run() -> None:
        _, connection, socket = connection_of()
        channel = connection.channels[1] = Channel(connection, 1, "samples")
        push(channel, 0)
        await written()
        assert socket.sent == []
        connection.announce(channel, {"type": "subscribed", "id": 1})
        await written()
        assert [m["type"] for m in socket.texts] == ["subscribed", "samples"]

    asyncio.run(run())


def test_an_ended_feed_sends_its_reason_and_nothing_more() -> None:
    async def run() -> None:
        _, connection, socket = connection_of()
        channel = connection.channels[1] = Channel(connection, 1, "samples")
        connection.announce(channel, {"type": "subscribed", "id": 1})
        push(channel, 0)
        connection.end(channel, "revoked", "It was revoked.")
        push(channel, 1)
        connection.end(channel, "again", "Once is enough.")
        await written()
        assert [m["type"] for m in socket.texts] == ["subscribed", "ended"]
        assert socket.texts[1]["code"] == "revoked"

    asyncio.run(run())


def test_batches_are_gathered_and_larger_blocks_go_as_they_come() -> None:
    async def run() -> None:
        broadcaster, connection, socket = connection_of(most=100)
        three, one = Channel(connection, 1, "samples", batch=3), Channel(connection, 2, "samples")
        twin = Channel(connection, 3, "samples", batch=3)
        for channel in (three, one, twin):
            connection.announce(channel, {"type": "subscribed", "id": channel.id})
        t = np.arange(7, dtype=np.int64)
        for number in range(7):
            for channel in (three, one, twin):
                channel.samples(
                    t[number : number + 1],
                    t[number : number + 1] * 1.0,
                    t[number : number + 1] * 1.0,
                    np.ones(1, dtype=np.bool_),
                )
        push(three, 7, 10)
        await written()
        of = {
            i: [m for m in socket.texts if m["type"] == "samples" and m["id"] == i]
            for i in (1, 2, 3)
        }
        assert [len(m["t_ms"]) for m in of[1]] == [3, 3, 11]  # type: ignore[arg-type]
        assert [m["sequence"] for m in of[1]] == [0, 3, 6]
        assert [len(m["t_ms"]) for m in of[2]] == [1] * 7  # type: ignore[arg-type]
        assert [m["x_deg"] for m in of[3]] == [m["x_deg"] for m in of[1][:2]]
        assert broadcaster.messages == 3 + 3 + 7 + 2

    asyncio.run(run())


def test_answers_are_never_dropped_and_events_count_as_one() -> None:
    async def run() -> None:
        broadcaster, connection, socket = connection_of(most=2)
        channel = Channel(connection, 1, "fixation")
        connection.announce(channel, {"type": "subscribed", "id": 1})
        for number in range(5):
            connection.answer({"type": "pong", "n": number})
            channel.message({"number": number})
        await written()
        assert [m["n"] for m in socket.texts if m["type"] == "pong"] == [0, 1, 2, 3, 4]
        assert [m["number"] for m in socket.texts if m["type"] == "event"] == [3, 4]
        assert (broadcaster.samples_dropped, broadcaster.events_dropped) == (0, 3)

    asyncio.run(run())


def test_hanging_up_sends_last_words_and_the_close_code() -> None:
    async def run() -> None:
        broadcaster, connection, socket = connection_of()
        broadcaster.connections.add(connection)
        channel = connection.channels[1] = Channel(connection, 1, "samples")
        connection.announce(channel, {"type": "subscribed", "id": 1})
        push(channel, 0)
        broadcaster.hang_up(broadcaster.connections, "shutdown", "The service is stopping.", 1012)
        connection.answer({"type": "pong"})
        connection.offer(Outgoing("late", channel))
        await asyncio.wait_for(connection.done, 60)
        assert [m["type"] for m in socket.texts] == ["subscribed", "ended"]
        assert socket.sent[-1] == {
            "type": "websocket.close",
            "code": 1012,
            "reason": "The service is stopping.",
        }

    asyncio.run(run())


def test_lines_of_expired_tokens_are_closed() -> None:
    async def run() -> None:
        broadcaster, connection, _ = connection_of()
        broadcaster.connections.add(connection)
        connection.expires_ns = 10
        broadcaster.sweep(9)
        assert connection.closing is None
        broadcaster.sweep(10)
        assert connection.closing == (4001, "The token has expired. Ask the owner for a new one.")

    asyncio.run(run())


def test_log_lines_are_json_and_hold_no_text_of_errors() -> None:
    form = JsonLines()
    try:
        raise ValueError("x_deg was 123.456")
    except ValueError as error:
        record = logging.LogRecord(
            "uvicorn.error",
            logging.ERROR,
            __file__,
            1,
            "got %s",
            ("123.456",),
            (type(error), error, error.__traceback__),
        )
    line = json.loads(form.format(record))
    assert "123.456" not in json.dumps(line)
    assert line["error"] == "ValueError"
    assert line["at"]
