"""Questions of apps to the wearer: one of an app at a time, about one of the four presets.

Nothing that an app writes itself is shown in a question: a page is named by its origin, which the
browser proves, a program by its user. A page that is not known yet brings no token; it is given one
that is worth nothing until its own question is granted, and is forgotten where it is not. So a
program of this machine that writes a foreign origin into its request does not inherit the wearer's
answer to the page.

An unanswered question is dismissed after two minutes. An app whose questions were refused three
times may not ask again until the owner allows it. A grant resets the count. The counts lie in a
file of the home folder, so a restart does not reset them.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.identity import LocalIdentity, LocalPeer
from gazeveil.gatekeeper.service.credentials.live_tokens import LiveTokens, TokenHolder
from gazeveil.gatekeeper.service.credentials.token_text import TokenText
from gazeveil.gatekeeper.whole_file import write_whole

#: After so many refusals an app may not ask again.
MOST_DISMISSALS = 3

#: Questions of apps that are not known yet that wait at a time.
MOST_NEWCOMERS = 8

#: A question waits so long for its answer.
WAITS_NS = 120 * 10**9

#: So long the token of a newcomer still hears that its question was not granted.
_HEARD_NS = 60 * 10**9

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
        A name of :data:`gazeveil.gatekeeper.policy.presets.PRESETS`.
    t_ns : int
        When, since the Unix epoch.
    origin : str, optional
        Of a page that brought no token.
    token : str
        What such a page was given.
    identity : LocalIdentity, optional
        Of a program of this machine that brought no token.
    """

    id: int
    app: str
    want: str
    t_ns: int
    origin: str | None = None
    token: str = ""
    identity: LocalIdentity | None = None


class AccessRequests:
    """The questions that wait, how the last ones were answered, and how often each app was refused;
    the counts lie at `path`.

    Raises
    ------
    ParameterError
        For a file that cannot be read: believing there were no refusals would lift every block.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._waiting: dict[str, AccessRequest] = {}
        self._answers: dict[str, tuple[str, int]] = {}
        #: Tokens of pages whose question is not granted.
        self.newcomers = LiveTokens()
        self._dismissed = _read(path)

    def waiting(self) -> tuple[AccessRequest, ...]:
        """All that wait, oldest first."""
        with self._lock:
            return tuple(sorted(self._waiting.values(), key=lambda asked: (asked.t_ns, asked.id)))

    def of(self, app: str) -> AccessRequest | None:
        """The question of an app that waits."""
        return self._waiting.get(app)

    def of_program(self, peer: LocalPeer) -> AccessRequest | None:
        """The question of a program of this machine that waits."""
        mine = (r for r in self.waiting() if r.identity is not None and r.identity.fits(peer))
        return next(mine, None)

    def blocked_apps(self) -> frozenset[str]:
        """Apps that were refused too often."""
        return frozenset(app for app in self._dismissed.copy() if self.blocked(app))

    def origins(self) -> set[str]:
        """Origins of pages that wait, or may still hear the answer."""
        return {asked.origin for asked in self.waiting() if asked.origin is not None}

    def answer(self, app: str) -> str | None:
        """How the last question of an app stands: `waiting`, `granted`, `refused`, `dismissed`."""
        return "waiting" if app in self._waiting else self._answers.get(app, (None, 0))[0]

    def blocked(self, app: str) -> bool:
        """Whether an app was refused too often."""
        return self._dismissed.get(app, 0) >= MOST_DISMISSALS

    def add(
        self, app: str, want: str, origin: str | None = None, identity: LocalIdentity | None = None
    ) -> AccessRequest | None:
        """Keep a question; None where one of the app waits, or too many of newcomers do."""
        with self._lock:
            new = origin is not None or identity is not None
            newcomers = [r for r in self._waiting.values() if r.origin or r.identity]
            if app in self._waiting or (new and len(newcomers) >= MOST_NEWCOMERS):
                return None
            now_ns, text = time.time_ns(), TokenText.new("app") if origin is not None else None
            if text is not None:
                until_ns = now_ns + WAITS_NS + _HEARD_NS
                self.newcomers.drop(app=app)
                self.newcomers.add(TokenHolder(app, "app", until_ns, text.id), text.hash, now_ns)
            asked = AccessRequest(
                secrets.randbelow(2**53), app, want, now_ns, origin, str(text or ""), identity
            )
            self._waiting[app] = asked
            return asked

    def dismiss(self, number: int) -> AccessRequest | None:
        """Refuse a question and count it; None where none of that number waits.

        Raises
        ------
        OSError
            Where the count cannot be written; it holds until the service stops.
        """
        asked = next((r for r in self.waiting() if r.id == number), None)
        if asked is None or not self.withdraw(asked.app, "refused"):
            return None
        with self._lock:
            self._dismissed[asked.app] = self._dismissed.get(asked.app, 0) + 1
        self.write()
        return asked

    def sweep(self, now_ns: int) -> bool:
        """Dismiss what has waited too long; whether there was any."""
        old = [r for r in self.waiting() if now_ns - r.t_ns >= WAITS_NS]
        for asked in old:
            self.withdraw(asked.app)
        with self._lock:
            self._answers = {
                a: (w, t) for a, (w, t) in self._answers.items() if now_ns - t < 10**13
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
        """Forget the question and the refusals of an app; it was granted something, or removed.

        Raises
        ------
        OSError
            Where that cannot be written.
        """
        self.withdraw(app, answer)
        self.newcomers.drop(app=app)
        with self._lock:
            known = self._dismissed.pop(app, None) is not None
        if known:
            self.write()

    def write(self) -> None:
        """Write the counts."""
        with self._lock:
            text = json.dumps(self._dismissed, sort_keys=True)
            write_whole(self._path, text + "\n")


def _read(path: Path) -> dict[str, int]:
    try:
        counts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(counts, dict) or not all(
            isinstance(k, str) and type(v) is int and v >= 0 for k, v in counts.items()
        ):
            raise ValueError
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ParameterError(
            f"The file {path}, which counts dismissed asks, cannot be read. Remove it to begin the"
            " counts anew."
        ) from None
    return counts
