"""Fixational eye movements: drift (an Ornstein-Uhlenbeck process, smoothed), tremor (a sinusoid)
and microsaccades.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.random import Generator

from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.kinematics import duration, ornstein_uhlenbeck, share
from gazeveil.gaze.simulate.scanpath import FIXATION, EyeEvent, Observer

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
