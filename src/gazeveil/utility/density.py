"""`density`: where people's gaze spends its time, raw against released: Jensen-Shannon divergence
of histograms of samples (Ren et al. 2024).

All valid samples of a stimulus that lie on the screen (or anywhere on the sphere) are counted on a
grid of 60 x 60 cells over the space, and the two histograms P and Q are divided by their sums. With
M = (P + Q) / 2,

    JSD = sum P log(P / M) / 2 + sum Q log(Q / M) / 2,    0 log 0 = 0,

which is 0 for equal histograms and 1 bit for histograms without a common cell (Ren et al. 2024 does
not say its base). `jsd` is the mean over stimuli, `jsd_pooled` that of all stimuli together.
Nothing is smoothed, so two finite draws from the same density already differ: the figure is small
only if the number of samples is large compared with the cells in use.

Where one side has no sample on the screen there is no histogram: that stimulus is NaN, is left out
of the mean, and the note counts it. Where no stimulus can be measured, the figure is NaN. `chance`
is the divergence from a map of the middle (:func:`gazeveil.utility.saliency.central_map`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.saliency import cells, central_map
from gazeveil.utility.stretches import need_samples

_MOST_CELLS = 4096


def jensen_shannon(p: Floats, q: Floats) -> float:
    """Divergence of two histograms in nats; NaN where one is empty."""
    if not (p.sum() > 0 and q.sum() > 0):
        return float("nan")
    a, b = p / p.sum(), q / q.sum()
    m = (a + b) / 2
    halves = [float(np.sum(v[v > 0] * np.log(v[v > 0] / m[v > 0]))) for v in (a, b)]
    return min(max(sum(halves) / 2, 0.0), math.log(2.0))


@dataclass(frozen=True)
class Density(Utility):
    """Density of gaze, raw against released.

    Parameters
    ----------
    bins : int
        Cells along each side of the histogram.
    """

    name: ClassVar[str] = "density"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    bins: int = 60

    def check(self) -> None:
        """A count."""
        self.store("bins", checks.count(self.name, "bins", self.bins))
        if self.bins > _MOST_CELLS:
            checks.refuse(self.name, "bins", f"at most {_MOST_CELLS}", self.bins)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Divergences in bits, one part per stimulus, and of all stimuli together (one part)."""
        need_samples(self.name, raw, test)
        before = self._histograms(raw)
        after = before if test.cohort is raw.cohort else self._histograms(test)
        names, empty = tuple(sorted(before)), np.zeros(self.bins**2)
        sides = [(before[n], after.get(n, empty)) for n in names]
        note = f"{self.bins} x {self.bins} cells"
        lost = sum(not (p.sum() > 0 and q.sum() > 0) for p, q in sides)
        if lost:
            note += (
                f"; {lost} of {len(names)} stimuli have no sample on the screen on one side and are"
                " left out"
            )
        space = raw.cohort[0].space if raw.cohort else None
        middle = central_map(space, self.bins, self.bins).ravel() if space else empty
        results = []
        whole = [(sum(before.values(), empty), sum((q for _, q in sides), empty))]
        for metric, pairs, kind, of, text in (
            ("jsd", sides, "stimulus", names, note),
            ("jsd_pooled", whole, "cohort", ("all stimuli",), f"{note}; all in one histogram"),
        ):
            parts, guesses = (
                np.array([jensen_shannon(*pair) for pair in asked]) / math.log(2.0)
                for asked in (pairs, [(p, middle) for p, _ in pairs])
            )
            value, guess = float(column_means(parts)), float(column_means(guesses))
            text += "; bits"
            results.append(UtilityResult(metric, value, parts, kind, of, guess, note=text))
        return tuple(results)

    def halved(self, raw: RecordingSet) -> tuple[RecordingSet, RecordingSet]:
        """Every second second of the same recordings, and the others."""
        sides = (
            Cohort([r.with_(valid=r.valid & (_second(r) % 2 == i)) for r in raw.cohort or ()])
            for i in (0, 1)
        )
        first, second = (RecordingSet(cohort) for cohort in sides)
        return first, second

    def _histograms(self, recording_set: RecordingSet) -> dict[str, Floats]:
        """Counts per cell of each stimulus."""
        histograms: dict[str, Floats] = {}
        assert recording_set.cohort is not None
        for recording in recording_set.cohort:
            counts = np.bincount(self._cells(recording), minlength=self.bins**2).astype(np.float64)
            histograms[recording.stimulus] = histograms.get(recording.stimulus, 0.0) + counts
        return histograms

    def _cells(self, recording: Recording) -> Ints:
        x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
        e = recording.events
        if len(recording) == 0 and e is not None and e.x_deg is not None and e.y_deg is not None:
            # A dataset of fixations has no samples: its fixations stand in, once each.
            x, y = e.x_deg, e.y_deg
        return cells(recording.space, self.bins, self.bins, x, y)


def _second(recording: Recording) -> Ints:
    """The number of the second that each sample is in."""
    elapsed_ns: Ints = recording.t_ns - recording.t_ns[:1]
    return elapsed_ns // 1_000_000_000
