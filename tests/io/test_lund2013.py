"""Lund 2013: trials with the labels of two coders, as published and broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.io.reading import read

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
