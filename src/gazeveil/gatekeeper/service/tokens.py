"""Who is calling: random tokens, of which the database keeps hashes alone.

A token is `gv_<role>_<id>_<secret>` with a secret of 256 random bits. Such a secret cannot be
guessed, so its SHA-256 can be stored as it is: slow hashes (argon2, bcrypt) make the guessing of
weak passwords dear, and would only make every honest request dear here. The id finds the row, the
hash of the secret is compared in constant time, and an unknown id is compared too, with a hash that
nothing has.

The owner's link holds a key of the same kind that works once.

What is live is also held in memory, by hash: :meth:`Tokens.remembered` tells in microseconds
whether a token is one of ours, before any limit is looked at, so that a flood of wrong ones shuts
out nobody who holds a right one, and so that the owner can take away while the database does not
answer.
"""

from __future__ import annotations

import hmac
import re
import threading
import time
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.database import Database, Ready
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.ledger.tables import TOKENS
from gazeveil.gatekeeper.policy.wearers import checked_name

#: Who a token can stand for.
ROLES = ("app", "tracker", "owner")

_TOKEN = re.compile(r"gv_(app|tracker|owner|link)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_NOBODY = bytes(32)


@dataclass(frozen=True)
class TokenHolder:
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


@dataclass(frozen=True)
class OwnerToken:
    """A token that a program uses in the owner's name, without its secret.

    Parameters
    ----------
    id : str
        Its public part.
    name : str
        What the owner called it.
    issued_ns : int
        When it was given out.
    expires_ns : int, optional
        From when it is void.
    """

    id: str
    name: str
    issued_ns: int
    expires_ns: int | None


@dataclass(frozen=True)
class _Live:
    identity: TokenHolder
    hash: bytes
    issued_ns: int


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
        self._lock = threading.Lock()
        self._live: dict[str, _Live] = {}
        self._unwritten: dict[str, int] = {}
        self._forgotten: set[str] = (
            set()
        )  # apps whose tokens have ended here, and not in the database yet
        for row in self._database.read(
            lambda connection: connection.execute(
                sa.select(TOKENS).where(TOKENS.c.ended_ns.is_(None))
            ).all()
        ):
            self._remember(
                row.id, row.app, row.role, row.expires_ns, bytes(row.hash), row.issued_ns
            )

    def _remember(
        self,
        number: str,
        app: str,
        role: str,
        expires_ns: int | None,
        digest: bytes,
        issued_ns: int,
    ) -> None:
        with self._lock:
            self._live[number] = _Live(
                TokenHolder(app, role, expires_ns, number), digest, issued_ns
            )

    def _forget(
        self, app: str | None = None, role: str | None = None, number: str | None = None
    ) -> None:
        """Drop from memory what matches all that is named."""
        with self._lock:
            for key, one in tuple(self._live.items()):
                who = one.identity
                if (
                    (app is None or who.app == app)
                    and (role is None or who.role == role)
                    and (number is None or key == number)
                ):
                    del self._live[key]

    def forget(self, app: str) -> None:
        """End the tokens of an app from memory alone: in force at once, also for :meth:`check`, and
        written by the next :meth:`revoke`.
        """
        with self._lock:
            self._forgotten.add(app)
        self._forget(app, "app")

    def remembered(self, token: str, now_ns: int) -> TokenHolder | None:
        """Whom a live token stands for, from memory alone; also the keys of links, with the role
        `link`.
        """
        role, number, secret = _parts(token)
        with self._lock:
            found = self._live.get(number)
        right = hmac.compare_digest(_hash(secret), found.hash if found is not None else _NOBODY)
        if found is None or not right or found.identity.role != role:
            return None
        expires_ns = found.identity.expires_ns
        return found.identity if expires_ns is None or now_ns < expires_ns else None

    def id_of(self, token: str) -> str:
        """The public part of a token where there is a live one of that id, right or wrong; else
        nothing.
        """
        number = _parts(token)[1]
        with self._lock:
            return number if number in self._live else ""

    def issue(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token, shown this once; those it had stay valid."""
        name = checked_name("Tokens.issue", "app", app)
        checks.one_of("Tokens.issue", "role", role, ROLES)
        return self._issue(name, role, expires_ns, end=False)

    def rotate(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token in the place of all the app had in that role, in one step."""
        name = checked_name("Tokens.rotate", "app", app)
        checks.one_of("Tokens.rotate", "role", role, ROLES)
        return self._issue(name, role, expires_ns, end=True)

    def _issue(self, app: str, role: str, expires_ns: int | None, end: bool) -> str:
        if expires_ns is not None and (type(expires_ns) is not int or not 0 <= expires_ns < 2**63):
            checks.refuse(
                "Tokens.issue", "expires_ns", "a time in nanoseconds, or nothing", expires_ns
            )
        number, secret, now = token_hex(8), token_urlsafe(32), time.time_ns()
        row: dict[str, Any] = {
            "id": number,
            "app": app,
            "role": role,
            "hash": _hash(secret),
            "issued_ns": now,
            "expires_ns": expires_ns,
            "ended_ns": None,
        }

        def work(connection: Connection) -> None:
            if (
                connection.execute(sa.select(TOKENS.c.id).where(TOKENS.c.id == number)).first()
                is not None
            ):
                return  # tried again after the answer to a commit was lost
            if end:
                connection.execute(_ending(now).where(TOKENS.c.app == app, TOKENS.c.role == role))
            connection.execute(sa.insert(TOKENS).values(**row))

        self._database.write(work)
        if end:
            self._forget(app, role)
        self._remember(number, app, role, expires_ns, bytes(row["hash"]), now)
        return f"gv_{role}_{number}_{secret}"

    def adopt(self, app: str, role: str, token: str) -> bool:
        """Take a token that was made elsewhere, in the place of all others the app had in that
        role.

        Returns
        -------
        bool
            False where it is no token of that role, is another's, or was ended here before: what
            was ended stays so.
        """
        name = checked_name("Tokens.adopt", "app", app)
        checks.one_of("Tokens.adopt", "role", role, ROLES)
        kind, number, secret = _parts(token)
        if kind != role:
            return False
        now, digest = time.time_ns(), _hash(secret)

        def work(connection: Connection) -> bool:
            there = connection.execute(sa.select(TOKENS).where(TOKENS.c.id == number)).first()
            right = there is None or (
                (there.app, there.role, bytes(there.hash)) == (name, role, digest)
                and there.ended_ns is None
            )
            if right:
                connection.execute(
                    _ending(now).where(
                        TOKENS.c.app == name, TOKENS.c.role == role, TOKENS.c.id != number
                    )
                )
            if there is None:
                row = {
                    "id": number,
                    "app": name,
                    "role": role,
                    "hash": digest,
                    "issued_ns": now,
                    "expires_ns": None,
                    "ended_ns": None,
                }
                connection.execute(sa.insert(TOKENS).values(**row))
            return right

        taken = self._database.write(work)
        if taken:
            self._forget(name, role)
            self._remember(number, name, role, None, digest, now)
        return taken

    def check(self, token: str, now_ns: int) -> TokenHolder | None:
        """Whom a token stands for; None for one that is wrong, forged, stale or revoked, without
        saying which.
        """
        found = self._find(token)
        if found is None or found[0] == "link":
            return None
        role, row = found
        if (
            row.role != role
            or row.ended_ns is not None
            or row.id in self._unwritten
            or (row.expires_ns is not None and now_ns >= row.expires_ns)
        ):
            return None
        if row.role == "app" and row.app in self._forgotten:
            return None
        return TokenHolder(row.app, row.role, row.expires_ns, row.id)

    def _find(self, token: object) -> tuple[str, sa.Row[tuple[object, ...]]] | None:
        role, number, secret = _parts(token)
        row = self._database.read(lambda connection: _FIND(connection, {"i": number}).first())
        right = hmac.compare_digest(_hash(secret), bytes(row.hash) if row is not None else _NOBODY)
        return (role, row) if right and row is not None else None

    def revoke(self, app: str, role: str | None = None) -> int:
        """End all tokens of an app, or those in one role; how many were live."""
        now = time.time_ns()
        self._forget(app, role)

        def work(connection: Connection) -> int:
            mine = _ending(now).where(TOKENS.c.app == app)
            return int(
                connection.execute(
                    mine if role is None else mine.where(TOKENS.c.role == role)
                ).rowcount
            )

        ended = self._database.write(work)
        if role in (None, "app"):
            with self._lock:
                self._forgotten.discard(app)
        return ended

    def end(self, token: str) -> None:
        """End one token, as when its holder signs out; nothing happens for one that is wrong."""
        found = self._find(token)
        if found is not None:
            number = str(found[1].id)
            self._forget(number=number)
            self._database.write(
                lambda connection: connection.execute(
                    _ending(time.time_ns()).where(TOKENS.c.id == number)
                )
            )

    def owner_tokens(self, now_ns: int) -> tuple[OwnerToken, ...]:
        """Live tokens of programs that act for the owner, the newest first; from memory."""
        with self._lock:
            mine = [
                one
                for one in self._live.values()
                if one.identity.role == "owner" and now_ns < (one.identity.expires_ns or 2**63)
            ]
        listed = (
            OwnerToken(
                one.identity.token_id, one.identity.app, one.issued_ns, one.identity.expires_ns
            )
            for one in mine
        )
        return tuple(sorted(listed, key=lambda one: -one.issued_ns))

    def end_owner_token(self, number: str) -> bool:
        """End a token of a program that acts for the owner: in force at once, written by the next
        :meth:`write_ends`; False where there is none.
        """
        with self._lock:
            found = self._live.get(number)
            if found is None or found.identity.role != "owner":
                return False
            del self._live[number]
            self._unwritten[number] = time.time_ns()
        return True

    def write_ends(self) -> bool:
        """Write the ends that are not written yet; False where the database did not take them."""
        with self._lock:
            waiting = dict(self._unwritten)
        if not waiting:
            return True

        def work(connection: Connection) -> None:
            for number, ended_ns in waiting.items():
                connection.execute(_ending(ended_ns).where(TOKENS.c.id == number))

        try:
            self._database.write(work)
        except LedgerError:
            return False
        with self._lock:
            for number in waiting:
                self._unwritten.pop(number, None)
        return True

    def apps(self, now_ns: int | None = None) -> tuple[str, ...]:
        """Apps that hold a live token, sorted."""
        now = time.time_ns() if now_ns is None else now_ns
        live = sa.and_(
            TOKENS.c.role == "app",
            TOKENS.c.ended_ns.is_(None),
            sa.or_(TOKENS.c.expires_ns.is_(None), TOKENS.c.expires_ns > now),
        )
        query = sa.select(TOKENS.c.app).where(live).distinct()
        return tuple(
            sorted(
                row.app
                for row in self._database.read(lambda connection: connection.execute(query).all())
            )
        )

    def remembered_apps(self, now_ns: int) -> frozenset[str]:
        """Apps that hold a live token, from memory alone."""
        with self._lock:
            known = [one.identity for one in self._live.values()]
        return frozenset(
            who.app
            for who in known
            if who.role == "app" and (who.expires_ns is None or now_ns < who.expires_ns)
        )

    def ever(self, app: str) -> bool:
        """Whether an app of this name ever had a token."""
        query = sa.select(TOKENS.c.id).where(TOKENS.c.app == app, TOKENS.c.role == "app").limit(1)
        return self._database.read(lambda connection: connection.execute(query).first()) is not None

    def owner_link(self, now_ns: int, expires_ns: int) -> str:
        """A key for the owner's link that works once; earlier ones stop working."""
        number, secret = token_hex(8), token_urlsafe(32)
        row: dict[str, Any] = {
            "id": number,
            "app": "owner",
            "role": "link",
            "hash": _hash(secret),
            "issued_ns": now_ns,
            "expires_ns": expires_ns,
            "ended_ns": None,
        }

        def work(connection: Connection) -> None:
            if (
                connection.execute(sa.select(TOKENS.c.id).where(TOKENS.c.id == number)).first()
                is None
            ):
                connection.execute(_ending(now_ns).where(TOKENS.c.role == "link"))
                connection.execute(sa.insert(TOKENS).values(**row))

        self._database.write(work)
        self._forget(role="link")
        self._remember(number, "owner", "link", expires_ns, bytes(row["hash"]), now_ns)
        return f"gv_link_{number}_{secret}"

    def take_link(self, key: str, now_ns: int) -> bool:
        """Use the key of a link: true once, false ever after, and false for keys that are wrong or
        stale.
        """
        found = self._find(key)
        if found is None or found[0] != "link" or found[1].role != "link":
            return False
        number, expires_ns = found[1].id, found[1].expires_ns
        if expires_ns is not None and now_ns >= int(expires_ns):
            return False
        self._forget(number=str(number))
        # Of two that come at the same moment, one changes the row. A lost answer to the commit
        # wastes the link; it never lets it work twice.
        return self._database.write(
            lambda connection: (
                connection.execute(_ending(now_ns).where(TOKENS.c.id == number)).rowcount == 1
            )
        )


_FIND = Ready(sa.select(TOKENS).where(TOKENS.c.id == sa.bindparam("i")))


def _parts(token: object) -> tuple[str, str, str]:
    """Role, id and secret of a token; empty where it is none."""
    parts = _TOKEN.fullmatch(token) if isinstance(token, str) else None
    return (parts[1], parts[2], parts[3]) if parts else ("", "", "")


def _ending(now_ns: int) -> sa.Update:
    return sa.update(TOKENS).where(TOKENS.c.ended_ns.is_(None)).values(ended_ns=now_ns)


def _hash(secret: str) -> bytes:
    return sha256(b"gazeveil token\x00" + secret.encode()).digest()
