"""The conformance kit of trackers: one opens, gives blocks at its rate, and closes; nothing old
counts as new after the process was stopped, the driver slept or the tracker's clock was set.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gazeveil.conformance import CheckResult, run_kit
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker, TrackerClock, arrival_ns
from gazeveil.gaze.geometry import Screen, Sphere

_SECONDS = 2.0

#: How a tracker's clock is set, in seconds: not at all, ahead and back, back and ahead.
_JUMPS_S = (0.0, 7200.0, -7200.0, -5.0, 5.0)

#: For how long the process and the driver stand still.
_STALLS_S = (1.5,)

#: How long it is looked what comes right after, and within how long gaze must count again.
_SHORTLY_S, _AGAIN_S = 0.1, 15.0

#: From which age on the service does not use gaze.
OLD_NS = 200_000_000


@dataclass
class Driver:
    """What sends gaze to a tracker, as far as the kit can steer it.

    Attributes
    ----------
    ahead_s : float
        How far its clock is ahead.
    asleep : bool
        Whether it sends nothing; what it measures meanwhile it may send later.
    """

    ahead_s: float = 0.0
    asleep: bool = False


def check_tracker(
    opener: Callable[[], Tracker],
    driver: Driver | None = None,
    stalls_s: tuple[float, ...] = _STALLS_S,
    stall: Callable[[float], None] = time.sleep,
) -> list[CheckResult]:
    """Run the kit on a tracker.

    Parameters
    ----------
    opener : callable
        Opens the tracker anew.
    driver : Driver, optional
        What sends to it. Without one the kit stands between the tracker and its reader.
    stalls_s : tuple of float
        For how long the process stands still, and then the driver.
    stall : callable
        Has the process stand still for some seconds; by default the event loop alone.
    """

    def gives_nothing_old_as_new(opener: Callable[[], Tracker]) -> Iterator[str]:
        tracker = opener()
        if getattr(tracker, "speed", 1.0) == 1.0:  # else its gaze has no age
            yield from asyncio.run(_Watched(tracker, driver).through(stalls_s, stall))

    return run_kit((*_KIT, gives_nothing_old_as_new), opener)


def _says_what_it_is(opener: Callable[[], Tracker]) -> Iterator[str]:
    tracker = opener()
    if not tracker.rate_hz > 0:
        yield "its rate_hz must be above 0"
    if not isinstance(tracker.space, Sphere | Screen):
        yield "its space must be a Sphere or a Screen"
    if not tracker.name:
        yield "it has no name"


def _gives_blocks_of_the_right_shape_at_its_pace(opener: Callable[[], Tracker]) -> Iterator[str]:
    tracker = opener()
    blocks, took_s = asyncio.run(_take(tracker))
    if not blocks:
        yield f"no block came in {_SECONDS:g} s"
        return
    for block in blocks:
        if not isinstance(block, Block):
            yield f"it gives {type(block).__name__} instead of Block or None"
            return
        if len({len(a) for a in (block.t_ns, block.x_deg, block.y_deg, block.valid)}) != 1:
            yield "the arrays of a block differ in length"
            return
        if block.t_ns.dtype != np.int64 or block.valid.dtype != np.bool_:
            yield "t_ns must be int64 and valid bool"
            return
    if (np.diff(np.concatenate([b.t_ns for b in blocks])) <= 0).any():
        yield "its times do not grow"
    count = sum(map(len, blocks))
    if not 0.3 * took_s <= count / tracker.rate_hz <= 1.5 * took_s + 0.5:
        yield f"{count} samples came in {took_s:.1f} s, at {tracker.rate_hz:g} Hz"
    if tracker.counts["samples"] < count:
        yield f"{count} samples came and counts['samples'] is {tracker.counts['samples']}"


def _closes(opener: Callable[[], Tracker]) -> Iterator[str]:
    async def close() -> None:
        tracker = opener()
        await asyncio.wait_for(tracker.close(), 5.0)
        await asyncio.wait_for(tracker.close(), 5.0)

    try:
        asyncio.run(close())
    except TimeoutError:
        yield "closing takes longer than 5 s"


_KIT: tuple[Callable[[Callable[[], Tracker]], Iterator[str]], ...] = (
    _says_what_it_is,
    _gives_blocks_of_the_right_shape_at_its_pace,
    _closes,
)


async def _take(tracker: Tracker) -> tuple[list[Block], float]:
    """The blocks that come within some seconds, and how long that was."""
    blocks: list[Block] = []
    started = time.monotonic()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS):
            async for block in tracker.samples():
                blocks += [] if block is None else [block]
    took_s = time.monotonic() - started
    await tracker.close()
    return blocks, took_s


class _Watched:
    """A tracker, and what of its gaze the service would use."""

    def __init__(self, tracker: Tracker, driver: Driver | None) -> None:
        self._tracker = tracker
        self._driver, self._between = driver or Driver(), driver is None
        #: When a sample was taken, and its time as the service has it, in ns.
        self._taken: list[tuple[int, int]] = []

    async def through(
        self, stalls_s: tuple[float, ...], stall: Callable[[float], None]
    ) -> list[str]:
        """What is wrong where clocks are set, and processes and drivers stand still."""
        events = [
            *(("its clock was set", seconds) for seconds in _JUMPS_S),
            *(("a stall", seconds) for seconds in stalls_s),
            *(("a sleep of the driver", seconds) for seconds in stalls_s),
        ]
        wrong: list[str] = []
        watching = asyncio.create_task(self._watch())
        for name, seconds in events:
            if name == "its clock was set":
                self._driver.ahead_s += seconds
            elif name == "a stall":
                stall(seconds)
            else:
                self._driver.asleep = True
                await asyncio.sleep(seconds)
                self._driver.asleep = False
            wrong += await self._after(f"after {name} ({seconds:g} s)")
            if wrong:
                break
        await self._tracker.close()
        if not watching.cancel():
            watching.result()
        now_ns, t_ns = np.array(self._taken or [(0, 0)]).T
        if (np.diff(t_ns) <= 0).any() or np.ptp(now_ns - t_ns) > 1e9:
            wrong.append("times of gaze that counts as new do not go on with the clock")
        return wrong

    async def _watch(self) -> None:
        clock = TrackerClock(OLD_NS)
        async for block in self._tracker.samples():
            while self._between and self._driver.asleep:
                await asyncio.sleep(0.01)
            if block is None:
                clock.forget()
            elif len(block):
                ahead_ns = round(self._driver.ahead_s * 1e9) if self._between else 0
                shifted = replace(block, t_ns=block.t_ns + ahead_ns)
                fresh = clock.fresh(clock.follow(shifted, arrival_ns()), arrival_ns())
                self._taken += [(arrival_ns(), t_ns) for t_ns in fresh.t_ns.tolist()]

    async def _after(self, what: str) -> list[str]:
        """What is wrong of the gaze that counts as new shortly after something happened."""
        began_s, before, rate_hz = time.monotonic(), len(self._taken), self._tracker.rate_hz
        await asyncio.sleep(_SHORTLY_S)
        came, took_s = len(self._taken) - before, time.monotonic() - began_s
        if came > (took_s + OLD_NS / 1e9 + 0.1) * rate_hz + 2:
            return [
                f"{what} {came} samples came as if they were new: t_ns must say when gaze was"
                " measured, not when it came"
            ]
        while len(self._taken) - before < rate_hz / 2:
            if time.monotonic() - began_s > _AGAIN_S:
                return [f"{what} no gaze counts as new for {_AGAIN_S:g} s"]
            await asyncio.sleep(0.02)
        return []
