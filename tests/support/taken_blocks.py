"""Blocks taken from a tracker, with a limit of time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import numpy as np

from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers import Tracker

LIMIT_S = 100.0


async def take(tracker: Tracker, samples: int) -> tuple[Block, int]:
    """At least so many samples in one block, and how often the tracker vanished before they were
    there.
    """
    parts: list[Block] = []
    lost = 0
    async for part in tracker.samples():
        if part is None:
            lost += 1
        else:
            parts.append(part)
        if sum(map(len, parts)) >= samples:
            break
    return joined(parts), lost


def joined(parts: list[Block]) -> Block:
    columns: list[Any] = [
        np.concatenate([getattr(p, n) for p in parts]) if parts else np.empty(0)
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    ]
    t_ns, x_deg, y_deg, valid = columns
    return Block(t_ns, x_deg, y_deg, valid)


def run(work: Awaitable[object]) -> object:
    async def limited() -> object:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(limited())
