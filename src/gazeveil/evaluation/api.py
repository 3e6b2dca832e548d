"""`gazeveil.evaluate`: attack protected recordings and measure what they are still good for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.attacks import battery
from gazeveil.attacks.base import Attack
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import Progress, run
from gazeveil.evaluation.sources import Files
from gazeveil.evaluation.study import DEFAULT_SCENARIOS, Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.mechanism import Mechanism
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
