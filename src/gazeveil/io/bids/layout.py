"""Names, labels and sidecars of a BIDS folder.

A file name is `<entity>-<label>_..._<suffix>.<extension>`. By the inheritance principle a JSON file
applies to every data file with the same suffix, in its folder or below, whose entities include all
of its own; the deeper and the more particular one wins.

The `*_physioevents.tsv.gz` of a BIDS eye-tracking run: events, labels and messages.

`OnsetSource` says whether `onset` is a time of the recording's clock (`timestamp`) or a row number
(`n/a`); `duration` has the same unit. A saccade with `blink` 1 is a blink. Files that Gazeveil
wrote also have sample numbers, and label columns as runs of words.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.recording import Message
from gazeveil.io.parsing.assemble import read_json
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.source import Head, read_text

#: Version of the specification that is written.
VERSION = "1.11.0"

#: Key of the sidecar under which Gazeveil keeps what BIDS has no field for.
OWN = "GazeveilRecording"

#: Prefix of an event row's source that says it is a run of a label column.
LABEL = "label:"

#: Folders of a dataset that hold no raw recordings.
ASIDE = frozenset({"derivatives", "sourcedata", "code", "stimuli", "phenotype"})


@dataclass(frozen=True)
class Name:
    """A BIDS file name taken apart."""

    path: Path
    entities: tuple[tuple[str, str], ...]
    suffix: str

    @classmethod
    def of(cls, path: Path) -> Name | None:
        """The parts of a file name, or None where it is not of that form."""
        stem = re.sub(r"\.(tsv\.gz|tsv|json)$", "", path.name)
        if stem == path.name:
            return None
        *parts, suffix = stem.split("_")
        pairs = [p.split("-", 1) for p in parts]
        if any(len(p) != 2 or not p[1] for p in pairs):
            return None
        return cls(path, tuple((p[0], p[1]) for p in pairs), suffix)

    def get(self, entity: str) -> str | None:
        """The label of one entity."""
        return dict(self.entities).get(entity)

    def group(self) -> tuple[tuple[str, str], ...]:
        """The entities that tell recordings apart: all but `recording`, which tells eyes apart."""
        return tuple(e for e in self.entities if e[0] != "recording")


def data_files(root: Path, suffix: str) -> Iterator[Name]:
    """All `*_<suffix>.tsv[.gz]` of the raw dataset, in order."""
    for path in sorted(root.rglob(f"*_{suffix}.tsv*")):
        if any(p.startswith(".") or p in ASIDE for p in path.relative_to(root).parts[:-1]):
            continue
        name = Name.of(path)
        if name is not None and name.suffix == suffix:
            yield name


def sidecar(
    name: Name, root: Path, suffix: str | None = None, without: Iterable[str] = ()
) -> dict[str, object]:
    """Everything the JSON files say about a data file, by inheritance. With `suffix` those that
    describe the same run under another suffix (`events`); `without` are entities to forget.
    """
    wanted = suffix or name.suffix
    own = {k: v for k, v in name.entities if k not in set(without)}
    merged: dict[str, object] = {}
    for inner in reversed(name.path.relative_to(root).parents):
        applicable = []
        for path in (root / inner).glob(f"*{wanted}.json"):
            # At the root the name may be the bare suffix: `physio.json`.
            candidate = Name(path, (), wanted) if path.name == f"{wanted}.json" else Name.of(path)
            if (
                candidate is not None
                and candidate.suffix == wanted
                and all(own.get(k) == v for k, v in candidate.entities)
            ):
                applicable.append(candidate)
        for candidate in sorted(applicable, key=lambda n: (len(n.entities), n.path.name)):
            merged |= read_json(candidate.path)
    return merged


def labels(texts: Iterable[str], empty: str) -> Mapping[str, str]:
    """A label of letters and digits for each text, all different even without regard to case;
    `empty` stands for none.
    """
    result: dict[str, str] = {}
    used: set[str] = set()
    for text in dict.fromkeys(texts):
        plain = re.sub(r"[^A-Za-z0-9]", "", text) or empty
        label, number = plain, 1
        while label.lower() in used:
            number += 1
            label = f"{plain}x{number}"
        used.add(label.lower())
        result[text] = label
    return result


#: What a sidecar says about a column whose cells are escaped.
ESCAPES = r"\t is a tab, \n and \r are ends of lines, \s is a blank at an end, \\ is a backslash"

_LETTER = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_CHARACTER = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r", "s": " ", "q": '"'}


def escaped(text: str) -> str:
    r"""A text that fits a cell.

    Examples
    --------
    >>> escaped("trial\t1 ")
    'trial\\t1\\s'
    """
    plain = "".join(_LETTER.get(c, c) for c in text)
    return re.sub(r"^ | $", r"\\s", plain)


def unescaped(cell: str) -> str:
    """The text that :func:`escaped` made a cell of."""
    return re.sub(r"\\(.)", lambda at: _CHARACTER.get(at[1], at[0]), cell)


def unquoted(text: str) -> str:
    """A text that fits a cell of a file that some programs read with quotes."""
    return escaped(text).replace('"', "\\q")


def tsv(frame: pl.DataFrame, header: bool) -> bytes:
    """A table as TSV: `n/a` for what is missing, no quotes."""
    buffer = io.BytesIO()
    plain = frame.with_columns(
        pl.selectors.float().fill_nan(None), pl.selectors.string().replace("", None)
    )
    plain.write_csv(
        buffer, separator="\t", include_header=header, null_value="n/a", quote_style="never"
    )
    return buffer.getvalue()


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
