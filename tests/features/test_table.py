"""The feature table: keys, bounds, picking rows and columns, files.

Tables without a row say so.

Large tables are set aside: nobody who holds a recording set holds them, and nobody notices.
"""

from __future__ import annotations

import dataclasses
import gc
import pickle
import re
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.features import FeatureTable, Keys
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import KEYS, EmptyTableWarning
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Cohort


def keys(people: str = "aabb", stimuli: str = "xyxy") -> Keys:
    return Keys(
        list(people),
        list(stimuli),
        ["1"] * len(people),
        [""] * len(people),
        list(range(len(people))),
    )  # type: ignore[arg-type]


def table() -> FeatureTable:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    return FeatureTable(
        values, ("p", "q"), keys(), np.array([[0.0, 5.0], [0.0, 50.0]]), {"short_events": 3}
    )


def test_the_package_shows_it() -> None:
    assert gazeveil.FeatureTable is FeatureTable


def test_nothing_in_a_table_changes_in_place() -> None:
    source = np.ones((4, 2))
    one = FeatureTable(source, ("p", "q"), keys(), np.array([[0.0, 5.0], [0.0, 50.0]]))
    source[:] = 7
    assert (one.values == 1).all()
    for array in (one.values, one.bounds, one.keys.person, one.keys.index, one.column("p")):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.columns = ("r", "s")  # type: ignore[misc]
    with pytest.raises(TypeError):
        one.counts["x"] = 1  # type: ignore[index]


def test_rows_and_columns_are_picked_with_their_keys_and_bounds() -> None:
    part = table().select(columns=["q"], people="b", stimuli=["y"])
    assert part.values.tolist() == [[40.0]]
    assert part.columns == ("q",)
    assert part.bounds is not None
    assert part.bounds.tolist() == [[0.0, 50.0]]
    assert part.keys["person"].tolist() == ["b"]
    assert part.keys.index.tolist() == [3]
    assert table().select(columns=["q", "p"]).values[0].tolist() == [10.0, 1.0]
    assert table().drop("p").columns == ("q",)
    assert table().where([3, 0]).column("p").tolist() == [4.0, 1.0]


def test_recordings_lists_the_rows_of_each() -> None:
    one = FeatureTable(np.zeros((5, 1)), ("p",), keys("abbaa", "xxxxy"))
    found = {key[:2]: rows.tolist() for key, rows in one.recordings().items()}
    assert found == {("a", "x"): [0, 3], ("b", "x"): [1, 2], ("a", "y"): [4]}


def test_bounds_are_replaced_by_name_and_taken_away() -> None:
    one = table().with_bounds({"q": (-1, 1)})
    assert one.bound("q") == (-1.0, 1.0)
    assert one.bound("p") == (0.0, 5.0)
    assert one.values.tolist() == table().values.tolist()  # not clipped
    none = one.with_bounds(None)
    assert none.bounds is None
    assert none.with_bounds({"p": (0, 1), "q": (0, 2)}).bound("q") == (0.0, 2.0)


def test_tables_are_joined_and_counts_added() -> None:
    both = FeatureTable.concat([table(), table().select(people="a")])
    assert len(both) == 6
    assert both.counts == {"short_events": 6}
    assert both.keys.person.tolist() == list("aabbaa")


def test_rows_with_missing_values_can_be_left_out_and_are_counted() -> None:
    one = FeatureTable(np.array([[1.0], [np.nan]]), ("p",), keys("ab", "xx"))
    assert len(one) == 2
    assert one.complete().values.tolist() == [[1.0]]
    assert one.complete().counts["incomplete"] == 1


