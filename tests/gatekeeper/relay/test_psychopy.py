"""PsychoPy's own plugin for Pupil Core reads a relay: the device classes of PsychoPy's ioHub and
the plugin are the real ones. Only the display is a stand-in, because there need be none.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gaze.geometry import Screen
from gazeveil.relay import Protector, relay
from gazeveil.relay.zmq import PupilSink

SURFACE = "psychopy_iohub_surface"
SCREEN = Screen(1920, 1080, 531, 299, 600)


class Display:
    """PsychoPy's display in pixels, from its centre, y upwards."""

    def getPixelResolution(self) -> tuple[int, int]:  # noqa: N802 - PsychoPy's name
        return 1920, 1080

    def getIndex(self) -> int:  # noqa: N802 - PsychoPy's name
        return 0

    def _pixel2DisplayCoord(  # noqa: N802 - PsychoPy's name
        self, x: float, y: float, index: int
    ) -> tuple[float, float]:
        return x - 960, 540 - y


def plugin(port: int) -> Any:
    """The plugin's device, connected to a port."""
    module = pytest.importorskip(
        "psychopy_eyetracker_pupil_labs.pupil_labs.pupil_core.eyetracker",
        reason="needs psychopy and psychopy-eyetracker-pupil-labs",
    )
    module.EyeTracker._display_device = Display()
    settings = {
        "pupil_remote": {"ip_address": "127.0.0.1", "port": port, "timeout_ms": 5000},
        "pupil_capture_recording": {"enabled": False, "location": ""},
        "pupillometry_only": False,
        "surface_name": SURFACE,
        "confidence_threshold": 0.6,
    }
    names = dict.fromkeys(module.EyeTracker.CLASS_ATTRIBUTE_NAMES)
    configuration = {
        **names,
        "event_buffer_length": 4096,
        "auto_report_events": True,
        "runtime_settings": settings,
    }
    return module.EyeTracker(dconfig=configuration)


def test_the_plugin_gets_protected_samples() -> None:
    pytest.importorskip("psychopy_eyetracker_pupil_labs", reason="needs PsychoPy's Pupil plugin")
    ports: list[int] = []
    listening, done = threading.Event(), threading.Event()

    async def work() -> None:
        tracker = open_tracker("simulated", task="reading", space=SCREEN, seed=1)
        sink = PupilSink("127.0.0.1:0", surface=SURFACE)
        protector = Protector("gaussian:sigma_deg=1", tracker.rate_hz, tracker.space)
        protector.warm()
        stop = asyncio.Event()
        await sink.start(tracker, protector.guarantee)
        ports.append(sink.port)
        listening.set()
        task = asyncio.ensure_future(relay(tracker, sink, protector, stop))
        await asyncio.to_thread(done.wait, 60)
        stop.set()
        await task
        await sink.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert listening.wait(30)
    device = plugin(ports[0])
    try:
        ended = threading.Event()
        for _ in range(600):
            device._poll()
            if len(device._native_event_buffer) > 200:
                break
            ended.wait(0.02)
        samples = list(device._native_event_buffer)
    finally:
        device.setConnectionState(False)
        done.set()
        thread.join()
    assert len(samples) > 200
    x, y = (np.array([sample[at] for sample in samples]) for at in (11, 12))
    assert (np.abs(x) <= 960).all()
    assert (np.abs(y) <= 540).all()
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) > 100, "places are noisy"
    seconds = np.diff([sample[5] for sample in samples])
    assert np.median(seconds) == pytest.approx(1 / 120, rel=1e-3)
    # what the plugin would store of the eyes is not told
    assert all(np.isnan(sample[21]) for sample in samples), "diameter of the pupil"
