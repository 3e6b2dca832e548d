"""Saliency maps of raw and released fixations."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.utility.registry import utility
from gazeveil.utility.saliency import METRICS, Saliency, cell_areas, cells, compare, saliency_map

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
