"""BIDS 1.11 eye tracking: `*_recording-<eye>_physio.tsv.gz` without a header, JSON sidecars that
name the columns.

Specification: Brain Imaging Data Structure 1.11, "Physiological recordings", section "Eye-tracking"
(`PhysioType` `eyetrack`). Files of one run that differ only in `recording-` are the eyes of one
recording: `RecordedEye` says which (`left`, `right`, `cyclopean`). The line of sight is the
cyclopean one where there is one, else it is made from the eyes.

The person is the `sub-` label, the session the `ses-` label ("1" without one), the task the `task-`
label, the stimulus the `acq-` label or else the task; `run-` and further entities are added to the
stimulus (`FreeView_run-01`). Folders that Gazeveil wrote have their original names back.
`participants.tsv` gives the people's attributes.

Coordinates are pixels, millimetres, centimetres, metres or fractions of a screen, or degrees or
radians from its centre, in `Units` of the column or `SampleCoordinateUnits`; the screen is
`StimulusPresentation` of `*_events.json`, or `screen=Screen(...)`. The specification has the
distance in metres; a distance of 10 to 300 is taken for centimetres and more for millimetres, as
some published datasets have it, and `metadata["screen_distance_unit"]` says so. A size of 5 or more
is then taken for the same unit (`metadata["screen_size_unit"]`). A screen that is wider than five
metres, or than four times its distance, is refused; so is a `screen=` of other pixels than
`ScreenResolution` for gaze in pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.io.bids.write import (
    ASIDE,
    EXTRA,
    OWN,
    TIME_UNITS,
    Name,
    data_files,
    read_events,
    sidecar,
    texts,
    unescaped,
    unit_of,
    write,
)
from gazeveil.io.parsing.assemble import assemble, read_json, refuse_other_pixels
from gazeveil.io.parsing.table import Table, parse_table, read_table
from gazeveil.io.registry import DocumentRules, Format, Scrub, TableRules
from gazeveil.io.source import read_text
from gazeveil.registry import number_or_text

__all__ = ["FORMAT", "load", "people", "scan", "sniff_folder", "write"]

_LENGTH_MM = {"mm": 1.0, "cm": 10.0, "m": 1000.0}
_PIXEL = frozenset({"pixel", "pixels", "px"})
_ANGLE = {
    "deg": 1.0,
    "degree": 1.0,
    "degrees": 1.0,
    "°": 1.0,
    "dva": 1.0,
    "rad": 180 / np.pi,
    "radian": 180 / np.pi,
    "radians": 180 / np.pi,
}
_SHARE = frozenset({"normalized", "normalised", "fraction", "norm"})
_EYES = ("left", "right", "cyclopean")
# Wider screens, or nearer ones, are a unit that was taken for another.
_WIDEST_MM, _WIDEST_PER_DISTANCE = 5000.0, 4.0


def sniff_folder(folder: Path) -> bool:
    """A dataset description with a BIDS version, and at least one eye-tracking file."""
    description = folder / "dataset_description.json"
    if not description.is_file():
        return False
    try:
        if "BIDSVersion" not in read_json(description):
            return False
    except FormatError:
        return False
    return any(_is_gaze(sidecar(name, folder)) for name in data_files(folder, "physio"))


def _is_gaze(about: Mapping[str, object]) -> bool:
    return str(about.get("PhysioType", "")).lower() == "eyetrack"


def scan(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per run: the files that differ only in `recording-`."""
    if not path.is_dir():
        raise FormatError(
            path,
            "one file is not a BIDS dataset",
            "Read the folder that holds dataset_description.json.",
        )
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format bids", "screen", "a Screen", screen)
    gaze = [(n, about) for n in data_files(path, "physio") if _is_gaze(about := sidecar(n, path))]
    if not gaze:
        raise FormatError(
            path,
            "no physio file here says PhysioType eyetrack",
            "Only eye-tracking recordings of a BIDS dataset are read.",
        )
    for _, group in groupby(
        sorted(gaze, key=lambda g: (str(g[0].path.parent), g[0].group())),
        key=lambda g: (g[0].path.parent, g[0].group()),
    ):
        files = list(group)
        names = _names(*files[0])
        yield Handle(
            names[0],
            names[1],
            partial(load, tuple(n for n, _ in files), path, names, screen),
            names[2],
            names[3],
            str(files[0][0].path),
        )


