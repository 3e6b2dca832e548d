"""Heat maps on disk: one row per cell, as Parquet, CSV or TSV.

Columns: `stimulus`, `row` and `column` of the cell from the top left, `x_deg` and `y_deg` of its
centre in the coordinates of recordings, `share` of looking, and `viewers` in the cell before
clipping and smoothing. This floor knows only the parts of a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.io.features_file import table_suffix

#: What a map covers, its shares of looking and its noisy viewers, both rows x columns.
MapParts: TypeAlias = tuple[Space, Floats, Floats]


def write_maps(maps: Mapping[str, MapParts], path: Path) -> Path:
    """Write maps by stimulus; the suffix `.parquet`, `.csv` or `.tsv` chooses the format.

    Raises
    ------
    FormatError
        For another suffix.
    """
    suffix = table_suffix(path, "a table of maps")
    frame = pl.concat([_frame(stimulus, *parts) for stimulus, parts in maps.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    return path


def _frame(stimulus: str, space: Space, shares: Floats, viewers: Floats) -> pl.DataFrame:
    rows, columns = shares.shape
    row, column = (index.ravel() for index in np.indices((rows, columns)))
    x_deg = (column + 0.5) * (space.width_deg / columns)
    y_deg = (row + 0.5) * (space.height_deg / rows)
    if isinstance(space, Screen):
        x_deg, y_deg = x_deg - space.width_deg / 2, y_deg - space.height_deg / 2
    parts = {"row": row, "column": column, "x_deg": x_deg, "y_deg": y_deg}
    parts |= {"share": shares.ravel(), "viewers": viewers.ravel()}
    return pl.DataFrame({"stimulus": [stimulus] * len(row), **parts})
