"""The game for `clock-render`: two streams that lie r apart during one window, and all noisy readings of it.

The window is placed so that as many samples are read in it as can be. What the public eye draws from the readings cannot tell more than the readings,
so these are judged: the logarithm of their likelihood ratio, and their mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.audit.games import Game, asked_unit, game
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.noise.rng import source
from gazeveil.privacy.synthesis.clock_render import ClockRender
from gazeveil.privacy.synthesis.clock_stage import NoisySlots

RATE_HZ = 100.0

# So large that nothing is clamped: what is clamped tells less.
_SCREEN = Screen(1000, 1000, 1e6, 1e6, 1000.0)
_ROWS = 5000  # streams at a time


@game("clock-render")
def clock_render(mechanism: Mechanism[Any], unit: str | None) -> Game:
    """The joint outcome of one window; the exact loss is that of readings that lie beyond both streams on the line through them."""
    assert isinstance(mechanism, ClockRender)
    told = asked_unit(unit, "window", ("window",))
    clock, plan = mechanism.clock(RATE_HZ), mechanism.plan(RATE_HZ, _SCREEN)
    step_deg = float(plan.step_deg)
    scale = plan.scale(plan.units // plan.slots)
    # beyond the screen there is no place to differ
    apart = min(math.floor(mechanism.r_deg / plan.step_deg), math.floor(80.0 / step_deg))  # type: ignore[operator]
    samples = clock.count * clock.length
    differ = (np.arange(samples) >= clock.aim) & (np.arange(samples) < clock.aim + clock.window)

    def play(side: int, trials: int, seed: int | None) -> NDArray[np.float64]:
        found = []
        for begin in range(0, trials, _ROWS):
            rows = min(_ROWS, trials - begin)
            slots = NoisySlots(clock, plan, rows, [source(seed, "audit", side, begin)])
            x = np.tile(np.where(differ & (side == 0), apart * step_deg, 0.0), (rows, 1))
            z, v, ok = slots.take(x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
            assert ok.all()
            ratio = (np.hypot(z, v) - np.hypot(z - apart * step_deg, v)).sum(axis=1) / (scale * step_deg)
            found.append(np.stack((ratio, z.mean(axis=1)), axis=1))
        return np.concatenate(found)

    words = f"One window of {clock.window} samples at 100 Hz in which {clock.count} are read: two streams that lie r apart in all of it."
    return Game(told, float(mechanism.epsilon), words, play, clock.count * apart / scale)
