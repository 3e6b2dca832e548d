"""Games for the family of `clock-render`. Of `clock-render` itself: two streams that lie r apart during one window, and all noisy readings of it.

The window is placed so that as many samples are read in it as can be. What the public eye draws from the readings cannot tell more than the readings,
so these are judged: the logarithm of their likelihood ratio, and their mean.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.audit.games import Game, asked_unit, game, how_many
from gazeveil.privacy.audit.groups import _scanpath as scanpath
from gazeveil.privacy.audit.groups import dp_k_same
from gazeveil.privacy.audit.streams import at_a_time
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.noise.rng import source
from gazeveil.privacy.synthesis.clock_dp_k_same import ClockRenderDPKSame
from gazeveil.privacy.synthesis.clock_k_same import ClockRenderKSame
from gazeveil.privacy.synthesis.clock_render import ClockRender
from gazeveil.privacy.synthesis.clock_stage import NoisySlots
from gazeveil.privacy.tables.dp_ksame import DPKSame

RATE_HZ = 100.0

# So large that nothing is clamped: what is clamped tells less.
_SCREEN = Screen(1000, 1000, 1e6, 1e6, 1000.0)


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
        found, several = [], at_a_time(samples)
        for begin in range(0, trials, several):
            rows = min(several, trials - begin)
            slots = NoisySlots(clock, plan, rows, [source(seed, "audit", side, begin)])
            x = np.tile(np.where(differ & (side == 0), apart * step_deg, 0.0), (rows, 1))
            z, v, ok = slots.take(x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
            assert ok.all()
            ratio = (np.hypot(z, v) - np.hypot(z - apart * step_deg, v)).sum(axis=1) / (scale * step_deg)
            found.append(np.stack((ratio, z.mean(axis=1)), axis=1))
        return np.concatenate(found)

    words = f"One window of {clock.window} samples at 100 Hz in which {clock.count} are read: two streams that lie r apart in all of it."
    return Game(told, float(mechanism.epsilon), words, play, clock.count * apart / scale)


@game("clock-render-k-same")
def clock_render_k_same(mechanism: Mechanism[Any], unit: str | None) -> Game:
    """Count the people whose recordings are all rendered from the same places, with the same times: at least k, over several cohorts."""
    assert isinstance(mechanism, ClockRenderKSame)
    told = asked_unit(unit, "user", ("user",))
    rng = np.random.default_rng(0)
    smallest = 4 * mechanism.k
    cohorts = how_many(8, mechanism.k)
    for trial in range(cohorts):
        people, stimuli = int(rng.integers(mechanism.k, 4 * mechanism.k)), int(rng.integers(1, 4))
        cohort = Cohort([scanpath(f"p{p}", f"s{t}", rng) for p in range(people) for t in range(stimuli)])
        laws, released = mechanism.laws(cohort, seed=trial), mechanism.release(cohort, seed=trial).data
        records: dict[str, list[bytes]] = {}
        for r in released:
            records.setdefault(r.person, []).append(b"|".join((r.stimulus.encode(), laws[r.key].places.tobytes(), r.t_ns.tobytes(), r.valid.tobytes())))
        smallest = min(smallest, *Counter(b"".join(r) for r in records.values()).values())
    words = (
        f"{cohorts} random cohorts with 1 to 3 stimuli and unequal lengths: the smallest number of people with one law is {smallest},"
        f" k = {mechanism.k} is claimed."
    )
    return Game(told, None, words, broken="A law is shared by fewer than k people." if smallest < mechanism.k else "")


@game("clock-render-dp-k-same")
def clock_render_dp_k_same(mechanism: Mechanism[Any], unit: str | None) -> Game:
    """The game of `dp-k-same`, whose noise it is; what is rendered from its table cannot tell more."""
    assert isinstance(mechanism, ClockRenderDPKSame)
    inner = dp_k_same(DPKSame(mechanism.k, mechanism.epsilon), asked_unit(unit, "user", ("user",)))
    return replace(inner, words=f"The table of places, as one feature: {inner.words[0].lower()}{inner.words[1:]}")
