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
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
from tests.support.postgres import Server, database_url, postgres, quick_folder  # noqa: F401

BOTH = (Charge("device", "epsilon", Fraction(1)), Charge("shop", "epsilon", Fraction(1)))


def prepared(url: str, patience_s: float = 5.0) -> Ledger:
    ledger = Ledger.open(url, patience_s)
    for account in ("device", "shop"):
        ledger.set_limit(account, "epsilon", Fraction(10**9), "ever")
    return ledger


def until_refused(ledger: Ledger) -> tuple[int, str]:
    """Charge until it is refused: how often it was given, and what was said."""
    for given in range(10_000):
        try:
            ledger.charge(f"r{given}", BOTH, "x" * 400, 0)
        except LedgerError as error:
            return given, str(error)
    return 10_000, "never refused"


class Saboteur:
    """Counts the calls a ledger makes on its driver, and makes the N-th one fail (or all from the
    N-th on).
    """

    def __init__(self, ledger: Ledger, how: str, error: str, at: int) -> None:
        self.how, self.at, self.error, self.calls, self.met = how, at, error, 0, False
        engine = ledger.database.engine
        self.sqlite = ledger.database.sqlite
        engine.dispose()
        sa.event.listen(engine, "do_connect", self.connect)

    def connect(self, dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        """A connection whose statements and commits pass by here."""
        boss = self
        if self.sqlite:

            class Cursor(sqlite3.Cursor):
                def execute(self, *a: Any) -> Any:
                    return boss.call(lambda: super(Cursor, self).execute(*a), str(a[0]))

                def executemany(self, *a: Any) -> Any:
                    return boss.call(lambda: super(Cursor, self).executemany(*a), str(a[0]))

            class Connection(sqlite3.Connection):
                def cursor(self, factory: Any = Cursor) -> Any:
                    return super().cursor(factory)

                def commit(self) -> None:
                    boss.call(super().commit, "COMMIT")

            return sqlite3.connect(*arguments, **{**options, "factory": Connection})
        import psycopg

        class PgCursor(psycopg.Cursor[Any]):
            def execute(self, *a: Any, **k: Any) -> Any:
                return boss.call(lambda: super(PgCursor, self).execute(*a, **k), str(a[0]))

            def executemany(self, *a: Any, **k: Any) -> Any:
                return boss.call(lambda: super(PgCursor, self).executemany(*a, **k), str(a[0]))

        class PgConnection(psycopg.Connection[Any]):
            def commit(self) -> None:
                boss.call(super().commit, "COMMIT")

        return PgConnection.connect(*arguments, **{**options, "cursor_factory": PgCursor})

    def call(self, work: Callable[[], Any], what: str) -> Any:
        if what.startswith(("PRAGMA", "select pg_catalog", "show ")):
            return work()
        self.calls += 1
        if self.calls == self.at or (self.calls > self.at and self.how == "persistent"):
            self.met = True
            if self.how == "answer lost" and what == "COMMIT":
                work()
            if self.sqlite:
                raise sqlite3.OperationalError(self.error)
            import psycopg

            raise psycopg.OperationalError(self.error)
        return work()


ERRORS = {
    "sqlite": ("database is locked", "disk I/O error"),
    "postgresql": ("server closed the connection unexpectedly",),
}


@pytest.mark.parametrize("how", ["transient", "persistent", "answer lost"])
@pytest.mark.parametrize("what", ["charge", "reserve and commit"])
def test_the_nth_call_may_fail_and_nothing_is_given_without_its_charge(
    database_url: str, what: str, how: str
) -> None:
    engine = "sqlite" if database_url.startswith("sqlite") else "postgresql"
    prepared(database_url).close()
    expected = Fraction(0)
    for error in ERRORS[engine]:
        for n in itertools.count(1):
            assert n < 40, "the operation never ran without meeting the fault"
            request = f"{what} {how} {error} {n}"
            # A fault that passes is met at once; only one that stays takes all of the patience.
            # To connect may take a busy machine longer than that.
            ledger = Ledger.open(database_url, patience_s=60.0)
            ledger.database.patience_s = 0.15 if how == "persistent" else 60.0
            saboteur = Saboteur(ledger, how, error, n)
            try:
                if what == "charge":
                    ledger.charge(request, BOTH, "", 0)
                else:
                    ledger.reserve(request, BOTH, "", 0, 10)
                    ledger.commit(request, 1)
                given = True
            except LedgerError as failure:
                given, said = False, str(failure)
            else:
                said = ""
            finally:
                ledger.close()
            assert "\n" not in said
            with Ledger.open(database_url) as after:
                spent = [after.spent(account, "epsilon", 99) for account in ("device", "shop")]
                assert spent[0] == spent[1], "one account paid and the other did not"
                assert spent[0] - expected in ({1} if given else {0, 1})
                # Whoever tries once more with the same id pays once.
                if spent[0] == expected + 1 and what == "charge":
                    after.charge(request, BOTH, "", 0)
                    assert after.spent("shop", "epsilon", 99) == spent[0]
                assert after.verify() == ()
                expected = spent[0]
            passes = error != "disk I/O error"
            if how != "persistent" and passes:
                assert given, "a fault that passes was not survived"
            if not saboteur.met:
                assert given
                break
        assert n > 4, "the fault was never met, so nothing was tested"


def test_no_audit_row_means_an_error_and_the_chain_stays_whole(database_url: str) -> None:
    prepared(database_url).close()
    for n in itertools.count(1):
        ledger = Ledger.open(database_url, patience_s=60.0)
        log = AuditLog(ledger)
        before = log.head()[0]
        ledger.database.patience_s = 0.1
        saboteur = Saboteur(ledger, "persistent", "disk I/O error", n)
        try:
            log.record("answer", "shop", {"n": n}, n)
            written = True
        except LedgerError:
            written = False
        ledger.close()
        with Ledger.open(database_url) as after:
            assert AuditLog(after).verify()
            assert AuditLog(after).head()[0] == before + written
        if not saboteur.met:
            assert written
            break
    assert n > 3


def test_a_locked_database_is_waited_for_and_then_refused_with_a_sentence(
    quick_folder: Path,
) -> None:
    path = quick_folder / "ledger.db"
    ledger = prepared(f"sqlite:///{path}", patience_s=0.3)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(LedgerError, match="cannot be written: database is locked"):
        ledger.charge("a", BOTH, "", 0)
    assert time.monotonic() - began < 60, "its patience is 0.3 s"
    assert ledger.spent("shop", "epsilon", 0) == 0  # readers are not in the way
    patient = Ledger.open(f"sqlite:///{path}", patience_s=60)
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    assert patient.charge("b", BOTH, "", 0).state == "committed"
    assert patient.spent("shop", "epsilon", 0) == 1
    for one in (ledger, patient, other):
        one.close()


def test_a_locked_row_of_postgresql_is_waited_for_and_then_refused_with_a_sentence(
    postgres: Server,
) -> None:
    import psycopg

    url = postgres.fresh()
    ledger = prepared(url, patience_s=1)
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM ledger_heads FOR UPDATE")
        with pytest.raises(LedgerError, match=r"cannot be written: .*lock timeout"):
            ledger.charge("a", BOTH, "", 0)
    assert ledger.charge("a", BOTH, "", 0).state == "committed"
    ledger.close()


def test_a_full_disk_refuses_and_recovers_when_there_is_room(quick_folder: Path) -> None:
    url = f"sqlite:///{quick_folder / 'ledger.db'}"
    ledger = prepared(url)
    pages: list[int] = []

    def full(connection: sqlite3.Connection, record: object) -> None:
        # SQLite's own limit gives SQLite's own error: database or disk is full.
        now = connection.execute("PRAGMA page_count").fetchone()[0]
        pages.append(connection.execute(f"PRAGMA max_page_count={now + 3}").fetchone()[0])

    ledger.database.engine.dispose()
    sa.event.listen(ledger.database.engine, "connect", full)
    given, said = until_refused(ledger)
    assert "cannot be written: database or disk is full" in said
    assert pages
    assert given > 0
    assert ledger.spent("shop", "epsilon", 0) == given
    with pytest.raises(LedgerError, match="full"):
        ledger.charge("one more", BOTH, "x" * 400, 0)
    ledger.close()
    with Ledger.open(url) as roomy:
        assert roomy.spent("shop", "epsilon", 0) == given
        assert roomy.charge("one more", BOTH, "x" * 400, 0).state == "committed"
        assert roomy.verify() == ()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
        ).returncode
        != 0
    ):
        pytest.skip("Only root may mount a small disk here.")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_really_full_refuses_and_loses_nothing(tiny_disk: Path) -> None:
    ledger = prepared(f"sqlite:///{tiny_disk / 'ledger.db'}")
    ballast = tiny_disk / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):  # until there is no space left on the device
        while True:
            os.write(file, bytes(4096))
    os.close(file)
    given, said = until_refused(ledger)
    assert "disk is full" in said or "disk I/O error" in said
    ballast.unlink()
    assert ledger.spent("shop", "epsilon", 0) in (given, given + 1)
    assert ledger.charge("one more", BOTH, "", 0).state == "committed"
    assert ledger.verify() == ()
    ledger.close()


