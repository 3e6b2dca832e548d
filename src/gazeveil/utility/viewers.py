"""What each viewer did: the order of places (`scanpath`) and the time in areas (`dwell`).

`scanpath`: whether released scanpaths are like the recorded ones, and whether viewers who look
alike still do.

Two scanpaths of the same seconds of a stimulus are compared as ScanMatch does (Cristino et al.
2010, Behavior Research Methods 42): fixations become a sequence of places, one per `bin_s` of their
duration, and two sequences are aligned with the greatest sum of

    1 - d / cutoff_deg    for two places d degrees apart that are put together,
    0                     for a place that has no partner,

which is divided by the length of the longer sequence: 1 for the same scanpath, 0 where no place is
within `cutoff_deg` of one in the other, in the same order. ScanMatch's grid of letters is left out:
distances are exact. A side without a fixation has similarity 0; two such sides have none.

Windows are those of the pieces, where a release is one of pieces, else `window_s` long with `gap_s`
between them. Figures, one part per stimulus:

* `similarity`: released to recorded scanpath of the same viewer and window. `chance` is a recorded
  scanpath of another viewer, instead of the release. Whose a piece is, only the curator knows: an
  error against the truth, not something an analyst can work out.
* `structure_correlation`: over pairs of viewers of a window, Pearson's correlation between their
  similarity as recorded and as released, mean over windows: do those look alike who did? Windows
  with fewer than four viewers have none.
* `between_error`: how far the mean similarity between viewers is from that as recorded: how much
  viewers agree is a figure of its own, and an analyst of pieces can work it out.

`dwell`: how long people dwell on areas, and how that differs from viewer to viewer.

A viewer's dwell share is the share of the valid samples of a window that lie in an area. Windows
are those of the pieces, where a release is one of pieces; elsewhere `window_s` long with `gap_s`
between them, on both sides. So every mechanism is asked about the same thing, and an analyst needs
no name that lasts beyond a window.

Per stimulus and area there are two distributions of dwell shares, raw and released, over viewers
and windows together. Figures, as shares of raw:

* `mean_error`: sum over areas of |difference of the means|, over the sum of the raw means;
* `sd_error`: the same of the standard deviations over viewers: do they still differ as much?
* `quantile_error`: the same of the quantiles 10 %, 20 %, ... 90 %;
* `distribution_error`: sum of the Wasserstein distances of the two distributions, over the sum of
  the raw means. It is at least `mean_error`.

0.15 means: within 15 % of raw. One part per stimulus; the value is their mean. A viewer without a
valid sample in a window has no dwell share there. A stimulus without released gaze counts as one
without dwell, so losing everything never gives a good figure. `chance` is the figure of a release
with gaze spread evenly over every stimulus. The note gives the bootstrap difference of as many
other viewers, from the raw viewers drawn with replacement. A smaller difference supports no
conclusion, even with raw data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.io.areas import Boxes
from gazeveil.utility.aoi import AreaUtility
from gazeveil.utility.base import (
    Scanpath,
    Stretch,
    Utility,
    UtilityResult,
    cut_at_windows,
    holds_pieces,
    need_samples,
    scanpath_as_recorded,
    scanpath_as_released,
    stretches,
)

#: Viewers that a window needs for a correlation over their pairs.
LEAST_VIEWERS = 4


@compiled
def best_alignment(first: Floats, second: Floats, cutoff_deg: float) -> float:
    """The greatest sum of gains over pairs of places (unit vectors) that keep the order of both
    sides; what has no partner costs nothing (Needleman and Wunsch 1970).
    """
    row = np.zeros(len(second) + 1)
    for i in range(len(first)):
        diagonal = 0.0
        for j in range(len(second)):
            square = 0.0
            for k in range(3):
                square += (first[i, k] - second[j, k]) ** 2
            # The chord is exact for small angles, where the arc cosine is not.
            apart_deg = np.degrees(2.0 * np.arcsin(min(np.sqrt(square) / 2.0, 1.0)))
            above = row[j + 1]
            row[j + 1] = max(diagonal + 1.0 - apart_deg / cutoff_deg, above, row[j])
            diagonal = above
    return float(row[-1])


def similarity(first: Floats, second: Floats, cutoff_deg: float) -> float:
    """Similarity of two sequences of places, from 0 to 1; NaN where both are empty.

    Parameters
    ----------
    first, second : array of float64, shape (places, 3)
        Unit vectors.
    cutoff_deg : float
        Distance from which on two places have nothing in common, in degrees.

    Examples
    --------
    >>> right, ahead = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])
    >>> similarity(right, right, 5.0), similarity(right, ahead, 5.0)
    (1.0, 0.0)
    """
    longest = max(len(first), len(second))
    if longest == 0:
        return float("nan")
    if min(len(first), len(second)) == 0:
        return 0.0
    return best_alignment(first, second, float(cutoff_deg)) / longest


def places_in_time(recording: Recording, path: Scanpath, bin_s: float) -> Floats:
    """Unit vectors of the fixations of a scanpath, each as often as it lasts bins, at least once;
    shape (places, 3).
    """
    known = np.isfinite(path.x_deg) & np.isfinite(path.y_deg)
    times = np.maximum(1, np.rint(path.duration_s[known] / bin_s)).astype(np.int64)
    vectors = recording.space.vectors(path.x_deg[known], path.y_deg[known]).reshape(-1, 3)
    return np.repeat(vectors, times, axis=0)


@dataclass
class _Viewers:
    """Sequences of places of the viewers of one stimulus and window, and who they are."""

    raw: list[Floats] = field(default_factory=list)
    released: list[Floats] = field(default_factory=list)
    keys: list[RecordingKey] = field(default_factory=list)

    @property
    def once(self) -> list[int]:
        """One place for each viewer: some may have two pieces, made of parts of several."""
        return [i for i, key in enumerate(self.keys) if key not in self.keys[:i]]


@dataclass(frozen=True)
class ScanpathSimilarity(Utility):
    """Scanpaths, raw against released.

    Parameters
    ----------
    cutoff_deg : float
        Distance from which on two places have nothing in common, in degrees.
    bin_s : float
        Seconds of a fixation that one place of the sequence stands for.
    window_s, gap_s : float
        Length of a window and of the gap after it in seconds, where names last; pieces have their
        own.
    """

    name: ClassVar[str] = "scanpath"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    cutoff_deg: float = 5.0
    bin_s: float = 0.1
    window_s: float = 5.0
    gap_s: float = 1.0

    def check(self) -> None:
        """Distances and times."""
        for name in ("cutoff_deg", "bin_s", "window_s"):
            self.store(name, checks.positive(self.name, name, getattr(self, name)))
        self.store("gap_s", checks.not_negative(self.name, "gap_s", self.gap_s))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The three figures, one part per stimulus."""
        need_samples(self.name, raw, test)
        groups: dict[str, dict[int, _Viewers]] = {}
        for stretch in stretches(raw, test, self.window_s, self.gap_s):
            windows = groups.setdefault(stretch.recorded.stimulus, {})
            self._add(windows.setdefault(stretch.begin_ns, _Viewers()), raw, test, stretch)
        names = tuple(sorted(groups))
        rows = np.array(
            [column_means(np.array([self._window(v) for v in groups[n].values()])) for n in names]
        ).reshape(-1, 4)
        if not np.isfinite(rows[:, 0]).any():
            raise DataError(
                "The raw material has no fixation in any window that was released, so there is no"
                " scanpath to compare with. Try another detector."
            )
        which = (
            "windows of the pieces"
            if holds_pieces(test)
            else f"windows of {self.window_s:g} s, {self.gap_s:g} s apart"
        )
        note = f"{which}; places {self.cutoff_deg:g} deg apart have nothing in common"
        truth = f"{note}; chance: another viewer's recorded scanpath"
        own, between, structure, error = rows.T
        return (
            _result("similarity", own, names, "higher", truth, float(column_means(between))),
            _result("structure_correlation", structure, names, "higher", note, 0.0),
            _result("between_error", error, names, "lower", note),
        )

    def _add(
        self, viewers: _Viewers, raw: RecordingSet, test: RecordingSet, stretch: Stretch
    ) -> None:
        recorded, released = stretch.recorded, stretch.released
        viewers.keys.append(stretch.viewer)
        path = scanpath_as_recorded(raw, recorded)
        viewers.raw.append(places_in_time(recorded, path, self.bin_s))
        path = scanpath_as_released(test, released, raw, recorded)
        viewers.released.append(places_in_time(released, path, self.bin_s))

    def _window(self, viewers: _Viewers) -> list[float]:
        """Similarity to the truth, that between recorded viewers, the correlation over pairs and
        the difference of the means, in one window; NaN where there is none.
        """
        pairs = zip(viewers.raw, viewers.released, strict=True)
        own = [similarity(a, b, self.cutoff_deg) for a, b in pairs]
        before, after = (
            self._between([side[i] for i in viewers.once])
            for side in (viewers.raw, viewers.released)
        )
        known = np.isfinite(before)
        # Two releases without a fixation are no more alike than two that have nothing in common.
        after = np.where(np.isfinite(after), after, 0.0)
        correlation = float("nan")
        if np.count_nonzero(known) >= LEAST_VIEWERS * (LEAST_VIEWERS - 1) // 2:
            a, b = before[known], after[known]
            if float(a.std()) > 1e-12:
                # Where everybody became equally alike, nothing is left of who looked alike.
                varies = float(b.std()) > 1e-12
                correlation = float(np.corrcoef(a, b)[0, 1]) if varies else 0.0
        mean = float(column_means(before))
        error = abs(mean - float(column_means(after[known])))
        return [float(column_means(np.array(own))), mean, correlation, error]

    def _between(self, side: Sequence[Floats]) -> Floats:
        """Similarity of each pair of viewers."""
        return np.array(
            [
                similarity(side[i], side[j], self.cutoff_deg)
                for i in range(len(side))
                for j in range(i)
            ]
        )


