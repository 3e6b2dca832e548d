"""Document type, gender, privacy sensitivity, activity and task: the protocols, their traps, and
what is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.models.classifiers import CLASSIFIERS, most_votes, predict, standardised
from gazeveil.utility.classify import with_privacy_labels
from gazeveil.utility.registry import utility
from gazeveil.utility.splits import class_of, score

DOCUMENTS = ("comic-1", "newspaper-2", "textbook-3")
Maker = Callable[[int, int, NDArray[np.int64], np.random.Generator], NDArray[np.float64]]


def windows(
    people: int,
    rows: int,
    make: Maker,
    seed: int = 0,
    stimuli: tuple[str, ...] = DOCUMENTS,
    names: str = "p{}",
    task: str = "",
) -> FeatureTable:
    """A window table; `make(person, document, index, rng)` gives the features of one recording."""
    rng = np.random.default_rng(seed)
    keys = [(names.format(p), s, "1", task) for p in range(people) for s in stimuli]
    values = np.concatenate(
        [make(p, d, np.arange(rows), rng) for p in range(people) for d in range(len(stimuli))]
    )
    columns = tuple(f"f{i}" for i in range(values.shape[1]))
    return FeatureTable(
        values,
        columns,
        Keys.of_recordings(keys, [np.arange(rows)] * len(keys)),
        [[-50.0, 50.0]] * len(columns),
    )


def held(
    table: FeatureTable, window_s: float = 1.0, step_s: float = 0.5, **more: object
) -> RecordingSet:
    return RecordingSet(
        None, {"window": table}, FeaturePipeline(window_s=window_s, step_s=step_s), **more
    )  # type: ignore[arg-type]


def by_document(
    p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    return rng.normal(np.eye(3)[d] * 6, 1.0, (len(index), 3))


def nothing(
    p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    return rng.normal(0, 1, (len(index), 3))


# --- the classifiers
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_every_classifier_learns_what_can_be_learnt_and_nothing_from_noise(classifier: str) -> None:
    rng = np.random.default_rng(3)
    labels = np.array(["a", "b"]).repeat(100)
    apart = rng.normal(0, 1, (200, 4)) + 5 * (labels == "b")[:, None]
    test = rng.normal(0, 1, (400, 4))
    truth = np.array(["a", "b"]).repeat(200)
    assert (
        np.mean(predict(classifier, apart, labels, test + 5 * (truth == "b")[:, None], 1) == truth)
        > 0.98
    )
    assert (
        abs(
            np.mean(predict(classifier, rng.normal(0, 1, (200, 4)), labels, test, 1) == truth) - 0.5
        )
        < 0.12
    )


def test_the_kernel_is_the_one_asked_for() -> None:
    from sklearn.svm import SVC

    rng = np.random.default_rng(1)
    train, test = rng.normal(0, 1, (120, 5)), rng.normal(0, 1, (300, 5))
    train[:, 4] = 1.0  # constant: `scale` counts the four that vary, `features` all five
    labels = np.where(train[:, 0] * train[:, 1] > 0, "a", "b")
    known, asked = standardised(train, test)
    for gamma, width in (("scale", 1 / 4), ("features", 1 / 5)):
        plain = SVC(C=1.0, kernel="rbf", gamma=width).fit(known, labels).predict(asked)
        assert (predict("svm", train, labels, test, 0, gamma) == plain).all()


def test_neighbours_are_eleven_and_ties_are_broken_at_random() -> None:
    labels = np.array(["a"] * 6 + ["b"] * 5 + ["b"] * 20)
    train = np.concatenate([np.linspace(0, 0.1, 11), np.full(20, 9.0)])[:, None]
    assert predict("knn", train, labels, np.array([[0.05]]), 0).tolist() == [
        "a"
    ]  # six of the eleven nearest, though most of all are b
    votes = np.tile([3.0, 3.0, 1.0], (4000, 1))
    drawn = most_votes(votes, np.random.default_rng(5))
    assert set(drawn.tolist()) == {0, 1}
    assert abs(np.mean(drawn == 0) - 0.5) < 0.05


# --- decisions
# --------------------------------------------------------------------------------------------------


def test_accuracy_is_the_mean_over_people_and_f1_that_of_all_decisions() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(2)
    persons = np.array(["x"] * 90 + ["y"] * 10)
    truth, predicted = rng.choice(["a", "b", "c"], 100), rng.choice(["a", "b", "c"], 100)
    predicted[90:] = truth[90:]
    accuracy, f1 = score(truth, predicted, persons, "")
    mine = float(np.mean(truth[:90] == predicted[:90]))
    assert accuracy.value == pytest.approx((mine + 1) / 2)
    assert accuracy.parts.tolist() == pytest.approx([mine, 1.0])
    assert accuracy.names == ("x", "y")
    assert f1.value == pytest.approx(f1_score(truth, predicted, average="macro"))
    without_x, without_y = (
        f1_score(truth[90:], predicted[90:], average="macro"),
        f1_score(truth[:90], predicted[:90], average="macro"),
    )
    assert f1.parts.tolist() == pytest.approx([2 * f1.value - without_x, 2 * f1.value - without_y])


def test_chance_is_that_of_the_most_frequent_class_and_of_guessing_by_share() -> None:
    rng = np.random.default_rng(4)
    truth = np.array(["a"] * 7000 + ["b"] * 3000)
    persons = np.array(["x", "y"] * 5000)
    accuracy, f1 = score(truth, np.full(10000, "a"), persons, "")
    assert accuracy.value == pytest.approx(accuracy.chance) == pytest.approx(0.7)
    assert f1.value < f1.chance == 0.5
    by_share = rng.choice(["a", "b"], 10000, p=[0.7, 0.3])
    assert score(truth, by_share, persons, "")[1].value == pytest.approx(0.5, abs=0.03)


# --- document type
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stimulus", "task", "label", "name"),
    [
        ("comic-12", "reading", "stimulus", "comic"),
        ("text_book 3", "", "stimulus", "text_book"),
        ("textbook", "", "stimulus", "textbook"),
        ("017", "", "stimulus", "017"),
        ("video2 b", "", "stimulus", "video2 b"),
        ("clip-3", "search", "task", "search"),
        ("clip-3", "", "task", "clip"),
    ],
)
def test_the_class_of_a_recording_follows_one_rule(
    stimulus: str, task: str, label: str, name: str
) -> None:
    assert class_of(("p", stimulus, "1", task), label) == name


@pytest.mark.parametrize(
    "text",
    [
        "document",
        "document:split=people",
        "document:vote=true,classifier=forest",
        "document:split=people,classifier=knn,vote=true",
    ],
)
def test_documents_that_differ_are_told_apart_and_those_that_do_not_are_guessed(text: str) -> None:
    apart, alike = held(windows(9, 60, by_document)), held(windows(9, 60, nothing))
    found = utility(text + (",every=2" if ":" in text else ":every=2"))
    accuracy, f1 = found.measure(apart, apart, apart, 1)
    assert accuracy.value > 0.97
    assert f1.value > 0.97
    assert accuracy.chance == pytest.approx(1 / 3)
    assert (accuracy.metric, f1.metric, accuracy.better, accuracy.of, len(accuracy.parts)) == (
        "accuracy",
        "f1_macro",
        "higher",
        "person",
        9,
    )
    guessed = np.mean([found.measure(alike, alike, alike, seed)[0].value for seed in range(3)])
    assert abs(guessed - 1 / 3) < 0.15


def test_first_halves_are_trained_on_and_second_halves_are_asked_about() -> None:
    def changes(
        p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        late = index >= len(index) // 2
        return rng.normal(np.eye(3)[np.where(late, (d + 1) % 3, d)] * 6, 1.0)

    table = held(windows(6, 40, changes))
    assert utility("document:every=1").measure(table, table, table, 0)[0].value < 0.03
    assert utility("document:every=1,split=people").measure(table, table, table, 0)[0].value > 0.4


def test_windows_that_share_samples_with_the_first_half_are_left_out_unless_asked_for() -> None:
    def near_the_middle(
        p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        # Windows of 2 s every 0.5 s: of those from the middle on, the first three share samples
        # with the last one before it.
        odd = (index >= 20) & (index < 23)
        return rng.normal(np.eye(3)[np.where(odd, (d + 1) % 3, d)] * 6, 1.0)

    table = held(windows(6, 40, near_the_middle), window_s=2.0)
    assert utility("document:every=1").measure(table, table, table, 0)[0].value > 0.98
    assert utility("document:every=1,gap=false").measure(table, table, table, 0)[
        0
    ].value == pytest.approx(17 / 20, abs=0.02)


def test_every_nth_window_is_kept() -> None:
    def tenth(
        p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        return rng.normal(
            np.eye(3)[np.where(index % 10 == 0, d, rng.integers(0, 3, len(index)))] * 6, 1.0
        )

    table = held(windows(6, 120, tenth))
    assert utility("document:gap=false").measure(table, table, table, 0)[0].value > 0.98
    assert utility("document:every=1,gap=false").measure(table, table, table, 0)[0].value < 0.7


def test_a_person_left_out_is_not_trained_on() -> None:
    def own_code(
        p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        # Everybody has a corner of their own and documents in an order of their own: only their own
        # data tell which is which.
        order = np.random.default_rng(100 + p).permutation(3)
        return np.column_stack(
            [rng.normal(10 * p, 0.3, len(index)), rng.normal(3 * order[d], 0.3, len(index))]
        )

    table = held(windows(8, 40, own_code))
    assert (
        utility("document:every=1,classifier=tree,gap=false")
        .measure(table, table, table, 0)[0]
        .value
        > 0.97
    )
    assert (
        utility("document:every=1,classifier=tree,split=people")
        .measure(table, table, table, 0)[0]
        .value
        < 0.75
    )


def test_a_release_under_fresh_pseudonyms_is_trained_on_whole_and_the_note_says_so() -> None:
    raw, release = (
        windows(5, 40, by_document),
        windows(5, 40, by_document, seed=9, names="synthetic-{}"),
    )
    result = utility("document:every=2,split=people").measure(
        held(raw), held(release), held(raw), 0
    )[0]
    assert result.value > 0.97
    assert "names the training side does not have" in result.note


def test_a_release_that_lost_people_features_and_rows_is_still_measured() -> None:
    raw = windows(6, 40, by_document)
    some = raw.where((raw.keys.person != "p0") & (raw.keys.index < 25)).drop("f1")
    values = np.array(some.values)
    values[::7] = np.nan
    values[3, 0] = np.nan
    release = FeatureTable(values, some.columns, some.keys, some.bounds)
    for text in ("document:every=2", "document:every=2,split=people"):
        result = utility(text).measure(held(raw), held(release), held(raw), 0)[0]
        assert result.value > 0.8, text
        assert len(result.parts) == 6


def test_a_class_nobody_trained_on_counts_as_missed_and_is_named() -> None:
    raw = windows(6, 40, by_document)
    release = raw.where(raw.keys.stimulus != "comic-1")
    accuracy, f1 = utility("document:every=2").measure(held(raw), held(release), held(raw), 0)
    assert accuracy.value == pytest.approx(2 / 3, abs=0.02)
    assert f1.value < 0.6
    assert "'comic'" in accuracy.note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("document:classifier=svn", "'svm'"),
        ("document:split=halfs", "'halves'"),
        ("document:every=0", "at least 1"),
        ("document:gamma=0.1", "features, scale"),
        ("document:vote=3", "True or False"),
        ("document:gap=3", "True or False"),
        ("activity:test_share=1", "below 1"),
        ("task:trees=0", "at least 1"),
        ("gender:attribute=3", "name of an attribute"),
    ],
)
def test_wrong_parameters_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        utility(text)


def test_what_cannot_be_measured_is_refused_in_one_sentence() -> None:
    table = windows(4, 40, by_document)
    one_kind = held(windows(4, 40, by_document, stimuli=("comic-1", "comic-2", "comic-3")))
    alone = held(table.select(people="p0"))
    short = held(windows(4, 10, by_document), window_s=30.0)
    none = held(table.where(np.zeros(len(table), dtype=np.bool_)))
    other = held(FeatureTable(table.values, ("x", "y", "z"), table.keys))
    raw = held(table)
    for text, train, test, message in (
        ("document", one_kind, one_kind, "at least two classes"),
        ("document:split=people", alone, alone, "nobody else than 'p0'"),
        ("document", short, short, "shorter than two windows"),
        ("document:gap=false", none, raw, "no rows with a class to train on"),
        ("document:split=people", raw, none, "no rows with a class to test on"),
        ("document:split=people", other, raw, "no feature in common"),
        ("gender", raw, raw, "attribute 'gender'"),
        ("privacy-sensitivity", raw, raw, "privacy_sensitive"),
        ("activity", alone, alone, "only 'p0'"),
    ):
        with pytest.raises(DataError, match=message):
            utility(text).measure(short if test is short else raw, train, test, 0)


# --- gender and privacy sensitivity
# --------------------------------------------------------------------------------------------------


def test_gender_is_learnt_from_other_people_and_chance_is_the_larger_share() -> None:
    def by_gender(
        p: int, d: int, index: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        return rng.normal(4.0 * (p % 3 == 0), 1.0, (len(index), 2))

    people = {
        f"p{p}": {"gender": (" Female" if p else "female") if p % 3 == 0 else "male"}
        for p in range(9)
    } | {"p8": {"gender": None}}
    table = held(windows(9, 30, by_gender), people=people)
    accuracy, _ = utility("gender:every=2").measure(table, table, table, 0)
    assert accuracy.value > 0.95
    assert accuracy.chance == pytest.approx(5 / 8)
    assert "p8" not in accuracy.names
    # Where gender leaves no trace, a person left out is not found above chance: most often below,
    # because their class is the rarer one in training.
    null = held(windows(9, 30, nothing), people=people)
    assert utility("gender:every=2").measure(null, null, null, 0)[0].value < accuracy.chance + 0.1


def test_privacy_sensitivity_reads_the_raw_annotation_and_never_the_released_one() -> None:
    rng = np.random.default_rng(0)
    private = rng.integers(0, 2, (6 * 3, 60))
    told = windows(6, 60, nothing)
    values = told.values + 4 * private.ravel()[:, None]
    informative = with_privacy_labels(
        FeatureTable(values, told.columns, told.keys, told.bounds), private.ravel()
    )
    scrambled = with_privacy_labels(informative.drop("privacy_sensitive"), 1 - private.ravel())
    found = utility("privacy-sensitivity:every=3")
    assert found.measure(held(informative), held(scrambled), held(scrambled), 0)[0].value > 0.95
    # The annotation itself is not a feature: without any other trace of it there is nothing to
    # learn.
    blind = with_privacy_labels(told, private.ravel())
    assert found.measure(held(blind), held(blind), held(blind), 0)[0].value < 0.6


def test_windows_without_annotation_are_left_out() -> None:
    labels = np.tile(np.where(np.arange(30) % 2 == 0, np.arange(30) // 2 % 2, -1), 12)
    table = windows(
        4, 30, lambda p, d, i, rng: rng.normal(4.0 * (i // 2 % 2)[:, None], 1.0, (len(i), 2))
    )
    annotated = with_privacy_labels(table, labels)
    assert np.isnan(annotated.column("privacy_sensitive")).sum() == 180
    assert annotated.bound("privacy_sensitive") == (0.0, 1.0)
    assert (
        utility("privacy-sensitivity:every=1")
        .measure(held(annotated), held(table), held(table), 0)[0]
        .value
        > 0.9
    )
    unknown = held(with_privacy_labels(table, np.full(len(table), -1)))
    with pytest.raises(DataError, match="no rows with a class"):
        utility("privacy-sensitivity").measure(unknown, unknown, unknown, 0)
    with pytest.raises(DataError, match="one label per row"):
        with_privacy_labels(table, [1, 0])


# --- tasks
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks() -> Cohort:
    """Six people who read and who follow jumping targets."""
    parts = [
        gazeveil.simulate(6, 2, seconds=12, rate_hz=120, task=task, seed=2).load()
        for task in ("reading", "random-saccade")
    ]
    return Cohort([r for c in parts for r in c], parts[0].people)


def test_tasks_are_recognised_in_people_nobody_trained_on(tasks: Cohort) -> None:
    raw = RecordingSet(tasks)
    accuracy, f1 = utility("task").measure(raw, raw, raw, 1)
    assert accuracy.value > 0.9
    assert f1.value > 0.9
    assert len(accuracy.parts) == 2
    assert accuracy.chance == pytest.approx(0.5)


def test_tasks_shuffled_over_recordings_are_not_recognised(tasks: Cohort) -> None:
    rng = np.random.default_rng(3)
    names = rng.permutation([r.task for r in tasks])
    mixed = Cohort(
        [
            r.with_(task=str(n), stimulus=f"{r.task}-{r.stimulus}")
            for r, n in zip(tasks, names, strict=True)
        ],
        tasks.people,
    )
    recording_set = RecordingSet(mixed).prepared(("fixation", "saccade"))
    found = [
        utility("task:test_share=0.5,trees=20")
        .measure(recording_set, recording_set, recording_set, s)[0]
        .value
        for s in range(8)
    ]
    assert abs(np.mean(found) - 0.5) < 0.25


def test_activities_are_recognised_from_windows_and_by_vote(tasks: Cohort) -> None:
    raw = RecordingSet(tasks, pipeline=FeaturePipeline(window_s=5, step_s=1)).prepared(("window",))
    one, vote = (
        utility(text).measure(raw, raw, raw, 0)[0]
        for text in ("activity:test_share=0.5", "activity:test_share=0.5,vote=true")
    )
    assert one.value > 0.85
    assert vote.value >= one.value - 0.1
    assert set(vote.parts * 4 % 1) == {0.0}  # four recordings of each person, so quarters
    assert len(one.names) == 3


# --- the order the papers find
# --------------------------------------------------------------------------------------------------