def test_postgresql_restarted_in_the_middle_loses_no_charge(postgres: Server) -> None:
    url = postgres.fresh()
    ledger = prepared(url, patience_s=60)
    given: list[str] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            try:
                ledger.charge(f"r{i}", BOTH, "", 0)
                given.append(f"r{i}")
            except LedgerError as error:
                failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for mode in ("immediate", "fast"):
        time.sleep(0.3)
        postgres.stop(mode)
        time.sleep(0.2)
        postgres.start()
    before = len(given)
    deadline = time.monotonic() + 60
    while len(given) < before + 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    stop.set()
    thread.join()
    assert not failed
    assert len(given) >= before + 20
    assert ledger.spent("shop", "epsilon", 0) == len(given)
    assert ledger.verify() == ()
    ledger.close()


def test_postgresql_that_stays_away_refuses_with_a_sentence_and_works_again_when_it_is_back(
    postgres: Server,
) -> None:
    url = postgres.fresh()
    ledger = prepared(url, patience_s=60)
    ledger.charge("a", BOTH, "", 0)
    postgres.stop("immediate")
    ledger.database.patience_s = 0.5
    try:
        with pytest.raises(LedgerError, match="cannot be written") as error:
            ledger.charge("b", BOTH, "", 0)
        assert "\n" not in str(error.value)
    finally:
        postgres.start()
    ledger.database.patience_s = 60
    assert ledger.charge("b", BOTH, "", 0).state == "committed"
    assert ledger.spent("shop", "epsilon", 0) == 2
    ledger.close()


