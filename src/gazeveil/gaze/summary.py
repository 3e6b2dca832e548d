"""What a look at a cohort finds: who, what, how fast, how much is lost, and where gaze went.

Summaries add up over pieces of recordings, so a cohort of any size is inspected one piece at a
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Doubt, Fact, Recording, merged

_PIECE = 1 << 20
_MAP_COLUMNS, _MAP_ROWS = 180, 90
_LOSS_BINS = 50
# Rates that trackers and webcams have.
_SLOWEST_HZ, _FASTEST_HZ = 1.0, 5000.0


@dataclass
class RecordingSummary:
    """Counts and ranges of one recording, in degrees, seconds and shares of one."""

    person: str
    stimulus: str
    session: str
    task: str
    space: Space
    rate_hz: float
    samples: int = 0
    valid: int = 0
    events: int = 0
    rows: int = 0
    duration_s: float = 0.0
    longest_loss_s: float = 0.0
    time_faults: int = 0
    impossible: int = 0
    assumed_geometry: bool = False
    outside: int = 0
    x_min_deg: float = np.inf
    x_max_deg: float = -np.inf
    y_min_deg: float = np.inf
    y_max_deg: float = -np.inf
    source: str = ""
    facts: dict[str, Fact] = field(default_factory=dict, repr=False)
    doubts: tuple[Doubt, ...] = ()

    @property
    def loss(self) -> float:
        """Share of samples that are not valid; 0 for a recording without samples."""
        return 1.0 - self.valid / self.samples if self.samples else 0.0


@dataclass
class CohortSummary:
    """Everything :func:`summarise` finds.

    Attributes
    ----------
    recordings : list of RecordingSummary
        One per recording.
    people : dict
        Person to attributes.
    stimuli : tuple of str
        Names.
    heat : array of float64, shape (90, 180)
        Valid samples per cell of the space (the sphere, or the largest screen), all recordings
        together.
    heat_extent_deg : tuple of float
        x from, x to, y from, y to of that map.
    loss_by_time : array of float64, shape (50,)
        Share lost in each fiftieth of the recordings' samples.
    skipped : int
        Files that were not recordings.
    """

    recordings: list[RecordingSummary]
    people: dict[str, Attributes]
    stimuli: tuple[str, ...]
    heat: Floats = field(repr=False)
    heat_extent_deg: tuple[float, float, float, float]
    loss_by_time: Floats = field(repr=False)
    skipped: int = 0

    @property
    def facts(self) -> dict[str, dict[Fact, int]]:
        """Topic -> facts that reading rests on, with the number of recordings of each."""
        return merged(r.facts for r in self.recordings)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Questions that reading single recordings left open, each once."""
        found = {d.remedy or d.sentence: d for r in reversed(self.recordings) for d in r.doubts}
        return tuple(reversed(found.values()))

    @property
    def samples(self) -> int:
        """All samples, valid or not."""
        return sum(r.samples for r in self.recordings)

    @property
    def loss(self) -> float:
        """Share of all samples that are not valid."""
        return 1.0 - sum(r.valid for r in self.recordings) / self.samples if self.samples else 0.0

    @property
    def rates_hz(self) -> dict[float, int]:
        """Recordings per rate, rounded to a tenth of a hertz; recordings of unknown rate are left
        out.
        """
        rates = [round(r.rate_hz, 1) for r in self.recordings if r.rate_hz == r.rate_hz]
        return {rate: rates.count(rate) for rate in sorted(set(rates))}

    def warnings(self) -> list[str]:
        """What a user should know before using the cohort."""
        sentences = []
        if len(self.rates_hz) > 1:
            sentences.append(
                f"{len(self.rates_hz)} different rates: the rate alone can tell recordings apart."
                " Resample to a common one before a release."
            )
        lost = [r for r in self.recordings if r.samples and r.valid == 0]
        if lost:
            sentences.append(
                f"{len(lost)} recordings have no valid sample at all, the first is"
                f" {lost[0].source or lost[0].person}."
            )
        faults = sum(r.time_faults for r in self.recordings)
        if faults:
            sentences.append(
                f"{faults} samples have a time that repeats or goes back; they are kept and marked"
                " invalid."
            )
        impossible = sum(r.impossible for r in self.recordings)
        if impossible:
            sentences.append(
                f"{impossible} samples hold a value that no eye can look at; they are kept and it"
                " is marked lost."
            )
        assumed = sum(r.assumed_geometry for r in self.recordings)
        if assumed:
            sentences.append(
                f"{assumed} recordings do not say how large and far the screen was: degrees are by"
                " a typical screen. Give screen= to mend this."
            )
        sentences += self._doubts()
        without = sum(1 for r in self.recordings if r.samples == 0 and r.events)
        if without:
            sentences.append(f"{without} recordings hold events without samples.")
        empty = sum(1 for r in self.recordings if r.samples == 0 and not r.events)
        if empty:
            sentences.append(f"{empty} recordings are empty.")
        return sentences

    def _doubts(self) -> list[str]:
        """Units that look wrong."""
        sentences = []
        rates = [r for r in self.recordings if r.rate_hz == r.rate_hz and r.samples]
        odd = [r for r in rates if not _SLOWEST_HZ <= r.rate_hz <= _FASTEST_HZ]
        if odd:
            sentences.append(
                f"{len(odd)} recordings have a rate that no tracker has, the first"
                f" {odd[0].rate_hz:.4g} Hz ({odd[0].source or odd[0].person}): check the unit of"
                " time."
            )
        outside = [r for r in self.recordings if r.valid and r.outside > 0.5 * r.valid]
        if outside:
            sentences.append(
                f"In {len(outside)} recordings most gaze lies beside the screen, the first is"
                f" {outside[0].source or outside[0].person}: check the unit of gaze and the screen."
            )
        return sentences