def _result(
    metric: str,
    parts: Floats,
    names: tuple[str, ...],
    better: str,
    note: str,
    chance: float = float("nan"),
) -> UtilityResult:
    value = float(column_means(parts))
    return UtilityResult(metric, value, parts.copy(), "stimulus", names, chance, better, note)


#: Figures, in the order of :func:`compare_dwell`.
METRICS = ("distribution_error", "mean_error", "sd_error", "quantile_error")

_QUANTILES = np.arange(1, 10) / 10

# Draws of as many viewers, for the note.
_DRAWS = 10


def dwell_shares(boxes: Boxes, recording: Recording) -> Floats:
    """Share of the valid samples in each box; NaN where no sample is valid."""
    if not recording.valid.any():
        return np.full(len(boxes), np.nan)
    inside = boxes.hold(recording.x_deg[recording.valid], recording.y_deg[recording.valid])
    return inside.mean(axis=0)


def even_shares(boxes: Boxes, space: Space, points: int = 120) -> Floats:
    """The share of the space that each box covers: what even looking would give."""
    along = (np.arange(points) + 0.5) / points
    x, y = np.meshgrid(along * space.width_deg, along * space.height_deg)
    weights = np.sin(np.radians(y)) if isinstance(space, Sphere) else np.ones_like(y)
    if not isinstance(space, Sphere):
        x, y = x - space.width_deg / 2, y - space.height_deg / 2
    inside = boxes.hold(x.ravel(), y.ravel())
    return np.asarray(weights.ravel() @ inside / weights.sum(), dtype=np.float64)


