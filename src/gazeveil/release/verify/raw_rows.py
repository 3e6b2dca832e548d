"""Whether samples of the recordings are in the release as they were recorded.

Released samples are looked up among the recorded ones by both coordinates, within the precision
that the release is written with. Two kinds of find are red:

* three different recorded samples in a row that are released in a row;
* more single samples than chance gives. Chance is known twice: from how densely gaze lies, and from
  looking up the recordings moved by a degree, where nothing of them can be found but by chance.

Samples in the middle and in the corners, where gaze is clipped, do not count. Where released gaze
lies on few places (rounding to cells), single samples are no evidence, and five in a row are
required. Samples that were resampled or rounded to another grid are found by their rows alone. A
small change of every sample is not detected here; the attackers test that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.release.verify.files import VerifyCheck

Keys = NDArray[np.uint64]
Progress = Callable[[Iterable[Recording]], Iterable[Recording]]

#: How near two samples are that count as one, in degrees: of doubles that went through a file as
#: they are, and of text in pixels or rounded degrees.
BINARY_DEG, TEXT_DEG = 1e-9, 5e-4

_RUN, _RUN_ON_CELLS = 3, 5
_NEAR = 64  # released samples between two that count as following one another
_FALSE_ALARM = 1e-6
_CONTROL_DEG = 1.0
_BATCH = 20_000_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class _Released:
    """Samples of a release, sorted by their keys."""

    keys: Keys
    places: NDArray[np.int64]
    cells: bool
    area_deg2: float


@dataclass
class _Found:
    """What was found so far; `shifted` is what chance finds."""

    single: int = 0
    shifted: int = 0
    expected: float = 0.0
    runs: int = 0
    longest: int = 0


def check_raw_rows(
    released: Cohort, raw: Cohort, precision_deg: float, progress: Progress = lambda r: r
) -> VerifyCheck:
    """Look every recorded sample up among the released ones."""
    found = _Found()
    for number, batch in enumerate(_batches(released)):
        sorted_batch = _sorted(batch, precision_deg)
        recordings: Iterable[Recording] = progress(raw) if number == 0 else raw
        for recording in recordings:
            _look_up(sorted_batch, recording, precision_deg, found)
    failures = []
    if found.runs:
        failures.append(
            f"{found.runs} runs of recorded samples are in the release, the longest of"
            f" {found.longest} samples."
        )
    chance = max(found.expected, found.shifted)
    if found.single and poisson.sf(found.single - 1, chance) < _FALSE_ALARM:
        failures.append(
            f"{found.single} recorded samples are in the release, where chance gives {chance:.2g}."
        )
    return VerifyCheck("raw rows", tuple(failures), "no recorded sample is in the release")


def _batches(cohort: Cohort) -> Iterator[list[tuple[Floats, Floats]]]:
    batch: list[tuple[Floats, Floats]] = []
    size = 0
    for recording in cohort:
        kept = recording.valid
        batch.append((recording.x_deg[kept], recording.y_deg[kept]))
        size += len(batch[-1][0])
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if size:
        yield batch


def _sorted(batch: list[tuple[Floats, Floats]], precision_deg: float) -> _Released:
    x, y = (np.concatenate([part[i] for part in batch]) for i in (0, 1))
    telling = ~_public(x, y)
    x, y = x[telling], y[telling]
    if not len(x):
        return _Released(np.empty(0, np.uint64), np.empty(0, np.int64), False, 1.0)
    keys = _keys(x, y, precision_deg, 0.0, 0.0)
    order = np.argsort(keys, kind="stable")
    distinct = len(np.unique(keys))
    # Gaze lies densest in the middle half of each axis: chance is reckoned with that.
    spans = [max(float(np.subtract(*np.quantile(v, (0.75, 0.25)))), 1e-3) for v in (x, y)]
    return _Released(keys[order], order, distinct < len(keys) / 20, 4 * math.prod(spans))


def _public(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Mark samples that do not count: in the middle, and in the corners where gaze is clipped."""
    corner = ((x == x.min()) | (x == x.max())) & ((y == y.min()) | (y == y.max()))
    middle = ((x == 0) & (y == 0)) | ((x == 180) & (y == 90))
    found: NDArray[np.bool_] = corner | middle
    return found


def _keys(x: Floats, y: Floats, precision_deg: float, dx: float, dy: float) -> Keys:
    """One number for the cell of four precisions that a sample lies in."""
    side = 4 * precision_deg
    with np.errstate(over="ignore"):
        across = np.floor((x + dx) / side).astype(np.int64).view(np.uint64)
        down = np.floor((y + dy) / side).astype(np.int64).view(np.uint64)
        return across * _MIX + down


def _look_up(released: _Released, raw: Recording, precision_deg: float, found: _Found) -> None:
    x, y = raw.x_deg[raw.valid], raw.y_deg[raw.valid]
    if not len(x) or not len(released.keys):
        return
    # A gaze that stands still is one sample: repeats of it prove nothing.
    moved = np.flatnonzero(np.concatenate(([True], (np.diff(x) != 0) | (np.diff(y) != 0))))
    x, y = x[moved], y[moved]
    places = _places(released, x, y, precision_deg)
    runs = _runs(places)
    long = runs[runs >= (_RUN_ON_CELLS if released.cells else _RUN)]
    found.runs += len(long)
    found.longest = max(found.longest, *long.tolist(), 0)
    if released.cells:
        return
    found.single += int((places >= 0).sum())
    found.shifted += int((_places(released, x + _CONTROL_DEG, y, precision_deg) >= 0).sum())
    window = (6 * precision_deg) ** 2
    found.expected += len(released.keys) * len(x) * window / released.area_deg2


def _places(released: _Released, x: Floats, y: Floats, precision_deg: float) -> NDArray[np.int64]:
    """Where in the release each sample is found; -1 for nowhere."""
    places = np.full(len(x), -1, dtype=np.int64)
    for dx in (-precision_deg, precision_deg):
        for dy in (-precision_deg, precision_deg):
            keys = _keys(x, y, precision_deg, dx, dy)
            at = np.searchsorted(released.keys, keys)
            at[at == len(released.keys)] = 0
            hit = released.keys[at] == keys
            places[hit] = released.places[at[hit]]
    return places


def _runs(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths of runs of found samples that follow one another in the release too."""
    hits = np.flatnonzero(places >= 0)
    step = np.diff(places[hits])
    follows = (np.diff(hits) == 1) & (step > 0) & (step <= _NEAR)
    return np.diff(np.concatenate(([-1], np.flatnonzero(~follows), [len(follows)])))