def summarise(
    cohort: Cohort,
    progress: Callable[
        [Iterable[Recording | Handle]], Iterable[Recording | Handle]
    ] = lambda items: items,
) -> CohortSummary:
    """Look at every sample of a cohort once, holding at most a million samples at a time where the
    format allows. `progress` wraps the iteration over recordings.
    """
    rows: list[RecordingSummary] = []
    maps: dict[tuple[float, float], Floats] = {}
    lost, total = np.zeros(_LOSS_BINS), np.zeros(_LOSS_BINS)
    for item in progress(cohort.items):
        row, loss = _summary_of(item, maps)
        rows.append(row)
        edges = np.linspace(0, len(loss), _LOSS_BINS + 1).astype(np.int64)
        lost += [np.count_nonzero(loss[a:b]) for a, b in itertools.pairwise(edges.tolist())]
        total += np.diff(edges)
    spans = max(maps, default=(360.0, 180.0))
    heat = maps.get(spans, np.zeros((_MAP_ROWS, _MAP_COLUMNS)))
    extent = (
        (0.0, 360.0, 180.0, 0.0)
        if spans == (360.0, 180.0)
        else (-spans[0] / 2, spans[0] / 2, spans[1] / 2, -spans[1] / 2)
    )
    shares = np.divide(lost, total, out=np.zeros(_LOSS_BINS), where=total > 0)
    people: dict[str, Attributes] = {p: dict(a) for p, a in cohort.people.items()}
    return CohortSummary(rows, people, cohort.stimuli, heat, extent, shares, len(cohort.skipped))


