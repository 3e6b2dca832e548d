"""Running a study of several parts: each part as a study of its own, then all of them as one result
with the paper's figures beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import run as run_one
from gazeveil.evaluation.sources import opened
from gazeveil.evaluation.study import Study
from gazeveil.papers.grading import compare
from gazeveil.papers.parts import TEXTS, MultiPartStudy, StudyPart

#: Called with the number of cells that are done and the number of all, of the part at work.
Progress = Callable[[int, int], None]

#: Keys of a study that say how large a cohort is, and how it was measured.
_SHAPE = ("people", "stimuli", "recordings")
_PROTOCOL = ("repetitions", "split", "train", "scenarios", "preparation", "battery")

#: Folder of the parts below a study's own.
PARTS = "parts"


@dataclass(frozen=True)
class PartRun:
    """What became of one part, after a look at its files: results, or None and why there are none;
    and correlation curves, where the part asks for them.
    """

    part: StudyPart
    results: Results | None = None
    curves: Mapping[str, object] = field(default_factory=dict)
    failure: str = ""


def run(
    plan: MultiPartStudy,
    out: str | Path | None = None,
    executor: Executor | str | int | None = None,
    progress: Progress | None = None,
    limit_s: float | None = None,
) -> Results:
    """Run every part of what :func:`gazeveil.papers.study_file.read` gives, and put them together.

    Parameters
    ----------
    plan : MultiPartStudy
        What to run.
    out : path, optional
        Folder: each part has its own below `parts`, with a report, where a run that was stopped
        goes on; the whole is written at the end.
    executor, progress
        As in :func:`gazeveil.evaluation.run.run`, part by part.
    limit_s : float, optional
        Seconds that each part may take; its cells that are not computed then are failures that say
        so.

    Raises
    ------
    ParameterError
        If no part could be computed.
    """
    runs = [run_part(part, out, executor, progress, limit_s) for part in plan.parts]
    return together(plan, runs, out)


def run_part(
    stated: StudyPart,
    out: str | Path | None = None,
    executor: Executor | str | int | None = None,
    progress: Progress | None = None,
    limit_s: float | None = None,
) -> PartRun:
    """Run one part in its folder below that of the study; parameters as in :func:`run`. A part that
    cannot be computed says why.
    """
    part = stated
    try:
        part = stated.resolved()
        study = part.study()
        place = None if out is None else Path(out) / PARTS / folder_name(part.label)
        results = run_one(study, place, executor, progress, limit_s)
        curves = _curves(study, str(part.said["curves"])) if "curves" in part.said else {}
    except GazeveilError as error:
        return PartRun(part, failure=str(error))
    if place is not None:
        results.report(place)
    return PartRun(part, results, curves)


def together(
    plan: MultiPartStudy, runs: Sequence[PartRun], out: str | Path | None = None
) -> Results:
    """The results of all parts as one, with the paper's figures beside.

    Returns
    -------
    Results
        `cohort` is the part's label in both tables; the study says `parts`, the paper and figure it
        mirrors, and `published`: what :func:`gazeveil.papers.grading.compare` finds. A part that
        cannot be computed is a failure and stops no other.

    Raises
    ------
    ParameterError
        If no part could be computed.
    """
    done = [(r.part, r.results) for r in runs if r.results is not None]
    failures = [{"cell": r.part.label, "sentence": r.failure} for r in runs if r.results is None]
    if not done:
        raise ParameterError(
            f"No part of the study could be computed. {failures[0]['sentence']}", name="part"
        )
    frames, outcomes = (
        [getattr(r, which).with_columns(pl.lit(p.label).alias("cohort")) for p, r in done]
        for which in ("frame", "outcomes")
    )
    guarantees = {g["mechanism"]: g for _, r in done for g in r.guarantees}
    parts = [_part_entry(part, results) for part, results in done]
    first = done[0][1]
    study: dict[str, object] = {
        **{k: first.study.get(k) for k in (*_PROTOCOL, "seed", "events", "tables", "version")},
        "name": plan.name + (" (short form)" if plan.quick else ""),
        "paper": plan.paper,
        "figure": plan.figure,
        "quick": plan.quick,
        "parts": parts,
        "cohort": {
            "name": ", ".join(p.label for p, _ in done),
            "people": max(int(str(p["people"] or 0)) for p in parts),
        },
        **{k: sorted({str(t) for _, r in done for t in _texts(r.study.get(k))}) for k in TEXTS},
        "failures": [*failures, *(f for p, r in done for f in _failures(p, r))],
        "left_out": sorted({sentence for p, r in done for sentence in _left_out(p, r)}),
        "times": {p.label: r.study.get("times", {}) for p, r in done},
        "curves": {r.part.label: r.curves for r in runs if r.curves},
    }
    tables = pl.concat(frames), pl.concat(outcomes)
    results = Results(*tables, tuple(guarantees.values()), first.examples, study)
    if plan.paper:
        results.study["published"] = compare(results)
    if out is not None:
        results.write(out)
    return results


def reason_lines(results: Results) -> list[str]:
    """One line for each reason why cells could not be computed: the first cell, how many more."""
    found: dict[str, list[str]] = {}
    for failure in results.failures:
        found.setdefault(failure["sentence"], []).append(failure["cell"])
    return [
        f"{cells[0]}{f' and {len(cells) - 1:,} more' if len(cells) > 1 else ''}: {sentence}"
        for sentence, cells in found.items()
    ]


def folder_name(label: str) -> str:
    """A label as the name of a folder.

    Examples
    --------
    >>> folder_name("ET-DK2+360_em, k = 4")
    'et-dk2-360-em-k-4'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower()


def _part_entry(part: StudyPart, results: Results) -> dict[str, object]:
    """What `parts` of a study says of one: its dataset, its size and its protocol."""
    cohort = results.study.get("cohort", {})
    shape = {k: cohort.get(k) for k in _SHAPE} if isinstance(cohort, Mapping) else {}
    protocol = {k: results.study.get(k) for k in _PROTOCOL}
    named = {"cohort": part.label, "dataset": part.dataset, "real": part.real}
    return {**named, **shape, **protocol}


def _failures(part: StudyPart, results: Results) -> list[dict[str, str]]:
    return [{**f, "cell": f"{part.label}: {f['cell']}"} for f in results.failures]


def _left_out(part: StudyPart, results: Results) -> list[str]:
    reasons = [*_texts(results.study.get("left_out")), *(f"{note}." for note in part.notes)]
    return [f"{part.label}: {reason}" for reason in reasons]


def _texts(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _curves(study: Study, feature: str) -> dict[str, object]:
    """Correlation curves of a window feature, as JSON has them: one line per stimulus, raw and
    difference signals.
    """
    from gazeveil.utility.signal import correlation_curves

    table = opened(study.source, study.people, study.stimuli, study.preparation).windows.select(
        columns=feature
    )
    kept: dict[str, object] = {"feature": feature}
    for kind in ("raw", "difference"):
        curves = correlation_curves(table, difference=kind == "difference")
        kept[kind] = {
            name: [None if np.isnan(v) else round(float(v), 6) for v in line]
            for name, line in zip(curves.stimuli, curves.values[:, 0], strict=True)
        }
    return kept


def shorter(plan: MultiPartStudy, **keys: object) -> MultiPartStudy:
    """The plan with other values of some keys in every part, for instance `repetitions=1`."""
    return replace(plan, parts=tuple(replace(p, said={**p.said, **keys}) for p in plan.parts))
