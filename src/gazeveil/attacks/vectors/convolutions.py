"""Random-convolution vectors: how often a path rises above some value after each of many fixed
filters.

After MiniRocket (Dempster, Schmidt and Webb 2021): all 84 filters of nine taps of which three
weigh 2 and six weigh -1, at several dilations, on the steps of the path at a fine rate and on the
path itself at a coarse one; of each filtered path the share of time above three thresholds, which
are quantiles in the gallery. Nothing is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil.arrays import Floats, Ints, Singles
from gazeveil.attacks.vectors.paths import Path, paths, sample_weights
from gazeveil.compiled import compiled
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording

#: Shortest slot of the fine path in seconds, and the slot of the coarse one.
FINE_S, COARSE_S = 0.008, 0.2

_TAPS = 9
_HEAVY = np.array(list(combinations(range(_TAPS), 3)), dtype=np.int64)
#: Kinds of vectors: blocks of the columns.
KINDS = ("fine", "coarse")

_CHANNELS = {"fine": 3, "coarse": 2}
_DILATIONS = {"fine": (1, 2, 4, 8), "coarse": (1, 2, 4)}
_LEVELS = 3

#: Recordings of the gallery, and values of each of them, from which thresholds are taken.
_LOOKED_AT, _VALUES = 16, 400

_Pair = tuple[RecordingVectors, RecordingVectors]


@dataclass(frozen=True, eq=False)
class _Filters:
    """What the gallery says about how recordings are looked at, and its own vectors.

    Parameters
    ----------
    fine_s : float
        Slot of the fine path in seconds.
    levels : dict
        Thresholds by kind and dilation.
    vectors : RecordingVectors
        Of the gallery.
    """

    fine_s: float
    levels: dict[tuple[str, int], Floats]
    vectors: RecordingVectors


# Whoever is asked about, the gallery is looked at once.
_OF_GALLERY: WeakKeyDictionary[RecordingSet, _Filters] = WeakKeyDictionary()
_KEPT: WeakKeyDictionary[RecordingSet, WeakKeyDictionary[RecordingSet, RecordingVectors]] = (
    WeakKeyDictionary()
)


def convolution_vectors(gallery: RecordingSet, probe: RecordingSet) -> _Pair:
    """Vectors of both sides, with thresholds from the gallery.

    Parameters
    ----------
    gallery, probe : RecordingSet
        With samples. The vectors of a pair are made once.
    """
    if gallery not in _OF_GALLERY:
        _OF_GALLERY[gallery] = _look_at(gallery)
    filters = _OF_GALLERY[gallery]
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary())
    if probe not in kept:
        kept[probe] = _vectors(probe, _every_series(probe, filters.fine_s), filters.levels)
    return filters.vectors, kept[probe]


def _look_at(gallery: RecordingSet) -> _Filters:
    rates = [r.rate_hz for r in gallery.cohort or () if np.isfinite(r.rate_hz)]
    # One slot for all: filters of other lengths would be other filters.
    fine_s = max(FINE_S, 1.0 / float(np.median(rates))) if rates else FINE_S
    series = _every_series(gallery, fine_s)
    levels = {}
    for kind, slot_s in zip(KINDS, (fine_s, COARSE_S), strict=True):
        for dilation in _DILATIONS[kind]:
            chosen = _looked_at([s.shape[1] for s in series[kind]], dilation)
            some = [_series(_recording(gallery, i), kind, slot_s, gallery) for i in chosen]
            levels[kind, dilation] = _thresholds(some, kind, dilation)
    return _Filters(fine_s, levels, _vectors(gallery, series, levels))


def _every_series(side: RecordingSet, fine_s: float) -> dict[str, list[Singles]]:
    """Channels of all recordings of a side, by kind, in single precision: there may be thousands of
    recordings.
    """
    every: dict[str, list[Singles]] = {kind: [] for kind in KINDS}
    for recording in side.cohort or ():
        for kind, slot_s in zip(KINDS, (fine_s, COARSE_S), strict=True):
            every[kind].append(_series(recording, kind, slot_s, side).astype(np.float32))
    return every


def _recording(side: RecordingSet, i: int) -> Recording:
    assert side.cohort is not None
    item = side.cohort.items[i]
    return item.load() if isinstance(item, Handle) else item


def _vectors(
    side: RecordingSet, series: dict[str, list[Singles]], levels: dict[tuple[str, int], Floats]
) -> RecordingVectors:
    parts, names, blocks = [], [], []
    for (kind, dilation), thresholds in levels.items():
        parts.append(_shares(series[kind], dilation, thresholds))
        count = parts[-1].shape[1]
        names += [f"{kind}_{dilation}_{i}" for i in range(count)]
        blocks += [kind] * count
    values = np.concatenate(parts, axis=1)
    return RecordingVectors(side.keys, values, tuple(names), tuple(blocks))


def _series(recording: Recording, kind: str, slot_s: float, side: RecordingSet) -> Floats:
    """Channels of a recording, shape (channels, slots): steps right and down and their length, or
    places right and down of the mean place. Lost slots are bridged by straight lines.
    """
    if len(recording) == 0 or not recording.valid.any():
        return np.zeros((_CHANNELS[kind], 0))
    weights = sample_weights(recording, side.noise_scale_deg)
    path = paths(recording, (slot_s,), weights)[slot_s]
    there = np.flatnonzero(np.isfinite(path.vectors).all(axis=1))
    if len(there) < 2:
        return np.zeros((_CHANNELS[kind], 0))
    every = np.arange(len(path.vectors))
    bridged = np.stack([np.interp(every, there, v[there]) for v in path.vectors.T], axis=1)
    whole = Path(path.space, bridged)
    if kind == "fine":
        steps = np.nan_to_num(whole.steps_deg().T)
        return np.concatenate((steps, np.hypot(steps[0], steps[1])[None]))
    return np.nan_to_num(whole.offsets_deg(bridged.mean(axis=0, keepdims=True)).T)


def _looked_at(lengths: list[int], dilation: int) -> list[int]:
    """The recordings from which thresholds are taken: some that are long enough, evenly spread."""
    long = [i for i, n in enumerate(lengths) if n > _TAPS * dilation]
    return [long[i] for i in np.linspace(0, len(long) - 1, _LOOKED_AT).astype(int)] if long else []


def _thresholds(series: list[Floats], kind: str, dilation: int) -> Floats:
    """Quantiles of each filtered channel over some recordings, shape (channels, filters, levels);
    zeros where none is long enough.
    """
    if not series:
        return np.zeros((_CHANNELS[kind], len(_HEAVY), _LEVELS))
    values = np.concatenate([_some_values(s, dilation, _HEAVY, _VALUES) for s in series], axis=2)
    at = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return np.moveaxis(np.quantile(values, at, axis=2), 0, 2)


def _shares(series: list[Singles], dilation: int, levels: Floats) -> Floats:
    """Share of time above each threshold, shape (recordings, channels x filters x levels); NaN for
    recordings that are too short.
    """
    out = np.full((len(series), *levels.shape), np.nan)
    thresholds = levels.astype(np.float32)
    for i, channels in enumerate(series):
        if channels.shape[1] > _TAPS * dilation:
            _above(channels, dilation, _HEAVY, thresholds, out[i])
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
