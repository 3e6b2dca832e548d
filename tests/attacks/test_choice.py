"""Choosing an attacker on other repetitions: what the choice sees, and what it does to luck."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.attacks.result import chosen_on_others
from gazeveil.errors import DataError


def test_the_choice_does_not_see_the_repetition_it_is_judged_by() -> None:
    rng = np.random.default_rng(1)
    credit = rng.integers(0, 2, size=(4, 5, 6)).astype(np.float64)
    before = chosen_on_others(credit)
    for repetition in range(5):
        # Other attackers' credit in this repetition does not change who is chosen for it.
        rates = np.delete(credit.mean(axis=2), repetition, axis=1).mean(axis=1)
        best = int(np.argmax(rates))
        changed = credit.copy()
        changed[np.arange(4) != best, repetition] = 1 - credit[np.arange(4) != best, repetition]
        np.testing.assert_array_equal(chosen_on_others(changed)[repetition], before[repetition])
        np.testing.assert_array_equal(before[repetition], credit[best, repetition])


def test_guessing_attackers_stay_at_chance_where_the_largest_of_them_does_not() -> None:
    # 10 attackers guess among 20 people, 400 studies of 2 repetitions: the mean of the chosen one
    # is 0.05 with a standard error of 0.0017; 4 of them are missed once in 16,000 runs.
    rng = np.random.default_rng(2)
    credit = (rng.random((400, 10, 2, 20)) < 0.05).astype(np.float64)
    chosen = np.array([chosen_on_others(c).mean() for c in credit])
    largest = credit.mean(axis=(2, 3)).max(axis=1)
    assert abs(chosen.mean() - 0.05) < 4 * 0.0017
    assert largest.mean() > 0.09


def test_who_was_not_asked_is_not_chosen() -> None:
    credit = np.array([[[1.0], [1.0], [np.nan]], [[0.0], [0.0], [0.5]]])
    np.testing.assert_array_equal(chosen_on_others(credit), [[1.0], [1.0], [0.5]])


def test_one_repetition_leaves_nothing_to_choose_on() -> None:
    assert np.isnan(chosen_on_others(np.ones((3, 1, 4)))).all()
    assert chosen_on_others(np.empty((0, 0, 0))).shape == (0, 0)


def test_another_shape_is_refused() -> None:
    with pytest.raises(DataError, match=r"attackers, repetitions and people. Got shape \(2, 3\)"):
        chosen_on_others(np.ones((2, 3)))
