"""What can be looked at as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gazeveil.errors import MissingExtraError
from gazeveil.gaze import dataframes

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Tabular:
    """Values with `to_polars` and `to_pandas`."""

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame; times in whole nanoseconds, units in the names of columns."""
        return dataframes.frame_of(self)

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
