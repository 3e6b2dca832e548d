"""The files of the owner's page, the demo and the client, kept in memory.

A browser that opens a page shows its cookie at most, and every server on another port of the host
sees that too. So no quota could tell the owner's browser from a flood, and these files have none
(:mod:`gazeveil.gatekeeper.service.http.rate_limiter`). They hold no secret, and are answered
without a disk, a thread or a database: that costs about what a refusal would.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

WEB = Path(__file__).parents[2] / "web"

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


class Pages(StaticFiles):
    """The files, from memory; what is none of them is answered as the usual class does."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        page = page_of(scope)
        if page is None:
            return await super().get_response(path, scope)
        answer = Response(page.body, headers=page.headers)
        return (
            NotModifiedResponse(answer.headers)
            if self.is_not_modified(answer.headers, Headers(scope=scope))
            else answer
        )
