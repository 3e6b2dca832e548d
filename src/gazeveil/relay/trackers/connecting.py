"""Trackers that are reached at an address, and connected to again with back-off."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from urllib.parse import urlsplit

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.relay.picture import ImagePlane

#: Hosts that only programs of the same machine reach.
LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})

#: Pauses between attempts to connect: each twice as long as the last, up to a limit.
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 5.0


class ReconnectingTracker(Tracker):
    """A source that is connected to, and connected to again with back-off when it is gone.

    Subclasses have :meth:`connection`, and a `picture` where their places are parts of one.
    """

    picture: ImagePlane | None = None

    def __init__(self) -> None:
        super().__init__()
        self._closing = False

    async def close(self) -> None:
        """End the iterator at the next sample or silence."""
        self._closing = True

    @abstractmethod
    def connection(self) -> AsyncGenerator[Block | None, None]:
        """Yield the samples of one connection until it ends; none if there is no answer."""

    async def samples(self) -> AsyncIterator[Block | None]:
        """Samples of one connection after another; None when the tracker vanished."""
        pause_s = _FIRST_PAUSE_S
        while not self._closing:
            live = False
            async with aclosing(self.connection()) as blocks:
                async for block in blocks:
                    if block is not None and not live:
                        live, pause_s = True, _FIRST_PAUSE_S
                        self.counts["connected"] += 1
                    yield block
            if self._closing:
                break
            if live:
                self.vanished()
                yield None
            await asyncio.sleep(pause_s)
            pause_s = min(_MOST_PAUSE_S, pause_s * 2)


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


def in_brackets(host: str) -> str:
    """A host as an address has it."""
    return f"[{host}]" if ":" in host else host
