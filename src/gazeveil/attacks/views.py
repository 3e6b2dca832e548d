"""Repeated views: several independent releases of the same recordings, averaged.

Repeated releases of pieces: names differ from release to release, so pieces are matched by place
before they are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.attacks.pieces.sides import renamed
from gazeveil.errors import DataError
from gazeveil.features.recording_set import TABLES, RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey


def average_views(recording_sets: Sequence[RecordingSet]) -> RecordingSet:
    """Several releases of the same recordings averaged, sample by sample or row by row: m
    independent ones leave 1/sqrt(m) of the noise.

    Parameters
    ----------
    recording_sets : sequence of RecordingSet
        All with samples, or all with tables only. A recording is averaged over the releases that
        hold it; a sample of the first one over those that have a valid sample at the same time;
        rows of tables over the releases that hold as many rows of that recording.

    Raises
    ------
    DataError
        Without recording sets, or if some hold samples and some do not.
    """
    views = list(recording_sets)
    if not views:
        raise DataError("average_views needs at least one recording set.")
    if len(views) == 1:
        return views[0]
    first = views[0]
    if all(v.cohort is None for v in views):
        names = [name for name in TABLES if all(v.has(name) for v in views)]
        tables = {n: _mean_table([v.table(n) for v in views]) for n in names}
        return RecordingSet(None, tables, first.pipeline, first.people)
    groups: dict[RecordingKey, list[Recording]] = {}
    for view in views:
        if view.cohort is None:
            raise DataError(
                "average_views needs releases of one kind. Some hold samples and some hold tables"
                " only."
            )
        for recording in view.cohort:
            groups.setdefault(recording.key, []).append(recording)
    name = first.cohort.name if first.cohort is not None else ""
    return RecordingSet(
        Cohort([_mean_recording(g) for g in groups.values()], first.people, name=name),
        None,
        first.pipeline,
        first.people,
    )


def _mean_recording(views: Sequence[Recording]) -> Recording:
    """The mean position at each time of the first view: of directions on a sphere, of angles on a
    screen.
    """
    base = views[0]
    sphere = isinstance(base.space, Sphere)
    total = np.zeros((len(base), 3 if sphere else 2))
    count = np.zeros(len(base))
    for view in views:
        if np.array_equal(view.t_ns, base.t_ns):
            mine, here = np.flatnonzero(view.valid), np.flatnonzero(view.valid)
        else:
            good = np.flatnonzero(view.valid)
            _, here, at = np.intersect1d(base.t_ns, view.t_ns[good], return_indices=True)
            mine = good[at]
        xy = view.x_deg[mine], view.y_deg[mine]
        total[here] += view.space.vectors(*xy) if sphere else np.stack(xy, axis=1)
        count[here] += 1
    covered = count > 0
    mean = total / np.maximum(count, 1)[:, None]
    x, y = base.space.degrees(mean) if sphere else (mean[:, 0], mean[:, 1])
    valid = covered & np.isfinite(x) & np.isfinite(y)
    # Where the first view's clock stands still, its own mask says which sample counts.
    valid &= _strictly_later(base.t_ns, valid, base.valid)
    return base.with_(
        x_deg=np.where(valid, x, np.nan), y_deg=np.where(valid, y, np.nan), valid=valid
    )


def _strictly_later(t_ns: Ints, valid: Bools, trusted: Bools) -> Bools:
    times = t_ns[valid]
    return np.ones(len(t_ns), dtype=np.bool_) if (np.diff(times) > 0).all() else trusted


def _mean_table(views: Sequence[FeatureTable]) -> FeatureTable:
    """Rows of the first table, each averaged over the tables that hold as many rows of that
    recording; NaN where none measured it.
    """
    base = views[0]
    total, count = np.zeros(base.values.shape), np.zeros(base.values.shape)
    places = base.recordings()
    for view in views:
        if view.columns != base.columns:
            raise DataError("average_views needs tables with the same features.")
        mine = view.recordings()
        for key, rows in places.items():
            if key in mine and len(mine[key]) == len(rows):
                values = view.values[mine[key]]
                total[rows] += np.nan_to_num(values)
                count[rows] += ~np.isnan(values)
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return FeatureTable(values, base.columns, base.keys, base.bounds, base.counts)


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
