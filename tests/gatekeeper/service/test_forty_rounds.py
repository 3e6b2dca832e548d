"""What the owner did last holds: rounds of grant, revoke and OFF from three clients at once, on a
slow database, with the clock set back and the process killed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gatekeeper_running import Process, free_port, until
from tests.support.places import ROOT
from tests.support.postgres import database_url, postgres, quick_folder  # noqa: F401

#: Every write takes so long, and each start finds the clock set back further.
SLOW_S, BACK_S = 0.08, 1800

#: How long a client waits for an answer, in seconds: a busy machine may stand still for minutes,
#: and an answer that comes late is not lost.
PATIENCE_S = 600

#: Statuses of a command that gives: done, cancelled by what was taken away, not written.
GIVING = {200, 409, 503}

#: Loaded by the interpreter of the service before anything else. A command that gives leaves a byte
#: when it has come: a busy machine reads several connections in any order, and late.
SLOW_AND_LATE = f"""
import os, time
back_ns = int(os.environ["BACK_NS"])
real_ns, real = time.time_ns, time.time
time.time_ns = lambda: real_ns() - back_ns
time.time = lambda: real() - back_ns / 1e9
from gazeveil.gatekeeper.ledger.database import Database
write = Database.write
def slow(self, work, patience_s=None):
    time.sleep({SLOW_S})
    return write(self, work, patience_s)
Database.write = slow
from gazeveil.gatekeeper.core.device_state import DeviceState
arrival = DeviceState.arrival
def counted(self):
    with open(os.environ["ARRIVALS"], "ab") as file:
        file.write(b".")
    return arrival(self)
DeviceState.arrival = counted
"""

#: What an owner may do, whether it takes away, and what holds afterwards.
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "grant": ("/v1/apps/shop/grant", {"preset": "follow", "lasts": "until-stopped"}),
    "revoke": ("/v1/apps/shop/revoke", {}),
    "on": ("/v1/consent", {"on": True}),
    "off": ("/v1/consent", {"on": False}),
}


class Device:
    """A service that is killed again and again, and what its owner did last."""

    def __init__(self, folder: Path, database: str) -> None:
        (folder / "sitecustomize.py").write_text(SLOW_AND_LATE)
        self.arrivals = folder / "arrivals"
        self.arrivals.touch()
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        end = datetime.now(UTC) + timedelta(seconds=1)
        policy = folder / "policy.toml"
        policy.write_text(f'[apps.old]\npreset = "follow"\nexpires = {end.isoformat()}\n')
        url = folder / "database-url"
        url.write_text(database)
        url.chmod(0o600)
        self.process = Process(
            self.home,
            free_port(),
            GAZEVEIL_DATABASE_FILE=str(url),
            PYTHONPATH=os.pathsep.join((str(folder), str(ROOT / "src"))),
            GAZEVEIL_POLICY=str(policy),
            ARRIVALS=str(self.arrivals),
        )
        self.starts, self.kills, self.tokens = 0, 0, []
        self.lost: list[str] = []
        self.holds = {"shop": "none", "consent": False}
        self.client = httpx.Client(
            timeout=PATIENCE_S,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    def start(self) -> None:
        """Start again, with the clock set back further than ever."""
        self.process.environment["BACK_NS"] = str(self.starts * BACK_S * 10**9)
        self.process.start(120)
        if not self.starts:
            owner = self.process.owner()
            for name in ("one", "two", "three"):
                made = owner.post("/v1/owner/tokens", json={"name": name}).raise_for_status()
                self.tokens.append(made.json()["token"])
            owner.post("/v1/apps", json={"name": "shop"}).raise_for_status()
            owner.close()
            until(lambda: self.shown()["old"] == "expired", 30, 0.2)
        self.starts += 1

    def restart(self) -> None:
        """Kill the process and start it again."""
        self.kills += 1
        self.process.kill()
        self.start()

    def do(self, client: int, command: str, sent: threading.Event | None = None) -> int:
        """Status of one command of one client; 0 where the process was killed before it answered.

        `sent` is set once the whole request has left the client. An answer that is lost while the
        process lives is a fault.
        """
        path, body = COMMANDS[command]
        kills, left = self.kills, sent or threading.Event()

        def trace(event: str, _: dict[str, Any]) -> None:
            if event.endswith("send_request_body.complete"):
                left.set()

        try:
            answer = self.client.post(
                self.process.address + path,
                json=body,
                headers={"Authorization": f"Bearer {self.tokens[client]}"},
                extensions={"trace": trace},
            )
        except httpx.TransportError as error:
            if self.kills == kills:
                self.lost.append(f"{command}: {error!r}")
            return 0
        finally:
            left.set()
        return answer.status_code

    def did(self, command: str) -> None:
        """The owner's last command was answered."""
        if command in ("on", "off"):
            self.holds["consent"] = command == "on"
        else:
            self.holds["shop"] = "granted" if command == "grant" else "revoked"

    def shown(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.tokens[0]}"}
        page = self.client.get(self.process.address + "/v1/apps", headers=headers).json()
        return {"consent": page["consent"], **{app["app"]: app["state"] for app in page["apps"]}}


