"""Data frames of recordings, cohorts, events, tables and results: out and in again without loss,
and hostile ones refused in one sentence.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gazeveil
from gazeveil.errors import DataError, GazeveilError, MissingExtraError
from gazeveil.evaluation.results import frame_of
from gazeveil.features import Keys
from gazeveil.gaze.recording import Recording
from gazeveil.io.reading import ReadingWarning
from tests.support.recordings import assert_same

SCREEN = gazeveil.Screen(1280, 720, 400.0, 225.3, 450.1)


def recording(person: str = "p1", stimulus: str = "clip", n: int = 60, seed: int = 0) -> Recording:
    """All channels, lost samples, times that no double holds and one that goes back."""
    rng = np.random.default_rng(seed)
    t = 1_700_000_000_000_000_001 + np.arange(n) * 8_333_333
    x, y = rng.uniform(-20, 20, n), rng.uniform(-10, 10, n)
    valid = rng.random(n) > 0.2
    valid[7], t[7] = False, t[2]
    x[3], valid[3] = np.nan, False
    eye = np.stack((x, y), axis=1)
    pupil = rng.uniform(2, 5, n)
    pupil[5] = np.nan
    return Recording(
        person,
        stimulus,
        t,
        x,
        y,
        valid,
        SCREEN,
        119.7,
        "2",
        "reading",
        left_deg=eye,
        right_deg=eye + 0.5,
        head_deg=rng.uniform(0, 100, (n, 3)),
        eye_in_head_deg=eye - 1,
        pupil=pupil,
        confidence=rng.random(n),
        labels={"expert one": np.where(valid, "fixation", "blink")},
        metadata={"pupil_unit": "mm"},
    )


WAYS: dict[str, Callable[[Any], Any]] = {
    "polars": lambda value: value.to_polars(),
    "lazy": lambda value: value.to_polars().lazy(),
    "pandas": lambda value: value.to_pandas(),
    "pandas with its own types": lambda value: value.to_pandas().convert_dtypes(),
    "pandas with categories": lambda value: value.to_pandas().astype({"person": "category"}),
    "pandas by time": lambda value: value.to_pandas().set_index(["person", "t_ns"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_recording_comes_back_bit_for_bit(way: str) -> None:
    own = recording()
    back = Recording.from_frame(WAYS[way](own))
    assert_same(back, own)
    assert back.metadata["pupil_unit"] == "mm"


@pytest.mark.parametrize("way", WAYS)
def test_a_cohort_of_different_channels_comes_back(way: str) -> None:
    plain = Recording("p2", "clip", np.arange(5) * 10**7, np.full(5, 10.0), np.full(5, 20.0))
    own = gazeveil.Cohort([recording(), plain, recording("p1", "other", seed=1)])
    back = gazeveil.Cohort.from_frame(WAYS[way](own))
    assert back.keys == own.keys
    for one, other in zip(back, own, strict=True):
        assert_same(one, other)
    assert back[1].pupil is None
    assert not back[1].labels


def test_an_arrow_table_is_read_too() -> None:
    pytest.importorskip("pyarrow", reason="Arrow tables of pyarrow")
    own = recording()
    assert_same(Recording.from_frame(own.to_polars().to_arrow()), own)


def test_the_units_stand_in_the_names_and_times_are_whole() -> None:
    frame = recording().to_polars()
    assert frame.schema["t_ns"] == pl.Int64
    assert {"x_deg", "y_deg", "pupil_mm", "rate_hz", "label_expert one"} <= set(frame.columns)
    assert set(frame["space"]) == {"1280x720px,400x225.3mm,450.1mm"}
    assert frame.height == 60
    assert int((~frame["valid"]).sum()) == int(np.count_nonzero(~recording().valid))


def test_a_pandas_frame_may_be_changed_without_changing_the_recording() -> None:
    own = recording()
    before = own.x_deg.copy()
    frame = own.to_pandas()
    frame.loc[:, "x_deg"] = 0.0
    np.testing.assert_array_equal(own.x_deg, before)


def test_an_unknown_rate_stays_unknown() -> None:
    own = recording().with_(rate_hz=float("nan"))
    for frame in (own.to_polars(), own.to_pandas()):
        assert np.isnan(Recording.from_frame(frame).rate_hz)


@pytest.mark.parametrize(
    ("column", "times"),
    [
        ("t_ms", [0, 4, 8]),
        ("t_us", [0, 4000, 8000]),
        ("t_s", [0.0, 0.004, 0.008]),
        ("t_ns", [0.0, 4e6, 8e6]),
    ],
)
def test_times_of_other_units_become_nanoseconds(column: str, times: list[float]) -> None:
    frame = pl.DataFrame({column: times, "x_px": [640.0, 1280.0, None], "y_px": 360.0})
    gaze = Recording.from_frame(frame, space=SCREEN, person="p", stimulus="s")
    assert gaze.t_ns.tolist() == [0, 4_000_000, 8_000_000]
    assert gaze.valid.tolist() == [True, True, False]
    assert gaze.x_deg[1] == pytest.approx(SCREEN.width_deg / 2)
    assert (gaze.session, gaze.task, gaze.rate_hz) == ("1", "", 250.0)


def _changed(**columns: pl.Expr | pl.Series) -> pl.DataFrame:
    return recording().to_polars().with_columns(**columns)


def _object(value: object) -> pd.DataFrame:
    frame = recording().to_pandas()
    frame["x_deg"] = frame["x_deg"].astype(object)
    frame.loc[3, "x_deg"] = value
    return frame


def _backwards() -> pl.DataFrame:
    return recording().to_polars().reverse()


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "missing gaze": (lambda: recording().to_polars().drop("x_deg"), "needs a column 'x_deg'"),
    "missing time": (lambda: recording().to_polars().drop("t_ns"), "needs a column 't_ns'"),
    "no person": (lambda: recording().to_polars().drop("person"), "or person= for all rows"),
    "no space": (lambda: recording().to_polars().drop("space"), "what the degrees mean"),
    "half an eye": (lambda: recording().to_polars().drop("left_y_deg"), "'left_y_deg'"),
    "strange space": (lambda: _changed(space=pl.lit("room")), "must be 'sphere' or look like"),
    "two spaces": (
        lambda: _changed(space=pl.Series(["sphere"] * 30 + ["1x1px,1x1mm,1mm"] * 30)),
        "one value for all samples",
    ),
    "seconds as t_ns": (lambda: _changed(t_ns=pl.Series(np.arange(60) / 60)), "Got fractions"),
    "inexact times": (lambda: _changed(t_ns=pl.col("t_ns").cast(pl.Float64)), "to be exact"),
    "dates": (lambda: _changed(t_ns=pl.col("t_ns").cast(pl.Datetime("ns"))), "of type Datetime"),
    "empty time": (
        lambda: _changed(t_ns=pl.when(pl.col("valid")).then(pl.col("t_ns"))),
        "'t_ns' of the frame given to Recording.from_frame is empty in row 3",
    ),
    "pixels as degrees": (lambda: _changed(x_deg=pl.col("x_deg") * 60), "pixels"),
    "valid without gaze": (lambda: _changed(x_deg=pl.lit(float("nan"))), "marked valid but holds"),
    "text for numbers": (lambda: _changed(x_deg=pl.lit("1.5")), "must hold numbers. Got text"),
    "confidence as valid": (lambda: _changed(valid=pl.lit(0.7)), "true and false, or 1 and 0"),
    "text as valid": (lambda: _changed(valid=pl.lit("yes")), "must hold true and false"),
    "empty valid": (lambda: _changed(valid=pl.lit(None, pl.Boolean)), "'valid'.*is empty in row 0"),
    "backwards": (_backwards, "must increase"),
    "several recordings": (
        lambda: gazeveil.Cohort([recording(), recording("p2")]).to_polars(),
        "Cohort.from_frame",
    ),
    "several pupils": (lambda: _changed(pupil_px=pl.lit(1.0)), "one size of the pupil"),
    "objects of several kinds": (lambda: _object("lost"), "values of several kinds"),
    "repeated rows": (
        lambda: pd.concat([recording().to_pandas(), recording().to_pandas()]),
        "must increase",
    ),
    "repeated columns": (
        lambda: pd.concat([recording().to_pandas(), recording().to_pandas()], axis=1),
        "The frame has several",
    ),
    "nobody": (lambda: _changed(person=pl.lit(None, pl.String)), "'person'.*is empty in row 0"),
    "fractions of people": (lambda: _changed(person=pl.lit(1.5)), "text or whole numbers"),
    "nothing": (lambda: recording().to_polars().clear(), "The frame is empty"),
    "a list": (lambda: [1, 2, 3], "must be a data frame"),
    "unknown words": (lambda: _changed(label_b=pl.lit(2.5)), "text or whole numbers"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_frame_is_refused_in_one_sentence(case: str) -> None:
    make, words = HOSTILE[case]
    with pytest.raises(GazeveilError, match=words) as caught:
        Recording.from_frame(make())
    assert "\n" not in str(caught.value)


def test_times_beyond_64_bits_are_refused() -> None:
    for values in ([0.0, 1e12], [0, 10**12]):
        frame = pl.DataFrame({"t_s": values, "x_deg": 1.0, "y_deg": 1.0})
        with pytest.raises(DataError, match="too large for 64 bits"):
            Recording.from_frame(frame, space=SCREEN, person="p", stimulus="s")


def test_an_index_that_repeats_plays_no_part() -> None:
    own = recording()
    frame = own.to_pandas()
    frame.index = pd.Index([0] * len(frame))
    assert_same(Recording.from_frame(frame), own)


def test_people_come_from_a_mapping_or_a_frame() -> None:
    frame = gazeveil.Cohort([recording("1"), recording("2")]).to_polars()
    table = pl.DataFrame({"person": [1, 2], "age": [30, None]})
    for people in ({"1": {"age": 30}}, table, table.to_pandas()):
        cohort = gazeveil.Cohort.from_frame(frame, people=people, name="mine")
        assert dict(cohort.people["1"]) == {"age": 30}
        assert dict(cohort.people["2"]) == {}
    with pytest.raises(DataError, match="'1' more than once"):
        gazeveil.Cohort.from_frame(frame, people=pl.DataFrame({"person": ["1", "1"]}))


def test_recordings_without_samples_are_said() -> None:
    none = np.empty(0, dtype=np.int64)
    fixations = gazeveil.Events(["fixation"], [-1], [-1], [0], [10**8], [1.0], [2.0])
    empty = Recording("p2", "clip", none, np.empty(0), np.empty(0), events=fixations)
    with pytest.raises(DataError, match=r"recording\.events\.to_polars"):
        empty.to_polars()
    with pytest.warns(ReadingWarning, match="1 of 2 recordings have no samples"):
        frame = gazeveil.Cohort([recording(), empty]).to_polars()
    assert frame.height == 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gazeveil.Cohort([]).to_polars().height == 0


def test_events_come_back_and_find_their_samples() -> None:
    gaze = gazeveil.simulate(1, 1, 4.0, 120.0, seed=3)[0]
    own = gazeveil.detect(gaze)
    for frame in (own.to_polars(), own.to_pandas()):
        for back in (
            gazeveil.Events.from_frame(frame),
            gazeveil.Events.from_frame(frame, gaze),
            gazeveil.Events.from_frame(frame[["kind", "onset_ns", "offset_ns"]], gaze),
        ):
            for name in ("kind", "onset", "offset", "onset_ns", "offset_ns"):
                np.testing.assert_array_equal(getattr(back, name), getattr(own, name))
    assert gazeveil.Events.from_frame(own.to_polars()).source == own.source
    loose = gazeveil.Events.from_frame(own.to_polars().drop("onset", "offset"))
    assert set(loose.onset.tolist()) == {-1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": pl.lit("fixtion")}, "fixtion"),
        ({"onset": pl.col("onset_ns") // 10**6}, "is not the sample"),
        ({"onset": pl.col("onset") + 10**6}, "is not the sample"),
        ({"offset_ns": pl.col("onset_ns") - 1}, "offset at or after its onset"),
    ],
)
def test_hostile_events_are_refused(change: dict[str, pl.Expr], words: str) -> None:
    gaze = gazeveil.simulate(1, 1, 2.0, 120.0, seed=3)[0]
    frame = gazeveil.detect(gaze).to_polars().with_columns(**change)
    with pytest.raises(GazeveilError, match=words):
        gazeveil.Events.from_frame(frame, gaze)


def test_events_of_a_wrong_unit_find_no_samples() -> None:
    gaze = gazeveil.simulate(1, 1, 2.0, 120.0, seed=3)[0]
    frame = pl.DataFrame({"kind": ["fixation"], "onset_ns": [900], "offset_ns": [1000]})
    with pytest.raises(DataError, match=r"has no sample\. Check the unit"):
        gazeveil.Events.from_frame(frame, gaze)


def test_a_feature_table_comes_back() -> None:
    keys = Keys(["a", "b"], ["s", "s"], ["1", "1"], ["", ""], [0, 3])
    own = gazeveil.FeatureTable([[0.1, np.nan], [1 / 3, 2.0]], ("p", "q"), keys, [[0, 1], [0, 9]])
    for frame in (own.to_polars(), own.to_pandas()):
        for bounds in (own.bounds, {"p": (0, 1), "q": (0, 9)}):
            back = gazeveil.FeatureTable.from_frame(frame, bounds)
            np.testing.assert_array_equal(back.values, own.values)
            np.testing.assert_array_equal(back.bounds, own.bounds)
            assert back.columns == own.columns
            for name in ("person", "stimulus", "session", "task", "index"):
                np.testing.assert_array_equal(back.keys[name], own.keys[name])
    assert gazeveil.FeatureTable.from_frame(own.to_polars()).bounds is None
    for broken, words in (
        (own.to_polars().drop("index"), "'index'"),
        (own.to_polars().with_columns(p=pl.lit("high")), "'p'.*must hold numbers"),
        (own.to_polars().with_columns(p=pl.lit(float("inf"))), "infinite"),
    ):
        with pytest.raises(DataError, match=words):
            gazeveil.FeatureTable.from_frame(broken)


def test_results_come_back() -> None:
    row = {"mechanism": "none", "scenario": "raw/raw", "attack": "lda", "value": 0.5, "n": 10}
    own = gazeveil.Results(frame_of([{**row, "metric": "identification_rate", "cohort": "c"}]))
    for frame in (own.to_polars(), own.to_pandas()):
        assert gazeveil.Results.from_frame(frame).frame.equals(own.frame)
    with pytest.raises(DataError, match="no column 'metric'"):
        gazeveil.Results.from_frame(own.to_polars().drop("metric"))
    with pytest.raises(DataError, match=r"'value'.*must be Float64"):
        gazeveil.Results.from_frame(own.to_polars().with_columns(value=pl.lit("high")))


def test_without_pandas_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[pandas\]"):
        recording().to_pandas()


@pytest.mark.parametrize("other", ["ANNA É", "Anna  É ", "Anna E\u0301", "Anna\u200b É"])
def test_one_person_spelled_in_two_ways_is_pointed_out(other: str, tmp_path: Path) -> None:
    one, two = list(gazeveil.simulate(2, 1, 1.0, 60.0, seed=1))
    cohort = gazeveil.Cohort([one.with_(person="Anna É"), two.with_(person=other)])
    with pytest.warns(ReadingWarning, match="If they are one person"):
        again = gazeveil.Cohort.from_frame(cohort.to_polars())
    assert set(again.people) == {"Anna É", other}  # only pointed out
    cohort.write(tmp_path / "raw")
    with pytest.warns(ReadingWarning, match="If they are one person"):
        gazeveil.read(tmp_path / "raw")


def test_people_who_are_spelled_differently_raise_no_doubt() -> None:
    cohort = gazeveil.simulate(12, 1, 1.0, 60.0, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadingWarning)
        gazeveil.Cohort.from_frame(cohort.to_polars())
