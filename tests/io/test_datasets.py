"""Readers of screen datasets, of features and of scanpaths, on small hand-made files with exactly
the published layouts.

Datasets are described, checked, and known by the content of their files.

The public datasets that are at hand, read as they were published.

Files that were cut, emptied or made to harm: each has a documented result or one sentence that
names file, line and remedy.

Lund 2013: trials with the labels of two coders, as published and broken.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere, eye_in_head, head_axes
from gazeveil.io import registry
from gazeveil.io.datasets import mpii
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.dataset_files import SNIFFED, run, write
from tests.support.places import ROOT
from tests.support.recordings import real

# --- GazeBase and GazeBaseVR
# --------------------------------------------------------------------------------------------------


def test_gazebase_joins_rounds_of_one_person_and_turns_y_downwards(tmp_path: Path) -> None:
    text = (
        "n,x,y,val,xT,yT,dP,lab\n0,1.5,2,0,0,3,900,1\n1,1.6,2.1,0,0,3,901,2\n2,NaN,NaN,1,0,3,0,\n"
    )
    write(tmp_path / "Round_1" / "S_1002_S1_TEX.csv", text)
    write(tmp_path / "Round_2" / "S_2002_S2_TEX.csv.gz", text)
    cohort = read(tmp_path, format="gazebase")
    assert cohort.keys == (("002", "TEX", "1.1", "TEX"), ("002", "TEX", "2.2", "TEX"))
    recording = cohort[1]
    assert recording.space == Screen(1680, 1050, 474, 297, 550)
    np.testing.assert_allclose(recording.x_deg[:2], [1.5, 1.6])
    np.testing.assert_allclose(recording.y_deg[:2], [-2, -2.1])
    assert recording.valid.tolist() == [True, True, False]
    assert recording.labels["label"].tolist() == ["1", "2", "undefined"]
    assert recording.pupil is not None
    assert recording.rate_hz == 1000


# --- MPIIDPEye and MPIIPrivacEye
# --------------------------------------------------------------------------------------------------


def test_mpiidpeye_pupil_places_are_read_by_name_and_by_order(tmp_path: Path) -> None:
    folder = tmp_path / "Eye_Tracking_Data"
    write(folder / "P1_R2.csv", "0.5;0.5;100.0;0.9;30\n0.6;0.4;100.033;0;31\n")
    write(
        folder / "P2_R3.csv",
        "timestamp;confidence;pupil diameter;pupil y;pupil"
        " x\n100;0.9;30;0.5;0.5\n133;0.8;31;0.4;0.6\n",
    )
    write(
        tmp_path / "Eye_Movement_Features" / "Data_P1_R2_Pami_Features_52.csv",
        ",".join(["1"] * 52) + "\n",
    )
    cohort = read(tmp_path, format="mpiidpeye")
    assert cohort.keys == (("P1", "newspaper", "1", "reading"), ("P2", "textbook", "1", "reading"))
    assert [Path(s.path).name for s in cohort.skipped] == ["Data_P1_R2_Pami_Features_52.csv"]
    first, second = cohort
    assert first.valid.tolist() == [True, False]
    assert first.t_ns.tolist() == [0, 33_000_000]
    assert second.t_ns.tolist() == [0, 33_000_000]
    np.testing.assert_allclose([second.x_deg[0], second.y_deg[0]], [0, 0], atol=1e-9)
    # Right of and below the centre of the image, which counts from its lower left corner.
    assert second.x_deg[1] > 0
    assert second.y_deg[1] > 0
    assert second.metadata["calibrated"] is False
    assert second.pupil.tolist() == [30, 31]


def test_mpii_features_come_with_keys_and_read_says_who_reads_them(tmp_path: Path) -> None:
    values = np.arange(3 * 52, dtype=np.float64).reshape(3, 52)
    text = "\n".join(",".join(f"{v:g}" for v in row) for row in values) + "\n"
    write(tmp_path / "dp" / "Data_P10_R1_Pami_Features_52.csv", text)
    write(tmp_path / "dp" / "Data_P2_R3_Pami_Features_52.csv.gz", text)
    found, keys = mpii.features(tmp_path / "dp")
    np.testing.assert_array_equal(found, np.concatenate([values, values]))
    assert keys[0] == ("P2", "textbook", "1", "reading", 0)
    assert keys[5] == ("P10", "comic", "1", "reading", 2)
    with pytest.raises(FormatError, match=r"mpii\.features"):
        read(tmp_path / "dp", format="mpiidpeye")

    wide = "\n".join(",".join(["1"] * 52 + ["0.5"] * 4 + [str(i % 2)]) for i in range(4)) + "\n"
    write(tmp_path / "privac" / "P1_R1_data.csv", wide)
    found, keys = mpii.features(tmp_path / "privac")
    assert found.shape == (4, 52)
    assert keys[1] == ("P1", "R1", "1", "", 1)
    assert mpii.privacy_labels(tmp_path / "privac").tolist() == [0, 1, 0, 1]
    with pytest.raises(FormatError, match=r"mpii\.features"):
        read(tmp_path / "privac", format="mpiiprivaceye")


# --- fixation-only sets
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ", ", " ", "\t"])
def test_salient360_observers_begin_where_the_index_falls_back(
    tmp_path: Path, separator: str
) -> None:
    rows = [
        ("0", "0.5", "0.5", "0.0"),
        ("1", "0.25", "0.25", "0.4"),
        ("0", "0.1", "0.9", "0.1"),
        ("1", "0.2", "0.8", "0.5"),
        ("2", "1.0", "1.0", "0.9"),
    ]
    path = write(tmp_path / "Hscanpath_21.txt", "\n".join(separator.join(r) for r in rows) + "\n")
    assert registry.get("salient360").sniff(Head.of(path))
    cohort = read(tmp_path, format="salient360")
    assert [k[0] for k in cohort.keys] == ["Hscanpath_21/1", "Hscanpath_21/2"]
    first, second = cohort
    assert (len(first), first.counts["rows"], second.counts["rows"]) == (0, 2, 3)
    np.testing.assert_allclose(first.events.x_deg, [180, 90])
    np.testing.assert_allclose(first.events.y_deg, [90, 45])
    assert first.events.onset_ns.tolist() == [0, 400_000_000]
    assert first.events.offset_ns.tolist() == [400_000_000, 400_000_000]
    assert second.events.x_deg[2] == 0
    assert first.duration_s == 0.4


def test_osie_reads_people_with_one_and_with_no_fixation(tmp_path: Path) -> None:
    from scipy.io import savemat

    def cell(items: list[object]) -> np.ndarray:
        array = np.empty((len(items), 1), dtype=object)
        array[:, 0] = items
        return array

    many = {"fix_x": [400.0, 800.0], "fix_y": [300.0, 0.0], "fix_duration": [200.0, 100.0]}
    one = {"fix_x": [10.0], "fix_y": [20.0], "fix_duration": [150.0]}
    none = {"fix_x": np.empty((0, 0)), "fix_y": np.empty((0, 0)), "fix_duration": np.empty((0, 0))}
    savemat(
        tmp_path / "fixations.mat",
        {
            "fixations": cell(
                [
                    {"img": "a.jpg", "subjects": cell([many, one, none])},
                    {"img": "b.jpg", "subjects": cell([one])},
                ]
            )
        },
    )
    cohort = read(tmp_path, format="osie")
    assert [k[:2] for k in cohort.keys] == [
        ("1", "a.jpg"),
        ("2", "a.jpg"),
        ("3", "a.jpg"),
        ("1", "b.jpg"),
    ]
    events = [r.events for r in cohort]
    assert [len(e) for e in events if e is not None] == [2, 1, 0, 1]
    assert events[0].onset_ns.tolist() == [0, 200_000_000]
    assert events[0].offset_ns.tolist() == [200_000_000, 300_000_000]
    assert events[0].x_deg[0] == 0
    screen = Screen(800, 600, 400, 300, 400)
    assert read(tmp_path, format="osie", screen=screen)[0].space == screen


def test_neuroliaa_keeps_the_target_and_counts_durations_without_a_place(tmp_path: Path) -> None:
    entry = {
        "subject": "a b",
        "image_height": 768,
        "image_width": 1024,
        "target_found": True,
        "target_bbox": [100, 200, 150, 280],
        "X": [512, 240],
        "Y": [384, 125],
        "T": [300, 200, 100],
    }
    write(tmp_path / "x_scanpaths.json", json.dumps({"room 1.jpg": entry}))
    recording = read(tmp_path, format="neuroliaa")[0]
    assert recording.key == ("a b", "room 1.jpg", "1", "search")
    assert recording.counts == {"rows": 3, "fixations": 2, "durations without a place": 1}
    assert recording.metadata["target_box_px"] == (200, 100, 280, 150)
    left, top, right, bottom = recording.metadata["target_box_deg"]  # type: ignore[misc]
    assert left < right < 0
    assert top < bottom < 0
    assert recording.metadata["durations_matched"] is False


def test_webqamgaze_names_questions_after_their_text(tmp_path: Path) -> None:
    content = {
        "worker_id": "W 1",
        "worker_age": 30,
        "set_name": "s",
        "screen_x": 1000,
        "screen_y": 500,
        "trials": {"t": {"condition": "nr"}, "text_2": {"condition": "is"}},
        "samples_x_y_ms": {
            "text_2": [[500, 250, 0], [600, 300, 33], [1200, 300, 66]],
            "q_before_text_2_qa": [[1, 1, 5]],
        },
    }
    write(tmp_path / "anything.json.gz", json.dumps(content))
    cohort = read(tmp_path, format="webqamgaze")
    assert cohort.keys == (("W 1", "text_2", "1", "is"), ("W 1", "q_before_text_2_qa", "1", "is"))
    assert dict(cohort.people["W 1"]) == {"age": 30}
    recording = cohort[0]
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [0, 0], atol=1e-9)
    assert recording.valid.all()


# --- the listing
# --------------------------------------------------------------------------------------------------


def test_openneeds_says_that_its_layout_is_not_public(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x\n1\n")
    for place in (path, tmp_path):
        with pytest.raises(FormatError, match="not public"):
            read(place, format="openneeds")


def test_every_dataset_is_described_and_stands_in_the_documentation() -> None:
    entries = registry.describe()
    assert len(entries) == 21
    page = (ROOT / "docs" / "reference" / "datasets.md").read_text(encoding="utf-8")
    for entry in entries:
        for text in (
            entry.format,
            entry.title,
            entry.publisher,
            entry.licence,
            entry.citation,
            entry.layout,
        ):
            assert text, entry
            assert text in page, f"docs/reference/datasets.md does not say '{text}'"
        assert entry.text().startswith(entry.title)
        assert entry.to_dict()["format"] == entry.format
        for option in entry.options:
            assert f"`{option}=" in page, (
                f"docs/reference/datasets.md does not tell the option {option} of {entry.format}"
            )
    with pytest.raises(ParameterError, match="Did you mean 'gazecom'"):
        registry.entry("gazecon")


def knowing(head: Head) -> list[str]:
    """The datasets that take a file for theirs."""
    readable = [e.format for e in registry.describe() if e.format not in registry.WITHOUT_READER]
    return [name for name in readable if registry.get(name).sniff(head)]


@pytest.mark.parametrize(("name", "file", "content"), SNIFFED)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_is_known_by_its_content(
    tmp_path: Path, name: str, file: str, content: str, suffix: str
) -> None:
    path = write(tmp_path / (file + suffix), content)
    assert knowing(Head.of(path)) == [name]
    found = registry.sniff(path)
    assert found.name == name


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a,b\n1,2\n",
        "time,x,y\n0,1,2\n",
        "{}",
        "[]",
        "1 2 3 4\n",
        "0,0,0\n",
        "\x00\x01",
        "frame,x\n",
    ],
)
@pytest.mark.parametrize("file", ["a.csv", "a.txt", "a.json", "a.npy", "a.mat", "a.pck", "a.arff"])
def test_other_files_are_left_alone(tmp_path: Path, file: str, content: str) -> None:
    head = Head.of(write(tmp_path / file, content))
    assert knowing(head) == []


COUNTS = [
    # folder, format, recordings, people, stimuli
    (("gazecom",), "gazecom", 235, 24, 10),
    (("eyenavgs_nthu",), "eyenavgs", 144, 12, 12),
    (("irf_lookatpoint",), "irf", 2, 2, 1),
    (("hmr",), "hmr", 3, 3, 1),
    (("lund2013",), "lund2013", 19, 9, 9),
    (("vr_eyetracking",), "vr-eyetracking", 715, 20, 40),
    (("osie",), "osie", 10500, 15, 700),
    (("neuroliaa_interiors",), "neuroliaa", 1283, 10, 134),
    (("webqamgaze",), "webqamgaze", 375, 15, 264),
    (("vendor_samples", "cateyes"), "cateyes", 2, 2, 1),
]


@pytest.mark.parametrize(("folder", "name", "recordings", "people", "stimuli"), COUNTS)
def test_a_folder_of_a_dataset_is_known_without_naming_its_format(
    folder: tuple[str, ...], name: str, recordings: int, people: int, stimuli: int
) -> None:
    cohort = read(real(*folder))
    assert (len(cohort), len(cohort.people), len(cohort.stimuli)) == (recordings, people, stimuli)
    found = registry.sniff(Path(cohort.items[0].source))
    assert found.name == name


def test_eyenavgs_turns_eyes_against_the_head_and_keeps_them_near_its_axis() -> None:
    cohort = read(real("eyenavgs_nthu"), format="eyenavgs")
    near = []
    for recording in cohort[::6]:
        assert isinstance(recording.space, Sphere)
        assert recording.left_deg is not None
        assert recording.right_deg is not None
        assert 30 < recording.rate_hz < 75
        assert 55 < recording.duration_s < 65
        assert recording.counts["rows"] - recording.counts["second eye"] == len(recording)
        near.append(np.hypot(*recording.eye_in_head_deg.T) < 40)
        # The two ways to see the eye in its head agree: by quaternions, and by angles with roll.
        again = np.stack(eye_in_head(recording.vectors, recording.head_deg), axis=1)
        np.testing.assert_allclose(again, recording.eye_in_head_deg, atol=1e-6)
        # The vestibulo-ocular reflex: while the head turns right, the eye turns left.
        axes, seconds = head_axes(recording.head_deg), np.diff(recording.t_ns) / 1e9
        head_speed = np.sum(np.diff(axes[:, 2], axis=0) * axes[:-1, 0], axis=1) / seconds
        eye_speed = np.diff(recording.eye_in_head_deg[:, 0]) / seconds
        slow = np.abs(eye_speed) < 100
        assert np.corrcoef(head_speed[slow], eye_speed[slow])[0, 1] < -0.1
    assert np.mean(np.concatenate(near)) > 0.97


def test_eyenavgs_keeps_no_place_of_the_head() -> None:
    recording = read(real("eyenavgs_nthu", "truck"), format="eyenavgs")[0]
    assert set(recording.metadata) == {"source", "facts"}
    assert (recording.person, recording.stimulus, recording.task) == (
        "user1",
        "truck",
        "free-viewing",
    )


def test_irf_has_expert_labels_and_the_screen_of_its_configuration() -> None:
    first, second = read(real("irf_lookatpoint"), format="irf")
    assert (first.person, second.person, first.stimulus) == ("S1", "S2", "lookAtPoint")
    assert first.space == Screen(1920, 1080, 533, 301, 565)
    assert (len(first), len(second), first.rate_hz) == (81003, 81002, 1000)
    words, counts = np.unique(first.labels["expert"], return_counts=True)
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == {
        "undefined": 1204,
        "fixation": 68451,
        "saccade": 4753,
        "pso": 2480,
        "blink": 4115,
    }
    assert np.count_nonzero(~first.valid) >= 1862
    assert np.percentile(np.abs(first.x_deg[first.valid]), 99) < first.space.width_deg / 2


def test_no_dataset_takes_the_files_of_a_tracker_or_of_another_dataset() -> None:
    wanted = {"/".join(folder): name for folder, name, *_ in COUNTS}
    names = [e.format for e in registry.describe() if e.format not in registry.WITHOUT_READER]
    root = real("vendor_samples").parent
    for place in sorted(p for p in root.rglob("*") if p.is_file()):
        folder = next(
            (f for f in wanted if place.relative_to(root).as_posix().startswith(f + "/")), None
        )
        # A handful of each folder is enough.
        if (
            folder is not None
            and len(list(place.parent.iterdir())) > 12
            and not place.stem.endswith(("1", "1.csv", "1.json"))
        ):
            continue
        head = Head.of(place)
        claimed = [n for n in names if registry.get(n).sniff(head)]
        assert claimed in ([], [wanted[folder]] if folder else []), place


NAV = (
    "ViewIndex,QuaternionX,QuaternionY,QuaternionZ,QuaternionW,GazeQX,GazeQY,GazeQZ,GazeQW,"
    "timestep\n"
)
BASE = "n,x,y,val,dP,lab,xT,yT\n"
BASE_VR = "n,x,y,lx,ly,rx,ry,xT,yT,zT\n"
HMR = "X_coord\tY_coord\tConfidence\tPattern\n"
CAT = "Timestamp,Theta,Phi\n"
VR = "frame,1,forward,0.5,0.5,eye,0.2,0.7\n"
DK2 = "SUB_ID,IMG_INDEX,IS_GRAY,UNITY_TIMESTAMP,GIW_X,GIW_Y,GIW_Z\n"

HEADERS = [
    ("eyenavgs", NAV),
    ("gazebase", BASE),
    ("gazebase-vr", BASE_VR),
    ("hmr", HMR),
    ("cateyes", CAT),
]


@pytest.mark.parametrize(("name", "header"), HEADERS)
def test_a_header_alone_is_a_recording_without_samples(
    tmp_path: Path, name: str, header: str
) -> None:
    path = tmp_path / "p_s.csv"
    path.write_text(header)
    recording = read(path, format=name)[0]
    assert (len(recording), recording.counts["rows"]) == (0, 0)
    assert np.isnan(recording.rate_hz) or name == "hmr"


ONE_ROW = [
    ("eyenavgs", NAV + "0,0,0,0,1,0.1,0,0,1,5\n"),
    ("gazebase", BASE + "5,1,1,0,900,1,0,0\n"),
    ("gazebase-vr", BASE_VR + "5,1,1,1,1,1,1,0,0,0\n"),
    ("hmr", HMR + "0.5\t0.5\t1\tF\n"),
    ("cateyes", CAT + "5,0.1,0.1\n"),
    ("et-dk2", DK2 + "1,0,False,5,0,0,1\n"),
]


@pytest.mark.parametrize(("name", "text"), ONE_ROW)
def test_one_row_is_one_sample_also_with_crlf_and_in_utf_16(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / "p_s.csv"
    for data in (
        text.encode(),
        text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"),
        text.rstrip("\n").encode(),
        gzip.compress(text.encode()),
    ):
        path.write_bytes(data)
        recording = read(path, format=name)[0]
        assert (len(recording), recording.valid.tolist()) == (1, [True])


ALL_LOST = [
    ("eyenavgs", NAV + "0,0,0,0,1,0,0,0,1,5\n0,0,0,0,1,nan,nan,nan,nan,9\n", 2),
    ("gazebase", BASE + "5,NaN,NaN,0,900,1,0,0\n6,1,1,1,900,1,0,0\n", 2),
    ("gazebase-vr", BASE_VR + "5,inf,1,1,1,1,1,0,0,0\n9,NaN,NaN,1,1,1,1,0,0,0\n", 2),
    ("hmr", HMR + "0.5\t0.5\t0\tB\nnan\tnan\t1\tB\n", 2),
    ("cateyes", CAT + "5,nan,0.1\n6,0.1,inf\n", 2),
    ("et-dk2", DK2 + "1,0,False,5,0,0,0\n1,0,0,6,nan,nan,nan\n", 2),
]


@pytest.mark.parametrize(("name", "text", "rows"), ALL_LOST)
def test_lost_gaze_stays_as_invalid_samples(
    tmp_path: Path, name: str, text: str, rows: int
) -> None:
    path = tmp_path / "p_s.csv"
    path.write_text(text)
    recording = read(path, format=name)[0]
    assert (len(recording), int(recording.valid.sum()), recording.counts["rows"]) == (rows, 0, rows)


REFUSED = [
    # format, file name, content, words of the message
    (
        "eyenavgs",
        "a.csv",
        NAV + "0,0,0,0,1,0.1,0,0,1,0\n1,0,0,0,1,0.1,0\n",
        r"a\.csv, line 3: .*cells.* cut",
    ),
    (
        "eyenavgs",
        "a.csv",
        NAV + "0,0,0,0,1,0.1,0,0,1,0,7,7\n",
        r"a\.csv, line 2: the row has 12 cells, the header 10",
    ),
    (
        "eyenavgs",
        "a.csv",
        NAV + "0,0,0,0,1,0.1,0,0,1,0\n2,0,0,0,1,0.1,0,0,1,0\n",
        r"line 3: ViewIndex is 2, neither",
    ),
    (
        "eyenavgs",
        "a.csv",
        NAV + "0,0,0,zero,1,0.1,0,0,1,0\n",
        r"line 2: 'zero' in column 'QuaternionZ' is not a number",
    ),
    (
        "eyenavgs",
        "a.csv",
        NAV.replace("GazeQW,", "") + "0,0,0,0,1,0.1,0,0,1\n",
        r"no column 'GazeQW'",
    ),
    ("eyenavgs", "a.csv", "", r"a\.csv: the file is empty"),
    (
        "gazebase",
        "S_1002_S1_TEX.csv",
        BASE + "x,1,1,0,900,1,0,0\n",
        r"line 2: 'x' in column 'n' is not a time",
    ),
    (
        "gazebase",
        "S_1002_S1_TEX.csv",
        BASE + "".join(f"{i},700,300,0,9,1,0,0\n" for i in range(30)),
        r"cannot be degrees",
    ),
    (
        "vr-eyetracking",
        "1._d_ori_0.txt",
        VR + "frame,2,forward,0.5,0.5,ey\n",
        r"line 2: .*'eye' is missing",
    ),
    (
        "vr-eyetracking",
        "1._d_ori_0.txt",
        VR + "frame,x,forward,0.5,0.5,eye,0.2,0.2\n",
        r"line 2: 'x' in column 'frame' is not a number",
    ),
    (
        "vr-eyetracking",
        "1._d_ori_0.txt",
        VR + "frame,,forward,0.5,0.5,eye,0.2,0.2\n",
        r"line 2: the line has no frame number",
    ),
    ("et-dk2", "S1.csv", DK2 + "1,,False,5,0,0,1\n", r"line 2: the row has no IMG_INDEX"),
    ("salient360", "i.txt", "0,0.5,0.5,0\n1,0.5,0.5\n", r"line 2: the line does not hold index"),
    (
        "salient360",
        "i.txt",
        "0,0.5,0.5,0\n1,180,0.5,1\n",
        r"line 2: the place \(180, 0.5\) is not within 0 and 1",
    ),
    ("salient360", "i.txt", "Idx, longitude, latitude, start timestamp\n", r"there is no fixation"),
    ("osie", "fixations.mat", "MATLAB 5.0 MAT-file, cut", r"not a whole MATLAB 5 file"),
    ("neuroliaa", "a.json", '{"i.jpg": {"X": [1, 2', r"a\.json, line 1: it is not whole JSON"),
    ("neuroliaa", "a.json", "[1]", r"it holds a list"),
    (
        "neuroliaa",
        "a.json",
        '{"i.jpg": {"X": [1, 2], "Y": [1], "T": [1, 2], "image_width": 9, "image_height": 9}}',
        r"'i.jpg' has 2 X, 1 Y and 2 T",
    ),
    ("neuroliaa", "a.json", '{"i.jpg": {"Y": [1], "T": [1]}}', r"'i.jpg' has no numbers in 'X'"),
    ("webqamgaze", "a.json", '{"worker_id": "1"}', r"no 'samples_x_y_ms'"),
    ("webqamgaze", "a.json", '{"samples_x_y_ms": {"t": [[1, 2, 3]]}}', r"screen_x, screen_y"),
    (
        "webqamgaze",
        "a.json",
        '{"samples_x_y_ms": {"t": [[1, 2], [3]]}, "screen_x": 9, "screen_y": 9}',
        r"'t' does not hold rows",
    ),
    ("mpiidpeye", "P1_R1.csv", "pupil;size\n1;2\n", r"line 1: the header does not name x, y"),
    ("dgaze", "trainingX.npy", "not an array", r"not a whole NumPy array"),
    ("irf", "a_S1.npy", "", r"a_S1\.npy"),
]


@pytest.mark.parametrize(("name", "file", "content", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore:VR-EyeTracking")
def test_a_broken_file_gets_one_sentence_with_its_place(
    tmp_path: Path, name: str, file: str, content: str, message: str
) -> None:
    path = tmp_path / file
    path.write_text(content)
    with pytest.raises(FormatError, match=message):
        list(read(path, format=name))


def test_arrays_with_pickled_objects_or_of_another_width_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "trainingX.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match="pickled objects"):
        read(tmp_path / "trainingX.npy", format="dgaze")
    np.save(tmp_path / "testX.npy", np.zeros((3, 7)))
    with pytest.raises(FormatError, match=r"shape \(3, 7\), EHTask needs \(rows, 1500\)"):
        read(tmp_path / "testX.npy", format="ehtask")
    np.save(tmp_path / "okX.npy", np.zeros((3, 1500)))
    np.save(tmp_path / "okY.npy", np.zeros(2))
    with pytest.raises(FormatError, match="2 labels for 3 rows"):
        read(tmp_path / "okX.npy", format="ehtask")
    whole = np.lib.format.header_data_from_array_1_0(np.zeros((3, 1802)))
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, whole)
    (tmp_path / "cutX.npy").write_bytes(buffer.getvalue() + b"\0" * 100)
    with pytest.raises(FormatError, match="not a whole NumPy array"):
        read(tmp_path / "cutX.npy", format="dgaze")


def test_irf_without_its_configuration_asks_for_the_screen(tmp_path: Path) -> None:
    rows = np.zeros(
        3, dtype=[("t", "f8"), ("x", "f4"), ("y", "f4"), ("status", "?"), ("evt", "u1")]
    )
    rows["t"], rows["evt"], rows["status"] = [0, 0.001, 0.002], [1, 9, 5], True
    np.save(tmp_path / "point_EL_S9.npy", rows)
    with pytest.raises(FormatError, match=r"no db_config\.json beside it.* screen=Screen"):
        list(read(tmp_path / "point_EL_S9.npy", format="irf"))
    (tmp_path / "db_config.json").write_text(json.dumps({"geom": {"screen_width": 1}}))
    with pytest.raises(FormatError, match="'geom' does not hold"):
        list(read(tmp_path / "point_EL_S9.npy", format="irf"))
    geometry = {
        "screen_width": 500,
        "screen_height": 300,
        "eye_distance": 600,
        "display_width_pix": 1000,
        "display_height_pix": 600,
    }
    os.utime(tmp_path / "db_config.json")
    (tmp_path / "db_config.json").write_text(json.dumps({"geom": geometry}))
    recording = read(tmp_path / "point_EL_S9.npy", format="irf")[0]
    assert recording.key == ("S9", "point", "1", "")
    assert recording.labels["expert"].tolist() == ["fixation", "undefined", "blink"]


# --- pickles that would run code
# --------------------------------------------------------------------------------------------------


class Calls:
    """Pickles as a call of a function when it is read."""

    def __init__(self, function: object, *args: object) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> tuple[object, ...]:
        return self.function, self.args


@pytest.mark.parametrize("name", ["scene.pck", "scene.pkl"])
def test_a_pickle_is_not_opened_and_the_way_out_is_said(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    path = tmp_path / "in" / name
    path.parent.mkdir()
    path.write_bytes(pickle.dumps([{"gaze_lat_lon": Calls(os.system, f"touch {mark}")}]))
    for place in (path, path.parent):
        with pytest.raises(FormatError, match=r"runs code when it is opened.*write its samples"):
            read(place)
    assert not mark.exists()


# --- damage at random
# --------------------------------------------------------------------------------------------------


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Cut, overwritten or with something put in."""
    kind, copy = rng.randrange(3), bytearray(data)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    if kind == 1:
        copy[rng.randrange(len(copy))] = rng.randrange(256)
        return bytes(copy)
    at = rng.randrange(len(copy))
    return (
        data[:at]
        + rng.choice([b",", b"\n", b"nan", b'"', b"1e999", b";", b"-", b"\0", b"[", b"null"])
        + data[at:]
    )


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [*SNIFFED, ("vr-saliency", "s.pck", pickle.dumps([run(1)], protocol=2))],
)
@pytest.mark.filterwarnings("ignore:VR-EyeTracking")
def test_a_damaged_file_is_read_or_refused_but_never_a_traceback(
    tmp_path: Path, name: str, file: str, content: str | bytes
) -> None:
    rng = random.Random(file)
    data = content if isinstance(content, bytes) else content.encode()
    sentences: list[tuple[str, str]] = []
    for attempt in range(60):
        # A new name each time, because files that hold many recordings are remembered.
        path = tmp_path / str(attempt) / file
        path.parent.mkdir()
        path.write_bytes(damaged(data, rng))
        try:
            for recording in read(path, format=name):
                rest = sum(v for k, v in recording.counts.items() if k != "rows")
                assert recording.counts["rows"] == len(recording) + rest
        except GazeveilError as error:
            sentences.append((str(path), str(error)))
    assert all(path in sentence for path, sentence in sentences)


