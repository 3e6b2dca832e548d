"""Where to look next: compiled choices of the simulator's main loop.

Free viewing, video and search propose a handful of landing points, each with an amplitude from the
person's gamma distribution and a direction that prefers the horizontal, and take one with a
probability that grows with the attention map there, with how easily eyes and head reach it, and
(search) with how long ago it was looked at.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.conditions import Condition
from gazeveil.gaze.simulate.kinematics import DEGREE, Triple, angle, step, unit
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.stimuli import Scene

PROPOSALS = 10
# Attention where there is no spot at all, so that every place is looked at now and then.
_FLOOR = 0.02
_EYE_RANGE_DEG = 24.0
_DOWN_DEG, _LATITUDE_DEG = 10.0, 70.0


@inlined
def spot_at(spots: Floats, motion: Floats, k: int, t_s: float) -> Triple:
    """Direction of spot `k` at a time."""
    here = (spots[k, 0], spots[k, 1], spots[k, 2])
    if motion[k, 0] == 0.0 and motion[k, 3] == 0.0:
        return here
    right = motion[k, 0] * math.sin(2 * math.pi * motion[k, 1] * t_s + motion[k, 2])
    down = motion[k, 3] * math.sin(2 * math.pi * motion[k, 4] * t_s + motion[k, 5])
    return step(here, right, down)


@compiled
def attention(scene: Scene, now: Floats, at: Triple) -> float:
    """The attention map at one direction, relative to its mean weight, never zero; `now` holds the
    spots' directions.
    """
    weights, total = scene.weights, 0.0
    for k in range(len(weights)):
        size = scene.sizes_deg[k] * DEGREE
        away = (1.0 - now[k, 0] * at[0] - now[k, 1] * at[1] - now[k, 2] * at[2]) / (size * size)
        if away < 10.0:
            total += weights[k] * math.exp(-away)
    return _FLOOR + len(weights) * total


@compiled
def on_screen(at: Triple, wide_deg: float, high_deg: float) -> bool:
    """Whether a direction hits the screen."""
    if at[2] <= 0.0:
        return False
    return (
        abs(math.atan(at[0] / at[2])) * 180 / math.pi < wide_deg
        and abs(math.atan(at[1] / at[2])) * 180 / math.pi < high_deg
    )


@compiled
def propose(
    rng: Generator,
    here: Triple,
    head: Triple,
    traits: Traits,
    condition: Condition,
    scene: Scene,
    recent: Floats,
    t_s: float,
) -> Triple:
    """The next landing point of free viewing, video or search."""
    shape = condition.amplitude_shape * traits.amplitude_shape_factor
    scale = condition.amplitude_deg * traits.amplitude_factor / shape
    sphere, (wide_deg, high_deg) = scene.sphere, scene.half_extent_deg
    now = np.empty((len(scene.spots), 3))
    for k in range(len(scene.spots)):
        now[k, 0], now[k, 1], now[k, 2] = spot_at(scene.spots, scene.motion, k, t_s)
    chosen, total = here, 0.0
    for _ in range(PROPOSALS):
        amplitude = condition.shortest_deg + rng.gamma(shape, scale)
        amplitude = min(amplitude, 100.0)
        direction = 2 * math.pi * rng.random()
        # Bending the angle towards 0 and pi makes horizontal saccades more frequent without
        # forbidding any.
        direction -= 0.5 * traits.horizontal * math.sin(2 * direction)
        at = step(here, amplitude * math.cos(direction), amplitude * math.sin(direction))
        if sphere:
            eye = angle(head, at) / _EYE_RANGE_DEG
            up = (math.asin(min(1.0, max(-1.0, at[1]))) / DEGREE + _DOWN_DEG) / _LATITUDE_DEG
            weight = math.exp(-0.5 * (eye * eye + up * up)) + 1e-9
        else:
            weight = 1.0 if on_screen(at, wide_deg, high_deg) else 1e-9
        weight *= attention(scene, now, at) ** condition.attention
        for r in range(len(recent)):
            if recent[r, 3] > 0.0:
                away = angle((recent[r, 0], recent[r, 1], recent[r, 2]), at) / 2.5
                weight *= 1.0 - condition.inhibition * math.exp(-0.5 * away * away)
        # Taking each in turn with probability weight / total draws one in proportion to the
        # weights, in one pass.
        total += weight
        if rng.random() * total < weight:
            chosen = at
    if not sphere and not on_screen(chosen, wide_deg, high_deg):
        # On a small screen every proposal may miss: then any place on it will do.
        right = 0.9 * wide_deg * (2 * rng.random() - 1)
        down = 0.9 * high_deg * (2 * rng.random() - 1)
        chosen = unit(math.tan(right * DEGREE), -math.tan(down * DEGREE), 1.0)
    return chosen


@compiled
def moving_spot(scene: Scene, at: Triple, t_s: float) -> int:
    """The moving spot that a direction lies on, or -1."""
    least, nearest = 1.5, -1
    for k in range(len(scene.spots)):
        if scene.motion[k, 0] != 0.0 or scene.motion[k, 3] != 0.0:
            away = angle(spot_at(scene.spots, scene.motion, k, t_s), at) / scene.sizes_deg[k]
            if away < least:
                least, nearest = away, k
    return nearest


@compiled
def next_word(rng: Generator, word: int, words: int, habits: Floats) -> int:
    """The index of the word that is read next; after the last the page starts again."""
    if rng.random() < habits[1]:
        return max(0, word - 1 - int(2 * rng.random()))
    on = word + 1
    if rng.random() < habits[0]:
        on += 1
    return on if on < words else 0
