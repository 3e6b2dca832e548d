"""Density of gaze: Jensen-Shannon divergence of histograms."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.utility.registry import utility
from gazeveil.utility.saliency import Density, jensen_shannon

SCREEN = Screen(1600, 900, 480.0, 270.0, 600.0)


def gaze(
    person: str, stimulus: str, x: np.ndarray, y: np.ndarray, space: Sphere | Screen = SCREEN
) -> Recording:
    return Recording(
        person,
        stimulus,
        np.arange(len(x), dtype=np.int64) * 10_000_000,
        x,
        y,
        space=space,
        rate_hz=100.0,
    )


def cloud(seed: int, n: int = 4000, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 4, n), rng.normal(0, 3, n)


def measured(raw: Cohort, released: Cohort, **parameters: object) -> dict[str, float]:
    a = RecordingSet(raw)
    return {
        r.metric: r.value
        for r in utility("density", **parameters).measure(a, a, RecordingSet(released), 0)
    }


def test_the_divergence_is_that_of_scipy_in_nats_and_in_bits() -> None:
    a, b = cloud(0), cloud(1, shift=2.0)
    raw, released = Cohort([gaze("a", "s", *a)]), Cohort([gaze("a", "s", *b)])
    edges = [np.linspace(-w / 2, w / 2, 61) for w in (SCREEN.width_deg, SCREEN.height_deg)]
    p, q = (np.histogram2d(x, y, bins=edges)[0].ravel() for x, y in (a, b))
    got = measured(raw, released)
    assert got["jsd"] == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-9)
    assert got["jsd_pooled"] == pytest.approx(got["jsd"])  # one stimulus


def test_invalid_samples_do_not_count_whatever_they_hold() -> None:
    x, y = cloud(0)
    valid = np.ones(len(x) + 100, dtype=np.bool_)
    valid[-100:] = False
    some = gaze("a", "s", np.r_[x, np.zeros(100)], np.r_[y, np.zeros(100)]).with_(valid=valid)
    assert measured(Cohort([gaze("a", "s", x, y)]), Cohort([some]))["jsd"] == 0


def test_the_sphere_is_counted_over_all_of_it() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 360, 20_000), rng.uniform(0, 180, 20_000)
    raw = Cohort([gaze("a", "s", x, y, Sphere())])
    moved = Cohort([gaze("a", "s", np.mod(x + 180, 360), y, Sphere())])
    front = Cohort([gaze("a", "s", x / 2, y, Sphere())])
    got = measured(raw, moved, bins=4)
    assert got["jsd"] < 0.01
    assert measured(raw, front, bins=4)["jsd"] == pytest.approx(
        0.3113, abs=0.01
    )  # all in one half: 1 - 3/4 log2 3 + 1/2


def test_stimuli_are_averaged_and_pooled() -> None:
    raw = Cohort(
        [
            gaze("a", "s", np.full(90, -20.0), np.zeros(90)),
            gaze("a", "t", np.full(10, 20.0), np.zeros(10)),
        ]
    )
    swapped = Cohort(
        [
            gaze("a", "s", np.full(90, -20.0), np.zeros(90)),
            gaze("a", "t", np.full(10, 10.0), np.zeros(10)),
        ]
    )
    a = RecordingSet(raw)
    results = {r.metric: r for r in Density().measure(a, a, RecordingSet(swapped), 0)}
    assert results["jsd"].parts.tolist() == [0, 1]
    assert results["jsd"].value == 0.5
    assert results["jsd"].names == ("s", "t")
    assert results["jsd_pooled"].value == pytest.approx(0.1)  # only a tenth of the samples moved


def test_a_stimulus_without_gaze_on_the_screen_is_nan_and_the_note_says_so() -> None:
    raw = Cohort([gaze("a", "s", *cloud(0)), gaze("a", "t", *cloud(1))])
    gone = Cohort([raw[0], raw[1].with_(x_deg=np.full(4000, 80.0))])
    a = RecordingSet(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = Density().measure(a, a, RecordingSet(gone), 0)[0]
        none = Density().measure(
            a, a, RecordingSet(Cohort([gone[1].with_(stimulus=s) for s in ("s", "t")])), 0
        )
    assert result.value == 0
    np.testing.assert_array_equal(result.parts, [0, np.nan])
    assert "1 of 2 stimuli have no sample on the screen on one side" in result.note
    assert all(np.isnan(r.value) for r in none)


def test_chance_is_a_look_around_the_equator() -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    down = np.linspace(0.05, 179.95, 1800)
    likely = np.exp(-np.abs(down - 90) / 18.58) * np.sin(np.radians(down))
    drawn = rng.choice(down, n, p=likely / likely.sum())
    even = Cohort([gaze("a", "s", rng.uniform(0, 360, n), drawn, Sphere())])
    raw = Cohort(
        [
            gaze(
                "a",
                "s",
                np.mod(180 + rng.normal(0, 20, n), 360),
                90 + rng.normal(0, 10, n),
                Sphere(),
            )
        ]
    )
    a = RecordingSet(raw)
    for result in Density(bins=20).measure(a, a, RecordingSet(even), 0):
        assert result.value == pytest.approx(result.chance, abs=0.01)
        assert result.value > 0.15


def test_empty_histograms_and_tables_are_not_measured() -> None:
    assert math.isnan(jensen_shannon(np.zeros(4), np.ones(4)))
    keys = Keys.of_recordings([("a", "s", "1", "")], [np.arange(1)])
    table = RecordingSet(None, {"fixation": FeatureTable(np.zeros((1, 1)), ("duration",), keys)})
    a = RecordingSet(Cohort([gaze("a", "s", *cloud(0))]))
    with pytest.raises(DataError, match="tables only"):
        Density().measure(a, a, table, 0)
    with pytest.raises(ParameterError):
        Density(bins=0)
