"""The gaze predictor: its sizes and what it learns."""

import numpy as np
import pytest

from gazeveil.arrays import Floats
from gazeveil.errors import DataError, ParameterError
from gazeveil.models.headset.dgaze import dgaze_plan, gaze_predictor, train_dgaze
from gazeveil.models.training import StepPlan
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

LAGS = 6


def moves(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Histories of two channels, and a place that the second lag gives away."""
    history = np.random.default_rng(seed).normal(size=(rows, 2, LAGS))
    return history, 3.0 * history[:, :, 1]


def plan(steps: int) -> StepPlan:
    return StepPlan(steps, 3e-3)


def test_the_network_has_the_sizes_of_the_published_one() -> None:
    parts = gaze_predictor(np.ones(13, dtype=np.float32), 50, 1152, "published", 0).parts
    assert parts["history"][0].weight.shape == (128, 13, 2)
    assert parts["map"][0].weight.shape == (64, 1152)
    assert parts["joined_1"][0].weight.shape == (128, 24 * 128 + 64)
    assert parts["joined_2"][0].weight.shape == (128, 128)
    assert parts["out"].weight.shape == (2, 128)
    # Its authors begin with N(0, 1) in convolutions: torch's own would have a deviation of 0.11.
    assert parts["history"][0].weight.std().item() == pytest.approx(1.0, abs=0.1)


def test_before_training_gaze_stays_where_it_is() -> None:
    network = gaze_predictor(np.ones(2, dtype=np.float32), LAGS, 0, "corrected", 0)
    np.testing.assert_array_equal(network.predict(moves(5, 0)[0]), 0.0)


@pytest.mark.parametrize("reading", ["corrected", "published"])
def test_it_learns_where_gaze_goes(reading: str) -> None:
    network, losses = train_dgaze(*moves(1000, 1), plan(80), reading=reading, batch=48)
    history, target = moves(300, 2)
    error = np.linalg.norm(network.predict(history) - target, axis=1).mean()
    none = np.linalg.norm(target, axis=1).mean()
    assert error < (0.4 if reading == "corrected" else 0.9) * none
    assert np.mean(losses[-10:]) < np.mean(losses[:10])


def test_a_map_is_looked_at() -> None:
    rng = np.random.default_rng(0)
    history, maps = rng.normal(size=(600, 2, LAGS)), rng.normal(size=(600, 9))
    target = 3.0 * maps[:, :2]
    seen, _ = train_dgaze(history, target, plan(60), maps, batch=48)
    blind, _ = train_dgaze(history, target, plan(60), batch=48)
    errors = [
        np.abs(made - target).mean()
        for made in (seen.predict(history, maps), blind.predict(history))
    ]
    assert errors[0] < 0.6 * errors[1]


def test_the_published_rate_falls_five_times_and_ours_goes_in_a_cycle() -> None:
    published, ours = dgaze_plan("published", 60, 0), dgaze_plan("corrected", 60, 0)
    assert [round(published.rate(s), 9) for s in (0, 9, 10, 20, 59)] == [
        *(0.01, 0.01, 0.001, 0.0001),
        1e-7,
    ]
    assert ours.rate(0) < ours.rate(17) > ours.rate(59)


def test_what_cannot_be_learnt_from_is_refused() -> None:
    history, target = moves(10, 0)
    with pytest.raises(DataError, match="finite"):
        train_dgaze(np.where(history > 2, np.nan, history) * np.nan, target, plan(1))
    with pytest.raises(DataError, match="at least two moments"):
        train_dgaze(history[:1], target[:1], plan(1))
    with pytest.raises(ParameterError, match="reading"):
        train_dgaze(history, target, plan(1), reading="improved")
