"""What a hostile reader of the promises tries first: each of these once broke one, or would."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.conformance import content, sample_data
from gazeveil.privacy.noise.exact import TAIL_DELTA, draw_laplace_size, tail_delta
from gazeveil.privacy.randomness.rng import ASSUMPTION, draw_below
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.recordings import STEPS, lattice, sequences
from gazeveil.privacy.tables.spectrum import bits_for, coefficients, grid_l1, grid_l2

NOISY = [
    "lpa:epsilon=1",
    "fpa:epsilon=1",
    "cfpa:epsilon=1,chunk=16",
    "dcfpa:epsilon=1,chunk=16",
    "dct-knorm:epsilon=1",
    "exponential-dp:epsilon=1",
    "dp-k-same:k=3,epsilon=1",
    "marginals:k=3",
]
MAPS = ["heatmap-laplace:epsilon=1", "heatmap-gaussian:rho=1"]


def of(values: Any, bounds: list[list[float]]) -> FeatureTable:
    """The kit's table with other values in all cells of each feature, and other bounds."""
    table = sample_data("table")
    return FeatureTable(
        np.broadcast_to(values, table.values.shape), table.columns, table.keys, bounds
    )


@pytest.mark.parametrize("text", [*NOISY, *MAPS])
def test_a_promise_of_noise_says_where_its_bits_come_from(text: str) -> None:
    m = mechanism(text if text in MAPS else f"{text},length=8")
    promise = m.release(sample_data(m.kind)).guarantee
    assert promise.status == "proved"
    assert ASSUMPTION in promise.assumptions
    assert m.release(sample_data(m.kind), seed=0).guarantee.status == "claimed"


@pytest.mark.parametrize("text", NOISY)
def test_a_promise_about_a_table_says_what_must_not_come_from_the_data(text: str) -> None:
    promise = mechanism(text).release(sample_data("table")).guarantee
    told = str(promise)
    assert "the parameters of the mechanism are public and were not taken from this data" in told
    assert promise.status == "claimed"
    assert "is derived from the data" in told


@pytest.mark.parametrize("bounds", [[0.0, 5e-324], [-1.7e308, 1.7e308]])
@pytest.mark.parametrize("text", NOISY)
def test_bounds_without_a_step_between_them_are_refused(text: str, bounds: list[float]) -> None:
    # 0/0 and infinity/infinity would become any whole number, and the noise is made for those from
    # 0 to 65536.
    with pytest.raises(
        DataError,
        match=r"bounds of 'b' are too close together or too far apart.*Nothing was released",
    ):
        mechanism(text).release(of(0.0, [[0.0, 1.0], bounds, [0.0, 1.0]]))


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324, 0.0, np.nan])
@pytest.mark.parametrize(
    "bounds", [[0.0, 1.0], [-1e-300, 1e-300], [-8e307, 8e307], [1e16, 1e16 + 2]]
)
def test_any_value_becomes_a_whole_number_within_the_steps(
    value: float, bounds: list[float]
) -> None:
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
    assert mechanism("dct-knorm:epsilon=100000,D=1,profile=staircase").release(
        sample_data("table")
    ).guarantee.delta_num < Fraction(1, 10**20)


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


@pytest.mark.parametrize("text", NOISY)
@pytest.mark.parametrize("values", [0.25, np.nan, 99.0])
def test_constant_missing_and_outside_values_are_released_with_noise_all_the_same(
    text: str, values: float
) -> None:
    one, two = (mechanism(text).release(of(values, [[0.0, 1.0]] * 3)).data.values for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (t.replace("epsilon=1", "epsilon=1e-30"), "epsilon")
        for t in [*NOISY[:-1], "marginals:k=3,epsilon=1", MAPS[0]]
    ]
    + [("heatmap-gaussian:rho=1e-30", "rho")],
)
def test_a_budget_too_small_for_any_noise_is_refused_by_the_name_it_was_given(
    text: str, name: str
) -> None:
    m = mechanism(text)
    with pytest.raises(ParameterError, match=f"'{name}' parameter of {m.name} must be"):
        m.release(sample_data(m.kind))


# --- what integers add to a sensitivity
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("n", [3, 40, 100])
def test_rounding_the_transform_to_whole_numbers_is_paid_for(norm: int, n: int) -> None:
    # Rows whose entries are all rounded up; with an epsilon so large that the grid is as fine as it
    # gets.
    d, bits = 5, bits_for(n)
    third = Fraction(1 if bits % 2 else 2, 3)
    assert round(third * 2**bits) > third * 2**bits
    ends = np.stack((np.zeros(n), np.full(n, STEPS)), axis=1).astype(np.int64)
    whole = coefficients(np.full((d, n), float(third)), ends)
    moved = np.abs(whole[:, 1] - whole[:, 0]).astype(object)
    each = third * n * STEPS
    ideal = math.ceil((d * each) ** 2 if norm == 1 else d * each**2)
    grid = (grid_l1 if norm == 1 else grid_l2)(
        "x", n, d, ideal, n * STEPS, Fraction(10**6), 1 << 40
    )
    assert grid.shift == 0
    apart = sum(moved) ** 2 if norm == 1 else sum(m * m for m in moved)
    assert ideal << (2 * bits) < apart <= grid.sensitivity**2


