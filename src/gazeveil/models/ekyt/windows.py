"""What the network is given: velocities on a regular grid of times, in deg/s.

Positions become unit vectors (on a sphere) or angles (on a screen), are averaged over as many
samples as fit into one step of the grid, and interpolated onto it; their derivative is
Savitzky-Golay's with a window of 7 and order 2, as in Lohr and Komogortsev 2022. Where a sample of
the 7 is lost, or lies in a gap of the clock, the velocity is not known (NaN).

Velocities of many recordings lie end to end in one array, with the places where windows may begin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Singles, Texts
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey

#: Signals by name, with how many velocities each has.
CHANNELS = {"gaze": 2, "head": 2, "gaze+head": 4}

#: Faster than any eye; such velocities count as this much (deg/s).
MOST_DEG_S = 1000.0

#: Longest step between two samples that is interpolated, in seconds; never less than 1.5 of the
#: recording's own steps.
LONGEST_STEP_S = 0.075

#: Savitzky-Golay's half window.
_HALF = 3


@dataclass(frozen=True)
class VelocityInput:
    """How recordings become the network's input; public, so that both sides use the same.

    Parameters
    ----------
    rate_hz : float
        Rate of the grid.
    window_s : float
        Seconds of one window.
    channels : str
        One of :data:`CHANNELS`.

    Examples
    --------
    >>> VelocityInput(125.0).samples, VelocityInput(125.0, channels="gaze+head").count
    (625, 4)
    """

    rate_hz: float
    window_s: float = 5.0
    channels: str = "gaze"

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "rate_hz", checks.positive("VelocityInput", "rate_hz", self.rate_hz))
        store(self, "window_s", checks.positive("VelocityInput", "window_s", self.window_s))
        checks.one_of("VelocityInput", "channels", self.channels, CHANNELS)
        if self.samples < 2 * _HALF + 1:
            checks.refuse(
                "VelocityInput",
                "window_s",
                f"at least {(2 * _HALF + 1) / self.rate_hz:.3g} s at {self.rate_hz:g} Hz",
                self.window_s,
            )

    @property
    def samples(self) -> int:
        """Samples of one window."""
        return round(self.rate_hz * self.window_s)

    @property
    def count(self) -> int:
        """Velocities of one sample."""
        return CHANNELS[self.channels]


def common_rate_hz(recordings: Iterable[Recording], most_hz: float) -> float:
    """The rate that all recordings can be brought to: the lowest of theirs, at most `most_hz`.

    Raises
    ------
    DataError
        Where a recording has no rate, or one that is too low to have velocities.
    """
    rate = most_hz
    for recording in recordings:
        if not (math.isfinite(recording.rate_hz) and recording.rate_hz > 0):
            raise DataError(
                f"The rate of {recording.title} is not known, so it has no velocities. Leave it"
                " out, or give recordings of at least two samples."
            )
        rate = min(rate, recording.rate_hz)
    return rate


def velocities(recording: Recording, setting: VelocityInput) -> Floats:
    """Velocities of a recording, shape (channels, samples), in deg/s; NaN where not known.

    Raises
    ------
    DataError
        Where head velocities are asked for and the recording has no head direction.
    """
    parts = []
    if setting.channels != "head":
        parts.append(_of(recording, recording.space, _gaze(recording), setting.rate_hz))
    if setting.channels != "gaze":
        if recording.head_deg is None:
            raise DataError(
                f"channels={setting.channels} needs the direction of the head, and"
                f" {recording.title} has none. Use channels=gaze, or a release that keeps"
                " head_deg."
            )
        parts.append(_of(recording, Sphere(), recording.head_deg[:, :2], setting.rate_hz))
    length = min(p.shape[1] for p in parts)
    return np.concatenate([p[:, :length] for p in parts])


def _gaze(recording: Recording) -> Floats:
    place = np.stack((recording.x_deg, recording.y_deg), axis=1)
    return np.where(recording.valid[:, None], place, np.nan)


def _of(recording: Recording, space: Space, place_deg: Floats, rate_hz: float) -> Floats:
    """Velocities right and down of a place in degrees."""
    sphere = isinstance(space, Sphere)
    positions = space.vectors(place_deg[:, 0], place_deg[:, 1]) if sphere else place_deg
    grid = _on_grid(recording.t_ns, positions, recording.rate_hz, rate_hz)
    change = _derivative(grid, rate_hz)
    if not sphere:
        return np.clip(change.T, -MOST_DEG_S, MOST_DEG_S)
    x, y = space.degrees(grid)
    # The derivatives of a direction by its two angles are directions a right angle away.
    right, down = space.vectors(x + 90.0, np.full(len(x), 90.0)), space.vectors(x, y + 90.0)
    both = np.stack([(change * right).sum(axis=1), (change * down).sum(axis=1)])
    return np.clip(np.degrees(both), -MOST_DEG_S, MOST_DEG_S)


def _on_grid(t_ns: Ints, positions: Floats, own_hz: float, rate_hz: float) -> Floats:
    """Positions at regular times, NaN in gaps; one row per step from the first to the last."""
    known = np.flatnonzero(np.isfinite(positions).all(axis=1))
    # Clocks of lost samples may stand still or go back.
    known = known[_first_of_each(t_ns[known])]
    first, last = (int(t_ns.min()), int(t_ns.max())) if len(t_ns) else (0, 0)
    steps = int((last - first) * rate_hz / 1e9 + 1e-6) + 1
    if len(known) < 2:
        return np.full((steps, positions.shape[1]), np.nan)
    at, t = np.arange(steps) / rate_hz, (t_ns[known] - first) / 1e9
    smooth = _averaged(positions[known], max(1, int(own_hz / rate_hz + 1e-6)))
    result = np.stack([np.interp(at, t, column) for column in smooth.T], axis=1)
    after = np.clip(np.searchsorted(t, at - 1e-9), 1, len(t) - 1)
    exact = np.abs(t[after] - at) < 1e-9
    wide = t[after] - t[after - 1] > max(LONGEST_STEP_S, 1.5 / own_hz)
    # A lost sample between two known ones is a gap too, however short.
    lost = known[after] - known[after - 1] > 1
    outside = (at < t[0] - 1e-9) | (at > t[-1] + 1e-9)
    result[((wide | lost) & ~exact) | outside] = np.nan
    return result


def _first_of_each(t_ns: Ints) -> Bools:
    latest = np.maximum.accumulate(t_ns) if len(t_ns) else t_ns
    return np.diff(latest, prepend=np.int64(np.iinfo(np.int64).min // 2)) > 0


def _averaged(values: Floats, width: int) -> Floats:
    """Means over `width` rows around each row: a grid of a lower rate keeps the noise of a mean,
    not that of single samples.
    """
    if width < 2:
        return values
    from scipy.ndimage import uniform_filter1d

    result: Floats = uniform_filter1d(values, width, axis=0, mode="nearest")
    return result


def _derivative(values: Floats, rate_hz: float) -> Floats:
    """Savitzky-Golay's first derivative (window 7, order 2), NaN at the edges and beside NaN."""
    result = np.full(values.shape, np.nan)
    inner = len(values) - 2 * _HALF
    if inner < 1:
        return result
    squares = 2 * sum(k * k for k in range(1, _HALF + 1))
    total = np.zeros((inner, values.shape[1]))
    for k in range(-_HALF, _HALF + 1):
        total += k * values[_HALF + k : _HALF + k + inner]
    result[_HALF : _HALF + inner] = total * (rate_hz / squares)
    return result


