"""Scrubbed copies of every text format: nothing planted is left, gaze is what it was."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import pytest

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.recording import Recording
from gazeveil.io.registry import get, names
from gazeveil.release.scrub import scrub
from gazeveil.release.scrub.copies import ScrubJob, copied
from gazeveil.release.scrub.places import table_lines
from tests.support.identifiers import SCRUBBED, plant, traces_in, write
from tests.support.planted_tables import PLANTED

#: Readers take seconds since 1970 as 64-bit floats, and ticks of a clock are rounded to 100 ns.
ROUNDING_NS = 600
#: Both eyes get one place, so that a measured distance of the screen may move a little.
MEASURED = ("tobii-sdk", "tobii-sdk columns", "tobii-sdk matlab")
PLANTS = {**PLANTED, **{name: partial(plant, name) for name in SCRUBBED}}


def recordings(folder: Path, format_name: str) -> list[Recording]:
    """What a folder holds, in an order that labels do not change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"unit": "px", "screen": SCREEN} if format_name.startswith("csv") else {}
        known = format_name.split()[0] if format_name in PLANTED else None
        found = list(gazeveil.read(folder, format=known, **options))
    return sorted(
        found, key=lambda r: (len(r), np.nansum(places(r)).round(6), int(r.valid.sum()), r.session)
    )


def places(recording: Recording) -> Floats:
    """Samples, or the fixations of a recording without samples."""
    return recording.events.x_deg if not len(recording) and recording.events else recording.x_deg


SCREEN = gazeveil.Screen(1920, 1080, 530, 300, 650)


def assert_same_gaze(old: Recording, new: Recording, close: float) -> None:
    np.testing.assert_array_equal(old.valid, new.valid)
    np.testing.assert_allclose(new.x_deg, old.x_deg, rtol=0, atol=close)
    np.testing.assert_allclose(new.y_deg, old.y_deg, rtol=0, atol=close)
    steps = np.diff(old.t_ns) - np.diff(new.t_ns)
    assert len(steps) == 0 or np.abs(steps).max() <= ROUNDING_NS
    assert new.rate_hz == pytest.approx(old.rate_hz, rel=1e-6, nan_ok=True)
    assert len(old.messages) == len(new.messages)
    if not len(old):
        np.testing.assert_array_equal(new.events.x_deg, old.events.x_deg)
        np.testing.assert_array_equal(new.events.y_deg, old.events.y_deg)
        np.testing.assert_array_equal(np.diff(new.events.onset_ns), np.diff(old.events.onset_ns))
        assert new.events.onset_ns[0] < 1e9 * 3600


@pytest.mark.parametrize("format_name", list(PLANTS))
def test_nothing_planted_is_left_and_the_gaze_is_the_same(format_name: str, tmp_path: Path) -> None:
    planted = PLANTS[format_name](tmp_path / "in")
    held = {
        word for trace in traces_in(tmp_path / "in") for word in planted if f" {word} " in trace
    }
    assert held == planted, "the search finds what was planted"
    report = scrub(tmp_path / "in", tmp_path / "out")
    assert format_name.split()[0] in report.formats
    assert traces_in(tmp_path / "out") == []
    before = recordings(tmp_path / "in", format_name)
    after = recordings(tmp_path / "out", format_name)
    assert len(before) == len(after) > 0
    for old, new in zip(before, after, strict=True):
        assert_same_gaze(old, new, 0.05 if format_name in MEASURED else 1e-9)
    for part in ("person", "stimulus"):
        old_names, new_names = ([getattr(r, part) for r in rs] for rs in (before, after))
        assert len(set(old_names)) == len(set(new_names))
    assert not {r.person for r in before} & {r.person for r in after} - {"1"}
    assert all(int(r.t_ns[0]) < 1e9 * 3600 for r in after if len(r))


