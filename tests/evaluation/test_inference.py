"""Inference attacks among the attacks of a study."""

from pathlib import Path

import polars as pl
import pytest

from gazeveil import evaluate, simulate
from gazeveil.errors import ParameterError
from gazeveil.evaluation.api import study_of_copy
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.study import attacker
from gazeveil.gaze.cohort import Cohort

ATTACKS = ("attributes", "record-linkage")


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(6, 3, 5.0, 100.0, seed=1)


@pytest.fixture(scope="module")
def results(cohort: Cohort) -> Results:
    return evaluate(cohort, "gaussian:sigma_deg=1/100", ATTACKS, repetitions=1, executor=1)


def test_inferences_know_raw_recordings_and_are_asked_about_a_release(results: Results) -> None:
    frame = results.frame
    assert set(frame["attack"]) == set(ATTACKS)
    assert frame["utility"].null_count() == frame.height
    assert set(frame.filter(mechanism="gaussian")["scenario"]) == {"raw/private"}
    assert set(frame.filter(mechanism="none")["scenario"]) == {"raw/raw"}
    metrics = {"accuracy", "linkage_rate", "matching_rate"}
    assert metrics <= set(frame["metric"])
    assert "identification_rate" not in set(frame["metric"])
    row = frame.row(by_predicate=_is("gaussian", "linkage_rate"), named=True)
    assert row["low"] <= row["value"] <= row["high"]
    assert (row["n"], row["chance"], row["better"]) == (6, pytest.approx(1 / 6), "lower")


def test_the_report_shows_them_apart_from_who_is_recognised(
    results: Results, tmp_path: Path
) -> None:
    page = results.report(tmp_path).read_text(encoding="utf-8")
    assert "What else is inferred" in page
    assert "matching rate" in page


def test_membership_needs_others_and_a_copy_is_asked_by_kind(cohort: Cohort) -> None:
    with pytest.raises(ParameterError, match="gazeveil attack --kind membership"):
        attacker("membership")
    with pytest.raises(ParameterError, match="--kind"):
        study_of_copy(cohort, cohort, ("record-linkage",))


def _is(mechanism: str, metric: str) -> pl.Expr:
    return (pl.col("mechanism") == mechanism) & (pl.col("metric") == metric)
