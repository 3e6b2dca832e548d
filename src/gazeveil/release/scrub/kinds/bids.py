"""BIDS: names of files, sidecars, tables of samples and of events, and participants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gazeveil.io.bids.layout import OWN, Name, sidecar
from gazeveil.io.source import key
from gazeveil.release.inventory.finding import kind_of
from gazeveil.release.scrub.job import ScrubJob, dump_json, kept, load_json, scrubbed_document
from gazeveil.release.scrub.tables import (
    NEVER,
    Beginnings,
    Lines,
    TableRules,
    beginnings,
    column_names,
    scrubbed_table,
)

#: Folders of a dataset that are not copied, because anything may lie in them.
ASIDE = frozenset({"derivatives", "sourcedata", "code", "stimuli", "phenotype"})

_SIDECAR: dict[str, object] = dict.fromkeys(
    (
        "SamplingFrequency",
        "StartTime",
        "Columns",
        "PhysioType",
        "RecordedEye",
        "SampleCoordinateSystem",
        "SampleCoordinateUnits",
        "SampleCoordinateEnvironment",
        "EyeTrackingMethod",
        "CalibrationCount",
        "CalibrationType",
        "CalibrationUnit",
        "AverageCalibrationError",
        "MaximalCalibrationError",
        "CalibrationPosition",
        "EyeTrackerDistance",
        "PupilFitMethod",
        "Manufacturer",
        "ManufacturersModelName",
        "SoftwareVersions",
        "TaskName",
        "OnsetSource",
    ),
    "keep",
)
_SIDECAR |= {
    "DeviceSerialNumber": "removed",
    "StimulusPresentation": {
        "ScreenDistance": "keep",
        "ScreenOrigin": "keep",
        "ScreenResolution": "keep",
        "ScreenSize": "keep",
        "ScreenRefreshRate": "keep",
        "HeadStabilization": "keep",
    },
    OWN: {
        "Person": "label",
        "Stimulus": "label",
        "Session": "label",
        "Task": "label",
        "Screen": "keep",
    },
}
_COLUMN = {"Units": "keep"}
_DESCRIPTION = {"BIDSVersion": "keep", "DatasetType": "keep"}
_PRIVATE = ("name", "e-mail", "date", "attribute", "eye distance", "height", "serial", "path")


def is_dataset(folder: Path) -> bool:
    """Whether a folder has the description that makes it a BIDS dataset."""
    place = folder / "dataset_description.json"
    return place.is_file() and '"BIDSVersion"' in place.read_text("utf-8", errors="replace")


def public_name(part: str, job: ScrubJob) -> str:
    """A file or folder of a dataset, with labels for person and session."""

    def entity(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name in ("sub", "ses"):
            return f"{name}-{job.label(value)}"
        return f"{name}-{value if job.is_harmless(value) else job.label(value)}"

    return re.sub(r"(?<![A-Za-z0-9])([a-z]+)-([A-Za-z0-9+]+)", entity, part)


def scrubbed_description(path: Path, job: ScrubJob) -> list[str]:
    """The description without name, authors, funding and links."""
    about = scrubbed_document(load_json(path), _DESCRIPTION, job)
    return dump_json({"Name": "Scrubbed recordings", **about})


def scrubbed_sidecar(path: Path, job: ScrubJob) -> list[str]:
    """A sidecar: numbers, units, terms and the screen; descriptions are free text."""
    value = load_json(path)
    columns = value.get("Columns") if isinstance(value, dict) else None
    names = [c for c in columns if isinstance(c, str)] if isinstance(columns, list) else []
    about = scrubbed_document(value, _SIDECAR, job)
    for name in names:
        described = value.get(name) if isinstance(value, dict) else None
        if isinstance(described, Mapping):
            about[str(kept(name, job))] = _column(described, job)
    for name in ("timestamp", "x_coordinate", "y_coordinate", "pupil_size"):
        described = value.get(name) if isinstance(value, dict) else None
        if name not in names and isinstance(described, Mapping):
            about[name] = _column(described, job)
    return dump_json(about)


def _column(described: Mapping[str, object], job: ScrubJob) -> dict[str, object]:
    """The units of a column; of its description only whether a pupil is an area or a diameter."""
    about = scrubbed_document(described, _COLUMN, job)
    text = str(described.get("Description", "")).lower()
    size = next((word for word in ("diameter", "area") if word in text), None)
    return about if size is None else {"Description": f"pupil {size}", **about}


def run_beginning(name: Name, root: Path, lines: Lines) -> Beginnings:
    """When the clock of a physio file begins."""
    columns = _columns(name, root)
    return beginnings(lines, _rules(columns), columns) if columns else {}


def scrubbed_samples(
    name: Name, root: Path, lines: Lines, job: ScrubJob, clock: Beginnings | None
) -> Iterator[str]:
    """Rows of a physio or physioevents file, which has no line of column names."""
    columns = _columns(name, root)
    rules = _rules(columns)
    yield from scrubbed_table(lines, rules, job, clock, columns)


def scrubbed_events(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """`*_events.tsv`: times from the run's beginning stay, texts become labels."""
    yield from scrubbed_table(lines, _rules(column_names(lines), NEVER), job)


def _columns(name: Name, root: Path) -> list[str]:
    columns = sidecar(name, root).get("Columns")
    return [str(c) for c in columns] if isinstance(columns, list) else []


def _rules(columns: list[str], shift: str = r"(timestamp|onset)$") -> TableRules:
    """All columns stay where they are; what their names make private is emptied.

    A sidecar lists the columns in order, so none can be left out alone.
    """
    private = [re.escape(key(c)) + "$" for c in columns if kind_of(c) in _PRIVATE]
    texts = r"trialtype$|trialid$|message|stimfile$|source$|secondary$|response|value$|.*label$"
    return TableRules(
        keep=r".*",
        empty="|".join(private or [NEVER]),
        shift=shift,
        event=texts,
        words=frozenset({"fixation", "saccade", "blink", "pursuit", "pso", "stimulus"}),
        missing="n/a",
    )
