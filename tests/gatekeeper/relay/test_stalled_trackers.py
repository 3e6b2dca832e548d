"""Every tracker passes the kit with its stalls, sleeps of the driver and clocks that are set: those
of laboratories over their own protocols, on real sockets.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.conformance import CheckResult
from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.simulated import SimulatedTracker
from gazeveil.relay.conformance import Driver, check_tracker
from gazeveil.relay.trackers.lsl.tracker import load_pylsl
from tests.support.fake_neon import FakeNeon
from tests.support.fake_pupil import FakePupil, gaze

NAMES = ("simulated", "mouse", "replay", "pupil", "neon", "lsl")
RATE_HZ = 120.0


@contextmanager
def sending(send: Callable[[float], object], now_s: Callable[[], float]) -> Iterator[Driver]:
    """A driver that measures all the time, and sends what waited when it wakes."""
    driver, over = Driver(), threading.Event()

    def work() -> None:
        waiting: list[float] = []
        while not over.wait(1 / RATE_HZ):
            waiting.append(now_s() + driver.ahead_s)
            while waiting and not driver.asleep:
                send(waiting.pop(0))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield driver
        finally:
            over.set()
        done.result()


@contextmanager
def source(name: str, folder: Path) -> Iterator[tuple[str, Driver | None]]:
    """How a tracker is written, and its driver where one sends to it."""
    if name == "pupil":
        with (
            FakePupil() as pupil,
            sending(lambda t_s: pupil.send(gaze(t_s, 0.5, 0.5)), pupil.now_s) as driver,
        ):
            yield f"pupil://127.0.0.1:{pupil.port}?rate_hz={RATE_HZ}", driver
    elif name == "neon":
        packet = struct.pack("!ffB", 800.0, 600.0, 255)
        with FakeNeon() as phone, sending(lambda t_s: phone.send(t_s, packet), time.time) as driver:
            yield f"neon://{phone.address}?rate_hz={RATE_HZ}", driver
    elif name == "lsl":
        try:
            pylsl = load_pylsl()
        except MissingExtraError as error:
            pytest.skip(str(error))
        stream = f"stalled-{os.getpid()}"
        info = pylsl.StreamInfo(stream, "Gaze", 2, RATE_HZ, pylsl.cf_float32, stream)
        channels = info.desc().append_child("channels")
        for label in ("x_deg", "y_deg"):
            channels.append_child("channel").append_child_value("label", label)
        outlet = pylsl.StreamOutlet(info)
        with sending(lambda t_s: outlet.push_sample([1.0, 2.0], t_s), pylsl.local_clock) as driver:
            yield f"lsl:{stream}", driver
    elif name == "replay":
        path = folder / "one.parquet"
        gazeveil.simulate(1, 1, 90, RATE_HZ, seed=1).write(path)
        yield f"replay:{path}", None
    else:
        yield name, None


def problems(found: list[CheckResult]) -> list[str]:
    return [problem for result in found for problem in result.problems]


@pytest.mark.parametrize("stalls_s", [(1.5,), pytest.param((5, 20), marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_old_counts_as_new(name: str, stalls_s: tuple[float, ...], tmp_path: Path) -> None:
    with source(name, tmp_path) as (text, driver):
        assert problems(check_tracker(lambda: open_tracker(text), driver, stalls_s)) == []


STOPPED = """
import os, signal, sys
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay.conformance import check_tracker

def stop(seconds):
    print(seconds, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

for result in check_tracker(lambda: open_tracker(sys.argv[1]), None, (5, 20), stop):
    print(*result.problems, end="", flush=True)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_nothing_old_counts_as_new_after_sigstop(name: str, tmp_path: Path) -> None:
    with (
        source(name, tmp_path) as (text, _),
        subprocess.Popen(
            [sys.executable, "-c", STOPPED, text], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for seconds in (5, 20):
            assert process.stdout.readline() == f"{seconds}\n"
            time.sleep(seconds)
            process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == ""
    assert process.returncode == 0


class Restamping(SimulatedTracker):
    """Says when gaze came, not when it was measured: after a stall all of it looks new."""

    async def samples(self) -> AsyncIterator[Block | None]:
        async for part in super().samples():
            if part is not None:
                ago_ns = 1000 * np.arange(len(part) - 1, -1, -1)
                yield replace(part, t_ns=time.monotonic_ns() - ago_ns)


def test_a_tracker_that_stamps_times_on_arrival_fails_the_kit() -> None:
    found = check_tracker(lambda: Restamping(rate_hz=100.0, seed=1))
    assert "came as if they were new" in " ".join(problems(found))
