"""A relay between two streams of the real liblsl, and programs that know nothing of it: the
wheels of pylsl bring the library on some platforms; elsewhere these tests are left out.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import DataError, MissingExtraError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay import Protector, open_sink, relay
from gazeveil.relay.trackers.lsl.library import load_pylsl
from tests.support.more_time import with_more_time

LABELS = ("confidence", "norm_pos_x", "norm_pos_y", "diameter0_2d")
RATE_HZ = 250.0


@pytest.fixture(scope="module")
def pylsl() -> Any:
    try:
        return load_pylsl()
    except MissingExtraError as error:
        pytest.skip(str(error))


class RawStream:
    """A tracker's outlet that sends from a thread."""

    def __init__(self, pylsl: Any, name: str, declared_hz: float, rate_hz: float) -> None:
        info = pylsl.StreamInfo(name, "Gaze", 4, declared_hz, pylsl.cf_float32, f"serial-{name}")
        desc = info.desc()
        desc.append_child("acquisition").append_child_value(
            "manufacturer", "Pupil Labs"
        ).append_child_value("serial_number", "SECRET-7")
        desc.append_child("subject").append_child_value("id", "Anna")
        channels = desc.append_child("channels")
        for label in LABELS:
            gaze = label.startswith("norm")
            channel = channels.append_child("channel")
            channel.append_child_value("label", label)
            channel.append_child_value("unit", "normalized" if gaze else "px")
            channel.append_child_value("type", "eyegaze" if gaze else "misc")
        self._pylsl, self._outlet, self._rate_hz = pylsl, pylsl.StreamOutlet(info), rate_hz
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        # a camera is regular, however late a busy machine hands its samples on
        begun, sent = self._pylsl.local_clock(), 0
        while not self._end.is_set():
            sent += 1
            taken_s = begun + sent / self._rate_hz
            time.sleep(max(0.0, taken_s - self._pylsl.local_clock()))
            place = 0.5 + 0.1 * np.sin(sent / 50)
            self._outlet.push_sample([0.9, place, place, 44.4], taken_s)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._outlet = None


class RunningRelay:
    """A relay in a thread of its own."""

    def __init__(self, raw: str, protected: str, mechanism: str) -> None:
        self.tracker = open_tracker(f"lsl:{raw}")
        self.protector = Protector(mechanism, self.tracker.rate_hz, self.tracker.space)
        self.sink = open_sink(f"lsl:{protected}")
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.protector.warm()
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_until_complete(self._work())

    async def _work(self) -> None:
        await self.sink.start(self.tracker, self.protector.guarantee, self.protector.rate_hz)
        await relay(self.tracker, self.sink, self.protector, self._stop)
        await self.sink.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def protected(pylsl: Any) -> Iterator[str]:
    """Name of a protected stream that is being sent."""
    raw, name = f"raw-{os.getpid()}", f"protected-{os.getpid()}"
    sender = RawStream(pylsl, raw, RATE_HZ, RATE_HZ)
    running = RunningRelay(raw, name, "gaussian:sigma_deg=1")
    yield name
    running.close()
    sender.close()


def inlet_of(pylsl: Any, name: str) -> Any:
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        found = pylsl.resolve_byprop("name", name, 1, 1.0)
    assert found, "the stream is not there"
    return pylsl.StreamInlet(found[0])


def test_a_protected_stream_says_of_itself_what_the_raw_one_says_and_no_serial_number(
    pylsl: Any, protected: str
) -> None:
    info = inlet_of(pylsl, protected).info(60.0)
    assert info.nominal_srate() == RATE_HZ
    assert info.channel_format() == pylsl.cf_float32
    assert info.type() == "Gaze"
    assert info.get_channel_labels() == list(LABELS)
    assert info.get_channel_units() == ["px", "normalized", "normalized", "px"]
    assert info.get_channel_types() == ["misc", "eyegaze", "eyegaze", "misc"]
    assert info.desc().child("acquisition").child_value("manufacturer") == "Pupil Labs"
    text = info.as_xml()
    assert "SECRET" not in text
    assert "Anna" not in text
    assert "serial" not in text


