"""Fixations rebuilt from answers about rectangles: everything from exact answers, the grid and no
more from snapped ones.
"""

import math

import numpy as np
import pytest

from gazeveil.attacks.infer.reconstruction import achieved, exact_answers, rebuild, snapped_answers
from gazeveil.errors import DataError

AREA = (-24.0, -14.0, 24.0, 14.0)


def looks(n=60, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform([-23, -13], [23, 13], size=(n, 2))


@pytest.mark.parametrize("handles", [False, True])
def test_exact_answers_give_every_fixation_to_the_precision_asked_for(handles):
    truth = looks()
    found = rebuild(exact_answers(*truth.T, handles=handles), AREA, finest_deg=0.02)
    score = achieved(found.positions_deg, truth)
    assert (score.found, score.missed, score.invented) == (60, 0, 0)
    assert score.largest_deg <= 0.01 + 1e-9
    assert found.resolution_deg <= 0.02
    assert found.complete


def test_one_fixation_costs_as_many_questions_as_halvings():
    found = rebuild(exact_answers([3.3], [-2.2], handles=True), AREA, finest_deg=0.02)
    assert found.queries <= 1 + math.ceil(math.log2(48 / 0.02)) + math.ceil(math.log2(28 / 0.02))


@pytest.mark.parametrize("handles", [False, True])
def test_no_question_is_about_a_small_rectangle_so_a_least_size_protects_nothing(handles):
    truth = looks()
    sides = []
    inner = exact_answers(*truth.T, handles=handles, least_deg=10.0)

    def answer(rectangle):
        sides.append((rectangle[2] - rectangle[0], rectangle[3] - rectangle[1]))
        return inner(rectangle)

    found = rebuild(answer, AREA, finest_deg=0.02)
    assert (np.min(sides, axis=0) >= np.array([24.0, 14.0]) - 1e-9).all()
    assert achieved(found.positions_deg, truth).largest_deg <= 0.01 + 1e-9


@pytest.mark.parametrize("handles", [False, True])
@pytest.mark.parametrize("least_deg", [0.0, 8.0])
def test_snapped_answers_give_the_grid_and_nothing_finer(handles, least_deg):
    truth, grid = looks(), 4.0
    answer = snapped_answers(*truth.T, AREA, grid, least_deg=least_deg, handles=handles)
    for known in (None, grid):
        found = rebuild(answer, AREA, finest_deg=0.02, grid_deg=known)
        score = achieved(found.positions_deg, truth)
        assert (score.found, score.missed, score.invented) == (60, 0, 0)
        assert (
            score.median_deg > grid / 5
        )  # the best guess, the middle of a cell, errs by 0.35 grid in the median
    cells = np.floor((truth - AREA[:2]) / grid)
    found = rebuild(answer, AREA, finest_deg=0.02, grid_deg=grid)
    assert sorted(map(tuple, np.floor((found.positions_deg - AREA[:2]) / grid))) == sorted(
        map(tuple, cells)
    )  # every cell is found
    # Fixations moved about inside their cells give the same answers, so no attacker whatever tells
    # them apart.
    rng = np.random.default_rng(2)
    moved = np.array(AREA[:2]) + (cells + rng.random(truth.shape)) * grid
    again = rebuild(
        snapped_answers(*moved.T, AREA, grid, least_deg=least_deg, handles=handles),
        AREA,
        finest_deg=0.02,
    )
    assert np.array_equal(again.positions_deg, rebuild(answer, AREA, finest_deg=0.02).positions_deg)


def test_a_grid_that_is_known_halves_the_error():
    truth = looks(n=200)
    answer = snapped_answers(*truth.T, AREA, 4.0, handles=True)
    known, guessed = (
        achieved(rebuild(answer, AREA, 0.02, grid_deg=g).positions_deg, truth) for g in (4.0, None)
    )
    assert known.largest_deg <= 2.0 + 1e-9
    assert known.median_deg < guessed.median_deg


def test_fixations_at_one_place_are_counted_apart():
    found = rebuild(exact_answers([1.0, 1.0, 1.0], [2.0, 2.0, -5.0]), AREA, finest_deg=0.1)
    assert len(found.positions_deg) == 3
    assert achieved(found.positions_deg, [[1, 2], [1, 2], [1, -5]]).largest_deg <= 0.05


def test_questions_that_run_out_leave_large_cells_and_say_so():
    truth = looks()
    found = rebuild(exact_answers(*truth.T), AREA, finest_deg=0.02, most_queries=40)
    assert not found.complete
    assert found.queries <= 40
    assert found.resolution_deg > 1
    assert len(found.positions_deg) == 60


def test_fresh_noise_is_averaged_away_and_a_kept_answer_is_not():
    truth = looks(n=3, seed=3)
    inner = exact_answers(*truth.T)

    def fresh(seed):
        rng = np.random.default_rng(seed)
        return lambda r: inner(r) + int(rng.laplace(scale=1.0))

    def kept(seed):
        rng, answers = np.random.default_rng(seed), {}
        return lambda r: answers.setdefault(r, inner(r) + int(rng.laplace(scale=1.0)))

    def error(make, repeats):
        scores = [
            achieved(rebuild(make(s), AREA, 0.5, repeats=repeats).positions_deg, truth)
            for s in range(5)
        ]
        return np.mean([s.median_deg if s.missed == s.invented == 0 else 20.0 for s in scores])

    assert error(fresh, 41) < 1
    assert error(fresh, 1) > 5
    assert error(kept, 41) > 5


def test_nothing_there_gives_nothing():
    found = rebuild(exact_answers([], []), AREA)
    assert found.positions_deg.shape == (0, 2)
    assert found.queries == 1
    assert math.isnan(found.resolution_deg)
    assert achieved(found.positions_deg, [[0, 0]]).missed == 1


def test_an_area_turned_round_is_refused():
    with pytest.raises(DataError, match="left < right"):
        rebuild(exact_answers([], []), (1, 0, 0, 1))
