"""Random-convolution vectors: how often a path rises above some value after each of many fixed
filters.

After MiniRocket (Dempster, Schmidt and Webb 2021): all 84 filters of nine taps of which three
weigh 2 and six weigh -1, at several dilations, on the steps of the path at a fine rate and on the
path itself at a coarse one; of each filtered path the share of time above three thresholds, which
are quantiles in the gallery. Nothing is trained.
"""

from __future__ import annotations

from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil.arrays import Floats, Ints, Singles
from gazeveil.attacks.vectors.paths import Path, paths, sample_weights
from gazeveil.compiled import compiled
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.recording import Recording

#: Shortest slot of the fine path in seconds, and the slot of the coarse one.
FINE_S, COARSE_S = 0.008, 0.2

_TAPS = 9
_HEAVY = np.array(list(combinations(range(_TAPS), 3)), dtype=np.int64)
#: Kinds of vectors: blocks of the columns.
KINDS = ("fine", "coarse")

_DILATIONS = {"fine": (1, 2, 4, 8), "coarse": (1, 2, 4)}
_LEVELS = 3

#: Recordings of the gallery, and values of each of them, from which thresholds are taken.
_LOOKED_AT, _VALUES = 16, 400

_Pair = tuple[RecordingVectors, RecordingVectors]
_KEPT: WeakKeyDictionary[RecordingSet, WeakKeyDictionary[RecordingSet, _Pair]] = WeakKeyDictionary()


def convolution_vectors(gallery: RecordingSet, probe: RecordingSet) -> _Pair:
    """Vectors of both sides, with thresholds from the gallery.

    Parameters
    ----------
    gallery, probe : RecordingSet
        With samples. The vectors of a pair are made once.
    """
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary())
    if probe not in kept:
        kept[probe] = _make(gallery, probe)
    return kept[probe]


def _make(gallery: RecordingSet, probe: RecordingSet) -> _Pair:
    rates = [r.rate_hz for r in gallery.cohort or () if np.isfinite(r.rate_hz)]
    # One slot for all: filters of other lengths would be other filters.
    fine_s = max(FINE_S, 1.0 / float(np.median(rates))) if rates else FINE_S
    sides: list[list[Floats]] = [[], []]
    names: list[str] = []
    blocks: list[str] = []
    for kind, slot_s in zip(KINDS, (fine_s, COARSE_S), strict=True):
        learnt, asked = (
            [_series(r, kind, slot_s, side) for r in side.cohort or ()] for side in (gallery, probe)
        )
        for dilation in _DILATIONS[kind]:
            levels = _thresholds(learnt, dilation)
            sides[0].append(_shares(learnt, dilation, levels))
            sides[1].append(_shares(asked, dilation, levels))
            count = sides[0][-1].shape[1]
            names += [f"{kind}_{dilation}_{i}" for i in range(count)]
            blocks += [kind] * count
    first, second = (
        RecordingVectors(side.keys, np.concatenate(parts, axis=1), tuple(names), tuple(blocks))
        for side, parts in zip((gallery, probe), sides, strict=True)
    )
    return first, second


def _series(recording: Recording, kind: str, slot_s: float, side: RecordingSet) -> Floats:
    """Channels of a recording, shape (channels, slots): steps right and down and their length, or
    places right and down of the mean place. Lost slots are bridged by straight lines.
    """
    if len(recording) == 0 or not recording.valid.any():
        return np.zeros((3 if kind == "fine" else 2, 0))
    weights = sample_weights(recording, side.noise_scale_deg)
    path = paths(recording, (slot_s,), weights)[slot_s]
    there = np.flatnonzero(np.isfinite(path.vectors).all(axis=1))
    if len(there) < 2:
        return np.zeros((3 if kind == "fine" else 2, 0))
    every = np.arange(len(path.vectors))
    bridged = np.stack([np.interp(every, there, v[there]) for v in path.vectors.T], axis=1)
    whole = Path(path.space, bridged)
    if kind == "fine":
        steps = np.nan_to_num(whole.steps_deg().T)
        return np.concatenate((steps, np.hypot(steps[0], steps[1])[None]))
    return np.nan_to_num(whole.offsets_deg(bridged.mean(axis=0, keepdims=True)).T)


def _thresholds(series: list[Floats], dilation: int) -> Floats:
    """Quantiles of each filtered channel over some recordings, shape (channels, filters, levels);
    zeros where none is long enough.
    """
    channels = series[0].shape[0] if series else 1
    long = [s for s in series if s.shape[1] > _TAPS * dilation]
    if not long:
        return np.zeros((channels, len(_HEAVY), _LEVELS))
    chosen = [long[i] for i in np.linspace(0, len(long) - 1, _LOOKED_AT).astype(int)]
    values = np.concatenate([_some_values(s, dilation, _HEAVY, _VALUES) for s in chosen], axis=2)
    at = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return np.moveaxis(np.quantile(values, at, axis=2), 0, 2)


def _shares(series: list[Floats], dilation: int, levels: Floats) -> Floats:
    """Share of time above each threshold, shape (recordings, channels x filters x levels); NaN for
    recordings that are too short.
    """
    out = np.full((len(series), *levels.shape), np.nan)
    thresholds = levels.astype(np.float32)
    for i, channels in enumerate(series):
        if channels.shape[1] > _TAPS * dilation:
            _above(channels.astype(np.float32), dilation, _HEAVY, thresholds, out[i])
    return out.reshape(len(series), -1)


@compiled
def _some_values(series: Floats, dilation: int, heavy: Ints, wanted: int) -> Floats:
    """Values of every filter at some times, evenly spread."""
    times = series.shape[1] - (_TAPS - 1) * dilation
    out = np.empty((series.shape[0], len(heavy), wanted))
    for c in range(series.shape[0]):
        for i in range(wanted):
            t = i * times // wanted
            light = 0.0
            for tap in range(_TAPS):
                light += series[c, t + tap * dilation]
            for k in range(len(heavy)):
                value = -light
                for j in range(3):
                    value += 3.0 * series[c, t + heavy[k, j] * dilation]
                out[c, k, i] = value
    return out


@compiled
def _above(series: Singles, dilation: int, heavy: Ints, levels: Singles, out: Floats) -> None:
    """Share of time at which each filter gives more than each of three thresholds.

    Single precision, and all thresholds in one pass: this loop is what the attack costs.
    """
    times = series.shape[1] - (_TAPS - 1) * dilation
    three = np.float32(3.0)
    light = np.empty(times, dtype=np.float32)
    for c in range(series.shape[0]):
        row = series[c]
        for t in range(times):
            total = np.float32(0.0)
            for tap in range(_TAPS):
                total += row[t + tap * dilation]
            light[t] = total
        for k in range(len(heavy)):
            first = row[heavy[k, 0] * dilation :]
            second = row[heavy[k, 1] * dilation :]
            third = row[heavy[k, 2] * dilation :]
            low, middle, high = levels[c, k, 0], levels[c, k, 1], levels[c, k, 2]
            # Counters as wide as the values (a plain sum of them would be wider): the compiler then
            # handles several times at once.
            over_low, over_middle, over_high = np.int32(0), np.int32(0), np.int32(0)
            for t in range(times):
                value = three * (first[t] + second[t] + third[t]) - light[t]
                over_low = np.int32(over_low + np.int32(value > low))
                over_middle = np.int32(over_middle + np.int32(value > middle))
                over_high = np.int32(over_high + np.int32(value > high))
            out[c, k, 0] = over_low / times
            out[c, k, 1] = over_middle / times
            out[c, k, 2] = over_high / times
