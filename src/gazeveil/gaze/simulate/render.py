"""The main loop: a person's eyes, the head under them and the tracker before them, one sample at a
time.

On the direction of the scanpath lie, as small steps on the sphere: what follows a saccade, the
fixational movements, then the tracker's noise and the calibration error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Codes, Floats
from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.conditions import Condition, TrackerModel
from gazeveil.gaze.simulate.fixational import (
    FixationalState,
    FixationalStep,
    begin_microsaccade,
    displacement,
    fixational_step,
    microsaccade_allowed,
    move_fixational,
    start_fixational,
)
from gazeveil.gaze.simulate.head import HeadState, HeadStep, head_step, move_head, start_head
from gazeveil.gaze.simulate.kinematics import DEGREE, Triple, in_head, step, to_degrees
from gazeveil.gaze.simulate.measurement import (
    Blink,
    Dropout,
    MeasurementStep,
    PupilState,
    TrackerState,
    head_mismatch,
    hold,
    lid_closure,
    measurement_step,
    miss,
    move_noise,
    move_pupil,
    next_blink,
    next_dropout,
    pupil_size,
    start_pupil,
)
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.scanpath import (
    BLINK,
    FIXATION,
    NOISE,
    PSO,
    PURSUIT,
    SACCADE,
    EyeEvent,
    Observer,
    ScanpathState,
    gaze_at,
    next_event,
    observe,
    oscillates,
    settle,
    start_scanpath,
)
from gazeveil.gaze.simulate.stimuli import Scene
from gazeveil.gaze.simulate.targets import spot_at

_FARTHEST_EYE = math.cos(38.0 * DEGREE)


class Rendered(NamedTuple):
    """Samples of one recording, and what the eye did."""

    gaze_deg: Floats  # (n, 2); NaN where gaze is lost
    clean: Floats  # (n, 3): directions without the tracker's share
    valid: Bools
    code: Codes  # what the eye does, in the order of gazeveil.gaze.events.KINDS
    event: NDArray[np.int32]  # a number that changes with every fixation, pursuit and saccade
    pupil_mm: Floats
    head_deg: Floats  # (n, 3): direction and roll on a sphere, else empty
    eye_deg: Floats  # (n, 2): gaze in the head on a sphere, else empty


@compiled
def empty_samples(n: int, sphere: bool) -> Rendered:
    """Arrays for `n` samples."""
    with_head = n if sphere else 0
    return Rendered(
        np.empty((n, 2)),
        np.empty((n, 3)),
        np.ones(n, dtype=np.bool_),
        np.empty(n, dtype=np.int8),
        np.empty(n, dtype=np.int32),
        np.empty(n),
        np.empty((with_head, 3)),
        np.empty((with_head, 2)),
    )


@inlined
def carry(
    rng: Generator,
    observer: Observer,
    head: HeadState,
    path: ScanpathState,
    of_step: HeadStep,
    t_s: float,
    dt_s: float,
) -> tuple[HeadState, ScanpathState]:
    """The head at `t_s`, and the scanpath that it carries along; an eye that is turned too far in
    its orbit ends its fixation.
    """
    event = path.event
    head, places = move_head(
        rng,
        head,
        path.places,
        event.kind == SACCADE,
        event.corrective,
        of_step,
        observer.traits,
        observer.condition,
        t_s,
        dt_s,
    )
    end_s, (hx, hy, hz), (x, y, z) = event.end_s, head.direction, places.landing
    if event.kind == FIXATION and t_s < end_s and hx * x + hy * y + hz * z < _FARTHEST_EYE:
        end_s = t_s
    event = EyeEvent(
        event.kind,
        event.number,
        event.start_s,
        end_s,
        event.corrective,
        event.spot,
        event.spot_start,
    )
    return head, ScanpathState(places, event, path.saccade, path.settling, path.progress)


@inlined
def eye_direction(
    traits: Traits,
    path: ScanpathState,
    spot: Triple,
    fixational: FixationalState,
    tall: float,
    t_s: float,
) -> Triple:
    """The direction of gaze at a time, with all that the eye itself adds."""
    at, right_deg, down_deg = gaze_at(path, traits.pursuit_gain, spot, t_s)
    small_right_deg, small_down_deg = displacement(fixational, tall, t_s)
    right_deg, down_deg = right_deg + small_right_deg, down_deg + small_down_deg
    if path.event.kind != SACCADE:
        right_deg, down_deg = settle(path.settling, traits, t_s, right_deg, down_deg)
    return step(at, right_deg, down_deg)


@inlined
def event_code(path: ScanpathState, traits: Traits, blinking: bool, lid: float, t_s: float) -> int:
    """What the eye does at a time, as a code."""
    if blinking:
        return BLINK
    if lid > 0.0:
        return NOISE
    if path.event.kind == FIXATION and oscillates(path.settling, traits, t_s):
        return PSO
    return path.event.kind


@inlined
def degrees_on_grid(reported: Triple, tracker: TrackerModel, sphere: bool) -> tuple[float, float]:
    """The reported degrees (x, y); a screen's tracker rounds them."""
    x, y = to_degrees(reported, sphere)
    grid = tracker.quantum_deg
    if grid > 0.0 and not sphere:
        return grid * math.floor(x / grid + 0.5), grid * math.floor(y / grid + 0.5)
    return x, y


class States(NamedTuple):
    """Eyes, head and tracker at the start of a recording."""

    path: ScanpathState
    fixational: FixationalState
    noise: TrackerState
    blink: Blink
    dropout: Dropout
    pupil: PupilState
    head: HeadState


