"""The figures of small studies, digit by digit: a change of structure changes none of them.

`python -m tests.evaluation.test_fingerprints NAME...` measures the named studies (default: all) and
writes them to `fingerprints.json`, after a change of a figure that is stated in the changelog.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.infer import KINDS
from gazeveil.evaluation.results import Results
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.utility.classify import with_privacy_labels
from gazeveil.utility.registry import utilities
from tests.support.recordings import real_cohort

FIGURES = Path(__file__).with_name("fingerprints.json")
COLUMNS = ("value", "low", "high", "n", "chance", "p_value", "sd")
STRONG = ("gaussian:sigma_deg=3", "clock-render:epsilon=3,r_deg=3", "mosaic:epsilon=3,r_deg=3")
WINDOWS = FeaturePipeline(window_s=4.0, step_s=2.0)
STREAM, TABLE = "gaussian:sigma_deg=1", "k-same-select:k=2"
#: Kinds of inference attacks that a study takes and that need no releases of pieces.
INFERENCES = tuple(k for k in KINDS if k not in ("membership", "relinking"))


def simulated() -> Cohort:
    """Six people who watch and search."""
    tasks = [
        gazeveil.simulate(6, 3, 12.0, 120.0, task=task, seed=5) for task in ("video", "search")
    ]
    recordings = [r.with_(stimulus=f"{r.task}-{r.stimulus}") for cohort in tasks for r in cohort]
    return Cohort(recordings, tasks[0].people)


def few(dataset: str) -> Cohort:
    """Eight people and four stimuli of a real dataset.

    Their recordings have no name of a task, as when the first of these figures were taken.
    """
    cohort = real_cohort(dataset)
    part = cohort.select(people=sorted(cohort.people)[:8], stimuli=sorted(cohort.stimuli)[:4])
    return Cohort([r.with_(task="") for r in part], part.people)


def quick() -> Results:
    return gazeveil.evaluate(
        simulated(), [STREAM, TABLE], "quick", seed=1, repetitions=2, executor=1
    )


def analyses() -> Results:
    """All utilities but those that need labels of documents or of windows."""
    names = [u for u in utilities() if u not in ("document", "privacy-sensitivity")]
    names = [u + ":every=1" if u == "gender" else u for u in names]
    cohort = simulated()
    return gazeveil.evaluate(
        cohort, [STREAM], "none", names, repetitions=1, preparation=WINDOWS, executor=1
    )


def labelled() -> Results:
    cohort = gazeveil.simulate(5, 3, 14.0, 120.0, task="reading", seed=6)
    raw = RecordingSet(cohort, None, WINDOWS)
    labels = np.arange(len(raw.windows)) % 3 % 2
    tables = {"window": with_privacy_labels(raw.windows, labels)}
    analysts = ["document:every=1", "privacy-sensitivity:every=1"]
    return gazeveil.evaluate(
        RecordingSet(cohort, tables, WINDOWS),
        ["lpa:epsilon=1e6"],
        "none",
        analysts,
        repetitions=1,
        tables="windows",
        executor=1,
    )


def inferred() -> Results:
    return gazeveil.evaluate(simulated(), [STREAM], ["lda", *INFERENCES], repetitions=1, executor=1)


def quick_on_real() -> Results:
    return gazeveil.evaluate(
        few("gazecom"), [STREAM, TABLE], "quick", ["density", "signal"], repetitions=2, executor=1
    )


def strong_on_real() -> Results:
    return gazeveil.evaluate(few("gazecom"), STRONG, "strong", repetitions=1, executor=1)


def strong_on_headset() -> Results:
    return gazeveil.evaluate(few("eyenavgs_nthu"), STRONG, "strong", repetitions=1, executor=1)


SIMULATED = (quick, analyses, labelled, inferred)
REAL = (quick_on_real, strong_on_real, strong_on_headset)


def figures(results: Results) -> dict[str, list[float | None]]:
    """Key of a row -> its numbers."""
    keys = ("mechanism", "parameters", "events", "scenario", "attack", "utility", "metric")
    found = {}
    for row in results.frame.iter_rows(named=True):
        numbers = [row[c] for c in COLUMNS]
        found[" ".join(str(row[k]) for k in keys if row[k])] = [
            None if v is None or math.isnan(v) else float(f"{v:.10g}") for v in numbers
        ]
    return found


def compare(study: Callable[[], Results]) -> None:
    before = json.loads(FIGURES.read_text("utf-8"))[study.__name__]
    after = figures(study())
    assert after.keys() == before.keys()
    for key, numbers in before.items():
        now, then = (np.array(v, dtype=np.float64) for v in (after[key], numbers))
        # In scikit-learn's k-means, the order of sums is no part of its interface.
        rtol = 1e-7 if "rbfn d_prime" in key else 1e-9
        np.testing.assert_allclose(now, then, rtol=rtol, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("study", SIMULATED, ids=lambda study: study.__name__)
def test_figures_of_simulated_people_are_as_they_were(study: Callable[[], Results]) -> None:
    compare(study)


@pytest.mark.heavy
@pytest.mark.parametrize("study", REAL, ids=lambda study: study.__name__)
def test_figures_of_real_people_are_as_they_were(study: Callable[[], Results]) -> None:
    compare(study)


if __name__ == "__main__":
    known = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    for made in (*SIMULATED, *REAL):
        if made.__name__ in sys.argv[1:] or not sys.argv[1:]:
            known[made.__name__] = figures(made())
    lines = [
        f' "{name}": {{\n'
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
        + "\n }"
        for name, rows in known.items()
    ]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
