"""Demographics and heat maps."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil import Cohort, Recording, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.geometry import smooth_map
from gazeveil.privacy.demographics import ANY, Demographics, best_groups, mondrian
from gazeveil.privacy.heatmaps import WEIGHT, HeatmapGaussian, HeatmapLaplace, viewer_weights
from tests.support.strategies import SCREEN, recordings

# Ages and genders of the 31 people of the 2023 supplement, facts of its Table 1.
MEN = [
    43,
    29,
    32,
    26,
    30,
    26,
    52,
    26,
    35,
    50,
    33,
    31,
    32,
    36,
    38,
    29,
    27,
    31,
    24,
    23,
    27,
    23,
    23,
    32,
]
WOMEN = [27, 28, 23, 28, 23, 31, 23]
PEOPLE = {
    f"p{i}": {"age": a, "gender": g}
    for i, (a, g) in enumerate([*((a, "M") for a in MEN), *((a, "F") for a in WOMEN)])
}


def sizes(people: Any) -> list[int]:
    return sorted(Counter(tuple(sorted(a.items())) for a in people.values()).values())


# --- demographics
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "expected"), [(4, [7, 9, 5, 4, 6]), (6, [7, 9, 9, 6]), (8, [13, 8, 10]), (15, [15, 16])]
)
def test_the_supplements_class_sizes_are_reproduced(k: int, expected: list[int]) -> None:
    release = Demographics(k, reading="published").release(PEOPLE)
    assert sizes(release.data) == sorted(expected)
    shared = {"fewest_sharing": min(expected), "most_sharing": max(expected)}
    assert dict(release.curator_notes) == shared


@pytest.mark.parametrize(
    ("k", "mixed", "groups"),
    [(4, False, 6), (4, True, 7), (6, True, 4), (8, True, 3), (15, True, 2)],
)
def test_the_optimum_beats_or_equals_the_supplement(k: int, mixed: bool, groups: int) -> None:
    release = Demographics(k, mixed=mixed).release(PEOPLE)
    found = sizes(release.data)
    assert len(found) == groups
    assert min(found) >= k
    assert sum(found) == len(PEOPLE)
    assert release.guarantee.k == k
    for person, shown in release.data.items():
        low, _, high = str(shown["age"]).partition("-")
        assert float(low) <= PEOPLE[person]["age"] <= float(high or low)  # type: ignore[operator]
        assert shown["gender"] in (ANY, PEOPLE[person]["gender"])


def most_groups(ages: list[int], k: int) -> int:
    """The most groups of k or more people that cuts of the age line make; -1 where none do."""
    if not ages:
        return 0
    found = [-1]
    for oldest in set(ages):
        first, rest = [a for a in ages if a <= oldest], [a for a in ages if a > oldest]
        others = most_groups(rest, k)
        if len(first) >= k and others >= 0:
            found.append(1 + others)
    return max(found)


def brute_force(people: list[tuple[int, str]], k: int) -> int:
    """The most groups over all cuts of the age line into bands, each whole or cut per gender in
    every way; -1 where there are none.
    """
    if not people:
        return 0
    found = [-1]
    for oldest in {age for age, _ in people}:
        band, rest = [p for p in people if p[0] <= oldest], [p for p in people if p[0] > oldest]
        parts = [most_groups([a for a, g in band if g == gender], k) for gender in "MF"]
        in_band = max(sum(parts) if min(parts) >= 0 else -1, 1 if len(band) >= k else -1)
        others = brute_force(rest, k)
        if in_band >= 0 and others >= 0:
            found.append(in_band + others)
    return max(found)


@given(
    st.lists(st.tuples(st.integers(20, 26), st.sampled_from("MF")), min_size=2, max_size=16),
    st.integers(2, 4),
)
@settings(max_examples=60)
def test_the_optimum_equals_brute_force(people: list[tuple[int, str]], k: int) -> None:
    ages = {str(i): float(a) for i, (a, _) in enumerate(people)}
    genders = {str(i): g for i, (_, g) in enumerate(people)}
    groups = best_groups(ages, genders, k)
    assert len(groups) == max(0, brute_force(people, k))
    assert all(len(g.people) >= k for g in groups)
    if groups:
        assert sorted(p for g in groups for p in g.people) == sorted(ages)


@given(
    st.lists(
        st.tuples(st.floats(18, 80), st.sampled_from(["a", "b", "c"]), st.integers(0, 3)),
        min_size=2,
        max_size=40,
    ),
    st.integers(2, 5),
)
def test_mondrian_covers_everybody_in_groups_of_k(
    people: list[tuple[float, str, int]], k: int
) -> None:
    rows = {str(i): {"age": a, "hand": h, "vision": float(v)} for i, (a, h, v) in enumerate(people)}
    groups = mondrian(rows, ("age", "hand", "vision"), k)
    if len(rows) < k:
        assert groups == []
    else:
        assert sorted(p for g in groups for p in g) == sorted(rows)
        assert min(map(len, groups)) >= k
        released = Demographics(k, attributes=("age", "hand", "vision")).release(rows).data
        assert min(sizes(released)) >= k


@pytest.mark.parametrize(
    ("people", "parameters", "error", "message"),
    [
        (
            PEOPLE,
            {"k": 1},
            ParameterError,
            "'k' parameter of demographics must be a whole number of at least 2",
        ),
        (PEOPLE, {"k": 32}, DataError, "needs at least k = 32 people. Got 31"),
        (PEOPLE, {"k": 5, "reading": "published"}, ParameterError, "4, 6, 8 or 15"),
        (PEOPLE, {"k": 8, "mixed": False}, DataError, "Allow mixed=True"),
        (
            {"a": {"age": 3}, "b": {"age": 3, "gender": "f"}},
            {"k": 2},
            DataError,
            "Person 'a' has no gender",
        ),
        ({"a": {"age": float("nan"), "gender": "f"}}, {"k": 2}, DataError, "has no age"),
        ({"a": {"age": "old", "gender": "f"}}, {"k": 2}, DataError, "must be a number"),
        ([1, 2], {"k": 2}, ParameterError, "a mapping of person to attributes"),
        (PEOPLE, {"k": 2, "attributes": ()}, ParameterError, "a tuple of different names"),
    ],
)
def test_demographics_refuse_in_words(
    people: object, parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Demographics(**parameters).release(people)  # type: ignore[arg-type]


# --- heat maps
# --------------------------------------------------------------------------------------------------


@given(recordings(), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=80)
def test_no_viewer_weighs_more_than_one(r: Recording, rows: int, columns: int) -> None:
    weights = viewer_weights(r, rows, columns)
    assert (weights >= 0).all()
    assert weights.sum() <= WEIGHT
    if r.valid.any():
        assert weights.sum() > WEIGHT - rows * columns
    else:
        assert weights.sum() == 0


def viewers(count: int, x: float) -> Cohort:
    n = 50
    return Cohort(
        [
            Recording(
                f"p{i}",
                "s",
                np.arange(n),
                np.full(n, x),
                np.full(n, 90.0),
                space=Sphere(),
                rate_hz=50.0,
            )
            for i in range(count)
        ]
    )


@pytest.mark.parametrize(
    "mechanism", [HeatmapLaplace(5, smooth_deg=0), HeatmapGaussian(5, smooth_deg=0)]
)
def test_maps_show_where_many_people_look(mechanism: HeatmapLaplace | HeatmapGaussian) -> None:
    release = mechanism.release(viewers(60, 200.0))
    cells = release.data["s"].cells
    assert cells.sum() == pytest.approx(1.0)
    assert np.unravel_index(cells.argmax(), cells.shape) == (22, 50)
    assert release.guarantee.status == "proved"
    assert mechanism.release(viewers(3, 1.0), seed=1).guarantee.status == "claimed"


def test_the_noise_has_the_scale_of_the_proof() -> None:
    laplace = (
        HeatmapLaplace(Fraction(1, 2), rows=200, columns=400)
        .release(viewers(1, 10.0), seed=1)
        .data["s"]
        .noisy
    )
    laplace = laplace - viewer_weights(viewers(1, 10.0)[0], 200, 400) / WEIGHT
    assert laplace.std() == pytest.approx(np.sqrt(2) * 2 / 0.5, rel=0.02)
    gaussian = (
        HeatmapGaussian(Fraction(1, 2), rows=200, columns=400)
        .release(viewers(1, 10.0), seed=1)
        .data["s"]
        .noisy
    )
    gaussian = gaussian - viewer_weights(viewers(1, 10.0)[0], 200, 400) / WEIGHT
    assert gaussian.std() == pytest.approx(np.sqrt(2), rel=0.02)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=100), st.integers(1, 200))
def test_sigma_is_the_smallest_whole_number_that_keeps_the_promise(
    rho: Fraction, stimuli: int
) -> None:
    sigma = HeatmapGaussian(rho).sigma_steps(stimuli)
    spent = Fraction(2 * stimuli * WEIGHT * WEIGHT, 2 * sigma * sigma)
    assert spent <= rho
    assert sigma == 1 or Fraction(2 * stimuli * WEIGHT * WEIGHT, 2 * (sigma - 1) ** 2) > rho


@pytest.mark.parametrize(
    ("cohort", "message"),
    [
        (Cohort([]), "the cohort has none"),
        (
            gazeveil.simulate(1, 1, 1.0, 60.0, seed=1, sessions=2),
            "one recording per person and stimulus",
        ),
        (
            Cohort(
                [
                    Recording(p, "s", np.arange(2), np.ones(2), np.ones(2), space=s)
                    for p, s in (("a", Sphere()), ("b", SCREEN))
                ]
            ),
            "different screens",
        ),
    ],
)
def test_maps_refuse_in_words(cohort: Cohort, message: str) -> None:
    with pytest.raises(DataError, match=message):
        HeatmapLaplace(1).release(cohort)


@pytest.mark.parametrize("bad", [0, -1, "x"])
@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (HeatmapLaplace, "'epsilon' parameter of heatmap-laplace"),
        (HeatmapGaussian, "'rho' parameter of heatmap-gaussian"),
    ],
)
def test_budgets_of_maps_must_be_positive(mechanism: Any, words: str, bad: object) -> None:
    with pytest.raises(ParameterError, match=words):
        mechanism(bad)


# --- smoothing
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "column"), [(45, 0), (45, 90), (5, 30), (85, 179), (1, 90)])
def test_a_blob_is_as_wide_in_visual_angle_everywhere(row: int, column: int) -> None:
    grid = np.zeros((90, 180))
    grid[row, column] = 1.0
    out = smooth_map(grid, Sphere(), 8.0)
    assert out.sum() == pytest.approx(1.0)
    y, x = (np.indices(grid.shape) + 0.5) * 2.0
    v = Sphere().vectors(x.ravel(), y.ravel())
    centre = Sphere().vectors((column + 0.5) * 2.0, (row + 0.5) * 2.0)
    mean = (v * out.ravel()[:, None]).sum(axis=0)
    # A Gaussian blob of 8 degrees has a mean resultant of about exp(-sigma^2) = 0.98, wherever it
    # lies.
    assert float(mean @ centre) == pytest.approx(np.exp(-(np.radians(8.0) ** 2)), abs=0.012)


def test_smoothing_on_a_screen_does_not_wrap() -> None:
    grid = np.zeros((40, 80))
    grid[20, 0] = 1.0
    out = smooth_map(grid, SCREEN, 1.0)
    assert out[20, -1] < 1e-12
    assert out.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(smooth_map(grid, SCREEN, 0.0), grid)
