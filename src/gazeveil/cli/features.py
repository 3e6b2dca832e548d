"""`gazeveil features`: feature tables of events or of windows."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil import checks
from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    options,
    print_table,
    read_cohort,
    say,
    track,
    write_json,
)
from gazeveil.errors import DataError

if TYPE_CHECKING:
    from gazeveil.features import FeatureTable

HELP = """\
Example: `gazeveil features recordings/ --kind saccade --out saccades.parquet`"""


#: What is said about a feature: its quartiles and its public bounds.
_STATISTICS = ("quarter", "median", "three_quarters", "bound_low", "bound_high")


def command(
    path: PathArgument,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind", "-k", help="fixation, saccade, all (one vector for both) or window."
        ),
    ] = "fixation",
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", "-p", metavar="NAME=VALUE", help="E.g. subset=reading, window_s=10."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the table, .parquet or .csv."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Compute features."""
    from gazeveil.features import FeatureTable, event_features, window_features
    from gazeveil.features.table import EmptyTableWarning

    kind = checks.one_of("features", "--kind", kind, ("fixation", "saccade", "all", "window"))
    cohort = read_cohort(path, format_name, settings, screen)
    taken = {"cohort": "the argument PATH", "kind": "--kind", "events": "--parameter method=NAME"}
    parsed = options(parameters, taken=taken)
    compute: Any = window_features if kind == "window" else partial(event_features, kind=kind)
    with warnings.catch_warnings():
        # Recordings come one by one: that one of them gives no row says nothing of the others.
        warnings.simplefilter("ignore", EmptyTableWarning)
        parts = [
            compute(cohort[i : i + 1], **parsed)
            for i in track(range(len(cohort)), len(cohort), "Computing features")
        ]
    table = FeatureTable.concat(parts)
    if len(table) == 0:
        reasons = "; ".join(f"{reason} ({n})" for reason, n in table.counts.items() if n)
        raise DataError(
            f"No recording gives a row: {reasons or 'there are no events'}. For windows, choose a"
            " smaller window_s with --parameter window_s=5."
        )
    statistics = _statistics(table)
    rows = []
    for name, f in statistics.items():
        cells = ["-" if f[k] is None else f"{f[k]:.4g}" for k in _STATISTICS[:3]]
        low, high = f["bound_low"], f["bound_high"]
        rows.append((name, *cells, "-" if low is None else f"{low:g} .. {high:g}"))
    print_table(
        f"{len(table):,} rows x {len(table.columns)} features of {len(cohort)} recordings",
        ("feature", "25 %", "median", "75 %", "public bounds"),
        rows,
        1,
    )
    if out is not None:
        table.write(out)
        say(f"Features: {out}")
    write_json(json_file, {"kind": kind, "rows": len(table), "columns": statistics})


def _statistics(table: FeatureTable) -> dict[str, dict[str, float | None]]:
    import numpy as np

    result: dict[str, dict[str, float | None]] = {}
    for i, name in enumerate(table.columns):
        column = table.values[:, i]
        column = column[np.isfinite(column)]
        quartiles = np.quantile(column, (0.25, 0.5, 0.75)).tolist() if len(column) else [None] * 3
        bounds = [None, None] if table.bounds is None else table.bounds[i].tolist()
        result[name] = dict(zip(_STATISTICS, [*quartiles, *bounds], strict=True))
    return result
