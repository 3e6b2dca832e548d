"""About 270 features of a recording: all a patient attacker writes down before choosing.

Event features and their rates (the summary vector), quantiles of durations and amplitudes, the main
sequence, directions, positions, speeds and accelerations of single samples, the spectrum of the
velocity in bands, movement between averages over 0.1 to 2 s, and lost samples. The averages are
what outlives independent noise: a mean over n samples has 1/sqrt(n) of it. Everything is in units
of time and angle, so that recordings at different rates can be compared; what a rate cannot show
(bands above half of it) is NaN.

Places and dynamics: the features of `extended` vectors that are made of samples.

Where gaze is and how far it wanders, also as averages over 0.1 to 2 s; speeds and accelerations of
single samples, their correlations, the spectrum of the velocity, and lost samples. Taken of
thousands of recordings, so the sums are compiled.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.attacks.statistics import (
    LEAST,
    line,
    log_from_least,
    moments,
    pair_correlation,
    quantiles,
    sectors,
    sorted_log_quantiles,
    sorted_quantiles,
    unwrapped,
)
from gazeveil.attacks.vectors.paths import Path, path_of_sums, slot_sums
from gazeveil.compiled import compiled
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, summary_vectors
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey

#: Edges of the bands of the velocity spectrum, in Hz.
BANDS_HZ = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 125.0)

#: Lengths of the averages, in seconds; each a whole multiple of the first.
SCALES_S = (0.1, 0.2, 0.5, 1.0, 2.0)

_QUANTILES = np.array((0.1, 0.25, 0.5, 0.75, 0.9))
_SPEED_QUANTILES = np.array((0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99))
_LAGS = (1, 2, 3)

# Fewer pairs show no correlation; fewer velocities no spectrum.
_LEAST_PAIRS = 3
_LEAST_VELOCITIES = 16

_WELCH_S = 4.0


def _names_of_quantiles(name: str, at: Floats) -> list[str]:
    return [f"{name}_q{100 * q:.0f}" for q in at]


def _place_names() -> tuple[str, ...]:
    names = ["centre_right", "centre_up", "centre_ahead"]
    for axis in "xy":
        names += [f"position_{axis}_sd", *_names_of_quantiles(f"position_{axis}", _QUANTILES)]
        names += [f"position_{axis}_skew", f"position_{axis}_kurt"]
    names.append("position_correlation")
    for scale_s in SCALES_S:
        name = f"average{1000 * scale_s:.0f}ms"
        names += [f"{name}_x_sd", f"{name}_y_sd", f"{name}_correlation"]
        names += _names_of_quantiles(f"{name}_step", _QUANTILES)
        names += [f"{name}_step_{axis}_{what}" for axis in "xy" for what in ("sd", "lag1")]
    return tuple(names)


def _dynamic_names() -> tuple[str, ...]:
    names = []
    for what in ("speed", "acceleration"):
        names += _names_of_quantiles(what, _SPEED_QUANTILES)
    for axis in "xy":
        names += [f"velocity_{axis}_sd", *(f"velocity_{axis}_lag{lag}" for lag in _LAGS)]
    names.append("velocity_correlation")
    bands = [f"{low:g}_{high:g}hz" for low, high in pairwise(BANDS_HZ)]
    names += [f"spectrum_{axis}_{band}" for axis in "xy" for band in bands]
    return (*names, "lost_share", "lost_runs_per_s", "lost_run_s")


#: Names of the numbers of each kind, in order.
PLACE_NAMES = _place_names()
DYNAMIC_NAMES = _dynamic_names()

# Where the averages begin among the names of places, and how many numbers each length has.
_AVERAGES = PLACE_NAMES.index("average100ms_x_sd")
_OF_AVERAGES = (len(PLACE_NAMES) - _AVERAGES) // len(SCALES_S)
_SPECTRUM = DYNAMIC_NAMES.index(f"spectrum_x_{BANDS_HZ[0]:g}_{BANDS_HZ[1]:g}hz")


def place_statistics(recording: Recording) -> Floats:
    """Where gaze is and how far it wanders, in the order of :data:`PLACE_NAMES`: positions, and
    averages over 0.1 to 2 s with the steps between them.
    """
    out = np.full(len(PLACE_NAMES), np.nan)
    if not recording.valid.any():
        return out
    sums = slot_sums(recording, SCALES_S[0])
    total = sums.sum(axis=0)
    length = float(np.linalg.norm(total))
    centre = Path(recording.space, np.reshape(total / length, (1, 3))) if length > 1e-12 else None
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    if centre is not None:
        out[:3] = centre.vectors[0]
    if isinstance(recording.space, Sphere):
        # Around the mean direction, so that nothing breaks at 0/360.
        middle = np.nan if centre is None else float(centre.degrees[0][0])
        x = x - middle + 180.0
        if x.min() < 0.0 or x.max() >= 360.0:  # remainders are slow, and seldom needed
            x = np.mod(x, 360.0)
        x -= 180.0
    else:
        x = x - x.mean()
    y = y - y.mean()
    _positions(x, y, np.sort(x), np.sort(y), _QUANTILES, out[3:])
    for i, scale_s in enumerate(SCALES_S):
        path = path_of_sums(recording.space, sums, round(scale_s / SCALES_S[0]))
        here = _AVERAGES + i * _OF_AVERAGES
        _fill_averages(path, out[here : here + _OF_AVERAGES])
    return out


def _fill_averages(path: Path, out: Floats) -> None:
    """Spread of averages, and the steps between neighbouring ones."""
    x, y = path.degrees
    if isinstance(path.space, Sphere):
        x = unwrapped(x)
    steps = path.steps_deg()
    dx, dy = steps[:, 0], steps[:, 1]
    length = np.sqrt(dx * dx + dy * dy)
    length.sort()
    _averages(x, y, dx, dy, length, _QUANTILES, out)


def dynamic_statistics(recording: Recording) -> Floats:
    """How single samples follow one another, in the order of :data:`DYNAMIC_NAMES`: speeds,
    accelerations, correlations, the spectrum, losses.
    """
    out = np.full(len(DYNAMIC_NAMES), np.nan)
    velocity, speed = velocities(recording)
    acceleration = np.abs(np.diff(speed)) * recording.rate_hz
    speed.sort()
    acceleration.sort()
    _dynamics(velocity[0], velocity[1], speed, acceleration, _SPEED_QUANTILES, out)
    bands = len(BANDS_HZ) - 1
    _fill_bands(velocity, recording.rate_hz, out[_SPECTRUM : _SPECTRUM + 2 * bands])
    out[-3:] = _losses(recording)
    return out


def velocities(recording: Recording) -> tuple[Floats, Floats]:
    """Velocity right and down, shape (2, steps), and speed, between neighbouring samples in deg/s;
    NaN where one of them is lost.

    Steps are along arcs: on a sphere a step of longitude counts by the sine of its distance from
    the pole.
    """
    steps = max(len(recording) - 1, 0)
    velocity, speed = np.empty((2, steps)), np.empty(steps)
    _velocities(
        recording.x_deg,
        recording.y_deg,
        recording.valid,
        isinstance(recording.space, Sphere),
        recording.rate_hz,
        velocity,
        speed,
    )
    return velocity, speed


def _losses(recording: Recording) -> tuple[float, float, float]:
    """Share of lost samples, runs of them per second, and how long a run lasts."""
    lost = ~recording.valid
    if len(lost) == 0:
        return np.nan, np.nan, np.nan
    runs = int(lost[0]) + int(np.count_nonzero(lost[1:] & ~lost[:-1]))
    rate, many = recording.rate_hz, int(np.count_nonzero(lost))
    return many / len(lost), runs * rate / len(lost), many / max(1, runs) / rate


# --- the spectrum
# --------------------------------------------------------------------------------------------------


def _fill_bands(velocity: Floats, rate_hz: float, out: Floats) -> None:
    """Logarithms of the power of the velocity in each band along both axes, by Welch's mean over
    windows of 4 s; lost samples count as no movement.
    """
    finite = np.isfinite(velocity)
    known = np.count_nonzero(finite, axis=1) >= _LEAST_VELOCITIES
    if not rate_hz > 0 or not known.any():
        return
    length = min(velocity.shape[1], round(_WELCH_S * rate_hz))
    power = _welch(np.where(finite, velocity, 0.0), rate_hz, length)
    _band_logs(power, _band_edges(rate_hz, length, power.shape[1]), known, out)


@lru_cache(maxsize=64)
def _band_edges(rate_hz: float, length: int, count: int) -> Ints:
    """Number, first frequency and one beyond the last of the bands that a rate can show, shape
    (bands, 3).
    """
    frequency = np.arange(count) * (rate_hz / length)
    edges = np.searchsorted(frequency, BANDS_HZ).tolist()
    shown = [
        (band, first, last)
        for band, (first, last) in enumerate(pairwise(edges))
        if last > first and BANDS_HZ[band + 1] <= rate_hz / 2 + 1e-9
    ]
    return np.array(shown, dtype=np.int64).reshape(len(shown), 3)


@lru_cache(maxsize=64)
def _hann(length: int) -> Floats:
    window: Floats = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    return window


def _welch(values: Floats, rate_hz: float, length: int) -> Floats:
    """Power spectral density of each row: the mean over windows that overlap by half, as
    :func:`scipy.signal.welch` has it, which takes several times as long for so short a signal.
    """
    window = _hann(length)
    hop = length - length // 2
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)[:, ::hop]
    spectrum = np.fft.rfft(windows * window, axis=2)
    power: Floats = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    power /= rate_hz * float((window * window).sum())
    # Both signs of a frequency, of which nothing and half the rate have one.
    power[:, 1 : -1 if length % 2 == 0 else None] *= 2.0
    return power


# --- compiled
# --------------------------------------------------------------------------------------------------


@compiled
def _velocities(
    x: Floats, y: Floats, valid: Bools, sphere: bool, rate_hz: float, out: Floats, speed: Floats
) -> None:
    for i in range(len(speed)):
        if not (valid[i] and valid[i + 1]):
            out[0, i], out[1, i], speed[i] = math.nan, math.nan, math.nan
            continue
        dx, dy = x[i + 1] - x[i], y[i + 1] - y[i]
        if sphere:
            turned = dx + 180.0
            if not 0.0 <= turned < 360.0:  # nearly never, and a remainder is slow
                turned %= 360.0
            dx = turned - 180.0
            dx *= math.sin(math.radians((y[i + 1] + y[i]) / 2))
        out[0, i], out[1, i] = dx * rate_hz, dy * rate_hz
        speed[i] = math.sqrt(dx * dx + dy * dy) * rate_hz


@compiled
def _positions(x: Floats, y: Floats, by_x: Floats, by_y: Floats, at: Floats, out: Floats) -> None:
    many = len(at)
    for axis in range(2):
        own = out[axis * (many + 3) :]
        _, _, sd, skew, kurt = moments(x if axis == 0 else y)
        own[0] = sd
        sorted_quantiles(by_x if axis == 0 else by_y, at, own[1 : 1 + many])
        own[1 + many], own[2 + many] = skew, kurt
    out[2 * (many + 3)] = pair_correlation(x, y, _LEAST_PAIRS)


@compiled
def _averages(
    x: Floats, y: Floats, dx: Floats, dy: Floats, lengths: Floats, at: Floats, out: Floats
) -> None:
    many = len(at)
    out[0], out[1] = log_from_least(moments(x)[2]), log_from_least(moments(y)[2])
    out[2] = pair_correlation(x, y, _LEAST_PAIRS)
    sorted_log_quantiles(lengths, at, out[3 : 3 + many])
    for axis in range(2):
        values = dx if axis == 0 else dy
        out[3 + many + 2 * axis] = log_from_least(moments(values)[2])
        out[4 + many + 2 * axis] = pair_correlation(values[:-1], values[1:], _LEAST_PAIRS)


@compiled
def _dynamics(
    x: Floats, y: Floats, speeds: Floats, accelerations: Floats, at: Floats, out: Floats
) -> None:
    many = len(at)
    sorted_log_quantiles(speeds, at, out[:many])
    sorted_log_quantiles(accelerations, at, out[many : 2 * many])
    k = 2 * many
    for axis in range(2):
        values = x if axis == 0 else y
        out[k] = log_from_least(moments(values)[2])
        for lag in range(1, 4):
            if len(values) > lag:
                out[k + lag] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)
        k += 4
    out[k] = pair_correlation(x, y, _LEAST_PAIRS)


@compiled
def _band_logs(power: Floats, edges: Ints, known: Bools, out: Floats) -> None:
    """Logarithms of the mean power of bands, one axis after the other."""
    bands = len(out) // 2
    for axis in range(2):
        if known[axis]:
            for i in range(len(edges)):
                band, first, last = edges[i]
                out[axis * bands + band] = math.log(
                    max(power[axis, first:last].mean(), LEAST * LEAST)
                )


_EVENT_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_DIRECTIONS = 8


def vectors(recording_set: RecordingSet) -> RecordingVectors:
    """Extended vectors of the recordings of a recording set that has samples, in the blocks
    `events`, `places` and `dynamics`.
    """
    base = summary_vectors(recording_set)
    keys = recording_set.keys
    events = _event_columns(recording_set.fixations, recording_set.saccades, keys)
    columns, blocks = [*base.columns, *events], ["events"] * (len(base.columns) + len(events))
    parts = [base.values, *(column[:, None] for column in events.values())]
    kinds = (("places", PLACE_NAMES), ("dynamics", DYNAMIC_NAMES))
    measured = [(place_statistics(r), dynamic_statistics(r)) for r in recording_set.cohort or ()]
    for i, (block, names) in enumerate(kinds):
        columns += names
        blocks += [block] * len(names)
        parts.append(np.reshape([both[i] for both in measured], (len(keys), len(names))))
    return RecordingVectors(keys, np.concatenate(parts, axis=1), tuple(columns), tuple(blocks))


def _event_columns(
    fixations: FeatureTable, saccades: FeatureTable, keys: tuple[RecordingKey, ...]
) -> dict[str, Floats]:
    """Quantiles, main sequence and directions, one array over recordings per column."""
    result: dict[str, Floats] = {}
    wanted = {
        "fixation": (fixations, ("duration", "dispersion", "dist_prev", "avg_vel")),
        "saccade": (saccades, ("duration", "amplitude", "ang_vel_max", "ang_acc_max", "dist_prev")),
    }
    none = np.empty(0, dtype=np.int64)
    for kind, (table, names) in wanted.items():
        rows = table.recordings()
        for name in names:
            column = table.column(name)
            values = [quantiles(column[rows.get(key, none)], _EVENT_QUANTILES) for key in keys]
            by_quantile = np.reshape(values, (len(keys), len(_EVENT_QUANTILES))).T
            for q, over_recordings in zip(_EVENT_QUANTILES, by_quantile, strict=True):
                result[f"{kind}_{name}_q{100 * q:.0f}"] = over_recordings
    rows = saccades.recordings()
    columns = [
        saccades.column(n) for n in ("amplitude", "ang_vel_max", "duration", "saccade_angle")
    ]
    per_recording = [
        _saccade_laws(*(c[rows[key]] for c in columns)) if key in rows else None for key in keys
    ]
    names_of_laws = tuple(_saccade_laws(*[np.empty(0)] * 4))
    for name in names_of_laws:
        result[name] = np.array([np.nan if row is None else row[name] for row in per_recording])
    return result


def _saccade_laws(
    amplitude: Floats, peak: Floats, duration: Floats, angle: Floats
) -> dict[str, float]:
    """The main sequence (log peak velocity and duration over log amplitude and amplitude) and the
    shares of directions.
    """
    result: dict[str, float] = {}
    finite = np.isfinite([amplitude, peak, duration]).all(axis=0)
    good = finite & (amplitude > 0) & (peak > 0)
    a = amplitude[good]
    for name, x, y in (("peak", np.log(a), np.log(peak[good])), ("duration", a, duration[good])):
        slope, level, rest = line(x, y)
        result |= {
            f"sequence_{name}_slope": slope,
            f"sequence_{name}_level": level,
            f"sequence_{name}_rest": rest,
        }
    turned = np.isfinite(angle)
    bins = sectors(angle[turned], _DIRECTIONS)
    counts = np.bincount(bins, minlength=_DIRECTIONS)
    shares = counts / len(bins) if len(bins) else np.full(_DIRECTIONS, np.nan)
    return result | {f"direction_share_{i}": float(share) for i, share in enumerate(shares)}