def test_every_format_is_scrubbed_or_says_what_to_do_instead() -> None:
    rules = {name: get(name).scrub for name in names()}
    assert None not in rules.values()
    tested = {name.split()[0] for name in PLANTS}
    copied_ones = {name for name, rule in rules.items() if rule is not None and not rule.instead}
    assert copied_ones - tested == {"eyelink-report"}


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.edf", b"SR_RESEARCH_COMBINED_FILE\0", "edf2asc"),
        ("a.mat", b"MATLAB 5.0 MAT-file\0", "as CSV"),
        ("a.npy", b"\x93NUMPY\x01\0", "as CSV"),
        ("a.pkl", b"\x80\x04\x95", "pickle"),
        ("a.idf", b"\0\1", "IDF Converter"),
        ("a.xdf", b"XDF:\0", "export its tables"),
        ("gaze ps1.raw", b"\0\0", "Neon Player"),
        ("gaze_200hz.raw", b"\0\0", "Neon Player"),
    ],
)
def test_what_cannot_be_scrubbed_says_what_to_do(
    name: str, data: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(data)
    if name.endswith(".raw"):
        write(tmp_path / "in" / "info.json", '{"wearer_name": "Wilhelmina"}')
    with pytest.raises(FormatError, match=says) as caught:
        scrub(tmp_path / "in", tmp_path / "out")
    assert str(caught.value).count("\n") == 0
    assert not (tmp_path / "out").exists()


TABLES = {
    "csv": "t_ms;valid;gaze_x",
    "varjo": "raw_timestamp;status;gaze_forward_x",
    "tobii-sdk": "device_time_stamp;left_pupil_validity;left_gaze_point_on_display_area_x",
    "tobii-tsv": "Recording timestamp;Validity left;Gaze point left X",
}


def copy_of(format_name: str, rows: list[str]) -> str:
    scrub = get(format_name).scrub
    rule = scrub.rule or scrub.anywhere.get("livedata.json")
    if rule is not None:
        return "\n".join(copied(rule, lambda: rows, ScrubJob()))
    roles = dict(zip(("t", "valid", "x"), rows[0].split(";"), strict=False))
    return "\n".join(table_lines(lambda: rows, ScrubJob(), roles, {}))


@pytest.mark.parametrize("format_name", list(TABLES))
@pytest.mark.parametrize(
    "text", ["Wilhelmina", "J\u00fcrgen", "王小明", "a\u200bnna", "=HYPERLINK(1)", "\u202eannA"]
)
def test_no_text_passes_through_a_column_or_its_name(format_name: str, text: str) -> None:
    names = TABLES[format_name].split(";")
    first = [*names, text, f"{names[2]} {text}", f"{names[2]}[{text}]", f"{text}{names[2]}"]
    rows = [";".join(first)]
    rows += [f"1000;1;0.25;{text};{text};{text};7.125", f"{text};{text};{text};1;2;3;4"]
    told = copy_of(format_name, rows)
    assert text.lower() not in told.lower()
    assert "0.25" in told
    assert "".join(c for c in told if not c.isascii()) == ""


def test_a_long_name_of_a_column_takes_no_time_and_does_not_stay() -> None:
    name = "gaze_forward_x" + "left" * 5000 + "!"
    rows = [f"raw_timestamp;status;{name};gaze_forward_x[{'left' * 5000}!]", "1000;2;0.25;0.5"]
    begin = process_time()
    told = copy_of("varjo", rows)
    assert process_time() - begin < 2.0
    assert "leftleft" not in told


def test_a_live_stream_keeps_no_unknown_key_at_any_depth() -> None:
    line = {"ts": 5, "s": 0, "gidx": 1, "gd": [0.1, 0.25, ["Anna"]], "eye": "Anna"}
    lines = [
        json.dumps(line),
        json.dumps({"ts": 9, "gidx": "Anna", "gd": {"Anna": 1}, "pd": "Anna", "Anna": 1}),
        json.dumps({"ts": 9, "gidx": 2, "gd": [0.1, 0.25, 0.9], "eye": "left", "x": ["Anna"]}),
        json.dumps({"ts": 9, "tag": "Anna", "type": {"Anna": "Anna"}}),
        json.dumps(["Anna"]),
    ]
    told = copy_of("tobii-glasses2", lines)
    assert "Anna" not in told
    assert "0.25" in told


@pytest.mark.parametrize("kind", ["webqamgaze", "neuroliaa"])
@pytest.mark.parametrize("bad", [["Anna"], {"Anna": 1}, "Anna", [[1, 2, "Anna"]]])
def test_a_document_with_text_among_its_numbers_is_left_out(
    kind: str, bad: object, tmp_path: Path
) -> None:
    if kind == "webqamgaze":
        value = {"worker_id": "a", "set_name": "b", "screen_x": 800, "screen_y": 600}
        value |= {"samples_x_y_ms": {"t": bad}}  # type: ignore[dict-item]
    else:
        entry = {"target_bbox": [1, 2, 3, 4], "X": bad, "Y": [1], "T": [1]}
        value = {"i": entry}  # type: ignore[dict-item]
    write(tmp_path / "in" / "a.json", json.dumps(value))
    rows = "\n".join(f"{i},{i},1" for i in range(5))
    write(tmp_path / "in" / "b.csv", f"t_s,x_px,y_px\n{rows}\n")
    report = scrub(tmp_path / "in", tmp_path / "out")
    assert list(report.not_copied) == ["a.json"]
    assert not any("Anna" in p.read_text("utf-8") for p in (tmp_path / "out").glob("*.*"))


DESCRIBED = """# Lab of Dr. Meier
pattern = "{person}_visit{session}/{stimulus}.txt"
comment = "%"
decimal = ","
clash = "error"

[columns]
t = "Clock of Anna"
x = "GX"
y = "GY"

[units]
time = "ms"
gaze = "px"
y_axis = "down"
missing = -1

[screen]
width_px = 1920
height_px = 1080
width_mm = 530
height_mm = 300
distance_mm = 650
"""


def test_tables_that_a_dataset_file_describes_are_copied_with_a_new_one(tmp_path: Path) -> None:
    study, copy = tmp_path / "study", tmp_path / "copy"
    for number, name in enumerate(("Anna_visit1", "Anna_visit2", "Bob_visit1")):
        (study / name).mkdir(parents=True)
        rows = [
            f"{1700000000000 + 4 * i};{900 + number + i},5;{-1 if i == 3 else i};Anna"
            for i in range(30)
        ]
        head = ["% recorded by Dr. Meier", "Clock of Anna;GX;GY;Remark"]
        (study / name / "sunset.txt").write_text("\n".join([*head, *rows]), "utf-8")
    (study / "dataset.toml").write_text(DESCRIBED, "utf-8")
    report = scrub(study, copy)
    assert dict(report.formats) == {"csv": 3, "dataset.toml": 1}
    texts = [f.read_text("utf-8") for f in copy.rglob("*") if f.is_file()]
    shown = " ".join([*texts, *(str(f.relative_to(copy)) for f in copy.rglob("*"))])
    assert not any(word in shown for word in ("Anna", "Bob", "Meier", "visit", "sunset", "17000"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is guessed, and nothing left out
        old, new = (
            sorted(gazeveil.read(f), key=lambda r: float(r.x_deg[0])) for f in (study, copy)
        )
    for one, other in zip(old, new, strict=True):
        assert_same_gaze(one, other, 0)
    assert len({r.person for r in new}) == 2
    assert [r.person == new[0].person for r in new] == [r.person == old[0].person for r in old]
    assert len({(r.person, r.session) for r in new}) == 3
