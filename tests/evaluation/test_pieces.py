"""Releases of pieces in a study: what attackers are handed, and whose credit is counted."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gazeveil.attacks.result import people_interval
from gazeveil.evaluation.api import evaluate
from gazeveil.evaluation.results import Results
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from tests.support.pieces import RawPieces, jumpers
from tests.support.small_attacks import SEEN, Place, Spy


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
        "known-looks",
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
    assert {"flipped_rate", "dealt_rate", "relinked_share", "found_by_3_looks"} <= set(
        pieces["metric"]
    )
    # A release with lasting names has neither control.
    assert not {"flipped_rate", "dealt_rate"} & set(
        results.frame.filter(mechanism="gaussian")["metric"]
    )
