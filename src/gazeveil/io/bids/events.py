"""The `*_physioevents.tsv.gz` of a BIDS eye-tracking run: events, labels and messages.

`OnsetSource` says whether `onset` is a time of the recording's clock (`timestamp`) or a row number
(`n/a`); `duration` has the same unit. A saccade with `blink` 1 is a blink. Files that Gazeveil
wrote also have sample numbers, and label columns as runs of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gazeveil.arrays import Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.recording import Message
from gazeveil.io.bids.layout import OWN, Name, sidecar, unescaped
from gazeveil.io.bids.write import LABEL
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.source import Head, read_text

#: Words for units of time.
TIME_UNITS = {
    "s": "s",
    "sec": "s",
    "second": "s",
    "seconds": "s",
    "ms": "ms",
    "millisecond": "ms",
    "milliseconds": "ms",
}
TIME_UNITS |= {
    "us": "us",
    "µs": "us",
    "μs": "us",
    "microseconds": "us",
    "ns": "ns",
    "nanoseconds": "ns",
}


def unit_of(about: Mapping[str, object], column: str) -> str:
    """The unit a sidecar gives a column, or an empty text."""
    description = about.get(column)
    return str(description.get("Units", "")) if isinstance(description, Mapping) else ""


def texts(table: Table, column: str) -> list[str]:
    """A column as text, empty where it says n/a."""
    return ["" if w.lower() == "n/a" else w for w in table.words(column)]


def read_events(
    files: tuple[Name, ...], root: Path, t_ns: Ints
) -> tuple[Events | None, dict[str, Texts], tuple[Message, ...]]:
    """Events, label columns and messages of the first eye that has a physioevents file."""
    for name in sorted(files, key=lambda f: f.path.name, reverse=True):
        path = name.path.with_name(name.path.name.replace("_physio.tsv", "_physioevents.tsv"))
        if not path.exists():
            continue
        about = sidecar(Name(path, name.entities, "physioevents"), root)
        columns = about.get("Columns")
        if not isinstance(columns, list) or "onset" not in columns:
            raise FormatError(
                path,
                "no sidecar says its Columns, onset among them",
                "Add a JSON file of the same name.",
            )
        if not Head.of(path).data.strip():
            return None, {}, ()  # an archive of nothing: no events
        return _event_rows(
            parse_table(
                path,
                read_text(path),
                "\t",
                header=[str(c) for c in columns],
                quoted=not _has_escapes(about),
            ),
            about,
            sidecar(name, root),
            t_ns,
        )
    return None, {}, ()


def _has_escapes(about: Mapping[str, object]) -> bool:
    """Whether Gazeveil wrote the file, with backslashes for what a cell cannot hold."""
    own = about.get(OWN)
    return isinstance(own, Mapping) and own.get("Escapes") == "backslash"


def _event_rows(
    table: Table, about: Mapping[str, object], physio: Mapping[str, object], t_ns: Ints
) -> tuple[Events | None, dict[str, Texts], tuple[Message, ...]]:
    onset, offset = _row_times(table, about, physio, t_ns)
    kind, secondary, source, message = (
        texts(table, c) if table.has(c) else [""] * len(table)
        for c in ("trial_type", "secondary", "source", "message")
    )
    if _has_escapes(about):
        source, message = [unescaped(w) for w in source], [unescaped(w) for w in message]
    messages = tuple(Message(int(t), m) for t, m in zip(onset.tolist(), message, strict=True) if m)
    if table.has("first_sample", "last_sample"):
        first, last = (
            np.nan_to_num(table.floats(c), nan=-1).astype(np.int64)
            for c in ("first_sample", "last_sample")
        )
    else:
        clock = np.maximum.accumulate(t_ns)
        first = np.clip(np.searchsorted(clock, onset, side="left"), 0, len(clock) - 1)
        last = np.clip(np.searchsorted(clock, offset, side="right") - 1, first, len(clock) - 1)
        if table.has("blink"):
            # The tracker reports a blink as a saccade during which the eye was closed.
            kind = [
                "blink" if c and k == "saccade" else k
                for k, c in zip(kind, table.floats("blink") > 0, strict=True)
            ]
    kinds = np.array(kind, dtype=WORD)
    labels = _labels(source, kinds, first, last, len(t_ns))
    is_event = [bool(k) and not s.startswith(LABEL) for k, s in zip(kind, source, strict=True)]
    rows = np.flatnonzero(np.array(is_event, dtype=np.bool_))
    if len(rows) == 0:
        return None, labels, messages
    known = np.array([k if k in KINDS else "undefined" for k in kinds.tolist()], dtype=WORD)
    order = rows[np.argsort(onset[rows], kind="stable")]
    tiers = np.array(secondary, dtype=WORD)[order] if any(secondary[i] for i in rows) else None
    events = Events(
        known[order],
        first[order],
        last[order],
        onset[order],
        offset[order],
        secondary=tiers,
        source=source[int(rows[0])] or "eye tracker",
    )
    return events, labels, messages


def _row_times(
    table: Table, about: Mapping[str, object], physio: Mapping[str, object], t_ns: Ints
) -> tuple[Ints, Ints]:
    """Onset and offset of each row, nanoseconds."""
    unit = TIME_UNITS.get(unit_of(physio, "timestamp").strip().lower() or "ms", "ms")
    if str(about.get("OnsetSource", "timestamp")) == "n/a":
        # Onsets count samples.
        rate = physio.get("SamplingFrequency")
        scale = 1e9 / rate if isinstance(rate, int | float) and rate > 0 else 0.0
        onset = np.round(t_ns[0] + table.floats("onset") * scale).astype(np.int64)
    else:
        scale = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
        onset = table.times_ns("onset", unit=unit)
    if not table.has("duration"):
        return onset, onset
    return onset, onset + np.round(np.nan_to_num(table.floats("duration")) * scale).astype(np.int64)


def _labels(
    source: list[str], kinds: Texts, first: Ints, last: Ints, samples: int
) -> dict[str, Texts]:
    """Labels of samples, from the rows that were written of them."""
    labels: dict[str, Texts] = {}
    for label in dict.fromkeys(s for s in source if s.startswith(LABEL)):
        column = np.full(samples, "undefined", dtype=WORD)
        for i in np.flatnonzero(np.array(source) == label):
            column[first[i] : last[i] + 1] = kinds[i]
        labels[label[len(LABEL) :]] = column
    return labels
