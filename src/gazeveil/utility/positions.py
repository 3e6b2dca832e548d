"""Where released samples lie beside the recorded ones, in degrees: the part of
:mod:`gazeveil.utility.signal` that compares samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import groupby

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, distance_deg
from gazeveil.gaze.recording import Recording
from gazeveil.utility.areas.scanpaths import side_by_side
from gazeveil.utility.base import UtilityResult, over_people
from gazeveil.utility.stretches import holds_pieces, pieces


def compare_samples(raw: RecordingSet, test: RecordingSet) -> tuple[UtilityResult, ...]:
    """Errors of samples; see :mod:`gazeveil.utility.signal`."""
    persons: list[str] = []
    rows: list[Floats] = []
    pooled: dict[str, _Pool] = {}
    compared = 0
    for recorded, released, samples in _both_sides(raw, test):
        mine, theirs = partners(recorded, released, holds_pieces(test))
        errors_deg = _angles_deg(recorded, released, mine, theirs)
        persons.append(recorded.person)
        rows.append(summary_of(errors_deg, samples))
        pooled.setdefault(recorded.person, _Pool()).add(errors_deg)
        compared += len(errors_deg)
    if not rows:
        raise DataError(
            "No recording of the release has the person, stimulus, session and task of a recorded"
            " one, so there is nothing to compare."
        )
    values, who = np.stack(rows), np.array(persons)
    unit = "pieces" if holds_pieces(test) else "recordings"
    note = f"{compared} samples of {len(rows)} {unit}"
    published = f"{note}; not divided by the number of samples"
    kept = "share of valid samples that a valid released one belongs to"
    each = f"{note}; per {unit[:-1]}, then the mean over people"
    assert raw.cohort is not None
    rmse, _, median, p90 = middle_errors_deg(raw.cohort)
    return (
        over_people("rmse_deg", values[:, :1], who, each, chance=rmse),
        over_people("rmse_published_deg", values[:, 1:2], who, published),
        over_people("median_error_deg", values[:, 2:3], who, each, chance=median),
        over_people("p90_error_deg", values[:, 3:4], who, each, chance=p90),
        *_pooled_results(pooled, f"{note}; all samples together"),
        over_people("kept_share", values[:, 4:], who, kept, "higher"),
    )


def middle_errors_deg(cohort: Cohort) -> Floats:
    """Errors of an analyst who has no data and says "the middle": as :func:`summary_of` has them,
    per recording, then over people.

    On a sphere no direction is the middle, and another zero of the headset would give another
    figure: there it is the mean direction of everybody's gaze at the stimulus, which does not turn
    with the zero and is about as good as a constant can be.
    """
    means = _mean_directions(cohort)
    own: dict[str, list[Floats]] = {}
    for recording in cohort:
        x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
        if not len(x):
            continue
        sphere = isinstance(recording.space, Sphere)
        at = means[recording.stimulus] if sphere else (0.0, 0.0)
        angles = distance_deg(recording.space, x, y, np.full(len(x), at[0]), np.full(len(x), at[1]))
        own.setdefault(recording.person, []).append(summary_of(angles, float(len(x)))[:4])
    people = [np.mean(rows, axis=0) for rows in own.values()]
    return np.mean(people, axis=0) if people else np.full(4, np.nan)


def _mean_directions(cohort: Cohort) -> dict[str, tuple[float, float]]:
    """Stimulus on a sphere -> the mean of its recordings' mean directions, in degrees."""
    sums: dict[str, Floats] = {}
    for recording in cohort:
        if isinstance(recording.space, Sphere) and recording.valid.any():
            x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
            mean = recording.space.vectors(x, y).mean(axis=0)
            sums[recording.stimulus] = sums.get(recording.stimulus, np.zeros(3)) + mean
    found = {}
    for stimulus, vector in sums.items():
        x, y = Sphere().degrees(vector[np.newaxis])
        found[stimulus] = (float(x[0]), float(y[0]))
    return found


def _both_sides(
    raw: RecordingSet, test: RecordingSet
) -> Iterator[tuple[Recording, Recording, float]]:
    """Recordings as recorded and as released, or pieces, with the number of valid samples that each
    might have kept: a piece has its share of all of its recording.
    """
    if not holds_pieces(test):
        for recorded, released in side_by_side(raw, test):
            if recorded is not None and released is not None:
                yield recorded, released, float(recorded.valid.sum())
        return
    assert raw.cohort is not None
    at = {key: i for i, key in enumerate(raw.cohort.keys)}
    for viewer, group in groupby(pieces(raw, test), key=lambda stretch: stretch.viewer):
        cut = list(group)
        samples = float(raw.cohort[at[viewer]].valid.sum()) / len(cut)
        for stretch in cut:
            yield stretch.recorded, stretch.released, samples


#: Edges of the histogram of pooled errors in degrees: 0 alone, then steps of half a per cent.
_EDGES_DEG = np.concatenate(([0.0], np.geomspace(1e-4, 181.0, 2900)))