@pytest.mark.parametrize("norm", [1, 2])
def test_rounding_coefficients_to_a_coarser_grid_is_paid_for(norm: int) -> None:
    # Every coefficient just below a half against just above: one step for next to nothing, in all
    # of them at once.
    n, d, epsilon = 64, 9, Fraction(1, 10**7)
    grid = (grid_l1 if norm == 1 else grid_l2)("x", n, d, n * STEPS**2, n * STEPS, epsilon, 1 << 40)
    assert grid.shift > 1
    root = 9 if norm == 1 else 3
    fine = (
        math.isqrt(n * STEPS**2 << (2 * grid.bits))
        + 1
        + (d if norm == 1 else math.isqrt(d) + 1) * n * STEPS
    )
    steps = fine // root >> grid.shift  # whole steps each coefficient may move, and one unit more
    high = np.full(d, (1 << grid.shift >> 1) + (steps << grid.shift), dtype=np.int64)
    low = np.full(d, (1 << grid.shift >> 1) - 1, dtype=np.int64)
    assert root * ((steps << grid.shift) + 1) <= fine, "the pair is one that neighbours may be"
    apart = root * int((grid.rounded(high) - grid.rounded(low))[0])
    assert -(-fine >> grid.shift) < apart <= grid.sensitivity


def test_a_person_moves_all_maps_together_by_no_more_than_the_noise_is_made_for() -> None:
    def viewer(person: str, stimulus: str, x_deg: float) -> Recording:
        return Recording(
            person,
            stimulus,
            np.arange(4) * 10**7,
            np.full(4, x_deg),
            np.full(4, 90.0),
            space=Sphere(),
            rate_hz=100.0,
        )

    pure, concentrated = (
        mechanism("heatmap-laplace:epsilon=1/2,rows=2,columns=4"),
        mechanism("heatmap-gaussian:rho=1/2,rows=2,columns=4"),
    )
    stimuli = ("a", "b", "c")
    others = [viewer("q", s, 10.0) for s in stimuli]
    sums = [
        pure._sums(Cohort([*others, *(viewer("p", s, x) for s in stimuli)])) for x in (100.0, 300.0)
    ]  # type: ignore[attr-defined]
    apart = np.stack([sums[0][s][1] - sums[1][s][1] for s in stimuli])
    # This person moves as much as anybody can: the promise is kept, and none of it is given away.
    scale_steps = pure.scale_steps(len(stimuli))  # type: ignore[attr-defined]
    assert Fraction(int(np.abs(apart).sum())) / scale_steps == Fraction(1, 2)
    sigma = concentrated.sigma_steps(len(stimuli))  # type: ignore[attr-defined]
    assert (
        Fraction(int((apart**2).sum()), 2 * (sigma - 1) ** 2)
        > Fraction(1, 2)
        >= Fraction(int((apart**2).sum()), 2 * sigma**2)
    )
    # And a release of several maps has noise of that scale.
    cohort = Cohort([*others, *(viewer("p", s, 100.0) for s in stimuli)])
    large = (
        mechanism("heatmap-laplace:epsilon=1/2,rows=100,columns=400,smooth_deg=0")
        .release(cohort, seed=1)
        .data
    )
    noise = np.concatenate([large[s].noisy.ravel() for s in stimuli])
    assert np.abs(noise).mean() == pytest.approx(2 * len(stimuli) / 0.5, rel=0.02)


# --- bits
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*NOISY, *MAPS, "k-same-select:k=3"])
def test_seed_zero_is_a_seed(text: str) -> None:
    m = mechanism(text)
    one, two = (m.release(sample_data(m.kind), seed=0) for _ in range(2))
    assert content(one.data) == content(two.data)
    assert one.provenance.seeded
    assert one.guarantee.status == "claimed"


@pytest.mark.parametrize(
    "m", [3, 5, 6, 7, 1000, 2**26 - 1, 3 * 2**40, 2**62 + 1, 3 * 2**62, 2**64 - 1]
)
def test_the_words_that_would_favour_some_numbers_are_thrown_away(m: int) -> None:
    # Word w gives floor(w m / 2**64) if w m mod 2**64 is at least 2**64 mod m: word 0 never, where
    # m does not divide 2**64.
    value, after = draw_below(np.uint64(m), np.array([0, 1], dtype=np.uint64), 0)
    assert (int(value), after) == (0, 2)
    assert draw_below(np.uint64(1 << 62), np.array([0, 1], dtype=np.uint64), 0) == (0, 1)


@pytest.mark.parametrize("t", [3, 1000, 2**26 - 1, 2**26 + 1, 3 * 2**38])
@pytest.mark.parametrize("favoured", [(0, 12345), (12345, 0), (0, 0)])
def test_a_geometric_number_throws_such_words_away_too(t: int, favoured: tuple[int, int]) -> None:
    # Below 2**26 two numbers share a word, beyond it each has its own.
    words = np.random.default_rng(3).integers(0, 2**64, 400, dtype=np.uint64)
    wasted = np.array([favoured[0] << 32 | favoured[1]] if t < 2**26 else favoured, dtype=np.uint64)
    size, bit, after = draw_laplace_size(np.uint64(t), np.uint64(1), words, 0)
    assert draw_laplace_size(np.uint64(t), np.uint64(1), np.concatenate((wasted, words)), 0) == (
        size,
        bit,
        after + len(wasted),
    )