NAME = "TH34_img_vy_labelled_{}.mat"


def rows(samples: int, label: float = 1) -> np.ndarray:
    """Gaze at 500 Hz that moves a pixel to the right in each sample."""
    count = np.arange(samples)
    ones = np.ones(samples)
    return np.stack((5e9 + 2000.0 * count, ones, ones, 500.0 + count, 384 * ones, label * ones), 1)


def save(folder: Path, coder: str, pos: np.ndarray, **fields: object) -> Path:
    from scipy.io import savemat

    trial = {
        "pos": pos,
        "screenDim": [0.38, 0.3],
        "screenRes": [1024, 768],
        "viewDist": 0.67,
        "sampFreq": 500,
    } | fields
    folder.mkdir(exist_ok=True)
    path = folder / NAME.format(coder)
    savemat(path, {"ETdata": {k: v for k, v in trial.items() if v is not None}})
    return path


def test_two_coders_are_one_recording_and_the_shorter_one_is_filled_up(tmp_path: Path) -> None:
    first, second = rows(6), rows(4, 4)
    first[:, 5] = [1, 2, 3, 4, 5, 6]
    save(tmp_path / "img", "MN", first)
    save(tmp_path / "img", "RA", second)
    (tmp_path / "img" / "notes.txt").write_text("not a trial")
    cohort = read(tmp_path)
    assert [s.path.endswith("notes.txt") for s in cohort.skipped] == [True]
    (recording,) = cohort
    assert recording.key == ("TH34", "img_vy", "1", "img")
    assert recording.space == Screen(1024, 768, 380, 300, 670)
    assert recording.rate_hz == 500
    assert np.diff(recording.t_ns).tolist() == [2_000_000] * 5
    assert recording.labels["MN"].tolist() == [
        "fixation",
        "saccade",
        "pso",
        "pursuit",
        "blink",
        "undefined",
    ]
    assert recording.labels["RA"].tolist() == ["pursuit"] * 4 + ["undefined"] * 2
    assert recording.x_deg[0] == pytest.approx(
        np.degrees(np.arctan((500 / 1024 - 0.5) * 0.38 / 0.67))
    )
    assert recording.y_deg[0] == pytest.approx(0, abs=1e-12)


