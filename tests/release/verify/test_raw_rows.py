"""Raw rows are told from chance."""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil.release.verify.identifiers import BINARY_DEG, TEXT_DEG, check_raw_rows

SCREEN = gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0)


def recording(x: np.ndarray, y: np.ndarray, person: str = "p") -> gazeveil.Recording:
    return gazeveil.Recording(
        person,
        "s",
        t_ns=np.arange(len(x)) * 4_000_000,
        x_deg=x,
        y_deg=y,
        valid=np.ones(len(x), bool),
        space=SCREEN,
        rate_hz=250.0,
    )


def drawn(seed: int, samples: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 6, samples), rng.normal(0, 4, samples)


def checked(
    released: tuple[np.ndarray, np.ndarray], raw: tuple[np.ndarray, np.ndarray], near_deg: float
) -> bool:
    return check_raw_rows(
        gazeveil.Cohort([recording(*released)]), gazeveil.Cohort([recording(*raw)]), near_deg
    ).passed


@pytest.mark.parametrize("near_deg", [BINARY_DEG, TEXT_DEG])
@pytest.mark.parametrize("seed", range(5))
def test_other_gaze_is_no_raw_row(seed: int, near_deg: float) -> None:
    assert checked(drawn(2 * seed), drawn(2 * seed + 1), near_deg)


def test_gaze_on_the_same_grid_meets_by_chance_alone() -> None:
    coarse = [tuple(np.round(v, 1) for v in drawn(seed)) for seed in (1, 2)]
    assert checked(coarse[0], coarse[1], BINARY_DEG)


def test_corners_and_the_middle_are_nobodys() -> None:
    def cut(seed: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = drawn(seed)
        x, y = np.clip(x, -8, 8), np.clip(y, -5, 5)
        x[::50], y[::50] = 0.0, 0.0
        return x, y

    one, other = cut(1), cut(2)
    assert ((one[0] == 8) & (one[1] == 5)).any()
    assert checked(one, other, BINARY_DEG)


@pytest.mark.parametrize("near_deg", [BINARY_DEG, TEXT_DEG])
def test_a_run_is_found_wherever_it_lies(near_deg: float) -> None:
    (x, y), raw = drawn(1), drawn(2)
    x[7000:7004], y[7000:7004] = raw[0][300:304], raw[1][300:304]
    assert not checked((x, y), raw, near_deg)


def test_a_run_of_repeated_samples_is_found() -> None:
    """A slow tracker on a fast clock: each sample is repeated."""
    (x, y), raw = drawn(1), drawn(2)
    x[7000:7080], y[7000:7080] = np.repeat(raw[0][300:304], 20), np.repeat(raw[1][300:304], 20)
    assert not checked((x, y), raw, TEXT_DEG)


def test_a_single_sample_is_found_where_chance_gives_none() -> None:
    (x, y), raw = drawn(1), drawn(2)
    x[7000], y[7000] = raw[0][300], raw[1][300]
    assert not checked((x, y), raw, BINARY_DEG)
    assert checked((x, y), raw, TEXT_DEG)  # there chance gives several


def test_nothing_released_holds_nothing() -> None:
    empty = np.empty(0)
    assert checked((empty, empty), drawn(1), BINARY_DEG)
    assert checked(drawn(1), (empty, empty), BINARY_DEG)
