"""The attack step: re-identification rate and utility of a release.

The mechanism makes test releases from the aligned recordings, with the same parameters. Then an
attacker with raw recordings attacks the published files themselves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from gazeveil.attacks.registry import NOBODY
from gazeveil.errors import GazeveilError
from gazeveil.evaluation.api import CopyWarning, evaluate, study_of_copy
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.run import Progress, run
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.pieces import PieceMechanism
from gazeveil.privacy.publication.page import analysis_in_words, attack_in_words

#: Analyses that are tried unless others are named.
USUAL_UTILITIES = ("density", "signal", "events")

# Figures for the certificate: utility, metric -> words and unit.
_WORDS = {
    ("density", "jsd"): (
        "where people look, as a map of all of them",
        "Jensen-Shannon divergence",
        "bits",
    ),
    ("signal", "rmse_deg"): ("where one person looks at one moment", "error", "degrees"),
    ("events", "fixation_duration_wasserstein_s"): ("how long fixations last", "error", "s"),
    ("events", "saccade_amplitude_wasserstein_deg"): ("how long saccades are", "error", "degrees"),
}


def measure(
    cohort: Cohort,
    mechanism: Mechanism[Any],
    battery: str,
    utilities: Sequence[str] = USUAL_UTILITIES,
    repetitions: int = 10,
    tables: str = "events",
    progress: Progress | None = None,
    executor: int | str | None = None,
    files: Cohort | None = None,
) -> dict[str, Any]:
    """Attack releases of a mechanism.

    Parameters
    ----------
    cohort : Cohort
        Aligned raw recordings, under raw names.
    mechanism : Mechanism
        With the parameters of the release.
    battery : str
        Who attacks.
    utilities : sequence of str
        Which analyses are tried.
    repetitions : int
        Draws of split and noise.
    tables : str
        What a mechanism of the kind table protects.
    progress : callable, optional
        Called with cells done and all cells.
    executor : int or str, optional
        Processes, or a cluster.
    files : Cohort, optional
        What is published, under raw names.

    Returns
    -------
    dict
        `attack` and `utility` for the certificate, each None where it could not be computed, and
        `said`, sentences for the screen.
    """
    if mechanism.kind in ("map", "people"):
        why = "Nobody attacks: maps hold no recording of a single person."
        return {"attack": None, "utility": None, "said": (why,)}
    try:
        results = evaluate(
            cohort,
            [mechanism],
            battery,
            () if mechanism.kind == "table" else tuple(utilities),
            ("raw/private", "private/private"),
            repetitions,
            executor=executor,
            progress=progress,
            split="stimulus" if len(cohort.stimuli) > 1 else "halves",
            tables=tables,
        )
    except GazeveilError as error:
        return {"attack": None, "utility": None, "said": (f"Not measured: {error}",)}
    found = Findings(results)
    failures = tuple(dict.fromkeys(f"Not computed: {f['sentence']}" for f in results.failures))
    if not found.protected:
        return {"attack": None, "utility": None, "said": failures or ("Nothing was measured.",)}
    attack = None if battery == NOBODY else _attack(found.protected[0], battery, repetitions)
    if attack is not None:
        attack |= {"asked": "pieces"} if isinstance(mechanism, PieceMechanism) else {}
        attack["files"] = _of_files(cohort, files, mechanism, battery, repetitions, executor)
    utility = _utility(found)
    return {"attack": attack, "utility": utility, "said": (*_said(attack, utility), *failures)}


def _attack(release: ReleaseFindings, battery: str, repetitions: int) -> dict[str, Any] | None:
    shown = release.shown
    if shown is None:
        return None
    return {
        "attacker": shown.attack,
        "asked": "people",
        "people": shown.n,
        "found": shown.found,
        "guessing": max(1, round(shown.chance * shown.n)),
        "rate": round(shown.value, 4),
        "low": round(shown.low, 4),
        "high": round(shown.high, 4),
        "chance": round(shown.chance, 4),
        "p_value": None if math.isnan(shown.p_value) else _rounded(shown.p_value),
        "fewest": release.fewest,
        "scenario": shown.scenario,
        "battery": battery,
        "tried": release.tried,
        "repetitions": repetitions,
    }


def _of_files(
    cohort: Cohort,
    files: Cohort | None,
    mechanism: Mechanism[Any],
    battery: str,
    repetitions: int,
    executor: int | str | None,
) -> dict[str, Any] | None:
    """Attack the published files themselves.

    Return None where names do not last, or raw recordings and files have too little in common.
    """
    if files is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CopyWarning)
            study = study_of_copy(
                cohort,
                files,
                (battery,),
                repetitions=repetitions,
                split="stimulus" if len(cohort.stimuli) > 1 else "halves",
                independent=mechanism.noise_unit == "recording",
            )
            found = Findings(run(study, None, executor)).protected
    except GazeveilError:
        return None
    return _attack(found[0], battery, repetitions) if found else None


def _utility(found: Findings) -> dict[str, object] | None:
    """Each analysis beside raw recordings against raw ones, and beside having no data."""
    rows = []
    for m in found.protected[0].measures:
        words = _WORDS.get((m.utility, m.metric))
        if words is None or not math.isfinite(m.value):
            continue
        whole = None if found.raw is None else found.raw.measure(m.utility, m.metric)
        rows.append(
            {
                "analysis": words[0],
                "metric": words[1],
                "value": _rounded(m.value),
                "unit": words[2],
                "raw": None if whole is None or whole.value == 0 else _rounded(whole.value),
                "reference": _rounded(m.chance) if math.isfinite(m.chance) else None,
            }
        )
    return {"analyses": rows} if rows else None


def _rounded(value: float) -> float:
    # Figures come from the recordings without noise: a third digit tells who took part.
    shown = float(f"{value:.2g}")
    return int(shown) if abs(shown) >= 10 else shown


def _said(attack: dict[str, Any] | None, utility: dict[str, object] | None) -> tuple[str, ...]:
    said = list(attack_in_words(attack)) if attack is not None else []
    rows: Any = [] if utility is None else utility["analyses"]
    return (*said, *(f"{analysis_in_words(row)}." for row in rows))
