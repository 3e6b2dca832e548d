"""Running studies: what attackers and analysts are handed, and what their figures are.

Recordings that allow no attack: one sentence, whoever asks and however, and no traceback.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.attacks.base import Attack
from gazeveil.attacks.registry import battery
from gazeveil.errors import DataError
from gazeveil.evaluation.releases import protect
from gazeveil.evaluation.run import evaluate, run, study_of_copy
from gazeveil.evaluation.study import FRAME, OUTCOMES, Study
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.registry import mechanism
from tests.support.command_line import heard
from tests.support.small_attacks import (
    SEEN,
    Blackout,
    Buggy,
    Deadly,
    Duration,
    Learning,
    Place,
    Refusing,
    Shift,
    Spy,
    Twin,
)

NOISE = "gaussian:sigma_deg=3"


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 4, 2.0, 60.0, seed=5).load()


def small(
    cohort: Cohort, *attacks: Attack | str, **more: Any
) -> gazeveil.evaluation.results.Results:  # type: ignore[name-defined]
    return evaluate(
        cohort,
        **{"attacks": attacks, "repetitions": 1, "executor": 1, "mechanisms": [NOISE], **more},
    )


def handed(
    cohort: Cohort, attack: Attack, scenario: str, **more: Any
) -> tuple[RecordingSet, RecordingSet]:
    SEEN.clear()
    small(cohort, attack, scenarios=[scenario], **more)
    return SEEN[-1]


def samples(recording_set: RecordingSet) -> dict[tuple[str, ...], np.ndarray]:
    return {r.key: r.x_deg for r in recording_set.cohort}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


# --- what attackers and analysts are handed
# --------------------------------------------------------------------------------------------------


def test_the_baseline_is_there_without_mechanisms_and_the_columns_are_those_of_the_design(
    cohort: Cohort,
) -> None:
    results = small(cohort, Place(), mechanisms=[])
    assert results.frame.columns == list(FRAME)
    assert results.outcomes.columns == list(OUTCOMES)
    row = results.frame.row(0, named=True)
    assert (
        row["mechanism"],
        row["reading"],
        row["parameters"],
        row["scenario"],
        row["utility"],
    ) == ("none", "", "", "raw/raw", None)
    assert row["attack"] == "place"
    assert row["metric"] == "identification_rate"
    assert row["n"] == 4
    assert row["chance"] == 0.25
    assert row["low"] <= row["value"] <= row["high"]
    assert results.frame["metric"].to_list() == [
        "identification_rate",
        "rank1",
        "matching_rate",
        "eer",
        "d_prime",
        "f1_macro",
    ]


@pytest.mark.parametrize(
    "scenario", ["private/raw", "raw/private", "private/private", "release/release"]
)
def test_each_scenario_hands_out_what_its_name_says(cohort: Cohort, scenario: str) -> None:
    gallery, probe = (samples(m) for m in handed(cohort, Spy(), scenario))
    raw = {r.key: r.x_deg for r in cohort}
    for side, word in ((gallery, scenario.split("/")[0]), (probe, scenario.split("/")[1])):
        assert all(same(x, raw[k]) == (word == "raw") for k, x in side.items())
    assert not {k[1] for k in gallery} & {k[1] for k in probe}
    assert len({k[1] for k in gallery}) == 3
    assert {k[0] for k in gallery} == {k[0] for k in probe} == {"p1", "p2", "p3", "p4"}


def test_two_private_sides_are_independent_releases_and_release_release_is_one(
    cohort: Cohort,
) -> None:
    # The twin is matched on all recordings, so the same recording is on both sides and its noise
    # can be compared.
    first, second = (samples(m) for m in handed(cohort, Twin(), "private/private"))
    assert set(first) == set(second) == set(cohort.keys)
    assert all(not same(first[k], second[k]) for k in first)
    SEEN.clear()
    small(cohort, Spy(), scenarios=["private/private", "release/release"])
    (_, two), (_, one) = SEEN[-2:]
    (gallery_of_two, _), (gallery_of_one, _) = SEEN[-2:]
    assert all(same(samples(gallery_of_two)[k], x) for k, x in samples(gallery_of_one).items())
    assert all(not same(samples(two)[k], x) for k, x in samples(one).items())


def test_noise_differs_from_repetition_to_repetition_and_from_seed_to_seed(cohort: Cohort) -> None:
    drawn = []
    for seed in (0, 1):
        SEEN.clear()
        small(cohort, Twin(), scenarios=["raw/private"], repetitions=2, seed=seed)
        drawn += [
            samples(probe)
            for _, probe in SEEN
            if probe.cohort is not None and not same(probe.cohort[0].x_deg, cohort[0].x_deg)
        ]
    assert len(drawn) == 4
    key = cohort[0].key
    assert len({d[key].tobytes() for d in drawn}) == 4


def test_a_part_of_a_release_is_the_same_whether_the_whole_was_made_or_not(cohort: Cohort) -> None:
    _, alone = handed(cohort, Spy(), "raw/private")
    _, beside = handed(cohort, Spy(), "raw/private", utilities=[Shift()])
    assert {k: x.tobytes() for k, x in samples(alone).items()} == {
        k: x.tobytes() for k, x in samples(beside).items()
    }


def test_a_white_box_attacker_learns_from_releases_it_made_itself(cohort: Cohort) -> None:
    gallery, probe = handed(cohort, Spy(knowledge="white-box", draws=3), "raw/private")
    assert len(gallery.keys) == 3 * 12
    raw = {r.key: r.x_deg for r in cohort}
    got = samples(gallery)
    first = [k for k in got if "~" not in k[2]]
    for key in first:
        draws = [got[key], *(got[key[0], key[1], f"{key[2]}~{i}", key[3]] for i in (1, 2))]
        assert len({d.tobytes() for d in (*draws, raw[key])}) == 4
    assert not {k[1] for k in first} & {k[1] for k in probe.keys}
    # A small utility run shows that tables of the pile are there: one per draw, each found again on
    # its own samples.
    assert set(gallery.fixations.recordings()) <= set(gallery.keys)


def test_an_attacker_with_exemplars_holds_a_quarter_of_the_gallery_in_protected_form_too(
    cohort: Cohort,
) -> None:
    gallery, _ = handed(cohort, Spy(knowledge="exemplars"), "raw/private")
    raw = {r.key: r.x_deg for r in cohort}
    got = samples(gallery)
    protected = [k for k in got if k[2].endswith("~1")]
    assert len(got) == 15
    assert len(protected) == 3
    assert all(same(got[k], raw[k]) for k in got if k not in protected)
    assert not any(same(got[k], raw[k[0], k[1], k[2][:-2], k[3]]) for k in protected)


def test_a_denoiser_filters_both_sides(cohort: Cohort) -> None:
    raw = {r.key: r for r in cohort}

    def error(recording_set: RecordingSet) -> float:
        off = [
            np.abs((r.y_deg - raw[r.key].y_deg)[r.valid & raw[r.key].valid])
            for r in recording_set.cohort
        ]
        return float(np.mean(np.concatenate(off)))

    one = error(handed(cohort, Spy(), "raw/private")[1])
    filtered, alike = (error(m) for m in handed(cohort, Spy(denoiser="lowpass"), "private/private"))
    assert filtered < 0.9 * one
    assert alike < 0.9 * one


def test_halves_of_one_recording_meet(cohort: Cohort) -> None:
    gallery, probe = handed(cohort, Spy(), "release/release", split="halves")
    assert set(gallery.keys) == set(probe.keys) == set(cohort.keys)
    for a, b in zip(gallery.cohort, probe.cohort, strict=True):
        assert len(a) + len(b) == 120
        assert a.t_ns[-1] < b.t_ns[0]


def test_carried_events_are_those_of_the_raw_samples(cohort: Cohort) -> None:
    raw, _ = handed(cohort, Spy(), "raw/private")
    _, found_again = handed(cohort, Spy(), "raw/private")
    _, carried = handed(cohort, Spy(), "raw/private", events=["carried"])
    whole = RecordingSet(cohort, None, FeaturePipeline())
    counts = {k: len(rows) for k, rows in whole.fixations.recordings().items()}
    assert {k: len(rows) for k, rows in carried.fixations.recordings().items()} == {
        k: n for k, n in counts.items() if k in carried.keys
    }
    assert {k: len(rows) for k, rows in found_again.fixations.recordings().items()} != {
        k: n for k, n in counts.items() if k in found_again.keys
    }
    assert len(raw.keys) == 12


def test_corrected_k_same_has_one_partition_for_fixations_and_saccades_and_published_has_not() -> (
    None
):
    people = gazeveil.simulate(8, 3, 6.0, 120.0, seed=2).load()
    raw = RecordingSet(people)

    def groups(recording_set: RecordingSet, table: str) -> frozenset[frozenset[str]]:
        found: dict[bytes, set[str]] = {}
        for (person, *_), rows in recording_set.table(table).recordings().items():
            found.setdefault(recording_set.table(table).values[rows[0]].tobytes(), set()).add(
                person
            )
        return frozenset(frozenset(g) for g in found.values())

    one = protect(raw, mechanism("k-same-select:k=2"), 3)
    assert groups(one, "fixation") == groups(one, "saccade")
    published = protect(raw, mechanism("k-same-select:k=2,reading=published"), 3)
    assert groups(published, "fixation") != groups(published, "saccade")
    # Noise is never shared between tables.
    noisy = protect(raw, mechanism("lpa:epsilon=1"), 3)
    fixations, saccades = (noisy.table(t).values[:20, 0] for t in ("fixation", "saccade"))
    assert not np.array_equal(np.argsort(fixations), np.argsort(saccades))


def test_tables_of_windows_are_protected_where_a_study_says_so(cohort: Cohort) -> None:
    class Windows(Spy):
        name = "windows"
        needs = ("window",)

    preparation = FeaturePipeline(window_s=1.0, step_s=0.25)
    gallery, probe = handed(
        cohort,
        Windows(),
        "private/private",
        mechanisms=["lpa:epsilon=1"],
        tables="windows",
        preparation=preparation,
    )
    assert set(gallery.tables) == set(probe.tables) == {"window"}
    assert gallery.cohort is None
    assert len(gallery.windows)


def test_utilities_get_whole_materials_and_the_scenario_where_they_train(cohort: Cohort) -> None:
    results = small(
        cohort,
        utilities=[Shift(), Learning()],
        attacks=[],
        scenarios=["private/raw", "private/private"],
        repetitions=2,
    )
    rows = {
        (r["mechanism"], r["utility"], r["scenario"]): r
        for r in results.frame.iter_rows(named=True)
    }
    assert rows["none", "shift", "raw/raw"]["value"] == 0.0
    assert rows["none", "shift", "raw/raw"]["repetitions"] == 1
    assert rows["gaussian", "shift", "raw/private"]["value"] > 0
    assert rows["gaussian", "learning", "private/raw"]["value"] == 0.0
    assert rows["gaussian", "learning", "private/private"]["value"] > 0
    assert set(results.outcomes["part"]) == {"p1", "p2", "p3", "p4"}
    assert results.outcomes["attack"].null_count() == results.outcomes.height


def test_what_a_mechanism_promises_is_quoted_as_of_a_real_release_and_examples_are_there(
    cohort: Cohort,
) -> None:
    results = small(
        cohort,
        Place(),
        mechanisms=[NOISE, "k-same-select:k=2"],
        scenarios=["private/raw"],
        attacks=[Duration()],
    )
    promised = {g["mechanism"].split(":")[0]: g for g in results.guarantees}
    assert promised["gaussian"]["status"] == promised["k-same-select"]["status"] == "proved"
    assert "2 tables are released" in promised["k-same-select"]["sentence"]
    traces: Any = results.examples["traces"]
    assert list(traces) == ["none", str(mechanism(NOISE))]
    assert all(np.shape(t["x_deg"]) == np.shape(t["t_s"]) for t in traces.values())
    maps: Any = results.examples["maps"]
    assert all(abs(np.sum(m) - 1) < 1e-3 and np.shape(m) == (90, 180) for m in maps.values())
    assert results.examples["extent"] == [0.0, 360.0, 0.0, 180.0]


# --- figures
# --------------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_outcomes(cohort: Cohort) -> None:
    results = small(cohort, Place(), repetitions=4, scenarios=["raw/private"])
    parts = results.outcomes.filter(mechanism="gaussian")
    row = results.frame.filter(mechanism="gaussian", metric="identification_rate").row(
        0, named=True
    )
    assert row["value"] == pytest.approx(parts["value"].mean())
    assert row["sd"] == pytest.approx(
        parts.group_by("repetition").agg(pl.col("value").mean())["value"].std()
    )
    found = parts.filter(pl.col("answer") == pl.col("part"))
    assert found["value"].to_list() == [1.0] * found.height
    assert set(found["beaten_by"]) == {0}
    assert (parts.filter(value=0.0)["beaten_by"] > 0).all()


def test_people_shuffled_within_each_stimulus_are_found_by_chance() -> None:
    # Each person looks somewhat higher or lower than the others, which nobody can miss.
    seen = gazeveil.simulate(10, 6, 2.0, 60.0, seed=8)
    people = Cohort(
        [
            r.with_(
                x_deg=r.x_deg / 10,
                y_deg=np.where(r.valid, r.y_deg / 10 + 14 * int(r.person[1:]), r.y_deg),
            )
            for r in seen
        ]
    )
    rng = np.random.default_rng(1)
    names = sorted(people.people)
    shuffled = {
        s: dict(zip(names, rng.permutation(names).tolist(), strict=True)) for s in people.stimuli
    }
    null = Cohort([r.with_(person=shuffled[r.stimulus][r.person]) for r in people])
    rates = [
        small(c, Place(), mechanisms=[], repetitions=10).frame.row(0, named=True)
        for c in (people, null)
    ]
    assert rates[0]["value"] > 0.8
    assert rates[0]["p_value"] < 0.001
    assert rates[1]["value"] < 0.25
    assert rates[1]["p_value"] > 0.01  # one study of twenty is below 0.05


def test_a_release_without_a_valid_sample_is_a_guess_and_not_a_crash(cohort: Cohort) -> None:
    results = small(
        cohort,
        Place(),
        Duration(),
        mechanisms=[Blackout()],
        scenarios=["raw/private", "private/private"],
    )
    rows = results.frame.filter(mechanism="blackout", metric="identification_rate")
    assert rows.height + len(results.failures) == 4
    assert rows.filter(scenario="private/private")["value"].to_list() == [0.25, 0.25]


# --- broken cells
# --------------------------------------------------------------------------------------------------


def test_a_broken_cell_is_reported_and_stops_nothing_else(cohort: Cohort) -> None:
    results = small(
        cohort,
        Refusing(),
        Place(),
        Buggy(),
        mechanisms=[NOISE, "k-same-select:k=9"],
        attacks=[Refusing(), Place(), Buggy(), Duration()],
    )
    sentences = {f["cell"].split(",")[0]: f["sentence"] for f in results.failures}
    assert sentences["refusing"] == "There is nothing to learn from here."
    assert sentences["buggy"] == "This is a bug: ZeroDivisionError: by a careless author"
    assert any("k-same-select" in f["cell"] and "9" in f["sentence"] for f in results.failures)
    rates = results.frame.filter(metric="identification_rate")
    assert set(zip(rates["mechanism"], rates["attack"], strict=True)) == {
        ("none", "place"),
        ("none", "duration"),
        ("gaussian", "place"),
        ("gaussian", "duration"),
    }


def test_a_study_without_a_single_figure_says_why(cohort: Cohort) -> None:
    with pytest.raises(
        DataError,
        match=r"No cell of the study could be computed\. There is nothing to learn from here",
    ):
        small(cohort, Refusing())


def test_broken_cells_are_tried_again(cohort: Cohort, tmp_path: Path) -> None:
    attack = Deadly(file=str(tmp_path / "deaths"), lives=0)
    first = evaluate(cohort, [], [Place(), attack], repetitions=2, executor=1, out=tmp_path / "o")
    cells = sorted((tmp_path / "o" / "cells").glob("*.json"))
    cells[0].write_text("{")  # a disk that failed
    again = evaluate(cohort, [], [Place(), attack], repetitions=2, executor=1, out=tmp_path / "o")
    assert again.study["times"]["computed"] == 1  # type: ignore[index]
    assert again.frame.equals(first.frame)


def test_progress_counts_every_cell(cohort: Cohort) -> None:
    seen: list[tuple[int, int]] = []
    small(cohort, Place(), progress=lambda done, all_: seen.append((done, all_)))
    assert seen[0] == (0, 5)
    assert seen[-1] == (5, 5)
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)


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
