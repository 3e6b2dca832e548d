"""All studies of the papers in one go: parts of any study side by side, each computed in one
process.

A part of a short form takes seconds, and starting processes for each of them takes as long; so
processes are started once, and parts are given to them, the largest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path

from gazeveil.errors import GazeveilError
from gazeveil.evaluation.results import Results
from gazeveil.papers.parts import MultiPartStudy, StudyPart, tables_in
from gazeveil.papers.series import PartRun, Progress, assembled, run_part
from gazeveil.processes import LostTask, WorkerPool, serve_parent


def run_all(
    plans: Mapping[str, MultiPartStudy],
    out: Path,
    workers: int,
    limit_s: float | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[str, Results | str]]:
    """Run studies, and give each as soon as its last part is done.

    Parameters
    ----------
    plans : mapping of name to MultiPartStudy
        What to run.
    out : Path
        Study `a/b` has its folder `a/b` below it, where a run that was stopped goes on.
    workers : int
        Processes; each computes one part at a time.
    limit_s : float, optional
        Seconds that each part may take, as in :func:`gazeveil.papers.series.run`.
    progress : callable, optional
        Called with parts done and all parts.

    Yields
    ------
    (name, Results or str)
        What a study found, or why it could not be computed.
    """
    wanted = sorted(
        ((name, i) for name, plan in plans.items() for i in range(len(plan.parts))),
        key=lambda at: -_size(plans[at[0]].parts[at[1]]),
    )
    done: dict[str, dict[int, PartRun]] = {name: {} for name in plans}
    pool = WorkerPool(workers, _beginning)
    tasks = [partial(_given, plans[n].parts[i], out / n, limit_s) for n, i in wanted]
    finished = 0
    try:
        for answer in pool.do(run_part, tasks):
            if answer is None:
                continue
            name, i = wanted[answer.number]
            done[name][i] = (
                PartRun(plans[name].parts[i], failure=_LOST)
                if isinstance(answer, LostTask)
                else answer.value
            )
            finished += 1
            if progress is not None:
                progress(finished, len(wanted))
            if len(done[name]) == len(plans[name].parts):
                yield name, _whole(plans[name], done.pop(name), out / name)
    finally:
        pool.stop()


_LOST = "The process that computed it ended without an answer: killed, or out of memory."


def _whole(plan: MultiPartStudy, runs: Mapping[int, PartRun], out: Path) -> Results | str:
    try:
        return assembled(plan, [runs[i] for i in sorted(runs)], out)
    except GazeveilError as error:
        return str(error)


def _beginning(_: int, __: BaseContext) -> tuple[Callable[..., None], tuple[()]]:
    return serve_parent, ()


def _given(
    part: StudyPart, out: Path, limit_s: float | None
) -> tuple[StudyPart, Path, int, None, float | None]:
    """Build the arguments of :func:`run_part`: one process, no progress."""
    return part, out, 1, None, limit_s


def _size(part: StudyPart) -> float:
    """About how much there is to compute: samples, times mechanisms and repetitions. Of files only
    the shape of their simulated double is known before they are read.
    """
    samples = sum(
        float(t.get("people", 1))
        * float(t.get("stimuli", 1))
        * float(t.get("sessions", 1))
        * float(t.get("seconds", 1))
        * float(t.get("rate_hz", 1))
        for t in tables_in(part.said.get("simulate"))
    )
    return samples * (1 + len(part.said["mechanisms"])) * int(part.said.get("repetitions", 10))
