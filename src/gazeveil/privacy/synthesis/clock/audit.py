"""Games for the family of `clock-render`. Of `clock-render` itself: two streams that lie r apart
during one window, and all noisy readings of it.

The window is placed so that as many samples are read in it as can be. What the public eye draws
from the readings cannot tell more than the readings, so these are judged: the logarithm of their
likelihood ratio, and their mean.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.stream.audit import at_a_time
from gazeveil.privacy.synthesis.clock.stage import NoisySlots
from gazeveil.privacy.synthesis.ksame.audit import law_game

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.clock.k_same import ClockRenderKSame
    from gazeveil.privacy.synthesis.clock.render import ClockRender

RATE_HZ = 100.0

# So large that nothing is clamped: what is clamped tells less.
_SCREEN = Screen(1000, 1000, 1e6, 1e6, 1000.0)


def clock_render(mechanism: ClockRender, unit: str | None) -> Game:
    """The joint outcome of one window; the exact loss is that of readings that lie beyond both
    streams on the line through them.
    """
    audited = asked_unit(unit, "window", ("window",))
    clock, noise = mechanism.clock(RATE_HZ), mechanism.noise(RATE_HZ, _SCREEN)
    step_deg = float(noise.step_deg)
    scale = noise.scale
    # beyond the screen there is no place to differ
    r_steps = Fraction(mechanism.r_deg) / noise.step_deg
    apart = min(math.floor(r_steps), math.floor(80.0 / step_deg))
    samples = clock.count * clock.length
    differ = (np.arange(samples) >= clock.aim) & (np.arange(samples) < clock.aim + clock.window)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        scores, several = [], at_a_time(samples)
        for begin in range(0, trials, several):
            rows = min(several, trials - begin)
            slots = NoisySlots(clock, noise, rows, [source(seed, "audit", side, begin)])
            x = np.tile(np.where(differ & (side == 0), apart * step_deg, 0.0), (rows, 1))
            z, v, ok = slots.take(x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
            assert ok.all()
            ratio = (np.hypot(z, v) - np.hypot(z - apart * step_deg, v)).sum(axis=1) / (
                scale * step_deg
            )
            scores.append(np.stack((ratio, z.mean(axis=1)), axis=1))
        return np.concatenate(scores)

    description = (
        f"One window of {clock.window} samples at 100 Hz in which {clock.count} are read: two"
        " streams that lie r apart in all of it."
    )
    return Game(audited, float(mechanism.epsilon), description, play, clock.count * apart / scale)


def clock_render_k_same(mechanism: ClockRenderKSame, unit: str | None) -> Game:
    """Count the people whose recordings are all rendered from the same places, with the same times:
    at least k, over several cohorts.
    """
    return law_game(mechanism, unit, lambda law: (law.places,))
