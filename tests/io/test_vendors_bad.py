"""Bad input, for every vendor reader: a documented result, or one sentence that names the file, the
line and the remedy.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording

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
