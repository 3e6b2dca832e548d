"""Windows of many recordings: velocities end to end in one array, and where windows may begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints, Singles, Texts
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.models.ekyt.velocity import VelocityInput, velocities

#: Largest share of a window that may be lost.
MOST_LOST = 0.5


@dataclass(frozen=True, eq=False)
class VelocityScale:
    """Mean and deviation of velocities of the training side, one of each per signal.

    Parameters
    ----------
    mean, deviation : array of float64, shape (channels,)
        In deg/s.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, values: Floats) -> VelocityScale:
        """Of velocities of shape (channels, samples), NaN left out; x and y of a signal share
        theirs.
        """
        mean, deviation = np.zeros(len(values)), np.ones(len(values))
        for pair in range(0, len(values), 2):
            known = values[pair : pair + 2][np.isfinite(values[pair : pair + 2])]
            if len(known):
                mean[pair : pair + 2] = known.mean()
                deviation[pair : pair + 2] = max(float(known.std()), 1e-9)
        return cls(mean, deviation)

    def apply(self, values: Floats) -> Singles:
        """Standardised velocities; what is not known counts as the mean."""
        z = (values - self.mean[:, None]) / self.deviation[:, None]
        return np.nan_to_num(z, nan=0.0).astype(np.float32)


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Velocities of recordings, one after the other, and their windows.

    Parameters
    ----------
    keys : tuple of RecordingKey
        The recordings, in order.
    lengths : array of int64, shape (recordings,)
        Samples of each.
    values : array of float64, shape (channels, samples)
        Velocities in deg/s, NaN where not known; a recording shorter than a window is filled up
        with NaN.
    starts : array of int64, shape (windows,)
        First sample of every window that is known for more than half of its time, at every sample
        where one may begin.
    owner : array of int64, shape (windows,)
        Recording of each window.
    setting : VelocityInput
        How they were made.
    """

    keys: tuple[RecordingKey, ...]
    lengths: Ints
    values: Floats
    starts: Ints
    owner: Ints
    setting: VelocityInput

    @classmethod
    def of(cls, recordings: Iterable[Recording], setting: VelocityInput) -> WindowSet:
        """The windows of recordings."""
        keys: list[RecordingKey] = []
        parts: list[Floats] = []
        for recording in recordings:
            keys.append(recording.key)
            parts.append(_at_least(velocities(recording, setting), setting.samples))
        lengths = np.array([part.shape[1] for part in parts], dtype=np.int64)
        nothing = np.empty((setting.count, 0))
        return cls.joined(keys, lengths, np.concatenate([nothing, *parts], axis=1), setting)

    @classmethod
    def joined(
        cls, keys: Sequence[RecordingKey], lengths: Ints, values: Floats, setting: VelocityInput
    ) -> WindowSet:
        """The windows of velocities that lie end to end already, `lengths` samples of each
        recording.
        """
        starts, owner = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        ends = np.cumsum(lengths)
        for i, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            part = values[:, end - length : end]
            begins = np.flatnonzero(usable(part, setting.samples))
            starts.append(begins + (end - length))
            owner.append(np.full(len(begins), i))
        return cls(
            tuple(keys),
            np.asarray(lengths, dtype=np.int64),
            values,
            np.concatenate(starts),
            np.concatenate(owner),
            setting,
        )

    def parts(self) -> list[Floats]:
        """Velocities of each recording."""
        return np.split(self.values, np.cumsum(self.lengths)[:-1], axis=1)

    @property
    def persons(self) -> tuple[str, ...]:
        """Whose each window is."""
        return tuple(self.keys[i][0] for i in self.owner)

    def people(self) -> tuple[Texts, Ints]:
        """The people who have windows, sorted, and the person of each window counted so."""
        mine = np.array([key[0] for key in self.keys], dtype=np.str_)
        there = np.unique(self.owner)
        names, code = np.unique(mine[there], return_inverse=True)
        of_recording = np.zeros(len(mine), dtype=np.int64)
        of_recording[there] = code
        return names, of_recording[self.owner]

    def used(self) -> Floats:
        """Velocities of the recordings that have windows here, shape (channels, samples)."""
        there = np.zeros(len(self.keys), dtype=np.bool_)
        there[self.owner] = True
        return self.values[:, np.repeat(there, self.lengths)]

    def where(self, wanted: Callable[[RecordingKey], bool]) -> WindowSet:
        """The windows of the recordings that `wanted` says yes to; velocities are shared."""
        chosen = np.array([wanted(key) for key in self.keys], dtype=np.bool_)
        return self.only(chosen[self.owner] if len(chosen) else np.zeros(0, dtype=np.bool_))

    def every(self, step_s: float) -> WindowSet:
        """The windows of each recording at least `step_s` apart, from its first one on."""
        step = max(1, round(step_s * self.setting.rate_hz))
        kept = np.zeros(len(self.starts), dtype=np.bool_)
        last_owner, last = -1, 0
        for i, (start, owner) in enumerate(zip(self.starts, self.owner, strict=True)):
            if owner != last_owner or start >= last + step:
                kept[i], last_owner, last = True, owner, start
        return self.only(kept)

    def only(self, kept: Bools) -> WindowSet:
        """Some of the windows; velocities are shared."""
        return replace(self, starts=self.starts[kept], owner=self.owner[kept])


def usable(values: Floats, samples: int) -> Bools:
    """Whether a window that begins at each sample lies inside and is known for more than half of
    its time; shape (samples of the recording,).
    """
    length = values.shape[1]
    result = np.zeros(length, dtype=np.bool_)
    if length < samples:
        return result
    known = np.concatenate(([0], np.cumsum(np.isfinite(values).all(axis=0))))
    inside = known[samples:] - known[:-samples]
    result[: length - samples + 1] = inside > (1 - MOST_LOST) * samples
    return result


def _at_least(values: Floats, samples: int) -> Floats:
    short = samples - values.shape[1]
    return np.pad(values, ((0, 0), (0, max(0, short))), constant_values=np.nan)
