"""Readers of headset datasets on small hand-made files with exactly the published layouts."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Sphere
from gazeveil.io import registry
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.dataset_files import DK2, EM360, NAV, VR, dk2_row, write


def test_360_em_has_head_eye_and_two_tiers_of_labels(tmp_path: Path) -> None:
    write(tmp_path / "gaze" / "01_park" / "007_01_park.arff", EM360)
    write(tmp_path / "participant_info.csv", "participant,age,gender\n7,31,f\n8,22,m\n")
    cohort = read(tmp_path)
    recording = cohort[0]
    assert recording.key == ("007", "01_park", "1", "free-viewing")
    assert isinstance(recording.space, Sphere)
    np.testing.assert_allclose(recording.x_deg[:2], [180, 270])
    np.testing.assert_allclose(recording.y_deg[:2], [90, 45])
    assert recording.valid.tolist() == [True, True, False]
    np.testing.assert_allclose(recording.head_deg[0], [180, 90, 1.22])
    np.testing.assert_allclose(recording.eye_in_head_deg[0], [0, 0], atol=1e-9)
    assert recording.labels["primary_label"].tolist() == ["fixation", "saccade", "pursuit"]
    assert recording.labels["secondary_label"].tolist() == ["vor", "undefined", "head_pursuit"]
    assert dict(cohort.people["007"]) == {"age": 31, "gender": "f"}


def test_360_em_takes_one_of_its_folders_because_they_hold_the_same_recordings(
    tmp_path: Path,
) -> None:
    for part in ("gaze", "ground_truth", "output_I-S5T_FOV"):
        write(tmp_path / part / "park" / "p1_park.arff.gz", EM360)
    assert len(read(tmp_path)) == 1
    assert "/gaze/" in Path(read(tmp_path)[0].source).as_posix()
    assert "ground_truth" in read(tmp_path, part="ground_truth")[0].source
    assert {k[2] for k in read(tmp_path, part="all").keys} == {
        "gaze",
        "ground_truth",
        "output_I-S5T_FOV",
    }
    assert len(read(tmp_path / "ground_truth")) == 1
    with pytest.raises(ParameterError, match="part"):
        read(tmp_path, part="groundtruth")


@pytest.mark.parametrize(
    ("place", "person", "video"),
    [
        ("01_park/007_01_park", "007", "01_park"),
        ("01_park/01_park_Ann B", "Ann B", "01_park"),
        ("VP3/VP3_01_park", "VP3", "01_park"),
        ("7/01_park", "7", "01_park"),
        ("park/Ann", "Ann", "park"),
        ("ground_truth/P03_dancing_bear", "P03", "dancing_bear"),
        ("ground_truth/train/P03_dancing_bear", "P03", "dancing_bear"),
    ],
)
def test_360_em_finds_person_and_video_in_the_path(
    tmp_path: Path, place: str, person: str, video: str
) -> None:
    write(tmp_path / f"{place}.arff", EM360)
    assert read(tmp_path, format="360-em").keys == ((person, video, "1", "free-viewing"),)


# --- EyeNavGS
# --------------------------------------------------------------------------------------------------

HALF = np.sqrt(0.5)


def test_eyenavgs_pairs_rows_and_takes_identity_for_no_gaze(tmp_path: Path) -> None:
    rows = [
        # Head turned 90 degrees to the left (+90 about y in OpenXR axes), the left eye with it, the
        # right eye 90 degrees further.
        f"0,0,1,1.7,2,0,{HALF},0,{HALF},0,{HALF},0,{HALF},0",
        f"1,0,1,1.7,2,0,{HALF},0,{HALF},0,1,0,0,6",
        # Left eye lost, right eye straight ahead of the head.
        f"0,0,1,1.7,2,0,{HALF},0,{HALF},0,0,0,1,14",
        f"1,0,1,1.7,2,0,{HALF},0,{HALF},0,{HALF},0,{HALF},20",
        # Only the right row.
        f"1,0,1,1.7,2,0,{HALF},0,{HALF},0,{HALF},0,{HALF},34",
        # Both lost, one with a negative sign.
        f"0,0,1,1.7,2,0,{HALF},0,{HALF},0,0,0,-1,42",
        f"1,0,1,1.7,2,0,{HALF},0,{HALF},0,0,0,1,48",
    ]
    write(tmp_path / "attic_2" / "user 9_attic_2.csv", NAV + "\n".join(rows) + "\n")
    write(tmp_path / "attic_2" / "summary.csv", "scene,mean\nattic_2,1\n")
    cohort = read(tmp_path, format="eyenavgs")
    recording = cohort[0]
    assert recording.key == ("user 9", "attic_2", "1", "free-viewing")
    assert [Path(s.path).name for s in cohort.skipped] == ["summary.csv"]
    assert recording.counts == {"rows": 7, "second eye": 3}
    assert (recording.t_ns // 1_000_000).tolist() == [0, 14, 34, 42]
    assert recording.valid.tolist() == [True, True, True, False]
    # Turned left is longitude 90; a half turn is the seam at 0.
    np.testing.assert_allclose(recording.left_deg[0], [90, 90], atol=1e-6)
    assert min(recording.right_deg[0, 0], 360 - recording.right_deg[0, 0]) < 1e-6
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [45, 90], atol=1e-6)
    assert np.isnan(recording.left_deg[1:]).all()
    np.testing.assert_allclose(recording.x_deg[1:3], 90, atol=1e-6)
    np.testing.assert_allclose(recording.head_deg, np.tile([90, 90, 0], (4, 1)), atol=1e-6)
    np.testing.assert_allclose(recording.eye_in_head_deg[0], [-45, 0], atol=1e-6)


def test_eyenavgs_reads_the_other_half_with_its_own_time_column_and_order(tmp_path: Path) -> None:
    header = (
        "Timestamp,GazeQX,GazeQY,GazeQZ,GazeQW,QuaternionX,QuaternionY,QuaternionZ,QuaternionW,"
        "ViewIndex\n"
    )
    write(
        tmp_path / "dataset" / "nyc" / "user101_nyc.csv.gz",
        header + "0,0.1,0,0,-0.995,0,0,0,-1,0\r\n7,0.1,0,0,-0.995,0,0,0,-1,1\r\n",
    )
    recording = read(tmp_path, format="eyenavgs")[0]
    assert (recording.person, recording.stimulus, len(recording)) == ("user101", "nyc", 1)
    # A rotation of -11.5 degrees about the axis to the right looks down by as much.
    np.testing.assert_allclose(
        recording.y_deg, 90 + 2 * np.degrees(np.arctan2(0.1, 0.995)), atol=1e-6
    )


def test_eyenavgs_roll_is_positive_when_the_head_leans_to_its_right(tmp_path: Path) -> None:
    lean = (
        np.radians(-20) / 2
    )  # about +z in OpenXR axes, which points back: turning clockwise is leaning right
    row = f"0,0,0,0,0,0,0,{np.sin(lean)},{np.cos(lean)},0.1,0,0,0.995,0\n"
    write(tmp_path / "s" / "u_s.csv", NAV + row)
    head = read(tmp_path, format="eyenavgs")[0].head_deg
    np.testing.assert_allclose(head[0], [180, 90, 20], atol=1e-9)


def test_gazebase_vr_is_told_from_gazebase_and_keeps_both_eyes(tmp_path: Path) -> None:
    header = "n,x,y,lx,ly,rx,ry,xT,yT,zT,clx,cly,clz,crx,cry,crz\n"
    rows = (
        "0,1,2,0.5,2,1.5,2,0,0,-1,.03,0,0,-.03,0,0\n3.97,1,2,nan,nan,1.5,2,0,0,-1,.03,0,0,-.03,"
        "0,0\n7.94,NaN,NaN,NaN,NaN,NaN,NaN,0,0,-1,0,0,0,0,0,0\n"
    )
    path = write(tmp_path / "S_1010_S2_3_PUR.csv", header + rows)
    assert registry.get("gazebase-vr").sniff(Head.of(path))
    assert not registry.get("gazebase").sniff(Head.of(path))
    recording = read(path, format="gazebase-vr")[0]
    assert recording.key == ("010", "PUR", "1.2", "PUR")
    assert recording.t_ns.tolist() == [0, 3_970_000, 7_940_000]
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [181, 88])
    assert recording.valid.tolist() == [True, True, False]
    assert np.isnan(recording.left_deg[1]).all()
    assert set(recording.metadata) == {"source", "unit", "facts"}


def test_et_dk2_makes_one_recording_per_image_and_counts_grey_rows(tmp_path: Path) -> None:
    rows = [dk2_row(5, True, 0.1, (0, 0, 2), (0, 0), (0, 0, 0))]
    rows += [dk2_row(0, True, 0.2, (0, 0, 2), (0, 0), (0, 0, 0))]
    rows += [
        dk2_row(0, False, 1 + k / 60, (2, 0.02 * k, 0.1 * k), (90 - k, 0.5), (350, 90, 10))
        for k in range(4)
    ]
    rows += [
        dk2_row(1, False, 2 + k / 60, (0.1 * k, 0, -2), (179, 0), (0, 180, 0)) for k in range(3)
    ]
    rows += [dk2_row(1, False, 2.1, (0, 0, 0), (-1, -1), (0, 180, 0))]
    write(tmp_path / "gaze" / "S1001.csv", DK2 + "".join(rows))
    write(tmp_path / "img_index.csv", "index,image\n0,alley.png\n1,beach.png\n")
    write(tmp_path / "AOIs.csv", "image,x0\nalley.png,1\n")
    cohort = read(tmp_path, format="et-dk2")
    assert [(k[0], k[1]) for k in cohort.keys] == [("S1001", "alley.png"), ("S1001", "beach.png")]
    first, second = cohort
    # The first grey row belongs to an image that was never shown: it is counted where the next
    # image is.
    assert first.counts == {"rows": 6, "gray": 2}
    assert second.counts == {"rows": 4}
    assert round(first.rate_hz) == 60
    np.testing.assert_allclose([first.x_deg[0], first.y_deg[0]], [270, 90], atol=1e-9)
    assert min(second.x_deg[0], 360 - second.x_deg[0]) < 1e-6
    assert second.valid.tolist() == [True, True, True, False]
    np.testing.assert_allclose(first.head_deg[0], [270, 80, -10])
    assert first.metadata["gaze_from"] == "GIW"
    assert str(first.metadata["aoi_file"]).endswith("AOIs.csv")


def test_et_dk2_takes_the_texture_where_the_vectors_are_no_directions(tmp_path: Path) -> None:
    rows = [
        dk2_row(7, False, k / 60, (0.1 + 3 * k, 0, 9), (-90 + k, 30), (0, 0, 0)) for k in range(6)
    ]
    write(tmp_path / "S0002.csv", DK2 + "".join(rows))
    recording = read(tmp_path, format="et-dk2")[0]
    assert recording.metadata["gaze_from"] == "GIW_TEXTURE (degrees)"
    assert recording.stimulus == "7"
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [90, 60], atol=1e-9)


def test_vr_eyetracking_counts_fractions_from_below_and_leaves_gaps_for_skipped_frames(
    tmp_path: Path,
) -> None:
    write(tmp_path / "Gaze_txt_files" / "p001" / "79._2017-10-13-10-27_ori_0.txt", VR)
    recording = read(tmp_path, format="vr-eyetracking", frame_interval_s=0.04)[0]
    assert recording.key == ("p001", "079", "1", "free-viewing")
    np.testing.assert_allclose(recording.x_deg[:2], [90, 180])
    np.testing.assert_allclose(recording.y_deg[:2], [45, 90])
    assert recording.t_ns.tolist() == [0, 40_000_000, 160_000_000]
    assert recording.valid.tolist() == [True, True, False]
    assert recording.rate_hz == 25
    np.testing.assert_allclose(recording.head_deg[0], [180, 90, 0])


def test_vr_eyetracking_takes_intervals_by_video_or_from_a_json_file(tmp_path: Path) -> None:
    folder = tmp_path / "Gaze_txt_files"
    write(folder / "p001" / "7._2017-10-13-10-27_ori_0.txt.gz", VR)
    write(folder / "p002" / "179._2017-10-14-10-27_ori_2.txt", VR)
    mapping = {"007": 0.02, "179": 0.05}
    json_file = write(tmp_path / "intervals.json", json.dumps(mapping))
    for given in (mapping, {7: 0.02, 179: 0.05}, json_file, str(json_file)):
        cohort = read(folder, format="vr-eyetracking", frame_interval_s=given)
        assert [int(r.t_ns[1]) for r in cohort] == [20_000_000, 50_000_000]
    assert cohort.keys[1] == ("p002", "179", "1", "free-viewing")


def test_a_date_in_vr_eyetracking_is_no_session_but_a_second_viewing_is(tmp_path: Path) -> None:
    names = (
        "9._2017-10-13-10-27_ori_0.txt",
        "7._2017-10-13-10-29_ori_0.txt",
        "7._2017-10-14-08-01_ori_0.txt",
        "8._2017-10-14-08-00_ori_0.txt",
    )
    for name in names:
        write(tmp_path / "p001" / name, VR)
    cohort = read(tmp_path, format="vr-eyetracking", frame_interval_s=0.04)
    found = sorted(r.key[1:3] for r in cohort)
    assert found == [("007", "1"), ("007", "2"), ("008", "1"), ("009", "1")]


def test_vr_eyetracking_warns_before_it_assumes_an_interval(tmp_path: Path) -> None:
    write(tmp_path / "p001" / "7._2017_ori_0.txt", VR)
    with pytest.warns(UserWarning, match="1/30 s per frame"):
        cohort = read(tmp_path, format="vr-eyetracking")
    assert int(cohort[0].t_ns[1]) == 33_333_333
    with pytest.warns(UserWarning, match="video '007'"):
        read(tmp_path, format="vr-eyetracking", frame_interval_s={"008": 0.1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path, format="vr-eyetracking", frame_interval_s=0.1)
    with pytest.raises(ParameterError, match="frame_interval_s"):
        read(tmp_path, format="vr-eyetracking", frame_interval_s=-1)


# --- DGaze and EHTask
# --------------------------------------------------------------------------------------------------


def test_dgaze_rows_are_short_recordings_of_unknown_people(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-20, 20, (6, 1802)).astype(np.float32)
    y = rng.uniform(-20, 20, (6, 2)).astype(np.float32)
    np.save(tmp_path / "trainingX.npy", x)
    np.save(tmp_path / "trainingY.npy", y)
    cohort = read(tmp_path, format="dgaze")
    assert len(cohort) == 6
    assert cohort.keys[3] == ("unknown", "train", "3", "free-viewing")
    assert [Path(s.path).name for s in cohort.skipped] == ["trainingY.npy"]
    recording = cohort[3]
    steps = x[3, :650].reshape(50, 13)
    np.testing.assert_allclose(recording.x_deg, steps[:, 0])
    np.testing.assert_allclose(recording.y_deg, -steps[:, 1])
    metadata: Any = recording.metadata
    np.testing.assert_allclose(metadata["target_deg"], y[3] * [1, -1])
    np.testing.assert_allclose(metadata["head_velocity_deg_s"], steps[:, 2:4])
    assert (recording.rate_hz, len(recording)) == (100, 50)
    # The published projection: half the height of the screen is 55 degrees.
    assert recording.space.height_deg == pytest.approx(110)


def test_ehtask_rows_carry_their_task_and_recording(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    eye, head, world = (
        rng.uniform(0, 1, (4, 250, 2)),
        rng.normal(0, 30, (4, 250, 2)),
        rng.uniform(-80, 80, (4, 250, 2)),
    )
    eye[0, 0], world[0, 0] = (0.5, 1.0), (-90, 30)
    np.save(
        tmp_path / "testX.npy",
        np.concatenate([a.reshape(4, 500) for a in (eye, head, world)], axis=1),
    )
    np.save(tmp_path / "testY.npy", np.array([0, 1, 2, 3]))
    np.save(tmp_path / "testRecordingLabel.npy", np.array([11, 11, 12, 13]))
    cohort = read(tmp_path, format="ehtask")
    assert [k[2:] for k in cohort.keys] == [
        ("11.0", "free-viewing"),
        ("11.1", "search"),
        ("12.2", "saliency"),
        ("13.3", "tracking"),
    ]
    recording = cohort[0]
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [90, 60])
    np.testing.assert_allclose(recording.eye_in_head_deg[0], [0, -55])
    assert (recording.metadata["recording"], recording.rate_hz, len(recording)) == (11, 25, 250)
