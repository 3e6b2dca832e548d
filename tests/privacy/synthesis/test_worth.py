"""What DPGazeSynth is worth: density against Kaleido at equal epsilon, w and r (Ren et al. 2024,
Table 4), and one report against every slot.

Small forms of `benchmarks/dpgazesynth.py`, on the same measures.
"""

from __future__ import annotations

import numpy as np

from gazeveil import Cohort, Screen, simulate
from gazeveil.privacy.synthesis.dpgazesynth.curator import collect, private_windows
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynthOneReport, Synthesis
from gazeveil.privacy.synthesis.dpgazesynth.model import FEW_WINDOWS, NARROW, worth_undoing
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Model, Streams

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


def model_of(base: Synthesis, cohort: Cohort, seed: int) -> Model:
    private = list(private_windows(base.scheme(), cohort))
    return collect(base.scheme(), "", private, Streams(seed, "worth")).learn()


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
