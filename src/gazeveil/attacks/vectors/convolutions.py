"""Random-convolution vectors: how often a path rises above some value after each of many fixed
filters.

After MiniRocket (Dempster, Schmidt and Webb 2021): all 84 filters of nine taps of which three
weigh 2 and six weigh -1, at several dilations, on the steps of the path at a fine rate and on the
path itself at a coarse one; of each filtered path the share of time above three thresholds, which
are quantiles in the gallery. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints, Singles, frozen
from gazeveil.attacks.vectors.paths import (
    Path,
    path_of_sums,
    sample_weights,
    slot_sums,
    weighed_directions,
)
from gazeveil.compiled import compiled
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import ScratchFile, rates_hz

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

# Channels of one recording by kind, each of shape (channels, slots), in single precision.
_Channels = dict[str, Singles]


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often each filtered path of each recording is above each threshold: small whole numbers,
    a quarter of the vectors they make.

    Parameters
    ----------
    keys : tuple of keys
        Whose rows they are.
    above : dict
        By kind and dilation: array of unsigned integers, shape (recordings, thresholds).
    times : dict
        By kind and dilation: array of float64, shape (recordings,), at how many times; NaN for a
        recording that is too short.
    """

    keys: tuple[RecordingKey, ...]
    above: dict[tuple[str, int], NDArray[np.unsignedinteger[Any]]]
    times: dict[tuple[str, int], Floats]

    def vectors(self, kind: str) -> RecordingVectors:
        """Shares of time of one kind; NaN for recordings that are too short."""
        names: list[str] = []
        size = sum(self.above[kind, dilation].shape[1] for dilation in _DILATIONS[kind])
        values = np.empty((len(self.keys), size))
        for dilation in _DILATIONS[kind]:
            above, begin = self.above[kind, dilation], len(names)
            names += [f"{kind}_{dilation}_{i}" for i in range(above.shape[1])]
            times = self.times[kind, dilation][:, None]
            np.divide(above, times, out=values[:, begin : len(names)])
        return RecordingVectors(self.keys, frozen(values), tuple(names), (kind,) * size)


@dataclass(frozen=True, eq=False)
class _Filters:
    """What the gallery says about how recordings are looked at, and its own counts.

    Parameters
    ----------
    fine_s : float
        Slot of the fine path in seconds.
    levels : dict
        Thresholds by kind and dilation, single precision.
    counts : _Counts
        Of the gallery.
    """

    fine_s: float
    levels: dict[tuple[str, int], Singles]
    counts: _Counts


# The gallery is computed once for all probes. Only the last result is cached: 4,500 numbers a
# recording are much for thousands of them. Scores are cached elsewhere.
_OF_GALLERY: WeakKeyDictionary[RecordingSet, _Filters] = WeakKeyDictionary()
_KEPT: WeakKeyDictionary[RecordingSet, WeakKeyDictionary[RecordingSet, _Counts]] = (
    WeakKeyDictionary()
)


def convolution_vectors(
    gallery: RecordingSet, probe: RecordingSet, kind: str
) -> tuple[RecordingVectors, RecordingVectors]:
    """Vectors of one of :data:`KINDS` of both sides, with thresholds from the gallery; recordings
    are looked at once for a pair.
    """
    filters = _OF_GALLERY.get(gallery)
    if filters is None:
        _OF_GALLERY.clear()
        _KEPT.clear()
        filters = _OF_GALLERY[gallery] = _look_at(gallery)
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary())
    asked = kept.get(probe)
    if asked is None:
        kept.clear()
        every = (_channels(r, filters.fine_s, probe) for r in probe.cohort or ())
        asked = kept[probe] = _count(probe.keys, every, filters.levels)
    return filters.counts.vectors(kind), asked.vectors(kind)


def _look_at(gallery: RecordingSet) -> _Filters:
    known = rates_hz(gallery.cohort) if gallery.cohort is not None else []
    rates = [rate for rate in known if np.isfinite(rate)]
    # One slot for all: filters of other lengths would be other filters.
    fine_s = max(FINE_S, 1.0 / float(np.median(rates))) if rates else FINE_S
    series = _SeriesFile(_channels(r, fine_s, gallery) for r in gallery.cohort or ())
    levels = {}
    for kind, slot_s in zip(KINDS, (fine_s, COARSE_S), strict=True):
        for dilation in _DILATIONS[kind]:
            chosen = _looked_at(series.lengths(kind), dilation)
            recordings = [_recording(gallery, i) for i in chosen]
            some = [_series(r, kind, slot_s, _directions(r, gallery)) for r in recordings]
            levels[kind, dilation] = _thresholds(some, kind, dilation).astype(np.float32)
    return _Filters(fine_s, levels, _count(gallery.keys, series, levels))


