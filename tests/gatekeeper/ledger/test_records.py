"""The audit log and the tokens that live in the ledger's database."""

from __future__ import annotations

import math
import sqlite3
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from tests.support.postgres import database_url, postgres, quick_folder  # noqa: F401


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url) as ledger:
        yield ledger


def _tamper(ledger: Ledger, statement: str) -> None:
    """Change what only grows, as somebody can who owns the database file."""
    table = "audit_rows"
    with ledger.database.engine.begin() as connection:
        if ledger.database.sqlite:
            for verb in ("update", "delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_no_{verb}")
        else:
            connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        connection.exec_driver_sql(statement)


# --- the audit log
# --------------------------------------------------------------------------------------------------


def test_rows_come_back_in_order_with_hashed_ids_and_a_whole_chain(ledger: Ledger) -> None:
    log = AuditLog(ledger)
    for i in range(5):
        assert (
            log.record(
                "answer",
                "shop" if i % 2 else "bank",
                {"what": "tile", "n": i, "ok": True, "none": None},
                i,
            )
            == i + 1
        )
    rows = log.entries()
    assert [r.id for r in rows] == [1, 2, 3, 4, 5]
    assert [r.detail["n"] for r in rows] == [0, 1, 2, 3, 4]
    assert [r.id for r in log.entries(after=3, limit=1)] == [4]
    assert [r.id for r in log.last(2)] == [4, 5]
    assert (
        rows[0].app == rows[2].app == log.pseudonym("bank") != rows[1].app == log.pseudonym("shop")
    )
    assert log.verify()
    assert log.head() == (5, rows[-1].chain)


def test_no_name_of_an_app_is_in_the_file(quick_folder: Path) -> None:
    path = quick_folder / "ledger.db"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        AuditLog(ledger).record("answer", "a-recognisable-name", {"what": "tile"}, 0)
    content = b"".join(p.read_bytes() for p in quick_folder.iterdir())
    assert b"answer" in content
    assert b"a-recognisable-name" not in content


def test_the_key_stays_with_the_database_and_another_key_gives_other_hashes(ledger: Ledger) -> None:
    assert AuditLog(ledger).pseudonym("shop") == AuditLog(ledger).pseudonym("shop")
    assert AuditLog(ledger).pseudonym("shop") != AuditLog(ledger, key=b"k" * 32).pseudonym("shop")
    AuditLog(ledger).record("answer", "shop", {}, 0)
    assert not AuditLog(ledger, key=b"k" * 32).verify()
    with pytest.raises(ParameterError, match="16 to 64 bytes"):
        AuditLog(ledger, key=b"short")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_rows SET kind = 'denied' WHERE id = 2",
        "UPDATE audit_rows SET app = 'x' WHERE id = 2",
        "UPDATE audit_rows SET at_ns = 77 WHERE id = 2",
        "UPDATE audit_rows SET detail = '{}' WHERE id = 2",
        "DELETE FROM audit_rows WHERE id = 2",
        "DELETE FROM audit_rows WHERE id = 4",
        "DELETE FROM audit_rows WHERE id = 1",
        "UPDATE audit_rows SET id = id + 10",
        (
            "INSERT INTO audit_rows (id, at_ns, kind, app, detail, chain) VALUES (5, 0, 'answer',"
            " 'x', '{}', 'y')"
        ),
        "UPDATE audit_head SET rows = 3",
    ],
)
def test_a_row_that_was_changed_removed_or_put_in_is_found(ledger: Ledger, statement: str) -> None:
    log = AuditLog(ledger)
    for i in range(4):
        log.record("answer", "shop", {"n": i}, i)
    assert log.verify()
    _tamper(ledger, statement)
    assert not log.verify()


def test_a_log_that_was_cut_with_its_head_is_found_by_a_head_kept_elsewhere(ledger: Ledger) -> None:
    log = AuditLog(ledger)
    for i in range(4):
        log.record("answer", "shop", {"n": i}, i)
    kept, third = log.head(), log.entries()[2]
    assert log.verify(kept)
    log.record("answer", "shop", {}, 9)
    assert log.verify(kept)
    _tamper(ledger, "DELETE FROM audit_rows WHERE id > 3")
    with ledger.database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE audit_head SET rows = 3, chain = '{third.chain}'")
    assert log.verify()
    assert not log.verify(kept)


@pytest.mark.parametrize("value", [1.5, math.nan, [1], {"x": 1}, b"x", "x" * 301])
def test_nothing_that_could_be_gaze_gets_into_the_details(ledger: Ledger, value: object) -> None:
    log = AuditLog(ledger)
    with pytest.raises(ParameterError, match=r"detail\.x"):
        log.record("answer", "shop", {"x": value}, 0)
    assert log.head()[0] == 0


