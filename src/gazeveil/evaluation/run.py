"""`gazeveil.evaluate`: attack protected recordings and measure what they are still good for.
`gazeveil.attack`: attack a copy that is already there.

Running a study: which cells are there already, who computes the others, and what all of them say
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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from gazeveil import __version__, checks
from gazeveil.attacks import registry
from gazeveil.attacks.base import Attack
from gazeveil.attacks.evidence import find_renaming
from gazeveil.errors import DataError, ParameterError
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
    look_at_samples,
    opened,
    scratch_paths,
)
from gazeveil.evaluation.study import DEFAULT_SCENARIOS, RATE, Inference, Study
from gazeveil.evaluation.worker import Worker, compute, compute_batch, forget_shared
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.reading import read
from gazeveil.privacy.guarantee import no_promise
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.release import Release
from gazeveil.utility.base import Utility
from gazeveil.workers import LostTask, ThisProcess, Workers, workers_for

#: What can be asked about one copy: raw recordings against it, and it against itself.
SCENARIOS = ("raw/private", "release/release")


#: Rates that differ by no more than this share are one.
_SAME_RATE = 0.02


class CopyWarning(UserWarning):
    """Something about a protected copy that changes how its rates are read."""


@dataclass(frozen=True, eq=False)
class ExistingRelease(Mechanism[Cohort]):
    """Whatever made the copy; its release is the copy.

    Parameters
    ----------
    cohort : Cohort
        The copy, with the same names of people and stimuli as the raw recordings.
    independent : bool
        Whether its recordings are known to have noise of their own.
    """

    name: ClassVar[str] = "copy"
    kind: ClassVar[str] = "cohort"
    paper: ClassVar[str] = "as found"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "none", "recording", "empirical", "what its certificate says, if it has one"
        )
    }

    cohort: Cohort = field(repr=False)
    independent: bool = False

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """The copy."""
        why = "a copy as it was found; what it promises stands in its certificate, if it has one"
        return Release(self.cohort, no_promise(self.name, why), self.provenance(seed))

    def parameters(self) -> dict[str, object]:
        """None: how the copy was made is not known."""
        return {}


def study_of_copy(raw: Cohort, copy: Cohort, attacks: tuple[Any, ...], **settings: Any) -> Study:
    """A study of a protected copy: raw recordings against the copy, and the copy against itself.

    Parameters
    ----------
    raw, copy : Cohort
        Recordings with the same names of people and stimuli; what only one of them has is left out.
    attacks : tuple of Attack or str
        Who attacks; names of batteries too. Of a battery those attackers are left out who make
        releases of their own.
    **settings
        Further parameters of :class:`~gazeveil.evaluation.study.Study`; `independent` says that
        recordings of the copy have noise of their own.

    Raises
    ------
    DataError
        If they have too little in common.
    ParameterError
        For attackers that would need to make releases themselves.
    """
    checks.known_options(
        "study_of_copy",
        settings,
        {"repetitions", "seed", "train", "split", "preparation", "name", "independent"},
    )
    independent = bool(settings.pop("independent", False))
    people = [p for p in raw.people if p in {k[0] for k in copy.keys}]
    stimuli = [s for s in raw.stimuli if s in copy.stimuli]
    if len(people) < 2:
        raise DataError(
            f"The raw recordings and the copy have {len(people) or 'no'}"
            f" {'person' if len(people) == 1 else 'people'} in common, and at least two are needed."
            " People need the same names in both: without them nobody can tell whether an attacker"
            " is right."
        )
    if not stimuli:
        raise DataError(
            "The raw recordings and the copy have no stimulus in common. Stimuli need the same"
            " names in both."
        )
    known, released = _at_one_rate(
        raw.select(people=people, stimuli=stimuli), copy.select(people=people, stimuli=stimuli)
    )
    usable = look_at_samples(released).usable
    if not usable:
        raise DataError(
            f"All gaze of the copy is lost: none of its {len(released)} recordings has two valid"
            " samples. Look at it with `gazeveil inspect`."
        )
    if len({key[0] for key in usable}) < 2:
        raise DataError(
            "The copy has valid gaze of one person, and an attacker needs two to tell apart. Look"
            " at it with `gazeveil inspect`."
        )
    copied = ExistingRelease(released, independent)
    study = Study(known, (copied,), attacks, scenarios=SCENARIOS, **settings)
    # A study holds the attackers of batteries first.
    named = len(study.attacks) - sum(not registry.is_battery(a) for a in attacks)
    for attack in study.attacks[named:]:
        _refuse_maker(attack)
    kept = [a for i, a in enumerate(study.attacks) if i >= named or not _makes_releases(a)]
    return replace(study, attacks=tuple(kept))


def _at_one_rate(raw: Cohort, copy: Cohort) -> tuple[Cohort, Cohort]:
    """Resample raw recordings to the rate of a slower copy, as an attacker would. Features at 250
    Hz do not match a copy at 60 Hz, even if it is unprotected.
    """
    rates = {r.rate_hz for r in copy if np.isfinite(r.rate_hz) and r.rate_hz > 0}
    slowest = min(rates, default=0.0)
    if not slowest or max(rates) > slowest * (1 + _SAME_RATE):
        return raw, copy  # rates that differ within the copy are its own matter
    faster = [r.rate_hz for r in raw if r.rate_hz > slowest * (1 + _SAME_RATE)]
    if not faster:
        return raw, copy
    warnings.warn(
        f"The copy has {slowest:g} samples a second and raw recordings up to {max(faster):g}: these"
        " are brought to the copy's rate for the attack, as an attacker would.",
        CopyWarning,
        stacklevel=4,
    )
    items = [r.resample(slowest) if r.rate_hz > slowest * (1 + _SAME_RATE) else r for r in raw]
    return Cohort(items, raw.people, raw.skipped, raw.name, raw.read_as), copy


def doubt_about_names(results: Results) -> str:
    """The sentence for a copy whose people attackers take for one and the same other person each;
    empty where they do not.

    Without it a copy with exchanged names would be called safe, though everybody is recognised.
    """
    named = results.outcomes.filter(
        mechanism=ExistingRelease.name, scenario=SCENARIOS[0], metric=RATE
    ).drop_nulls("answer")
    by_repetition = named["repetition"].n_unique() > 1
    draws = named["repetition" if by_repetition else "attack"]
    if draws.n_unique() < 2:
        return ""
    found = find_renaming(
        draws.rank("dense").to_list(), named["part"].to_list(), named["answer"].to_list()
    )
    if not found.found:
        return ""
    return (
        f"Attackers take {found.renamed} of {found.people} people of the copy for one and the same"
        " other person each, again and again. So the names in the copy are not those of the raw"
        " recordings (pseudonyms? give the key with --key-file), and then these people are"
        " recognised, whatever the rates say; or the mechanism has people move as others do."
    )


def _makes_releases(attack: Attack | Inference) -> bool:
    return isinstance(attack, Attack) and attack.knowledge != "black-box"


def _refuse_maker(attack: Attack | Inference) -> None:
    if isinstance(attack, Inference):
        raise ParameterError(
            f"{attack} names nobody: ask for it with --kind.", name="attack", got=str(attack)
        )
    if _makes_releases(attack):
        raise ParameterError(
            f"{attack} makes releases of its own, and how the copy was made is not known. Use"
            " `gazeveil evaluate` with the mechanism instead.",
            name="attack",
            got=str(attack),
        )


def evaluate(
    cohort: Cohort | RecordingSet | FeatureTable | str | Path,
    mechanisms: Sequence[str | Mechanism[Any]] | str | Mechanism[Any] = (),
    attacks: Sequence[str | Attack] | str | Attack = registry.DEFAULT,
    utilities: Sequence[str | Utility] | str | Utility = (),
    scenarios: Sequence[str] | str = DEFAULT_SCENARIOS,
    repetitions: int = 10,
    seed: int = 0,
    executor: Executor | str | int | None = None,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Results:
    """Measure re-identification and utility, mechanism by mechanism.

    Parameters
    ----------
    cohort : Cohort, RecordingSet, FeatureTable or path
        Raw recordings.
    mechanisms, attacks, utilities : objects or texts `name:parameter=value,...`
        The unprotected baseline is always there, as mechanism `none` in the scenario `raw/raw`.
        Attacks may be batteries: `quick`, `strong` (the default), `all`, or `none` for no attack.
    scenarios : sequence of str
        Train/test: `private/raw raw/private private/private` (two independent releases)
        `release/release` (one release, split afterwards).
    repetitions : int
        Draws of split and noise.
    seed : int
        Everything random follows from it.
    executor : Executor, str or int, optional
        Any :class:`concurrent.futures.Executor`, the address of a Dask scheduler, or a number of
        processes (1: this process). Default: one process per core.
    out : path, optional
        Folder to write; a study that was stopped goes on there.
    progress : callable, optional
        Called with cells done and all cells.
    **settings
        Further parameters of :class:`gazeveil.evaluation.study.Study`: split, train, events,
        preparation, tables, people, stimuli, name.

    Returns
    -------
    Results
        `.frame` has one row per figure, with interval, chance and exact test.

    Raises
    ------
    GazeveilError
        In one sentence, before any work, for what cannot be computed.

    Examples
    --------
    >>> import gazeveil
    >>> people = gazeveil.simulate(4, 3, seconds=10, rate_hz=100, seed=1)
    >>> results = gazeveil.evaluate(
    ...     people, ["gaussian:sigma_deg=5"], ["linkage"], repetitions=1, executor=1
    ... )
    >>> results.frame.filter(metric="identification_rate")["scenario"].to_list()
    ['raw/raw', 'raw/private', 'private/private']
    """
    checks.known_options(
        "evaluate",
        settings,
        {"split", "train", "events", "preparation", "tables", "people", "stimuli", "name", "paper"},
    )
    source = Files(str(cohort)) if isinstance(cohort, str | Path) else cohort
    named: Any = [
        (v,) if isinstance(v, str | Mechanism | Attack | Utility) else v
        for v in (mechanisms, attacks, utilities, scenarios)
    ]
    study = Study(source, named[0], named[1], named[2], named[3], repetitions, seed, **settings)
    return run(study, out, executor, progress)


def attack(
    raw: Cohort | str | Path,
    protected: Cohort | Release[Cohort] | str | Path,
    attacks: Sequence[str | Attack] | str | Attack = registry.DEFAULT,
    repetitions: int = 10,
    seed: int = 0,
    executor: Executor | str | int | None = None,
    *,
    train: float = 0.75,
    split: str = "stimulus",
    progress: Progress | None = None,
) -> Results:
    """Measure attackers with raw recordings on a protected copy of the same people.

    Parameters
    ----------
    raw : Cohort or path
        Raw recordings.
    protected : Cohort, Release or path
        The copy, with the same names of people and stimuli: they are the ground truth of
        re-identification.
    attacks : objects or texts `name:parameter=value,...`
        Attackers; batteries too (`quick`, `strong`, `all`). Attackers that make releases of their
        own are left out of a battery, because the mechanism of the copy is unknown here.
    repetitions : int
        Random splits of the stimuli.
    seed : int
        Of splits and attackers.
    executor : Executor, str or int, optional
        As for :func:`evaluate`.
    train : float
        Share of the stimuli to learn from.
    split : {"stimulus", "halves", "session"}
        What is split.
    progress : callable, optional
        Called with cells done and all cells.

    Returns
    -------
    Results
        Raw recordings against raw ones (`none`, `raw/raw`), against the copy (`copy`,
        `raw/private`), and the copy against itself (`release/release`).

    Raises
    ------
    GazeveilError
        In one sentence, for recordings that have too little in common or attackers that need more.

    Warns
    -----
    CopyWarning
        Where the copy is slower than the raw recordings, which are brought to its rate; and where
        its names seem to be exchanged, so that low rates mean nothing.

    Examples
    --------
    >>> import gazeveil
    >>> people = gazeveil.simulate(4, 3, seconds=10, rate_hz=100, seed=1)
    >>> release = gazeveil.protect(people, "gaussian:sigma_deg=5", seed=1)
    >>> results = gazeveil.attack(people, release, "linkage", repetitions=1, executor=1)
    >>> results.frame.filter(metric="identification_rate")["scenario"].to_list()
    ['raw/raw', 'raw/private', 'release/release']
    """
    cohorts = _cohort("raw", raw), _cohort("protected", protected)
    chosen = (attacks,) if isinstance(attacks, str | Attack) else tuple(attacks)
    if not chosen:
        checks.refuse("attack", "attacks", "at least one attacker", attacks)
    study = study_of_copy(
        *cohorts, chosen, repetitions=repetitions, train=train, split=split, seed=seed
    )
    results = run(study, None, executor, progress)
    if doubt := doubt_about_names(results):
        warnings.warn(doubt, CopyWarning, stacklevel=2)
    return results


def _cohort(name: str, data: Cohort | Release[Cohort] | str | Path) -> Cohort:
    if isinstance(data, str | Path):
        return read(data)
    held = data.data if isinstance(data, Release) else data
    if not isinstance(held, Cohort):
        checks.refuse(
            "attack",
            name,
            "a Cohort, or a path of recordings" + (", or a Release of one" * (name != "raw")),
            type(held).__name__,
            "A data frame becomes one with Cohort.from_frame.",
        )
    return held


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
        cells[cell] = {"failure": f"Cut: the time limit of {limit_s or 0:g} s was over."}
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
    material = [_is_about(batch) or worker.material(batch) for batch in batches]
    # What is defined in the user's own script a new process could not import without running it.
    if isinstance(workers, ThisProcess) or b"__main__" in pickle.dumps(worker):
        # Batches that share something come one after the other.
        for batch in sorted(batches, key=lambda b: (_is_about(b), str(worker.material(b)))):
            for cell, content in compute(worker, batch):
                yield {cell: _kept(store, keys[cell], content)}
        forget_shared()  # this process goes on to something else
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
