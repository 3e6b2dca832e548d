"""Recordings that allow no attack: one sentence, whoever asks and however, and no traceback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.registry import battery
from gazeveil.errors import DataError
from gazeveil.evaluation.run import run, study_of_copy
from gazeveil.evaluation.study import Study
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from tests.support.command_line import heard
from tests.support.small_attacks import Place

RECORDINGS = tuple(gazeveil.simulate(4, 3, 2.0, 60.0, seed=1).load())
STIMULI = tuple(dict.fromkeys(r.stimulus for r in RECORDINGS))


def lost(recording: Recording) -> Recording:
    nothing = np.full(len(recording), np.nan)
    valid = np.zeros(len(recording), dtype=np.bool_)
    return recording.with_(valid=valid, x_deg=nothing, y_deg=nothing)


def events_alone(recording: Recording) -> Recording:
    """Fixations with times and places and no samples, as some datasets publish them."""
    nowhere, fixed = np.full(2, -1), np.array([0, 250_000_000])
    middle = float(recording.x_deg[0]), float(recording.y_deg[0])
    events = Events(
        np.array(["fixation"] * 2),
        nowhere,
        nowhere,
        fixed,
        fixed + 200_000_000,
        np.full(2, middle[0]),
        np.full(2, middle[1]),
    )
    return recording.slice(0, 0).with_(events=events)


def those(keep: Callable[[Recording], bool]) -> Cohort:
    return Cohort([r for r in RECORDINGS if keep(r)])


def with_gaze(keep: Callable[[Recording], bool]) -> Cohort:
    return Cohort([r if keep(r) else lost(r) for r in RECORDINGS])


def slower(which: Callable[[Recording], bool]) -> Cohort:
    return Cohort([r.resample(30.0) if which(r) else r for r in RECORDINGS])


#: What is wrong -> recordings, what `evaluate` says, what `attack` says (else the same).
BAD: dict[str, tuple[Cohort, str, str]] = {
    "one person": (
        those(lambda r: r.person == "p1"),
        "at least two people to tell apart, and the study has 1. Add recordings of other people.",
        "have 1 person in common, and at least two are needed",
    ),
    "one stimulus": (
        those(lambda r: r.stimulus == STIMULI[0]),
        "needs at least two people who saw at least two stimuli, and none of the 4 people did",
        "",
    ),
    "one recording of each person": (
        those(lambda r: r.stimulus == STIMULI[int(r.person[1:]) % 3]),
        "none of the 4 people did. Use split = 'halves'",
        "",
    ),
    "several recordings of one person alone": (
        those(lambda r: r.person == "p1" or r.stimulus == STIMULI[0]),
        "needs at least two people who saw at least two stimuli, and 1 of the 4 people did",
        "",
    ),
    "all samples lost": (
        with_gaze(lambda r: False),
        "All gaze of the study's 12 recordings is lost: none has two valid samples.",
        "All gaze of the copy is lost: none of its 12 recordings has two valid samples.",
    ),
    "recordings without samples": (
        Cohort([r.slice(0, 0) for r in RECORDINGS]),
        "All gaze of the study's 12 recordings is lost",
        "All gaze of the copy is lost",
    ),
    "gaze of one person": (
        with_gaze(lambda r: r.person == "p2"),
        "at least two people with valid gaze to tell apart, and the study has 1.",
        "The copy has valid gaze of one person",
    ),
    "gaze in one stimulus": (
        with_gaze(lambda r: r.stimulus == STIMULI[1]),
        "none of the 4 people with valid gaze did",
        "",
    ),
}


def study_of(cohort: Cohort) -> Study:
    return Study(cohort, (), (Place(),), repetitions=1)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, _, told = heard(capsys, *arguments)
    assert code == 2
    assert "Traceback" not in told
    return told


@pytest.mark.parametrize("case", BAD)
def test_recordings_that_allow_no_attack_are_one_sentence_at_every_entry(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, sentence, of_copy = BAD[case]
    folder = cohort.write(tmp_path / "recordings") or tmp_path / "recordings"
    with pytest.raises(DataError) as refused:
        gazeveil.evaluate(cohort, ["gaussian:sigma_deg=2"], executor=1)
    assert sentence in str(refused.value)
    with pytest.raises(DataError) as refused:
        run(study_of_copy(cohort, cohort, ("strong",)), executor=1)
    assert (of_copy or sentence) in str(refused.value)
    out = tmp_path / "out"
    assert sentence in said(capsys, "evaluate", folder, "--out", out, "--workers", 1)
    assert not (out / "results.parquet").exists()
    assert (of_copy or sentence) in said(capsys, "attack", folder, folder, "--workers", 1)


def test_people_whose_gaze_is_lost_do_not_stop_the_others() -> None:
    cohort = with_gaze(lambda r: r.person in ("p1", "p3"))
    results = run(study_of(cohort), executor=1)
    assert set(results.frame["n"]) == {4}  # whoever has no gaze is a guess, and counts


def test_utilities_alone_need_no_people_to_tell_apart_but_gaze() -> None:
    alone = those(lambda r: r.person == "p1")
    done = gazeveil.evaluate(alone, attacks="none", utilities=["density"], executor=1)
    assert set(done.frame["utility"]) == {"density"}
    with pytest.raises(DataError, match="All gaze of the study's 12 recordings is lost"):
        gazeveil.evaluate(with_gaze(lambda r: False), (), "none", ["density"], executor=1)


def test_fixations_without_samples_are_measured_and_not_attacked() -> None:
    fixations = Cohort([events_alone(r) for r in RECORDINGS])
    with pytest.raises(DataError, match="hold events and no samples, and attackers look at sam"):
        gazeveil.evaluate(fixations, executor=1)
    done = gazeveil.evaluate(fixations, attacks="none", utilities=["density"], executor=1)
    assert set(done.frame["utility"]) == {"density"}


@pytest.mark.parametrize(
    ("cohort", "words"),
    [
        (slower(lambda r: r.person in ("p1", "p2")), "from person to person (30 to 60 Hz)"),
        (slower(lambda r: r.stimulus == STIMULI[0]), "from recording to recording (30 to 60 Hz)"),
    ],
)
def test_rates_that_differ_are_one_sentence_and_stand_in_the_results(
    cohort: Cohort, words: str
) -> None:
    study = study_of(cohort)
    with pytest.warns(UserWarning, match="sampling rates of the recordings differ") as told:
        results = run(study, executor=1)
    assert len(told) == 1
    assert words in str(told[0].message)
    assert results.study["notes"] == [str(told[0].message)]
    from gazeveil.evaluation.report.findings import Findings
    from gazeveil.evaluation.report.sections import method

    assert words in " ".join(method(Findings(results))["notes"])


def test_rates_of_one_tracker_are_not_said_to_differ() -> None:
    cohort = Cohort([r.with_(rate_hz=60.0 + i / 3) for i, r in enumerate(RECORDINGS)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = run(study_of(cohort), executor=1)
    assert results.study["notes"] == []


def test_the_smallest_study_runs_with_the_strong_battery() -> None:
    two = gazeveil.simulate(2, 2, 3.0, 60.0, seed=1)
    results = gazeveil.evaluate(two, ["gaussian:sigma_deg=2"], repetitions=1, executor=1)
    assert {a for a in results.frame["attack"] if a} <= set(battery("strong"))
    assert not any("bug" in f["sentence"] for f in results.failures)
