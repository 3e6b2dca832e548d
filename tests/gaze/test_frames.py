"""Gaze in the head: as the tracker says it, whatever the head does, with nothing of the head."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import cohort_in_frame, in_frame
from gazeveil.gaze.geometry import gaze_in_world
from tests.support.recordings import real

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
