"""What every request passes first: checks of its host name, rate, size and depth; and headers that
every answer gets.

A plain ASGI layer. Bodies are read whole here, at most :data:`BODY_BYTES` in at most :data:`BODY_S`
seconds, so that nothing behind it waits on a slow sender. A page of another origin may read answers
only where its origin is one of an app's; whether the app itself may be used from there is decided
where its token is known.

How often and how deep: the limits that keep one caller from starving the others.

A bucket holds what a minute gives and fills at a steady rate; each request takes one drop. Buckets
are kept for the most recent keys only, so that inventing addresses cannot fill the memory.

Which requests are counted together is decided before anything else is done with them. Each valid
token and each session of the owner has a quota of its own, so that no flood of others' requests
delays the owner's switch or shuts out an app, even one that comes for the first time. Everybody
else shares a quota by address: one for calls, one for the rest. What a request claims to be is
checked in memory, which costs microseconds. A WebSocket shows its token in its first message, so it
is counted then.

The files of the owner's page, the demo and the client have no quota, because nothing tells the
owner's browser from a flood when it opens a page. They hold no secret, and are answered without a
disk, a thread or a database: that costs about what a refusal would.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.service.credentials import NOBODY, Sessions, SignedCall, Tokens
from gazeveil.gatekeeper.service.peers import Peers, peer_of_scope
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.pages import HEADERS, LOCAL_NAMES, host_name

WEB = Path(__file__).parents[1] / "web"

#: Has a browser forget what another program left under this origin while it had the port: scripts
#: for its cache, and service workers, whose scripts browsers ask for again.
FORGET = {"clear-site-data": '"cache", "storage"'}

#: Types that browsers insist on, whatever the machine's own list of types says.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Page:
    """One file as it is sent."""

    body: bytes
    headers: Mapping[str, str]


@cache
def _pages() -> dict[str, Page]:
    pages: dict[str, Page] = {}
    for path in WEB.rglob("*"):
        if path.is_file():
            body = path.read_bytes()
            kind = (
                _TYPES.get(path.suffix)
                or mimetypes.guess_type(path.name)[0]
                or "application/octet-stream"
            )
            page = Page(body, {"content-type": kind, "etag": f'"{sha256(body).hexdigest()[:32]}"'})
            pages["/" + path.relative_to(WEB).as_posix()] = page
            if path.name == "index.html":
                folder = f"/{path.parent.relative_to(WEB).as_posix()}/".replace("/./", "/")
                pages[folder] = page
    return pages


def page_of(scope: Scope) -> Page | None:
    """The file that a request reads, None where it is for anything else.

    Examples
    --------
    >>> page_of({"type": "http", "method": "GET", "path": "/"}) is None
    False
    >>> page_of({"type": "http", "method": "GET", "path": "/v1/me"}) is None
    True
    """
    return (
        _pages().get(scope["path"])
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        else None
    )


async def answer_page(request: Request) -> Response:
    """A file, from memory alone; a path that is none of them never reaches the disk."""
    page = page_of(request.scope)
    if page is None:
        raise HTTPException(404)
    if page.headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": page.headers["etag"]})
    return Response(page.body, headers=page.headers)


#: Largest HTTP body, and the seconds in which it must have come.
BODY_BYTES, BODY_S = 65_536, 10.0

#: Keys that a set of buckets remembers.
KEYS = 10_000

#: The header with the signature of a call of the owner's page.
SESSION_HEADER = "X-Gazeveil-Session"

#: A string, or a bracket outside of strings. After a quote the pattern cannot fail (a string that
#: never ends goes to the end of the text, an escape hides whatever follows it) and its repeats give
#: nothing back, so every byte is read once: a pattern that may fail there reads the rest again from
#: each quote.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.?+[^"\\]*+)*+"?+|[\[\]{}]', re.DOTALL)


class Buckets:
    """Token buckets by key; safe to use from several threads. The clock gives seconds that never go
    back.

    Examples
    --------
    >>> now = [0.0]
    >>> buckets = Buckets(2, clock=lambda: now[0])
    >>> [buckets.take("a") for _ in range(3)], buckets.take("b")
    ([True, True, False], True)
    >>> now[0] = 30.0
    >>> buckets.take("a")
    True
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = max(1.0, per_minute), clock
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> bool:
        """Take a drop; False where there is none."""
        with self._lock:
            now = self._clock()
            level, seen = self._level.get(key, (self._per_minute, now))
            level = min(self._per_minute, level + (now - seen) * self._per_minute / 60.0)
            there = level >= 1.0
            self._level[key] = (level - there, now)
            self._level.move_to_end(key)
            if len(self._level) > KEYS:
                self._level.popitem(last=False)
            return there

    def __len__(self) -> int:
        return len(self._level)


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
        local_app: Callable[[int], str | None],
    ) -> None:
        self._local_app = local_app
        self._tokens, self._sessions, self._peers = tokens, sessions, peers
        self._buckets = Buckets(settings.requests_per_minute)

    def admit(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request may still come."""
        if page_of(scope) is not None:
            return True
        credential, signed = bearer(headers), headers.get(SESSION_HEADER, "")
        if not credential and scope["path"] == "/owner":
            query = scope.get("query_string", b"")[:512].decode("latin-1")
            credential = parse_qs(query).get("key", [""])[0]
        kind = "calls" if scope["path"].startswith("/v1") else "pages"
        unknown = (
            None if scope["type"] == "websocket" else f"{kind} from {peer_of_scope(scope).address}"
        )
        return self._take(scope, credential, unknown, signed)

    def hello(self, scope: Scope, credential: str, signed: str = "") -> bool:
        """Count a WebSocket by the token or the signature in its first message; False where there
        were too many.
        """
        return self._take(scope, credential, f"calls from {peer_of_scope(scope).address}", signed)

    def _take(self, scope: Scope, credential: str, unknown: str | None, signed: str) -> bool:
        if signed:
            quota = self._signed(scope, signed)
        else:
            quota = self._quota(credential) if credential else self._local(scope)
        if quota is not None:
            self._peers.known(scope, quota)
        quota = quota or unknown
        return quota is None or self._buckets.take(quota)

    def _signed(self, scope: Scope, signed: str) -> str | None:
        """The quota of a signed call. It is used up here, and lies in its scope: the call, or why
        it is none.
        """
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        method, now_ns = scope.get("method", "GET"), self._tokens.now_ns()
        try:
            call = self._sessions.read(signed, method, target.decode("latin-1"), now_ns)
        except Refused as refused:
            scope["owner_call"] = refused
            return None
        scope["owner_call"] = call
        return f"session {call.session.id}"

    def _local(self, scope: Scope) -> str | None:
        peer = peer_of_scope(scope).local
        app = None if peer is None else self._local_app(peer)
        return None if app is None else f"app {app}"

    def _quota(self, credential: str) -> str | None:
        holder = self._tokens.holder(credential)
        if holder is None:
            return None
        # An app has one quota whatever its tokens are.
        return f"app {holder.app}" if holder.role == "app" else f"{holder.role} {holder.id}"


def bearer(headers: Headers) -> str:
    """The token in a request's Authorization header, or nothing."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def depth(text: bytes) -> int:
    """How deep a JSON text nests, without parsing it.

    Examples
    --------
    >>> depth(b'{"a": [1, {"b": "]]]]"}]}'), depth(b"[" * 100_000)
    (3, 100000)
    """
    level = deepest = 0
    for match in _MARKS.finditer(text):
        mark = match.group()
        if mark in (b"[", b"{"):
            level += 1
            deepest = max(deepest, level)
        elif mark in (b"]", b"}"):
            level = max(0, level - 1)
    return deepest


#: Calls whose answers pages of every origin may read: to ask, and to hear the answer, which may be
#: that the page is not known any more.
OF_ANY_PAGE = ("/v1/ask", "/v1/me")


def problem(
    status: int, code: str, reason: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The one shape of every error."""
    return JSONResponse({"error": {"code": code, "reason": reason}}, status, headers)


def same_origin(headers: Headers, scheme: str, public: Collection[str] = ()) -> bool:
    """Whether a request has no origin or its own. A proxy shows the service under the origins of
    `public`, from the settings: what a proxy says in headers is not believed.
    """
    origin = headers.get("origin")
    own = f"{'https' if scheme in ('https', 'wss') else 'http'}://{headers.get('host', '')}"
    return origin is None or origin == own or origin in public


class RequestMiddleware:
    """The outermost layer. `origins` gives those of all apps, for browsers; `admit` says whether a
    request may still come, by its quota; `page_host` is the name that the owner's link has.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        origins: Callable[[], Collection[str]],
        admit: Callable[[Scope, Headers], bool],
        page_host: str,
    ) -> None:
        self.app, self.settings, self.origins, self.admit = app, settings, origins, admit
        public = (urlsplit(origin).netloc for origin in settings.public_origin)
        self.hosts = {
            *LOCAL_NAMES,
            page_host,
            settings.host.lower(),
            *(h.lower() for h in settings.hosts),
            *(host_name(netloc) for netloc in public),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        # Those of other servers of the host are none of our business, and the usual reader of
        # cookies takes time that grows with the square of a quoted value.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        peer = peer_of_scope(scope)
        peer.unread, peer.idle_since_s = 0, None
        try:
            await self._answer(scope, receive, send)
        finally:
            peer.idle_since_s = time.monotonic()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal is not None:
                # Closing before accepting answers the handshake with 403.
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        cross = (
            None
            if same_origin(headers, scope["scheme"], self.settings.public_origin)
            else headers.get("origin")
        )

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(MutableHeaders(scope=message), scope["path"], cross)
            await send(message)

        if refusal is None and scope["method"] == "OPTIONS" and cross is not None:
            refusal = self._preflight(scope, cross)
        if refusal is None:
            refusal, receive = await self._body(scope.get("owner_call"), headers, receive)
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _add_headers(self, out: MutableHeaders, path: str, cross: str | None) -> None:
        """Complete the headers of an answer, for a page of another origin where there is one."""
        for name, value in HEADERS.items():
            out.setdefault(name, value)
        if path.startswith("/v1") or path == "/owner":
            out.setdefault("cache-control", "no-store")
        if path.startswith("/v1"):
            out.add_vary_header("Origin")
            if cross is not None and (path in OF_ANY_PAGE or cross in self.origins()):
                out["access-control-allow-origin"] = cross
        elif path in ("/client.js", "/openapi.json") or path.startswith("/lib/"):
            # Public code and text: any page may import the client, and what it imports.
            out["access-control-allow-origin"] = "*"

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if host_name(headers.get("host", "")) not in self.hosts:
            return problem(
                403,
                "host",
                "This service does not answer to that host name. Use the address it was started"
                " with, or add the name to GAZEVEIL_HOSTS.",
            )
        if not self.admit(scope, headers):
            reason = "There are too many requests. Wait a minute."
            return problem(429, "rate", reason, {"retry-after": "60"})
        if "service-worker" in headers:
            return problem(404, "unknown", "Our pages have no service worker.", FORGET)
        return None

    def _preflight(self, scope: Scope, origin: str) -> Response:
        known = scope["path"] in OF_ANY_PAGE or origin in self.origins()
        if not scope["path"].startswith("/v1") or not known:
            return problem(
                403,
                "origin",
                "Pages of this origin may not use the service. The owner can add the origin to the"
                " app.",
            )
        return Response(
            status_code=204,
            headers={
                "access-control-allow-methods": "GET, POST, DELETE",
                "access-control-allow-headers": "authorization, content-type",
                "access-control-max-age": "600",
                # A page of the public web asks for leave to reach an address of this machine or
                # house.
                "access-control-allow-private-network": "true",
            },
        )

    async def _body(
        self, call: object, headers: Headers, receive: Receive
    ) -> tuple[Response | None, Receive]:
        """Why a body is refused, and what gives the body once more to who is behind."""
        try:
            async with asyncio.timeout(BODY_S):
                body = await self._read(headers, receive)
        except TimeoutError:
            reason = "The body did not come in time. Send it again."
            return problem(408, "slow", reason, {"connection": "close"}), receive
        if not isinstance(body, bytes):
            return body, receive
        if isinstance(call, SignedCall) and sha256(body).hexdigest() != call.body:
            return problem(*NOBODY), receive
        most = self.settings.limits.json_depth
        if depth(body) > most:
            return problem(400, "depth", f"A body may nest {most} deep. Send it flat."), receive
        delivered = False

        async def again() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        return None, again

    async def _read(self, headers: Headers, receive: Receive) -> bytes | Response:
        """The body, or why it is refused."""
        reason = f"A body may have {BODY_BYTES} bytes. Send less at once."
        too_large = problem(413, "size", reason, {"connection": "close"})
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > BODY_BYTES:
            return too_large
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return problem(400, "gone", "The request ended before its body did. Send it again.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > BODY_BYTES:
                return too_large
            more = message.get("more_body", False)
        return b"".join(parts)
