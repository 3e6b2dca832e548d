"""What a tracker measures: lids that close, gaze that is lost, noise that is new in every sample
or lingers, and the pupil.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.random import Generator

from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.conditions import TrackerModel
from gazeveil.gaze.simulate.head import HeadState
from gazeveil.gaze.simulate.kinematics import (
    DEGREE,
    Triple,
    displaced,
    ornstein_uhlenbeck,
    right_of,
    step,
)
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.stimuli import Scene

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
