"""Maps of where people look: `saliency`, and `density`.

`saliency`: maps of where people look, from raw fixations and from released ones (David-John et
al. 2021).

Per stimulus, the fixations of all viewers (each counts once) are counted on a grid and smoothed by
a Gaussian that is as wide in visual angle everywhere (:func:`gazeveil.gaze.geometry.smooth_map`).
That gives two maps, P raw and Q released. Figures, one part per stimulus:

* `kl` = sum P ln(P / (Q + 1e-12)), in nats, at least 0;
* `cc`, Pearson's correlation of the two densities;
* `sim` = sum min(P, Q), from 0 to 1;
* `nss`, the released density in standard deviations above its mean, averaged over the raw
  fixations.

On a sphere, cells near the poles are small: P and Q are shares of looking per cell and every
average is over the area of the sphere, so figures hardly depend on the grid.

A stimulus without raw fixations is left out; a release without fixations for it counts as an even
map, which is also what `chance` is. Off-screen fixations are left out on both sides.

`density`: where people's gaze spends its time, raw against released: Jensen-Shannon divergence
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
is the divergence from a map of the middle (:func:`gazeveil.utility.maps.central_map`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.registry import number_or_text
from gazeveil.utility.base import (
    NO_FIXATION,
    Scanpath,
    Utility,
    UtilityResult,
    need_samples,
    scanpath_as_recorded,
    scanpath_as_released,
    side_by_side,
)

#: Added to Q, so that an empty cell of the release does not make the divergence infinite.
EPSILON = 1e-12

#: Figures and which way is better.
METRICS = {"kl": "lower", "cc": "higher", "sim": "higher", "nss": "higher"}

#: Most cells of a map.
_MOST_ROWS = 4096


def cells(space: Space, rows: int, columns: int, x_deg: Floats, y_deg: Floats) -> Ints:
    """Flat numbers of the cells of a grid over the space in which places lie; places outside and
    NaN are left out.
    """
    x, y = (
        (x_deg, y_deg)
        if isinstance(space, Sphere)
        else (x_deg + space.width_deg / 2, y_deg + space.height_deg / 2)
    )
    with np.errstate(invalid="ignore"):
        inside = (x >= 0) & (x < space.width_deg) & (y >= 0) & (y < space.height_deg)
    x, y = x[inside], y[inside]
    # Rounding may lift a place just inside the edge onto the next cell.
    column = np.minimum((x / space.width_deg * columns).astype(np.int64), columns - 1)
    row = np.minimum((y / space.height_deg * rows).astype(np.int64), rows - 1)
    return row * columns + column


def cell_areas(space: Space, rows: int, columns: int) -> Floats:
    """Share of the space each cell covers, shape (rows, columns); on a screen all are taken as
    equal.
    """
    down = (
        np.sin((np.arange(rows) + 0.5) * np.pi / rows)
        if isinstance(space, Sphere)
        else np.ones(rows)
    )
    return np.repeat((down / down.sum() / columns)[:, None], columns, axis=1)


def central_map(space: Space, rows: int, columns: int) -> Floats:
    """Shares of looking per cell without any data, adding up to one: on a screen the central bias
    of Clarke and Tatler 2014 (a Gaussian of 0.235 of the width, less high than wide), in a headset
    the equator bias of Sitzmann et al. 2018 (a Laplace curve of 18.6 degrees in latitude).
    """
    down = (np.arange(rows) + 0.5) / rows - 0.5
    across = (np.arange(columns) + 0.5) / columns - 0.5
    if isinstance(space, Sphere):
        weights = np.exp(-np.abs(down) * 180 / 18.58)[:, None] * np.ones(columns)
    else:
        sigma = 0.235
        y = down * space.height_deg / space.width_deg / math.sqrt(0.45)
        weights = np.exp(-0.5 * (y[:, None] ** 2 + across**2) / sigma**2)
    weights *= cell_areas(space, rows, columns)
    shares: Floats = weights / weights.sum()
    return shares


def saliency_map(space: Space, rows: int, columns: int, at: Ints, sigma_deg: float) -> Floats:
    """Shares of looking per cell, adding up to one, shape (rows, columns); an even map where there
    are no fixations.

    Parameters
    ----------
    at : array of int64
        The cell of each fixation, as :func:`cells` gives it.
    """
    if len(at) == 0:
        return cell_areas(space, rows, columns)
    counts = np.bincount(at, minlength=rows * columns).astype(np.float64).reshape(rows, columns)
    smooth = smooth_map(counts, space, sigma_deg)
    return smooth / smooth.sum()


def compare(raw: Floats, released: Floats, areas: Floats, at: Ints) -> list[float]:
    """The figures of :data:`METRICS` for two maps of shares.

    Parameters
    ----------
    raw, released : array of float64, shape (rows, columns)
        Shares of looking per cell.
    areas : array of float64, shape (rows, columns)
        Share of the space each cell covers.
    at : array of int64
        The cell of each raw fixation.
    """
    p_density, q_density = raw / areas, released / areas
    p, q = (side / np.sum(side) for side in (raw, released))
    some = p > 0
    # The epsilon makes equal maps come out just below 0.
    kl = max(0.0, float(np.sum(p[some] * np.log(p[some] / (q[some] + EPSILON)))))
    a, b = (d - np.sum(d * areas) for d in (p_density, q_density))
    spread_a, spread_b = (float(np.sqrt(np.sum(areas * d**2))) for d in (a, b))
    # An even map has no spread but rounding; nothing correlates with it.
    flat_a, flat_b = (
        s <= 1e-9 * float(np.sum(d * areas))
        for s, d in ((spread_a, p_density), (spread_b, q_density))
    )
    cc = 0.0 if flat_a or flat_b else float(np.sum(areas * a * b)) / (spread_a * spread_b)
    nss = 0.0 if flat_b else float(np.mean(b.ravel()[at])) / spread_b
    return [kl, cc, float(np.sum(np.minimum(p, q))), nss]


@dataclass
class _Stimulus:
    """Fixations on one stimulus while they are gathered."""

    space: Space
    raw: list[Ints] = field(default_factory=list)
    released: list[Ints] = field(default_factory=list)


@dataclass(frozen=True)
class Saliency(Utility):
    """Saliency maps, raw against released.

    Parameters
    ----------
    sigma_deg : float
        Standard deviation of the smoothing in degrees of visual angle.
    rows : int
        Rows of the map; a sphere has twice as many columns, a screen as many as make its cells
        square. 720 is the papers' size.
    """

    name: ClassVar[str] = "saliency"
    halves: ClassVar[str] = "people"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    sigma_deg: float = 2.0
    rows: int = 180

    def check(self) -> None:
        """A width and a count."""
        # A registry leaves this one as text: mechanisms take it exactly.
        sigma = number_or_text(str(self.sigma_deg))
        self.store("sigma_deg", checks.not_negative(self.name, "sigma_deg", sigma))
        self.store("rows", checks.count(self.name, "rows", self.rows, 2))
        if self.rows > _MOST_ROWS:
            checks.refuse(self.name, "rows", f"at most {_MOST_ROWS}", self.rows)

    def columns(self, space: Space) -> int:
        """Columns of the map."""
        return (
            2 * self.rows
            if isinstance(space, Sphere)
            else max(1, round(self.rows * space.width_deg / space.height_deg))
        )

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The figures of :data:`METRICS`, one part per stimulus."""
        need_samples(self.name, raw, test)
        stimuli = self._gather(raw, test)
        names = tuple(sorted(n for n, s in stimuli.items() if sum(map(len, s.raw))))
        if not names:
            raise DataError(
                "The raw material has no fixation on any stimulus, so there is no saliency map to"
                " compare with. Try another detector."
            )
        parts, chances, bare = [], [], 0
        for name in names:
            stimulus = stimuli[name]
            at = np.concatenate(stimulus.raw)
            released = np.concatenate([*stimulus.released, np.empty(0, dtype=np.int64)])
            columns = self.columns(stimulus.space)
            areas = cell_areas(stimulus.space, self.rows, columns)
            before, after = (
                saliency_map(stimulus.space, self.rows, columns, a, self.sigma_deg)
                for a in (at, released)
            )
            parts.append(compare(before, after, areas, at))
            central = central_map(stimulus.space, self.rows, columns)
            chances.append(compare(before, central, areas, at))
            bare += len(released) == 0
        table, guess = np.array(parts), np.array(chances).mean(axis=0)
        note = (
            f"{self.rows} rows, {self.sigma_deg:g} deg, events {test.pipeline.events}; chance:"
            " a map of the middle"
        )
        note += f"; {NO_FIXATION}" if bare == len(names) else ""
        note += f"; {bare} stimuli without a released fixation count as even" if bare else ""
        note += (
            f"; {len(stimuli) - len(names)} stimuli without a raw fixation are left out"
            if len(stimuli) > len(names)
            else ""
        )
        return tuple(
            UtilityResult(m, float(v.mean()), v.copy(), "stimulus", names, chance, better, note)
            for (m, better), v, chance in zip(METRICS.items(), table.T, guess.tolist(), strict=True)
        )

    def _gather(self, raw: RecordingSet, test: RecordingSet) -> dict[str, _Stimulus]:
        stimuli: dict[str, _Stimulus] = {}
        for recorded, release in side_by_side(raw, test):
            recording = recorded if recorded is not None else release
            assert recording is not None
            stimulus = stimuli.setdefault(recording.stimulus, _Stimulus(recording.space))
            if recorded is not None:
                stimulus.raw.append(
                    self._cells(recorded.space, scanpath_as_recorded(raw, recorded))
                )
            if release is not None:
                stimulus.released.append(
                    self._cells(release.space, scanpath_as_released(test, release, raw, recorded))
                )
            if type(recording.space) is not type(stimulus.space) or (
                isinstance(stimulus.space, Screen)
                and self.columns(recording.space) != self.columns(stimulus.space)
            ):
                raise DataError(
                    f"Stimulus '{recording.stimulus}' was seen on screens of different shape, so"
                    " its viewers have no map in common."
                )
        return stimuli

    def _cells(self, space: Space, path: Scanpath) -> Ints:
        return cells(space, self.rows, self.columns(space), path.x_deg, path.y_deg)


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
