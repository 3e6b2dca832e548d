"""The compiled measures of all events of one recording at once.

Geometry. Each event is measured in a plane of its own: y in degrees downwards, x in degrees to the
right. On a sphere x is the unwrapped longitude times the cosine of the event's mean latitude, so
that a degree is a degree of visual angle both ways and nothing depends on where longitude 0 lies.
Steps, amplitude and distances are true visual angles (great circle on the sphere, angle at the eye
on a screen). Velocities are previous minus next, times the nominal rate (divided by the samples in
between where some are lost); accelerations are first differences of velocities times the rate;
directions are atan2(dx, dy), 0 downwards.

Series that do not vary (standard deviation at most 1e-9 deg times the rate to the power of the
derivative) have skewness and kurtosis 0, so every measure is finite.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled

#: Fewer valid samples than this give no features: an acceleration needs three, its spread four.
LEAST_SAMPLES = 4

#: Positions finer than this are rounding, in degrees.
FLAT_DEG = 1e-9

#: Columns of the first array `measure_events` returns.
SCALARS = (
    "duration",
    "std_x",
    "std_y",
    "path_len",
    "angle_prev",
    "dist_prev",
    "skew_x",
    "skew_y",
    "kurt_x",
    "kurt_y",
    "dispersion",
    "avg_vel",
    "saccadic_ratio",
    "saccade_angle",
    "amplitude",
)

#: Series of the second array, six statistics each.
SERIES = ("ang_vel", "ang_acc", "vel_x", "vel_y", "acc_x", "acc_y")


@compiled
def _moments(v: Floats, n: int, flat: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation (ddof 0), skewness, excess kurtosis of v[:n]."""
    mean = 0.0
    for i in range(n):
        mean += v[i]
    mean /= n
    m2 = m3 = m4 = 0.0
    for i in range(n):
        d = v[i] - mean
        dd = d * d
        m2 += dd
        m3 += dd * d
        m4 += dd * dd
    m2 /= n
    std = math.sqrt(m2)
    if std <= flat:
        return mean, std, 0.0, 0.0
    return mean, std, m3 / n / (m2 * std), m4 / n / (m2 * m2) - 3.0


