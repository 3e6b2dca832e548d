"""Recordings, cohorts and events as data frames, and a cohort written to a folder.

Data frames and files belong to layers above, so the package sets their functions when it is
imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazeveil.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from gazeveil.gaze.cohort import Cohort


#: A polars frame of a recording, a cohort or events.
frame_of: Callable[[Any], Any]

#: A value of the class that is named (`Recording`, `Cohort`, `Events`) from a data frame.
value_of: Callable[[str, Any, Mapping[str, Any]], Any]


#: Writes a cohort to a folder and returns the folder.
write_cohort: Callable[[Cohort, str | Path], Path]


class Tabular:
    """Values with `to_polars` and `to_pandas`."""

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame; times in whole nanoseconds, units in the names of columns."""
        return frame_of(self)  # noqa: F821 the package sets it

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas data frame, which may be changed; missing values are NaN.

        Raises
        ------
        MissingExtraError
            Without pandas.
        """
        return pandas_of(self.to_polars())


def pandas_of(frame: pl.DataFrame) -> pd.DataFrame:
    """A pandas frame with the columns of a polars frame; pyarrow is not needed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("pandas", "pandas") from error
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