#: Largest share of a window that may be lost.
MOST_LOST = 0.5


@dataclass(frozen=True, eq=False)
class VelocityScale:
    """Mean and deviation of velocities of the training side, one of each per signal.

    Parameters
    ----------
    mean, deviation : array of float64, shape (channels,)
        In deg/s.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, values: Floats) -> VelocityScale:
        """Of velocities of shape (channels, samples), NaN left out; x and y of a signal share
        theirs.
        """
        mean, deviation = np.zeros(len(values)), np.ones(len(values))
        for pair in range(0, len(values), 2):
            known = values[pair : pair + 2][np.isfinite(values[pair : pair + 2])]
            if len(known):
                mean[pair : pair + 2] = known.mean()
                deviation[pair : pair + 2] = max(float(known.std()), 1e-9)
        return cls(mean, deviation)

    def apply(self, values: Floats) -> Singles:
        """Standardised velocities; what is not known counts as the mean."""
        z = (values - self.mean[:, None]) / self.deviation[:, None]
        return np.nan_to_num(z, nan=0.0).astype(np.float32)


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Velocities of recordings, one after the other, and their windows.

    Parameters
    ----------
    keys : tuple of RecordingKey
        The recordings, in order.
    lengths : array of int64, shape (recordings,)
        Samples of each.
    values : array of float64, shape (channels, samples)
        Velocities in deg/s, NaN where not known; a recording shorter than a window is filled up
        with NaN.
    starts : array of int64, shape (windows,)
        First sample of every window that is known for more than half of its time, at every sample
        where one may begin.
    owner : array of int64, shape (windows,)
        Recording of each window.
    setting : VelocityInput
        How they were made.
    """

    keys: tuple[RecordingKey, ...]
    lengths: Ints
    values: Floats
    starts: Ints
    owner: Ints
    setting: VelocityInput

    @classmethod
    def of(cls, recordings: Iterable[Recording], setting: VelocityInput) -> WindowSet:
        """The windows of recordings."""
        keys: list[RecordingKey] = []
        parts: list[Floats] = []
        for recording in recordings:
            keys.append(recording.key)
            parts.append(_at_least(velocities(recording, setting), setting.samples))
        lengths = np.array([part.shape[1] for part in parts], dtype=np.int64)
        nothing = np.empty((setting.count, 0))
        return cls.joined(keys, lengths, np.concatenate([nothing, *parts], axis=1), setting)

    @classmethod
    def joined(
        cls, keys: Sequence[RecordingKey], lengths: Ints, values: Floats, setting: VelocityInput
    ) -> WindowSet:
        """The windows of velocities that lie end to end already, `lengths` samples of each
        recording.
        """
        starts, owner = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        ends = np.cumsum(lengths)
        for i, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            part = values[:, end - length : end]
            begins = np.flatnonzero(usable(part, setting.samples))
            starts.append(begins + (end - length))
            owner.append(np.full(len(begins), i))
        return cls(
            tuple(keys),
            np.asarray(lengths, dtype=np.int64),
            values,
            np.concatenate(starts),
            np.concatenate(owner),
            setting,
        )

    def parts(self) -> list[Floats]:
        """Velocities of each recording."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1], axis=1)

    @property
    def persons(self) -> tuple[str, ...]:
        """Whose each window is."""
        return tuple(self.keys[i][0] for i in self.owner)

    def people(self) -> tuple[Texts, Ints]:
        """The people who have windows, sorted, and the person of each window counted so."""
        mine = np.array([key[0] for key in self.keys], dtype=np.str_)
        there = np.unique(self.owner)
        names, code = np.unique(mine[there], return_inverse=True)
        of_recording = np.zeros(len(mine), dtype=np.int64)
        of_recording[there] = code
        return names, of_recording[self.owner]

    def used(self) -> Floats:
        """Velocities of the recordings that have windows here, shape (channels, samples)."""
        there = np.zeros(len(self.keys), dtype=np.bool_)
        there[self.owner] = True
        return self.values[:, np.repeat(there, self.lengths)]

    def where(self, chosen: Callable[[RecordingKey], bool]) -> WindowSet:
        """The windows of the recordings that `chosen` says yes to; velocities are shared."""
        taken = np.array([chosen(key) for key in self.keys], dtype=np.bool_)
        return self.only(taken[self.owner] if len(taken) else np.zeros(0, dtype=np.bool_))

    def every(self, step_s: float) -> WindowSet:
        """The windows of each recording at least `step_s` apart, from its first one on."""
        step = max(1, round(step_s * self.setting.rate_hz))
        kept = np.zeros(len(self.starts), dtype=np.bool_)
        last_owner, last = -1, 0
        for i, (start, owner) in enumerate(zip(self.starts, self.owner, strict=True)):
            if owner != last_owner or start >= last + step:
                kept[i], last_owner, last = True, owner, start
        return self.only(kept)

    def only(self, chosen: Bools) -> WindowSet:
        """Some of the windows; velocities are shared."""
        return replace(self, starts=self.starts[chosen], owner=self.owner[chosen])


def usable(values: Floats, samples: int) -> Bools:
    """Whether a window that begins at each sample lies inside and is known for more than half of
    its time; shape (samples of the recording,).
    """
    length = values.shape[1]
    result = np.zeros(length, dtype=np.bool_)
    if length < samples:
        return result
    known = np.concatenate(([0], np.cumsum(np.isfinite(values).all(axis=0))))
    inside = known[samples:] - known[:-samples]
    result[: length - samples + 1] = inside > (1 - MOST_LOST) * samples
    return result


def _at_least(values: Floats, samples: int) -> Floats:
    short = samples - values.shape[1]
    return np.pad(values, ((0, 0), (0, max(0, short))), constant_values=np.nan)