def _names(name: Name, about: Mapping[str, object]) -> RecordingKey:
    """(person, stimulus, session, task)."""
    own = about.get(OWN)
    if isinstance(own, Mapping):
        return (
            str(own.get("Person")),
            str(own.get("Stimulus")),
            str(own.get("Session")),
            str(own.get("Task")),
        )
    known = dict(name.group())
    task = known.get("task", "")
    suffixes = [f"{k}-{v}" for k, v in name.group() if k not in ("sub", "ses", "task", "acq")]
    stimulus = "_".join([known.get("acq") or task or "recording", *suffixes])
    return known.get("sub") or name.path.parent.name, stimulus, known.get("ses", "1"), task


def load(
    files: tuple[Name, ...], root: Path, names: RecordingKey, screen: Screen | None = None
) -> Recording:
    """Read the eyes of one run as one recording.

    Raises
    ------
    FormatError
        For a sidecar that does not name the columns or the eye, units without a screen, or eyes
        that do not share a clock.
    """
    eyes = _eyes(files, root)
    t_ns, rows_of = _one_clock(files[0].path, {eye: _times(*parts) for eye, parts in eyes.items()})
    name, about, table = eyes.get("cyclopean") or next(iter(eyes.values()))
    space, origin, metadata = _space(name, root, about, screen)
    places: dict[str, Floats] = {}
    for eye, (of_eye, about_eye, rows) in eyes.items():
        places[eye] = np.full((len(t_ns), 2), np.nan)
        x_deg, y_deg = _degrees(of_eye, about_eye, rows, space, origin)
        places[eye][rows_of[eye]] = np.stack((x_deg, y_deg), axis=1)
    pupil = _channel("pupil_size", eyes, rows_of, len(t_ns))
    if pupil is not None:
        measured = (about for _, about, table in eyes.values() if table.has("pupil_size"))
        metadata["pupil_unit"] = unit_of(next(measured), "pupil_size") or "arbitrary"
    events, labels, messages = read_events(files, root, t_ns)
    rate = about.get("SamplingFrequency")
    rate_hz = (
        float(rate)
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0
        else None
    )
    gaze = places.get("cyclopean")
    shared: dict[str, Any] = {
        **dict(zip(KEY_NAMES, names, strict=True)),
        "t_ns": t_ns,
        "space": space,
        "x_deg": None if gaze is None else gaze[:, 0],
        "y_deg": None if gaze is None else gaze[:, 1],
        "left_deg": places.get("left"),
        "right_deg": places.get("right"),
        "pupil": pupil,
        "events": events,
        "messages": messages,
    }
    if isinstance(about.get(OWN), Mapping):
        # A recording that Gazeveil wrote: all its channels come back as they were.
        shared |= {c: _stacked(table, n) for c, n in EXTRA.items() if table.has(*n)}
        valid = _channel("valid", eyes, rows_of, len(t_ns))
        return Recording(
            **shared,
            valid=np.isfinite(shared["x_deg"] + shared["y_deg"]) if valid is None else valid > 0,
            rate_hz=float("nan") if rate_hz is None else rate_hz,
            labels=labels,
            counts={"rows": len(t_ns)},
            metadata={"source": str(name.path), **metadata},
        )
    metadata |= {
        key: about[key] for key in ("Manufacturer", "ManufacturersModelName") if key in about
    }
    return assemble(name.path, **shared, rate_hz=rate_hz, metadata=metadata)


def _eyes(
    files: tuple[Name, ...], root: Path
) -> dict[str, tuple[Name, Mapping[str, object], Table]]:
    """The files of a run with their sidecars and tables, by the eye they are of."""
    eyes: dict[str, tuple[Name, Mapping[str, object], Table]] = {}
    for name in files:
        about = sidecar(name, root)
        eye = str(about.get("RecordedEye", "")).lower()
        if eye not in _EYES:
            raise FormatError(
                name.path,
                f"RecordedEye is '{about.get('RecordedEye', '')}'",
                "The sidecar must say left, right or cyclopean.",
            )
        if eye in eyes:
            raise FormatError(
                name.path,
                f"two files of this run say RecordedEye '{eye}'",
                "Mend one of the sidecars.",
            )
        eyes[eye] = name, about, _table(name, about)
    return eyes