@compiled
def start(rng: Generator, observer: Observer, tracker: TrackerModel, scene: Scene) -> States:
    """The first states."""
    traits = observer.traits
    path = start_scanpath(rng, observer, scene)
    here = path.places.landing
    roll_deg = observer.condition.roll_deg * rng.standard_normal()
    right_deg = observer.drift_deg * rng.standard_normal()
    down_deg = observer.drift_deg * rng.standard_normal()
    lingering_deg = tracker.coloured_deg * traits.noise_factor
    noise_right, noise_down = rng.standard_normal(), rng.standard_normal()
    phase = 2 * math.pi * rng.random()
    blink = next_blink(rng, traits, 0.0, -1.0)
    dropout = next_dropout(rng, tracker, -1.0)
    pupil = start_pupil(rng, scene)
    return States(
        path,
        start_fixational(right_deg, down_deg, traits.tremor_deg, phase),
        TrackerState(lingering_deg * noise_right, lingering_deg * noise_down, here),
        blink,
        dropout,
        pupil,
        start_head(rng, here, roll_deg),
    )


class Steps(NamedTuple):
    """What a step between two samples does; equal steps share one."""

    head: HeadStep
    eye: FixationalStep
    tracker: MeasurementStep


@compiled
def steps_of(observer: Observer, tracker: TrackerModel, scene: Scene, dt_s: float) -> Steps:
    """The coefficients of a step of `dt_s`."""
    return Steps(
        head_step(observer.condition, dt_s),
        fixational_step(observer, dt_s),
        measurement_step(tracker, observer.traits, scene, dt_s),
    )


# Numbers are drawn in the loop itself: handing the generator on costs as much as drawing one.
@compiled
def render(
    rng: Generator,
    t_s: Floats,
    traits: Traits,
    condition: Condition,
    tracker: TrackerModel,
    scene: Scene,
) -> Rendered:
    """Samples at times `t_s` (from 0, increasing)."""
    sphere, spots, motion = scene.sphere, scene.spots, scene.motion
    samples, visited = empty_samples(len(t_s), sphere), np.zeros((4, 4))
    gaze_deg, clean, valid, code, event, pupil_mm, head_deg, eye_deg = samples
    observer = observe(traits, condition, scene)
    white_deg, tall = tracker.white_deg * traits.noise_factor, observer.tall
    path, fixational, noise, blink, dropout, pupil, head = start(rng, observer, tracker, scene)
    steps, last_dt_s = steps_of(observer, tracker, scene, 0.0), -1.0
    for i in range(len(t_s)):
        t, dt = t_s[i], t_s[i] - (t_s[i - 1] if i > 0 else 0.0)
        if abs(dt - last_dt_s) > 1e-8:
            # Steps are nearly always equal, and exponentials are most of the cost of a sample.
            steps, last_dt_s = steps_of(observer, tracker, scene, dt), dt
        if sphere and dt > 0.0:
            head, path = carry(rng, observer, head, path, steps.head, t, dt)
        while t >= path.event.end_s:
            path = next_event(rng, observer, scene, visited, path, head.direction)
        fixational = move_fixational(
            fixational, steps.eye, rng.standard_normal(), rng.standard_normal()
        )
        may_begin = microsaccade_allowed(fixational.micro, path.event, t)
        if may_begin and rng.random() < traits.microsaccade_hz * dt:
            fixational = begin_microsaccade(rng, observer, fixational, t)
        spot = path.places.landing
        if path.event.kind == PURSUIT:
            spot = spot_at(spots, motion, path.event.spot, t)
        gaze = eye_direction(traits, path, spot, fixational, tall, t)
        clean[i, 0], clean[i, 1], clean[i, 2] = gaze
        while t >= blink.end_s:
            blink = next_blink(rng, traits, blink.end_s + 0.1, blink.end_s)
        blinking = t >= blink.start_s
        lid = 0.0 if blinking else lid_closure(blink, t)
        code[i], event[i] = event_code(path, traits, blinking, lid, t), path.event.number
        while t >= dropout.end_s and t >= dropout.start_s:
            lost_until_s = dropout.start_s + tracker.dropout_s * rng.exponential(1.0)
            dropout = next_dropout(rng, tracker, lost_until_s)
        noise = move_noise(noise, steps.tracker, rng.standard_normal(), rng.standard_normal())
        right_deg = white_deg / tall * rng.standard_normal()
        down_deg = white_deg * tall * rng.standard_normal()
        if sphere and tracker.mismatch_s > 0.0:
            late = head_mismatch(head, tracker.mismatch_s * rng.standard_normal())
            right_deg, down_deg = right_deg + late[0], down_deg + late[1]
        held, noise = hold(noise, steps.tracker, gaze)
        lid_deg = tracker.lid_deg * lid * lid
        reported = miss(held, noise, traits, tall, right_deg, down_deg, lid_deg)
        x, y = degrees_on_grid(reported, tracker, sphere)
        pupil = move_pupil(pupil, steps.tracker, rng.standard_normal())
        size_mm = pupil_size(pupil, traits.pupil_mm, rng.standard_normal())
        if sphere:
            right_deg = tracker.head_white_deg * rng.standard_normal()
            down_deg = tracker.head_white_deg * rng.standard_normal()
            faced = step(head.direction, right_deg, down_deg)
            head_deg[i, 0], head_deg[i, 1] = to_degrees(faced, True)
            head_deg[i, 2] = head.roll_deg
            eye_deg[i, 0], eye_deg[i, 1] = in_head(reported, faced, head.roll_deg)
        if blinking or t < dropout.end_s:
            valid[i], x, y, size_mm = False, math.nan, math.nan, math.nan
            if sphere:
                eye_deg[i, 0], eye_deg[i, 1] = math.nan, math.nan
        gaze_deg[i, 0], gaze_deg[i, 1], pupil_mm[i] = x, y, size_mm
    return samples
