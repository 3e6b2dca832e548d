"""A recording as its events: fixations as normals, saccades as Gaussian speed profiles (main paper
of David-John et al. 2023).

A *fixation* is (mu_x, mu_y, sigma_x, sigma_y, samples): the mean direction of its samples in
degrees of the space, and their standard deviations in degrees along x and along y around it. A
*saccade* is (a, b, c, samples): its speed is a * exp(-((t - b) / c)**2) deg/s at the share t of its
own time (see :mod:`gazeveil.privacy.synthesis.profiles`).

:func:`motion` takes a recording apart; :func:`drawn_recordings` draws samples again. On a sphere
deviations are taken in the plane that touches it at the place (lengths and bearings from the place
are kept), so nothing special happens at 0/360 or at the poles. On a screen degrees are taken as
they are.

Recordings drawn from the events of a release.

Samples drawn from the fixations and saccades of a recording.

Fixation samples are normal about the fixation's mean. A saccade goes from the last sample before it
to the mean of the next fixation, along the line between them (on a sphere the great circle), and
its speed is scaled so that it arrives there: the sources leave this open. A saccade with no
fixation before or after it has no line to go along; its samples stay lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.events.trace import positions
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import Events, read_only
from gazeveil.gaze.geometry import LAST_Y_DEG, Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.rng import Source, WordArray, Words
from gazeveil.privacy.randomness.supply import MasterKey
from gazeveil.privacy.synthesis.profiles import fit_profiles, speed_profiles

#: Smallest standard deviation of a fixation in degrees, so that its normal is one: the half-width
#: of David-John et al.'s (2023) probabilities of a sample.
LEAST_SPREAD_DEG = 0.01


@dataclass(frozen=True, eq=False)
class Motion:
    """Fixations and saccades of one recording, in order, and how many samples they lie in.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    rate_hz : float
        Samples per second; NaN where it is not known, and then there are no events.
    samples : int
        Length of the recording.
    fixations : array of float64, shape (fixations, 5)
        mu_x_deg, mu_y_deg, sigma_x_deg, sigma_y_deg and samples of each, in order of time.
    saccades : array of float64, shape (saccades, 4)
        a_deg_s, b, c and samples of each, in order of time.
    is_fixation : array of bool, shape (events,)
        The order of events: True stands for the next row of `fixations`, False for the next of
        `saccades`.
    onset : array of int64, shape (events,)
        First sample of each event. Samples in no event are lost ones.
    profiles : array of float64, shape (saccades, 30)
        Speeds of the saccades in deg/s at 30 points of their time; empty where only the curve is
        known.
    """

    space: Space
    rate_hz: float
    samples: int
    fixations: Floats = field(repr=False)
    saccades: Floats = field(repr=False)
    is_fixation: Bools = field(repr=False)
    onset: Ints = field(repr=False)
    profiles: Floats = field(default_factory=lambda: np.empty((0, 30)), repr=False)

    def __post_init__(self) -> None:
        for name, kind in (
            ("fixations", np.float64),
            ("saccades", np.float64),
            ("is_fixation", np.bool_),
            ("onset", np.int64),
            ("profiles", np.float64),
        ):
            object.__setattr__(
                self, name, read_only(np.ascontiguousarray(getattr(self, name), dtype=kind))
            )
        counts = (int(self.is_fixation.sum()), len(self.is_fixation) - int(self.is_fixation.sum()))
        if (
            self.fixations.shape != (counts[0], 5)
            or self.saccades.shape != (counts[1], 4)
            or self.onset.shape != self.is_fixation.shape
        ):
            raise DataError(
                f"A Motion of {counts[0]} fixations and {counts[1]} saccades needs one row of five"
                " or four values for each of them."
            )

    def __len__(self) -> int:
        return len(self.is_fixation)

    @property
    def counts(self) -> Ints:
        """Samples of each event, in order."""
        out = np.empty(len(self), dtype=np.int64)
        out[self.is_fixation] = self.fixations[:, 4].astype(np.int64)
        out[~self.is_fixation] = self.saccades[:, 3].astype(np.int64)
        return out

    @property
    def lost(self) -> int:
        """Samples in no event."""
        return self.samples - int(self.counts.sum())


def motion(recording: Recording, method: str = "ivt", **parameters: object) -> Motion:
    """The events of a recording as parameters.

    Parameters
    ----------
    recording : Recording
        Any space. One whose rate is not known, or with no samples, has no events.
    method : str
        A detector of :func:`gazeveil.detect`; by default `ivt` with the setting `george`, which
        finds fixations and saccades in turn.
    **parameters
        Of the detector.

    Examples
    --------
    >>> import gazeveil
    >>> recording = gazeveil.simulate(1, 1, seconds=10, rate_hz=250, seed=1)[0]
    >>> found = motion(recording)
    >>> found.samples == len(recording), found.fixations.shape[1], found.saccades.shape[1]
    (True, 5, 4)
    """
    if len(recording) == 0 or not recording.rate_hz > 0:
        return motion_of(recording, Events.empty())
    return motion_of(recording, detect(recording, method, **parameters))


def motion_of(recording: Recording, events: Events) -> Motion:
    """As :func:`motion`, with events that are known. Events of other kinds than fixation and
    saccade, and those with no valid sample, are left out.
    """
    looked, moved = events.kind == "fixation", events.kind == "saccade"
    places = _measured(recording, events.onset[looked], events.offset[looked])
    profiles = speed_profiles(recording, events.onset[moved], events.offset[moved])
    curves = fit_profiles(profiles)
    lengths = (events.offset - events.onset + 1).astype(np.float64)
    fixations = np.column_stack((places, lengths[looked]))
    saccades = np.column_stack((curves, lengths[moved]))
    usable = np.zeros(len(events), dtype=np.bool_)
    usable[looked], usable[moved] = np.isfinite(places).all(axis=1), np.isfinite(curves).all(axis=1)
    return Motion(
        recording.space,
        recording.rate_hz,
        len(recording),
        fixations[usable[looked]],
        saccades[usable[moved]],
        looked[usable],
        events.onset[usable],
        profiles[usable[moved]],
    )


def _measured(recording: Recording, onset: Ints, offset: Ints) -> Floats:
    """Mean direction and standard deviations of each event, shape (events, 4); NaN where no sample
    is valid.
    """
    onset, offset = np.ascontiguousarray(onset), np.ascontiguousarray(offset)
    if isinstance(recording.space, Sphere):
        x, y, z = positions(recording)
        return _on_sphere(x, y, z, recording.valid, onset, offset, LEAST_SPREAD_DEG)
    return _on_screen(
        recording.x_deg, recording.y_deg, recording.valid, onset, offset, LEAST_SPREAD_DEG
    )


@compiled
def _on_screen(
    x: Floats, y: Floats, valid: Bools, onset: Ints, offset: Ints, least: float
) -> Floats:
    out = np.full((len(onset), 4), np.nan)
    for e in range(len(onset)):
        n, sx, sy = 0, 0.0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if valid[i]:
                n, sx, sy = n + 1, sx + x[i], sy + y[i]
        if n == 0:
            continue
        mx, my, vx, vy = sx / n, sy / n, 0.0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if valid[i]:
                vx, vy = vx + (x[i] - mx) ** 2, vy + (y[i] - my) ** 2
        out[e, 0], out[e, 1] = mx, my
        out[e, 2], out[e, 3] = max(math.sqrt(vx / n), least), max(math.sqrt(vy / n), least)
    return out


@compiled
def axes(
    x_deg: float, y_deg: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Sines and cosines of a place on the sphere, and the products its axes need.

    The place is (clat slon, slat, clat clon), the axis of x (clon, 0, -slon) and the axis of y
    (slat slon, -clat, slat clon).
    """
    lon, lat = math.radians(x_deg - 180.0), math.radians(90.0 - y_deg)
    slon, clon, slat, clat = math.sin(lon), math.cos(lon), math.sin(lat), math.cos(lat)
    return slon, clon, slat, clat, clat * slon, clat * clon, slat * slon, slat * clon


