"""The ledger's file is removed, replaced by an older copy, locked, or its disk is full, while the
service runs: noticed, told, and nothing leaves.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import pytest

from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger import database
from gazeveil.gatekeeper.ledger.database import LostFileError
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
from tests.support.gatekeeper_running import Running, running, until
from tests.support.postgres import quick_folder  # noqa: F401
from tests.support.stalls import SteadyClock

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="an open file cannot be removed there"
)

#: Ten samples for one epsilon, so that leases are paid all the time.
TEN = "kaleido-uniform:epsilon=1,w=10,r_deg=5"


def charge(ledger: Ledger, number: int) -> None:
    one = Charge("shop", "epsilon", Fraction(1), Fraction(10**6))
    ledger.charge(f"request {number}", [one], "an answer", now_ns=1)


@pytest.fixture
def ledger(quick_folder: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{quick_folder / 'a.sqlite'}", patience_s=0.3) as found:
        charge(found, 1)
        yield found


def test_a_removed_file_takes_no_charge_and_may_come_back(
    ledger: Ledger, quick_folder: Path
) -> None:
    path, aside = quick_folder / "a.sqlite", quick_folder / "aside"
    path.rename(aside)
    for call in (
        lambda: charge(ledger, 2),
        lambda: ledger.spent("shop", "epsilon", 1),
        lambda: ledger.all_spent(1),
    ):
        with pytest.raises(
            LostFileError,
            match=r"a\.sqlite was removed while the service runs\. Put that file back",
        ):
            call()
    assert ledger.database.trouble is not None
    assert str(quick_folder) not in ledger.database.trouble
    aside.rename(path)
    charge(ledger, 3)
    assert (ledger.spent("shop", "epsilon", 1), ledger.database.trouble) == (2, None)


def test_an_older_copy_in_its_place_is_never_believed(ledger: Ledger, quick_folder: Path) -> None:
    path = quick_folder / "a.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA wal_checkpoint(FULL)")
    other.close()
    shutil.copy(path, quick_folder / "older")
    charge(ledger, 2)
    os.replace(quick_folder / "older", path)
    for _ in range(3):
        with pytest.raises(LostFileError, match="was replaced by another while the service runs"):
            charge(ledger, 3)
        with pytest.raises(LostFileError, match="replaced"):
            ledger.spent("shop", "epsilon", 1)


def test_an_older_copy_written_over_it_is_never_believed(
    ledger: Ledger, quick_folder: Path
) -> None:
    """The same file with another content, which SQLite does not look at until it starts anew."""
    path = quick_folder / "a.sqlite"
    ledger.database.file.alone = True
    for number in range(2, 60):
        charge(ledger, number)
    path.write_bytes(path.read_bytes())
    for call in (lambda: charge(ledger, 3001), lambda: ledger.all_spent(1)):
        with pytest.raises(LostFileError, match="was overwritten while the service runs"):
            call()


def test_our_own_writes_are_no_overwriting(ledger: Ledger) -> None:
    ledger.database.file.alone = True
    before = ledger.database.file.path.stat().st_mtime_ns
    for number in range(2, 1500):
        charge(ledger, number)
    assert ledger.database.file.path.stat().st_mtime_ns > before, "the log was copied into it"
    assert ledger.spent("shop", "epsilon", 1) == 1499


def test_a_write_ahead_log_that_is_gone_is_noticed(ledger: Ledger, quick_folder: Path) -> None:
    (quick_folder / "a.sqlite-wal").unlink()
    with pytest.raises(LostFileError, match="wal was removed"):
        charge(ledger, 2)


def test_a_disk_without_room_is_told_before_a_charge_fails(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.all_spent(1)
    monkeypatch.setattr(database, "ROOM_BYTES", 2**62)
    with pytest.raises(LedgerError, match=r"its disk is full\. Free some space"):
        ledger.all_spent(1)
    assert ledger.database.trouble == "The disk that the ledger is on is full. Free some space."


# --- the running service
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def here(quick_folder: Path) -> Iterator[Running]:
    with running(quick_folder / "home") as found:
        yield found


def _not_ready(here: Running, said: str) -> None:
    # The first words may be that it does not answer: why comes with the next question to it.
    def asked() -> httpx.Response:
        return httpx.get(here.address + "/health/ready")

    until(lambda: asked().status_code == 503 and said in str(asked().json()["reason"]), 30, 0.1)
    answer = asked().json()
    assert answer["ready"] is answer["database"] is False
    assert "/" not in answer["reason"], "strangers read this page"


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_lost_in_the_middle_of_a_stream_ends_it_and_its_spending_is_not_forgotten(
    here: Running, how: str
) -> None:
    path = here.service.settings.home / "gatekeeper.sqlite"
    aside = path.with_name("aside")
    token = here.app("shop")
    with here.tracker() as tracker, here.talk(token) as talk, SteadyClock() as clock:
        assert talk.subscribe(1, what="samples", mechanism=TEN)["type"] == "subscribed"
        assert talk.subscribe(2, what="fixation")["type"] == "subscribed"
        tracker.send(np.full(5, 180.0), 90.0)
        talk.until("samples")
        path.rename(aside)
        if how == "replaced":
            shutil.copy(aside, path)
        lost, got, ended = clock(), 0, set()
        while len(ended) < 2:
            tracker.send(np.full(5, 180.0), 90.0)
            message = talk.hear(60)
            got += len(message.get("x_deg", ()))
            if message["type"] == "ended":
                assert message["code"] == "ledger"
                ended.add(message["id"])
            time.sleep(0.02)
        assert clock() - lost < 15, "two seconds of silence, on a machine that is busy"
        _not_ready(here, "removed" if how == "removed" else "replaced by another")
        with here.client(token) as app:
            assert app.get("/v1/tile").json()["error"]["code"] == "ledger"
        assert here.owner.post("/v1/apps/shop/grant", json={"preset": "follow"}).status_code == 503
        assert here.owner.post("/v1/consent", json={"on": False}).json()["on"] is False
        aside.replace(path)
        until(lambda: httpx.get(here.address + "/health/ready").status_code == 200, 20, 0.1)
        spent = here.service.ledger.spent("app:shop", "epsilon", time.time_ns())
        assert spent * 10 >= got + 5, "what was given is in the file that came back"
        until(lambda: here.owner.post("/v1/consent", json={"on": True}).status_code == 200, 20, 0.2)
        numbers = itertools.count(3)
        until(
            lambda: (
                talk.subscribe(next(numbers), what="samples", mechanism=TEN)["type"] == "subscribed"
            ),
            30,
            0.2,
        )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of twelve megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("Only root can make a small disk here.")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_streams_refuses_and_lets_the_owner_take_away(small_disk: Path) -> None:
    with running(small_disk / "home") as here:
        token = here.app("shop")
        with here.tracker() as tracker, here.talk(token) as talk:
            assert talk.subscribe(1, what="samples", mechanism=TEN)["type"] == "subscribed"
            assert talk.subscribe(2, what="fixation")["type"] == "subscribed"
            ballast = small_disk / "ballast"
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            ended: set[int] = set()
            while len(ended) < 2:
                tracker.send(np.full(5, 180.0), 90.0)
                message = talk.hear(60)
                if message["type"] == "ended":
                    assert message["code"] == "ledger"
                    ended.add(message["id"])
                time.sleep(0.02)
            _not_ready(here, "full")
            assert (
                here.owner.post("/v1/apps/shop/grant", json={"preset": "follow"}).status_code == 503
            )
            with SteadyClock() as clock:
                assert here.owner.post("/v1/apps/shop/revoke").json()["state"] == "revoked"
                # 0.4 s, and a call that waited for the ledger would take its patience of 5 s.
                assert clock() < 3.0
            assert b'"revoke"' in (small_disk / "home" / "taken-back").read_bytes(), (
                "marked although the disk is full"
            )
            ballast.unlink()
            until(lambda: httpx.get(here.address + "/health/ready").status_code == 200, 20, 0.1)
            assert here.service is not None
            service = here.service
            until(lambda: not service.revocations.pending, 20, 0.1)
