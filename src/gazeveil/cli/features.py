"""`gazeveil features`: feature tables of events or of windows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from gazeveil import checks
from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    console,
    options,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import track
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from gazeveil.features import FeatureTable
    from gazeveil.gaze.cohort import Cohort

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
    mechanism: Annotated[str | None, typer.Option("--mechanism", hidden=True)] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the table, .parquet or .csv."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Compute features."""
    from gazeveil.features import FeatureTable
    from gazeveil.io.tables_file import write_table

    if mechanism is not None:
        raise ParameterError(
            "`gazeveil features` computes and does not protect: write the table with --out"
            " table.parquet, then protect it with `gazeveil protect table.parquet safe.parquet"
            f" --mechanism {mechanism}`.",
            name="--mechanism",
            got=mechanism,
        )
    kind = checks.one_of("features", "--kind", kind, ("fixation", "saccade", "all", "window"))
    cohort = read_cohort(path, format_name, settings, screen)
    taken = {"cohort": "the argument PATH", "kind": "--kind", "events": "--parameter method=NAME"}
    parsed = options(parameters, taken=taken)
    parts = [
        _features(cohort[i : i + 1], kind, parsed)
        for i in track(range(len(cohort)), len(cohort), "Computing features")
    ]
    table = FeatureTable.concat(parts)
    if len(table) == 0:
        raise DataError(
            f"No recording gives a row: {_why(table)}. For windows, choose a smaller window_s with"
            " --parameter window_s=5."
        )
    title = f"{len(table):,} rows x {len(table.columns)} features of {len(cohort)} recordings"
    console().print(_table(table, title))
    if out is not None:
        write_table(table, out)
        say(f"Features: {out}")
    write_json(json_file, {"kind": kind, "rows": len(table), "columns": _statistics(table)})


def _why(table: FeatureTable) -> str:
    return (
        "; ".join(f"{reason} ({n})" for reason, n in table.counts.items() if n)
        or "there are no events"
    )


def _features(cohort: Cohort, kind: str, parameters: dict[str, object]) -> FeatureTable:
    from gazeveil.features import event_features, window_features
    from gazeveil.features.table import EmptyTableWarning

    with warnings.catch_warnings():
        # Recordings come one by one: that one of them gives no row says nothing of the others.
        warnings.simplefilter("ignore", EmptyTableWarning)
        if kind == "window":
            return window_features(cohort, **parameters)  # type: ignore[arg-type]
        return event_features(cohort, kind=kind, **parameters)  # type: ignore[arg-type]


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


def _table(table: FeatureTable, title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    shown.add_column("feature")
    for name in ("25 %", "median", "75 %", "public bounds"):
        shown.add_column(name, justify="right")
    for name, f in _statistics(table).items():
        cells = ["-" if f[k] is None else f"{f[k]:.4g}" for k in _STATISTICS[:3]]
        low, high = f["bound_low"], f["bound_high"]
        shown.add_row(name, *cells, "-" if low is None else f"{low:g} .. {high:g}")
    return shown
