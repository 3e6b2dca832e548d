"""Who is calling: random tokens, of which the database keeps hashes alone.

A token is `gv_<role>_<id>_<secret>` with a secret of 256 random bits. Such a secret cannot be guessed, so its SHA-256 can be stored as it is: slow
hashes (argon2, bcrypt) make the guessing of weak passwords dear, and would only make every honest request dear here. The id finds the row, the
hash of the secret is compared in constant time, and an unknown id is compared too, with a hash that nothing has.

The owner's link holds a key of the same kind that works once.
"""

from __future__ import annotations

import hmac
import re
import time
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex, token_urlsafe

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.database import Database, Ready
from gazeveil.gatekeeper.ledger import Ledger
from gazeveil.gatekeeper.policy import app_name
from gazeveil.gatekeeper.schema import TOKENS

#: Who a token can stand for.
ROLES = ("app", "tracker", "owner")

_TOKEN = re.compile(r"gv_(app|tracker|owner|link)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_NOBODY = bytes(32)


@dataclass(frozen=True)
class Identity:
    """Whom a token stands for.

    Parameters
    ----------
    app : str
        Its name.
    role : str
        One of :data:`ROLES`.
    expires_ns : int, optional
        From when it is void.
    token_id : str
        The public part of the token, for logs.
    """

    app: str
    role: str
    expires_ns: int | None = None
    token_id: str = ""


class Tokens:
    """Tokens in the ledger's database.

    Parameters
    ----------
    ledger : Ledger
        Open.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     tokens = Tokens(ledger)
    ...     token = tokens.issue("shop", "app", expires_ns=10)
    ...     print(tokens.check(token, now_ns=9).app, tokens.check(token, now_ns=10), tokens.check(token + "x", now_ns=9))
    shop None None
    """

    def __init__(self, ledger: Ledger) -> None:
        self._database: Database = ledger.database

    def issue(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token, shown this once; those it had stay valid."""
        name = app_name("Tokens.issue", app)
        checks.one_of("Tokens.issue", "role", role, ROLES)
        return self._issue(name, role, expires_ns, end=False)

    def rotate(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token in the place of all the app had in that role, in one step."""
        name = app_name("Tokens.rotate", app)
        checks.one_of("Tokens.rotate", "role", role, ROLES)
        return self._issue(name, role, expires_ns, end=True)

    def _issue(self, app: str, role: str, expires_ns: int | None, end: bool) -> str:
        if expires_ns is not None and (type(expires_ns) is not int or not 0 <= expires_ns < 2**63):
            checks.refuse("Tokens.issue", "expires_ns", "a time in nanoseconds, or nothing", expires_ns)
        number, secret, now = token_hex(8), token_urlsafe(32), time.time_ns()
        row = {"id": number, "app": app, "role": role, "hash": _hash(secret), "issued_ns": now, "expires_ns": expires_ns, "ended_ns": None}

        def work(connection: Connection) -> None:
            if connection.execute(sa.select(TOKENS.c.id).where(TOKENS.c.id == number)).first() is not None:
                return  # tried again after the answer to a commit was lost
            if end:
                connection.execute(_ending(now).where(TOKENS.c.app == app, TOKENS.c.role == role))
            connection.execute(sa.insert(TOKENS).values(**row))

        self._database.write(work)
        return f"gv_{role}_{number}_{secret}"

    def check(self, token: str, now_ns: int) -> Identity | None:
        """Whom a token stands for; None for one that is wrong, forged, stale or revoked, without saying which."""
        found = self._find(token)
        if found is None or found[0] == "link":
            return None
        role, row = found
        if row.role != role or row.ended_ns is not None or (row.expires_ns is not None and now_ns >= row.expires_ns):
            return None
        return Identity(row.app, row.role, row.expires_ns, row.id)

    def _find(self, token: object) -> tuple[str, sa.Row[tuple[object, ...]]] | None:
        parts = _TOKEN.fullmatch(token) if isinstance(token, str) else None
        role, number, secret = parts.groups() if parts else ("", "", "")
        row = self._database.read(lambda connection: _FIND(connection, {"i": number}).first())
        right = hmac.compare_digest(_hash(secret), bytes(row.hash) if row is not None else _NOBODY)
        return (role, row) if right and row is not None else None

    def revoke(self, app: str, role: str | None = None) -> int:
        """End all tokens of an app, or those in one role; how many were live."""
        now = time.time_ns()

        def work(connection: Connection) -> int:
            mine = _ending(now).where(TOKENS.c.app == app)
            return int(connection.execute(mine if role is None else mine.where(TOKENS.c.role == role)).rowcount)

        return self._database.write(work)

    def end(self, token: str) -> None:
        """End one token, as when its holder signs out; nothing happens for one that is wrong."""
        found = self._find(token)
        if found is not None:
            number = found[1].id
            self._database.write(lambda connection: connection.execute(_ending(time.time_ns()).where(TOKENS.c.id == number)))

    def apps(self, now_ns: int | None = None) -> tuple[str, ...]:
        """Apps that hold a live token, sorted."""
        now = time.time_ns() if now_ns is None else now_ns
        live = sa.and_(TOKENS.c.role == "app", TOKENS.c.ended_ns.is_(None), sa.or_(TOKENS.c.expires_ns.is_(None), TOKENS.c.expires_ns > now))
        query = sa.select(TOKENS.c.app).where(live).distinct()
        return tuple(sorted(row.app for row in self._database.read(lambda connection: connection.execute(query).all())))

    def owner_link(self, now_ns: int, expires_ns: int) -> str:
        """A key for the owner's link that works once; earlier ones stop working."""
        number, secret = token_hex(8), token_urlsafe(32)
        row = {"id": number, "app": "owner", "role": "link", "hash": _hash(secret), "issued_ns": now_ns, "expires_ns": expires_ns, "ended_ns": None}

        def work(connection: Connection) -> None:
            if connection.execute(sa.select(TOKENS.c.id).where(TOKENS.c.id == number)).first() is None:
                connection.execute(_ending(now_ns).where(TOKENS.c.role == "link"))
                connection.execute(sa.insert(TOKENS).values(**row))

        self._database.write(work)
        return f"gv_link_{number}_{secret}"

    def take_link(self, key: str, now_ns: int) -> bool:
        """Use the key of a link: true once, false ever after, and false for keys that are wrong or stale."""
        found = self._find(key)
        if found is None or found[0] != "link" or found[1].role != "link":
            return False
        number, expires_ns = found[1].id, found[1].expires_ns
        if expires_ns is not None and now_ns >= int(expires_ns):
            return False
        # Of two that come at the same moment, one changes the row. A lost answer to the commit wastes the link; it never lets it work twice.
        return self._database.write(lambda connection: connection.execute(_ending(now_ns).where(TOKENS.c.id == number)).rowcount == 1)


_FIND = Ready(sa.select(TOKENS).where(TOKENS.c.id == sa.bindparam("i")))


def _ending(now_ns: int) -> sa.Update:
    return sa.update(TOKENS).where(TOKENS.c.ended_ns.is_(None)).values(ended_ns=now_ns)


def _hash(secret: str) -> bytes:
    return sha256(b"gazeveil token\x00" + secret.encode()).digest()
