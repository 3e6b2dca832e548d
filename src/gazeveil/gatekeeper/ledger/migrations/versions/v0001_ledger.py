"""The first tables: ledger, audit log, tokens and keys, with triggers that let entries and audit
rows only grow.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None

_ONLY_GROW = ("ledger_entries", "audit_rows")


#: SQLite counts rows only in columns of its own kind of integer.
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables and their guards."""
    _make_ledger()
    _make_audit_log()
    _make_tokens_and_keys()
    if op.get_bind().dialect.name == "sqlite":
        _guard_sqlite()
    else:
        _guard_postgresql()


def _make_ledger() -> None:
    op.create_table(
        "ledger_heads",
        sa.Column("account", sa.Text(), primary_key=True),
        sa.Column("currency", sa.Text(), primary_key=True),
        sa.Column("most", sa.Text()),
        sa.Column("per", sa.Text(), nullable=False),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Text(), nullable=False),
        sa.Column("seen_ns", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "ledger_entries",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("phase", sa.SmallInteger(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("amount", sa.Text(), nullable=False),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger()),
        sa.UniqueConstraint("request_id", "phase", "part", name="ledger_entries_once"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "ledger_holds",
        sa.Column("request_id", sa.Text(), primary_key=True),
        sa.Column("part", sa.Integer(), primary_key=True),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("amount", sa.Text(), nullable=False),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), nullable=False),
    )
    op.create_index("ledger_holds_account", "ledger_holds", ["account", "currency"])


def _make_audit_log() -> None:
    op.create_table(
        "audit_rows",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
    )
    op.create_table(
        "audit_head",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
    )


def _make_tokens_and_keys() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("issued_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger()),
        sa.Column("ended_ns", sa.BigInteger()),
    )
    op.create_index("tokens_app", "tokens", ["app", "role"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("value", sa.LargeBinary(), nullable=False),
    )


def _guard_sqlite() -> None:
    for table in _ONLY_GROW:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN SELECT"
                f" RAISE(ABORT, '{table} only grows'); END"
            )
    op.execute(
        "CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads BEGIN SELECT"
        " RAISE(ABORT, 'accounts are never deleted'); END"
    )


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION gazeveil_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
        " EXCEPTION '% only grows', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';"
        " END $$"
    )
    for table in _ONLY_GROW:
        op.execute(
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            " EXECUTE FUNCTION gazeveil_only_grows()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
            " EXECUTE FUNCTION gazeveil_only_grows()"
        )
    op.execute(
        "CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads FOR EACH ROW EXECUTE"
        " FUNCTION gazeveil_only_grows()"
    )
