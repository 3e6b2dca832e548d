"""Pupil Labs' real-time API: the relay as a Neon that their own package connects to, and the
package's stream as a tracker.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.relay import Protector, open_sink, relay
from gazeveil.gatekeeper.relay.neon import NeonSink
from gazeveil.gatekeeper.relay.rtsp import GazeRTSPServer
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.neon import InvisibleTracker, NeonTracker, load_realtime_api
from gazeveil.gatekeeper.trackers.picture import ScreenPicture, pinhole
from gazeveil.gatekeeper.trackers.tracker import Tracker

CAMERA = pinhole(1600, 1200, 892)
BEGIN_NS = 1_763_000_000_000_000_000
#: How long a counter of 32 bits counts 90,000 steps in a second, rounded up.
LAP_NS = -(-(2**32) * 10**9 // 90_000)
#: A first packet, then packets of 200 Hz around the time when its counter begins anew.
ACROSS_A_LAP_NS = [BEGIN_NS, *(BEGIN_NS + LAP_NS + k * 5_000_000 for k in range(-6, 6))]


@pytest.fixture
def api() -> Any:
    try:
        return load_realtime_api()
    except MissingExtraError as error:
        pytest.skip(str(error))


def run(work: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(work, 60)

    return asyncio.run(limited())


class NoTracker(Tracker):
    """What a sink is told of a tracker, and no samples."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.rate_hz, self.space = "none", 200.0, CAMERA
        self.picture = ScreenPicture(CAMERA)

    async def samples(self) -> Any:
        for nothing in ():
            yield nothing


async def phone() -> NeonSink:
    """A Neon whose gaze the test sends."""
    sink = NeonSink("127.0.0.1:0")
    await sink.start(NoTracker(), Protector("gaussian:sigma_deg=1", 200.0, CAMERA).guarantee)
    return sink


def in_px(x: list[float], y: list[float], valid: list[bool], first: int = 0) -> Block:
    """A block of places in pixels, at 200 Hz."""
    t = BEGIN_NS + (first + np.arange(len(x))) * 5_000_000
    degrees = ScreenPicture(CAMERA).degrees(np.array(x) / 1600, 1 - np.array(y) / 1200)
    return block(t, *degrees, valid)


async def keep_sending(sink: NeonSink) -> None:
    """Send one place for ever; every fourth sample is lost."""
    n = 0
    while True:
        sink.send(in_px([400.25], [300.5], [n % 4 != 0], n))
        n += 1
        await asyncio.sleep(0.005)


# --- with the package
# --------------------------------------------------------------------------------------------------


def test_their_package_finds_the_relay_and_receives_gaze(api: Any) -> None:
    async def work() -> tuple[Any, list[Any]]:
        sink = await phone()
        sending = asyncio.ensure_future(keep_sending(sink))
        async with api.Device("127.0.0.1", sink.port) as device:
            status = await device.get_status()
        found = []
        async with api.RTSPGazeStreamer(status.direct_gaze_sensor().url) as streamer:
            async for datum in streamer.receive():
                found.append(datum)
                if len(found) == 40:
                    break
        sending.cancel()
        await sink.close()
        return status, found

    status, found = run(work())
    assert status.hardware.module_serial == "gazeveil"
    assert not status.direct_world_sensor().connected
    assert {type(datum).__name__ for datum in found} == {"GazeData"}, "no eyes, no pupils"
    assert {(datum.x, datum.y) for datum in found} == {(400.25, 300.5)}
    assert 5 <= sum(not datum.worn for datum in found) <= 15
    steps = np.diff([datum.timestamp_unix_ns for datum in found])
    np.testing.assert_allclose(steps, 5_000_000, atol=30_000)  # a step of 90 kHz is 11 microseconds
    assert abs(found[0].timestamp_unix_ns - BEGIN_NS) < 60_000_000_000


