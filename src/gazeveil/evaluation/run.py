"""Running a study: which cells are there already, who computes the others, and what all of them say
together.

A study that was stopped by whatever means goes on where it was. A cell that cannot be computed is
reported with its reason and stops nothing else; it is tried again the next time.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.evaluation.collect import collect
from gazeveil.evaluation.plan import CELLS, Cell, CellBatch, Content, Store, check_samples, plan
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.sources import (
    Files,
    Simulated,
    code,
    fingerprint,
    in_memory,
    loaded,
    opened,
    scratch_paths,
)
from gazeveil.evaluation.study import Study
from gazeveil.evaluation.worker import Worker, compute, compute_batch, forget_parts
from gazeveil.features.recording_set import RecordingSet
from gazeveil.workers import LostTask, ThisProcess, Workers, workers_for

#: Called with the number of cells that are done and the number of all.
Progress = Callable[[int, int], None]

#: How often it is looked which cells of the batches in hand are finished, in seconds.
LOOK_S = 0.5


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
    keys = {cell: worker.key(cell) for cell in planned.cells}
    place: AbstractContextManager[str] = nullcontext(str(folder))
    if folder is None:
        place = TemporaryDirectory(prefix="gazeveil-study-")
    with place as held:
        store = Store(Path(held))
        store.tidy()
        cells = store.contents(keys)
        stored_before = len(cells)
        if progress is not None:
            progress(len(cells), len(keys))
        batches = planned.batches(keys.keys() - cells.keys())
        if batches:
            own = replace(study, source=loaded(raw), people=None, stimuli=None)
            worker = replace(worker, study=own)
        with _kept_cells(store, keys, folder), workers_for("evaluate", executor, len(batches)) as w:
            for found in _computed(w, worker, batches, store, keys):
                cells |= found
                if progress is not None:
                    progress(len(cells), len(keys))
                if limit_s is not None and time.monotonic() - started > limit_s:
                    break
        # A worker may have written some that it had no time to answer for.
        cells |= store.contents({cell: key for cell, key in keys.items() if cell not in cells})
    for cell in keys.keys() - cells.keys():
        cells[cell] = {"failure": cut_sentence(limit_s or 0)}
    about = _about(study, raw, worker.context, len(keys))
    results = collect(study, planned, cells, {**about, "notes": notes})
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


def _computed(
    workers: Workers,
    worker: Worker,
    batches: Sequence[CellBatch],
    store: Store,
    keys: Mapping[Cell, str],
) -> Iterator[dict[Cell, Content]]:
    """Contents of cells as they are finished, in any order; none where it is time to look at the
    clock.
    """
    # Promises and examples stay last, whatever repetition they are of.
    material = [_is_about(batch) or (batch.events, batch.repetition) for batch in batches]
    # What is defined in the user's own script a new process could not import without running it.
    if isinstance(workers, ThisProcess) or b"__main__" in pickle.dumps(worker):
        # Batches of one repetition share what is known of the raw recordings: one after the other.
        for batch in sorted(batches, key=lambda b: (_is_about(b), b.events, b.repetition)):
            for cell, content in compute(worker, batch):
                yield {cell: _kept(store, keys[cell], content)}
        forget_parts()  # this process goes on to something else
        return
    shared = worker if workers.here else _sent(workers, worker)
    folder = store.folder if workers.here else None
    tasks = [partial(tuple, (batch, [keys[c] for c in batch.cells])) for batch in batches]
    waiting = {cell: keys[cell] for batch in batches for cell in batch.cells}
    for answer in workers.do(
        compute_batch, tasks, shared, folder, look_s=LOOK_S, material=material
    ):
        found = store.contents(waiting)
        left = () if answer is None else batches[answer.number].cells
        for cell in (waiting.keys() - found.keys()) & set(left):
            if isinstance(answer, LostTask):
                found[cell] = {"failure": answer.reason}
            elif answer is not None:
                unanswered = {"failure": "The worker did not answer for it."}
                found[cell] = _kept(store, keys[cell], answer.value.get(cell, unanswered))
        waiting = {cell: key for cell, key in waiting.items() if cell not in found}
        yield found


def _is_about(batch: CellBatch) -> bool:
    """Whether a batch is of promises and examples, which come last."""
    return all(cell.kind == "about" for cell in batch.cells)


def _sent(workers: Workers, worker: Worker) -> Worker:
    """The study as workers elsewhere get it: with its recordings in memory where they cannot read
    the scratch file those lie in.
    """
    source = worker.study.source
    assert isinstance(source, RecordingSet)
    paths = scratch_paths(source)
    if not paths or workers.sees(paths):
        return worker
    return replace(worker, study=replace(worker.study, source=in_memory(source)))


@contextmanager
def _kept_cells(store: Store, keys: Mapping[Cell, str], folder: Path | None) -> Iterator[None]:
    """Report the saved cells when the run is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        finished = len(store.contents(keys))
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


def _kept(store: Store, key: str, content: Content) -> Content:
    """The content of a cell as the store has it; failures are not stored."""
    if "failure" in content:
        return content
    store.put(key, content)
    return store.get(key) or content


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
