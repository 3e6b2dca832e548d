"""The service when things break: kill -9 under load, locked and lost databases, full disks, clocks,
stops and bad starts; and a soak.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException

from gazeveil.cli.main import main
from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy import file as policy_file
from gazeveil.gatekeeper.service import service as service_module
from tests.support.gatekeeper_running import (
    ALL,
    KALEIDO,
    Process,
    Running,
    TrackerTalk,
    free_port,
    running,
    until,
)
from tests.support.postgres import Server, postgres, quick_folder  # noqa: F401

#: Ten samples for one epsilon: leases are short, so that many are paid while a process is killed.
TEN = "kaleido-uniform:epsilon=1,w=10,r_deg=5"


# --- kill -9
# --------------------------------------------------------------------------------------------------


class Load:
    """A tracker that sends as fast as it is let, and an app that counts what it receives."""

    def __init__(self, process: Process, token: str, tracker_token: str) -> None:
        self.process, self.token, self.tracker_token = process, token, tracker_token
        self.received = 0
        self.here = Running(process.address, "")
        self.errors: list[Exception] = []
        self._stop = threading.Event()

    def _track(self) -> None:
        while not self._stop.is_set():
            try:
                with self.here.talk(self.tracker_token, "/v1/tracker") as talk:
                    tracker = TrackerTalk(talk, 120.0)
                    while not self._stop.is_set():
                        tracker.send(np.full(4, 180.0), 90.0)
                        time.sleep(0.002)
            except (WebSocketException, OSError, AssertionError) as error:
                self.errors.append(error)
                time.sleep(0.2)

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self.here.talk(self.token) as talk:
                    talk.say(
                        type="subscribe", id=1, what="samples", mechanism=TEN, encoding="binary"
                    )
                    # On a busy machine the ledger may be too slow for a lease: then the stream
                    # ends, and is asked for again.
                    while (message := talk.hear(60))["type"] not in ("ended", "refused"):
                        self.received += len(message.get("block", ()))
            except (WebSocketException, OSError, AssertionError) as error:
                self.errors.append(error)
                time.sleep(0.2)

    def run(self, least: int, kill: Callable[[], None]) -> None:
        """Stream at least so many samples, then kill."""
        before = self.received
        self._stop.clear()
        threads = [
            threading.Thread(target=work, daemon=True) for work in (self._listen, self._track)
        ]
        for thread in threads:
            thread.start()
        try:
            until(lambda: self.received - before >= least, 120)
        except AssertionError:
            raise AssertionError(
                f"{self.received - before} samples of {least} came; {self.errors[-3:]}"
            ) from None
        finally:
            self._stop.set()
            kill()
            for thread in threads:
                thread.join(20)


def survive(home: Path, kills: int, url: str | None) -> None:
    """Kill a service under load again and again; what was received must have been charged."""
    environment = {
        "GAZEVEIL_TRACKER": "websocket",
        "GAZEVEIL_GUESSES_PER_MINUTE": "100000",
        **({"GAZEVEIL_DATABASE": url} if url else {}),
    }
    process = Process(home, free_port(), **environment)
    rng = np.random.default_rng(kills)
    try:
        process.start()
        owner = process.owner()
        token = owner.post("/v1/apps", json={"name": "greedy"}).json()["token"]
        owner.post("/v1/consent", json={"on": True})
        assert (
            owner.post(
                "/v1/apps/greedy/grant", json={"grant": ALL, "lasts": "until-stopped"}
            ).status_code
            == 200
        )
        load = Load(process, token, owner.post("/v1/tracker/token").json()["token"])
        for _ in range(kills):
            load.run(int(rng.integers(20, 120)), process.kill)
            process.start()
            load.tracker_token = process.owner().post("/v1/tracker/token").json()["token"]
    finally:
        if process.process is not None:
            process.kill(signal.SIGTERM)
    with Ledger.open(url or f"sqlite:///{home / 'gatekeeper.sqlite'}") as ledger:
        now = time.time_ns()
        for account in ("app:greedy", "device"):
            spent = ledger.spent(account, "epsilon", now)
            assert spent * 10 >= load.received, (
                f"{account}: {load.received} samples were received, {spent} was charged"
            )
        # Over-charging is what a crash wastes: the lease in use and the one ahead, for each life.
        assert ledger.spent("app:greedy", "epsilon", now) * 10 <= load.received + 40 * 10 * (
            kills + 1
        )
    assert load.received >= 20 * kills


def test_killed_under_load_nothing_was_given_that_was_not_charged(quick_folder: Path) -> None:
    survive(quick_folder / "home", 2, None)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_thirty_times_with_sqlite(quick_folder: Path) -> None:
    survive(quick_folder / "home", 30, None)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_thirty_times_with_postgresql(quick_folder: Path, postgres: Server) -> None:
    survive(quick_folder / "home", 30, postgres.fresh())


# --- stopping and starting
# --------------------------------------------------------------------------------------------------


def test_sigterm_tells_everybody_and_ends_with_code_0(tmp_path: Path) -> None:
    """The service out of the box: simulated tracker, SQLite, the owner's link; then a stop."""
    process = Process(tmp_path / "home", free_port())
    with process:
        owner = process.owner()
        here = Running(process.address, "")
        here.owner = owner
        token = here.app("shop")
        with here.talk(token) as talk:
            assert talk.subscribe(1, what="samples", mechanism=KALEIDO)["type"] == "subscribed"
            first = talk.until("samples", 60)
            assert len(first["x_deg"]) >= 1
            assert process.process is not None
            process.process.send_signal(signal.SIGTERM)
            assert talk.until("ended")["code"] == "shutdown"
            with pytest.raises(ConnectionClosed):
                talk.hear()
            assert talk.socket.close_code == 1012
        assert process.process.wait(60) == 0
        process.process = None
    assert (tmp_path / "home").stat().st_mode & 0o077 == 0
    lines = process.errors.read_text().splitlines()
    assert all(line.startswith('{"t": ') for line in lines), lines


