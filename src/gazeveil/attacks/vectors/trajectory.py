"""Where somebody looks compared with everybody else, on a trajectory of 0.2 s averages.

Averages over 0.2 s have a few degrees less noise than samples, and a trajectory of them keeps what
independent noise cannot hide: where a person's gaze sits, how far it follows the others, how late,
how widely and how quickly it wanders. Two people's trajectories on different stimuli cannot be
compared point by point, so each is described against the mean trajectory of the other people on the
same stimulus; the description is the vector. Somebody who was alone with a stimulus is compared
with the mean over time.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.statistics import correlation, deviation, log_quantiles, quantiles, sectors
from gazeveil.attacks.vectors.paths import Path, crowds, slot_means
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.geometry import Sphere

#: Length of the averages in seconds.
SLOT_S = 0.2

#: Lags behind the crowd, and of a trajectory with itself, in slots.
_BEHIND = (-3, -2, -1, 0, 1, 2, 3)
_LAGS = (1, 2, 5, 10, 25)

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_DIRECTIONS = 8


def vectors(recording_set: RecordingSet) -> RecordingVectors:
    """Trajectory vectors of the recordings of a recording set that has samples."""
    keys = recording_set.keys
    trajectories = [slot_means(recording, SLOT_S) for recording in recording_set.cohort or ()]
    rows: list[dict[str, float]] = [{} for _ in keys]
    stimuli: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        stimuli.setdefault(key[1], []).append(i)
    for places in stimuli.values():
        for i, crowd in zip(
            places,
            crowds([trajectories[i] for i in places], [keys[i][0] for i in places]),
            strict=True,
        ):
            rows[i] = _describe(trajectories[i], crowd)
    names = tuple(rows[0]) if rows else ()
    values = np.reshape([list(row.values()) for row in rows], (len(keys), len(names)))
    return RecordingVectors(keys, values, names, ("trajectory",) * len(names))


def _describe(trajectory: Path, crowd: Floats) -> dict[str, float]:
    """Offsets from the crowd, following it, distance to it, and the trajectory's own steps."""
    space = trajectory.space
    x, y = space.degrees(trajectory.vectors)
    crowd_x, crowd_y = space.degrees(crowd)
    away = trajectory.offsets_deg(crowd).T
    result: dict[str, float] = {}
    for axis, values in zip("xy", away, strict=True):
        result[f"trajectory_{axis}_mean"] = (
            float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
        )
        result |= _named(f"trajectory_{axis}", quantiles(values, _QUANTILES))
        result |= {
            f"trajectory_{axis}_lag{lag}": correlation(values[:-lag], values[lag:]) for lag in _LAGS
        }
    result["trajectory_xy"] = correlation(*away)
    result |= _named("trajectory_distance", log_quantiles(np.hypot(*away), _QUANTILES))
    # Movements of the person against those of the crowd: gain, and how late.
    steps, crowd_steps = trajectory.steps_deg().T, Path(space, crowd).steps_deg().T
    flat_x = (
        np.unwrap(np.where(np.isfinite(x), x, 0.0), period=360.0)
        if isinstance(space, Sphere) and np.isfinite(x).all()
        else x
    )
    for axis, own, other in (("x", flat_x, crowd_x), ("y", y, crowd_y)):
        result[f"trajectory_{axis}_follow"] = correlation(own, other)
        result[f"trajectory_{axis}_spread"] = deviation(own)
    for behind in _BEHIND:
        pairs = [
            (_shifted(s, behind), _shifted(c, -behind))
            for s, c in zip(steps, crowd_steps, strict=True)
        ]
        result[f"trajectory_behind_{behind}"] = correlation(
            np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])
        )
    result |= _named("trajectory_step", log_quantiles(np.hypot(*steps), _QUANTILES))
    for axis, values in zip("xy", steps, strict=True):
        result[f"trajectory_step_{axis}_sd"] = deviation(values)
        result |= {
            f"trajectory_step_{axis}_lag{lag}": correlation(values[:-lag], values[lag:])
            for lag in _LAGS[:3]
        }
    return result | _directions(*steps)


def _shifted(values: Floats, by: int) -> Floats:
    """Without the first `by` values, or without the last ones for a negative number."""
    return values[by:] if by >= 0 else values[:by]


def _directions(dx: Floats, dy: Floats) -> dict[str, float]:
    """How far the trajectory goes in each of eight directions, as shares of the whole way."""
    finite = np.isfinite(dx) & np.isfinite(dy)
    length = np.hypot(dx[finite], dy[finite])
    sector = sectors(np.degrees(np.arctan2(dy[finite], dx[finite])), _DIRECTIONS)
    way = np.bincount(sector, weights=length, minlength=_DIRECTIONS)
    total = float(way.sum())
    return {
        f"trajectory_way_{i}": float(w) / total if total > 0 else float("nan")
        for i, w in enumerate(way)
    }


def _named(name: str, values: Floats) -> dict[str, float]:
    return {f"{name}_q{100 * q:.0f}": float(v) for q, v in zip(_QUANTILES, values, strict=True)}
