"""The owner's cookies among those that a browser sends, and nothing of the others.

Browsers send the cookies of every server of a host, whatever its port. Those of others are none of
our business, and the usual reader of cookies takes time that grows with the square of a quoted
value. So everything but our own is thrown away before anybody looks.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import Scope

#: Most cookies of the owner that are read, against floods.
MOST = 8

_OURS = re.compile(rb"((?:__Host-)?gazeveil_owner_[0-9]{1,5})=([A-Za-z0-9_-]{43})", re.ASCII)


def cookie_name(port: int, secure: bool) -> str:
    """The name of a service's cookie; with the port, so that services on two ports do not overwrite
    one another's.

    Examples
    --------
    >>> cookie_name(8765, True), cookie_name(8765, False)
    ('__Host-gazeveil_owner_8765', 'gazeveil_owner_8765')
    """
    return f"{'__Host-' if secure else ''}gazeveil_owner_{port}"


def keep_ours(scope: Scope) -> None:
    """Throw all cookies of a request away that cannot be the owner's."""
    cookies = [value for name, value in scope["headers"] if name == b"cookie"]
    if not cookies:
        return
    pairs = (pair.strip() for value in cookies for pair in value.split(b";"))
    ours = [pair for pair in pairs if _OURS.fullmatch(pair)][:MOST]
    kept = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
    scope["headers"] = [*kept, (b"cookie", b"; ".join(ours))] if ours else kept


def owner_cookies(headers: Headers) -> list[str]:
    """Values of the owner's cookies in a request, after :func:`keep_ours`."""
    matches = (
        _OURS.fullmatch(pair.strip())
        for pair in headers.get("cookie", "").encode("latin-1", "replace").split(b";")
    )
    return [match[2].decode() for match in matches if match is not None][:MOST]
