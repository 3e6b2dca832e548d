"""Who is calling: random tokens, of which the database keeps hashes alone.

The id of a token finds its row, the hash of its secret is compared in constant time, and for an
unknown id as much is done. The owner's link holds a key of the same kind that works once. What is
live is also held in memory (:mod:`gazeveil.gatekeeper.service.credentials.live_tokens`).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.ledger.database import Database, Ready
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.ledger.tables import TOKENS
from gazeveil.gatekeeper.policy.wearers import checked_name
from gazeveil.gatekeeper.service.credentials.live_tokens import LiveTokens, TokenHolder
from gazeveil.gatekeeper.service.credentials.token_text import TokenText
from gazeveil.gatekeeper.service.credentials.unwritten_ends import UnwrittenEnds, ending

#: Who a token can stand for.
ROLES = ("app", "tracker", "owner")

_FIND = Ready(sa.select(TOKENS).where(TOKENS.c.id == sa.bindparam("i")))


class Tokens:
    """Tokens in the ledger's database.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     tokens = Tokens(ledger)
    ...     token = tokens.issue("shop", "app", expires_ns=10)
    ...     print(tokens.check(token, now_ns=9).app)
    ...     print(tokens.check(token, now_ns=10), tokens.check(token + "x", now_ns=9))
    shop
    None None
    """

    def __init__(self, ledger: Ledger) -> None:
        self._database: Database = ledger.database
        self.now_ns = ledger.now_ns
        #: What is known without the database.
        self.live = LiveTokens()
        #: Ends of programs' tokens that the database does not have yet.
        self.ends = UnwrittenEnds(self._database, TOKENS)
        #: Apps whose tokens have ended here, and not in the database yet.
        self._forgotten: set[str] = set()
        live = sa.select(TOKENS).where(TOKENS.c.ended_ns.is_(None))
        for row in self._database.rows(live):
            holder = TokenHolder(row.app, row.role, row.expires_ns, row.id)
            self.live.add(holder, bytes(row.hash), row.issued_ns)

    def forget(self, app: str) -> None:
        """End the tokens of an app from memory alone: in force at once, also for :meth:`check`, and
        written by the next :meth:`revoke`.
        """
        self._forgotten.add(app)
        self.live.drop(app, "app")

    def issue(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token, shown this once; those it had stay valid."""
        name = checked_name("Tokens.issue", "app", app)
        checks.one_of("Tokens.issue", "role", role, ROLES)
        return self._issue(name, role, expires_ns, in_place_of_others=False)

    def rotate(self, app: str, role: str = "app", expires_ns: int | None = None) -> str:
        """A new token in the place of all the app had in that role, in one step."""
        name = checked_name("Tokens.rotate", "app", app)
        checks.one_of("Tokens.rotate", "role", role, ROLES)
        return self._issue(name, role, expires_ns, in_place_of_others=True)

    def _issue(self, app: str, role: str, expires_ns: int | None, in_place_of_others: bool) -> str:
        if expires_ns is not None and (type(expires_ns) is not int or not 0 <= expires_ns < 2**63):
            checks.refuse(
                "Tokens.issue", "expires_ns", "a time in nanoseconds, or nothing", expires_ns
            )
        text, now = TokenText.new(role), self.now_ns()

        def work(connection: Connection) -> None:
            if _FIND(connection, {"i": text.id}).first() is not None:
                return  # tried again after the answer to a commit was lost
            if in_place_of_others:
                connection.execute(_ending(now, app=app, role=role))
            connection.execute(_inserting(text, app, now, expires_ns))

        self._database.write(work)
        if in_place_of_others:
            self.live.drop(app, role)
        self.live.add(TokenHolder(app, role, expires_ns, text.id), text.hash, now)
        return str(text)

    def adopt(self, app: str, role: str, token: str, expires_ns: int | None = None) -> bool:
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
        text, now = TokenText.parse(token), self.now_ns()
        if text.role != role:
            return False

        def work(connection: Connection) -> bool:
            there = _FIND(connection, {"i": text.id}).first()
            mine = (name, role, text.hash, None)
            right = there is None or mine == (
                there.app,
                there.role,
                bytes(there.hash),
                there.ended_ns,
            )
            if right:
                others = _ending(now, app=name, role=role).where(TOKENS.c.id != text.id)
                connection.execute(others)
            if there is None:
                connection.execute(_inserting(text, name, now, expires_ns))
            return right

        taken = self._database.write(work)
        if taken:
            self.live.drop(name, role)
            self.live.add(TokenHolder(name, role, expires_ns, text.id), text.hash, now)
        return taken

    def check(self, token: str, now_ns: int) -> TokenHolder | None:
        """Whom a token stands for; None for one that is wrong, forged, stale or revoked, without
        saying which.
        """
        text = TokenText.parse(token)
        row = self._find(text)
        if row is None or text.role == "link" or row.role != text.role:
            return None
        holder = TokenHolder(row.app, row.role, row.expires_ns, row.id)
        over = row.ended_ns is not None or row.id in self.ends or not holder.is_live(now_ns)
        return None if over or (row.role == "app" and row.app in self._forgotten) else holder

    def _find(self, text: TokenText) -> sa.Row[Any] | None:
        """The row of a token whose secret is right."""
        row = self._database.read(lambda connection: _FIND(connection, {"i": text.id}).first())
        return row if text.fits(None if row is None else bytes(row.hash)) else None

    def revoke(self, app: str, role: str | None = None) -> int:
        """End all tokens of an app, or those in one role; how many were live."""
        self.live.drop(app, role)
        wanted = {"app": app} if role is None else {"app": app, "role": role}
        ends = _ending(self.now_ns(), **wanted)
        ended = self._database.write(lambda connection: int(connection.execute(ends).rowcount))
        if role in (None, "app"):
            self._forgotten.discard(app)
        return ended

    def end_owner_token(self, token_id: str) -> bool:
        """End a token of a program that acts for the owner: in force at once, written by the next
        write of :attr:`ends`; False where there is none.
        """
        if not self.live.drop(role="owner", token_id=token_id):
            return False
        self.ends.add(token_id)
        return True

    def apps(self) -> tuple[str, ...]:
        """Apps that hold a live token, sorted; from the database."""
        live = sa.and_(
            TOKENS.c.role == "app",
            TOKENS.c.ended_ns.is_(None),
            sa.or_(TOKENS.c.expires_ns.is_(None), TOKENS.c.expires_ns > self.now_ns()),
        )
        query = sa.select(TOKENS.c.app).where(live).distinct()
        return tuple(sorted(row.app for row in self._database.rows(query)))

    def ever(self, app: str) -> bool:
        """Whether an app of this name ever had a token."""
        query = sa.select(TOKENS.c.id).where(TOKENS.c.app == app, TOKENS.c.role == "app").limit(1)
        return bool(self._database.rows(query))

    def owner_link(self, expires_ns: int) -> str:
        """A key for the owner's link that works once; earlier ones stop working."""
        return self._issue("owner", "link", expires_ns, in_place_of_others=True)

    def take_link(self, key: str, now_ns: int) -> bool:
        """Use the key of a link: true once, false ever after, and false for keys that are wrong or
        stale.
        """
        text = TokenText.parse(key)
        row = self._find(text)
        if row is None or text.role != "link" or row.role != "link" or now_ns >= row.expires_ns:
            return False
        self.live.drop(token_id=text.id)
        # Of two that come at the same moment, one changes the row. A lost answer to the commit
        # wastes the link; it never lets it work twice.
        ends = _ending(now_ns, id=text.id)
        return self._database.write(lambda connection: connection.execute(ends).rowcount == 1)


def _ending(now_ns: int, **wanted: str) -> sa.Update:
    return ending(TOKENS, now_ns).where(*(TOKENS.c[name] == v for name, v in wanted.items()))


def _inserting(text: TokenText, app: str, issued_ns: int, expires_ns: int | None) -> sa.Insert:
    return sa.insert(TOKENS).values(
        id=text.id,
        app=app,
        role=text.role,
        hash=text.hash,
        issued_ns=issued_ns,
        expires_ns=expires_ns,
        ended_ns=None,
    )
