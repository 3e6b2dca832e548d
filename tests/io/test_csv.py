"""The generic reader: columns by name, units that someone said, names from columns and paths.

Large CSV files and Tobii exports are read in blocks: the same recordings and the same errors as
read whole, in memory that grows with a recording and not with the text.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.io.plain import reader, text
from gazeveil.io.plain.reader import FORMAT
from gazeveil.io.plain.roles import recognise, split_unit
from gazeveil.io.source import Head

SCREEN = Screen(1000, 500, 500.0, 250.0, 500.0)


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t_ms", ("t", "ms")),
        ("Timestamp(ms)", ("timestamp", "ms")),
        ("timestamp [ns]", ("timestamp", "ns")),
        ("time(100ns)", ("time", "100ns")),
        ("x_deg", ("x", "deg")),
        ("Gaze X [px]", ("gazex", "px")),
        ("left_x", ("leftx", "")),
        ("time_s", ("time", "s")),
        ("pos_x", ("posx", "")),
    ],
)
def test_a_column_name_is_split_into_what_and_unit(name: str, expected: tuple[str, str]) -> None:
    assert split_unit(name) == expected


TARGET_BESIDE = [
    "time_ms,x_px,y_px,gaze_x_px,gaze_y_px",
    "time_ms,gaze_x_px,gaze_y_px,x_px,y_px",
    "time_ms,x_px,y_px,left_gaze_x_px,left_gaze_y_px,right_gaze_x_px,right_gaze_y_px",
    "time_ms,left_x_px,left_y_px,left_gaze_x_px,left_gaze_y_px",
]


@pytest.mark.parametrize("header", TARGET_BESIDE)
def test_names_that_say_gaze_go_before_those_of_a_target(tmp_path: Path, header: str) -> None:
    cells = [[500, 250] if "gaze" in n else [9, 9] for n in header.split(",")[1::2]]
    row = ",".join(str(v) for pair in cells for v in pair)
    path = write(tmp_path / "a.csv", f"{header}\n0,{row}\n4,{row}\n")
    (recording,) = gazeveil.read(path, screen=SCREEN)
    assert recording.x_deg.tolist() == [0.0, 0.0]
    assert recording.y_deg.tolist() == [0.0, 0.0]


def test_a_place_without_eye_stays_beside_eyes_that_say_no_more_than_it() -> None:
    found = recognise(["t_ms", "x_px", "y_px", "left_x_px", "left_y_px"])
    assert (found["x"], found["left_x"]) == ("x_px", "left_x_px")


@pytest.mark.parametrize(
    ("header", "said", "columns"),
    [
        (
            "t_ms,timestamp_ms,x_px,y_px",
            r"'t_ms' and 'timestamp_ms' .*columns=\{'t'",
            {"t": "t_ms"},
        ),
        (
            "t_ms,x_px,y_px,pos_x_px,pos_y_px",
            r"'x_px' and 'pos_x_px' may each be 'x'.*columns=\{'x': \.\.\., 'y'",
            {"x": "pos_x_px", "y": "pos_y_px"},
        ),
        (
            "t_ms,gaze_left_x_px,gaze_left_y_px,left_gaze_x_px,left_gaze_y_px",
            r"'left_gaze_x_px' and 'gaze_left_x_px' may each be 'left_x'",
            {"left_x": "left_gaze_x_px", "left_y": "left_gaze_y_px"},
        ),
    ],
)
def test_two_columns_that_fit_equally_are_asked_about(
    tmp_path: Path, header: str, said: str, columns: dict[str, str]
) -> None:
    row = ",".join("1" for _ in header.split(","))
    path = write(tmp_path / "a.csv", f"{header}\n{row}\n")
    with pytest.raises(FormatError, match=said):
        gazeveil.read(path, screen=SCREEN)
    (recording,) = gazeveil.read(path, format="csv", screen=SCREEN, columns=columns)
    assert len(recording) == 1


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_header(tmp_path: Path, separator: str) -> None:
    text = "t_ms,x_px,y_px\n0,500,250\n10,500,250\n".replace(",", separator)
    (recording,) = gazeveil.read(write(tmp_path / "a.csv", text), format="csv", screen=SCREEN)
    assert recording.t_ns.tolist() == [0, 10_000_000]
    assert recording.x_deg.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "x", "y", "deg"),
    [
        ({"unit": "px", "screen": SCREEN}, 1000, 250, (26.565051, 0)),
        ({"unit": "px", "screen": SCREEN, "y_axis": "up"}, 500, 500, (0, -14.036243)),
        ({"unit": "px-centred", "screen": SCREEN}, 0, 250, (0, 14.036243)),
        ({"unit": "px-centred", "screen": SCREEN, "y_axis": "up"}, 0, 250, (0, -14.036243)),
        ({"unit": "fraction", "screen": SCREEN}, 0.5, 1, (0, 14.036243)),
        ({"unit": "fraction", "space": "sphere"}, 0.5, 0.25, (180, 45)),
        ({"unit": "fraction", "space": "sphere", "y_axis": "up"}, 0.5, 0.25, (180, 135)),
        ({"unit": "equirect", "panorama": (2000, 1000)}, 1000, 250, (180, 45)),
        ({"unit": "lonlat"}, -90, 45, (90, 45)),
        ({"unit": "deg", "screen": SCREEN}, 3, 4, (3, 4)),
        ({"unit": "deg", "space": "sphere"}, 3, 4, (3, 4)),
        ({"unit": "rad", "space": "screen"}, np.pi / 6, 0, (30, 0)),
    ],
)
def test_every_unit_becomes_degrees(
    tmp_path: Path, options: dict[str, object], x: float, y: float, deg: tuple[float, float]
) -> None:
    path = write(tmp_path / "a.csv", f"t,x,y\n0,{x},{y}\n1,{x},{y}\n")
    (recording,) = gazeveil.read(path, format="csv", time_unit="s", **options)
    assert (recording.x_deg[0], recording.y_deg[0]) == pytest.approx(deg, abs=1e-5)


@pytest.mark.parametrize(
    ("unit", "ns"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1), ("100ns", 100)]
)
def test_every_time_unit_is_exact(tmp_path: Path, unit: str, ns: int) -> None:
    path = write(tmp_path / "a.csv", "t,x,y\n3,1,1\n7,1,1\n")
    (recording,) = gazeveil.read(path, format="csv", time_unit=unit, unit="px", screen=SCREEN)
    assert recording.t_ns.tolist() == [3 * ns, 7 * ns]


def test_eyes_validity_pupil_confidence_and_labels_find_their_channels(tmp_path: Path) -> None:
    text = (
        "time_ms;left_x_px;left_y_px;right_x_px;right_y_px;left_valid;right_valid;pupil;"
        "confidence;label\n"
    )
    text += (
        "0;500;250;500;250;1;1;3.5;0.9;Fixation\n2;500;250;700;250;1;0;3.5;0.9;Saccade\n4;-1;"
        "-1;-1;-1;0;0;;0;\n"
    )
    (recording,) = gazeveil.read(
        write(tmp_path / "a.csv", text), format="csv", screen=SCREEN, missing=-1
    )
    assert recording.valid.tolist() == [True, True, False]
    assert recording.x_deg[1] == 0.0  # the right eye is not valid there
    assert recording.labels["label"].tolist() == ["fixation", "saccade", "undefined"]
    assert np.isnan(recording.pupil[2])


def test_a_column_map_goes_before_the_names(tmp_path: Path) -> None:
    text = "frame,clock,gx,gy,x,y,who\n1,0,500,250,9,9,Ann\n2,5,500,250,9,9,Ann\n"
    path = write(tmp_path / "a.csv", text)
    columns = {"t": "clock", "x": "gx", "y": "gy", "person": "who"}
    (recording,) = gazeveil.read(
        path, format="csv", columns=columns, time_unit="ms", unit="px", screen=SCREEN
    )
    assert recording.person == "Ann"
    assert recording.x_deg.tolist() == [0.0, 0.0]


def test_rows_of_several_people_and_stimuli_are_recordings_in_order_of_appearance(
    tmp_path: Path,
) -> None:
    text = "person,stimulus,t_s,x_px,y_px\nb,s1,0,1,1\na,s1,0,2,2\nb,s1,1,3,3\nb,s2,0,4,4\n"
    cohort = gazeveil.read(write(tmp_path / "all.csv", text), format="csv", screen=SCREEN)
    assert [(r.person, r.stimulus, len(r)) for r in cohort] == [
        ("b", "s1", 2),
        ("a", "s1", 1),
        ("b", "s2", 1),
    ]
    assert sum(r.counts["rows"] for r in cohort) == 4


def test_names_come_from_the_path_by_pattern(tmp_path: Path) -> None:
    write(tmp_path / "anna" / "day1" / "forest.csv.txt", "t_s,x_px,y_px\n0,1,1\n")
    cohort = gazeveil.read(
        tmp_path, format="csv", screen=SCREEN, pattern="{person}/day{session}/{stimulus}.csv.txt"
    )
    assert cohort.keys == (("anna", "forest", "1", ""),)
    with pytest.raises(FormatError, match="does not fit the pattern"):
        gazeveil.read(tmp_path, format="csv", screen=SCREEN, pattern="{person}-{stimulus}.csv")
    with pytest.raises(ParameterError, match="pattern"):
        gazeveil.read(tmp_path, format="csv", screen=SCREEN, pattern="no fields")


def test_without_a_pattern_the_folder_is_the_person_and_the_file_the_stimulus(
    tmp_path: Path,
) -> None:
    for person in ("p1", "p2"):
        write(tmp_path / person / "film.tsv", "t_s\tx_px\ty_px\n0\t1\t1\n")
    cohort = gazeveil.read(tmp_path, format="csv", screen=SCREEN)
    assert [k[:2] for k in cohort.keys] == [("p1", "film"), ("p2", "film")]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("t,x_px,y_px\n0,1,1\n", {"screen": SCREEN}, "does not say its unit.*time_unit="),
        ("t_s,x,y\n0,1,1\n", {}, "do not say their unit.*unit="),
        ("t_s,x_px,y_px\n0,1,1\n", {}, "screen=Screen"),
        ("t_s,x_deg,y_deg\n0,1,1\n", {}, "space='sphere'"),
        ("t_s,x,y\n0,1,1\n", {"unit": "fraction"}, "space='sphere'"),
        ("t_s,x,y\n0,1,1\n", {"unit": "equirect"}, "panorama="),
        ("t_s,a,b\n0,1,1\n", {"unit": "px", "screen": SCREEN}, "columns={'x'"),
        ("u,x_px,y_px\n0,1,1\n", {"screen": SCREEN}, "columns={'t'"),
        (
            "t_s,x_px,y_px\n0,1,1\n",
            {"screen": SCREEN, "columns": {"x": "z"}},
            "no column 'z' for 'x'",
        ),
        (
            "t_s,x,y\n0,900,800\n1,901,801\n",
            {"unit": "deg", "space": "screen"},
            "cannot be degrees.*unit='px'",
        ),
        ("t_s,x_deg,y_deg\n0,900,800\n1,901,801\n", {}, "cannot be degrees.*unit='px'"),
        (
            "t_s,x_px,y_px\n0,1,1\nnow,1,1\n",
            {"screen": SCREEN},
            "line 3: 'now' in column 't_s' is not a time",
        ),
        (
            "t_s,x_px,y_px\n0,1,1\n1,one,1\n",
            {"screen": SCREEN},
            "line 3: 'one' in column 'x_px' is not a number",
        ),
        (
            "t_s,x_px,y_px\n0,1,1\n1,2",
            {"screen": SCREEN},
            "line 3: the row has 2 cells, the header 3",
        ),
        (
            "t,x_px,y_px\n1700000000000000000,1,1\n",
            {"screen": SCREEN, "time_unit": "s"},
            "no times.*time_unit",
        ),
        ("just some words\n", {}, "not a header"),
    ],
)
def test_what_is_not_said_is_asked_for_in_one_sentence(
    tmp_path: Path, text: str, options: dict[str, object], message: str
) -> None:
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(FormatError, match=message) as caught:
        list(gazeveil.read(path, format="csv", **options))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": {}}, "Did you mean 'columns'"),
        ({"columns": {"xx": "x"}}, "no option 'xx'"),
        ({"unit": "pixel"}, "'unit' parameter"),
        ({"time_unit": "min"}, "'time_unit' parameter"),
        ({"separator": "::"}, "'separator' parameter"),
        ({"screen": "big"}, "'screen' parameter"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        gazeveil.read(write(tmp_path / "a.csv", "t_s,x_px,y_px\n0,1,1\n"), format="csv", **options)


def test_degrees_that_only_one_space_can_hold_need_no_word(tmp_path: Path) -> None:
    (screen,) = gazeveil.read(
        write(tmp_path / "a.csv", "t_s,x_deg,y_deg\n0,-5,3\n1,4,-2\n"), format="csv"
    )
    (sphere,) = gazeveil.read(
        write(tmp_path / "b.csv", "t_s,x_deg,y_deg\n0,185,93\n1,190,95\n"), format="csv"
    )
    assert isinstance(screen.space, Screen)
    assert screen.metadata["assumed_geometry"] is True
    assert isinstance(sphere.space, Sphere)


def test_decimal_commas_are_found_or_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t_s;x_px;y_px\n0,5;500,0;250\n1,0;500;250\n")
    for options in ({}, {"decimal": ","}):
        (recording,) = gazeveil.read(path, format="csv", screen=SCREEN, **options)
        assert recording.t_ns.tolist() == [500_000_000, 10**9]


def test_comments_blank_lines_crlf_and_utf16_change_nothing(tmp_path: Path) -> None:
    text = "# made by hand\nt_s,x_px,y_px\n0,500,250\n# a comment\n\n1,500,250\n"
    plain = gazeveil.read(write(tmp_path / "a.csv", text), format="csv", screen=SCREEN)[0]
    crlf = gazeveil.read(
        write(tmp_path / "b.csv", text.replace("\n", "\r\n")), format="csv", screen=SCREEN
    )[0]
    wide = gazeveil.read(write(tmp_path / "c.csv", text, "utf-16"), format="csv", screen=SCREEN)[0]
    for other in (plain, crlf, wide):
        assert other.t_ns.tolist() == [0, 10**9]
        assert other.counts["rows"] == 2


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("t,x,y\n0,1,1\n", True),
        ("timestamp\tleft_x\tleft_y\n0\t1\t1\n", True),
        ("name,age\nAnn,3\n", False),
        ("time,value\n0,1\n", False),
        ("0,1,2\n3,4,5\n", False),
        ("plain text about t, x and more\n", False),
    ],
)
def test_sniffing_says_yes_only_to_time_x_and_y(tmp_path: Path, text: str, known: bool) -> None:
    assert FORMAT.sniff(Head.of(write(tmp_path / "a.csv", text))) is known


# --- directions as vectors


def vectors(tmp_path: Path, head: str = "t_s,x,y,z") -> Path:
    rows = "0.00,0,0,2\n0.01,1,0,1\n0.02,0,1,1\n0.03,0,0,0\n0.04,,,\n0.05,0,0,-1\n"
    return write(tmp_path / "a.csv", f"{head}\n{rows}")


def test_a_direction_needs_no_length_of_one(tmp_path: Path) -> None:
    (recording,) = gazeveil.read(vectors(tmp_path), unit="vector")
    assert isinstance(recording.space, Sphere)
    assert recording.valid.tolist() == [True, True, True, False, False, True]
    assert recording.x_deg[[0, 1, 2]] == pytest.approx([180, 225, 180])
    assert recording.y_deg[[0, 1, 2]] == pytest.approx([90, 90, 45])
    assert recording.x_deg[5] in (0.0, pytest.approx(360))


def test_directions_of_openxr_look_along_minus_z(tmp_path: Path) -> None:
    (recording,) = gazeveil.read(vectors(tmp_path), unit="vector-openxr")
    assert recording.x_deg[5] == pytest.approx(180)
    (down,) = gazeveil.read(vectors(tmp_path), unit="vector", y_axis="down")
    assert down.y_deg[2] == pytest.approx(135)


def test_directions_of_both_eyes_and_by_other_names(tmp_path: Path) -> None:
    text = "t_ms,lx,ly,lz,dir_rx,dir_ry,dir_rz\n0,0,0,1,1,0,1\n8,0,0,0,1,0,1\n16,0,0,1,1,0,1\n"
    columns = {"right_x": "dir_rx", "right_y": "dir_ry", "right_z": "dir_rz"}
    columns |= {"left_x": "lx", "left_y": "ly", "left_z": "lz"}
    path = write(tmp_path / "a.csv", text)
    (recording,) = gazeveil.read(path, format="csv", unit="vector", columns=columns)
    assert recording.right_deg[:, 0] == pytest.approx([225, 225, 225])
    assert np.isnan(recording.left_deg[1]).all()
    assert recording.x_deg == pytest.approx([202.5, 225, 202.5])


def test_a_direction_without_its_third_component_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"no column is recognised as 'z'.*columns=\{'z': \.\.\.\}"
    ):
        gazeveil.read(vectors(tmp_path, "t_s,x,y,depth"), unit="vector")
    degrees = write(tmp_path / "b.csv", "t_ms,x_deg,y_deg,z\n0,-1,1,7\n10,-2,2,7\n")
    (plain,) = gazeveil.read(degrees)
    assert plain.x_deg.tolist() == [-1.0, -2.0]


DESK = Screen(1280, 720, 400.0, 225.0, 450.0)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LARGE_BYTES", "LARGE_ZIPPED_BYTES", "LARGE_ROWS"):
        monkeypatch.setattr(reader, name, 0)
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)


def rows(n: int = 200, separator: str = ",", person: str = "") -> list[str]:
    rng = np.random.default_rng(n)
    gaze = rng.uniform(100, 700, (n, 2))
    first = f"{person}{separator}" if person else ""
    return [
        first + separator.join((str(4 * i), f"{x:.3f}", f"{y:.3f}"))
        for i, (x, y) in enumerate(gaze)
    ]


PLAIN = "\n".join(["t_ms,x_px,y_px", *rows()]) + "\n"
KEYED = "\n".join(
    [
        "person,t_ms,x_px,y_px",
        *(line for pair in zip(rows(person="a"), rows(person="b"), strict=True) for line in pair),
        *rows(50, person="c"),
    ]
)
TEXTS: dict[str, bytes] = {
    "plain": PLAIN.encode(),
    "returns": PLAIN.replace("\n", "\r\n").encode(),
    "no last line break": PLAIN.rstrip().encode(),
    "comments and blanks": ("# made\n\n" + PLAIN.replace("\n40,", "\n# note\n\n40,")).encode(),
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "latin-1": PLAIN.replace("t_ms,x_px,y_px", "t_ms,x_px,y_px,label")
    .replace("\n4,", "\n4,")
    .replace("\n", ",f\xfcr\n")
    .replace("label,f\xfcr", "label")
    .encode("latin-1"),
    "quotes": ("t_ms,x_px,y_px,label\n" + "\n".join(f'{r},"a, b"' for r in rows(60))).encode(),
    "comma numbers": (
        "t_ms;x_px;y_px\n" + "\n".join(r.replace(".", ",") for r in rows(separator=";"))
    ).encode(),
    "several people": KEYED.encode(),
    "zipped": gzip.compress(PLAIN.encode()),
    "zipped, several people": gzip.compress(KEYED.encode()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_blocks_give_the_recordings_that_the_whole_file_gives(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / ("a.csv.gz" if name.startswith("zipped") else "a.csv")
    path.write_bytes(TEXTS[name])
    whole = list(gazeveil.read(path, "csv", screen=DESK))
    request.getfixturevalue("tiny_blocks")
    cut = gazeveil.read(path, "csv", screen=DESK)
    assert all(item.chunks is not None for item in cut.items)  # type: ignore[union-attr]
    for one, other in zip(whole, cut, strict=True):
        assert one.key == other.key
        for channel in ("t_ns", "x_deg", "y_deg", "valid"):
            np.testing.assert_array_equal(getattr(one, channel), getattr(other, channel))
        assert {k: v.tolist() for k, v in one.labels.items()} == {
            k: v.tolist() for k, v in other.labels.items()
        }
    for item, one in zip(cut.items, whole, strict=True):
        pieces = list(item.chunks(7))  # type: ignore[union-attr,misc]
        assert max(len(p) for p in pieces) <= 7
        np.testing.assert_array_equal(np.concatenate([p.x_deg for p in pieces]), one.x_deg)


def test_a_line_break_inside_quotes_ends_no_block(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv"
    rows = (f'{4 * i},{i + 300},200,"one\ntwo\nthree"' for i in range(50))
    path.write_text("\n".join(["t_ms,x_px,y_px,label", *rows]), "utf-8")
    (recording,) = gazeveil.read(path, "csv", screen=DESK)
    assert recording.t_ns.tolist() == [4_000_000 * i for i in range(50)]
    assert len(set(recording.labels["label"])) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN.replace("\n400,", "\nnow,"), "line 102: 'now' in column 't_ms' is not a time"),
        (PLAIN.replace("\n400,", "\n400,one,1\n400,"), "line 102: 'one' in column 'x_px'"),
        (PLAIN.replace("\n400,", "\n399,1\n400,"), "line 102: the row has 2 cells, the header 3"),
    ],
)
def test_errors_name_the_line_of_the_file(
    tmp_path: Path, tiny_blocks: None, text: str, message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=message):
        list(gazeveil.read(path, "csv", screen=DESK))


def test_an_archive_that_ends_early_is_named(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode())[:-200])
    with pytest.raises(FormatError, match="ends early"):
        list(gazeveil.read(path, "csv", screen=DESK))


def test_a_utf16_file_is_read_whole(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(PLAIN.encode("utf-16"))
    (recording,) = gazeveil.read(path, "csv", screen=DESK)
    assert len(recording) == 200


_PEAK = """
import sys
import gazeveil
from gazeveil.gaze.geometry import Screen
from gazeveil.io.plain import text
text.BLOCK_BYTES = int(sys.argv[2])
screen = Screen(1280, 720, 400.0, 225.0, 450.0)