def test_gaze_of_a_neon_becomes_degrees_and_its_end_a_loss(api: Any) -> None:
    async def work() -> tuple[list[Block | None], NeonTracker]:
        sink = await phone()
        sending = asyncio.ensure_future(keep_sending(sink))
        tracker = open_tracker(f"neon://127.0.0.1:{sink.port}", silence_s=0.5)
        assert isinstance(tracker, NeonTracker)
        found: list[Block | None] = []
        async for part in tracker.samples():
            found.append(part)
            if len(found) == 60:
                sending.cancel()
                await sink.close()
            if part is None:
                await tracker.close()
        return found, tracker

    found, tracker = run(work())
    assert found[-1] is None
    blocks = [part for part in found if part is not None]
    x, y = (np.concatenate([getattr(b, n) for b in blocks]) for n in ("x_deg", "y_deg"))
    expected = CAMERA.from_px([400.25], [300.5])
    np.testing.assert_allclose(x, expected[0][0], atol=1e-4)
    np.testing.assert_allclose(y, expected[1][0], atol=1e-4)
    valid = np.concatenate([b.valid for b in blocks])
    assert 0.6 < valid.mean() < 0.9
    assert (tracker.counts["connected"], tracker.counts["lost"]) == (1, 1)
    assert tracker.rate_hz == 200


def test_times_hold_where_the_counter_begins_anew(api: Any) -> None:
    """Their package adds the counter of 32 bits to the last report, and knows of no new lap."""

    async def work() -> list[Any]:
        sink = await phone()
        found = []
        async with api.Device("127.0.0.1", sink.port) as device:
            url = (await device.get_status()).direct_gaze_sensor().url
        async with api.RTSPGazeStreamer(url) as streamer:
            while not sink._stream.listening:
                await asyncio.sleep(0.01)
            packets = aiter(streamer.receive())
            for t_ns in ACROSS_A_LAP_NS:
                # one after the other, because the package dates a packet when it is taken
                sink.send(block([t_ns], *CAMERA.from_px([400.0], [300.0]), [True]))
                found.append(await anext(packets))
        await sink.close()
        return found

    times = np.array([datum.timestamp_unix_ns for datum in run(work())])
    np.testing.assert_allclose(times - np.array(ACROSS_A_LAP_NS), 0, atol=30_000)


def test_a_relay_stands_between_a_neon_and_their_package(api: Any) -> None:
    # compiled before, because that may take longer than the limit of time
    Protector("gaussian:sigma_deg=2", 200.0, CAMERA).warm()

    async def work() -> list[Any]:
        sink = await phone()
        sending = asyncio.ensure_future(keep_sending(sink))
        tracker = open_tracker(f"neon://127.0.0.1:{sink.port}")
        protector = Protector("gaussian:sigma_deg=2", tracker.rate_hz, tracker.space)
        protector.warm()
        out, stop = open_sink("neon://127.0.0.1:0"), asyncio.Event()
        assert isinstance(out, NeonSink)
        await out.start(tracker, protector.guarantee, protector.rate_hz)
        task = asyncio.ensure_future(relay(tracker, out, protector, stop))
        found = []
        async with api.Device("127.0.0.1", out.port) as device:
            url = (await device.get_status()).direct_gaze_sensor().url
        async with api.RTSPGazeStreamer(url) as streamer:
            async for datum in streamer.receive():
                found.append(datum)
                if len(found) == 60:
                    break
        stop.set()
        await task
        sending.cancel()
        await out.close()
        await sink.close()
        return found

    found = [datum for datum in run(work()) if datum.worn]
    places = np.array([(datum.x, datum.y) for datum in found])
    assert not (places == (400.25, 300.5)).any(), "nothing raw passes"
    # two degrees are about 34 pixels there
    assert 10 < np.std(places[:, 0]) < 80


def test_glasses_of_another_kind_are_refused(api: Any) -> None:
    async def work() -> int:
        sink = await phone()
        tracker = InvisibleTracker(f"127.0.0.1:{sink.port}")
        assert await tracker._find() is None
        await sink.close()
        return tracker.counts["malformed"]

    assert run(work()) == 1


