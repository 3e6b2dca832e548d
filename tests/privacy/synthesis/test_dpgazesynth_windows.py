"""DPGazeSynth's public grid, windows and run lengths: whole numbers that add up, whatever was
recorded.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy.synthesis.dpgazesynth.grid import (
    STEPS,
    BudgetSplit,
    CellGrid,
    radius_deg,
    window_samples,
    windows_of,
)
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynth
from gazeveil.privacy.synthesis.dpgazesynth.model import rescaled, rounded, stretched
from tests.support.strategies import SCREEN, recordings


@pytest.mark.parametrize("size", [2, 3, 30, 60])
def test_a_screen_has_as_many_steps_as_the_paper_needs_and_a_sphere_those_across_its_seam_besides(
    size: int,
) -> None:
    assert CellGrid(SCREEN, size, wraps=False).transitions == 8 * size**2 - 12 * size + 4
    if size > 2:
        assert CellGrid(Sphere(), size, wraps=True).transitions == 8 * size**2 - 6 * size


def test_steps_lead_to_neighbours_and_have_numbers_of_their_own() -> None:
    grid = CellGrid(SCREEN, 7, wraps=False)
    there = grid.target >= 0
    assert sorted(grid.number[there].tolist()) == list(range(grid.transitions))
    row, column = np.divmod(np.arange(49), 7)
    for k in range(8):
        cells = np.flatnonzero(there[:, k])
        target = grid.target[cells, k]
        assert (target // 7 - row[cells] == STEPS[k, 1]).all()
        assert (target % 7 - column[cells] == STEPS[k, 0]).all()


def test_r_follows_the_tables_or_equation_8() -> None:
    assert radius_deg(Sphere(), 60, "table") == 9
    assert radius_deg(Sphere(), 30, "eq8") == 1
    shorter = min(SCREEN.width_deg, SCREEN.height_deg)
    for text, factor in (("r_deg=None", 3.0), ("r_deg=table", 3.0), ("r_deg=eq8", 1 / 6)):
        from gazeveil import mechanism

        dpgazesynth = mechanism(f"dpgazesynth:epsilon=1,{text}")
        plan = dpgazesynth.scheme().plan(SCREEN, 100.0)  # type: ignore[attr-defined]
        assert float(plan.r_deg) == pytest.approx(factor * shorter / 60)


def test_on_a_sphere_gaze_crosses_the_seam_and_in_the_published_reading_it_jumps_back() -> None:
    before, after = np.array([30 * 60 + 59]), np.array([30 * 60])
    assert CellGrid(Sphere(), 60, wraps=True).directions(before, after).tolist() == [0]
    assert CellGrid(Sphere(), 60, wraps=False).directions(before, after).tolist() == [4]


@given(recordings(), st.integers(2, 40), st.sampled_from([2, 5, 60]))
@settings(max_examples=80, deadline=None)
def test_runs_of_every_window_add_up_whatever_was_lost(
    recording: Recording, samples: int, size: int
) -> None:
    grid = CellGrid(recording.space, size, isinstance(recording.space, Sphere))
    windows = windows_of(recording, grid, samples)
    assert len(windows) == -(-len(recording) // samples)
    totals = np.bincount(windows.window, weights=windows.length, minlength=len(windows))
    assert (totals == samples).all()
    assert (windows.length >= 1).all()
    assert np.isfinite(windows.x_deg).all()
    assert np.isfinite(windows.y_deg).all()
    for cap in (2, 3, 6):
        capped = windows.capped(cap)
        assert capped.shape == (len(windows), cap)
        assert (capped.sum(axis=1) == samples).all()
        assert (capped[:, 0] >= 1).all()
        cells, directions = windows.slots(grid, cap)
        assert cells.shape == directions.shape == (len(windows), cap - 1)
        known = cells >= 0
        assert (known.sum(axis=1) == np.minimum(windows.counts, cap) - 1).all()
        assert (grid.target[cells[known], directions[known]] >= 0).all()


def test_runs_are_those_a_reader_counts_by_hand() -> None:
    grid = CellGrid(SCREEN, 4, wraps=False)
    side = SCREEN.width_deg / 4
    x = (
        np.array([np.nan, 0.5, 0.5, 1.5, np.nan, 1.5, 0.5, 3.5, 3.5, 2.5, np.nan, np.nan, np.nan])
        * side
        - SCREEN.width_deg / 2
    )
    recording = Recording(
        "p",
        "s",
        np.arange(13) * 10**7,
        x,
        np.where(np.isnan(x), np.nan, -SCREEN.height_deg * 0.4),
        space=SCREEN,
        rate_hz=100.0,
    )
    windows = windows_of(recording, grid, 5)
    assert windows.counts.tolist() == [2, 4, 1]
    assert windows.cell.tolist() == [0, 1, 1, 0, 3, 2, 2 * 4 + 2]
    assert windows.length.tolist() == [3, 2, 1, 1, 2, 1, 5]
    assert windows.x_deg.tolist() == [x[1], x[5], 0.0]
    window, place, cell, direction = windows.moves(grid)
    assert window.tolist() == [0, 1, 1, 1]
    assert place.tolist() == [0, 0, 1, 2]
    assert cell.tolist() == [0, 1, 0, 3]
    assert direction.tolist() == [0, 4, 0, 4]


def test_a_window_needs_two_samples_and_a_known_rate() -> None:
    assert window_samples(100.0, 0.5) == 50
    with pytest.raises(DataError, match="fewer than two samples"):
        window_samples(1.0, 0.5)
    unknown = Recording(
        "p",
        "s",
        np.array([5]),
        np.array([1.0]),
        np.array([1.0]),
        space=Screen(10, 10, 10.0, 10.0, 10.0),
    )
    from gazeveil import Cohort

    with pytest.raises(DataError, match="rate of"):
        DPGazeSynth(1).release(Cohort([unknown]))


# --- D4: lengths add up, for all noise
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [2, 3, 50, 125])
def test_d4_noisy_times_become_whole_lengths_that_add_up_to_w(samples: int) -> None:
    rng = np.random.default_rng(1)
    noisy = np.concatenate(
        (
            rng.laplace(0, 500.0, (10_000, 6)),
            -np.abs(rng.laplace(0, 500.0, (500, 6))),
            np.zeros((1, 6)),
            np.full((1, 6), 1e9),
        )
    )
    lengths = stretched(noisy, samples)
    assert lengths.dtype == np.int64
    assert (lengths.sum(axis=1) == samples).all()
    active = (lengths > 0).sum(axis=1)
    assert (lengths >= 0).all()
    assert (active >= 1).all()
    # active runs come first, so none of length 0 lies between two others
    assert all((row[:m] > 0).all() for row, m in zip(lengths, active, strict=True))
    assert (active == np.minimum(np.maximum((noisy > 0).sum(axis=1), 1), samples)).all()


def test_d4_published_times_are_stretched_and_may_be_0() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 20, 10_000)
    noisy = rng.laplace(0, 300.0, (10_000, 20))
    noisy[:100] = -1.0
    lengths = rescaled(noisy, counts, 50)
    assert (lengths.sum(axis=1) == 50).all()
    assert (lengths >= 0).all()
    assert (lengths[np.arange(20) >= counts[:, None]] == 0).all()
    assert (lengths == 0).any()


def test_rounding_is_never_off_by_one() -> None:
    values = np.array([[0.5, 0.25, 0.25], [1.2, 1.2, 0.6], [3.0, 0.0, 0.0]])
    assert rounded(values, np.array([1, 3, 3])).tolist() == [[1, 0, 0], [1, 1, 1], [3, 0, 0]]


# --- parameters
# --------------------------------------------------------------------------------------------------


def test_a_split_is_three_shares_or_a_ratio_in_words() -> None:
    fifths = (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5))
    assert (
        BudgetSplit.of((0.6, 0.2, 0.2))
        == BudgetSplit.of("3:1:1")
        == BudgetSplit.of(fifths)
        == fifths
    )
    assert str(BudgetSplit.of("1:1:2")) == "1:1:2"
    for bad in ((0.6, 0.2), (0.5, 0.2, 0.2), "3:1", "1:0:1", 3):
        with pytest.raises(ParameterError, match="split"):
            BudgetSplit.of(bad)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 101}, "at most 100"),
        ({"epsilon": 1, "G": 1}, "'G'"),
        ({"epsilon": 1, "G": 1000}, "at most 256"),
        ({"epsilon": 1, "cap": 1}, "'cap'"),
        ({"epsilon": 1, "r_deg": -1}, "r_deg"),
        ({"epsilon": 1, "window_s": 0}, "window_s"),
    ],
)
def test_wrong_parameters_are_refused_in_words(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        DPGazeSynth(**parameters)  # type: ignore[arg-type]
