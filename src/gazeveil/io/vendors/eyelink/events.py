"""The tracker's own events in an EyeLink ASC file: `EFIX`, `ESACC` and `EBLINK` lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gazeveil.arrays import Bools, Ints, Texts
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
    in_order: dict[int, bool] = {}
    for event in sorted(events, key=lambda e: e.kind == "blink"):
        if event.eye not in labels:
            continue
        block = max(int(np.searchsorted(starts, event.line, side="right")) - 1, 0)
        low, high = np.searchsorted(block_of, [block, block + 1])
        times = t_ns[low:high]
        if block not in in_order:
            in_order[block] = bool((np.diff(times) >= 0).all())
        inside: slice | Bools
        if in_order[block]:
            inside = slice(*np.searchsorted(times, [event.onset_ns, event.offset_ns + 1]))
        else:
            inside = (times >= event.onset_ns) & (times <= event.offset_ns)
        labels[event.eye][low:high][inside] = event.kind
    return labels


def as_events(lines: Sequence[EventLine], geometry: Geometry) -> Events:
    """Events without samples, in order of onset, with the place of fixations in degrees."""
    order = sorted(lines, key=lambda e: e.onset_ns)
    none = np.full(len(order), -1, dtype=np.int64)
    x, y = geometry.screen.from_px(
        np.array([e.x_px for e in order]) - geometry.left_px,
        np.array([e.y_px for e in order]) - geometry.top_px,
    )
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
