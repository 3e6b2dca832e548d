"""Columns of a stranger's data frame, each as a plain array or refused in one sentence.

A frame of polars, of pandas, or of any package with Arrow's stream interface becomes a polars frame
first. Named levels of a pandas index are columns; an index without a name plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError

# Above this, doubles skip whole numbers.
_MOST_EXACT = float(1 << 53)


def as_polars(owner: str, frame: Any) -> pl.DataFrame:
    """A polars frame of a data frame.

    Raises
    ------
    ParameterError
        For what is no data frame.
    DataError
        For a column of pandas that holds values of several kinds.
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(owner, frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        checks.refuse(
            owner, "frame", "a data frame of polars or pandas, or a table of Arrow", frame
        )
    return pl.DataFrame(frame)


def _from_pandas(owner: str, frame: Any) -> pl.DataFrame:
    names = [str(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{owner} needs one column '{twice}'. The frame has several. Rename them.")
    columns = {n: _series(owner, n, frame.iloc[:, i]) for i, n in enumerate(names)}
    for level in frame.index.names:
        if level is not None and str(level) not in columns:
            held = frame.index.get_level_values(level).to_series()
            columns[str(level)] = _series(owner, str(level), held)
    return pl.DataFrame(columns)


def _series(owner: str, name: str, column: Any) -> pl.Series:
    """A column of pandas, missing values as null. Types of numpy are taken as they are; the others
    (text, categories, values that may be missing) go value by value.
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM":
        return pl.Series(name, np.array(column.to_numpy()), nan_to_null=True)
    values = [
        None if lost else value
        for value, lost in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]
    kinds = sorted({type(v).__name__ for v in values if v is not None})
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"Column '{name}' of the frame given to {owner} holds values of several kinds"
            f" ({', '.join(kinds[:3])}). Give it one type."
        ) from error


def need(owner: str, frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Refuse a frame that lacks a column."""
    for name in (n for n in names if n not in frame.columns):
        near = get_close_matches(name, frame.columns, n=1, cutoff=0.85)
        found = ", ".join(frame.columns[:12]) or "none"
        more = f", and {len(frame.columns) - 12} more" if len(frame.columns) > 12 else ""
        hint = f"Is it '{near[0]}'? " if near else ""
        raise DataError(
            f"{owner} needs a column '{name}'. {hint}The frame has the columns {found}{more}."
        )


def integers(owner: str, frame: pl.DataFrame, name: str) -> Ints:
    """Whole numbers; floats only where they are whole and exact."""
    column = _filled(owner, frame[name])
    if column.dtype.is_integer():
        if column.dtype == pl.UInt64 and column.len() and int(str(column.max())) >= 1 << 63:
            _refuse(owner, name, "whole numbers of 64 bits", "larger ones")
        return np.array(column.cast(pl.Int64).to_numpy())
    if not column.dtype.is_float():
        _refuse(owner, name, "whole numbers", _kind(column))
    values = column.cast(pl.Float64).to_numpy()
    if not (np.isfinite(values).all() and (np.abs(values) < _MOST_EXACT).all()):
        _refuse(owner, name, "whole numbers", "floats that are missing or too large to be exact")
    if (values != np.round(values)).any():
        _refuse(owner, name, "whole numbers", "fractions")
    return values.astype(np.int64)


def floats(owner: str, frame: pl.DataFrame, name: str) -> Floats:
    """Numbers; NaN where missing."""
    column = frame[name]
    if column.dtype == pl.Null:
        return np.full(column.len(), np.nan)
    if not column.dtype.is_numeric():
        _refuse(owner, name, "numbers", _kind(column))
    return np.array(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())


def flags(owner: str, frame: pl.DataFrame, name: str) -> Bools:
    """True and false, also as 1 and 0."""
    column = _filled(owner, frame[name])
    if column.dtype == pl.Boolean:
        return np.array(column.to_numpy())
    if not column.dtype.is_numeric():
        _refuse(owner, name, "true and false", _kind(column))
    values = column.cast(pl.Float64).to_numpy()
    if not np.isin(values, (0.0, 1.0)).all():
        _refuse(owner, name, "true and false, or 1 and 0", "other numbers")
    return values.astype(np.bool_)


def texts(owner: str, frame: pl.DataFrame, name: str) -> pl.Series:
    """Text without missing values; whole numbers are written as text."""
    column = _filled(owner, frame[name])
    # A column without rows may have no type.
    allowed = column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    if not (allowed or column.dtype.is_integer()):
        _refuse(owner, name, "text or whole numbers", _kind(column))
    return column.cast(pl.String)


def _filled(owner: str, column: pl.Series) -> pl.Series:
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        raise DataError(
            f"Column '{column.name}' of the frame given to {owner} is empty in row {row}. Fill it,"
            " or leave the row out."
        )
    return column


def _kind(column: pl.Series) -> str:
    if column.dtype == pl.String:
        return f"text such as {column.drop_nulls().head(1).to_list()[:1] or ['']}"
    return f"values of type {column.dtype}"


def _refuse(owner: str, name: str, allowed: str, got: str) -> NoReturn:
    raise DataError(
        f"Column '{name}' of the frame given to {owner} must hold {allowed}. Got {got} instead."
    )