def test_a_table_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(table()))
    assert again.values.tolist() == table().values.tolist()
    assert again.keys.person.tolist() == table().keys.person.tolist()
    assert repr(again) == "FeatureTable(4 rows, 2 features, 4 recordings, 2 people, public bounds)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: table().with_bounds({"r": (0, 1)}),
            ParameterError,
            (
                "The 'name' parameter of FeatureTable.with_bounds must be one of p, q. Got 'r'"
                " instead."
            ),
        ),
        (
            lambda: table().with_bounds({"p": (1, 1)}),
            ParameterError,
            (
                "The 'bounds['p']' parameter of FeatureTable must be two finite numbers, the lower"
                " one first. Got (1.0, 1.0) instead."
            ),
        ),
        (
            lambda: table().with_bounds({"p": (0, float("inf"))}),
            ParameterError,
            "must be a finite number. Got inf instead.",
        ),
        (
            lambda: table().with_bounds({"p": 3}),  # type: ignore[dict-item]
            ParameterError,
            "must be two finite numbers",
        ),
        (
            lambda: table().with_bounds(None).with_bounds({"p": (0, 1)}),
            ParameterError,
            "'q' is missing.",
        ),
        (
            lambda: table().with_bounds(None).bound("p"),
            DataError,
            "This table has no public bounds. Give them with table.with_bounds",
        ),
        (
            lambda: table().select(people="c"),
            ParameterError,
            "The 'people' parameter of FeatureTable.select must be one of a, b. Got 'c' instead.",
        ),
        (lambda: table().select(columns=["pp"]), ParameterError, "Did you mean 'p'?"),
        (
            lambda: FeatureTable(np.zeros((3, 2)), ("p", "q"), keys()),
            DataError,
            "need shape (4, 2) (rows of keys, columns). Got (3, 2).",
        ),
        (
            lambda: FeatureTable(np.zeros((4, 2)), ("p", "p"), keys()),
            DataError,
            "Got 'p' more than once.",
        ),
        (
            lambda: FeatureTable(np.full((4, 1), np.inf), ("p",), keys()),
            DataError,
            "Row 0 of feature 'p' is infinite.",
        ),
        (
            lambda: FeatureTable(np.zeros((4, 1)), ("p",), keys(), np.zeros((2, 2))),
            DataError,
            "bounds of a FeatureTable need shape (1, 2). Got (2, 2).",
        ),
        (
            lambda: FeatureTable.concat([]),
            DataError,
            "FeatureTable.concat needs at least one table.",
        ),
        (lambda: FeatureTable.concat([table(), table().drop("q")]), DataError, "They differ in q."),
        (
            lambda: FeatureTable.concat([table(), table().with_bounds(None)]),
            DataError,
            "needs tables with the same public bounds.",
        ),
        (
            lambda: Keys(["a"], ["x"], ["1"], [""], [0, 1]),  # type: ignore[arg-type]
            DataError,
            "Got lengths [1, 2].",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(st.floats(allow_infinity=False), min_size=0, max_size=6),
    person=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
)
def test_a_written_table_reads_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, values: list[float], person: str
) -> None:
    n = len(values)
    one = FeatureTable(
        np.array(values).reshape(n, 1),
        ("p, q",),
        Keys([person] * n, ["x"] * n, ["1"] * n, [""] * n, range(n)),
        np.array([[0.0, 0.1]]),
        {"short_events": 2},
    )  # type: ignore[arg-type]
    again = FeatureTable.read(one.write(tmp_path_factory.mktemp("table") / f"table.{suffix}"))
    assert again.columns == one.columns
    assert again.values.tobytes() == np.where(np.isnan(one.values), np.nan, one.values).tobytes()
    assert again.keys.person.tolist() == one.keys.person.tolist()
    assert again.keys.index.tolist() == one.keys.index.tolist()
    assert again.bounds is not None
    assert again.bounds.tolist() == [[0.0, 0.1]]
    assert again.counts == {"short_events": 2}


