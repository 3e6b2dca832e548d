"""Who calls: tokens of apps, trackers and programs, the owner's link, and sessions of the owner's
browsers.

A token is `gv_<role>_<id>_<secret>`, with a secret of 256 random bits, which cannot be guessed: so
its SHA-256 is stored as it is. Slow hashes make the guessing of weak passwords dear, and would only
make every honest request dear here. All live tokens are in memory; the database follows. A look-up
takes microseconds, and the owner can take away while the database does not answer. The key of the
owner's link, the tracker's token and the passes of pages whose question is not granted are in
memory alone.

A session of the owner's browser is a key that the page made, cannot read and cannot give away; the
service has its public half. Every call is signed over its method, path and body, a time and a
number. So nothing that a page sends works twice: neither cookies, which browsers show to the server
on every port of a host, nor calls, which an open page shows to a program that takes the port while
the service is stopped. A restart ends all sessions.
"""

from __future__ import annotations

import hmac
import re
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import sha256
from secrets import token_hex, token_urlsafe

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.ledger.database import Database, Sql
from gazeveil.gatekeeper.policy.policy import checked_name

#: Roles whose tokens outlive the process.
_KEPT = ("app", "owner")

#: Seconds that a signed call may take to come.
LATE_S = 30

#: So many numbers below the newest may still come.
_TOGETHER = 1024

#: Status, code and sentence for whoever is not the owner.
NOBODY = 401, "session", "Nobody is signed in here. Open the owner's link."

_TOKEN = re.compile(r"gv_(app|tracker|owner|link)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_CALL = re.compile(
    r"([0-9a-f]{16})\.([0-9]{1,15})\.([0-9]{1,15})\.([0-9a-f]{64})\.([A-Za-z0-9_-]{86})", re.ASCII
)
_NO_HASH = bytes(32).hex()


def _hash(secret: str) -> str:
    return sha256(b"gazeveil\x00" + secret.encode("utf-8", "surrogatepass")).hexdigest()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _parts(text: str) -> tuple[str, str, str]:
    """Role, id and secret of what came as a token; empty where it is none."""
    parts = _TOKEN.fullmatch(text)
    return parts.groups() if parts else ("", "", "")  # type: ignore[return-value]


@dataclass(frozen=True)
class Token:
    """A token without its secret.

    Parameters
    ----------
    id : str
        Its public part.
    app : str
        Whom it stands for: an app, a tracker, or a program of the owner.
    role : str
        `app`, `tracker`, `owner`, or `link` for the owner's one-time link.
    hash : str
        Of its secret.
    issued_ns : int
        When it was given out.
    expires_ns : int, optional
        From when it is void.
    newcomer : bool
        Whether it belongs to a page whose question is not granted; then no row holds it.
    """

    id: str
    app: str
    role: str
    hash: str
    issued_ns: int
    expires_ns: int | None = None
    newcomer: bool = False


