"""Who calls: tokens of apps, trackers and programs, the owner's link, and sessions of the owner's
browsers.

A token is `gv_<role>_<id>_<secret>`, with a secret of 256 random bits, which cannot be guessed: so
its SHA-256 is stored as it is. Slow hashes make the guessing of weak passwords dear, and would only
make every honest request dear here. All live tokens are in memory; the database follows. A look-up
takes microseconds, and the owner can take away while the database does not answer. The key of the
owner's link, the tracker's token and the passes of pages whose question is not granted are in
memory alone.

Browsers send a cookie to every server of a host, whatever its port: any program on the same machine
that the owner's browser visits sees it. So a session needs two halves. The *secret* lies in the
page's own storage, which is kept apart by scheme, host and port, and is sent as a header; the
*cookie* is one that no script can read. Either alone opens nothing, with one exception: to take
away (sharing off, revoke, sign out) the secret is enough, so that a server on another port that
overwrites the cookie cannot keep the owner from it. A restart ends all sessions: while the service
is stopped another program may take its port, and an open page shows it both halves.
"""

from __future__ import annotations

import hmac
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import sha256
from secrets import token_hex, token_urlsafe

from gazeveil import checks
from gazeveil.gatekeeper.ledger.database import Database, Sql
from gazeveil.gatekeeper.policy.policy import checked_name

#: Who a token can stand for; `link` is the owner's one-time link.
ROLES = ("app", "tracker", "owner", "link")

#: Roles whose tokens outlive the process.
_KEPT = ("app", "owner")

#: Sessions that may be open at once; then the oldest ends.
MOST_SESSIONS = 32

_TOKEN = re.compile(r"gv_(app|tracker|owner|link)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_SECRET = re.compile(r"gvs_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_NO_HASH = bytes(32).hex()


def _hash(secret: str) -> str:
    return sha256(b"gazeveil\x00" + secret.encode("utf-8", "surrogatepass")).hexdigest()


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
        One of :data:`ROLES`.
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
        rows = database.rows(f"{question} WHERE ended_ns IS NULL")
        self._live = {row[0]: Token(*row) for row in rows}

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
        checks.one_of("Tokens.issue", "role", role, ROLES)
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
        question = "SELECT app, role, hash, ended_ns FROM tokens WHERE id = ?"
        there = self._database.rows(question, token_id)
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

    def ever(self, app: str) -> bool:
        """Whether an app of this name ever had a token."""
        question = "SELECT id FROM tokens WHERE app = ? AND role = 'app' LIMIT 1"
        return bool(self._database.rows(question, app))

    def take_link(self, key: str) -> bool:
        """Use the key of the owner's link: true once, false ever after and for any other key."""
        token = self.holder(key)
        return token is not None and token.role == "link" and self.end(id=token.id) is not None


#: Words of a User-Agent that tell a browser or a system, the telling ones first: most browsers also
#: name those they descend from.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_words(user_agent: str) -> str:
    """A browser in a few words of our own; nothing of what it sent is kept.

    Examples
    --------
    >>> browser_words("Mozilla/5.0 (X11; Linux x86_64) Chrome/126.0.0.0 Safari/537.36")
    'Chrome on Linux'
    >>> browser_words("curl/8.5")
    'another program'
    """
    text = user_agent[:512]
    browser = next((word for mark, word in _BROWSERS if mark in text), "")
    system = next((word for mark, word in _SYSTEMS if mark in text), "")
    return f"{browser} on {system}" if browser and system else browser or "another program"


@dataclass
class OwnerSession:
    """One browser that the owner signed in with.

    Parameters
    ----------
    id : str
        Public; names the session in the list.
    browser : str
        A few words of our own.
    begun_ns, used_ns, expires_ns : int
        When it was signed in, when it was used last, and from when it is void.
    secret_hash, cookie_hash : str
        Of the two halves.
    """

    id: str
    browser: str
    begun_ns: int
    used_ns: int
    expires_ns: int
    secret_hash: str
    cookie_hash: str


class Sessions:
    """The owner's sessions; safe to use from several threads.

    Examples
    --------
    >>> sessions = Sessions()
    >>> session, secret, cookie = sessions.begin("Firefox on Linux", begun_ns=0, expires_ns=10)
    >>> sessions.check(secret, [cookie], 9) is session, sessions.check(secret, None, 9) is session
    (True, True)
    >>> sessions.check(secret, [], 9), sessions.check(cookie, None, 9)
    (None, None)
    """

    def __init__(self) -> None:
        self._live: dict[str, OwnerSession] = {}

    def begin(self, browser: str, begun_ns: int, expires_ns: int) -> tuple[OwnerSession, str, str]:
        """A new session with its two halves, told this once: the secret and the cookie."""
        number, half, cookie = token_hex(8), token_urlsafe(32), token_urlsafe(32)
        times = begun_ns, begun_ns, expires_ns
        made = OwnerSession(number, browser, *times, _hash(half), _hash(cookie))
        self._live[number] = made
        for old in list(self._live)[:-MOST_SESSIONS]:
            self.end(old)
        return made, f"gvs_{number}_{half}", cookie

    def check(self, secret: str, cookies: Iterable[str] | None, now_ns: int) -> OwnerSession | None:
        """The session of a secret, None for one that is wrong, stale or ended, without saying
        which.

        Parameters
        ----------
        secret : str
            As it came in the header or the hello.
        cookies : iterable of str, optional
            Values of the owner's cookies that came beside it; one of them must be the session's.
            None asks for the secret alone.
        now_ns : int
            The time.
        """
        parts = _SECRET.fullmatch(secret)
        number, half = parts.groups() if parts else ("", "")
        session = self._live.get(number)
        right = hmac.compare_digest(_hash(half), session.secret_hash if session else _NO_HASH)
        if session is None or not right or now_ns >= session.expires_ns:
            return None
        if cookies is not None and not any(
            hmac.compare_digest(_hash(cookie), session.cookie_hash) for cookie in cookies
        ):
            return None
        return session

    def listed(self, now_ns: int) -> tuple[OwnerSession, ...]:
        """Live sessions, the newest first."""
        live = [session for session in tuple(self._live.values()) if now_ns < session.expires_ns]
        return tuple(sorted(live, key=lambda session: -session.begun_ns))

    def end(self, number: str) -> bool:
        """End a session; False where there is none of that id."""
        return self._live.pop(number, None) is not None


@dataclass(frozen=True)
class Caller:
    """Who sent a request with a token that was right."""

    app: str
    role: str
    expires_ns: int | None = None
    #: Public part of the token, or the owner's session.
    credential: str = ""
    #: Whether both halves of the owner's session came; always for tokens.
    whole: bool = True
    #: Whether it has asked and is not granted anything under this token or user yet.
    newcomer: bool = False
