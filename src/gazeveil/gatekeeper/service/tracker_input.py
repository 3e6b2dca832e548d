"""The tracker's samples on their way to the core: in order, and without waiting on the event loop.

They are pushed on the loop where that needs no waiting, and else on one thread, behind what waits
there. Gaze that is old when its turn comes is not pushed: the eye counts as gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import Block, columns, one_sample, unpack
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.connections import Broadcaster
from gazeveil.gatekeeper.trackers import Tracker
from gazeveil.gatekeeper.trackers.tracker import TrackerClock, arrival_ns

#: Blocks of the tracker that may wait; then no more are read.
BLOCKS_AHEAD = 32

#: Blocks that are worked off before the event loop gets its turn.
IN_A_ROW = 8

#: Without a sample for so long the tracker is taken to be gone, in seconds.
SILENT_S = 1.0

#: Age of gaze above which the operator gets a message, in ns.
_LONG_LATE_NS = 1_000_000_000


class TrackerInput:
    """Takes blocks, lost gaze, gestures and changes of the wearer to the core, in their order; the
    broadcaster sends what the core gives to apps.
    """

    def __init__(
        self,
        keeper: Gatekeeper,
        broadcaster: Broadcaster,
        late_ns: int,
        on_pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._keeper, self._broadcaster = keeper, broadcaster
        #: None where all gaze counts, however old.
        self._clock = TrackerClock(late_ns) if late_ns else None
        self._gap = False
        self._on_pause = on_pause
        #: Why no gaze comes; empty while it does.
        self.paused = "tracker"
        #: Whether the tracker's clock was set since that was told.
        self.jumped = False
        #: When the last block came, on the monotonic clock.
        self.came_s = 0.0
        self.connected = False
        #: Whether a tracker holds the service's own channel.
        self.taken = False
        #: The tracker that the service runs itself, and why its stream was refused.
        self._tracker: Tracker | None = None
        self._refused = ""
        self._blocks: list[Block] = []
        self._pump: asyncio.Task[None] | None = None
        self._in_a_row = 0
        self._switching = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracker")

    @property
    def trouble(self) -> str:
        """What keeps gaze away or makes it wrong, and what to do; empty where nothing does."""
        if self._clock is not None and self.connected and self._clock.age_ns > _LONG_LATE_NS:
            return (
                f"Gaze comes {self._clock.age_ns / 1e9:.0f} s late, so none of it is used. Start"
                " the tracker's driver again."
            )
        return self._refused or ("" if self._tracker is None else self._tracker.trouble)

    async def push(self, block: Block) -> None:
        """Have a block worked off; waits only while much is waiting on the core's thread."""
        self.put(block)
        # A tracker that sends without pause must not keep the event loop to itself.
        self._in_a_row = (self._in_a_row + 1) % IN_A_ROW
        if len(self._blocks) >= BLOCKS_AHEAD:
            await self.settled()
        elif not self._in_a_row:
            await asyncio.sleep(0)

    def take(self, data: bytes) -> bool:
        """Push a binary message at once, where nothing has to be waited for; else nothing is done.

        One sample, as most messages have it, stays numbers on its way to the core.
        """
        if not self.idle:
            return False
        sample = one_sample(data)
        if sample is None or self.paused or self.jumped or self._gap:
            with suppress(DataError):
                if len(block := unpack(data).block):
                    self.put(block)
                    return True
            return False
        t_ns = self._clock.follow_one(sample.t_ns, arrival_ns()) if self._clock else sample.t_ns
        if t_ns is None:
            return False
        self.came_s = time.monotonic()
        return self._pushed(t_ns, sample.x_deg, sample.y_deg, sample.valid)

    @property
    def idle(self) -> bool:
        """Whether nothing waits that would have to be worked off before a new block."""
        return not (self._switching or self._blocks) and (self._pump is None or self._pump.done())

    def put(self, block: Block) -> None:
        """Have a block worked off: here, if that needs no waiting, or else on the core's thread.

        Two changes of threads cost more than most blocks. Those that come while one is worked off
        elsewhere go together as the next, so that a busy machine pays for the change once.
        """
        self.connected = True
        if self._clock is not None and len(block):
            jumps = self._clock.jumps
            block = self._clock.follow(block, arrival_ns())
            self.jumped = self._clock.jumps > jumps
        self.came_s = time.monotonic()
        if len(block) and (self.paused or self.jumped):
            self.paused = ""
            self._on_pause()
        if not (self.idle and self._push_now(block)):
            self._blocks.append(block)
            if self._pump is None or self._pump.done():
                self._pump = asyncio.create_task(self._work_off())

    def look(self) -> None:
        """Notice, once in a while, that no gaze comes."""
        if not self.paused and time.monotonic() - self.came_s > SILENT_S:
            self._pause()

    def _pause(self) -> None:
        if not self.paused:
            self.paused = "tracker"
            self._on_pause()

    async def settled(self) -> None:
        """Wait until all that was pushed has been worked off."""
        while self._pump is not None and not self._pump.done():
            await asyncio.wait({self._pump})

    async def _work_off(self) -> None:
        while self._blocks:
            several, self._blocks = self._blocks, []
            try:
                await self._on_thread(self.push_waiting, _joined(several))
            except Exception as error:
                self._lost_block(error)
            finally:
                self._broadcaster.flush()

    def _push_now(self, block: Block) -> bool:
        fresh = self._fresh(block)
        if len(fresh) < len(block) and not self._gap:
            return False  # the core is told on its own thread
        taken = not len(fresh) or self._pushed(*_columns(fresh))
        self._gap = self._gap and not (taken and len(fresh))
        return taken

    def _pushed(self, t_ns: Any, x_deg: Any, y_deg: Any, valid: Any) -> bool:
        """Whether the core took samples without waiting; what it gave to apps is sent."""
        self._broadcaster.hold()
        try:
            return self._keeper.push_now(t_ns, x_deg, y_deg, valid)
        except Exception as error:
            self._lost_block(error)
            return True
        finally:
            self._broadcaster.flush()

    def push_waiting(self, block: Block) -> None:
        """Push a block, and wait for what it needs; never on the event loop."""
        fresh = self._fresh(block)
        if len(fresh) < len(block) and not self._gap:
            self._keeper.gap()
            self._gap = True
        if len(fresh):
            self._keeper.push(*_columns(fresh))
            self._gap = False

    def _fresh(self, block: Block) -> Block:
        """The part of a block that is not old."""
        if self._clock is None or not len(block):
            return block
        return self._clock.fresh(block, arrival_ns())

    def _lost_block(self, error: Exception) -> None:
        """A block that cannot be worked off is a lost one; the device goes on."""
        LOG.error("a block of the tracker was lost by a mistake of ours", exc_info=error)

    async def _on_thread(self, work: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def lost(self) -> None:
        """The tracker vanished."""
        await self.settled()
        self.connected = False
        self._pause()
        if self._clock is not None:
            self._clock.forget()
        await self._on_thread(self._keeper.lost)

    async def confirm(self) -> None:
        """The tracker says that the wearer made the gesture for a choice; it is judged after the
        samples that came before it.
        """
        await self.settled()
        await self._on_thread(self._keeper.confirm)

    async def switch(self, work: Callable[[], None], stale: bool) -> None:
        """Have the wearer switched by `work` between the last one's samples and the next one's.
        With `stale`, samples that wait are the last wearer's and came late: they are thrown away,
        else worked off first.
        """
        # What comes from now on is the next wearer's: it queues behind the switch, however long
        # that waits for a lock.
        self._switching += 1
        try:
            if stale:
                self._blocks.clear()
            else:
                await self.settled()
            # A block that is being worked off is finished under the wearer whose gaze it is.
            await self._on_thread(work)
        finally:
            self._switching -= 1

    async def run(self, tracker: Tracker, stopping: Callable[[], bool]) -> None:
        """Push what a tracker sends until it ends or the service stops."""
        gestures: set[asyncio.Task[None]] = set()

        def confirm() -> None:
            gestures.add(task := asyncio.create_task(self.confirm()))
            task.add_done_callback(gestures.discard)

        tracker.on_confirm = confirm
        self._tracker = tracker
        try:
            async for block in tracker.samples():
                if block is None:
                    await self.lost()
                    continue
                await self.push(block)
            LOG.info("the tracker has ended", extra={"tracker": tracker.name})
        except DataError as error:
            # The service goes on without gaze: who runs it must hear why.
            self._refused = str(error)
            LOG.error("the tracker was refused, and no gaze comes: %s", self._refused)
        finally:
            if not stopping():
                await self.lost()

    async def close(self) -> None:
        """Work off what waits, and end the thread."""
        await self.settled()
        await asyncio.to_thread(self._thread.shutdown, True)


def _columns(block: Block) -> tuple[Any, Any, Any, Any]:
    return columns(block.t_ns, block.x_deg, block.y_deg, block.valid)


def _joined(several: list[Block]) -> Block:
    """Blocks that follow one another as one."""
    if len(several) == 1:
        return several[0]
    parts = ((b.t_ns, b.x_deg, b.y_deg, b.valid) for b in several)
    t_ns, x_deg, y_deg, valid = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Block(t_ns, x_deg, y_deg, valid)
