"""The service when things break: kill -9 under load, a lost database, stops and bad starts; and a
soak.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException

from gazeveil.cli.main import main
from gazeveil.gatekeeper import Policy
from gazeveil.gatekeeper.ledger.ledger import Ledger
from tests.support.gatekeeper_running import ALL, Process, Running, TrackerTalk, free_port, until
from tests.support.postgres import Server, postgres, quick_folder  # noqa: F401

#: Ten samples for one epsilon: leases are short, so that many are paid while a process is killed.
TEN = "kaleido-uniform:epsilon=1,w=10,r_deg=5"

#: One of those that a study may have.
STUDY = "kaleido:epsilon=1,w=60,r_deg=2"


# --- kill -9
# --------------------------------------------------------------------------------------------------


class Load:
    """A tracker that sends as fast as it is let, and an app that counts what it receives."""

    def __init__(self, process: Process, token: str) -> None:
        self.process, self.token = process, token
        self.received = self.opened = 0
        self.here = Running(process.address, "")
        self.errors: list[Exception] = []
        self._stop = threading.Event()

    def _track(self) -> None:
        while not self._stop.is_set():
            try:
                driver = (self.process.home / "tracker-token").read_text().strip()
                with self.here.talk(driver, "/v1/tracker") as talk:
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
                        self.opened += message["type"] == "subscribed"
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
        "GAZEVEIL_POLICY": str(home.parent / "policy.toml"),
        **({"GAZEVEIL_DATABASE": url} if url else {}),
    }
    (home.parent / "policy.toml").write_text(Policy({"greedy": ALL}, consent=True).text())
    process = Process(home, free_port(), **environment)
    rng = np.random.default_rng(kills)
    try:
        process.start()
        token = process.owner().post("/v1/apps", json={"name": "greedy"}).json()["token"]
        load = Load(process, token)
        for _ in range(kills):
            load.run(int(rng.integers(20, 120)), process.kill)
            left = (home / "tracker-token").read_text()
            process.start()
            # Another program may have had the port, and what a driver sent to it.
            assert (home / "tracker-token").read_text() != left
    finally:
        if process.process is not None:
            process.kill(signal.SIGTERM)
    with Ledger.open(url or f"sqlite:///{home / 'gatekeeper.sqlite'}") as ledger:
        now = time.time_ns()
        for account in ("device", "app:greedy"):
            spent = ledger.spent(account, "epsilon", now)
            assert spent * 10 >= load.received, (
                f"{account}: {load.received} samples were received, {spent} was charged"
            )
        # Over-charging is what a crash wastes: the lease in use and the one ahead, of each stream.
        assert spent - Fraction(load.received, 10) <= 2 * (load.opened + 1)
    assert load.received >= 20 * kills


def test_killed_under_load_nothing_was_given_that_was_not_charged(quick_folder: Path) -> None:
    survive(quick_folder / "home", 1, None)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_killed_thirty_times(
    quick_folder: Path, database: str, request: pytest.FixtureRequest
) -> None:
    named = database == "postgresql"
    url = request.getfixturevalue("postgres").fresh() if named else None
    survive(quick_folder / "home", 30, url)


# --- stopping and starting
# --------------------------------------------------------------------------------------------------


def test_sigterm_tells_everybody_and_ends_with_code_0(tmp_path: Path) -> None:
    """The service out of the box: simulated tracker, SQLite, the owner's link; then a stop."""
    process = Process(tmp_path / "home", free_port())
    with process:
        owner = process.owner()
        here = Running(process.address, "")
        here.owner = owner
        token = here.app("shop", grant="study")
        with here.talk(token) as talk:
            assert talk.subscribe(1, what="samples")["type"] == "subscribed"
            first = talk.until("samples", 60)
            assert len(first["x_deg"]) >= 1
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


def test_what_is_opened_for_a_connection_that_is_gone_is_closed(
    here: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knew of it: it went on, and the app and the device paid for samples nobody got."""
    service, name = here.service, "vanished"
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


def soak(home: Path, seconds: float, **environment: str) -> None:
    """Apps come, stream, read slowly, ask, misbehave and go; afterwards the process
    is as it was."""
    settings = {"GAZEVEIL_TRACKER": "simulated", "GAZEVEIL_REQUESTS_PER_MINUTE": "1000000"}
    with Process(home, free_port(), **settings, **environment) as process:
        here = Running(process.address, "")
        here.owner = process.owner()
        tokens = [here.app(f"app-{n}", grant="study") for n in range(4)]
        stranger = httpx.Client(base_url=process.address)
        until(lambda: stranger.get("/health/ready").status_code == 200, 300)

        def round_of(number: int) -> None:
            token = tokens[number % 4]
            with (
                here.talk(token) as talk,
                here.talk(tokens[(number + 1) % 4], max_queue=1, close_timeout=0.1) as slow,
            ):
                talk.subscribe(1, what="samples", mechanism=STUDY, encoding="binary")
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
            time.sleep(0.1)  # an app may ask 600 times a minute

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


LONG = (pytest.mark.heavy, pytest.mark.timeout(1200))


@pytest.mark.parametrize(
    ("database", "seconds"),
    [
        ("sqlite", 4),
        pytest.param("sqlite", 600, marks=LONG),
        pytest.param("postgresql", 600, marks=LONG),
    ],
)
def test_a_soak_returns_memory_handles_and_threads(
    quick_folder: Path, database: str, seconds: float, request: pytest.FixtureRequest
) -> None:
    named = database == "postgresql"
    url = {"GAZEVEIL_DATABASE": request.getfixturevalue("postgres").fresh()} if named else {}
    soak(quick_folder / "home", seconds, **url)