def test_one_file_gives_its_trial_with_the_labels_of_all_coders(tmp_path: Path) -> None:
    save(tmp_path, "MN", rows(4))
    path = save(tmp_path, "RA", rows(4))
    (recording,) = read(path)
    assert sorted(recording.labels) == ["MN", "RA"]


def test_gaze_at_the_corner_is_lost_and_rows_without_times_are_regular(tmp_path: Path) -> None:
    pos = rows(5)
    pos[2, 3:5] = 0
    pos[3, 3] = 0  # the left edge of the screen is a place
    pos[:, 0] = np.nan
    save(tmp_path, "MN", pos)
    (recording,) = read(tmp_path)
    assert recording.valid.tolist() == [True, True, False, True, True]
    assert np.diff(recording.t_ns).tolist() == [2_000_000] * 4
    assert recording.metadata["times"] == "rows at the nominal rate; the file has no times"


def test_a_trial_without_samples_is_a_recording_without_samples(tmp_path: Path) -> None:
    save(tmp_path, "MN", np.empty((0, 6)))
    (recording,) = read(tmp_path)
    assert len(recording) == 0


@pytest.mark.parametrize(
    ("pos", "fields", "message"),
    [
        (rows(4)[:, :5], {}, r"ETdata.pos has shape \(4, 5\), not \(samples, 6\)"),
        (rows(4), {"viewDist": None}, "screenRes, screenDim, viewDist and sampFreq are not all"),
        (rows(4), {"sampFreq": 0}, "screenRes, screenDim, viewDist and sampFreq are not all"),
        (rows(4), {"screenRes": [1024]}, "screenRes, screenDim, viewDist and sampFreq are not all"),
    ],
)
def test_a_broken_trial_gets_one_sentence(
    tmp_path: Path, pos: np.ndarray, fields: dict[str, object], message: str
) -> None:
    save(tmp_path, "MN", pos, **fields)
    with pytest.raises(FormatError, match=message):
        list(read(tmp_path, format="lund2013"))


def test_coders_of_other_gaze_are_refused(tmp_path: Path) -> None:
    save(tmp_path, "MN", rows(4))
    save(tmp_path, "RA", rows(4) + 1)
    with pytest.raises(FormatError, match=r"RA\.mat: its gaze is not that of .*MN\.mat"):
        list(read(tmp_path))


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    path = save(tmp_path, "MN", rows(400))
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(FormatError, match="not a whole MATLAB 5 file"):
        list(read(path, format="lund2013"))
