"""Neon's native recordings through Pupil Labs' own package, from folders written here byte by byte
as the phone writes them.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.io.vendors import neon_native

# `pupil_labs` alone may be another package of theirs, for instance pupil-labs-realtime-api
needs_package = pytest.mark.skipif(
    find_spec("pupil_labs") is None or find_spec("pupil_labs.neon_recording") is None,
    reason="needs pupil-labs-neon-recording",
)

RATE_HZ, COUNT = 200, 400
BEGIN_NS = 1_763_000_000_000_000_000
MATRIX = np.array([[890.0, 0, 812], [0, 891, 605], [0, 0, 1]])
#: Of the size that Neon's lenses have.
LENS = np.array([-0.13, 0.108, 0.0003, -0.0005, 0.0008, 0.17, 0.053, 0.024])


def distorted(right: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Pixels where rays through the plane at distance 1 are seen, as OpenCV's manual has it."""
    k1, k2, p1, p2, k3, k4, k5, k6 = LENS
    r2 = right**2 + down**2
    grown = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
    x = right * grown + 2 * p1 * right * down + p2 * (r2 + 2 * right**2)
    y = down * grown + p1 * (r2 + 2 * down**2) + 2 * p2 * right * down
    return np.stack((x * 890 + 812, y * 891 + 605), axis=1)


def rays() -> tuple[np.ndarray, np.ndarray]:
    turn = np.linspace(0, 6 * np.pi, COUNT)
    return 0.6 * np.sin(turn), 0.45 * np.cos(turn)


def write(folder: Path, name: str, *arrays: np.ndarray) -> None:
    (folder / name).write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))


def native(folder: Path, calibration: bool = True) -> Path:
    folder.mkdir(parents=True)
    t = BEGIN_NS + np.arange(COUNT, dtype="<i8") * (10**9 // RATE_HZ)
    half = COUNT // 2
    px = distorted(*rays()).astype("<f4")
    # the phone begins a new part when its camera was lost
    write(folder, "gaze ps1.raw", px[:half])
    write(folder, "gaze ps1.time", t[:half])
    write(folder, "gaze ps2.raw", px[half:])
    write(folder, "gaze ps2.time", t[half:])
    worn = np.full(COUNT, 255, dtype="u1")
    worn[-20:] = 0
    write(folder, "worn ps1.raw", worn[:half])
    write(folder, "worn ps2.raw", worn[half:])
    blink = np.array([(t[10], t[14])], dtype=[("a", "<i8"), ("b", "<i8")])
    write(folder, "blinks ps1.raw", blink)
    write(folder, "blinks ps1.time", t[14:15])
    eyes = np.zeros((COUNT, 14), dtype="<f4")
    eyes[:, 0], eyes[:, 7] = 3.0, 4.0
    write(folder, "eye_state ps1.raw", eyes)
    write(folder, "eye_state ps1.time", t + 1000)
    (folder / "event.txt").write_text("recording.begin\nlook left\n", encoding="utf-8")
    write(folder, "event.time", t[[0, 100]])
    info = {"start_time": BEGIN_NS, "app_version": "2.9.32-prod", "module_serial_number": "123"}
    (folder / "info.json").write_text(json.dumps(info), encoding="utf-8")
    wearer = {"uuid": "u", "name": "Wearer 1"}
    (folder / "wearer.json").write_text(json.dumps(wearer), encoding="utf-8")
    if calibration:
        camera = (MATRIX.ravel(), LENS, np.eye(4).ravel())
        doubles = np.concatenate([np.concatenate(camera)] * 3).astype("<f8")
        (folder / "calibration.bin").write_bytes(b"\x01123456" + doubles.tobytes() + bytes(4))
    return folder


@needs_package
def test_a_native_recording_is_read_with_the_lens_taken_out(tmp_path: Path) -> None:
    native(tmp_path / "walk")
    (recording,) = gazeveil.read(tmp_path, format="pupil-neon-native")
    assert recording.key == ("Wearer 1", "walk", "1", "")
    assert len(recording) == COUNT
    assert recording.rate_hz == pytest.approx(RATE_HZ)
    right, down = rays()
    expected = gazeveil.Sphere().degrees(np.stack((right, -down, np.ones(COUNT)), axis=1))
    np.testing.assert_allclose(recording.x_deg, expected[0], atol=0.01)
    np.testing.assert_allclose(recording.y_deg, expected[1], atol=0.01)
    assert np.flatnonzero(~recording.valid).tolist() == [*range(10, 15), *range(COUNT - 20, COUNT)]
    assert set(recording.labels["pupil-labs"].tolist()) == {"undefined", "blink"}
    np.testing.assert_allclose(recording.pupil, 3.5)
    assert [m.text for m in recording.messages] == ["recording.begin", "look left"]
    assert "assumed_geometry" not in recording.metadata
    assert "123" not in str(recording.metadata), "no serial number"


@needs_package
def test_a_native_folder_is_known_and_without_calibration_says_so(tmp_path: Path) -> None:
    native(tmp_path / "walk", calibration=False)
    (recording,) = gazeveil.read(tmp_path)
    assert recording.metadata["assumed_geometry"] is True
    right = rays()[0]
    # the nominal camera is a few degrees off at the edge, and right in the middle
    middle = np.abs(right) < 0.1
    expected = 180 + np.degrees(np.arctan(right))
    np.testing.assert_allclose(recording.x_deg[middle], expected[middle], atol=1.5)


@needs_package
def test_gaze_at_200_hz_of_the_cloud_is_preferred(tmp_path: Path) -> None:
    folder = native(tmp_path / "walk")
    px = np.full((10, 2), 812.0, dtype="<f4")
    px[:, 1] = 605
    write(folder, "gaze_200hz.raw", px)
    write(folder, "gaze_200hz.time", BEGIN_NS + np.arange(10, dtype="<i8") * 5_000_000)
    (recording,) = gazeveil.read(tmp_path, format="pupil-neon-native")
    assert len(recording) == 10
    np.testing.assert_allclose(recording.x_deg, 180, atol=1e-6)
    np.testing.assert_allclose(recording.y_deg, 90, atol=1e-6)


@needs_package
def test_damaged_folders_are_one_sentence(tmp_path: Path) -> None:
    folder = native(tmp_path / "walk")
    (folder / "calibration.bin").write_bytes(b"short")
    with pytest.raises(FormatError, match="cannot read it"):
        gazeveil.read(folder, format="pupil-neon-native")[0]
    for path in folder.glob("gaze*"):
        path.write_bytes(b"")
    with pytest.raises(FormatError, match=r"no gaze|cannot read it"):
        gazeveil.read(folder, format="pupil-neon-native")[0]


def test_another_folder_and_a_missing_package_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError):
        list(neon_native.scan(tmp_path / "empty", tmp_path))

    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    folder = native(tmp_path / "walk")
    monkeypatch.setattr(neon_native, "import_module", missing)
    (handle,) = neon_native.scan(folder, tmp_path)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[neon\]"):
        handle.load()
