"""Errors of released signals: the printed formulas, their finite alternatives, matching rows and
samples, and what is refused.

Correlation curves over participants: by hand, of differences, with ends and gaps, and the figure
Bozkir et al. 2021 draws.

The head beside protected gaze: its speed, the eye worked out again, and what has no head.

Events by person and by stimulus: medians, and what mixing people shows in which figure.

Stretches of both sides: pieces meet the same seconds of their own recording, and utilities that
follow a person refuse them.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil import Screen, simulate
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, angle_deg, from_tangents
from gazeveil.gaze.recording import Recording
from gazeveil.utility.base import UtilityResult, as_recorded, pieces, seconds_of, stretches
from gazeveil.utility.moments import eye_tangents, head_course, in_the_head
from gazeveil.utility.registry import utility
from gazeveil.utility.signal import correlation_curves, measures
from tests.support.pieces import RawPieces, jumper, jumpers

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


def correlated_table(signals: NDArray[np.float64], stimulus: str = "text") -> FeatureTable:
    """Signals of shape (people, steps, features)."""
    people, steps, features = signals.shape
    keys = Keys.of_recordings(
        [(f"p{p}", stimulus, "1", "") for p in range(people)], [np.arange(steps)] * people
    )
    return FeatureTable(
        signals.reshape(-1, features), tuple(f"f{i}" for i in range(features)), keys
    )


def test_curves_are_pearson_correlations_with_the_fifth_step() -> None:
    rng = np.random.default_rng(0)
    signals = rng.normal(0, 1, (12, 30, 2)).cumsum(axis=1)
    curves = correlation_curves(correlated_table(signals), last=30)
    assert curves.steps.tolist() == list(range(6, 31))
    assert curves.values.shape == (1, 2, 25)
    for f in range(2):
        for i, step in enumerate(curves.steps.tolist()):
            assert curves.values[0, f, i] == pytest.approx(
                np.corrcoef(signals[:, 4, f], signals[:, step - 1, f])[0, 1]
            )
    differences = np.diff(signals, axis=1, prepend=0.0)
    found = correlation_curves(correlated_table(signals), last=30, difference=True)
    assert found.values[0, 1, 7] == pytest.approx(
        np.corrcoef(differences[:, 4, 1], differences[:, 12, 1])[0, 1]
    )


def test_participants_who_stop_early_count_as_long_as_they_read() -> None:
    rng = np.random.default_rng(2)
    whole = correlated_table(rng.normal(0, 1, (6, 20, 1)))
    person = whole.keys.person.tolist()
    short = whole.where(
        [
            i
            for i in range(len(whole))
            if not (person[i] in ("p4", "p5") and whole.keys.index[i] >= 10)
        ]
    )
    curves = correlation_curves(short, last=25)
    assert curves.people[0].tolist() == [6] * 5 + [4] * 10 + [0] * 5
    v = short.values[:, 0].reshape(-1)
    first = {p: v[(short.keys.person == p)] for p in np.unique(short.keys.person).tolist()}
    four = np.array([first[f"p{i}"][[4, 14]] for i in range(4)])
    assert curves.values[0, 0, 9] == pytest.approx(np.corrcoef(four.T)[0, 1])
    assert np.isnan(curves.values[0, 0, 15:]).all()


def test_what_does_not_vary_or_is_missing_has_no_correlation(
    recwarn: pytest.WarningsRecorder,
) -> None:
    rng = np.random.default_rng(3)
    signals = rng.normal(0, 1, (7, 12, 3))
    signals[:, :, 0] = 0.1  # the mean of seven of these is not quite 0.1
    signals[:5, 8, 1] = np.nan
    signals[:, 4, 2] = 0.1
    curves = correlation_curves(correlated_table(signals), last=12)
    assert np.isnan(curves.values[0, [0, 2]]).all()
    assert np.isnan(curves.values[0, 1, 3])
    assert np.isfinite(curves.values[0, 1, 4])
    assert not recwarn.list
    with pytest.raises(DataError, match="rows"):
        correlation_curves(correlated_table(signals).where([]))
    with pytest.raises(ParameterError, match="at least 6"):
        correlation_curves(correlated_table(signals), last=5)


SCREEN = Screen(1600, 900, 480.0, 270.0, 600.0)


def turning(right_deg_s: float, down_deg_s: float, roll_deg: float = 0.0) -> Recording:
    """A head that turns at a constant speed past longitude 0, gaze straight ahead of it."""
    t = np.arange(50) / 50
    x, y = np.mod(359.0 + right_deg_s * t, 360.0), 90.0 + down_deg_s * t
    head = np.stack((x, y, np.full(50, roll_deg)), axis=1)
    return Recording("a", "s", np.round(t * 1e9).astype(np.int64), x, y, head_deg=head)


def test_a_heads_speed_is_in_its_own_axes_and_has_no_seam() -> None:
    for roll_deg, speed in ((0.0, (20.0, 0.0)), (90.0, (0.0, -20.0))):
        course = head_course(turning(20.0, 0.0, roll_deg))
        assert course is not None
        np.testing.assert_array_equal(course.velocity_deg_s[0], 0.0)
        np.testing.assert_allclose(course.velocity_deg_s[1:], [speed] * 49, atol=1e-6)
    down = head_course(turning(0.0, 10.0))
    assert down is not None
    np.testing.assert_allclose(down.velocity_deg_s[1:], [(0.0, 10.0)] * 49, atol=1e-6)


def test_the_eye_is_that_of_the_release_not_of_the_recording() -> None:
    recorded = turning(20.0, 0.0)
    eye = np.zeros((len(recorded), 2))
    recorded = recorded.with_(eye_in_head_deg=eye)
    release = Recording(
        "a", "s", recorded.t_ns, np.mod(recorded.x_deg + 5.0, 360.0), recorded.y_deg
    )
    np.testing.assert_allclose(eye_tangents(recorded, recorded), eye, atol=1e-9)
    np.testing.assert_allclose(
        eye_tangents(recorded, release), eye + np.array([5.0, 0.0]), atol=1e-6
    )
    # Without a pose the recorded eye is moved as gaze was.
    blind = recorded.with_(head_deg=None, eye_in_head_deg=eye + np.array([3.0, 1.0]))
    np.testing.assert_allclose(eye_tangents(blind, release), eye + np.array([8.0, 1.0]), atol=1e-3)


def test_gaze_in_the_head_leads_back_to_the_world_of_simulated_people() -> None:
    recorded = next(iter(simulate(1, 1, 4.0, 60.0, seed=3)))
    inside = in_the_head(recorded, recorded.with_(head_deg=None, eye_in_head_deg=None))
    assert recorded.eye_in_head_deg is not None
    known = inside.valid
    ahead = from_tangents(*recorded.eye_in_head_deg[known].T)
    assert angle_deg(inside.vectors[known], ahead).max() < 1e-6
    assert inside.head_deg is None


def test_a_screen_is_relative_to_the_head_already_and_a_sphere_without_head_is_refused() -> None:
    t = np.arange(5) * 10_000_000
    screen = Recording("a", "s", t, np.arange(5.0), np.arange(5.0), space=SCREEN)
    assert in_the_head(screen, screen) is screen
    np.testing.assert_array_equal(eye_tangents(screen, screen)[:, 0], np.arange(5.0))
    assert head_course(screen) is None
    sphere = Recording("a", "s", t, np.arange(5.0), 90.0 + np.arange(5.0), space=Sphere())
    with pytest.raises(DataError, match="reading=corrected"):
        in_the_head(sphere, sphere)


def test_published_speeds_are_read_upwards_and_a_lost_one_is_none() -> None:
    t = np.arange(3) * 10_000_000
    speeds = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    r = Recording("a", "s", t, t * 0.0, t * 0.0, space=SCREEN)
    course = head_course(r.with_(metadata={"head_velocity_deg_s": speeds}))
    assert course is not None
    assert course.velocity_deg_s.tolist() == [[1.0, -2.0], [0.0, -4.0], [5.0, -6.0]]
    assert course.at(np.array([-1, 10_000_000, 99_000_000])).tolist() == [0, 1, 2]


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(jumpers(people=6, stimuli=2, stay_s=0.6)).prepared(("fixation", "saccade"))


def measured(
    raw: RecordingSet, test: RecordingSet, text: str = "events"
) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility(text).measure(raw, raw, test, 0)}


def longer(table: FeatureTable, factor: float) -> FeatureTable:
    values = table.values.copy()
    values[:, table.columns.index("duration")] *= factor
    return FeatureTable(values, table.columns, table.keys, table.bounds)


@pytest.mark.parametrize("text", ["events", "events:by=stimulus"])
def test_fixations_a_tenth_longer_have_a_median_a_tenth_off(raw: RecordingSet, text: str) -> None:
    tables = {"fixation": longer(raw.fixations, 1.1), "saccade": raw.saccades}
    found = measured(raw, RecordingSet(None, tables), text)
    assert found["fixation_duration_median_error"].value == pytest.approx(0.1)
    assert found["saccade_amplitude_median_error"].value == 0.0


def test_mixing_people_shows_by_person_and_not_by_stimulus(raw: RecordingSet) -> None:
    names = sorted({r.person for r in raw.cohort or ()})
    swap = dict(zip(names, names[::-1], strict=True))
    mixed = RecordingSet(Cohort([r.with_(person=swap[r.person]) for r in raw.cohort or ()]))
    by_person, by_stimulus = (
        measured(raw, mixed, f"events:by={by}")["saccade_amplitude_wasserstein_deg"]
        for by in ("person", "stimulus")
    )
    assert by_person.value > 0.5
    assert by_person.of == "person"
    assert by_stimulus.value == pytest.approx(0.0, abs=1e-9)
    assert by_stimulus.of == "stimulus"
    assert by_stimulus.names == ("s0", "s1")


def test_pieces_are_compared_stimulus_by_stimulus_with_cut_recordings(raw: RecordingSet) -> None:
    cut = protect(raw, RawPieces(), seed=2)
    found = measured(raw, cut)
    assert {r.of for r in found.values()} == {"stimulus"}
    assert all(r.value == pytest.approx(0.0, abs=1e-9) for r in found.values())
    noisy = measured(raw, protect(raw, RawPieces(noise_deg=2.0), seed=2))
    assert noisy["fixation_duration_median_error"].value > 0.3


def test_a_release_without_events_has_lost_the_whole_median(raw: RecordingSet) -> None:
    lost = Cohort([r.with_(valid=np.zeros(len(r), dtype=np.bool_)) for r in raw.cohort or ()])
    found = measured(raw, RecordingSet(lost))
    assert found["fixation_duration_median_error"].value == 1.0
    assert found["saccade_amplitude_median_error"].value == 1.0


def test_another_word_is_refused() -> None:
    with pytest.raises(ParameterError, match="auto, person, stimulus"):
        utility("events:by=clip")


@pytest.fixture(scope="module")
def whole() -> RecordingSet:
    return RecordingSet(jumpers(people=6, stimuli=3))


@pytest.fixture(scope="module")
def cut(whole: RecordingSet) -> RecordingSet:
    return protect(whole, RawPieces(), seed=1)


def test_a_piece_meets_the_same_seconds_of_its_own_recording(
    whole: RecordingSet, cut: RecordingSet
) -> None:
    seen = list(pieces(whole, cut))
    assert len(seen) == 6 * 3 * 3  # 20 s hold three windows of 5 s and two gaps of 1 s
    assert {s.begin_ns for s in seen} == {0, 6_000_000_000, 12_000_000_000}
    for s in seen:
        assert s.recorded.key == s.viewer
        assert s.released.person != s.viewer[0]
        assert len(s.recorded) == len(s.released) == 300
        np.testing.assert_array_equal(s.recorded.x_deg, s.released.x_deg)


def test_where_names_last_both_sides_are_cut_into_the_same_windows(whole: RecordingSet) -> None:
    later = Cohort([r.with_(t_ns=r.t_ns + 10**12) for r in whole.cohort or ()])
    seen = list(stretches(whole, RecordingSet(later), window_s=4, gap_s=2))
    assert {s.begin_ns for s in seen} == {0, 6_000_000_000, 12_000_000_000}
    for s in seen:
        assert len(s.recorded) == 240
        np.testing.assert_array_equal(s.recorded.x_deg, s.released.x_deg)
        np.testing.assert_array_equal(s.recorded.t_ns, s.released.t_ns)


def test_a_wild_time_of_a_lost_sample_does_not_move_the_cut() -> None:
    recording = jumper(0, 0)
    t_ns, valid = recording.t_ns.copy(), recording.valid.copy()
    t_ns[100], valid[100] = -(10**15), False
    wild = recording.with_(t_ns=t_ns, valid=valid)
    found = seconds_of(wild, 6_000_000_000, 11_000_000_000)
    np.testing.assert_array_equal(found.x_deg, recording.x_deg[360:660])


def test_a_piece_of_a_strangers_recording_is_refused(
    whole: RecordingSet, cut: RecordingSet
) -> None:
    with pytest.raises(DataError, match="not among the raw ones"):
        list(pieces(whole.select(people=["p00"]), cut))


def test_recordings_cut_as_pieces_keep_the_true_names(
    whole: RecordingSet, cut: RecordingSet
) -> None:
    assert as_recorded(whole, whole) is whole
    like_pieces = as_recorded(whole, cut)
    assert like_pieces.persons == whole.persons
    assert len(like_pieces.keys) == len(cut.keys)


@pytest.mark.parametrize("name", ["document", "gender", "activity", "task", "events:by=person"])
def test_what_follows_a_person_refuses_pieces_in_one_sentence(
    name: str, whole: RecordingSet, cut: RecordingSet
) -> None:
    with pytest.raises(DataError, match="pieces, each under a name of its own, does not allow"):
        utility(name).measure(whole, whole, cut, 0)


@pytest.mark.parametrize("name", ["aoi", "density", "dwell", "events", "scanpath", "signal"])
def test_raw_pieces_lose_nothing_inside_them_and_noise_does(
    name: str, whole: RecordingSet, cut: RecordingSet
) -> None:
    noisy = protect(whole, RawPieces(noise_deg=3.0), seed=1)
    clean = {r.metric: r for r in utility(name).measure(whole, cut, cut, 0)}
    lost = {r.metric: r for r in utility(name).measure(whole, noisy, noisy, 0)}
    # What lies between pieces is lost to whoever looks at whole stimuli.
    if name != "density":
        for metric, result in clean.items():
            if result.better == "lower" and np.isfinite(result.value):
                assert result.value == pytest.approx(0, abs=1e-9), metric
    worse = [
        (1 if r.better == "lower" else -1) * (lost[m].value - r.value) for m, r in clean.items()
    ]
    assert max(v for v in worse if np.isfinite(v)) > 0


def test_the_share_kept_counts_what_lies_between_pieces(
    whole: RecordingSet, cut: RecordingSet
) -> None:
    found = {r.metric: r for r in utility("signal").measure(whole, cut, cut, 0)}
    assert found["kept_share"].value == pytest.approx(15 / 20)


def test_maps_of_pieces_are_those_of_all_viewers(whole: RecordingSet, cut: RecordingSet) -> None:
    found = {r.metric: r for r in utility("saliency:rows=30").measure(whole, cut, cut, 0)}
    assert found["cc"].value > 0.8
    assert found["kl"].value < found["kl"].chance


def test_a_model_is_learnt_from_pieces_and_tested_on_people_it_has_not_seen(
    whole: RecordingSet, cut: RecordingSet
) -> None:
    learnt = utility("prediction:target=released").measure(whole, cut, whole, 0)[0]
    own = utility("prediction:target=released").measure(whole, whole, whole, 0)[0]
    assert learnt.value == pytest.approx(own.value, rel=0.1)
    other = utility("prediction").measure(whole, cut, cut, 0)[0]
    assert set(other.names) < set(whole.persons)
    assert other.value == pytest.approx(own.value, rel=0.2)
