"""`scanpath`: whether released scanpaths are like the recorded ones, and whether viewers who look
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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.stretches import (
    Scanpath,
    Stretch,
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