def _table(name: Name, about: Mapping[str, object]) -> Table:
    columns = about.get("Columns")
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) for c in columns):
        raise FormatError(
            name.path,
            "no sidecar says its Columns",
            "Add a JSON file of the same name with the list of columns.",
        )
    table = parse_table(name.path, read_text(name.path), "\t", header=columns)
    for column in ("x_coordinate", "y_coordinate"):
        if not table.has(column):
            raise FormatError(
                name.path,
                f"its Columns have no '{column}'",
                "Eye-tracking files need x_coordinate and y_coordinate.",
            )
    return table


def _times(name: Name, about: Mapping[str, object], table: Table) -> Ints:
    if table.has("timestamp"):
        unit = TIME_UNITS.get(unit_of(about, "timestamp").strip().lower() or "ms")
        if unit is None:
            raise FormatError(
                name.path,
                f"the timestamp's unit is '{unit_of(about, 'timestamp')}'",
                "Say s, ms, us or ns in the sidecar.",
            )
        return table.times_ns("timestamp", unit=unit)
    rate, start = about.get("SamplingFrequency"), about.get("StartTime", 0)
    if not isinstance(rate, int | float) or rate <= 0:
        raise FormatError(
            name.path,
            "there is neither a timestamp column nor a SamplingFrequency",
            "Add one of them.",
        )
    offset = float(start) if isinstance(start, int | float) else 0.0
    return np.round((offset + np.arange(len(table)) / rate) * 1e9).astype(np.int64)


def _one_clock(path: Path, times: Mapping[str, Ints]) -> tuple[Ints, dict[str, Ints]]:
    """The times of all eyes, and where the rows of each eye stand among them."""
    columns = list(times.values())
    if all(np.array_equal(columns[0], c) for c in columns[1:]):
        return columns[0], {eye: np.arange(len(columns[0])) for eye in times}
    if not all((np.diff(c) > 0).all() for c in columns):
        raise FormatError(
            path,
            "the eyes have different times, and some repeat or go back",
            "Write both eyes on one clock.",
        )
    union = np.unique(np.concatenate(columns))
    return union, {eye: np.searchsorted(union, t) for eye, t in times.items()}


def _space(
    name: Name, root: Path, about: Mapping[str, object], screen: Screen | None
) -> tuple[Space, tuple[str, str], dict[str, object]]:
    """The space, the vertical and horizontal place of its origin, and what should be known about
    how it was found.
    """
    own = about.get(OWN)
    if isinstance(own, Mapping):
        kept = own.get("Screen")
        return (Screen(*kept) if isinstance(kept, list) else Sphere()), ("top", "left"), {}
    system = str(about.get("SampleCoordinateSystem", "gaze-on-screen"))
    if system != "gaze-on-screen":
        raise FormatError(
            name.path,
            f"its SampleCoordinateSystem is '{system}'",
            "Only gaze-on-screen says where the gaze fell; convert the others first.",
        )
    entry = sidecar(name, root, "events", without=("recording",)).get("StimulusPresentation")
    presentation = entry if isinstance(entry, Mapping) else {}
    origin = _origin(name, presentation.get("ScreenOrigin"))
    if screen is not None:
        stated = presentation.get("ScreenResolution")
        px = [v for v in stated if isinstance(v, int | float)] if isinstance(stated, list) else []
        if _unit(about) in _PIXEL and len(px) == 2:
            refuse_other_pixels(name.path, screen, [(px[0], px[1])], "ScreenResolution")
        return screen, origin, {}
    stated, note = _screen(name, presentation)
    return stated, origin, note


def _origin(name: Name, corner: object) -> tuple[str, str]:
    """The vertical and the horizontal place of the origin; the top left where nothing is said."""
    words = (
        [str(word).lower() for word in corner]
        if isinstance(corner, list) and len(corner) == 2
        else ["top", "left"]
    )
    vertical, horizontal = sorted(words, key=lambda word: word not in ("top", "bottom"))
    middle = ("center", "centre")
    if vertical not in ("top", "bottom", *middle) or horizontal not in ("left", "right", *middle):
        raise FormatError(
            name.path,
            f"the ScreenOrigin of its events file is {corner}",
            'Say for instance ["top", "left"].',
        )
    return vertical, horizontal


