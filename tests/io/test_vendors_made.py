"""Vendor layouts without a sample at hand, on small hand-made files with exactly those layouts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.io.tables_file import read_people

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- Tobii Pro Lab and Studio
# --------------------------------------------------------------------------------------------------

LAB_COLUMNS = (
    "Recording timestamp [μs]\tSensor\tParticipant name\tRecording name\tRecording resolution width"
    " [px]\tRecording resolution height [px]\tEvent\tEvent value\tGaze point left X [DACS px]\tGaze"
    " point left Y [DACS px]\tGaze point right X [DACS px]\tGaze point right Y [DACS px]\tPupil"
    " diameter left [mm]\tPupil diameter right [mm]\tValidity left\tValidity right\tPresented"
    " Stimulus name\tEye movement type"
)


def lab(tmp_path: Path, comma: bool = False) -> Path:
    rows = [
        "0\t\tAnna\tRecording1\t1920\t1080\tRecordingStart\t\t\t\t\t\t\t\t\t\t\t",
        (
            "1000\tEye"
            " Tracker\tAnna\tRecording1\t1920\t1080\t\t\t960\t540\t970\t550\t3.10\t3.30\t"
            "Valid\tValid\tpicture.png\tFixation"
        ),
        (
            "9333\tEye"
            " Tracker\tAnna\tRecording1\t1920\t1080\t\t\t961\t541\t\t\t3.10\t\tValid\tInvalid\t"
            "picture.png\tSaccade"
        ),
        "9400\tMouse\tAnna\tRecording1\t1920\t1080\t\t\t\t\t\t\t\t\t\t\tpicture.png\t",
        (
            "17666\tEye"
            " Tracker\tAnna\tRecording1\t1920\t1080\t\t\t\t\t\t\t\t\tInvalid\tInvalid\t"
            "picture.png\tEyesNotFound"
        ),
        (
            "26000\tEye"
            " Tracker\tBert\tRecording2\t1920\t1080\t\t\t100\t200\t110\t210\t2.90\t2.95\t"
            "Valid\tValid\tpicture.png\tUnclassified"
        ),
    ]
    text = "\n".join([LAB_COLUMNS, *rows]) + "\n"
    return write(
        tmp_path / "Data export.tsv",
        text.replace(".10", ",10").replace(".30", ",30") if comma else text,
    )


@pytest.mark.parametrize("comma", [False, True])
def test_a_pro_lab_export_gives_one_recording_per_participant_and_stimulus(
    tmp_path: Path, comma: bool
) -> None:
    cohort = gazeveil.read(lab(tmp_path, comma), format="tobii-tsv", screen=SCREEN)
    assert [(r.person, r.stimulus, len(r)) for r in cohort] == [
        ("Anna", "no-stimulus", 0),
        ("Anna", "picture.png", 3),
        ("Bert", "picture.png", 1),
    ]
    start, anna, bert = cohort
    assert dict(start.counts) == {"rows": 1, "event_rows": 1}
    assert start.messages[0].text == "RecordingStart"
    assert dict(anna.counts) == {"rows": 4, "other_sensors": 1}
    assert anna.valid.tolist() == [True, True, False]
    assert anna.t_ns.tolist() == [1_000_000, 9_333_000, 17_666_000]
    assert anna.labels["tobii"].tolist() == ["fixation", "saccade", "undefined"]
    assert anna.pupil[0] == pytest.approx(3.2)
    assert anna.pupil[1] == pytest.approx(3.1)
    assert anna.left_deg[0].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(
        [anna.x_deg[1], anna.y_deg[1]], np.ravel(SCREEN.from_px([961], [541]))
    )
    assert bert.x_deg[0] < 0


def test_without_a_screen_the_resolution_is_read_and_the_size_is_said_to_be_assumed(
    tmp_path: Path,
) -> None:
    recording = gazeveil.read(lab(tmp_path), format="tobii-tsv")[1]
    assert recording.space.width_px == 1920
    assert recording.metadata["assumed_geometry"] is True


def test_a_screen_of_other_pixels_than_the_export_states_is_refused(tmp_path: Path) -> None:
    other = Screen(1280, 1024, 376.0, 301.0, 650.0)
    message = "Recording resolution says 1920 x 1080 px, and screen= says 1280 x 1024 px"
    with pytest.raises(FormatError, match=message):
        list(gazeveil.read(lab(tmp_path), format="tobii-tsv", screen=other))


def test_a_studio_export_in_milliseconds_with_validity_codes(tmp_path: Path) -> None:
    header = (
        "ParticipantName\tMediaName\tRecordingTimestamp\tStudioEvent\tGazePointLeftX"
        " (ADCSpx)\tGazePointLeftY (ADCSpx)\tGazePointRightX (ADCSpx)"
    )
    header += (
        "\tGazePointRightY (ADCSpx)\tGazePointX (MCSpx)\tGazePointY"
        " (MCSpx)\tValidityLeft\tValidityRight\tPupilLeft\tPupilRight\tGazeEventType"
    )
    rows = [
        f"P1\tclip.avi\t{3 + i * 17}\t\t{900 + i}\t500\t{910 + i}\t510\t1\t1\t{code}\t{code}\t"
        "3\t3\tFixation"
        for i, code in enumerate((0, 1, 2, 4, 0))
    ]
    rows.insert(2, "P1\tclip.avi\t30\tMovieStart\t\t\t\t\t\t\t\t\t\t\t")
    (recording,) = gazeveil.read(
        write(tmp_path / "studio.tsv", "\n".join([header, *rows])),
        format="tobii-tsv",
        screen=SCREEN,
    )
    assert recording.valid.tolist() == [True, True, False, False, True]
    assert recording.t_ns[:2].tolist() == [3_000_000, 20_000_000]
    assert dict(recording.counts) == {"rows": 6, "event_rows": 1}
    assert [m.text for m in recording.messages] == ["MovieStart"]


def in_media(tmp_path: Path, unit: str, placed: str, gaze: str, original: str = "") -> Path:
    header = f"Recording timestamp [ms]\tGaze point X [{unit}]\tGaze point Y [{unit}]"
    header += "\tPresented Stimulus name" + "".join(f"\t{c}" for c in placed.split(",") if c)
    header += "\tOriginal Media width\tOriginal Media height" if original else ""
    x, y = gaze.split()
    values = ["a.png", *(["560", "240", "800", "600"] if placed else []), *original.split()]
    rows = [f"{10 * i}\t{x}\t{y}\t" + "\t".join(values) for i in range(3)]
    return write(tmp_path / "m.tsv", "\n".join([header, *rows]) + "\n")


PLACED_LAB = (
    "Presented Media position X [DACS px],Presented Media position Y [DACS px],"
    "Presented Media width,Presented Media height"
)
PLACED_STUDIO = "MediaPosX (ADCSpx),MediaPosY (ADCSpx),MediaWidth,MediaHeight"


@pytest.mark.parametrize("placed", [PLACED_LAB, PLACED_STUDIO])
@pytest.mark.parametrize(
    ("unit", "gaze"), [("MCS px", "200 300"), ("MCSpx", "200 300"), ("MCS norm", "0.25 0.5")]
)
def test_media_coordinates_are_moved_to_where_the_medium_stood(
    tmp_path: Path, placed: str, unit: str, gaze: str
) -> None:
    path = in_media(tmp_path, unit, placed, gaze)
    (recording,) = gazeveil.read(path, format="tobii-tsv", screen=SCREEN)
    expected = np.ravel(SCREEN.from_px([760], [540]))
    np.testing.assert_allclose([recording.x_deg[0], recording.y_deg[0]], expected)


@pytest.mark.parametrize(
    ("unit", "placed", "original", "message"),
    [
        ("MCS px", "", "", "nothing says where that stood on the display.*DACS px"),
        ("MCS norm", "", "", "nothing says where that stood on the display.*DACS px"),
        ("MCS px", PLACED_LAB, "400 300", "larger or smaller than it is.*DACS px"),
    ],
)
def test_media_coordinates_without_a_place_on_the_display_are_refused(
    tmp_path: Path, unit: str, placed: str, original: str, message: str
) -> None:
    path = in_media(tmp_path, unit, placed, "0.5 0.5", original)
    with pytest.raises(FormatError, match=message):
        list(gazeveil.read(path, format="tobii-tsv", screen=SCREEN))


def test_an_export_of_glasses_becomes_directions_in_the_head(tmp_path: Path) -> None:
    sides = [
        f"Gaze direction {side} {axis} [HUCS norm]" for side in ("left", "right") for axis in "XYZ"
    ]
    header = "\t".join(
        [
            "Recording timestamp [ms]",
            "Participant name",
            *sides,
            "Gaze point X [MCS px]",
            "Gaze point Y [MCS px]",
        ]
    )
    row = "10\tA\t-0.1\t0\t1\t-0.1\t0\t1\t1000\t540"
    (recording,) = gazeveil.read(
        write(tmp_path / "g.tsv", header + "\n" + row + "\n" + row.replace("10\t", "20\t", 1)),
        format="tobii-tsv",
    )
    assert isinstance(recording.space, Sphere)
    assert recording.x_deg[0] > 180  # Tobii's x points left
    assert recording.metadata["frame"] == "head"


# --- Pupil Labs
# --------------------------------------------------------------------------------------------------


def core(folder: Path, three_d: bool = True) -> Path:
    header = "gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y,base_data"
    cells = ["", ""]
    if three_d:
        header += (
            ",gaze_point_3d_x,gaze_point_3d_y,gaze_point_3d_z,gaze_normal0_x,gaze_normal0_y,"
            "gaze_normal0_z,gaze_normal1_x,gaze_normal1_y,gaze_normal1_z"
        )
        cells = [",100,-100,1000,0.05,-0.1,1,0.15,-0.1,1", ",,,,,,,,,"]
    rows = [
        f"10.000,0,0.95,0.6,0.6,1-0{cells[0]}",
        f"10.008,0,0.30,0.6,0.6,1-0{cells[0]}",
        f"10.016,0,0.95,0.6,0.6,1-0{cells[1]}",
        f"10.024,1,0.95,0.6,0.6,1-0{cells[0]}",
        f"10.032,1,0.95,0.6,0.6,1-0{cells[0]}",
    ]
    write(folder / "gaze_positions.csv", "\n".join([header, *rows]) + "\n")
    write(
        folder / "blinks.csv", "id,start_timestamp,duration,end_timestamp\n1,10.020,0.006,10.026\n"
    )
    write(folder / "fixations.csv", "id,start_timestamp,duration\n1,10.030,5\n")
    write(folder / "annotations.csv", "index,timestamp,label,duration\n0,10.001,go,0\n")
    write(
        folder / "pupil_positions.csv",
        "pupil_timestamp,eye_id,confidence,diameter_3d\n10.000,0,0.9,3.0\n10.001,1,0.9,3.4\n"
        "10.500,0,0.9,9\n",
    )
    return folder


def test_pupil_core_uses_the_3d_point_and_knows_what_is_not_sure(tmp_path: Path) -> None:
    core(tmp_path / "anna" / "walk" / "exports" / "000")
    (recording,) = gazeveil.read(tmp_path, format="pupil-core")
    assert recording.key == ("anna", "walk", "1", "")
    # Low confidence, no 3-d point, blink: three of five are lost, and still there.
    assert recording.valid.tolist() == [True, False, False, False, True]
    assert len(recording) == recording.counts["rows"] == 5
    assert recording.x_deg[0] == pytest.approx(180 + np.degrees(np.arctan(0.1)))
    assert recording.y_deg[0] < 90  # y down in the camera, so -100 is above
    assert recording.labels["pupil-player"].tolist() == [
        "undefined",
        "undefined",
        "undefined",
        "blink",
        "fixation",
    ]
    assert recording.pupil[0] == pytest.approx(3.2)
    assert [m.text for m in recording.messages] == ["go"]
    assert (
        recording.left_deg[0, 0] > recording.right_deg[0, 0]
    )  # eye 1 is the left one, and it looks further right here


def test_pupil_core_without_3d_says_that_its_camera_is_assumed(tmp_path: Path) -> None:
    (recording,) = gazeveil.read(core(tmp_path / "000", three_d=False), format="pupil-core")
    assert recording.metadata["assumed_geometry"] is True
    assert recording.x_deg[0] > 180
    assert recording.y_deg[0] < 90


def test_pupil_core_surface_counts_from_its_bottom_left_corner(tmp_path: Path) -> None:
    folder = core(tmp_path / "000")
    rows = (
        "world_timestamp,gaze_timestamp,x_norm,y_norm,on_surf,confidence\n10,10.000,0.75,0.75,"
        "True,0.9\n10,10.008,1.5,0.5,False,0.9\n"
    )
    write(folder / "surfaces" / "gaze_positions_on_surface_page.csv", rows)
    (recording,) = gazeveil.read(folder, format="pupil-core", surface="page", screen=SCREEN)
    assert recording.valid.tolist() == [True, False]
    assert recording.x_deg[0] > 0
    assert recording.y_deg[0] < 0
    with pytest.raises(FormatError, match="no gaze on a surface 'wall'"):
        gazeveil.read(folder, format="pupil-core", surface="wall", screen=SCREEN)


def neon(folder: Path, angles: bool = True) -> Path:
    header = (
        "section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn,fixation id,blink id"
        + (",azimuth [deg],elevation [deg]" if angles else "")
    )
    rows = []
    for i in range(6):
        cells = (
            f"s,r,{1_000_000_000 + i * 5_000_000},{1200 + i},500.5,{0 if i == 5 else 1},"
            f"{'7' if i < 2 else ''},{'3' if i == 4 else ''}"
        )
        rows.append(cells + (",20.5,4.5" if angles else ""))
    write(folder / "gaze.csv", "\n".join([header, *rows]) + "\n")
    write(
        folder / "saccades.csv",
        "section id,recording id,saccade id,start timestamp [ns],end timestamp"
        " [ns]\ns,r,1,1010000000,1015000000\n",
    )
    write(
        folder / "3d_eye_states.csv",
        "recording id,timestamp [ns],pupil diameter left [mm],pupil diameter right"
        " [mm]\nr,1000000000,3,4\n",
    )
    write(
        folder / "events.csv",
        "recording id,timestamp [ns],name,type\nr,1000000000,recording.begin,recording\n",
    )
    write(
        folder / "info.json", json.dumps({"wearer_name": "Wearer 1", "module_serial_number": "x"})
    )
    return folder


def test_neon_labels_pupils_and_events_come_from_the_files_beside_gaze(tmp_path: Path) -> None:
    neon(tmp_path / "walk")
    (recording,) = gazeveil.read(tmp_path, format="pupil-neon")
    assert recording.key == ("Wearer 1", "walk", "1", "")
    assert recording.labels["pupil-labs"].tolist() == [
        "fixation",
        "fixation",
        "saccade",
        "saccade",
        "blink",
        "undefined",
    ]
    assert recording.valid.tolist() == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]  # a blink, and glasses off
    assert recording.x_deg[0] == 200.5
    assert recording.y_deg[0] == 85.5
    assert recording.pupil[0] == 3.5
    assert [m.text for m in recording.messages] == ["recording.begin"]


def test_neon_and_invisible_are_told_apart_and_each_reads_the_other(tmp_path: Path) -> None:
    from gazeveil.io import registry

    folder = neon(tmp_path / "n", angles=False)
    assert registry.get("pupil-neon").sniff_folder(folder)  # type: ignore[misc]
    assert not registry.get("pupil-invisible").sniff_folder(folder)  # type: ignore[misc]
    (handle,) = registry.get("pupil-invisible").scan(folder, tmp_path)
    recording = handle.load()
    assert recording.metadata["assumed_geometry"] is True
    assert 180 < recording.x_deg[0] < 230  # 1200 px is right of the middle of Neon's picture
    for name in ("info.json", "saccades.csv", "3d_eye_states.csv"):
        (folder / name).unlink()
    # Known by the width of the picture.
    assert registry.get("pupil-neon").sniff_folder(folder)  # type: ignore[misc]


# --- Unity
# --------------------------------------------------------------------------------------------------


def test_a_later_unity_log_with_other_names_is_the_same_gaze(tmp_path: Path) -> None:
    columns = ["ETtimestamp", "UnityTimeStamp", *(f"cameraRotation.{a}" for a in "xyzw")]
    columns += [f"{side}GazeDirection.{a}" for side in ("left", "right") for a in "xyz"] + [
        "valC",
        "valL",
        "valR",
    ]
    half = np.sqrt(0.5)  # a head turned 90 degrees to the right about the vertical
    rows = [
        f"{1000 + 8 * i},{5 + 8 * i},0,{half},0,{half},0,0.1,1,0,0.1,1,True,True,{i > 0}"
        for i in range(3)
    ]
    path = write(tmp_path / "log.csv", "\n".join([",".join(columns), *rows]) + "\n")
    (recording,) = gazeveil.read(path, format="unity-hmd")
    assert recording.t_ns.tolist() == [1_000_000_000, 1_008_000_000, 1_016_000_000]
    np.testing.assert_allclose(recording.x_deg, 270.0)
    np.testing.assert_allclose(recording.y_deg, 90 - np.degrees(np.arctan(0.1)))
    assert np.isnan(recording.right_deg[0]).all()
    np.testing.assert_allclose(recording.head_deg[0], [270, 90, 0], atol=1e-9)


# --- SMI
# --------------------------------------------------------------------------------------------------

SMI_HEADER = """## [BeGaze]
## Date:\t01.02.2020 10:00:00
## Sample Rate:\t250
## [Run]
## Subject:\tP07
## [Calibration]
## Calibration Area:\t1680\t1050
## [Geometry]
## Stimulus Dimension [mm]:\t474\t297
## Head Distance [mm]:\t700
## Format:\tLEFT, RIGHT, POR, MSG
##
"""


def smi(tmp_path: Path, body: str, header: str = SMI_HEADER) -> Path:
    return write(tmp_path / "raw.txt", header + body)


def test_smi_trials_messages_and_lost_samples(tmp_path: Path) -> None:
    body = (
        "Time\tType\tTrial\tL POR X [px]\tL POR Y [px]\tR POR X [px]\tR POR Y [px]\tL Mapped"
        " Diameter [mm]\tL Event Info\n"
    )
    body += "1000\tMSG\t1\t# Message: first.jpg\n"
    body += (
        "2000\tSMP\t1\t840\t525\t840\t525\t3.5\tFixation\n6000\tSMP\t1\t0.00\t0.00\t0.00\t"
        "0.00\t0\tBlink\n"
    )
    body += (
        "10000\tMSG\t2\t# Message: second.jpg\n14000\tSMP\t2\t900\t525\t0.00\t0.00\t3.4\tSaccade\n"
    )
    first, second = gazeveil.read(smi(tmp_path, body), format="smi")
    assert first.key == ("P07", "first.jpg", "1", "")
    assert second.key == ("P07", "second.jpg", "1", "")
    assert first.valid.tolist() == [True, False]
    assert second.valid.tolist() == [True]
    assert first.x_deg[0] == first.y_deg[0] == 0.0
    assert first.space == Screen(1680, 1050, 474, 297, 700)
    assert dict(first.counts) == {"rows": 3, "messages": 1}
    assert first.t_ns.tolist() == [2_000_000, 6_000_000]
    assert first.rate_hz == 250
    assert first.labels["smi"].tolist() == ["fixation", "blink"]
    assert first.metadata["date"] == "01.02.2020 10:00:00"


def test_smi_refuses_a_screen_of_other_pixels_than_its_header_states(tmp_path: Path) -> None:
    body = "Time\tType\tTrial\tL POR X [px]\tL POR Y [px]\n1000\tSMP\t1\t840\t525\n"
    with pytest.raises(FormatError, match=r"Calibration Area says 1680 x 1050 px.*1920 x 1080"):
        list(gazeveil.read(smi(tmp_path, body), format="smi", screen=SCREEN))


@pytest.mark.parametrize("header", [SMI_HEADER, "[BeGaze]\nVersion:\tBeGaze 3.5\n"])
def test_an_event_export_of_begaze_is_refused_by_name(tmp_path: Path, header: str) -> None:
    body = "Table Header for Fixations:\nEvent Type\tTrial\tNumber\tStart\tEnd\tDuration\n"
    path = smi(tmp_path, body + "Fixation L\t1\t1\t10000\t20000\t10000\n", header)
    for place in (path, tmp_path):
        with pytest.raises(FormatError, match=r"event export of BeGaze.*Export the raw data"):
            gazeveil.read(place)


def test_smi_of_iview_with_commas_and_without_millimetres(tmp_path: Path) -> None:
    header = "## [iView]\n## Sample Rate: 500\n## Calibration Area: 1024 768\n\n"
    body = "Time,Type,Trial,R POR X [px],R POR Y [px]\n1000,SMP,1,512,384\n3000,SMP,1,513,384\n"
    (recording,) = gazeveil.read(smi(tmp_path, body, header), format="smi")
    assert recording.metadata["assumed_geometry"] is True
    assert recording.x_deg[0] == 0.0
    assert recording.rate_hz == 500
    assert recording.person == "raw"


def test_smi_with_a_stimulus_column_and_decimal_commas(tmp_path: Path) -> None:
    body = (
        "Time\tType\tTrial\tL POR X [px]\tL POR Y"
        " [px]\tStimulus\n2000\tSMP\t1\t840,50\t525,00\ta.png\n6000\tSMP\t1\t841,50\t525\tb.png\n"
    )
    cohort = gazeveil.read(smi(tmp_path, body), format="smi")
    assert [(r.stimulus, len(r)) for r in cohort] == [("a.png", 1), ("b.png", 1)]
    assert cohort[0].x_deg[0] > 0


# --- EyeLink
# --------------------------------------------------------------------------------------------------


def asc(tmp_path: Path, body: str, name: str = "p1.asc") -> Path:
    return write(
        tmp_path / name,
        "** CONVERTED FROM x.edf using edfapi 4.2\n** DATE: \n** SERIAL NUMBER: \n**\n\n" + body,
    )


START = (
    "START\t{t} \tRIGHT\tSAMPLES\tEVENTS\nSAMPLES\tGAZE\tRIGHT\tVEL\tRES\tRATE\t"
    " 500.00\tTRACKING\tCR\tFILTER\t2\tINPUT\n"
)


def test_asc_blocks_are_trials_where_no_message_says_otherwise(tmp_path: Path) -> None:
    body = "MSG\t90 DISPLAY_COORDS 0 0 1919 1079\n"
    for t in (100, 200):
        body += (
            START.format(t=t) + f"{t}\t  960.0\t  540.0\t 500.0\t 1.0\t 2.0\t 40\t 40\t 127\t...\n"
        )
        body += (
            f"{t + 2}\t   .\t   .\t   0.0\t .\t .\t .\t .\t 127\t.C.\nMSG {t + 3}"
            f" between\nEND\t{t + 4} \tSAMPLES\tEVENTS\n"
        )
    with pytest.warns(UserWarning, match="screen"):
        list(gazeveil.read(asc(tmp_path, body.replace("VEL\tRES\t", "")), format="eyelink-asc"))
    cohort = gazeveil.read(asc(tmp_path, body), format="eyelink-asc")
    assert [(r.person, r.stimulus, len(r)) for r in cohort] == [("p1", "1", 2), ("p1", "2", 2)]
    assert cohort[0].right_deg is not None
    assert cohort[0].left_deg is None
    assert cohort[0].valid.tolist() == [True, False]
    assert cohort[0].rate_hz == 500
    assert [m.text for m in cohort[0].messages] == ["DISPLAY_COORDS 0 0 1919 1079", "between"]
    assert "date" not in cohort[0].metadata


def test_asc_trials_by_another_message_and_names_that_come_twice(tmp_path: Path) -> None:
    body = START.format(t=100)
    for i, word in enumerate(("cat", "dog", "cat", "cow")):
        body += f"MSG\t{100 + 10 * i} SHOW {word}.png now\n"
        body += "".join(
            f"{100 + 10 * i + k}\t 900\t 500\t 400\t 0\t 0\t 40\t 40\t 1\t...\n"
            for k in range(2 if word != "cow" else 0)
        )
    body += "END\t150 \tSAMPLES\n"
    cohort = gazeveil.read(
        asc(tmp_path, body), format="eyelink-asc", trials=r"^SHOW (\w+)\.png", screen=SCREEN
    )
    assert [r.key[:3] for r in cohort] == [
        ("p1", "cat", "1"),
        ("p1", "dog", "1"),
        ("p1", "cat", "2"),
    ]
    assert cohort[0].metadata["empty_trials"] == ("cow",)
    with pytest.raises(ParameterError, match="regular expression"):
        gazeveil.read(asc(tmp_path, body), format="eyelink-asc", trials="(")


def test_asc_blocks_of_one_and_of_two_eyes_share_a_file(tmp_path: Path) -> None:
    two = (
        "START\t200 \tLEFT\tRIGHT\tSAMPLES\nSAMPLES\tGAZE\tLEFT\tRIGHT\tRATE\t1000.00\n200\t 900\t"
        " 500\t 400\t 910\t 510\t 420\t.....\nEND\t201\n"
    )
    body = (
        START.format(t=100) + "100\t 960\t 540\t 400\t 0\t 0\t 40\t 40\t 1\t...\nEND\t101\n" + two
    )
    one, both = gazeveil.read(asc(tmp_path, body), format="eyelink-asc", screen=SCREEN)
    assert one.left_deg is None
    assert set(one.labels) == {"eyelink"}
    assert set(both.labels) == {"eyelink", "eyelink_right"}
    assert np.isfinite(both.left_deg).all()
    assert np.isfinite(both.right_deg).all()
    assert both.pupil[0] == 410


def test_asc_of_samples_alone_and_of_href_angles(tmp_path: Path) -> None:
    plain = "1000\t  960.0\t  540.0\t 500.0\t...\n1001\t  961.0\t  540.0\t 500.0\t...\n"
    (recording,) = gazeveil.read(
        write(tmp_path / "plain.asc", plain), format="eyelink-asc", screen=SCREEN
    )
    assert len(recording) == 2
    assert recording.rate_hz == 1000
    href = (
        "START\t1 \tLEFT\tSAMPLES\nSAMPLES\tHREF\tLEFT\tRATE\t1000.00\n1\t 15000\t 0\t"
        " 400\t...\n2\t 0\t 0\t 400\t...\n"
    )
    (recording,) = gazeveil.read(asc(tmp_path, href), format="eyelink-asc", screen=SCREEN)
    assert recording.x_deg.tolist() == pytest.approx([45.0, 0.0])


def test_asc_files_of_one_name_in_folders_side_by_side_are_told_apart_by_the_folder(
    tmp_path: Path,
) -> None:
    body = START.format(t=100) + "100\t 960\t 540\t 400\t 0\t 0\t 40\t 40\t 1\t...\n"
    for person in ("anna", "bert"):
        asc(tmp_path, body, f"{person}/run.asc")
    asc(tmp_path, body, "bert/other.asc")
    cohort = gazeveil.read(tmp_path, format="eyelink-asc", screen=SCREEN)
    assert [k[:2] for k in cohort.keys] == [("anna", "run"), ("other", "other"), ("bert", "run")]


def test_asc_without_samples_gives_its_events_by_trial(tmp_path: Path) -> None:
    body = (
        "MSG\t1 TRIALID one\nSTART\t1 \tLEFT\tEVENTS\nEFIX L   1\t101\t100\t 960\t 540\t 300\nESACC"
        " L  102\t120\t18\t1\t1\t2\t2\t1\t99\n"
    )
    body += (
        "END\t130\nMSG\t200 TRIALID two\nSTART\t200 \tLEFT\tEVENTS\nEFIX L   210\t301\t91\t 100\t"
        " 540\t 300\nEBLINK L 302\t400\t98\nEND\t500\n"
    )
    one, two = gazeveil.read(asc(tmp_path, body), format="eyelink-asc", screen=SCREEN)
    assert (one.stimulus, two.stimulus) == ("one", "two")
    assert len(one) == 0
    assert dict(one.counts) == {"rows": 2, "events": 2}
    assert one.events.kind.tolist() == ["fixation", "saccade"]
    assert one.events.x_deg[0] == 0.0
    assert one.events.onset_ns.tolist() == [1_000_000, 102_000_000]
    assert two.events.kind.tolist() == ["fixation", "blink"]


def test_asc_messages_keep_their_words_in_latin_1(tmp_path: Path) -> None:
    body = (
        START.format(t=100) + "100\t 960\t 540\t 400\t 0\t 0\t 40\t 40\t 1\t...\nMSG\t101 Größe\n"
    )
    path = tmp_path / "l.asc"
    path.write_bytes(body.encode("latin-1"))
    (recording,) = gazeveil.read(path, format="eyelink-asc", screen=SCREEN)
    assert recording.messages[-1].text == "Größe"


def test_glasses3_names_come_from_the_recording_unit_where_it_wrote_them(tmp_path: Path) -> None:
    eye = {"gazedirection": [0.1, 0.0, 0.99], "pupildiameter": 3.0}
    line = json.dumps({"type": "gaze", "timestamp": 0.01, "data": {"eyeleft": eye, "eyeright": {}}})
    write(tmp_path / "study" / "anna" / "rec1" / "gazedata", line + "\n")
    (recording,) = gazeveil.read(tmp_path, format="tobii-glasses3")
    assert recording.key[:2] == ("anna", "rec1")
    assert recording.valid.tolist() == [True]  # one eye is enough
    assert recording.x_deg[0] < 180  # Tobii's x points left
    write(tmp_path / "study" / "anna" / "rec1" / "meta" / "participant", '{"name": "P 01"}')
    write(tmp_path / "study" / "anna" / "rec1" / "recording.g3", '{"name": "Walk", "uuid": "1"}')
    assert gazeveil.read(tmp_path, format="tobii-glasses3").keys[0][:2] == ("P 01", "Walk")


# --- people
# --------------------------------------------------------------------------------------------------


def test_people_have_typed_attributes_and_nothing_where_nothing_is_said(tmp_path: Path) -> None:
    table = write(
        tmp_path / "participants.tsv",
        "participant_id\tage\tgender\theight\nsub-01\t31\tF\t1.7\nsub-02\tn/a\tM\t\n",
    )
    assert read_people(table) == {
        "sub-01": {"age": 31, "gender": "F", "height": 1.7},
        "sub-02": {"gender": "M"},
    }
    with pytest.raises(FormatError, match="two rows"):
        read_people(write(tmp_path / "twice.csv", "person,age\na,1\na,2\n"))
    with pytest.raises(FormatError, match="no column names the people"):
        read_people(write(tmp_path / "nobody.csv", "age,gender\n1,F\n"))
