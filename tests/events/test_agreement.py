"""Agreement figures against values worked out by hand.

Detectors and labellers on labelled recordings, one row of figures for each.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazeveil import Cohort, Events, Recording, detect, simulate
from gazeveil.errors import DataError, ParameterError
from gazeveil.events.agreement import Comparison, ComparisonRow, agreement, label_columns, pool
from tests.support.event_signals import SCREEN, on_screen, step_path

F, S, N, P = "fixation", "saccade", "noise", "pso"


def t_ns(n: int) -> np.ndarray:
    return np.arange(n) * 2_000_000


def test_sample_f1_counts_every_sample() -> None:
    truth = [F] * 6 + [S] * 2 + [N] * 2
    found = [F] * 5 + [S] * 4 + [N]
    a = agreement(truth, found, t_ns(10))
    assert a[F].f1 == pytest.approx(2 * 5 / (6 + 5))
    assert a[S].f1 == pytest.approx(2 * 2 / (2 + 4))
    assert a[N].f1 == pytest.approx(2 * 1 / (2 + 1))
    assert a.samples == 10
    assert a.f1 == {w: a[w].f1 for w in (F, S, N)}


def test_kappa_is_cohens() -> None:
    truth = [F] * 25 + [S] * 25
    found = [F] * 20 + [S] * 5 + [F] * 10 + [S] * 15
    # observed 35/50 = 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5
    a = agreement(truth, found)
    assert a.kappa == pytest.approx(0.4)
    assert a[F].kappa == pytest.approx(0.4)


def test_kappa_of_one_word_throughout_is_not_a_number() -> None:
    assert np.isnan(agreement([F] * 5, [F] * 5).kappa)


def test_a_hit_needs_half_of_the_union_and_pairs_once() -> None:
    truth = [S] * 4 + [F] * 8
    half = [S] * 8 + [F] * 4  # 4 of 8: just a hit
    less = [S] * 9 + [F] * 3  # 4 of 9
    assert agreement(truth, half)[S].hits == 1
    assert agreement(truth, less)[S].hits == 0
    assert agreement(truth, less, overlap=0.4)[S].hits == 1
    split = [S] * 2 + [F] + [S] + [F] * 8
    a = agreement(truth, split)
    assert (a[S].events_true, a[S].events_found, a[S].hits) == (1, 2, 1)
    assert a[S].event_f1 == pytest.approx(2 / 3)


def test_one_shared_sample_is_an_overlap_and_no_hit() -> None:
    truth = [F] * 4 + [S] * 4 + [F] * 4
    found = [F] * 7 + [S] * 4 + [F]  # one of seven samples is shared
    a = agreement(truth, found)
    assert (a[S].hits, a[S].overlaps) == (0, 1)
    assert (a[S].event_f1, a[S].event_f1_overlap) == (0.0, 1.0)
    apart = [F] * 8 + [S] * 4
    assert agreement(truth, apart)[S].overlaps == 0


def test_overlapping_events_pair_one_to_one_and_the_largest_overlap_first() -> None:
    truth = [S] * 10 + [F] * 2
    split = [S] * 2 + [F] + [S] * 3 + [F] + [S] * 3 + [F] * 2
    a = agreement(truth, split)
    assert (a[S].events_true, a[S].events_found, a[S].overlaps) == (1, 3, 1)
    assert a[S].event_f1_overlap == pytest.approx(2 * 1 / (1 + 3))
    # The true events share 1 and 5 samples with the first one found, and the second of them 2 with
    # the other: 5 goes first, so the events at both ends have no partner left.
    truth = [S] * 3 + [F] + [S] * 9 + [F] * 4
    found = [F] * 2 + [S] * 7 + [F] * 2 + [S] * 4 + [F] * 2
    a = agreement(truth, found)
    assert (a[S].events_true, a[S].events_found, a[S].overlaps) == (2, 2, 1)


def test_overlaps_are_pooled_over_recordings() -> None:
    truth, found = [F] * 4 + [S] * 4 + [F] * 4, [F] * 7 + [S] * 4 + [F]
    a = pool([(truth, found, None), (truth, truth, None), (truth, [F] * 12, None)])
    assert (a[S].hits, a[S].overlaps) == (1, 2)
    assert a[S].event_f1_overlap == pytest.approx(2 * 2 / (3 + 2))


@given(st.lists(st.tuples(*[st.sampled_from([F, S, P])] * 2), min_size=1, max_size=60))
def test_a_hit_is_an_overlap(pairs: list[tuple[str, str]]) -> None:
    truth, found = zip(*pairs, strict=True)
    a = agreement(truth, found)
    for scores in a.classes.values():
        assert scores.hits <= scores.overlaps <= min(scores.events_true, scores.events_found)
        assert scores.event_f1 <= scores.event_f1_overlap


def test_joined_words_are_one_class_and_one_event() -> None:
    truth = [F] * 4 + [S] * 5 + [F] * 3
    found = [F] * 4 + [S] * 3 + [P] * 2 + [F] * 3
    apart = agreement(truth, found, t_ns(12))
    assert apart[S].f1 == pytest.approx(2 * 3 / (5 + 3))
    assert apart[S].offset_error_ms == -4.0
    a = agreement(truth, found, t_ns(12), join={P: S})
    assert P not in a.classes
    assert (a[S].f1, a[S].events_found, a[S].event_f1) == (1.0, 1, 1.0)
    assert (a[S].offset_error_ms, a.kappa) == (0.0, 1.0)
    assert a == pool([(truth, found, t_ns(12))], join={P: S})
    assert agreement(truth, found, join={}).f1 == agreement(truth, found).f1


def test_joined_events_and_joined_words_say_the_same() -> None:
    truth = np.array([F] * 4 + [S] * 3 + [P] * 2 + [S] * 2 + [F] * 3 + [P] + [F])
    found = np.array([F] * 5 + [S] * 4 + [P] * 2 + [F] * 3 + [S] + [F])
    events = [Events.from_words(words, t_ns(16)) for words in (truth, found)]
    by_words = agreement(truth, found, t_ns(16), join={P: S})
    assert by_words[S].events_true == 2
    assert agreement(*events, t_ns(16), join={P: S}) == by_words


def test_events_that_were_apart_before_a_join_stay_apart() -> None:
    second = ["", "", "vor", "vor", ""]
    events = Events.from_words([S, S, S, S, P], t_ns(5), secondary=second)
    a = agreement(events, [S] * 5, t_ns(5), join={P: S})
    assert (a[S].events_true, a[S].events_found) == (2, 1)


def test_errors_of_onset_and_offset_are_medians_in_ms_with_their_sign() -> None:
    truth = np.array([F] * 30)
    found = truth.copy()
    for k, shift in enumerate((1, 2, 3)):
        truth[10 * k + 2 : 10 * k + 6] = S
        found[10 * k + 2 : 10 * k + 6 + shift] = S
    a = agreement(truth, found, t_ns(30))
    assert (a[S].onset_error_ms, a[S].offset_error_ms) == (0.0, 4.0)
    b = agreement(found, truth, t_ns(30))
    assert (b[S].offset_error_ms, b[S].offset_distance_ms) == (-4.0, 4.0)
    assert np.isnan(agreement(truth, found)[S].onset_error_ms)


def test_pooling_adds_samples_and_not_figures() -> None:
    one = ([S] * 2 + [F] * 8, [S] * 2 + [F] * 8, t_ns(10))
    other = ([F] * 90 + [S] * 10, [F] * 100, t_ns(100))
    a = pool([one, other])
    assert a.samples == 110
    assert a[S].f1 == pytest.approx(2 * 2 / (12 + 2))
    assert (a[S].events_true, a[S].events_found, a[S].hits) == (2, 1, 1)


def test_events_and_words_say_the_same() -> None:
    truth, found = np.array([F] * 6 + [S] * 4), np.array([F] * 5 + [S] * 5)
    by_words = agreement(truth, found, t_ns(10))
    by_events = agreement(
        Events.from_words(truth, t_ns(10)), Events.from_words(found, t_ns(10)), t_ns(10)
    )
    assert by_words == by_events


def test_nothing_to_compare_gives_no_classes() -> None:
    a = agreement([], [])
    assert (a.samples, dict(a.classes)) == (0, {})
    assert np.isnan(a.kappa)
    assert pool([]).samples == 0


def test_a_result_can_be_pickled_and_read() -> None:
    a = agreement([F] * 6 + [S] * 4, [F] * 5 + [S] * 5)
    assert pickle.loads(pickle.dumps(a)).f1 == a.f1
    assert "fixation" in str(a)
    assert "kappa" in str(a)


REFUSED = [
    (lambda: agreement([F, S], [F], t_ns(2)), DataError, "has shape"),
    (lambda: agreement([F, "jump"], [F, S], t_ns(2)), ParameterError, "Got 'jump' instead"),
    (lambda: agreement([F], [F], overlap=0), ParameterError, "must be a positive"),
    (lambda: agreement([F], [F], overlap=1.1), ParameterError, "at most 1"),
    (lambda: agreement([F], [F], join={"jump": S}), ParameterError, "words of .* Got 'jump'"),
    (lambda: agreement([F], [F], join={P: "jump"}), ParameterError, "'join' .* Got 'jump' instead"),
    (lambda: pool([], join={P: 3}), ParameterError, "Got 3 instead"),
    (lambda: pool([], join=[P, S]), ParameterError, "'join' parameter .* must be a mapping"),
    (
        lambda: agreement(Events.from_words([F, S], [0, 1]), [F], t_ns(1)),
        DataError,
        "outside the 1 samples",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_cannot_be_compared_is_refused(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


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