class Tokens:
    """Live tokens; safe to use from several threads. `now_ns` is the device's clock.

    Examples
    --------
    >>> tokens = Tokens(Database("sqlite://"), lambda: 9)
    >>> token = tokens.issue("shop", "app", expires_ns=10)
    >>> tokens.holder(token).app, tokens.holder(token + "x"), tokens.end(app="other")
    ('shop', None, None)
    """

    def __init__(self, database: Database, now_ns: Callable[[], int]) -> None:
        self._database, self.now_ns = database, now_ns
        self._lock = threading.Lock()
        question = "SELECT id, app, role, hash, issued_ns, expires_ns FROM tokens"
        self._live = {
            row[0]: Token(*row) for row in database.rows(f"{question} WHERE ended_ns IS NULL")
        }

    def holder(self, text: str) -> Token | None:
        """Whom a token stands for; None for one that is wrong, forged, stale or ended, without
        saying which.
        """
        role, token_id, secret = _parts(text)
        token = self._live.get(token_id)
        # For an unknown id as much is done.
        right = hmac.compare_digest(_hash(secret), token.hash if token else _NO_HASH)
        if token is None or not right or token.role != role or not self._is_live(token):
            return None
        return token

    def _is_live(self, token: Token) -> bool:
        return token.expires_ns is None or self.now_ns() < token.expires_ns

    def id_of(self, text: str) -> str:
        """The public part of a token where there is a live one of that id, right or wrong; else
        nothing.
        """
        token_id = _parts(text)[1]
        return token_id if token_id in self._live else ""

    def of(self, role: str) -> tuple[Token, ...]:
        """Live tokens in a role, the newest first."""
        with self._lock:
            live = [t for t in self._live.values() if t.role == role and self._is_live(t)]
        return tuple(sorted(live, key=lambda token: -token.issued_ns))

    def apps(self) -> frozenset[str]:
        """Apps that hold a token."""
        return frozenset(token.app for token in self.of("app") if not token.newcomer)

    def issue(
        self, app: str, role: str, expires_ns: int | None, in_place_of_others: bool = False
    ) -> str:
        """A new token, shown this once, perhaps in the place of all the app had in that role."""
        text = f"gv_{role}_{token_hex(8)}_{token_urlsafe(32)}"
        self._take_in(self._made(app, text, expires_ns), in_place_of_others)
        return text

    def newcomer(self, app: str, expires_ns: int) -> str:
        """A pass for a page whose question waits, in the place of those it had."""
        text = f"gv_app_{token_hex(8)}_{token_urlsafe(32)}"
        self.end(app=app, newcomer=True)
        with self._lock:
            token = self._made(app, text, expires_ns, newcomer=True)
            self._live[token.id] = token
        return text

    def admit(self, app: str, expires_ns: int) -> None:
        """Have the pass of a page be its token, in the place of those it had: it is granted."""
        for token in (token for token in self.of("app") if token.app == app and token.newcomer):
            self._take_in(replace(token, newcomer=False, expires_ns=expires_ns), others=True)

    def adopt(self, app: str, role: str, text: str) -> bool:
        """Take a token that was made elsewhere, in the place of all others the app had in that
        role.

        Returns
        -------
        bool
            False where it is no token of that role, is another's, or was ended here before: what
            was ended stays so.
        """
        its_role, token_id, secret = _parts(text)
        there = self._database.rows(
            "SELECT app, role, hash, ended_ns FROM tokens WHERE id = ?", token_id
        )
        if its_role != role or there not in ([], [(app, role, _hash(secret), None)]):
            return False
        self._take_in(self._made(app, text, None), others=True)
        return True

    def _made(self, app: str, text: str, expires_ns: int | None, newcomer: bool = False) -> Token:
        role, token_id, secret = _parts(text)
        name = checked_name("Tokens", "app", app)
        return Token(token_id, name, role, _hash(secret), self.now_ns(), expires_ns, newcomer)

    def _take_in(self, token: Token, others: bool) -> None:
        """Write a token and take it in, perhaps in the place of all the app had in that role."""
        mine = [one for one in self.of(token.role) if one.app == token.app and one.id != token.id]
        gone = mine if others else []
        row = (token.id, token.app, token.role, token.hash, token.issued_ns, token.expires_ns)

        def work(sql: Sql) -> None:
            question = "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING"
            sql(question, *row)
            self._write_ends(sql, gone)

        if token.role in _KEPT:
            self._database.write(work)
        with self._lock:
            for one in gone:
                self._live.pop(one.id, None)
            self._live[token.id] = token

    def _write_ends(self, sql: Sql, gone: Iterable[Token]) -> None:
        for token in gone:
            question = "UPDATE tokens SET ended_ns = ? WHERE id = ? AND ended_ns IS NULL"
            sql(question, self.now_ns(), token.id)

    def end(self, **fields: object) -> Future[None] | None:
        """End the tokens whose fields are those; in force at once. What is done when it is written,
        or None where there was none.
        """
        with self._lock:
            gone = [
                token
                for token in self._live.values()
                if all(getattr(token, name) == value for name, value in fields.items())
            ]
            for token in gone:
                del self._live[token.id]
        return self._database.owe(lambda sql: self._write_ends(sql, gone)) if gone else None

    def record_ends(self) -> None:
        """End those whose time is over: no restart with a clock that was set back revives them."""
        for token in tuple(self._live.values()):
            if not self._is_live(token):
                self.end(id=token.id)

    def ever(self, app: str) -> bool:
        """Whether an app of this name ever had a token."""
        return bool(
            self._database.rows("SELECT id FROM tokens WHERE app = ? AND role = 'app' LIMIT 1", app)
        )

    def is_link(self, key: str) -> bool:
        """Whether it is the key of an owner's link that was not used."""
        token = self.holder(key)
        return token is not None and token.role == "link"


