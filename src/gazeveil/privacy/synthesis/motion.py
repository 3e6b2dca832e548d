"""A recording as its events: fixations as normals, saccades as Gaussian speed profiles (main paper
of David-John et al. 2023), and samples drawn from them again.

A *fixation* is (mu_x, mu_y, sigma_x, sigma_y, samples): the mean direction of its samples in
degrees of the space, and their standard deviations in degrees along x and along y around it. A
*saccade* is (a, b, c, samples): its speed is a * exp(-((t - b) / c)**2) deg/s at the share t of its
own time (see :mod:`gazeveil.privacy.synthesis.profiles`).

:func:`motion` takes a recording apart, :func:`render` draws one. On a sphere everything happens
around the place itself: deviations are taken in the plane that touches the sphere there (lengths
and bearings from the place are kept), and saccades follow the great circle, so nothing special
happens at 0/360 or at the poles. On a screen degrees are taken as they are.

A rendered saccade goes from the last sample before it to the mean of the next fixation, and its
speed is scaled so that it arrives there: the sources leave this open. A saccade with no fixation
before or after it has no line to go along; its samples stay lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.events.trace import positions
from gazeveil.gaze.events import Events, read_only
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.synthesis.profiles import fit_profiles, speed_profiles

#: Smallest standard deviation of a fixation in degrees, so that its normal is one: the half-width
#: of David-John et al.'s (2023) probabilities of a sample.
LEAST_SPREAD_DEG = 0.01

#: Columns of :attr:`Motion.fixations` and of :attr:`Motion.saccades`.
FIXATION_COLUMNS = ("mu_x_deg", "mu_y_deg", "sigma_x_deg", "sigma_y_deg", "samples")
SACCADE_COLUMNS = ("a_deg_s", "b", "c", "samples")

#: Seconds over which samples of a fixation hang together in our own readings (see :func:`render`).
DRIFT_S = 0.02

_Y_LAST_DEG = float(np.nextafter(180.0, 0.0))

#: Angles of a screen stop short of 90 degrees.
SCREEN_LAST_DEG = 89.999


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
        :data:`FIXATION_COLUMNS`, in order of time.
    saccades : array of float64, shape (saccades, 4)
        :data:`SACCADE_COLUMNS`, in order of time.
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
    fixations: NDArray[np.float64] = field(repr=False)
    saccades: NDArray[np.float64] = field(repr=False)
    is_fixation: NDArray[np.bool_] = field(repr=False)
    onset: NDArray[np.int64] = field(repr=False)
    profiles: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 30)), repr=False)

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
    def counts(self) -> NDArray[np.int64]:
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
    known = np.zeros(len(events), dtype=np.bool_)
    known[looked], known[moved] = np.isfinite(places).all(axis=1), np.isfinite(curves).all(axis=1)
    return Motion(
        recording.space,
        recording.rate_hz,
        len(recording),
        fixations[known[looked]],
        saccades[known[moved]],
        looked[known],
        events.onset[known],
        profiles[known[moved]],
    )


def _measured(
    recording: Recording, onset: NDArray[np.int64], offset: NDArray[np.int64]
) -> NDArray[np.float64]:
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
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    valid: NDArray[np.bool_],
    onset: NDArray[np.int64],
    offset: NDArray[np.int64],
    least: float,
) -> NDArray[np.float64]:
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
        out[e, 0], out[e, 1], out[e, 2], out[e, 3] = (
            mx,
            my,
            max(math.sqrt(vx / n), least),
            max(math.sqrt(vy / n), least),
        )
    return out


@compiled
def _frame(
    x_deg: float, y_deg: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Sines and cosines of a place, and the products its axes need.

    The place is (clat slon, slat, clat clon), the axis of x (clon, 0, -slon) and the axis of y
    (slat slon, -clat, slat clon).
    """
    lon, lat = math.radians(x_deg - 180.0), math.radians(90.0 - y_deg)
    slon, clon, slat, clat = math.sin(lon), math.cos(lon), math.sin(lat), math.cos(lat)
    return slon, clon, slat, clat, clat * slon, clat * clon, slat * slon, slat * clon


