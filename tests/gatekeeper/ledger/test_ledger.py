"""The ledger: exact, once, all or none, never given back by a clock, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger.audit import AuditLog
from gazeveil.gatekeeper.ledger.database import ONLY_GROW, Database, OtherServiceError
from gazeveil.gatekeeper.ledger.ledger import DAY_NS, Charge, Ledger
from tests.support.ledger_entries import adds_up, amounts
from tests.support.more_time import with_more_time
from tests.support.postgres import Server, database_url, postgres, quick_folder  # noqa: F401


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url) as ledger:
        yield ledger


def cost(amount: object, account: str = "shop", limit: object = 1) -> Charge:
    return Charge(account, "epsilon", Fraction(amount), Fraction(limit))  # type: ignore[arg-type]


def test_thirds_add_up_to_exactly_one_and_the_fourth_is_refused_with_what_is_left(
    ledger: Ledger,
) -> None:
    for i in range(3):
        ledger.charge(f"r{i}", [cost("1/3")], "an answer", 0)
    assert ledger.spent("shop", "epsilon", 0) == 1
    with pytest.raises(
        Denied, match=r"0 epsilon of 1 is left today, and this costs 1/3 \(about 0\.3334\)\."
    ) as denied:
        ledger.charge("r3", [cost("1/3")], "an answer", 0)
    assert denied.value.code == "budget"
    assert (ledger.spent("shop", "epsilon", 0), len(amounts(ledger))) == (1, 3)


def test_a_limit_is_met_exactly_and_not_by_the_smallest_part_more(ledger: Ledger) -> None:
    with pytest.raises(Denied):
        ledger.charge("more", [cost(Fraction(1, 10) + Fraction(1, 10**30), limit="0.1")], "", 0)
    ledger.charge("exact", [cost("0.1", limit="0.1")], "", 0)
    with pytest.raises(Denied, match="0 epsilon of 0 is left"):
        ledger.charge("none", [cost(1, "nobody", limit=0)], "", 0)
    ledger.charge("raised", [cost("0.1", limit="0.2")], "", 0)  # what was spent stays spent
    with pytest.raises(Denied):
        ledger.charge("lowered", [cost("0.01", limit="0.1")], "", 0)


def test_several_accounts_pay_together_or_not_at_all_and_the_first_that_cannot_is_named(
    ledger: Ledger,
) -> None:
    both = [cost(1), cost(1, "device", limit=5)]
    ledger.charge("a", both, "", 0)
    with pytest.raises(Denied) as no:
        ledger.charge("b", both, "", 0)
    assert getattr(no.value, "account") == "shop"  # noqa: B009
    assert ledger.all_spent(0) == {("shop", "epsilon"): 1, ("device", "epsilon"): 1}
    with pytest.raises(Denied):  # one that is named twice pays the sum
        ledger.charge("c", [cost("1/2", "x"), cost("2/3", "x")], "", 0)
    with pytest.raises(ParameterError, match="one or more charges"):
        ledger.charge("d", [], "", 0)


def test_a_request_sent_again_costs_once_even_when_the_budget_is_gone(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.charge("a", [cost(1)], "", 0)
    assert (ledger.spent("shop", "epsilon", 0), len(amounts(ledger))) == (1, 1)
    for other in (cost("1/2"), cost(1, "bank")):
        with pytest.raises(LedgerError, match="'a' was used before with other charges"):
            ledger.charge("a", [other], "", 0)


def test_a_day_begins_whole_and_a_clock_put_back_gives_nothing_back(ledger: Ledger) -> None:
    ledger.charge("a", [cost(1)], "", 5 * DAY_NS + 1)
    with pytest.raises(Denied, match="left today"):
        ledger.charge("b", [cost(1)], "", 6 * DAY_NS - 1)
    ledger.charge("c", [cost(1)], "", 6 * DAY_NS)
    for moment in (0, 5 * DAY_NS + 1, 6 * DAY_NS):
        assert ledger.spent("shop", "epsilon", moment) == 1
        with pytest.raises(Denied):
            ledger.charge("d", [cost("1/1000")], "", moment)
    assert ledger.spent("shop", "epsilon", 7 * DAY_NS) == 0
    # Only asking about tomorrow begins nothing.
    assert ledger.spent("shop", "epsilon", 6 * DAY_NS) == 1


def test_hostile_quotients_keep_the_sums_small_and_are_rounded_up_never_down(
    ledger: Ledger,
) -> None:
    primes = [p for p in range(10**6, 10**6 + 900) if all(p % q for q in range(2, 1001))][:40]
    for p in primes:
        ledger.charge(f"r{p}", [cost(Fraction(1, p))], "", 0)
    true = sum((Fraction(1, p) for p in primes), start=Fraction(0))
    spent = ledger.spent("shop", "epsilon", 0)
    assert true < spent <= true + Fraction(len(primes), 10**18)
    assert spent.denominator.bit_length() < 400
    assert spent == sum(amounts(ledger), start=Fraction(0))
    ledger.charge(f"r{primes[-1]}", [cost(Fraction(1, primes[-1]))], "", 0)
    assert ledger.spent("shop", "epsilon", 0) == spent


@pytest.mark.parametrize("amount", [-1, Fraction(-1, 3), 2**600, Fraction(1, 2**600), "x", True])
def test_amounts_that_are_no_costs_are_refused(amount: object) -> None:
    for values in ((amount, 1), (1, amount)):
        with pytest.raises(ParameterError, match=r"amount|limit"):
            Charge("shop", "epsilon", *values)  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [-1, 2**62, 1.5, None, True])
def test_times_that_are_no_times_are_refused_before_anything_is_written(now: object) -> None:
    with Ledger.open() as ledger:
        with pytest.raises(ParameterError, match="nanoseconds"):
            ledger.charge("r", [cost(1)], "", now)  # type: ignore[arg-type]
        assert amounts(ledger) == []


def test_texts_with_quotes_zeroes_and_megabytes_neither_inject_nor_crash(ledger: Ledger) -> None:
    wild = "Robert'); DROP TABLE ledger_entries;-- %s ? :a {x} \N{SNOWMAN}"
    ledger.charge(wild, [cost(1, wild)], wild, 0)
    assert ledger.database.rows("SELECT why FROM ledger_entries") == [(wild,)]
    for bad in ("", "a\x00b", "x" * 501, None):
        with pytest.raises(ParameterError):
            ledger.charge(bad, [cost(1, wild)], "", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("statement", ["UPDATE {} SET id = 77", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_database_itself_refuses_to_change_what_only_grows(
    ledger: Ledger, statement: str
) -> None:
    log = AuditLog(ledger)
    log.record("answer", "shop", {}, 0)
    ledger.charge("a", [cost(1)], "", 0)
    for table in ONLY_GROW:
        with pytest.raises(LedgerError, match=rf"{table} only grows|syntax error"):
            ledger.database.write(lambda sql, t=table: sql(statement.format(t)))
    with pytest.raises(LedgerError, match=r"never deleted|only grows"):
        ledger.database.write(lambda sql: sql("DELETE FROM ledger_accounts"))
    assert (len(amounts(ledger)), log.verify()) == (1, True)


def test_threads_of_two_ledgers_never_pass_the_limit_together(database_url: str) -> None:
    ledgers = [Ledger.open(database_url, patience_s=30) for _ in range(2)]
    given: list[str] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        accounts = [("device", "shop"), ("shop", "device")][number % 2]
        for i in range(8):
            charges = [cost(1, account, limit=20) for account in accounts]
            try:
                ledgers[number % 2].charge(f"{number} {i}", charges, "", 0)
                ledgers[number % 2].charge("one for all", [cost(1, "bank")], "", 0)
                given.append("both")
            except Denied:
                pass
            except LedgerError as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, len(given)) == ([], 20)
    totals = {("device", "epsilon"): 20, ("shop", "epsilon"): 20, ("bank", "epsilon"): 1}
    assert (ledgers[1].all_spent(0), adds_up(ledgers[0])) == (totals, True)
    for ledger in ledgers:
        ledger.close()


def test_writes_are_as_durable_as_the_engine_can_make_them(ledger: Ledger) -> None:
    sqlite = ledger.database.sqlite
    names = ("synchronous", "journal_mode") if sqlite else ("synchronous_commit", "fsync")
    verb = "PRAGMA" if sqlite else "SHOW"
    asked = tuple(ledger.database.rows(f"{verb} {name}")[0][0] for name in names)
    assert asked == ((2, "wal") if sqlite else ("on", "on"))


def test_what_is_owed_goes_before_everything_else_until_it_is_written(ledger: Ledger) -> None:
    """Something that was taken away: nothing is given while that cannot be written."""
    database, failing = ledger.database, True

    def owed(sql: object) -> None:
        if failing:
            raise LedgerError("The disk is full.")

    done = database.owe(owed)
    for _ in range(2):
        with pytest.raises(LedgerError, match="disk is full"):
            ledger.charge("a", [cost(1)], "", 0)
    assert not done.done()
    failing = False
    ledger.charge("a", [cost(1)], "", 0)
    assert done.done()


def test_of_two_services_on_one_database_the_later_one_writes(ledger: Ledger) -> None:
    other = Database(f"sqlite:///{ledger.database.file.path}") if ledger.database.file else None
    other = other or Database(ledger.database._url)
    ledger.database.hold()
    ledger.charge("a", [cost(1)], "", 0)
    other.hold()
    with pytest.raises(OtherServiceError, match="Another service uses"):
        ledger.charge("b", [cost(1, "x")], "", 0)
    assert "Another service" in str(ledger.database.trouble)
    assert ledger.spent("shop", "epsilon", 0) == 1
    other.close()


# --- opening
# --------------------------------------------------------------------------------------------------


def test_several_that_open_an_empty_database_at_once_all_begin(database_url: str) -> None:
    opened: list[Ledger] = []
    threads = [
        threading.Thread(target=lambda: opened.append(Ledger.open(database_url, 60)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, ledger in enumerate(opened):
        ledger.charge(str(number), [cost(1, limit=9)], "", 0)
    assert opened[0].spent("shop", "epsilon", 0) == 4
    for ledger in opened:
        ledger.close()


def test_a_database_of_another_version_is_refused_with_a_sentence(database_url: str) -> None:
    with Ledger.open(database_url) as ledger:
        ledger.database.write(lambda sql: sql("UPDATE gazeveil_tables SET number = 9999"))
    said = r"made by another version of Gazeveil \(its tables have number 9999, this one's \d\)"
    with pytest.raises(LedgerError, match=said):
        Ledger.open(database_url)


def test_without_the_extra_the_message_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\nfrom gazeveil.errors import MissingExtraError\n"
        "from gazeveil.gatekeeper import Ledger\ntry:\n"
        "    Ledger.open('postgresql://nobody@127.0.0.1:1/x', patience_s=0.1)\n"
        "except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "This needs the package 'psycopg', which is not installed. Install it with: pip install"
    assert done.stdout == f"{said} 'gazeveil[service]'\n", done.stderr


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
        ("mysql://root@localhost/x", "kept in 'mysql'. Write sqlite:///path/to/file or postgresql"),
        ("sqlite+aiosqlite:///x.db", r"The ledger cannot be kept in 'sqlite\+aiosqlite'"),
        ("", "The ledger cannot be kept there"),
        (None, "The ledger cannot be kept"),
        ("sqlite:////nowhere/at/all/a.db", "there is no folder /nowhere/at/all. Make it first."),
        ("postgresql://nobody@127.0.0.1:1/x", "cannot be written: .*(refused|failed)"),
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
    with pytest.raises(LedgerError, match=r"not a database|malformed|unsupported|cannot be") as no:
        Ledger.open(f"sqlite:///{path}", patience_s=0.2)
    assert "\n" not in str(no.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_folder_or_file_that_may_not_be_written_gets_one_clear_sentence(
    quick_folder: Path, what: str
) -> None:
    path = quick_folder / "ledger.db"
    if what == "file":
        Ledger.open(f"sqlite:///{path}").close()
    code = (
        "import os, sys\nfrom gazeveil.gatekeeper.ledger.ledger import Ledger\n"
        "from gazeveil.gatekeeper.errors import LedgerError\nif os.geteuid() == 0:"
        " os.setuid(65534)\ntry: Ledger.open(sys.argv[1], patience_s=0.2)\n"
        "except LedgerError as error: print(error)\n"
    )
    if what == "file":
        path.chmod(0o444)
    quick_folder.chmod(0o555)
    command = [sys.executable, "-c", code, f"sqlite:///{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    quick_folder.chmod(0o755)
    said = (
        r"The ledger at \S+ cannot be (read|written): (unable to open database file|attempt to"
        r" write a readonly database)\.\n"
    )
    assert re.fullmatch(said, done.stdout), done
