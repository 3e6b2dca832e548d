"""Areas of interest: boxes, what a scanpath says about them, and what a release leaves of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import CARRIED, FeaturePipeline, RecordingSet, carry
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.events import Events
from gazeveil.io.areas import Area, AreaLookup, place
from gazeveil.utility.aoi import AOI, METRICS, compare, looks
from gazeveil.utility.base import (
    Scanpath,
    UtilityResult,
    scanpath_as_recorded,
    scanpath_as_released,
    side_by_side,
)
from gazeveil.utility.registry import utility
from tests.support.recordings import real
from tests.support.strategies import recordings

SCREEN = Screen(1000, 500, 400.0, 200.0, 600.0)


CARRYING = FeaturePipeline(events="carried")


Saccades = tuple[tuple[float, float, float, float, float], ...]


def path_of(
    x: list[float],
    y: list[float],
    onset: list[float],
    duration: list[float],
    saccades: Saccades = (),
) -> Scanpath:
    ways = np.array(saccades, dtype=np.float64).reshape(-1, 5).T
    return Scanpath(np.array(x), np.array(y), np.array(onset), np.array(duration), *ways)


def stay(
    places: list[tuple[float, float]],
    samples: int,
    rate_hz: float = 100.0,
    person: str = "a",
    stimulus: str = "s",
    space: object = None,
) -> Recording:
    """Gaze that rests on each place for so many samples and jumps between two samples."""
    x, y = (np.repeat([p[k] for p in places], samples).astype(np.float64) for k in (0, 1))
    t = (np.arange(len(x)) * 1e9 / rate_hz).astype(np.int64)
    shown: Any = space or Sphere()
    return Recording(person, stimulus, t, x, y, space=shown, rate_hz=rate_hz)


def figures(results: tuple[UtilityResult, ...]) -> dict[str, float]:
    return {r.metric: r.value for r in results}


def test_the_grid_of_a_sphere_has_straight_ahead_in_the_middle_of_a_tile() -> None:
    boxes = AreaLookup("").of(stay([(180, 90)], 5))
    assert boxes is not None
    assert len(boxes) == 3 * 7
    tile = int(np.argmax(boxes.hold([180.0], [90.0])[0]))
    assert (boxes.left_deg[tile] + boxes.right_deg[tile]) / 2 == pytest.approx(180)
    assert (boxes.top_deg[tile] + boxes.bottom_deg[tile]) / 2 == pytest.approx(90)


def test_stimuli_are_found_by_name_by_name_without_ending_and_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "image,name,left,top,right,bottom\n"
        "Alley.PNG,door,1,2,3,4\n12,cat,5,6,7,8\n*,sky,0,0,360,10\n"
    )
    lookup = AreaLookup(str(tmp_path / "a.csv"))
    by_number = stay([(1, 1)], 3, stimulus="beach.jpg").with_(metadata={"image_index": 12})
    assert [
        b.names if b else None
        for b in map(
            lookup.of,
            (stay([(1, 1)], 3, stimulus="alley"), by_number, stay([(1, 1)], 3, stimulus="harbour")),
        )
    ] == [("door", "sky"), ("cat", "sky"), ("sky",)]


def test_areas_may_come_with_the_recordings(tmp_path: Path) -> None:
    (tmp_path / "AOIs.csv").write_text("img_index,left,top,right,bottom\n3,-90,45,90,-45\n")
    dk2 = stay([(180, 90)], 3).with_(
        metadata={"image_index": 3, "aoi_file": str(tmp_path / "AOIs.csv")}
    )
    boxes = AreaLookup("dataset", unit="lonlat").of(dk2)
    assert boxes is not None
    assert (boxes.left_deg[0], boxes.right_deg[0], boxes.top_deg[0]) == (90, 270, 45)
    with pytest.raises(DataError, match="came with no areas"):
        AreaLookup("dataset").of(stay([(180, 90)], 3))


def test_a_search_that_found_its_target_fixated_the_target_and_one_that_failed_did_not() -> None:
    cohort = gazeveil.read(real("neuroliaa_interiors"), format="neuroliaa")
    cohort = cohort.select(people=list(cohort.people)[:3])
    recording_set, lookup = RecordingSet(cohort), AreaLookup("dataset")
    hit: dict[bool, list[bool]] = {True: [], False: []}
    for recording in cohort:
        boxes = lookup.of(recording)
        assert boxes is not None
        seen = looks(boxes, scanpath_as_recorded(recording_set, recording))
        hit[bool(recording.metadata["target_found"])].append(bool(seen.fixations[0] > 0))
    assert np.mean(hit[True]) > 0.5
    assert np.mean(hit[False]) < 0.05
    # The same boxes from the file itself.
    file = sorted(real("neuroliaa_interiors").glob("*.json.gz"))[0]
    one = AreaLookup(str(file)).of(cohort[0])
    same = lookup.of(cohort[0])
    assert one is not None
    assert same is not None
    np.testing.assert_allclose(
        [one.left_deg[0], one.top_deg[0], one.right_deg[0], one.bottom_deg[0]],
        [same.left_deg[0], same.top_deg[0], same.right_deg[0], same.bottom_deg[0]],
    )


# --- what a scanpath says
# --------------------------------------------------------------------------------------------------


def test_dwell_visits_counts_order_and_first_times_are_counted_by_hand() -> None:
    boxes = place(
        [
            Area("*", "left", 100, 80, 150, 100),
            Area("*", "right", 200, 80, 250, 100),
            Area("*", "never", 300, 0, 310, 10),
        ],
        Sphere(),
    )
    path = path_of(
        [120, 130, 10, 220, 120, np.nan],
        [90, 90, 90, 90, 90, np.nan],
        [0.5, 1.0, 2.0, 3.0, 4.0, 5.0],
        [0.2, 0.3, 1.0, 0.5, 0.25, 9.0],
        (
            (110, 90, 140, 90, 0.9),
            (130, 90, 10, 90, 1.9),
            (10, 90, 220, 90, 2.5),
            (220, 90, 120, 90, 3.5),
        ),
    )
    seen = looks(boxes, path)
    np.testing.assert_allclose(seen.dwell_s, [0.75, 0.5, 0.0])
    assert seen.visits.tolist() == [2, 1, 0]
    assert seen.fixations.tolist() == [3, 1, 0]
    np.testing.assert_array_equal(seen.first_fixation_s, [0.5, 3.0, np.nan])
    # The first saccade of all stays inside the left box, so it does not lead into it.
    np.testing.assert_array_equal(seen.first_saccade_s, [3.5, 2.5, np.nan])
    assert seen.order.tolist() == [0, 1, 0]


def test_figures_of_one_recording_are_those_computed_by_hand() -> None:
    boxes = place(
        [
            Area("*", "a", 0, 0, 100, 180),
            Area("*", "b", 100, 0, 200, 180),
            Area("*", "c", 200, 0, 300, 180),
        ],
        Sphere(),
    )
    raw = looks(boxes, path_of([50, 150], [90, 90], [0.0, 1.0], [1.0, 2.0]))
    released = looks(boxes, path_of([150, 50, 250], [90, 90, 90], [0.0, 1.5, 3.0], [1.0, 2.0, 4.0]))
    got = dict(zip(METRICS, compare(raw, released, 10.0), strict=True))
    assert got["dwell_rmse_s"] == pytest.approx(np.sqrt((1 + 1 + 16) / 3))
    assert got["fixations_rmse"] == pytest.approx(np.sqrt(1 / 3))
    assert got["first_fixation_rmse_s"] == pytest.approx(np.sqrt((1.5**2 + 1 + 7**2) / 3))
    assert np.isnan(got["first_saccade_rmse_s"])
    assert got["order_edit"] == pytest.approx(
        2 / 3
    )  # ab against bac: one exchange and one insertion, or the like
    assert got["order_tau"] == -1.0


def test_a_saccade_leads_from_the_sample_before_it_to_its_last_valid_one() -> None:
    words = np.array(["fixation"] * 3 + ["saccade"] * 3 + ["fixation"] * 2)
    x = np.array([100.0, 100, 101, 110, 120, 130, 140, 140])
    recording = stay([(100, 90)], 8).with_(
        x_deg=x, valid=np.array([True] * 5 + [False] + [True] * 2), labels={CARRIED: words}
    )
    path = scanpath_as_recorded(RecordingSet(Cohort([recording]), pipeline=CARRYING), recording)
    assert (path.from_x_deg.tolist(), path.to_x_deg.tolist(), path.saccade_s.tolist()) == (
        [101.0],
        [120.0],
        [0.03],
    )
    np.testing.assert_allclose(path.x_deg, [301 / 3, 140], atol=1e-3)
    np.testing.assert_allclose(path.duration_s, [0.03, 0.02])


# --- the utility
# --------------------------------------------------------------------------------------------------


def jumping(person: str, stimulus: str = "s", seed: int = 0, n: int = 12) -> Recording:
    rng = np.random.default_rng(seed)
    places = [
        (float(x), float(y))
        for x, y in zip(rng.uniform(60, 300, n), rng.uniform(60, 120, n), strict=True)
    ]
    return stay(places, 40, person=person, stimulus=stimulus)


COHORT = Cohort(
    [jumping(p, s, 10 * i + j) for i, p in enumerate("abc") for j, s in enumerate(("s", "t"))]
)


def test_a_release_of_everything_loses_nothing() -> None:
    recording_set = RecordingSet(COHORT)
    results = AOI().measure(recording_set, recording_set, RecordingSet(COHORT), 0)
    got = figures(results)
    assert {m for m, v in got.items() if v == 0} == set(METRICS) - {"order_tau"}
    assert got["order_tau"] == 1.0
    assert [r.names for r in results] == [("a", "b", "c")] * len(METRICS)
    assert all(r.of == "person" and len(r.parts) == 3 for r in results)


def test_a_release_without_gaze_gives_what_chance_says() -> None:
    lost = Cohort(
        [
            r.with_(
                x_deg=np.full(len(r), np.nan),
                y_deg=np.full(len(r), np.nan),
                valid=np.zeros(len(r), dtype=np.bool_),
            )
            for r in COHORT
        ]
    )
    recording_set = RecordingSet(COHORT)
    for result in AOI().measure(recording_set, recording_set, RecordingSet(lost), 0):
        if result.metric == "order_tau":
            assert np.isnan(result.value)
            assert "no two areas" in result.note
        else:
            assert result.value == pytest.approx(result.chance)
            assert result.value > 0


def test_the_value_is_the_mean_over_people_of_the_mean_over_their_recordings() -> None:
    """Against a plain loop over fixations."""
    release = gazeveil.mechanism("spatial:L=128").release(COHORT, seed=3).data.load()
    recording_set = RecordingSet(COHORT)
    result = AOI(rows=2, columns=2).measure(recording_set, recording_set, RecordingSet(release), 0)[
        0
    ]
    edges_x, edges_y = np.linspace(0, 360, 6), np.linspace(0, 180, 3)

    def dwell(recording: Recording) -> np.ndarray:
        table = np.zeros((2, 5))
        for event in gazeveil.detect(recording, "ivt", setting="george"):
            if event.kind == "fixation":
                part = slice(event.onset, event.offset + 1)
                x, y = Sphere().degrees(
                    Sphere().vectors(recording.x_deg[part], recording.y_deg[part]).sum(axis=0)
                )
                table[
                    np.searchsorted(edges_y, y, "right") - 1,
                    np.searchsorted(edges_x, x, "right") - 1,
                ] += (event.offset - event.onset + 1) / recording.rate_hz
        return table

    per_person: dict[str, list[float]] = {}
    for a, b in zip(COHORT, release, strict=True):
        per_person.setdefault(a.person, []).append(
            float(np.sqrt(np.mean((dwell(a) - dwell(b)) ** 2)))
        )
    np.testing.assert_allclose(result.parts, [np.mean(v) for v in per_person.values()], atol=1e-9)
    assert result.value == pytest.approx(np.mean([np.mean(v) for v in per_person.values()]))
    assert result.value > 0


@pytest.mark.parametrize(
    "mechanism",
    ["gaussian:sigma_deg=5", "temporal:K=3", "temporal:K=7,reading=published", "spatial:L=64"],
)
def test_with_carried_labels_times_and_durations_are_the_raw_ones_and_only_places_move(
    mechanism: str,
) -> None:
    cohort = carry(COHORT, FeaturePipeline())
    release = gazeveil.mechanism(mechanism).release(cohort, seed=1, keep=("labels",)).data.load()
    raw, test = (RecordingSet(cohort, pipeline=CARRYING), RecordingSet(release, pipeline=CARRYING))
    moved = False
    for recorded, released in side_by_side(raw, test):
        assert recorded is not None
        assert released is not None
        before, after = (
            scanpath_as_recorded(raw, recorded),
            scanpath_as_released(test, released, raw, recorded),
        )
        np.testing.assert_array_equal(before.onset_s, after.onset_s)
        np.testing.assert_array_equal(before.duration_s, after.duration_s)
        moved |= bool(np.nanmax(np.abs(before.x_deg - after.x_deg)) > 1e-6)
    assert moved == (
        "temporal" not in mechanism
    )  # gaze that rests is where it was, whichever samples are kept


def test_a_release_whose_labels_are_its_own_speaks_for_itself() -> None:
    cohort = carry(Cohort([COHORT[0]]), FeaturePipeline())
    recorded = cohort[0]
    words = recorded.labels[CARRIED].copy()
    words[:200] = "noise"
    raw, test = (
        RecordingSet(cohort, pipeline=CARRYING),
        RecordingSet(Cohort([recorded.with_(labels={CARRIED: words})]), pipeline=CARRYING),
    )
    after = scanpath_as_released(test, test.cohort[0], raw, recorded)  # type: ignore[index]
    assert after.onset_s.min() >= 2.0
    assert scanpath_as_recorded(raw, recorded).onset_s.min() == 0.0


def test_a_release_without_labels_cannot_carry_them() -> None:
    recording_set = RecordingSet(COHORT, pipeline=CARRYING)
    with pytest.raises(DataError, match="carries no event labels"):
        AOI().measure(
            recording_set,
            recording_set,
            RecordingSet(
                gazeveil.mechanism("gaussian:sigma_deg=1").release(COHORT, seed=1).data,
                pipeline=CARRYING,
            ),
            0,
        )


def test_an_area_that_neither_side_reached_has_no_time_to_compare_and_one_side_counts_to_the_end(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.toml").write_text("[[area]]\nleft = 10\ntop = 10\nright = 20\nbottom = 20\n")
    here, there = stay([(100, 90), (120, 90)], 50), stay([(15, 15), (120, 90)], 50)
    raw = RecordingSet(Cohort([here]))
    nothing = {r.metric: r for r in AOI(areas=str(tmp_path / "a.toml")).measure(raw, raw, raw, 0)}
    assert np.isnan(nothing["first_fixation_rmse_s"].value)
    assert nothing["dwell_rmse_s"].value == 0
    assert "nobody looked" in nothing["order_edit"].note
    some = figures(
        AOI(areas=str(tmp_path / "a.toml")).measure(raw, raw, RecordingSet(Cohort([there])), 0)
    )
    assert some["first_fixation_rmse_s"] == pytest.approx(here.duration_s)
    assert (
        0.4 < some["dwell_rmse_s"] <= 0.5
    )  # the detector gives the samples next to the jump to the saccade


def test_recordings_that_were_not_released_and_stimuli_without_areas_are_counted_in_the_note(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.toml").write_text(
        '[[area]]\nstimulus = "s"\nleft = 60\ntop = 60\nright = 200\nbottom = 120\n'
    )
    raw = RecordingSet(COHORT)
    result = AOI(areas=str(tmp_path / "a.toml")).measure(
        raw, raw, RecordingSet(COHORT.select(people=["a", "b"])), 0
    )[0]
    assert result.names == ("a", "b")
    assert "2 recordings not released" in result.note
    assert "1 stimuli without areas" in result.note


def test_what_cannot_be_measured_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[[area]]\nstimulus = "harbour"\nleft = 60\ntop = 60\nright = 200\nbottom = 120\n'
    )
    raw = RecordingSet(COHORT)
    with pytest.raises(DataError, match=r"other stimuli \(harbour\) than the recordings \(s, t\)"):
        AOI(areas=str(tmp_path / "a.toml")).measure(raw, raw, raw, 0)
    stranger = RecordingSet(Cohort([jumping("z")]))
    with pytest.raises(DataError, match="shares no recording"):
        AOI().measure(raw, raw, stranger, 0)
    keys = Keys.of_recordings([("a", "s", "1", "")], [np.arange(1)])
    table = RecordingSet(None, {"fixation": FeatureTable(np.zeros((1, 1)), ("duration",), keys)})
    with pytest.raises(DataError, match="tables only"):
        AOI().measure(raw, raw, table, 0)
    assert not AOI().can(table)
    assert AOI().can(raw)


@pytest.mark.parametrize(
    "parameters", [{"rows": 0}, {"areas": 5}, {"unit": "cm"}, {"width_px": 100}, {"columns": 1.5}]
)
def test_wrong_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        utility("aoi", **parameters)


def test_a_recording_of_fixations_without_samples_has_a_scanpath() -> None:
    events = Events(
        ["fixation", "fixation"],
        [-1, -1],
        [-1, -1],
        [0, 10**9],
        [10**9, 3 * 10**9],
        np.array([5.0, np.nan]),
        np.array([0.0, 0.0]),
    )
    empty = np.empty(0)
    recording = Recording(
        "a", "s", np.empty(0, dtype=np.int64), empty, empty, space=SCREEN, events=events
    )
    for pipeline in (FeaturePipeline(), CARRYING):
        recording_set = RecordingSet(Cohort([recording]), pipeline=pipeline)
        got = figures(AOI().measure(recording_set, recording_set, recording_set, 0))
        assert got["dwell_rmse_s"] == 0
        path = scanpath_as_recorded(recording_set, recording)
        assert path.duration_s.tolist() == [1.0, 2.0]
        assert path.x_deg[0] == 5.0


@settings(max_examples=60)
@given(
    recordings(max_samples=120),
    st.sampled_from(["temporal:K=3", "spatial:L=64", "gaussian:sigma_deg=3"]),
)
def test_any_recording_can_be_measured_both_ways_without_a_warning(
    recording: Recording, mechanism: str
) -> None:
    cohort = carry(Cohort([recording]), FeaturePipeline())
    for pipeline, keep in ((FeaturePipeline(), ()), (CARRYING, ("labels",))):
        raw = RecordingSet(cohort, pipeline=pipeline)
        release = RecordingSet(
            gazeveil.mechanism(mechanism).release(cohort, seed=1, keep=keep).data, pipeline=pipeline
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same, other = (AOI().measure(raw, raw, m, 0) for m in (raw, release))
        assert all(r.value == 0 or np.isnan(r.value) for r in same[:-1])
        assert all(r.value >= 0 or np.isnan(r.value) for r in other[:-1])