WORKER = """
import itertools, sys
from fractions import Fraction
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
ledger = Ledger.open(sys.argv[1])
costs = [Charge("device", "epsilon", Fraction(1)), Charge("shop", "epsilon", Fraction(1))]
for i in itertools.count():
    if i % 3:
        ledger.charge(f"{sys.argv[2]} {i}", costs, "", 0)
    else:
        ledger.reserve(f"{sys.argv[2]} {i}", costs, "", 0, 10**9)
        ledger.commit(f"{sys.argv[2]} {i}", 1)
    sys.stdout.write("released\\n")
    sys.stdout.flush()
"""


def _kill(url: str, times: int, seed: int) -> None:
    chance = random.Random(seed)
    released = 0
    with prepared(url) as ledger:
        for run in range(times):
            worker = subprocess.Popen(
                [sys.executable, "-c", WORKER, url, f"run {run}"], stdout=subprocess.PIPE, text=True
            )
            assert worker.stdout is not None
            assert worker.stdout.readline() == "released\n"
            time.sleep(chance.uniform(0.0, 0.15))
            os.kill(worker.pid, signal.SIGKILL)
            rest, _ = worker.communicate()
            released += 1 + rest.count("released\n")
            spent = ledger.spent("shop", "epsilon", 5)
            assert spent >= released, "something left without its charge"
            # At most one request of each killed worker was charged and not released.
            assert spent + ledger.reserved("shop", "epsilon", 5) <= released + run + 1
            assert ledger.spent("device", "epsilon", 5) == spent
            assert ledger.verify() == ()
        assert ledger.charge("afterwards", BOTH, "", 5).state == "committed"
    assert released >= times


def test_a_worker_killed_between_charge_and_release_has_paid(database_url: str) -> None:
    _kill(database_url, times=3, seed=1)


@pytest.mark.heavy
def test_thirty_killed_workers_have_paid(database_url: str) -> None:
    _kill(database_url, times=30, seed=2)


def test_a_denied_charge_leaves_no_trace(database_url: str) -> None:
    with prepared(database_url) as ledger:
        ledger.set_limit("shop", "epsilon", Fraction(1, 2), "ever")
        count = len(ledger.entries())
        with pytest.raises(Denied):
            ledger.charge("a", BOTH, "", 0)
        assert len(ledger.entries()) == count
        assert ledger.spent("device", "epsilon", 0) == 0
