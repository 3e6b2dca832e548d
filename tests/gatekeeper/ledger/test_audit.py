"""The audit log: a whole chain, hashed names, nothing that could be gaze. Taken elsewhere and cut
at its beginning it can still be verified, and what was tampered with is found.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gazeveil.cli.main import app as cli
from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.audit import START, AuditLog, Row, verify_lines
from gazeveil.gatekeeper.ledger.database import Sql
from gazeveil.gatekeeper.ledger.ledger import Ledger
from tests.support.gatekeeper_running import running, until
from tests.support.postgres import database_url, postgres, quick_folder  # noqa: F401

DAY_NS = 86_400 * 10**9


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url) as one:
        yield one


def filled(ledger: Ledger, rows: int = 20) -> AuditLog:
    """A log with a row a day."""
    log = AuditLog(ledger)
    for day in range(rows):
        log.record("answer", f"app{day % 3}", {"what": "areas", "n": day}, now_ns=day * DAY_NS)
    return log


def lines_of(log: AuditLog) -> list[bytes]:
    return list(log.export("device", 1))


def tamper(ledger: Ledger, *statements: str) -> None:
    """Change the log as somebody does who can write the database and does not have the key."""

    def work(sql: Sql) -> None:
        if ledger.database.sqlite:
            for name in ("delete", "update"):
                sql(f"DROP TRIGGER IF EXISTS audit_rows_no_{name}")
        else:
            sql("ALTER TABLE audit_rows DISABLE TRIGGER USER")
        for statement in statements:
            sql(statement)

    ledger.database.write(work)


def test_rows_come_back_in_order_with_hashed_ids_and_a_whole_chain(ledger: Ledger) -> None:
    log = filled(ledger, 5)
    rows = log.entries()
    assert [(row.id, json.loads(row.detail)["n"]) for row in rows] == [(i + 1, i) for i in range(5)]
    assert [row.id for row in log.entries(after=3, limit=1)] == [4]
    assert [row.id for row in log.last(2)] == [4, 5]
    assert rows[0].app == rows[3].app == log.pseudonym("app0") != rows[1].app
    assert log.verify()
    assert log.head() == (5, rows[-1].chain)
    assert AuditLog(ledger).pseudonym("app0") == rows[0].app, "the key stays with the database"


@pytest.mark.parametrize("value", [1.5, math.nan, [1], {"x": 1}, b"x", "x" * 301])
def test_nothing_that_could_be_gaze_gets_into_the_details(value: object) -> None:
    with Ledger.open() as ledger:
        log = AuditLog(ledger)
        with pytest.raises(ParameterError, match=r"detail\.x"):
            log.record("answer", "shop", {"x": value}, 0)
        assert log.head() == (0, START)


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE audit_rows SET kind = 'denied' WHERE id = 15"],
        ["UPDATE audit_rows SET app = 'x' WHERE id = 15"],
        ["UPDATE audit_rows SET at_ns = 77 WHERE id = 15"],
        ["UPDATE audit_rows SET detail = '{}' WHERE id = 15"],
        ["UPDATE audit_rows SET id = id + 100"],
        ["INSERT INTO audit_rows VALUES (22, 0, 'answer', 'x', '{}', 'y')"],
        ["DELETE FROM audit_rows WHERE id = 15"],
        ["DELETE FROM audit_rows WHERE id <= 12"],
        ["DELETE FROM audit_rows WHERE id = 11"],
        ["DELETE FROM audit_rows WHERE kind = 'pruned'"],
        [
            """UPDATE audit_rows SET detail = '{"chain":"'
            || (SELECT chain FROM audit_rows WHERE id = 15) || '","rows":15}'
            WHERE kind = 'pruned'""",
            "DELETE FROM audit_rows WHERE id <= 15",
        ],
        ["UPDATE audit_rows SET detail = 'no json' WHERE kind = 'pruned'"],
        ["UPDATE audit_rows SET kind = 'pruned', detail = '{}' WHERE id = 15"],
    ],
)
def test_rows_that_were_changed_removed_or_put_in_are_found(
    ledger: Ledger, statements: list[str]
) -> None:
    log = filled(ledger)
    assert log.prune(10 * DAY_NS, 20 * DAY_NS) == 10
    assert log.verify()
    tamper(ledger, *statements)
    assert not log.verify()


def test_a_log_that_was_cut_at_its_end_is_found_by_a_head_kept_elsewhere(ledger: Ledger) -> None:
    log = filled(ledger, 4)
    kept = log.head()
    log.record("answer", "shop", {}, 9)
    assert log.verify(kept)
    assert not log.verify((kept[0], "f" * 64))
    tamper(ledger, "DELETE FROM audit_rows WHERE id > 3")
    assert log.verify()
    assert not log.verify(kept)


# --- retention
# --------------------------------------------------------------------------------------------------


def test_old_rows_go_and_the_rest_can_be_verified(ledger: Ledger) -> None:
    log = filled(ledger)
    noted = log.head()
    assert log.prune(10 * DAY_NS, 20 * DAY_NS) == 10
    assert [row.id for row in log.entries()] == list(range(11, 22))
    assert log.entries(20)[0].kind == "pruned"
    for statement in ("DELETE FROM audit_rows", "UPDATE audit_rows SET kind = 'x'"):
        with pytest.raises(LedgerError, match="only grows"):
            ledger.database.write(lambda sql, s=statement: sql(s))
    log.record("answer", "shop", {}, 21 * DAY_NS)
    assert (log.head()[0], log.verify(noted)) == (22, True), "numbers go on"
    assert log.prune(10 * DAY_NS, 21 * DAY_NS) == 0, "what is gone does not go again"
    assert log.prune(20 * DAY_NS, 22 * DAY_NS) == 10
    assert log.verify(noted), "it is the last row that went"
    assert log.prune(100 * DAY_NS, 100 * DAY_NS) == 3, "also the marks themselves, and all rows"
    assert [row.kind for row in log.entries()] == ["pruned"]
    assert log.verify()
    assert not log.verify(noted), "pruned beyond it, nobody can say"
    assert verify_lines(lines_of(log), log.key).pruned_by == 24


def test_a_pruning_that_fails_half_way_takes_nothing_away(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(ledger)

    def broken(*_: object) -> None:
        raise RuntimeError("the machine stops here")

    monkeypatch.setattr(log, "_add", broken)
    with pytest.raises(RuntimeError):
        log.prune(10 * DAY_NS, 20 * DAY_NS)
    monkeypatch.undo()
    assert len(log.entries()) == 20
    assert log.verify()


# --- exports
# --------------------------------------------------------------------------------------------------


def test_an_export_is_verified_without_a_database(ledger: Ledger) -> None:
    log = filled(ledger)
    noted, lines = log.entries()[9], lines_of(log)
    found = verify_lines(lines, log.key, (noted.id, noted.chain))
    assert (found.rows, found.first, found.last, found.pruned_by) == (20, 1, 20, None)
    log.record("answer", "late", {}, 30 * DAY_NS)
    assert verify_lines(lines, log.key).rows == 20
    with pytest.raises(DataError, match="noted earlier"):
        verify_lines(lines, log.key, (noted.id, "0" * 64))
    with pytest.raises(DataError, match="another log's"):
        verify_lines(lines, bytes(32))


def _change(row: int, **values: Any) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [
        json.dumps({**json.loads(line), **values}).encode() if at == row else line
        for at, line in enumerate(lines)
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_change(5, kind="denied"), r"Line 6 \(row 5\) is not as it was written"),
        (_change(5, at_ns=7), "Line 6"),
        (_change(5, detail="{}"), "Line 6"),
        (lambda lines: lines[:5] + lines[6:], "Line 6 holds row 6 where row 5 belongs"),
        (lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]], "Line 6 holds row 6"),
        (lambda lines: [*lines[:5], lines[4], *lines[5:]], "Line 6 holds row 4"),
        (lambda lines: lines[:-1], "last rows of the file are missing"),
        (lambda lines: lines[:1] + lines[3:], "rows before row 3 are missing"),
        (lambda lines: lines[1:], "no audit log"),
        (lambda lines: [*lines, b"{"], "Line 22 .* JSON"),
        (lambda lines: [*lines, b'{"id": 21}'], "Line 22 .* row"),
        (lambda lines: [], "no audit log"),
    ],
)
def test_a_file_that_was_tampered_with_is_found_and_the_line_named(change: Any, words: str) -> None:
    with Ledger.open("sqlite://") as ledger:
        log = filled(ledger)
        with pytest.raises(DataError, match=words):
            verify_lines(change(lines_of(log)), log.key)


def test_the_hash_of_a_row_is_what_old_logs_hold() -> None:
    """Logs that were begun before stay valid."""
    assert (
        Row(1, 2, "answer", "ab", "{}", "").link(bytes(32), START)
        == "6da7416ebe79a748c1ae77bc97a2cb8675d3bcc04ad027a50a053138f6c15c22"
    )


def test_the_service_prunes_exports_and_the_command_verifies(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with Ledger.open(f"sqlite:///{home / 'gatekeeper.sqlite'}") as ledger:
        old = AuditLog(ledger)
        for day in range(5):
            old.record("answer", "shop", {"what": "areas"}, time.time_ns() - (10 - day) * DAY_NS)
    with running(home, audit_days=3) as here:
        until(lambda: here.owner.get("/v1/audit?last=100").json()["entries"][0]["number"] > 5)
        assert here.owner.get("/v1/audit?last=1&verify=true").json()["verified"] is True
        with here.client(here.app("shop")) as client:
            assert client.get("/v1/audit/export").status_code == 403
            assert client.get("/v1/audit/key").status_code == 403
        assert here.client("nobody").get("/v1/audit/export").status_code == 401
        answer = here.owner.get("/v1/audit/export")
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        log, key = tmp_path / "audit.jsonl", tmp_path / "audit.key"
        log.write_bytes(answer.content)
        key.write_text(here.owner.get("/v1/audit/key").json()["key"] + "\n")
        assert '"shop"' not in answer.text, "apps stand there as hashes"
    done = CliRunner().invoke(cli, ["verify", str(log), "--audit-key", str(key)])
    assert done.exit_code == 0, done.output
    assert "all as they were written" in done.output
    log.write_bytes(log.read_bytes().replace(b'"kind": "grant"', b'"kind": "grand"', 1))
    done = CliRunner().invoke(cli, ["verify", str(log), "--audit-key", str(key)])
    assert isinstance(done.exception, DataError)
