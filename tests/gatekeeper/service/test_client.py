"""The Python client against the real service: real sockets, the real core, a tracker whose gaze the
test chooses.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from gazeveil.gatekeeper import Grant
from gazeveil.gatekeeper.client import Batch, Gaze, Rect, Target, connect
from gazeveil.gatekeeper.client.transport import LONGEST_WAIT_S, WireProtocol, stream_address
from gazeveil.gatekeeper.errors import Denied
from tests.support.gatekeeper_running import (
    KALEIDO,
    Running,
    Talk,
    TrackerTalk,
    free_port,
    running,
    timeless,
    until,
)
from tests.support.places import ROOT

EVERYTHING = Rect(0.0, 0.0, 360.0, 180.0)


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


def test_questions_are_answered_as_in_the_process_of_the_gatekeeper(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.app("asker")
    inside = here.service.keeper.app("asker")
    with connect(here.address, token) as gaze:
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
        assert (gaze.metrics(area).fixations, gaze.current_tile()) == (2, inside.current_tile())
        assert (gaze.get_fixations(EVERYTHING), gaze.get_saccades(EVERYTHING)) == ((), ())
        assert len(gaze.areas()) == 2, "a bare rectangle is registered once"
        gaze.remove_area(area)
        assert [one.width_deg for one in gaze.areas()] == [360.0]
        assert refused(lambda: gaze.metrics(area)) == "unknown"
        assert refused(lambda: gaze.get_dwell_time(10**9)) == "unknown"


def test_events_come_in_end_mode_with_their_landing_alone(
    here: Running, tracker: TrackerTalk
) -> None:
    with connect(here.address, here.app()) as gaze, looking(tracker):
        starts = gaze.on("saccade-start")
        assert set(next(starts)) == {"type", "t_ms"}
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


def test_an_app_asks_and_hears_the_answer(here: Running, tracker: TrackerTalk) -> None:
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


def test_regions_numbers_and_pauses_are_pushed(here: Running, tracker: TrackerTalk) -> None:
    avatar = here.owner.post("/v1/apps", json={"name": "avatar"}).json()["token"]
    here.owner.post("/v1/consent", json={"on": True})
    here.owner.post("/v1/apps/avatar/grant", json={"preset": "follow", "lasts": "until-stopped"})
    regions: list[Any] = []
    pauses: list[Any] = []
    with connect(here.address, avatar) as gaze:

        def read() -> None:
            with contextlib.suppress(Denied):
                for message in gaze.follow():
                    assert not isinstance(message, Batch)
                    regions.append(message["region"])

        def wait(kind: str) -> None:
            pauses.extend(message["type"] for message in itertools.islice(gaze.on(kind), 1))

        for work, *given in ((read,), (wait, "paused"), (wait, "resumed")):
            threading.Thread(target=work, args=given, daemon=True).start()
        until(lambda: regions)
        for x in (180.0, 130.0, 230.0):
            tracker.look(x, 90.0, 0.6)
        tracker.settle(here)
        until(lambda: {"at-you", "left"} <= set(regions))
        until(lambda: set(pauses) == {"paused", "resumed"})
    here.owner.post("/v1/apps/avatar/revoke", json={})


def test_the_end_of_a_grant_is_told_where_nothing_is_open(
    here: Running, tracker: TrackerTalk
) -> None:
    """Who waited for pauses waited for ever."""
    with connect(here.address, here.app("ender", "follow")) as gaze:
        heard: list[Any] = []
        thread = gaze.add_event_listener("region", heard.append)
        refusal = later(lambda: next(m for m in gaze.on("paused") if m["reason"] == "none"))
        end = later(lambda: dict(next(gaze.on("ended"))))
        theirs = here.service.broadcaster.of
        until(lambda: heard and [c.granted for c in theirs("ender")] == [True] * 3)
        assert gaze.me()["t_ms"] % 100 == 0
        here.owner.post("/v1/apps/ender/revoke", json={})
        assert refusal.get(timeout=60) == "revoked"
        told = {"type": "ended", "code": "revoked"}
        told["reason"] = "The wearer has stopped this app: its grant was revoked."
        assert end.get(timeout=60) == told
        thread.join(60)
        assert heard[-1] == told
        assert heard[0]["kind"] == "region"
        assert gaze.me()["t_ms"] is None, "the time of another wearer's session is nobody's"


def test_numbers_of_targets_are_pushed_at_once_and_after_each_change(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.owner.post("/v1/apps", json={"name": "counts"}).json()["token"]
    grant = {"preset": "count", "lasts": "until-stopped"}
    here.owner.post("/v1/apps/counts/grant", json=grant)
    poster = Target("poster", 170.0, 80.0, 20.0, 20.0)
    with connect(here.address, token) as gaze:
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


def test_a_wrong_token_and_a_service_that_is_not_there_are_said_in_words(
    here: Running, tracker: TrackerTalk
) -> None:
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
    thread = threading.Thread(target=exec, args=(code, {"token": token}), daemon=True)
    with here.tracker() as tracker:
        thread.start()
        for _ in range(60):
            tracker.look(*NOWHERE, 0.4)
            tracker.look(135.0, 90.0, 1.2)
            tracker.talk.say(type="confirm")
            thread.join(0.2)
            if not thread.is_alive():
                break
    assert capsys.readouterr().out == "left\n"


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


def test_the_types_check_a_users_file(tmp_path: Path) -> None:
    deno = shutil.which(
        "deno", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if deno is None:
        pytest.skip("deno is not installed: the types of the JavaScript client are not checked")
    web = ROOT / "src" / "gazeveil" / "gatekeeper" / "web"
    (tmp_path / "deno.json").write_text(
        '{"compilerOptions": {"strict": true, "lib": ["esnext", "dom", "dom.iterable"]}}'
    )
    page = tmp_path / "page.ts"
    page.write_text(
        f'// @ts-types="{web}/client.d.ts"\nimport gaze from "{web}/client.js";\n{PAGE}'
    )
    command = [deno, "check", "--config", str(tmp_path / "deno.json"), str(page)]
    environment = {**os.environ, "DENO_DIR": str(tmp_path / "deno"), "NO_COLOR": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr


#: What an app's developer writes; a line that must not pass says so.
PAGE = """
if ((await gaze.ask("choose")) === "granted") {
  const button = await gaze.choose(document.querySelectorAll("button"), { by: "dwell" });
  button.click();
}
const open = await gaze.observe(document.querySelectorAll("img"), ({ thing, dwell_ms }) => {
  console.log(thing.alt, dwell_ms.toFixed());
});
open.close();
await gaze.on("paused", ({ reason }) => console.log(reason));
await gaze.on("ended", ({ kind, code }) => console.log(kind, code));
for await (const sent of gaze.follow()) {
  console.log("region" in sent ? sent.region : sent.x_deg[0]);
  // @ts-expect-error: what is no avatar has no region
  console.log(sent.region, sent.x_deg);
}
const { t_ms } = await gaze.me();
console.log(t_ms === null ? "no grant" : t_ms.toFixed());
// @ts-expect-error: there is no such event
await gaze.on("blink", () => {});
"""


def test_the_client_loads_no_compiler_and_no_frame() -> None:
    wanted = "import sys, gazeveil.gatekeeper.client; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", wanted], capture_output=True, text=True, check=True
    ).stdout.split()
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {"numba", "scipy", "polars", "matplotlib", "sklearn"}
    assert len(loaded) < 450


def waiting(here: Running, app: str) -> bool:
    return any(
        channel.announced
        for connection in here.service.broadcaster.of(app)
        for channel in tuple(connection.channels.values())
    )


def later(call: Any) -> queue.Queue[str]:
    """What a call that waits gives, or the code it is refused with; on a thread that nobody waits
    for.
    """
    found: queue.Queue[str] = queue.Queue()

    def run() -> None:
        try:
            found.put(call())
        except Denied as no:
            found.put(no.code)

    threading.Thread(target=run, daemon=True).start()
    return found


def test_the_python_client_waits_for_the_choice(here: Running, tracker: TrackerTalk) -> None:
    token, name = selecting(here), here.last
    with connect(here.address, token) as gaze:
        found = later(lambda: gaze.choose(PYTHON_TARGETS).name)
        until(lambda: waiting(here, name))
        look(here, tracker, ON_LAMP)
        assert found.empty()
        confirm(here, tracker, "tracker")
        assert found.get(timeout=60) == "lamp"
        until(lambda: not waiting(here, name))
        found = later(lambda: gaze.choose(PYTHON_TARGETS, by="dwell", dwell_ms=500).name)
        until(lambda: waiting(here, name))
        look(here, tracker, NOWHERE, 1.5)  # the pause after a choice
        look(here, tracker, ON_LAMP)
        assert found.get(timeout=60) == "lamp"
        until(lambda: not waiting(here, name))
        assert later(lambda: gaze.choose([])).get(timeout=60) == "parameter"
        found = later(lambda: gaze.choose(PYTHON_TARGETS).name)
        until(lambda: waiting(here, name))
        here.owner.post(f"/v1/apps/{name}/revoke", json={})
        assert found.get(timeout=60) == "revoked"


# --- Selection by gaze over the service: its WebSocket, and whose gesture counts.
# --------------------------------------------------------------------------------------------------


TARGETS = [
    {"name": "radio", "x_deg": 100.0, "y_deg": 80.0, "width_deg": 10.0, "height_deg": 10.0},
    {"name": "lamp", "x_deg": 140.0, "y_deg": 80.0, "width_deg": 10.0, "height_deg": 10.0},
]
PYTHON_TARGETS = [Target(**one) for one in TARGETS]  # type: ignore[arg-type]
ON_LAMP, NOWHERE = (145.0, 85.0), (230.0, 120.0)


CHOOSE = Grant(frozenset({"select"}), streams=0, areas=0, calls_per_minute=100_000)


def selecting(here: Running, **changes: Any) -> str:
    """A new app that may select and nothing else."""
    return here.app(grant=CHOOSE, **changes)


def look(
    here: Running, tracker: TrackerTalk, place: tuple[float, float], seconds: float = 1.0
) -> None:
    """Come from elsewhere and rest on a place."""
    tracker.look(*NOWHERE, 0.4)
    tracker.look(*place, seconds)
    worked_off(here, tracker)


def worked_off(here: Running, tracker: TrackerTalk) -> None:
    """Wait until the core has seen all that was sent so far; the channel keeps the order."""
    mark = TrackerTalk.latest_ns + tracker.step_ns
    seen = threading.Event()
    watching = here.service.keeper.watch(lambda t_ns, *_: seen.set() if mark in t_ns else None)
    tracker.send(np.nan, np.nan, valid=False)  # a lost sample says nothing about the eye
    assert seen.wait(30)
    watching.close()


def confirm(here: Running, tracker: TrackerTalk, way: str) -> None:
    if way == "tracker":
        tracker.talk.say(type="confirm")
        worked_off(here, tracker)
    else:
        assert here.owner.post("/v1/confirm").status_code == 204


def silent(talk: Talk) -> bool:
    """Whether nothing has come but the answer to a ping."""
    talk.say(type="ping")
    return talk.hear() == {"type": "pong"}


@pytest.mark.parametrize("way", ["tracker", "owner"])
def test_a_gesture_of_the_platform_tells_the_choice_and_ends_it(
    here: Running, tracker: TrackerTalk, way: str
) -> None:
    with here.talk(selecting(here)) as talk:
        assert talk.subscribe(what="select", targets=TARGETS) == {
            "type": "subscribed",
            "id": 1,
            "what": "select",
        }
        look(here, tracker, ON_LAMP)
        assert silent(talk)
        look(here, tracker, NOWHERE)
        confirm(here, tracker, way)
        assert silent(talk), "a gesture that meant nothing of the app's is not told"
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, way)
        assert talk.hear() == {"type": "event", "id": 1, "kind": "choice", "target": "lamp"}
        page = here.owner.get("/v1/audit", params={"last": 20})
        rows = [row["detail"] for row in page.json()["entries"] if row["kind"] == "choice"]
        assert rows[-1] == {"by": "confirm"}, "that there was a choice, and not which"
        assert "lamp" not in page.text
        assert talk.hear() == {
            "type": "ended",
            "id": 1,
            "code": "chosen",
            "reason": "The wearer has chosen.",
        }
        confirm(here, tracker, way)
        assert silent(talk)
        assert talk.subscribe(what="select", targets=TARGETS)["type"] == "subscribed", (
            "the number is free again"
        )


def messages(
    here: Running, tracker: TrackerTalk, places: list[tuple[float, float]], on: tuple[float, float]
) -> list[str]:
    """Every byte that an app with `select` alone is sent while a wearer looks about and then
    chooses.
    """
    app = f"twin-{time.monotonic_ns()}"
    token = here.app(app, grant=CHOOSE)
    found: list[str] = []
    with here.talk(None) as talk, here.client(token) as client:
        talk.say(type="hello", token=token)
        talk.say(type="subscribe", id=1, what="select", targets=TARGETS)
        for number, what in enumerate(("fixation", "saccade", "pursuit", "tile"), 2):
            talk.say(type="subscribe", id=number, what=what)
        for place in places:
            look(here, tracker, place, 0.6)
            talk.say(type="ping")
            answers = [
                client.get(path)
                for path in (
                    "/v1/me",
                    "/v1/tile",
                    "/v1/areas",
                    "/v1/areas/1/metrics",
                    "/v1/fixations/1/dwell",
                )
            ]
            found += [f"{answer.status_code} {timeless(answer.text)}" for answer in answers]
        look(here, tracker, on)
        confirm(here, tracker, "owner")
        while not found or '"chosen"' not in found[-1]:
            found.append(timeless(str(talk.socket.recv(timeout=60))))
    pauses = ('{"type":"paused"', '{"type":"resumed"')  # of the tracker, told to all apps
    return [text.replace(app, "APP") for text in found if not text.startswith(pauses)]


def test_two_wearers_with_the_same_choice_send_an_app_the_same_bytes(
    here: Running, tracker: TrackerTalk
) -> None:
    about = [(105.0, 85.0), (144.0, 84.0), (60.0, 40.0), (105.0, 85.0), (300.0, 150.0)]
    one = messages(here, tracker, about, (141.5, 81.5))
    other = messages(here, tracker, [NOWHERE] * 5, (148.5, 88.5))
    assert one == other
    assert sum('"target":"lamp"' in text for text in one) == 1
    control = messages(here, tracker, about, (105.0, 85.0))
    assert control != one
    assert [text.replace("radio", "lamp") for text in control] == one


def test_a_gesture_of_an_app_is_refused(here: Running, tracker: TrackerTalk) -> None:
    """The attack: the app presses for the wearer, to hear at once what is looked at."""
    token = selecting(here)
    with here.talk(token) as talk:
        talk.subscribe(what="select", targets=TARGETS)
        look(here, tracker, ON_LAMP)
        address = here.address + "/v1/confirm"
        for headers, status in (
            ({"Authorization": f"Bearer {token}"}, 403),
            ({}, 401),
            ({"Authorization": f"Bearer {token}", "X-Gazeveil": "1"}, 403),
            (
                {
                    "Authorization": f"{here.owner.headers['authorization']}",
                    "Origin": "https://shop.example",
                },
                403,
            ),
        ):
            assert httpx.post(address, headers=headers).status_code == status
        with here.talk(None, "/v1/tracker") as other:
            other.say(type="hello", token=token)
            assert other.hear()["code"] == "role"
        talk.say(type="confirm")
        assert talk.hear()["code"] == "message"
        assert silent(talk)
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, "owner")
        assert talk.hear()["target"] == "lamp"
