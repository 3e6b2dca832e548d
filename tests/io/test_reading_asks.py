"""Reading never guesses in silence: a made file of known truth is read right, asked about or
refused in one sentence, and never wrong without a word.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, GazeveilError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import FILE, GUESSED, SAID
from gazeveil.io.reading import ReadingWarning
from tests.support import command_line

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
STEP_MS = 4
ROWS = 400


@dataclass
class Reading:
    """What came of reading a place: the recordings, what was said, or the one sentence of a
    refusal.
    """

    recordings: list[gazeveil.Recording] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused: str = ""
    cohort: Cohort | None = None

    @classmethod
    def of(cls, place: Path, **options: object) -> Reading:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                cohort = gazeveil.read(place, **options)  # type: ignore[arg-type]
                recordings, refused = list(cohort), ""
            except GazeveilError as error:
                cohort, recordings, refused = None, [], str(error)
        said = [str(w.message) for w in caught if issubclass(w.category, ReadingWarning)]
        assert "\n" not in refused
        return cls(recordings, said, refused, cohort)

    def asks(self, *words: str) -> bool:
        """Whether a sentence, of a warning or a refusal, has all these words."""
        return any(all(w in s for w in words) for s in (*self.said, self.refused))


def gaze(rows: int = ROWS, seed: int = 0) -> np.ndarray:
    """A walk of gaze in pixels, with fractions of them as trackers have."""
    steps = np.random.default_rng(seed).normal(0, 6, (rows, 2)).cumsum(axis=0)
    return np.round(np.array([960.0, 540.0]) + steps - steps.mean(axis=0), 3)


def degrees(px: np.ndarray, screen: Screen = SCREEN) -> np.ndarray:
    return np.stack(screen.from_px(px[:, 0], px[:, 1]), axis=1)


def table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(str(c) for c in row) for row in rows]
    path.write_text("\n".join([",".join(header), *lines]) + "\n", "utf-8")
    return path


def plain(path: Path, seed: int = 0, rows: int = ROWS) -> Path:
    """A table of one recording that needs no word."""
    px = gaze(rows, seed)
    return table(
        path, ["t_ms", "x_px", "y_px"], ((STEP_MS * i, *px[i].tolist()) for i in range(rows))
    )


def same_places(recording: gazeveil.Recording, truth: np.ndarray, valid: np.ndarray) -> bool:
    """Whether the valid samples are these, at these degrees."""
    return bool(
        np.array_equal(recording.valid, valid)
        and np.allclose(recording.x_deg[valid], truth[valid, 0], atol=1e-9)
        and np.allclose(recording.y_deg[valid], truth[valid, 1], atol=1e-9)
    )


# --- 1: participants and trials that merge

PARTICIPANT = [
    *("pid", "ID", "id", "subject_nr", "RECORDING_SESSION_LABEL", "worker_id", "workerId"),
    *("Participant No", "Vp", "VPN", "vp_nr", "subj", "subject", "sub", "SubjectID", "subno"),
    *("participant", "participant_id", "ParticipantName", "participant_code", "user", "user_id"),
    *("observer", "obs", "proband", "Versuchsperson", "PROLIFIC_PID", "prolific_id", "ppt"),
    *("Respondent", "Respondent Name", "name", "code", "who", "被试", "被试编号", "参与者"),
]
TRIAL = [
    *("TRIAL_INDEX", "trial", "trial_number", "trialNr", "TrialID", "trial_no", "movie", "film"),
    *("condition", "item", "page", "block", "stimulus", "stim", "image", "img_name", "picture"),
    *("video", "clip", "scene", "Trial Number", "sentence", "text", "question", "run", "phase"),
    *("section", "Durchgang", "Bild", "试次", "图片"),
]
CLOCKS: dict[str, Callable[[int], int]] = {
    "restarts": lambda part: 0,
    "jumps": lambda part: part * (ROWS * STEP_MS + 1000),
    "runs on": lambda part: part * ROWS * STEP_MS,
}


def _parts(path: Path, column: str, words: Sequence[str], clock: str) -> list[np.ndarray]:
    """One file with a part for each word; gaze of each part."""
    truth = [gaze(seed=part) for part in range(len(words))]
    rows = [
        (word, CLOCKS[clock](part) + STEP_MS * i, *truth[part][i].tolist())
        for part, word in enumerate(words)
        for i in range(ROWS)
    ]
    table(path, [column, "t_ms", "x_px", "y_px"], rows)
    return truth


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("column", PARTICIPANT)
def test_four_people_in_a_column_are_four_or_asked_about(
    tmp_path: Path, column: str, clock: str
) -> None:
    people = ["k7", "m3", "a9", "z1"]
    truth = _parts(tmp_path / "all.csv", column, people, clock)
    found = Reading.of(tmp_path / "all.csv", screen=SCREEN, y_axis="down")
    right = [r.person for r in found.recordings] == people and all(
        same_places(r, degrees(t), np.ones(ROWS, dtype=bool))
        for r, t in zip(found.recordings, truth, strict=False)
    )
    assert (
        right
        or found.asks(f"'{column}'", "several recordings", f"'person': '{column}'")
        or (found.asks(f"'{column}'", "several recordings", f"'trial': '{column}'"))
    )


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("column", TRIAL)
def test_trials_in_a_column_are_recordings_or_asked_about(
    tmp_path: Path, column: str, clock: str
) -> None:
    truth = _parts(tmp_path / "p01.csv", column, ["1", "2", "3", "4"], clock)
    found = Reading.of(tmp_path / "p01.csv", screen=SCREEN, y_axis="down")
    right = len(found.recordings) == 4 and all(
        same_places(r, degrees(t), np.ones(ROWS, dtype=bool))
        for r, t in zip(found.recordings, truth, strict=True)
    )
    assert right or found.asks(f"'{column}'", "several recordings", "columns={")


def test_a_column_that_separates_can_be_said_or_ignored(tmp_path: Path) -> None:
    path = tmp_path / "p01.csv"
    _parts(path, "item", ["1", "2", "3"], "restarts")
    options = {"screen": SCREEN, "y_axis": "down"}
    assert len(Reading.of(path, **options, columns={"trial": "item"}).recordings) == 3
    ignored = Reading.of(path, **options, ignore=["item"])
    assert len(ignored.recordings) == 1
    assert not ignored.asks("several recordings")
    cohort = Reading.of(path, **options).cohort
    (doubt,) = (d for d in cohort[0].doubts if d.topic == "session")
    assert (doubt.topic, doubt.remedy) == ("session", '[columns]\ntrial = "item"')
    assert cohort.read_as.unused == ("item",)


def test_a_stimulus_that_comes_again_is_a_session_of_its_own(tmp_path: Path) -> None:
    rows = [
        ("anna", stimulus, trial, STEP_MS * i, 960 + i, 540)
        for trial, stimulus in enumerate(("sea", "city", "sea"))
        for i in range(30)
    ]
    path = table(tmp_path / "a.csv", ["person", "stimulus", "trial", "t_ms", "x_px", "y_px"], rows)
    cohort = gazeveil.read(path, screen=SCREEN, y_axis="down")
    assert [k[:3] for k in cohort.keys] == [
        ("anna", "sea", "1"),
        ("anna", "city", "1"),
        ("anna", "sea", "1.2"),
    ]


def test_sessions_without_people_are_asked_about(tmp_path: Path) -> None:
    rows = [(s, STEP_MS * i, 960 + i, 540) for s in range(1, 5) for i in range(60)]
    path = table(tmp_path / "events.csv", ["session_id", "t_ms", "x_px", "y_px"], rows)
    found = Reading.of(path, screen=SCREEN, y_axis="down")
    assert found.asks("'session_id' of events.csv has 4 values", "columns={'person': 'session_id'}")


# --- 2: lost samples

VALID = {
    **dict.fromkeys(
        [
            *("valid", "is_valid", "isValid", "Validity", "gaze_valid", "sample_valid"),
            *("valid_flag", "tracked", "is_tracked", "eye_found", "detected", "left_validity"),
            *("validity_left", "LeftValid", "l_valid", "left_tracked", "right_validity"),
        ],
        (1, 0),
    ),
    **dict.fromkeys(
        [
            *("trackloss", "TrackLoss", "tracking_loss", "blink", "in_blink", "is_blink", "lost"),
            *("is_lost", "missing", "invalid", "dropout", "eye_lost", "LEFT_IN_BLINK"),
            "RIGHT_IN_BLINK",
        ],
        (0, 1),
    ),
    **dict.fromkeys(["status", "eye_status", "tracking_status", "GazeStatus", "miss_code"], (0, 2)),
    "tracking": ("OK", "LOST"),
}


@pytest.mark.parametrize("column", VALID)
def test_columns_of_validity_are_used_or_asked_about(tmp_path: Path, column: str) -> None:
    px = gaze()
    lost = np.zeros(ROWS, dtype=bool)
    lost[100:140] = True
    px[lost] = px[99]  # what the tracker shows where it lost the eye
    good, bad = VALID[column]
    side = "left_" if "left" in column.lower() or column.startswith("l_") else ""
    side = "right_" if "right" in column.lower() else side
    header = ["t_ms", f"{side}x_px", f"{side}y_px", column]
    rows = [(STEP_MS * i, *px[i].tolist(), bad if lost[i] else good) for i in range(ROWS)]
    found = Reading.of(table(tmp_path / "a.csv", header, rows), screen=SCREEN, y_axis="down")
    (recording,) = found.recordings
    right = same_places(recording, degrees(px), ~lost)
    assert right or found.asks(f"'{column}' of a.csv", "not used", "'valid'", "'lost'")
    if not right:
        assert not Reading.of(
            tmp_path / "a.csv", screen=SCREEN, y_axis="down", ignore=[column]
        ).asks("not used")


@pytest.mark.parametrize(
    ("column", "value"), [("confidence", "0"), ("pupil", "0.0"), ("pupil_size", "0")]
)
def test_confidence_and_pupil_of_zero_are_lost(tmp_path: Path, column: str, value: str) -> None:
    px = gaze()
    lost = np.arange(ROWS) % 7 == 3
    px[lost] = 0
    rows = [(STEP_MS * i, *px[i].tolist(), value if lost[i] else "3.5") for i in range(ROWS)]
    path = table(tmp_path / "a.csv", ["t_ms", "x_px", "y_px", column], rows)
    (recording,) = Reading.of(path, screen=SCREEN, y_axis="down").recordings
    assert same_places(recording, degrees(px), ~lost)


def test_a_pupil_that_was_not_measured_loses_nothing(tmp_path: Path) -> None:
    rows = [(STEP_MS * i, *p.tolist(), 0) for i, p in enumerate(gaze())]
    path = table(tmp_path / "a.csv", ["t_ms", "x_px", "y_px", "pupil"], rows)
    (recording,) = Reading.of(path, screen=SCREEN, y_axis="down").recordings
    assert recording.valid.all()


@pytest.mark.parametrize("code", [0, -1, -9999, 9999, -32768, "1e8"])
def test_lost_codes_far_behind_the_first_rows_are_lost_and_said(
    tmp_path: Path, code: object
) -> None:
    px, rows = gaze(9000), 9000
    lost = np.arange(rows) >= 8800
    written = [(STEP_MS * i, *((code, code) if lost[i] else px[i].tolist())) for i in range(rows)]
    path = table(tmp_path / "a.csv", ["t_ms", "x_px", "y_px"], written)
    assert path.stat().st_size > 2 << 16
    found = Reading.of(path, screen=SCREEN, y_axis="down")
    (recording,) = found.recordings
    assert same_places(recording, degrees(px), ~lost)
    assert found.asks("2.2 % of the samples", "in both 'x_px', 'y_px'", "missing=")
    assert recording.facts["validity"].origin == GUESSED


def test_imotions_and_begaze_write_lost_samples_as_numbers(tmp_path: Path) -> None:
    px = gaze()
    lost = np.arange(ROWS) % 10 == 4
    for name, header, code in (
        ("imotions", ["Timestamp", "ET_GazeLeftx", "ET_GazeLefty", "ET_GazeRightx"], -1),
        ("begaze", ["RecordingTime [ms]", "Point of Regard Right X [px]"], 0),
    ):
        two = name == "imotions"
        header += ["ET_GazeRighty"] if two else ["Point of Regard Right Y [px]"]
        rows = [
            (STEP_MS * i, *((code, code) if lost[i] else px[i].tolist()) * (2 if two else 1))
            for i in range(ROWS)
        ]
        path = table(tmp_path / f"{name}.csv", header, rows)
        (recording,) = Reading.of(path, screen=SCREEN, y_axis="down").recordings
        assert same_places(recording, degrees(px), ~lost)


# --- 3: a dead eye


@pytest.mark.parametrize("code", [0, -1, -32768, "1e8", 512.25])
@pytest.mark.parametrize("dead", ["left", "right"])
def test_a_dead_eye_is_not_averaged_in(tmp_path: Path, dead: str, code: object) -> None:
    px = gaze()
    header = ["t_ms", "left_x_px", "left_y_px", "right_x_px", "right_y_px"]
    eyes = {"left": px.tolist(), "right": px.tolist(), dead: [(code, code)] * ROWS}
    rows = [(STEP_MS * i, *eyes["left"][i], *eyes["right"][i]) for i in range(ROWS)]
    found = Reading.of(table(tmp_path / "a.csv", header, rows), screen=SCREEN, y_axis="down")
    (recording,) = found.recordings
    assert same_places(recording, degrees(px), np.ones(ROWS, dtype=bool))
    assert found.asks(f"'{dead}_x_px', '{dead}_y_px' of a.csv never moves", "taken for lost")


def test_eyes_that_look_at_different_places_are_asked_about(tmp_path: Path) -> None:
    px = gaze()
    header = ["t_ms", "left_x_px", "left_y_px", "right_x_px", "right_y_px"]
    rows = [(STEP_MS * i, *p.tolist(), *(p - [700, 0]).tolist()) for i, p in enumerate(px)]
    found = Reading.of(table(tmp_path / "a.csv", header, rows), screen=SCREEN, y_axis="down")
    assert found.asks("The eyes of a.csv look", "degrees apart")


# --- 4: paths

LAYOUTS: dict[str, tuple[list[str], tuple[int, int] | None]] = {
    # files, and people and stimuli where the paths leave no question
    "person folders": (["p01/img1.csv", "p01/img2.csv", "p02/img1.csv", "p02/img2.csv"], (2, 2)),
    "person in the file": (["p01_img1.csv", "p01_img2.csv", "p02_img1.csv"], (2, 2)),
    "condition folders": (["cond1/sub-01.csv", "cond1/sub-02.csv", "cond2/sub-01.csv"], (2, 2)),
    "site, person, stimulus": (
        ["berlin/VP01/bild1.csv", "berlin/VP02/bild1.csv", "wien/VP03/bild1.csv"],
        (3, 1),
    ),
    "sessions": (["sub-01/ses-1/a.csv", "sub-01/ses-2/a.csv", "sub-02/ses-1/a.csv"], (2, 1)),
    "dates": (
        ["2021-03-04/p01_img1.csv", "2021-03-04/p02_img1.csv", "2021-03-05/p01_img2.csv"],
        (2, 2),
    ),
    "trackers": (["EL1000plus/p001ima4241.csv", "EL1000plus/p002ima4241.csv"], (2, 1)),
    "numbers": (["0001_1.csv", "0001_2.csv", "0002_1.csv", "0002_2.csv", "0003_1.csv"], None),
    "first names in conditions": (
        ["cond/easy/anna.csv", "cond/easy/ben.csv", "cond/hard/anna.csv", "cond/hard/ben.csv"],
        None,
    ),
    "German names": (["patienten/Müller.csv", "patienten/Groß.csv", "kontrolle/Weber.csv"], None),
    "Chinese names": (["张伟/视频1.csv", "张伟/视频2.csv", "李娜/视频1.csv"], None),
    "Chinese numbers": (["被试01_图片1.csv", "被试01_图片2.csv", "被试02_图片1.csv"], (2, 2)),
    "flat names": (["anna.csv", "ben.csv", "cem.csv"], None),
    "scenes in people": (["anna/s1.csv", "anna/s2.csv", "ben/s1.csv"], None),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_folders_are_read_right_or_asked_about(tmp_path: Path, name: str) -> None:
    files, counts = LAYOUTS[name]
    for number, file in enumerate(files):
        plain(tmp_path / file, number, 60)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert len(found.recordings) == len(files)
    if counts is not None:
        assert (len(found.cohort.people), len(found.cohort.stimuli)) == counts
        assert found.said == []
    else:
        assert found.asks("pattern=", " people")
        (doubt,) = (d for d in found.cohort.doubts if d.topic == "person")
        assert all(line.startswith("pattern = ") for line in doubt.remedy.splitlines())
    assert {f.origin for f in found.cohort.facts["person"]} == {GUESSED}


def test_judo1000_is_asked_about_and_its_trials_are_recordings(tmp_path: Path) -> None:
    for person in ("0001", "0002", "0003"):
        for session in "12":
            rows = [
                (trial, STEP_MS * i, *p.tolist())
                for trial in (1, 2)
                for i, p in enumerate(gaze(100, int(person) + int(session) + trial))
            ]
            table(tmp_path / f"{person}_{session}.csv", ["trialId", "t_ms", "x_px", "y_px"], rows)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert len(found.recordings) == 12
    assert found.asks("(6 people", "pattern='{person}_{stimulus}.csv' (3 people")
    said = Reading.of(tmp_path, screen=SCREEN, y_axis="down", pattern="{person}_{session}.csv")
    assert list(said.cohort.people) == ["0001", "0002", "0003"]
    assert {k[2] for k in said.cohort.keys} == {"1", "2"}


def test_a_copy_is_called_a_copy(tmp_path: Path) -> None:
    for folder in ("site1", "site2"):
        plain(tmp_path / folder / "rec.csv")
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.asks("hold the same bytes", "one is a copy")
    twice = Reading.of(tmp_path, screen=SCREEN, y_axis="down", pattern="{}/{person}.csv")
    assert "hold the same bytes" in twice.refused
    assert "two people" not in twice.refused


# --- 5: direction of y, units, clocks


@pytest.mark.parametrize("unit", ["px", "deg", "px-centred", "fraction"])
def test_y_is_not_turned_without_a_word(tmp_path: Path, unit: str) -> None:
    px = gaze()
    values = {
        "px": px,
        "px-centred": px - [960, 540],
        "deg": degrees(px),
        "fraction": px / [1920, 1080],
    }[unit]
    upwards = values * [1, -1] + ([0, 1080] if unit == "px" else [0, unit == "fraction"])
    rows = [(STEP_MS * i, *v.tolist()) for i, v in enumerate(upwards)]
    path = table(tmp_path / "a.csv", ["t_ms", "x", "y"], rows)
    found = Reading.of(path, screen=SCREEN, unit=unit)
    assert found.asks("'y' of a.csv is taken to grow downwards", "y_axis='up'")
    assert found.recordings[0].facts["y_axis"].origin == GUESSED
    said = Reading.of(path, screen=SCREEN, unit=unit, y_axis="up")
    assert said.said == []
    assert same_places(said.recordings[0], degrees(px), np.ones(ROWS, dtype=bool))
    assert said.recordings[0].facts["y_axis"] == ("up", SAID, "y_axis")


def test_norm_pos_y_of_pupil_grows_upwards(tmp_path: Path) -> None:
    px = gaze()
    up = px / [1920, 1080] * [1, -1] + [0, 1]
    rows = [(f"{STEP_MS * i / 1000:.3f}", *v.tolist()) for i, v in enumerate(up)]
    path = table(tmp_path / "a.csv", ["time_s", "norm_pos_x", "norm_pos_y"], rows)
    found = Reading.of(path, screen=SCREEN)
    assert same_places(found.recordings[0], degrees(px), np.ones(ROWS, dtype=bool))
    assert not found.asks("downwards")
    assert found.recordings[0].facts["y_axis"].origin == FILE


def test_every_file_is_held_against_the_layout(tmp_path: Path) -> None:
    for number in range(8):
        scale = [1920, 1080] if number == 6 else [1, 1]
        rows = [(STEP_MS * i, *(p / scale).tolist()) for i, p in enumerate(gaze(seed=number))]
        table(tmp_path / f"p{number:02}" / "a.csv", ["t_ms", "x", "y"], rows)
    found = Reading.of(tmp_path, screen=SCREEN, unit="px", y_axis="down")
    assert found.asks(
        "'x' and 'y' of a.csv is taken for pixels", "look like fractions", "unit='fraction'"
    )


def test_two_kilohertz_in_whole_milliseconds_is_asked_about_and_can_be_said(tmp_path: Path) -> None:
    px = gaze()
    rows = [(i // 2, *p.tolist()) for i, p in enumerate(px)]
    path = table(tmp_path / "a.csv", ["t_ms", "x_px", "y_px"], rows)
    found = Reading.of(path, screen=SCREEN, y_axis="down")
    assert found.asks("Each time of a.csv stands twice", "rate_hz=2000")
    said = Reading.of(path, screen=SCREEN, y_axis="down", rate_hz=2000)
    assert same_places(said.recordings[0], degrees(px), np.ones(ROWS, dtype=bool))
    assert set(np.diff(said.recordings[0].t_ns)) == {500_000}


def test_rows_that_alternate_between_eyes_are_asked_about_and_can_be_said(tmp_path: Path) -> None:
    px = gaze()
    rows = [
        (STEP_MS * i, eye, *(p + shift).tolist())
        for i, p in enumerate(px)
        for eye, shift in (("L", 0), ("R", 8))
    ]
    path = table(tmp_path / "a.csv", ["t_ms", "eye", "x_px", "y_px"], rows)
    found = Reading.of(path, screen=SCREEN, y_axis="down")
    assert found.asks("Each time of a.csv stands twice", "'eye' alternates", "rows={'eye': 'L'}")
    said = Reading.of(path, screen=SCREEN, y_axis="down", rows={"eye": "L"})
    (recording,) = said.recordings
    assert same_places(recording, degrees(px), np.ones(ROWS, dtype=bool))
    assert (recording.counts["rows"], recording.counts["other_rows"]) == (2 * ROWS, ROWS)


def test_lost_codes_do_not_enter_the_guess_of_the_unit(tmp_path: Path) -> None:
    px = gaze()
    lost = np.arange(ROWS) % 3 == 0
    fractions = px / [1920, 1080]
    rows = [
        (STEP_MS * i, *((-9999, -9999) if lost[i] else fractions[i].tolist())) for i in range(ROWS)
    ]
    found = Reading.of(table(tmp_path / "a.csv", ["t_ms", "x", "y"], rows), screen=SCREEN)
    (recording,) = found.recordings
    assert found.asks("fractions of the screen")
    assert same_places(recording, degrees(px), ~lost)


# --- 6: assumed screens of trackers


def test_tobii_without_a_resolution_says_what_it_assumed(tmp_path: Path) -> None:
    header = ["Recording timestamp [ms]", "Participant name", "Gaze point X", "Gaze point Y"]
    rows = [(STEP_MS * i, "P1", *p.tolist()) for i, p in enumerate(gaze(300))]
    path = table(tmp_path / "a.csv", header, rows)
    found = Reading.of(path)
    assert found.asks("a.csv does not say its screen: assumed 1920 x 1080 px")
    assert found.recordings[0].facts["person"].origin == FILE


# --- 7: what labs have, and what is said of the rest


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.xlsx", b"PK\x03\x04", "spreadsheet.*Save it as CSV"),
        ("a.feather", b"ARROW1\0\0", "Arrow file.*write_csv"),
        ("a.json", b'{"gaze": [1, 2]}', "JSON of no known kind.*one row per sample as CSV"),
        ("a.sav", b"$FL2", "statistics program.*Save it as CSV"),
    ],
)
def test_other_kinds_of_files_get_one_sentence_with_a_way_out(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=words) as caught:
        gazeveil.read(tmp_path / name)
    assert len(str(caught.value)) < 300


def test_entries_of_an_option_are_set_one_by_one(tmp_path: Path) -> None:
    rows = [(STEP_MS * i, *p.tolist()) for i, p in enumerate(gaze(60))]
    path = table(tmp_path / "a.csv", ["uhr", "GX", "GY"], rows)
    settings = ("columns.t=uhr", "columns.x=GX", "columns.y=GY", "unit=px", "time_unit=ms")
    arguments = [a for s in settings for a in ("--set", s)]
    done = command_line.gazeveil(
        *("inspect", path, "--screen", "1920x1080px,531x299mm,650mm", *arguments),
        *("--json", tmp_path / "out.json"),
    )
    assert done.code == 0, done.err
    shown = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert shown["columns"]["used"] == {"t": "uhr", "x": "GX", "y": "GY"}


# --- facts


def test_every_fact_says_where_it_comes_from(tmp_path: Path) -> None:
    header = ["participant", "time", "gx", "gy", "note", "is_valid"]
    rows = [("k7", STEP_MS * i, *p.tolist(), "n", 1) for i, p in enumerate(gaze())]
    table(tmp_path / "film.csv", header, rows)
    cohort = Reading.of(tmp_path).cohort
    origins = {topic: next(iter(facts)).origin for topic, facts in cohort.facts.items()}
    assert origins == {
        "person": FILE,
        "stimulus": GUESSED,
        "clock": GUESSED,
        "unit": GUESSED,
        "y_axis": GUESSED,
        "validity": FILE,
    }
    facts = cohort[0].facts
    assert facts["screen"].origin == GUESSED
    assert facts["clock"].value == "'time', ms"
    done = command_line.gazeveil("inspect", tmp_path)
    assert done.code == 0, done.err
    for words in ("Read as", "y axis", "GUESSED, what is usual", "not used", "note"):
        assert words in done.out, words


def test_facts_survive_being_written_and_are_no_part_of_a_release(tmp_path: Path) -> None:
    plain(tmp_path / "in" / "anna" / "sea.csv")
    cohort = Reading.of(tmp_path / "in", screen=SCREEN, y_axis="down").cohort
    again = gazeveil.read(cohort.write(tmp_path / "copy"))
    assert again[0].facts == cohort[0].facts
    release = gazeveil.mechanism("gaussian", sigma_deg=2).release(cohort, seed=1)
    release.write(tmp_path / "out")
    text = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert b"facts" not in text
    assert b"anna" not in text
