"""The audit log taken elsewhere and cut at its beginning: what is left can be verified, and what
was tampered with is found.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from gazeveil.cli.main import app as cli
from gazeveil.errors import DataError
from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.audit.export import START, link, verify_lines
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from tests.support.gatekeeper_running import running, until
from tests.support.postgres import Server, database_url, postgres, quick_folder  # noqa: F401

DAY_NS = 86_400 * 10**9


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url) as one:
        yield one


def filled(ledger: Ledger, rows: int = 20) -> AuditLog:
    """A log with a row a day."""
    log = AuditLog(ledger)
    for day in range(rows):
        log.record(
            "answer", f"app{day % 3}", {"what": "areas", "code": "allowed"}, now_ns=day * DAY_NS
        )
    return log


def lines_of(log: AuditLog) -> list[bytes]:
    return list(log.export("device", 1))


# Retention.


def test_old_rows_go_and_the_rest_can_be_verified(ledger: Ledger) -> None:
    log = filled(ledger)
    assert log.prune(10 * DAY_NS, 20 * DAY_NS) == 10
    assert [row.id for row in log.entries()] == list(range(11, 22))
    assert log.verify()
    assert log.entries(20)[0].kind == "pruned"
    assert log.record("answer", "shop", {}, 21 * DAY_NS) == 22, "numbers go on"
    assert log.verify()
    assert log.prune(10 * DAY_NS, 21 * DAY_NS) == 0, "what is gone does not go again"
    assert log.prune(15 * DAY_NS, 22 * DAY_NS) == 5
    assert log.verify()
    assert log.prune(100 * DAY_NS, 100 * DAY_NS) == 8, "also the marks themselves, and all rows"
    assert [row.kind for row in log.entries()] == ["pruned"]
    assert log.verify()
    assert verify_lines(lines_of(log), log.key).pruned_by == 24


def test_a_head_noted_before_is_still_found_as_long_as_it_is_not_pruned(ledger: Ledger) -> None:
    log = filled(ledger, 10)
    noted = log.head()
    log.record("answer", "shop", {}, 11 * DAY_NS)
    log.prune(5 * DAY_NS, 12 * DAY_NS)
    assert log.verify(noted)
    assert not log.verify((noted[0], "f" * 64))
    log.prune(10 * DAY_NS, 12 * DAY_NS)  # the noted row is the last that goes
    assert log.verify(noted)
    log.prune(12 * DAY_NS, 13 * DAY_NS)
    assert not log.verify(noted), "pruned beyond it, nobody can say"


def test_after_pruning_the_table_only_grows_again(ledger: Ledger) -> None:
    log = filled(ledger, 10)
    log.prune(5 * DAY_NS, 12 * DAY_NS)
    for statement in ("DELETE FROM audit_rows", "UPDATE audit_rows SET kind = 'x'"):
        with pytest.raises(LedgerError, match="only grows"):
            ledger.database.write(lambda connection, s=statement: connection.execute(sa.text(s)))


def unguarded(ledger: Ledger, *statements: str) -> None:
    """Change the log as somebody does who can write the database and does not have the key."""

    def work(connection: sa.Connection) -> None:
        if ledger.database.sqlite:
            for name in ("delete", "update"):
                connection.execute(sa.text(f"DROP TRIGGER IF EXISTS audit_rows_no_{name}"))
        else:
            connection.execute(sa.text("ALTER TABLE audit_rows DISABLE TRIGGER USER"))
        for statement in statements:
            connection.exec_driver_sql(statement)

    ledger.database.write(work)


@pytest.mark.parametrize(
    "statements",
    [
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
        ["DELETE FROM audit_rows WHERE id >= 20", "UPDATE audit_head SET rows = 19"],
        ["DELETE FROM audit_rows"],
    ],
)
def test_pruning_is_no_way_to_hide_rows_without_the_key(
    ledger: Ledger, statements: list[str]
) -> None:
    log = filled(ledger)
    log.prune(10 * DAY_NS, 20 * DAY_NS)
    unguarded(ledger, *statements)
    assert not log.verify()
    with pytest.raises(DataError):
        verify_lines(lines_of(log), log.key)


def test_a_pruning_that_fails_half_way_takes_nothing_away(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(ledger)

    def broken(*_: object) -> int:
        raise RuntimeError("the machine stops here")

    monkeypatch.setattr(log, "_add", broken)
    with pytest.raises(RuntimeError):
        log.prune(10 * DAY_NS, 20 * DAY_NS)
    monkeypatch.undo()
    assert len(log.entries()) == 20
    assert log.verify()


# Exports.


def test_an_export_is_verified_without_a_database(ledger: Ledger) -> None:
    log = filled(ledger)
    noted = log.entries()[9]
    lines = lines_of(log)
    found = verify_lines(lines, log.key, (noted.id, noted.chain))
    assert (found.rows, found.first, found.last, found.pruned_by) == (20, 1, 20, None)
    log.record("answer", "late", {}, 30 * DAY_NS)
    assert verify_lines(lines, log.key).rows == 20
    with pytest.raises(DataError, match="noted earlier"):
        verify_lines(lines, log.key, (noted.id, "0" * 64))


def _change(row: int, **values: Any) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [
        json.dumps({**json.loads(line), **values}).encode() if at == row else line
        for at, line in enumerate(lines)
    ]


@pytest.mark.parametrize(
    ("tamper", "words"),
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
def test_a_file_that_was_tampered_with_is_found_and_the_line_named(
    tmp_path: Path, tamper: Any, words: str
) -> None:
    with Ledger.open("sqlite://") as ledger:
        log = filled(ledger)
        with pytest.raises(DataError, match=words):
            verify_lines(tamper(lines_of(log)), log.key)


def test_another_key_verifies_nothing() -> None:
    with Ledger.open("sqlite://") as ledger:
        log = filled(ledger)
        with pytest.raises(DataError, match="another log's"):
            verify_lines(lines_of(log), bytes(32))


def test_the_hash_of_a_row_is_what_old_logs_hold() -> None:
    """Logs that were begun before stay valid."""
    assert (
        link(bytes(32), START, 1, 2, "answer", "ab", "{}")
        == "6da7416ebe79a748c1ae77bc97a2cb8675d3bcc04ad027a50a053138f6c15c22"
    )


def test_the_service_prunes_exports_and_the_command_verifies(tmp_path: Path) -> None:
    with running(tmp_path / "home", audit_days=1) as here:
        service = here.service
        assert service is not None
        here.app("shop")
        assert here.client("nobody").get("/v1/audit/export").status_code == 401
        token = here.app("other")
        with here.client(token) as client:
            assert client.get("/v1/audit/export").status_code == 403
            assert client.get("/v1/audit/key").status_code == 403
        answer = here.owner.get("/v1/audit/export")
        assert answer.status_code == 200
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


def test_rows_older_than_audit_days_go_when_the_service_starts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with Ledger.open(f"sqlite:///{home / 'gatekeeper.sqlite'}") as ledger:
        log = AuditLog(ledger)
        for day in range(5):
            log.record("answer", "shop", {"what": "areas"}, time.time_ns() - (10 - day) * DAY_NS)
    with running(home, audit_days=3) as here:
        until(lambda: here.owner.get("/v1/audit?last=100").json()["entries"][0]["number"] > 5)
        assert here.owner.get("/v1/audit?last=1&verify=true").json()["verified"] is True
