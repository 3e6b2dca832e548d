"""The database is gone and the wearer presses OFF: in force at once, nothing leaves afterwards, and
no restart gives it again. And of what is given and taken, what the owner did last holds.

The attacks are the ones that worked: PostgreSQL stopped, a PostgreSQL that hangs, an SQLite file
that another program has locked; with feeds that cost nothing (fixations, tiles), which no ledger
used to stop. A full disk: `tests/gatekeeper/ledger/test_file_lost.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper import Policy
from gazeveil.gatekeeper.blocks import block
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from gazeveil.gatekeeper.service.store import ROOM_BYTES, Revocation, Revocations, read_policy
from tests.support.gatekeeper_running import (
    KALEIDO,
    Process,
    Running,
    Talk,
    TrackerTalk,
    free_port,
    running,
    until,
)
from tests.support.postgres import Server, postgres, quick_folder  # noqa: F401
from tests.support.stalls import SteadyClock

#: A press takes 0.4 s where it cannot be written and 0.2 s more where samples hold the lock. One
#: that waited for the database would take the five seconds of its patience at least.
AT_ONCE_S = 3.0

#: Feeds end two seconds after the ledger fell silent, at the next look at the clock. Without that
#: look, those that cost nothing would never end, and the others not before the database gives up.
SILENT_S = 4.0

#: What had left before a press may be heard so much later.
ON_ITS_WAY_S = 0.5


class Gaze:
    """A tracker whose gaze jumps three times a second, so that fixations and tiles never cease."""

    def __init__(self, tracker: TrackerTalk) -> None:
        self._tracker = tracker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        places = [(90.0, 60.0), (250.0, 120.0), (170.0, 90.0)]
        at = 0
        while not self._stop.wait(2 / 120):
            x, y = places[(at // 20) % 3]
            with contextlib.suppress(ConnectionClosed):
                self._tracker.send(np.full(2, x), y)
            at += 2

    def __enter__(self) -> Gaze:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)


class Ear:
    """Hears a connection and notes when which message came."""

    def __init__(self, talk: Talk, clock: SteadyClock) -> None:
        self._talk, self.clock = talk, clock
        self.heard: list[tuple[float, dict[str, Any]]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(Exception):
            while True:
                message = self._talk.hear(60)
                self.heard.append((self.clock(), message))

    def of(self, *kinds: str) -> list[tuple[float, dict[str, Any]]]:
        return [(t, m) for t, m in self.heard if m["type"] in kinds]

    def given(self) -> list[tuple[float, dict[str, Any]]]:
        return self.of("event", "tile", "samples", "saccade-start")

    def ends(self) -> set[str]:
        """The codes of all ends, once all three feeds have ended."""
        until(lambda: sum("id" in m for _, m in self.of("ended")) == 3, 20)
        return {m["code"] for _, m in self.of("ended")}

    def nothing_since(self, time_s: float) -> bool:
        """Whether nothing was given after a time, nor on any feed after its last word."""
        last = {m.get("id"): at for at, (_, m) in enumerate(self.heard) if m["type"] == "ended"}
        last.pop(None, None)  # that the grant has ended is said beside
        late = [m for at, (_, m) in enumerate(self.heard) if at > last.get(m.get("id"), at)]
        return not late and all(t <= time_s + ON_ITS_WAY_S for t, _ in self.given())


@contextmanager
def streaming(here: Running) -> Iterator[Ear]:
    """An app with three feeds: fixations and tiles, which cost nothing, and samples, which do."""
    token = here.app("shop")
    with SteadyClock() as clock, here.tracker() as tracker, here.talk(token) as talk, Gaze(tracker):
        for number, wish in enumerate(
            ({"what": "fixation"}, {"what": "tile"}, {"what": "samples", "mechanism": KALEIDO})
        ):
            assert talk.subscribe(number, **wish)["type"] == "subscribed"
        ear = Ear(talk, clock)
        wanted = {"fixation", "samples"}
        until(lambda: {m.get("kind") or m["type"] for _, m in ear.given()} >= wanted)
        yield ear


def service_of(here: Running) -> Service:
    assert here.service is not None
    return here.service


def press(here: Running, path: str, body: object = None) -> dict[str, Any]:
    """The owner's press, which is answered at once."""
    method = "DELETE" if path == "/v1/apps/shop" else "POST"
    with SteadyClock() as clock:
        answer = here.owner.request(method, path, json=body)
        assert clock() < AT_ONCE_S
    assert answer.status_code == 200
    return dict(answer.json())


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


