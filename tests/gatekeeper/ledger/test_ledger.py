"""The ledger: exact, once, all or none, never given back by a clock, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy as sa

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger import tables as schema
from gazeveil.gatekeeper.ledger.ledger import DAY_NS, Charge, Ledger
from tests.support.more_time import with_more_time
from tests.support.postgres import Server, database_url, postgres, quick_folder  # noqa: F401


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url) as ledger:
        yield ledger


def cost(amount: object, account: str = "shop", currency: str = "epsilon") -> Charge:
    return Charge(account, currency, Fraction(amount))  # type: ignore[arg-type]


def test_thirds_add_up_to_exactly_one_and_the_fourth_is_refused_with_what_is_left(
    ledger: Ledger,
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    for i in range(3):
        ledger.charge(f"r{i}", [cost("1/3")], "an answer", 0)
    assert ledger.spent("shop", "epsilon", 0) == 1
    assert ledger.remaining("shop", "epsilon", 0) == 0
    with pytest.raises(
        Denied, match=r"0 epsilon of 1 is left in all, and this costs 1/3 \(about 0\.3334\)\."
    ) as denied:
        ledger.charge("r3", [cost("1/3")], "an answer", 0)
    assert denied.value.code == "budget"
    assert ledger.spent("shop", "epsilon", 0) == 1


def test_a_limit_is_met_exactly_and_not_by_the_smallest_part_more(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1, 10), "ever")
    with pytest.raises(Denied):
        ledger.charge("more", [cost(Fraction(1, 10) + Fraction(1, 10**30))], "", 0)
    ledger.charge("exact", [cost("0.1")], "", 0)
    assert ledger.remaining("shop", "epsilon", 0) == 0


def test_what_nobody_set_up_has_no_budget(ledger: Ledger) -> None:
    ledger.set_limit("shop", "rho", Fraction(1))
    for account, currency in (("shop", "epsilon"), ("bank", "rho")):
        with pytest.raises(Denied, match=f"The account {account} has no budget in {currency}"):
            ledger.charge("r", [Charge(account, currency, Fraction(0))], "", 0)
        assert ledger.remaining(account, currency, 0) == 0


def test_several_accounts_pay_together_or_not_at_all(ledger: Ledger) -> None:
    ledger.set_limit("device", "epsilon", Fraction(10), "ever")
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    both = [cost(1, "device"), cost(1, "shop")]
    ledger.charge("a", both, "", 0)
    with pytest.raises(Denied):
        ledger.charge("b", both, "", 0)
    assert ledger.spent("device", "epsilon", 0) == 1
    with pytest.raises(Denied):
        ledger.charge("c", [cost(1, "device"), cost(1, "bank")], "", 0)
    assert ledger.spent("device", "epsilon", 0) == 1
    assert [e.request_id for e in ledger.entries() if e.kind == "charge"] == ["a", "a"]


def test_an_account_named_twice_pays_the_sum_once(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(3), "ever")
    with pytest.raises(Denied):
        ledger.charge("r", [cost(2), cost(2)], "", 0)
    ledger.charge("r", [cost(1), cost(2)], "", 0)
    assert ledger.spent("shop", "epsilon", 0) == 3


def test_a_request_sent_again_costs_once_even_when_the_budget_is_gone(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    first = ledger.charge("r", [cost(1)], "", 0)
    assert ledger.charge("r", [cost(1)], "", 5) == first
    assert ledger.spent("shop", "epsilon", 5) == 1
    with pytest.raises(LedgerError, match="used before with other charges"):
        ledger.charge("r", [cost("1/2")], "", 5)


def test_a_reservation_counts_until_it_is_cancelled_and_only_a_commit_makes_it_final(
    ledger: Ledger,
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    held = ledger.reserve("r", [cost(1)], "", 0, hold_ns=10)
    assert (held.state, held.expires_ns) == ("reserved", 10)
    assert (
        ledger.spent("shop", "epsilon", 0),
        ledger.reserved("shop", "epsilon", 0),
        ledger.remaining("shop", "epsilon", 0),
    ) == (0, 1, 0)
    assert ledger.reserve("r", [cost(1)], "", 0, hold_ns=99) == held
    ledger.cancel("r")
    ledger.cancel("r")
    assert ledger.remaining("shop", "epsilon", 0) == 1
    with pytest.raises(Denied, match="was cancelled"):
        ledger.commit("r")
    with pytest.raises(Denied, match="was cancelled"):
        ledger.charge("r", [cost(1)], "", 0)
    ledger.reserve("s", [cost(1)], "", 0, hold_ns=10)
    assert ledger.commit("s", now_ns=9).state == ledger.commit("s").state == "committed"
    assert (ledger.spent("shop", "epsilon", 0), ledger.reserved("shop", "epsilon", 0)) == (1, 0)
    with pytest.raises(LedgerError, match="was committed, so it cannot be cancelled"):
        ledger.cancel("s")


def test_an_expired_reservation_is_spent_cannot_be_committed_and_can_be_cancelled(
    ledger: Ledger,
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    ledger.reserve("r", [cost(1)], "", 0, hold_ns=10)
    assert (ledger.spent("shop", "epsilon", 10), ledger.reserved("shop", "epsilon", 10)) == (1, 0)
    with pytest.raises(Denied, match="has expired") as denied:
        ledger.commit("r", now_ns=10)
    assert denied.value.code == "expired"
    with pytest.raises(Denied, match="does not suffice"):
        ledger.charge("s", [cost(1)], "", 11)
    ledger.cancel("r")
    ledger.charge("s", [cost(1)], "", 11)


def test_a_charge_of_a_reserved_id_commits_it(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    ledger.reserve("r", [cost(1)], "", 0, hold_ns=10)
    assert ledger.charge("r", [cost(1)], "", 1).state == "committed"
    assert (ledger.spent("shop", "epsilon", 1), ledger.reserved("shop", "epsilon", 1)) == (1, 0)


def test_ids_nobody_reserved_are_refused(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    limit = ledger.entries()[0].request_id
    for unknown in ("nobody", limit):
        for finish in (ledger.commit, ledger.cancel):
            with pytest.raises(LedgerError, match="There is no reservation"):
                finish(unknown)


def test_a_day_begins_whole_and_a_clock_put_back_gives_nothing_back(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "day", 5 * DAY_NS)
    ledger.charge("a", [cost(1)], "", 5 * DAY_NS + 1)
    with pytest.raises(Denied, match="left today"):
        ledger.charge("b", [cost(1)], "", 6 * DAY_NS - 1)
    ledger.charge("c", [cost(1)], "", 6 * DAY_NS)
    for moment in (0, 5 * DAY_NS + 1, 6 * DAY_NS):
        assert ledger.remaining("shop", "epsilon", moment) == 0
        with pytest.raises(Denied):
            ledger.charge("d", [cost("1/1000")], "", moment)
    assert ledger.remaining("shop", "epsilon", 7 * DAY_NS) == 1
    # Only asking about tomorrow begins nothing.
    assert ledger.remaining("shop", "epsilon", 6 * DAY_NS) == 0


def test_a_reservation_cannot_be_carried_into_the_next_day(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "day")
    ledger.reserve("late", [cost(1)], "", DAY_NS - 1, hold_ns=DAY_NS)
    ledger.charge("new day", [cost(1)], "", DAY_NS)
    with pytest.raises(Denied, match=r"period .* has ended"):
        ledger.commit("late", now_ns=DAY_NS + 1)
    ledger.cancel("late")
    assert ledger.remaining("shop", "epsilon", DAY_NS + 1) == 0
    assert ledger.verify() == ()


def test_a_cancel_on_the_next_day_gives_nothing_to_that_day(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1), "day")
    ledger.reserve("late", [cost(1)], "", DAY_NS - 1, hold_ns=1)
    ledger.cancel("late", now_ns=DAY_NS + 5)
    assert ledger.verify() == ()
    ledger.charge("a", [cost(1)], "", DAY_NS + 5)
    with pytest.raises(Denied):
        ledger.charge("b", [cost(1)], "", DAY_NS + 5)
    assert ledger.verify() == ()


def test_a_session_ends_by_its_name_alone_and_each_name_works_once(
    database_url: str, tmp_path: Path
) -> None:
    with Ledger.open(database_url) as ledger:
        ledger.set_limit("shop", "epsilon", Fraction(1), "session")
        ledger.begin_session("shop", "monday")
        ledger.charge("a", [cost(1)], "", 0)
        for name in ("monday", "monday"):
            ledger.begin_session("shop", name)
            assert ledger.remaining("shop", "epsilon", 99 * DAY_NS) == 0
        ledger.begin_session("shop", "tuesday")
        assert ledger.remaining("shop", "epsilon", 0) == 1
        ledger.charge("b", [cost(1)], "", 0)
        ledger.begin_session("shop", "monday")
        assert ledger.remaining("shop", "epsilon", 0) == 0
        assert ledger.verify() == ()


def test_a_restart_begins_no_session_and_keeps_what_is_spent(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        ledger.set_limit("shop", "epsilon", Fraction(1), "session")
        ledger.charge("a", [cost("2/3")], "", 0)
    with Ledger.open(url) as again:
        again.set_limit("shop", "epsilon", Fraction(1), "session")
        assert again.remaining("shop", "epsilon", 0) == Fraction(1, 3)


@pytest.mark.parametrize(
    ("before", "after"), [("day", "ever"), ("ever", "day"), ("session", "day"), ("day", "session")]
)
def test_another_kind_of_period_gives_nothing_back_and_takes_no_old_reservation(
    ledger: Ledger, before: str, after: str
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(2), before, 3)
    ledger.charge("a", [cost(1)], "", 3)
    ledger.reserve("held", [cost(1)], "", 3, hold_ns=10**9)
    ledger.set_limit("shop", "epsilon", Fraction(2), after, 4)
    assert ledger.remaining("shop", "epsilon", 4) == 0
    with pytest.raises(Denied):
        ledger.commit("held", now_ns=5)
    ledger.cancel("held")
    assert ledger.remaining("shop", "epsilon", 4) == 0
    assert ledger.verify() == ()


def test_a_limit_can_be_raised_lowered_and_lifted_without_touching_what_is_spent(
    ledger: Ledger,
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(2), "ever")
    ledger.charge("a", [cost(2)], "", 0)
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    assert ledger.remaining("shop", "epsilon", 0) == 0
    ledger.set_limit("shop", "epsilon", Fraction(3), "ever")
    assert (ledger.remaining("shop", "epsilon", 0), ledger.limit("shop", "epsilon")) == (1, 3)
    ledger.set_limit("shop", "epsilon", None, "ever")
    ledger.charge("b", [cost(10**6)], "", 0)
    assert (ledger.remaining("shop", "epsilon", 0), ledger.spent("shop", "epsilon", 0)) == (
        None,
        10**6 + 2,
    )
    count = len(ledger.entries())
    ledger.set_limit("shop", "epsilon", None, "ever")
    assert len(ledger.entries()) == count


def test_hostile_quotients_keep_the_sums_small_and_are_rounded_up_never_down(
    ledger: Ledger,
) -> None:
    primes = [p for p in range(10**6, 10**6 + 1500) if all(p % q for q in range(2, 1001))][:60]
    ledger.set_limit("shop", "epsilon", Fraction(1), "ever")
    for p in primes:
        ledger.charge(f"r{p}", [cost(Fraction(1, p))], "", 0)
    true = sum((Fraction(1, p) for p in primes), start=Fraction(0))
    spent = ledger.spent("shop", "epsilon", 0)
    assert true < spent <= true + Fraction(len(primes), 10**18)
    assert spent.denominator.bit_length() < 400
    assert spent == sum(
        (e.amount for e in ledger.entries() if e.kind == "charge"), start=Fraction(0)
    )
    assert (
        ledger.charge(f"r{primes[-1]}", [cost(Fraction(1, primes[-1]))], "", 0).state == "committed"
    )
    assert ledger.spent("shop", "epsilon", 0) == spent


@pytest.mark.parametrize(
    "amount", [-1, Fraction(-1, 3), 2**600, Fraction(1, 2**600), float("nan"), True]
)
def test_amounts_that_are_no_costs_are_refused(amount: object) -> None:
    with pytest.raises(ParameterError, match="amount"):
        Charge("shop", "epsilon", amount)  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [-1, 2**62, 1.5, None, True])
def test_times_that_are_no_times_are_refused_before_anything_is_written(
    ledger: Ledger, now: object
) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(1))
    with pytest.raises(ParameterError, match="nanoseconds"):
        ledger.charge("r", [cost(1)], "", now)  # type: ignore[arg-type]
    assert len(ledger.entries()) == 1


def test_texts_with_quotes_zeroes_and_megabytes_neither_inject_nor_crash(ledger: Ledger) -> None:
    wild = "Robert'); DROP TABLE ledger_entries;-- %s ? :a {x} \N{SNOWMAN}"
    ledger.set_limit(wild, "epsilon", Fraction(1), "ever")
    ledger.charge(wild, [cost(1, wild)], wild, 0)
    assert ledger.entries()[-1].why == wild
    for bad in ("", "a\x00b", "x" * 501, None):
        with pytest.raises(ParameterError):
            ledger.charge(bad, [cost(1, wild)], "", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("statement", ["UPDATE {} SET id = 77", "DELETE FROM {}"])
@pytest.mark.parametrize("table", schema.ONLY_GROW)
def test_the_database_itself_refuses_to_change_what_only_grows(
    ledger: Ledger, statement: str, table: str
) -> None:
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog

    ledger.set_limit("shop", "epsilon", Fraction(1))
    AuditLog(ledger).record("answer", "shop", {}, 0)
    with (
        pytest.raises(sa.exc.DBAPIError, match=f"{table} only grows"),
        ledger.database.engine.begin() as connection,
    ):
        connection.exec_driver_sql(statement.format(table))
    assert ledger.entries()
    assert AuditLog(ledger).verify()


def test_postgresql_refuses_to_truncate_what_only_grows(postgres: Server) -> None:
    with Ledger.open(postgres.fresh()) as ledger:
        for table in schema.ONLY_GROW:
            with (
                pytest.raises(sa.exc.DBAPIError, match="only grows"),
                ledger.database.engine.begin() as connection,
            ):
                connection.exec_driver_sql(f"TRUNCATE {table}")


def test_a_head_that_was_tampered_with_is_found_by_recomputing_it(ledger: Ledger) -> None:
    ledger.set_limit("shop", "epsilon", Fraction(5), "ever")
    ledger.charge("a", [cost(2)], "", 0)
    assert ledger.verify() == ()
    with ledger.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger_heads SET total = '1'")
    assert ledger.verify() == ("The account shop has 1 epsilon in its row and 2 in its entries.",)


def test_a_ledger_in_memory_serves_threads_too() -> None:
    with Ledger.open("sqlite://") as ledger:
        _threads(ledger)


def test_threads_that_charge_at_once_never_pass_the_limit_together(ledger: Ledger) -> None:
    _threads(ledger)


def _threads(ledger: Ledger) -> None:
    ledger.set_limit("device", "epsilon", Fraction(10), "ever")
    outcomes: list[bool] = []

    def work(name: int) -> None:
        for i in range(8):
            try:
                ledger.charge(f"{name} {i}", [cost(1, "device")], "", 0)
                outcomes.append(True)
            except Denied:
                outcomes.append(False)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(outcomes), len(outcomes)) == (10, 32)
    assert ledger.spent("device", "epsilon", 0) == 10
    assert ledger.verify() == ()


def test_two_ledgers_on_one_database_never_pass_the_limit_together(database_url: str) -> None:
    ledgers = [Ledger.open(database_url, patience_s=30) for _ in range(3)]
    for account in ("device", "shop", "bank"):
        ledgers[0].set_limit(account, "epsilon", Fraction(20), "ever")
    given: list[str] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        # Accounts in another order each time: nobody may wait for somebody who waits for him.
        accounts = [("device", "shop"), ("bank", "device"), ("shop", "device")][number]
        for i in range(15):
            try:
                ledgers[number].charge(f"{number} {i}", [cost(1, a) for a in accounts], "", 0)
                given.extend(accounts)
            except Denied:
                pass
            except LedgerError as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for account in ("device", "shop", "bank"):
        assert ledgers[1].spent(account, "epsilon", 0) == given.count(account) <= 20
    assert given.count("device") == 20
    assert ledgers[0].verify() == ()
    for ledger in ledgers:
        ledger.close()


def test_writes_are_as_durable_as_the_engine_can_make_them(ledger: Ledger) -> None:
    def asked(connection: sa.Connection) -> tuple[object, ...]:
        names = (
            ("synchronous", "journal_mode")
            if ledger.database.sqlite
            else ("synchronous_commit", "fsync")
        )
        verb = "PRAGMA" if ledger.database.sqlite else "SHOW"
        return tuple(connection.exec_driver_sql(f"{verb} {name}").scalar() for name in names)

    mode = "memory" if ledger.database.memory else "wal"
    assert ledger.database.read(asked) == ((2, mode) if ledger.database.sqlite else ("on", "on"))


def test_the_same_id_from_many_threads_costs_once(ledger: Ledger) -> None:
    ledger.set_limit("device", "epsilon", Fraction(10), "ever")
    states: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: states.append(ledger.charge("one", [cost(1, "device")], "", 0).state)
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == ["committed"] * 6
    assert ledger.spent("device", "epsilon", 0) == 1


# --- opening
# --------------------------------------------------------------------------------------------------


def test_processes_that_start_at_once_on_an_empty_database_all_start(database_url: str) -> None:
    code = (
        "import sys, fractions\nfrom gazeveil.gatekeeper.ledger.ledger import Ledger,"
        " Charge\nprint('ready',"
        " flush=True); sys.stdin.readline()\nwith Ledger.open(sys.argv[1], 60) as l:\n   "
        " l.set_limit('shop', 'epsilon', fractions.Fraction(9), 'ever')\n    l.charge(sys.argv[2],"
        " [Charge('shop', 'epsilon', fractions.Fraction(1))], '', 0)\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, database_url, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    with Ledger.open(database_url) as ledger:
        assert ledger.spent("shop", "epsilon", 0) == 3
        assert ledger.verify() == ()


def test_a_database_of_a_newer_version_is_refused_with_a_sentence_and_left_alone(
    database_url: str,
) -> None:
    with Ledger.open(database_url) as ledger, ledger.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE gazeveil_tables SET number = 9999")
    with pytest.raises(
        LedgerError,
        match=(
            r"made by another version of Gazeveil \(its tables have number 9999, this one's \d\)"
        ),
    ):
        Ledger.open(database_url)


@pytest.mark.parametrize("package", ["sqlalchemy", "psycopg"])
def test_without_the_extra_the_message_says_how_to_install_it(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\nfrom gazeveil.errors import"
        " MissingExtraError\ntry:\n    from gazeveil.gatekeeper.ledger.ledger import Ledger\n   "
        " Ledger.open('postgresql://nobody@127.0.0.1:1/x', patience_s=0.1)\nexcept"
        " MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (
        done.stdout
        == f"This needs the package '{package}', which is not installed. Install it with: pip"
        " install 'gazeveil[service]'\n"
    ), done.stderr


def test_a_password_is_never_in_a_message(postgres: Server) -> None:
    url = re.sub(r":\w+@", ":s3cr3t@", postgres.url("postgres"))

    def work(patience_s: float) -> None:
        with pytest.raises(LedgerError) as error:
            Ledger.open(url, patience_s)
        assert "s3cr3t" not in str(error.value)
        assert "password authentication failed" in str(error.value), "not that nobody answered"

    with_more_time(work, 0.2, 5, 20)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "mysql://root@localhost/x",
            (
                "The ledger cannot be kept in 'mysql'. Write sqlite:///path/to/file or"
                " postgresql://user@host/name."
            ),
        ),
        ("sqlite+aiosqlite:///x.db", r"The ledger cannot be kept in 'sqlite\+aiosqlite'"),
        ("not a url", "The address of the ledger is not a URL"),
        ("", "The address of the ledger is not a URL"),
        (None, "The address of the ledger is not a URL"),
        (
            "sqlite:////nowhere/at/all/ledger.db",
            "there is no folder /nowhere/at/all. Make it first.",
        ),
        ("postgresql://nobody@127.0.0.1:1/x", "cannot be read: .*(refused|failed)"),
    ],
)
def test_an_address_that_cannot_be_used_gets_one_clear_sentence(url: str, message: str) -> None:
    with pytest.raises(LedgerError, match=message) as error:
        Ledger.open(url, patience_s=0.2)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "content",
    [
        b"this is not a database, it is a letter" * 100,
        b"SQLite format 3\x00" + b"\xff" * 4000,
        os.urandom(8192),
    ],
)
def test_a_file_that_is_no_database_gets_one_clear_sentence_and_stays_as_it_was(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(
        LedgerError, match=r"not a database|malformed|unsupported|cannot be (read|written)"
    ) as error:
        Ledger.open(f"sqlite:///{path}", patience_s=0.2)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == content


def test_a_ledger_whose_pages_were_overwritten_gets_one_clear_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.set_limit("shop", "epsilon", Fraction(1))
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with (
        pytest.raises(LedgerError, match="malformed"),
        Ledger.open(f"sqlite:///{path}", patience_s=0.2) as ledger,
    ):
        ledger.charge("r", [cost(1)], "", 0)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_folder_or_file_that_may_not_be_written_gets_one_clear_sentence(
    quick_folder: Path, what: str
) -> None:
    path = quick_folder / "ledger.db"
    if what == "file":
        Ledger.open(f"sqlite:///{path}").close()
    code = (
        "import os, sys\nfrom fractions import Fraction\nfrom gazeveil.gatekeeper.ledger.ledger"
        " import Ledger\nfrom gazeveil.gatekeeper.errors import LedgerError\nimport"
        " sqlalchemy.dialects.sqlite\nif"
        " os.geteuid() == 0: os.setuid(65534)\ntry: Ledger.open(sys.argv[1],"
        " patience_s=0.2).set_limit('shop', 'epsilon', Fraction(1))\nexcept LedgerError as error:"
        " print(error)\n"
    )
    if what == "file":
        path.chmod(0o444)
    quick_folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", code, f"sqlite:///{path}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    quick_folder.chmod(0o755)
    said = (
        r"The ledger at \S+ cannot be (read|written): (unable to open database file|attempt to"
        r" write a readonly database)\.\n"
    )
    assert re.fullmatch(said, done.stdout), done
