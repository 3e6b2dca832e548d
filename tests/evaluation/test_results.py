"""Results: the form others build on, what they say of the strongest attacker, and that they come
back from disk as they were.

Releases of pieces in a study: what attackers are handed, and whose credit is counted.

A release that leaves nothing to learn from: attackers guess, and the study says so.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.attacks.result import paired_interval, people_interval, rate_result
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.evaluation.results import Results, canonical, frame_of, outcomes_of
from gazeveil.evaluation.run import evaluate
from gazeveil.evaluation.study import RATE
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from tests.support.pieces import RawPieces, jumpers
from tests.support.small_attacks import SEEN, Place, Spy

CELL = {
    "mechanism": "gaussian",
    "reading": "corrected",
    "parameters": "sigma_deg=10",
    "events": "redetected",
    "scenario": "raw/private",
}


def row(attack: str, value: float, **more: Any) -> dict[str, Any]:
    return {
        "cohort": "c",
        **CELL,
        "attack": attack,
        "metric": RATE,
        "value": value,
        "n": 10,
        "chance": 0.1,
        **more,
    }


def outcome(attack: str, person: str, repetition: int, value: float, **more: Any) -> dict[str, Any]:
    return {
        **CELL,
        "attack": attack,
        "metric": RATE,
        "repetition": repetition,
        "part": person,
        "value": value,
        **more,
    }


@pytest.fixture
def results() -> Results:
    rows = [
        row("rbfn", 0.1),
        row("linkage", 0.5),
        row("forest", 0.5),
        row("linkage", 0.9, scenario="release/release"),
        row("rbfn", 0.3, scenario="private/private"),
        row("linkage", float("nan"), scenario="private/private"),
        row("linkage", 0.99, mechanism="none", reading="", parameters="", scenario="raw/raw"),
        row("fpa-only", 1.0, mechanism="fpa", scenario="release/release"),
        {"cohort": "c", **CELL, "utility": "saliency", "metric": "kl", "value": 3.0},
    ]
    outcomes = [
        outcome(a, p, r, v)
        for a, p, r, v in (
            ("linkage", "x", 0, 1.0),
            ("linkage", "x", 1, 0.0),
            ("linkage", "y", 0, 1.0),
            ("linkage", "y", 1, 1.0),
        )
    ]
    outcomes += [
        outcome(a, p, r, 0.0)
        for a, p, r in (
            ("rbfn", "x", 0),
            ("rbfn", "x", 1),
            ("rbfn", "y", 0),
            ("rbfn", "y", 1),
            ("rbfn", "z", 0),
        )
    ]
    outcomes.append(
        {
            **CELL,
            "utility": "saliency",
            "metric": "kl",
            "repetition": 0,
            "part": "clip",
            "value": 3.0,
        }
    )
    trace = {
        "t_s": np.arange(3.0),
        "x_deg": np.array([1.0, np.nan, 2.0]),
        "valid": np.array([True, False, True]),
    }
    examples = {
        "traces": {"none": trace},
        "maps": {"gaussian:sigma_deg=10,reading=corrected": np.eye(3)},
        "title": "a, b",
        "space": "sphere",
        "extent": (0, 360, 0, 180),
    }
    promise = {
        "mechanism": "gaussian:sigma_deg=10,reading=corrected",
        "sentence": "It promises.",
        "status": "proved",
        "definition": "rho-zcdp",
        "unit": "window",
    }
    study: dict[str, object] = {
        "name": "n",
        "seed": 1,
        "failures": [{"cell": "c", "sentence": "It broke."}],
        "times": {"took": "3 seconds"},
    }
    return Results(frame_of(rows), outcomes_of(outcomes), (promise,), examples, study)


def test_the_strongest_attacker_is_the_one_that_finds_the_most_people_in_each_cell(
    results: Results,
) -> None:
    best = {
        (r["mechanism"], r["scenario"]): (r["attack"], r["value"])
        for r in results.strongest().iter_rows(named=True)
    }
    assert best == {
        ("gaussian", "raw/private"): ("forest", 0.5),  # of equal ones the first by name
        ("gaussian", "release/release"): ("linkage", 0.9),
        ("gaussian", "private/private"): ("rbfn", 0.3),
        ("none", "raw/raw"): ("linkage", 0.99),
        ("fpa", "release/release"): ("fpa-only", 1.0),
    }


def test_the_worst_case_counts_one_release_split_afterwards_only_where_there_is_nothing_else(
    results: Results,
) -> None:
    worst = {
        r["mechanism"]: (r["scenario"], r["value"])
        for r in results.worst_case().iter_rows(named=True)
    }
    assert worst == {
        "gaussian": ("raw/private", 0.5),
        "none": ("raw/raw", 0.99),
        "fpa": ("release/release", 1.0),
    }


def test_attackers_are_compared_person_by_person_on_the_people_both_were_asked_about(
    results: Results,
) -> None:
    frame = results.paired("linkage", "rbfn")
    assert frame.height == 1
    found = frame.row(0, named=True)
    wanted = paired_interval([0.5, 1.0], [0.0, 0.0])
    assert (found["difference"], found["low"], found["high"]) == pytest.approx(wanted)
    assert (found["first"], found["second"], found["n"]) == (0.75, 0.0, 2)
    back = results.paired("rbfn", "linkage").row(0, named=True)
    assert (back["difference"], back["low"], back["high"]) == pytest.approx(
        (-wanted[0], -wanted[2], -wanted[1])
    )
    with pytest.raises(ParameterError, match="Did you mean 'linkage'"):
        results.paired("linkag", "rbfn")


def test_results_come_back_from_disk_as_they_were_and_are_written_in_the_same_bytes(
    results: Results, tmp_path: Path
) -> None:
    first = results.write(tmp_path / "a")
    back = Results.read(first)
    assert back.frame.equals(results.frame)
    assert back.outcomes.equals(results.outcomes)
    assert back.guarantees == results.guarantees
    assert back.study == results.study
    assert back.failures == ({"cell": "c", "sentence": "It broke."},)
    traces: Any = back.examples["traces"]
    np.testing.assert_array_equal(traces["none"]["x_deg"], [1.0, np.nan, 2.0])
    assert traces["none"]["valid"] == [True, False, True]
    assert back.examples["extent"] == [0, 360, 0, 180]
    assert back.examples["title"] == "a, b"
    second = back.write(tmp_path / "b")
    for name in ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert "3 seconds" not in (first / "study.json").read_text()


def test_numbers_that_are_not_there_are_null_and_never_nan(results: Results) -> None:
    assert results.frame["value"].null_count() == 1
    assert not results.frame["value"].is_nan().any()


def test_a_folder_that_is_not_whole_is_refused_in_one_sentence(
    results: Results, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=r"it holds no results\.parquet"):
        Results.read(tmp_path)
    folder = results.write(tmp_path / "a")
    (folder / "study.json").write_text("{")
    with pytest.raises(FormatError, match="cannot be read"):
        Results.read(folder)
    with pytest.raises(DataError, match="no column 'value'"):
        Results(frame_of([]).drop("value"))
    with pytest.raises(ParameterError, match="Did you mean 'metric'"):
        frame_of([{"metrik": "kl"}])


def compared(network: list[list[float]], others: dict[str, list[list[float]]]) -> dict[str, Any]:
    """The row of one release: credit by attack, repetition and person, among 24 people."""
    credit = {"rbfn": network, **others}
    rows, outcomes = [], []
    for attack, repetitions in credit.items():
        rate = rate_result(RATE, float(np.mean(repetitions)), 24, 1 / 24)
        more = {"low": rate.low, "high": rate.high, "p_value": rate.p_value}
        rows.append(row(attack, rate.value, n=24, chance=1 / 24, **more))
        outcomes += [
            outcome(attack, f"p{p}", r, v, answer=f"p{p}" if v else f"p{(p + 5) % 24}")
            for r, people in enumerate(repetitions)
            for p, v in enumerate(people)
        ]
    found: dict[str, Any] = (
        Results(frame_of(rows), outcomes_of(outcomes)).strongest_against().row(0, named=True)
    )
    return found


def found_of(*counts: int) -> list[list[float]]:
    return [[float(person < count) for person in range(24)] for count in counts]


def test_the_strongest_attacker_stands_beside_the_network_person_by_person() -> None:
    seen = compared(found_of(1, 1, 1), {"linkage": found_of(9, 9, 9), "lda": found_of(2, 2, 2)})
    assert (seen["strongest"], seen["tried"], seen["other"]) == ("linkage", 3, "rbfn")
    assert seen["difference"] == pytest.approx(8 / 24)
    # Eight people differ by 1, sixteen by nothing: Student's t with 23 degrees of freedom.
    half = 2.0687 * np.std([1] * 8 + [0] * 16, ddof=1) / 24**0.5
    assert seen["difference_low"] == pytest.approx(8 / 24 - half, abs=1e-4)
    assert seen["difference_high"] == pytest.approx(8 / 24 + half, abs=1e-4)
    # The same attacker is the strongest in every repetition: choosing adds nothing.
    assert seen["chosen"] == seen["value"] == pytest.approx(9 / 24)
    assert seen["called_safe"]


@pytest.mark.parametrize(
    ("network", "strongest", "called"),
    [(3, 4, True), (4, 20, False), (3, 3, False), (0, 0, False)],  # 4 of 24 is above guessing
)
def test_the_network_calls_safe_what_it_does_not_find(
    network: int, strongest: int, called: bool
) -> None:
    seen = compared(found_of(network, network), {"linkage": found_of(strongest, strongest)})
    assert seen["called_safe"] is called


def test_what_choosing_adds_is_taken_away_on_other_repetitions() -> None:
    # Each of two attackers is lucky once. The largest mean is 6 of 24, and whoever is the strongest
    # on the other repetition finds 2.
    seen = compared(found_of(1, 1), {"linkage": found_of(10, 2), "lda": found_of(2, 9)})
    assert seen["value"] == pytest.approx(6 / 24)
    assert seen["chosen"] == pytest.approx(2 / 24)
    assert seen["difference"] == pytest.approx(1 / 24)


def test_what_the_network_calls_safe_is_counted_over_all_releases_and_cohorts() -> None:
    rows, outcomes = [], []
    cells = {("a", "gaussian"): 9, ("b", "gaussian"): 2, ("b", "temporal"): 12, ("b", "none"): 20}
    for (cohort, mechanism), found in cells.items():
        own = {"mechanism": mechanism}
        for attack, count in (("rbfn", 1), ("linkage", found)):
            rate = rate_result(RATE, count / 24, 24, 1 / 24)
            more = {"p_value": rate.p_value, "n": 24, "chance": 1 / 24, "cohort": cohort}
            rows.append({**row(attack, rate.value), **more, **own})
            outcomes += [
                outcome(
                    attack,
                    f"p{p}",
                    r,
                    float(p < count),
                    answer=f"p{p if p < count else (p + 5) % 24}",
                    **own,
                )
                for r in range(2)
                for p in range(24)
            ]
    cohorts = [c for (c, _) in cells for _ in range(2 * 2 * 24)]
    several = outcomes_of(outcomes).with_columns(pl.Series("cohort", cohorts))
    counts = Results(frame_of(rows), several).called_safe()
    # Unprotected gaze is no release; 2 of 24 is no better than chance.
    assert counts == {"releases": 3, "called_safe": 2}


def test_a_comparison_without_the_network_or_with_one_repetition_says_what_it_can(
    results: Results,
) -> None:
    alone = compared(found_of(2), {"linkage": found_of(8)})
    # One repetition gives no verdict.
    assert alone["chosen"] is alone["p_value"] is alone["called_safe"] is None
    rows = {r["mechanism"]: r for r in results.strongest_against().iter_rows(named=True)}
    assert (rows["fpa"]["other"], rows["fpa"]["called_safe"]) == (None, None)
    assert rows["none"]["strongest"] == "linkage"
    # Of the network every scenario counts, and its best one stands in the row.
    assert (rows["gaussian"]["other_scenario"], rows["gaussian"]["other_value"]) == (
        "private/private",
        0.3,
    )
    assert Results(frame_of([])).strongest_against().height == 0


def test_equal_values_have_equal_text_and_nan_has_none() -> None:
    assert canonical({"b": 1, "a": [1.5, None]}) == canonical({"a": [1.5, None], "b": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})


#: Each order in a fork of its own; what they share is imported once.
_ORDERS = """
import os, sys
import matplotlib, numpy, polars, scipy.stats
for first in sys.argv[1:]:
    if os.fork() == 0:
        exec("import gazeveil; " + first)
        from gazeveil import evaluate
        from gazeveil.evaluation.study import RATE
        assert callable(gazeveil.evaluate) and evaluate is gazeveil.evaluate, first
        os._exit(0)
    assert os.wait()[1] == 0, first
