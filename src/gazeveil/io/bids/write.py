"""A BIDS folder: names, labels and sidecars, and a cohort written as one.

Names, labels and sidecars of a BIDS folder.

A file name is `<entity>-<label>_..._<suffix>.<extension>`. By the inheritance principle a JSON file
applies to every data file with the same suffix, in its folder or below, whose entities include all
of its own; the deeper and the more particular one wins.

The `*_physioevents.tsv.gz` of a BIDS eye-tracking run: events, labels and messages.

`OnsetSource` says whether `onset` is a time of the recording's clock (`timestamp`) or a row number
(`n/a`); `duration` has the same unit. A saccade with `blink` 1 is a blink. Files that Gazeveil
wrote also have sample numbers, and label columns as runs of words.

Write a cohort as a BIDS 1.11 eye-tracking dataset.

::

    dataset_description.json  README  participants.tsv  participants.json
    sub-<person>/ses-<session>/beh/
      sub-<person>_ses-<session>_task-<task>_acq-<stimulus>_events.json, _events.tsv
                                   the screen, and one row for the stimulus
      ..._recording-eye3_physio.tsv.gz, .json
                                   the line of sight ("cyclopean"): timestamp x_coordinate
                                   y_coordinate [pupil_size] valid ...
      ..._recording-eye1_physio.tsv.gz, .json
                                   the left eye, where there is one; eye2 the right
      ..._recording-eye3_physioevents.tsv.gz, .json
                                   events, labels and messages, where there are any

Labels are the names with everything but letters and digits left out; the names themselves stand in
the sidecars (`GazeveilRecording`) and in `participants.tsv` (`name`). Times are whole nanoseconds,
coordinates degrees as in a Recording, so that nothing is rounded: t, x, y, valid, the eyes, pupil,
head, eye in head, confidence, events, labels and messages read back bit for bit. Other metadata and
`truth` are not written.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Ints, Texts
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing.assemble import read_json
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.source import Head, read_text, staged

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


#: Extra columns of the line of sight, by channel.
EXTRA = {
    "head_deg": ("head_x", "head_y", "head_roll"),
    "eye_in_head_deg": ("eye_in_head_x", "eye_in_head_y"),
    "confidence": ("confidence",),
}

_README = (
    "Gaze recordings written by Gazeveil. Each recording has its line of sight as recording-eye3"
    " (cyclopean), the single eyes as eye1 and eye2.\n"
)


def write(
    cohort: Cohort,
    path: str | Path,
    progress: Callable[[Iterable[Recording]], Iterable[Recording]] = lambda r: r,
) -> Path:
    """Write a cohort as a BIDS folder, one recording at a time.

    Parameters
    ----------
    cohort : Cohort
        What to write; fixation-only recordings are refused, since BIDS has no place for events
        without samples.
    path : path
        A folder that does not exist yet or is empty.
    progress : callable
        Wraps the iteration, for a progress bar.

    Raises
    ------
    DataError
        If the folder exists and is not empty, or a recording has no samples or no rate.
    """
    people, stimuli, sessions, tasks = (
        labels((k[i] for k in cohort.keys), e)
        for i, e in enumerate(("person", "stimulus", "none", "gaze"))
    )
    with staged(path) as folder:
        for recording in progress(cohort):
            write_run(
                recording,
                folder,
                people[recording.person],
                sessions[recording.session],
                tasks[recording.task],
                stimuli[recording.stimulus],
            )
        _write_dataset(cohort, folder, people)
    return Path(path)


def _write_dataset(cohort: Cohort, root: Path, people: Mapping[str, str]) -> None:
    write_json(
        root / "dataset_description.json",
        {"Name": cohort.name or "Gaze recordings", "BIDSVersion": VERSION, "DatasetType": "raw"},
    )
    (root / "README").write_text(_README, encoding="utf-8")
    rows = {
        people[p]: {"name": p, **{k: v for k, v in attributes.items() if k != "name"}}
        for p, attributes in cohort.people.items()
        if p in people
    }
    write_participants(root, rows, {"name": "name of the person before it became a label"})


def write_participants(
    root: Path, people: Mapping[str, Mapping[str, object]], about: Mapping[str, str]
) -> None:
    """Write `participants.tsv` and `participants.json`, everybody in the order given. `about`
    describes columns whose name does not say what they hold.
    """
    fields = list(dict.fromkeys(f for a in people.values() for f in a if f != "participant_id"))
    rows = [
        {
            "participant_id": f"sub-{label}",
            **{
                unquoted(f): None if (v := attributes.get(f)) is None else unquoted(str(v))
                for f in fields
            },
        }
        for label, attributes in people.items()
    ]
    names = ("participant_id", *map(unquoted, fields))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))
    (root / "participants.tsv").write_bytes(tsv(frame, header=True))
    write_json(
        root / "participants.json",
        {
            "participant_id": {"Description": "label of the person"},
            **{unquoted(f): {"Description": about.get(f, f)} for f in fields},
        },
    )


def write_run(
    recording: Recording, root: Path, person: str, session: str, task: str, stimulus: str
) -> str:
    """Write the files of one recording; returns that of the line of sight, relative to the root.
    The labels are letters and digits, and no other recording has all four.

    Raises
    ------
    DataError
        If it has no samples or no rate.
    """
    if len(recording) == 0 or not recording.rate_hz > 0:
        raise DataError(
            f"{recording.title} has no samples or no known rate, and BIDS needs both. Leave it out"
            " with cohort.select."
        )
    folder = root / f"sub-{person}" / f"ses-{session}" / "beh"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"sub-{person}_ses-{session}_task-{task}_acq-{stimulus}"
    task_name = recording.task or task
    shared, own = {"TaskName": task_name, **_sidecar(recording)}, {OWN: _own(recording)}
    columns, about = _columns(recording)
    _physio(
        folder / f"{stem}_recording-eye3_physio",
        recording.t_ns,
        columns,
        {**shared, "RecordedEye": "cyclopean", **about, **own},
    )
    for label, eye, values in (
        ("eye1", "left", recording.left_deg),
        ("eye2", "right", recording.right_deg),
    ):
        if values is not None:
            _physio(
                folder / f"{stem}_recording-{label}_physio",
                recording.t_ns,
                {"x_coordinate": values[:, 0], "y_coordinate": values[:, 1]},
                {**shared, "RecordedEye": eye, **own},
            )
    write_json(
        folder / f"{stem}_events.json",
        {
            "Description": "The stimulus, from the first sample to the last",
            "TaskName": task_name,
            "StimulusPresentation": _presentation(recording.space),
        },
    )
    (folder / f"{stem}_events.tsv").write_text(
        f"onset\tduration\ttrial_type\n0\t{recording.duration_s!r}\tstimulus\n", encoding="utf-8"
    )
    _physioevents(recording, folder / f"{stem}_recording-eye3_physioevents")
    return (folder / f"{stem}_recording-eye3_physio.tsv.gz").relative_to(root).as_posix()


def _sidecar(recording: Recording) -> dict[str, object]:
    """What the sidecars of all eyes say."""
    on_screen = isinstance(recording.space, Screen)
    x = "angle from the screen's centre" if on_screen else "longitude in [0, 360)"
    y = "angle from the screen's centre" if on_screen else "angle from the zenith"
    return {
        "Description": "Gaze of one person looking at one stimulus",
        "PhysioType": "eyetrack",
        "SamplingFrequency": recording.rate_hz,
        "StartTime": 0,
        "SampleCoordinateSystem": "gaze-on-screen" if on_screen else "gaze-in-world",
        "SampleCoordinateUnits": "deg",
        "timestamp": {
            "Description": "time of the sample",
            "Units": "ns",
            "Origin": "the recording's own clock",
        },
        "x_coordinate": {"Description": f"gaze to the right, {x}", "Units": "deg"},
        "y_coordinate": {"Description": f"gaze downwards, {y}", "Units": "deg"},
    }


def _own(recording: Recording) -> dict[str, object]:
    """What brings the recording back as it was, where BIDS has no word for it."""
    space = recording.space
    return {
        "Person": recording.person,
        "Stimulus": recording.stimulus,
        "Session": recording.session,
        "Task": recording.task,
        "Screen": list(astuple(space)) if isinstance(space, Screen) else None,
    }


def _columns(recording: Recording) -> tuple[dict[str, NDArray[np.generic]], dict[str, object]]:
    """Columns of the line of sight, and what the sidecar says about them."""
    columns: dict[str, NDArray[np.generic]] = {
        "x_coordinate": recording.x_deg,
        "y_coordinate": recording.y_deg,
    }
    about: dict[str, object] = {
        "valid": {
            "Description": "1 where the tracker saw gaze",
            "Levels": {"0": "no gaze", "1": "gaze"},
        }
    }
    if recording.pupil is not None:
        columns["pupil_size"] = recording.pupil
        unit = str(recording.metadata.get("pupil_unit", "arbitrary"))
        about["pupil_size"] = {"Description": "pupil size", "Units": unit}
    columns["valid"] = recording.valid.astype(np.int64)
    for channel, names in EXTRA.items():
        values = getattr(recording, channel)
        if values is not None:
            unit = "1" if channel == "confidence" else "deg"
            columns |= {n: values if len(names) == 1 else values[:, i] for i, n in enumerate(names)}
            about |= {n: {"Description": n.replace("_", " "), "Units": unit} for n in names}
    return columns, about


def _presentation(space: Space) -> dict[str, object]:
    if not isinstance(space, Screen):
        return {"VisionCorrection": "unknown"}
    return {
        "ScreenDistance": space.distance_mm / 1000,
        "ScreenOrigin": ["top", "left"],
        "ScreenResolution": [_whole(space.width_px), _whole(space.height_px)],
        "ScreenSize": [space.width_mm / 1000, space.height_mm / 1000],
    }


def _physio(
    stem: Path, t_ns: Ints, columns: Mapping[str, NDArray[np.generic]], about: Mapping[str, object]
) -> None:
    frame = pl.DataFrame({"timestamp": t_ns, **columns})
    _gzip(stem, frame)
    write_json(stem.with_name(stem.name + ".json"), {"Columns": frame.columns, **about})


def _physioevents(recording: Recording, stem: Path) -> None:
    parts: list[tuple[str, Events]] = []
    if recording.events is not None:
        parts.append((recording.events.source, recording.events))
    parts += [
        (LABEL + name, Events.from_words(column, recording.t_ns))
        for name, column in recording.labels.items()
    ]
    if not parts and not recording.messages:
        return
    frames = [
        pl.DataFrame(
            {
                "onset": e.onset_ns,
                "duration": e.offset_ns - e.onset_ns,
                "trial_type": e.kind.astype(np.str_),
                "secondary": (
                    np.full(len(e), "") if e.secondary is None else e.secondary.astype(np.str_)
                ),
                "source": np.full(len(e), escaped(source)),
                "first_sample": e.onset,
                "last_sample": e.offset,
            },
            schema_overrides=dict.fromkeys(("trial_type", "secondary", "source"), pl.String),
        )
        for source, e in parts
    ]
    if recording.messages:
        text = {
            "onset": [m.t_ns for m in recording.messages],
            "message": [escaped(m.text) for m in recording.messages],
        }
        frames.append(pl.DataFrame(text, schema={"onset": pl.Int64, "message": pl.String}))
    frame = pl.concat(frames, how="diagonal")
    if "message" not in frame.columns:
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias("message"))
    _gzip(stem, frame)
    about = {
        "Columns": frame.columns,
        "Description": "Events and labels of the recording, and messages of the experiment",
        "OnsetSource": "timestamp",
        "message": {"Description": f"what the experiment wrote; {ESCAPES}"},
        OWN: {"Escapes": "backslash"},
        "duration": {"Description": "time from the first to the last sample", "Units": "ns"},
        "secondary": {"Description": "what is under way beside the event"},
        "first_sample": {"Description": "row of the recording where it begins, from 0"},
        "last_sample": {"Description": "row of the recording where it ends, from 0"},
        "source": {
            "Description": (
                f"who says so; {LABEL}<name> is a run of equal words in that label column"
            )
        },
    }
    write_json(stem.with_name(stem.name + ".json"), about)


def _gzip(stem: Path, frame: pl.DataFrame) -> None:
    # Without name and time in the archive the same recording always gives the same bytes.
    with (
        stem.with_name(stem.name + ".tsv.gz").open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as archive,
    ):
        archive.write(tsv(frame, header=False))


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a sidecar or another JSON file of a dataset."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
