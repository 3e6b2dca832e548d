"""What the page is told: pictures of real releases, figures of real attacks."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError
from gazeveil.explore.board import (
    BATTERY,
    POINTS,
    REPETITIONS,
    SCENARIOS,
    Board,
    Limits,
    map_shades,
    sliders,
    take,
    trace_line,
)
from gazeveil.features.recording_set import FeaturePipeline
from gazeveil.gaze.cohort import Cohort
from tests.support.exploring import board, people  # noqa: F401

ALL = [0, 1, 2, 3]


def test_a_trace_is_the_recording_thinned_with_gaps_where_samples_are_lost() -> None:
    recording = gazeveil.simulate(1, 1, 20, 250, seed=3)[0]
    line = trace_line([recording])
    assert len(line["t"]) <= POINTS
    assert max(line["t"]) <= 10
    rows = np.searchsorted(recording.t_ns - recording.t_ns[0], np.array(line["t"]) * 1e9 - 1e6)
    for row, x in zip(rows, line["x"], strict=True):
        assert (x is None) == (not recording.valid[row])
        assert x is None or x == pytest.approx(recording.x_deg[row], abs=0.006)


def test_a_map_is_darkest_where_people_look() -> None:
    recordings = list(gazeveil.simulate(3, 1, 5, 60, task="reading", seed=3))
    shades = np.array(map_shades(recordings, recordings[0]))
    assert shades.max() == 99
    assert shades.min() == 0
    assert map_shades([], recordings[0])[0][0] == 0


def test_the_part_that_is_taken_is_small_and_seen_by_most() -> None:
    made = gazeveil.simulate(5, 4, 5, 60, seed=1)
    few = [r for r in made if not (r.stimulus == made.stimuli[0] and r.person != "p1")]
    taken = take(Cohort(few), Limits(people=3, stimuli=2, seconds=2.0))
    assert len({p for p, *_ in taken.keys}) == 3
    assert made.stimuli[0] not in taken.stimuli
    assert all(r.duration_s <= 2 for r in taken)
    with pytest.raises(DataError, match="no samples"):
        take(Cohort([]), Limits())


def test_a_picture_is_of_a_real_release_and_stays_the_same(board: Board) -> None:
    raw = board.picture(ALL, 1, 0, None)
    noisy = board.picture(ALL, 1, 0, "gaussian:sigma_deg=10")
    assert raw["trace"] != noisy["trace"]
    assert raw["map"] != noisy["map"]
    assert noisy == board.picture(ALL, 1, 0, "gaussian:sigma_deg=10")
    assert noisy["status"] == "proved"
    assert "any outcome" in str(noisy["promise"]) or "an outcome" in str(noisy["promise"])
    assert "gaussian" in str(noisy["exact"])
    pieces = board.picture(ALL, 1, 0, board.sliders[1].texts[0])
    assert pieces["trace"]["t"][-1] > 2  # type: ignore[index] # more than one piece


def test_a_refusal_is_a_sentence(board: Board) -> None:
    text = "k-same-synth:k=9"
    assert "9" in str(board.picture(ALL, 0, 0, text)["refusal"])
    assert "9" in str(board.attack(ALL, text)["refusal"])
    assert "people" in str(board.attack([0], None)["refusal"])


def test_a_figure_is_what_evaluate_finds(board: Board) -> None:
    figure = board.attack(ALL, "gaussian:sigma_deg=1")
    results = gazeveil.evaluate(
        board.cohort,
        ["gaussian:sigma_deg=1"],
        BATTERY,
        scenarios=SCENARIOS,
        repetitions=REPETITIONS,
        seed=2026,
        executor=1,
        preparation=FeaturePipeline(window_s=3.0, step_s=1.0),
    )
    best = results.worst_case().filter(mechanism="gaussian").row(0, named=True)
    assert figure["value"] == pytest.approx(best["value"], abs=1e-4)
    assert figure["low"] == pytest.approx(best["low"], abs=1e-4)
    assert figure["n"] == 4
    assert figure["chance"] == 0.25
    assert figure["tried"] == 4
    assert board.attack(ALL, board.sliders[1].texts[0])["unit"] == "pieces"


def test_attacks_run_beside_the_page_and_what_is_known_is_not_computed_again() -> None:
    made = Board(take(people(), Limits(3, 3, 5)), sliders(60.0, ["temporal:K=2|3"]))
    try:
        assert made.attacked([0, 1, 2], 0, 1)["left"] == 3
        end = time.monotonic() + 60
        while (found := made.attacked([0, 1, 2], 0, 1))["left"] and time.monotonic() < end:
            time.sleep(0.05)
        assert found["left"] == 0
        assert found["baseline"]["n"] == 3  # type: ignore[index]
        assert made.attack([2, 1, 0], "temporal:K=3") == found["values"][1]  # type: ignore[index]
    finally:
        made.close()
