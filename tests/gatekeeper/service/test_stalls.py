"""Old gaze decides nothing: after a stall of the service, of the driver or of the line no choice,
no event and no sample comes of looks that are long over; a tracker's clock may be set meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper import Policy, blocks
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import TrackerClock
from tests.support.gatekeeper_running import ALL, GAUSSIAN, Process, Running, Talk, free_port, until

MS = 10**6
S = 10**9
STEP_NS = 10 * MS


def block(t_ns: Any) -> Block:
    t = np.atleast_1d(np.asarray(t_ns, dtype=np.int64))
    return Block(t, np.zeros(len(t)), np.zeros(len(t)), np.ones(len(t), dtype=np.bool_))


class Line:
    """A tracker at 100 Hz, its clock, and the line to a device: what of it the device takes."""

    def __init__(self, ahead_ns: int = 5 * S) -> None:
        self.clock = TrackerClock(200 * MS)
        self.now_ns, self.ahead_ns = 1000 * S, ahead_ns
        self.taken: list[tuple[int, int]] = []  # the device's own time of a sample, and its age

    def arrive(self, recorded_ns: Any) -> int:
        """Samples arrive now that were recorded at some time; how many are taken."""
        recorded = np.atleast_1d(np.asarray(recorded_ns))
        t_ns, now_ns = recorded + self.ahead_ns, self.now_ns
        # As the service does: one that is as it should be is followed by itself.
        fresh = (
            [one]
            if len(t_ns) == 1 and (one := self.clock.follow_one(int(t_ns[0]), now_ns)) is not None
            else self.clock.fresh(self.clock.follow(block(t_ns), now_ns), now_ns).t_ns
        )
        self.taken += [
            (int(t), now_ns - int(r))
            for t, r in zip(fresh, recorded[len(recorded) - len(fresh) :], strict=True)
        ]
        return len(fresh)

    def live(self, seconds: float, delay_ns: int = 0) -> int:
        """Samples come as they are recorded; how many are taken."""
        taken = 0
        for _ in range(round(seconds * 100)):
            self.now_ns += STEP_NS
            taken += self.arrive(self.now_ns - delay_ns)
        return taken

    def stalled(self, seconds: float, each: int = 6, lost: slice = slice(0)) -> int:
        """Nothing comes for a time, then all of it at once, but for what was lost; how many are
        taken.
        """
        waiting = self.now_ns + STEP_NS * np.arange(1, round(seconds * 100) + 1)
        self.now_ns = int(waiting[-1])
        waiting = np.delete(waiting, lost)
        taken = 0
        for begin in range(0, len(waiting), each):
            self.now_ns += MS // 10
            taken += self.arrive(waiting[begin : begin + each])
        return taken

    def sound(self) -> bool:
        """Whether nothing old was taken, and the device's own time grew with the time."""
        t_ns, age_ns = np.array(self.taken).T
        return bool((age_ns <= 210 * MS).all() and (np.diff(t_ns) > 0).all())


#: Times that jump ahead within what waited are no clock that was set.
@pytest.mark.parametrize(
    ("seconds", "lost"), [*((s, slice(0)) for s in (0.5, 5, 20)), (20, slice(200, 1200))]
)
def test_what_waited_in_a_stall_is_not_taken(seconds: float, lost: slice) -> None:
    line = Line()
    assert line.live(2) >= 175
    assert line.stalled(seconds, lost=lost) <= 25
    assert line.live(2) == 200
    assert line.sound()


@pytest.mark.parametrize(("seconds", "each"), [(12, 6), (60, 2)])
def test_what_waited_before_a_tracker_came_is_not_taken(seconds: float, each: int) -> None:
    line = Line()
    line.stalled(seconds, each)
    assert line.taken == []
    assert line.live(2) >= 175
    assert line.sound()


def test_a_driver_that_stays_behind_is_not_believed() -> None:
    """Its clock was not set: times go on where they stopped, three seconds behind."""
    line = Line()
    line.live(2)
    line.now_ns += 3 * S
    assert line.live(60, delay_ns=3 * S) == 0
    assert line.clock.age_ns > 2.9 * S
    assert line.live(1) == 100
    assert line.sound()


@pytest.mark.parametrize("jump_ns", [2 * 3600 * S, -2 * 3600 * S, 5 * S, -5 * S, -300 * MS])
def test_a_clock_that_is_set_and_comes_back_is_followed_both_ways(jump_ns: int) -> None:
    line = Line()
    line.live(2)
    line.ahead_ns += jump_ns
    assert line.live(2) >= 175
    line.ahead_ns -= jump_ns
    assert line.live(2) >= 175
    assert line.sound()
    assert abs(line.taken[-1][0] - line.taken[0][0] - 6 * S) < 1 * S


def test_clocks_that_drift_apart_do_not_age_gaze() -> None:
    line = Line()
    line.live(2)
    taken = 0
    for _ in range(600 * 10):
        line.now_ns += 100 * MS
        line.ahead_ns -= 30_000  # 300 parts in a million
        taken += line.arrive(line.now_ns)
    assert taken == 6000


