"""Every table, figure and section of the five papers that prints figures: how many, which study
repeats it, which recordings that needs, and whether they are there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from gazeveil.evaluation.study import find_path
from gazeveil.papers.catalogue import study_names, study_path
from gazeveil.papers.citations import CITATIONS
from gazeveil.papers.comparison.lookup import Lookup
from gazeveil.papers.figure import Formula, NotComparable, PublishedFigure, published_figures
from gazeveil.papers.parts import MultiPartStudy, tables_in
from gazeveil.papers.published import Paper, paper_module
from gazeveil.papers.study_file import read


@dataclass(frozen=True)
class PaperPlace:
    """A table, a figure or a section of a paper.

    Parameters
    ----------
    paper, location : str
        Key of the paper, and where in it.
    figures : int
        How many figures stand there.
    measured, computed, impossible : int
        How many of them a study measures, how many need no recordings, and how many nothing here
        can answer.
    studies : tuple of str
        Studies that repeat it.
    folders : mapping of str to bool
        Folders of recordings that these studies read for its datasets, and whether each is there;
        where it is not, people are simulated and the figure is not graded.
    """

    paper: str
    location: str
    figures: int
    measured: int
    computed: int
    impossible: int
    studies: tuple[str, ...]
    folders: Mapping[str, bool]

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {**vars(self), "studies": list(self.studies), "folders": dict(self.folders)}


def paper_places() -> tuple[PaperPlace, ...]:
    """All places of all papers, in the order of the papers' figures."""
    studies = {name: read(study_path(name)) for name in study_names()}
    found = []
    for paper in CITATIONS:
        module = paper_module(paper)
        own = {name: plan for name, plan in studies.items() if plan.paper == paper}
        by_place: dict[str, list[PublishedFigure]] = {}
        for figure in published_figures(paper):
            by_place.setdefault(figure.location, []).append(figure)
        for location, figures in by_place.items():
            covering = {
                name: plan
                for name, plan in own.items()
                if location in module.LOCATIONS.get(plan.figure, ())
            }
            found.append(_place(paper, module, location, figures, covering))
    return tuple(found)


def _place(
    paper: str,
    module: Paper,
    location: str,
    figures: list[PublishedFigure],
    studies: Mapping[str, MultiPartStudy],
) -> PaperPlace:
    labels = [part.label for plan in studies.values() for part in plan.parts]
    with_files, without = _nothing_measured(labels, True), _nothing_measured(labels, False)
    # What is a formula without any recordings needs none; how many people a dataset has does.
    computed = sum(isinstance(module.ask(f, without), Formula) for f in figures)
    answered = sum(not isinstance(module.ask(f, with_files), NotComparable) for f in figures)
    datasets = {figure.dataset for figure in figures}
    folders: dict[str, bool] = {}
    for name in studies:
        folders |= {f: here for d, f, here in _folders(name) if d in datasets}
    return PaperPlace(
        paper,
        location,
        len(figures),
        answered - computed,
        computed,
        len(figures) - answered,
        tuple(studies),
        folders if answered > computed else {},
    )


def _nothing_measured(labels: list[str], real: bool) -> Lookup:
    """Results without figures whose parts hold their datasets, or simulated people."""
    parts = [{"cohort": label, "real": real, "people": 0, "stimuli": 0} for label in labels]
    return Lookup(Results(frame_of([]), outcomes_of(()), study={"parts": parts}))


@cache
def _said(name: str) -> dict[str, Any]:
    return tomllib.loads(study_path(name).read_text(encoding="utf-8"))


def _folders(name: str) -> Iterator[tuple[str, str, bool]]:
    """Dataset, folder, and whether it is there, of every part of a study; parts that are left out
    without their files too.
    """
    said, here = _said(name), study_path(name).parent
    for part in said["part"]:
        for cohort in tables_in(part.get("cohort", said.get("cohort"))):
            dataset = str(cohort.get("dataset") or part["label"].partition(",")[0])
            folder = str(cohort["path"])
            for each in {dataset, part["label"].partition(",")[0]}:
                yield each, folder, find_path(folder, here).exists()
