"""What the network is given: velocities on a regular grid of times, in deg/s.

Positions become unit vectors (on a sphere) or angles (on a screen), are averaged over as many
samples as fit into one step of the grid, and interpolated onto it; their derivative is
Savitzky-Golay's with a window of 7 and order 2, as in Lohr and Komogortsev 2022. Where a sample of
the 7 is lost, or lies in a gap of the clock, the velocity is not known (NaN).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording

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
