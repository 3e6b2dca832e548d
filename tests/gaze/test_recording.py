"""One rule of plain gaze and one threshold of a clock that was set back.

Gaze in the head: as the tracker says it, whatever the head does, with nothing of the head.

Readers to whom documents are more alike than their layouts are.
"""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import typeof

import gazeveil
from gazeveil import Cohort, Events, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.events.online.detector import OnlineDetector
from gazeveil.gatekeeper.blocks import block
from gazeveil.gaze import geometry as g
from gazeveil.gaze.cohort import Handle, cohort_in_frame, in_frame, natural
from gazeveil.gaze.geometry import combine_eyes, gaze_in_world
from gazeveil.gaze.recording import (
    SET_BACK_S,
    are_plain,
    estimate_rate_hz,
    increasing,
    set_back_samples,
)
from gazeveil.gaze.simulate.cohort import PASSAGE, PASSAGES, as_read, reader
from gazeveil.gaze.simulate.people import DOCUMENTS, stream
from gazeveil.gaze.simulate.stimuli import stimulus
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain
from gazeveil.relay.protector import Protector
from tests.support.recordings import real
from tests.support.strategies import SCREEN, recordings


def plain(n: int = 5, **changes: object) -> Recording:
    values: dict[str, object] = {
        "t_ns": np.arange(n) * 4_000_000,
        "x_deg": np.zeros(n),
        "y_deg": np.zeros(n),
        "space": SCREEN,
    }
    return Recording("p", "s", **(values | changes))  # type: ignore[arg-type]


def test_a_recording_is_frozen_with_its_arrays() -> None:
    r = plain()
    with pytest.raises(AttributeError):
        r.person = "q"  # type: ignore[misc]
    for array in (r.t_ns, r.x_deg, r.y_deg, r.valid):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        r.metadata["k"] = 1  # type: ignore[index]