def test_a_phone_that_is_not_there_is_asked_again(api: Any) -> None:
    async def work() -> None:
        tracker = NeonTracker("127.0.0.1:9")
        task = asyncio.ensure_future(anext(aiter(tracker.samples())))
        await asyncio.sleep(0.5)
        assert not task.done()
        task.cancel()

    run(work())


# --- without it
# --------------------------------------------------------------------------------------------------


def test_glasses_that_send_slower_than_they_say_are_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow:
        """Their streamer, with packets of 50 Hz."""

        reader = None

        def __init__(self, url: str) -> None:
            self.url = url

        async def __aenter__(self) -> Slow:
            return self

        async def __aexit__(self, *_: object) -> None:
            return None

        async def receive(self) -> Any:
            for i in range(110):
                t_ns = BEGIN_NS + i * 20_000_000
                yield SimpleNamespace(x=400.0, y=300.0, worn=True, timestamp_unix_ns=t_ns)

    async def found(tracker: NeonTracker) -> str:
        return "rtsp://glasses"

    package = SimpleNamespace(RTSPGazeStreamer=Slow)
    monkeypatch.setattr("gazeveil.gatekeeper.trackers.neon.import_module", lambda name: package)
    monkeypatch.setattr(NeonTracker, "_find", found)
    tracker = NeonTracker("127.0.0.1")

    async def work() -> None:
        async for _ in tracker.connection():
            pass

    run(work())
    assert "50 samples come in a second, the nominal rate is 200" in tracker.trouble


def test_without_the_package_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("gazeveil.gatekeeper.trackers.neon.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[neon\]"):
        open_tracker("neon://127.0.0.1")


def test_pages_and_other_questions_are_refused() -> None:
    def ask(port: int, path: str, **fields: str) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=fields)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    async def work() -> list[tuple[int, dict[str, Any]]]:
        sink = await phone()
        answers = [
            await asyncio.to_thread(ask, sink.port, "/api/status"),
            await asyncio.to_thread(ask, sink.port, "/api/status", Origin="https://evil.example"),
            await asyncio.to_thread(ask, sink.port, "/api/recording:start"),
        ]
        await sink.close()
        return answers

    answers = run(work())
    assert [code for code, _ in answers] == [200, 403, 404]
    models = [part["model"] for part in answers[0][1]["result"]]
    assert models == ["Phone", "Hardware", "Sensor"]


def ask_rtsp(port: int, *requests: str) -> list[str]:
    """First lines of the answers."""
    lines = []
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for request in requests:
            client.sendall(request.encode())
            answer = b""
            while b"\r\n\r\n" not in answer and (part := client.recv(4096)):
                answer += part
            lines.append(answer.decode().partition("\r\n")[0])
    return lines


def test_a_client_must_set_up_over_udp_before_it_plays() -> None:
    udp = "Transport: RTP/AVP;unicast;client_port=40000-40001\r\n"
    tcp = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n"
    low = "Transport: RTP/AVP;unicast;client_port=53-54\r\n"

    async def work() -> tuple[list[str], int]:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        lines = await asyncio.to_thread(
            ask_rtsp,
            server.port,
            "PLAY rtsp://a RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            f"SETUP rtsp://a RTSP/1.0\r\nCSeq: 2\r\n{tcp}\r\n",
            f"SETUP rtsp://a RTSP/1.0\r\nCSeq: 3\r\n{low}\r\n",
            f"SETUP rtsp://a RTSP/1.0\r\nCSeq: 4\r\n{udp}\r\n",
            "PLAY rtsp://a RTSP/1.0\r\nCSeq: 5\r\n\r\n",
            "RECORD rtsp://a RTSP/1.0\r\nCSeq: x\r\n\r\n",
        )
        for _ in range(100):
            if not server.listening:
                break
            await asyncio.sleep(0.02)
        left = server.listening
        endless = await asyncio.to_thread(ask_rtsp, server.port, "X" * 20_000)
        assert endless == [""], "a head without end ends the connection"
        await server.close()
        return lines, left

    lines, left = run(work())
    codes = [line.split(" ")[1] for line in lines]
    assert codes == ["455", "461", "461", "200", "200", "455"]
    assert left == 0, "who is gone gets no more packets"


