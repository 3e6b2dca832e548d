"""About 270 features of a recording: all a patient attacker writes down before choosing.

Event features and their rates (the summary vector), quantiles of durations and amplitudes, the main
sequence, directions, positions, speeds and accelerations of single samples, the spectrum of the
velocity in bands, movement between averages over 0.1 to 2 s, and lost samples. The averages are
what outlives independent noise: a mean over n samples has 1/sqrt(n) of it. Everything is in units
of time and angle, so that recordings at different rates can be compared; what a rate cannot show
(bands above half of it) is NaN.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.statistics import line, quantiles, sectors
from gazeveil.attacks.vectors.samples import (
    DYNAMIC_NAMES,
    PLACE_NAMES,
    dynamic_statistics,
    place_statistics,
)
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, summary_vectors
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import RecordingKey

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
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