@contextmanager
def hanging(server: Server) -> Iterator[None]:
    """PostgreSQL that keeps its connections and answers nobody."""
    first = int((server.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    # The first process stops first and goes on last: meanwhile none of its children is new, and
    # none that has ended is gone from the list.
    pids = [first]
    os.kill(first, signal.SIGSTOP)
    try:
        command = ["ps", "-o", "pid=", "--ppid", str(first)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for pid in map(int, found):
            os.kill(pid, signal.SIGSTOP)
            pids.append(pid)
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def breakable(
    how: str, folder: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Running, Any]]:
    """A service, and how its database breaks."""
    if how == "locked":
        with running(folder / "home") as here:
            yield here, lambda: locked(folder / "home" / "gatekeeper.sqlite")
        return
    server: Server = request.getfixturevalue("postgres")
    with running(folder / "home", database=server.fresh()) as here:
        yield here, lambda: (stopped if how == "stopped" else hanging)(server)


@pytest.mark.parametrize("how", ["stopped", "hanging", "locked"])
def test_off_is_in_force_at_once_while_the_database_does_not_answer(
    how: str, quick_folder: Path, request: pytest.FixtureRequest
) -> None:
    with breakable(how, quick_folder, request) as (here, breaking), streaming(here) as ear:
        with breaking():
            answer = press(here, "/v1/consent", {"on": False})
            pressed = ear.clock()
            assert answer == {"on": False, "written": False}
            assert ear.ends() <= {"no-consent", "ledger"}
            # The page shows what is in force, from memory.
            shown = here.owner.get("/v1/apps").json()
            assert ear.clock() - pressed < 2 * AT_ONCE_S
            assert (shown["consent"], shown["written"]) == (False, False)
            assert shown["apps"][0]["app"] == "shop"
            until(lambda: here.owner.get("/v1/apps").json()["ledger"] is False)
            again = here.owner.post("/v1/consent", json={"on": True})
            assert again.status_code == 503, "nothing is given before what was taken is written"
            assert ear.nothing_since(pressed)
        until(lambda: not service_of(here).revocations.pending)
        assert here.owner.get("/v1/apps").json()["written"] is True
        page = here.owner.get("/v1/audit", params={"last": 20, "verify": True}).json()
        assert page["verified"]
        rows = [row for row in page["entries"] if row["kind"] == "consent"]
        assert rows[-1]["detail"]["consent"] is False
        assert abs(rows[-1]["t_ns"] / 1e9 - time.time()) < 60
        until(lambda: here.owner.post("/v1/consent", json={"on": True}).status_code == 200)


@pytest.mark.parametrize(("how", "what"), [("hanging", "revoke"), ("locked", "drop")])
def test_revoking_and_dropping_work_from_memory_too(
    how: str, what: str, quick_folder: Path, request: pytest.FixtureRequest
) -> None:
    path = "/v1/apps/shop/revoke" if what == "revoke" else "/v1/apps/shop"
    with breakable(how, quick_folder, request) as (here, breaking), streaming(here) as ear:
        with breaking():
            assert press(here, path)["written"] is False
            pressed = ear.clock()
            time.sleep(2 * ON_ITS_WAY_S)
            assert ear.nothing_since(pressed)
        service = service_of(here)
        until(lambda: not service.revocations.pending)
        assert ("shop" in service.policy.apps) == ("shop" in service.tokens.apps())
        assert ("shop" in service.policy.apps) == (what == "revoke")


@pytest.mark.parametrize("how", ["stopped", "hanging", "locked"])
def test_every_feed_ends_when_the_ledger_is_silent_and_nobody_presses_anything(
    how: str, quick_folder: Path, request: pytest.FixtureRequest
) -> None:
    with breakable(how, quick_folder, request) as (here, breaking), streaming(here) as ear:
        with breaking():
            broke = ear.clock()
            assert ear.ends() == {"ledger"}
            assert max(t for t, _ in ear.of("ended")) - broke < SILENT_S
            ready = httpx.get(here.address + "/health/ready")
            assert ready.status_code == 503
            assert ready.json()["reason"].startswith("Nothing is given now. ")
            assert str(quick_folder) not in ready.text
            time.sleep(2 * ON_ITS_WAY_S)
            assert ear.nothing_since(broke + SILENT_S)
        until(lambda: httpx.get(here.address + "/health/ready").status_code == 200)
        assert httpx.get(here.address + "/health").json()["reason"] is None


def test_a_flood_of_apps_that_wait_for_the_database_does_not_delay_off(
    quick_folder: Path, postgres: Server
) -> None:
    with running(quick_folder / "home", database=postgres.fresh()) as here:
        token = here.app("shop")
        with contextlib.ExitStack() as apps, hanging(postgres):
            head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            port = httpx.URL(here.address).port or 80
            waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
            for one in waiting:  # more of them than the server has threads
                apps.enter_context(one)
                one.sendall(f"GET /v1/tile HTTP/1.1\r\n{head}\r\n".encode())
            time.sleep(0.5)
            assert not select.select(waiting, [], [], 0)[0]
            assert press(here, "/v1/consent", {"on": False})["on"] is False
            assert here.owner.get("/v1/apps").json()["consent"] is False


def test_off_and_the_event_loop_do_not_wait_for_samples_that_wait_for_the_database(
    tmp_path: Path,
) -> None:
    """Once a second the event loop looked at what is in use, and waited with the samples; so did
    the owner's page.
    """
    with running(tmp_path / "home") as here:
        here.app("shop", grant="study")
        before = here.owner.get("/v1/apps").json()["apps"]
        held, let_go = threading.Event(), threading.Event()

        def samples() -> None:
            with service_of(here).keeper.state.lock:
                held.set()
                let_go.wait(120)

        waiting = threading.Thread(target=samples)
        waiting.start()
        assert held.wait(60)
        shown: list[object] = []
        pages = [
            threading.Thread(target=lambda: shown.append(here.owner.get("/v1/apps").json()["apps"]))
            for _ in range(8)
        ]
        for page in pages:
            page.start()
        until(lambda: len(shown) == len(pages), AT_ONCE_S)
        assert shown == [before] * len(pages)
        time.sleep(1.2)  # the event loop has looked meanwhile
        assert press(here, "/v1/consent", {"on": False})["on"] is False
        let_go.set()
        for thread in (waiting, *pages):
            thread.join(20)


# --- a crash before it was written
# --------------------------------------------------------------------------------------------------


def test_a_crash_before_it_was_written_gives_nothing_back(quick_folder: Path) -> None:
    home = quick_folder / "home"
    with Process(home, free_port(), GAZEVEIL_TRACKER="websocket") as process:
        owner = process.owner()
        owner.post("/v1/apps", json={"name": "shop"})
        owner.post("/v1/consent", json={"on": True})
        given = {"preset": "follow", "lasts": "until-stopped"}
        assert owner.post("/v1/apps/shop/grant", json=given).status_code == 200
        with locked(home / "gatekeeper.sqlite"):
            assert owner.post("/v1/apps/shop/revoke").json()["written"] is False
            assert owner.post("/v1/consent", json={"on": False}).json()["written"] is False
            process.kill()
        for _ in range(2):
            process.start()
            shown = process.owner().get("/v1/apps").json()
            assert (shown["consent"], shown["apps"][0]["state"]) == (False, "revoked")
            process.kill()


def test_a_torn_note_means_that_consent_is_off(tmp_path: Path) -> None:
    (tmp_path / "taken-back").write_bytes(b'[{"kind":"con     ')
    revocations = Revocations(tmp_path / "taken-back", lambda _: Future())
    assert not revocations.from_policy(Policy(consent=True), 7).consent
    assert len(revocations.pending) == 1


def test_a_taking_is_noted_in_place_and_wins_over_the_policy_of_the_database(
    tmp_path: Path,
) -> None:
    path, owed = tmp_path / "taken-back", dict[Revocation, Future[None]]()

    def owe(revocation: Revocation) -> Future[None]:
        return owed.setdefault(revocation, Future())

    revocations = Revocations(path, owe)
    revocations.start()
    several = [Revocation("revoke", f"app-{n}", "owner", n) for n in range(3)]
    assert not any(revocations.add(one) for one in several)
    assert path.stat().st_size == ROOM_BYTES, "a disk without room for one more block takes it"
    again = Revocations(path, owe)
    assert again.pending == tuple(several)
    follow = PRESETS["follow"].grant()
    policy = again.from_policy(Policy({"app-1": follow, "other": follow}), 9)
    assert [grant.revoked for grant in policy.apps.values()] == [True, False]
    for future in owed.values():
        future.set_result(None)
    assert not revocations.pending
    assert Revocations(path, owe).pending == ()


def test_the_end_of_a_programs_token_is_written_when_the_database_is_back(tmp_path: Path) -> None:
    """It was written with the next end alone, so that a restart brought the token back to life."""
    with running(tmp_path / "home") as here:
        made = here.owner.post("/v1/owner/tokens", json={"name": "script"}).json()
        with locked(tmp_path / "home" / "gatekeeper.sqlite"):
            assert here.owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 204
            with here.client(made["token"]) as program:
                assert program.get("/v1/apps").status_code == 401
        database = service_of(here).ledger.database
        question = "SELECT ended_ns FROM tokens WHERE id = ?"
        until(lambda: database.rows(question, made["id"]) != [(None,)])
        tokens = service_of(here).tokens
        short = tokens.issue("script", "owner", tokens.now_ns() + 10**8)
        until(lambda: database.rows(question, short.split("_")[2]) != [(None,)])


# --- one order of decisions
# --------------------------------------------------------------------------------------------------


class Gate:
    """A lock before which the first that comes waits, until those behind it have passed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.somebody, self.open = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        if not self.somebody.is_set():
            self.somebody.set()
            assert self.open.wait(60)
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


@contextmanager
def overtaken(
    here: Running, monkeypatch: pytest.MonkeyPatch, give: str, body: Any
) -> Iterator[list[httpx.Response]]:
    """A command that gives, which waits in a thread for a slow disk meanwhile; its answer."""
    gate, answers = Gate(), list[httpx.Response]()
    monkeypatch.setattr(service_of(here), "_lock", gate)
    method = "PUT" if give == "/v1/policy" else "POST"
    wish = {"content": body} if isinstance(body, str) else {"json": body}
    giving = threading.Thread(
        target=lambda: answers.append(here.owner.request(method, give, **wish)), daemon=True
    )
    giving.start()
    assert gate.somebody.wait(30)
    try:
        yield answers
    finally:
        gate.open.set()
        giving.join(30)


@pytest.mark.parametrize("take", ["revoke", "consent"])
@pytest.mark.parametrize(
    ("give", "body"),
    [
        ("/v1/apps/{app}/grant", {"preset": "study"}),
        ("/v1/consent", {"on": True}),
        ("/v1/policy", "consent = true\n"),
    ],
)
def test_what_was_given_before_is_void_once_something_was_taken(
    here: Running, monkeypatch: pytest.MonkeyPatch, give: str, body: object, take: str
) -> None:
    """A grant waits for a slow disk; a revoke that comes later is answered at once. The grant came
    in force after it.
    """
    here.app()
    app = here.last
    with overtaken(here, monkeypatch, give.format(app=app), body) as answers:
        path = f"/v1/apps/{app}/revoke" if take == "revoke" else "/v1/consent"
        with httpx.Client(base_url=here.address, headers=here.owner.headers) as other:
            assert other.post(path, json={"on": False}).status_code == 200
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "changed")
    policy = service_of(here).policy
    shop = policy.apps.get(app)  # an import takes away at once what it does not have
    assert shop is None or shop.revoked if take == "revoke" else not policy.consent
    until(lambda: not service_of(here).revocations.pending)


@pytest.mark.parametrize(
    ("give", "body", "status"),
    [
        ("/v1/apps/{app}/grant", {"preset": "study"}, 409),
        ("/v1/policy", "consent = true\n", 409),
        ("/v1/consent", {"on": True}, 200),
    ],
)
def test_of_two_grants_the_one_that_came_later_holds(
    here: Running, monkeypatch: pytest.MonkeyPatch, give: str, body: object, status: int
) -> None:
    """The one that got the lock last held."""
    here.app()
    app = here.last
    with (
        overtaken(here, monkeypatch, give.format(app=app), body) as answers,
        httpx.Client(base_url=here.address, headers=here.owner.headers) as other,
    ):
        later = other.post(f"/v1/apps/{app}/grant", json={"preset": "follow"})
        assert later.status_code == 200
    assert answers[0].status_code == status
    assert service_of(here).policy.apps[app].preset == "follow"


def test_a_grant_that_is_being_written_does_not_undo_the_off_that_was_pressed_after_it(
    here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.app()
    app, audit = here.last, service_of(here).audit
    real, begun, go_on = audit.writes, threading.Event(), threading.Event()

    def slow(kind: str, *more: Any) -> Any:
        if kind == "grant":
            begun.set()
            assert go_on.wait(60)
        return real(kind, *more)

    monkeypatch.setattr(audit, "writes", slow)
    answers: list[httpx.Response] = []
    path = f"/v1/apps/{app}/grant"
    giving = threading.Thread(
        target=lambda: answers.append(here.owner.post(path, json={"preset": "study"}))
    )
    giving.start()
    assert begun.wait(60)
    assert press(here, "/v1/consent", {"on": False})["on"] is False
    go_on.set()
    giving.join(20)
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "changed")
    until(lambda: not service_of(here).revocations.pending)
    written = read_policy(service_of(here).ledger.database)
    assert written is not None
    assert not written.consent, "what the next start reads"
    assert (written.apps[app].preset, written.apps[app].calls_per_minute) == ("", 100_000)


# --- another wearer
# --------------------------------------------------------------------------------------------------

TWO = 'consent = true\n[apps.game]\npreset = "study"\n[wearers.anna]\nconsent = false\n'


def test_what_the_last_wearer_gave_is_not_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TWO)
    with running(tmp_path / "home", policy=path) as here:
        here.owner.post("/v1/wearer", json={"name": "owner"})
        with overtaken(here, monkeypatch, "/v1/consent", {"on": True}) as answers:
            service_of(here).keeper.switch_wearer("anna")
        assert answers[0].status_code == 409
        assert not service_of(here).policy.consent


def test_nothing_of_the_next_wearer_reaches_the_last_ones_apps_while_a_switch_waits(
    tmp_path: Path,
) -> None:
    """A switch waits for the same lock as a grant that the database is slow to write; samples went
    on to the old apps for as long.
    """
    path = tmp_path / "policy.toml"
    path.write_text(TWO)
    chosen = {"home": tmp_path / "home", "tracker": "websocket", "policy": path, "late_ms": 0}
    service, got, sent = Service(load_settings(**chosen)), list[int](), 0

    async def push() -> None:
        nonlocal sent
        t_ns = (np.arange(4) + sent) * 8_333_333
        sent += 4
        await service.tracker_input.push(block(t_ns, np.full(4, 100.0), np.full(4, 90.0)))

    async def switching() -> None:
        await service.switch_wearer("owner", stale=True)
        game = service.keeper.app("game")
        game.open_private_stream("gaussian:sigma_deg=2", lambda t, x, y, v: got.append(len(t)))
        for _ in range(20):
            await push()
            await service.tracker_input.settled()
        before = sum(got)
        assert before == sent
        held, let_go = threading.Event(), threading.Event()

        def slow_grant() -> None:
            with service._lock:
                held.set()
                let_go.wait(60)

        grant = threading.Thread(target=slow_grant)
        grant.start()
        assert held.wait(60)
        switch = asyncio.create_task(service.switch_wearer("anna", stale=True))
        for _ in range(10):
            await asyncio.sleep(0.03)
            await push()
        assert not switch.done()
        let_go.set()
        await switch
        await service.tracker_input.settled()
        grant.join()
        assert (service.keeper.wearer, sum(got)) == ("anna", before)
        await service.close()

    asyncio.run(switching())


@pytest.mark.parametrize("how", ["off", "revoked", "wearer", "expired"])
def test_what_waits_of_a_stream_that_its_budget_ended_is_thrown_away_too(
    tmp_path: Path, how: str
) -> None:
    """A slow reader got it minutes after the owner had switched everything off."""
    with running(tmp_path / "home") as here:
        ends = time.time_ns() + 4 * 10**9 if how == "expired" else None
        with here.talk(here.app("shop", expires_ns=ends)) as talk, here.tracker() as tracker:
            assert talk.subscribe(1, what="samples", mechanism=KALEIDO)["type"] == "subscribed"
            (connection,) = service_of(here).broadcaster.of("shop")
            connection._sending = True  # as if the socket took no more
            tracker.send(np.full(60, 180.0), 90.0)
            tracker.settle(here)
            connection.end(connection.channels[1], "budget", "The budget is used up.")
            if how != "expired":
                assert any(waits.samples is not None for waits in connection._waiting), "paid for"
            if how == "off":
                here.owner.post("/v1/consent", json={"on": False})
            elif how == "revoked":
                here.owner.post("/v1/apps/shop/revoke")
            elif how == "wearer":
                here.owner.post("/v1/wearer", json={"name": "anna"})
            until(lambda: all(waits.samples is None for waits in tuple(connection._waiting)))
            connection._sending = False
            service_of(here).broadcaster.touch(connection)
            assert talk.hear()["type"] == "ended"
