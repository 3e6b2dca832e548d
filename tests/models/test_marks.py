"""Marks: gaze that begins alike is known again under another name, other gaze is not."""

import numpy as np

from gazeveil import simulate
from gazeveil.models.ekyt.weights import SHORTEST, RecordingMarks, marks_of


def test_the_same_gaze_is_known_again_and_what_was_changed_is_not() -> None:
    one, other = simulate(2, 1, 5.0, 60.0, seed=4)
    known = RecordingMarks.of([one], "salt")
    assert len(known.marks) == 2
    noise = np.random.default_rng(0).normal(0.0, 1e-8, len(one))
    assert known.knows(one.with_(person="x", stimulus="y", t_ns=one.t_ns + 10**12))
    assert known.knows(one.with_(x_deg=one.x_deg + noise))
    assert known.knows(one.slice(0, len(one) // 2 + 20))
    # The limits that the page states.
    assert not known.knows(other)
    assert not known.knows(one.slice(1, len(one)))
    assert not known.knows(one.with_(x_deg=one.x_deg + 0.01))
    assert RecordingMarks.from_dict(known.to_dict()) == known


def test_marks_of_two_trainings_cannot_be_compared() -> None:
    (one,) = simulate(1, 1, 5.0, 60.0, seed=4)
    assert not set(marks_of(one, "a")) & set(marks_of(one, "b"))


def test_recordings_that_tell_nothing_are_not_all_the_same_person() -> None:
    (one,) = simulate(1, 1, 5.0, 60.0, seed=4)
    lost = one.with_(valid=np.zeros(len(one), dtype=bool))
    few = one.with_(valid=one.valid & (np.arange(len(one)) < SHORTEST - 1))
    still = one.with_(x_deg=np.full(len(one), 180.0), y_deg=np.full(len(one), 90.0))
    assert not RecordingMarks.of([lost, few, still], "salt").marks
