"""The tables of the Gatekeeper's database, as they are now; `migrations/` says how they came to be.

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
)

#: The revision of the migrations that these tables have.
REVISION = "0002"

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

#: Sessions of the owner's browsers: hashes of the half that the page holds and of the half in the
#: cookie.
OWNER_SESSIONS = Table(
    "owner_sessions",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("cookie_hash", LargeBinary, nullable=False),
    Column("browser", Text, nullable=False),
    Column("begun_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
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