def compare_dwell(raw: Floats, released: Floats) -> Floats:
    """What differs between two sets of dwell shares, before it is divided by raw.

    Parameters
    ----------
    raw, released : array of float64, shape (viewers, areas)
        Dwell shares, each side with its own number of viewers; no NaN.

    Returns
    -------
    array of float64, shape (2, 4)
        Sums over areas: of the differences in the order of :data:`METRICS`, and of the raw values
        they are to be divided by.

    Examples
    --------
    >>> raw = np.array([[0.2], [0.4]])
    >>> compare_dwell(raw, raw + 0.1).round(3).tolist()
    [[0.1, 0.1, 0.0, 0.9], [0.3, 0.3, 0.1, 2.7]]
    """
    from scipy.stats import wasserstein_distance

    apart = sum(wasserstein_distance(a, b) for a, b in zip(raw.T, released.T, strict=True))
    means, deviations = ([f(side, axis=0) for side in (raw, released)] for f in (np.mean, np.std))
    quantiles = [np.quantile(side, _QUANTILES, axis=0) for side in (raw, released)]
    total = means[0].sum()
    return np.array(
        [
            [apart, *(np.abs(a - b).sum() for a, b in (means, deviations, quantiles))],
            [total, total, deviations[0].sum(), quantiles[0].sum()],
        ]
    )