def _summary_of(
    item: Recording | Handle, maps: dict[tuple[float, float], Floats]
) -> tuple[RecordingSummary, Bools]:
    """What a look at one recording finds, and which of its samples are lost; where gaze went is
    added to `maps`.
    """
    row: RecordingSummary | None = None
    losses: list[Bools] = [np.zeros(0, dtype=np.bool_)]
    ends_ns: list[int] = []
    run = 0
    for piece in _pieces(item):
        if row is None:
            row = RecordingSummary(*piece.key, piece.space, piece.rate_hz, source=piece.source)
            row.rows = int(piece.counts.get("rows", 0))
            row.time_faults = _whole(piece.metadata.get("time_faults", 0))
            row.impossible = _whole(piece.metadata.get("impossible", 0))
            row.assumed_geometry = bool(piece.metadata.get("assumed_geometry", False))
            row.events = len(piece.events) if piece.events is not None else 0
            row.duration_s = piece.duration_s if not len(piece) else 0.0
            of_handle = item.facts if isinstance(item, Handle) else {}
            row.facts, row.doubts = {**of_handle, **piece.facts}, piece.doubts
        if not len(piece):
            continue
        ends_ns += [int(piece.t_ns.min()), int(piece.t_ns.max())]
        row.samples += len(piece)
        row.valid += int(np.count_nonzero(piece.valid))
        row.longest_loss_s, run = _longest_run(piece, row.longest_loss_s, run)
        losses.append(~piece.valid)
        _add_ranges(row, piece)
        _add_heat(maps, piece)
    assert row is not None
    if ends_ns:
        row.duration_s = (max(ends_ns) - min(ends_ns)) / 1e9
    return row, np.concatenate(losses)


def _pieces(item: Recording | Handle) -> Iterator[Recording]:
    if isinstance(item, Recording):
        yield item
    elif item.chunks is not None:
        yield from item.chunks(_PIECE)
    else:
        yield item.load()


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _longest_run(piece: Recording, longest_s: float, run: int) -> tuple[float, int]:
    """Longest run of lost samples in seconds of nominal time, carried over
    from the piece before.
    """
    if not piece.rate_hz > 0:
        return longest_s, 0
    valid_rows = np.flatnonzero(piece.valid)
    if len(valid_rows) == 0:
        run += len(piece)
        return max(longest_s, run / piece.rate_hz), run
    first, last = run + int(valid_rows[0]), len(piece) - 1 - int(valid_rows[-1])
    inner = int(np.diff(valid_rows).max()) - 1 if len(valid_rows) > 1 else 0
    return max(longest_s, max(first, inner, last) / piece.rate_hz), last


def _add_ranges(row: RecordingSummary, piece: Recording) -> None:
    if not piece.valid.any():
        return
    x, y = piece.x_deg[piece.valid], piece.y_deg[piece.valid]
    if isinstance(piece.space, Screen):
        beside = np.abs(x) > 0.5 * piece.space.width_deg
        row.outside += int(np.count_nonzero(beside | (np.abs(y) > 0.5 * piece.space.height_deg)))
    row.x_min_deg, row.x_max_deg = (
        min(row.x_min_deg, float(x.min())),
        max(row.x_max_deg, float(x.max())),
    )
    row.y_min_deg, row.y_max_deg = (
        min(row.y_min_deg, float(y.min())),
        max(row.y_max_deg, float(y.max())),
    )


def _add_heat(maps: dict[tuple[float, float], Floats], piece: Recording) -> None:
    space = piece.space
    span = (space.width_deg, space.height_deg)
    x, y = piece.x_deg[piece.valid], piece.y_deg[piece.valid]
    if isinstance(space, Screen):
        x, y = x + span[0] / 2, y + span[1] / 2
    column = np.floor(x / span[0] * _MAP_COLUMNS)
    line = np.floor(y / span[1] * _MAP_ROWS)
    inside = (column >= 0) & (column < _MAP_COLUMNS) & (line >= 0) & (line < _MAP_ROWS)
    cells = (line[inside] * _MAP_COLUMNS + column[inside]).astype(np.int64)
    counts = (
        np.bincount(cells, minlength=_MAP_ROWS * _MAP_COLUMNS)
        .astype(np.float64)
        .reshape(_MAP_ROWS, _MAP_COLUMNS)
    )
    maps[span] = maps.get(span, np.zeros((_MAP_ROWS, _MAP_COLUMNS))) + counts
