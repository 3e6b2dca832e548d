"""Similarity of scanpaths: the alignment against a slow one, and what noise, other viewers and
renaming do to the figures.

Dwell per area and over viewers: against figures worked out by hand, and what each figure sees
that the others do not.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas import grid
from gazeveil.utility.base import UtilityResult, check_utility
from gazeveil.utility.registry import utility
from gazeveil.utility.viewers import best_alignment, dwell_shares, even_shares, similarity
from tests.support.pieces import RawPieces, jumpers

Vectors = NDArray[np.float64]


def places(*x_deg: float) -> Vectors:
    return Sphere().vectors(np.array(x_deg), np.full(len(x_deg), 90.0)).reshape(-1, 3)


def slowly(first: Vectors, second: Vectors, cutoff_deg: float) -> float:
    """The greatest sum of gains, by trying everything."""
    if len(first) == 0 or len(second) == 0:
        return 0.0
    apart = np.degrees(np.arccos(np.clip(first[0] @ second[0], -1, 1)))
    return max(
        1 - apart / cutoff_deg + slowly(first[1:], second[1:], cutoff_deg),
        slowly(first[1:], second, cutoff_deg),
        slowly(first, second[1:], cutoff_deg),
    )


def test_the_best_alignment_is_the_best_of_all() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        first, second = (
            Sphere().vectors(rng.uniform(100, 112, n), rng.uniform(85, 95, n)).reshape(-1, 3)
            for n in rng.integers(1, 6, 2)
        )
        assert best_alignment(first, second, 5.0) == pytest.approx(slowly(first, second, 5.0))


def test_similarity_goes_from_one_to_nothing() -> None:
    path = places(10, 20, 30)
    assert similarity(path, path, 5.0) == pytest.approx(1.0)
    assert similarity(path, places(11, 21, 31), 5.0) == pytest.approx(0.8, abs=1e-6)
    assert similarity(path, places(110, 120), 5.0) == 0.0
    # Backwards only one place has a partner in order.
    assert similarity(path, path[::-1].copy(), 5.0) == pytest.approx(1 / 3)
    assert similarity(path, path[:0], 5.0) == 0.0
    assert np.isnan(similarity(path[:0], path[:0], 5.0))


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(jumpers(people=7, stimuli=2, stay_s=0.6))


def measured(raw: RecordingSet, test: RecordingSet) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility("scanpath").measure(raw, raw, test, 0)}


def test_raw_is_perfect_and_another_viewer_is_chance(raw: RecordingSet) -> None:
    found = measured(raw, raw)
    assert found["similarity"].value == pytest.approx(1.0)
    assert found["structure_correlation"].value == pytest.approx(1.0)
    assert found["between_error"].value == pytest.approx(0.0)
    names = sorted({r.person for r in raw.cohort or ()})
    following = dict(zip(names, names[1:] + names[:1], strict=True))
    swapped = Cohort([r.with_(person=following[r.person]) for r in raw.cohort or ()])
    other = measured(raw, RecordingSet(swapped))
    assert other["similarity"].value == pytest.approx(other["similarity"].chance, abs=0.08)
    assert abs(other["structure_correlation"].value) < 0.5
    # How much viewers agree does not depend on their names.
    assert other["between_error"].value == pytest.approx(0.0, abs=1e-9)


def test_a_shift_of_everybody_loses_the_place_and_keeps_who_looks_alike(raw: RecordingSet) -> None:
    moved = Cohort([r.with_(x_deg=r.x_deg + 3.0) for r in raw.cohort or ()])
    found = measured(raw, RecordingSet(moved))
    assert found["similarity"].value < 0.7
    assert found["structure_correlation"].value > 0.95


def test_a_release_without_fixations_keeps_nothing(raw: RecordingSet) -> None:
    rng = np.random.default_rng(2)
    noisy = Cohort([r.with_(x_deg=rng.uniform(-20, 20, len(r))) for r in raw.cohort or ()])
    found = measured(raw, RecordingSet(noisy))
    assert found["similarity"].value < 0.05
    assert found["structure_correlation"].value < 0.3
    assert found["between_error"].value > 0.05


def test_raw_pieces_are_compared_with_their_own_viewer(raw: RecordingSet) -> None:
    cut = protect(raw, RawPieces(), seed=5)
    found = measured(raw, cut)
    assert found["similarity"].value == pytest.approx(1.0)
    assert found["structure_correlation"].value == pytest.approx(1.0)
    assert "windows of the pieces" in found["similarity"].note


def test_it_passes_the_conformance_kit() -> None:
    assert [c.name for c in check_utility(utility("scanpath")) if not c.passed] == []


def test_bad_parameters_and_nothing_to_see_are_refused(raw: RecordingSet) -> None:
    for text in ("scanpath:cutoff_deg=0", "scanpath:bin_s=-1", "scanpath:window_s=0"):
        with pytest.raises(ParameterError):
            utility(text)
    lost = Cohort([r.with_(valid=np.zeros(len(r), dtype=np.bool_)) for r in raw.cohort or ()])
    blind = RecordingSet(lost)
    with pytest.raises(DataError, match="no fixation"):
        utility("scanpath").measure(blind, blind, blind, 0)


SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE_HZ = 50.0


def viewer(person: int, left_share: float, seconds: float = 5.0, **more: object) -> Recording:
    """Somebody who looks left of the middle for a share of every second, else right of it."""
    n = int(seconds * RATE_HZ)
    within = (np.arange(n) % RATE_HZ) / RATE_HZ
    x: NDArray[np.float64] = np.where(within < left_share - 1e-9, -5.0, 5.0)
    t_ns = np.round(np.arange(n) * 1e9 / RATE_HZ).astype(np.int64)
    fields: dict[str, object] = {"space": SCREEN, "rate_hz": RATE_HZ, **more}
    return Recording(f"p{person}", "film", t_ns, x, np.zeros(n), **fields)  # type: ignore[arg-type]


def people(shares: list[float], **more: float) -> RecordingSet:
    return RecordingSet(Cohort([viewer(i, s, **more) for i, s in enumerate(shares)]))


def halves(
    raw: RecordingSet, test: RecordingSet, text: str = "dwell:rows=1,columns=2"
) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility(text).measure(raw, raw, test, 0)}


def test_shares_are_of_valid_samples() -> None:
    boxes = grid(SCREEN, 1, 2)
    recording = viewer(0, 0.4)
    assert dwell_shares(boxes, recording).tolist() == pytest.approx([0.4, 0.6])
    lost = recording.valid & (recording.x_deg > 0)
    assert dwell_shares(boxes, recording.with_(valid=lost)).tolist() == [0.0, 1.0]
    nothing = recording.with_(valid=np.zeros(len(recording), dtype=np.bool_))
    assert np.isnan(dwell_shares(boxes, nothing)).all()


def test_the_figures_are_those_worked_out_by_hand() -> None:
    raw, released = people([0.2, 0.4]), people([0.3, 0.5])
    found = halves(raw, released)
    # Both areas move by 0.1, and the two raw means add up to 1.
    assert found["mean_error"].value == pytest.approx(0.2)
    assert found["distribution_error"].value == pytest.approx(0.2)
    assert found["sd_error"].value == pytest.approx(0.0, abs=1e-12)
    assert found["quantile_error"].value == pytest.approx(2 * 9 * 0.1 / 9)


def test_viewers_who_became_alike_keep_the_mean_and_lose_the_spread() -> None:
    found = halves(people([0.2, 0.4, 0.6, 0.8]), people([0.5] * 4))
    assert found["mean_error"].value == pytest.approx(0.0, abs=1e-12)
    assert found["sd_error"].value == pytest.approx(1.0)
    assert found["distribution_error"].value == pytest.approx(0.4)


def test_losing_everything_is_not_a_good_figure() -> None:
    raw = people([0.2, 0.4])
    lost = Cohort([r.with_(valid=np.zeros(len(r), dtype=np.bool_)) for r in raw.cohort or ()])
    found = halves(raw, RecordingSet(lost))
    assert found["distribution_error"].value == pytest.approx(1.0)
    assert found["mean_error"].value == pytest.approx(1.0)


def test_chance_is_even_looking_and_the_note_says_how_much_other_viewers_differ() -> None:
    raw = people([0.0, 0.0, 1.0])
    found = halves(raw, raw)["mean_error"]
    assert found.chance == pytest.approx(1 / 3, abs=0.01)
    assert "as many other viewers would differ by 0." in found.note


def test_even_looking_on_a_sphere_weighs_the_equator() -> None:
    sphere = Sphere()
    shares = even_shares(grid(sphere, 3, 1), sphere)
    assert shares.tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


def test_pieces_are_compared_with_everybody_in_the_same_seconds() -> None:
    raw = people([0.2, 0.4, 0.6], seconds=17)
    cut = protect(raw, RawPieces(), seed=3)
    found = halves(raw, cut)
    assert found["distribution_error"].value == pytest.approx(0, abs=1e-12)
    assert "windows of the pieces" in found["distribution_error"].note
    # The same, where one viewer got two pieces of a window and another none.
    assert cut.origins is not None
    one = next(iter(cut.origins.values()))
    cut.origins = dict.fromkeys(cut.origins, one)
    assert halves(raw, cut)["distribution_error"].value == pytest.approx(0, abs=1e-12)


def test_it_passes_the_conformance_kit_dwell() -> None:
    assert [c.name for c in check_utility(utility("dwell")) if not c.passed] == []


def test_bad_parameters_and_tables_are_refused() -> None:
    for text in ("dwell:window_s=0", "dwell:gap_s=-1", "dwell:rows=0"):
        with pytest.raises(ParameterError):
            utility(text)
    raw = people([0.2, 0.4])
    tables = RecordingSet(None, {"fixation": raw.fixations})
    with pytest.raises(DataError, match="holds tables only"):
        utility("dwell").measure(raw, raw, tables, 0)
