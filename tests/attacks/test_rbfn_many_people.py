"""The RBF network of large galleries: few units for many people, beside the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil.attacks.identify import radial_network
from gazeveil.attacks.identify.radial_network import RadialNetwork
from gazeveil.errors import DataError

PEOPLE = 40


def crowd(seed: int = 0, rows: int = 60) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of 40 overlapping people."""
    places = np.random.default_rng(99).normal(size=(PEOPLE, 8))
    people = np.repeat(np.arange(PEOPLE), rows)
    return places[people] + np.random.default_rng(seed).normal(size=(len(people), 8)), people


def of_people(network: RadialNetwork) -> NDArray[np.float64]:
    asked, people = crowd(seed=1)
    return network.mean_scores(asked, people, PEOPLE)


def alike(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Share of equal decisions, and correlation of scores."""
    same = np.mean(a.argmax(axis=1) == b.argmax(axis=1))
    return float(same), float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def test_the_switch_is_at_the_stated_number_and_changes_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = crowd()
    monkeypatch.setattr(radial_network, "MOST_UNITS", 8 * PEOPLE)
    exact = RadialNetwork(8, random_state=0).fit(x, y)
    assert exact.solved_by_ == "cholesky"
    assert len(exact.centres_) == 8 * PEOPLE
    # The same units, in single precision and with the ridge.
    same_units = RadialNetwork(8, solver="reduced", random_state=0).fit(x, y)
    same, correlation = alike(of_people(exact), of_people(same_units))
    assert same == 1.0
    assert correlation > 0.999
    # One prototype more per person is above the number: the units stay as many as they were.
    above = RadialNetwork(9, random_state=0).fit(x, y)
    assert above.solved_by_ == "reduced"
    assert len(above.centres_) == 8 * PEOPLE
    same, correlation = alike(
        of_people(RadialNetwork(9, solver="pinv").fit(x, y)), of_people(above)
    )
    assert same > 0.9
    assert correlation > 0.97


def test_units_are_bounded_and_everybody_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=10)
    monkeypatch.setattr(radial_network, "MOST_UNITS", 100)
    network = RadialNetwork(32, random_state=0).fit(x, y)
    assert np.bincount(network.centre_class_).tolist() == [2] * PEOPLE
    monkeypatch.setattr(radial_network, "MOST_UNITS", 10)
    assert np.bincount(RadialNetwork(32).fit(x, y).centre_class_).tolist() == [1] * PEOPLE


def test_an_exact_network_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=10)
    monkeypatch.setattr(radial_network, "LARGEST_UNITS", 100)
    with pytest.raises(DataError, match=r"at most 100 units .* there are 320.*solver=reduced"):
        RadialNetwork(8, solver="pinv").fit(x, y)
    assert RadialNetwork(8, solver="reduced").fit(x, y).solved_by_ == "reduced"


def test_rows_that_repeat_do_not_break_the_reduced_network() -> None:
    x = np.tile([[0.0, 1.0], [2.0, 3.0], [2.0, 3.0], [5.0, 1.0]], (30, 1))
    y = np.tile(["a", "b", "a", "c"], 30)
    network = RadialNetwork(4, solver="reduced", random_state=0).fit(x, y)
    assert np.isfinite(network.weights_).all()
    best = network.scores([[0.0, 1.0], [5.0, 1.0]]).argmax(axis=1)
    assert network.classes_[best].tolist() == ["a", "c"]


@pytest.mark.parametrize("solver", ["pinv", "reduced"])
def test_mean_scores_are_the_means_of_scores(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=20)
    network = RadialNetwork(4, solver=solver, random_state=0).fit(x, y)
    asked, people = crowd(seed=2, rows=7)
    order = np.random.default_rng(0).permutation(len(people))
    wanted = network.scores(asked).reshape(PEOPLE, 7, PEOPLE).mean(axis=1)
    monkeypatch.setattr(radial_network, "_BLOCK_BYTES", 8 * len(network.centres_) * 11)
    found = network.mean_scores(asked[order], people[order], PEOPLE + 1)
    np.testing.assert_allclose(found[:PEOPLE], wanted, atol=1e-5 if solver == "reduced" else 1e-9)
    assert np.isnan(found[PEOPLE]).all()
