"""Identifiers planted in formats that are one table, one list or one document.

Each function writes two people, one of them called as in :mod:`tests.support.identifiers`, into a
folder that still reads, and returns the kinds it planted. Headers, comments, column names, quoted
cells, nested keys, file and folder names hold them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.identifiers import (
    AGE,
    CLOCK_S,
    DATE,
    DATE_DOTS,
    EMAIL,
    EYE_DISTANCE,
    NAME,
    PATH,
    SERIAL,
    TRACES,
    UUID,
    WORD,
    write,
)

ROWS = 60
EVERYTHING = set(TRACES)
#: Columns that people add to a log, and the values of one row.
EXTRA = {
    "Operator": NAME,
    "Recording date": DATE,
    "day": DATE_DOTS,
    "device serial": SERIAL,
    "uuid": UUID,
    "notes": f"said, {NAME} \N{EN DASH} {EMAIL}",
    "file path": PATH,
    "age": AGE,
    "ipd_mm": EYE_DISTANCE,
    f"gaze of {NAME}": "1.5",
    f"x ({DATE})": "2.5",
}
Column = Callable[[int], object]
PEOPLE = (WORD, "P02")


def sheet(columns: Mapping[str, Column], separator: str = ",", rows: int = ROWS) -> str:
    """A table with its own columns between those that people add."""
    buffer = io.StringIO()
    lines = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    lines.writerow(["Operator", *columns, *list(EXTRA)[1:]])
    for i in range(rows):
        lines.writerow([NAME, *(c(i) for c in columns.values()), *list(EXTRA.values())[1:]])
    return buffer.getvalue()


def _axes(name: str, values: Sequence[float], axes: str = "xyz") -> dict[str, Column]:
    # Each row differs a little, so that recordings can be told apart.
    def column(value: float) -> Column:
        return lambda i: f"{value + 0.001 * (i % 7):.6f}"

    return {name.format(a): column(v) for a, v in zip(axes, values, strict=True)}


def _clock(per_second: int, step_s: float) -> Column:
    return lambda i: CLOCK_S * per_second + round(i * step_s * per_second)


def gazepoint(folder: Path) -> set[str]:
    for person in PEOPLE:
        columns: dict[str, Column] = {
            "MEDIA_ID": lambda i: i // 30,
            "MEDIA_NAME": lambda i: f"{NAME}.png" if i < 30 else "cat.png",
            "CNT": lambda i: i,
            f"TIME({DATE.replace('-', '/')} 14:52:07.123)": lambda i: f"{CLOCK_S + i / 60:.5f}",
            "TIMETICK(f=2143477)": lambda i: 15638935270 + i,
            "FPOGX": lambda i: "0.5",
            "FPOGS": lambda i: f"{CLOCK_S}.5",
            "BPOGX": lambda i: f"{0.5 + i / 1000:.5f}",
            "BPOGY": lambda i: "0.25",
            "BPOGV": lambda i: int(i != 5),
            "LPCX": lambda i: "0.41",
            "LEYEX": lambda i: f"{-float(EYE_DISTANCE) / 2000:.6f}",
            "REYEX": lambda i: f"{float(EYE_DISTANCE) / 2000:.6f}",
            "USER": lambda i: NAME,
            "AOI": lambda i: f"face of {NAME}",
        }
        write(folder / f"{person}_all_gaze.csv", sheet(columns))
    return EVERYTHING


def varjo(folder: Path) -> set[str]:
    columns = {
        "raw_timestamp": _clock(1_000_000_000, 0.005),
        "relative_to_unix_epoch_timestamp": _clock(1_000_000_000, 0.005),
        "status": lambda i: 0 if i == 5 else 2,
        **_axes("gaze_forward_{}", (0.1, 0.2, 0.97)),
        "left_status": lambda i: 3,
        **_axes("left_forward_{}", (0.1, 0.2, 0.97)),
        "right_status": lambda i: 3,
        **_axes("right_forward_{}", (0.1, 0.2, 0.97)),
        "gaze_origin_x": lambda i: "-nan(ind)",
        "interpupillary_distance_in_mm": lambda i: EYE_DISTANCE,
        "left_iris_diameter_in_mm": lambda i: "41.70938",
        "left_pupil_diameter_in_mm": lambda i: "-nan(ind)" if i == 5 else "3.1",
        "right_pupil_diameter_in_mm": lambda i: "3.3",
    }
    for person in PEOPLE:
        write(folder / person / f"varjo_gaze_output_{DATE}.csv", sheet(columns))
    return EVERYTHING


def tobii_sdk(folder: Path, tuples: bool = True) -> set[str]:
    half = float(EYE_DISTANCE) / 2
    columns: dict[str, Column] = {
        "device_time_stamp": _clock(1_000_000, 1 / 120),
        "system_time_stamp": _clock(1_000_000, 1 / 120),
    }

    def component(make: Callable[[int], tuple[float, ...]], axis: int, i: int) -> str:
        return f"{make(i)[axis]:.5f}"

    def point(make: Callable[[int], tuple[float, ...]], name: str, axes: str) -> None:
        if tuples:
            columns[name] = lambda i: str(tuple(round(v, 5) for v in make(i)))
        for a in range(0 if tuples else len(axes)):
            columns[f"{name}_{axes[a]}"] = partial(component, make, a)

    for side, place in (("left", -half), ("right", half)):

        def shown(i: int) -> tuple[float, float]:
            return 0.2 + i / 100, 0.3 + i / 100

        def in_space(i: int) -> tuple[float, float, float]:
            return 480 * (shown(i)[0] - 0.5), 200 - 270 * shown(i)[1], 0.0

        def origin(i: int, place: float = place) -> tuple[float, float, float]:
            return place, 30.0, 620.0

        point(shown, f"{side}_gaze_point_on_display_area", "xy")
        point(in_space, f"{side}_gaze_point_in_user_coordinate_system", "xyz")
        point(origin, f"{side}_gaze_origin_in_user_coordinate_system", "xyz")
        columns |= {f"{side}_gaze_point_validity": lambda i: int(i != 5)}
        columns |= {f"{side}_pupil_diameter": lambda i: "3.0"}
    for person in PEOPLE:
        write(folder / person / f"{DATE}.tsv", sheet(columns, "\t"))
    return EVERYTHING


def tobii_sdk_columns(folder: Path) -> set[str]:
    return tobii_sdk(folder, tuples=False)


def glasses2(folder: Path) -> set[str]:
    for n, person in enumerate((NAME, "P02")):
        lines: list[dict[str, object]] = []
        for i in range(ROWS):
            base: dict[str, object] = {"gidx": 1_563_890_000 + i, "operator": NAME}
            base |= {"ts": CLOCK_S * 1_000_000 + 20_000 * i, "s": 3 if i == 5 else 0}
            for eye in ("left", "right"):
                lines.append({**base, "gd": [-0.1, 0.2 + i / 900, 0.97], "eye": eye})
                lines.append({**base, "pd": 3.0, "eye": eye})
                lines.append({**base, "pc": [float(EYE_DISTANCE), 0, 0], "eye": eye})
        lines.append({"ts": CLOCK_S * 1_000_000 + 3, "s": 0, "vts": CLOCK_S * 1_000_000})
        lines.append(
            {
                "ts": CLOCK_S * 1_000_000 + 5,
                "type": f"Event of {NAME}",
                "tag": json.dumps({"who": NAME, "when": DATE, "ipd": EYE_DISTANCE}),
            }
        )
        recording = folder / "projects" / WORD / "recordings" / f"{SERIAL}{n}"
        place = recording / "segments" / "1" / "livedata.json.gz"
        write(place, "\n".join(json.dumps(line) for line in lines))
        about = {"pa_info": {"Name": person, "Notes": EMAIL, "Age": AGE}, "pa_created": DATE}
        write(recording / "participant.json", json.dumps(about))
        write(recording / "recording.json", json.dumps({"rec_info": {"Name": NAME, "p": PATH}}))
        write(recording / "segments" / "1" / "segment.json", json.dumps({"seg_id": SERIAL}))
    return EVERYTHING


def vive(folder: Path) -> set[str]:
    columns: dict[str, Column] = {
        "time(100ns)": lambda i: 636_994_903_270_000_000 + 80_000 * i,
        "time_stamp(ms)": _clock(1000, 0.008),
        "frame": lambda i: 1_563_890_000 + i,
    }
    for eye in "LR":
        columns |= {f"eye_valid_{eye}": lambda i: 0 if i == 5 else 31}
        columns |= {f"pupil_diameter_{eye}(mm)": lambda i: "3.5"}
        columns |= {f"gaze_origin_{eye}.x(mm)": lambda i: EYE_DISTANCE}
        columns |= _axes(f"gaze_direct_{eye}.{{}}", (0.1, 0.2, 0.97))
    columns |= {"helmet_pos_x": lambda i: "0", "helmet_pos_z": lambda i: "0"}
    columns |= {"helmet_pos_y": lambda i: "0" if i == 8 else "1.7170938"}
    # Straight ahead with a position is a head; without one it is lost.
    columns |= {f"helmet_rot_{a}": lambda i: "0" if i in (8, 9) else f"{i / 3:.3f}" for a in "xyz"}
    for person in PEOPLE:
        write(folder / f"{person}_{DATE}.csv", sheet(columns, ";"))
    return EVERYTHING


def pico(folder: Path) -> set[str]:
    columns: dict[str, Column] = {
        "User Name": lambda i: NAME if i < 30 else "P02",
        "Video Name": lambda i: f"video of {NAME}",
        "Timeline": lambda i: f"{CLOCK_S + i * 0.0111:.6f}",
        "Head Position. y": lambda i: "1.7170938",
        **_axes("Head Rotation. {}", (1.0, 2.0, 3.0)),
        **_axes("Combine Eye Gaze Vector. {}", (0.01, 0.2, 0.97)),
        "Eye Left Blinking": lambda i: i == 5,
        "Eye Right Blinking": lambda i: i == 5,
        "NameOfLookedObject": lambda i: NAME,
    }
    write(folder / f"{WORD}_{DATE}.csv", sheet(columns, "\t"))
    return EVERYTHING


def plain_csv(folder: Path) -> set[str]:
    columns: dict[str, Column] = {
        "participant": lambda i: NAME if i < 30 else "P02",
        "stimulus": lambda i: f"picture, {NAME}",
        "t [s]": lambda i: f"{CLOCK_S + i / 100:.2f}",
        f"gaze x (of {NAME})": lambda i: 900 + i % 40,
        "gaze y [px]": lambda i: 500 + i % 30,
        "valid": lambda i: i != 5,
        "label": lambda i: f"{NAME} blinks" if i == 9 else "fixation",
    }
    text = f"# recorded by {NAME} on {DATE} with {SERIAL}\n# {EMAIL}\n" + sheet(columns)
    lines = text.replace("\n", f"\n# in between: {NAME}\n", 20)
    write(folder / WORD / f"{DATE}.csv", lines)
    return EVERYTHING


def semicolon_csv(folder: Path) -> set[str]:
    for person in PEOPLE:
        rows = [f"{CLOCK_S * 1000 + i * 10};{900 + i},5;{500 + i},25;{NAME}" for i in range(ROWS)]
        head = f't_ms;"x_px";"y_px";"comment of; {NAME}"'
        place = folder / person / f"{DATE}.txt"
        write(place, "x")
        place.write_bytes("\n".join([head, *rows]).encode("utf-16"))
    return {"name", "date"}


def arff(folder: Path) -> set[str]:
    for person in PEOPLE:
        said = f"% {NAME}, {AGE} years, {EMAIL}, recorded {DATE} with {SERIAL} into {PATH}"
        head = [
            said,
            f"@RELATION 'gaze of {NAME}'",
            "%@METADATA width_px 1920",
            "%@METADATA height_px 1080",
            f"%@METADATA ipd {EYE_DISTANCE}",
            f"%@METADATA operator {WORD}",
            "@ATTRIBUTE time INTEGER",
            "@ATTRIBUTE x NUMERIC",
            f"@ATTRIBUTE '{NAME}' STRING",
            "@ATTRIBUTE y NUMERIC",
            "@ATTRIBUTE confidence NUMERIC",
            "@ATTRIBUTE ipd NUMERIC",
            f"@ATTRIBUTE em_type {{fixation,saccade,{WORD}}}",
            f"@ATTRIBUTE {WORD}_label {{a,b}}",
            "@DATA",
        ]
        rows = [
            f"{CLOCK_S * 1_000_000 + 4000 * i},{900 + i},{NAME},{400 + i},{int(i != 5)}"
            f",{EYE_DISTANCE},{WORD if i == 7 else 'fixation'},a"
            for i in range(ROWS)
        ]
        write(folder / person / f"{DATE}.arff", [*head, *rows[:30], said, *rows[30:]])
    return EVERYTHING


#: Format -> how its files are planted; one format may come twice.
PLANTED: dict[str, Callable[[Path], set[str]]] = {
    "gazepoint": gazepoint,
    "varjo": varjo,
    "tobii-sdk": tobii_sdk,
    "tobii-sdk columns": tobii_sdk_columns,
    "tobii-glasses2": glasses2,
    "vive-pro-eye": vive,
    "pico": pico,
    "csv": plain_csv,
    "csv utf-16": semicolon_csv,
    "arff": arff,
}
