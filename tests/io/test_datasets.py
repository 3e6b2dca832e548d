"""Dataset readers on small hand-made files with exactly the published layouts."""

from __future__ import annotations

import gzip
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.io import registry
from gazeveil.io.datasets import listing, mpiidpeye, mpiiprivaceye, salient360
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.places import ROOT


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


# --- 360_em
# --------------------------------------------------------------------------------------------------

EM360 = """@RELATION gaze_360

%@METADATA distance_mm 0.00
%@METADATA height_mm 0.00
%@METADATA height_px 1080
%@METADATA width_mm 0.00
%@METADATA width_px 1920
%@METADATA fov_width_deg 100.00

@ATTRIBUTE time INTEGER
@ATTRIBUTE x NUMERIC
@ATTRIBUTE y NUMERIC
@ATTRIBUTE confidence NUMERIC
@ATTRIBUTE x_head NUMERIC
@ATTRIBUTE y_head NUMERIC
@ATTRIBUTE angle_deg_head NUMERIC
@ATTRIBUTE primary_label {unassigned,fixation,saccade,SP,noise}
@ATTRIBUTE secondary_label {unassigned,OKN,VOR,OKN+VOR,head_pursuit}

@DATA
0,960.00,540.00,1.00,960.00,540.00,1.22,fixation,VOR
8333,1440.00,270.00,1.00,960.00,540.00,1.22,saccade,unassigned
% a comment among the rows
16667,0.00,0.00,0.00,960.00,540.00,1.22,SP,head_pursuit
"""


def test_360_em_has_head_eye_and_two_tiers_of_labels(tmp_path: Path) -> None:
    write(tmp_path / "gaze" / "01_park" / "007_01_park.arff", EM360)
    write(tmp_path / "participant_info.csv", "participant,age,gender\n7,31,f\n8,22,m\n")
    cohort = read(tmp_path)
    recording = cohort[0]
    assert recording.key == ("007", "01_park", "1", "")
    assert isinstance(recording.space, Sphere)
    np.testing.assert_allclose(recording.x_deg[:2], [180, 270])
    np.testing.assert_allclose(recording.y_deg[:2], [90, 45])
    assert recording.valid.tolist() == [True, True, False]
    assert recording.head_deg is not None
    np.testing.assert_allclose(recording.head_deg[0], [180, 90, 1.22])
    assert recording.eye_in_head_deg is not None
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
    assert read(tmp_path, format="360-em").keys == ((person, video, "1", ""),)


# --- EyeNavGS
# --------------------------------------------------------------------------------------------------

HALF = np.sqrt(0.5)
NAV = (
    "ViewIndex,FOV1,PositionX,PositionY,PositionZ,QuaternionX,QuaternionY,QuaternionZ,"
    "QuaternionW,GazeQX,GazeQY,GazeQZ,GazeQW,timestep\n"
)


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
    assert recording.left_deg is not None
    assert recording.right_deg is not None
    # Turned left is longitude 90; a half turn is the seam at 0.
    np.testing.assert_allclose(recording.left_deg[0], [90, 90], atol=1e-6)
    assert min(recording.right_deg[0, 0], 360 - recording.right_deg[0, 0]) < 1e-6
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [45, 90], atol=1e-6)
    assert np.isnan(recording.left_deg[1:]).all()
    np.testing.assert_allclose(recording.x_deg[1:3], 90, atol=1e-6)
    assert recording.head_deg is not None
    np.testing.assert_allclose(recording.head_deg, np.tile([90, 90, 0], (4, 1)), atol=1e-6)
    assert recording.eye_in_head_deg is not None
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
    assert head is not None
    np.testing.assert_allclose(head[0], [180, 90, 20], atol=1e-9)


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
    assert recording.labels["lab"].tolist() == ["1", "2", "undefined"]
    target_deg: Any = recording.metadata["target_deg"]
    np.testing.assert_allclose(target_deg, [[0, -3]] * 3)
    assert recording.pupil is not None
    assert recording.rate_hz == 1000


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
    assert recording.left_deg is not None
    assert np.isnan(recording.left_deg[1]).all()
    assert set(recording.metadata) == {"source", "target"}


# --- ET-DK2
# --------------------------------------------------------------------------------------------------