def peak_kib():
    # Not ru_maxrss: a process begins with that of the one that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

small = gazeveil.read(sys.argv[3], "csv", screen=screen)[0]
before = peak_kib()
samples = sum(len(r) for r in gazeveil.read(sys.argv[1], "csv", screen=screen))
print(samples, peak_kib() - before)
"""


def _peak_mib(path: Path, small: Path, block_bytes: int) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path), str(block_bytes), str(small)],
        env={**os.environ, "POLARS_MAX_THREADS": "2"},  # each thread has buffers of its own
        capture_output=True,
        text=True,
        check=True,
    )
    samples, kib = map(int, done.stdout.split())
    assert samples == 1_000_000
    return kib / 1024


def test_memory_grows_with_one_recording_not_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(PLAIN, "utf-8")
    gaze = np.random.default_rng(0).uniform(100, 700, (50_000, 2)).tolist()
    path = tmp_path / "large.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("person,t_ms,x_px,y_px\n")
        for person in range(20):
            lines = (f"p{person},{4 * i},{x:.6f},{y:.6f}" for i, (x, y) in enumerate(gaze))
            file.write("\n".join(lines) + "\n")
    # 30 MiB of text, 20 recordings of 1.2 MiB in blocks of 1 MiB: 33 to 37 MiB were measured, and
    # 230 MiB where the file is read whole.
    most_mib = 64
    assert _peak_mib(path, tmp_path / "small.csv", 1 << 20) < most_mib
    assert _peak_mib(path, tmp_path / "small.csv", 1 << 30) > 2 * most_mib


def _tobii(unit: str, sensor: bool, wrong: str = "") -> str:
    """An export of three people with lost samples, events and a recording that comes again."""
    rng = np.random.default_rng(3)
    names = ["Recording timestamp" + unit, "Participant name", "Recording name"]
    names += ["Recording resolution width", "Recording resolution height"]
    names += [f"Gaze point {s}{a} [DACS px]" for s in ("", "left ", "right ") for a in "XY"]
    names += ["Pupil diameter left [mm]", "Validity left", "Validity right"]
    names += ["Presented Stimulus name", "Eye movement type", "Event"]
    lines = ["\t".join([*names, "Sensor"][: len(names) + sensor])]
    for i in range(240):
        person, event, lost = f"P{(i // 40) % 3}", i % 17 == 0, i % 11 == 0
        gaze = ["" if lost else f"{v:.2f}" for v in rng.uniform(100, 900, 6)]
        gaze = [wrong if wrong and i == 150 and not lost else gaze[0], *gaze[1:]]
        cells = [str(4000 * i), person, "r1", "1920", "1080", *gaze, "" if lost else "3.1"]
        cells += ["Invalid" if lost else "Valid"] * 2 + ["clip"[: 4 * (i % 3 > 0)], "Fixation", ""]
        if event:
            cells = [str(4000 * i), person, "r1", "1920", "1080", *[""] * 9, "clip", "", "Key"]
        lines.append("\t".join([*cells, "" if event else "Eye Tracker"][: len(cells) + sensor]))
    return "\n".join(lines) + "\n"


def test_people_of_one_file_are_not_taken_for_files(tmp_path: Path) -> None:
    path = tmp_path / "export.tsv"
    # One recording of each, so that there are as many people as recordings.
    first = _tobii(" [μs]", True).splitlines()[:121]
    path.write_text("\n".join(line.replace("clip", "") for line in first), encoding="utf-8")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [r.person for r in gazeveil.read(tmp_path)] == ["P0", "P1", "P2"]
    assert not any("person of its own" in str(w.message) for w in said)


@pytest.mark.parametrize("unit", [" [μs]", ""])
@pytest.mark.parametrize("sensor", [True, False])
def test_a_tobii_export_in_blocks_gives_the_same_bits(
    unit: str, sensor: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole.tsv").write_text(_tobii(unit, sensor), "utf-8")
    whole = list(gazeveil.read(tmp_path / "whole.tsv", "tobii-tsv"))
    assert len(whole) == 6
    monkeypatch.setattr(text, "BLOCK_BYTES", 256)
    (tmp_path / "cut.tsv").write_text(_tobii(unit, sensor), "utf-8")
    cut = list(gazeveil.read(tmp_path / "cut.tsv", "tobii-tsv"))
    assert [r.key for r in cut] == [r.key for r in whole]
    for a, b in zip(whole, cut, strict=True):
        assert a.messages == b.messages
        assert {**a.metadata, "source": ""} == {**b.metadata, "source": ""}
        assert a.space == b.space
        for channel in ("t_ns", "x_deg", "y_deg", "valid", "left_deg", "right_deg", "pupil"):
            assert getattr(a, channel).tobytes() == getattr(b, channel).tobytes(), channel
        assert a.labels["tobii"].tolist() == b.labels["tobii"].tolist()


def test_a_wrong_cell_of_a_tobii_export_is_named_by_the_same_line_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for size in (1 << 20, 256):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        path = tmp_path / f"{size}" / "a.tsv"
        path.parent.mkdir()
        path.write_text(_tobii(" [μs]", True, "12,x"), "utf-8")
        with pytest.raises(FormatError) as refused:
            list(gazeveil.read(path, "tobii-tsv"))
        said.append(str(refused.value).replace(str(path), "FILE"))
    assert said[0] == said[1]
    assert "line 152" in said[0]
    assert "'12,x' in column 'Gaze point X [DACS px]' is not a number" in said[0]
