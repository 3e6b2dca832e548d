"""The database is gone and the wearer presses OFF: in force at once, nothing leaves afterwards, and
no restart gives it again.

The attacks are the ones that worked: PostgreSQL stopped, a PostgreSQL that hangs, an SQLite file
that another program has locked, a full disk; with feeds that cost nothing (fixations, tiles), which
no ledger used to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper.errors import Denied, Refused
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy import file as policy_file
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from gazeveil.gatekeeper.service.revocations import Revocation, Revocations
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings
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
        while not self._stop.is_set():
            x, y = places[(at // 20) % 3]
            with contextlib.suppress(ConnectionClosed):
                self._tracker.send(np.full(2, x), y)
            at += 2
            time.sleep(2 / 120)

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

    def nothing_since(self, time_s: float) -> bool:
        """Whether nothing was given after a time, nor on any feed after its last word."""
        last = {m["id"]: at for at, (_, m) in enumerate(self.heard) if m["type"] == "ended"}
        late = [m for at, (_, m) in enumerate(self.heard) if at > last.get(m.get("id"), at)]
        return not late and all(t <= time_s + ON_ITS_WAY_S for t, _ in self.given())


@contextmanager
def streaming(here: Running) -> Iterator[Ear]:
    """An app with three feeds: fixations and tiles, which cost nothing, and samples, which do."""
    token = here.app("shop")
    with SteadyClock() as clock, here.tracker() as tracker, here.talk(token) as talk, Gaze(tracker):
        for number, wish in enumerate(
            ({"what": "fixation"}, {"what": "tile"}, {"what": "samples", "mechanism": KALEIDO}), 1
        ):
            assert talk.subscribe(number, **wish)["type"] == "subscribed"
        ear = Ear(talk, clock)
        until(
            lambda: {m.get("kind") or m["type"] for _, m in ear.given()} >= {"fixation", "samples"},
            30,
        )
        yield ear


def press(here: Running, path: str, body: object = None) -> tuple[httpx.Response, float]:
    method = "DELETE" if path == "/v1/apps/shop" else "POST"
    with SteadyClock() as clock:
        answer = here.owner.request(method, path, json=body)
        return answer, clock()


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
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True, check=True
        ).stdout.split()
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


@pytest.fixture(params=["stopped", "hanging", "locked"])
def broken(request: pytest.FixtureRequest, quick_folder: Path) -> Iterator[tuple[Running, Any]]:
    """A service, and how its database breaks."""
    if request.param == "locked":
        with running(quick_folder / "home") as here:
            yield here, lambda: locked(quick_folder / "home" / "gatekeeper.sqlite")
        return
    server: Server = request.getfixturevalue("postgres")
    with running(quick_folder / "home", database=server.fresh()) as here:
        yield here, lambda: (stopped if request.param == "stopped" else hanging)(server)


def test_off_is_in_force_at_once_while_the_database_does_not_answer(
    broken: tuple[Running, Any],
) -> None:
    here, breaking = broken
    with streaming(here) as ear:
        with breaking():
            time.sleep(0.3)
            answer, took_s = press(here, "/v1/consent", {"on": False})
            pressed = ear.clock()
            assert (answer.status_code, answer.json()) == (200, {"on": False, "written": False})
            assert took_s < AT_ONCE_S
            until(lambda: len(ear.of("ended")) == 3, 20)
            time.sleep(1.0)
            assert ear.nothing_since(pressed)
            assert {m["code"] for _, m in ear.of("ended")} <= {"no-consent", "ledger"}
            # The page shows what is in force, from memory.
            began = ear.clock()
            shown = here.owner.get("/v1/apps")
            assert shown.status_code == 200
            assert ear.clock() - began < AT_ONCE_S
            assert (shown.json()["consent"], shown.json()["written"]) == (False, False)
            assert shown.json()["apps"][0]["app"] == "shop"
            until(lambda: here.owner.get("/v1/apps").json()["ledger"] is False, 20)
        assert here.service is not None
        service = here.service
        until(lambda: not len(service.revocations), 20, 0.1)
        assert here.owner.get("/v1/apps").json()["written"] is True
        assert Policy.load(service.settings.policy_path).consent is False
        page = here.owner.get("/v1/audit", params={"last": 20, "verify": True}).json()
        assert page["verified"]
        (row,) = [
            e for e in page["entries"] if e["kind"] == "consent" and not e["detail"]["consent"]
        ]
        assert abs(row["t_ns"] / 1e9 - time.time()) < 60
        until(lambda: here.owner.post("/v1/consent", json={"on": True}).status_code == 200, 20, 0.2)


@pytest.mark.parametrize("what", ["revoke", "drop"])
def test_revoking_and_dropping_work_from_memory_too(broken: tuple[Running, Any], what: str) -> None:
    here, breaking = broken
    assert here.service is not None
    service = here.service
    with streaming(here) as ear:
        with breaking():
            answer, took_s = press(
                here, "/v1/apps/shop/revoke" if what == "revoke" else "/v1/apps/shop"
            )
            pressed = ear.clock()
            assert (answer.status_code, answer.json()["written"]) == (200, False)
            assert took_s < AT_ONCE_S
            time.sleep(1.0)
            assert ear.nothing_since(pressed)
            again = here.owner.post("/v1/consent", json={"on": True})
            assert again.status_code == 503, "nothing new is given before what was taken is written"
        until(lambda: not len(service.revocations), 20, 0.1)
        shop = Policy.load(service.settings.policy_path).apps.get("shop")
        assert shop is None if what == "drop" else shop is not None and shop.revoked
        until(lambda: here.owner.get("/v1/apps").json()["ledger"], 20)
        assert ("shop" in service.tokens.apps()) == (what == "revoke")


def test_every_feed_ends_when_the_ledger_is_silent_and_nobody_presses_anything(
    broken: tuple[Running, Any],
) -> None:
    here, breaking = broken
    with streaming(here) as ear:
        with breaking():
            broke = ear.clock()
            until(lambda: len(ear.of("ended")) == 3, 20)
            time.sleep(1.0)
            assert {m["code"] for _, m in ear.of("ended")} == {"ledger"}
            assert max(t for t, _ in ear.of("ended")) - broke < SILENT_S
            assert ear.nothing_since(broke + SILENT_S)
            ready = httpx.get(here.address + "/health/ready")
            assert ready.status_code == 503
            assert ready.json()["reason"].startswith("Nothing is given now. ")
            assert str(here.service.settings.home) not in ready.text if here.service else True
        until(lambda: httpx.get(here.address + "/health/ready").status_code == 200, 20)
        assert httpx.get(here.address + "/health").json()["reason"] is None


def test_a_flood_of_apps_that_wait_for_the_database_does_not_delay_off(
    quick_folder: Path, postgres: Server
) -> None:
    with running(quick_folder / "home", database=postgres.fresh()) as here:
        token = here.app("shop")
        with hanging(postgres):
            head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            request = f"GET /v1/tile HTTP/1.1\r\n{head}\r\n".encode()
            apps = [
                socket.create_connection(("127.0.0.1", httpx.URL(here.address).port or 80))
                for _ in range(60)
            ]
            for one in apps:
                one.sendall(request)
            time.sleep(1.0)  # more of them wait than the server has threads
            assert not select.select(apps, [], [], 0)[0]
            answer, took_s = press(here, "/v1/consent", {"on": False})
            assert (answer.status_code, answer.json()["on"]) == (200, False)
            assert took_s < AT_ONCE_S
            assert here.owner.get("/v1/apps").json()["consent"] is False
        for one in apps:
            one.close()


def test_off_and_the_event_loop_do_not_wait_for_samples_that_wait_for_the_database(
    tmp_path: Path,
) -> None:
    """Once a second the event loop looked at what is in use, and waited with the samples; so did
    the owner's page.
    """
    with running(tmp_path / "home") as here:
        assert here.service is not None
        state = here.service.keeper.state
        here.app("shop")
        for preset in ("follow", "study"):
            here.app(preset)
            here.owner.post(f"/v1/apps/{preset}/grant", json={"preset": preset})
        before = here.owner.get("/v1/apps").json()["apps"]
        held, let_go = threading.Event(), threading.Event()

        def samples() -> None:
            with state.lock:
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
        answer, took_s = press(here, "/v1/consent", {"on": False})
        assert (answer.status_code, answer.json()["on"]) == (200, False)
        assert took_s < AT_ONCE_S
        assert here.service.keeper.in_use() == ()
        let_go.set()
        for thread in (waiting, *pages):
            thread.join(20)


def test_a_full_disk_stops_giving_and_never_taking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path / "home") as here, streaming(here) as ear:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as broken:
            broken.setattr(policy_file, "write_whole", full)
            given = here.owner.post("/v1/apps/shop/grant", json={"preset": "follow"})
            assert (given.status_code, given.json()["error"]["code"]) == (503, "disk")
            answer, took_s = press(here, "/v1/apps/shop/revoke")
            assert (answer.status_code, answer.json()["written"], answer.json()["state"]) == (
                200,
                False,
                "revoked",
            )
            assert took_s < AT_ONCE_S
            until(lambda: len(ear.of("ended")) == 3, 20)
        assert here.service is not None
        service = here.service
        until(lambda: not len(service.revocations), 20, 0.1)
        assert Policy.load(service.settings.policy_path).apps["shop"].revoked


# --- a crash before it was written
# --------------------------------------------------------------------------------------------------


def test_a_crash_before_it_was_written_gives_nothing_back(quick_folder: Path) -> None:
    home = quick_folder / "home"
    process = Process(home, free_port(), GAZEVEIL_TRACKER="websocket")
    with process:
        owner = process.owner()
        owner.post("/v1/apps", json={"name": "shop"})
        owner.post("/v1/consent", json={"on": True})
        assert (
            owner.post(
                "/v1/apps/shop/grant", json={"preset": "follow", "lasts": "until-stopped"}
            ).status_code
            == 200
        )
        before = (home / "policy.toml").read_text()
        with locked(home / "gatekeeper.sqlite"):
            # The policy file cannot be replaced either.
            home.chmod(0o500)
            try:
                blocked = os.geteuid() != 0
                assert owner.post("/v1/apps/shop/revoke").json()["written"] is False
                assert owner.post("/v1/consent", json={"on": False}).json()["written"] is False
                process.kill()
            finally:
                home.chmod(0o700)
        if (
            not blocked
        ):  # root writes wherever it likes: make the policy file what a full disk would have left
            (home / "policy.toml").write_text(before)
        assert Policy.load(home / "policy.toml").consent
        process.start()
        shown = process.owner().get("/v1/apps").json()
        assert (shown["consent"], shown["apps"][0]["state"]) == (False, "revoked")
        until(lambda: not Policy.load(home / "policy.toml").consent, 20, 0.1)
        process.kill()
        process.start()
        shown = process.owner().get("/v1/apps").json()
        assert (shown["consent"], shown["apps"][0]["state"]) == (False, "revoked")


def test_a_torn_marker_means_that_consent_is_off(tmp_path: Path) -> None:
    (tmp_path / "taken-back").write_bytes(b'[{"kind":"con     ')
    revocations = Revocations(tmp_path / "taken-back", lambda _: None)
    assert not revocations.from_policy(Policy(consent=True)).consent
    assert len(revocations) == 1


def test_a_taking_is_marked_also_on_a_full_disk_and_worked_off_in_order(tmp_path: Path) -> None:
    written: list[Revocation] = []
    works = threading.Event()

    def write(revocation: Revocation) -> None:
        if not works.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(revocation)

    path = tmp_path / "taken-back"
    revocations = Revocations(path, write)
    revocations.start()
    size = path.stat().st_size
    several = [Revocation("revoke", f"app-{n}", "owner", n) for n in range(20)]
    with SteadyClock() as clock:
        for one in several:
            began = clock()
            assert not revocations.add(one)
            assert clock() - began < AT_ONCE_S
    assert path.stat().st_size == size, (
        "written in place: a disk without room for one more block takes it"
    )
    assert [t.app for t in Revocations(path, write)._pending] == [t.app for t in several]
    assert not revocations.settle()
    works.set()
    until(lambda: not len(revocations), 30)
    assert written == several
    assert len(Revocations(path, write)) == 0
    revocations.close()


def test_what_is_taken_while_something_is_given_stays_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grant that waits for the database must not undo the OFF that was pressed after it."""
    with running(tmp_path / "home") as here:
        assert here.service is not None
        here.app("shop")
        service = here.service
        real, begun, go_on = service.audit.record, threading.Event(), threading.Event()

        def slow(kind: str, *more: Any) -> int:
            if kind == "grant":
                begun.set()
                assert go_on.wait(60)
            return real(kind, *more)

        monkeypatch.setattr(service.audit, "record", slow)
        answers: list[httpx.Response] = []
        giving = threading.Thread(
            target=lambda: answers.append(
                here.owner.post("/v1/apps/shop/grant", json={"preset": "study"})
            )
        )
        giving.start()
        assert begun.wait(60)
        answer, took_s = press(here, "/v1/consent", {"on": False})
        assert (answer.status_code, answer.json()["on"]) == (200, False)
        assert took_s < AT_ONCE_S
        go_on.set()
        giving.join(20)
        assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "changed")
        shown = here.owner.get("/v1/apps").json()
        assert shown["consent"] is False
        assert shown["apps"][0]["grant"]["preset"] is None
        until(lambda: not len(service.revocations), 30)
        there = Policy.load(service.settings.policy_path)
        assert not there.consent
        assert "events" in there.apps["shop"].scopes
        assert there.apps["shop"].calls_per_minute == 100_000, (
            "the file has the grant that is in force"
        )


