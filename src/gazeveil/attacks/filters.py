"""The filters of denoisers, each fitted to the noise of the recording it is put on.

Every filter measures, in the samples it is given, how much white noise there is and how much the
eye moves, and filters accordingly: next to nothing on a clean recording, hard on a noisy one.

* The noise of one sample, sigma: with steps d_i = x_(i+1) - x_i of a path that wanders and has
  independent noise on every sample, var(d) = 2 sigma^2 + q and var(d_(i+1) - d_i) = 6 sigma^2 + 2
  q, so sigma^2 = (var of second - 2 var of first differences) / 2. Both are taken from medians, so
  that saccades do not count. Tracker noise that is filtered already, and steps of a grid, give 0.
* The movement, Q in deg^2/s: the mean squared step between averages over 0.5 s, less what the noise
  adds.
* Movement and noise have equal power at the frequency f = sqrt(Q rate) / (2 pi sigma) (a wandering
  path has the spectrum Q / (2 pi f)^2, the noise sigma^2 / rate): `lowpass` is a Gaussian kernel
  with this cut, `median` has a window of one over twice this cut, `kalman` is the Kalman filter and
  Rauch-Tung-Striebel smoother of a wandering path with these two numbers, `wiener` multiplies the
  spectrum by 1 - noise / observed.

On a sphere the coordinates of the unit vector are filtered and brought back to length one, so
nothing happens at 0/360 or at the poles. Lost samples stay lost; they are bridged for the filter
only, and gaps of more than 0.5 s are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import FILTERS
from gazeveil.compiled import compiled
from gazeveil.features.measure import median_in_place
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

#: Gaps longer than this, in seconds, end a stretch.
LONGEST_GAP_S = 0.5

_AVERAGE_S = 0.5
_LEAST_Q = 1.0  # deg^2/s; a path that does not move at all would be averaged over its whole length
_MAD = 0.6744897501960817  # median of |N(0, 1)|
_DEG = 180.0 / np.pi


@dataclass(frozen=True)
class NoiseLevel:
    """How noisy a recording is, along one axis.

    Parameters
    ----------
    sigma_deg : float
        Standard deviation of the independent noise of one sample.
    movement : float
        Mean squared movement in deg^2/s.
    rate_hz : float
        Samples per second.
    """

    sigma_deg: float
    movement: float
    rate_hz: float

    @property
    def cut_hz(self) -> float:
        """Where movement and noise have equal power; infinite without noise."""
        return (
            float("inf")
            if self.sigma_deg == 0
            else float(np.sqrt(self.movement * self.rate_hz) / (2 * np.pi * self.sigma_deg))
        )

    @property
    def clean(self) -> bool:
        """Whether the cut lies above what the rate can show, so that filtering would do nothing."""
        return not self.cut_hz < self.rate_hz / 2


def filtered(recording: Recording, denoiser: str) -> Recording:
    """One recording behind a denoiser; the same samples are valid, and a clean recording is given
    back as it is.
    """
    checks.one_of("filtered", "denoiser", denoiser, FILTERS)
    if denoiser == "none":
        return recording
    stretches = list(_stretches(recording))
    level = _level(recording.rate_hz, stretches)
    if level.clean:
        return recording
    x, y = recording.x_deg.copy(), recording.y_deg.copy()
    for rows, axes in stretches:
        smooth = [_filter(axis, denoiser, level) for axis in axes]
        here = rows.start + np.flatnonzero(recording.valid[rows])
        inside = here - rows.start
        if isinstance(recording.space, Sphere):
            new_x, new_y = recording.space.degrees(
                np.stack([axis[inside] for axis in smooth], axis=1)
            )
        else:
            new_x, new_y = smooth[0][inside], smooth[1][inside]
        # A mean of directions that cancel has none: there the sample stays as it was.
        finite = np.isfinite(new_x) & np.isfinite(new_y)
        x[here[finite]], y[here[finite]] = new_x[finite], new_y[finite]
    return recording.with_(x_deg=x, y_deg=y)


def noise_level(recording: Recording) -> NoiseLevel:
    """Independent noise and movement of a recording, measured in its own samples."""
    return _level(recording.rate_hz, list(_stretches(recording)))


# Rows of a stretch without a long gap, and its coordinates in degrees.
_Stretch = tuple[slice, list[Floats]]


def _level(rate: float, stretches: Sequence[_Stretch]) -> NoiseLevel:
    if not rate > 0:
        return NoiseLevel(0.0, _LEAST_Q, 1.0)
    first: list[list[Floats]] = []
    second: list[list[Floats]] = []
    coarse: list[Floats] = []
    block = max(1, round(_AVERAGE_S * rate))
    for _, axes in stretches:
        d1 = [np.diff(a) for a in axes]
        first.append(d1)
        second.append([np.diff(d) for d in d1])
        whole = len(axes[0]) // block * block
        if whole >= 2 * block:
            means = np.stack([a[:whole].reshape(-1, block).mean(axis=1) for a in axes], axis=1)
            coarse.append((np.diff(means, axis=0) ** 2).sum(axis=1) / 2)
    if not first:
        return NoiseLevel(0.0, _LEAST_Q, rate)
    # Gaze moves in two directions whatever the number of coordinates, so the sum over axes is
    # halved.
    v1 = sum(_robust_variance([d[k] for d in first]) for k in range(len(first[0]))) / 2
    v2 = sum(_robust_variance([d[k] for d in second]) for k in range(len(second[0]))) / 2
    sigma2 = max(0.0, (v2 - 2 * v1) / 2)
    moved = float(np.concatenate(coarse).mean()) if coarse else 0.0
    movement = max(_LEAST_Q, (moved - 2 * sigma2 / block) * 1.5 / _AVERAGE_S)
    return NoiseLevel(float(np.sqrt(sigma2)), movement, rate)


def _robust_variance(parts: Sequence[Floats]) -> float:
    """Variance of the bulk, from the median of absolute values (differences have mean 0); 0 without
    values.
    """
    sizes = np.abs(np.concatenate(parts))
    return float(median_in_place(sizes) / _MAD) ** 2 if len(sizes) else 0.0


def _stretches(recording: Recording) -> Iterator[_Stretch]:
    """Runs of samples without a long gap, with their coordinates in degrees, lost samples bridged
    by straight lines.
    """
    good = np.flatnonzero(recording.valid)
    if len(good) == 0:
        return
    t = recording.t_ns[good]
    longest_ns = 1e9 * max(LONGEST_GAP_S, 1.5 / recording.rate_hz if recording.rate_hz > 0 else 0.0)
    cuts = np.flatnonzero(np.diff(t) > longest_ns) + 1
    if isinstance(recording.space, Sphere):
        v = recording.space.vectors(recording.x_deg[good], recording.y_deg[good]) * _DEG
        columns = [v[:, 0], v[:, 1], v[:, 2]]
    else:
        columns = [recording.x_deg[good], recording.y_deg[good]]
    edges = [0, *cuts.tolist(), len(good)]
    for a, b in pairwise(edges):
        rows = slice(int(good[a]), int(good[b - 1]) + 1)
        if b - a == rows.stop - rows.start:  # nothing is lost here
            yield rows, [np.ascontiguousarray(column[a:b]) for column in columns]
            continue
        places = np.arange(rows.start, rows.stop)
        yield rows, [np.interp(places, good[a:b], column[a:b]) for column in columns]


def _filter(axis: Floats, denoiser: str, level: NoiseLevel) -> Floats:
    if denoiser == "lowpass":
        return _lowpass(axis, level)
    if denoiser == "median":
        return _median(axis, level)
    if denoiser == "kalman":
        return _smoother(
            np.ascontiguousarray(axis), level.movement / level.rate_hz, level.sigma_deg**2
        )
    return _wiener(axis, level)


def _lowpass(axis: Floats, level: NoiseLevel) -> Floats:
    """A Gaussian kernel whose gain is 1/sqrt(2) at the cut."""
    from scipy.ndimage import gaussian_filter1d

    width = float(np.sqrt(np.log(2.0))) / (2 * np.pi * level.cut_hz) * level.rate_hz
    smooth: Floats = gaussian_filter1d(axis, width, mode="reflect", truncate=4.0)
    return smooth


def _median(axis: Floats, level: NoiseLevel) -> Floats:
    """The running median; the ends are mirrored."""
    from scipy.ndimage import median_filter

    half = int(level.rate_hz / (4 * level.cut_hz))
    size = min(2 * half + 1, 2 * ((len(axis) - 1) // 2) + 1)
    middle: Floats = median_filter(axis, size=size, mode="reflect") if size > 1 else axis
    return middle


def _wiener(axis: Floats, level: NoiseLevel) -> Floats:
    """The spectrum times 1 - noise / observed, where observed is the power averaged over
    neighbouring frequencies (wider ones where there are more).
    """
    n = len(axis)
    if n < 16:
        return _lowpass(axis, level)
    # Mirrored, so that the two ends meet; the line through the ends is the crudest movement.
    both = np.concatenate((axis, axis[::-1]))
    spectrum = np.fft.rfft(both - both.mean())
    power = np.abs(spectrum) ** 2
    places = np.arange(len(power))
    half = np.maximum(2, places // 4)
    total = np.concatenate(([0.0], np.cumsum(power)))
    low, high = np.maximum(1, places - half), np.minimum(len(power), places + half + 1)
    observed = (total[high] - total[low]) / np.maximum(1, high - low)
    # A mirrored stretch holds every noise value twice: its expected power is 2 n sigma^2 on average
    # over frequencies.
    noise = 2 * n * level.sigma_deg**2
    gain = np.clip(1.0 - noise / np.maximum(observed, 1e-300), 0.0, 1.0)
    # The observed power wavers by chance, so above the cut a gain left over by chance is bounded by
    # that of a wandering path.
    frequency = places * level.rate_hz / (2 * n)
    gain = np.minimum(gain, 4.0 / (1.0 + (frequency / level.cut_hz) ** 2))
    smooth: Floats = np.fft.irfft(spectrum * gain, n=2 * n)[:n] + both.mean()
    return smooth


@compiled
def _smoother(z: Floats, q: float, r: float) -> Floats:
    """Kalman filter and Rauch-Tung-Striebel smoother of a wandering path (steps of variance q) seen
    with noise of variance r.
    """
    n = len(z)
    mean, variance = np.empty(n), np.empty(n)
    mean[0], variance[0] = z[0], r
    for i in range(1, n):
        ahead = variance[i - 1] + q
        gain = ahead / (ahead + r)
        mean[i] = mean[i - 1] + gain * (z[i] - mean[i - 1])
        variance[i] = (1.0 - gain) * ahead
    for i in range(n - 2, -1, -1):
        back = variance[i] / (variance[i] + q)
        mean[i] += back * (mean[i + 1] - mean[i])
    return mean
