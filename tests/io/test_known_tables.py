"""Tables that a shipped description reads: Data Viewer, Gorilla, jsPsych, ioHub, XDF; and tables of
many recordings, whose cost grows with their bytes alone.

Readers of headset datasets on small hand-made files with exactly the published layouts.
"""

from __future__ import annotations

import json
import struct
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, MissingExtraError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.io import known, registry
from gazeveil.io.plain import text
from gazeveil.io.reading import read
from gazeveil.io.registry import KNOWN, get
from gazeveil.io.source import Head
from tests.support.dataset_files import DK2, EM360, NAV, VR, dk2_row, write

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
N = 200


def gaze(seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).normal(0, 6, (N, 2)).cumsum(axis=0)
    return np.round(np.array([960.0, 540.0]) + steps - steps.mean(axis=0), 2)


def read_quietly(path: Path, **options: object) -> gazeveil.Cohort:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gazeveil.read(path, screen=SCREEN, **options)  # type: ignore[arg-type]


def assert_gaze(recording: gazeveil.Recording, px: np.ndarray, lost: np.ndarray) -> None:
    assert recording.valid.tolist() == (~lost).tolist()
    x, y = SCREEN.from_px(*px.T)
    np.testing.assert_allclose(recording.x_deg[~lost], x[~lost], atol=1e-9)
    np.testing.assert_allclose(recording.y_deg[~lost], y[~lost], atol=1e-9)


def test_every_description_is_a_format() -> None:
    for name in KNOWN:
        assert get(name).name == name
    with pytest.raises(AttributeError):
        known.nothing  # noqa: B018 - asking for it is the test


def test_a_sample_report_of_data_viewer(tmp_path: Path) -> None:
    header = "RECORDING_SESSION_LABEL\tTRIAL_INDEX\tEYE_TRACKED\tTIMESTAMP\tRIGHT_GAZE_X\t"
    header += "RIGHT_GAZE_Y\tRIGHT_PUPIL_SIZE\tRIGHT_IN_BLINK\tRIGHT_IN_SACCADE\tSAMPLE_MESSAGE"
    lines = [header]
    blink = (np.arange(N) >= 50) & (np.arange(N) < 60)
    for person in ("k7", "m3"):
        for trial in (1, 2):
            for i, (x, y) in enumerate(gaze(trial)):
                seen = (".", ".", "0") if i in (52, 53) else (x, y, "812")
                cells = (person, trial, "Right", 5000 * trial + 2 * i, *seen)
                lines.append("\t".join(map(str, (*cells, int(blink[i]), 0, "."))))
    path = tmp_path / "report.xls.txt"
    path.write_text("\n".join(lines) + "\n", "utf-16")
    cohort = read_quietly(path)
    assert cohort.read_as.format == "eyelink-report"
    assert [k[:2] for k in cohort.keys] == [("k7", "1"), ("k7", "2"), ("m3", "1"), ("m3", "2")]
    assert_gaze(cohort[1], gaze(2), blink)
    assert cohort[1].rate_hz == 500
    assert cohort.doubts == ()


def test_a_table_of_gorilla_has_rows_that_are_no_samples(tmp_path: Path) -> None:
    lines = ["participant_id,filename,type,zone_name,x_pred,y_pred,time_elapsed,face_conf"]
    for person in ("p1", "p2"):
        lines.append(f"{person},t1,zone,image,,,0,")
        lines += [
            f"{person},t1,prediction,,{x},{y},{16 * i},0.9" for i, (x, y) in enumerate(gaze())
        ]
    path = tmp_path / "collection.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    cohort = read_quietly(path)
    assert [r.person for r in cohort] == ["p1", "p2"]
    assert_gaze(cohort[0], gaze(), np.zeros(N, dtype=bool))
    assert (cohort[0].counts["rows"], cohort[0].counts["other_rows"]) == (N + 1, 1)


def test_predictions_of_jspsych_stand_in_one_cell(tmp_path: Path) -> None:
    lines = ["trial_type,trial_index,subject_id,stimulus,webgazer_data"]
    for subject in ("s7", "s8"):
        for trial, stimulus in enumerate(("sea.png", "city.png")):
            points = [
                {"x": x, "y": y, "t": 33 * i} for i, (x, y) in enumerate(gaze(trial).tolist())
            ]
            cell = json.dumps(points).replace('"', '""')
            lines.append(f'image-keyboard-response,{trial},{subject},{stimulus},"{cell}"')
        lines.append(f"html-button-response,9,{subject},,")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    cohort = read_quietly(path)
    assert [k[:2] for k in cohort.keys] == [
        (s, stimulus) for s in ("s7", "s8") for stimulus in ("sea.png", "city.png")
    ]
    assert_gaze(cohort[1], gaze(1), np.zeros(N, dtype=bool))
    path.write_text(path.read_text().replace('{""x""', '{""u""', 1), "utf-8")
    with pytest.raises(FormatError, match="line 2: 'webgazer_data' is no list of x, y and t"):
        read_quietly(path)


