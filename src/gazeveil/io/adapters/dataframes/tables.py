"""The parts of a feature table from a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.io.adapters.dataframes.columns import as_polars, floats, integers, need, texts
from gazeveil.io.tables_file import KEYS, TableParts


def table_parts(frame: Any) -> TableParts:
    """Key columns and features of a frame; every column that is no key must be a number.

    Raises
    ------
    DataError
        For a frame without the key columns, or with a feature that is no number.
    """
    owner = "FeatureTable.from_frame"
    table = as_polars(owner, frame)
    need(owner, table, KEYS)
    names = tuple(n for n in table.columns if n not in KEYS)
    keys: dict[str, NDArray[np.generic]] = {
        n: texts(owner, table, n).to_numpy().astype(np.str_) for n in KEYS[:4]
    }
    keys["index"] = integers(owner, table, "index")
    columns = [floats(owner, table, n) for n in names]
    values = np.stack(columns, axis=1) if columns else np.empty((table.height, 0))
    return TableParts(values, names, keys, None, {})
