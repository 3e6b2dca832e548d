"""Fixational eye movements: drift (an Ornstein-Uhlenbeck process, smoothed), tremor (a sinusoid)
and microsaccades.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.random import Generator

from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.process import ornstein_uhlenbeck
from gazeveil.gaze.simulate.saccade import duration, share
from gazeveil.gaze.simulate.scanpath import FIXATION, EyeEvent, Observer

_DRIFT_LAG_S = 0.06
_MICROSACCADE_SKEW = 0.2


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
def fixational_step(observer: Observer, drift_deg: float, dt_s: float) -> FixationalStep:
    """The coefficients of a step of `dt_s`."""
    kept, new = ornstein_uhlenbeck(dt_s, observer.condition.drift_s, drift_deg)
    turned = 2 * math.pi * observer.traits.tremor_hz * dt_s
    return FixationalStep(
        kept, new, math.exp(-dt_s / _DRIFT_LAG_S), math.cos(turned), math.sin(turned)
    )


@compiled
def next_microsaccade(
    rng: Generator, observer: Observer, last: Microsaccade, t_s: float
) -> Microsaccade:
    """A microsaccade that begins at `t_s`."""
    right_deg = last.origin_right_deg + last.right_deg
    down_deg = last.origin_down_deg + last.down_deg
    size_deg = observer.traits.microsaccade_deg * math.exp(0.4 * rng.standard_normal())
    # Half of them undo where the last ones went, so they do not add up.
    spread = 1.2 if rng.random() < 0.5 else 0.2
    way = math.atan2(-down_deg, -right_deg) + spread * rng.standard_normal()
    lasting_s = duration(size_deg, observer.v_max_deg_s, observer.constant_deg, _MICROSACCADE_SKEW)
    return Microsaccade(
        t_s, lasting_s, right_deg, down_deg, size_deg * math.cos(way), size_deg * math.sin(way)
    )


@inlined
def move_fixational(
    rng: Generator,
    state: FixationalState,
    of_step: FixationalStep,
    observer: Observer,
    event: EyeEvent,
    t_s: float,
    dt_s: float,
) -> FixationalState:
    """The small movements at `t_s`, after a step of `dt_s`."""
    right = state.drift_right * of_step.drift_kept + of_step.drift_new * rng.standard_normal()
    down = state.drift_down * of_step.drift_kept + of_step.drift_new * rng.standard_normal()
    micro = state.micro
    if (
        event.kind == FIXATION
        and t_s > micro.start_s + micro.lasting_s
        and t_s - event.start_s > 0.1
        and rng.random() < observer.traits.microsaccade_hz * dt_s
    ):
        micro = next_microsaccade(rng, observer, micro, t_s)
    return FixationalState(
        right,
        down,
        right + of_step.lag * (state.lagged_right - right),
        down + of_step.lag * (state.lagged_down - down),
        of_step.tremor_cos * state.tremor_right - of_step.tremor_sin * state.tremor_down,
        of_step.tremor_sin * state.tremor_right + of_step.tremor_cos * state.tremor_down,
        micro,
    )


@inlined
def displacement(state: FixationalState, tall: float, t_s: float) -> tuple[float, float]:
    """How far the small movements take gaze (right, down; degrees); drift is `tall` times as high
    and 1 / `tall` times as wide as that of the median person.
    """
    micro = state.micro
    done = share((t_s - micro.start_s) / micro.lasting_s, _MICROSACCADE_SKEW)
    right_deg = state.lagged_right / tall + micro.origin_right_deg + done * micro.right_deg
    down_deg = state.lagged_down * tall + micro.origin_down_deg + done * micro.down_deg
    return right_deg + state.tremor_right, down_deg + state.tremor_down
