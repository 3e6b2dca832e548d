"""What DPGazeSynth is worth: density against Kaleido at equal epsilon, w and r (Ren et al. 2024,
Table 4), and one report against every slot.

Small forms of `benchmarks/dpgazesynth.py`, on the same measures.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil import Cohort, Screen, mechanism, simulate
from gazeveil.privacy.synthesis.dpgazesynth.curation.prior import FEW_WINDOWS, NARROW, worth_undoing
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    DPGazeSynth,
    DPGazeSynthOneReport,
    Synthesis,
)
from gazeveil.privacy.synthesis.dpgazesynth.one_process import collect, private_windows
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import windows_of
from gazeveil.utility.density import jensen_shannon
from gazeveil.utility.saliency import cells
from tests.support.recordings import real_cohort

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


def histogram(cohort: Cohort) -> NDArray[np.float64]:
    """All gaze on 60 x 60 cells."""
    counts = [
        np.bincount(cells(r.space, 60, 60, r.x_deg[r.valid], r.y_deg[r.valid]), minlength=3600)
        for r in cohort
    ]
    return np.sum(counts, axis=0).astype(np.float64)


def error(text: str, cohort: Cohort, seed: int = 1) -> float:
    """Density error of a release."""
    return jensen_shannon(
        histogram(cohort), histogram(mechanism(text).release(cohort, seed=seed).data)
    )


@pytest.mark.parametrize("name", ["gazecom", "eyenavgs_nthu"])
def test_dpgazesynth_beats_kaleido_in_density_at_equal_epsilon_window_and_radius_on_real_recordings(
    name: str,
) -> None:
    everybody = real_cohort(name)
    cohort = everybody.select(
        people=list(everybody.people)[:6], stimuli=everybody.stimuli[:3]
    ).load()
    space, w = cohort[0].space, round(0.5 * cohort[0].rate_hz)
    for epsilon, size in ((3, 60), (1, 30)):
        r_deg = f"{3 * min(space.width_deg, space.height_deg) / size:.6f}"
        # Three stimuli and six people are too few for the published counts of narrow budgets.
        for reading in ("corrected", "published") if epsilon == 3 else ("corrected",):
            theirs = error(
                f"kaleido:epsilon={epsilon},w={w},r_deg={r_deg},reading={reading}", cohort
            )
            ours = error(f"dpgazesynth:epsilon={epsilon},G={size},reading={reading}", cohort)
            assert ours < theirs, (epsilon, size, reading)
        assert error(f"dpgazesynth-one-report:epsilon={epsilon},G={size}", cohort) < error(
            f"dpgazesynth:epsilon={epsilon},G={size}", cohort
        )


def true_steps(cohort: Cohort, grid: CellGrid) -> NDArray[np.float64]:
    """How often each step is taken, shape (cells, 8)."""
    truth = np.zeros(grid.number.shape)
    for r in cohort:
        _, _, left, direction = windows_of(r, grid, round(r.rate_hz / 2)).moves(grid)
        np.add.at(truth, (left, direction), 1.0)
    return truth


def total_variation(rows: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    often = truth.sum(axis=1)
    return float(
        np.sum(often * np.abs(rows - truth / np.maximum(often, 1)[:, None]).sum(axis=1))
        / (2 * often.sum())
    )


def model_of(base: Synthesis, cohort: Cohort, seed: int) -> Model:
    private = list(private_windows(base.scheme(), cohort))
    return collect(
        base.settled(sum(len(w) for _, _, w in private)).scheme(),
        "",
        private,
        Streams(seed, "worth"),
    ).learn()


@pytest.mark.parametrize("people", [10, 100])
def test_one_report_beats_every_slot_in_total_variation_and_in_density_under_the_same_promise(
    people: int,
) -> None:
    cohort, grid = (
        simulate(people, 1, 20.0, 30.0, task="video", space=SCREEN, seed=7).load(),
        CellGrid(SCREEN, 60, False),
    )
    truth = true_steps(cohort, grid)
    for epsilon in (1, 3):
        split, one = DPGazeSynth(epsilon), DPGazeSynthOneReport(epsilon)
        distances = [
            total_variation(model_of(m, cohort, 1).transitions.rows, truth) for m in (split, one)
        ]
        assert distances[1] < distances[0]
        densities = [
            np.mean([error(str(m), cohort, seed) for seed in range(12 if people == 10 else 2)])
            for m in (split, one)
        ]
        assert densities[1] < densities[0]
        promises = [m.release(cohort, seed=1).guarantee for m in (split, one)]
        assert promises[0].numbers == promises[1].numbers


def test_no_direction_is_learned_from_few_windows_and_public_ones_stand() -> None:
    cohort = simulate(20, 1, 20.0, 30.0, task="video", space=SCREEN, seed=7).load()
    model = model_of(DPGazeSynthOneReport(1), cohort, 2)
    assert model.learned["directions"] == 0.0
    inner = model.transitions.rows[30 * 60 + 30]
    np.testing.assert_allclose(inner, np.tile([3.0, 1.0], 4) / 16.0)


def test_noisy_starts_stay_where_windows_are_few_and_the_noise_is_narrow() -> None:
    grid = CellGrid(SCREEN, 60, False)
    side = min(SCREEN.width_deg, SCREEN.height_deg)
    assert not worth_undoing(grid, 0.9 * NARROW * side, FEW_WINDOWS - 1)
    assert worth_undoing(grid, 0.9 * NARROW * side, FEW_WINDOWS)
    assert worth_undoing(grid, 1.1 * NARROW * side, 10)
    cohort = simulate(3, 1, 10.0, 30.0, space=SCREEN, seed=1).load()
    assert not model_of(DPGazeSynthOneReport(3), cohort, 1).densities
    assert model_of(DPGazeSynthOneReport(1), cohort, 1).densities
