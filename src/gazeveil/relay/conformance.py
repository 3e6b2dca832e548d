"""The conformance kit of trackers: one opens, gives blocks at its rate, and closes."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from gazeveil.conformance import CheckResult, run_kit
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker, TrackerClock, arrival_ns
from gazeveil.gaze.geometry import Screen, Sphere

_SECONDS = 2.0

#: How long the process stands still, and how long it is looked what comes then.
_STALL_S, _SHORTLY_S = 1.5, 0.1

#: From which age on the service does not use gaze.
OLD_NS = 200_000_000


def check_tracker(opener: Callable[[], Tracker]) -> list[CheckResult]:
    """Run the kit on a tracker, which `opener() -> Tracker` opens anew."""
    return run_kit(_KIT, opener)


def _says_what_it_is(opener: Callable[[], Tracker]) -> Iterator[str]:
    tracker = opener()
    if not tracker.rate_hz > 0:
        yield "its rate_hz must be above 0"
    if not isinstance(tracker.space, Sphere | Screen):
        yield "its space must be a Sphere or a Screen"
    if not tracker.name:
        yield "it has no name"


def _gives_blocks_of_the_right_shape(opener: Callable[[], Tracker]) -> Iterator[str]:
    blocks, _ = asyncio.run(_take(opener()))
    samples = [b for b in blocks if b is not None]
    if not samples:
        yield f"no block came in {_SECONDS:g} s"
    for block in samples:
        if not isinstance(block, Block):
            yield f"it gives {type(block).__name__} instead of Block or None"
            return
        sizes = {len(a) for a in (block.t_ns, block.x_deg, block.y_deg, block.valid)}
        if len(sizes) != 1:
            yield "the arrays of a block differ in length"
            return
        if block.t_ns.dtype != np.int64 or block.valid.dtype != np.bool_:
            yield "t_ns must be int64 and valid bool"
            return
    t_ns = np.concatenate([b.t_ns for b in samples]) if samples else np.empty(0, np.int64)
    if (np.diff(t_ns) <= 0).any():
        yield "its times do not grow"


def _keeps_its_pace(opener: Callable[[], Tracker]) -> Iterator[str]:
    tracker = opener()
    blocks, took_s = asyncio.run(_take(tracker))
    count = sum(len(b) for b in blocks if b is not None)
    if count > 1.5 * tracker.rate_hz * took_s + tracker.rate_hz / 2:
        yield f"{count} samples came in {took_s:.1f} s, at {tracker.rate_hz:g} Hz"
    if count < 0.3 * tracker.rate_hz * took_s:
        yield f"only {count} samples came in {took_s:.1f} s, at {tracker.rate_hz:g} Hz"


def _counts_its_samples(opener: Callable[[], Tracker]) -> Iterator[str]:
    tracker = opener()
    blocks, _ = asyncio.run(_take(tracker))
    count = sum(len(b) for b in blocks if b is not None)
    if tracker.counts["samples"] < count:
        yield f"{count} samples came and counts['samples'] is {tracker.counts['samples']}"


def _gives_nothing_old_as_new(opener: Callable[[], Tracker]) -> Iterator[str]:
    """After a stall what had waited comes at once, with the times when it was measured."""
    tracker = opener()
    if getattr(tracker, "speed", 1.0) != 1.0:
        return  # quicker than time: its gaze has no age
    fresh = asyncio.run(asyncio.wait_for(_after_a_stall(tracker), 2 * (_SECONDS + _STALL_S)))
    most = (OLD_NS / 1e9 + _SHORTLY_S + 0.1) * tracker.rate_hz + 2
    if fresh > most:
        yield (
            f"after a stall of {_STALL_S:g} s {fresh} samples came as if they were new: t_ns must"
            " say when gaze was measured, not when it came"
        )


def _closes(opener: Callable[[], Tracker]) -> Iterator[str]:
    async def close() -> bool:
        tracker = opener()
        await asyncio.wait_for(tracker.close(), 5.0)
        await asyncio.wait_for(tracker.close(), 5.0)
        return True

    try:
        asyncio.run(close())
    except TimeoutError:
        yield "closing takes longer than 5 s"


_KIT: tuple[Callable[[Callable[[], Tracker]], Iterator[str]], ...] = (
    _says_what_it_is,
    _gives_blocks_of_the_right_shape,
    _keeps_its_pace,
    _counts_its_samples,
    _gives_nothing_old_as_new,
    _closes,
)


async def _take(tracker: Tracker) -> tuple[list[Block | None], float]:
    """What comes within some seconds, and how long that was."""
    blocks: list[Block | None] = []
    started = time.monotonic()

    async def collect() -> None:
        async for block in tracker.samples():
            blocks.append(block)  # noqa: PERF401 - what came before the time was up is kept

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(collect(), _SECONDS)
    took_s = time.monotonic() - started
    await tracker.close()
    return blocks, took_s


async def _after_a_stall(tracker: Tracker) -> int:
    """How many samples count as new shortly after the process stood still, as under SIGSTOP."""
    clock, fresh, stalled_s = TrackerClock(OLD_NS), 0, math.inf
    started_s = time.monotonic()
    async for block in tracker.samples():
        now_s = time.monotonic()
        if now_s > stalled_s + _SHORTLY_S or now_s > started_s + _SECONDS + _STALL_S:
            break
        if block is None or not len(block):
            continue
        new = len(clock.fresh(clock.follow(block, arrival_ns()), arrival_ns()))
        fresh += new if now_s > stalled_s else 0
        if stalled_s == math.inf and now_s > started_s + _SECONDS / 2:
            time.sleep(_STALL_S)
            stalled_s = time.monotonic()
    await tracker.close()
    return fresh
