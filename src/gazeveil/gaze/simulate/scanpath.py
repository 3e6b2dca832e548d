"""Where to look next: compiled choices of the simulator's main loop.

Free viewing, video and search propose a handful of landing points, each with an amplitude from the
person's gamma distribution and a direction that prefers the horizontal, and take one with a
probability that grows with the attention map there, with how easily eyes and head reach it, and
(search) with how long ago it was looked at.

The scanpath: fixations (or pursuits) and saccades that alternate in continuous time.

Samples read its state at their own times, so any rate, and uneven times, show the same eye.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.kinematics import (
    DEGREE,
    Triple,
    Waypoints,
    angle,
    arc,
    displaced,
    duration,
    offset,
    share,
    step,
    unit,
)
from gazeveil.gaze.simulate.people import FREE, JUMP, READ, TRACK, Condition, Traits
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


# Codes of events, in the order of gazeveil.gaze.events.KINDS.
FIXATION, SACCADE, PURSUIT, BLINK, PSO, NOISE = 0, 1, 2, 3, 4, 5

_NEVER_S = 1e9
_THERE_DEG, _CORRECTED_DEG, _SCATTER = 0.15, 0.6, 0.12
_SLIDE_S = 0.06
_VISIBLE_PSO_DEG = 0.1


class Observer(NamedTuple):
    """Who looks in which condition: numbers that stay the same in one recording."""

    traits: Traits
    condition: Condition
    v_max_deg_s: float  # the person's main sequence in this condition
    constant_deg: float
    fixation_s: float  # median
    fixation_spread: float
    drift_deg: float
    tall: float  # vertical drift and noise against the median person's; horizontal ones 1 / tall


class EyeEvent(NamedTuple):
    """What the eye is doing."""

    kind: int
    number: int
    start_s: float
    end_s: float
    corrective: bool  # whether the next saccade corrects this one
    spot: int  # the pursued one, or -1
    spot_start: Triple  # where that was at the start


class Saccade(NamedTuple):
    """The saccade under way, or the last one."""

    amplitude_deg: float
    right: float  # its direction, a unit vector
    down: float
    bulge_deg: float
    skew: float


class Settling(NamedTuple):
    """What follows a saccade: an oscillation, and a slide to where gaze comes to rest."""

    start_s: float
    oscillation_deg: float
    right: float  # direction of the oscillation
    down: float
    slide_right_deg: float
    slide_down_deg: float


class Progress(NamedTuple):
    """How far an observer has got in a stimulus."""

    word: int
    target: int
    oldest_visit: int  # row of the visited places that is overwritten next


class ScanpathState(NamedTuple):
    """The scanpath at one time."""

    places: Waypoints
    event: EyeEvent
    saccade: Saccade
    settling: Settling
    progress: Progress


@compiled
def observe(traits: Traits, condition: Condition, scene: Scene) -> Observer:
    """A person in a condition before a scene."""
    return Observer(
        traits,
        condition,
        condition.v_max_deg_s * traits.v_max_factor,
        condition.constant_deg * traits.constant_factor,
        condition.fixation_s * traits.fixation_factor * scene.habits[2],
        condition.fixation_spread * traits.fixation_spread_factor,
        condition.drift_deg * traits.drift_factor,
        math.sqrt(traits.vertical_factor),
    )


@compiled
def row(vectors: Floats, i: int) -> Triple:
    """One direction of an array of them."""
    return vectors[i, 0], vectors[i, 1], vectors[i, 2]


@compiled
def fixation_duration(rng: Generator, observer: Observer) -> float:
    """Seconds of a fixation that nothing from outside ends."""
    return observer.fixation_s * math.exp(observer.fixation_spread * rng.standard_normal())


@compiled
def jump_time(scene: Scene, target: int) -> float:
    """When a target appears, seconds."""
    return scene.jumps_s[target] if target < len(scene.jumps_s) else _NEVER_S


@compiled
def start_scanpath(rng: Generator, observer: Observer, scene: Scene) -> ScanpathState:
    """The first fixation or pursuit."""
    code = observer.condition.code
    here, kind, spot = (0.0, 0.0, 1.0), FIXATION, -1
    if code == READ:
        here = row(scene.words, 0)
    elif code == JUMP:
        here = row(scene.targets, 0)
    elif code == TRACK:
        here, kind, spot = spot_at(scene.spots, scene.motion, 0, 0.0), PURSUIT, 0
    end_s = fixation_duration(rng, observer)
    if code == JUMP:
        end_s = jump_time(scene, 1) + observer.traits.latency_s
    return ScanpathState(
        Waypoints(here, here, here),
        EyeEvent(kind, 0, 0.0, end_s, False, spot, here),
        Saccade(0.0, 0.0, 0.0, 0.0, 0.0),
        Settling(-1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        Progress(0, 0, 0),
    )


@compiled
def next_event(
    rng: Generator,
    observer: Observer,
    scene: Scene,
    visited: Floats,
    path: ScanpathState,
    head: Triple,
) -> ScanpathState:
    """The scanpath after its event has ended; `visited` holds the last places looked at, and
    whether there is one.
    """
    if path.event.kind == SACCADE:
        return land(rng, observer, scene, visited, path)
    return leave(rng, observer, scene, visited, path, head)


@compiled
def land(
    rng: Generator, observer: Observer, scene: Scene, visited: Floats, path: ScanpathState
) -> ScanpathState:
    """The fixation or pursuit that follows a saccade."""
    traits, condition = observer.traits, observer.condition
    event, saccade = path.event, path.saccade
    start_s, amplitude_deg = event.end_s, saccade.amplitude_deg
    slide_deg = condition.slide_share * amplitude_deg
    own_slide_deg = (condition.slide_on + traits.slide_share) * amplitude_deg
    settling = Settling(
        start_s,
        traits.pso_share * min(amplitude_deg, 12.0),
        saccade.right,
        saccade.down,
        own_slide_deg * saccade.right + slide_deg * rng.standard_normal(),
        own_slide_deg * saccade.down + slide_deg * rng.standard_normal(),
    )
    kind, spot, spot_start, progress = FIXATION, -1, event.spot_start, path.progress
    lasting_s = fixation_duration(rng, observer)
    if event.corrective:
        lasting_s = 0.13 * math.exp(0.25 * rng.standard_normal())
    elif condition.code == JUMP:
        until_s = jump_time(scene, progress.target + 1) - start_s
        lasting_s = until_s + traits.latency_s * math.exp(0.15 * rng.standard_normal())
    elif condition.code == TRACK:
        kind, spot = PURSUIT, 0
    elif condition.code == FREE:
        here = path.places.landing
        progress, at_target = visit(scene.targets, visited, progress, here)
        if at_target:
            lasting_s *= 2.5
        if condition.pursuit > 0.0:
            spot = moving_spot(scene, here, start_s)
            if spot >= 0 and rng.random() < condition.pursuit:
                kind = PURSUIT
    if kind == PURSUIT:
        spread = condition.pursuit_spread * rng.standard_normal()
        lasting_s = condition.pursuit_s * math.exp(spread)
        spot_start = spot_at(scene.spots, scene.motion, spot, start_s)
    end_s = start_s + max(lasting_s, 0.04)
    event = EyeEvent(kind, event.number + 1, start_s, end_s, event.corrective, spot, spot_start)
    return ScanpathState(path.places, event, saccade, settling, progress)


@compiled
def visit(
    targets: Floats, visited: Floats, progress: Progress, here: Triple
) -> tuple[Progress, bool]:
    """The progress after a look at a place, and whether the searched target is there."""
    target, oldest = progress.target, progress.oldest_visit
    at_target = len(targets) > 0 and angle(here, row(targets, target)) < 2.0
    if at_target:
        target = (target + 1) % len(targets)
    visited[oldest, 0], visited[oldest, 1], visited[oldest, 2] = here
    visited[oldest, 3] = 1.0
    return Progress(progress.word, target, (oldest + 1) % len(visited)), at_target


@compiled
def next_aim(
    rng: Generator,
    observer: Observer,
    scene: Scene,
    visited: Floats,
    progress: Progress,
    here: Triple,
    head: Triple,
    t_s: float,
) -> tuple[Triple, Progress]:
    """What the next saccade is aimed at, and the progress with it."""
    code = observer.condition.code
    word, target = progress.word, progress.target
    if code == READ:
        word = next_word(rng, word, len(scene.words), scene.habits)
        right_deg = scene.habits[3] * rng.standard_normal()
        aim = step(row(scene.words, word), right_deg, 0.4 * scene.habits[3] * rng.standard_normal())
    elif code == JUMP:
        target += 1
        right_deg = 0.2 * rng.standard_normal()
        aim = step(row(scene.targets, target), right_deg, 0.2 * rng.standard_normal())
    elif code == TRACK:
        aim = spot_at(scene.spots, scene.motion, 0, t_s + 0.04)
    else:
        aim = propose(rng, here, head, observer.traits, observer.condition, scene, visited, t_s)
    return aim, Progress(word, target, progress.oldest_visit)


@compiled
def leave(
    rng: Generator,
    observer: Observer,
    scene: Scene,
    visited: Floats,
    path: ScanpathState,
    head: Triple,
) -> ScanpathState:
    """The saccade that follows a fixation or pursuit."""
    traits, condition = observer.traits, observer.condition
    places, event, settling, progress = path.places, path.event, path.settling, path.progress
    here, aim, spot_start, start_s = places.landing, places.aim, event.spot_start, event.end_s
    if event.kind == PURSUIT:
        now = spot_at(scene.spots, scene.motion, event.spot, start_s)
        here, spot_start = displaced(here, traits.pursuit_gain, spot_start, now), now
    if not event.corrective:
        aim, progress = next_aim(rng, observer, scene, visited, progress, here, head, start_s)
    right_deg, down_deg = offset(here, aim)
    number = event.number + 1
    if math.sqrt(right_deg * right_deg + down_deg * down_deg) < _THERE_DEG:
        # Already there: the eye stays with what it does.
        end_s = start_s + 0.5 * observer.fixation_s
        stay = EyeEvent(event.kind, number, start_s, end_s, False, event.spot, spot_start)
        kept = Waypoints(places.launch, here, aim)
        return ScanpathState(kept, stay, path.saccade, settling, progress)
    gain = 1.0 if event.corrective or condition.code == FREE else traits.saccade_gain
    gain += condition.landing_share * rng.standard_normal()
    side = 0.5 * condition.landing_share * rng.standard_normal()
    launch = step(here, settling.slide_right_deg, settling.slide_down_deg)
    landing = step(launch, gain * right_deg - side * down_deg, gain * down_deg + side * right_deg)
    corrective = (
        not event.corrective
        and condition.code != TRACK
        and angle(landing, aim) > _CORRECTED_DEG
        and rng.random() < (0.1 if condition.code == FREE else 0.6)
    )
    saccade, lasting_s = shape(rng, observer, launch, landing)
    rest = Settling(
        settling.start_s, settling.oscillation_deg, settling.right, settling.down, 0.0, 0.0
    )
    return ScanpathState(
        Waypoints(launch, landing, aim),
        EyeEvent(SACCADE, number, start_s, start_s + lasting_s, corrective, event.spot, spot_start),
        saccade,
        rest,
        progress,
    )


@compiled
def shape(
    rng: Generator, observer: Observer, launch: Triple, landing: Triple
) -> tuple[Saccade, float]:
    """The course of a saccade between two directions, and how long it takes (seconds)."""
    traits = observer.traits
    right_deg, down_deg = offset(launch, landing)
    amplitude_deg = math.sqrt(right_deg * right_deg + down_deg * down_deg)
    right, down = right_deg / max(amplitude_deg, 1e-9), down_deg / max(amplitude_deg, 1e-9)
    bulge_deg = (traits.curvature + 0.015 * rng.standard_normal()) * amplitude_deg
    skew = traits.skew * (0.7 + amplitude_deg / 25.0) + 0.05 * rng.standard_normal()
    skew = min(0.9, max(-0.9, skew))
    lasting_s = duration(amplitude_deg, observer.v_max_deg_s, observer.constant_deg, skew)
    saccade = Saccade(amplitude_deg, right, down, bulge_deg, skew)
    return saccade, lasting_s * math.exp(_SCATTER * rng.standard_normal())


@inlined
def gaze_at(
    path: ScanpathState, pursuit_gain: float, spot: Triple, t_s: float
) -> tuple[Triple, float, float]:
    """The direction of gaze at a time, and what the bulge of a saccade adds to it (right, down;
    degrees); `spot` is where the pursued spot is then.
    """
    event, landing = path.event, path.places.landing
    if event.kind == SACCADE:
        saccade = path.saccade
        done = share((t_s - event.start_s) / (event.end_s - event.start_s), saccade.skew)
        right_deg = -saccade.down * saccade.bulge_deg * 4.0 * done * (1.0 - done)
        down_deg = saccade.right * saccade.bulge_deg * 4.0 * done * (1.0 - done)
        return arc(path.places.launch, landing, done), right_deg, down_deg
    if event.kind == PURSUIT:
        return displaced(landing, pursuit_gain, event.spot_start, spot), 0.0, 0.0
    return landing, 0.0, 0.0


@inlined
def settle(
    settling: Settling, traits: Traits, t_s: float, right_deg: float, down_deg: float
) -> tuple[float, float]:
    """A displacement (right, down; degrees) with what follows a saccade added."""
    since_s = t_s - settling.start_s
    slid = 1.0
    if settling.start_s >= 0.0 and since_s < 6.0 * _SLIDE_S:
        # The slide begins where the saccade ended and goes on to where it leads.
        slid = 1.0 - math.exp(-since_s / _SLIDE_S)
    right_deg += slid * settling.slide_right_deg
    down_deg += slid * settling.slide_down_deg
    if settling.oscillation_deg > 0.0 and since_s < 6.0 * traits.pso_decay_s:
        envelope_deg = settling.oscillation_deg * math.exp(-since_s / traits.pso_decay_s)
        swing_deg = envelope_deg * math.sin(2 * math.pi * traits.pso_hz * since_s)
        right_deg += swing_deg * settling.right
        down_deg += swing_deg * settling.down
    return right_deg, down_deg


@inlined
def oscillates(settling: Settling, traits: Traits, t_s: float) -> bool:
    """Whether the oscillation after a saccade can still be seen."""
    size_deg = settling.oscillation_deg
    if size_deg <= _VISIBLE_PSO_DEG:
        return False
    return t_s - settling.start_s < traits.pso_decay_s * math.log(size_deg / _VISIBLE_PSO_DEG)