DK2 = (
    "SUB_ID,IMG_INDEX,IS_GRAY,GRAY_IDX,UNITY_TIMESTAMP,SMI_TIMESTAMP,GIW_X,GIW_Y,GIW_Z,"
    "GIW_TEXTURE_X,GIW_TEXTURE_Y,SCREEN_X,SCREEN_Y,"
    "HIW_X,HIW_Y,HIW_Z,HIW_TEXTURE_X,HIW_TEXTURE_Y,GAZE_DIR_X,GAZE_DIR_Y,GAZE_DIR_Z,HEAD_POS_X,"
    "HEAD_POS_Y,HEAD_POS_Z,HEAD_EUL_X,HEAD_EUL_Y,HEAD_EUL_Z\n"
)


def dk2_row(
    image: int,
    gray: bool,
    t_s: float,
    giw: tuple[float, float, float],
    texture: tuple[float, float],
    euler: tuple[float, float, float],
) -> str:
    cells = [
        1001,
        image,
        gray,
        3,
        t_s,
        int(t_s * 1e9),
        *giw,
        *texture,
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        1,
        0,
        1.7,
        0,
        *euler,
    ]
    return ",".join(str(c) for c in cells) + "\n"


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
    assert first.head_deg is not None
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


# --- VR-EyeTracking
# --------------------------------------------------------------------------------------------------

VR = (
    "frame,1,forward,0.5,0.5,eye,0.25,0.75\nframe,2,forward,0.5,0.5,eye,0.5,0.5\nframe,5,"
    "forward,0.5,0.5,eye,0,0\n"
)


def test_vr_eyetracking_counts_fractions_from_below_and_leaves_gaps_for_skipped_frames(
    tmp_path: Path,
) -> None:
    write(tmp_path / "Gaze_txt_files" / "p001" / "79._2017-10-13-10-27_ori_0.txt", VR)
    recording = read(tmp_path, format="vr-eyetracking", frame_interval_s=0.04)[0]
    assert recording.key == ("p001", "079", "2017-10-13-10-27", "free-viewing")
    np.testing.assert_allclose(recording.x_deg[:2], [90, 180])
    np.testing.assert_allclose(recording.y_deg[:2], [45, 90])
    assert recording.t_ns.tolist() == [0, 40_000_000, 160_000_000]
    assert recording.valid.tolist() == [True, True, False]
    assert recording.rate_hz == 25
    assert recording.head_deg is not None
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
    assert cohort.keys[1] == ("p002", "179", "2017-10-14-10-27.2", "free-viewing")


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
    assert len(read(tmp_path, format="dgaze", every=4)) == 2


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
    assert recording.eye_in_head_deg is not None
    np.testing.assert_allclose(recording.eye_in_head_deg[0], [0, -55])
    assert (recording.metadata["recording"], recording.rate_hz, len(recording)) == (11, 25, 250)


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
    assert second.pupil is not None
    assert second.pupil.tolist() == [30, 31]


def test_mpii_features_come_with_keys_and_read_says_who_reads_them(tmp_path: Path) -> None:
    values = np.arange(3 * 52, dtype=np.float64).reshape(3, 52)
    text = "\n".join(",".join(f"{v:g}" for v in row) for row in values) + "\n"
    write(tmp_path / "dp" / "Data_P10_R1_Pami_Features_52.csv", text)
    write(tmp_path / "dp" / "Data_P2_R3_Pami_Features_52.csv.gz", text)
    found, keys = mpiidpeye.features(tmp_path / "dp")
    np.testing.assert_array_equal(found, np.concatenate([values, values]))
    assert keys[0] == ("P2", "textbook", "1", "reading", 0)
    assert keys[5] == ("P10", "comic", "1", "reading", 2)
    with pytest.raises(FormatError, match=r"mpiidpeye\.features"):
        read(tmp_path / "dp", format="mpiidpeye")

    wide = "\n".join(",".join(["1"] * 52 + ["0.5"] * 4 + [str(i % 2)]) for i in range(4)) + "\n"
    write(tmp_path / "privac" / "P1_R1_data.csv", wide)
    found, keys = mpiiprivaceye.features(tmp_path / "privac")
    assert found.shape == (4, 52)
    assert keys[1] == ("P1", "R1", "1", "", 1)
    assert mpiiprivaceye.privacy_labels(tmp_path / "privac").tolist() == [0, 1, 0, 1]
    with pytest.raises(FormatError, match=r"mpiiprivaceye\.features"):
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
    assert first.events is not None
    assert first.events.x_deg is not None
    assert first.events.y_deg is not None
    np.testing.assert_allclose(first.events.x_deg, [180, 90])
    np.testing.assert_allclose(first.events.y_deg, [90, 45])
    assert first.events.onset_ns.tolist() == [0, 400_000_000]
    assert first.events.offset_ns.tolist() == [400_000_000, 400_000_000]
    assert second.events is not None
    assert second.events.x_deg is not None
    assert second.events.x_deg[2] == 0
    assert first.duration_s == 0.4


