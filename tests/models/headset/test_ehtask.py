"""The recogniser of activities: its sizes, and what it tells apart."""

import numpy as np
import pytest

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.models.headset.ehtask import (
    BRANCHES,
    activity_network,
    ehtask_plan,
    movements,
    train_ehtask,
)
from gazeveil.models.training import StepPlan
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

ONES = np.ones(6, dtype=np.float32)


def windows(rows: int, seed: int, branch: int = 1) -> tuple[Floats, Ints]:
    """Noise; in every second window one signal swings slowly instead."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(rows, 6, 40))
    classes = np.arange(rows) % 2
    swing = np.sin(np.arange(40) / 5 + rng.uniform(0, 6, (rows, 2, 1)))
    part = slice(2 * branch, 2 * branch + 2)
    made[classes == 1, part] = swing[classes == 1]
    return made, classes


def plan(steps: int) -> StepPlan:
    return StepPlan(steps, 5e-3)


def test_the_network_has_the_sizes_of_the_published_one() -> None:
    parts = activity_network(0 * ONES, ONES, 4, "published", 0).parts
    for branch in BRANCHES:
        assert [m.weight.shape for m in parts[branch] if isinstance(m, torch.nn.Conv1d)] == [
            (16, 2, 3),
            (16, 16, 3),
            (16, 16, 3),
        ]
        gru = parts[f"{branch}_gru"]
        assert (gru.input_size, gru.hidden_size, gru.bidirectional) == (16, 64, True)
    assert parts["joined_1"][0].weight.shape == (64, 384)
    assert parts["joined_2"][0].weight.shape == (64, 64)
    assert parts["out"].weight.shape == (4, 64)
    assert ehtask_plan("published", 300, 0).weight_decay == 1e-4


def test_movement_is_seen_beside_places_and_lost_where_a_step_is() -> None:
    window = np.zeros((1, 6, 5), dtype=np.float32)
    window[0, 0] = [0.0, 0.2, 0.2, np.nan, 40.0]
    window[0, 2] = 5.0
    moved = movements(window)
    one = np.arcsinh(1.0) / 2
    np.testing.assert_allclose(moved[0, 0], [0, one, 0, np.nan, np.nan], atol=1e-6)
    np.testing.assert_allclose(moved[0, 2], one, atol=1e-6)
    network = activity_network(0 * ONES, 4 * ONES, 2, "corrected", 0)
    seen = network.standardised(window)
    np.testing.assert_allclose(seen[0, 0], [0, 0.05, 0.05, 0, 10], atol=1e-6)
    np.testing.assert_allclose(seen[0, 2], [0, one, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(seen[0, 6], one, atol=1e-6)
    assert activity_network(0 * ONES, ONES, 2, "published", 0).standardised(window).shape[1] == 6


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_each_of_the_three_signals_is_looked_at(branch: int) -> None:
    network, _ = train_ehtask(*windows(80, 1, branch), plan(25), batch=20)
    given, classes = windows(60, 2, branch)
    assert (network.name_them(given) == classes).mean() > 0.9
    # The same network is at a loss where that signal is gone.
    given[:, 2 * branch : 2 * branch + 2] = np.nan
    assert (network.name_them(given) == classes).mean() < 0.7


def test_the_published_training_learns_too() -> None:
    network, losses = train_ehtask(*windows(80, 1), plan(25), "published", batch=20)
    given, classes = windows(60, 2)
    assert (network.name_them(given) == classes).mean() > 0.8
    assert losses[-1] < losses[0]


def test_what_cannot_be_learnt_from_is_refused() -> None:
    given, classes = windows(10, 0)
    with pytest.raises(DataError, match="at least 22 steps"):
        train_ehtask(given[:, :, :21], classes, plan(1))
    with pytest.raises(DataError, match="two classes"):
        train_ehtask(given, 0 * classes, plan(1))
    made, _ = train_ehtask(given[:, :, :22], classes, plan(1), batch=4)
    assert len(made.name_them(given[:, :, :22])) == 10
