"""`dwell`: how long people dwell on areas, and how that differs from viewer to viewer.

A viewer's dwell share is the share of the valid samples of a window that lie in an area. Windows
are those of the pieces, where a release is one of pieces; elsewhere `window_s` long with `gap_s`
between them, on both sides. So every mechanism is asked about the same thing, and an analyst needs
no name that lasts beyond a window.

Per stimulus and area there are two distributions of dwell shares, raw and released, over viewers
and windows together (`per=stimulus`, the default), or over viewers in each window alone
(`per=window`, which also asks when). Figures, as shares of raw:

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

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas import Boxes
from gazeveil.utility.areas.aoi import AreaUtility
from gazeveil.utility.areas.scanpaths import need_samples
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.stretches import cut_at_windows, holds_pieces, pieces, stretches

#: Figures, in the order of :func:`compare_dwell`.
METRICS = ("distribution_error", "mean_error", "sd_error", "quantile_error")

PER = ("stimulus", "window")

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
    """Dwell shares on one stimulus while they are gathered, by window; and whose the raw ones
    are.
    """

    even: Floats
    raw: dict[int, list[Floats]] = field(default_factory=dict)
    released: dict[int, list[Floats]] = field(default_factory=dict)
    viewers: dict[int, list[str]] = field(default_factory=dict)

    def drawn(self, window: int, rng: np.random.Generator) -> Floats:
        """The raw dwell shares of as many viewers, drawn with replacement."""
        shares, viewers = np.stack(self.raw[window]), np.array(self.viewers[window])
        names = np.unique(viewers)
        chosen = names[rng.integers(0, len(names), len(names))]
        return shares[np.concatenate([np.flatnonzero(viewers == name) for name in chosen])]


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
    per : {"stimulus", "window"}
        Over what a distribution is taken; see the top of the page.
    """

    name: ClassVar[str] = "dwell"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    window_s: float = 5.0
    gap_s: float = 1.0
    per: str = "stimulus"

    def check(self) -> None:
        """Areas, times, a word."""
        super().check()
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        self.store("gap_s", checks.not_negative(self.name, "gap_s", self.gap_s))
        checks.one_of(self.name, "per", self.per, PER)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The figures of :data:`METRICS`, one part per stimulus."""
        need_samples(self.name, raw, test)
        stimuli = self._gather(raw, test)
        names = tuple(sorted(n for n, s in stimuli.items() if any(s.raw.values())))
        if not names:
            raise DataError("Nobody has a valid sample on any area, so there is no dwell time.")
        rng = np.random.default_rng(seed)
        kinds = ("released", "even", "again")
        rows = {k: np.array([self._errors(stimuli[n], k, rng) for n in names]) for k in kinds}
        again = column_means(rows["again"])
        windows = (
            "windows of the pieces"
            if holds_pieces(test)
            else f"windows of {self.window_s:g} s, {self.gap_s:g} s apart"
        )
        note = f"areas: {self.where}; {windows}; distributions per {self.per}; as many other"
        results = []
        for i, metric in enumerate(METRICS):
            parts = rows["released"][:, i]
            text = f"{note} viewers would differ by {again[i]:.2g}"
            chance = float(column_means(rows["even"][:, i]))
            value = float(column_means(parts))
            results.append(
                UtilityResult(metric, value, parts.copy(), "stimulus", names, chance, note=text)
            )
        return tuple(results)

    def _gather(self, raw: RecordingSet, test: RecordingSet) -> dict[str, _Dwelling]:
        """Dwell shares of every viewer and window, by stimulus."""
        lookup, bare = self.lookup, set()
        stimuli: dict[str, _Dwelling] = {}
        for raw_side, begin_ns, recording in self._sides(raw, test):
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
            window, shares = begin_ns if self.per == "window" else 0, dwell_shares(boxes, recording)
            if np.isnan(shares).any():
                continue
            if raw_side:
                dwelling.raw.setdefault(window, []).append(shares)
                dwelling.viewers.setdefault(window, []).append(recording.person)
            else:
                dwelling.released.setdefault(window, []).append(shares)
        if not stimuli:
            raise DataError(self.no_areas(bare, lookup))
        return stimuli

    def _sides(
        self, raw: RecordingSet, test: RecordingSet
    ) -> Iterator[tuple[bool, int, Recording]]:
        """Every window of every viewer: whether it is raw, when it begins, and its samples."""
        if not holds_pieces(test):
            for stretch in stretches(raw, test, self.window_s, self.gap_s):
                yield True, stretch.begin_ns, stretch.recorded
                # Areas that came with a recording are those of the recorded side.
                released = stretch.released.with_(metadata=stretch.recorded.metadata)
                yield False, stretch.begin_ns, released
            return
        for begin_ns, recorded in cut_at_windows(raw, test):
            yield True, begin_ns, recorded
        for stretch in pieces(raw, test):
            released = stretch.released.with_(metadata=stretch.recorded.metadata)
            yield False, stretch.begin_ns, released

    def _errors(self, dwelling: _Dwelling, kind: str, rng: np.random.Generator) -> Floats:
        """The four figures of one stimulus: of what was released, of even looking, or of raw
        viewers drawn again.
        """
        sums = np.zeros((2, len(METRICS)))
        for window, shares in dwelling.raw.items():
            before = np.stack(shares)
            if kind == "again":
                n = len(before)
                draws = [
                    compare_dwell(before, before[rng.integers(0, n, n)]) for _ in range(_DRAWS)
                ]
                sums += np.mean(draws, axis=0)
                continue
            nobody = [np.zeros_like(dwelling.even)]
            after = dwelling.released.get(window) or nobody if kind == "released" else []
            sums += compare_dwell(before, np.stack(after or [dwelling.even]))
        return sums[0] / np.where(sums[1] > 0, sums[1], np.nan)
