"""A recording as its events: fixations as normals, saccades as Gaussian speed profiles (main paper
of David-John et al. 2023).

A *fixation* is (mu_x, mu_y, sigma_x, sigma_y, samples): the mean direction of its samples in
degrees of the space, and their standard deviations in degrees along x and along y around it. A
*saccade* is (a, b, c, samples): its speed is a * exp(-((t - b) / c)**2) deg/s at the share t of its
own time (see :mod:`gazeveil.privacy.synthesis.profiles`).

:func:`motion` takes a recording apart, :mod:`gazeveil.privacy.synthesis.rendering` draws samples
again. On a sphere deviations are taken in the plane that touches it at the place (lengths and
bearings from the place are kept), so nothing special happens at 0/360 or at the poles. On a screen
degrees are taken as they are.

Recordings drawn from the events of a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

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
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.randomness.supply import MasterKey
from gazeveil.privacy.synthesis.profiles import fit_profiles, speed_profiles

#: Smallest standard deviation of a fixation in degrees, so that its normal is one: the half-width
#: of David-John et al.'s (2023) probabilities of a sample.
LEAST_SPREAD_DEG = 0.01

#: Columns of :attr:`Motion.fixations` and of :attr:`Motion.saccades`.
FIXATION_COLUMNS = ("mu_x_deg", "mu_y_deg", "sigma_x_deg", "sigma_y_deg", "samples")
SACCADE_COLUMNS = ("a_deg_s", "b", "c", "samples")


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