def _screen(name: Name, presentation: Mapping[str, object]) -> tuple[Screen, dict[str, object]]:
    """The screen of an events sidecar, and the unit of its distance where it is no metre."""
    distance, size, resolution = (
        presentation.get(k) for k in ("ScreenDistance", "ScreenSize", "ScreenResolution")
    )
    numbers = [
        distance,
        *(size if isinstance(size, list) else []),
        *(resolution if isinstance(resolution, list) else []),
    ]
    known = [
        float(v)
        for v in numbers
        if isinstance(v, int | float) and not isinstance(v, bool) and v > 0
    ]
    if len(numbers) != 5 or len(known) != 5:
        raise FormatError(
            name.path,
            "no events sidecar says the screen's distance, size and resolution",
            "Add StimulusPresentation to *_events.json, or read with screen=Screen(...).",
        )
    far, width, height, width_px, height_px = known
    unit, factor = ("m", 1000.0) if far < 10 else ("cm", 10.0) if far <= 300 else ("mm", 1.0)
    note: dict[str, object] = {} if unit == "m" else {"screen_distance_unit": unit}
    per_size = 1000.0
    if unit != "m" and width >= 5:
        # Who writes the distance in another unit may have the size right: 0.5 is metres.
        per_size, note["screen_size_unit"] = factor, unit
    width_mm, distance_mm = width * per_size, far * factor
    if width_mm > min(_WIDEST_MM, _WIDEST_PER_DISTANCE * distance_mm):
        raise FormatError(
            name.path,
            f"its events file says a ScreenSize of {size} and a ScreenDistance of {distance}, which"
            f" is a screen {width_mm / 1000:g} m wide at {distance_mm / 1000:g} m",
            "Write both in metres into *_events.json, or read with screen=Screen(...).",
        )
    return Screen(width_px, height_px, width_mm, height * per_size, distance_mm), note


def _unit(about: Mapping[str, object]) -> str:
    """The unit of gaze."""
    said = unit_of(about, "x_coordinate") or str(about.get("SampleCoordinateUnits", ""))
    return said.strip().lower()


def _degrees(
    name: Name, about: Mapping[str, object], table: Table, space: Space, origin: tuple[str, str]
) -> tuple[Floats, Floats]:
    """Gaze in degrees of the space, whatever its unit and wherever its origin."""
    x, y = table.floats("x_coordinate"), table.floats("y_coordinate")
    unit = _unit(about)
    if isinstance(about.get(OWN), Mapping):
        return x, y
    assert isinstance(space, Screen)
    vertical, horizontal = origin
    if unit in _ANGLE:
        # Angles count from the screen's centre; an origin at the bottom says that they grow
        # upwards.
        x, y = x * _ANGLE[unit], y * _ANGLE[unit]
        return (-x if horizontal == "right" else x), (-y if vertical == "bottom" else y)
    if unit in _PIXEL:
        right, down = 1.0, 1.0
    elif unit in _SHARE:
        right, down = space.width_px, space.height_px
    elif unit in _LENGTH_MM:
        right, down = (
            _LENGTH_MM[unit] * space.width_px / space.width_mm,
            _LENGTH_MM[unit] * space.height_px / space.height_mm,
        )
    else:
        raise FormatError(
            name.path,
            f"the unit of x_coordinate is '{unit}'",
            "Say pixel, mm, cm, m, deg, rad or normalized in the sidecar.",
        )
    x, y = x * right, y * down
    x = {"left": x, "right": space.width_px - x}.get(horizontal, x + space.width_px / 2)
    y = {"top": y, "bottom": space.height_px - y}.get(vertical, y + space.height_px / 2)
    return space.from_px(x, y)


def _channel(
    column: str,
    eyes: Mapping[str, tuple[Name, Mapping[str, object], Table]],
    rows_of: Mapping[str, Ints],
    n: int,
) -> Floats | None:
    """A channel of the line of sight where that has it, else the mean of the eyes that do."""
    sources = (
        ["cyclopean"] if "cyclopean" in eyes and eyes["cyclopean"][2].has(column) else list(eyes)
    )
    total, eye_count, recorded = np.zeros(n), np.zeros(n), False
    for eye in sources:
        if not eyes[eye][2].has(column):
            continue
        recorded = True
        values = np.full(n, np.nan)
        values[rows_of[eye]] = eyes[eye][2].floats(column)
        finite = np.isfinite(values)
        total[finite] += values[finite]
        eye_count += finite
    return np.where(eye_count > 0, total / np.maximum(eye_count, 1), np.nan) if recorded else None


def _stacked(table: Table, names: tuple[str, ...]) -> Floats:
    return (
        table.floats(names[0])
        if len(names) == 1
        else np.stack([table.floats(n) for n in names], axis=1)
    )


