"""The inventory finds what recordings say beside gaze, in every format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gazeveil.errors import FormatError
from gazeveil.release.inventory import KINDS, inventory
from gazeveil.release.inventory.finding import kind_of, name_pattern, spots
from tests.support import command_line, identifiers
from tests.support.recordings import real


@pytest.mark.parametrize("format_name", list(identifiers.FORMATS))
def test_every_planted_identifier_is_found_by_its_kind(format_name: str, tmp_path: Path) -> None:
    planted = identifiers.plant(format_name, tmp_path)
    found = inventory(tmp_path)
    for kind in planted:
        told = [f.example for f in found.of(kind)]
        hits = [hit for text in told for hit, _ in identifiers.hits(text) if hit == kind]
        assert hits, f"{kind} is not among {told[:10]}"


@pytest.mark.parametrize("format_name", list(identifiers.FORMATS))
def test_with_all_text_no_file_hides_an_identifier(format_name: str, tmp_path: Path) -> None:
    identifiers.plant(format_name, tmp_path)
    found = inventory(tmp_path, all_text=True)
    assert found.all_text
    for place in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        name = place.relative_to(tmp_path).as_posix()
        held = {kind for text in identifiers.texts_in(place) for kind, _ in identifiers.hits(text)}
        held |= {kind for kind, _ in identifiers.hits(name)}
        kinds = {f.kind for f in found if f.file == name}
        assert held <= kinds, f"{name}: {held - kinds}"
        assert {"file name", "file time"} <= kinds


def test_a_clean_folder_has_names_and_times_of_files_alone(tmp_path: Path) -> None:
    identifiers.write(tmp_path / "a" / "b.csv", "x,y\n" + "1.5,2.5\n" * 50)
    found = inventory(tmp_path, people=())
    assert {f.kind for f in found} == {"file name", "file time"}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("2017-10-13-10-27", ["date"]),
        ("Wed Mar  8 09:25:20 2023", ["date"]),
        ("08.03.2023 09:25:20", ["date"]),
        ("3/8/2023", ["date"]),
        ("20230308T092520", ["date"]),
        ("8. März 2023", ["date"]),
        ("2013_3_13_20_36_3.6446", ["date"]),
        ("at 10:27:33", ["clock"]),
        ("1629390345", ["clock"]),
        ("1629390345.25", ["clock"]),
        ("1629390345499", ["clock"]),
        ("1629390345499163", ["clock"]),
        ("1629390345499163431", ["clock"]),
        ("638342794000115346", ["clock"]),
        ("63690416622600", ["clock"]),
        (r"D:\results\sub_1.edf", ["path"]),
        ("/home/anna/study/a.csv", ["path"]),
        ("anna.b@uni-x.example", ["e-mail"]),
        ("27d80d6b-1b49-41ca-a125-fbd4ee0d65ef", ["serial"]),
        ("CLU-DBC07", ["serial"]),
        ("TG03B-080200004381", ["serial"]),
        ("IRX0470703-1007", ["serial"]),
        ("aged 34", ["attribute"]),
        ("IPD: 63.5", ["eye distance"]),
        # What gaze and trackers write looks like none of these.
        ("960.5", []),
        ("2091650", []),
        ("-1512415845", []),
        ("0.9747", []),
        ("[deg/s]", []),
        ("GAZE_COORDS 0.00 0.00 1919.00 1079.00", []),
        ("12:34:56:78", []),
    ],
)
def test_texts_are_known_by_their_shape(text: str, kinds: list[str]) -> None:
    assert [spot.kind for spot in spots(text)] == kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Participant name", "name"),
        ("wearer_name", "name"),
        ("Recording date", "date"),
        ("timestamp [ns]", "clock"),
        ("module_serial_number", "serial"),
        ("android_device_id", "serial"),
        ("worker_age", "attribute"),
        ("[Variable]Age", "attribute"),
        ("handedness", "attribute"),
        ("ipd_mm", "eye distance"),
        ("gaze_origin_L.x(mm)", "eye distance"),
        ("eyeball center left x [mm]", "eye distance"),
        ("Head Position. y", "height"),
        ("body_height_cm", "height"),
        ("height_px", "screen"),
        ("SamplingFrequency", "rate"),
        ("ManufacturersModelName", "device model"),
        ("comments", "free text"),
        ("Gaze point X [DACS px]", None),
        ("norm_pos_x", None),
        ("confidence", None),
        ("Left Eye Position Guide. x", None),
    ],
)
def test_fields_are_known_by_their_name(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_a_known_name_is_found_in_other_spellings_and_not_inside_words() -> None:
    pattern = name_pattern(["Anna Schmidt", "7", "ab"])
    for text in ("ANNA_SCHMIDT.asc", "annaschmidt", "Schmidt, run 2", "x-Anna-1"):
        assert pattern.search(text), text
    for text in ("Annalena", "Goldschmidts", "7", "ab"):
        assert pattern.search(text) is None, text
    assert name_pattern(["7", "ab"]) is None


def test_a_name_from_a_header_is_found_in_other_files(tmp_path: Path) -> None:
    identifiers.write(tmp_path / "info.json", json.dumps({"wearer_name": "Anna Schmidt"}))
    identifiers.write(tmp_path / "notes.txt", "the lamp was replaced\nschmidt came late\n")
    (found,) = [f for f in inventory(tmp_path).of("name") if f.file == "notes.txt"]
    assert (found.field, found.example) == ("line 2", "schmidt")


def test_what_happens_to_each_kind_is_said_and_keep_changes_it(tmp_path: Path) -> None:
    identifiers.write(tmp_path / "people.csv", "person,age\nAnna,34\nOtto,40\n")
    found = inventory(tmp_path)
    (age,) = found.of("attribute")
    assert (age.in_release, age.in_scrub) == ("replaced", "dropped")
    (kept,) = found.keeping(["age"]).of("attribute")
    assert kept.in_release == "kept by name"
    assert {f.in_release for f in found.keeping(["person"]).of("name")} == {"kept by name"}
    allowed = {"dropped", "replaced", "aligned", "a person should look"}
    assert {word for pair in KINDS.values() for word in pair} == allowed


def test_the_lines_that_were_looked_at_are_counted(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7}.25,3.5" for i in range(50_000)]
    rows[30_000] = "30000,w.quandt@labor.example,3.5"
    place = identifiers.write(tmp_path / "a.csv.gz", "\n".join(["i,x,y", *rows]) + "\n")
    quick, whole = inventory(place), inventory(place, all_text=True)
    assert 0 < quick.lines < 20_000
    assert whole.lines == 50_001
    assert not quick.of("e-mail")
    assert [f.example for f in whole.of("e-mail")] == ["w.quandt@labor.example"]
    assert f"{quick.lines:,} lines" in quick.sentence()


def test_a_broken_archive_or_document_does_not_stop_the_inventory(tmp_path: Path) -> None:
    whole = gzip.compress(b"timestamp,person\n1629390345,Anna\n" * 4000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.json").write_text('{"wearer_name": "Anna", "x": [1, 2', "utf-8")
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    found = inventory(tmp_path)
    assert found.files == 4
    assert {f.file for f in found.of("name")} >= {"cut.csv.gz", "cut.json"}


def test_no_such_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        inventory(tmp_path / "nothing")


def test_real_recordings_of_eyelink_and_pupil_hold_what_they_are_known_to_hold() -> None:
    eyelink = inventory(real("vendor_samples", "eyelink_asc"))
    assert "CLU-DBC07" in {f.example for f in eyelink.of("serial")}
    assert any(f.example.startswith("Wed Mar 8 09:25:20 2023") for f in eyelink.of("date"))
    assert any("sub_1.edf" in f.example for f in eyelink.of("path"))
    pupil = inventory(real("vendor_samples", "Pupil_Invisible"))
    assert "1629390345036471431" in {f.example for f in pupil.of("clock")}
    rates = inventory(real("eyenavgs_nthu", "room")).of("rate")
    assert len({f.example for f in rates}) > 1  # the step tells recordings apart


def test_inspect_shows_the_inventory_and_writes_it(tmp_path: Path) -> None:
    identifiers.plant("pupil-neon", tmp_path / "in")
    done = command_line.gazeveil(
        *("inspect", tmp_path / "in", "--json", tmp_path / "a.json", "--all-text")
    )
    assert done.code == 0, done.err
    assert "Beside the gaze" in done.out
    assert "eye distance" in done.out
    written = json.loads((tmp_path / "a.json").read_text("utf-8"))["inventory"]
    assert written["all_text"] is True
    assert {"name", "serial", "clock"} <= {f["kind"] for f in written["findings"]}
