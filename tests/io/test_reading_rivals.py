"""Where a file or its path can be read in two ways, reading asks: people that would merge or split,
columns that fit one role, rows of several recordings, and what is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError
from tests.io.test_reading_asks import ROWS, SCREEN, STEP_MS, Reading, gaze, plain, table

OPTIONS = {"screen": SCREEN, "y_axis": "down"}
GAZE = ["t_ms", "x_px", "y_px"]

# --- paths

# Files, the people that they may be, and those that are taken.
PATHS: dict[str, tuple[list[str], str, int]] = {
    "sessions behind numbers": (["{a}_S{b}.csv"], "101|102 1|2", 4),
    "sessions in numbers": (["{a}/S{b}.csv"], "101|102 1|2", 2),
    "pages behind numbers": (["{a}_P{b}.csv"], "101|102 1|2", 4),
    "parts behind numbers": (["{a}_part{b}.csv"], "101|102 1|2", 4),
    "scenes behind codes": (["{a}_S0{b}.csv"], "AB12|MK07 1|2", 4),
    "scenes before names": (["S0{b}_{a}.csv"], "anna|ben 1|2", 2),
    "pictures before names": (["p0{b}_{a}.csv"], "anna|ben 1|2", 2),
    "scenes above names": (["S0{b}/{a}.csv"], "anna|ben 1|2", 2),
    "ids below codes": (["{a}/id{b}.csv"], "x1|y2 1|2", 2),
    "units behind numbers": (["{a}_u{b}.csv"], "201|202 1|2", 4),
    "groups": (["Gruppe {a}/VP0{b}.csv"], "A|B 1|2", 2),
    "years": (["{a}/VP0{b}.csv"], "2023|2024 1|2", 2),
    "sites": (["site{a}/sub-0{b}.csv"], "1|2 1|2", 2),
    "schools": (["学校{a}/被试0{b}.csv"], "甲|乙 1|2", 2),
    "pairs": (["P0{a}_{b}.csv"], "1|2 A|B", 2),
    "groups of three": (["P0{a}/{b}.csv"], "1|2 1|2|3", 2),
    "persons in folders": (["p0{a}/{b}.csv"], "1|2 sea|city", 2),
    "conditions": (["{a}/sub-0{b}.csv"], "easy|hard 1|2", 2),
}
JOINED = {
    "groups": "'Gruppe A_VP01'",
    "years": "'2023_VP01'",
    "sites": "'site1_sub-01'",
    "schools": "'学校甲_被试01'",
    "pairs": "'P01_A'",
    "groups of three": "'P01_1'",
}


@pytest.mark.parametrize("name", PATHS)
def test_a_part_of_a_path_with_a_rival_is_asked_about(tmp_path: Path, name: str) -> None:
    (form,), words, people = PATHS[name]
    first, second = (w.split("|") for w in words.split())
    for number, (a, b) in enumerate(product(first, second)):
        plain(tmp_path / form.format(a=a, b=b), number, 40)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert len(found.cohort.people) == people
    (doubt,) = (d for d in found.cohort.doubts if d.topic == "person")
    assert found.asks("may also mean pattern=", "Say the right pattern=")
    assert len(doubt.remedy.splitlines()) > 1
    assert JOINED.get(name, "") in doubt.remedy


def test_parts_of_a_path_can_be_joined_to_a_person(tmp_path: Path) -> None:
    for number, (site, person) in enumerate(product((1, 2), (1, 2, 3))):
        plain(tmp_path / f"site{site}" / f"sub-0{person}.csv", number, 40)
    options = {"screen": SCREEN, "y_axis": "down", "pattern": "{person}/{person}.csv"}
    cohort = gazeveil.read(tmp_path, **options)  # type: ignore[arg-type]
    assert len(cohort.people) == 6
    assert cohort[0].person == "site1_sub-01"


def test_two_files_that_may_be_one_person_get_the_option_that_says_so(tmp_path: Path) -> None:
    for number, name in enumerate(("anna", "ben")):
        plain(tmp_path / f"{name}.csv", number, 40)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.asks("a person of its own", "one person, which person= says")


def test_people_whose_numbers_differ_in_zeros_are_asked_about(tmp_path: Path) -> None:
    for number, name in enumerate(("1", "01", "1.0", "10")):
        path = plain(tmp_path / f"f{number}.csv", number, 40)
        head, *rows = path.read_text("utf-8").splitlines()
        lines = [f"participant,{head}", *(f"{name},{row}" for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.asks("The people '1' and '01' and '1.0' differ in case, blanks, zeros")


# --- columns that tell recordings apart


def runs(
    path: Path,
    columns: list[str],
    words: list[tuple[object, ...]],
    rows: int = ROWS,
    on: bool = True,
) -> Path:
    """A table with a run of rows for each tuple of words; the clock runs on or restarts."""
    lines = [
        (*of_run, STEP_MS * (i + on * number * rows), *p.tolist())
        for number, of_run in enumerate(words)
        for i, p in enumerate(gaze(rows, number))
    ]
    return table(path, [*columns, *GAZE], lines)


ABC = [("a",), ("b",), ("c",)]
SEPARATING: dict[str, tuple[list[str], list[tuple[object, ...]], tuple[str, ...]]] = {
    **{f"{n} twice": ([n], 2 * ABC, (f"'person': '{n}'",)) for n in ("Sujeto", "Kürzel", "姓名")},
    "names with points": (["Email"], [("a.meier",), ("b.kurz",)], ("'person': 'Email'",)),
    "files": (["Imagen"], [("cat.jpg",), ("dog.jpg",)], ("'trial': 'Imagen'", "'person' if")),
    "files again": (["Material"], 2 * [("cat",), ("dog",)], ("'trial': 'Material'",)),
    "trials again": (["participant", "trial"], 2 * [("a", 1), ("a", 2)], ("in 4 runs", "'trial'")),
    "images again": (["image"], 2 * [("cat",), ("dog",)], ("in 4 runs", "'image'")),
    "subjects of sites": (
        ["site", "subject"],
        [("A", 1), ("A", 2), ("B", 1), ("B", 2)],
        ("'site'", "'subject' counts anew"),
    ),
    "trial is never replaced": (
        ["participant", "trial", "half"],
        [("a", 1, "x"), ("a", 1, "y"), ("a", 2, "x")],
        ("'session': 'half'",),
    ),
    "two people columns": (["user", "participant_id"], [("lab", "a"), ("lab", "b")], ("'user'",)),
    "scene and stimulus": (
        ["scene", "stimulus"],
        [("in", 1), ("in", 2), ("out", 3)],
        ("'stimulus' of a.csv is taken for the stimulus", "'scene' may be it too"),
    ),
    "patient and participant": (
        ["patient", "participant"],
        [("yes", "a"), ("no", "b"), ("yes", "c")],
        ("'participant' of a.csv is taken for the person", "'patient' may be it too"),
    ),
}


@pytest.mark.parametrize("name", SEPARATING)
@pytest.mark.parametrize("on", [True, False])
def test_rows_that_may_be_several_recordings_are_asked_about(
    tmp_path: Path, name: str, on: bool
) -> None:
    columns, words, asked = SEPARATING[name]
    found = Reading.of(runs(tmp_path / "a.csv", columns, words, on=on), **OPTIONS)
    assert found.asks(*asked), found.said


@pytest.mark.parametrize("shift_ms", [0, 1])
@pytest.mark.parametrize("people", [2, 3, 12])
def test_people_that_take_turns_row_by_row_are_asked_about(
    tmp_path: Path, people: int, shift_ms: int
) -> None:
    px = gaze(100)
    rows = [
        (f"q{person}", 20 * i + shift_ms * person, *(px[i] + person).tolist())
        for i in range(100)
        for person in range(people)
    ]
    found = Reading.of(table(tmp_path / "a.csv", ["Sujeto", *GAZE], rows), **OPTIONS)
    assert found.asks("several recordings", "columns={'person': 'Sujeto'}")


def test_eyes_that_take_turns_at_their_own_times_are_asked_about(tmp_path: Path) -> None:
    rows = [("LR"[i % 2], 2 * i, *p.tolist()) for i, p in enumerate(gaze())]
    found = Reading.of(table(tmp_path / "a.csv", ["eye", *GAZE], rows), **OPTIONS)
    assert found.asks("'eye' alternates: rows of two eyes", "rows={'eye': 'L'}")


ORDINARY = {
    "condition": lambda trial, row: "ab"[trial % 2],
    "block": lambda trial, row: trial // 2,
    "age": lambda trial, row: 23 + trial // 4,
    "fix_index": lambda trial, row: row // 50,
    "fixation_number": lambda trial, row: 8 * trial + row // 50,
    "AOI": lambda trial, row: ("face", "body")[row // 35 % 2],
    "missed_response": lambda trial, row: trial % 2,
    "track_no": lambda trial, row: row // 10,
    "glossary": lambda trial, row: "ab"[row // 10 % 2],
    "message": lambda trial, row: "" if row else "start",
}


def test_columns_that_are_ordinary_beside_people_and_trials_raise_no_question(
    tmp_path: Path,
) -> None:
    rows = [
        ("ab"[n // 4], n % 4, *(f(n, i) for f in ORDINARY.values()), STEP_MS * i, *p.tolist())
        for n in range(8)
        for i, p in enumerate(gaze(400, n))
    ]
    path = table(tmp_path / "a.csv", ["participant", "trial", *ORDINARY, *GAZE], rows)
    found = Reading.of(path, **OPTIONS)
    assert (len(found.recordings), found.said) == (8, [])


def test_short_trials_are_recordings(tmp_path: Path) -> None:
    path = runs(tmp_path / "a.csv", ["trial"], [(n,) for n in range(60)], rows=5)
    assert len(Reading.of(path, **OPTIONS).recordings) == 60
    path = runs(tmp_path / "b.csv", ["image"], [(n,) for n in range(60)], rows=5)
    assert Reading.of(path, **OPTIONS).asks("'image' of b.csv has 60 values", "'stimulus': 'image'")


def test_keys_that_stand_in_first_rows_alone_are_asked_about(tmp_path: Path) -> None:
    path = runs(tmp_path / "a.csv", ["participant"], [(n if n in "ab" else "",) for n in "a.b."])
    assert Reading.of(path, **OPTIONS).asks("'participant' of a.csv is empty in some rows")


@pytest.mark.parametrize("words", [["#1", "#2"], ["A", "#B"]])
def test_rows_that_begin_like_comments_are_asked_about(tmp_path: Path, words: list[str]) -> None:
    path = runs(tmp_path / "a.csv", ["participant"], [(w,) for w in words])
    assert Reading.of(path, **OPTIONS).asks("lines begin with '#'", "comment=''")
    said = Reading.of(path, **OPTIONS, comment="")
    assert [r.person for r in said.recordings] == words


def test_one_person_in_all_files_is_asked_about(tmp_path: Path) -> None:
    for number, name in enumerate(("ana", "ben", "cem")):
        runs(tmp_path / f"{name}.csv", ["subject"], [("1",)], rows=40 + number)
    found = Reading.of(tmp_path, **OPTIONS)
    assert found.asks("'subject' is '1' in all 3 files", "ignore=['subject']")
    for path in tmp_path.iterdir():
        path.rename(tmp_path / f"1_{path.name}")
    assert not Reading.of(tmp_path, **OPTIONS).asks("in all 3 files")


# --- clocks


@pytest.mark.parametrize(
    "times",
    [
        [STEP_MS * (ROWS - i) for i in range(ROWS)],
        [STEP_MS * (i % 100) for i in range(ROWS)],
        [STEP_MS * (i ^ 1) for i in range(ROWS)],
        [10 * (STEP_MS * i // 10) for i in range(ROWS)],
        [(64000 + STEP_MS * i) % 65536 for i in range(3 * ROWS)],
        [f"{1.7e12 + STEP_MS * i:.5e}" for i in range(ROWS)],
    ],
    ids=["backwards", "restarts", "swapped", "coarse", "wraps", "spreadsheet"],
)
def test_samples_that_are_lost_by_their_times_are_counted_aloud(
    tmp_path: Path, times: list[object]
) -> None:
    rows = [(t, *p.tolist()) for t, p in zip(times, gaze(len(times)), strict=True)]
    found = Reading.of(table(tmp_path / "a.csv", GAZE, rows), **OPTIONS)
    assert found.asks("samples of a.csv are lost because their times repeat or go back")


# --- tables of jsPsych


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trial_index,webgazer_data\n1,\n2,null\n", "it holds no sample of gaze"),
        ("trial_index,webgazer_data\n", "it holds no sample of gaze"),
        ("# made\ntrial_index,webgazer_data\n1,[]\n", "its first line is not a header"),
        ("webgazer_data,trial_index,webgazer_data\n,1,\n", "it holds no sample of gaze"),
    ],
)
def test_a_table_of_jspsych_without_gaze_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(text, "utf-8")
    with pytest.raises(FormatError, match=words):
        gazeveil.read(tmp_path / "a.csv")


# --- two columns that fit gaze


# --- lost samples


def test_flags_that_never_change_within_a_trial_are_asked_about(tmp_path: Path) -> None:
    words = [("ana", 1, "valid"), ("ana", 2, "invalid"), ("ana", 3, "valid")]
    path = runs(tmp_path / "a.csv", ["participant", "trial", "validity"], words)
    assert Reading.of(path, **OPTIONS).asks("'validity' of a.csv never changes within a recording")


NAMES_OF_LOSS = [
    *(
        "gültig",
        "Gültigkeit",
        "gueltig",
        "válido",
        "valide",
        "Validez",
        "有效",
        "眨眼",
        "Lidschlag",
    ),
    *("parpadeo", "quality", "ok", "gaze_ok", "good", "is_bad", "eye_open", "eyes_closed"),
    "state",
    *("artefact", "exclude", "error", "interpolated", "flag", "usable", "outlier", "noise"),
    *("conf_avg", "eyelid_opening", "confidence_left", "Auge erkannt"),
]


@pytest.mark.parametrize("column", NAMES_OF_LOSS)
def test_columns_that_may_say_what_is_lost_are_asked_about(tmp_path: Path, column: str) -> None:
    rows = [(STEP_MS * i, *p.tolist(), int(i % 9 < 2)) for i, p in enumerate(gaze())]
    found = Reading.of(table(tmp_path / "a.csv", [*GAZE, column], rows), **OPTIONS)
    assert found.asks(f"'{column}' of a.csv is not used", "which samples are lost")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ((0, 0), "0"),
        ((-1, -1), "-1"),
        ((-999, -999), "-999"),
        ((65535, 65535), "65535"),
        ((2147483647, 2147483647), "2147483647"),
        ((-1920, -1080), "-1920, -1080"),
        ((-1, 540), "-1"),
        ((1920, 1080), "1920, 1080"),
    ],
)
def test_places_outside_of_the_screen_that_are_told_again_are_asked_about(
    tmp_path: Path, code: tuple[float, float], said: str
) -> None:
    px = gaze(2000)
    px[[100, 101, 900, 901]] = code
    rows = [(STEP_MS * i, *p.tolist()) for i, p in enumerate(px)]
    found = Reading.of(table(tmp_path / "a.csv", GAZE, rows), **OPTIONS)
    assert found.asks("4 samples of a.csv are exactly", f"missing=[{said}]")


def test_a_number_within_the_screen_that_is_told_again_is_asked_about(tmp_path: Path) -> None:
    px = gaze(2000)
    px[100:160] = 999
    rows = [(STEP_MS * i, *p.tolist()) for i, p in enumerate(px)]
    found = Reading.of(table(tmp_path / "a.csv", GAZE, rows), **OPTIONS)
    assert found.asks("exactly (999, 999)", "missing=[999, 999]")


SIDES = {
    "left_valid right_valid": (1, 0),
    "ValidityLeft ValidityRight": (1, 0),
    "blink_left blink_right": (0, 1),
    "pupil_left pupil_right": (3.5, 0),
    "left_valid": (1, 0),
}


@pytest.mark.parametrize("columns", SIDES)
@pytest.mark.parametrize("eyes", [False, True])
def test_one_place_is_lost_where_all_eyes_that_say_so_are(
    tmp_path: Path, columns: str, eyes: bool
) -> None:
    px, names, (good, bad) = gaze(), columns.split(), SIDES[columns]
    lost = np.arange(ROWS) % 40 < 5
    places = ["left_x_px", "left_y_px", "right_x_px", "right_y_px"] if eyes else []
    rows = [
        (
            STEP_MS * i,
            *p.tolist(),
            *(p.tolist() * 2 if eyes else []),
            *[bad if lost[i] else good] * len(names),
        )
        for i, p in enumerate(px)
    ]
    path = table(tmp_path / "a.csv", [*GAZE, *places, *names], rows)
    (recording,) = Reading.of(path, **OPTIONS).recordings
    assert np.array_equal(recording.valid, ~lost)


@pytest.mark.parametrize("column", ["pupil", "PupilSize"])
def test_a_pupil_with_negative_numbers_is_no_size_and_loses_nothing(
    tmp_path: Path, column: str
) -> None:
    scores = np.random.default_rng(1).normal(0, 1, ROWS).round(3)
    rows = [(STEP_MS * i, *p.tolist(), scores[i]) for i, p in enumerate(gaze())]
    found = Reading.of(table(tmp_path / "a.csv", [*GAZE, column], rows), **OPTIONS)
    assert found.recordings[0].valid.all()
    assert found.recordings[0].pupil is None
    assert found.asks(f"'{column}' of a.csv has negative numbers: it is no size")


# --- places


def wide(rows: int = ROWS) -> np.ndarray:
    """Gaze in pixels all over the screen."""
    places = np.random.default_rng(3).uniform([100, 100], [1800, 1000], (rows // 50, 2))
    return np.round(np.repeat(places, 50, axis=0) + gaze(rows) % 7, 3)


@pytest.mark.parametrize(
    ("columns", "of", "words"),
    [
        (("x_px", "y_px"), lambda px: px - [960, 540], "look like pixels from the centre"),
        (("x_px", "y_px"), lambda px: 2 * px, "lie outside of the screen"),
        (("x_px", "y_px"), lambda px: px[:, ::-1], "lie outside of the screen"),
        (("x_deg", "y_deg"), lambda px: px / 40, "are all positive"),
    ],
)
def test_gaze_that_does_not_fit_its_unit_or_the_screen_is_asked_about(
    tmp_path: Path, columns: tuple[str, str], of: Callable[[np.ndarray], np.ndarray], words: str
) -> None:
    rows = [(STEP_MS * i, *p.tolist()) for i, p in enumerate(of(wide()))]
    found = Reading.of(table(tmp_path / "a.csv", ["t_ms", *columns], rows), **OPTIONS)
    assert found.asks(words)


@pytest.mark.parametrize("names", [("x", "y"), ("pos_x", "pos_y"), ("x_px", "y_px")])
def test_a_pair_that_is_not_where_the_eyes_look_is_asked_about(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    px, mouse = wide(), wide()[::-1]
    header = ["t_ms", *names, "left_x", "left_y", "right_x", "right_y"]
    for other, asked in ((mouse, True), (px, False)):
        rows = [
            (STEP_MS * i, *o.tolist(), *p.tolist(), *p.tolist())
            for i, (o, p) in enumerate(zip(other, px, strict=True))
        ]
        found = Reading.of(table(tmp_path / "a.csv", header, rows), **OPTIONS, unit="px")
        assert found.asks("are not where the eyes look", "columns={'left_x': 'left_x'") == asked


def test_fixations_are_not_taken_for_samples_in_silence(tmp_path: Path) -> None:
    rows = [(330 * i, *p.tolist(), 250 + i) for i, p in enumerate(gaze(100))]
    path = table(tmp_path / "a.csv", [*GAZE, "duration_ms"], rows)
    assert Reading.of(path, **OPTIONS).asks("look like fixations, not samples of gaze")