def refused_start(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", *arguments])
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    sentence = said.err.strip()
    assert sentence
    assert "Traceback" not in sentence
    assert "\n" not in sentence
    return sentence


def test_what_cannot_start_says_why_in_one_sentence_and_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ("--home", str(tmp_path / "home"), "--port", "0")
    refused_start(capsys, *home, "--database", "mysql://nowhere/x")
    refused_start(capsys, *home, "--database", "not a url")
    refused_start(capsys, *home, "--database", f"sqlite:///{tmp_path}/no/such/folder/x.sqlite")
    (tmp_path / "bad.toml").write_text("consent = 'perhaps'\nunknown = 1\n")
    assert "bad.toml" in refused_start(capsys, *home, "--policy", str(tmp_path / "bad.toml"))
    (tmp_path / "file").write_text("")
    assert "home folder" in refused_start(
        capsys, "--home", str(tmp_path / "file" / "home"), "--port", "0"
    )
    refused_start(capsys, *home, "--tracker", "crystal-ball")
    refused_start(capsys, *home, "--tracker", "replay:/no/such/file.csv")
    refused_start(capsys, *home, "--level", "raw")
    (tmp_path / "garbage.sqlite").write_bytes(b"this is no database " * 100)
    refused_start(capsys, *home, "--database", f"sqlite:///{tmp_path}/garbage.sqlite")


# --- databases and disks
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home") as found:
        yield found


def drained(talk: Any, tracker: TrackerTalk, here: Running) -> tuple[int, dict[str, Any] | None]:
    """Samples that come, and the last word if there is one, after all that was
    sent was worked off."""
    tracker.settle(here, 30)
    talk.say(type="ping")
    got, end = 0, None
    while (message := talk.hear(30))["type"] != "pong":
        got += len(message.get("x_deg", ()))
        end = message if message["type"] == "ended" else end
    return got, end


def test_a_lost_database_ends_streams_and_refuses_until_it_is_back(
    here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here.service is not None
    token = here.app()
    with here.client(token) as app, here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=TEN)
        database = here.service.ledger.database

        def lost(*_: object, **__: object) -> None:
            raise LedgerError("The database is gone.")

        with monkeypatch.context() as broken:
            broken.setattr(database, "write", lost)
            broken.setattr(database, "read", lost)
            broken.setattr(database, "look", lost)
            for _ in range(4):
                tracker.send(np.full(10, 180.0), 90.0)
            got, end = drained(talk, tracker, here)
            assert end is not None
            assert end["code"] == "ledger"
            assert got <= 20
            assert talk.subscribe(2, what="samples", mechanism=TEN)["code"] == "ledger"
            answer = app.get("/v1/tile")
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "ledger")
            until(lambda: httpx.get(here.address + "/health/ready").status_code == 503)
            assert httpx.get(here.address + "/health").json()["live"]
        until(lambda: httpx.get(here.address + "/health/ready").status_code == 200)
        assert talk.subscribe(3, what="samples", mechanism=TEN)["type"] == "subscribed"
        assert app.get("/v1/tile").status_code == 200


