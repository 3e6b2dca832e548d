"""Write a cohort as a BIDS 1.11 eye-tracking dataset.

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
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.io.bids.layout import ESCAPES, LABEL, OWN, VERSION, escaped, labels, tsv, unquoted
from gazeveil.io.source import staged

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