@compiled
def to_degrees(vx: float, vy: float, vz: float) -> tuple[float, float]:
    """Degrees of a direction that need not have length 1."""
    x = math.degrees(math.atan2(vx, vz)) + 180.0
    if x >= 360.0:
        x -= 360.0
    y = 90.0 - math.degrees(math.atan2(vy, math.hypot(vx, vz)))
    return max(x, 0.0), min(max(y, 0.0), LAST_Y_DEG)


@compiled
def _on_sphere(
    x: Floats, y: Floats, z: Floats, valid: Bools, onset: Ints, offset: Ints, least: float
) -> Floats:
    out = np.full((len(onset), 4), np.nan)
    unit = 180.0 / math.pi
    for e in range(len(onset)):
        n, sx, sy, sz = 0, 0.0, 0.0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if valid[i]:
                n, sx, sy, sz = n + 1, sx + x[i], sy + y[i], sz + z[i]
        if n == 0 or sx * sx + sy * sy + sz * sz < 1e-18 * n:
            continue
        mx, my = to_degrees(sx, sy, sz)
        slon, clon, slat, clat, px, pz, dx, dz = axes(mx, my)
        su, sv, suu, svv = 0.0, 0.0, 0.0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if valid[i]:
                # coordinates along the two axes, stretched so that the distance from the place is
                # the angle
                u = (x[i] * clon - z[i] * slon) / unit
                v = (x[i] * dx - y[i] * clat + z[i] * dz) / unit
                ahead = (x[i] * px + y[i] * slat + z[i] * pz) / unit
                square = u * u + v * v
                # asin(s) / s by its series where that is exact to 1e-9: no arc functions for nearly
                # all samples
                if ahead > 0.0 and square < 0.0025:
                    stretch = unit * (1.0 + square * (1.0 / 6.0 + square * 0.075))
                else:
                    flat = math.sqrt(square)
                    stretch = unit * math.atan2(flat, ahead) / flat if flat > 1e-12 else unit
                u, v = u * stretch, v * stretch
                su, sv, suu, svv = su + u, sv + v, suu + u**2, svv + v**2
        out[e, 0], out[e, 1] = mx, my
        out[e, 2] = max(math.sqrt(max(suu / n - (su / n) ** 2, 0.0)), least)
        out[e, 3] = max(math.sqrt(max(svv / n - (sv / n) ** 2, 0.0)), least)
    return out


