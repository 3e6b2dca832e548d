"""Samples drawn from the fixations and saccades of a recording.

Fixation samples are normal about the fixation's mean. A saccade goes from the last sample before it
to the mean of the next fixation, along the line between them (on a sphere the great circle), and
its speed is scaled so that it arrives there: the sources leave this open. A saccade with no
fixation before or after it has no line to go along; its samples stay lost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.synthesis.motion import Motion, axes, to_degrees

#: Seconds over which samples of a fixation hang together in our own readings (see :func:`render`).
DRIFT_S = 0.02

#: Angles of a screen stop short of 90 degrees.
SCREEN_LAST_DEG = 89.999


@compiled
def _words(out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
    while done < len(out) and position < len(words):
        out[done] = np.int64(words[position])
        done += 1
        position += 1
    return done, position


@compiled
def _box_muller(bits: Ints, count: int) -> Floats:
    out = np.empty(len(bits))
    for i in range(0, len(bits), 2):
        # uniform on (0, 1] in steps of 2**-53, and a turn
        u = (float((bits[i] >> 11) & 0x1FFFFFFFFFFFFF) + 1.0) * 2.0**-53
        v = float((bits[i + 1] >> 11) & 0x1FFFFFFFFFFFFF) * 2.0**-53 * 2.0 * math.pi
        radius = math.sqrt(-2.0 * math.log(u))
        out[i], out[i + 1] = radius * math.cos(v), radius * math.sin(v)
    return out[:count]


def normals(count: int, words: Words) -> Floats:
    """`count` standard normals from random words (Box and Muller), in floating point: for drawing
    samples from parameters that a proof already covers.
    """
    return _box_muller(words.run(_words, count + count % 2, 1), count)


def render(
    motion: Motion, words: Words, profiles: Floats | None = None, drift_s: float = 0.0
) -> tuple[Floats, Floats]:
    """Samples drawn from the parameters of a recording's events.

    Fixation samples are independent draws of N(mu, diag sigma**2). A saccade's samples lie on the
    line (on a sphere the great circle) from the last sample before it to the mean of the next
    fixation; the share of the way at each sample is the integral of its speed up to there.

    Parameters
    ----------
    motion : Motion
        The events. Those that reach beyond the recording's length are cut off there.
    words : Words
        Random bits.
    profiles : array of float64, shape (saccades, 30), optional
        Speeds to use instead of the curves (a, b, c); negative ones count as 0, and one that never
        moves is even.
    drift_s : float
        How long samples of a fixation hang together: their correlation is about (1 + t / drift_s)
        exp(-t / drift_s) at a distance of t seconds, so that gaze drifts smoothly at speeds of
        about sigma / drift_s, at every rate. Each sample alone has the same law. 0 draws them
        independently, as the paper does; detectors take that for saccades where sigma is large or
        the rate is high.

    Returns
    -------
    x_deg, y_deg : arrays of float64, shape (samples,)
        NaN for samples in no event.
    """
    if profiles is not None and profiles.shape != (len(motion.saccades), 30):
        raise DataError(
            f"render needs one profile of 30 speeds for each of {len(motion.saccades)} saccades."
            f" Got shape {profiles.shape}."
        )
    kept = (
        math.exp(-1.0 / (drift_s * motion.rate_hz)) if drift_s > 0 and motion.rate_hz > 0 else 0.0
    )
    # a fixation that drifts begins with a place and a velocity
    count = motion.fixations[:, 4].sum() + (len(motion.fixations) if kept > 0 else 0)
    shapes = np.empty((0, 30)) if profiles is None else profiles
    return render_with(motion, normals(2 * int(count), words), shapes, kept)


def render_with(
    motion: Motion, drawn: Floats, profiles: Floats, persistence: float = 0.0
) -> tuple[Floats, Floats]:
    """Samples in degrees from normals that are drawn already, NaN in no event.

    Parameters
    ----------
    motion : Motion
        The events.
    drawn : array, shape (normals,)
        Two for each sample of a fixation. Two more for each fixation if `persistence` is above 0.
    profiles : array, shape (saccades, 30) or (0, 30)
        Speeds of saccades; without rows their curves are taken.
    persistence : float
        Share of a velocity that is left after one sample; 0 for independent samples.
    """
    x, y = np.full(motion.samples, np.nan), np.full(motion.samples, np.nan)
    _render(
        isinstance(motion.space, Sphere),
        motion.fixations,
        motion.saccades,
        motion.is_fixation,
        motion.onset,
        np.ascontiguousarray(profiles, dtype=np.float64),
        drawn,
        _drift(persistence),
        x,
        y,
    )
    return x, y


class _Drift(NamedTuple):
    """Two filters p = kept p + fresh noise and z = kept z + (1 - kept) p, begun in their stationary
    law: var p = 1, cov(p, z) = begin * scale, var z = scale**2.
    """

    kept: float
    fresh: float
    scale: float
    begin: float
    rest: float


def _drift(kept: float) -> _Drift:
    c = 1.0 / (1.0 + kept)
    scale = 1.0
    if kept > 0.0:
        variance = (1.0 - kept) ** 2 + 2.0 * kept * kept * (1.0 - kept) * c
        scale = math.sqrt(variance / (1.0 - kept * kept))
    begin = c / scale
    rest = math.sqrt(max(1.0 - begin * begin, 0.0))
    return _Drift(kept, math.sqrt(1.0 - kept * kept), scale, begin, rest)


@compiled
def _share(t: float, b: float, c: float) -> float:
    """Integral of the curve from 0 to t over that from 0 to 1."""
    before = math.erf(b / c)
    return (math.erf((t - b) / c) + before) / (math.erf((1.0 - b) / c) + before)


@compiled
def _shares(count: int, curve: Floats, profile: Floats, out: Floats) -> None:
    """Share of the way at samples 1 to count of a saccade; the last one has arrived."""
    total = 0.0
    for p in range(len(profile) - 1):
        total += 0.5 * (max(profile[p], 0.0) + max(profile[p + 1], 0.0))
    p, done = 0, 0.0
    for i in range(count):
        t = (i + 1.0) / count
        if len(profile) == 0:
            out[i] = _share(t, curve[1], curve[2])
        elif not total > 0.0:
            out[i] = t
        else:
            place = t * (len(profile) - 1)
            while p + 1.0 < place:
                done += 0.5 * (max(profile[p], 0.0) + max(profile[p + 1], 0.0))
                p += 1
            rest = place - p
            low, high = max(profile[p], 0.0), max(profile[p + 1], 0.0)
            out[i] = min((done + rest * (low + 0.5 * rest * (high - low))) / total, 1.0)


@compiled
def _on_screen(degrees: float) -> float:
    """Angles of a screen stop short of 90 degrees."""
    return min(max(degrees, -SCREEN_LAST_DEG), SCREEN_LAST_DEG)


@compiled
def _render_fixation(
    sphere: bool,
    row: Floats,
    begin: int,
    drawn: Floats,
    at: int,
    drift: _Drift,
    x: Floats,
    y: Floats,
) -> int:
    """Samples of one fixation, from its first one on; the place after the normals it took."""
    kept, scale = drift.kept, drift.scale
    zu, zv, pu, pv = 0.0, 0.0, 0.0, 0.0
    slon, clon, slat, clat, px, pz, dx, dz = axes(row[0], row[1])
    for i in range(begin, begin + int(row[4])):
        if kept == 0.0:
            zu, zv = drawn[at], drawn[at + 1]
        elif i == begin:
            zu, zv = scale * drawn[at], scale * drawn[at + 1]
            pu = drift.begin * drawn[at] + drift.rest * drawn[at + 2]
            pv = drift.begin * drawn[at + 1] + drift.rest * drawn[at + 3]
            at += 2
        else:
            pu, pv = kept * pu + drift.fresh * drawn[at], kept * pv + drift.fresh * drawn[at + 1]
            zu, zv = kept * zu + (1.0 - kept) * pu, kept * zv + (1.0 - kept) * pv
        at += 2
        u, v = row[2] * zu / scale, row[3] * zv / scale
        if i >= len(x):
            continue
        if sphere:
            r = math.radians(math.hypot(u, v))
            part = math.sin(r) / r * math.pi / 180.0 if r > 1e-12 else math.pi / 180.0
            u, v, ahead = u * part, v * part, math.cos(r)
            x[i], y[i] = to_degrees(
                ahead * px + u * clon + v * dx,
                ahead * slat - v * clat,
                ahead * pz - u * slon + v * dz,
            )
        else:
            x[i], y[i] = _on_screen(row[0] + u), _on_screen(row[1] + v)
    return at


@compiled
def _render_saccade(
    sphere: bool, last: int, goal: Floats, begin: int, shares: Floats, x: Floats, y: Floats
) -> None:
    """Samples of one saccade, from its first one on: from the sample `last` to the goal."""
    lx, ly, gx, gy = x[last], y[last], goal[0], goal[1]
    _, _, sl0, _, ax, az, _, _ = axes(lx, ly)
    _, _, sl1, _, bx, bz, _, _ = axes(gx, gy)
    cx, cy, cz = sl0 * bz - az * sl1, az * bx - ax * bz, ax * sl1 - sl0 * bx
    angle = math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), ax * bx + sl0 * sl1 + az * bz)
    for i in range(min(len(shares), len(x) - begin)):
        share = shares[i]
        if not sphere:
            x[begin + i], y[begin + i] = lx + share * (gx - lx), ly + share * (gy - ly)
        elif angle > 1e-9 and angle < math.pi - 1e-6:
            p, q = math.sin((1.0 - share) * angle), math.sin(share * angle)
            x[begin + i], y[begin + i] = to_degrees(
                p * ax + q * bx, p * sl0 + q * sl1, p * az + q * bz
            )
        else:
            # places that coincide or lie opposite one another have no one great circle between
            # them: one step half way
            x[begin + i], y[begin + i] = (lx, ly) if share < 0.5 else (gx, gy)


@compiled
def _render(
    sphere: bool,
    fixations: Floats,
    saccades: Floats,
    is_fixation: Bools,
    onset: Ints,
    profiles: Floats,
    drawn: Floats,
    drift: _Drift,
    x: Floats,
    y: Floats,
) -> None:
    f, s, at, last = 0, 0, 0, -1
    none = np.empty(0)
    for e in range(len(is_fixation)):
        begin = onset[e]
        if is_fixation[e]:
            at = _render_fixation(sphere, fixations[f], begin, drawn, at, drift, x, y)
            count = int(fixations[f, 4])
            f += 1
        else:
            count = int(saccades[s, 3])
            if last >= 0 and f < len(fixations) and count > 0:
                shares = np.empty(count)
                _shares(count, saccades[s], profiles[s] if len(profiles) else none, shares)
                _render_saccade(sphere, last, fixations[f], begin, shares, x, y)
            else:
                count = 0
            s += 1
        if count > 0 and begin < len(x):
            last = min(begin + count, len(x)) - 1
