"""Gaze in the head: as the tracker says it, whatever the head does, with nothing of the head.

Readers to whom documents are more alike than their layouts are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numba import typeof

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import cohort_in_frame, in_frame
from gazeveil.gaze.geometry import gaze_in_world
from gazeveil.gaze.simulate.cohort import PASSAGE, PASSAGES, as_read, reader
from gazeveil.gaze.simulate.people import DOCUMENTS, stream
from gazeveil.gaze.simulate.stimuli import stimulus
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


SCREEN = gazeveil.Screen(1680, 1050, 474.0, 297.0, 550.0)
SCENES = {d: stimulus(3, 0, "reading", SCREEN, 60.0, d).scene(SCREEN) for d in DOCUMENTS}


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
