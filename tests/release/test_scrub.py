"""Scrubbed copies: no identifier is left, gaze is what it was, and other packages still read it.

Scrubbed copies of every text format: nothing planted is left, gaze is what it was.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.recording import Recording
from gazeveil.io.registry import get, names
from gazeveil.release.inventory import inventory
from gazeveil.release.inventory.finding import PLAIN, spots
from gazeveil.release.scrub import PAGE, scrub
from gazeveil.release.scrub.copies import ScrubJob, copied, midpoint
from gazeveil.release.scrub.places import table_lines
from gazeveil.release.scrub.run import NEUTRAL_S
from tests.support import command_line, identifiers
from tests.support.bids_validator import errors
from tests.support.identifiers import NAME, SCRUBBED, WORD, plant, traces_in, write
from tests.support.planted_tables import PLANTED
from tests.support.recordings import real


#: Readers take seconds since 1970 as 64-bit floats, which round to half a microsecond.
def recordings(folder: Path) -> list[Recording]:
    """What a folder holds, in an order that labels do not change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(gazeveil.read(folder))
    return sorted(found, key=lambda r: (len(r), np.nansum(r.x_deg).round(), int(r.valid.sum())))


def test_every_time_of_a_copy_is_the_same(tmp_path: Path) -> None:
    plant("pupil-invisible", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out")
    places = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
    assert {int(p.stat().st_mtime) for p in places} == {NEUTRAL_S}
    archive = next((tmp_path / "out").rglob("gaze.csv.gz")).read_bytes()
    assert archive[4:8] == b"\0\0\0\0"  # the archive's own time
    assert not archive[3] & 0x08  # and no file name in it


def test_the_distance_between_the_eyes_is_not_written_down(tmp_path: Path) -> None:
    plant("pupil-neon", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out")
    states = pl.read_csv(next((tmp_path / "out").rglob("3d_eye_states.csv")))
    left, right = (states[f"eyeball center {side} x [mm]"] for side in ("left", "right"))
    assert (left == right).all()
    assert "ipd [mm]" not in states.columns


def test_directions_and_a_gaze_point_in_space_still_tell_the_distance_of_the_eyes() -> None:
    """The page of scrub says so: what passes is raw gaze."""
    rng = np.random.default_rng(1)
    half_mm = np.array([31.4, 0.5, -0.3])
    points = rng.normal([0, 0, 600], [150, 100, 150], (200, 3))
    rays = [(points - side * half_mm) for side in (-1, 1)]  # left, right
    left, right = (r / np.linalg.norm(r, axis=1, keepdims=True) for r in rays)
    middle = [float(midpoint(f"{-x:.4f}", f"{x:.4f}")) for x in half_mm]
    equations, sides = np.zeros((3, 3)), np.zeros(3)
    for directions, side in ((left, -1), (right, 1)):
        for ray, point in zip(directions, points - middle, strict=True):
            across = np.eye(3) - np.outer(ray, ray)
            equations += across
            sides += side * across @ point
    found = np.linalg.solve(equations, sides)
    assert 2 * np.linalg.norm(found) == pytest.approx(2 * np.linalg.norm(half_mm), abs=0.1)


def test_labels_are_new_in_every_run_and_the_key_is_for_its_owner(tmp_path: Path) -> None:
    plant("smi", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "one", key_file=tmp_path / "keys" / "one.json")
    scrub(tmp_path / "in", tmp_path / "two")
    one, two = ({r.person for r in recordings(tmp_path / n)} for n in ("one", "two"))
    assert not one & two
    key = tmp_path / "keys" / "one.json"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert json.loads(key.read_text("utf-8"))["labels"][NAME] in one
    with pytest.raises(DataError, match="never overwritten"):
        scrub(tmp_path / "in", tmp_path / "three", key_file=key)
    with pytest.raises(DataError, match="who is who"):
        scrub(tmp_path / "in", tmp_path / "three", key_file=tmp_path / "three" / "key.json")
    assert not (tmp_path / "three").exists()


@pytest.mark.parametrize("format_name", ["eyelink-asc", "smi", "bids", "pupil-core"])
def test_a_copy_can_be_scrubbed_again(format_name: str, tmp_path: Path) -> None:
    plant(format_name, tmp_path / "in")
    first = scrub(tmp_path / "in", tmp_path / "one")
    second = scrub(tmp_path / "one", tmp_path / "two")
    assert first.formats == second.formats
    assert [len(r) for r in recordings(tmp_path / "one")] == [
        len(r) for r in recordings(tmp_path / "two")
    ]


def test_two_texts_never_share_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    from gazeveil.release.scrub import copies

    # The third is a date to whoever looks for dates: labels of digits alone are not taken.
    drawn = iter(["0000000a", "0000000a", "20821117", "0000000b"])
    monkeypatch.setattr(copies.secrets, "token_hex", lambda _: next(drawn))
    labels = ScrubJob()
    assert [labels.label(t) for t in ("a", "b", "a")] == ["id0000000a", "id0000000b", "id0000000a"]


# --- Other packages


def test_mne_reads_eyelink_files_with_the_neutral_date_and_the_same_gaze(tmp_path: Path) -> None:
    import mne

    source = real("vendor_samples", "eyelink_asc", "pymovements_eyelink_binocular_example.asc")
    scrub(source, tmp_path / "out")
    (copy,) = (tmp_path / "out").glob("*.asc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old, new = (mne.io.read_raw_eyelink(p, verbose="error") for p in (source, copy))
    assert new.info["meas_date"].isoformat() == "2000-01-01T00:00:00+00:00"
    assert old.ch_names == new.ch_names
    assert old.info["sfreq"] == new.info["sfreq"]
    np.testing.assert_array_equal(old.get_data(), new.get_data())
    assert len(old.annotations) == len(new.annotations)
    np.testing.assert_allclose(old.annotations.onset, new.annotations.onset, atol=1e-6)


def test_pymovements_reads_begaze_files_with_the_same_gaze(tmp_path: Path) -> None:
    from pymovements.gaze import from_begaze

    plant("smi", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out")
    source, copy = (next((tmp_path / n).glob("*.txt")) for n in ("in", "out"))
    old, new = (from_begaze(p).samples for p in (source, copy))
    columns = [c for c in old.columns if c != "time"]
    assert old.select(columns).equals(new.select(columns))
    assert (old["time"] - new["time"]).n_unique() == 1


# --- Single formats


def test_the_header_of_smi_keeps_what_readers_need(tmp_path: Path) -> None:
    plant("smi", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out")
    lines = next((tmp_path / "out").glob("*.txt")).read_text("ascii").split("\n")
    for line in (
        "## [BeGaze]",
        "## Date:\t01.01.2000 00:00:00",
        "## Version:\tBeGaze 3.7.40",
        "## Sample Rate:\t250",
        "## Calibration Area:\t1680\t1050",
        "## Calibration Point 0:\tPosition(841;526)",
        "## Stimulus Dimension [mm]:\t474\t297",
        "## Head Distance [mm]:\t700",
    ):
        assert line in lines, line


def test_eyelink_messages_of_the_tracker_stay_and_those_of_the_experiment_do_not(
    tmp_path: Path,
) -> None:
    plant("eyelink-asc", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out", keep_text=[r"SYNCTIME_\w+"])
    text = next((tmp_path / "out").glob("*.asc")).read_text("ascii")
    assert "** DATE: Sat Jan  1 00:00:00 2000\n" in text
    assert re.search(r"^MSG\t\d+ DISPLAY_COORDS 0 0 1279 1023$", text, re.MULTILINE)
    assert re.search(r"^MSG\t\d+ SYNCTIME_READING$", text, re.MULTILINE)
    assert re.search(r"^MSG\t\d+ !CAL VALIDATION HV9 L LEFT", text, re.MULTILINE)
    assert re.search(r"^MSG\t\d+ !V id\w{8}$", text, re.MULTILINE)
    assert "operator" not in text  # a text that poses as the tracker's
    assert "SREB" not in text


def test_equal_messages_have_equal_labels_in_all_files(tmp_path: Path) -> None:
    body = "START\t100 \tLEFT\tSAMPLES\nSAMPLES\tGAZE\tLEFT\tRATE\t1000.00\n"
    for name, said in (("a", "face 3"), ("b", "face 3"), ("c", "house 1")):
        rows = f"100\t 1.0\t 2.0\t 3.0\t...\nMSG\t101 {said}\nEND\t102\n"
        write(tmp_path / "in" / f"{name}.asc", f"** DATE: {identifiers.DATE_WORDS}\n{body}{rows}")
    scrub(tmp_path / "in", tmp_path / "out", key_file=tmp_path / "key.json")
    key = json.loads((tmp_path / "key.json").read_text("utf-8"))["labels"]
    texts = {n: (tmp_path / "out" / f"{key[n]}.asc").read_text("ascii") for n in "abc"}
    said = {n: re.findall(r"message_\w+", text) for n, text in texts.items()}
    assert said["a"] == said["b"] != said["c"]
    assert len(said["a"]) == 1


def test_a_people_table_keeps_what_is_named_and_nothing_else(tmp_path: Path) -> None:
    plant("people", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out", keep=["gender"])
    table = pl.read_csv(tmp_path / "out" / "people.csv")
    assert table.columns == ["person", "gender"]
    assert table["gender"].to_list() == ["f", "m"]
    assert not set(table["person"]) & {WORD, "P02"}


def test_a_table_that_counts_other_things_is_no_table_of_people(tmp_path: Path) -> None:
    plant("people", tmp_path / "in")
    write(tmp_path / "in" / "trials.csv", "id,picture\n1,Wilhelmina.png\n")
    write(tmp_path / "in" / "log.csv", "person,timestamp\nWilhelmina,17\n")
    report = scrub(tmp_path / "in", tmp_path / "out")
    assert set(report.not_copied) == {"trials.csv", "log.csv"}
    assert report.formats["people"] == 1


def test_bids_copies_have_one_label_per_person_and_no_free_text(tmp_path: Path) -> None:
    plant("bids", tmp_path / "in")
    report = scrub(tmp_path / "in" / "dataset", tmp_path / "out")
    people = pl.read_csv(tmp_path / "out" / "participants.tsv", separator="\t")
    assert people.columns == ["participant_id"]
    folders = {p.name for p in (tmp_path / "out").glob("sub-*")}
    assert folders == set(people["participant_id"])
    description = json.loads((tmp_path / "out" / "dataset_description.json").read_text())
    assert set(description) == {"Name", "BIDSVersion", "DatasetType"}
    assert {"README", "participants.json"} <= set(report.not_copied)


def test_the_bids_validator_finds_no_error_in_a_copy(tmp_path: Path) -> None:
    plant("bids", tmp_path / "in")
    scrub(tmp_path / "in" / "dataset", tmp_path / "out")
    assert errors(tmp_path / "out") == []


def test_unknown_files_are_named_and_not_copied(tmp_path: Path) -> None:
    plant("pupil-neon", tmp_path / "in")
    write(tmp_path / "in" / "letter.docx", "Dear Wilhelmina")
    report = scrub(tmp_path / "in", tmp_path / "out")
    names = {Path(name).name: reason for name, reason in report.not_copied.items()}
    assert set(names) == {"letter.docx", "scene_camera.mp4"}
    assert "may show people" in names["scene_camera.mp4"]
    copied = {p.name for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert copied == {"gaze.csv", "3d_eye_states.csv", "info.json", PAGE}


def test_the_page_says_what_is_not_done_and_holds_no_identifier(tmp_path: Path) -> None:
    plant("tobii-tsv", tmp_path / "in")
    scrub(tmp_path / "in", tmp_path / "out")
    text = (tmp_path / "out" / PAGE).read_text("utf-8")
    assert "This does not protect gaze" in text
    assert "What a person should still check" in text
    assert not list(identifiers.hits(text))
    assert "P02" not in text


def test_the_inventory_of_a_copy_finds_no_name_path_or_address(tmp_path: Path) -> None:
    for format_name in ("eyelink-asc", "smi", "pupil-core"):
        plant(format_name, tmp_path / "in" / format_name)
    scrub(tmp_path / "in", tmp_path / "out")
    found = inventory(tmp_path / "out", all_text=True)
    assert not found.of("e-mail", "attribute")
    assert {f.example for f in found.of("path")} == {"recording.edf"}
    assert all(re.search(r"id[0-9a-f]{8}|removed", f.example) for f in found.of("name"))
    dates = {f.example for f in found.of("date")}
    assert dates == {"Sat Jan 1 00:00:00 2000", "01.01.2000 00:00:00", "1 January 2000"}


def test_two_recordings_of_one_export_do_not_say_how_far_apart_they_were(tmp_path: Path) -> None:
    plant("tobii-tsv", tmp_path / "made")
    header, *rows = (tmp_path / "made" / "P02.tsv").read_text("utf-8").strip().split("\n")
    later = []
    for row in rows:  # two days later
        cells = row.split("\t")
        cells[1] = str(int(cells[1]) + 2 * 86_400_000_000)
        cells[6] = "Recording2"
        later.append("\t".join(cells))
    write(tmp_path / "in" / "a.tsv", [header, *rows, *later])
    scrub(tmp_path / "in", tmp_path / "out")
    table = pl.read_csv(next((tmp_path / "out").glob("*.tsv")), separator="\t")
    assert table["Recording name"].n_unique() == 2
    first = table.group_by("Recording name").agg(pl.col("Computer timestamp [us]").min())
    assert first["Computer timestamp [us]"].to_list() == [0, 0]
    assert table["Computer timestamp [us]"].max() < 60_000_000


# --- Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "out"], "no such file or folder"),
        (["in", "full"], "not an empty folder"),
        (["in", "in/out"], "lies inside"),
        (["in", "out", "--keep-text", "("], "regular expression"),
        (["other", "out"], "no file here is of a format"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    plant("smi", tmp_path / "in")
    write(tmp_path / "full" / "a.txt", "here already")
    write(tmp_path / "other" / "a.docx", "a letter")
    done = command_line.gazeveil("scrub", *arguments, folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_cut_archive_is_named_and_the_rest_is_copied(tmp_path: Path) -> None:
    plant("tobii-sdk matlab", tmp_path / "in")
    place = next((tmp_path / "in" / "P02").rglob("*.gz"))
    place.write_bytes(place.read_bytes()[:-2000])
    report = scrub(tmp_path / "in", tmp_path / "out")
    assert list(report.not_copied) == [place.relative_to(tmp_path / "in").as_posix()]
    assert report.formats == {"tobii-sdk": 3}
    assert len(list((tmp_path / "out").rglob("*.tsv*"))) == 3


def test_an_identifier_that_the_rules_let_through_stops_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("eyelink-asc", tmp_path / "in")
    monkeypatch.setattr(ScrubJob, "message", lambda job, text: text)  # a treatment that is broken
    with pytest.raises(DataError, match="Nothing was written"):
        scrub(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_utf_16_and_latin_1_files_are_read(tmp_path: Path) -> None:
    plant("tobii-tsv", tmp_path / "made")
    text = next((tmp_path / "made").glob("P02.tsv")).read_text("utf-8").replace("P02", "Jürgen")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_bytes(text.encode("utf-16"))
    (tmp_path / "in" / "b.tsv").write_bytes(text.replace("Jürgen", "Özgen").encode("latin-1"))
    report = scrub(tmp_path / "in", tmp_path / "out")
    assert report.formats == {"tobii-tsv": 2}
    assert len(recordings(tmp_path / "out")) == 4
    for place in (tmp_path / "out").glob("*.tsv"):
        assert not re.search("rgen|zgen", place.read_text("utf-8"))


def test_the_verb_prints_what_it_did_and_what_to_check(tmp_path: Path) -> None:
    plant("people", tmp_path / "in")
    write(tmp_path / "in" / "notes.docx", "x")
    done = command_line.gazeveil(
        *("scrub", tmp_path / "in", tmp_path / "out", "--json", tmp_path / "r.json")
    )
    assert done.code == 0, done.err
    for text in ("does not protect gaze", "still check", "Not copied: notes.docx", "eyelink-asc"):
        assert text in done.out, text
    figures = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert figures["protects_gaze"] is False
    assert figures["formats"] == {"eyelink-asc": 2, "people": 1}


@pytest.mark.parametrize(
    "folder", ["eyelink_asc", "Pupil_Invisible", "Tobii_Pro_Glasses_3", "tobii_tx300_i2mc"]
)
def test_every_real_folder_of_its_formats_reads_again(folder: str, tmp_path: Path) -> None:
    source = real("vendor_samples", folder)
    report = scrub(source, tmp_path / "out")
    assert not report.not_copied
    assert len(recordings(source)) == len(recordings(tmp_path / "out"))
    for place in source.rglob("*"):
        if place.is_file() and place.stem not in ("gaze", "blinks", "imu"):
            data = place.read_bytes()
            first = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).split(b"\n")[1]
            assert not any(
                first in (gzip.decompress(d) if d[:2] == b"\x1f\x8b" else d)
                for out in (tmp_path / "out").rglob("*")
                if out.is_file() and (d := out.read_bytes())
            )
    assert os.path.isfile(tmp_path / "out" / PAGE)


# --- Any text: what is kept is on a list, so what is not must be gone


def copy_of(format_name: str, lines: list[str], file: str = "") -> str:
    """What the rules of a format leave of a file, or of one of its folder."""
    scrub = get(format_name).scrub
    rule = scrub.rule or next(r for p, r in scrub.files.items() if re.fullmatch(p, file))
    return "\n".join(copied(rule, lambda: lines, ScrubJob()))


TEXT = st.text(st.characters(categories=("L",)), min_size=6, max_size=12).filter(
    lambda text: text.lower() not in f"{PLAIN} calibration validation points gains resolution"
)


def _asc(*lines: str) -> list[str]:
    start = ["START\t100 \tLEFT\tSAMPLES", "SAMPLES\tGAZE\tLEFT\tRATE\t1000.00"]
    samples = [f"{100 + i}\t 900.{i}\t 500.0\t 400.0\t..." for i in range(3)]
    return [*lines[:1], *start, *lines[1:], *samples, "END\t103 \tSAMPLES"]


@given(TEXT, st.integers(0, 7))
def test_no_text_passes_through_an_eyelink_file(text: str, place: int) -> None:
    # Hypothesis also tries words of the source: those of the tracker stay.
    assume(text.lower() not in repr(get("eyelink-asc").scrub).lower())
    places = (
        f"** {text}",
        f"** DATE: {text}",
        f"** VERSION: EYELINK {text}",
        f"MSG\t101 {text}",
        f"MSG\t101 !CAL {text}",
        f"MSG\t101 TRIALID {text}",
        f"EFIX L  100\t102\t3\t {text}\t 5.0\t 400",
        f"{text} 100 3",
    )
    lines = _asc("**", places[place])
    told = copy_of("eyelink-asc", lines)
    assert text.lower() not in told.lower()
    assert "900.1" in told  # and the samples are there


@given(TEXT, st.integers(0, 5))
def test_no_text_passes_through_an_smi_file(text: str, place: int) -> None:
    assume(text.lower() not in repr(get("smi").scrub).lower())
    places = (
        f"## {text}",
        f"## Subject:\t{text}",
        f"## Version:\t{text}",
        f"## {text}:\t250",
        f"## Sample Rate:\t{text}",
        "## Sample Rate:\t250",
    )
    rows = [f"1000\tMSG\t1\t# Message: {text}.jpg", f"2000\tSMP\t1\t840.00\t{text}\t{text}"]
    lines = [places[place], "Time\tType\tTrial\tL POR X [px]\tL POR Y [px]\tAux", *rows]
    told = copy_of("smi", lines)
    assert text.lower() not in told.lower()
    assert "840.00" in told


@given(TEXT, st.integers(0, 4))
def test_no_text_passes_through_a_stream_of_glasses3(text: str, place: int) -> None:
    data: dict[str, object] = {"gaze2d": [0.5, 0.25], text: 1, "eyeleft": {text: text}}
    records = [
        {"type": "gaze", "timestamp": 1.5, "data": data},
        {"type": text, "timestamp": 1.5, "data": data},
        {"type": "gaze", "timestamp": 1.5, "data": {"gaze2d": text}},
        {"type": "event", "timestamp": 1.5, "data": {"tag": text, "object": {text: text}}},
        {"type": "syncport", "timestamp": 1.5, "data": {"direction": text, "value": text}},
    ]
    lines = [json.dumps(records[0]), json.dumps(records[place])]
    told = copy_of("tobii-glasses3", lines, "gazedata")
    assert text.lower() not in json.dumps(told).lower()
    assert text.lower() not in told.encode().decode("unicode_escape").lower()
    assert "0.25" in told


@given(TEXT, TEXT)
def test_no_text_passes_through_a_table(column: str, cell: str) -> None:
    assume(column.lower() not in repr(get("pupil-neon").scrub).lower())
    lines = [
        f"timestamp [ns],gaze x [px],gaze y [px],recording id,{column},worn",
        f"1000,{cell},2.5,{cell},{cell},1",
        f"2000,1.5,{cell},{cell},7.25,{cell}",
    ]
    told = copy_of("pupil-neon", lines, "gaze.csv")
    assert cell.lower() not in told.split("\n", 1)[1].lower()
    assert "7.25" not in told
    assert told.split("\n")[0] == "timestamp [ns],gaze x [px],gaze y [px],recording id,worn"
    assert told.split("\n")[2].startswith("1000,1.5,")


@given(TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=3))
def test_no_text_passes_through_a_document(name: str, text: str, more: dict[str, str]) -> None:
    value = {**more, name: text, "wearer_name": text, "template": {"duration": text}}
    rule = get("pupil-neon").scrub.anywhere["info.json"]  # type: ignore[union-attr]
    told = "\n".join(copied(rule, lambda: [json.dumps(value)], ScrubJob()))
    assert text.lower() not in told.lower()
    assert name.lower() not in told.lower()


@given(st.text(max_size=300))
def test_any_text_is_looked_at_without_a_fault_and_each_character_once(text: str) -> None:
    found = list(spots(text))
    assert all(text[s.start : s.end] == s.text for s in found)
    assert all(a.end <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize("text", ["a" * 50_000, "1-" * 25_000, "/a" * 25_000, "a." * 25_000])
def test_long_texts_take_no_longer_than_their_length(text: str) -> None:
    begin = process_time()
    list(spots(text))
    assert process_time() - begin < 2.0


#: Readers take seconds since 1970 as 64-bit floats, and ticks of a clock are rounded to 100 ns.
ROUNDING_NS = 600
#: Both eyes get one place, so that a measured distance of the screen may move a little.
MEASURED = ("tobii-sdk", "tobii-sdk columns", "tobii-sdk matlab")
PLANTS = {**PLANTED, **{name: partial(plant, name) for name in SCRUBBED}}


def exported_recordings(folder: Path, format_name: str) -> list[Recording]:
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
    before = exported_recordings(tmp_path / "in", format_name)
    after = exported_recordings(tmp_path / "out", format_name)
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


def exported_copy(format_name: str, rows: list[str]) -> str:
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
    told = exported_copy(format_name, rows)
    assert text.lower() not in told.lower()
    assert "0.25" in told
    assert "".join(c for c in told if not c.isascii()) == ""


def test_a_long_name_of_a_column_takes_no_time_and_does_not_stay() -> None:
    name = "gaze_forward_x" + "left" * 5000 + "!"
    rows = [f"raw_timestamp;status;{name};gaze_forward_x[{'left' * 5000}!]", "1000;2;0.25;0.5"]
    begin = process_time()
    told = exported_copy("varjo", rows)
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
    told = exported_copy("tobii-glasses2", lines)
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
