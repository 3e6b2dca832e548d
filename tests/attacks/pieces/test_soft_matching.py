"""Names given one to one, and windows that tell each other."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.attacks.pieces.joining import matched_along, soft_matching


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 3), (1, 1)])
def test_rows_sum_to_one_and_no_column_takes_more_than_its_share(rows: int, columns: int) -> None:
    odds = 3 * np.random.default_rng(1).normal(size=(rows, columns))
    shares = np.exp(soft_matching(odds))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.sum(axis=0).max() < max(1.0, rows / columns) + 0.05


def test_a_name_that_another_piece_needs_is_given_up() -> None:
    odds = np.array([[9.0, 8.0], [9.0, 0.0]])  # both look like the first person
    assert soft_matching(odds).argmax(axis=1).tolist() == [1, 0]


def test_nothing_to_match_gives_nothing() -> None:
    assert soft_matching(np.zeros((0, 3))).shape == (0, 3)
    assert soft_matching(np.zeros((3, 0))).shape == (3, 0)


def test_a_window_that_knows_nothing_learns_from_its_neighbours() -> None:
    known = {0: 5.0 * np.eye(3), 1: np.zeros((3, 3)), 2: np.zeros((3, 3))}
    order = np.array([2, 0, 1])  # piece i of a window is piece order[i] of the one before
    link = np.full((3, 3), -6.0)
    link[np.arange(3), order] = 6.0
    links = {}
    for a, b in ((0, 1), (1, 2)):
        links[b, a], links[a, b] = soft_matching(link), soft_matching(link.T)
    alone = matched_along(known, links, 0.0)
    assert np.ptp(alone[1]) == 0.0
    told = matched_along(known, links, 1.0)
    assert told[1].argmax(axis=1).tolist() == order.tolist()
    assert told[2].argmax(axis=1).tolist() == order[order].tolist()
