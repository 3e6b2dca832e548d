"""What the owner did last holds: rounds of grant, revoke and OFF from three clients at once, on a
slow database, with the clock set back and the process killed.
"""

from __future__ import annotations

import os
import random
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
from tests.support.postgres import quick_folder  # noqa: F401

#: Every write takes so long, and each start finds the clock set back further.
SLOW_S, BACK_S = 0.08, 1800

#: Loaded by the interpreter of the service before anything else.
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

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(SLOW_AND_LATE)
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        end = datetime.now(UTC) + timedelta(seconds=1)
        (self.home / "policy.toml").write_text(
            f'[apps.old]\npreset = "follow"\nexpires = {end.isoformat()}\n'
        )
        self.process = Process(
            self.home, free_port(), PYTHONPATH=os.pathsep.join((str(folder), str(ROOT / "src")))
        )
        self.starts, self.tokens = 0, []
        self.broken: list[str] = []
        self.holds = {"shop": "none", "consent": False}

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

    def do(self, client: int, command: str) -> int:
        """One command of one client; its status, 0 where the process was killed."""
        path, body = COMMANDS[command]
        headers = {"Authorization": f"Bearer {self.tokens[client]}"}
        try:
            answer = httpx.post(self.process.address + path, json=body, headers=headers, timeout=60)
        except httpx.HTTPError as error:
            self.broken.append(repr(error))
            return 0
        return answer.status_code

    def did(self, command: str) -> None:
        """The owner's last command was answered."""
        if command in ("on", "off"):
            self.holds["consent"] = command == "on"
        else:
            self.holds["shop"] = "granted" if command == "grant" else "revoked"

    def shown(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.tokens[0]}"}
        page = httpx.get(self.process.address + "/v1/apps", headers=headers, timeout=60).json()
        return {"consent": page["consent"], **{app["app"]: app["state"] for app in page["apps"]}}


@pytest.fixture
def device(quick_folder: Path) -> Iterator[Device]:
    made = Device(quick_folder)
    made.start()
    try:
        yield made
    finally:
        if made.process.process is not None:
            made.process.kill()


def round_of(device: Device, pool: ThreadPoolExecutor, rng: random.Random) -> None:
    """Two clients give, again and again; the third takes away while they wait, or gives last."""
    last = rng.choice(("revoke", "off", "grant", "on"))
    waiting: list[Future[int]] = []
    for _ in range(3):
        waiting += [
            pool.submit(device.do, client, rng.choice(("grant", "on"))) for client in (0, 1)
        ]
        time.sleep(rng.uniform(0.0, SLOW_S))
    if last in ("grant", "on"):
        # What is given last is given after all else was answered, or which was last is not known.
        done = [one.result() for one in waiting]
        assert set(done) <= {200, 409, 503}, device.broken
        other = "on" if last == "grant" else "grant"
        until(lambda: device.do(0, other) == 200, 30, 0.1)
        until(lambda: device.do(2, last) == 200, 30, 0.1)
        device.did(other)
        device.did(last)
        return
    assert device.do(2, last) == 200
    device.did(last)
    kept = "consent" if last == "revoke" else "shop"
    if rng.random() < 0.5:
        assert {one.result() for one in waiting} <= {200, 409, 503}
    else:
        device.process.kill()
        device.start()
        [one.result() for one in waiting]
    # Of the other thing the clients gave as they liked: what it is now is what holds.
    device.holds[kept] = device.shown()[kept]


def rounds(device: Device, count: int) -> None:
    rng = random.Random(1)
    with ThreadPoolExecutor(8) as pool:
        for number in range(count):
            round_of(device, pool, rng)
            for again in (False, True):
                if again:
                    device.process.kill()
                    device.start()
                shown = device.shown()
                assert shown["old"] == "expired", f"round {number}: an end came undone"
                held = {name: shown[name] for name in device.holds}
                assert held == device.holds, f"round {number}, after a restart: {again}"


def test_what_the_owner_did_last_holds_in_some_rounds(device: Device) -> None:
    rounds(device, 2)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_what_the_owner_did_last_holds_in_forty_rounds(device: Device) -> None:
    rounds(device, 40)
