"""BIDS eye tracking: what is written reads back bit for bit, and hand-made datasets by the rules of
the specification.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.bids.read import write
from tests.support.bids_validator import errors
from tests.support.recordings import assert_same

SCREEN = Screen(1024, 768, 386.0, 290.0, 600.0)


def recording(
    seed: int = 0, person: str = "a", stimulus: str = "clip 1", sphere: bool = False, **more: object
) -> Recording:
    rng = np.random.default_rng(seed)
    n = 40
    t = np.cumsum(rng.integers(1_000_000, 3_000_000, n)) + 10**18
    gaze = rng.uniform(0, 179, (3, n, 2)) if sphere else rng.normal(0, 10, (3, n, 2))
    valid = rng.random(n) > 0.2
    gaze[0, ~valid & (rng.random(n) > 0.5)] = np.nan
    gaze[1, rng.random(n) > 0.8] = np.nan
    pupil = rng.uniform(2, 5, n)
    pupil[3] = np.nan
    words = np.where(np.arange(n) < 20, "fixation", "saccade")
    fields: dict[str, Any] = {
        "left_deg": gaze[1],
        "right_deg": gaze[2],
        "pupil": pupil,
        "metadata": {"pupil_unit": "mm"},
        "labels": {"hand": words},
        "events": Events.from_words(words, t, source="tracker"),
        "messages": (Message(int(t[2]), 'TRIAL "1"\tstart'), Message(int(t[5]), "stop")),
        "space": Sphere() if sphere else SCREEN,
        "rate_hz": 500.0,
    }
    x_deg, y_deg = gaze[0, :, 0], gaze[0, :, 1]
    return Recording(person, stimulus, t, x_deg, y_deg, valid, **(fields | more))


def test_a_written_cohort_reads_back_bit_for_bit(tmp_path: Path) -> None:
    head = np.random.default_rng(1).uniform(0, 90, (40, 3))
    cohort = Cohort(
        [
            recording(0, "Ada Müller", "clip 1"),
            recording(1, "ada-muller", "clip_1", session="2", task="free viewing"),
            recording(
                2,
                "b",
                "clip1",
                sphere=True,
                head_deg=head,
                eye_in_head_deg=head[:, :2],
                confidence=head[:, 0] / 90,
            ),
            recording(
                3,
                "b",
                "plain",
                left_deg=None,
                right_deg=None,
                pupil=None,
                labels={},
                events=None,
                messages=(),
                metadata={},
            ),
        ],
        people={"Ada Müller": {"age": 30, "gender": "f"}, "b": {"age": 41.5}},
        name="test set",
    )
    write(cohort, tmp_path / "set")
    again = gazeveil.read(tmp_path / "set")
    assert len(again) == 4
    found = {r.key: r for r in again}
    for one in cohort:
        assert_same(one, found[one.key])
    assert dict(again.people["Ada Müller"]) == {"age": 30, "gender": "f"}
    assert dict(again.people["b"]) == {"age": 41.5}
    assert again.people["ada-muller"] == {}
    assert found[("b", "clip1", "1", "")].metadata["pupil_unit"] == "mm"


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sphere=st.booleans(),
    person=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6),
)
def test_any_recording_reads_back(
    tmp_path_factory: pytest.TempPathFactory, seed: int, sphere: bool, person: str
) -> None:
    one = recording(seed, person, sphere=sphere)
    folder = write(Cohort([one]), tmp_path_factory.mktemp("bids") / "set")
    assert_same(one, gazeveil.read(folder, format="bids")[0])


def test_what_is_written_follows_the_rules(tmp_path: Path) -> None:
    write(Cohort([recording(0, "p_1", "clip 1", session="day 2", task="free viewing")]), tmp_path)
    description = json.loads((tmp_path / "dataset_description.json").read_text())
    assert description["BIDSVersion"].startswith("1.11")
    folder = tmp_path / "sub-p1" / "ses-day2" / "beh"
    stem = "sub-p1_ses-day2_task-freeviewing_acq-clip1"
    for eye, side in (("eye1", "left"), ("eye2", "right"), ("eye3", "cyclopean")):
        about = json.loads((folder / f"{stem}_recording-{eye}_physio.json").read_text())
        rows = (
            gzip.decompress((folder / f"{stem}_recording-{eye}_physio.tsv.gz").read_bytes())
            .decode()
            .splitlines()
        )
        assert about["RecordedEye"] == side
        assert about["PhysioType"] == "eyetrack"
        assert about["Columns"][:3] == ["timestamp", "x_coordinate", "y_coordinate"]
        assert {"SamplingFrequency", "StartTime", "SampleCoordinateSystem"} <= about.keys()
        assert about["x_coordinate"]["Units"] == "deg"
        assert len(rows) == 40  # no header
        assert all(len(r.split("\t")) == len(about["Columns"]) for r in rows)
        assert "nan" not in "".join(rows).lower().replace("n/a", "")
    stimulus = json.loads((folder / f"{stem}_events.json").read_text())["StimulusPresentation"]
    assert stimulus == {
        "ScreenDistance": 0.6,
        "ScreenOrigin": ["top", "left"],
        "ScreenResolution": [1024, 768],
        "ScreenSize": [0.386, 0.29],
    }
    assert (tmp_path / "participants.tsv").read_text().splitlines()[0].split("\t")[
        0
    ] == "participant_id"
    events = json.loads((folder / f"{stem}_recording-eye3_physioevents.json").read_text())
    assert events["OnsetSource"] == "timestamp"
    assert events["Columns"][:2] == ["onset", "duration"]
    for path in tmp_path.rglob("sub-*.*"):
        assert re.fullmatch(
            r"(sub|ses|task|acq|recording)-[A-Za-z0-9]+(_(ses|task|acq|"
            r"recording)-[A-Za-z0-9]+)*_[a-z]+\.(tsv\.gz|tsv|json)",
            path.name,
        )


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (write(Cohort([recording()]), tmp_path / name) for name in ("one", "other"))
    for path in one.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (other / path.relative_to(one)).read_bytes()


def test_a_full_folder_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(DataError, match="exists and is not an empty folder"):
        write(Cohort([recording()]), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_recording_without_samples_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    none = np.empty(0)
    empty = Recording("a", "x", np.empty(0, dtype=np.int64), none, none, space=SCREEN)
    with pytest.raises(DataError, match="has no samples or no known rate"):
        write(Cohort([empty]), tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


PRESENTATION = {
    "ScreenDistance": 0.6,
    "ScreenOrigin": ["top", "left"],
    "ScreenResolution": [1024, 768],
    "ScreenSize": [0.386, 0.29],
}
PHYSIO = {
    "PhysioType": "eyetrack",
    "Columns": ["timestamp", "x_coordinate", "y_coordinate", "pupil_size"],
    "SampleCoordinateSystem": "gaze-on-screen",
    "SamplingFrequency": 1000,
    "timestamp": {"Units": "ms"},
    "x_coordinate": {"Units": "pixel"},
    "y_coordinate": {"Units": "pixel"},
    "pupil_size": {"Units": "a.u."},
}


def dataset(
    root: Path,
    files: Mapping[str, object],
    presentation: Mapping[str, object] | None = PRESENTATION,
    physio: Mapping[str, object] = PHYSIO,
) -> Path:
    """A dataset with inherited sidecars at its root; texts ending in .gz are zipped."""
    base: dict[str, object] = {
        "dataset_description.json": {"Name": "t", "BIDSVersion": "1.11.0"},
        "task-view_physio.json": physio,
        "task-view_events.json": {
            "TaskName": "view",
            **({} if presentation is None else {"StimulusPresentation": presentation}),
        },
    }
    for name, content in {**base, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return root


BEH = "sub-01/beh/sub-01_task-view_run-01_recording-"


def binocular() -> dict[str, object]:
    return {
        f"{BEH}eye1_physio.tsv.gz": (
            "7000\t512\t384\t4000\n7001\tn/a\tn/a\tn/a\n7002\t522\t384\t4010\n"
        ),
        f"{BEH}eye1_physio.json": {"RecordedEye": "left", "StartTime": 0},
        f"{BEH}eye2_physio.tsv.gz": (
            "7000\t516\t384\t4200\n7001\t518\t390\t4300\n7002\tn/a\tn/a\tn/a\n"
        ),
        f"{BEH}eye2_physio.json": {"RecordedEye": "right", "StartTime": 0},
        "participants.tsv": "participant_id\tage\tsex\nsub-01\t33\tF\nsub-02\tn/a\tM\n",
        "derivatives/x/sub-09/beh/sub-09_task-view_recording-eye1_physio.tsv.gz": "1\t1\t1\t1\n",
        "sub-01/beh/sub-01_task-view_recording-cardiac_physio.tsv.gz": "1\n2\n",
        "sub-01/beh/sub-01_task-view_recording-cardiac_physio.json": {
            "PhysioType": "generic",
            "Columns": ["cardiac"],
        },
    }


def test_two_eyes_with_inherited_sidecars_become_one_recording(tmp_path: Path) -> None:
    cohort = gazeveil.read(dataset(tmp_path, binocular()))
    assert len(cohort) == 1
    one = cohort[0]
    assert one.key == ("01", "view_run-01", "1", "view")
    assert dict(cohort.people["01"]) == {"age": 33, "sex": "F"}
    assert one.space == Screen(1024, 768, 386, 290, 600)
    assert one.rate_hz == 1000
    assert one.t_ns.tolist() == [7_000_000_000, 7_001_000_000, 7_002_000_000]
    assert one.right_deg is not None
    assert one.left_deg[0].tolist() == [0.0, 0.0]
    assert np.isnan(one.left_deg[1]).all()
    assert one.valid.all()
    x_px, y_px = one.space.to_px(one.x_deg, one.y_deg)
    np.testing.assert_allclose(x_px, [514, 518, 522])
    np.testing.assert_allclose(y_px, [384, 390, 384])
    np.testing.assert_allclose(one.pupil, [4100, 4300, 4010])
    assert one.metadata["pupil_unit"] == "a.u."
    assert one.counts["rows"] == 3


def test_the_cyclopean_file_is_the_line_of_sight(tmp_path: Path) -> None:
    files = binocular() | {
        f"{BEH}eye3_physio.tsv.gz": "7000\t600\t384\t1\n7001\tn/a\tn/a\t2\n7002\t600\t400\t3\n",
        f"{BEH}eye3_physio.json": {"RecordedEye": "cyclopean"},
    }
    one = gazeveil.read(dataset(tmp_path, files))[0]
    assert one.valid.tolist() == [True, False, True]
    np.testing.assert_allclose(one.space.to_px(one.x_deg, one.y_deg)[0][[0, 2]], [600, 600])
    assert one.pupil.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("unit", "origin", "row", "px"),
    [
        ("pixel", ["top", "left"], (612, 284), (612, 284)),
        ("pixel", ["bottom", "left"], (612, 484), (612, 284)),
        ("px", ["center", "center"], (100, -100), (612, 284)),
        ("normalized", ["top", "left"], (612 / 1024, 284 / 768), (612, 284)),
        ("mm", ["top", "left"], (612 / 1024 * 386, 284 / 768 * 290), (612, 284)),
        ("m", ["bottom", "left"], (612 / 1024 * 0.386, 484 / 768 * 0.29), (612, 284)),
        ("deg", ["top", "left"], tuple(float(v) for v in SCREEN.from_px(612, 284)), (612, 284)),
        (
            "rad",
            ["bottom", "left"],
            (np.radians(SCREEN.from_px(612, 0)[0]), -np.radians(SCREEN.from_px(0, 284)[1])),
            (612, 284),
        ),
    ],
)
def test_units_and_origins_meet_in_the_same_place(
    tmp_path: Path, unit: str, origin: list[str], row: tuple[float, float], px: tuple[float, float]
) -> None:
    physio = {
        **PHYSIO,
        "Columns": ["timestamp", "x_coordinate", "y_coordinate"],
        "x_coordinate": {"Units": unit},
        "y_coordinate": {"Units": unit},
    }
    files = {
        f"{BEH}eye1_physio.tsv.gz": f"0\t{float(row[0])!r}\t{float(row[1])!r}\n",
        f"{BEH}eye1_physio.json": {"RecordedEye": "right"},
    }
    one = gazeveil.read(dataset(tmp_path, files, {**PRESENTATION, "ScreenOrigin": origin}, physio))[
        0
    ]
    np.testing.assert_allclose(np.array(one.space.to_px(one.x_deg, one.y_deg))[:, 0], px, atol=1e-6)
    assert one.left_deg is None
    assert one.right_deg is not None


@pytest.mark.parametrize(
    ("distance", "size", "said"),
    [
        (60, [0.386, 0.29], {"screen_distance_unit": "cm"}),
        (60, [38.6, 29], {"screen_size_unit": "cm"}),
        (600, [386, 290], {"screen_size_unit": "mm"}),
    ],
)
def test_a_size_in_the_unit_of_the_distance_is_the_same_screen(
    tmp_path: Path, distance: float, size: list[float], said: dict[str, str]
) -> None:
    screen = {**PRESENTATION, "ScreenDistance": distance, "ScreenSize": size}
    one = gazeveil.read(dataset(tmp_path, binocular(), screen))[0]
    assert one.space == Screen(1024, 768, 386.0, 290.0, 600.0)
    assert said.items() <= one.metadata.items()


@pytest.mark.parametrize(
    ("distance", "size"), [(0.6, [38.6, 29]), (60, [386, 290]), (600, [38600, 29000])]
)
def test_a_screen_wider_than_any_is_refused(
    tmp_path: Path, distance: float, size: list[float]
) -> None:
    said = {**PRESENTATION, "ScreenDistance": distance, "ScreenSize": size}
    with pytest.raises(FormatError, match=r"ScreenSize of \[.* m wide at 0\.6 m\. Write both in"):
        list(gazeveil.read(dataset(tmp_path, binocular(), said)))


def test_eyes_on_different_rows_meet_on_one_clock(tmp_path: Path) -> None:
    files = binocular() | {
        f"{BEH}eye2_physio.tsv.gz": "7001\t518\t390\t4300\n7003\t518\t390\t4300\n"
    }
    one = gazeveil.read(dataset(tmp_path, files))[0]
    assert (one.t_ns // 1_000_000).tolist() == [7000, 7001, 7002, 7003]
    assert one.valid.all()
    assert np.isfinite(one.right_deg[:, 0]).tolist() == [False, True, False, True]


def test_events_and_messages_of_the_tracker_are_read(tmp_path: Path) -> None:
    rows = "".join(f"{7000 + i}\t512\t384\t1\n" for i in range(20))
    files = {
        f"{BEH}eye1_physio.tsv.gz": rows,
        f"{BEH}eye1_physio.json": {"RecordedEye": "left"},
        f"{BEH}eye1_physioevents.tsv.gz": (
            '6990\tn/a\tn/a\tn/a\t"RECCFG CR 1000"\n7002\t5\tfixation\t0\tn/a\n'
            "7008\t3\tsaccade\t1\tn/a\n7012\t4\tsaccade\t0\tn/a\n"
        ),
        "task-view_physioevents.json": {
            "Columns": ["onset", "duration", "trial_type", "blink", "message"],
            "OnsetSource": "timestamp",
        },
    }
    one = gazeveil.read(dataset(tmp_path, files))[0]
    assert one.events.kind.tolist() == ["fixation", "blink", "saccade"]
    assert one.events.onset.tolist() == [2, 8, 12]
    assert one.events.offset.tolist() == [7, 11, 16]
    assert one.messages == (Message(6_990_000_000, "RECCFG CR 1000"),)


def test_event_onsets_may_be_row_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{7000 + i}\t512\t384\t1\n" for i in range(20))
    files = {
        f"{BEH}eye1_physio.tsv.gz": rows,
        f"{BEH}eye1_physio.json": {"RecordedEye": "left"},
        f"{BEH}eye1_physioevents.tsv.gz": "-3\tReady\n6\tGo\n",
        "task-view_physioevents.json": {"Columns": ["onset", "message"], "OnsetSource": "n/a"},
    }
    assert gazeveil.read(dataset(tmp_path, files))[0].messages == (
        Message(6_997_000_000, "Ready"),
        Message(7_006_000_000, "Go"),
    )


def test_without_timestamps_the_rate_gives_the_times(tmp_path: Path) -> None:
    physio = {**PHYSIO, "Columns": ["x_coordinate", "y_coordinate"], "StartTime": -1.5}
    files = {
        f"{BEH}eye1_physio.tsv.gz": "512\t384\n512\t385\n",
        f"{BEH}eye1_physio.json": {"RecordedEye": "left"},
    }
    assert gazeveil.read(dataset(tmp_path, files, physio=physio))[0].t_ns.tolist() == [
        -1_500_000_000,
        -1_499_000_000,
    ]


@pytest.mark.parametrize(
    ("files", "presentation", "physio", "message"),
    [
        (
            {},
            None,
            {},
            (
                "no events sidecar says the screen's distance, size and resolution. Add"
                " StimulusPresentation to *_events.json, or read with screen=Screen(...)."
            ),
        ),
        (
            {f"{BEH}eye1_physio.json": {}},
            PRESENTATION,
            {},
            "RecordedEye is ''. The sidecar must say left, right or cyclopean.",
        ),
        (
            {f"{BEH}eye2_physio.json": {"RecordedEye": "left"}},
            PRESENTATION,
            {},
            "two files of this run say RecordedEye 'left'",
        ),
        ({}, PRESENTATION, {"Columns": None}, "no sidecar says its Columns"),
        (
            {},
            PRESENTATION,
            {"Columns": ["timestamp", "x", "y", "p"]},
            "its Columns have no 'x_coordinate'",
        ),
        (
            {},
            PRESENTATION,
            {"x_coordinate": {"Units": "furlong"}},
            "the unit of x_coordinate is 'furlong'",
        ),
        ({}, PRESENTATION, {"timestamp": {"Units": "ticks"}}, "the timestamp's unit is 'ticks'"),
        (
            {},
            PRESENTATION,
            {"SampleCoordinateSystem": "eye-in-head"},
            "its SampleCoordinateSystem is 'eye-in-head'",
        ),
        (
            {f"{BEH}eye1_physio.tsv.gz": "7000\t512\tleft\t1\n"},
            PRESENTATION,
            {},
            "'left' in column 'y_coordinate' is not a number",
        ),
    ],
)
def test_a_dataset_that_cannot_be_read_says_why(
    tmp_path: Path,
    files: dict[str, object],
    presentation: dict[str, object] | None,
    physio: dict[str, object],
    message: str,
) -> None:
    root = dataset(tmp_path, binocular() | files, presentation, {**PHYSIO, **physio})
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        gazeveil.read(root)[0]
    assert "sub-01_task-view" in str(caught.value)


def test_a_screen_can_be_given(tmp_path: Path) -> None:
    one = gazeveil.read(dataset(tmp_path, binocular(), None), screen=SCREEN)[0]
    assert one.space == SCREEN


def test_a_given_screen_of_other_pixels_than_stated_is_refused_for_gaze_in_pixels(
    tmp_path: Path,
) -> None:
    other = Screen(1920, 1080, 531.0, 299.0, 600.0)
    root = dataset(tmp_path / "px", binocular())
    with pytest.raises(FormatError, match=r"ScreenResolution says 1024 x 768 px.*1920 x 1080"):
        list(gazeveil.read(root, screen=other))
    in_mm = {**PHYSIO, "x_coordinate": {"Units": "mm"}, "y_coordinate": {"Units": "mm"}}
    one = gazeveil.read(dataset(tmp_path / "mm", binocular(), physio=in_mm), screen=other)[0]
    assert one.space == other


def test_a_folder_without_gaze_is_not_taken(tmp_path: Path) -> None:
    dataset(
        tmp_path,
        {"sub-01/beh/sub-01_task-view_recording-cardiac_physio.tsv.gz": "1\n"},
        physio={**PHYSIO, "PhysioType": "generic"},
    )
    with pytest.raises(FormatError, match="no file here looks like bids"):
        gazeveil.read(tmp_path, format="bids")


def test_the_validator_finds_no_error_in_texts_with_tabs_quotes_and_line_ends(
    tmp_path: Path,
) -> None:
    t = np.arange(50) * 4_000_000
    recording = Recording(
        "a b\tc",
        'picture\t"1"',
        t,
        np.linspace(-5, 5, 50),
        np.zeros(50),
        space=Screen(1280, 1024, 380.0, 300.0, 680.0),
        rate_hz=250.0,
        messages=(Message(0, 'TRIAL\t1 "x" \n y\\t'), Message(8_000_000, " lead")),
        labels={"hand\tand eye": np.where(t < t[25], "fixation", "saccade")},
        task="read\taloud",
    )
    people = {"a b\tc": {"age": 30, "note\tof hers": 'q\tz"s'}}
    folder = write(Cohort([recording], people), tmp_path / "set")
    assert errors(folder) == []
    (again,) = gazeveil.read(folder, format="bids")
    assert again.messages == recording.messages
    assert again.key == recording.key
    assert list(again.labels) == ["hand\tand eye"]
