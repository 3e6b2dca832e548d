"""The head beside protected gaze: its speed, the eye worked out again, and what has no head."""

import numpy as np
import pytest

from gazeveil import Recording, Screen, Sphere, simulate
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import angle_deg, from_tangents
from gazeveil.utility.moments import eye_tangents, head_course, in_the_head

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
