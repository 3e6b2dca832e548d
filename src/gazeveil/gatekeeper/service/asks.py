"""Questions of apps to the wearer: one of an app at a time, about one of the four presets.

Nothing that an app writes itself is shown in a question: a page is named by its origin, which the
browser proves, a program by its user. A page that is not known yet brings no token; it is given one
that is worth nothing until its own question is granted, and is forgotten where it is not. So a
program of this machine that writes a foreign origin into its request does not inherit the wearer's
answer to the page.

An unanswered question is dismissed after two minutes. An app whose questions were refused three
times may not ask again until the owner allows it. A grant resets the count, a restart does not.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from dataclasses import dataclass

from gazeveil.gatekeeper.ledger.database import Database, Sql
from gazeveil.gatekeeper.service.credentials import Tokens

#: After so many refusals an app may not ask again.
MOST_DISMISSALS = 3

#: Questions of apps that are not known yet that wait at a time.
MOST_NEWCOMERS = 8

#: A question waits so long for its answer.
WAITS_NS = 120 * 10**9

#: So long the token of a newcomer still hears that its question was not granted.
_HEARD_NS = 60 * 10**9

#: So long it is told how a question was answered.
_TOLD_NS = 10**13

_ORIGIN = re.compile(r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::([0-9]{1,5}))?", re.ASCII)


def name_of_origin(origin: str) -> str | None:
    """The name of the app that a page is by its origin; None where it cannot have one.

    Examples
    --------
    >>> name_of_origin("https://shop.example"), name_of_origin("http://localhost:8000")
    ('https.shop.example', 'http.localhost.8000')
    """
    parts = _ORIGIN.fullmatch(origin)
    name = ".".join(part for part in parts.groups() if part) if parts else ""
    return name if 0 < len(name) <= 64 else None


@dataclass(frozen=True)
class AccessRequest:
    """A question of an app.

    Parameters
    ----------
    id : int
        A random number, so that a question before a restart is never taken for one after it.
    app : str
        Its name.
    want : str
        A name of :data:`gazeveil.gatekeeper.policy.grant.PRESETS`.
    t_ns : int
        When, since the Unix epoch.
    origin : str, optional
        Of a page that brought no token.
    token : str
        What such a page was given.
    uid : int, optional
        User of a program of this machine that brought no token.
    """

    id: int
    app: str
    want: str
    t_ns: int
    origin: str | None = None
    token: str = ""
    uid: int | None = None

    @property
    def new(self) -> bool:
        """Whether it comes from an app that is not known yet."""
        return self.origin is not None or self.uid is not None


class AccessRequests:
    """The questions that wait, how the last ones were answered, and how often each app was
    refused.
    """

    def __init__(self, database: Database, tokens: Tokens) -> None:
        self._database, self._tokens = database, tokens
        self._lock = threading.Lock()
        self._waiting: dict[str, AccessRequest] = {}
        self._answers: dict[str, tuple[str, int]] = {}
        self._dismissed = {str(a): int(n) for a, n in database.rows("SELECT * FROM dismissals")}

    def waiting(self) -> tuple[AccessRequest, ...]:
        """All that wait, oldest first."""
        with self._lock:
            return tuple(sorted(self._waiting.values(), key=lambda asked: (asked.t_ns, asked.id)))

    def of(self, app: str) -> AccessRequest | None:
        """The question of an app that waits."""
        return self._waiting.get(app)

    def of_user(self, uid: int) -> AccessRequest | None:
        """The question of a user's programs that waits."""
        return next((asked for asked in self.waiting() if asked.uid == uid), None)

    def blocked_apps(self, refusals: int = MOST_DISMISSALS) -> frozenset[str]:
        """Apps that were refused so often, by default too often."""
        return frozenset(app for app, count in self._dismissed.copy().items() if count >= refusals)

    def origins(self) -> set[str]:
        """Origins of pages that wait."""
        return {asked.origin for asked in self.waiting() if asked.origin is not None}

    def answer(self, app: str) -> str | None:
        """How the last question of an app stands: `waiting`, `granted`, `refused`, `dismissed`."""
        return "waiting" if app in self._waiting else self._answers.get(app, (None, 0))[0]

    def add(
        self, app: str, want: str, origin: str | None = None, uid: int | None = None
    ) -> AccessRequest | None:
        """Keep a question; None where one of the app waits, or too many of newcomers do."""
        now_ns, number = time.time_ns(), secrets.randbelow(2**53)
        with self._lock:
            asked = AccessRequest(number, app, want, now_ns, origin, "", uid)
            newcomers = sum(waiting.new for waiting in self._waiting.values())
            if app in self._waiting or (asked.new and newcomers >= MOST_NEWCOMERS):
                return None
            if origin is not None:
                token = self._tokens.newcomer(app, now_ns + WAITS_NS + _HEARD_NS)
                asked = AccessRequest(number, app, want, now_ns, origin, token)
            self._waiting[app] = asked
            return asked

    def dismiss(self, number: int) -> AccessRequest | None:
        """Refuse a question and count it; None where none of that number waits."""
        asked = next((r for r in self.waiting() if r.id == number), None)
        if asked is None or not self.withdraw(asked.app, "refused"):
            return None
        self._count(asked.app, self._dismissed.get(asked.app, 0) + 1)
        return asked

    def sweep(self, now_ns: int) -> bool:
        """Dismiss what has waited too long; whether there was any."""
        old = [r for r in self.waiting() if now_ns - r.t_ns >= WAITS_NS]
        for asked in old:
            self.withdraw(asked.app)
        with self._lock:
            self._answers = {
                a: (w, t) for a, (w, t) in self._answers.items() if now_ns - t < _TOLD_NS
            }
        return bool(old)

    def withdraw(self, app: str, answer: str = "dismissed") -> bool:
        """Take the question of an app off the list without counting it; whether one waited."""
        with self._lock:
            if self._waiting.pop(app, None) is None:
                return False
            self._answers[app] = (answer, time.time_ns())
            return True

    def forget(self, app: str, answer: str = "granted") -> None:
        """Forget the question and the refusals of an app; it was granted something, or removed."""
        self.withdraw(app, answer)
        if app in self._dismissed:
            self._count(app, 0)

    def _count(self, app: str, count: int) -> None:
        """Keep how often an app was refused; it counts at once, and is written when the database
        takes it.
        """
        with self._lock:
            self._dismissed[app] = count

        def work(sql: Sql) -> None:
            question = "INSERT INTO dismissals VALUES (?, ?) ON CONFLICT (app) DO UPDATE"
            sql(f"{question} SET count = ?", app, count, count)

        self._database.owe(work)
