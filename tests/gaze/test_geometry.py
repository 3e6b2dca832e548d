import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazeveil import Screen, Sphere
from gazeveil.errors import ParameterError
from gazeveil.gaze import geometry as g

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
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
    back = SCREEN.to_px(*SCREEN.from_px(x_px, y_px))
    np.testing.assert_allclose(back, (x_px, y_px), atol=1e-8)


def test_screen_degrees_grow_right_and_down_from_the_centre() -> None:
    x, y = SCREEN.from_px([640.0, 1280.0, 640.0], [360.0, 360.0, 720.0])
    np.testing.assert_allclose(x, [0, np.degrees(np.arctan(200 / 450)), 0], atol=1e-12)
    np.testing.assert_allclose(y, [0, 0, np.degrees(np.arctan(112.5 / 450))], atol=1e-12)


def test_screen_vectors_agree_with_its_degrees() -> None:
    x, y = SCREEN.degrees(SCREEN.vectors([10.0, -5.0], [3.0, 20.0]))
    np.testing.assert_allclose(x, [10, -5])
    np.testing.assert_allclose(y, [3, 20])
    assert np.isnan(SCREEN.degrees([[0.1, 0.2, -1.0]])[0][0])


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
    assert g.distance_deg(SCREEN, -10, 0, 10, 0) == pytest.approx(20.0)


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
