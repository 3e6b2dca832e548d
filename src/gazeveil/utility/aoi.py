"""`aoi`: what an analyst of areas of interest loses: dwell times, visits, counts, order, times to
first fixation and first saccade.

Per recording and area (boxes of :mod:`gazeveil.io.areas`, scanpaths of
:mod:`gazeveil.utility.base`):

* dwell time: the sum of the durations of fixations whose place lies in the box (David-John et al.
  2021);
* fixation count, and visits: runs of successive fixations inside;
* time to the first fixation inside, and to the first saccade that begins outside and lands inside,
  both from the start of the recording.

Figures. `dwell_rmse_s`, `visits_rmse`, `fixations_rmse`, `first_fixation_rmse_s`,
`first_saccade_rmse_s`: root mean square of released minus raw over the areas of one recording, then
the mean over a person's recordings, then over people. An area without fixations has dwell time,
visits and count 0, which counts as an answer. A time to first that one side never reached is the
length of the raw recording. A time that neither side reached is left out. `order_edit`: edit
distance between the two sequences of areas visited (successive fixations in one area count once,
outside of all areas not at all), over the length of the longer one: 0 the same, 1 nothing in
common. `order_tau`: Kendall's rank correlation of the times of first fixation over areas that both
sides looked at, for at least two of them.

`chance` is what a release without any fixation gives. A release of pieces is compared piece by
piece with the same seconds of the recording; times to first then count from the piece's beginning.

What utilities about areas of interest have in common: where their areas come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas import UNITS, AreaLookup, Boxes
from gazeveil.utility.base import (
    Scanpath,
    Utility,
    UtilityResult,
    holds_pieces,
    need_samples,
    scanpath_as_recorded,
    scanpath_as_released,
    viewer_by_viewer,
)


@dataclass(frozen=True)
class AreaUtility(Utility):
    """Base of the utilities about areas of interest.

    Parameters
    ----------
    areas : str
        A file of boxes (TOML, JSON or CSV); `dataset` for those the recordings came with; empty for
        a public grid.
    rows, columns : int
        The grid; on a sphere it has 2 `columns` + 1 columns, so 3 x 3 means 3 x 7 tiles, with
        straight ahead in the middle of one.
    unit : str
        What the numbers of the file mean where it does not say: `deg` (default), `px`, `fraction`
        or `lonlat`.
    width_px, height_px : float
        Size of the stimuli in pixels where the file does not say; 0 for the screen's own.
    """

    files: ClassVar[tuple[str, ...]] = ("areas",)

    areas: str = ""
    rows: int = 3
    columns: int = 3
    unit: str = ""
    width_px: float = 0.0
    height_px: float = 0.0

    def check(self) -> None:
        """A path, counts, a unit, a size."""
        if not isinstance(self.areas, str):
            checks.refuse(self.name, "areas", "a file's path, 'dataset', or empty", self.areas)
        for field in ("rows", "columns"):
            self.store(field, checks.count(self.name, field, getattr(self, field)))
        if self.unit != "":
            checks.one_of(self.name, "unit", self.unit, UNITS)
        for field in ("width_px", "height_px"):
            self.store(field, checks.not_negative(self.name, field, getattr(self, field)))
        if (self.width_px > 0) != (self.height_px > 0):
            checks.refuse(
                self.name,
                "height_px" if self.width_px > 0 else "width_px",
                "given together with the other",
                0,
            )

    @property
    def lookup(self) -> AreaLookup:
        """Which areas lie on which recording."""
        size = (self.width_px, self.height_px) if self.width_px > 0 else None
        return AreaLookup(self.areas, self.rows, self.columns, self.unit, size)

    @property
    def where(self) -> str:
        """Where the areas come from, in words."""
        return (
            PurePath(self.areas).name
            or f"grid of {self.rows} x {self.columns} (x {2 * self.columns + 1} on a sphere)"
        )

    @staticmethod
    def no_areas(bare: set[str], lookup: AreaLookup) -> str:
        """The sentence where nothing could be compared: the areas lie elsewhere, or no recording is
        on both sides.
        """
        if bare:
            return (
                f"The areas lie on other stimuli ({lookup.named()}) than the recordings"
                f" ({', '.join(sorted(bare)[:5])}). Name the stimuli as the cohort does."
            )
        return (
            "The release shares no recording with the raw material, so areas of interest cannot be"
            " compared."
        )


#: Figures, in the order of :func:`compare`, and which way is better.
METRICS = {
    "dwell_rmse_s": "lower",
    "visits_rmse": "lower",
    "fixations_rmse": "lower",
    "first_fixation_rmse_s": "lower",
    "first_saccade_rmse_s": "lower",
    "order_edit": "lower",
    "order_tau": "higher",
}

# Why a figure may be missing for everybody.
_LACKING = {
    "order_tau": "no two areas were looked at on both sides",
    "first_saccade_rmse_s": "no saccade led into any area",
}


@dataclass(frozen=True, eq=False)
class AreaMeasures:
    """What a scanpath says about some boxes.

    Parameters
    ----------
    dwell_s, visits, fixations, first_fixation_s, first_saccade_s : array of float64, shape (boxes,)
        See the top of the page; times are NaN where the box was never reached.
    order : array of int64
        The boxes visited, one entry per visit; a place in several boxes counts for the first of
        them.
    """

    dwell_s: Floats
    visits: Floats
    fixations: Floats
    first_fixation_s: Floats
    first_saccade_s: Floats
    order: Ints


def looks(boxes: Boxes, path: Scanpath) -> AreaMeasures:
    """What a scanpath says about some boxes."""
    inside = boxes.hold(path.x_deg, path.y_deg)
    enters = inside & ~np.concatenate((np.zeros((1, len(boxes)), dtype=np.bool_), inside[:-1]))
    lands = boxes.hold(path.to_x_deg, path.to_y_deg) & ~boxes.hold(path.from_x_deg, path.from_y_deg)
    somewhere = inside.any(axis=1)
    order = np.argmax(inside, axis=1)[somewhere] if len(boxes) else np.empty(0, dtype=np.int64)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = order[1:] != order[:-1]
    return AreaMeasures(
        inside.T @ path.duration_s,
        enters.sum(axis=0).astype(np.float64),
        inside.sum(axis=0).astype(np.float64),
        _first(inside, path.onset_s),
        _first(lands, path.saccade_s),
        order[new].astype(np.int64),
    )


def _first(hits: Bools, times_s: Floats) -> Floats:
    """Time of the first hit in each column; NaN where there is none."""
    if len(times_s) == 0:
        return np.full(hits.shape[1], np.nan)
    return np.where(hits.any(axis=0), times_s[np.argmax(hits, axis=0)], np.nan)


def compare(raw: AreaMeasures, released: AreaMeasures, end_s: float) -> Floats:
    """The figures of :data:`METRICS` for one recording; NaN where there is nothing to compare.

    Parameters
    ----------
    raw, released : AreaMeasures
        The same boxes on both sides.
    end_s : float
        Length of the raw recording, which stands for times never reached.
    """
    counted = [
        _rms(getattr(released, n) - getattr(raw, n)) for n in ("dwell_s", "visits", "fixations")
    ]
    times = []
    for name in ("first_fixation_s", "first_saccade_s"):
        a, b = getattr(raw, name), getattr(released, name)
        some = ~(np.isnan(a) & np.isnan(b))
        times.append(
            _rms(np.where(np.isnan(b), end_s, b)[some] - np.where(np.isnan(a), end_s, a)[some])
        )
    longest = max(len(raw.order), len(released.order))
    edits = edit_distance(raw.order, released.order) / longest if longest else np.nan
    return np.array(
        [*counted, *times, edits, _tau(raw.first_fixation_s, released.first_fixation_s)]
    )


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def _tau(a: Floats, b: Floats) -> float:
    """Kendall's tau-a of the values that are there on both sides; NaN for fewer than two."""
    both = ~(np.isnan(a) | np.isnan(b))
    n = int(np.count_nonzero(both))
    if n < 2:
        return float("nan")
    i, j = np.triu_indices(n, 1)
    p, q = a[both], b[both]
    return float(np.mean(np.sign(p[i] - p[j]) * np.sign(q[i] - q[j])))


