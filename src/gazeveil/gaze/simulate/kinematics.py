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
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import LAST_Y_DEG

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
