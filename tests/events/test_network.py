"""The networks of `auto` and `online`: what they are given, and that all ways to run them agree."""

from __future__ import annotations

import importlib.util
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.arrays import Singles
from gazeveil.events.auto import detector as auto
from gazeveil.events.auto.network import (
    CLASSES,
    FEATURES,
    SCALES,
    grid_factor,
    motion,
    noise_on_grid,
    shipped,
    to_grid,
)
from gazeveil.events.online.streaming import (
    add_sample,
    new_memory,
    packed,
    unpack_network,
    unpack_state,
    update_noise,
)
from tests.support.event_signals import step_path

ROOT = Path(__file__).parents[2]


def training() -> Any:
    """The training script, which lies beside the package."""
    spec = importlib.util.spec_from_file_location(
        "events_training", ROOT / "benchmarks" / "events_training.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def torch_probabilities(name: str, features: Singles) -> Singles:
    """What PyTorch makes of the weights."""
    torch = pytest.importorskip("torch")
    net = training().network(name == "online")
    with (files("gazeveil.events") / "weights" / f"{name}.npz").open("rb") as file:
        net.load_state_dict({k: torch.from_numpy(v) for k, v in np.load(file).items()})
    with torch.no_grad():
        logits = net(torch.from_numpy(features.T[None].copy()))
        result: Singles = torch.softmax(logits, dim=1)[0].numpy().T
    return result


def gaze(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    jumps = np.cumsum(rng.normal(0, 4, (2, n)) * (rng.random(n) < 0.01), axis=1)
    return jumps + rng.normal(0, 0.02, (2, n))


@pytest.mark.parametrize(
    ("rate_hz", "merge", "split"),
    [(2000.0, 8, 1), (1000.0, 4, 1), (500.0, 2, 1), (250.0, 1, 1), (120.0, 1, 2), (36.0, 1, 7)],
)
def test_every_rate_comes_near_to_one_grid(rate_hz: float, merge: int, split: int) -> None:
    assert grid_factor(rate_hz) == (merge, split)
    assert 177 <= rate_hz * split / merge <= 354


def test_the_grid_keeps_places_and_what_was_seen() -> None:
    points, seen = np.arange(12.0).reshape(2, 6), np.array([1, 1, 0, 1, 1, 1], dtype=bool)
    grid, there = to_grid(points, seen, 1, 2)
    np.testing.assert_allclose(grid[0], np.arange(0, 5.5, 0.5))
    assert there.tolist() == [True, True, True, False, False, False, True, True, True, True, True]
    grid, there = to_grid(points, seen, 2, 1)
    np.testing.assert_allclose(grid[0], [0.5, 3.0, 4.5])  # the lost sample does not count
    assert there.tolist() == [True, True, True]


def test_motion_hardly_depends_on_the_rate() -> None:
    found = {}
    for rate_hz in (250.0, 500.0, 1000.0):
        x = step_path(rate_hz)
        merge, split = grid_factor(rate_hz)
        points, seen = np.stack((x, 0 * x)), np.ones(len(x), dtype=bool)
        grid, there = to_grid(points, seen, merge, split)
        found[rate_hz] = motion(grid, there, 250.0, np.full(len(there), 0.01), False)
    for rate_hz in (500.0, 1000.0):
        n = min(len(found[250.0]), len(found[rate_hz]))
        apart = np.abs(found[250.0][:n, : len(SCALES)] - found[rate_hz][:n, : len(SCALES)])
        assert np.median(apart) < 0.01
        assert apart.mean() < 0.02


def test_numbers_stay_within_their_bounds_on_any_gaze() -> None:
    n = 3000
    points = gaze(n) * 50
    seen = np.random.default_rng(1).random(n) < 0.9
    for late in (False, True):
        numbers = motion(points, seen, 250.0, np.full(n, 0.3), late)
        assert numbers.shape == (n, FEATURES)
        assert np.isfinite(numbers).all()
        assert (np.abs(numbers[:, :-1]) <= 1 + 1e-6).all()


@pytest.mark.parametrize("sigma_deg", [0.01, 0.1, 0.5])
def test_noise_is_measured_through_movement(sigma_deg: float) -> None:
    n = 20_000
    x = np.cumsum(np.random.default_rng(2).normal(0, 5, n) * (np.arange(n) % 60 == 0))
    points = np.stack((x, 0 * x)) + np.random.default_rng(3).normal(0, sigma_deg, (2, n))
    seen = np.ones(n, dtype=bool)
    assert noise_on_grid(points, seen, 1) == pytest.approx(sigma_deg, rel=0.1)
    running = training().running_noise(points, seen, 1)
    assert np.median(running[5000:]) == pytest.approx(sigma_deg, rel=0.15)


def test_the_weights_run_as_in_the_library_they_were_trained_with() -> None:
    n = 4000
    numbers = motion(gaze(n), np.ones(n, dtype=bool), 250.0, np.full(n, 0.02), False)
    found = shipped("auto").probabilities(numbers)
    np.testing.assert_allclose(found, torch_probabilities("auto", numbers), atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert found.shape == (n, len(CLASSES))


@pytest.mark.parametrize(
    ("rate_hz", "merge", "split"), [(250.0, 1, 1), (1000.0, 4, 1), (60.0, 1, 4)]
)
def test_a_stream_gives_what_the_causal_network_gives_at_once(
    rate_hz: float, merge: int, split: int
) -> None:
    n = 800 * merge // split
    points = gaze(n, 5)
    seen = np.ones(n, dtype=bool)
    grid, there = to_grid(points, seen, merge, split)
    size = len(there) // 4 * 4
    grid_hz = rate_hz * split / merge
    noise = training().running_noise(grid, there, split)
    numbers = motion(grid, there, grid_hz, noise, True)[:size]
    whole = torch_probabilities("online", numbers)
    net, state = unpack_network(packed(shipped("online"))), unpack_state(*new_memory(grid_hz))
    told = []
    for i in range(n):
        for j in range(1 if i else split, split + 1):
            place = np.zeros(3)
            before = points[:, max(0, i - 1)]
            place[:2] = before + (points[:, i] - before) * j / split
            if merge == 1 and j == split:
                update_noise(state, place, True)
            if add_sample(state, net, place, True, merge):
                told.append(state.probabilities[: len(CLASSES)].copy())
    np.testing.assert_allclose(np.array(told)[:size], whole, atol=1e-5)


def test_pieces_of_a_long_recording_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 9000
    points, seen = gaze(n, 7), np.ones(n, dtype=bool)
    whole = auto.class_probabilities(points, seen, 250.0, shipped("auto"))
    monkeypatch.setattr(auto, "_PIECE", 1024)
    pieces = auto.class_probabilities(points, seen, 250.0, shipped("auto"))
    np.testing.assert_allclose(pieces, whole, atol=1e-5)


def test_the_weights_are_small() -> None:
    for name in ("auto", "online"):
        net = shipped(name)
        assert sum(w.size for w in net) < 13_000
