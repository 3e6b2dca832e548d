"""Gaze on a surface of Pupil: taken from one, and given as one, as clients that draw on a screen
read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgpack
import numpy as np
import pytest

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Screen
from gazeveil.relay import Protector, relay
from gazeveil.relay.trackers.pupil import PupilTracker
from gazeveil.relay.trackers.pupil_format import decode_surface, encode_surface
from gazeveil.relay.zmq import PupilSink
from tests.support.fake_pupil import FakePupil, PupilClient

SCREEN = Screen(1920, 1080, 531, 299, 600)
SURFACE = "psychopy_iohub_surface"


def run(work: Awaitable[object]) -> object:
    async def limited() -> object:
        return await asyncio.wait_for(work, 60)

    return asyncio.run(limited())


def on_surface(places: list[tuple[float, float, float, float]]) -> bytes:
    """A surface message as Pupil Capture 3 sends it, with transforms that tell of the head."""
    turned = [[0.71234, 0.11111, 3.21], [0.05, 0.69, 1.23], [0.0, 0.0, 1.0]]
    return msgpack.packb(
        {
            "topic": f"surfaces.{SURFACE}",
            "name": SURFACE,
            "surf_to_img_trans": turned,
            "img_to_surf_trans": turned,
            "gaze_on_surfaces": [
                {
                    "topic": "gaze.3d.01._on_surface",
                    "norm_pos": [x, y],
                    "confidence": sure,
                    "on_surf": 0 <= x <= 1 and 0 <= y <= 1,
                    "base_data": ["gaze.3d.01.", t],
                    "timestamp": t,
                }
                for t, x, y, sure in places
            ],
            "fixations_on_surfaces": [],
            "timestamp": places[-1][0],
        },
        use_bin_type=True,
    )


def places_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    found = message["gaze_on_surfaces"]
    assert isinstance(found, list)
    return found


async def running(tracker: Tracker, sink: PupilSink, stop: asyncio.Event) -> asyncio.Task[None]:
    protector = Protector("gaussian:sigma_deg=0.5", 100.0, tracker.space, seed=3)
    protector.warm()
    await sink.start(tracker, protector.guarantee)
    return asyncio.ensure_future(relay(tracker, sink, protector, stop))


def test_a_client_that_draws_on_a_screen_finds_protected_gaze_on_the_surface() -> None:
    places = [(5.0 + k / 100, 0.25, 0.75, 0.1 if k == 7 else 0.9) for k in range(40)]
    with FakePupil() as pupil:
        tracker = PupilTracker(
            f"127.0.0.1:{pupil.port}", rate_hz=100, screen=SCREEN, surface=SURFACE, silence_s=60
        )

        async def work() -> tuple[dict[float, dict[str, object]], list[dict[str, object]]]:
            sink, stop = PupilSink("127.0.0.1:0"), asyncio.Event()
            task = await running(tracker, sink, stop)
            await asyncio.to_thread(pupil.wait_for_subscriber)
            client = await asyncio.to_thread(PupilClient, sink.port, "")
            pupil.send_frames(f"surfaces.{SURFACE}2".encode(), on_surface([(5.0, 9, 9, 1)]))
            for k in range(0, 40, 4):
                pupil.send_frames(f"surfaces.{SURFACE}".encode(), on_surface(places[k : k + 4]))
            gaze, surfaces = {}, []
            while sum(len(places_in(m)) for m in surfaces) < 40:
                topic, message, _ = await asyncio.to_thread(client.receive)
                if topic.startswith("gaze."):
                    gaze[float(str(message["timestamp"]))] = message
                else:
                    assert topic == f"surfaces.{SURFACE}"
                    surfaces.append(message)
            stop.set()
            await task
            await sink.close()
            client.close()
            return gaze, surfaces

        gaze, surfaces = run(work())
    shown = [place for message in surfaces for place in places_in(message)]
    # every place names a gaze message that came before it, by topic and exact time, with both eyes
    for place in shown:
        topic, t = place["base_data"]
        assert gaze[t]["topic"] == topic
        assert len(gaze[t]["base_data"]) == 2  # type: ignore[arg-type]
        assert gaze[t]["norm_pos"] == place["norm_pos"]
    assert [p["on_surf"] for p in shown] == [k != 7 for k in range(40)]
    assert [p["confidence"] for p in shown] == [float(k != 7) for k in range(40)]
    off = np.array([p["norm_pos"] for p in shown]) - (0.25, 0.75)
    assert 0 < np.abs(off).max() < 0.1, "half a degree of noise on a screen 48 degrees wide"
    assert all(m["img_to_surf_trans"] == np.eye(3).tolist() for m in surfaces), (
        "how the head moved is not told"
    )


def test_gaze_off_the_screen_is_off_the_surface() -> None:
    message = msgpack.loads(
        encode_surface("s", "gaze.3d.01.", [(1, 1.2, 0.5, True), (2, 0.5, 0.5, True)])
    )
    assert [p["on_surf"] for p in message["gaze_on_surfaces"]] == [False, True]


def test_surface_messages_are_read_in_order_and_others_refused() -> None:
    found = decode_surface(on_surface([(2.0, 0.2, 0.3, 0.9), (1.0, 0.4, 0.5, 0.8)]))
    assert found == [(1_000_000_000, 0.4, 0.5, 0.8), (2_000_000_000, 0.2, 0.3, 0.9)]
    for bad in (b"\xc1", msgpack.packb([]), msgpack.packb({"gaze_on_surfaces": [3]})):
        with pytest.raises(DataError):
            decode_surface(bad)


def test_a_surface_needs_a_screen() -> None:
    with pytest.raises(ParameterError, match="--screen"):
        open_tracker(f"pupil://127.0.0.1?surface={SURFACE}")
    with pytest.raises(ParameterError, match="surface"):
        PupilSink("127.0.0.1:0", surface="a/b")
    for tracker in (open_tracker("simulated"), PupilTracker("127.0.0.1")):
        guarantee = Protector("gaussian:sigma_deg=1", 120.0, tracker.space).guarantee
        with pytest.raises(ParameterError, match="not on one"):
            run(PupilSink("127.0.0.1:0", surface=SURFACE).start(tracker, guarantee))
