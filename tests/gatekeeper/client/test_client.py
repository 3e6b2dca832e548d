"""The Python client against the real service: real sockets, the real core, a tracker whose gaze the
test chooses.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.client import Batch, Gaze, Rect, Target, connect
from gazeveil.gatekeeper.client.stream import LONGEST_WAIT_S, WireProtocol, stream_address
from gazeveil.gatekeeper.errors import Denied
from tests.support.gatekeeper_running import (
    ALL,
    KALEIDO,
    Running,
    TrackerTalk,
    free_port,
    running,
    until,
)
from tests.support.places import ROOT

EVERYTHING = Rect(0.0, 0.0, 360.0, 180.0)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("client") / "home") as found:
        yield found


@contextmanager
def looking(tracker: TrackerTalk) -> Iterator[None]:
    """Gaze that rests, jumps and rests without end, about as fast as a tracker sends it."""
    stop = threading.Event()

    def look() -> None:
        number = 0
        while not stop.is_set():
            tracker.look((100.0, 140.0, 180.0)[number % 3], 90.0, 0.4)
            number += 1
            stop.wait(0.02)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def refused(call: Any) -> str:
    with pytest.raises(Denied) as error:
        call()
    assert error.value.reason.endswith(".")
    return error.value.code


def test_questions_are_answered_as_in_the_process_of_the_gatekeeper(here: Running) -> None:
    token = here.app("asker")
    assert here.service is not None
    inside = here.service.keeper.app("asker")
    with here.tracker() as tracker, connect(here.address, token) as gaze:
        area = gaze.register_area("poster", 172.0, 82.0, 14.0, 14.0)
        assert (area.x_deg, area.y_deg, area.width_deg, area.height_deg) == (
            170.0,
            80.0,
            20.0,
            20.0,
        )
        for x in (100.0, 180.0, 100.0, 180.0, 100.0):
            tracker.look(x, 90.0, 0.6)
        tracker.settle(here)
        fixations = gaze.get_fixations(area)
        assert fixations == inside.get_fixations(area.id)
        assert [(f.kind, f.x_deg, f.y_deg) for f in fixations] == [("fixation", 182.5, 92.5)] * 2
        assert gaze.get_fixations(area, after=fixations[0].number) == fixations[1:]
        assert gaze.get_fixations(area, limit=1) == fixations[:1]
        assert (
            gaze.get_dwell_time(fixations[0])
            == gaze.get_dwell_time(fixations[0].number)
            == fixations[0].duration_ms
        )
        assert gaze.get_saccades(area) == inside.get_saccades(area.id)
        assert gaze.metrics(area) == inside.metrics(area.id)
        assert gaze.metrics(area).fixations == 2
        assert gaze.current_tile() == inside.current_tile()
        assert gaze.get_fixations(EVERYTHING) == ()
        assert gaze.get_saccades(EVERYTHING) == ()
        assert len(gaze.areas()) == 2, "a bare rectangle is registered once"
        gaze.remove_area(area)
        assert [one.width_deg for one in gaze.areas()] == [360.0]
        assert refused(lambda: gaze.metrics(area)) == "unknown"
        assert refused(lambda: gaze.get_dwell_time(10**9)) == "unknown"


def test_samples_arrive_until_the_owner_revokes(here: Running) -> None:
    name = "watcher"
    token = here.app(name)
    with here.tracker() as tracker, connect(here.address, token) as gaze, looking(tracker):
        batches: list[Batch] = []

        def read() -> None:
            for batch in gaze.follow(KALEIDO, batch=10):
                assert isinstance(batch, Batch)
                batches.append(batch)
                if len(batches) == 4:
                    here.owner.post(f"/v1/apps/{name}/revoke", json={})

        assert refused(read) == "revoked"
    assert 4 <= len(batches) < 500
    first = batches[0]
    assert first.t_ns.dtype == np.int64
    assert len(first) >= 10
    assert (np.diff(first.t_ns) > 0).all()
    assert first.valid.all()
    assert np.isfinite(first.x_deg).all()
    # Both angles: one alone meets a raw one by chance once in some 10,000 runs.
    raw = np.isin(np.round(first.x_deg, 3), (100.0, 140.0, 180.0))
    assert not (raw & (np.round(first.y_deg, 3) == 90.0)).any(), "no raw sample"
    assert [b.sequence for b in batches[:4]] == np.cumsum(
        [0, *(len(b) for b in batches[:3])]
    ).tolist(), "none is missing"


def test_an_event_loop_gets_samples_and_events_too(here: Running) -> None:
    token = here.app("loop")

    async def both(gaze: Gaze) -> tuple[int, list[Any]]:
        events = []
        async for event in gaze.on_async("saccade", mode="start-stop"):
            events.append(event)
            if len(events) == 4:
                break
        async for batch in gaze.follow_async(KALEIDO, batch=5):
            return len(batch), events
        raise AssertionError

    with here.tracker() as tracker, connect(here.address, token) as gaze, looking(tracker):
        count, events = asyncio.run(both(gaze))
    assert count >= 5
    assert [event["type"] for event in events if event["type"] != "event"] == ["saccade-start"] * 2
    assert all(
        set(event) == {"type", "t_ms"} for event in events if event["type"] == "saccade-start"
    )


def test_events_come_in_end_mode_with_their_landing_alone(here: Running) -> None:
    token = here.app("listener")
    with here.tracker() as tracker, connect(here.address, token) as gaze, looking(tracker):
        for number, event in enumerate(gaze.on("saccade")):
            assert set(event) == {"type", "kind", "number", "x_deg", "y_deg", "t_ms", "duration_ms"}
            assert event["t_ms"] % 100 == 0  # type: ignore[operator]
            if number == 2:
                break
        tiles = gaze.on("tile")
        assert {next(tiles)["type"] for _ in range(2)} == {"tile"}
        tiles.close()  # type: ignore[attr-defined]


@contextmanager
def answering(here: Running, app: str, lasts: str | None) -> Iterator[None]:
    """The wearer answers the next question of an app: yes for so long, or no."""

    def answer() -> None:
        until(lambda: here.owner.get("/v1/asks").json()["asks"])
        (ask,) = here.owner.get("/v1/asks").json()["asks"]
        if lasts is None:
            here.owner.delete(f"/v1/asks/{ask['id']}")
        else:
            yes = {"preset": ask["want"], "lasts": lasts, "ask": ask["id"]}
            here.owner.post(f"/v1/apps/{app}/grant", json=yes)

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    thread.join()


def test_an_app_asks_and_hears_the_answer(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "patient"}).json()["token"]
    with connect(here.address, token) as gaze:
        assert gaze.left() == 0
        with answering(here, "patient", None):
            assert gaze.ask("follow", every_s=0.05) == "refused"
        assert gaze.ask("follow", timeout_s=0.1, every_s=0.05) == "dismissed"
        with answering(here, "patient", "until-stopped"):
            assert gaze.ask("follow", every_s=0.05) == "granted"
        assert gaze.ask("follow") == "granted", "no question where the answer was yes"
        assert gaze.left() == float("inf")
        assert refused(lambda: next(gaze.follow(KALEIDO))) in ("scope", "mechanism")


def test_regions_numbers_and_pauses_are_pushed(here: Running) -> None:
    avatar = here.owner.post("/v1/apps", json={"name": "avatar"}).json()["token"]
    grant = {"preset": "follow", "lasts": "until-stopped"}
    here.owner.post("/v1/apps/avatar/grant", json=grant)
    regions: list[Any] = []
    pauses: list[Any] = []
    with here.tracker() as tracker, connect(here.address, avatar) as gaze:

        def read() -> None:
            for message in gaze.follow():
                assert not isinstance(message, Batch)
                regions.append(message["region"])

        def wait() -> None:
            pauses.extend(message["type"] for message in itertools.islice(gaze.on("paused"), 1))

        threads = [threading.Thread(target=one, daemon=True) for one in (read, wait)]
        for thread in threads:
            thread.start()
        until(lambda: regions)
        for x in (180.0, 130.0, 230.0):
            tracker.look(x, 90.0, 0.6)
        tracker.settle(here)
        until(lambda: {"at-you", "left"} <= set(regions))
    until(lambda: pauses == ["paused"])
    here.owner.post("/v1/apps/avatar/revoke", json={})


def test_numbers_of_targets_are_pushed_at_once_and_after_each_change(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "counts"}).json()["token"]
    grant = {"preset": "count", "lasts": "until-stopped"}
    here.owner.post("/v1/apps/counts/grant", json=grant)
    poster = Target("poster", 170.0, 80.0, 20.0, 20.0)
    with here.tracker() as tracker, connect(here.address, token) as gaze:
        numbers = gaze.observe([poster])
        target, first = next(numbers)
        assert (target, first.fixations, first.dwell_ms) == (poster, 0, 0)
        for x in (100.0, 180.0, 100.0):
            tracker.look(x, 90.0, 0.6)
        tracker.settle(here)
        after = next(after for _, after in numbers if after.fixations)
        assert after.fixations == 1
        assert after.dwell_ms >= 400
        numbers.close()  # type: ignore[attr-defined]


def test_a_wrong_token_and_a_service_that_is_not_there_are_said_in_words(here: Running) -> None:
    assert refused(lambda: connect(here.address, "gv_app_0123456789abcdef_wrong")) == "token"
    with Gaze(here.address, "gv_app_0123456789abcdef_wrong") as gaze:
        assert refused(lambda: next(gaze.follow(KALEIDO))) == "token"
        assert "wrong" not in repr(gaze)
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert refused(lambda: connect(nowhere, "t", timeout_s=1)) == "network"
    with Gaze(nowhere, "t", timeout_s=1) as gaze:
        assert refused(lambda: next(gaze.follow(KALEIDO, patience=1))) == "network"


def test_a_stream_comes_back_when_the_service_does(tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    batches: list[Any] = []
    ended: list[Denied] = []

    def read(gaze: Gaze) -> None:
        try:
            batches.extend(gaze.follow(KALEIDO, batch=2))
        except Denied as error:
            ended.append(error)

    with running(home, port=port) as first:
        gaze = connect(first.address, first.app("stayer"))
        thread = threading.Thread(target=read, args=(gaze,), daemon=True)
        with first.tracker() as tracker, looking(tracker):
            thread.start()
            until(lambda: len(batches) > 2)
    before = len(batches)
    with running(home, port=port) as second, second.tracker() as tracker, looking(tracker):
        until(lambda: len(batches) > before + 2, 60)
        assert ended == []
        second.owner.post("/v1/apps/stayer/revoke", json={})
        thread.join(60)
    assert [error.code for error in ended] == ["revoked"]


def test_the_lines_of_the_manual_run(here: Running, capsys: pytest.CaptureFixture[str]) -> None:
    manual = (ROOT / "docs" / "howto" / "gatekeeper" / "apps.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.+?)```", manual, re.DOTALL)[0].replace(
        "http://127.0.0.1:8765", here.address
    )
    token = here.owner.post("/v1/apps", json={"name": "manual"}).json()["token"]
    grant = {"preset": "choose", "lasts": "until-stopped"}
    here.owner.post("/v1/apps/manual/grant", json=grant)
    # The page speaks of a screen, this service of directions around the head.
    code = code.replace("-15, -5, 10, 10", "140, 80, 15, 15").replace(" 5, -5,", " 200, 80,")
    thread = threading.Thread(target=exec, args=(code, {"token": token}), daemon=True)
    with here.tracker() as tracker:
        thread.start()
        while thread.is_alive():
            tracker.look(100.0, 40.0, 0.4)
            tracker.look(147.0, 87.0, 1.2)
            time.sleep(0.2)
    assert capsys.readouterr().out == "lamp\n"


def test_waits_double_up_to_a_limit_and_what_is_final_is_not_tried_again() -> None:
    protocol = WireProtocol("t", {"what": "tile"})
    waits = [protocol.lost(OSError()) for _ in range(12)]
    assert 0.18 < waits[0] < 0.32
    assert waits[3] > 2 * waits[0]
    assert max(waits) <= 1.25 * LONGEST_WAIT_S
    protocol.heard('{"type": "subscribed", "id": 1}')
    assert protocol.lost(OSError()) < 0.32, "a connection that worked begins anew"
    for code, final in (
        (4001, True),
        (4003, True),
        (1008, True),
        (4029, False),
        (1012, False),
        (1006, False),
    ):
        lost = ConnectionClosedError(Close(code, ""), None)
        if final:
            assert refused(lambda lost=lost: WireProtocol("t", {}).lost(lost)) == "network"
        else:
            assert WireProtocol("t", {}).lost(lost) > 0
    ended = '{"type": "ended", "id": 1, "code": "shutdown", "reason": "later"}'
    assert WireProtocol("t", {}).heard(ended) is None
    assert stream_address("https://device.example") == "wss://device.example/v1/stream"


def test_without_the_extra_the_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("client", "client.client", "client.stream"):
        monkeypatch.delitem(sys.modules, f"gazeveil.gatekeeper.{name}")
    monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[service\]"):
        importlib.import_module("gazeveil.gatekeeper.client")


def test_the_client_loads_no_compiler_and_no_frame() -> None:
    wanted = "import sys, gazeveil.gatekeeper.client; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", wanted], capture_output=True, text=True, check=True
    ).stdout.split()
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {"numba", "scipy", "polars", "matplotlib", "sklearn", "sqlalchemy"}
    assert len(loaded) < 450


def test_leaving_a_loop_ends_the_subscription_at_the_service(here: Running) -> None:
    token = here.app("leaver", streams=1)
    with here.tracker() as tracker, connect(here.address, token) as gaze, looking(tracker):
        for _ in range(2):
            # The grant allows one stream, so the second begins only because the first has ended.
            stream = gaze.follow(KALEIDO, batch=1)
            next(stream)
            stream.close()  # type: ignore[attr-defined]
            end = time.monotonic() + 90  # kernels may be compiled meanwhile
            while any(
                app["streams"]
                for app in here.owner.get("/v1/apps").json()["apps"]
                if app["app"] == "leaver"
            ):
                assert time.monotonic() < end
                time.sleep(0.02)
    assert ALL["streams"] > 1
