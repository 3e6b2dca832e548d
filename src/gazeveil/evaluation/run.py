"""Running a study: which cells are there already, who computes the others, and what all of them say
together.

A study that was stopped by whatever means goes on where it was. A cell that cannot be computed is
reported with its reason and stops nothing else; it is tried again the next time.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.evaluation.backends import Answer, FailedBatch, Finished, make_backend
from gazeveil.evaluation.collect import collect
from gazeveil.evaluation.plan import CELLS, Cell, Content, Store, check_samples, plan
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.sources import Files, Simulated, code, fingerprint, loaded, opened
from gazeveil.evaluation.study import Study
from gazeveil.evaluation.worker import Worker
from gazeveil.features.recording_set import RecordingSet
from gazeveil.utility.trained_weights import cautions

#: Called with the number of cells that are done and the number of all.
Progress = Callable[[int, int], None]


def run(
    study: Study,
    out: str | Path | None = None,
    executor: Executor | str | int | None = None,
    progress: Progress | None = None,
    limit_s: float | None = None,
) -> Results:
    """Compute what is missing of a study, and put everything together.

    Parameters
    ----------
    study : Study
        What to compute.
    out : path, optional
        Folder for the cells and the results; a study that was stopped goes on there. In memory if
        not given.
    executor : Executor, str, int, optional
        Who computes: any :class:`concurrent.futures.Executor`, the address of a Dask scheduler, a
        number of processes of one's own (1: this process). Default: as many processes as there are
        cores.
    progress : callable, optional
        Called with cells done and all cells.
    limit_s : float, optional
        Seconds after which no further cell is begun and cells in hand of other processes are
        stopped; what is not computed then is a failure that says so, and computed the next time.

    Raises
    ------
    GazeveilError
        For recordings that cannot be read, for what they do not allow, or if no cell at all could
        be computed.
    """
    started = time.monotonic()
    raw = opened(study.source, study.people, study.stimuli, study.preparation)
    planned = plan(study, raw)
    folder = None if out is None else _folder(Path(out))
    notes: list[str] = []
    if not isinstance(study.source, Simulated):
        raw = loaded(raw)
        notes += filter(None, [check_samples(study, raw)])
    for note in notes:
        warnings.warn(note, stacklevel=2)
    worker = Worker(study, _context(study, raw))
    store = Store(folder)
    store.tidy()
    keys = {cell: worker.key(cell) for cell in planned.cells}
    cells: dict[Cell, Content] = {
        cell: content for cell, key in keys.items() if (content := store.get(key)) is not None
    }
    stored_before = len(cells)
    if progress is not None:
        progress(len(cells), len(keys))
    batches = planned.batches(frozenset(c for c in planned.cells if c not in cells))
    if batches:
        worker = replace(
            worker, study=replace(study, source=loaded(raw), people=None, stimuli=None)
        )
    with _kept_cells(store, keys, folder), make_backend(executor, len(batches)) as backend:
        announced: set[Cell] = set()
        for batch, answer in backend.work(worker, batches, folder):
            if isinstance(answer, Finished):
                announced.update(batch.cells)
            else:
                for cell in batch.cells:
                    cells[cell] = _kept(store, keys[cell], cell, answer)
            if progress is not None:
                progress(len(announced | cells.keys()), len(keys))
            if limit_s is not None and time.monotonic() - started > limit_s:
                _cut(store, keys, cells, limit_s)
                break
    about = _about(study, raw, worker.context, len(keys))
    for note in (trained_on := cautions(_notes(cells))):
        warnings.warn(note, stacklevel=2)
    results = collect(study, planned, cells, {**about, "notes": [*notes, *trained_on]})
    if results.frame.height == 0:
        raise DataError(
            "No cell of the study could be computed."
            f" {results.failures[0]['sentence'] if results.failures else ''}".rstrip()
        )
    results.study["times"] = {
        "took": _duration(time.monotonic() - started),
        "computed": len(keys) - stored_before,
        "found": stored_before,
    }
    if folder is not None:
        results.write(folder)
    return results


def _notes(cells: Mapping[Cell, Content]) -> Iterator[tuple[str, str]]:
    """Each utility with the notes of all its figures in one cell."""
    for cell, content in cells.items():
        if cell.kind == "utility" and "results" in content:
            yield cell.what, "; ".join(str(result["note"]) for result in content["results"])


@contextmanager
def _kept_cells(store: Store, keys: Mapping[Cell, str], folder: Path | None) -> Iterator[None]:
    """Report the saved cells when the run is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        finished = sum(key in store for key in keys.values())
        if folder is None or not finished:
            raise KeyboardInterrupt("Stopped, nothing was kept.") from None
        raise KeyboardInterrupt(
            f"Stopped. {finished} of {len(keys)} cells are finished and kept in {folder}: the same"
            " command goes on from there."
        ) from None


def _context(study: Study, raw: RecordingSet) -> dict[str, object]:
    """The context that every cell of a study depends on."""
    p = study.preparation
    return {
        "code": code(),
        "recordings": fingerprint(study.source, raw),
        "seed": study.seed,
        "split": study.split,
        "train": study.train,
        "tables": study.tables,
        "preparation": [p.method, repr(sorted(p.parameters.items())), p.window_s, p.step_s],
    }


def _kept(store: Store, key: str, cell: Cell, answer: Answer) -> Content:
    """The content of a cell as the store has it, or why there is none."""
    if isinstance(answer, FailedBatch):
        # The worker may have written the cell before it was lost.
        content, reason = store.get(key), answer.sentence
    else:
        content, reason = answer.get(cell), "The worker did not answer for it."
    if content is None:
        return {"failure": reason}
    if "failure" in content:
        return content
    store.put(key, content)
    return store.get(key) or content


def _cut(
    store: Store, keys: Mapping[Cell, str], cells: dict[Cell, Content], limit_s: float
) -> None:
    """Fill in the cells that are not answered when the time is over: a worker may have written
    some.
    """
    for cell in keys.keys() - cells.keys():
        cells[cell] = store.get(keys[cell]) or {"failure": cut_sentence(limit_s)}


def cut_sentence(limit_s: float) -> str:
    """What is said of a cell that the time limit left out.

    Examples
    --------
    >>> cut_sentence(120)
    'Cut: the time limit of 120 s was over.'
    """
    return f"Cut: the time limit of {limit_s:g} s was over."


def _about(
    study: Study, raw: RecordingSet, context: Mapping[str, object], cells: int
) -> dict[str, object]:
    """What the results say of the recordings and of the run."""
    if raw.cohort is not None and raw.cohort.name:
        name = raw.cohort.name
    else:
        name = study.source.description if isinstance(study.source, Files | Simulated) else "cohort"
    cohort = {
        "name": name,
        "people": len(raw.persons),
        "stimuli": len(raw.stimuli),
        "recordings": len(raw.keys),
        "fingerprint": context["recordings"],
    }
    return {
        "cohort_name": name,
        "cohort": cohort,
        # One sitting and one calibration make people alike to themselves.
        "sessions": max(Counter(key[0] for key in {k[::2] for k in raw.keys}).values()),
        "version": __version__,
        "cells": cells,
        **({} if study.name else {"name": name}),
    }


def _folder(place: Path) -> Path:
    """The study's folder; one that holds something else is refused."""
    if place.exists() and not place.is_dir():
        raise DataError(f"{place} is a file, and a study writes a folder. Choose another place.")
    if place.is_dir() and any(place.iterdir()) and not (place / CELLS).is_dir():
        raise DataError(f"{place} exists and was not written by a study. Choose another folder.")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
