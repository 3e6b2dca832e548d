"""Gazepoint, Varjo, Quest Pro, and Tobii's SDK, Studio 2 and Glasses 2, on small files made by
their published layouts, with the traps that such files hold.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.io.conformance import check_format
from gazeveil.io.registry import get, sniff

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
N = 40


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The people were taken from folders or file names")
        yield


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- the files


def gazepoint(folder: Path) -> Path:
    head = "MEDIA_ID,MEDIA_NAME,CNT,TIME(2026/01/02 10:00:00.000),TIMETICK(f=10000000),"
    head += "FPOGX,FPOGY,FPOGS,FPOGD,FPOGID,FPOGV,BPOGX,BPOGY,BPOGV,LPMM,LPMMV,RPMM,RPMMV,AOI,\n"
    rows = ""
    for i in range(N):
        valid = int(i != 5)
        x, y = (0.5 + i / 1000, 0.25) if valid else (0.0, 0.0)
        rows += f"0,cat.png,{i},{i / 60:.5f},{1000 + i},0.5,0.5,0.1,0.2,1,1,"
        rows += f"{x:.5f},{y:.5f},{valid},3.0,1,3.2,{valid},,\n"
    return put(folder / "User 3_all_gaze.csv", head + rows)


VARJO = (
    "raw_timestamp,relative_to_unix_epoch_timestamp,relative_to_video_first_frame_timestamp,"
    "focus_distance,frame_number,stability,status,gaze_forward_x,gaze_forward_y,gaze_forward_z,"
    "left_forward_x,left_forward_y,left_forward_z,left_status,right_forward_x,right_forward_y,"
    "right_forward_z,right_status,left_pupil_diameter_in_mm,right_pupil_diameter_in_mm\n"
)


def varjo(folder: Path) -> Path:
    rows = ""
    for i in range(N):
        status, eye = (0, 0) if i == 5 else (1, 1) if i == 6 else (2, 3)
        lost = "-nan(ind),-nan(ind),-nan(ind)" if i == 5 else "0.1,0.2,0.97"
        rows += f"{9_000_000_000 + 5_000_000 * i},17000000000000000{i:02d},{-10 + i},1.0,{i},1,"
        rows += f"{status},{lost},{lost},{eye},{lost},{eye},3.1,3.3\n"
    return put(folder / "varjo_gaze_output_2026.csv", VARJO + rows)


def tobii_sdk(folder: Path, tuples: bool = True) -> Path:
    names = ["device_time_stamp", "system_time_stamp"]
    for side in ("left", "right"):
        for name, axes in (
            ("gaze_point_on_display_area", "xy"),
            ("gaze_point_in_user_coordinate_system", "xyz"),
            ("gaze_origin_in_user_coordinate_system", "xyz"),
        ):
            names += [f"{side}_{name}"] if tuples else [f"{side}_{name}_{a}" for a in axes]
        names += [f"{side}_gaze_point_validity", f"{side}_pupil_diameter", f"{side}_pupil_validity"]
    lines = ["\t".join(names)]
    for i in range(N):
        valid = i != 5
        # On both axes, and not on one line, as gaze does.
        fraction = (0.2 + i / 100, 0.3 + (i % 7) / 100) if valid else (np.nan, np.nan)
        user = (480 * (fraction[0] - 0.5), 200 - 270 * fraction[1], 0.0)
        cells = [f"{7_000_000 + 8333 * i}", f"{900 + i}"]
        for _ in range(2):
            for value in (fraction, user, (10.0, 30.0, 620.0)):
                cells += [str(tuple(value))] if tuples else [str(v) for v in value]
            cells += [str(int(valid)), "3.0", str(int(valid))]
        lines.append("\t".join(cells))
    return put(folder / "gaze.tsv", "\n".join(lines) + "\n")


def glasses2(folder: Path) -> Path:
    lines: list[dict[str, object]] = []
    for i in range(N):
        status = 3 if i == 5 else 0
        for eye in ("left", "right"):
            direction = [0.0, 0.0, 0.0] if i == 5 else [-0.1, 0.2, 0.97]
            base: dict[str, object] = {"ts": 20_000 * i + 100, "s": status, "gidx": i}
            lines.append({**base, "gd": direction, "eye": eye})
            lines.append({**base, "pd": 0 if i == 5 else 3.0, "eye": eye})
        lines.append({"ts": 20_000 * i + 90, "s": status, "gidx": i, "gp": [0.5, 0.5]})
    place = folder / "recordings" / "abc" / "segments" / "1" / "livedata.json.gz"
    place.parent.mkdir(parents=True)
    put(folder / "recordings" / "abc" / "participant.json", '{"pa_info": {"Name": "P 7"}}')
    place.write_bytes(gzip.compress("\n".join(json.dumps(x) for x in lines).encode()))
    return place


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "gazepoint": gazepoint,
    "varjo": varjo,
    "tobii-sdk": tobii_sdk,
    "tobii-glasses2": glasses2,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_kit_passes(tmp_path: Path, name: str) -> None:
    results = check_format(get(name), SAMPLES[name](tmp_path))
    assert [f"{r.check}: {p}" for r in results for p in r.problems] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_files_are_known_and_one_sample_is_lost(tmp_path: Path, name: str) -> None:
    path = SAMPLES[name](tmp_path)
    found = sniff(path)
    assert found.name == name
    (recording,) = gazeveil.read(path)
    assert len(recording) == N
    lost = {"varjo": [5, 6]}.get(name, [5])
    assert np.flatnonzero(~recording.valid).tolist() == lost
    rates = {"gazepoint": 60, "varjo": 200, "tobii-sdk": 120}
    assert recording.rate_hz == pytest.approx(rates.get(name, 50), rel=0.02)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_row_that_was_cut_is_named(tmp_path: Path, name: str) -> None:
    path = SAMPLES[name](tmp_path)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    whole = text.rstrip("\n").split("\n")
    changed = [*whole[:-1], whole[-1][: len(whole[-1]) // 2]]
    path.write_bytes("\n".join(changed).encode())
    with pytest.raises(FormatError, match=r"line \d+|cells|not JSON"):
        list(gazeveil.read(path, format=name))


# --- what each of them means


def test_gazepoint_is_a_fraction_of_the_screen_and_not_its_fixation_filter(tmp_path: Path) -> None:
    path = gazepoint(tmp_path)
    (recording,) = gazeveil.read(path, screen=SCREEN)
    assert recording.key[:2] == ("User 3", "cat.png")
    x, y = SCREEN.from_px([0.51 * 1920], [0.25 * 1080])
    assert recording.x_deg[10] == pytest.approx(x[0])
    assert recording.y_deg[10] == pytest.approx(y[0])
    assert recording.y_deg[10] < 0  # the upper half
    assert recording.pupil[0] == pytest.approx(3.1)
    assert recording.pupil[5] == pytest.approx(3.0)  # the right one was not valid
    assert "assumed_geometry" not in recording.metadata
    with pytest.warns(UserWarning, match="Assumed a screen"):
        assert gazeveil.read(path)[0].metadata["assumed_geometry"]
    fixations = put(tmp_path / "User 3_fixations.csv", path.read_text())
    assert not get("gazepoint").knows(fixations)
    with pytest.raises(FormatError, match="it holds fixations"):
        gazeveil.read(fixations, format="gazepoint")


def test_varjo_looks_right_and_up_where_x_and_y_grow(tmp_path: Path) -> None:
    (recording,) = gazeveil.read(varjo(tmp_path))
    assert isinstance(recording.space, Sphere)
    assert recording.x_deg[0] > 180
    assert recording.y_deg[0] < 90
    assert recording.left_deg is not None
    assert recording.pupil[0] == pytest.approx(3.2)
    assert recording.metadata["frame"] == "head"


@pytest.mark.parametrize("tuples", [True, False])
def test_tobii_sdk_measures_its_screen(tmp_path: Path, tuples: bool) -> None:
    path = tobii_sdk(tmp_path, tuples)
    (recording,) = gazeveil.read(path)
    assert recording.space.width_mm == pytest.approx(480)
    assert recording.space.height_mm == pytest.approx(270)
    assert recording.space.distance_mm == pytest.approx(621, abs=1)
    assert recording.metadata["geometry"] == "measured"
    assert recording.x_deg[30] == pytest.approx(0, abs=1e-9)
    assert recording.x_deg[0] == pytest.approx(
        -np.degrees(np.arctan(0.3 * 480 / recording.space.distance_mm))
    )
    assert recording.y_deg[0] < 0
    (given,) = gazeveil.read(path, screen=SCREEN)
    assert given.space == SCREEN


def test_tobii_sdk_without_user_coordinates_says_what_it_assumed(tmp_path: Path) -> None:
    text = "device_time_stamp,left_gaze_point_on_display_area,left_gaze_point_validity\n"
    text += '0,"(0.5, 0.5)",1\n8333,"(0.6, 0.5)",1\n16666,"(nan, nan)",0\n'
    (recording,) = gazeveil.read(put(tmp_path / "a.csv", text))
    assert recording.metadata["assumed_geometry"]
    assert recording.valid.tolist() == [True, True, False]
    assert recording.right_deg is None
    bad = put(tmp_path / "b.csv", text.replace("(0.6, 0.5)", "(0.6; 0.5)"))
    with pytest.raises(FormatError, match="is not a point of 2 numbers"):
        list(gazeveil.read(bad, format="tobii-sdk"))


def test_glasses_2_joins_the_lines_of_a_sample(tmp_path: Path) -> None:
    path = glasses2(tmp_path)
    (recording,) = gazeveil.read(path)
    assert recording.key[:3] == ("P 7", "abc", "1")
    assert recording.x_deg[0] > 180  # Tobii's x points left
    assert recording.y_deg[0] < 90
    assert recording.t_ns[1] == 20_090_000
    assert recording.pupil[0] == 3.0
    assert np.isnan(recording.pupil[5])
    text = gzip.decompress(path.read_bytes()).decode()
    more = '{"ts":5,"s":0,"ac":[0,9.8,0]}\n{"ts":7,"s":0,"ets":1,"type":"Event","tag":"go"}\n'
    path.write_bytes(gzip.compress((more + text).encode()))
    (again,) = gazeveil.read(path)
    assert [m.text for m in again.messages] == ["Event go"]
    assert again.counts["other_lines"] == 2
    for bad, words in (
        ('{"s":0,"gidx":1}', "has no time"),
        ('{"ts":1e400,"s":0}', "has no time"),
        ('{"ts":1,"s":0,"gidx":1,"gd":[1,2],"eye":"left"}', "is not a direction"),
        ('{"ts":1,', "not JSON"),
    ):
        path.write_bytes(gzip.compress((text + "\n" + bad).encode()))
        with pytest.raises(FormatError, match=words):
            list(gazeveil.read(path))
