"""Vendor readers on the vendors' own files: every row counted, and gaze that can only come from the
right axes.

Bad input, for every vendor reader: a documented result, or one sentence that names the file, the
line and the remedy.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen, angle_deg, rotate
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from tests.support.reading_digest import digest
from tests.support.recordings import real


def lines_of(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode("utf-8").splitlines() if line.strip()]


def check_counts(recording: Recording, rows: int) -> None:
    assert recording.counts["rows"] == rows
    assert len(recording) + sum(v for k, v in recording.counts.items() if k != "rows") == rows


def eye_distance(recording: Recording) -> float:
    left, right = (
        recording.space.vectors(e[:, 0], e[:, 1]) for e in (recording.left_deg, recording.right_deg)
    )
    return float(np.nanmedian(angle_deg(left, right)))


# --- headsets
# --------------------------------------------------------------------------------------------------


def test_a_vive_helmet_pose_of_zeros_is_lost_and_not_straight_ahead() -> None:
    (recording,) = gazeveil.read(
        real("vendor_samples", "HTC_Vive_Pro", "TESTNA10_360VR_Fist3.csv.gz"), format="vive-pro-eye"
    )
    assert len(recording) == 1664
    assert not recording.valid.any()
    assert np.isfinite(recording.eye_in_head_deg).any()


def world_speed_while_head_turns(recording: Recording, mirror: tuple[float, float]) -> float:
    """Median gaze speed in the world while the head turns, with the eye's
    axes mirrored as asked."""
    from gazeveil.gaze.geometry import Sphere, from_tangents, head_axes

    eye = from_tangents(*recording.eye_in_head_deg.T) * [mirror[0], mirror[1], 1.0]
    world = np.einsum("nij,ni->nj", head_axes(recording.head_deg), eye)
    forward = Sphere().vectors(recording.head_deg[:, 0], recording.head_deg[:, 1])
    step = 4
    dt = (recording.t_ns[step:] - recording.t_ns[:-step]) / 1e9
    whole = recording.valid[step:] & recording.valid[:-step] & (dt > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        head, gaze = (
            angle_deg(forward[step:], forward[:-step]) / dt,
            angle_deg(world[step:], world[:-step]) / dt,
        )
    return float(np.nanmedian(gaze[whole & (head > 20)]))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("vive-pro-eye", ("HTC_Vive_Pro", "TESTNA01_360VR_Fist3.csv.gz")),
        ("vive-pro-eye", ("HTC_Vive_Pro", "TESTNA05_360VR_Spread7.csv.gz")),
        ("vive-pro-eye", ("HTC_Vive_Pro", "TESTNA15_360VR_Pen3.csv.gz")),
        ("unity-hmd", ("salient360_hmd", "rawDataDyn1.csv.gz")),
        ("unity-hmd", ("salient360_hmd", "rawDataStatic1.csv.gz")),
        ("unity-hmd", ("salient360_hmd", "rawDataStatic2.csv.gz")),
        ("unity-hmd", ("salient360_hmd", "rawDataStatic3.csv.gz")),
    ],
)
def test_gaze_stays_stillest_while_the_head_turns_with_the_axes_we_chose(
    name: str, parts: tuple[str, ...]
) -> None:
    (recording,) = gazeveil.read(real("vendor_samples", *parts), format=name)
    ours = world_speed_while_head_turns(recording, (1, 1))
    for mirror in ((-1, 1), (1, -1), (-1, -1)):
        assert ours < world_speed_while_head_turns(recording, mirror)


def test_pico_looks_at_the_avatar_in_front_and_loses_what_blinks() -> None:
    path = real("vendor_samples", "Pico_Neo_3_Pro", "boxing_VR.csv.gz")
    (recording,) = gazeveil.read(path, format="pico")
    assert recording.key == ("SE05", "Boxe_EPreN3_VR_2_N2_S13_C", "1", "")
    check_counts(recording, len(lines_of(path)) - 1)
    assert recording.rate_hz == 90
    assert np.count_nonzero(~recording.valid) == 6
    # The log names the avatar's chest as what is looked at: 2.6 m ahead, a little below the eyes.
    assert abs(np.median(recording.x_deg[recording.valid]) - 180) < 5
    assert 88 < np.median(recording.y_deg[recording.valid]) < 100


def test_unity_rows_with_two_values_in_one_cell_are_split_and_said() -> None:
    path = real("vendor_samples", "salient360_hmd", "rawDataDyn1.csv.gz")
    (recording,) = gazeveil.read(path, format="unity-hmd")
    text = lines_of(path)[1:]
    check_counts(recording, len(text))
    assert "one cell" in str(recording.metadata["repaired"])
    assert recording.rate_hz == 250
    both_lost = sum(line.endswith("False,False") for line in text)
    assert np.count_nonzero(~recording.valid) == both_lost
    assert eye_distance(recording) < 5


def test_unity_euler_turns_as_unity_does() -> None:
    q = headset.unity_euler(
        np.array([10.0, 0.0, 0.0]), np.array([0.0, 90.0, 0.0]), np.array([0.0, 0.0, 30.0])
    )
    head = headset.head_degrees(q)
    np.testing.assert_allclose(head, [[180, 100, 0], [270, 90, 0], [180, 90, -30]], atol=1e-9)
    np.testing.assert_allclose(rotate(q[1], [0, 0, 1]), [1, 0, 0], atol=1e-12)


# --- glasses
# --------------------------------------------------------------------------------------------------


def test_glasses3_lines_are_all_samples_and_right_in_the_picture_is_right_of_ahead() -> None:
    folder = real("vendor_samples", "Tobii_Pro_Glasses_3")
    (recording,) = gazeveil.read(folder, format="tobii-glasses3")
    lines = [json.loads(line) for line in lines_of(folder / "calibration_1" / "gazedata.gz")]
    check_counts(recording, len(lines))
    empty = np.array([not line["data"] for line in lines])
    assert np.count_nonzero(empty) > 0
    assert not recording.valid[empty].any()
    seen = np.array([line["data"].get("gaze2d", [np.nan, np.nan]) for line in lines])
    whole = recording.valid & np.isfinite(seen).all(axis=1)
    assert np.corrcoef(seen[whole, 0], recording.x_deg[whole])[0, 1] > 0.95
    assert np.corrcoef(seen[whole, 1], recording.y_deg[whole])[0, 1] > 0.95
    assert eye_distance(recording) < 5
    assert len(recording.messages) == len(lines_of(folder / "calibration_1" / "eventdata.gz"))
    assert recording.metadata["frame"] == "head"
    assert recording.metadata["not_read"] == "imudata"


# --- screens
# --------------------------------------------------------------------------------------------------


def test_validation_files_are_read_without_options_and_gaze_lies_on_their_targets() -> None:
    cohort = gazeveil.read(real("vendor_samples", "tsv_multi"), format="csv")
    for item, recording in zip(cohort.items, cohort, strict=True):
        text = [line.split("\t") for line in lines_of(Path(item.source))]
        check_counts(recording, len(text) - 1)
        said = re.search(r"(\d+)Hz", item.source)
        assert recording.rate_hz == float(said[1])
        assert recording.metadata["assumed_geometry"] is True
        names = text[0]
        target = np.array(
            [[float(r[names.index("tar_x")]), float(r[names.index("tar_y")])] for r in text[1:]]
        )
        goal = recording.space.from_px(target[:, 0] + 960, target[:, 1] + 540)
        shown = np.array([int(r[names.index("target_id")]) > 0 for r in text[1:]])
        # Accuracy of these trackers is about a degree; upside down it would be ten.
        assert (
            np.nanmedian(np.hypot(recording.x_deg - goal[0], recording.y_deg - goal[1])[shown]) < 2
        )


def test_eyelink_trials_lie_where_their_messages_stand_not_where_their_times_point() -> None:
    folder = real("vendor_samples", "eyelink_asc")
    two_khz = gazeveil.read(
        folder / "pymovements_eyelink_monocular_2khz_example.asc", format="eyelink-asc"
    )
    assert [(r.stimulus, len(r)) for r in two_khz] == [
        ("0", 3),
        ("1", 4),
        ("2", 2),
        ("3", 4),
        ("4", 2),
        ("no-trial", 1),
    ]
    assert two_khz[0].rate_hz == 2000
    assert two_khz[0].t_ns.tolist() == [2154556500000, 2154557000000, 2154560500000]
    assert any(m.text == "TRIALID 0" for m in two_khz[0].messages)


def test_a_screen_that_is_given_goes_before_the_calibration() -> None:
    path = real("vendor_samples", "eyelink_asc", "pymovements_raccoons.asc")
    screen = Screen(1920, 1080, 544, 303, 700)
    (recording,) = gazeveil.read(path, format="eyelink-asc", screen=screen)
    assert recording.space == screen
    assert recording.x_deg[0] == pytest.approx(screen.from_px([1006.9], [1189.0])[0][0])


DIGESTS = json.loads(Path(__file__).with_name("reading_digests.json").read_text("utf-8"))


@pytest.mark.parametrize("folder", DIGESTS)
def test_every_folder_is_read_as_it_always_was(folder: str) -> None:
    place = real(*folder.split("/"))
    clash = "session" if folder.endswith("eyelink_asc") else "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cohort = gazeveil.read(place, clash=clash)
        assert digest(cohort) == DIGESTS[folder]
        for item in cohort.items[:: max(1, len(cohort) // 25)]:
            recording = pickle.loads(pickle.dumps(item)).load()  # as a worker gets it
            assert recording.key == item.key
            check_counts(recording, recording.counts["rows"])


SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)

# Each layout: file name, options, header lines, and a row of (time in ms, lost). Gaze is in the
# middle and moves a little.
Row = Callable[[float, bool], str]


def _vive(t: float, lost: bool) -> str:
    eye = "0;0;0" if lost else f"0.0{int(t) % 7};0;0.99"
    return (
        f"{638342802882596202 + int(t * 10000)};{8 if lost else 31};{8 if lost else 31};{eye};"
        f"{eye};1;1;1;0.5;10;0.5"
    )


def _pico(t: float, lost: bool) -> str:
    return f"U\tV\t{t / 1000:.4f}\t1\t2\t3\t" + ("0\t0\t0" if lost else "0.01\t0.02\t0.99")


def _unity(t: float, lost: bool) -> str:
    eye = "NaN,NaN,NaN" if lost else "0.1,0.1,0.98"
    return f"{int(t * 1000)},{int(t)},0,0.5,0,0.8,{eye},{eye},{not lost},{not lost}"


def _tx300(t: float, lost: bool) -> str:
    return f"{int(t * 1000)}\t" + ("-1\t-1\t4\t-1\t-1\t4" if lost else "0.5\t0.5\t0\t0.5\t0.5\t0")


def _lab(t: float, lost: bool) -> str:
    return f"{int(t * 1000)}\tA\t" + ("\t\tInvalid" if lost else "960\t540\tValid")


def _smi(t: float, lost: bool) -> str:
    return f"{int(t * 1000)}\tSMP\t1\t" + ("0.00\t0.00" if lost else f"{840 + int(t) % 5}\t525")


def _asc(t: float, lost: bool) -> str:
    return f"{t:g}\t" + (
        "   .\t   .\t    0.0\t..." if lost else f"  {960 + int(t) % 5}.0\t  540.0\t  500.0\t..."
    )


def _core(t: float, lost: bool) -> str:
    return f"{t / 1000:.4f},0,{0 if lost else 0.9},0.5,0.5"


def _cloud(t: float, lost: bool) -> str:
    return f"{int(t * 1e6)},500,500,{0 if lost else 1},5,1"


def _glasses(t: float, lost: bool) -> str:
    eye = {"gazedirection": [0.1, 0.0, 0.99], "pupildiameter": 3.0}
    return json.dumps(
        {
            "type": "gaze",
            "timestamp": t / 1000,
            "data": {} if lost else {"eyeleft": eye, "eyeright": eye},
        }
    )


def _csv(t: float, lost: bool) -> str:
    return f"{t:g}," + ("," if lost else "960,540")


ASC_HEADER = (
    "** CONVERTED FROM x using edfapi\nSTART\t1"
    " \tLEFT\tSAMPLES\tEVENTS\nSAMPLES\tGAZE\tLEFT\tRATE\t 100.00\tTRACKING\tCR\n"
)
VIVE_HEADER = (
    "time(100ns);eye_valid_L;eye_valid_R;gaze_direct_L.x;gaze_direct_L.y;gaze_direct_L.z;"
    "gaze_direct_R.x;gaze_direct_R.y;gaze_direct_R.z"
)
LAYOUTS: dict[str, tuple[str, dict[str, object], str, Row]] = {
    "vive-pro-eye": (
        "A_b.csv",
        {},
        VIVE_HEADER
        + ";helmet_pos_x;helmet_pos_y;helmet_pos_z;helmet_rot_x;helmet_rot_y;helmet_rot_z\n",
        _vive,
    ),
    "pico": (
        "a.csv",
        {},
        (
            "User Name\tVideo Name\tTimeline\tHead Rotation. x\tHead Rotation. y\tHead Rotation. z"
            "\tCombine Eye Gaze Vector. x\tCombine Eye Gaze Vector. y\tCombine Eye Gaze Vector. z\n"
        ),
        _pico,
    ),
    "unity-hmd": (
        "a.csv",
        {},
        (
            "OcutimeStamp,UnityTimeStamp,cameraRotation.x,cameraRotation.y,cameraRotation.z,"
            "cameraRotation.w,leftEyeDirection.x,leftEyeDirection.y,"
            "leftEyeDirection.z,rightEyeDirection.x,rightEyeDirection.y,rightEyeDirection.z,"
            "valL,valR\n"
        ),
        _unity,
    ),
    "tobii-sdk": (
        "p/a.tsv",
        {},
        "Time\tLGazePos2dx\tLGazePos2dy\tLValidity\tRGazePos2dx\tRGazePos2dy\tRValidity\n",
        _tx300,
    ),
    "tobii-tsv": (
        "a.tsv",
        {"screen": SCREEN},
        (
            "Recording timestamp [μs]\tParticipant name\tGaze point left X\tGaze point left"
            " Y\tValidity left\n"
        ),
        _lab,
    ),
    "smi": (
        "a.txt",
        {},
        "## Sample Rate:\t100\n##\nTime\tType\tTrial\tL POR X [px]\tL POR Y [px]\n",
        _smi,
    ),
    "eyelink-asc": ("a.asc", {"screen": SCREEN}, ASC_HEADER, _asc),
    "pupil-core": (
        "gaze_positions.csv",
        {},
        "gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y\n",
        _core,
    ),
    "pupil-invisible": (
        "gaze.csv",
        {},
        "timestamp [ns],gaze x [px],gaze y [px],worn,azimuth [deg],elevation [deg]\n",
        _cloud,
    ),
    "pupil-neon": (
        "gaze.csv",
        {},
        "timestamp [ns],gaze x [px],gaze y [px],worn,azimuth [deg],elevation [deg]\n",
        _cloud,
    ),
    "tobii-glasses3": ("gazedata", {}, "", _glasses),
    "csv": ("a.csv", {"screen": SCREEN}, "t_ms,x_px,y_px\n", _csv),
}

everywhere = pytest.mark.parametrize("name", LAYOUTS)


def make(
    tmp_path: Path, name: str, times: list[float], lost: bool | list[bool] = False, **how: object
) -> Path:
    file, _, header, row = LAYOUTS[name]
    flags = lost if isinstance(lost, list) else [lost] * len(times)
    text = header + "".join(row(t, gone) + "\n" for t, gone in zip(times, flags, strict=True))
    text = str(how.get("change", lambda t: t)(text))  # type: ignore[operator]
    path = tmp_path / "folder" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(str(how.get("encoding", "utf-8"))))
    return path


def read(path: Path, name: str) -> list[Recording]:
    return list(gazeveil.read(path, format=name, **LAYOUTS[name][1]))


TIMES = [1000.0 + 10 * i for i in range(40)]


@everywhere
def test_the_layout_itself_is_read(tmp_path: Path, name: str) -> None:
    (recording,) = read(make(tmp_path, name, TIMES, [i % 4 == 3 for i in range(40)]), name)
    assert len(recording) == 40 == recording.counts["rows"]
    assert recording.valid.tolist() == [i % 4 != 3 for i in range(40)]
    assert recording.rate_hz == 100


@everywhere
def test_an_empty_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    path = make(tmp_path, name, [])
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="the file is empty") as caught:
        read(path, name)
    assert str(path) in str(caught.value)


@everywhere
def test_a_cut_archive_is_one_sentence(tmp_path: Path, name: str) -> None:
    path = make(tmp_path, name, TIMES * 20)
    whole = gzip.compress(path.read_bytes())
    zipped = path.with_name(path.name + ".gz")
    zipped.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="the gzip archive ends early"):
        read(zipped, name)


@pytest.mark.parametrize("name", [n for n in LAYOUTS if n != "tobii-glasses3"])
def test_a_header_alone_is_a_recording_without_samples(tmp_path: Path, name: str) -> None:
    (recording,) = read(make(tmp_path, name, []), name)
    assert len(recording) == 0
    assert recording.counts["rows"] == 0
    assert np.isnan(recording.rate_hz) or name in ("eyelink-asc", "smi")


@everywhere
def test_one_sample_is_a_recording(tmp_path: Path, name: str) -> None:
    (recording,) = read(make(tmp_path, name, TIMES[:1]), name)
    assert len(recording) == 1
    assert recording.valid.tolist() == [True]


@everywhere
def test_times_that_repeat_or_go_back_are_kept_and_marked(tmp_path: Path, name: str) -> None:
    times = [*TIMES[:10], TIMES[9], *TIMES[10:20], TIMES[5], *TIMES[20:]]
    (recording,) = read(make(tmp_path, name, times), name)
    assert len(recording) == 42
    assert np.count_nonzero(~recording.valid) == 2 == recording.metadata["time_faults"]


@everywhere
def test_utf16_and_crlf_change_nothing(tmp_path: Path, name: str) -> None:
    (plain,) = read(make(tmp_path, name, TIMES), name)
    for how in (
        {"encoding": "utf-16"},
        {"change": lambda t: t.replace("\n", "\r\n")},
        {"change": lambda t: t + "\n\n"},
        {"encoding": "utf-8-sig"},
    ):
        (other,) = read(make(tmp_path, name, TIMES, **how), name)
        assert (other.t_ns == plain.t_ns).all()
        assert (other.valid == plain.valid).all()
        np.testing.assert_array_equal(other.x_deg, plain.x_deg)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("vive-pro-eye", "0.99", "inf"),
        ("pico", "0.99", "NaN"),
        ("unity-hmd", "0.98", "Infinity"),
        ("tobii-sdk", "\t0.5", "\tNaN"),
        ("tobii-tsv", "960", "nan"),
        ("smi", "525", "-"),
        ("csv", "960", "-inf"),
        ("pupil-invisible", ",5,1", ",nan,nan"),
        ("pupil-core", "0.5,0.5", "nan,inf"),
    ],
)
def test_nan_and_infinity_are_lost_samples(tmp_path: Path, name: str, old: str, new: str) -> None:
    (recording,) = read(make(tmp_path, name, TIMES, change=lambda t: t.replace(old, new)), name)
    assert len(recording) == 40
    assert not recording.valid.any()


@everywhere
def test_a_cut_last_row_names_its_line(tmp_path: Path, name: str) -> None:
    header = LAYOUTS[name][2]
    # What is left of the last row is its time and one character more.
    cut = {"tobii-glasses3": 20}.get(
        name,
        len(LAYOUTS[name][3](TIMES[-1], False).replace(";", "\t").replace(",", "\t").split("\t")[0])
        + 2,
    )
    path = make(
        tmp_path,
        name,
        TIMES,
        change=lambda t: "\n".join(t.split("\n")[:-2]) + "\n" + t.split("\n")[-2][:cut],
    )
    with pytest.raises(
        FormatError, match=rf"line {header.count(chr(10)) + 40}: .*\. (The file was cut|Mend)"
    ):
        read(path, name)


@pytest.mark.parametrize(
    "name",
    [
        "vive-pro-eye",
        "pico",
        "unity-hmd",
        "tobii-sdk",
        "tobii-tsv",
        "eyelink-asc",
        "smi",
        "csv",
        "pupil-core",
        "pupil-neon",
    ],
)
def test_a_word_where_a_number_should_be_names_its_line(tmp_path: Path, name: str) -> None:
    words = {
        "vive-pro-eye": "0.99",
        "pico": "0.99",
        "unity-hmd": "0.98",
        "tobii-sdk": "0.5",
        "tobii-tsv": "960",
        "smi": "525",
        "csv": "960",
    }
    words |= {"eyelink-asc": "540.0", "pupil-core": "0.9", "pupil-neon": ",5,"}
    header = LAYOUTS[name][2]

    def spoil(text: str) -> str:
        lines = text.split("\n")
        at = header.count("\n") + 2
        lines[at] = lines[at].replace(words[name], ",what," if name == "pupil-neon" else "what", 1)
        return "\n".join(lines)

    path = make(tmp_path, name, TIMES, change=spoil)
    with pytest.raises(FormatError, match=rf"line {header.count(chr(10)) + 3}: .*what"):
        read(path, name)


@pytest.mark.parametrize("name", ["eyelink-asc", "tobii-tsv", "smi"])
def test_gaze_far_off_the_screen_stays_what_it_is(tmp_path: Path, name: str) -> None:
    old = {"eyelink-asc": "540.0", "tobii-tsv": "540", "smi": "525"}[name]
    (recording,) = read(make(tmp_path, name, TIMES, change=lambda t: t.replace(old, "5000")), name)
    assert recording.valid.all()
    assert (recording.y_deg > 40).all()


def test_raw_pupil_samples_of_eyelink_are_refused(tmp_path: Path) -> None:
    path = make(
        tmp_path,
        "eyelink-asc",
        TIMES,
        change=lambda t: t.replace("SAMPLES\tGAZE", "SAMPLES\tPUPIL"),
    )
    with pytest.raises(FormatError, match=r"line 3: .*raw pupil"):
        read(path, "eyelink-asc")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("smi", "1050000\t", "# a comment\n1050000\t"),
        ("eyelink-asc", "1050\t", "** a comment\n1050\t"),
    ],
)
def test_comment_lines_in_the_data_are_not_rows(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    (recording,) = read(make(tmp_path, name, TIMES, change=lambda t: t.replace(old, new)), name)
    assert len(recording) == 40
