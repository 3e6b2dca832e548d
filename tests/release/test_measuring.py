"""The attack step of a publication."""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen
from gazeveil.release.publishing import measure
from gazeveil.utility.signal import middle_errors_deg


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 3, 4.0, 100.0, seed=2)


def test_an_attacker_who_sees_raw_gaze_is_told_apart_from_guessing(cohort: Cohort) -> None:
    nothing = gazeveil.mechanism("gaussian", sigma_deg="1/1000")
    found = measure(cohort, nothing, "quick", ("signal",), 1, executor=1)
    attack = found["attack"]
    assert attack["people"] == 4
    assert attack["found"] > attack["guessing"] == 1
    assert attack["low"] <= attack["rate"] <= attack["high"]
    assert attack["tried"] == 2
    row = next(r for r in found["utility"]["analyses"] if r["unit"] == "degrees")
    assert row["value"] < 0.1 < row["reference"]
    assert any("recognised" in sentence for sentence in found["said"])


def test_figures_have_two_digits_since_they_come_from_the_recordings(cohort: Cohort) -> None:
    noisy = gazeveil.mechanism("gaussian", sigma_deg=3)
    found = measure(cohort, noisy, "none", ("signal", "density", "events"), 1, executor=1)
    rows = found["utility"]["analyses"]
    figures = [r[n] for r in rows for n in ("value", "reference") if r[n] is not None]
    assert len(figures) > 2
    assert all(float(f"{figure:.2g}") == figure for figure in figures)


def test_what_cannot_be_measured_is_said_and_not_made_up(cohort: Cohort) -> None:
    maps = measure(cohort, gazeveil.mechanism("heatmap-laplace", epsilon=1), "quick")
    assert maps["attack"] is None
    assert "no recording of a single person" in maps["said"][0]
    alone = cohort.select(people=cohort.keys[0][0])
    found = measure(alone, gazeveil.mechanism("gaussian", sigma_deg=1), "quick", executor=1)
    assert found["attack"] is None
    assert found["said"][0].startswith("Not measured: ")


def test_the_middle_is_a_guess_with_a_known_error() -> None:
    screen = Screen(1920, 1080, 531.0, 299.0, 600.0)
    right = Recording(
        "a", "s", np.arange(100) * 10_000_000, np.full(100, 10.0), np.zeros(100), space=screen
    )
    ahead = right.with_(person="b", x_deg=np.zeros(100))
    assert middle_errors_deg(Cohort([right, ahead]))[0] == pytest.approx(5.0)


def test_on_a_sphere_the_error_without_data_does_not_turn_with_the_headsets_zero() -> None:
    cohort = gazeveil.simulate(2, 2, 2.0, 50.0, seed=4)
    turned = Cohort([r.with_(x_deg=(r.x_deg + 100.0) % 360.0) for r in cohort])
    assert middle_errors_deg(turned)[0] == pytest.approx(middle_errors_deg(cohort)[0])
    opposite = [r.with_(stimulus="other", x_deg=(r.x_deg + 180.0) % 360.0) for r in cohort]
    both = Cohort([*cohort, *(r.with_(session=f"{i}") for i, r in enumerate(opposite))])
    assert middle_errors_deg(both)[0] < 1.5 * middle_errors_deg(cohort)[0]
