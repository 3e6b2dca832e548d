"""A relay between two streams of the real liblsl, and programs that know nothing of it: the
wheels of pylsl bring the library on some platforms; elsewhere these tests are left out.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay import Protector, open_sink
from gazeveil.relay.trackers.lsl.tracker import load_pylsl
from tests.support.more_time import with_more_time
from tests.support.relaying import Running
from tests.support.taken_blocks import run

LABELS = ("confidence", "norm_pos_x", "norm_pos_y", "diameter0_2d")
RATE_HZ = 250.0


@pytest.fixture(scope="module")
def pylsl() -> Any:
    try:
        return load_pylsl()
    except MissingExtraError as error:
        pytest.skip(str(error))


def raw_stream(pylsl: Any, name: str) -> Any:
    """A tracker's outlet that says more of itself than may go on."""
    info = pylsl.StreamInfo(name, "Gaze", 4, RATE_HZ, pylsl.cf_float32, f"serial-{name}")
    desc = info.desc()
    maker = desc.append_child("acquisition").append_child_value("manufacturer", "Pupil Labs")
    maker.append_child_value("serial_number", "SECRET-7")
    desc.append_child("subject").append_child_value("id", "Anna")
    channels = desc.append_child("channels")
    for label in LABELS:
        gaze = label.startswith("norm")
        channel = channels.append_child("channel")
        channel.append_child_value("label", label)
        channel.append_child_value("unit", "normalized" if gaze else "px")
        channel.append_child_value("type", "eyegaze" if gaze else "misc")
    return pylsl.StreamOutlet(info)


def inlet_of(pylsl: Any, name: str) -> Any:
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        found = pylsl.resolve_byprop("name", name, 1, 1.0)
    assert found, "the stream is not there"
    return pylsl.StreamInlet(found[0])


def test_a_protected_stream_says_of_itself_what_the_raw_one_says_and_no_serial_number(
    pylsl: Any,
) -> None:
    raw, name = f"raw-{os.getpid()}", f"protected-{os.getpid()}"
    outlet = raw_stream(pylsl, raw)

    async def work() -> Any:
        tracker, sink = open_tracker(f"lsl:{raw}"), open_sink(f"lsl:{name}")
        protector = Protector("gaussian:sigma_deg=1", tracker.rate_hz, tracker.space)
        async with Running(tracker, sink, protector):
            return await asyncio.to_thread(lambda: inlet_of(pylsl, name).info(60.0))

    info: Any = run(work())
    del outlet
    assert (info.nominal_srate(), info.channel_format()) == (RATE_HZ, pylsl.cf_float32)
    assert (info.type(), info.get_channel_labels()) == ("Gaze", list(LABELS))
    assert info.get_channel_units() == ["px", "normalized", "normalized", "px"]
    assert info.get_channel_types() == ["misc", "eyegaze", "eyegaze", "misc"]
    assert info.desc().child("acquisition").child_value("manufacturer") == "Pupil Labs"
    text = info.as_xml()
    assert "SECRET" not in text
    assert "Anna" not in text
    assert "serial" not in text


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