@pytest.fixture
def device(quick_folder: Path, database_url: str) -> Iterator[Device]:
    made = Device(quick_folder, database_url)
    try:
        made.start()
        yield made
    finally:
        if made.process.process is not None:
            made.process.kill()
        made.client.close()


def round_of(device: Device, pool: ThreadPoolExecutor, rng: random.Random) -> None:
    """Two clients give, again and again; the third takes away while they wait, or gives last."""
    last = rng.choice(("revoke", "off", "grant", "on"))
    waiting: list[Future[int]] = []
    for _ in range(3):
        sent, came = [threading.Event() for _ in (0, 1)], device.arrivals.stat().st_size
        waiting += [
            pool.submit(device.do, client, rng.choice(("grant", "on")), sent[client])
            for client in (0, 1)
        ]
        # A command that leaves its client after the last one would rightly hold.
        assert all(event.wait(PATIENCE_S) for event in sent)
        until(lambda came=came: device.arrivals.stat().st_size >= came + 2, PATIENCE_S, 0.01)
        time.sleep(rng.uniform(0.0, SLOW_S))
    if last in ("grant", "on"):
        # What is given last is given after all else was answered, or which was last is not known.
        done = [one.result() for one in waiting]
        assert set(done) <= GIVING, device.lost
        other = "on" if last == "grant" else "grant"
        until(lambda: device.do(0, other) == 200, 30, 0.1)
        until(lambda: device.do(2, last) == 200, 30, 0.1)
        device.did(other)
        device.did(last)
        return
    assert device.do(2, last) == 200, device.lost
    device.did(last)
    kept = "consent" if last == "revoke" else "shop"
    if rng.random() < 0.5:
        assert {one.result() for one in waiting} <= GIVING, device.lost
    else:
        device.restart()
        assert {one.result() for one in waiting} <= {0, *GIVING}
        assert not device.lost
    # Of the other thing the clients gave as they liked: what it is now is what holds.
    device.holds[kept] = device.shown()[kept]


def rounds(device: Device, count: int) -> None:
    rng = random.Random(1)
    with ThreadPoolExecutor(8) as pool:
        for number in range(count):
            round_of(device, pool, rng)
            for again in (False, True):
                if again:
                    device.restart()
                shown = device.shown()
                assert shown["old"] == "expired", f"round {number}: an end came undone"
                held = {name: shown[name] for name in device.holds}
                assert held == device.holds, f"round {number}, after a restart: {again}"


@pytest.mark.parametrize(
    "count", [1, pytest.param(40, marks=[pytest.mark.heavy, pytest.mark.timeout(3600)])]
)
def test_what_the_owner_did_last_holds_in_every_round(device: Device, count: int) -> None:
    rounds(device, count)