def test_rows_written_at_once_by_two_ledgers_make_one_chain(ledger: Ledger) -> None:
    other = Ledger.open(ledger.database.url.render_as_string(hide_password=False))
    logs = [AuditLog(ledger), AuditLog(other)]
    threads = [
        threading.Thread(
            target=lambda log=log: [log.record("answer", "shop", {}, 0) for _ in range(10)]
        )
        for log in logs * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert logs[0].head()[0] == 40
    assert logs[0].verify()


# --- tokens
# --------------------------------------------------------------------------------------------------


def test_a_token_stands_for_its_app_and_role_and_is_kept_as_a_hash_alone(
    quick_folder: Path,
) -> None:
    path = quick_folder / "ledger.db"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        tokens = Tokens(ledger)
        made = {role: tokens.issue("shop", role) for role in ("app", "tracker", "owner")}
        for role, token in made.items():
            assert token.startswith(f"gv_{role}_")
            found = tokens.check(token, 0)
            assert found is not None
            assert (found.app, found.role, found.expires_ns) == ("shop", role, None)
        link = tokens.owner_link(10)
    content = b"".join(p.read_bytes() for p in quick_folder.iterdir())
    for token in (*made.values(), link):
        assert token.split("_", 2)[2].encode() not in content
        assert token.encode()[-20:] not in content
    assert sqlite3.connect(path).execute(
        "SELECT count(*), min(length(hash)) FROM tokens"
    ).fetchone() == (4, 32)


def test_tokens_are_long_random_and_never_the_same(ledger: Ledger) -> None:
    tokens = Tokens(ledger)
    many = {tokens.issue("shop") for _ in range(20)}
    assert len({t.split("_", 3)[3] for t in many}) == 20
    assert {len(t.split("_", 3)[3]) for t in many} == {43}  # 256 bits


def test_wrong_forged_and_foreign_tokens_are_all_nobody(ledger: Ledger) -> None:
    tokens = Tokens(ledger)
    right, other = tokens.issue("shop"), tokens.issue("bank", "owner")
    _, role, number, secret = right.split("_", 3)
    changed = ("A" if secret[0] != "A" else "B") + secret[1:]
    forged = [
        "",
        "gv_app",
        right + "x",
        right[:-1],
        right.upper(),
        f"gv_{role}_{number}_{changed}",
        f"gv_owner_{number}_{secret}",
        f"gv_link_{number}_{secret}",
        f"gv_app_{other.split('_', 3)[2]}_{secret}",
        f"gv_app_{'0' * 16}_{secret}",
        "gv_app_" + "0" * 16 + "_" + "A" * 43,
        " " + right,
        right + "\n",
        right.replace("gv_", "gv_\x00"),
        "\ud800" + right,
        "x" * 100_000,
        "' OR 1=1 --",
        None,
        7,
        b"gv",
    ]
    for one in forged:
        assert tokens.check(one, 0) is None  # type: ignore[arg-type]
    assert tokens.check(right, 0) is not None


def test_a_token_ends_when_it_expires_is_rotated_or_revoked(ledger: Ledger) -> None:
    tokens = Tokens(ledger)
    brief = tokens.issue("shop", "app", expires_ns=100)
    assert tokens.check(brief, 99) is not None
    assert tokens.check(brief, 100) is None
    first, second, tracker, bank = (
        tokens.issue("shop"),
        tokens.issue("shop"),
        tokens.issue("shop", "tracker"),
        tokens.issue("bank"),
    )
    fresh = tokens.rotate("shop")
    assert [tokens.check(t, 0) is not None for t in (first, second, tracker, bank, fresh)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert tokens.apps() == ("bank", "shop")
    assert tokens.revoke("shop") == 2
    assert [tokens.check(t, 0) is not None for t in (tracker, bank, fresh)] == [False, True, False]
    assert tokens.apps() == ("bank",)
    assert tokens.revoke("shop") == 0


def test_revoking_is_seen_by_another_process_at_once(ledger: Ledger) -> None:
    other = Ledger.open(ledger.database.url.render_as_string(hide_password=False))
    token = Tokens(ledger).issue("shop")
    assert Tokens(other).check(token, 0) is not None
    Tokens(ledger).revoke("shop")
    assert Tokens(other).check(token, 0) is None
    other.close()


def test_an_owner_link_works_once_and_a_new_one_ends_the_old(ledger: Ledger) -> None:
    tokens = Tokens(ledger)
    old, new = tokens.owner_link(100), tokens.owner_link(100)
    assert not tokens.take_link(old, 1)
    assert tokens.check(new, 1) is None  # a link is no token
    assert [tokens.take_link(new, 1), tokens.take_link(new, 1)] == [True, False]
    late = tokens.owner_link(100)
    assert not tokens.take_link(late, 100)
    owner = tokens.issue("owner", "owner")
    assert not tokens.take_link(owner, 0)
    assert not tokens.take_link("", 0)


def test_of_many_who_take_a_link_at_once_one_gets_it(ledger: Ledger) -> None:
    tokens = Tokens(ledger)
    key = tokens.owner_link(100)
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.append(tokens.take_link(key, 1))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 1
    assert len(taken) == 8


@pytest.mark.parametrize(
    ("app", "role", "expires"),
    [
        ("", "app", None),
        ("a b", "app", None),
        ("shop", "root", None),
        ("shop", "link", None),
        ("shop", "app", -1),
    ],
)
def test_tokens_for_nobody_and_for_unknown_roles_are_refused(
    ledger: Ledger, app: str, role: str, expires: int | None
) -> None:
    for make in (Tokens(ledger).issue, Tokens(ledger).rotate):
        with pytest.raises(ParameterError):
            make(app, role, expires)


def test_a_wrong_secret_takes_as_long_as_an_unknown_id() -> None:
    # Both go the same way: one look-up and one comparison. A factor of 3 between medians is far
    # above noise and far below an early return.
    with Ledger.open("sqlite://") as ledger:
        tokens = Tokens(ledger)
        right = tokens.issue("shop")
        known = right[:-1] + ("A" if right[-1] != "A" else "B")
        unknown = f"gv_app_{'0' * 16}_{right.split('_', 3)[3]}"

        def took(token: str) -> float:
            began = time.perf_counter()
            tokens.check(token, 0)
            return time.perf_counter() - began

        pairs = [(took(known), took(unknown)) for _ in range(400)]
        ratio = statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)
        assert 1 / 3 < ratio < 3
