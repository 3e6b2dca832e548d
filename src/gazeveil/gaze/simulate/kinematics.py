"""Compiled arithmetic with unit vectors as plain triples (x right, y up, z forward).

The simulator's inner loop runs on these for spheres and screens alike: the line of sight to a
straight line on a screen is a great circle, so one set of formulas serves both and there is no seam
at longitude 0/360.

Processes that a loop over samples carries on from one time to the next.

The course of a saccade.

Peak speed follows the main sequence V = v_max (1 - exp(-A / c)) (Bahill, Clark and Stark 1975). The
share of the way covered after the share u of the time is the minimum-jerk step 10u^3 - 15u^4 +
6u^5, whose peak speed is 1.875 times the mean speed; so the duration is 1.875 A / V, and a little
more for a skewed course. (Measured ratios of peak to mean lie between 1.65, Becker 1989, and 2;
what the hand labels of GazeCom call a saccade lasts rather longer than this.) Warping time by u + w
u (1 - u) puts the peak early, as real saccades have it, the more the larger they are (van Opstal
and van Gisbergen 1987). The path bulges sideways by a share of the amplitude (curvature).

The head: a damped spring that follows gaze, pushed by noise, and what its turning does to gaze.

Gaze in the world slips by the share of head rotation that the eyes do not cancel, and flows with
the scene as one walks.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

from numpy.random import Generator

from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.geometry import LAST_Y_DEG
from gazeveil.gaze.simulate.people import Condition, Traits

Triple: TypeAlias = tuple[float, float, float]

DEGREE = math.pi / 180.0


@compiled
def unit(x: float, y: float, z: float) -> Triple:
    """The direction of a vector; straight ahead for a zero one."""
    length = math.sqrt(x * x + y * y + z * z)
    if length == 0.0:
        return 0.0, 0.0, 1.0
    return x / length, y / length, z / length


@compiled
def angle(a: Triple, b: Triple) -> float:
    """Degrees between two directions."""
    cx = a[1] * b[2] - a[2] * b[1]
    cy = a[2] * b[0] - a[0] * b[2]
    cz = a[0] * b[1] - a[1] * b[0]
    return (
        math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
        / DEGREE
    )


@compiled
def right_of(a: Triple) -> tuple[float, float]:
    """The x and z components of the horizontal direction to the right of `a` (its y component is
    0).
    """
    flat = math.sqrt(a[0] * a[0] + a[2] * a[2])
    if flat < 1e-9:
        return 1.0, 0.0
    return a[2] / flat, -a[0] / flat


@compiled
def step(a: Triple, right_deg: float, down_deg: float) -> Triple:
    """Where one gets from `a` along the great circle that starts towards (right, down), as far as
    their length says.
    """
    length = math.sqrt(right_deg * right_deg + down_deg * down_deg)
    if length < 1e-12:
        return a
    rx, rz = right_of(a)
    # up = a x right, with right = (rx, 0, rz)
    ux, uy, uz = a[1] * rz, a[2] * rx - a[0] * rz, -a[1] * rx
    way = length * DEGREE
    if way < 0.01:
        # Nearly all steps are tiny, and the first terms of the series are exact to 1e-10 there.
        near, far = 1.0 - 0.5 * way * way, DEGREE * (1.0 - way * way / 6.0)
    else:
        near, far = math.cos(way), math.sin(way) / length
    r, u = far * right_deg, -far * down_deg
    return near * a[0] + r * rx + u * ux, near * a[1] + u * uy, near * a[2] + r * rz + u * uz


@compiled
def offset(a: Triple, b: Triple) -> tuple[float, float]:
    """The (right, down) degrees that :func:`step` needs to get from `a` to `b`."""
    rx, rz = right_of(a)
    ux, uy, uz = a[1] * rz, a[2] * rx - a[0] * rz, -a[1] * rx
    right = b[0] * rx + b[2] * rz
    up = b[0] * ux + b[1] * uy + b[2] * uz
    length = math.sqrt(right * right + up * up)
    if length < 1e-12:
        return 0.0, 0.0
    far = angle(a, b) / length
    return far * right, -far * up


@compiled
def displaced(a: Triple, share: float, start: Triple, end: Triple) -> Triple:
    """`a` displaced by a share of the way from `start` to `end`."""
    return unit(
        a[0] + share * (end[0] - start[0]),
        a[1] + share * (end[1] - start[1]),
        a[2] + share * (end[2] - start[2]),
    )


@compiled
def arc(a: Triple, b: Triple, share: float) -> Triple:
    """The direction a share of the way from `a` to `b` on their great circle."""
    whole = angle(a, b) * DEGREE
    if whole < 1e-6:
        return displaced(a, share, a, b)
    total = math.sin(whole)
    p, q = math.sin((1.0 - share) * whole) / total, math.sin(share * whole) / total
    return unit(p * a[0] + q * b[0], p * a[1] + q * b[1], p * a[2] + q * b[2])


@compiled
def turn(a: Triple, wx: float, wy: float, wz: float) -> Triple:
    """`a` turned by a small rotation vector (radians)."""
    return unit(
        a[0] + wy * a[2] - wz * a[1], a[1] + wz * a[0] - wx * a[2], a[2] + wx * a[1] - wy * a[0]
    )


@compiled
def to_degrees(v: Triple, sphere: bool) -> tuple[float, float]:
    """Degrees (x, y) of a direction on a sphere or a screen."""
    if sphere:
        x = math.atan2(v[0], v[2]) / DEGREE + 180.0
        y = 90.0 - math.atan2(v[1], math.sqrt(v[0] * v[0] + v[2] * v[2])) / DEGREE
        return (x if x < 360.0 else 0.0), min(y, LAST_Y_DEG)
    return math.atan(v[0] / v[2]) / DEGREE, math.atan(-v[1] / v[2]) / DEGREE


@compiled
def in_head(gaze: Triple, head: Triple, roll_deg: float) -> tuple[float, float]:
    """Tangent angles (right, down) of gaze in a head; the twin of geometry.eye_in_head."""
    tilt = roll_deg * DEGREE
    rx, rz = right_of(head)
    ux, uy, uz = head[1] * rz, head[2] * rx - head[0] * rz, -head[1] * rx
    right, up = gaze[0] * rx + gaze[2] * rz, gaze[0] * ux + gaze[1] * uy + gaze[2] * uz
    ahead = gaze[0] * head[0] + gaze[1] * head[1] + gaze[2] * head[2]
    if ahead <= 0.0:
        return math.nan, math.nan
    leaned_right = math.cos(tilt) * right - math.sin(tilt) * up
    leaned_up = math.cos(tilt) * up + math.sin(tilt) * right
    return math.atan(leaned_right / ahead) / DEGREE, math.atan(-leaned_up / ahead) / DEGREE


@compiled
def ornstein_uhlenbeck(dt_s: float, constant_s: float, deviation: float) -> tuple[float, float]:
    """The share of an Ornstein-Uhlenbeck process that is left after `dt_s`, and the deviation of
    what comes new.
    """
    kept = math.exp(-dt_s / constant_s)
    return kept, deviation * math.sqrt(1.0 - kept * kept)


PEAK_TO_MEAN = 1.875
SHORTEST_S = 0.008


@compiled
def peak_speed(amplitude_deg: float, v_max_deg_s: float, constant_deg: float) -> float:
    """Peak speed of the main sequence, degrees per second."""
    return v_max_deg_s * (1.0 - math.exp(-amplitude_deg / constant_deg))


@compiled
def duration(amplitude_deg: float, v_max_deg_s: float, constant_deg: float, skew: float) -> float:
    """Seconds a saccade of this size takes."""
    if amplitude_deg < 1e-6:
        return SHORTEST_S
    return max(
        SHORTEST_S,
        PEAK_TO_MEAN
        * (1.0 + 0.5 * skew * skew)
        * amplitude_deg
        / peak_speed(amplitude_deg, v_max_deg_s, constant_deg),
    )


@compiled
def share(u: float, skew: float) -> float:
    """Share of the way covered at share `u` of the time; `skew` in (-1, 1), positive for an early
    peak.
    """
    if u <= 0.0:
        return 0.0
    if u >= 1.0:
        return 1.0
    w = u + skew * u * (1.0 - u)
    return w * w * w * (10.0 - 15.0 * w + 6.0 * w * w)


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
