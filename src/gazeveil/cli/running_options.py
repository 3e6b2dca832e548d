"""Options of the verbs that write a release: who works, and what becomes of an interrupted run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import say
from gazeveil.errors import ParameterError
from gazeveil.release.run import Running, check_out, clean

WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", help="Processes; chosen by the amount of work if not given."
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler that shares this disk."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
CleanOption = Annotated[
    bool, typer.Option("--clean", help="Remove an interrupted run and start again.")
]


def running_of(
    out: Path | None, workers: int | None, cluster: str | None, resume: bool, clean_first: bool
) -> Running:
    """Who works, as the options say; what was left is removed if that is asked.

    Raises
    ------
    ParameterError
        For options that exclude one another.
    DataError
        If the place is taken, or a run of it was interrupted and nothing is said about that.
    """
    if resume and clean_first:
        raise ParameterError(
            "--resume goes on with what --clean removes. Say one of them.", name="--resume"
        )
    if workers is not None and cluster is not None:
        raise ParameterError(
            "--workers are processes here, and --cluster has its own. Say one of them.",
            name="--workers",
            got=workers,
        )
    if out is not None:
        if clean_first and clean(out):
            say(f"What an interrupted run of {out} left is removed.")
        check_out(out, resume)
    return Running(workers, cluster, resume)