@compiled
def _degrees(vx: float, vy: float, vz: float) -> tuple[float, float]:
    x = math.degrees(math.atan2(vx, vz)) + 180.0
    if x >= 360.0:
        x -= 360.0
    y = 90.0 - math.degrees(math.atan2(vy, math.hypot(vx, vz)))
    return max(x, 0.0), min(max(y, 0.0), _Y_LAST_DEG)


@compiled
def _on(degrees: float) -> float:
    """Angles of a screen stop short of 90 degrees."""
    return min(max(degrees, -SCREEN_LAST_DEG), SCREEN_LAST_DEG)


@compiled
def _on_sphere(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    valid: NDArray[np.bool_],
    onset: NDArray[np.int64],
    offset: NDArray[np.int64],
    least: float,
) -> NDArray[np.float64]:
    out = np.full((len(onset), 4), np.nan)
    unit = 180.0 / math.pi
    for e in range(len(onset)):
        n, sx, sy, sz = 0, 0.0, 0.0, 0.0
        for i in range(onset[e], offset[e] + 1):
            if valid[i]:
                n, sx, sy, sz = n + 1, sx + x[i], sy + y[i], sz + z[i]
        if n == 0 or sx * sx + sy * sy + sz * sz < 1e-18 * n:
            continue
        mx, my = _degrees(sx, sy, sz)
        slon, clon, slat, clat, px, pz, dx, dz = _frame(mx, my)
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
                su, sv, suu, svv = (
                    su + u * stretch,
                    sv + v * stretch,
                    suu + (u * stretch) ** 2,
                    svv + (v * stretch) ** 2,
                )
        out[e, 0], out[e, 1] = mx, my
        out[e, 2] = max(math.sqrt(max(suu / n - (su / n) ** 2, 0.0)), least)
        out[e, 3] = max(math.sqrt(max(svv / n - (sv / n) ** 2, 0.0)), least)
    return out


# --- samples from parameters
# --------------------------------------------------------------------------------------------------