@dataclass
class _Dwelling:
    """Dwell shares on one stimulus while they are gathered, and whose the raw ones are."""

    even: Floats
    raw: list[Floats] = field(default_factory=list)
    released: list[Floats] = field(default_factory=list)
    viewers: list[str] = field(default_factory=list)

    def errors(self, rng: np.random.Generator) -> Floats:
        """The figures of what was released, of even looking, and of as many raw viewers drawn with
        replacement; shape (3, 4).
        """
        before, viewers = np.stack(self.raw), np.array(self.viewers)
        names = np.unique(viewers)
        rows = [np.flatnonzero(viewers == name) for name in names.tolist()]
        drawn = (rng.integers(0, len(names), len(names)) for _ in range(_DRAWS))
        again = [before[np.concatenate([rows[i] for i in some])] for some in drawn]
        released = np.stack(self.released or [np.zeros_like(self.even)])
        sums = [compare_dwell(before, after) for after in (released, self.even[None], *again)]
        apart, whole = np.stack((*sums[:2], np.mean(sums[2:], axis=0)), axis=1)
        return apart / np.where(whole > 0, whole, np.nan)


@dataclass(frozen=True)
class Dwell(AreaUtility):
    """Dwell shares of viewers, raw against released.

    Parameters
    ----------
    areas, rows, columns, unit, width_px, height_px
        As in :class:`AreaUtility`.
    window_s, gap_s : float
        Length of a window and of the gap after it in seconds, where names last; pieces have their
        own.
    """

    name: ClassVar[str] = "dwell"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    window_s: float = 5.0
    gap_s: float = 1.0

    def check(self) -> None:
        """Areas and times."""
        super().check()
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        self.store("gap_s", checks.not_negative(self.name, "gap_s", self.gap_s))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The figures of :data:`METRICS`, one part per stimulus."""
        need_samples(self.name, raw, test)
        stimuli = self._gather(raw, test)
        names = tuple(sorted(n for n, s in stimuli.items() if s.raw))
        if not names:
            raise DataError("Nobody has a valid sample on any area, so there is no dwell time.")
        rng = np.random.default_rng(seed)
        rows = np.stack([stimuli[n].errors(rng) for n in names])  # stimuli x kinds x metrics
        values = column_means(rows)
        windows = (
            "windows of the pieces"
            if holds_pieces(test)
            else f"windows of {self.window_s:g} s, {self.gap_s:g} s apart"
        )
        note = f"areas: {self.where}; {windows}; as many other viewers would differ by"
        return tuple(
            UtilityResult(
                metric,
                float(values[0, i]),
                rows[:, 0, i].copy(),
                "stimulus",
                names,
                float(values[1, i]),
                note=f"{note} {values[2, i]:.2g}",
            )
            for i, metric in enumerate(METRICS)
        )

    def _gather(self, raw: RecordingSet, test: RecordingSet) -> dict[str, _Dwelling]:
        """Dwell shares of every viewer and window, by stimulus."""
        lookup, bare = self.lookup, set()
        stimuli: dict[str, _Dwelling] = {}
        for raw_side, recording in self._sides(raw, test):
            boxes = lookup.of(recording)
            if boxes is None:
                bare.add(recording.stimulus)
                continue
            if recording.stimulus not in stimuli:
                stimuli[recording.stimulus] = _Dwelling(even_shares(boxes, recording.space))
            dwelling = stimuli[recording.stimulus]
            if len(boxes) != len(dwelling.even):
                raise DataError(
                    f"Stimulus '{recording.stimulus}' has other areas for some viewers, so their"
                    " dwell times have no distribution in common."
                )
            shares = dwell_shares(boxes, recording)
            if np.isnan(shares).any():
                continue
            (dwelling.raw if raw_side else dwelling.released).append(shares)
            if raw_side:
                dwelling.viewers.append(recording.person)
        if not stimuli:
            raise DataError(self.no_areas(bare, lookup))
        return stimuli

    def _sides(self, raw: RecordingSet, test: RecordingSet) -> Iterator[tuple[bool, Recording]]:
        """Every window of every viewer: whether it is raw, and its samples."""
        cut = holds_pieces(test)
        if cut:
            yield from ((True, recorded) for _, recorded in cut_at_windows(raw, test))
        for stretch in stretches(raw, test, self.window_s, self.gap_s):
            if not cut:
                yield True, stretch.recorded
            # Areas that came with a recording are those of the recorded side.
            yield False, stretch.released.with_(metadata=stretch.recorded.metadata)
