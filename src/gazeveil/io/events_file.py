"""Events of many recordings as one table, Parquet or CSV."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from gazeveil.errors import ParameterError
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import KEY_NAMES, RecordingKey


def write_events(rows: Iterable[tuple[RecordingKey, Events]], path: Path) -> int:
    """Write events with the keys (person, stimulus, session, task) of their recordings, as
    `.parquet` or `.csv`; returns how many.
    """
    suffix = path.suffix.lower()
    if suffix not in {".parquet", ".csv"}:
        raise ParameterError(
            f"The '--out' option must name a .parquet or .csv file. Got '{path}' instead.",
            name="--out",
            got=str(path),
        )
    frames = []
    for key, events in rows:
        keys = dict(zip(KEY_NAMES, key, strict=True))
        frame = pl.DataFrame(events.columns()).with_columns(
            duration_s=pl.Series(events.duration_s), source=pl.lit(events.source)
        )
        frames.append(frame.select(*(pl.lit(v).alias(k) for k, v in keys.items()), pl.all()))
    table = pl.concat(frames, how="diagonal") if frames else pl.DataFrame()
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)
    return table.height
