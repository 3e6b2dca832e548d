"""What a hostile reader of the promises tries first: each of these once broke one, or would."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import DataError, GazeveilError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.conformance import sample_data
from gazeveil.privacy.noise.exact import TAIL_DELTA, tail_delta
from gazeveil.privacy.noise.rng import ASSUMPTION
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.sequences import STEPS, lattice, sequences

NOISY = [
    "lpa:epsilon=1", "fpa:epsilon=1", "cfpa:epsilon=1,chunk=16", "dcfpa:epsilon=1,chunk=16", "dct-knorm:epsilon=1", "exponential-dp:epsilon=1",
    "dp-k-same:k=3,epsilon=1", "marginals:k=3",
]  # fmt: skip
MAPS = ["heatmap-laplace:epsilon=1", "heatmap-gaussian:rho=1"]


def of(values: Any, bounds: list[list[float]]) -> FeatureTable:
    """The kit's table with other values in all cells of each feature, and other bounds."""
    table = sample_data("table")
    return FeatureTable(np.broadcast_to(values, table.values.shape), table.columns, table.keys, bounds)


@pytest.mark.parametrize("text", [*NOISY, *MAPS])
def test_a_promise_of_noise_says_where_its_bits_come_from(text: str) -> None:
    m = mechanism(text)
    promise = m.release(sample_data(m.kind)).guarantee
    assert promise.status == "proved"
    assert ASSUMPTION in promise.assumptions
    assert m.release(sample_data(m.kind), seed=0).guarantee.status == "claimed"


@pytest.mark.parametrize("text", NOISY)
def test_a_promise_about_a_table_says_what_must_not_come_from_the_data(text: str) -> None:
    told = str(mechanism(text).release(sample_data("table")).guarantee)
    assert "the parameters of the mechanism are public and were not taken from this data" in told
    assert "is public (it was taken from the longest recording)" in told


@pytest.mark.parametrize("bounds", [[0.0, 5e-324], [-1.7e308, 1.7e308]])
@pytest.mark.parametrize("text", NOISY)
def test_bounds_without_a_step_between_them_are_refused(text: str, bounds: list[float]) -> None:
    # 0/0 and infinity/infinity would become any whole number, and the noise is made for those from 0 to 65536.
    with pytest.raises(DataError, match=r"bounds of 'b' are too close together or too far apart.*Nothing was released"):
        mechanism(text).release(of(0.0, [[0.0, 1.0], bounds, [0.0, 1.0]]))


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324, 0.0, np.nan])
@pytest.mark.parametrize("bounds", [[0.0, 1.0], [-1e-300, 1e-300], [-8e307, 8e307], [1e16, 1e16 + 2]])
def test_any_value_becomes_a_whole_number_within_the_steps(value: float, bounds: list[float]) -> None:
    grid = lattice("x", sequences("x", of(value, [bounds] * 3)), None)
    assert grid.values.min() >= 0
    assert grid.values.max() <= STEPS
    assert np.isfinite(grid.real(grid.values)).all()


def test_finite_arithmetic_costs_more_where_epsilon_is_huge() -> None:
    assert tail_delta(Fraction(100), 7) == 7 * TAIL_DELTA
    assert TAIL_DELTA < tail_delta(Fraction(200), 1) < Fraction(1, 10**200)
    assert tail_delta(Fraction(1000), 1) == 1
    huge = mechanism("fpa:epsilon=1000,k=1").release(sample_data("table")).guarantee
    assert huge.delta_num == 1
    assert "adds at most 1 to delta" in str(huge)
    assert mechanism("dct-knorm:epsilon=100000,D=1,profile=staircase").release(sample_data("table")).guarantee.delta_num < Fraction(1, 10**20)


@pytest.mark.parametrize("text", [*NOISY, "k-same-select:k=3"])
def test_what_the_curator_is_told_is_nowhere_in_the_release(text: str) -> None:
    m, table = mechanism(text), sample_data("table")
    values = table.values.copy()
    values[:17, 0], values[20:33, 1] = 99.0, np.nan
    changed = FeatureTable(values, table.columns, table.keys, table.bounds)
    plain, told = m.release(table), m.release(changed)
    assert told.curator_notes["clamped"] > plain.curator_notes["clamped"]
    assert told.provenance == plain.provenance
    assert told.guarantee == plain.guarantee
    assert told.data.counts == plain.data.counts == {}
    assert "curator" not in repr(told)


BAD_TABLES = [
    ("no bounds", lambda t: t.with_bounds(None), "needs public bounds"),
    ("no rows", lambda t: t.where(np.zeros(len(t), dtype=bool)), "rows and features"),
    ("no features", lambda t: FeatureTable(np.empty((len(t), 0)), (), t.keys, np.empty((0, 2))), "rows and features"),
]


@pytest.mark.parametrize(("what", "spoil", "words"), BAD_TABLES, ids=[b[0] for b in BAD_TABLES])
@pytest.mark.parametrize("text", NOISY)
def test_a_bad_table_gets_one_sentence(text: str, what: str, spoil: Any, words: str) -> None:
    with pytest.raises(GazeveilError, match=words) as refused:
        mechanism(text).release(spoil(sample_data("table")))
    assert "Nothing was released" in str(refused.value), what


@pytest.mark.parametrize("text", NOISY)
@pytest.mark.parametrize("values", [0.25, np.nan, 99.0])
def test_constant_missing_and_outside_values_are_released_with_noise_all_the_same(text: str, values: float) -> None:
    one, two = (mechanism(text).release(of(values, [[0.0, 1.0]] * 3)).data.values for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()


@pytest.mark.parametrize("text", ["dp-k-same:k=13,epsilon=1", "marginals:k=13", "k-same-select:k=13", "k-same-select:k=13,reading=published"])
def test_more_people_to_a_group_than_there_are_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"needs at least 13 people, and this table has 12.*Nothing was released"):
        mechanism(text).release(sample_data("table"))
