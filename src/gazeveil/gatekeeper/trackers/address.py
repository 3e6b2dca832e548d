"""Addresses and screens as people write them for a tracker."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Screen

#: Hosts that only programs of the same machine reach.
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


def host_and_port(owner: str, place: str, default_port: int) -> tuple[str, int]:
    """Host and port of `host:port`, `host`, `[::1]:port`.

    Examples
    --------
    >>> host_and_port("pupil", "127.0.0.1", 50020), host_and_port("pupil", "[::1]:7", 50020)
    (('127.0.0.1', 50020), ('::1', 7))
    """
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if (
        not host
        or not re.fullmatch(r"[A-Za-z0-9._:-]+", host)
        or parts.path.strip("/")
        or parts.username is not None
    ):
        raise ParameterError(
            f"The address of {owner} is written {owner}://host:port. Got '{place}' instead.",
            name="place",
            got=place,
        )
    return host, default_port if port is None else port


def is_local(host: str) -> bool:
    """Whether only this machine reaches a host."""
    return host in _LOCAL


def in_brackets(host: str) -> str:
    """A host as an address has it."""
    return f"[{host}]" if ":" in host else host


def screen_of(owner: str, value: object) -> Screen | None:
    """A screen: itself, five numbers (width and height in px, in mm, distance in mm), or None."""
    if value is None or isinstance(value, Screen):
        return value
    if not isinstance(value, list | tuple) or len(value) != 5:
        checks.refuse(
            owner,
            "screen",
            "a Screen, or five numbers: width and height in px, the same in mm, distance in mm",
            value,
        )
    return Screen(*value)
