"""Fixational eye movements: drift (an Ornstein-Uhlenbeck process, smoothed), tremor (a sinusoid)
and microsaccades.

What a tracker measures: lids that close, gaze that is lost, noise that is new in every sample
or lingers, and the pupil.

The main loop: a person's eyes, the head under them and the tracker before them, one sample at a
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
from gazeveil.gaze.simulate.kinematics import (
    DEGREE,
    HeadState,
    HeadStep,
    Triple,
    displaced,
    duration,
    head_step,
    in_head,
    move_head,
    ornstein_uhlenbeck,
    right_of,
    share,
    start_head,
    step,
    to_degrees,
)
from gazeveil.gaze.simulate.people import Condition, TrackerModel, Traits
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
    spot_at,
    start_scanpath,
)
from gazeveil.gaze.simulate.stimuli import Scene

_DRIFT_LAG_S = 0.06
_MICROSACCADE_SKEW, _MICROSACCADE_AFTER_S = 0.2, 0.1


class Microsaccade(NamedTuple):
    """The last microsaccade; degrees from where the fixation began."""

    start_s: float
    lasting_s: float
    origin_right_deg: float
    origin_down_deg: float
    right_deg: float
    down_deg: float


class FixationalState(NamedTuple):
    """The small movements at one time, degrees."""

    drift_right: float
    drift_down: float
    lagged_right: float
    lagged_down: float
    tremor_right: float
    tremor_down: float
    micro: Microsaccade


class FixationalStep(NamedTuple):
    """What a step between two samples does to them; equal steps share one."""

    drift_kept: float
    drift_new: float
    lag: float
    tremor_cos: float
    tremor_sin: float


@compiled
def start_fixational(
    drift_right: float, drift_down: float, tremor_deg: float, phase: float
) -> FixationalState:
    """The first state: a drift, and a tremor of some phase."""
    return FixationalState(
        drift_right,
        drift_down,
        drift_right,
        drift_down,
        tremor_deg * math.cos(phase),
        tremor_deg * math.sin(phase),
        Microsaccade(-1.0, 1.0, 0.0, 0.0, 0.0, 0.0),
    )


@compiled
def fixational_step(observer: Observer, dt_s: float) -> FixationalStep:
    """The coefficients of a step of `dt_s`."""
    kept, new = ornstein_uhlenbeck(dt_s, observer.condition.drift_s, observer.drift_deg)
    turned = 2 * math.pi * observer.traits.tremor_hz * dt_s
    return FixationalStep(
        kept, new, math.exp(-dt_s / _DRIFT_LAG_S), math.cos(turned), math.sin(turned)
    )


@inlined
def move_fixational(
    state: FixationalState, of_step: FixationalStep, normal_right: float, normal_down: float
) -> FixationalState:
    """Drift and tremor after a step, with two standard normal draws."""
    right = state.drift_right * of_step.drift_kept + of_step.drift_new * normal_right
    down = state.drift_down * of_step.drift_kept + of_step.drift_new * normal_down
    return FixationalState(
        right,
        down,
        right + of_step.lag * (state.lagged_right - right),
        down + of_step.lag * (state.lagged_down - down),
        of_step.tremor_cos * state.tremor_right - of_step.tremor_sin * state.tremor_down,
        of_step.tremor_sin * state.tremor_right + of_step.tremor_cos * state.tremor_down,
        state.micro,
    )


@inlined
def microsaccade_allowed(last: Microsaccade, event: EyeEvent, t_s: float) -> bool:
    """Whether a microsaccade may begin: within a fixation, after the one before."""
    return (
        event.kind == FIXATION
        and t_s > last.start_s + last.lasting_s
        and t_s - event.start_s > _MICROSACCADE_AFTER_S
    )


@compiled
def begin_microsaccade(
    rng: Generator, observer: Observer, state: FixationalState, t_s: float
) -> FixationalState:
    """The small movements with a microsaccade that begins at `t_s`."""
    last = state.micro
    right_deg = last.origin_right_deg + last.right_deg
    down_deg = last.origin_down_deg + last.down_deg
    size_deg = observer.traits.microsaccade_deg * math.exp(0.4 * rng.standard_normal())
    # Half of them undo where the last ones went, so they do not add up.
    spread = 1.2 if rng.random() < 0.5 else 0.2
    way = math.atan2(-down_deg, -right_deg) + spread * rng.standard_normal()
    v_max_deg_s, constant_deg = observer.v_max_deg_s, observer.constant_deg
    micro = Microsaccade(
        t_s,
        duration(size_deg, v_max_deg_s, constant_deg, _MICROSACCADE_SKEW),
        right_deg,
        down_deg,
        size_deg * math.cos(way),
        size_deg * math.sin(way),
    )
    return FixationalState(
        state.drift_right,
        state.drift_down,
        state.lagged_right,
        state.lagged_down,
        state.tremor_right,
        state.tremor_down,
        micro,
    )


@inlined
def displacement(state: FixationalState, tall: float, t_s: float) -> tuple[float, float]:
    """How far the small movements take gaze (right, down; degrees)."""
    micro = state.micro
    done = share((t_s - micro.start_s) / micro.lasting_s, _MICROSACCADE_SKEW)
    right_deg = state.lagged_right / tall + micro.origin_right_deg + done * micro.right_deg
    down_deg = state.lagged_down * tall + micro.origin_down_deg + done * micro.down_deg
    return right_deg + state.tremor_right, down_deg + state.tremor_down


_HIPPUS_S, _HIPPUS_MM, _PUPIL_NOISE_MM = 2.0, 0.15, 0.004
_HELD = 0.25
_LID_BEFORE_S, _LID_AFTER_S = 0.02, 0.03


class Blink(NamedTuple):
    """The next blink or the one under way, and when the last one was over."""

    start_s: float
    end_s: float
    last_end_s: float


class Dropout(NamedTuple):
    """When gaze is lost next, and until when it is lost now."""

    start_s: float
    end_s: float


class TrackerState(NamedTuple):
    """The tracker at one time."""

    lingering_right: float  # noise, degrees
    lingering_down: float
    before: Triple  # gaze in the sample before


class PupilState(NamedTuple):
    """The pupil at one time: its slow unrest, and the response to light as a turning pair."""

    hippus_mm: float
    light_cos_mm: float
    light_sin_mm: float


class MeasurementStep(NamedTuple):
    """What a step between two samples does to all this; equal steps share one."""

    noise_kept: float
    noise_new: float
    held: float  # share of the sample before
    hippus_kept: float
    hippus_new: float
    light_cos: float
    light_sin: float


@compiled
def measurement_step(
    tracker: TrackerModel, traits: Traits, scene: Scene, dt_s: float
) -> MeasurementStep:
    """The coefficients of a step of `dt_s`."""
    lingering_deg = tracker.coloured_deg * traits.noise_factor
    noise_kept, noise_new = ornstein_uhlenbeck(dt_s, tracker.coloured_s, lingering_deg)
    hippus_kept, hippus_new = ornstein_uhlenbeck(dt_s, _HIPPUS_S, _HIPPUS_MM)
    held = 0.0
    if tracker.frame_hz > 0.0:
        held = _HELD * min(1.0, max(0.0, dt_s * tracker.frame_hz - 1.0))
    turned = 2 * math.pi * scene.light[1] * dt_s
    return MeasurementStep(
        noise_kept, noise_new, held, hippus_kept, hippus_new, math.cos(turned), math.sin(turned)
    )


@compiled
def next_blink(rng: Generator, traits: Traits, earliest_s: float, last_end_s: float) -> Blink:
    """The first blink after a time."""
    start_s = earliest_s + rng.exponential(1.0) / traits.blink_hz
    end_s = start_s + traits.blink_s * math.exp(0.3 * rng.standard_normal())
    return Blink(start_s, end_s, last_end_s)


@compiled
def next_dropout(rng: Generator, tracker: TrackerModel, last_end_s: float) -> Dropout:
    """The first dropout after the one that ends then."""
    if tracker.dropout_hz <= 0.0:
        return Dropout(math.inf, last_end_s)
    return Dropout(max(last_end_s, 0.0) + rng.exponential(1.0) / tracker.dropout_hz, last_end_s)


@inlined
def lid_closure(blink: Blink, t_s: float) -> float:
    """How far the lid is on its way down before a blink, or up after it, 0 to 1."""
    if blink.start_s - t_s < _LID_BEFORE_S:
        return 1.0 - (blink.start_s - t_s) / _LID_BEFORE_S
    if blink.last_end_s >= 0.0 and t_s - blink.last_end_s < _LID_AFTER_S:
        return 1.0 - (t_s - blink.last_end_s) / _LID_AFTER_S
    return 0.0


@compiled
def start_pupil(rng: Generator, scene: Scene) -> PupilState:
    """The pupil at the start of a scene."""
    amplitude_mm, phase = scene.light[0], scene.light[2]
    hippus_mm = _HIPPUS_MM * rng.standard_normal()
    return PupilState(hippus_mm, amplitude_mm * math.cos(phase), amplitude_mm * math.sin(phase))


@inlined
def move_pupil(pupil: PupilState, of_step: MeasurementStep, normal: float) -> PupilState:
    """The pupil after a step; `normal` is a standard normal draw."""
    return PupilState(
        pupil.hippus_mm * of_step.hippus_kept + of_step.hippus_new * normal,
        of_step.light_cos * pupil.light_cos_mm - of_step.light_sin * pupil.light_sin_mm,
        of_step.light_sin * pupil.light_cos_mm + of_step.light_cos * pupil.light_sin_mm,
    )


@inlined
def pupil_size(pupil: PupilState, pupil_mm: float, normal: float) -> float:
    """The measured diameter of a pupil of mean `pupil_mm`, millimetres."""
    noise_mm = _PUPIL_NOISE_MM * normal
    return max(pupil_mm + pupil.hippus_mm + pupil.light_sin_mm + noise_mm, 0.5)


@inlined
def head_mismatch(head: HeadState, late_s: float) -> tuple[float, float]:
    """What the head's turning in `late_s` adds to gaze (right, down; degrees): head and eye are
    not measured at quite the same time, so gaze jumps to and fro along the head's motion.
    """
    (hx, hy, hz), (wx, wy, wz) = head.direction, head.speed_rad_s
    rx, rz = right_of(head.direction)
    right_deg = late_s * (wx * hy * rz + wy * (hz * rx - hx * rz) - wz * hy * rx) / DEGREE
    return right_deg, late_s * (rx * wx + rz * wz) / DEGREE


@inlined
def move_noise(
    state: TrackerState, of_step: MeasurementStep, normal_right: float, normal_down: float
) -> TrackerState:
    """The lingering noise after a step, with two standard normal draws."""
    right = state.lingering_right * of_step.noise_kept + of_step.noise_new * normal_right
    down = state.lingering_down * of_step.noise_kept + of_step.noise_new * normal_down
    return TrackerState(right, down, state.before)


@inlined
def hold(
    state: TrackerState, of_step: MeasurementStep, gaze: Triple
) -> tuple[Triple, TrackerState]:
    """Gaze with a share of the sample before, where frames come slower than the tracker's own."""
    # Kept in every step: after a late frame the sample before may be one that held nothing.
    kept = TrackerState(state.lingering_right, state.lingering_down, gaze)
    if of_step.held <= 0.0:
        return gaze, kept
    return displaced(gaze, of_step.held, gaze, state.before), kept


@inlined
def miss(
    gaze: Triple,
    noise: TrackerState,
    traits: Traits,
    tall: float,
    right_deg: float,
    down_deg: float,
    lid_deg: float,
) -> Triple:
    """The direction that is reported for `gaze`: off by the calibration, lingering noise, what is
    new in this sample (right, down) and what the lid drags it down.
    """
    return step(
        gaze,
        traits.offset_right_deg + noise.lingering_right / tall + right_deg,
        traits.offset_down_deg + noise.lingering_down * tall + down_deg + lid_deg,
    )


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
