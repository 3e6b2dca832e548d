"""Curves of an attack: gallery size in closed form, age of the template."""

import itertools

import numpy as np
import pytest

from gazeveil.attacks.base import Scores
from gazeveil.attacks.curves import found_among, gallery_curve
from gazeveil.attacks.result import identification
from gazeveil.errors import DataError, ParameterError


def random_scores(n=9, gain=1.0, ties=False, seed=1):
    rng = np.random.default_rng(seed)
    names = tuple(map(str, range(n)))
    values = rng.normal(size=(n, n)) + gain * np.eye(n)
    return Scores(names, names, np.round(values) if ties else values)


def by_drawing_every_gallery(scores, size):
    """The mean credit over every gallery of that size that holds the person asked about."""
    n = len(scores.known)
    total = []
    for row in range(n):
        for others in itertools.combinations([i for i in range(n) if i != row], size - 1):
            gallery = (row, *others)
            one = Scores(
                tuple(scores.known[i] for i in gallery),
                (scores.probes[row],),
                scores.values[row : row + 1, gallery],
            )
            total.append(one.credit()[0])
    return np.mean(total)


@pytest.mark.parametrize("ties", [False, True])
def test_the_closed_form_equals_drawing_every_gallery(ties):
    scores = random_scores(ties=ties)
    curve = gallery_curve([scores])
    assert [p.at for p in curve] == list(range(2, 10))
    for point in curve:
        assert point.result.value == pytest.approx(by_drawing_every_gallery(scores, int(point.at)))


def test_at_full_size_the_curve_is_the_identification_rate_with_its_interval():
    scores = [random_scores(seed=s, ties=True) for s in range(3)]
    last, whole = gallery_curve(scores)[-1].result, identification(scores)
    assert last.value == pytest.approx(whole.value)
    assert (last.low, last.high, last.chance) == (whole.low, whole.high, whole.chance)


def test_a_blind_attacker_has_chance_at_every_size():
    names = tuple(map(str, range(30)))
    blind = [Scores(names, names, np.zeros((30, 30)))]
    assert all(p.result.value == pytest.approx(1 / p.at) for p in gallery_curve(blind))


def test_larger_galleries_are_harder():
    rates = [p.result.value for p in gallery_curve([random_scores(n=40)])]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] + 0.2


def test_large_galleries_stay_exact():
    assert found_among(0, 0, 5000, 4000) == 1.0
    assert found_among(1, 0, 5000, 4000) == pytest.approx(1 - 3999 / 4999)
    assert found_among(5000, 0, 5000, 2) == 0.0


def test_sizes_out_of_range_and_one_person_are_refused():
    with pytest.raises(ParameterError, match="from 2 to 9"):
        gallery_curve([random_scores()], sizes=[10])
    with pytest.raises(DataError, match="at least two people"):
        gallery_curve([Scores(("a",), ("a",), np.ones((1, 1)))])