def test_salient360_maps_have_the_published_size(tmp_path: Path) -> None:
    values = np.zeros((1024, 2048), dtype="<f4")
    values[3, 5] = 1
    (tmp_path / "map.bin").write_bytes(values.tobytes())
    assert salient360.saliency_map(tmp_path / "map.bin")[3, 5] == 1
    (tmp_path / "cut.bin").write_bytes(values.tobytes()[:-4])
    with pytest.raises(FormatError, match="a map needs 8388608"):
        salient360.saliency_map(tmp_path / "cut.bin")


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
    assert events[0] is not None
    assert events[0].onset_ns.tolist() == [0, 200_000_000]
    assert events[0].offset_ns.tolist() == [200_000_000, 300_000_000]
    assert events[0].x_deg is not None
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


# --- VR-Saliency
# --------------------------------------------------------------------------------------------------


def run(k: int, n: int = 6) -> dict[str, object]:
    return {
        "timestamp": 1.5e9 + np.arange(n) / 120,
        "gaze_lat_lon": np.column_stack([np.full(n, 90.0 + k), np.full(n, 10.0 * k)]),
        "headLatLon": np.column_stack([np.full(n, 90.0), np.full(n, 10.0 * k)]),
        "headTilt": np.zeros(n),
        "gaze_fixations": np.array([[0.1, 0.2]]),
        "viewpoint_idx": k,
    }


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_vr_saliency_reads_pickled_dicts(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "seated_vr" / "cubemap_0001.pck"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps([run(1), run(2)], protocol=protocol))
    cohort = read(tmp_path, format="vr-saliency")
    assert cohort.keys[1] == ("seated_vr/cubemap_0001/2", "cubemap_0001", "1", "seated_vr")
    recording = cohort[1]
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [20, 92])
    assert round(recording.rate_hz) == 120
    assert recording.eye_in_head_deg is not None
    np.testing.assert_allclose(recording.eye_in_head_deg[0], [0, 2], atol=1e-6)
    assert "gaze_fixations" in recording.metadata["published"]  # type: ignore[operator]


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("shape", ["a column of runs", "a column per field"])
def test_vr_saliency_reads_pickled_data_frames_without_pandas(
    tmp_path: Path, protocol: int, shape: str
) -> None:
    pandas = pytest.importorskip("pandas")
    rows = (
        [{"user_id": "u1", "data": run(1)}, {"user_id": "u2", "data": run(2)}]
        if shape == "a column of runs"
        else [run(1), run(2)]
    )
    frame = pandas.DataFrame(
        [list(r.values()) for r in rows],
        columns=pandas.Index(list(rows[0]), dtype=object),
        dtype=object,
    )
    (tmp_path / "s.pck").write_bytes(pickle.dumps(frame, protocol=protocol))
    cohort = read(tmp_path / "s.pck", format="vr-saliency")
    assert [r.x_deg[0] for r in cohort] == [10, 20]
    if shape == "a column of runs":
        assert [k[0] for k in cohort.keys] == ["u1", "u2"]


# --- the listing
# --------------------------------------------------------------------------------------------------


