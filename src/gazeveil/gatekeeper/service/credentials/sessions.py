"""Sessions of the owner's browsers, each in two halves.

Browsers send a cookie to every server of a host, whatever its port: any program on the same machine
that the owner's browser visits sees it. So a session needs two halves. The *secret* lies in the
page's own storage, which is kept apart by scheme, host and port, and is sent as a header; the
*cookie* is one that no script can read. Either alone opens nothing, with one exception: to take
away (sharing off, revoke, sign out) the secret is enough, so that a server on another port that
overwrites the cookie cannot keep the owner from it.

Sessions are in the memory of this process alone, as hashes of both halves: the owner can take away
while the database does not answer, and a restart ends all of them. While the service is stopped
another program may take its port, and an open page shows it both halves; they open nothing
afterwards.
"""

from __future__ import annotations

import hmac
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex, token_urlsafe

#: Sessions that may be open at once; then the oldest ends.
MOST = 32

_SECRET = re.compile(r"gvs_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_DUMMY_HASH = bytes(32)

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


@dataclass(frozen=True)
class OwnerSession:
    """One browser that the owner signed in with.

    Parameters
    ----------
    id : str
        Public; names the session in the list.
    browser : str
        A few words of our own.
    begun_ns : int
        When it was signed in, in nanoseconds since 1970.
    expires_ns : int
        From when it is void.
    secret_hash, cookie_hash : bytes
        SHA-256 of the two halves.
    """

    id: str
    browser: str
    begun_ns: int
    expires_ns: int
    secret_hash: bytes
    cookie_hash: bytes


@dataclass(frozen=True)
class NewSession:
    """The two halves of a new session, told this once."""

    session: OwnerSession
    secret: str
    cookie: str


class Sessions:
    """The owner's sessions; safe to use from several threads.

    Examples
    --------
    >>> sessions = Sessions()
    >>> begun = sessions.begin("Firefox on Linux", begun_ns=0, expires_ns=10)
    >>> sessions.check(begun.secret, [begun.cookie], 9) is begun.session
    True
    >>> sessions.check(begun.secret, [], 9), sessions.check(begun.cookie, None, 9)
    (None, None)
    >>> sessions.check(begun.secret, None, 9) is begun.session
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[str, OwnerSession] = {}
        self._used_ns: dict[str, int] = {}

    def begin(self, browser: str, begun_ns: int, expires_ns: int) -> NewSession:
        """A new session."""
        number, secret, cookie = token_hex(8), token_urlsafe(32), token_urlsafe(32)
        made = OwnerSession(number, browser, begun_ns, expires_ns, _hash(secret), _hash(cookie))
        with self._lock:
            self._live[number] = made
            self._used_ns[number] = begun_ns
            over = list(self._live)[:-MOST]
        for old in over:
            self.end(old)
        return NewSession(made, f"gvs_{number}_{secret}", cookie)

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
        with self._lock:
            session = self._live.get(number)
        right = hmac.compare_digest(
            _hash(half), session.secret_hash if session is not None else _DUMMY_HASH
        )
        if session is None or not right or now_ns >= session.expires_ns:
            return None
        if cookies is not None and not any(
            hmac.compare_digest(_hash(cookie), session.cookie_hash) for cookie in cookies
        ):
            return None
        return session

    def used(self, session: OwnerSession, now_ns: int) -> None:
        """Remember when a session was used last."""
        self._used_ns[session.id] = now_ns

    def used_ns(self, session: OwnerSession) -> int | None:
        """When a session was used last."""
        return self._used_ns.get(session.id)

    def listed(self, now_ns: int) -> tuple[OwnerSession, ...]:
        """Live sessions, the newest first."""
        with self._lock:
            live = [session for session in self._live.values() if now_ns < session.expires_ns]
        return tuple(sorted(live, key=lambda session: -session.begun_ns))

    def end(self, number: str) -> bool:
        """End a session; False where there is none of that id."""
        with self._lock:
            self._used_ns.pop(number, None)
            return self._live.pop(number, None) is not None


def _hash(half: str) -> bytes:
    return sha256(b"gazeveil owner session\x00" + half.encode("utf-8", "surrogatepass")).digest()
