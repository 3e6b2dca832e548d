"""What the papers take of their datasets: conditions, clips, screens and intervals, by options of
the readers, on small files in the published layouts.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from gazeveil import read
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.geometry import Sphere
from gazeveil.io.datasets import mpii
from gazeveil.io.known import known_table
from tests.support import paper_files

SCREEN = known_table("gazebase-vr").screen

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (("01_a_q7Zx9-YwTb1", "02_b_Ab3dEf6hIj9", "03_c_00000000000", "04_target"), {"04_target"}),
        (("01_park", "02_sea", "15_synthetic"), {"15_synthetic"}),
        # Names that do not tell leave nothing out.
        (("01_park", "02_sea", "03_hill"), set()),
        (("01_park", "02_b_Ab3dEf6hIj9"), set()),
    ],
)
def test_the_clip_that_the_authors_of_360_em_made_is_left_out(
    tmp_path: Path, names: tuple[str, ...], left_out: set[str]
) -> None:
    paper_files.em360(tmp_path, people=1, videos=1, seconds=1)
    text = next((tmp_path / "360-em").rglob("*target.arff")).read_text()
    folder = tmp_path / "renamed"
    for name in names:
        (folder / "gaze" / name).mkdir(parents=True)
        (folder / "gaze" / name / f"007_{name}.arff").write_text(text)
    assert set(read(folder, "360-em").stimuli) == set(names)
    assert set(read(folder, "360-em", synthetic=False).stimuli) == set(names) - left_out
    with pytest.raises(ParameterError, match="synthetic"):
        read(folder, "360-em", synthetic="no")


def test_one_condition_of_vr_saliency_can_be_taken(tmp_path: Path) -> None:
    count = paper_files.vr_saliency(tmp_path, named=True, people=2, scenes=2)
    folder = tmp_path / "vr-saliency"
    assert len(read(folder)) == 2 * count
    seated = read(folder / "seated_vr", "vr-saliency")
    assert len(seated) == count
    assert {key[2:] for key in seated.keys} == {("1", "seated_vr")}
    assert seated.stimuli == ("cubemap_0000", "cubemap_0001")
    assert seated[0].rate_hz == 120


def test_intervals_of_frames_lie_beside_the_files_or_one_note_says_what_is_assumed(
    tmp_path: Path,
) -> None:
    paper_files.vr_eyetracking(tmp_path, people=2, videos=3, seconds=1)
    folder = tmp_path / "vr-eyetracking"
    for place in (folder, folder / "Gaze_txt_files"):  # the file lies in it, or beside it
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            assert {r.rate_hz for r in read(place, "vr-eyetracking")} == {25.0}
    (folder / "frame_interval_s.json").unlink()
    with pytest.warns(UserWarning, match="1/30 s per frame is assumed for every video") as caught:
        cohort = read(folder, "vr-eyetracking")
    assert len(caught) == 1
    assert {round(r.rate_hz) for r in cohort} == {30}


def test_files_that_are_read_with_recordings_are_not_called_left_out(tmp_path: Path) -> None:
    paper_files.et_dk2(tmp_path, people=2, images=2, seconds=1)
    folder = tmp_path / "et-dk2"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        cohort = read(folder, "et-dk2")
    assert cohort[0].metadata["aoi_file"]
    reasons = {Path(s.path).name: s.reason for s in cohort.skipped}
    assert set(reasons.values()) == {"read with the recordings"}
    assert "img_index.csv" in reasons
    (folder / "weather.csv").write_text("day,rain\n1,2\n")
    with pytest.warns(UserWarning, match="1 file was left out: weather.csv"):
        read(folder, "et-dk2")


def test_salient360_keeps_the_eyes_and_the_head_of_an_observer_apart(tmp_path: Path) -> None:
    lines = "0, 0.5, 0.5, 0.0\n1, 0.6, 0.5, 0.4\n0, 0.1, 0.4, 0.0\n1, 0.2, 0.4, 0.5\n"
    for place in ("HE/Scanpaths/L", "HE/Scanpaths/R", "H/Scanpaths"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "HEscanpath_1.txt").write_text(lines)
    cohort = read(tmp_path, "salient360")
    assert len(set(cohort.keys)) == len(cohort) == 6
    assert {key[2] for key in cohort.keys} == {"left", "right", "head"}
    assert {r.metadata["tracked"] for r in cohort if r.session == "head"} == {"head"}
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "P1.txt").write_text(lines)
    assert {key[2] for key in read(tmp_path / "alone", "salient360").keys} == {"1"}


def test_gazebase_vr_is_on_the_sphere_or_on_its_screen(tmp_path: Path) -> None:
    paper_files.gazebase_vr(tmp_path, people=1, sessions=1)
    folder = tmp_path / "gazebase-vr"
    around, before = read(folder, "gazebase-vr")[0], read(folder, "gazebase-vr", space="screen")[0]
    assert isinstance(around.space, Sphere)
    assert before.space == SCREEN
    assert (SCREEN.width_deg, SCREEN.height_deg) == pytest.approx((47.0, 30.0))
    valid = before.valid
    np.testing.assert_allclose(around.x_deg[valid], 180 + before.x_deg[valid])
    np.testing.assert_allclose(around.y_deg[valid], 90 + before.y_deg[valid])
    with pytest.raises(ParameterError, match="space"):
        read(folder, "gazebase-vr", space="plane")


def test_rows_of_arrays_can_have_names_and_dgaze_its_target(tmp_path: Path) -> None:
    paper_files.dgaze(tmp_path, rows=4)
    paper_files.ehtask(tmp_path, rows=4)
    rows = read(tmp_path / "dgaze", "dgaze", rows_as_people=True, with_target=True)
    assert rows.keys[0] == ("test row 0", "test", "1", "free-viewing")
    assert len({key[0] for key in rows.keys}) == 8
    recording = rows[-1]
    target = np.load(tmp_path / "dgaze" / "trainingY.npy")[3]
    assert (len(recording), recording.t_ns[-1] - recording.t_ns[-2]) == (51, 100_000_000)
    np.testing.assert_allclose([recording.x_deg[-1], recording.y_deg[-1]], target * [1, -1])
    assert len(read(tmp_path / "dgaze", "dgaze")[0]) == 50
    tasks = read(tmp_path / "ehtask", "ehtask", rows_as_people=True)
    assert tasks.keys[0] == ("test row 0", "test", "1", "free-viewing")
    (tmp_path / "dgaze" / "trainingY.npy").unlink()
    with pytest.raises(FormatError, match="gaze to predict is not beside it"):
        read(tmp_path / "dgaze" / "trainingX.npy", "dgaze", with_target=True)


def test_the_annotation_of_windows_goes_by_person_recording_and_window(tmp_path: Path) -> None:
    paper_files.mpiiprivaceye(tmp_path, rows=9)
    folder = tmp_path / "mpiiprivaceye"
    by_window = mpii.privacy_by_window(folder)
    keys = mpii.features(folder)[1]
    labels = mpii.privacy_labels(folder).tolist()
    assert [by_window[k[0], k[1], k[4]] for k in keys] == labels
    assert len(by_window) == len(labels) == 7 * 3 * 9