class _SeriesFile:
    """Channels of all recordings of a gallery, on disk: thresholds need a look at all of them
    before the first can be counted, and there may be thousands.
    """

    def __init__(self, every: Iterable[_Channels]) -> None:
        self._file = ScratchFile()
        self._places = [
            {k: (self._file.put_array(c), c.shape[1]) for k, c in channels.items()}
            for channels in every
        ]

    def lengths(self, kind: str) -> list[int]:
        """Slots of each recording."""
        return [places[kind][1] for places in self._places]

    def __iter__(self) -> Iterator[_Channels]:
        single = np.dtype(np.float32)
        for places in self._places:
            yield {
                kind: self._file.read_array(begin, (_CHANNELS[kind], slots), single)
                for kind, (begin, slots) in places.items()
            }


def _channels(recording: Recording, fine_s: float, side: RecordingSet) -> _Channels:
    directions = _directions(recording, side)
    return {
        kind: np.ascontiguousarray(_series(recording, kind, slot_s, directions), dtype=np.float32)
        for kind, slot_s in zip(KINDS, (fine_s, COARSE_S), strict=True)
    }


def _directions(recording: Recording, side: RecordingSet) -> Floats:
    """Directions of samples, weighed by their noise where that is public."""
    return weighed_directions(recording, sample_weights(recording, side.noise_scale_deg))


def _count(
    keys: tuple[RecordingKey, ...],
    every: Iterable[_Channels],
    levels: dict[tuple[str, int], Singles],
) -> _Counts:
    """Counts of recordings, which are looked at one after the other."""
    above: dict[tuple[str, int], NDArray[np.unsignedinteger[Any]]] = {
        name: np.zeros((len(keys), t.size), dtype=np.uint16) for name, t in levels.items()
    }
    times = {name: np.full(len(keys), np.nan) for name in levels}
    for i, channels in enumerate(every):
        for (kind, dilation), thresholds in levels.items():
            series, name = channels[kind], (kind, dilation)
            if series.shape[1] <= _TAPS * dilation:
                continue
            many = series.shape[1] - (_TAPS - 1) * dilation
            if many > np.iinfo(above[name].dtype).max:
                above[name] = above[name].astype(np.uint32)
            found = np.empty(thresholds.shape, dtype=np.int32)
            _count_above(series, dilation, _HEAVY, thresholds, found)
            above[name][i], times[name][i] = found.ravel(), many
    return _Counts(keys, above, times)


def _recording(side: RecordingSet, i: int) -> Recording:
    assert side.cohort is not None
    item = side.cohort.items[i]
    return item.load() if isinstance(item, Handle) else item


def _series(recording: Recording, kind: str, slot_s: float, directions: Floats) -> Floats:
    """Channels of a recording, shape (channels, slots): steps right and down and their length, or
    places right and down of the mean place. Lost slots are bridged by straight lines.
    """
    if len(recording) == 0 or not recording.valid.any():
        return np.zeros((_CHANNELS[kind], 0))
    sums = slot_sums(recording, slot_s, directions=directions)
    path = path_of_sums(recording.space, sums, 1)
    known = np.isfinite(path.vectors[:, 0])  # a slot has all three numbers or none
    there = np.flatnonzero(known)
    if len(there) < 2:
        return np.zeros((_CHANNELS[kind], 0))
    bridged = path.vectors
    if len(there) < len(bridged):
        lost, bridged = np.flatnonzero(~known), bridged.copy()
        for axis in bridged.T:
            axis[lost] = np.interp(lost, there, axis[there])
    whole = Path(path.space, bridged)
    if kind == "fine":
        steps = _finite(whole.steps_deg().T)
        return np.concatenate((steps, np.hypot(steps[0], steps[1])[None]))
    return _finite(whole.offsets_deg(bridged.mean(axis=0, keepdims=True)).T)


def _finite(values: Floats) -> Floats:
    """As numpy.nan_to_num, which takes several times as long where there is nothing to do."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


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
    values.sort(axis=2)  # NumPy sorts faster than it looks for several quantiles
    return np.moveaxis(np.quantile(values, at, axis=2, overwrite_input=True), 0, 2)


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
def _count_above(
    series: Singles, dilation: int, heavy: Ints, levels: Singles, out: NDArray[np.int32]
) -> None:
    """At how many times each filter gives more than each of three thresholds.

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
            out[c, k, 0], out[c, k, 1], out[c, k, 2] = over_low, over_middle, over_high
