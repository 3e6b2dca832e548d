"""Channels beside gaze: words of labels, one pupil size a sample from two eyes, and tables of
intervals or channels that have a clock of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Floats, Ints, Texts

#: Words of the label sets in use, in our vocabulary.
WORDS = {
    "unassigned": "undefined",
    "unknown": "undefined",
    "fix": "fixation",
    "sp": "pursuit",
    "noise_cluster": "noise",
    "vor": "vor",
    "okn": "okn",
    "okn+vor": "okn+vor",
    "head_pursuit": "head_pursuit",
}


def mean_of_eyes(left: Floats, right: Floats) -> Floats:
    """The mean of two sizes, or the one that is there."""
    return np.where(
        np.isfinite(left) & np.isfinite(right),
        (left + right) / 2,
        np.where(np.isfinite(left), left, right),
    )


def pupil_of(sizes: Sequence[Floats]) -> Floats | None:
    """The pupil of a recording from the sizes of none, one or both of its eyes."""
    if len(sizes) == 2:
        return mean_of_eyes(*sizes)
    return sizes[0] if sizes else None


def mark(words: Texts, t_ns: Ints, onset_ns: ArrayLike, offset_ns: ArrayLike, word: str) -> None:
    """Write `word` over the samples inside each interval, ends included; times
    need not be sorted.
    """
    order = np.argsort(t_ns, kind="stable")
    times = t_ns[order]
    low = np.searchsorted(times, np.asarray(onset_ns, dtype=np.int64), side="left")
    high = np.searchsorted(times, np.asarray(offset_ns, dtype=np.int64), side="right")
    for a, b in zip(low, high, strict=True):
        words[order[a:b]] = word


def nearest(t_ns: Ints, other_ns: Ints, values: Floats, farthest_ns: int) -> Floats:
    """The other channel's value nearest in time to each sample, NaN where none is near enough."""
    if not len(other_ns) or not len(t_ns):
        return np.full(len(t_ns), np.nan)
    order = np.argsort(other_ns, kind="stable")
    times = other_ns[order]
    after = np.clip(np.searchsorted(times, t_ns), 0, len(times) - 1)
    before = np.maximum(after - 1, 0)
    best = np.where(np.abs(times[before] - t_ns) <= np.abs(times[after] - t_ns), before, after)
    return np.where(np.abs(times[best] - t_ns) <= farthest_ns, values[order[best]], np.nan)
