"""Files that were cut, emptied or made to harm: each has a documented result or one sentence that
names file, line and remedy.
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

from gazeveil.errors import FormatError, GazeveilError
from gazeveil.io.reading import read
from tests.support.dataset_files import SNIFFED, run

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
