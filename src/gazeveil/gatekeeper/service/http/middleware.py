"""What every request passes first: checks of its host name, rate, size and depth; and headers that
every answer gets.

A plain ASGI layer. Bodies are read whole here, at most `body_bytes` in at most `body_s` seconds, so
that nothing behind it waits on a slow sender. A page of another origin may read answers only where
its origin is one of an app's; whether the app itself may be used from there is decided where its
token is known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gazeveil.gatekeeper.page_security import HEADERS, LOCAL_NAMES, host_name
from gazeveil.gatekeeper.service.http.cookies import keep_ours
from gazeveil.gatekeeper.service.http.limits import depth
from gazeveil.gatekeeper.service.settings import Settings

#: Calls whose answers pages of every origin may read: to ask, and to hear the answer, which may be
#: that the page is not known any more.
OF_ANY_PAGE = ("/v1/ask", "/v1/me")


def problem(
    status: int, code: str, reason: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The one shape of every error."""
    return JSONResponse({"error": {"code": code, "reason": reason}}, status, headers)


def address(scope: Scope) -> str:
    """Where a request comes from; only the peer itself is believed, never a header."""
    client = scope.get("client")
    if client:
        return str(client[0])
    local = getattr(scope.get("state", {}).get("peer"), "local", None)
    return "local" if local is None else f"uid {local.uid}"


def same_origin(headers: Headers, scheme: str, public: Collection[str] = ()) -> bool:
    """Whether a request has no origin or its own. A proxy shows the service under the origins of
    `public`, from the settings: what a proxy says in headers is not believed.
    """
    origin = headers.get("origin")
    own = f"{'https' if scheme in ('https', 'wss') else 'http'}://{headers.get('host', '')}"
    return origin is None or origin == own or origin in public


class RequestMiddleware:
    """The outermost layer. `origins` gives those of all apps, for browsers; `seen` is told method,
    path, status and seconds of each request; `admit` says whether a request may still come, by its
    quota.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        origins: Callable[[], Collection[str]],
        seen: Callable[[Scope, int, float], None],
        admit: Callable[[Scope, Headers], bool],
    ) -> None:
        self.app, self.settings, self.origins = app, settings, origins
        self.seen, self.admit = seen, admit
        public = (urlsplit(origin).netloc for origin in settings.public_origin)
        self.hosts = {
            *LOCAL_NAMES,
            settings.host.lower(),
            *(h.lower() for h in settings.hosts),
            *(host_name(netloc) for netloc in public),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        keep_ours(scope)
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
        started, status = time.perf_counter(), 500
        own = same_origin(headers, scope["scheme"], self.settings.public_origin)
        cross = None if own else headers.get("origin")

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message), scope["path"], cross)
            await send(message)

        try:
            if refusal is None and scope["method"] == "OPTIONS" and cross is not None:
                refusal = self._preflight(scope, cross)
            if refusal is None:
                refusal, receive = await self._body(scope, headers, receive)
            await (refusal or self.app)(scope, receive, send_with_headers)
        finally:
            self.seen(scope, status, time.perf_counter() - started)

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
        self, scope: Scope, headers: Headers, receive: Receive
    ) -> tuple[Response | None, Receive]:
        """Why a body is refused, and what gives the body once more to who is behind."""
        try:
            async with asyncio.timeout(self.settings.limits.body_s):
                body = await self._read(headers, receive)
        except TimeoutError:
            reason = "The body did not come in time. Send it again."
            return problem(408, "slow", reason, {"connection": "close"}), receive
        if not isinstance(body, bytes):
            return body, receive
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
        most = self.settings.limits.body_bytes
        reason = f"A body may have {most} bytes. Send less at once."
        too_large = problem(413, "size", reason, {"connection": "close"})
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            return too_large
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return problem(400, "gone", "The request ended before its body did. Send it again.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                return too_large
            more = message.get("more_body", False)
        return b"".join(parts)
