"""The head: a damped spring that follows gaze, pushed by noise, and what its turning does to gaze.

Gaze in the world slips by the share of head rotation that the eyes do not cancel, and flows with
the scene as one walks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.random import Generator

from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.simulate.kinematics import (
    DEGREE,
    Triple,
    ornstein_uhlenbeck,
    right_of,
    step,
    turn,
)
from gazeveil.gaze.simulate.people import Condition, Traits

_LONGEST_STEP_S = 0.01
_REST_DEG, _LEVEL = 6.0, 0.05
_ROLL_S = 0.7
_VIGOUR_S, _VIGOUR, _VIGOUR_STEP_S = 0.8, 0.75, 0.02


class HeadState(NamedTuple):
    """The head at one time."""

    direction: Triple
    speed_rad_s: Triple  # angular velocity
    roll_deg: float
    roll_deg_s: float
    log_vigour: float  # how lively the head moves: an Ornstein-Uhlenbeck process
    vigour: float
    vigour_s: float  # when vigour was last drawn
    vigour_due_s: float  # when it is drawn again
    flow_right: float  # gaze that flows with the scene, as a share of its deviation
    flow_down: float


class HeadStep(NamedTuple):
    """What a step between two samples does to the head; equal steps share one."""

    parts: int  # the spring takes several smaller steps
    kept: float  # share of speed kept over one part
    flow_kept: float
    flow_new: float
    roll_kept: float
    roll_new: float


class Waypoints(NamedTuple):
    """Directions in the world that gaze goes between."""

    launch: Triple  # where the last saccade began
    landing: Triple  # where it ends, which is then fixated
    aim: Triple  # what it is aimed at


@compiled
def start_head(rng: Generator, direction: Triple, roll_deg: float) -> HeadState:
    """A resting head."""
    log_vigour = _VIGOUR * rng.standard_normal()
    still = (0.0, 0.0, 0.0)
    return HeadState(direction, still, roll_deg, 0.0, log_vigour, 1.0, 0.0, 0.0, 0.0, 0.0)


@compiled
def head_step(condition: Condition, dt_s: float) -> HeadStep:
    """The coefficients of a step of `dt_s`."""
    parts = max(1, math.ceil(dt_s / _LONGEST_STEP_S))
    flow_kept, flow_new = ornstein_uhlenbeck(dt_s / parts, condition.flow_s, 1.0)
    roll_kept, roll_new = ornstein_uhlenbeck(dt_s, 0.5 * _ROLL_S, condition.roll_deg / _ROLL_S)
    speed_kept = math.exp(-2.0 * condition.head_rad_s * dt_s / parts)
    return HeadStep(parts, speed_kept, flow_kept, flow_new, roll_kept, roll_new)


@inlined
def follow(
    rng: Generator,
    head: Triple,
    speed: Triple,
    goal: Triple,
    dt_s: float,
    k: float,
    keep: float,
    pull: float,
    push: float,
) -> tuple[Triple, Triple]:
    """Head direction and angular velocity (rad/s) after `dt_s` of following `goal`.

    `k` is the spring's natural frequency (rad/s), `keep` the share of speed kept over `dt_s`,
    `pull` the strength with which gaze turns the head and `push` the deviation of random
    acceleration (rad/s^1.5).
    """
    cx = head[1] * goal[2] - head[2] * goal[1]
    cy = head[2] * goal[0] - head[0] * goal[2]
    cz = head[0] * goal[1] - head[1] * goal[0]
    away = math.sqrt(cx * cx + cy * cy + cz * cz) / DEGREE
    # Small gaze shifts are left to the eyes: the pull fades below a few degrees.
    pulled = dt_s * k * k * pull * away / (away + _REST_DEG)
    rx, rz = right_of(head)
    ux, uy, uz = head[1] * rz, head[2] * rx - head[0] * rz, -head[1] * rx
    pushed = push * math.sqrt(dt_s)
    p, q = pushed * rng.standard_normal(), pushed * rng.standard_normal()
    # A held head also swings back to the horizon.
    q += dt_s * _LEVEL * k * k * head[1]
    wx = keep * speed[0] + pulled * cx + p * ux + q * rx
    wy = keep * speed[1] + pulled * cy + p * uy
    wz = keep * speed[2] + pulled * cz + p * uz + q * rz
    return turn(head, wx * dt_s, wy * dt_s, wz * dt_s), (wx, wy, wz)


@inlined
def move_head(
    rng: Generator,
    head: HeadState,
    places: Waypoints,
    in_saccade: bool,
    corrective: bool,
    of_step: HeadStep,
    traits: Traits,
    condition: Condition,
    t_s: float,
    dt_s: float,
) -> tuple[HeadState, Waypoints]:
    """The head and the waypoints at `t_s`, after a step of `dt_s`.

    `corrective` says that a corrective saccade is due, for which launch and aim are still needed.
    """
    log_vigour, vigour = head.log_vigour, head.vigour
    vigour_s, vigour_due_s = head.vigour_s, head.vigour_due_s
    if t_s >= vigour_due_s:
        kept, new = ornstein_uhlenbeck(t_s - vigour_s, _VIGOUR_S, _VIGOUR)
        log_vigour = log_vigour * kept + new * rng.standard_normal()
        vigour, vigour_s, vigour_due_s = math.exp(log_vigour), t_s, t_s + _VIGOUR_STEP_S
    slip = 1.0 - min(1.0, condition.vor_gain * traits.vor_factor)
    pull = vigour * (traits.head_factor * condition.head_share)
    push = vigour * condition.head_push
    direction, speed = head.direction, head.speed_rad_s
    flow_right, flow_down = head.flow_right, head.flow_down
    launch, landing, aim = places
    part_s = dt_s / of_step.parts
    for _ in range(of_step.parts):
        direction, speed = follow(
            rng, direction, speed, landing, part_s, condition.head_rad_s, of_step.kept, pull, push
        )
        wx, wy, wz = slip * part_s * speed[0], slip * part_s * speed[1], slip * part_s * speed[2]
        if in_saccade or corrective:
            launch, aim = turn(launch, wx, wy, wz), turn(aim, wx, wy, wz)
        landing = turn(landing, wx, wy, wz)
        squared = speed[0] * speed[0] + speed[1] * speed[1] + speed[2] * speed[2]
        turning_deg_s = math.sqrt(squared) / DEGREE
        flow_right = flow_right * of_step.flow_kept + of_step.flow_new * rng.standard_normal()
        flow_down = flow_down * of_step.flow_kept + of_step.flow_new * rng.standard_normal()
        if not in_saccade:
            flow_deg_s = condition.flow_deg_s + condition.flow_share * turning_deg_s
            scale = flow_deg_s * traits.head_factor * part_s
            landing = step(landing, scale * flow_right, scale * flow_down)
    # Roll is a damped spring too: its speed is what noise pushes.
    pushed = head.roll_deg_s * of_step.roll_kept + of_step.roll_new * rng.standard_normal()
    roll_deg_s = pushed - head.roll_deg * dt_s / _ROLL_S**2
    roll_deg = head.roll_deg + roll_deg_s * dt_s
    moved = HeadState(
        direction,
        speed,
        roll_deg,
        roll_deg_s,
        log_vigour,
        vigour,
        vigour_s,
        vigour_due_s,
        flow_right,
        flow_down,
    )
    return moved, Waypoints(launch, landing, aim)