class _Pool:
    """Errors of many samples in little memory."""

    def __init__(self) -> None:
        self.counts = np.zeros(len(_EDGES_DEG), dtype=np.int64)
        self.squares = 0.0

    def add(self, errors_deg: Floats) -> None:
        place = np.searchsorted(_EDGES_DEG, errors_deg, side="left")
        self.counts += np.bincount(place, minlength=len(_EDGES_DEG))
        self.squares += float((errors_deg**2).sum())

    def with_(self, other: _Pool) -> _Pool:
        both = _Pool()
        both.counts, both.squares = self.counts + other.counts, self.squares + other.squares
        return both

    def figures(self) -> Floats:
        """Root mean square, median and 90 % quantile; NaN without samples."""
        n = int(self.counts.sum())
        if n == 0:
            return np.full(3, np.nan)
        reached = np.searchsorted(np.cumsum(self.counts), np.ceil(np.array([0.5, 0.9]) * n))
        return np.array([np.sqrt(self.squares / n), *_EDGES_DEG[reached]])


def _pooled_results(pools: dict[str, _Pool], note: str) -> Iterator[UtilityResult]:
    """Figures of all samples together, with those of each person as parts."""
    names = tuple(sorted(n for n, pool in pools.items() if pool.counts.any()))
    parts = np.array([pools[n].figures() for n in names]).reshape(-1, 3)
    whole = reduce(_Pool.with_, pools.values(), _Pool()).figures()
    metrics = ("pooled_rmse_deg", "pooled_median_error_deg", "pooled_p90_error_deg")
    for i, metric in enumerate(metrics):
        own = parts[:, i].copy()
        yield UtilityResult(metric, float(whole[i]), own, "person", names, note=note)


def position_errors(raw: Recording, released: Recording) -> tuple[Floats, int]:
    """Root mean square, root of the sum of squares, median and 90 % quantile of the visual angle in
    degrees, and the share of samples kept; and how many were compared.

    NaN where no sample can be compared; the share is NaN for a recording without valid samples.
    """
    errors_deg = _angles_deg(raw, released, *partners(raw, released))
    return summary_of(errors_deg, float(raw.valid.sum())), len(errors_deg)


def partners(raw: Recording, released: Recording, by_time: bool = False) -> tuple[Ints, Ints]:
    """Places of the samples that belong together, on both sides.

    A release with as many samples is compared sample by sample, because mechanisms that drop the
    tracker's own timing release a regular clock. In any other (or `by_time`, where both sides have
    one clock), a recorded and a released sample belong together that are nearest in time to one
    another and at most half a recorded sample apart.
    """
    if len(raw) == len(released) and not by_time:
        both = np.flatnonzero(raw.valid & released.valid)
        return both, both
    mine, theirs = (np.flatnonzero(r.valid) for r in (raw, released))
    if not (len(mine) and len(theirs)):
        return mine[:0], theirs[:0]
    # A release on a public clock begins at 0, whenever the recording did.
    begin = raw.t_ns[0] if released.t_ns[0] == 0 and not by_time else np.int64(0)
    t, clock = raw.t_ns[mine] - begin, released.t_ns[theirs]
    there = _nearest(t, clock)
    near = np.abs(clock[there] - t) <= (0.5e9 / raw.rate_hz if raw.rate_hz > 0 else 0.0)
    # Both ways, so that no released sample stands for two; of two that are equally near the one
    # that the other side chooses too.
    near &= _nearest(clock, t, later=True)[there] == np.arange(len(t))
    return mine[near], theirs[there[near]]


def _angles_deg(raw: Recording, released: Recording, mine: Ints, theirs: Ints) -> Floats:
    """Visual angles between samples that belong together."""
    return distance_deg(
        raw.space, raw.x_deg[mine], raw.y_deg[mine], released.x_deg[theirs], released.y_deg[theirs]
    )


def summary_of(errors_deg: Floats, samples: float) -> Floats:
    """The five figures of :func:`position_errors`, of so many samples that might have been kept."""
    figures = np.full(5, np.nan)
    if samples > 0:
        figures[4] = len(errors_deg) / samples
    if len(errors_deg):
        squares = errors_deg**2
        figures[:2] = np.sqrt(squares.mean()), np.sqrt(squares.sum())
        figures[2:4] = np.quantile(errors_deg, (0.5, 0.9))
    return figures


def _nearest(t_ns: Ints, clock_ns: Ints, later: bool = False) -> Ints:
    """Place in an increasing clock of the time nearest to each of some times; of two that are
    equally near the earlier one, or the later one.
    """
    after = np.minimum(np.searchsorted(clock_ns, t_ns), len(clock_ns) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(clock_ns[after] - t_ns) - np.abs(t_ns - clock_ns[before])
    return np.where(nearer <= 0 if later else nearer < 0, after, before)