def test_a_table_from_elsewhere_has_no_bounds(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "person,stimulus,session,task,index,speed\r\n7,x,1,,0,2.5\r\n007,x,1,,1,\r\n",
        encoding="utf-8",
    )
    one = FeatureTable.read(path)
    assert one.bounds is None
    assert one.keys.person.tolist() == ["7", "007"]
    assert one.values[0, 0] == 2.5
    assert np.isnan(one.values[1, 0])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("table.csv", "person,stimulus,session,index,p\na,x,1,0,1\n", "there is no column 'task'"),
        (
            "table.csv",
            "person,stimulus,session,task,index,p\na,x,1,,0,fast\n",
            "a feature is not a number",
        ),
        ("table.csv", "", "the file is empty"),
        ("table.parquet", "no parquet at all", "it cannot be read as a feature table"),
        (
            "table.xlsx",
            "x",
            "a feature table cannot be a '.xlsx' file. Use .parquet, .csv or .tsv.",
        ),
        (
            "t.csv",
            "person,stimulus,session,task,index,speed\na,x,1,,0,1\na,x,1,,,1\n",
            "a row has no index",
        ),
    ],
)
def test_a_file_that_is_no_table_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        FeatureTable.read(path)
    assert str(path) in str(caught.value)


def test_windows_longer_than_every_recording_are_said() -> None:
    cohort = gazeveil.simulate(1, 2, 2.0, 120.0, seed=1)
    with pytest.warns(EmptyTableWarning, match="all 2 recordings are shorter than a window of 30"):
        assert len(gazeveil.window_features(cohort)) == 0
    with pytest.warns(EmptyTableWarning, match="there is no recording"):
        gazeveil.window_features(gazeveil.Cohort([]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", EmptyTableWarning)
        assert len(gazeveil.window_features(cohort, window_s=1.0)) > 0


def test_no_event_of_a_kind_is_said() -> None:
    gaze = gazeveil.simulate(1, 1, 2.0, 120.0, seed=1)[0]
    with pytest.warns(EmptyTableWarning, match="kind saccade has enough samples; none was found"):
        gazeveil.event_features(gaze, kind="saccade", events=gazeveil.Events.empty())
    short = gazeveil.Events.from_words(["fixation"] * 2, gaze.t_ns[:2])
    with pytest.warns(EmptyTableWarning, match="1 short events"):
        gazeveil.event_features(gaze, kind="fixation", events=short)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(3, 3, 4.0, 60.0, seed=5).load()


def same(a: FeatureTable, b: FeatureTable) -> bool:
    keys = all(np.array_equal(a.keys[name], b.keys[name]) for name in KEYS)
    types = all(a.keys[name].dtype == b.keys[name].dtype for name in KEYS)
    values = np.array_equal(a.values, b.values, equal_nan=True)
    return keys and types and values and a.columns == b.columns and a.counts == b.counts


def test_a_large_table_is_read_where_somebody_looks_and_held_by_nobody_else(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = RecordingSet(cohort)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    held = RecordingSet(cohort)
    first = held.saccades
    assert held.saccades is first
    watched = weakref.ref(first)
    del first
    gc.collect()
    assert watched() is None
    assert same(held.saccades, wanted.saccades)
    assert same(held.fixations, wanted.fixations)
    assert not held.saccades.values.flags.writeable
    assert np.array_equal(held.saccades.bounds, wanted.saccades.bounds)  # type: ignore[arg-type]


def test_parts_sums_and_pickles_of_sets_have_the_same_tables(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> list[RecordingSet]:
        whole = RecordingSet(cohort, people={}).prepared(("fixation", "saccade"))
        part = whole.select(stimuli=cohort.stimuli[:2])
        return [whole, part, RecordingSet.together([whole, part])]

    wanted = made()
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    found = made()
    with monkeypatch.context() as watched:
        watched.setattr(scratch.ScratchFile, "put", lambda *_: pytest.fail("written again"))
        found[0].where(lambda key: True)
    sent = pickle.loads(pickle.dumps(found[1]))
    for a, b in zip([*wanted, wanted[1]], [*found, sent], strict=True):
        assert list(a.tables) == list(b.tables) == ["fixation", "saccade"]
        assert all(same(a.tables[name], b.tables[name]) for name in a.tables)
