"""`gazeveil.evaluate`: attack protected recordings and measure what they are still good for.
`gazeveil.attack`: attack a copy that is already there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.attacks import battery
from gazeveil.attacks.base import Attack
from gazeveil.evaluation.existing_release import CopyWarning, doubt_about_names, study_of_copy
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import Progress, run
from gazeveil.evaluation.sources import Files
from gazeveil.evaluation.study import DEFAULT_SCENARIOS, Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.reading import read
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.release import Release
from gazeveil.utility.base import Utility


def evaluate(
    cohort: Cohort | RecordingSet | FeatureTable | str | Path,
    mechanisms: Sequence[str | Mechanism[Any]] | str | Mechanism[Any] = (),
    attacks: Sequence[str | Attack] | str | Attack = battery.DEFAULT,
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
    """What an attacker still gets and what an analyst still can do, mechanism by mechanism.

    Parameters
    ----------
    cohort : Cohort, RecordingSet, FeatureTable or path
        Raw recordings.
    mechanisms, attacks, utilities : objects or texts `name:parameter=value,...`
        The unprotected baseline is always there, as mechanism `none` in the scenario `raw/raw`.
        Attacks may be batteries: `quick`, `strong` (the default), `all`, or `none` for nobody.
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
    attacks: Sequence[str | Attack] | str | Attack = battery.DEFAULT,
    repetitions: int = 10,
    seed: int = 0,
    executor: Executor | str | int | None = None,
    *,
    train: float = 0.75,
    split: str = "stimulus",
    progress: Progress | None = None,
) -> Results:
    """What attackers who hold raw recordings get from a protected copy of the same people.

    Parameters
    ----------
    raw : Cohort or path
        Raw recordings.
    protected : Cohort, Release or path
        The copy, with the same names of people and stimuli: without them nobody can tell whether an
        attacker is right.
    attacks : objects or texts `name:parameter=value,...`
        Who attacks; batteries too (`quick`, `strong`, `all`). Of a battery those are left out who
        make releases of their own: how the copy was made is not known here.
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
