"""The tracker's own events in an EyeLink ASC file: `EFIX`, `ESACC` and `EBLINK` lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.events import WORD, Events
from gazeveil.io.parsing.table import MOST_NS
from gazeveil.io.vendors.eyelink.geometry import Geometry

_KINDS = {"EFIX": "fixation", "ESACC": "saccade", "EBLINK": "blink"}


@dataclass(frozen=True)
class EventLine:
    """One event: the line it stands on, its word and eye, its times, and for fixations its place in
    pixels.
    """

    line: int
    kind: str
    eye: str
    onset_ns: int
    offset_ns: int
    x_px: float
    y_px: float


def event_lines(path: Path, other: list[tuple[int, str]]) -> tuple[EventLine, ...]:
    """Events among the lines that are not samples, in file order.

    Raises
    ------
    FormatError
        For an event without times.
    """
    result = []
    for number, line in other:
        tokens = line.split()
        if not tokens or tokens[0] not in _KINDS:
            continue
        try:
            onset, offset = (round(float(w) * 1e6) for w in tokens[2:4])
        except (ValueError, OverflowError):
            raise FormatError(
                path, f"the {tokens[0]} line has no times", "Mend or remove the line.", number + 1
            ) from None
        if max(abs(onset), abs(offset)) > MOST_NS:
            raise FormatError(
                path,
                f"the {tokens[0]} line has a time that is too large to be one",
                "Mend or remove the line.",
                number + 1,
            )
        place = [_number(w) for w in tokens[5:7]] if tokens[0] == "EFIX" else []
        x, y = place if len(place) == 2 else (float("nan"), float("nan"))
        result.append(
            EventLine(
                number,
                _KINDS[tokens[0]],
                "right" if tokens[1] == "R" else "left",
                onset,
                offset,
                x,
                y,
            )
        )
    return tuple(result)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def words_of(
    events: Sequence[EventLine], eyes: list[str], t_ns: Ints, block_of: Ints, starts: Ints
) -> dict[str, Texts]:
    """One word per sample and eye; blinks last, because saccades enclose them.

    Parameters
    ----------
    events : sequence of EventLine
        In file order.
    eyes : list of str
        The eyes that were recorded.
    t_ns, block_of : array of int64, shape (n,)
        Time and START block of each sample.
    starts : array of int64
        Line of each block; an event belongs to the block its line stands in.
    """
    labels = {eye: np.full(len(t_ns), "undefined", dtype=WORD) for eye in eyes}
    known = [e for e in events if e.eye in labels]
    placed = zip(known, _samples_of(known, t_ns, block_of, starts), strict=True)
    for event, samples in sorted(placed, key=lambda pair: pair[0].kind == "blink"):
        labels[event.eye][samples] = event.kind
    return labels


def _samples_of(
    events: Sequence[EventLine], t_ns: Ints, block_of: Ints, starts: Ints
) -> Iterator[Ints]:
    """The samples of each event, among those of the block its line stands in."""
    in_order: dict[int, bool] = {}
    for event in events:
        block = max(int(np.searchsorted(starts, event.line, side="right")) - 1, 0)
        low, high = (int(v) for v in np.searchsorted(block_of, [block, block + 1]))
        times = t_ns[low:high]
        if block not in in_order:
            in_order[block] = bool((np.diff(times) >= 0).all())
        if in_order[block]:
            first, after = np.searchsorted(times, [event.onset_ns, event.offset_ns + 1])
            yield np.arange(low + first, low + after)
        else:
            inside = (times >= event.onset_ns) & (times <= event.offset_ns)
            yield low + np.flatnonzero(inside)


def event_ranges(
    events: Sequence[EventLine], t_ns: Ints, block_of: Ints, starts: Ints
) -> tuple[Ints, Ints]:
    """First and last sample of each event, -1 where the file holds none of it; parameters as in
    :func:`words_of`.
    """
    ranges = [
        (int(samples[0]), int(samples[-1])) if len(samples) else (-1, -1)
        for samples in _samples_of(events, t_ns, block_of, starts)
    ]
    first, last = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    return first, last


def events_of_rows(
    events: Sequence[EventLine],
    ranges: tuple[Ints, Ints],
    t_ns: Ints,
    rows: Ints,
    geometry: Geometry,
) -> Events:
    """The events of one eye that lie in some rows of a file, in order of onset; what reaches beyond
    them is cut. A blink lies inside a saccade, as the tracker has it.

    Parameters
    ----------
    events : sequence of EventLine
        Those of the eye.
    ranges : tuple of array of int64
        Their first and last samples (:func:`event_ranges`).
    t_ns : array of int64, shape (n,)
        Times of all samples of the file.
    rows : array of int64
        Rows of the recording, increasing.
    geometry : Geometry
        For the place of fixations.
    """
    first = np.searchsorted(rows, ranges[0])
    last = np.searchsorted(rows, ranges[1], side="right") - 1
    inside = np.flatnonzero((ranges[0] >= 0) & (first <= last))
    inside = inside[np.lexsort((-last[inside], first[inside]))]
    onset, offset = first[inside].astype(np.int64), last[inside].astype(np.int64)
    kept = [events[int(i)] for i in inside]
    x, y = _places(kept, geometry)
    clock = t_ns[rows]
    return Events(
        np.array([e.kind for e in kept], dtype=WORD),
        onset,
        offset,
        clock[onset],
        np.maximum(clock[offset], clock[onset]),
        x,
        y,
        source="eyelink",
    )


def _places(events: Sequence[EventLine], geometry: Geometry) -> tuple[Floats, Floats]:
    """Where fixations were, in degrees; NaN for other events."""
    return geometry.screen.from_px(
        np.array([e.x_px for e in events], dtype=np.float64) - geometry.left_px,
        np.array([e.y_px for e in events], dtype=np.float64) - geometry.top_px,
    )


def as_events(lines: Sequence[EventLine], geometry: Geometry) -> Events:
    """Events without samples, in order of onset, with the place of fixations in degrees."""
    order = sorted(lines, key=lambda e: e.onset_ns)
    none = np.full(len(order), -1, dtype=np.int64)
    x, y = _places(order, geometry)
    onset = np.array([e.onset_ns for e in order], dtype=np.int64)
    offset = np.maximum(np.array([e.offset_ns for e in order], dtype=np.int64), onset)
    return Events(
        np.array([e.kind for e in order], dtype=WORD),
        none,
        none,
        onset,
        offset,
        x,
        y,
        source="eyelink",
    )
