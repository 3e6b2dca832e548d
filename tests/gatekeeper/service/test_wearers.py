"""Whose gaze is whose when another person puts the device on: the owner's page, and samples that
come while the switch waits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import numpy as np

from gazeveil.gatekeeper import Gatekeeper, Ledger, Policy
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.policy.wearers import Wearer
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings

STEP_NS = 8_333_333

POLICY = """
version = 1
consent = true
[apps.game]
preset = "study"
[wearers.anna]
consent = false
"""


def test_the_owner_sees_another_wearers_gaze_only_with_her_consent() -> None:
    for consent in (False, True):
        policy = Policy({}, consent=True, others={"anna": Wearer(consent=consent)})
        with (
            Ledger.open("sqlite://") as ledger,
            Gatekeeper(policy, ledger, rate_hz=120.0) as keeper,
        ):
            keeper.switch_wearer("anna")
            seen: list[float] = []
            keeper.watch(lambda t, x, y, v, seen=seen: seen.extend(x))
            keeper.push(np.arange(5) * STEP_NS, np.arange(10.0, 15.0), np.full(5, 90.0))
            keeper.push(10 * STEP_NS, 16.0, 90.0)
            assert bool(seen) is consent


def test_the_owner_sees_the_owners_own_gaze_without_consent_too() -> None:
    with (
        Ledger.open("sqlite://") as ledger,
        Gatekeeper(Policy({}, consent=False), ledger, rate_hz=120.0) as keeper,
    ):
        seen: list[float] = []
        keeper.watch(lambda t, x, y, v: seen.extend(x))
        keeper.push(np.arange(5) * STEP_NS, np.arange(10.0, 15.0), np.full(5, 90.0))
        assert seen == [10.0, 11.0, 12.0, 13.0, 14.0]


def test_nothing_of_the_next_wearer_reaches_the_last_ones_apps_while_a_switch_waits(
    tmp_path: Path,
) -> None:
    """A switch waits for the same lock as a grant that the database is slow to write; samples went
    on to the old apps for as long.
    """
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "policy.toml"
    path.write_text(POLICY)
    settings = Settings(home=home, tracker="websocket", rate_hz=120.0, policy=path, late_ms=0)
    asyncio.run(_switching(settings))


async def _switching(settings: Settings) -> None:
    service = Service(settings)
    got: list[int] = []
    sent = 0

    def block() -> Block:
        nonlocal sent
        t = (np.arange(4) + sent) * STEP_NS
        sent += 4
        return Block(
            t.astype(np.int64), np.full(4, 100.0), np.full(4, 90.0), np.ones(4, dtype=np.bool_)
        )

    try:
        await service.switch_wearer("owner", stale=True)
        service.keeper.app("game").open_private_stream(
            "gaussian:sigma_deg=2", lambda t, x, y, v: got.append(len(t))
        )
        for _ in range(20):
            await service.tracker_input.push(block())
            await service.tracker_input.settled()
        assert sum(got) == sent
        before = sum(got)
        held, let_go = threading.Event(), threading.Event()

        def slow_grant() -> None:
            with service._lock:
                held.set()
                let_go.wait(60)

        grant = threading.Thread(target=slow_grant)
        grant.start()
        assert held.wait(60)
        switch = asyncio.create_task(service.switch_wearer("anna", stale=True))
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            await asyncio.sleep(0.03)
            await service.tracker_input.push(block())
        assert not switch.done()
        let_go.set()
        await switch
        await service.tracker_input.settled()
        grant.join()
        assert service.keeper.wearer == "anna"
        assert sum(got) == before
    finally:
        await service.close()
