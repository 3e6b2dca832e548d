"""Live tokens in memory, by hash.

A look-up takes microseconds and comes before any rate limit. A flood of wrong tokens therefore
shuts out no holder of a valid one. The owner can revoke while the database does not answer.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from gazeveil.gatekeeper.service.credentials.token_text import TokenText


@dataclass(frozen=True)
class TokenHolder:
    """Whom a token stands for.

    Parameters
    ----------
    app : str
        Its name.
    role : str
        One of :data:`gazeveil.gatekeeper.service.credentials.tokens.ROLES`, or `link`.
    expires_ns : int, optional
        From when it is void.
    token_id : str
        The public part of the token, for logs.
    """

    app: str
    role: str
    expires_ns: int | None = None
    token_id: str = ""

    def is_live(self, now_ns: int) -> bool:
        """Whether the token has not expired."""
        return self.expires_ns is None or now_ns < self.expires_ns


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
class _LiveToken:
    holder: TokenHolder
    hash: bytes
    issued_ns: int


class LiveTokens:
    """Tokens that have not ended; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[str, _LiveToken] = {}

    def add(self, holder: TokenHolder, digest: bytes, issued_ns: int) -> None:
        """Remember a token."""
        with self._lock:
            self._live[holder.token_id] = _LiveToken(holder, digest, issued_ns)

    def drop(
        self, app: str | None = None, role: str | None = None, token_id: str | None = None
    ) -> bool:
        """Forget what matches all that is named; whether there was any."""
        wanted = {"app": app, "role": role, "token_id": token_id}
        with self._lock:
            gone = [
                key
                for key, live in self._live.items()
                if all(v is None or getattr(live.holder, n) == v for n, v in wanted.items())
            ]
            for key in gone:
                del self._live[key]
        return bool(gone)

    def holder(self, token: str, now_ns: int) -> TokenHolder | None:
        """Whom a live token stands for; also the keys of links, with the role `link`."""
        text = TokenText.parse(token)
        with self._lock:
            live = self._live.get(text.id)
        if not text.fits(None if live is None else live.hash) or live is None:
            return None
        holder = live.holder
        return holder if holder.role == text.role and holder.is_live(now_ns) else None

    def id_of(self, token: str) -> str:
        """The public part of a token where there is a live one of that id, right or wrong; else
        nothing.
        """
        token_id = TokenText.parse(token).id
        with self._lock:
            return token_id if token_id in self._live else ""

    def _in_role(self, role: str, now_ns: int) -> list[_LiveToken]:
        with self._lock:
            live = list(self._live.values())
        return [t for t in live if t.holder.role == role and t.holder.is_live(now_ns)]

    def owner_tokens(self, now_ns: int) -> tuple[OwnerToken, ...]:
        """Tokens of programs that act for the owner, the newest first."""
        return tuple(
            OwnerToken(t.holder.token_id, t.holder.app, t.issued_ns, t.holder.expires_ns)
            for t in sorted(self._in_role("owner", now_ns), key=lambda t: -t.issued_ns)
        )

    def apps(self, now_ns: int) -> frozenset[str]:
        """Apps that hold a token."""
        return frozenset(t.holder.app for t in self._in_role("app", now_ns))