def test_the_callers_arrays_stay_writable() -> None:
    x = np.zeros(5)
    r = plain(x_deg=x)
    x[0] = 0.0
    assert not r.x_deg.flags.writeable
    onset = np.array([0], dtype=np.int64)
    Events(["fixation"], onset, onset, onset, onset)  # type: ignore[arg-type]
    onset[0] = 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t_ns": np.array([0.0, 1.0, 2.0, 3.0, 4.0])}, "whole nanoseconds"),
        ({"t_ns": np.array([0, 1, 2, 2, 3])}, "Times of valid samples must increase"),
        ({"t_ns": np.array([0, 1, 2, 1, 3])}, "Times of valid samples must increase"),
        (
            {"x_deg": np.array([0, 0, np.nan, 0, 0]), "valid": np.ones(5, bool)},
            "marked valid but holds NaN",
        ),
        (
            {"x_deg": np.array([0, 0, np.inf, 0, 0]), "valid": np.ones(5, bool)},
            "marked valid but holds NaN or infinity",
        ),
        ({"x_deg": np.full(5, 640.0)}, "If these are pixels"),
        ({"x_deg": np.zeros(4)}, "shape"),
        ({"left_deg": np.zeros((5, 3))}, r"left_deg of .* has shape \(5, 3\)"),
        ({"labels": {"a": np.array(["fixation"])}}, "1 words for 5 samples"),
        ({"rate_hz": -3}, "'rate_hz' parameter of Recording must be a positive finite number"),
        ({"space": "screen"}, "'space' parameter of Recording must be a Sphere or a Screen"),
        ({"session": 1}, "'session' parameter of Recording must be text"),
    ],
)
def test_what_a_recording_refuses_it_refuses_in_words(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        plain(**changes)


def test_lost_samples_are_found_and_kept() -> None:
    r = plain(x_deg=np.array([0, np.nan, 0, np.inf, 0]))
    assert r.valid.tolist() == [True, False, True, False, True]
    assert len(r) == 5


def test_empty_and_single_sample_recordings_are_recordings() -> None:
    assert np.isnan(plain(0).rate_hz)
    assert plain(0).duration_s == 0
    assert np.isnan(plain(1).rate_hz)
    assert plain(1).resample(100).valid.tolist() == [True]


@pytest.mark.parametrize(
    ("steps_ms", "rate"),
    [
        ([4] * 50, 250),
        ([8, 8, 9] * 30, 120),
        ([16, 17, 17] * 30, 60),
        ([33, 33, 34] * 30, 30),
        ([4, 4, 1, 2, 4, 14] * 40, 250),
        ([27, 28, 28] * 30, 36.14),
        ([4, 4, 4, 8] * 40, 200),
        ([4, 4, 4, 8, 4, 4, 8] * 40, 194.44),
    ],
)
def test_rates_are_recognised_from_rounded_and_jittering_stamps(
    steps_ms: list[int], rate: float
) -> None:
    t = np.concatenate(([0], np.cumsum(steps_ms))) * 1_000_000
    assert estimate_rate_hz(t) == pytest.approx(rate, rel=1e-3)


def test_samples_lost_at_random_do_not_lower_the_rate() -> None:
    rng = np.random.default_rng(7)
    t = np.arange(5000) * 4_000_000
    assert estimate_rate_hz(t[rng.random(5000) > 0.2]) == 250


@given(st.lists(st.integers(0, 50), max_size=40))
def test_as_few_samples_as_possible_lose_their_place_in_time(times: list[int]) -> None:
    t = np.array(times, dtype=np.int64)
    keep = increasing(t, np.ones(len(t), dtype=bool))
    kept = t[keep]
    assert (np.diff(kept) > 0).all()
    best = [1] * len(times)
    for i in range(len(times)):
        best[i] = 1 + max((best[j] for j in range(i) if times[j] < times[i]), default=0)
    assert len(kept) == max(best, default=0)


def test_one_wild_stamp_costs_one_sample() -> None:
    t = np.array([87, 70, 71, 72, 73, 99, 74, 75])
    assert increasing(t, np.ones(8, dtype=bool)).tolist() == [
        False,
        True,
        True,
        True,
        True,
        False,
        True,
        True,
    ]


@given(recordings())
@settings(max_examples=60)
def test_resampling_to_its_own_grid_changes_nothing_and_to_another_invents_nothing(
    r: Recording,
) -> None:
    other = r.resample(77.0)
    assert (np.diff(other.t_ns) > 0).all()
    if r.valid.any():
        seen = other.x_deg[other.valid]
        if isinstance(r.space, Screen) and len(seen):
            assert seen.min() >= r.x_deg[r.valid].min() - 1e-9
            assert seen.max() <= r.x_deg[r.valid].max() + 1e-9
    else:
        assert not other.valid.any()
    assert other.rate_hz == 77.0
    regular = np.arange(len(r)) * 4_000_000
    grid = Recording("p", "s", regular, r.x_deg, r.y_deg, r.valid, space=r.space, rate_hz=250.0)
    same = grid.resample(250.0)
    assert same.t_ns.tolist() == grid.t_ns.tolist()
    assert same.valid.tolist() == grid.valid.tolist()
    np.testing.assert_array_equal(same.x_deg[same.valid], grid.x_deg[grid.valid])


def test_resampling_crosses_the_seam_the_short_way_and_bridges_no_gap() -> None:
    t = np.arange(4) * 10_000_000
    r = Recording(
        "p",
        "s",
        t,
        np.array([359.0, 1.0, np.nan, 3.0]),
        np.full(4, 90.0),
        space=Sphere(),
        rate_hz=100.0,
    )
    x = r.resample(200.0)
    assert min(x.x_deg[1], 360 - x.x_deg[1]) < 1e-9
    assert x.valid.tolist() == [True, True, True, False, False, False, True]


def test_both_eyes_make_one_line_of_sight() -> None:
    left = np.array([[359.0, 90.0], [10.0, 90.0], [np.nan, np.nan], [np.nan, np.nan]])
    right = np.array([[3.0, 90.0], [np.nan, np.nan], [20.0, 80.0], [np.nan, np.nan]])
    x, y, valid = combine_eyes(left, right, Sphere())
    np.testing.assert_allclose(x[:3], [1, 10, 20], atol=1e-9)
    np.testing.assert_allclose(y[:3], [90, 90, 80], atol=1e-9)
    assert valid.tolist() == [True, True, True, False]


def test_recordings_travel_between_processes() -> None:
    r = plain(labels={"a": np.array(["fixation"] * 5)}, metadata={"k": 1}, counts={"rows": 5})
    back = pickle.loads(pickle.dumps(r))
    assert back.key == r.key
    assert dict(back.metadata) == {"k": 1}
    assert back.labels["a"].tolist() == ["fixation"] * 5
    for column in (back.t_ns, back.x_deg, back.valid, back.labels["a"]):
        assert not column.flags.writeable


# --- events
# --------------------------------------------------------------------------------------------------


def test_words_and_events_are_two_views_of_the_same_thing() -> None:
    words = ["fixation", "fixation", "saccade", "undefined", "blink"]
    events = Events.from_words(words, np.arange(5) * 10)
    assert [(e.kind, e.onset, e.offset, e.onset_ns, e.offset_ns) for e in events] == [
        ("fixation", 0, 1, 0, 10),
        ("saccade", 2, 2, 20, 20),
        ("undefined", 3, 3, 30, 30),
        ("blink", 4, 4, 40, 40),
    ]
    assert events.words(5).tolist() == words
    assert len(events.of("fixation", "blink")) == 2


def test_picking_nothing_gives_nothing() -> None:
    events = Events.from_words(["fixation", "saccade"], np.arange(2))
    assert len(events.where([])) == 0
    assert len(events.where(np.array([False, True]))) == 1


@pytest.mark.parametrize(
    ("kind", "onset", "offset", "message"),
    [
        (["glance"], [0], [1], "must be words of"),
        (["saccade"], [2], [1], "at or after its onset"),
        (["saccade"], [0, 1], [1], "one length"),
    ],
)
def test_events_refuse_what_cannot_be(
    kind: list[str], onset: list[int], offset: list[int], message: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        Events(kind, onset, offset, onset, offset)  # type: ignore[arg-type]


# --- cohorts
# --------------------------------------------------------------------------------------------------


def loaded(person: str, stimulus: str) -> Recording:
    return plain().with_(person=person, stimulus=stimulus)


def forbidden() -> Recording:
    raise AssertionError("this must not be loaded")


def test_a_lazy_cohort_knows_its_people_and_stimuli_without_loading() -> None:
    cohort = Cohort(
        [Handle("user10", "b", forbidden), Handle("user2", "a", forbidden)],
        people={"user2": {"age": 30}},
    )
    assert list(cohort.people) == ["user2", "user10"]
    assert cohort.people["user2"]["age"] == 30
    assert dict(cohort.people["user10"]) == {}
    assert cohort.stimuli == ("a", "b")
    assert len(cohort.select(people="user2")) == 1
    assert len(cohort.select(stimuli=["a", "b"])) == 2
    with pytest.raises(TypeError):
        cohort.people["new"] = {}  # type: ignore[index]


def test_select_names_the_near_miss() -> None:
    cohort = Cohort([loaded("anna", "x")])
    with pytest.raises(ParameterError, match="Did you mean 'anna'"):
        cohort.select(people="ana")


def test_two_people_with_one_name_are_refused_with_both_files() -> None:
    with pytest.raises(
        DataError, match=r"person 'p', stimulus 's'.*site-a\.csv and site-b\.csv.*clash='session'"
    ):
        Cohort(
            [
                Handle("p", "s", forbidden, source="site-a.csv"),
                Handle("p", "s", forbidden, source="site-b.csv"),
            ]
        )


def test_names_sort_as_people_count() -> None:
    assert sorted(["user10", "user2", "user1"], key=natural) == ["user1", "user2", "user10"]


@pytest.mark.parametrize("people", [["p"], {"p": 5}, "p"])
def test_a_cohort_asks_for_people_by_name_with_attributes(people: object) -> None:
    with pytest.raises(ParameterError, match="a mapping of person to a mapping of attributes"):
        Cohort([], people)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="an iterable of recordings"):
        Cohort(None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"'people' parameter of Cohort\.select"):
        Cohort([]).select(people=7)  # type: ignore[arg-type]


def test_a_cohort_takes_only_recordings() -> None:
    with pytest.raises(ParameterError, match="'recordings' parameter of Cohort"):
        Cohort(["file.csv"])  # type: ignore[list-item]


CLOCK_SCREEN = Screen(1680, 1050, 474, 297, 550)
ABOVE, BELOW = math.nextafter(-90.0, 0.0), [math.nextafter(v, 0.0) for v in (90.0, 180.0, 360.0)]
EDGES = np.array(
    [-90.0, ABOVE, -5e-324, -0.0, 0.0, *BELOW, 90.0, 180.0, 360.0, math.nan, math.inf, -math.inf]
)


@pytest.mark.parametrize("space", [Sphere(), CLOCK_SCREEN])
def test_kernels_and_arrays_agree_on_plain_gaze(space: Sphere | Screen) -> None:
    sphere = isinstance(space, Sphere)
    x, y = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    expected = (
        (x >= 0) & (x < 360) & (y >= 0) & (y < 180) if sphere else (abs(x) < 90) & (abs(y) < 90)
    )
    np.testing.assert_array_equal(are_plain(space, x, y), expected)
    bounds = bounds_deg(sphere)
    assert [is_plain(a, b, bounds) for a, b in zip(x, y, strict=True)] == expected.tolist()


def test_the_threshold_is_half_a_second_and_at_least_one_sample() -> None:
    assert [set_back_samples(rate) for rate in (0.5, 1.0, 60.0, 250.0)] == [1, 1, 30, 125]


def test_the_detector_believes_a_clock_that_has_been_back_for_longer() -> None:
    rate_hz, period_ns, n = 100.0, 10_000_000, 300
    t = np.arange(n) * period_ns
    t[100:] -= 50 * period_ns * 100
    detector = OnlineDetector(rate_hz, CLOCK_SCREEN)
    edges = detector.push(t, np.zeros(n), np.zeros(n)) + detector.close()
    onsets = [e.index for e in edges if e.kind == "fixation" and e.edge == "onset"]
    assert onsets == [0, 100 + set_back_samples(rate_hz)]


@pytest.mark.parametrize(("back_s", "count"), [(0.9 * SET_BACK_S, 0), (1.2 * SET_BACK_S, 1)])
def test_the_relay_has_the_same_threshold(back_s: float, count: int) -> None:
    n, period_ns = 100, 10_000_000
    t = 10**12 + np.arange(n) * period_ns
    protector = Protector("gaussian:sigma_deg=1", 100.0, Sphere(), seed=1)
    protector.push(block(t, np.full(n, 180.0), np.full(n, 90.0)))
    later = t + n * period_ns - round(1e9 * back_s)
    protector.push(block(later, np.full(n, 180.0), np.full(n, 90.0)))
    assert protector.counts["clocks set back"] == count


FLAT_SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
longitudes = st.floats(0, 360, exclude_max=True)
latitudes = st.floats(0.001, 179.999)


@given(longitudes, latitudes)
def test_sphere_degrees_survive_the_trip_through_vectors(x: float, y: float) -> None:
    back_x, back_y = Sphere().degrees(Sphere().vectors(x, y))
    assert 0 <= back_x < 360
    assert 0 <= back_y < 180
    assert g.haversine_deg(x, y, back_x, back_y) < 1e-9


@pytest.mark.parametrize(
    ("x", "y", "vector"),
    [
        (180, 90, (0, 0, 1)),
        (270, 90, (1, 0, 0)),
        (90, 90, (-1, 0, 0)),
        (0, 90, (0, 0, -1)),
        (123, 0, (0, 1, 0)),
        (321, 180, (0, -1, 0)),
    ],
)
def test_axes_are_right_up_forward(x: float, y: float, vector: tuple[float, ...]) -> None:
    np.testing.assert_allclose(Sphere().vectors(x, y), vector, atol=1e-12)


def test_the_lower_pole_stays_inside_the_open_range() -> None:
    _, y = Sphere().degrees([[0.0, -1.0, 0.0]])
    assert y[0] < 180


def test_a_zero_vector_has_no_direction() -> None:
    x, y = Sphere().degrees([[0.0, 0.0, 0.0]])
    assert np.isnan([x[0], y[0]]).all()


@given(st.floats(-300, 1600), st.floats(-300, 1100))
def test_pixels_survive_the_trip_through_degrees(x_px: float, y_px: float) -> None:
    back = FLAT_SCREEN.to_px(*FLAT_SCREEN.from_px(x_px, y_px))
    np.testing.assert_allclose(back, (x_px, y_px), atol=1e-8)


def test_screen_degrees_grow_right_and_down_from_the_centre() -> None:
    x, y = FLAT_SCREEN.from_px([640.0, 1280.0, 640.0], [360.0, 360.0, 720.0])
    np.testing.assert_allclose(x, [0, np.degrees(np.arctan(200 / 450)), 0], atol=1e-12)
    np.testing.assert_allclose(y, [0, 0, np.degrees(np.arctan(112.5 / 450))], atol=1e-12)


def test_screen_vectors_agree_with_its_degrees() -> None:
    x, y = FLAT_SCREEN.degrees(FLAT_SCREEN.vectors([10.0, -5.0], [3.0, 20.0]))
    np.testing.assert_allclose(x, [10, -5])
    np.testing.assert_allclose(y, [3, 20])
    assert np.isnan(FLAT_SCREEN.degrees([[0.1, 0.2, -1.0]])[0][0])


@given(longitudes, latitudes, longitudes, latitudes)
def test_haversine_and_atan2_agree(x0: float, y0: float, x1: float, y1: float) -> None:
    by_vectors = g.angle_deg(Sphere().vectors(x0, y0), Sphere().vectors(x1, y1))
    assert abs(g.haversine_deg(x0, y0, x1, y1) - by_vectors) < 1e-6


def test_tiny_and_opposite_angles_keep_their_digits() -> None:
    a = Sphere().vectors(180.0, 90.0)
    assert g.angle_deg(a, Sphere().vectors(180.0 + 1e-7, 90.0)) == pytest.approx(1e-7, rel=1e-6)
    assert g.angle_deg(a, -a) == pytest.approx(180.0)


def test_distance_crosses_the_seam_and_the_pole() -> None:
    assert g.distance_deg(Sphere(), 359.5, 90, 0.5, 90) == pytest.approx(1.0)
    assert g.distance_deg(Sphere(), 0, 1, 180, 1) == pytest.approx(2.0)
    assert g.distance_deg(FLAT_SCREEN, -10, 0, 10, 0) == pytest.approx(20.0)


@given(st.floats(-1e6, 1e6))
def test_wrapped_longitudes_lie_in_the_half_open_circle(x: float) -> None:
    assert 0 <= g.wrap_x(x) < 360
    assert g.wrap_x(-1e-20) == 0


def test_unwrapping_bridges_lost_samples() -> None:
    np.testing.assert_allclose(g.unwrap_x([358.0, np.nan, 1.0, 3.0]), [358, np.nan, 361, 363])


def test_quaternions_rotate_and_compose() -> None:
    turn = np.array([0.0, np.sin(np.pi / 4), 0.0, np.cos(np.pi / 4)])  # 90 degrees about y
    np.testing.assert_allclose(g.rotate(turn, [0.0, 0.0, 1.0]), [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(
        g.rotate(g.quaternion_multiply(turn, turn), [0.0, 0.0, 1.0]), [0, 0, -1], atol=1e-12
    )
    assert np.isnan(g.rotate([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0])).all()


@given(longitudes, st.floats(5, 175), st.floats(-60, 60), st.floats(-40, 40), st.floats(-40, 40))
def test_eye_in_head_and_gaze_in_world_are_inverse(
    hx: float, hy: float, roll: float, ex: float, ey: float
) -> None:
    head = np.array([[hx, hy, roll]])
    back = g.eye_in_head(g.gaze_in_world([ex], [ey], head), head)
    np.testing.assert_allclose([back[0][0], back[1][0]], [ex, ey], atol=1e-7)


def test_a_head_that_leans_right_sees_the_world_lean_left() -> None:
    # Gaze straight up in a head leaning 90 degrees to the right points to the right in the world.
    up = g.gaze_in_world([0.0], [-45.0], np.array([[180.0, 90.0, 90.0]]))
    np.testing.assert_allclose(up[0], np.array([1, 0, 1]) / np.sqrt(2), atol=1e-12)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "wide", True])
def test_a_screen_refuses_sizes_that_are_not_positive(bad: object) -> None:
    with pytest.raises(
        ParameterError,
        match="The 'distance_mm' parameter of Screen must be a positive finite number",
    ):
        Screen(1280, 720, 400.0, 225.0, bad)  # type: ignore[arg-type]


N = 200


def turning(eye_x_deg: float = 10.0, eye_y_deg: float = -5.0) -> Recording:
    """An eye that stays where it is in a head that turns, nods and leans."""
    i = np.arange(N)
    head = np.stack(
        (np.mod(350 + i / 5, 360), 90 + 20 * np.sin(i / 30), 15 * np.cos(i / 50)), axis=1
    )
    eye = np.tile([eye_x_deg, eye_y_deg], (N, 1))
    x, y = Sphere().degrees(gaze_in_world(eye[:, 0], eye[:, 1], head))
    return Recording("p", "s", i * 10**7, x, y, space=Sphere(), rate_hz=100.0, head_deg=head)


def test_an_eye_that_stays_in_a_turning_head_stays() -> None:
    made = in_frame(turning(), "head")
    assert np.ptp(made.x_deg) < 1e-6
    assert np.ptp(made.y_deg) < 1e-6
    assert made.x_deg[0] == pytest.approx(190.0)
    assert 84.0 < made.y_deg[0] < 86.0
    assert made.valid.all()


def test_what_would_give_the_world_back_is_left_out() -> None:
    made = in_frame(turning(), "head")
    assert made.head_deg is None
    assert made.eye_in_head_deg is None
    assert made.left_deg is None
    assert made.right_deg is None


def test_turning_everybody_changes_nothing() -> None:
    one = turning()
    assert one.head_deg is not None
    turned = one.with_(
        x_deg=np.mod(one.x_deg + 77, 360),
        head_deg=np.column_stack((np.mod(one.head_deg[:, 0] + 77, 360), one.head_deg[:, 1:])),
    )
    a, b = in_frame(one, "head"), in_frame(turned, "head")
    assert np.allclose(a.x_deg, b.x_deg)
    assert np.allclose(a.y_deg, b.y_deg)


def test_the_world_is_the_recording_itself() -> None:
    one = turning()
    assert in_frame(one, "world") is one
    cohort = Cohort([one])
    assert cohort_in_frame(cohort, "world") is cohort


def test_without_a_head_it_is_refused_in_words() -> None:
    with pytest.raises(DataError, match="where the head was"):
        in_frame(turning().with_(head_deg=None), "head")
    screen = Screen(1280, 720, 400.0, 225.0, 450.0)
    flat = Recording("p", "s", np.arange(3), np.zeros(3), np.zeros(3), space=screen, rate_hz=9.0)
    with pytest.raises(DataError, match="screen"):
        in_frame(flat, "head")
    with pytest.raises(ParameterError, match="frame"):
        in_frame(flat, "body")


def test_recordings_of_a_headset_are_read_in_the_head(tmp_path: Path) -> None:
    world = gazeveil.read(real("eyenavgs_nthu"))[0]
    assert world.eye_in_head_deg is not None
    head = in_frame(world, "head")
    good = head.valid
    assert 0.9 * world.valid.sum() <= good.sum() <= world.valid.sum()
    # Eyes do not turn farther than about 50 degrees in the head.
    assert np.abs(head.x_deg[good] - 180).max() < 60
    assert np.ptp(world.x_deg[world.valid]) > np.ptp(head.x_deg[good])
    Cohort([world]).write(tmp_path / "one")
    read = gazeveil.read(tmp_path / "one", frame="head")[0]
    assert np.allclose(read.x_deg[good], head.x_deg[good])


READING_SCREEN = gazeveil.Screen(1680, 1050, 474.0, 297.0, 550.0)
SCENES = {
    d: stimulus(3, 0, "reading", READING_SCREEN, 60.0, d).scene(READING_SCREEN) for d in DOCUMENTS
}


def test_by_default_readings_are_what_they_were() -> None:
    usual = gazeveil.simulate(2, 3, 3, 60, "reading", seed=5)
    said = gazeveil.simulate(2, 3, 3, 60, "reading", seed=5, alike=0.0)
    for a, b in zip(usual, said, strict=True):
        np.testing.assert_array_equal(a.x_deg, b.x_deg)
    other = gazeveil.simulate(2, 3, 3, 60, "reading", seed=5, alike=0.6)
    assert not np.array_equal(usual[0].x_deg, other[0].x_deg, equal_nan=True)
    again = gazeveil.simulate(2, 3, 3, 60, "reading", seed=5, alike=0.6)
    np.testing.assert_array_equal(other[1].x_deg, again[1].x_deg)


def test_somebody_reads_all_documents_in_one_way_and_others_in_another() -> None:
    same = [reader(stream(1, 9, 0), stream(1, 9, 0, j)) for j in range(2)]
    other = reader(stream(1, 9, 1), stream(1, 9, 1, 0))
    np.testing.assert_array_equal(same[0].shares, same[1].shares)
    assert not np.allclose(same[0].shares, other.shares)
    assert same[0].pupil != same[1].pupil


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_share_of_passages_that_follow_from_the_document_is_as_asked(document: str) -> None:
    who = reader(stream(1, 9, 0), stream(1, 9, 0, 0))._replace(
        shares=np.full(3, 1 / 3), zoom=1.0, habits=np.ones(4)
    )
    # Passages are told by their first words, which lie on the pages they come from.
    pages = {d: {tuple(np.round(w, 9)) for w in SCENES[d].words} for d in DOCUMENTS}
    for alike in (0.3, 1.0):
        read = as_read(SCENES, document, alike, who)
        assert len(read.words) == PASSAGE * PASSAGES
        firsts = read.words[::PASSAGE]
        own = np.mean([tuple(np.round(w, 9)) in pages[document] for w in firsts])
        assert own == pytest.approx(1 - 2 * alike / 3, abs=0.02)
    whole = as_read(SCENES, document, 1e-9, who)
    np.testing.assert_allclose(whole.habits, SCENES[document].habits)
    np.testing.assert_allclose(np.linalg.norm(whole.words, axis=1), 1.0)


def test_the_simulator_is_compiled_once_for_pages_and_for_readers() -> None:
    who = reader(stream(1, 9, 0), stream(1, 9, 0, 0))
    assert typeof(as_read(SCENES, "comic", 0.6, who)) == typeof(SCENES["comic"])


@pytest.mark.parametrize(("task", "alike"), [("reading", 1.1), ("video", 0.5), ("reading", -1)])
def test_what_is_no_share_or_no_reading_is_refused(task: str, alike: float) -> None:
    with pytest.raises(ParameterError, match="alike"):
        gazeveil.simulate(1, 1, 1, 60, task, alike=alike)
