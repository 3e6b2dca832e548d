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
from gazeveil.io import registry
from gazeveil.io.parsing import headset
from gazeveil.io.source import Head
from tests.support.reading_digest import digest
from tests.support.recordings import real


def lines_of(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode("utf-8").splitlines() if line.strip()]


def check_counts(recording: Recording, rows: int) -> None:
    assert recording.counts["rows"] == rows
    assert len(recording) + sum(v for k, v in recording.counts.items() if k != "rows") == rows


def speed(recording: Recording) -> np.ndarray:
    v, dt = recording.vectors, np.diff(recording.t_ns) / 1e9
    whole = recording.valid[1:] & recording.valid[:-1] & (dt > 0)
    return angle_deg(v[1:], v[:-1])[whole] / dt[whole]


def eye_distance(recording: Recording) -> float:
    assert recording.left_deg is not None
    assert recording.right_deg is not None
    left, right = (
        recording.space.vectors(e[:, 0], e[:, 1]) for e in (recording.left_deg, recording.right_deg)
    )
    return float(np.nanmedian(angle_deg(left, right)))


SAMPLES = {
    "vive-pro-eye": ("HTC_Vive_Pro", 7),  # one more has no rows and is left out
    "pico": ("Pico_Neo_3_Pro", 1),
    "unity-hmd": ("salient360_hmd", 4),
    "tobii-sdk": ("tobii_tx300_i2mc", 10),
    "tobii-glasses3": ("Tobii_Pro_Glasses_3", 1),
    "pupil-invisible": ("Pupil_Invisible", 1),
    "csv": ("tsv_multi", 7),
    "eyelink-asc": ("eyelink_asc", 16),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_folder_is_read_by_name_and_its_handles_travel_to_workers(name: str) -> None:
    folder, count = SAMPLES[name]
    cohort = gazeveil.read(real("vendor_samples", folder), format=name)
    assert len(cohort) == count
    for item in cohort.items:
        loaded = pickle.loads(pickle.dumps(item)).load()
        assert loaded.key == item.key
        assert (
            len(loaded) + sum(v for k, v in loaded.counts.items() if k != "rows")
            == loaded.counts["rows"]
        )


@pytest.mark.parametrize("name", SAMPLES)
def test_only_its_own_format_among_the_vendors_knows_a_sample_file(name: str) -> None:
    folder, _ = SAMPLES[name]
    vendors = [
        "eyelink-asc",
        "tobii-glasses3",
        "tobii-sdk",
        "tobii-tsv",
        "pupil-neon",
        "pupil-invisible",
        "pupil-core",
        "smi",
    ]
    vendors += ["vive-pro-eye", "pico", "unity-hmd", "csv"]
    known = 0
    for path in sorted(p for p in real("vendor_samples", folder).rglob("*") if p.is_file()):
        head = Head.of(path)
        hits = [v for v in vendors if registry.get(v).sniff(head)]
        if hits:
            known += 1
            assert hits[0] == name
    assert known > 0


# --- headsets
# --------------------------------------------------------------------------------------------------


def test_vive_rows_are_all_samples_and_names_come_from_the_file_name() -> None:
    folder = real("vendor_samples", "HTC_Vive_Pro")
    cohort = gazeveil.read(folder, format="vive-pro-eye")
    assert ("TESTNA01", "360VR_Fist3", "1", "") in cohort.keys
    for item, recording in zip(cohort.items, cohort, strict=True):
        check_counts(recording, len(lines_of(Path(item.source))) - 1)
        if recording.valid.sum() > 0.5 * max(len(recording), 1):
            assert recording.rate_hz == 120
            assert eye_distance(recording) < 5
            assert recording.eye_in_head_deg is not None
            assert np.nanpercentile(np.hypot(*recording.eye_in_head_deg.T), 95) < 40
            assert np.median(speed(recording)) < 70


def test_a_vive_file_with_nothing_but_a_header_is_a_recording_without_samples() -> None:
    (recording,) = gazeveil.read(
        real("vendor_samples", "HTC_Vive_Pro", "TESTVA03_2D_Spread9.csv"), format="vive-pro-eye"
    )
    assert len(recording) == 0
    assert recording.counts["rows"] == 0
    assert np.isnan(recording.rate_hz)


def test_a_vive_helmet_pose_of_zeros_is_lost_and_not_straight_ahead() -> None:
    (recording,) = gazeveil.read(
        real("vendor_samples", "HTC_Vive_Pro", "TESTNA10_360VR_Fist3.csv.gz"), format="vive-pro-eye"
    )
    assert recording.metadata["head_lost"] == len(recording) == 1664
    assert not recording.valid.any()
    assert recording.eye_in_head_deg is not None
    assert np.isfinite(recording.eye_in_head_deg).any()


def world_speed_while_head_turns(recording: Recording, mirror: tuple[float, float]) -> float:
    """Median gaze speed in the world while the head turns, with the eye's
    axes mirrored as asked."""
    assert recording.head_deg is not None
    assert recording.eye_in_head_deg is not None
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


def test_head_degrees_and_eye_in_head_give_the_gaze_back() -> None:
    (recording,) = gazeveil.read(
        real("vendor_samples", "salient360_hmd", "rawDataStatic1.csv.gz"), format="unity-hmd"
    )
    from gazeveil.gaze.geometry import gaze_in_world

    assert recording.head_deg is not None
    assert recording.eye_in_head_deg is not None
    again = gaze_in_world(*recording.eye_in_head_deg.T, recording.head_deg)
    # The mean of the eyes is taken before or after the turn; both are the same direction.
    assert np.nanmax(angle_deg(again, recording.vectors)) < 1e-6


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


def test_invisible_angles_are_those_of_the_file_and_blinks_are_lost() -> None:
    folder = real("vendor_samples", "Pupil_Invisible")
    (recording,) = gazeveil.read(folder, format="pupil-invisible")
    check_counts(recording, len(lines_of(folder / "trampoline_02" / "gaze.csv.gz")) - 1)
    first = lines_of(folder / "trampoline_02" / "gaze.csv.gz")[1].split(",")
    assert recording.x_deg[0] == pytest.approx(180 + float(first[8]))
    assert recording.y_deg[0] == pytest.approx(90 - float(first[9]))
    assert recording.t_ns[0] == 1629390345036471431
    words = recording.labels["pupil-labs"]
    assert set(np.unique(words)) == {"blink", "fixation", "undefined"}
    assert not recording.valid[words == "blink"].any()
    blinks = [line.split(",") for line in lines_of(folder / "trampoline_02" / "blinks.csv")[1:]]
    inside = np.zeros(len(recording), dtype=bool)
    for blink in blinks:
        inside |= (recording.t_ns >= int(blink[3])) & (recording.t_ns <= int(blink[4]))
    assert (words[inside] == "blink").all()


# --- screens
# --------------------------------------------------------------------------------------------------


def test_tx300_measures_its_screen_and_loses_what_the_validity_says() -> None:
    folder = real("vendor_samples", "tobii_tx300_i2mc")
    cohort = gazeveil.read(folder, format="tobii-sdk")
    assert set(cohort.people) == {"participant1", "participant2"}
    assert cohort.stimuli == ("1", "2", "3", "4", "5")
    for item, recording in zip(cohort.items, cohort, strict=True):
        text = [line.split("\t") for line in lines_of(Path(item.source))]
        check_counts(recording, len(text) - 1)
        left, right = text[0].index("LValidity"), text[0].index("RValidity")
        lost = np.array([int(row[left]) > 1 and int(row[right]) > 1 for row in text[1:]])
        assert (recording.valid == ~lost).all()
        assert recording.rate_hz == 300
        assert eye_distance(recording) < 5
        assert isinstance(recording.space, Screen)
        # Tobii's data sheet says 509.2 x 286.4 mm; the file's own millimetres agree within 2 %.
        assert recording.space.width_mm == pytest.approx(509.2, rel=0.02)
        assert 500 < recording.space.distance_mm < 750


def test_validation_files_are_read_without_options_and_gaze_lies_on_their_targets() -> None:
    cohort = gazeveil.read(real("vendor_samples", "tsv_multi"), format="csv")
    for item, recording in zip(cohort.items, cohort, strict=True):
        text = [line.split("\t") for line in lines_of(Path(item.source))]
        check_counts(recording, len(text) - 1)
        said = re.search(r"(\d+)Hz", item.source)
        assert said is not None
        assert recording.rate_hz == float(said[1])
        assert recording.metadata["assumed_geometry"] is True
        assert isinstance(recording.space, Screen)
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


def test_eyelink_rows_add_up_to_the_sample_lines_of_each_file() -> None:
    for path in sorted(real("vendor_samples", "eyelink_asc").glob("*.asc")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cohort = gazeveil.read(path, format="eyelink-asc")
        samples = [line for line in path.read_text("utf-8").splitlines() if re.match(r"\d", line)]
        assert sum(len(r) for r in cohort) == sum(r.counts["rows"] for r in cohort) == len(samples)
        assert set(cohort.people) == {path.stem}
        for recording in cohort:
            assert recording.metadata["geometry"] == "calibration"
            assert isinstance(recording.space, Screen)
            assert 25 < recording.space.width_deg < 50


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


def test_eyelink_keeps_both_eyes_and_the_trackers_events() -> None:
    folder = real("vendor_samples", "eyelink_asc")
    trial, rest = gazeveil.read(
        folder / "pymovements_eyelink_binocular_example.asc", format="eyelink-asc"
    )
    assert trial.stimulus == "I902C_low"
    assert rest.stimulus == "no-trial"
    assert eye_distance(trial) < 2
    words = rest.labels["eyelink"]
    # EBLINK L 1408787 1408883, of which the first part stands before the trial.
    inside = (rest.t_ns >= 1408787000000) & (rest.t_ns <= 1408883000000)
    assert (words[inside] == "blink").all()
    assert "eyelink_right" in rest.labels
    lost = (rest.labels["eyelink"] == "blink") & (rest.labels["eyelink_right"] == "blink")
    assert not rest.valid[lost].any()


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
        assert digest(gazeveil.read(place, clash=clash)) == DIGESTS[folder]
