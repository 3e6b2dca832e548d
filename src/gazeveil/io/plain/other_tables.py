"""Tables that are no delimited text: samples of ioHub in HDF5, gaze streams of XDF, and the lists
of predictions in the cells of jsPsych's tables. Each becomes a frame with one row per sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.io.parsing.table import open_sheet, stamp
from gazeveil.io.plain.roles import has_gaze, recognise


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, extra) from error


def iohub(path: Path) -> pl.DataFrame:
    """Eye samples of ioHub (PsychoPy), with the participant's code of each session; `status` says
    which eye is lost: its tens the left one, its ones the right one.
    """
    h5py = _package("h5py", "hdf5")
    try:
        with h5py.File(path, "r") as file:
            events = file["data_collection/events/eyetracker"]
            names = [n for n in events if n.endswith("EyeSampleEvent") and len(events[n])]
            if len(names) != 1:
                raise KeyError(f"{len(names)} tables of eye samples")
            rows = events[names[0]][:]
            about = file["data_collection/session_meta_data"][:]
    except (OSError, KeyError, ValueError) as error:
        raise FormatError(
            path, f"it holds no eye samples of ioHub ({error})", "Export its samples as CSV."
        ) from error
    plain = [n for n in rows.dtype.names or () if rows.dtype[n].kind in "iuf"]
    frame = pl.DataFrame({n: rows[n].astype(rows.dtype[n].newbyteorder("=")) for n in plain})
    codes = {int(r["session_id"]): r["code"].decode("utf-8", "replace") for r in about}
    columns = [
        pl.Series(frame["session_id"].to_list())
        .replace_strict(codes, default="", return_dtype=pl.String)
        .alias("code")
    ]
    if "status" in frame.columns:
        status = frame["status"]
        columns += [
            (status // 10 == 0).alias("left_valid"),
            (status % 10 == 0).alias("right_valid"),
        ]
    return frame.with_columns(columns)


def xdf(path: Path) -> pl.DataFrame:
    """The gaze stream of a recording of the Lab Streaming Layer, with its times in seconds."""
    pyxdf = _package("pyxdf", "xdf")
    try:
        streams, _ = pyxdf.load_xdf(str(path), verbose=False)
        found = [(s["info"]["name"][0], f) for s in streams if (f := _stream(s)) is not None]
    except Exception as error:  # whatever a damaged file makes of the library
        raise FormatError(
            path, f"it cannot be read as XDF ({error})", "Copy the file again."
        ) from error
    if len(found) != 1:
        names = ", ".join(name for name, _ in found) or "none"
        raise FormatError(
            path,
            f"one stream of gaze is needed, and there are {len(found)} ({names})",
            "Export the stream that you mean as CSV.",
        )
    return found[0][1]


def _stream(stream: Any) -> pl.DataFrame | None:
    """A stream whose channels have names of gaze; None for others."""
    described = stream["info"].get("desc") or [None]
    channels = ((described[0] or {}).get("channels") or [{}])[0] or {}
    labels = [str(c["label"][0]) for c in channels.get("channel", ()) if c.get("label")]
    values = stream["time_series"]
    named = len(values) > 0 and len(labels) == len(set(labels)) == len(values[0])
    if not named or not (has_gaze(recognise(labels)) or "norm_pos_x" in labels):
        return None
    return pl.DataFrame(values, schema=labels, orient="row").with_columns(
        pl.Series("lsl_time", stream["time_stamps"])
    )


def jspsych(path: Path) -> pl.DataFrame:
    """Gaze predictions of jsPsych's WebGazer extension: a list in one cell of each trial."""
    table = open_sheet(path)
    columns = [n for n in table.names if n.strip().lower() == "webgazer_data"]
    if len(columns) != 1:
        raise FormatError(
            path,
            f"one column 'webgazer_data' is needed, and there are {len(columns)}",
            "Export the table of jsPsych again.",
            1,
        )
    (column,) = columns
    rest = table.frame.drop(column)
    rows = list(_predictions(path, table.column(column).to_list(), table.line_of))
    kinds = {"row": pl.UInt32, "t": pl.Float64, "x": pl.Float64, "y": pl.Float64}
    return (
        pl.DataFrame(rows, schema=kinds, orient="row")
        .join(rest.with_row_index("row"), on="row", how="left")
        .drop("row")
    )


def _predictions(
    path: Path, cells: list[str | None], line_of: Callable[[int], int]
) -> Iterator[tuple[int, float, float, float]]:
    for row, cell in enumerate(cells):
        try:
            for point in json.loads(cell) if cell and cell.strip() not in ("null", '""') else ():
                yield row, float(point["t"]), float(point["x"]), float(point["y"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(
                path,
                "'webgazer_data' is no list of x, y and t",
                "Mend or remove the line.",
                line_of(row),
            ) from error


_READERS = {"iohub": iohub, "xdf": xdf, "jspsych": jspsych}


def frame_at(path: Path, kind: str) -> pl.DataFrame:
    """The table of a file; kept until the next one."""
    return _frame_at(path, stamp(path), kind)


@lru_cache(maxsize=2)
def _frame_at(path: Path, _stamp: tuple[int, int], kind: str) -> pl.DataFrame:
    frame = _READERS[kind](path)
    if not frame.height:
        raise FormatError(path, "it holds no sample of gaze", "Check the recording.")
    return frame
