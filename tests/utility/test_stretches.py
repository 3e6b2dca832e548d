"""Stretches of both sides: pieces meet the same seconds of their own recording, and utilities that
follow a person refuse them.
"""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.errors import DataError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.utility.base import as_recorded, pieces, seconds_of, stretches
from gazeveil.utility.registry import utility
from tests.support.pieces import RawPieces, jumper, jumpers


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(jumpers(people=6, stimuli=3))


@pytest.fixture(scope="module")
def cut(raw: RecordingSet) -> RecordingSet:
    return protect(raw, RawPieces(), seed=1)


def test_a_piece_meets_the_same_seconds_of_its_own_recording(
    raw: RecordingSet, cut: RecordingSet
) -> None:
    seen = list(pieces(raw, cut))
    assert len(seen) == 6 * 3 * 3  # 20 s hold three windows of 5 s and two gaps of 1 s
    assert {s.begin_ns for s in seen} == {0, 6_000_000_000, 12_000_000_000}
    for s in seen:
        assert s.recorded.key == s.viewer
        assert s.released.person != s.viewer[0]
        assert len(s.recorded) == len(s.released) == 300
        np.testing.assert_array_equal(s.recorded.x_deg, s.released.x_deg)


def test_where_names_last_both_sides_are_cut_into_the_same_windows(raw: RecordingSet) -> None:
    later = Cohort([r.with_(t_ns=r.t_ns + 10**12) for r in raw.cohort or ()])
    seen = list(stretches(raw, RecordingSet(later), window_s=4, gap_s=2))
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


def test_a_piece_of_a_strangers_recording_is_refused(raw: RecordingSet, cut: RecordingSet) -> None:
    with pytest.raises(DataError, match="not among the raw ones"):
        list(pieces(raw.select(people=["p00"]), cut))


def test_recordings_cut_as_pieces_keep_the_true_names(raw: RecordingSet, cut: RecordingSet) -> None:
    assert as_recorded(raw, raw) is raw
    like_pieces = as_recorded(raw, cut)
    assert like_pieces.persons == raw.persons
    assert len(like_pieces.keys) == len(cut.keys)


@pytest.mark.parametrize("name", ["document", "gender", "activity", "task", "events:by=person"])
def test_what_follows_a_person_refuses_pieces_in_one_sentence(
    name: str, raw: RecordingSet, cut: RecordingSet
) -> None:
    with pytest.raises(DataError, match="pieces, each under a name of its own, does not allow"):
        utility(name).measure(raw, raw, cut, 0)


@pytest.mark.parametrize("name", ["aoi", "density", "dwell", "events", "scanpath", "signal"])
def test_raw_pieces_lose_nothing_inside_them_and_noise_does(
    name: str, raw: RecordingSet, cut: RecordingSet
) -> None:
    noisy = protect(raw, RawPieces(noise_deg=3.0), seed=1)
    clean = {r.metric: r for r in utility(name).measure(raw, cut, cut, 0)}
    lost = {r.metric: r for r in utility(name).measure(raw, noisy, noisy, 0)}
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
    raw: RecordingSet, cut: RecordingSet
) -> None:
    found = {r.metric: r for r in utility("signal").measure(raw, cut, cut, 0)}
    assert found["kept_share"].value == pytest.approx(15 / 20)


def test_maps_of_pieces_are_those_of_all_viewers(raw: RecordingSet, cut: RecordingSet) -> None:
    found = {r.metric: r for r in utility("saliency:rows=30").measure(raw, cut, cut, 0)}
    assert found["cc"].value > 0.8
    assert found["kl"].value < found["kl"].chance


def test_a_model_is_learnt_from_pieces_and_tested_on_people_it_has_not_seen(
    raw: RecordingSet, cut: RecordingSet
) -> None:
    learnt = utility("prediction:target=released").measure(raw, cut, raw, 0)[0]
    own = utility("prediction:target=released").measure(raw, raw, raw, 0)[0]
    assert learnt.value == pytest.approx(own.value, rel=0.1)
    other = utility("prediction").measure(raw, cut, cut, 0)[0]
    assert set(other.names) < set(raw.persons)
    assert other.value == pytest.approx(own.value, rel=0.2)
