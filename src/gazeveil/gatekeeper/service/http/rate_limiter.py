"""Which requests are counted together, decided before anything else is done with them.

Each valid token and each session of the owner has a quota of its own, so that no flood of others'
requests delays the owner's switch or shuts out an app, even one that comes for the first time.
Everybody else shares a quota by address: one for calls, one for the rest. What a request claims to
be is checked against hashes in memory, which costs microseconds and no database.

The files of pages have no quota (:mod:`gazeveil.gatekeeper.service.http.pages`). The owner's cookie
opens none either: servers on other ports of the host see it, so a quota by cookie would be one that
they can use up.

A WebSocket shows its token in its first message, so it is counted then; until then it is one of the
strangers whose connections are few (:mod:`gazeveil.gatekeeper.service.sockets.peers`).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from gazeveil.gatekeeper.policy.identity import LocalPeer
from gazeveil.gatekeeper.service.credentials.sessions import Sessions
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from gazeveil.gatekeeper.service.http.limits import Buckets
from gazeveil.gatekeeper.service.http.middleware import address
from gazeveil.gatekeeper.service.http.pages import page_of
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.local_socket import local_of
from gazeveil.gatekeeper.service.sockets.peers import Peers

#: The header with the page's half of a session.
SESSION_HEADER = "X-Gazeveil-Session"


def bearer(headers: Headers) -> str:
    """The token in a request's Authorization header, or nothing."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


class RateLimiter:
    """Counts requests by quota. `local_app` gives the app that a program of this machine is, which
    needs no token.
    """

    def __init__(
        self,
        settings: Settings,
        tokens: Tokens,
        sessions: Sessions,
        peers: Peers,
        local_app: Callable[[LocalPeer], str | None],
    ) -> None:
        self._local_app = local_app
        self._tokens, self._sessions, self._peers = tokens, sessions, peers
        self._buckets = Buckets(settings.requests_per_minute)

    def admit(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request may still come."""
        if page_of(scope) is not None:
            return True
        quota = self._known(scope, headers)
        if quota is not None:
            self._peers.known(scope, quota)
            return self._buckets.take(quota)
        if scope["type"] == "websocket":
            return True
        kind = "calls" if scope["path"].startswith("/v1") else "pages"
        return self._buckets.take(f"{kind} from {address(scope)}")

    def hello(self, scope: Scope, credential: str) -> bool:
        """Count a WebSocket by the token or session in its first message; False where there were
        too many.
        """
        quota = self._quota(credential) if credential else self._local(scope)
        if quota is not None:
            self._peers.known(scope, quota)
        return self._buckets.take(quota or f"calls from {address(scope)}")

    def _known(self, scope: Scope, headers: Headers) -> str | None:
        credential = headers.get(SESSION_HEADER) or bearer(headers)
        if not credential and scope["path"] == "/owner":
            query = scope.get("query_string", b"")[:512].decode("latin-1")
            credential = parse_qs(query).get("key", [""])[0]
        return self._quota(credential) if credential else self._local(scope)

    def _local(self, scope: Scope) -> str | None:
        peer = local_of(scope)
        app = None if peer is None else self._local_app(peer)
        return None if app is None else f"app {app}"

    def _quota(self, credential: str) -> str | None:
        if not credential:
            return None
        now_ns = self._tokens.now_ns()
        session = self._sessions.check(credential, None, now_ns)
        if session is not None:
            return f"session {session.id}"
        holder = self._tokens.live.holder(credential, now_ns)
        if holder is None:
            return None
        # An app has one quota whatever its tokens are.
        return f"app {holder.app}" if holder.role == "app" else f"{holder.role} {holder.token_id}"