#: Random bits to samples in degrees.
Draw = Callable[[Words], tuple[Floats, Floats]]


def drawn_recordings(
    draws: Mapping[RecordingKey, tuple[Motion, Draw]],
    seed: int | None,
    names: tuple[str, ...],
    lazy: bool,
) -> list[Recording | Handle]:
    """Recordings in the order of `draws`, at once or, where lazy, each time they are loaded; the
    same each time. `names` say what the random bits are for.
    """
    master = MasterKey(seed)
    items: list[Recording | Handle] = []
    for key, (motion, draw) in draws.items():
        load = partial(_recording, key, motion, draw, partial(master.source, *names, *key))
        items.append(Handle(key[0], key[1], load, key[2], key[3]) if lazy else load())
    return items


def _recording(
    key: RecordingKey, motion: Motion, draw: Draw, bits: Callable[[], Source]
) -> Recording:
    x, y = draw(Words(bits()))
    person, stimulus, session, task = key
    period_ns = 1e9 / motion.rate_hz if motion.rate_hz > 0 else 1e7
    return Recording(
        person,
        stimulus,
        np.rint(np.arange(motion.samples) * period_ns).astype(np.int64),
        x,
        y,
        space=motion.space,
        rate_hz=motion.rate_hz,
        session=session,
        task=task,
    )


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
def _samples_on_screen(degrees: float) -> float:
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
            x[i], y[i] = _samples_on_screen(row[0] + u), _samples_on_screen(row[1] + v)
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
