"""Errors of released signals: the printed formulas, their finite alternatives, matching rows and
samples, and what is refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.registry import utility
from gazeveil.utility.signal import measures

BOUNDS = [[0.0, 10.0], [-4.0, 4.0]]


def table(
    values: NDArray[np.float64], people: int, rows: int, bounds: list[list[float]] | None = BOUNDS
) -> FeatureTable:
    keys = Keys.of_recordings(
        [(f"p{p}", "text", "1", "") for p in range(people)], [np.arange(rows)] * people
    )
    return FeatureTable(values, ("a", "b"), keys, bounds)


def held(one: FeatureTable, kind: str = "window") -> RecordingSet:
    return RecordingSet(None, {kind: one})


def by_metric(
    raw: RecordingSet, test: RecordingSet, text: str = "signal"
) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility(text).measure(raw, raw, test, 0)}


def test_the_printed_formulas_are_the_printed_ones() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 3, (50, 2)), rng.uniform(1, 3, (50, 2))
    y[:, 1] -= 4  # a negative mean: the printed NMSE is negative, its absolute value is what counts
    found = measures(x, y, np.array([10.0, 8.0]))
    nmse = np.array(
        [
            sum((x[i, f] - y[i, f]) ** 2 / (x[:, f].mean() * y[:, f].mean()) for i in range(50))
            / 50
            for f in range(2)
        ]
    )
    assert nmse[1] < 0
    assert found[0] == pytest.approx(np.abs(nmse))
    assert found[1] == pytest.approx(np.sqrt(((x - y) ** 2).mean(axis=0)) / [10, 8])
    assert found[2] == pytest.approx(np.sqrt(((x - y) ** 2).sum(axis=0)) / [10, 8])


def test_errors_are_averaged_over_recordings_then_features_then_people() -> None:
    x = np.full((12, 2), 2.0)
    y = x.copy()
    y[:4, 0] += 1.0  # p0, feature a: 1 of 10
    y[4:8, 1] += 4.0  # p1, feature b: 4 of 8
    found = by_metric(held(table(x, 3, 4)), held(table(y, 3, 4)))
    assert found["rmse"].parts.tolist() == pytest.approx([0.05, 0.25, 0.0])
    assert found["rmse"].value == pytest.approx(0.1)
    assert found["rmse_published"].value == pytest.approx(0.2)
    assert found["rmse"].names == ("p0", "p1", "p2")


def test_the_median_stays_where_the_published_average_goes_wild() -> None:
    """The mean of a released signal may be near 0, and the printed figure divides by it: its
    average is carried by single signals.
    """
    rng = np.random.default_rng(1)
    x = np.full((2000 * 4, 2), 1.0)
    y = x + rng.normal(0, 3, (2000, 1, 2)).repeat(4, axis=1).reshape(-1, 2)
    found = by_metric(held(table(x, 2000, 4)), held(table(y, 2000, 4)))
    halves = [
        by_metric(held(table(x[s], 1000, 4)), held(table(y[s], 1000, 4)))
        for s in (slice(0, 4000), slice(4000, 8000))
    ]
    assert found["nmse"].parts.max() > 100 * found["nmse_median"].value
    assert halves[0]["nmse_median"].value == pytest.approx(halves[1]["nmse_median"].value, rel=0.25)


def test_rows_are_matched_by_their_keys_in_any_order() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(1, 2, (30, 2))
    raw = table(x, 3, 10)
    mixed = raw.where(rng.permutation(30))
    found = by_metric(held(raw), held(mixed))
    assert found["rmse"].value == 0
    fewer = raw.where((raw.keys.person != "p1") & (raw.keys.index >= 4))
    found = by_metric(held(raw), held(fewer))
    assert found["rmse"].value == 0
    assert found["rmse"].names == ("p0", "p2")
    assert "12 of 30 recorded rows" in found["rmse"].note


def test_features_that_are_zero_missing_or_exact_are_counted_and_nothing_warns(
    recwarn: pytest.WarningsRecorder,
) -> None:
    rng = np.random.default_rng(3)
    x = np.column_stack([np.zeros(20), rng.uniform(1, 2, 20)])
    y = x + np.array([1.0, 0.0])
    y[3, 1] = np.nan
    found = by_metric(held(table(x, 2, 10)), held(table(y, 2, 10)))
    assert found["nmse"].value == 0  # feature a has no level, feature b no error
    assert "2 of 4 signals have a mean of 0" in found["nmse"].note
    assert found["rmse"].value == pytest.approx(0.05)
    assert not recwarn.list


def test_without_bounds_the_unit_is_the_recorded_deviation() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(5, 2, (4000, 2))
    found = by_metric(held(table(x, 2, 2000, None)), held(table(x + 1.0, 2, 2000, None)))["rmse"]
    assert found.value == pytest.approx(0.5, rel=0.05)
    assert "standard deviation" in found.note


# --- samples
# --------------------------------------------------------------------------------------------------


def gaze(x: NDArray[np.float64], y: NDArray[np.float64], **more: object) -> Recording:
    t_ns = np.arange(len(x)) * 10_000_000
    return Recording("p", "s", t_ns, x, y, rate_hz=100.0, **more)  # type: ignore[arg-type]


def position_errors(raw: Recording, test: Recording) -> list[float]:
    """RMS, root of the sum of squares, median error and the share kept."""
    found = by_metric(*(RecordingSet(Cohort([r])) for r in (raw, test)))
    names = ("rmse_deg", "rmse_published_deg", "median_error_deg", "kept_share")
    return [found[name].value for name in names]


def test_positions_are_compared_by_the_angle_on_the_sphere() -> None:
    x, y = (
        np.full(4, 359.0),
        np.full(4, 30.0),
    )  # at 60 degrees of latitude a step of longitude is half as long
    raw, moved = gaze(x, y, space=Sphere()), gaze(np.full(4, 1.0), y, space=Sphere())
    found = position_errors(raw, moved)
    assert found[0] == pytest.approx(1.0, rel=1e-3)
    assert found[1] == pytest.approx(2.0, rel=1e-3)
    assert found[2] == pytest.approx(1.0, rel=1e-3)


def test_a_regular_clock_is_compared_with_the_trackers_own_one_sample_by_sample() -> None:
    rng = np.random.default_rng(6)
    n = 500
    t = np.arange(n) * 10_000_000 + rng.integers(-2_000_000, 2_000_000, n)
    x = np.cumsum(rng.normal(0, 0.1, n)) % 360
    raw = Recording("p", "s", t, x, np.full(n, 90.0), rate_hz=100.0)
    regular = Recording("p", "s", np.arange(n) * 10_000_000, x, np.full(n, 90.0), rate_hz=100.0)
    found = position_errors(raw, regular)
    assert found == pytest.approx([0, 0, 0, 1], abs=1e-9)
    # With another number of samples the times decide, and a sample stands for one.
    every_second = regular.slice(0, n).with_(
        **{name: getattr(regular, name)[::2] for name in ("t_ns", "x_deg", "y_deg", "valid")}
    )
    found = position_errors(raw, every_second)
    assert found == pytest.approx([0, 0, 0, 0.5], abs=1e-9)
    elsewhere = every_second.with_(t_ns=every_second.t_ns + 10**12)
    assert position_errors(raw, elsewhere)[-1] == 0


def test_only_samples_that_both_have_are_compared() -> None:
    cohort = gazeveil.simulate(2, 2, seconds=5, rate_hz=120, seed=3).load()
    raw = RecordingSet(cohort)
    third = RecordingSet(gazeveil.mechanism("temporal", K=3).release(cohort, seed=1).data)
    found = by_metric(raw, third)
    assert found["rmse_deg"].value == pytest.approx(0, abs=1e-6)
    assert found["kept_share"].value == pytest.approx(1 / 3, abs=0.03)
    noisy = RecordingSet(gazeveil.mechanism("gaussian", sigma_deg=2).release(cohort, seed=1).data)
    found = by_metric(raw, noisy)
    assert found["rmse_deg"].value == pytest.approx(2 * np.sqrt(2), rel=0.1)
    assert found["median_error_deg"].value == pytest.approx(2 * np.sqrt(2 * np.log(2)), rel=0.1)
    assert found["rmse_published_deg"].value == pytest.approx(
        found["rmse_deg"].value * np.sqrt(600), rel=0.1
    )


# --- what is compared, and what is refused
# -------------------------------------------------------------------------------------------------


def test_auto_takes_samples_where_there_are_any_and_tables_otherwise() -> None:
    cohort = gazeveil.simulate(2, 1, seconds=40, rate_hz=60, seed=3).load()
    raw = RecordingSet(cohort)
    assert "rmse_deg" in by_metric(raw, raw)
    assert "nmse" in by_metric(raw, held(raw.fixations, "fixation"))
    assert "nmse" in by_metric(raw, raw, "signal:on=window")
    assert utility("signal:on=saccade").can(held(raw.saccades, "saccade"))
    assert not utility("signal:on=saccade").can(held(raw.fixations, "fixation"))
    assert not utility("signal:on=samples").can(held(raw.fixations, "fixation"))
    assert str(utility("signal:on=saccade")) == "signal:on=saccade"


def test_what_cannot_be_compared_is_refused_in_one_sentence() -> None:
    raw = held(table(np.ones((8, 2)), 2, 4))
    other = FeatureTable(np.ones((8, 2)), ("c", "d"), raw.windows.keys)
    k = raw.windows.keys
    strangers = FeatureTable(
        np.ones((8, 2)),
        ("a", "b"),
        Keys(np.char.add("x", k.person), k.stimulus, k.session, k.task, k.index),
    )
    with pytest.raises(DataError, match="no feature in common"):
        utility("signal").measure(raw, raw, held(other), 0)
    with pytest.raises(DataError, match="pseudonyms"):
        utility("signal").measure(raw, raw, held(strangers), 0)
    with pytest.raises(DataError, match="samples on both sides"):
        utility("signal:on=samples").measure(raw, raw, raw, 0)
    with pytest.raises(ParameterError, match="'samples'"):
        utility("signal:on=sample")
