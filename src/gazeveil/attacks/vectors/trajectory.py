"""Trajectories of 0.2 s averages, relative to the other viewers of the stimulus.

Averages over 0.2 s have a few degrees less noise than samples. Their trajectory keeps features that
independent noise cannot hide: mean position, following of the other viewers, lag, spread and speed.
Two people's trajectories on different stimuli cannot be compared point by point, so each is
described against the mean trajectory of the other people on the same stimulus. That description is
the vector. The only viewer of a stimulus is compared with the mean over time.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.statistics import (
    behind,
    moments,
    pair_correlation,
    sorted_log_quantiles,
    sorted_quantiles,
    unwrapped,
)
from gazeveil.attacks.vectors.paths import Path, crowds, slot_means
from gazeveil.compiled import compiled
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.geometry import Sphere

#: Length of the averages in seconds.
SLOT_S = 0.2

#: Most lags behind the crowd, and lags of a trajectory with itself and of its steps, in slots.
_MOST_BEHIND = 3
_LAGS = np.array((1, 2, 5, 10, 25))
_STEP_LAGS = _LAGS[:3]

_QUANTILES = np.array((0.05, 0.25, 0.5, 0.75, 0.95))
_DIRECTIONS = 8

# Fewer pairs show no correlation.
_LEAST_PAIRS = 3


def _names() -> tuple[str, ...]:
    def of_quantiles(name: str) -> list[str]:
        return [f"{name}_q{100 * q:.0f}" for q in _QUANTILES]

    names = []
    for axis in "xy":
        names += [f"trajectory_{axis}_mean", *of_quantiles(f"trajectory_{axis}")]
        names += [f"trajectory_{axis}_lag{lag}" for lag in _LAGS]
    names += ["trajectory_xy", *of_quantiles("trajectory_distance")]
    names += [f"trajectory_{axis}_{what}" for axis in "xy" for what in ("follow", "spread")]
    names += [f"trajectory_behind_{b}" for b in range(-_MOST_BEHIND, _MOST_BEHIND + 1)]
    names += of_quantiles("trajectory_step")
    for axis in "xy":
        names.append(f"trajectory_step_{axis}_sd")
        names += [f"trajectory_step_{axis}_lag{lag}" for lag in _STEP_LAGS]
    return (*names, *(f"trajectory_way_{i}" for i in range(_DIRECTIONS)))


#: Names of the numbers, in order.
NAMES = _names()


def vectors(recording_set: RecordingSet) -> RecordingVectors:
    """Trajectory vectors of the recordings of a recording set that has samples."""
    keys = recording_set.keys
    trajectories = [slot_means(recording, SLOT_S) for recording in recording_set.cohort or ()]
    values = np.full((len(keys), len(NAMES)), np.nan)
    stimuli: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        stimuli.setdefault(key[1], []).append(i)
    for places in stimuli.values():
        for i, crowd in zip(
            places,
            crowds([trajectories[i] for i in places], [keys[i][0] for i in places]),
            strict=True,
        ):
            _describe(trajectories[i], Path(trajectories[i].space, crowd), values[i])
    return RecordingVectors(keys, values, NAMES, ("trajectory",) * len(NAMES))


def _describe(trajectory: Path, crowd: Path, out: Floats) -> None:
    """Offsets from the crowd, following it, distance to it, and the trajectory's own steps."""
    away = trajectory.offsets_from(crowd).T
    x, y = trajectory.degrees
    if isinstance(trajectory.space, Sphere) and np.isfinite(x).all():
        x = unwrapped(x)
    steps, crowd_steps = trajectory.steps_deg().T, crowd.steps_deg().T
    length = np.sqrt(steps[0] * steps[0] + steps[1] * steps[1])
    distance = np.sqrt(away[0] * away[0] + away[1] * away[1])
    # NumPy sorts faster than compiled code does, and puts NaN last.
    lengths = np.sort(length)
    distance.sort()
    own, theirs = np.stack((x, y)), np.stack(crowd.degrees)
    k = _against_crowd(away, np.sort(away, axis=1), distance, own, theirs, _QUANTILES, _LAGS, out)
    _own_steps(steps, length, lengths, crowd_steps, _QUANTILES, _STEP_LAGS, out[k:])


@compiled
def _against_crowd(
    away: Floats,
    ordered: Floats,
    distances: Floats,
    own: Floats,
    theirs: Floats,
    at: Floats,
    lags: Ints,
    out: Floats,
) -> int:
    """Offsets from the crowd, distance to it, and following it; how many numbers that are."""
    k = 0
    for axis in range(2):
        values = away[axis]
        out[k] = moments(values)[1]
        sorted_quantiles(ordered[axis], at, out[k + 1 : k + 1 + len(at)])
        k += 1 + len(at)
        for lag in lags:
            if len(values) > lag:
                out[k] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)
            k += 1
    out[k] = pair_correlation(away[0], away[1], _LEAST_PAIRS)
    sorted_log_quantiles(distances, at, out[k + 1 : k + 1 + len(at)])
    k += 1 + len(at)
    for axis in range(2):
        out[k] = pair_correlation(own[axis], theirs[axis], _LEAST_PAIRS)
        out[k + 1] = moments(own[axis])[2]
        k += 2
    return k


@compiled
def _own_steps(
    steps: Floats,
    length: Floats,
    lengths: Floats,
    crowd_steps: Floats,
    at: Floats,
    lags: Ints,
    out: Floats,
) -> None:
    """Movements of the person against those of the crowd (how late), and by themselves: lengths,
    deviations, lags, and how far they go in each direction as shares of the whole way.
    """
    k = 0
    for late in range(-_MOST_BEHIND, _MOST_BEHIND + 1):
        out[k] = (
            behind(steps, crowd_steps, late, _LEAST_PAIRS)
            if late >= 0
            else behind(crowd_steps, steps, -late, _LEAST_PAIRS)
        )
        k += 1
    sorted_log_quantiles(lengths, at, out[k : k + len(at)])
    k += len(at)
    for axis in range(2):
        values = steps[axis]
        out[k] = moments(values)[2]
        k += 1
        for lag in lags:
            if len(values) > lag:
                out[k] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)
            k += 1
    total = 0.0
    way = out[k : k + _DIRECTIONS]
    for i in range(len(length)):
        if np.isfinite(length[i]):
            if total == 0.0:
                way[:] = 0.0
            angle = np.degrees(np.arctan2(steps[1, i], steps[0, i]))
            sector = int(np.floor((angle + 180.0 / _DIRECTIONS) / (360.0 / _DIRECTIONS)))
            way[sector % _DIRECTIONS] += length[i]
            total += length[i]
    if total > 0.0:
        for i in range(_DIRECTIONS):
            way[i] /= total
    else:
        way[:] = np.nan