def people(root: Path, files: Iterable[Path] = ()) -> Mapping[str, Attributes]:
    """Attributes from `participants.tsv`: numbers as numbers, `n/a` left out."""
    path = root / "participants.tsv"
    if not path.is_file():
        return {}
    table = read_table(path, "\t")
    if not table.has("participant_id"):
        raise FormatError(
            path, "there is no column 'participant_id'", "participants.tsv needs one."
        )
    names = _cells(table, "name") if table.has("name") else [""] * len(table)
    result: dict[str, Attributes] = {}
    columns = [c for c in table.names if c.strip().lower() not in ("participant_id", "name")]
    cells = {c: _cells(table, c) for c in columns}
    for i, label in enumerate(table.words("participant_id")):
        attributes = {c.strip(): number_or_text(cells[c][i]) for c in columns if cells[c][i]}
        result[label.removeprefix("sub-")] = attributes
        if names[i]:
            result[names[i]] = attributes
    return result


def _cells(table: Table, column: str) -> list[str]:
    """A column as text, with what Gazeveil escaped in it."""
    return [unescaped(w) for w in texts(table, column)]


_SIDECAR = DocumentRules(
    {
        **dict.fromkeys(
            (
                *("SamplingFrequency", "StartTime", "Columns", "PhysioType", "RecordedEye"),
                *("SampleCoordinateSystem", "SampleCoordinateUnits", "SampleCoordinateEnvironment"),
                *("EyeTrackingMethod", "CalibrationCount", "CalibrationType", "CalibrationUnit"),
                *("AverageCalibrationError", "MaximalCalibrationError", "CalibrationPosition"),
                *("EyeTrackerDistance", "PupilFitMethod", "Manufacturer", "ManufacturersModelName"),
                *("SoftwareVersions", "TaskName", "OnsetSource"),
            ),
            "keep",
        ),
        "DeviceSerialNumber": "removed",
        "StimulusPresentation": dict.fromkeys(
            (
                *("ScreenDistance", "ScreenOrigin", "ScreenResolution", "ScreenSize"),
                *("ScreenRefreshRate", "HeadStabilization"),
            ),
            "keep",
        ),
        OWN: {
            **dict.fromkeys(("Person", "Stimulus", "Session", "Task"), "label"),
            "Screen": "keep",
        },
        "*": {"Units": "keep"},
    }
)
# Columns stay where they are, because a sidecar lists them in order; those of no known name are
# emptied.
_SAMPLES = TableRules(
    keep=(
        r"[xy]coordinate|pupilsize|valid|confidence|head(?:x|y|roll)|eyeinhead[xy]|duration|onset"
        r"|(?:first|last)sample|blink"
    ),
    event="trialtype|trialid|message|stimfile|source|secondary|response|value|.*label",
    words=frozenset({"fixation", "saccade", "blink", "pursuit", "pso", "stimulus"}),
    missing="n/a",
    whole=True,
)


def _column_names(path: Path, root: Path) -> list[str] | None:
    """Columns of a physio or physioevents file, which has no line of them."""
    name = Name.of(path)
    columns = None if name is None else sidecar(name, root).get("Columns")
    return [str(c) for c in columns] if isinstance(columns, list) else None


FORMAT = Format(
    "bids",
    "BIDS 1.11 eye tracking",
    lambda head: False,  # a single file of a dataset says too little
    scan,
    frozenset({"screen"}),
    sniff_folder=sniff_folder,
    people=people,
    scrub=Scrub(
        files={
            r"dataset_description\.json": DocumentRules(
                {"BIDSVersion": "keep", "DatasetType": "keep"},
                constants={"Name": "Scrubbed recordings"},
            ),
            r"(?:sub-.*_|[a-z]+-.*_)?(?:physio|physioevents|events|eyetrack)\.json": _SIDECAR,
            r"sub-.*_(?:physio|physioevents)\.tsv": replace(
                _SAMPLES, shift="timestamp|onset", one_clock=True
            ),
            r"sub-.*_events\.tsv": _SAMPLES,
        },
        names=_column_names,
        entities=(
            r"(?<![A-Za-z0-9])(?:(?:sub|ses)-(?P<label>[A-Za-z0-9+]+)"
            r"|[a-z]+-(?P<word>[A-Za-z0-9+]+))"
        ),
        aside=ASIDE,
        run=r"_recording-[A-Za-z0-9]+|_(?:physio|physioevents)\.tsv(?:\.gz)?",
    ),
)