@dataclass
class OwnerSession:
    """One browser that the owner signed in with.

    Parameters
    ----------
    id : str
        Public; names the session in its calls.
    expires_ns : int
        From when it is void.
    key : EllipticCurvePublicKey
        What its calls are checked with.
    newest, used : int
        The largest number of a call, and a bit for it and each below that was used.
    """

    id: str
    expires_ns: int
    key: ec.EllipticCurvePublicKey
    newest: int = 0
    used: int = 1


def page_key(text: str) -> ec.EllipticCurvePublicKey:
    """The public half of a page's key.

    Raises
    ------
    Refused
        Where the text is no point of P-256 in base64url.
    """
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(text))
    except ValueError:
        raise Refused(422, "value", "The key is no point of the curve P-256.") from None


@dataclass(frozen=True)
class SignedCall:
    """Whose call it is, and the SHA-256 of the body that was signed."""

    session: OwnerSession
    body: str


class Sessions:
    """The owner's session, one at a time: there is one link for each start. Calls are read on the
    event loop alone. `clock_ns` is the machine's clock: browsers go by it too, also where it is set
    back.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._clock_ns = clock_ns
        self._live: OwnerSession | None = None

    def begin(self, key: ec.EllipticCurvePublicKey, expires_ns: int) -> OwnerSession:
        """A new session, in the place of the last one."""
        self._live = OwnerSession(token_hex(8), expires_ns, key)
        return self._live

    def read(self, text: str, method: str, target: str, now_ns: int) -> SignedCall:
        """A call of the owner's page, which is used up by this.

        Parameters
        ----------
        text : str
            As it came in the header or the hello: session, number, milliseconds since 1970, SHA-256
            of the body and signature, with dots between.
        method, target : str
            What is called, the query included.
        now_ns : int
            The time that sessions end by.

        Raises
        ------
        Refused
            Where it is not signed by a live session, came late, or was used already.
        """
        parts = _CALL.fullmatch(text)
        session = self._live
        if parts is None or session is None or not self.is_live(parts[1], now_ns):
            raise Refused(*NOBODY)
        signed = f"{method} {target}\n{text[: parts.start(5) - 1]}".encode()
        both = _bytes(parts[5])
        halves = (int.from_bytes(half, "big") for half in (both[:32], both[32:]))
        try:
            session.key.verify(encode_dss_signature(*halves), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise Refused(*NOBODY) from None
        if abs(self._clock_ns() - int(parts[3]) * 10**6) > LATE_S * 10**9:
            reason = f"The call came late, or the browser's clock is more than {LATE_S} s off."
            raise Refused(401, "late", reason)
        self._use(session, int(parts[2]))
        return SignedCall(session, parts[4])

    @staticmethod
    def _use(session: OwnerSession, number: int) -> None:
        """Use the number of a call up; calls that were made together may come in any order."""
        back = session.newest - number
        if back < 0:
            session.used <<= min(-back, _TOGETHER)
            session.newest, back = number, 0
        if back >= _TOGETHER or session.used >> back & 1:
            raise Refused(401, "used", "The call was used already. Load the page again.")
        session.used = (session.used | 1 << back) & ((1 << _TOGETHER) - 1)

    def is_live(self, number: str, now_ns: int) -> bool:
        """Whether a session has not ended."""
        session = self._live
        return session is not None and session.id == number and now_ns < session.expires_ns

    def end(self) -> str:
        """End the session, if there is one; its id."""
        session, self._live = self._live, None
        return session.id if session else ""


@dataclass(frozen=True)
class Caller:
    """Who sent a request with a token that was right."""

    app: str
    role: str
    expires_ns: int | None = None
    #: Public part of the token, or the owner's session.
    credential: str = ""
    #: Whether it has asked and is not granted anything under this token or user yet.
    newcomer: bool = False
