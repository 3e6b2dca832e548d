"""Repeated releases of pieces: names differ from release to release, so pieces are matched by place
before they are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.pieces.sides import renamed
from gazeveil.attacks.views import average_views
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey

#: Distance of pieces that have no valid sample at the same time, in degrees.
_FAR_DEG = 180.0


def average_pieces(releases: Sequence[RecordingSet]) -> RecordingSet:
    """Several releases of the same pieces, as :func:`gazeveil.attacks.pieces.sides.named_pieces`
    gives them, averaged under the names of the first.

    Pieces of one window are matched one to one with those of the first release so that the sum of
    mean distances is the least (the assignment problem), then averaged sample by sample.
    """
    first, *others = releases
    aligned = [first, *(_aligned(first, other) for other in others)]
    mean = average_views(aligned)
    mean.piece_windows = first.piece_windows
    return mean


def _aligned(first: RecordingSet, other: RecordingSet) -> RecordingSet:
    """The other release under the names of the first; pieces without a partner are left out."""
    from scipy.optimize import linear_sum_assignment

    names: dict[RecordingKey, RecordingKey] = {}
    theirs = _by_window(other)
    for window, mine in _by_window(first).items():
        candidates = theirs.get(window, [])
        if candidates:
            apart = mean_distances_deg(mine, candidates)
            for i, j in zip(*linear_sum_assignment(apart), strict=True):
                names[candidates[int(j)].key] = mine[int(i)].key
    part = other.where(lambda key: key in names)
    return renamed(part, names, None)


def _by_window(pieces: RecordingSet) -> dict[str, list[Recording]]:
    groups: dict[str, list[Recording]] = {}
    for piece in pieces.cohort or ():
        groups.setdefault(piece.stimulus, []).append(piece)
    return groups


def mean_distances_deg(first: Sequence[Recording], second: Sequence[Recording]) -> Floats:
    """Mean distance over the samples that both have, shape (first, second), in degrees; samples of
    one window have the same times in all its pieces.
    """
    n = min(len(r) for r in (*first, *second))
    theirs = np.stack([b.vectors[:n] for b in second])
    apart = np.full((len(first), len(second)), _FAR_DEG)
    for i, piece in enumerate(first):
        cosine = np.clip((theirs * piece.vectors[:n]).sum(axis=2), -1.0, 1.0)
        angle_deg = np.degrees(np.arccos(cosine))
        both = np.isfinite(angle_deg)
        there = both.sum(axis=1)
        mean = np.where(both, angle_deg, 0.0).sum(axis=1) / np.maximum(there, 1)
        apart[i] = np.where(there > 0, mean, _FAR_DEG)
    return apart