def test_a_locked_database_stalls_nobody_for_ever(here: Running) -> None:
    assert here.service is not None
    token = here.app()
    path = here.service.settings.home / "gatekeeper.sqlite"
    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=TEN)
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(4):
                tracker.send(np.full(10, 180.0), 90.0)
            end = talk.until("ended", 30)
            assert end["code"] == "ledger"
            assert (
                httpx.get(here.address + "/health").status_code == 200
            )  # the event loop does not wait
            other.execute("ROLLBACK")
        other.close()
        until(
            lambda: (
                talk.subscribe(next(_IDS), what="samples", mechanism=TEN)["type"] == "subscribed"
            ),
            20,
            0.5,
        )


def test_what_is_opened_for_a_connection_that_is_gone_is_closed(
    here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knew of it: it went on, and the app and the device paid for samples nobody got."""
    service, name = here.service, "gone"
    assert service is not None
    token = here.app(name)
    state, charge = service.keeper.state, service.ledger.charge
    charging, closed = threading.Event(), threading.Event()

    def slowly(*arguments: Any, **named: Any) -> Any:
        charging.set()
        closed.wait(30)
        return charge(*arguments, **named)

    monkeypatch.setattr(service.ledger, "charge", slowly)
    with here.talk(token) as talk:
        talk.say(type="subscribe", id=1, what="samples", mechanism=TEN)
        assert charging.wait(30)
        assert here.owner.post(f"/v1/apps/{name}/token").status_code == 200
        until(lambda: not service.broadcaster.of(name))
        closed.set()
    until(lambda: not state.opening[name])
    until(lambda: all(subscription.app != name for subscription in tuple(state.subscriptions)))


_IDS = itertools.count(10)


@pytest.mark.parametrize("lasting", [False, True])
def test_whichever_write_fails_nothing_leaves_unpaid(
    here: Running, monkeypatch: pytest.MonkeyPatch, lasting: bool
) -> None:
    assert here.service is not None
    database = here.service.ledger.database
    real = database.write
    met = True
    for number in range(1, 12):
        token = here.app(f"app-{number}-{lasting}")
        calls = itertools.count(1)

        def write(
            work: Any, *more: Any, n: int = number, count: Iterator[int] = calls, **named: Any
        ) -> Any:
            at = next(count)
            if at == n or (lasting and at > n):
                raise LedgerError("This write fails.")
            return real(work, *more, **named)

        with here.tracker() as tracker, here.talk(token) as talk:
            monkeypatch.setattr(database, "write", write)
            try:
                answer = talk.subscribe(1, what="samples", mechanism=TEN)
                for _ in range(5):
                    tracker.send(np.full(8, 180.0), 90.0)
                got, _end = drained(talk, tracker, here)
            finally:
                monkeypatch.setattr(database, "write", real)
            spent = here.service.ledger.spent(f"app:{here.last}", "epsilon", time.time_ns())
            assert got <= spent * 10, (number, answer)
            assert got <= here.service.ledger.spent("device", "epsilon", time.time_ns()) * 10
            met = next(calls) > number
        if not met:
            break
    assert not met, "the operation never completed without meeting the fault"


def test_a_full_disk_refuses_grants_and_still_revokes(
    here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = here.app()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=TEN)
        monkeypatch.setattr(policy_file, "write_whole", full)
        refused = here.owner.post(f"/v1/apps/{here.last}/grant", json={"preset": "study"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "disk")
        apps = {a["app"]: a for a in here.owner.get("/v1/apps").json()["apps"]}
        assert apps[here.last]["grant"]["preset"] is None
        taken = here.owner.post(f"/v1/apps/{here.last}/revoke")
        assert (taken.status_code, taken.json()["written"]) == (200, False)
        tracker.send(180.0, 90.0)
        assert talk.until("ended")["code"] == "revoked"


def test_a_clock_that_is_put_back_gives_no_budget_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = [0]
    keeper = service_module.Gatekeeper
    monkeypatch.setattr(
        service_module,
        "Gatekeeper",
        lambda *a, **k: keeper(*a, **k, clock_ns=lambda: time.time_ns() + shift[0]),
    )
    with running(tmp_path / "home") as here:
        token = here.app(budgets={"epsilon": "2"}, per="day")
        with here.tracker() as tracker, here.talk(token) as talk:
            talk.subscribe(1, what="samples", mechanism=TEN)
            for _ in range(3):
                tracker.send(np.full(10, 180.0), 90.0)
            assert talk.until("ended")["code"] == "budget"
            for days in (-400, -1, 0):
                shift[0] = days * 86_400 * 10**9
                assert talk.subscribe(next(_IDS), what="samples", mechanism=TEN)["code"] == "budget"
            shift[0] = 86_400 * 10**9  # a day later there is a new budget, once
            assert talk.subscribe(next(_IDS), what="samples", mechanism=TEN)["type"] == "subscribed"


# --- soak
# --------------------------------------------------------------------------------------------------


def figures(pid: int) -> tuple[float, int, int]:
    """Megabytes in memory, open handles and threads of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return (
        resident,
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        int(status.partition("Threads:")[2].split()[0]),
    )


def soak(home: Path, seconds: float) -> None:
    """Apps come, stream, read slowly, ask, misbehave and go; afterwards the process
    is as it was."""
    process = Process(
        home,
        free_port(),
        GAZEVEIL_TRACKER="simulated",
        GAZEVEIL_GUESSES_PER_MINUTE="100000",
        GAZEVEIL_REQUESTS_PER_MINUTE="1000000",
    )
    with process:
        here = Running(process.address, "")
        here.owner = process.owner()
        tokens = [here.app(f"app-{n}") for n in range(4)]
        stranger = httpx.Client(base_url=process.address)

        def round_of(number: int) -> None:
            token = tokens[number % 4]
            with (
                here.talk(token) as talk,
                here.talk(tokens[(number + 1) % 4], max_queue=1, close_timeout=0.1) as slow,
            ):
                talk.subscribe(1, what="samples", mechanism=KALEIDO, encoding="binary")
                talk.subscribe(2, what="fixation")
                slow.subscribe(1, what="samples", mechanism="gaussian:sigma_deg=5")
                talk.until("binary")
                talk.socket.send(b"\x00garbage")
            with here.client(token) as app:
                area = app.post(
                    "/v1/areas",
                    json={"name": "a", "x_deg": 90, "y_deg": 80, "width_deg": 20, "height_deg": 20},
                ).json()
                app.get(f"/v1/areas/{area['id']}/metrics")
                app.delete(f"/v1/areas/{area['id']}")
            stranger.get("/v1/me")
            stranger.get("/metrics")

        assert process.process is not None
        pid = process.process.pid
        for number in range(12):  # what is made once is made now
            round_of(number)
        time.sleep(0.5)
        before = figures(pid)
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end or number < 3:
            round_of(number)
            number += 1
        here.owner.get("/v1/apps")
        until(
            lambda: all(app["streams"] == [] for app in here.owner.get("/v1/apps").json()["apps"])
        )
        time.sleep(0.5)
        after = figures(pid)
        assert number >= 3
        assert after[0] - before[0] < 16 + 0.01 * number, (
            f"memory grew from {before[0]:.0f} to {after[0]:.0f} MB in {number} rounds"
        )
        assert after[1] <= before[1] + 4
        assert after[2] <= before[2] + 4


def test_a_short_soak_returns_memory_handles_and_threads(quick_folder: Path) -> None:
    soak(quick_folder / "home", 8)


@pytest.mark.heavy
@pytest.mark.timeout(1200)
def test_a_soak_of_ten_minutes_returns_memory_handles_and_threads(quick_folder: Path) -> None:
    soak(quick_folder / "home", 600)