def test_openneeds_says_that_its_layout_is_not_public(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x\n1\n")
    for place in (path, tmp_path):
        with pytest.raises(FormatError, match="not public"):
            read(place, format="openneeds")


def test_every_dataset_is_described_and_stands_in_the_documentation() -> None:
    entries = listing.describe()
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
            assert f"`{option}=`" in page, (
                f"docs/reference/datasets.md does not tell the option {option} of {entry.format}"
            )
    with pytest.raises(ParameterError, match="Did you mean 'gazecom'"):
        listing.entry("gazecon")


def test_the_check_names_files_that_are_not_there(tmp_path: Path) -> None:
    np.save(tmp_path / "trainingX.npy", np.zeros((2, 1802)))
    report = listing.check(tmp_path, "dgaze")
    assert report.ok
    assert report.missing == ("trainingY.npy", "testX.npy", "testY.npy")
    assert "not there: trainingY.npy" in str(report)
    assert (
        listing.check(tmp_path / "nowhere")
        .problems[0]
        .endswith("there is no such file or folder. Check the path.")
    )


def test_the_check_goes_on_after_a_broken_file(tmp_path: Path) -> None:
    write(tmp_path / "a" / "u1_a.csv", NAV + "0,0,0,0,0,0,0,0,1,0.1,0,0,1,0\n")
    write(tmp_path / "a" / "u2_a.csv", NAV + "5,0,0,0,0,0,0,0,1,0.1,0,0,1,0\n")
    report = listing.check(tmp_path, "eyenavgs")
    assert not report.ok
    assert (report.recordings, report.samples, report.broken) == (2, 1, 1)
    assert "u2_a.csv, line 2: ViewIndex is 5" in report.problems[0]
    assert json.dumps(report.to_dict())


# --- sniffing
# --------------------------------------------------------------------------------------------------

SNIFFED = [
    ("360-em", "a_b.arff", EM360),
    ("eyenavgs", "a_b.csv", NAV + "0,0,0,0,0,0,0,0,1,0.1,0,0,1,0\n"),
    ("gazebase", "S_1001_S1_FXS.csv", "n,x,y,val,dP,lab,xT,yT\n0,1,2,0,9,1,0,0\n"),
    ("gazebase-vr", "S_1001_S1_1_VRG.csv", "n,x,y,lx,ly,rx,ry,xT,yT,zT\n0,1,2,1,2,1,2,0,0,1\n"),
    ("et-dk2", "S0001.csv", DK2 + dk2_row(1, False, 1, (0, 0, 1), (0, 0), (0, 0, 0))),
    ("vr-eyetracking", "1._2017_ori_0.txt", VR),
    ("mpiidpeye", "P1_R1.csv", "0.5;0.5;1.0;1;30\n"),
    ("mpiidpeye", "Data_P1_R1_Pami_Features_52.csv", ",".join(["1"] * 52) + "\n"),
    ("mpiiprivaceye", "P1_R1_data.csv", ",".join(["1"] * 60) + "\n"),
    ("salient360", "scan.txt", "0,0.5,0.5,0\n1,0.4,0.5,0.3\n0,0.1,0.1,0.1\n"),
    ("salient360", "scan.csv", "Idx, longitude, latitude, start timestamp\n0, 0.5, 0.5, 0\n"),
    ("hmr", "eye_1.csv", "Pattern\tX_coord\tY_coord\tConfidence\nF\t0.1\t0.1\t1\n"),
    ("cateyes", "x.csv", "Phi,Theta,Timestamp\n0.1,0.1,5\n"),
    ("webqamgaze", "x.json", '{"worker_id": "1", "set_name": "a", "samples_x_y_ms": {}}'),
    (
        "neuroliaa",
        "x.json",
        '{"i.jpg": {"X": [1], "Y": [1], "T": [1], "target_bbox": [1, 2, 3, 4]}}',
    ),
]


def knowing(head: Head) -> list[str]:
    """The datasets that take a file for theirs."""
    readable = [e.format for e in listing.describe() if e.format not in registry.WITHOUT_READER]
    return [name for name in readable if registry.get(name).sniff(head)]


@pytest.mark.parametrize(("name", "file", "content"), SNIFFED)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_is_known_by_its_content(
    tmp_path: Path, name: str, file: str, content: str, suffix: str
) -> None:
    path = write(tmp_path / (file + suffix), content)
    assert knowing(Head.of(path)) == [name]
    found = registry.sniff(path)
    assert found is not None
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
