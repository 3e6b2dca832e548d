"""Saliency maps of raw and released fixations.

Density of gaze: Jensen-Shannon divergence of histograms.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.utility.maps import (
    METRICS,
    Density,
    Saliency,
    cell_areas,
    cells,
    compare,
    jensen_shannon,
    saliency_map,
)
from gazeveil.utility.registry import utility

SCREEN = Screen(1600, 900, 480.0, 270.0, 600.0)


def looking(
    person: str,
    stimulus: str,
    seed: int,
    space: Sphere | Screen,
    turn_deg: float = 0.0,
    n: int = 10,
) -> Recording:
    """Fixations of 0.3 s at 100 Hz around the middle of the space."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0, 15, n) + turn_deg, np.clip(rng.normal(0, 8, n), -12, 12)
    if isinstance(space, Sphere):
        x, y = np.mod(x + 180, 360), y + 90
    else:
        x = np.clip(x, -20, 20)
    t = np.arange(30 * n, dtype=np.int64) * 10_000_000
    return Recording(
        person, stimulus, t, np.repeat(x, 30), np.repeat(y, 30), space=space, rate_hz=100.0
    )


def cohort(space: Sphere | Screen = Sphere(), turn_deg: float = 0.0) -> Cohort:  # noqa: B008
    return Cohort(
        [
            looking(p, s, 7 * i + 100 * j, space, turn_deg)
            for i, p in enumerate("abcd")
            for j, s in enumerate(("s", "t"))
        ]
    )


def figures(raw: Cohort, released: Cohort, setting: Saliency | None = None) -> dict[str, float]:
    a, b = RecordingSet(raw), RecordingSet(released)
    return {r.metric: r.value for r in (setting or Saliency()).measure(a, a, b, 0)}


@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_the_same_fixations_give_the_same_map(space: Sphere | Screen) -> None:
    raw = RecordingSet(cohort(space))
    results = Saliency().measure(raw, raw, RecordingSet(cohort(space)), 0)
    assert [r.metric for r in results] == list(METRICS)
    kl, cc, sim, nss = (r.value for r in results)
    assert 0 <= kl < 1e-6
    assert cc == pytest.approx(1, abs=1e-9)
    assert sim == pytest.approx(1, abs=1e-6)
    assert nss > 1
    assert all(r.of == "stimulus" and r.names == ("s", "t") and len(r.parts) == 2 for r in results)


def test_every_figure_is_the_textbook_formula_on_a_screen() -> None:
    """On a screen all cells are equal, so plain formulas hold."""
    rng = np.random.default_rng(1)
    rows, columns = 30, 50
    at, other = (rng.integers(0, rows * columns, 40) for _ in range(2))
    p, q = (saliency_map(SCREEN, rows, columns, a, 3.0) for a in (at, other))
    assert p.sum() == pytest.approx(1)
    kl, cc, sim, nss = compare(p, q, cell_areas(SCREEN, rows, columns), at)
    assert kl == pytest.approx(stats.entropy(p.ravel(), q.ravel()), abs=1e-6)
    assert cc == pytest.approx(np.corrcoef(p.ravel(), q.ravel())[0, 1])
    assert sim == pytest.approx(1 - 0.5 * np.abs(p - q).sum())
    assert nss == pytest.approx(np.mean(((q - q.mean()) / q.std()).ravel()[at]))
    # The direction matters: raw is the first argument.
    assert kl != pytest.approx(compare(q, p, cell_areas(SCREEN, rows, columns), other)[0], rel=1e-3)


def test_figures_are_independent_of_latitude() -> None:
    """A blob at 60 degrees of latitude covers twice the pixels of one at the equator, but no more
    of the sphere.
    """

    def nss(y_deg: float) -> float:
        rows, columns = 180, 360
        at = cells(Sphere(), rows, columns, np.array([180.0]), np.array([y_deg]))
        p = saliency_map(Sphere(), rows, columns, at, 4.0)
        return compare(p, p, cell_areas(Sphere(), rows, columns), at)[3]

    assert nss(30.0) == pytest.approx(nss(90.0), rel=0.05)


def test_the_further_fixations_move_the_less_alike_the_maps_are() -> None:
    near, far = figures(cohort(), cohort(turn_deg=2.0)), figures(cohort(), cohort(turn_deg=20.0))
    assert near["kl"] < far["kl"]
    for metric in ("cc", "sim", "nss"):
        assert near[metric] > far[metric]


def test_a_release_without_fixations_counts_as_an_even_map() -> None:
    raw = cohort()
    lost = Cohort(
        [
            r.with_(
                x_deg=np.full(len(r), np.nan),
                y_deg=np.full(len(r), np.nan),
                valid=np.zeros(len(r), dtype=np.bool_),
            )
            for r in raw
        ]
    )
    recording_set = RecordingSet(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = Saliency().measure(recording_set, recording_set, RecordingSet(lost), 0)
    for result in results:
        assert "2 stimuli without a released fixation count as even" in result.note
    assert results[1].value == results[3].value == 0
    assert results[0].value > 1


def test_fixations_off_the_screen_are_left_out() -> None:
    at = cells(
        SCREEN,
        4,
        4,
        np.array([0.0, 80.0, -80.0, np.nan, SCREEN.width_deg / 2]),
        np.array([0.0, 0.0, 0.0, 0.0, 0.0]),
    )
    assert at.tolist() == [2 * 4 + 2]
    edge = cells(
        Sphere(), 7, 11, np.array([np.nextafter(360, 0)]), np.array([np.nextafter(180, 0)])
    )
    assert edge.tolist() == [7 * 11 - 1]


def test_raw_material_without_fixations_is_refused() -> None:
    raw = RecordingSet(Cohort([looking("a", "s", 1, Sphere()).slice(0, 1)]))
    with pytest.raises(DataError, match="no fixation on any stimulus"):
        Saliency().measure(raw, raw, raw, 0)


def test_screens_of_different_shape_have_no_map_in_common() -> None:
    tall = Screen(900, 1600, 270.0, 480.0, 600.0)
    raw = RecordingSet(Cohort([looking("a", "s", 1, SCREEN), looking("b", "s", 2, tall)]))
    with pytest.raises(DataError, match="different shape"):
        Saliency().measure(raw, raw, raw, 0)


def test_parameters_come_from_text_and_wrong_ones_are_refused() -> None:
    assert utility("saliency:sigma_deg=3.34,rows=90") == Saliency(sigma_deg=3.34, rows=90)
    assert str(Saliency()) == "saliency"
    assert utility(str(Saliency(sigma_deg=1.0))) == Saliency(sigma_deg=1.0)
    for wrong in ({"sigma_deg": -1}, {"sigma_deg": "wide"}, {"rows": 1}, {"rows": 10**6}):
        with pytest.raises(ParameterError):
            utility("saliency", **wrong)


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
