"""Detectors and labellers on labelled recordings, one row of figures for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from gazeveil import Cohort, Recording, detect, simulate
from gazeveil.errors import DataError, ParameterError
from gazeveil.events.agreement import Comparison, ComparisonRow, label_columns, pool
from tests.support.event_signals import SCREEN, on_screen, step_path

WORDS = ("fixation", "saccade", "pursuit", "pso")


def labelled(recording: Recording, **columns: np.ndarray) -> Recording:
    return recording.with_(labels=columns)


def by_speed(recording: Recording) -> np.ndarray:
    return detect(recording, "ivt").words(len(recording))


def late(words: np.ndarray, samples: int = 1) -> np.ndarray:
    return np.concatenate((words[:1].repeat(samples), words[:-samples]))


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    made = simulate(2, 2, 4.0, 250.0, space=SCREEN, seed=4)
    return Cohort(
        [labelled(r, ann=by_speed(r), ben=late(by_speed(r))) for r in made], name="two labellers"
    )


def compare(
    cohort: Iterable[Recording],
    method: str = "auto",
    parameters: Mapping[str, object] | None = None,
) -> list[ComparisonRow]:
    comparison = Comparison(method, parameters)
    for recording in cohort:
        comparison.add(recording)
    return comparison.rows()


@pytest.fixture(scope="module")
def rows(cohort: Cohort) -> dict[str, ComparisonRow]:
    return {row.name: row for row in compare(cohort)}


def test_detectors_come_first_and_each_pair_of_labellers_once(
    rows: dict[str, ComparisonRow],
) -> None:
    assert list(rows) == ["auto", "I-VT", "ann against ben"]
    assert {row.group for row in rows.values()} == {"free-viewing"}
    assert {row.recordings for row in rows.values()} == {4}
    assert rows["auto"].against == ("ann", "ben")
    assert rows["ann against ben"].against == ("ben",)


def test_a_detector_is_compared_with_all_columns_pooled(
    cohort: Cohort, rows: dict[str, ComparisonRow]
) -> None:
    pairs = [(r.labels[name], by_speed(r), r.t_ns) for r in cohort for name in r.labels]
    expected = pool(pairs, join={"pso": "saccade"})
    assert rows["I-VT"].agreement == expected
    assert rows["I-VT"].agreement.samples == 2 * sum(len(r) for r in cohort)
    figures = rows["I-VT"].as_dict()
    assert figures["event_f1_overlap"]["saccade"] == expected["saccade"].event_f1_overlap
    assert figures["saccade_onset_distance_ms"] == expected["saccade"].onset_distance_ms


def test_labellers_are_compared_with_each_other(rows: dict[str, ComparisonRow]) -> None:
    row = rows["ann against ben"].as_dict()
    assert row["saccade_onset_distance_ms"] == row["saccade_offset_distance_ms"] == 4.0
    assert row["f1"]["fixation"] > 0.95
    assert row["event_f1_overlap"] == {"fixation": 1.0, "saccade": 1.0}


def test_without_pso_in_the_labels_it_counts_as_saccade(rows: dict[str, ComparisonRow]) -> None:
    assert all(row.joined == {"pso": "saccade"} for row in rows.values())
    assert "pso" not in rows["auto"].agreement.classes
    assert rows["auto"].as_dict()["f1"]["pso"] is None


def test_groups_are_tasks_and_each_has_its_own_join() -> None:
    plain = on_screen(step_path(250.0))
    ringing = by_speed(plain)
    ringing[np.flatnonzero(ringing == "saccade")[-2:]] = "pso"
    recordings = [
        labelled(plain, ann=by_speed(plain)),
        labelled(plain, ann=ringing).with_(task="b"),
        labelled(plain, ben=by_speed(plain)).with_(task="b", person="q"),
        plain.with_(task="c"),
    ]
    rows = compare(recordings)
    assert [(row.group, row.name) for row in rows if row.name == "auto"] == [
        ("", "auto"),
        ("b", "auto"),
    ]
    joined = {row.group: dict(row.joined) for row in rows}
    assert joined == {"": {"pso": "saccade"}, "b": {}}
    words = {row.group: row.words for row in rows}
    assert words == {"": ("fixation", "saccade"), "b": ("fixation", "saccade", "pso")}
    # Nobody labelled the same recording as the other.
    assert not any("against" in row.name for row in rows)


def test_the_chosen_method_has_its_row_and_ivt_is_not_there_twice() -> None:
    r = on_screen(step_path(250.0))
    cohort = [labelled(r, ann=by_speed(r))]
    assert [row.name for row in compare(cohort, "ivt")] == ["I-VT"]
    rows = compare(cohort, "ivt", {"setting": "ren2024"})
    assert [row.name for row in rows] == ["ivt setting=ren2024", "I-VT"]
    with pytest.raises(ParameterError, match="no option 'speed'"):
        compare(cohort, "ivt", {"speed": 3})


def test_events_that_are_known_are_not_found_again() -> None:
    r = on_screen(step_path(250.0))
    comparison = Comparison("dorr")
    comparison.add(labelled(r, ann=by_speed(r)), detect(r, "ivt"))
    first, second = comparison.rows()
    assert (first.name, second.name) == ("dorr", "I-VT")
    assert first.agreement == second.agreement


def test_a_column_with_other_words_is_left_out() -> None:
    r = on_screen(step_path(250.0))
    pages = np.full(len(r), "page 1")
    comparison = Comparison()
    comparison.add(labelled(r, ann=by_speed(r), page=pages))
    assert comparison.left_out == ("page",)
    assert {name for row in comparison.rows() for name in row.against} == {"ann"}
    assert label_columns(labelled(r, page=pages)) == {}


def test_recordings_without_labels_are_refused() -> None:
    with pytest.raises(DataError, match="No recording has a column of labels"):
        compare([on_screen(step_path(250.0))])
