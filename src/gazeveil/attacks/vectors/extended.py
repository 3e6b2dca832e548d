"""About 270 features of a recording: all a patient attacker writes down before choosing.

Event features and their rates (the summary vector), quantiles of durations and amplitudes, the main
sequence, directions, positions, speeds and accelerations of single samples, the spectrum of the
velocity in bands, movement between averages over 0.1 to 2 s, and lost samples. The averages are
what outlives independent noise: a mean over n samples has 1/sqrt(n) of it. Everything is in units
of time and angle, so that recordings at different rates can be compared; what a rate cannot show
(bands above half of it) is NaN.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.statistics import (
    LEAST,
    correlation,
    deviation,
    line,
    log_deviation,
    log_quantiles,
    quantiles,
    sectors,
    shape,
)
from gazeveil.attacks.vectors.paths import Path, paths
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, summary_vectors
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.geometry import Sphere, mean_direction
from gazeveil.gaze.recording import Recording, RecordingKey

#: Edges of the bands of the velocity spectrum, in Hz.
BANDS_HZ = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 125.0)

#: Lengths of the averages, in seconds.
SCALES_S = (0.1, 0.2, 0.5, 1.0, 2.0)

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_SPEED_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
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
    measured = [(_places(r), _dynamics(r)) for r in recording_set.cohort or ()]
    for i, block in enumerate(("places", "dynamics")):
        rows = [both[i] for both in measured]
        names = list(rows[0]) if rows else []
        columns += names
        blocks += [block] * len(names)
        parts.append(np.reshape([list(row.values()) for row in rows], (len(keys), len(names))))
    return RecordingVectors(keys, np.concatenate(parts, axis=1), tuple(columns), tuple(blocks))


# --- events
# --------------------------------------------------------------------------------------------------


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
            values = [quantiles(column[rows.get(key, none)], _QUANTILES) for key in keys]
            by_quantile = np.reshape(values, (len(keys), len(_QUANTILES))).T
            for q, over_recordings in zip(_QUANTILES, by_quantile, strict=True):
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


# --- samples
# --------------------------------------------------------------------------------------------------


def _places(recording: Recording) -> dict[str, float]:
    """Where gaze is and how far it wanders: positions, and averages over 0.1 to 2 s with the steps
    between them.
    """
    centre, offsets = _offsets(recording)
    result = dict(zip(("centre_right", "centre_up", "centre_ahead"), centre.tolist(), strict=True))
    for axis, values in zip("xy", offsets, strict=True):
        result[f"position_{axis}_sd"] = deviation(values)
        result |= _named(f"position_{axis}", _QUANTILES, quantiles(values, _QUANTILES))
        result[f"position_{axis}_skew"], result[f"position_{axis}_kurt"] = shape(values)
    result["position_correlation"] = correlation(*offsets)
    averages = paths(recording, SCALES_S) if len(recording) else {}
    nothing = Path(recording.space, np.empty((0, 3)))
    for scale_s in SCALES_S:
        result |= _at_scale(averages.get(scale_s, nothing), scale_s)
    return result


def _dynamics(recording: Recording) -> dict[str, float]:
    """How single samples follow one another: speeds, accelerations, correlations, the spectrum,
    losses.
    """
    velocity, speed = velocities(recording)
    acceleration = np.abs(np.diff(speed)) * recording.rate_hz
    result: dict[str, float] = {}
    for name, values in (("speed", speed), ("acceleration", acceleration)):
        result |= _named(name, _SPEED_QUANTILES, log_quantiles(values, _SPEED_QUANTILES))
    for axis, values in zip("xy", velocity, strict=True):
        result[f"velocity_{axis}_sd"] = log_deviation(values)
        result |= {
            f"velocity_{axis}_lag{lag}": correlation(values[:-lag], values[lag:])
            for lag in (1, 2, 3)
        }
    result["velocity_correlation"] = correlation(*velocity)
    for axis, values in zip("xy", velocity, strict=True):
        result |= _bands(values, recording.rate_hz, f"spectrum_{axis}")
    return result | _losses(recording)


def _named(name: str, at: tuple[float, ...], values: Floats) -> dict[str, float]:
    return {f"{name}_q{100 * q:.0f}": float(v) for q, v in zip(at, values, strict=True)}


def _offsets(recording: Recording) -> tuple[Floats, tuple[Floats, Floats]]:
    """Mean direction (unit vector), and right and down offsets of the valid samples from it in
    degrees; nothing breaks at 0/360.
    """
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    if len(x) == 0:
        return np.full(3, np.nan), (x, y)
    centre = mean_direction(recording.space.vectors(x, y))
    if not isinstance(recording.space, Sphere):
        return centre, (x - x.mean(), y - y.mean())
    if np.isnan(centre).any():
        return centre, (np.full(len(x), np.nan), y - y.mean())
    middle = float(recording.space.degrees(centre)[0])
    return centre, (np.mod(x - middle + 180.0, 360.0) - 180.0, y - y.mean())


def velocities(recording: Recording) -> tuple[tuple[Floats, Floats], Floats]:
    """Velocity right and down, and speed, between neighbouring samples in deg/s; NaN where one of
    them is lost.

    Steps are along arcs: on a sphere a step of longitude counts by the sine of its distance from
    the pole.
    """
    rate, good = recording.rate_hz, recording.valid
    x, y = np.where(good, recording.x_deg, np.nan), np.where(good, recording.y_deg, np.nan)
    dx, dy = np.diff(x), np.diff(y)
    if isinstance(recording.space, Sphere):
        dx = np.mod(dx + 180.0, 360.0) - 180.0
        dx = dx * np.sin(np.radians((y[1:] + y[:-1]) / 2))
    return (dx * rate, dy * rate), np.hypot(dx, dy) * rate


def _bands(velocity: Floats, rate_hz: float, name: str) -> dict[str, float]:
    """Log of the power of the velocity in each band, by Welch's mean over windows of 4 s; lost
    samples count as no movement.
    """
    result = {f"{name}_{low:g}_{high:g}hz": float("nan") for low, high in pairwise(BANDS_HZ)}
    if not rate_hz > 0 or np.count_nonzero(np.isfinite(velocity)) < 16:
        return result
    length = min(len(velocity), round(4 * rate_hz))
    power = _welch(np.nan_to_num(velocity), rate_hz, length)
    frequency = np.arange(len(power)) * (rate_hz / length)
    for low, high in pairwise(BANDS_HZ):
        first, last = np.searchsorted(frequency, (low, high)).tolist()
        if last > first and high <= rate_hz / 2 + 1e-9:
            result[f"{name}_{low:g}_{high:g}hz"] = float(
                np.log(max(float(power[first:last].mean()), LEAST**2))
            )
    return result


def _welch(values: Floats, rate_hz: float, length: int) -> Floats:
    """Power spectral density of values: the mean over windows that overlap by half, as
    :func:`scipy.signal.welch` has it, which takes several times as long for so short a signal.
    """
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    hop = length - length // 2
    windows = np.lib.stride_tricks.sliding_window_view(values, length)[::hop]
    spectrum = np.fft.rfft(windows * window, axis=1)
    power: Floats = (spectrum.real**2 + spectrum.imag**2).mean(axis=0)
    power /= rate_hz * float((window * window).sum())
    # Both signs of a frequency, of which nothing and half the rate have one.
    power[1 : -1 if length % 2 == 0 else None] *= 2.0
    return power


def _at_scale(averages: Path, scale_s: float) -> dict[str, float]:
    """Spread of the averages over `scale_s`, and the steps between neighbouring ones."""
    x, y = averages.degrees
    dx, dy = np.diff(x), np.diff(y)
    spread_x = x
    if isinstance(averages.space, Sphere):
        dx = np.mod(dx + 180.0, 360.0) - 180.0
        finite = np.isfinite(x)
        spread_x = np.full(len(x), np.nan)
        spread_x[finite] = np.unwrap(x[finite], period=360.0)
        dx = dx * np.sin(np.radians((y[1:] + y[:-1]) / 2))
    name = f"average{1000 * scale_s:.0f}ms"
    step = np.hypot(dx, dy)
    result = {
        f"{name}_x_sd": log_deviation(spread_x),
        f"{name}_y_sd": log_deviation(y),
        f"{name}_correlation": correlation(spread_x, y),
    }
    result |= _named(f"{name}_step", _QUANTILES, log_quantiles(step, _QUANTILES))
    for axis, values in (("x", dx), ("y", dy)):
        result[f"{name}_step_{axis}_sd"] = log_deviation(values)
        result[f"{name}_step_{axis}_lag1"] = correlation(values[:-1], values[1:])
    return result


def _losses(recording: Recording) -> dict[str, float]:
    """Lost samples: their share, runs of them per second, and how long a run lasts."""
    lost = ~recording.valid
    if len(lost) == 0:
        return dict.fromkeys(("lost_share", "lost_runs_per_s", "lost_run_s"), float("nan"))
    runs = int(lost[0]) + int(np.count_nonzero(lost[1:] & ~lost[:-1]))
    rate = recording.rate_hz
    return {
        "lost_share": float(lost.mean()),
        "lost_runs_per_s": runs * rate / len(lost),
        "lost_run_s": float(lost.sum()) / max(1, runs) / rate,
    }