def test_participants_of_iohub_are_people(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    sample = [("session_id", "u2"), ("event_id", "u4"), ("time", "f4"), ("logged_time", "f4")]
    sample += [(f"{s}_gaze_{a}", "f4") for s in ("left", "right") for a in "xy"]
    sample += [("status", "u1"), ("type", "u1")]
    rows = np.zeros(2 * N, dtype=sample)
    lost = np.arange(N) % 20 == 7
    for session in (1, 2):
        mine = slice((session - 1) * N, session * N)
        centred = (gaze(session) - [960, 540]) * [1, -1]
        rows["session_id"][mine] = session
        rows["time"][mine] = np.arange(N) / 128
        rows["left_gaze_x"][mine], rows["left_gaze_y"][mine] = centred.T
        rows["right_gaze_x"][mine], rows["right_gaze_y"][mine] = centred.T
        rows["status"][mine] = np.where(lost, 22, 0)
    path = tmp_path / "events.hdf5"
    with h5py.File(path, "w") as file:
        file["data_collection/events/eyetracker/BinocularEyeSampleEvent"] = rows
        about = np.array([(1, b"K7"), (2, b"M3")], dtype=[("session_id", "u2"), ("code", "S24")])
        file["data_collection/session_meta_data"] = about
    cohort = read_quietly(path, unit="px-centred")
    assert [r.person for r in cohort] == ["K7", "M3"]
    (first, _) = cohort
    assert first.valid.tolist() == (~lost).tolist()
    expected = SCREEN.from_px(*gaze(1).T)
    np.testing.assert_allclose(first.x_deg[~lost], expected[0][~lost], atol=1e-3)
    np.testing.assert_allclose(first.y_deg[~lost], expected[1][~lost], atol=1e-3)
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["something"] = [1, 2]
    with pytest.raises(FormatError, match="no eye samples of ioHub"):
        read_quietly(tmp_path / "other.hdf5")


def _xdf(path: Path, labels: list[str], values: np.ndarray, streams: int = 1) -> Path:
    """A file of the Lab Streaming Layer, as its specification lays it out."""

    def chunk(tag: int, content: bytes) -> bytes:
        return b"\x04" + struct.pack("<IH", len(content) + 2, tag) + content

    channels = "".join(f"<channel><label>{label}</label></channel>" for label in labels)
    header = f"<info><name>Tracker</name><type>Gaze</type><channel_count>{len(labels)}"
    header += "</channel_count><nominal_srate>60</nominal_srate><channel_format>double64"
    header += f"</channel_format><desc><channels>{channels}</channels></desc></info>"
    data = b"XDF:" + chunk(1, b"<info><version>1.0</version></info>")
    for stream in range(1, streams + 1):
        data += chunk(2, struct.pack("<I", stream) + header.encode())
        rows = b"".join(
            b"\x08" + struct.pack(f"<d{len(labels)}d", 100 + i / 60, *row)
            for i, row in enumerate(values)
        )
        count = b"\x04" + struct.pack("<I", len(values))
        data += chunk(3, struct.pack("<I", stream) + count + rows)
        footer = f"<info><sample_count>{len(values)}</sample_count></info>".encode()
        data += chunk(6, struct.pack("<I", stream) + footer)
    path.write_bytes(data)
    return path


def test_the_gaze_stream_of_an_xdf_recording(tmp_path: Path) -> None:
    pytest.importorskip("pyxdf")
    up = gaze() / [1920, 1080] * [1, -1] + [0, 1]
    values = np.column_stack([np.full(N, 0.9), up])
    path = _xdf(tmp_path / "a.xdf", ["confidence", "norm_pos_x", "norm_pos_y"], values)
    (recording,) = read_quietly(path)
    assert_gaze(recording, gaze(), np.zeros(N, dtype=bool))
    assert recording.rate_hz == 60
    two = _xdf(tmp_path / "b.xdf", ["confidence", "norm_pos_x", "norm_pos_y"], values, 2)
    with pytest.raises(FormatError, match=r"there are 2 \(Tracker, Tracker\)"):
        read_quietly(two)
    none = _xdf(tmp_path / "c.xdf", ["heart", "skin", "breath"], values)
    with pytest.raises(FormatError, match=r"there are 0 \(none\)"):
        read_quietly(none)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(FormatError):
        list(read_quietly(path))


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(text, "import_module", missing)
    for name, data, extra in (("a.xdf", b"XDF:", "xdf"), ("a.h5", b"\x89HDF\r\n", "hdf5")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(MissingExtraError, match=rf"gazeveil\[{extra}\]"):
            read_quietly(tmp_path / name)


# --- one pass


def _table(path: Path, recordings: int, rows: int) -> Path:
    lines = ["participant,stimulus,t_ms,x_px,y_px"]
    for number in range(recordings):
        lines += [
            f"p{number % 20},s{number // 20},{4 * i},{900 + i % 90}.5,{500 + i % 70}.25"
            for i in range(rows)
        ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_the_cost_of_a_table_grows_with_its_bytes_not_with_its_recordings(tmp_path: Path) -> None:
    few = _table(tmp_path / "few.csv", 2, 60_000)
    many = _table(tmp_path / "many.csv", 400, 300)
    seconds = {}
    for path in (few, many):
        begun = time.process_time()
        assert sum(len(r) for r in read_quietly(path, y_axis="down")) == 120_000
        seconds[path] = time.process_time() - begun
    # 400 recordings cost 300 times the table where each parses it anew; one pass costs a
    # millisecond or two for each.
    assert seconds[many] < 20 * seconds[few] + 1


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
