"""Vendor readers on the vendors' own files: every row counted, and gaze that can only come from the
right axes.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import gazeveil
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
