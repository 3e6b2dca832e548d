"""A thread that takes samples from an inlet as they come, and hands them to the event loop.

`pull_chunk` with a timeout waits until its buffer is full or the time is over: half a tenth of a
second late on average. So the thread waits for one sample, takes what else is there without
waiting, and hands all of it on at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

#: How long the thread waits for a sample before it looks whether to end.
WAIT_S = 0.1

_MOST_AT_ONCE = 256

#: Chunks that wait for the event loop; then the oldest samples stay in liblsl's own buffer.
_MOST_WAITING = 64


class Puller:
    """Samples of one open inlet; the thread is the only one that pulls."""

    def __init__(self, inlet: Any) -> None:
        self._inlet = inlet
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[Any, Any] | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lsl", daemon=True)

    async def chunks(self) -> AsyncIterator[tuple[Any, Any]]:
        """Rows and times as they come; empty ones when none came for a tenth of a second. Ends when
        the stream is lost.
        """
        self._thread.start()
        try:
            while (chunk := await self._queue.get()) is not None:
                self._room.release()
                yield chunk
        finally:
            self._end.set()
            self._room.release()
            # it looks every tenth of a second, and the inlet must not be closed under it
            await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        try:
            while not self._end.is_set():
                row, time_s = self._inlet.pull_sample(WAIT_S)
                rows, times = [], []
                if time_s is not None:
                    more, later = self._inlet.pull_chunk(0.0, _MOST_AT_ONCE)
                    rows, times = [row, *more], [time_s, *later]
                self._room.acquire()
                self._give((rows, times))
        except RuntimeError:
            # pylsl's LostError, or the event loop is gone
            pass
        finally:
            self._give(None)

    def _give(self, chunk: tuple[Any, Any] | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)
