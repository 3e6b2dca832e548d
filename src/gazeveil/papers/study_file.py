"""Files of studies of several parts: a paper's figure spans datasets, splits and protocols, and
each of them is a study of its own.

A file with `[[part]]` tables. What stands above them holds for every part; a part may say
otherwise, and names its recordings:

* `label`: the dataset, or `dataset, variant`; it becomes the `cohort` of its rows.
* `cohort` (path, format, options...) and `simulate`, as in a plain study: the files where they are,
  else a simulated cohort of the same shape; a part with neither is left out. A list of `simulate`
  tables is one cohort of several: the same people at several tasks (`join = "tasks"`), or different
  people (`join = "datasets"`, then each table has a `dataset`, and `cohort` may be a list too).
* `windows = true` reduces the recordings to their table of window features; `drop` leaves columns
  of it out. `documents = true` takes the task off its keys, so that every document is a task of its
  own, as David-John et al. 2022 and Bozkir et al. 2021 have it: their mechanisms work task by task.
* `people` and `stimuli` in `draw` take so many at random, `attributes = "davidjohn2023 supplement
  Table 1"` gives the people the ages and genders of that table.
* `with_files` holds keys that replace the part's own where its files are there: areas of interest
  of the dataset, or utilities that need its annotation. `people` and `stimuli` of `cohort` are
  names, or how many to take at most.
* `curves` names a window feature whose correlation over people is kept for drawing (Bozkir et al.
  2021 Figs 3 to 6).

In texts of mechanisms, attacks and utilities `{1,2,5}` stands for each of the values. `[quick]`
says what the short form overrides; `most` in it caps people, stimuli and seconds, and lists in
braces are cut to their ends.

Running a study of several parts: each part as a study of its own, then all of them as one result
with the paper's figures beside it.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import run as run_one
from gazeveil.evaluation.sources import opened
from gazeveil.evaluation.study import Study, find_path, read_toml
from gazeveil.papers.figures import CITATIONS, check_key, published_figures, study_names, study_path
from gazeveil.papers.grading import compare, paper_module
from gazeveil.papers.parts import TEXTS, MultiPartStudy, StudyPart, tables_in

#: Keys of a file that are no part's.
_WHOLE = ("name", "paper", "figure", "part", "quick")


def has_parts(path: str | Path) -> bool:
    """Whether a study file has parts; False for what is no TOML."""
    try:
        return "part" in tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False


def read(path: str | Path, quick: bool = False) -> MultiPartStudy:
    """Read a file of parts.

    Parameters
    ----------
    path : path
        A TOML file.
    quick : bool
        The short form: fewer people, stimuli, seconds and repetitions, as the file says.

    Raises
    ------
    FormatError
        Naming the file, for whatever is wrong in it.
    """
    place = Path(path)
    return read_toml(place, lambda toml: _plan(toml, place, quick), "Check the path.")


def _plan(toml: Mapping[str, Any], place: Path, quick: bool) -> MultiPartStudy:
    listed = toml.get("part", [])
    if (
        not isinstance(listed, list)
        or not listed
        or not all(isinstance(p, Mapping) and p.get("label") for p in listed)
    ):
        raise ParameterError(
            "A study of parts needs [[part]] tables, each with a label.", name="part", got=listed
        )
    shared = {k: v for k, v in toml.items() if k not in _WHOLE}
    parts = []
    here = place.parent.resolve()
    for part in listed:
        own = {
            **shared,
            **part,
            "preparation": {**shared.get("preparation", {}), **part.get("preparation", {})},
        }
        own["cohort"] = _same_form(
            own.get("cohort"),
            lambda t: {**t, "path": _found_folder(str(t["path"]), here)} if "path" in t else t,
        )
        real = _has_files(own, here)
        if not real and not tables_in(own.get("simulate")):
            continue
        own |= own.get("with_files", {}) if real else {}
        if quick:
            own = _quick(own, {**toml.get("quick", {}), **part.get("quick", {})})
        parts.append(_part(own, here, quick, real))
    labels = [p.label for p in parts]
    twice = next((x for x in labels if labels.count(x) > 1), None)
    if twice is not None:
        raise ParameterError(
            f"The label '{twice}' names two parts. Give each its own.", name="label", got=twice
        )
    paper = check_key("study", toml["paper"]) if toml.get("paper") else ""
    return MultiPartStudy(
        str(toml.get("name", place.stem)), paper, str(toml.get("figure", "")), quick, tuple(parts)
    )


def _quick(own: dict[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a part in its short form."""
    most = short.get("most", {})
    checks.known_options("most of [quick]", most, ("people", "stimuli", "seconds"))
    own |= {k: v for k, v in short.items() if k != "most"}
    own["cohort"] = _same_form(
        own.get("cohort"),
        lambda t: {**t, **{k: _fewer(t.get(k), v) for k, v in most.items() if k != "seconds"}},
    )
    own["simulate"] = _same_form(
        own.get("simulate"), lambda t: {**t, **{k: min(v, t[k]) for k, v in most.items() if k in t}}
    )
    if "draw" in own:
        own["draw"] = {k: min(v, max(2, most.get(k, v) // 2)) for k, v in own["draw"].items()}
    return own


def _fewer(wanted: object, most: int) -> object:
    """At most so many of the people or stimuli that are wanted."""
    if wanted is None:
        return most
    return wanted[:most] if isinstance(wanted, list) else min(int(str(wanted)), most)


def _has_files(own: Mapping[str, Any], here: Path) -> bool:
    """Whether all files that a part names are there."""
    paths = [c for c in tables_in(own.get("cohort")) if "path" in c]
    return bool(paths) and all(find_path(str(c["path"]), here).exists() for c in paths)


def _found_folder(path: str, here: Path) -> str:
    """The path of a cohort as it is there: datasets are unpacked as `vr-eyetracking` or
    `vr_eyetracking`.
    """
    other = path.replace("-", "_")
    swapped = not find_path(path, here).exists() and find_path(other, here).exists()
    return other if swapped else path


def _part(own: Mapping[str, Any], here: Path, quick: bool, real: bool) -> StudyPart:
    part = dict(own)
    for kind in TEXTS:
        # One text alone, such as the name of a battery of attackers, needs no list.
        value = part.get(kind, [])
        patterns = [value] if isinstance(value, str) else value
        part[kind] = list(dict.fromkeys(t for p in patterns for t in expand(str(p), quick)))
    # A mechanism is what private scenarios are about: where all of a part's are missing, only the
    # baseline is left.
    if not part["mechanisms"]:
        part["scenarios"] = ["raw/raw"]
    return StudyPart(str(part["label"]), part, real, here)


def expand(text: str, ends: bool = False) -> list[str]:
    """Braces as a shell has them; with `ends` the first and the last value only.

    Examples
    --------
    >>> expand("kaleido:epsilon={10,1},w={50,200},r_deg=2")
    ['kaleido:epsilon=10,w=50,r_deg=2', 'kaleido:epsilon=10,w=200,r_deg=2',
    'kaleido:epsilon=1,w=50,r_deg=2', 'kaleido:epsilon=1,w=200,r_deg=2']
    """
    pieces = re.split(r"\{([^{}]*)\}", text)
    choices = [
        [c.strip() for c in piece.split(",")] if i % 2 else [piece]
        for i, piece in enumerate(pieces)
    ]
    if ends:
        choices = [[c[0], c[-1]] if len(c) > 2 else c for c in choices]
    return ["".join(combined) for combined in itertools.product(*choices)]


def _same_form(value: object, change: Callable[[dict[str, Any]], dict[str, Any]]) -> object:
    changed = [change(t) for t in tables_in(value)]
    return changed if isinstance(value, list) else (changed[0] if changed else {})


@dataclass(frozen=True)
class PaperPlace:
    """A table, a figure or a section of a paper.

    Parameters
    ----------
    paper, location : str
        Key of the paper, and where in it.
    figures : int
        How many figures are printed there.
    studies : tuple of str
        Studies that repeat it.
    folders : mapping of str to bool
        Folders of recordings that these studies read for its datasets, and whether each is there;
        where it is not, people are simulated and the figure is not graded.
    """

    paper: str
    location: str
    figures: int
    studies: tuple[str, ...]
    folders: Mapping[str, bool]

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {**vars(self), "studies": list(self.studies), "folders": dict(self.folders)}


def paper_places() -> tuple[PaperPlace, ...]:
    """All places of all papers, in the order of the papers' figures."""
    said = {
        name: tomllib.loads(study_path(name).read_text(encoding="utf-8")) for name in study_names()
    }
    found = []
    for paper in CITATIONS:
        covered = paper_module(paper).LOCATIONS
        figures = published_figures(paper)
        for location in dict.fromkeys(f.location for f in figures):
            here = [f for f in figures if f.location == location]
            studies = tuple(
                name
                for name, toml in said.items()
                if toml.get("paper") == paper and location in covered.get(toml["figure"], ())
            )
            datasets = {f.dataset for f in here}
            folders = {
                folder: there
                for name in studies
                for dataset, folder, there in _folders(name, said[name])
                if dataset in datasets
            }
            found.append(PaperPlace(paper, location, len(here), studies, folders))
    return tuple(found)


def _folders(name: str, said: Mapping[str, object]) -> Iterator[tuple[str, str, bool]]:
    """Dataset, folder, and whether it is there, of every part of a study; parts that are left out
    without their files too.
    """
    here = study_path(name).parent
    for part in tables_in(said["part"]):
        label = str(part["label"]).partition(",")[0]
        for cohort in tables_in(part.get("cohort", said.get("cohort"))):
            folder = str(cohort["path"])
            there = find_path(folder, here).exists()
            for dataset in {str(cohort.get("dataset") or label), label}:
                yield dataset, folder, there


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
        "failures": [
            *failures,
            *({**f, "cell": f"{p.label}: {f['cell']}"} for p, r in done for f in r.failures),
        ],
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
    return {
        "cohort": part.label,
        "dataset": part.dataset,
        "real": part.real,
        "source": part.source,
        **shape,
        **{k: results.study.get(k) for k in _PROTOCOL},
    }


def _left_out(part: StudyPart, results: Results) -> list[str]:
    return [
        f"{part.label}: {reason}"
        for reason in (*_texts(results.study.get("left_out")), *(f"{n}." for n in part.notes))
    ]


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