def test_samples_come_at_once_and_stamps_stay_on_the_clock(pylsl: Any, protected: str) -> None:
    inlet = inlet_of(pylsl, protected)
    inlet.open_stream(60.0)
    rows, late, stamps, quick_s = [], [], [], []
    # a busy machine may be slow now and then, for seconds; a loop that waits for a full buffer for
    # a tenth of a second has a fifth of its samples late by 20 ms in each of these seconds
    while len(rows) < 500 or (quick_s[-1] >= 0.015 and len(quick_s) < 60):
        row, stamp = inlet.pull_sample(60.0)
        assert row is not None
        late.append(pylsl.local_clock() - stamp)
        rows.append(row)
        stamps.append(stamp)
        if len(rows) % 250 == 0:
            quick_s.append(float(np.quantile(late[-250:], 0.2)))
    values = np.array(rows)
    assert (values[:, 0] == 1).all()
    assert np.isnan(values[:, 3]).all(), "pupil diameters do not pass"
    assert np.std(np.diff(values[:, 1])) > 0.005, "places are noisy"
    np.testing.assert_allclose(np.diff(stamps), 1 / RATE_HZ, atol=1e-6)
    assert min(quick_s) < 0.015
    assert np.min(late) > -0.01, "no stamp is in the future"


def test_mne_lsl_filters_the_protected_stream(pylsl: Any, protected: str) -> None:
    stream_module = pytest.importorskip("mne_lsl.stream", reason="needs the package mne_lsl")
    inlet_of(pylsl, protected)
    stream = stream_module.StreamLSL(bufsize=1.0, name=protected).connect(timeout=60)
    try:
        assert stream.info["sfreq"] == RATE_HZ
        assert stream.get_channel_types() == ["misc", "eyegaze", "eyegaze", "misc"]
        stream.pick("eyegaze")
        stream.filter(None, 40.0)
        time.sleep(2.5)
        data, times = stream.get_data()
    finally:
        stream.disconnect()
    assert data.shape == (2, round(RATE_HZ))
    assert np.isfinite(data).all()
    np.testing.assert_allclose(np.diff(times), 1 / RATE_HZ, atol=1e-6)


def test_a_stream_that_lies_about_its_rate_ends_the_relay(pylsl: Any) -> None:
    raw = f"lying-{os.getpid()}"
    sender = RawStream(pylsl, raw, 120.0, 1000.0)
    tracker = open_tracker(f"lsl:{raw}")

    async def work() -> None:
        async for _ in tracker.samples():
            pass

    try:
        with pytest.raises(DataError, match=r"sends \d+ samples.*nominal rate is 120"):
            asyncio.run(asyncio.wait_for(work(), 60))
    finally:
        sender.close()


NO_SERVICE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from tests.support.fake_pylsl import FakePylsl
fake = FakePylsl()
fake.offer("raw", ["x_deg", "y_deg"], [([1.0, 2.0], k / 100) for k in range(300)])
sys.modules["pylsl"] = fake
from gazeveil.cli.main import main
try:
    main(["relay", "--in", "lsl:raw", "--out", "lsl:safe", "-m", "gaussian:sigma_deg=1"]
         + ["--seconds", "{seconds}"])
finally:
    print("sent", len(fake.network.sent))
"""

#: Packages of the extra `service`, which the extra `lsl` does not bring.
SERVICE = {
    *("fastapi", "starlette", "httptools", "httpx", "msgpack", "msgspec"),
    *("prometheus_client", "psycopg", "pydantic_settings", "yaml", "zmq", "sqlalchemy"),
    *("uvicorn", "uvloop", "websockets"),
}


def test_the_extra_lsl_alone_runs_the_relay() -> None:
    def work(seconds: float) -> None:
        done = subprocess.run(
            [sys.executable, "-c", NO_SERVICE.format(names=SERVICE, seconds=seconds)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "sent 300" in done.stdout

    with_more_time(work, 1.5, 10, 40)