def test_a_token_that_was_taken_away_is_void_while_the_policy_file_cannot_be_written(
    tmp_path: Path,
) -> None:
    """A slip of the owner's editor used to keep the token alive, for the
    other wearers' grants too."""
    path = tmp_path / "policy.toml"
    path.write_text(
        'version=1\nconsent=true\n[apps.game]\nscopes=["tile"]\n'
        '[wearers.anna]\nconsent=true\n[wearers.anna.apps.game]\nscopes=["tile"]\n'
    )
    settings = Settings(home=tmp_path / "home", tracker="websocket", rate_hz=120.0, policy=path)

    async def attack() -> None:
        service = Service(settings)
        await service.switch_wearer("owner", stale=True)
        token = service.tokens.issue("game", "app", None)
        good = path.read_text()
        path.write_text(good + "\n[apps.oops\n")
        assert service.drop_token("game") is False
        await service.switch_wearer("anna", stale=True)
        with pytest.raises(Refused, match="A valid token is needed"):
            service.callers.of_app(token, "127.0.0.1")
        with pytest.raises(Denied) as no:
            service.keeper.app("game").current_tile()
        assert no.value.code == "revoked"
        with pytest.raises(Refused, match="nothing new is given"):
            service.rotate_token("game", None)  # it would end with the old one
        assert (
            Tokens(service.ledger).check(token, time.time_ns()) is None
        )  # the database has it, though the file does not
        path.write_text(good)
        until(lambda: len(service.revocations) == 0, 30)
        assert Policy.load(path).worn_by("anna").apps["game"].revoked
        await service.close()

    asyncio.run(attack())