@compiled
def edit_distance(a: Ints, b: Ints) -> int:
    """Least number of insertions, deletions and exchanges that turn one sequence into the other
    (Levenshtein).
    """
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        above = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(above + (a[i] != b[j]), row[j + 1] + 1, row[j] + 1)
            above = row[j + 1]
            row[j + 1] = best
    return int(row[-1])


@dataclass(frozen=True)
class AOI(AreaUtility):
    """Areas of interest, raw against released; parameters as in :class:`AreaUtility`."""

    name: ClassVar[str] = "aoi"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The figures of :data:`METRICS`, one part per person."""
        need_samples(self.name, raw, test)
        lookup = self.lookup
        people: dict[str, list[Floats]] = {}
        guess: dict[str, list[Floats]] = {}
        bare, missing = set(), 0
        for recorded, release in viewer_by_viewer(raw, test):
            if recorded is None:
                continue
            if release is None:
                missing += 1
                continue
            boxes = lookup.of(recorded)
            if boxes is None:
                bare.add(recorded.stimulus)
                continue
            metrics, chance = _compare_recording(boxes, raw, recorded, test, release)
            people.setdefault(recorded.person, []).append(metrics)
            guess.setdefault(recorded.person, []).append(chance)
        if not people:
            raise DataError(self.no_areas(bare, lookup))
        names = tuple(sorted(people))
        parts, chances = (
            np.stack([column_means(np.stack(rows[p])) for p in names]) for rows in (people, guess)
        )
        note = self._note(test, missing, len(bare))
        results = []
        for (metric, better), own, guesses in zip(METRICS.items(), parts.T, chances.T, strict=True):
            value, by_chance = float(column_means(own)), float(column_means(guesses))
            lacking = _LACKING.get(metric, "nobody looked at any area")
            why = note if np.isfinite(own).any() else f"{note}; {lacking}"
            even = 0.0 if metric == "order_tau" else by_chance
            results.append(UtilityResult(metric, value, own, "person", names, even, better, why))
        return tuple(results)

    def _note(self, test: RecordingSet, missing: int, bare: int) -> str:
        parts = [
            f"areas: {self.where}",
            f"events {test.pipeline.events}",
            "RMSE over areas, mean over a person's recordings",
        ]
        if holds_pieces(test):
            parts[-1] = "RMSE over areas, each piece by itself, mean over a person's pieces"
        if missing:
            parts.append(f"{missing} recordings not released are left out")
        if bare:
            parts.append(f"{bare} stimuli without areas are left out")
        return "; ".join(parts)


def _compare_recording(
    boxes: Boxes, raw: RecordingSet, recorded: Recording, test: RecordingSet, release: Recording
) -> tuple[Floats, Floats]:
    """The figures of one recording, and those of a release without fixations."""
    before = looks(boxes, scanpath_as_recorded(raw, recorded))
    end_s = recorded.duration_s
    after = looks(boxes, scanpath_as_released(test, release, raw, recorded))
    return compare(before, after, end_s), compare(before, looks(boxes, Scanpath.empty()), end_s)
