"""Pupil Labs' real-time API: their own package's stream as a tracker, from a phone made here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.picture import ScreenPicture, pinhole
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.relay import Protector
from gazeveil.relay.trackers.neon import InvisibleTracker, NeonTracker, load_realtime_api
from tests.support.neon_phone import NeonSink

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
    monkeypatch.setattr("gazeveil.relay.trackers.neon.import_module", lambda name: package)
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

    monkeypatch.setattr("gazeveil.relay.trackers.neon.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[neon\]"):
        open_tracker("neon://127.0.0.1")