@compiled
def _words(out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
    while done < len(out) and position < len(words):
        out[done] = np.int64(words[position])
        done += 1
        position += 1
    return done, position


@compiled
def _box_muller(bits: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    out = np.empty(len(bits))
    for i in range(0, len(bits), 2):
        # uniform on (0, 1] in steps of 2**-53, and a turn
        u = (float((bits[i] >> 11) & 0x1FFFFFFFFFFFFF) + 1.0) * 2.0**-53
        v = float((bits[i + 1] >> 11) & 0x1FFFFFFFFFFFFF) * 2.0**-53 * 2.0 * math.pi
        radius = math.sqrt(-2.0 * math.log(u))
        out[i], out[i + 1] = radius * math.cos(v), radius * math.sin(v)
    return out[:count]


def normals(count: int, words: Words) -> NDArray[np.float64]:
    """Standard normals from random words (Box and Muller), in floating point: for drawing samples
    from parameters that a proof already covers.

    Parameters
    ----------
    count : int
        How many.
    words : Words
        Random bits: the operating system's, or a test stream's.
    """
    return _box_muller(words.run(_words, count + count % 2, 1), count)


def render(
    motion: Motion, words: Words, profiles: NDArray[np.float64] | None = None, drift_s: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    x, y = np.full(motion.samples, np.nan), np.full(motion.samples, np.nan)
    kept = (
        math.exp(-1.0 / (drift_s * motion.rate_hz)) if drift_s > 0 and motion.rate_hz > 0 else 0.0
    )
    # a fixation that drifts begins with a place and a velocity
    drawn = normals(
        2 * int(motion.fixations[:, 4].sum() + (len(motion.fixations) if kept > 0 else 0)), words
    )
    shapes = (
        np.empty((0, 30)) if profiles is None else np.ascontiguousarray(profiles, dtype=np.float64)
    )
    render_motion(
        isinstance(motion.space, Sphere),
        motion.fixations,
        motion.saccades,
        motion.is_fixation,
        motion.onset,
        shapes,
        drawn,
        x,
        y,
        kept,
    )
    return x, y


@compiled
def _share(t: float, b: float, c: float) -> float:
    """Integral of the curve from 0 to t over that from 0 to 1."""
    before = math.erf(b / c)
    return (math.erf((t - b) / c) + before) / (math.erf((1.0 - b) / c) + before)


@compiled
def _shares(
    count: int, curve: NDArray[np.float64], profile: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
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
def render_motion(
    sphere: bool,
    fixations: NDArray[np.float64],
    saccades: NDArray[np.float64],
    is_fixation: NDArray[np.bool_],
    onset: NDArray[np.int64],
    profiles: NDArray[np.float64],
    drawn: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kept: float = 0.0,
) -> None:
    """Write the samples of fixations and saccades into `x` and `y`, in degrees."""
    n, f, s, at = len(x), 0, 0, 0
    has_place, hx, hy = False, 0.0, 0.0
    # Two filters p = kept p + fresh noise and z = kept z + (1 - kept) p, begun in their stationary
    # law: var p = 1, cov(p, z) = c, var z = scale**2.
    fresh, c = math.sqrt(1.0 - kept * kept), 1.0 / (1.0 + kept)
    scale = (
        math.sqrt(((1.0 - kept) ** 2 + 2.0 * kept * kept * (1.0 - kept) * c) / (1.0 - kept * kept))
        if kept > 0.0
        else 1.0
    )
    begin = c / scale
    rest = math.sqrt(max(1.0 - begin * begin, 0.0))
    zu, zv, pu, pv = 0.0, 0.0, 0.0, 0.0
    none = np.empty(0)
    for e in range(len(is_fixation)):
        if is_fixation[e]:
            row, count = fixations[f], int(fixations[f, 4])
            f += 1
            slon, clon, slat, clat, px, pz, dx, dz = _frame(row[0], row[1])
            for i in range(count):
                if kept == 0.0:
                    zu, zv = drawn[at], drawn[at + 1]
                    at += 2
                elif i == 0:
                    zu, zv = scale * drawn[at], scale * drawn[at + 1]
                    pu, pv = (
                        begin * drawn[at] + rest * drawn[at + 2],
                        begin * drawn[at + 1] + rest * drawn[at + 3],
                    )
                    at += 4
                else:
                    pu, pv = kept * pu + fresh * drawn[at], kept * pv + fresh * drawn[at + 1]
                    zu, zv = kept * zu + (1.0 - kept) * pu, kept * zv + (1.0 - kept) * pv
                    at += 2
                u, v = row[2] * zu / scale, row[3] * zv / scale
                if onset[e] + i >= n:
                    continue
                if sphere:
                    r = math.radians(math.hypot(u, v))
                    part = math.sin(r) / r * math.pi / 180.0 if r > 1e-12 else math.pi / 180.0
                    u, v, ahead = u * part, v * part, math.cos(r)
                    hx, hy = _degrees(
                        ahead * px + u * clon + v * dx,
                        ahead * slat - v * clat,
                        ahead * pz - u * slon + v * dz,
                    )
                else:
                    hx, hy = _on(row[0] + u), _on(row[1] + v)
                x[onset[e] + i], y[onset[e] + i] = hx, hy
                has_place = True
            continue
        count = int(saccades[s, 3])
        s += 1
        if not has_place or f >= len(fixations) or count < 1:
            continue
        shares = np.empty(count)
        _shares(count, saccades[s - 1], profiles[s - 1] if len(profiles) else none, shares)
        gx, gy = fixations[f, 0], fixations[f, 1]
        _, _, sl0, _, ax, az, _, _ = _frame(hx, hy)
        _, _, sl1, _, bx, bz, _, _ = _frame(gx, gy)
        cx, cy, cz = sl0 * bz - az * sl1, az * bx - ax * bz, ax * sl1 - sl0 * bx
        angle = math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), ax * bx + sl0 * sl1 + az * bz)
        lx, ly = hx, hy
        for i in range(count):
            if onset[e] + i >= n:
                break
            if sphere:
                # places that coincide or lie opposite one another have no one great circle between
                # them: one step half way
                if angle > 1e-9 and angle < math.pi - 1e-6:
                    p, q = math.sin((1.0 - shares[i]) * angle), math.sin(shares[i] * angle)
                    hx, hy = _degrees(p * ax + q * bx, p * sl0 + q * sl1, p * az + q * bz)
                else:
                    hx, hy = (lx, ly) if shares[i] < 0.5 else (gx, gy)
            else:
                hx, hy = lx + shares[i] * (gx - lx), ly + shares[i] * (gy - ly)
            x[onset[e] + i], y[onset[e] + i] = hx, hy
