"""Intent prediction: the next area, told before the saccade."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.utility.intent.task import METRICS, rank_area
from gazeveil.utility.registry import utility
from tests.support.pieces import RawPieces
from tests.support.recordings import real_cohort

SCREEN = Screen(1600, 900, 480.0, 270.0, 600.0)
RATE_HZ = 120.0
#: Middles of tiles of a grid of 3 x 3 on that screen: left, middle and right of the middle row.
LEFT, MIDDLE, RIGHT = -15.0, 0.0, 15.0


def looker(
    person: str, places: list[float], rests_s: list[float], stimulus: str = "s"
) -> Recording:
    """Rests at places on the middle row, one after the other, with jumps of 40 ms between."""
    jump = np.linspace(0, 1, round(0.04 * RATE_HZ) + 1)[1:]
    x: list[float] = []
    for i, (place, rest_s) in enumerate(zip(places, rests_s, strict=True)):
        if i:
            x += (places[i - 1] + (place - places[i - 1]) * jump).tolist()
        x += [place] * round(rest_s * RATE_HZ)
    noise = np.random.default_rng(ord(person[-1])).normal(0, 0.02, (2, len(x)))
    t_ns = np.round(np.arange(len(x)) * 1e9 / RATE_HZ).astype(np.int64)
    return Recording(
        person, stimulus, t_ns, np.array(x) + noise[0], noise[1], space=SCREEN, rate_hz=RATE_HZ
    )


def regular(people: int = 4, rounds: int = 8) -> Cohort:
    """Everybody goes left, middle, right, left... and rests for 1 s at each."""
    places = [LEFT, MIDDLE, RIGHT] * rounds
    return Cohort([looker(f"p{i}", places, [1.0] * len(places)) for i in range(people)])


def figures(
    raw: Cohort, train: Cohort | None = None, test: Cohort | None = None, **parameters: object
) -> dict[str, float]:
    sets = [RecordingSet(raw if c is None else c) for c in (raw, train, test)]
    return {r.metric: r.value for r in utility("intent", **parameters).measure(*sets, 1)}


def test_a_regular_looker_is_told_when_and_where() -> None:
    told = figures(regular())
    assert list(told) == list(METRICS)
    assert told["change_auc"] > 0.97
    assert told["dwell_auc"] > 0.95
    assert told["target_accuracy"] > 0.97
    assert told["successor_accuracy"] > 0.97
    assert told["area_accuracy"] > 0.9
    # Half of a rest of 1 s lies within 0.5 s of its end; each of three areas is looked at equally.
    assert told["hold_accuracy"] == pytest.approx(0.5, abs=0.08)
    assert told["majority_accuracy"] == pytest.approx(1 / 3, abs=0.08)


def test_rests_of_any_length_cannot_be_told_but_places_can() -> None:
    rng = np.random.default_rng(3)
    places = [LEFT, MIDDLE, RIGHT] * 10
    cohort = Cohort([looker(f"p{i}", places, rng.exponential(0.7, 30) + 0.15) for i in range(5)])
    told = figures(cohort)
    assert 0.35 < told["change_auc"] < 0.65
    assert told["target_accuracy"] > 0.85


def test_gaze_that_says_nothing_gives_no_better_than_the_floors() -> None:
    raw = regular(people=5)
    rng = np.random.default_rng(4)
    blank = Cohort(
        [
            r.with_(x_deg=rng.uniform(-20, 20, len(r)), y_deg=rng.uniform(-10, 10, len(r)))
            for r in raw
        ]
    )
    told = figures(raw, blank, blank)
    assert 0.4 < told["change_auc"] < 0.6
    assert told["target_accuracy"] < 0.6
    assert told["hold_accuracy"] < 0.3
    # The model has learnt not to believe it.
    assert told["area_accuracy"] > told["majority_accuracy"] - 0.08
    # A model of raw gaze that meets such a release is not better either.
    assert 0.35 < figures(raw, raw, blank)["change_auc"] < 0.65


def test_the_raw_gaze_is_the_truth_of_a_release_that_looks_elsewhere() -> None:
    raw = regular()
    turned = Cohort([r.with_(x_deg=-r.x_deg) for r in raw])
    told = figures(raw, turned, turned)
    # Left and right change places. The model learns where people went, but from right to left the
    # release says that gaze is there already: one way of three.
    assert told["target_accuracy"] == pytest.approx(2 / 3, abs=0.08)
    assert told["hold_accuracy"] == pytest.approx(1 / 3, abs=0.08)


def test_a_release_of_every_fourth_sample_serves() -> None:
    raw = regular()
    fewer = gazeveil.mechanism("temporal", K=4).release(raw, seed=1).data
    assert figures(raw, fewer, fewer)["target_accuracy"] > 0.9


def test_areas_of_a_file_are_learnt_over_stimuli(tmp_path: Path) -> None:
    boxes = tmp_path / "areas.csv"
    lines = ["stimulus,name,left,top,right,bottom"]
    for stimulus in ("s", "t"):
        lines += [
            f"{stimulus},a,-20,-3,-10,3",
            f"{stimulus},b,-5,-3,5,3",
            f"{stimulus},c,10,-3,20,3",
        ]
    boxes.write_text("\n".join(lines) + "\n")
    places = [LEFT, MIDDLE, RIGHT] * 6
    cohort = Cohort([looker(f"p{i}", places, [1.0] * 18, s) for i in range(4) for s in ("s", "t")])
    assert figures(cohort, areas=str(boxes))["target_accuracy"] > 0.97
    boxes.write_text("stimulus,name,left,top,right,bottom\nother,a,-20,-3,-10,3\n")
    with pytest.raises(DataError, match="areas lie on other stimuli"):
        figures(cohort, areas=str(boxes))


def test_what_does_not_fit_is_refused() -> None:
    raw = RecordingSet(regular(people=2))
    intent = utility("intent")
    with pytest.raises(DataError, match="release of pieces"):
        intent.measure(raw, raw, protect(raw, RawPieces(piece_s=2.0), 1), 1)
    with pytest.raises(DataError, match="at least 2"):
        figures(regular(people=1))
    with pytest.raises(DataError, match="tables only"):
        intent.measure(raw, raw, RecordingSet(tables={"fixation": raw.fixations}), 1)
    for name in ("horizon_s", "every_s", "train_share"):
        with pytest.raises(ParameterError, match=name):
            utility("intent", **{name: 0})
    with pytest.raises(ParameterError, match="train_share"):
        utility("intent", train_share=1)


def test_people_without_released_gaze_are_left_out_and_named_in_the_note() -> None:
    raw = regular(people=5)
    lost = Cohort([r.with_(valid=np.zeros(len(r), dtype=bool)) for r in raw])
    sets = [RecordingSet(c) for c in (raw, raw, lost)]
    results = utility("intent").measure(*sets, 1)
    assert all(np.isnan(r.parts).all() for r in results)
    assert "2 people have no released gaze" in results[0].note


def test_area_under_the_curve_counts_ties_half() -> None:
    assert rank_area(np.array([1.0, 1.0]), np.array([True, False])) == 0.5
    assert np.isnan(rank_area(np.array([1.0]), np.array([True])))


@pytest.mark.parametrize(
    ("folder", "name", "people"), [("gazecom", "gazecom", 8), ("eyenavgs_nthu", "eyenavgs", 8)]
)
def test_real_gaze_is_told_better_than_by_the_floors(folder: str, name: str, people: int) -> None:
    cohort = real_cohort(folder)
    part = cohort.select(people=sorted(cohort.people)[:people], stimuli=cohort.stimuli[:2])
    told = figures(part.load())
    assert told["change_auc"] > 0.55
    assert told["target_accuracy"] > told["popular_accuracy"]
    assert told["area_accuracy"] > told["majority_accuracy"]
