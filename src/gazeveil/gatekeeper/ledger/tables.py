"""The tables of the Gatekeeper's database, and how they are made.

Entries and audit rows only grow: triggers refuse to change or delete them. Heads and holds are sums
over entries, kept so that a charge does not read the whole history;
:meth:`gazeveil.gatekeeper.ledger.ledger.Ledger.verify` recomputes them. Amounts are exact quotients
written as text.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    insert,
)
from sqlalchemy.engine import Connection

#: The number of these tables; a database with another one is refused.
SCHEMA = 1

METADATA = MetaData()

# SQLite numbers rows by itself only where the key is a plain INTEGER.
_NUMBER = BigInteger().with_variant(Integer, "sqlite")

#: One row per account and currency: its limit, and what of it is gone in the current period
#: (committed and reserved together).
HEADS = Table(
    "ledger_heads",
    METADATA,
    Column("account", Text, primary_key=True),
    Column("currency", Text, primary_key=True),
    Column("most", Text),
    Column("per", Text, nullable=False),
    Column("period", BigInteger, nullable=False),
    Column("total", Text, nullable=False),
    Column("seen_ns", BigInteger, nullable=False),
)

#: Everything that ever happened to an account; append-only. Phase 0 opens a request, phase 1 closes
#: it, and each happens once.
ENTRIES = Table(
    "ledger_entries",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("request_id", Text, nullable=False),
    Column("phase", SmallInteger, nullable=False),
    Column("part", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", Text, nullable=False),
    Column("period", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger),
    UniqueConstraint("request_id", "phase", "part", name="ledger_entries_once"),
    sqlite_autoincrement=True,
)

#: Reservations that are neither committed nor cancelled.
HOLDS = Table(
    "ledger_holds",
    METADATA,
    Column("request_id", Text, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("account", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", Text, nullable=False),
    Column("period", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    Index("ledger_holds_account", "account", "currency"),
)

#: What was decided and answered, with hashed ids, each row bound to the one before; append-only.
AUDIT = Table(
    "audit_rows",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("app", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("chain", Text, nullable=False),
)

#: The last row of the audit log, locked while the next one is written.
AUDIT_HEAD = Table(
    "audit_head",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("rows", BigInteger, nullable=False),
    Column("chain", Text, nullable=False),
)

#: Hashes of tokens and of one-time keys.
TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("app", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("issued_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Index("tokens_app", "app", "role"),
)

#: Keys of the device, made on first use.
SECRETS = Table(
    "secrets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

#: Tables whose rows are never changed or deleted.
ONLY_GROW = ("ledger_entries", "audit_rows")

#: One row: the number of the tables.
VERSION = Table("gazeveil_tables", METADATA, Column("number", Integer, primary_key=True))


def make(connection: Connection) -> None:
    """Make all tables in an empty database, with triggers that let entries and audit rows only
    grow.
    """
    METADATA.create_all(connection)
    connection.execute(insert(VERSION).values(number=SCHEMA))
    guards = _SQLITE_GUARDS if connection.dialect.name == "sqlite" else _POSTGRESQL_GUARDS
    for statement in guards:
        connection.exec_driver_sql(statement)


_SQLITE_GUARDS = (
    *(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN SELECT"
        f" RAISE(ABORT, '{table} only grows'); END"
        for table in ONLY_GROW
        for verb in ("UPDATE", "DELETE")
    ),
    "CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads BEGIN SELECT"
    " RAISE(ABORT, 'accounts are never deleted'); END",
)

_POSTGRESQL_GUARDS = (
    "CREATE FUNCTION gazeveil_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
    " EXCEPTION '%% only grows', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';"
    " END $$",
    *(
        f"CREATE TRIGGER {table}_no_{name} BEFORE {verbs} ON {table} FOR EACH {each} EXECUTE"
        " FUNCTION gazeveil_only_grows()"
        for table in ONLY_GROW
        for name, verbs, each in (
            ("change", "UPDATE OR DELETE", "ROW"),
            ("truncate", "TRUNCATE", "STATEMENT"),
        )
    ),
    "CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads FOR EACH ROW EXECUTE"
    " FUNCTION gazeveil_only_grows()",
)