def test_the_end_of_a_programs_token_is_written_when_the_database_is_back(tmp_path: Path) -> None:
    """It was written with the next end alone, so that a restart brought the token back to life."""
    with running(tmp_path / "home") as here:
        assert here.service is not None
        service = here.service
        made = here.owner.post("/v1/owner/tokens", json={"name": "script"}).json()
        with locked(tmp_path / "home" / "gatekeeper.sqlite"):
            assert here.owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 204
        until(lambda: Tokens(service.ledger).check(made["token"], time.time_ns()) is None, 20, 0.1)


def test_a_token_that_was_forgotten_is_void_until_its_end_is_written() -> None:
    with Ledger.open("sqlite://") as ledger:
        tokens = Tokens(ledger)
        old, other = tokens.issue("game"), tokens.issue("shop")
        tokens.forget("game")
        assert tokens.check(old, 0) is None
        assert tokens.check(other, 0) is not None
        assert tokens.revoke("game", "app") == 1
        assert tokens.check(tokens.issue("game"), 0) is not None
        assert tokens.check(old, 0) is None


# --- one order of decisions
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("give", "body"),
    [
        ("/v1/apps/shop/grant", {"preset": "study"}),
        ("/v1/apps/shop/token", None),
        ("/v1/consent", {"on": True}),
        ("/v1/policy/reload", None),
    ],
)
@pytest.mark.parametrize("take", ["/v1/apps/shop/revoke", "/v1/consent"])
def test_what_was_given_before_is_void_once_something_was_taken(
    tmp_path: Path, give: str, body: object, take: str
) -> None:
    """A grant waits in a thread for a slow disk; a revoke that comes later is answered at once. The
    grant came in force after it.
    """
    with running(tmp_path / "home") as here:
        here.app("shop")
        assert here.service is not None
        answers: list[httpx.Response] = []
        arrived = here.service.keeper.taken
        waiting = threading.Thread(
            target=lambda: answers.append(here.owner.post(give, json=body)), daemon=True
        )
        with here.service._lock:
            waiting.start()
            time.sleep(1.0)  # it stands before the lock
            with httpx.Client(base_url=here.address, headers=here.owner.headers) as other:
                taken = other.post(take, json={"on": False} if "consent" in take else None)
            assert taken.status_code == 200
            assert here.service.keeper.taken > arrived
        waiting.join(30)
        assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "changed")
        policy = here.service.policy
        assert policy.apps["shop"].revoked or not policy.consent


def test_what_the_last_wearer_gave_is_not_the_next_ones(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        here.app("shop")
        assert here.service is not None
        here.owner.post("/v1/wearers", json={"name": "anna"})
        answers: list[httpx.Response] = []
        waiting = threading.Thread(
            target=lambda: answers.append(here.owner.post("/v1/consent", json={"on": True})),
            daemon=True,
        )
        with here.service._lock:
            waiting.start()
            time.sleep(1.0)
            here.service.keeper.switch_wearer("anna")
        waiting.join(30)
        assert answers[0].status_code == 409
        assert not here.service.policy.consent
