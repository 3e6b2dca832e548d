"""Bounded queue between a port and the consumer of its samples: a fast tracker waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from gazeveil.gatekeeper.blocks import Block

#: Most messages in the queue; beyond it the sender waits.
_MOST = 256


class Waiting:
    """A queue of blocks and losses with an end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Block | str | None] = asyncio.Queue(_MOST)
        self._over = False

    async def put(self, what: Block | None) -> None:
        """Let something wait, once there is room; after the end it is dropped."""
        if not self._over:
            await self._queue.put(what)

    async def finish(self) -> None:
        """No more will come: what waits is still taken, then the iterator ends."""
        if not self._over:
            await self._queue.put("end")

    def end(self) -> None:
        """Stop consuming: release waiting senders and end the iterator."""
        self._over = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait("end")

    async def take(self) -> AsyncIterator[Block | None]:
        """What was put, in order, until the end."""
        try:
            while not isinstance(item := await self._queue.get(), str):
                yield item
        finally:
            self.end()