def test_packets_hold_the_place_and_the_report_their_time() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp,
    ):
        for one in (rtp, rtcp):
            one.bind(("127.0.0.1", 0))
            one.settimeout(10)
        ports = f"{rtp.getsockname()[1]}-{rtcp.getsockname()[1]}"

        async def work() -> None:
            sink = await phone()
            stream = sink._stream
            reader, writer = await asyncio.open_connection("127.0.0.1", stream.port)
            for method, extra in (("SETUP", f"Transport: client_port={ports}\r\n"), ("PLAY", "")):
                writer.write(f"{method} rtsp://a RTSP/1.0\r\nCSeq: 1\r\n{extra}\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
            sink.send(in_px([12.0, 13.0], [34.0, 35.0], [True, False]))
            writer.close()
            await sink.close()

        run(work())
        packets = [rtp.recv(2048) for _ in range(2)]
        report = rtcp.recv(2048)
    assert [struct.unpack("!ffB", p[12:])[2] for p in packets] == [255, 0]
    places = [struct.unpack("!ff", p[12:20]) for p in packets]
    np.testing.assert_allclose(places, [(12, 34), (12, 34)], atol=1e-3)
    _, _, _, source, seconds, fraction, counter, *_ = struct.unpack("!BBHIIIIII", report)
    sent = seconds - 2_208_988_800 + fraction / 2**32
    assert sent == pytest.approx(BEGIN_NS / 1e9, abs=1e-6)
    assert all(struct.unpack("!I", p[8:12])[0] == source for p in packets)
    assert struct.unpack("!I", packets[0][4:8])[0] == counter
    later = struct.unpack("!I", packets[1][4:8])[0]
    assert (later - counter) & 0xFFFFFFFF == pytest.approx(450, abs=1)


def test_a_report_comes_where_the_counter_begins_anew() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp,
    ):
        for one in (rtp, rtcp):
            one.bind(("127.0.0.1", 0))
            one.settimeout(10)
        ports = f"{rtp.getsockname()[1]}-{rtcp.getsockname()[1]}"

        async def work() -> None:
            server = GazeRTSPServer("gaze")
            await server.start("127.0.0.1")
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for method, extra in (("SETUP", f"Transport: client_port={ports}\r\n"), ("PLAY", "")):
                writer.write(f"{method} rtsp://a RTSP/1.0\r\nCSeq: 1\r\n{extra}\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
            for t_ns in ACROSS_A_LAP_NS:
                server.send(t_ns, b"x")
            writer.close()
            await server.close()

        run(work())
        counters = [struct.unpack("!I", rtp.recv(2048)[4:8])[0] for _ in ACROSS_A_LAP_NS]
        reports = [struct.unpack("!III", rtcp.recv(2048)[8:20]) for _ in range(3)]
        rtcp.settimeout(0.1)
        with pytest.raises(TimeoutError):
            rtcp.recv(2048)
    assert counters[0] == 0, "a client that plays for less than 13 hours sees no new lap"
    assert [counter for *_, counter in reports] == [0, counters[1], counters[7]]
    assert counters[7] < 450 < counters[6], "the lap ends between them"
    dated = np.array([0, *[1] * 6, *[2] * 6])
    seconds = np.array([whole - 2_208_988_800 + part / 2**32 for whole, part, _ in reports])
    since = (np.array(counters) - np.array([counter for *_, counter in reports])[dated]) / 90_000
    np.testing.assert_allclose(
        seconds[dated] - BEGIN_NS / 1e9 + since,
        (np.array(ACROSS_A_LAP_NS) - BEGIN_NS) / 1e9,
        atol=3e-5,
    )


def test_the_address_of_the_stream_holds_one_of_ipv6_in_brackets() -> None:
    sensor = NeonSink("[::1]:0")._components("::1")[2]["data"]
    assert isinstance(sensor, dict)
    assert sensor["ip"] == "[::1]"
