"""Readers of screen datasets, of features and of scanpaths, on small hand-made files with exactly
the published layouts.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.io import registry
from gazeveil.io.datasets import mpii
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.dataset_files import write

# --- GazeBase and GazeBaseVR
# --------------------------------------------------------------------------------------------------


def test_gazebase_joins_rounds_of_one_person_and_turns_y_downwards(tmp_path: Path) -> None:
    text = (
        "n,x,y,val,xT,yT,dP,lab\n0,1.5,2,0,0,3,900,1\n1,1.6,2.1,0,0,3,901,2\n2,NaN,NaN,1,0,3,0,\n"
    )
    write(tmp_path / "Round_1" / "S_1002_S1_TEX.csv", text)
    write(tmp_path / "Round_2" / "S_2002_S2_TEX.csv.gz", text)
    cohort = read(tmp_path, format="gazebase")
    assert cohort.keys == (("002", "TEX", "1.1", "TEX"), ("002", "TEX", "2.2", "TEX"))
    recording = cohort[1]
    assert recording.space == Screen(1680, 1050, 474, 297, 550)
    np.testing.assert_allclose(recording.x_deg[:2], [1.5, 1.6])
    np.testing.assert_allclose(recording.y_deg[:2], [-2, -2.1])
    assert recording.valid.tolist() == [True, True, False]
    assert recording.labels["label"].tolist() == ["1", "2", "undefined"]
    assert recording.pupil is not None
    assert recording.rate_hz == 1000


# --- MPIIDPEye and MPIIPrivacEye
# --------------------------------------------------------------------------------------------------


def test_mpiidpeye_pupil_places_are_read_by_name_and_by_order(tmp_path: Path) -> None:
    folder = tmp_path / "Eye_Tracking_Data"
    write(folder / "P1_R2.csv", "0.5;0.5;100.0;0.9;30\n0.6;0.4;100.033;0;31\n")
    write(
        folder / "P2_R3.csv",
        "timestamp;confidence;pupil diameter;pupil y;pupil"
        " x\n100;0.9;30;0.5;0.5\n133;0.8;31;0.4;0.6\n",
    )
    write(
        tmp_path / "Eye_Movement_Features" / "Data_P1_R2_Pami_Features_52.csv",
        ",".join(["1"] * 52) + "\n",
    )
    cohort = read(tmp_path, format="mpiidpeye")
    assert cohort.keys == (("P1", "newspaper", "1", "reading"), ("P2", "textbook", "1", "reading"))
    assert [Path(s.path).name for s in cohort.skipped] == ["Data_P1_R2_Pami_Features_52.csv"]
    first, second = cohort
    assert first.valid.tolist() == [True, False]
    assert first.t_ns.tolist() == [0, 33_000_000]
    assert second.t_ns.tolist() == [0, 33_000_000]
    np.testing.assert_allclose([second.x_deg[0], second.y_deg[0]], [0, 0], atol=1e-9)
    # Right of and below the centre of the image, which counts from its lower left corner.
    assert second.x_deg[1] > 0
    assert second.y_deg[1] > 0
    assert second.metadata["calibrated"] is False
    assert second.pupil.tolist() == [30, 31]


def test_mpii_features_come_with_keys_and_read_says_who_reads_them(tmp_path: Path) -> None:
    values = np.arange(3 * 52, dtype=np.float64).reshape(3, 52)
    text = "\n".join(",".join(f"{v:g}" for v in row) for row in values) + "\n"
    write(tmp_path / "dp" / "Data_P10_R1_Pami_Features_52.csv", text)
    write(tmp_path / "dp" / "Data_P2_R3_Pami_Features_52.csv.gz", text)
    found, keys = mpii.features(tmp_path / "dp")
    np.testing.assert_array_equal(found, np.concatenate([values, values]))
    assert keys[0] == ("P2", "textbook", "1", "reading", 0)
    assert keys[5] == ("P10", "comic", "1", "reading", 2)
    with pytest.raises(FormatError, match=r"mpii\.features"):
        read(tmp_path / "dp", format="mpiidpeye")

    wide = "\n".join(",".join(["1"] * 52 + ["0.5"] * 4 + [str(i % 2)]) for i in range(4)) + "\n"
    write(tmp_path / "privac" / "P1_R1_data.csv", wide)
    found, keys = mpii.features(tmp_path / "privac")
    assert found.shape == (4, 52)
    assert keys[1] == ("P1", "R1", "1", "", 1)
    assert mpii.privacy_labels(tmp_path / "privac").tolist() == [0, 1, 0, 1]
    with pytest.raises(FormatError, match=r"mpii\.features"):
        read(tmp_path / "privac", format="mpiiprivaceye")


# --- fixation-only sets
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ", ", " ", "\t"])
def test_salient360_observers_begin_where_the_index_falls_back(
    tmp_path: Path, separator: str
) -> None:
    rows = [
        ("0", "0.5", "0.5", "0.0"),
        ("1", "0.25", "0.25", "0.4"),
        ("0", "0.1", "0.9", "0.1"),
        ("1", "0.2", "0.8", "0.5"),
        ("2", "1.0", "1.0", "0.9"),
    ]
    path = write(tmp_path / "Hscanpath_21.txt", "\n".join(separator.join(r) for r in rows) + "\n")
    assert registry.get("salient360").sniff(Head.of(path))
    cohort = read(tmp_path, format="salient360")
    assert [k[0] for k in cohort.keys] == ["Hscanpath_21/1", "Hscanpath_21/2"]
    first, second = cohort
    assert (len(first), first.counts["rows"], second.counts["rows"]) == (0, 2, 3)
    np.testing.assert_allclose(first.events.x_deg, [180, 90])
    np.testing.assert_allclose(first.events.y_deg, [90, 45])
    assert first.events.onset_ns.tolist() == [0, 400_000_000]
    assert first.events.offset_ns.tolist() == [400_000_000, 400_000_000]
    assert second.events.x_deg[2] == 0
    assert first.duration_s == 0.4


def test_osie_reads_people_with_one_and_with_no_fixation(tmp_path: Path) -> None:
    from scipy.io import savemat

    def cell(items: list[object]) -> np.ndarray:
        array = np.empty((len(items), 1), dtype=object)
        array[:, 0] = items
        return array

    many = {"fix_x": [400.0, 800.0], "fix_y": [300.0, 0.0], "fix_duration": [200.0, 100.0]}
    one = {"fix_x": [10.0], "fix_y": [20.0], "fix_duration": [150.0]}
    none = {"fix_x": np.empty((0, 0)), "fix_y": np.empty((0, 0)), "fix_duration": np.empty((0, 0))}
    savemat(
        tmp_path / "fixations.mat",
        {
            "fixations": cell(
                [
                    {"img": "a.jpg", "subjects": cell([many, one, none])},
                    {"img": "b.jpg", "subjects": cell([one])},
                ]
            )
        },
    )
    cohort = read(tmp_path, format="osie")
    assert [k[:2] for k in cohort.keys] == [
        ("1", "a.jpg"),
        ("2", "a.jpg"),
        ("3", "a.jpg"),
        ("1", "b.jpg"),
    ]
    events = [r.events for r in cohort]
    assert [len(e) for e in events if e is not None] == [2, 1, 0, 1]
    assert events[0].onset_ns.tolist() == [0, 200_000_000]
    assert events[0].offset_ns.tolist() == [200_000_000, 300_000_000]
    assert events[0].x_deg[0] == 0
    screen = Screen(800, 600, 400, 300, 400)
    assert read(tmp_path, format="osie", screen=screen)[0].space == screen


def test_neuroliaa_keeps_the_target_and_counts_durations_without_a_place(tmp_path: Path) -> None:
    entry = {
        "subject": "a b",
        "image_height": 768,
        "image_width": 1024,
        "target_found": True,
        "target_bbox": [100, 200, 150, 280],
        "X": [512, 240],
        "Y": [384, 125],
        "T": [300, 200, 100],
    }
    write(tmp_path / "x_scanpaths.json", json.dumps({"room 1.jpg": entry}))
    recording = read(tmp_path, format="neuroliaa")[0]
    assert recording.key == ("a b", "room 1.jpg", "1", "search")
    assert recording.counts == {"rows": 3, "fixations": 2, "durations without a place": 1}
    assert recording.metadata["target_box_px"] == (200, 100, 280, 150)
    left, top, right, bottom = recording.metadata["target_box_deg"]  # type: ignore[misc]
    assert left < right < 0
    assert top < bottom < 0
    assert recording.metadata["durations_matched"] is False


def test_webqamgaze_names_questions_after_their_text(tmp_path: Path) -> None:
    content = {
        "worker_id": "W 1",
        "worker_age": 30,
        "set_name": "s",
        "screen_x": 1000,
        "screen_y": 500,
        "trials": {"t": {"condition": "nr"}, "text_2": {"condition": "is"}},
        "samples_x_y_ms": {
            "text_2": [[500, 250, 0], [600, 300, 33], [1200, 300, 66]],
            "q_before_text_2_qa": [[1, 1, 5]],
        },
    }
    write(tmp_path / "anything.json.gz", json.dumps(content))
    cohort = read(tmp_path, format="webqamgaze")
    assert cohort.keys == (("W 1", "text_2", "1", "is"), ("W 1", "q_before_text_2_qa", "1", "is"))
    assert dict(cohort.people["W 1"]) == {"age": 30}
    recording = cohort[0]
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], [0, 0], atol=1e-9)
    assert recording.valid.all()