def test_a_line_that_jitters_loses_nothing_once_it_is_known() -> None:
    rng = np.random.default_rng(1)
    line = Line()
    line.live(2)
    taken = sent = 0
    for count in rng.integers(1, 15, 200):
        times_ns = line.now_ns + STEP_NS * np.arange(1, count + 1)
        line.now_ns, sent = int(times_ns[-1]), sent + count
        taken += line.arrive(times_ns)
    assert taken == sent
    assert line.sound()


# --- through the front door
# --------------------------------------------------------------------------------------------------

BUY = {"name": "buy", "x_deg": 80, "y_deg": 70, "width_deg": 40, "height_deg": 40}


class Driver:
    """A driver that goes on at 100 Hz, whatever the service does; where its wearer looks is set."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.place = (200.0, 90.0)
        self.ahead_ns = 0
        self._stop = threading.Event()
        self.running = threading.Event()
        self.running.set()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        waiting: list[tuple[int, float, float]] = []
        rng = np.random.default_rng(1)
        while not self._stop.is_set():
            x, y = np.asarray(self.place) + rng.normal(0, 0.05, 2)
            waiting.append((time.monotonic_ns() + self.ahead_ns, x, y))
            if self.running.is_set():
                t, xs, ys = (np.array(column) for column in zip(*waiting, strict=True))
                waiting.clear()
                with contextlib.suppress(ConnectionClosed):
                    self._talk.socket.send(blocks.pack(blocks.block(t, xs, ys, True)))
            time.sleep(0.01)

    def __enter__(self) -> Driver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)


@contextmanager
def shop(home: Path) -> Iterator[tuple[Process, Driver, Talk]]:
    """A service as it is, a driver, and an app whose button is chosen by resting the eyes on it."""
    home.mkdir(mode=0o700)
    policy = home.parent / "policy.toml"
    policy.write_text(Policy({"shop": ALL}, consent=True).text())
    settings = {"LATE_MS": "200", "TRACKER": "websocket", "POLICY": str(policy)}
    environment = {f"GAZEVEIL_{name}": value for name, value in settings.items()}
    with Process(home, free_port(), **environment) as process:
        here = Running(process.address, "")
        token = process.owner().post("/v1/apps", json={"name": "shop"}).json()["token"]
        tracker = (home / "tracker-token").read_text().strip()
        with (
            here.talk(tracker, "/v1/tracker") as line,
            here.talk(token) as talk,
            Driver(line) as driver,
        ):
            for number, what in ((2, "fixation"), (3, "samples")):
                named = {"mechanism": GAUSSIAN} if what == "samples" else {}
                assert talk.subscribe(number, what=what, **named)["type"] == "subscribed"
            show_button(talk)
            look_and_choose(talk, driver)
            yield process, driver, talk


def show_button(talk: Talk) -> None:
    wish = {"what": "select", "targets": [BUY], "by": "dwell", "dwell_ms": 600}
    assert talk.subscribe(1, **wish)["type"] == "subscribed"


def look_and_choose(talk: Talk, driver: Driver) -> None:
    """A look that is not over chooses, so the test sees something at all; then away again."""

    seen = set[str]()

    def chosen() -> bool:
        driver.place = (100.0, 90.0) if driver.place[0] > 150 else (200.0, 90.0)
        seen.update(told_of_button(talk, 2.0))
        return seen >= {"chosen", "event", "samples"}

    until(chosen, 60)
    driver.place = (200.0, 90.0)
    told_of_button(talk, 1.0)
    show_button(talk)


def told_of_button(talk: Talk, seconds: float) -> set[str]:
    """What comes of looks at the button: a choice, an event, samples."""
    found, end = set[str](), time.monotonic() + seconds
    with contextlib.suppress(TimeoutError):
        while (left := end - time.monotonic()) > 0:
            message = talk.hear(left)
            near = np.abs(np.asarray(message.get("x_deg"), dtype=np.float64) - 100.0) < 50.0
            if message.get("code") == "chosen" or near.any():
                found.add(message.get("code", message["type"]))
    return found


def look_about(driver: Driver, seconds: float) -> None:
    """The wearer looks at the button and away again, and so on."""
    for place in ((100.0, 90.0), (200.0, 90.0)) * max(1, round(seconds / 2.5)):
        driver.place = place
        time.sleep(1.25)
    driver.place = (200.0, 90.0)


@pytest.mark.parametrize("seconds", [5, pytest.param(20, marks=pytest.mark.heavy)])
def test_a_service_that_was_stopped_tells_nothing_of_looks_that_are_over(
    tmp_path: Path, seconds: float
) -> None:
    with shop(tmp_path / "home") as (process, driver, talk):
        os.kill(process.process.pid, signal.SIGSTOP)
        try:
            look_about(driver, seconds)
        finally:
            os.kill(process.process.pid, signal.SIGCONT)
        assert told_of_button(talk, 2.0) == set()
        look_and_choose(talk, driver)


def test_a_driver_that_was_stopped_tells_nothing_of_looks_that_are_over(tmp_path: Path) -> None:
    with shop(tmp_path / "home") as (_, driver, talk):
        driver.running.clear()
        look_about(driver, 5)
        driver.running.set()
        assert told_of_button(talk, 2.0) == set()
        driver.ahead_ns = 2 * 3600 * S
        until(lambda: talk.until("paused")["reason"] == "clock", 60)
        talk.until("resumed")
        look_and_choose(talk, driver)
        driver.ahead_ns = 0
        look_and_choose(talk, driver)
