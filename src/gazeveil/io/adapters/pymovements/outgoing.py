"""What pymovements holds, from recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.adapters.pymovements.conventions import LABEL, load_pymovements
from gazeveil.io.bids.layout import labels


def to_pymovements(data: Recording | Cohort) -> object:
    """A Recording as a pymovements `Gaze`; a Cohort as a list of them, in order.

    Raises
    ------
    MissingExtraError
        Without pymovements.
    DataError
        For a recording without samples.
    """
    pm = load_pymovements()
    if isinstance(data, Cohort):
        return [_gaze(pm, r) for r in data]
    if not isinstance(data, Recording):
        checks.refuse("to_pymovements", "data", "a Recording or a Cohort", data)
    return _gaze(pm, data)


def to_dataset(cohort: Cohort, path: str | Path) -> object:
    """Write a cohort as a folder that pymovements loads, and return its loaded `Dataset`, events
    and messages attached.

    `raw/<person>_<stimulus>_<session>_<task>.csv` (labels of letters and digits; the names
    themselves are columns), and `dataset.yaml`, the definition:
    `pymovements.Dataset("<path>/dataset.yaml", "<path>").load()` reads it again.

    Raises
    ------
    DataError
        If the folder exists and is not empty, the cohort is empty, or its recordings do not share
        one space and rate, since a pymovements definition has one experiment.
    """
    pm = load_pymovements()
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(
            f"{target} exists and is not an empty folder. Choose another name or remove it first."
        )
    names = [
        labels((k[i] for k in cohort.keys), empty)
        for i, empty in enumerate(("person", "stimulus", "none", "none"))
    ]
    first: Recording | None = None
    extras: dict[tuple[str, ...], tuple[object, pl.DataFrame | None]] = {}
    for recording in cohort:
        first = first or recording
        if recording.space != first.space or recording.rate_hz != first.rate_hz:
            raise DataError(
                "A pymovements dataset has one screen and one rate. Select recordings that share"
                " them, or use to_pymovements(cohort)."
            )
        (target / "raw").mkdir(parents=True, exist_ok=True)
        flat = _flat(recording, eyes=True).with_columns(
            **{f"recording_{k}": pl.lit(v) for k, v in zip(KEY_NAMES, recording.key, strict=True)}
        )
        file = "_".join(label[part] for label, part in zip(names, recording.key, strict=True))
        flat.write_csv(target / "raw" / f"{file}.csv")
        extras[tuple(label[part] for label, part in zip(names, recording.key, strict=True))] = (
            _events(pm, recording),
            _messages(recording),
        )
    if first is None:
        raise DataError("A pymovements dataset needs at least one recording. This cohort is empty.")
    columns = [f"{eye}_{axis}" for eye in ("left", "right", "line") for axis in "xy"]
    definition = pm.DatasetDefinition(
        cohort.name or "gazeveil",
        resources=[
            {
                "content": "gaze",
                "filename_pattern": "{person:s}_{stimulus:s}_{session:s}_{task:s}.csv",
                "load_function": "from_csv",
                "load_kwargs": {
                    "time_column": "time",
                    "time_unit": "ms",
                    "position_columns": columns,
                },
            }
        ],
        experiment=_experiment(pm, first),
    )
    definition.to_yaml(target / "dataset.yaml")
    dataset = pm.Dataset(definition, pm.DatasetPaths(root=str(target), dataset="."))
    dataset.load()
    for gaze in dataset.gaze:
        events, messages = extras[tuple(gaze.metadata[k] for k in KEY_NAMES)]
        gaze.messages = messages
        if events is not None:
            gaze.events = events
    return dataset


def _gaze(pm: Any, recording: Recording) -> object:
    both = recording.left_deg is not None and recording.right_deg is not None
    columns = [
        f"{eye}_{axis}"
        for eye in (("left", "right", "line") if both else ("line",))
        for axis in "xy"
    ]
    metadata: dict[str, object] = dict(zip(KEY_NAMES, recording.key, strict=True))
    if isinstance(recording.space, Sphere):
        metadata["space"] = "sphere"
    if "pupil_unit" in recording.metadata:
        metadata["pupil_unit"] = recording.metadata["pupil_unit"]
    return pm.Gaze(
        _flat(recording, eyes=both),
        _experiment(pm, recording),
        _events(pm, recording),
        metadata=metadata,
        messages=_messages(recording),
        time_column="time",
        time_unit="ms",
        position_columns=columns,
    )


def _flat(recording: Recording, eyes: bool) -> pl.DataFrame:
    if len(recording) == 0:
        raise DataError(
            f"{recording.title} has no samples, and a pymovements Gaze is made of them. Leave it"
            " out with cohort.select."
        )
    line = np.stack((recording.x_deg, recording.y_deg), axis=1)
    line[~recording.valid] = np.nan
    whole = bool((recording.t_ns % 1_000_000 == 0).all())
    columns: dict[str, NDArray[np.generic]] = {
        "time": recording.t_ns // 1_000_000 if whole else recording.t_ns / 1e6,
        "t_ns": recording.t_ns,
    }
    nothing = np.full((len(recording), 2), np.nan)
    sides = (
        {"left": recording.left_deg, "right": recording.right_deg, "line": line}
        if eyes
        else {"line": line}
    )
    for eye, values in sides.items():
        places = nothing if values is None else values
        columns |= {f"{eye}_x": places[:, 0], f"{eye}_y": places[:, 1]}
    if recording.pupil is not None:
        columns["pupil"] = recording.pupil
    columns |= {f"{LABEL}{k}": v for k, v in recording.labels.items()}
    return pl.DataFrame(columns, nan_to_null=True)


def _experiment(pm: Any, recording: Recording) -> object:
    rate = recording.rate_hz if recording.rate_hz > 0 else None
    space = recording.space
    monocular = (recording.left_deg is not None) != (recording.right_deg is not None)
    eyes = (
        {"left": recording.left_deg is not None, "right": recording.right_deg is not None}
        if monocular
        else {}
    )
    tracker = pm.EyeTracker(sampling_rate=rate, **eyes)
    if isinstance(space, Sphere):
        return pm.Experiment(eyetracker=tracker)
    pixels = [int(v) if float(v).is_integer() else v for v in (space.width_px, space.height_px)]
    screen = pm.Screen(
        pixels[0],
        pixels[1],
        space.width_mm / 10,
        space.height_mm / 10,
        space.distance_mm / 10,
        "upper left",
    )
    return pm.Experiment(screen=screen, eyetracker=tracker)


def _events(pm: Any, recording: Recording) -> object:
    events = recording.events
    if events is None:
        return None
    whole = bool((recording.t_ns % 1_000_000 == 0).all())
    onset, offset = (
        (t // 1_000_000 if whole else t / 1e6) for t in (events.onset_ns, events.offset_ns)
    )
    return pm.Events(name=[str(k) for k in events.kind], onsets=onset, offsets=offset)


def _messages(recording: Recording) -> pl.DataFrame | None:
    if not recording.messages:
        return None
    return pl.DataFrame(
        {
            "time": [m.t_ns / 1e6 for m in recording.messages],
            "content": [m.text for m in recording.messages],
        }
    )
