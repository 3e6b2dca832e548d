"""Readers to whom documents are more alike than their layouts are."""

from __future__ import annotations

import numpy as np
import pytest
from numba import typeof

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.gaze.simulate.cohort import PASSAGE, PASSAGES, as_read, reader
from gazeveil.gaze.simulate.people import DOCUMENTS, stream
from gazeveil.gaze.simulate.stimuli import stimulus

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