"""


def test_the_function_and_the_package_of_one_name_do_not_hide_one_another() -> None:
    orders = ("import gazeveil.evaluation.results", "gazeveil.evaluate")
    subprocess.run([sys.executable, "-c", _ORDERS, *orders], check=True)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return jumpers(6, 4)


def study(cohort: Cohort, *attacks: object, **more: object) -> Results:
    given = {"mechanisms": [RawPieces()], "repetitions": 1, "executor": 1, **more}
    return evaluate(cohort, attacks=attacks, **given)  # type: ignore[arg-type]


def handed(cohort: Cohort, scenario: str, **more: object) -> tuple[RecordingSet, RecordingSet]:
    SEEN.clear()
    study(cohort, Spy(), scenarios=[scenario], **more)
    return SEEN[-1]


def shown(part: RecordingSet) -> set[str]:
    return {w.stimulus for w in part.piece_windows.values()}


def test_an_attacker_learns_people_and_is_asked_about_pieces_of_other_stimuli(
    cohort: Cohort,
) -> None:
    gallery, probe = handed(cohort, "private/private")
    assert gallery.persons == tuple(cohort.people)
    assert len(gallery.keys) == 6 * 3 * 3
    assert len(probe.persons) == len(probe.keys) == 6 * 3
    assert not set(probe.persons) & set(cohort.people)
    assert not shown(gallery) & shown(probe)
    assert gallery.origins is None
    assert probe.origins is None


def test_raw_recordings_are_cut_like_the_release_where_an_attacker_holds_them(
    cohort: Cohort,
) -> None:
    gallery, probe = handed(cohort, "raw/private")
    assert gallery.persons == tuple(cohort.people)
    assert len(gallery.keys) == 6 * 3 * 3
    assert len(probe.persons) == 6 * 3
    gallery, probe = handed(cohort, "private/raw")
    assert probe.persons == tuple(cohort.people)
    assert len(probe.keys) == 6 * 3


def test_halves_of_pieces_are_earlier_and_later_windows(cohort: Cohort) -> None:
    gallery, probe = handed(cohort, "private/private", split="halves")
    early, late = (
        {w.window for w in (part.piece_windows or {}).values()} for part in (gallery, probe)
    )
    assert early == {0, 1}
    assert late == {2}


def test_results_count_people_and_say_that_each_piece_is_asked_about_by_itself(
    cohort: Cohort,
) -> None:
    results = study(cohort, Place(), scenarios=["private/private", "release/release"])
    rows = results.frame.filter(mechanism="raw-pieces", metric="identification_rate")
    assert rows["n"].to_list() == [6, 6]
    assert rows["chance"].to_list() == [1 / 6] * 2
    assert all("each piece by itself" in note for note in rows["note"])
    outcomes = results.outcomes.filter(mechanism="raw-pieces", scenario="private/private")
    assert outcomes["part"].to_list() == list(cohort.people)
    # Three pieces each: thirds.
    assert set((outcomes["value"] * 3).round(6).to_list()) <= {0.0, 1.0, 2.0, 3.0}
    # Shares of people have an interval over people's shares, which is narrower than over counts.
    shares = outcomes["value"].to_numpy()
    ends = rows.filter(scenario="private/private").select("low", "high").row(0)
    assert ends == pytest.approx(people_interval(shares))
    assert results.strongest_against("place").filter(pl.col("mechanism") != "none").height == 1
    # The example of a release is the first piece of a recording, in the recording's own time.
    traces = {text.partition(":")[0]: trace for text, trace in results.examples["traces"].items()}
    shown = traces["raw-pieces"]["t_s"]
    assert (shown[0], len(shown)) == (0.0, 300)
    np.testing.assert_array_equal(traces["none"]["x_deg"][:300], traces["raw-pieces"]["x_deg"])


def test_attackers_with_knowledge_and_filters_take_pieces(cohort: Cohort) -> None:
    attacks = (
        Place(knowledge="white-box", draws=2),
        Place(knowledge="exemplars"),
        Place(denoiser="lowpass"),
    )
    results = study(cohort, *attacks, scenarios=["raw/private"])
    assert results.failures == ()
    rows = results.frame.filter(mechanism="raw-pieces", metric="identification_rate")
    assert rows.height == len(attacks)


def test_relink_is_left_out_where_names_last_and_the_bound_is_no_headline(cohort: Cohort) -> None:
    results = study(
        cohort,
        "relink",
        "relink:names=known",
        "relinking",
        Place(),
        mechanisms=[RawPieces(), "gaussian:sigma_deg=1"],
        scenarios=["private/private"],
    )
    assert results.failures == ()
    said = " ".join(results.study["left_out"])  # type: ignore[arg-type]
    assert "relink joins pieces, and gaussian gives names that last" in said
    assert "relinking needs names that do not last, and gaussian gives names that last" in said
    pieces = results.frame.filter(mechanism="raw-pieces")
    bound = pieces.filter(attack="relink:names=known")
    assert bound["metric"].to_list() == ["bound_rate"]
    assert "a bound, not an attack" in bound["note"][0]
    assert "relink:names=known" not in results.strongest()["attack"].to_list()
    joined = pieces.filter(attack="relink", metric="identification_rate")
    assert "joined by place and style" in joined["note"][0]
    assert {"flipped_rate", "dealt_rate", "relinked_share"} <= set(pieces["metric"])
    # A release with lasting names has neither control.
    assert not {"flipped_rate", "dealt_rate"} & set(
        results.frame.filter(mechanism="gaussian")["metric"]
    )


#: The published test passes hardly an event, and what fails is dropped.
MECHANISM = (
    "event-synth-pd:k=4,gamma=1.0,attempts=1,generator=ppca,probability=histogram,"
    "failed=drop,reading=published"
)


def test_who_has_nothing_to_learn_from_guesses() -> None:
    results = gazeveil.evaluate(
        gazeveil.simulate(4, 4, 3, 60, seed=1),
        mechanisms=[MECHANISM],
        attacks=["rbfn"],
        utilities=[],
        scenarios=["private/raw"],
        repetitions=1,
        seed=1,
        executor=1,
    )
    assert not results.failures
    row = results.frame.filter(
        (pl.col("mechanism") == "event-synth-pd") & (pl.col("metric") == "identification_rate")
    ).row(0, named=True)
    assert row["value"] == pytest.approx(row["chance"]) == pytest.approx(1 / 4)
    assert "a guess: the release left nothing to learn from" in row["note"]
