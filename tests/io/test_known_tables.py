"""Tables that a shipped description reads: Data Viewer, Gorilla, jsPsych, ioHub, XDF; and tables of
many recordings, whose cost grows with their bytes alone.
"""

from __future__ import annotations

import json
import struct
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.gaze.geometry import Screen
from gazeveil.io import known
from gazeveil.io.plain import text
from gazeveil.io.registry import KNOWN, get

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
N = 200


def gaze(seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).normal(0, 6, (N, 2)).cumsum(axis=0)
    return np.round(np.array([960.0, 540.0]) + steps - steps.mean(axis=0), 2)


def read(path: Path, **options: object) -> gazeveil.Cohort:
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
    cohort = read(path)
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
    cohort = read(path)
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
    cohort = read(path)
    assert [k[:2] for k in cohort.keys] == [
        (s, stimulus) for s in ("s7", "s8") for stimulus in ("sea.png", "city.png")
    ]
    assert_gaze(cohort[1], gaze(1), np.zeros(N, dtype=bool))
    path.write_text(path.read_text().replace('{""x""', '{""u""', 1), "utf-8")
    with pytest.raises(FormatError, match="line 2: 'webgazer_data' is no list of x, y and t"):
        read(path)


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
    cohort = read(path, unit="px-centred")
    assert [r.person for r in cohort] == ["K7", "M3"]
    (first, _) = cohort
    assert first.valid.tolist() == (~lost).tolist()
    expected = SCREEN.from_px(*gaze(1).T)
    np.testing.assert_allclose(first.x_deg[~lost], expected[0][~lost], atol=1e-3)
    np.testing.assert_allclose(first.y_deg[~lost], expected[1][~lost], atol=1e-3)
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["something"] = [1, 2]
    with pytest.raises(FormatError, match="no eye samples of ioHub"):
        read(tmp_path / "other.hdf5")


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
    (recording,) = read(path)
    assert_gaze(recording, gaze(), np.zeros(N, dtype=bool))
    assert recording.rate_hz == 60
    two = _xdf(tmp_path / "b.xdf", ["confidence", "norm_pos_x", "norm_pos_y"], values, 2)
    with pytest.raises(FormatError, match=r"there are 2 \(Tracker, Tracker\)"):
        read(two)
    none = _xdf(tmp_path / "c.xdf", ["heart", "skin", "breath"], values)
    with pytest.raises(FormatError, match=r"there are 0 \(none\)"):
        read(none)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(FormatError):
        list(read(path))


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(text, "import_module", missing)
    for name, data, extra in (("a.xdf", b"XDF:", "xdf"), ("a.h5", b"\x89HDF\r\n", "hdf5")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(MissingExtraError, match=rf"gazeveil\[{extra}\]"):
            read(tmp_path / name)


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
        assert sum(len(r) for r in read(path, y_axis="down")) == 120_000
        seconds[path] = time.process_time() - begun
    # 400 recordings cost 300 times the table where each parses it anew; one pass costs a
    # millisecond or two for each.
    assert seconds[many] < 20 * seconds[few] + 1