@compiled
def _select(v: Floats, n: int, k: int) -> float:
    """The k-th smallest of v[:n] (from 0), which is reordered so that smaller
    ones stand before it.
    """
    lo, hi = 0, n - 1
    while lo < hi:
        a, b, c = v[lo], v[(lo + hi) // 2], v[hi]
        pivot = max(min(a, b), min(max(a, b), c))  # the middle of three splits more evenly
        # Every value changes places with the first that is not smaller, also with itself. A test
        # before would cost more, because its branch is unpredictable on noise.
        j = lo
        for i in range(lo, hi + 1):
            value = v[i]
            v[i], v[j] = v[j], value
            j += int(value < pivot)
        if k < j:
            hi = j - 1
        elif j > lo:
            lo = j
        else:  # nothing is smaller: those equal to the pivot come first
            for i in range(lo, hi + 1):
                value = v[i]
                v[i], v[j] = v[j], value
                j += int(value <= pivot)
            if k < j:
                break
            lo = j
    return float(v[k])


@compiled
def median_in_place(v: Floats) -> float:
    """The median of at least one value, none of them NaN; the values are reordered.

    As numpy.median, which takes several times as long.
    """
    n = len(v)
    median = _select(v, n, n // 2)
    if n % 2 == 0:
        # What stands before the upper middle is at most it; the lower middle is the largest of
        # that.
        below = v[0]
        for i in range(1, n // 2):
            below = max(below, v[i])
        median = (below + median) / 2
    return median


@compiled
def _statistics(v: Floats, n: int, flat: float, scratch: Floats, out: Floats, at: int) -> None:
    """Mean, median, max, standard deviation, skewness, kurtosis of v[:n] into out[at:at + 6]."""
    mean, std, skew, kurt = _moments(v, n, flat)
    top = v[0]
    for i in range(n):
        scratch[i] = v[i]
        top = max(top, v[i])
    median = median_in_place(scratch[:n])
    out[at] = mean
    out[at + 1] = median
    out[at + 2] = top
    out[at + 3] = std
    out[at + 4] = skew
    out[at + 5] = kurt


@compiled
def _angle(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> float:
    """Angle in degrees between unit vectors, exact near 0 and near 180 (Kahan)."""
    square = (ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2
    minus = math.sqrt(square)
    if minus < 0.02:
        # 2 asin(chord / 2) as a series: the next term is below double precision, and steps of gaze
        # are nearly always this small.
        return math.degrees(
            minus * (1.0 + square * (1.0 / 24.0 + square * (3.0 / 640.0 + square * (5.0 / 7168.0))))
        )
    plus = math.sqrt((ax + bx) ** 2 + (ay + by) ** 2 + (az + bz) ** 2)
    return math.degrees(2.0 * math.atan2(minus, plus))


@compiled
def _gather(
    x: Floats,
    y: Floats,
    valid: Bools,
    sphere: bool,
    a: int,
    b: int,
    at: Ints,
    px: Floats,
    py: Floats,
    u: Floats,
) -> int:
    """Valid samples a to b: their indices, places in the event's plane relative to the first, and
    unit vectors; returns how many.
    """
    n = 0
    lon = lat_sum = 0.0
    for i in range(a, b + 1):
        if not valid[i]:
            continue
        at[n] = i
        if sphere:
            if n > 0:
                step = x[i] - x[at[n - 1]]
                lon += step - 360.0 * np.rint(step / 360.0)
            px[n] = lon
            lat = math.radians(90.0 - y[i])
            # Only differences of longitude matter: taken from the first sample they lose no digits.
            turn = math.radians(lon)
            flat = math.cos(lat)
            u[n, 0] = flat * math.sin(turn)
            u[n, 1] = math.sin(lat)
            u[n, 2] = flat * math.cos(turn)
            lat_sum += lat
        else:
            px[n] = x[i] - x[at[0]]
            right, down = math.tan(math.radians(x[i])), math.tan(math.radians(y[i]))
            norm = math.sqrt(right * right + down * down + 1.0)
            u[n, 0] = right / norm
            u[n, 1] = -down / norm
            u[n, 2] = 1.0 / norm
        py[n] = y[i] - y[at[0]]
        n += 1
    if sphere and n > 0:
        scale = math.cos(lat_sum / n)
        for i in range(n):
            px[i] *= scale
    return n


@compiled
def _steps(
    at: Ints,
    px: Floats,
    py: Floats,
    u: Floats,
    n: int,
    rate_hz: float,
    vel: Floats,
    vx: Floats,
    vy: Floats,
) -> tuple[float, float, float, float, float, float]:
    """Velocities between n successive samples into vel, vx and vy; returns the length of the path,
    the dispersion, the largest velocity and the centroid (a unit vector).
    """
    path = top = 0.0
    cx, cy, cz = u[0, 0], u[0, 1], u[0, 2]
    lo_x = hi_x = px[0]
    lo_y = hi_y = py[0]
    for i in range(1, n):
        step = _angle(u[i - 1, 0], u[i - 1, 1], u[i - 1, 2], u[i, 0], u[i, 1], u[i, 2])
        path += step
        per_s = rate_hz / (at[i] - at[i - 1])
        vel[i - 1] = step * per_s
        vx[i - 1] = (px[i - 1] - px[i]) * per_s
        vy[i - 1] = (py[i - 1] - py[i]) * per_s
        top = max(top, vel[i - 1])
        cx += u[i, 0]
        cy += u[i, 1]
        cz += u[i, 2]
        lo_x, hi_x = min(lo_x, px[i]), max(hi_x, px[i])
        lo_y, hi_y = min(lo_y, py[i]), max(hi_y, py[i])
    norm = math.sqrt(cx * cx + cy * cy + cz * cz)
    if norm > 0.0:
        cx, cy, cz = cx / norm, cy / norm, cz / norm
    return path, (hi_x - lo_x) + (hi_y - lo_y), top, cx, cy, cz


@compiled
def _direction(dx: float, dy: float) -> float:
    """Direction of a movement in degrees, 0 downwards; movements finer than rounding count as
    none.
    """
    return math.degrees(
        math.atan2(0.0 if abs(dx) <= FLAT_DEG else dx, 0.0 if abs(dy) <= FLAT_DEG else dy)
    )


@compiled
def _distance_from(last: Floats, first_lon: float, cx: float, cy: float, cz: float) -> float:
    """Angle in degrees between two centroids, each taken with the first sample of its event at
    longitude 0: the former one is turned into the frame of the latter.
    """
    turn = math.radians(last[0] - first_lon)
    qx = last[1] * math.cos(turn) + last[3] * math.sin(turn)
    qz = last[3] * math.cos(turn) - last[1] * math.sin(turn)
    return _angle(cx, cy, cz, qx, last[2], qz)


@compiled
def _series_statistics(
    velocities: tuple[Floats, Floats, Floats],
    n: int,
    rate_hz: float,
    acceleration: Floats,
    scratch: Floats,
    out: Floats,
) -> None:
    """Statistics of :data:`SERIES` of n samples, from angular, horizontal and vertical velocity."""
    flat1, flat2 = FLAT_DEG * rate_hz, FLAT_DEG * rate_hz * rate_hz
    # Places of velocity and acceleration in a row, in the order of SERIES.
    places = ((0, 6), (12, 24), (18, 30))
    for k in range(3):
        velocity = velocities[k]
        _statistics(velocity, n - 1, flat1, scratch, out, places[k][0])
        for i in range(n - 2):
            acceleration[i] = (velocity[i + 1] - velocity[i]) * rate_hz
        _statistics(acceleration, n - 2, flat2, scratch, out, places[k][1])


@compiled
def measure_events(
    x: Floats,
    y: Floats,
    valid: Bools,
    sphere: bool,
    rate_hz: float,
    onset: Ints,
    offset: Ints,
    kind: Ints,
    with_series: bool,
) -> tuple[Floats, Floats, Ints]:
    """Measure events; `kind` tells which of them follow each other (any small numbers from 0).

    Returns
    -------
    scalars : array, shape (events, 15)
        Columns :data:`SCALARS`.
    statistics : array, shape (events, 36), or (0, 36) without series
        Six statistics of each of :data:`SERIES`.
    samples : array of int64, shape (events,)
        Valid samples of each event; with fewer than :data:`LEAST_SAMPLES` its row is 0.
    """
    events = len(onset)
    scalars = np.zeros((events, 15))
    statistics = np.zeros((events if with_series else 0, 36))
    samples = np.zeros(events, dtype=np.int64)
    longest = kinds = 1
    for e in range(events):
        longest = max(longest, offset[e] - onset[e] + 1)
        kinds = max(kinds, kind[e] + 1)
    at = np.empty(longest, dtype=np.int64)
    px, py, u = np.empty(longest), np.empty(longest), np.empty((longest, 3))
    vel, vx, vy = np.empty(longest), np.empty(longest), np.empty(longest)
    acceleration, scratch = np.empty(longest), np.empty(longest)
    # Centroid (longitude of the first sample and a unit vector from there) and direction of the
    # last event of each kind.
    last = np.zeros((kinds, 5))
    seen = np.zeros(kinds, dtype=np.bool_)
    for e in range(events):
        n = _gather(x, y, valid, sphere, onset[e], offset[e], at, px, py, u)
        samples[e] = n
        if n < LEAST_SAMPLES:
            continue
        out, previous = scalars[e], last[kind[e]]
        duration = (offset[e] - onset[e] + 1) / rate_hz
        path, dispersion, top, cx, cy, cz = _steps(at, px, py, u, n, rate_hz, vel, vx, vy)
        direction = _direction(px[n - 1], py[n - 1])
        first_lon = x[at[0]] if sphere else 0.0
        if seen[kind[e]]:
            out[4] = direction - previous[4]
            out[5] = _distance_from(previous, first_lon, cx, cy, cz)
        seen[kind[e]] = True
        previous[0], previous[1], previous[2] = first_lon, cx, cy
        previous[3], previous[4] = cz, direction
        out[0] = duration
        _, out[1], out[6], out[8] = _moments(px, n, FLAT_DEG)
        _, out[2], out[7], out[9] = _moments(py, n, FLAT_DEG)
        out[3] = path
        out[10] = dispersion
        out[11] = path / duration
        out[12] = top / duration
        out[13] = direction
        out[14] = _angle(u[0, 0], u[0, 1], u[0, 2], u[n - 1, 0], u[n - 1, 1], u[n - 1, 2])
        if with_series:
            _series_statistics((vel, vx, vy), n, rate_hz, acceleration, scratch, statistics[e])
    return scalars, statistics, samples


@compiled
def variances_in_events(
    x: Floats, y: Floats, valid: Bools, sphere: bool, onset: Ints, offset: Ints
) -> Floats:
    """Variances (ddof 0) of x and y in each event's plane, shape (events, 2); NaN where no sample
    is valid.
    """
    out = np.full((len(onset), 2), np.nan)
    longest = 1
    for e in range(len(onset)):
        longest = max(longest, offset[e] - onset[e] + 1)
    at = np.empty(longest, dtype=np.int64)
    px, py, u = np.empty(longest), np.empty(longest), np.empty((longest, 3))
    for e in range(len(onset)):
        n = _gather(x, y, valid, sphere, onset[e], offset[e], at, px, py, u)
        if n > 0:
            out[e, 0] = _moments(px, n, FLAT_DEG)[1] ** 2
            out[e, 1] = _moments(py, n, FLAT_DEG)[1] ** 2
    return out


@compiled
def jumps_of_events(
    x: Floats, y: Floats, valid: Bools, sphere: bool, onset: Ints, offset: Ints
) -> Floats:
    """Visual angle, x and y (right and down, deg) from the sample before each event to its last
    one; NaN where no sample is valid.

    The sample before is where the eye still stood, so a saccade that a slow tracker saw in one
    sample has a size too. Where that sample is lost the event's own first one stands in.
    """
    out = np.full((len(onset), 3), np.nan)
    at = np.empty(2, dtype=np.int64)
    px, py, u = np.empty(2), np.empty(2), np.empty((2, 3))
    for e in range(len(onset)):
        a, b = onset[e], offset[e]
        while a <= b and not valid[a]:
            a += 1
        while b > a and not valid[b]:
            b -= 1
        if a > b:
            continue
        if a == onset[e] and a > 0 and valid[a - 1]:
            a -= 1
        _gather(x, y, valid, sphere, a, a, at[:1], px[:1], py[:1], u[:1])
        _gather(x, y, valid, sphere, b, b, at[1:], px[1:], py[1:], u[1:])
        dx, dy = x[b] - x[a], y[b] - y[a]
        if sphere:
            dx -= 360.0 * np.rint(dx / 360.0)
            # Both vectors were made with their own longitude as 0: turn the second one by the
            # difference.
            turn = math.radians(dx)
            u[1, 0], u[1, 2] = u[1, 2] * math.sin(turn), u[1, 2] * math.cos(turn)
            dx *= math.cos(math.radians(90.0 - (y[a] + y[b]) / 2))
        out[e, 0] = _angle(u[0, 0], u[0, 1], u[0, 2], u[1, 0], u[1, 1], u[1, 2])
        out[e, 1] = dx
        out[e, 2] = dy
    return out


@compiled
def pupil_in_events(pupil: Floats, onset: Ints, offset: Ints) -> Floats:
    """Mean and variance (ddof 0) of the finite pupil samples of each event, shape (events, 2); NaN
    where there is none.
    """
    out = np.full((len(onset), 2), np.nan)
    for e in range(len(onset)):
        n, total = 0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if math.isfinite(pupil[i]):
                n += 1
                total += pupil[i]
        if n == 0:
            continue
        mean = total / n
        square = 0.0
        for i in range(onset[e], offset[e] + 1):
            if math.isfinite(pupil[i]):
                square += (pupil[i] - mean) ** 2
        out[e, 0] = mean
        out[e, 1] = square / n
    return out
