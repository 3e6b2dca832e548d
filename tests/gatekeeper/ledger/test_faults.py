"""Faults under the ledger: calls that fail, answers that get lost, locks, full disks, restarts,
kill -9. It may charge too much, never too little.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
from tests.support.gatekeeper_running import until
from tests.support.ledger_entries import adds_up
from tests.support.postgres import Server, database_url, postgres, quick_folder  # noqa: F401

LIMIT = Fraction(10**9)
BOTH = tuple(Charge(account, "epsilon", Fraction(1), LIMIT) for account in ("device", "shop"))


def spent(ledger: Ledger, account: str = "shop") -> Fraction:
    return ledger.spent(account, "epsilon", 0)


def until_refused(ledger: Ledger) -> tuple[int, str]:
    """Charge until it is refused: how often it was given, and what was said."""
    for given in range(10_000):
        try:
            ledger.charge(f"r{given}", BOTH, "x" * 400, 0)
        except LedgerError as error:
            return given, str(error)
    return 10_000, "never refused"


class Saboteur:
    """Counts the calls that a ledger makes on its driver, and makes the N-th one fail (or all from
    the N-th on).
    """

    def __init__(self, ledger: Ledger, how: str, error: str, at: int) -> None:
        self.how, self.at, self.calls, self.met = how, at, 0, False
        database = ledger.database
        self.error: Exception = sqlite3.OperationalError(error)
        if not database.sqlite:
            import psycopg

            self.error = psycopg.OperationalError(error)
        connect = database.connect
        database.connect = lambda: Sabotaged(self, connect())  # type: ignore[method-assign]
        database.later(lambda: setattr(database, "_connection", None)).result()

    def call(self, work: Callable[[], Any], what: str) -> Any:
        self.calls += 1
        if self.calls == self.at or (self.calls > self.at and self.how == "persistent"):
            self.met = True
            if self.how == "answer lost" and what == "COMMIT":
                work()
            raise self.error
        return work()


class Sabotaged:
    """A connection whose statements pass by the saboteur."""

    def __init__(self, boss: Saboteur, connection: Any) -> None:
        self.boss, self.connection = boss, connection

    def execute(self, text: str, values: Any) -> Any:
        return self.boss.call(lambda: self.connection.execute(text, values), text)

    def close(self) -> None:
        self.connection.close()


ERRORS = {
    "sqlite": ("database is locked", "disk I/O error"),
    "postgresql": ("server closed the connection unexpectedly",),
}


@pytest.mark.parametrize("how", ["transient", "persistent", "answer lost"])
def test_the_nth_call_may_fail_and_nothing_is_given_without_its_charge(
    database_url: str, how: str
) -> None:
    expected = Fraction(0)
    for error in ERRORS[database_url.partition(":")[0]]:
        for n in itertools.count(1):
            request = f"{error} {n}"
            # A fault that passes is met at once; only one that stays takes all of the patience.
            ledger = Ledger.open(database_url, patience_s=60.0)
            ledger.database.patience_s = 0.1 if how == "persistent" else 60.0
            saboteur, given = Saboteur(ledger, how, error, n), True
            try:
                ledger.charge(request, BOTH, "", 0)
            except LedgerError:
                given = False
            finally:
                ledger.close()
            with Ledger.open(database_url) as after:
                now = spent(after)
                assert now == spent(after, "device"), "one account paid and the other did not"
                assert now - expected in ({1} if given else {0, 1})
                if now == expected + 1:  # whoever tries once more with the same id pays once
                    after.charge(request, BOTH, "", 0)
                    assert spent(after) == now
                assert adds_up(after)
                expected = now
            if how != "persistent" and error != "disk I/O error":
                assert given, "a fault that passes was not survived"
            if not saboteur.met:
                assert given
                break
        assert n > 4, "the fault was never met, so nothing was tested"


def test_a_locked_database_is_waited_for_and_then_refused_with_a_sentence(
    quick_folder: Path,
) -> None:
    path = quick_folder / "ledger.db"
    ledger = Ledger.open(f"sqlite:///{path}", patience_s=0.3)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(LedgerError, match="cannot be written: database is locked"):
        ledger.charge("a", BOTH, "", 0)
    assert time.monotonic() - began < 60, "its patience is 0.3 s"
    assert spent(ledger) == 0  # readers are not in the way
    with pytest.raises(LedgerError, match="locked"):
        ledger.all_spent(0)  # which also sees that a write would be taken
    ledger.database.patience_s = 60
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    ledger.charge("b", BOTH, "", 0)
    assert spent(ledger) == 1
    ledger.close()
    other.close()


def test_a_locked_table_of_postgresql_is_waited_for_and_then_refused_with_a_sentence(
    postgres: Server,
) -> None:
    import psycopg

    url = postgres.fresh()
    ledger = Ledger.open(url, patience_s=1)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE ledger_accounts")
        with pytest.raises(LedgerError, match=r"cannot be written: .*lock timeout|in time"):
            ledger.charge("a", BOTH, "", 0)
    ledger.database.patience_s = 60
    ledger.charge("a", BOTH, "", 0)
    assert spent(ledger) == 1
    ledger.close()


def test_a_full_disk_refuses_and_recovers_when_there_is_room(quick_folder: Path) -> None:
    with Ledger.open(f"sqlite:///{quick_folder / 'ledger.db'}") as ledger:
        # SQLite's own limit gives SQLite's own error: database or disk is full.
        ((now,),) = ledger.database.rows("PRAGMA page_count")
        ledger.database.rows(f"PRAGMA max_page_count={now + 3}")
        given, said = until_refused(ledger)
        assert "cannot be written: database or disk is full" in said
        assert spent(ledger) == given > 0
        trouble = "The disk that the ledger is on is full. Free some space."
        assert ledger.database.trouble == trouble
        ledger.database.rows("PRAGMA max_page_count=100000")
        ledger.all_spent(0)
        assert ledger.database.trouble is None
        ledger.charge("one more", BOTH, "x" * 400, 0)
        assert (spent(ledger), adds_up(ledger)) == (given + 1, True)


def test_postgresql_restarted_in_the_middle_loses_no_charge(postgres: Server) -> None:
    ledger = Ledger.open(postgres.fresh(), patience_s=60)
    given: list[str] = []
    stop = threading.Event()

    def work() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            ledger.charge(f"r{i}", BOTH, "", 0)
            given.append(f"r{i}")

    thread = threading.Thread(target=work)
    thread.start()
    for mode in ("immediate", "fast"):
        before = len(given)
        until(lambda n=before: len(given) > n + 20, 60)
        postgres.stop(mode)
        postgres.start()
    before = len(given)
    until(lambda: len(given) > before + 20, 60)
    stop.set()
    thread.join()
    assert (spent(ledger), adds_up(ledger)) == (len(given), True)
    ledger.close()


WORKER = """
import itertools, sys
from fractions import Fraction
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
ledger, one = Ledger.open(sys.argv[1]), Fraction(1)
costs = [Charge(account, "epsilon", one, one * 10**9) for account in ("device", "shop")]
for i in itertools.count():
    ledger.charge(f"{sys.argv[2]} {i}", costs, "", 0)
    sys.stdout.write("released\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.heavy)])
def test_a_worker_killed_between_charge_and_release_has_paid(database_url: str, times: int) -> None:
    chance, released = random.Random(times), 0
    with Ledger.open(database_url) as ledger:
        for run in range(times):
            command = [sys.executable, "-c", WORKER, database_url, f"run {run}"]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert worker.stdout.readline() == "released\n"
            time.sleep(chance.uniform(0.0, 0.15))
            os.kill(worker.pid, signal.SIGKILL)
            rest, _ = worker.communicate()
            released += 1 + rest.count("released\n")
            # At most one request of each killed worker was charged and not released.
            assert released <= spent(ledger) == spent(ledger, "device") <= released + run + 1
            assert adds_up(ledger)
        ledger.charge("afterwards", BOTH, "", 5)
    assert released >= times
