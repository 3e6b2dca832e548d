"""`dataset.toml`, folders of CSVs with own columns, guesses that are said, doubts and skipped
files.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.summary import summarise
from gazeveil.io.known import dataset_toml, read_dataset_file
from gazeveil.io.reading import ReadingWarning, write_dataset_file
from tests.support import command_line

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
SECTION = (
    "[screen]\nwidth_px = 1280\nheight_px = 720\nwidth_mm = 400\nheight_mm = 225\n"
    "distance_mm = 450\n"
)


def gaze_px(rows: int = 100, seed: int = 0) -> np.ndarray:
    """A walk around the centre of the screen, in pixels."""
    return np.random.default_rng(seed).normal((640, 360), 60, (rows, 2))


def table(path: Path, header: str, columns: list[np.ndarray], separator: str = ",") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(*(c.tolist() for c in columns), strict=True)
    lines = [separator.join(f"{v:.9g}" for v in row) for row in rows]
    path.write_text("\n".join([header.replace(",", separator), *lines]) + "\n", "utf-8")
    return path


def own_columns(
    folder: Path, names: tuple[str, ...] = ("anna_sea.csv", "anna_city.csv", "ben_sea.csv")
) -> Path:
    for number, name in enumerate(names):
        gaze = gaze_px(seed=number)
        ticks = np.arange(len(gaze)) * 4.0
        table(
            folder / name, "Uhr,Blick_X,Blick_Y,Lux", [ticks, gaze[:, 0], gaze[:, 1], 0 * ticks + 5]
        )
    return folder


def heard(path: Path, *arguments: object, **options: object) -> tuple[Cohort, list[str]]:
    """A cohort and what was said while it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cohort = gazeveil.read(path, *arguments, **options)  # type: ignore[arg-type]
    return cohort, [str(w.message) for w in caught if issubclass(w.category, ReadingWarning)]


@pytest.mark.parametrize("format_name", [None, "csv"])
def test_a_folder_of_own_columns_reads_and_the_guess_is_said(
    tmp_path: Path, format_name: str | None
) -> None:
    cohort, said = heard(own_columns(tmp_path), format_name)
    assert len(cohort) == 3
    for recording in cohort:
        assert recording.rate_hz == 250
        assert isinstance(recording.space, Screen)
        assert recording.metadata["assumed_geometry"] is True
    text = " ".join(said)
    assert "t is 'Uhr', x is 'Blick_X', y is 'Blick_Y'" in text
    assert "'Uhr' counts ms (250 Hz)" in text
    assert "are pixels from the top left corner" in text
    assert "Assumed a screen of" in text
    assert "--write-dataset" in text


def test_columns_that_are_said_find_their_files_in_a_folder(tmp_path: Path) -> None:
    own_columns(tmp_path)
    (tmp_path / "weather.csv").write_text("day,rain\n1,2\n", "utf-8")
    cohort, said = heard(
        tmp_path,
        "csv",
        columns={"t": "Uhr", "x": "Blick_X", "y": "Blick_Y"},
        time_unit="ms",
        unit="px",
        y_axis="down",
        screen=SCREEN,
        pattern="{person}_{stimulus}.csv",
    )
    assert sorted(cohort.people) == ["anna", "ben"]
    assert cohort.stimuli == ("city", "sea")
    assert said == ["1 file was left out: weather.csv (not csv: there is no column 'Uhr')."]
    assert "assumed_geometry" not in cohort[0].metadata


def test_a_dataset_file_says_everything_once(tmp_path: Path) -> None:
    own_columns(tmp_path)
    (tmp_path / "who.csv").write_text("person,age\nanna,31\nben,29\n", "utf-8")
    (tmp_path / "dataset.toml").write_text(
        'format = "csv"\npattern = "{person}_{stimulus}.csv"\npeople = "who.csv"\n'
        '[columns]\nt = "Uhr"\nx = "Blick_X"\ny = "Blick_Y"\n'
        '[units]\ntime = "ms"\ngaze = "px"\ny_axis = "down"\n' + SECTION,
        "utf-8",
    )
    cohort, said = heard(tmp_path)
    assert [k[:2] for k in cohort.keys] == [("anna", "city"), ("anna", "sea"), ("ben", "sea")]
    assert cohort.people["anna"]["age"] == 31
    assert cohort[0].space == SCREEN
    assert said == []
    assert cohort.read_as.options["columns"] == {"t": "Uhr", "x": "Blick_X", "y": "Blick_Y"}
    expected = SCREEN.from_px(*gaze_px(seed=1).T)
    np.testing.assert_allclose(cohort[0].x_deg, expected[0], atol=1e-6)
    # One file of the folder is read by it too, and an option goes before it.
    (one,) = gazeveil.read(tmp_path / "ben_sea.csv", time_unit="us")
    assert (one.person, one.rate_hz) == ("ben", 250_000)
    with pytest.raises(FormatError):
        gazeveil.read(tmp_path / "ben_sea.csv", "csv", dataset=False, unit="deg", time_unit="s")[0]


def test_a_dataset_file_may_lie_elsewhere(tmp_path: Path) -> None:
    own_columns(tmp_path / "data")
    file = tmp_path / "other.toml"
    file.write_text('pattern = "{person}_{stimulus}.csv"\n' + SECTION, "utf-8")
    assert sorted(heard(tmp_path / "data", dataset=file)[0].people) == ["anna", "ben"]


def test_a_rate_gives_times_and_frames_have_lengths_by_stimulus(tmp_path: Path) -> None:
    gaze = gaze_px(30)
    table(tmp_path / "p1" / "a.csv", "gx,gy", [gaze[:, 0], gaze[:, 1]])
    (tmp_path / "dataset.toml").write_text(
        'format = "csv"\nrate_hz = 120\n[columns]\nx = "gx"\ny = "gy"\n[units]\ngaze = "px"\n'
        + SECTION,
        "utf-8",
    )
    (recording,) = gazeveil.read(tmp_path)
    assert recording.rate_hz == 120
    assert recording.t_ns[:3].tolist() == [0, 8333333, 16666667]
    (tmp_path / "dataset.toml").unlink()
    frames = np.arange(1.0, 31.0)
    for stimulus in ("a", "b"):
        table(
            tmp_path / "p1" / f"{stimulus}.csv", "no,gx_px,gy_px", [frames, gaze[:, 0], gaze[:, 1]]
        )
    (tmp_path / "frames.json").write_text('{"a": 0.04, "b": 0.02}', "utf-8")
    (tmp_path / "dataset.toml").write_text(
        'format = "csv"\nframe_interval_s = "frames.json"\n[columns]\nt = "no"\nx = "gx_px"\n'
        'y = "gy_px"\n' + SECTION,
        "utf-8",
    )
    assert [r.rate_hz for r in gazeveil.read(tmp_path)] == [25, 50]


def test_a_dataset_file_that_was_written_reads_the_same(tmp_path: Path) -> None:
    own_columns(tmp_path)
    (tmp_path / "who.csv").write_text("person,age\nanna,31\nben,29\n", "utf-8")
    path = write_dataset_file(tmp_path)
    text = path.read_text("utf-8")
    # Which of the patterns is right only a person can say: they stand there as comments.
    asked = next(t for t in text.splitlines() if t.startswith('# pattern = "{person}_'))
    assert asked.endswith("# 2 people: 'anna', 'ben'; 2 stimuli")
    path.write_text(text.replace(asked, asked[2:]), "utf-8")
    assert 'people = "who.csv"' in text
    assert '[columns]\nt = "Uhr"\nx = "Blick_X"\ny = "Blick_Y"\n' in text
    assert "assumed = true" in text
    cohort, said = heard(tmp_path)
    assert sorted(cohort.people) == ["anna", "ben"]
    assert cohort.people["ben"]["age"] == 29
    assert not any("Guessed" in s for s in said)
    with pytest.raises(DataError, match="exists already"):
        write_dataset_file(tmp_path)


def test_a_guessed_pattern_stays_a_guess_in_the_file(tmp_path: Path) -> None:
    own_columns(tmp_path, ("P01_sea.csv", "P01_city.csv", "P02_sea.csv", "P02_city.csv"))
    done = command_line.gazeveil("inspect", tmp_path, "--write-dataset")
    assert "by dataset.toml or an option" in " ".join(done.out.split())
    assert "by you" not in done.out
    text = (tmp_path / "dataset.toml").read_text("utf-8")
    assert "# Guessed from the names of files: {person}_{stimulus}.csv" in text


def test_what_cannot_be_guessed_becomes_a_form(tmp_path: Path) -> None:
    values = np.arange(40.0)
    table(tmp_path / "a.csv", "alpha,beta,gamma", [values, values * 2, values * 3])
    with pytest.raises(FormatError, match="a form to fill in was written"):
        write_dataset_file(tmp_path)
    text = (tmp_path / "dataset.toml").read_text("utf-8")
    assert "#   beta" in text
    filled = text.replace('# t = ""', 't = "alpha"').replace('# x = ""', 'x = "beta"')
    filled = filled.replace('# y = ""', 'y = "gamma"').replace("# time", "time")
    filled = filled.replace("# gaze", "gaze").replace("# [screen]", "[screen]")
    for name in ("width_px", "height_px", "width_mm", "height_mm", "distance_mm"):
        filled = filled.replace(f"# {name}", name)
    (tmp_path / "dataset.toml").write_text(filled, "utf-8")
    (recording,) = gazeveil.read(tmp_path)
    assert recording.rate_hz == 1000


def test_an_index_says_whose_each_file_is(tmp_path: Path) -> None:
    own_columns(tmp_path, ("1.csv", "2.csv", "3.csv"))
    (tmp_path / "list.csv").write_text(
        "file,person,stimulus,session,width_px,height_px,width_mm,height_mm,distance_mm\n"
        "1.csv,anna,sea,1,1280,720,400,225,450\n2.csv,anna,sea,2,1280,720,400,225,900\n",
        "utf-8",
    )
    cohort, said = heard(tmp_path, index=tmp_path / "list.csv")
    assert [k[:3] for k in cohort.keys] == [("anna", "sea", "1"), ("anna", "sea", "2")]
    assert [r.space.distance_mm for r in cohort] == [450, 900]  # type: ignore[union-attr]
    assert said[-1] == "1 file was left out: 3.csv (not in the index)."
    for line, message in (
        ("../x.csv,a,b", "outside the folder"),
        ("9.csv,a,b", "there is no file '9.csv'"),
        ("1.csv,a,b\n1.csv,a,c", "listed twice"),
    ):
        (tmp_path / "list.csv").write_text(f"file,person,stimulus\n{line}\n", "utf-8")
        with pytest.raises(FormatError, match=message):
            gazeveil.read(tmp_path, index=tmp_path / "list.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = csv\n", "it is not TOML"),
        ('colums = "x"\n', "no option 'colums'. Did you mean 'columns'"),
        ('columns = "x"\n', r"'columns' parameter of dataset.toml must be a table"),
        ("[units]\ntme = 's'\n", "no option 'tme'. Did you mean 'time'"),
        ("[screen]\nwidth_px = 3\n", "'screen' parameter of dataset.toml"),
        ("format = 3\n", "'format' parameter"),
    ],
)
def test_a_wrong_dataset_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    own_columns(tmp_path)
    (tmp_path / "dataset.toml").write_text(text, "utf-8")
    with pytest.raises(FormatError, match=message) as caught:
        gazeveil.read(tmp_path)
    assert "dataset.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_survive_being_written(tmp_path: Path) -> None:
    options = {
        "columns": {"t": 'a "b"', "x": "gaze [x]", "y": "ü\\y"},
        "time_unit": "ms",
        "unit": "px",
        "missing": [-1, 0.5],
        "screen": SCREEN,
        "assumed": True,
        "pattern": "{person}/{stimulus}.csv",
        "rate_hz": 59.94,
        "frame_interval_s": {"a b": 0.04},
        "surface": "wall",
    }
    path = tmp_path / "dataset.toml"
    path.write_text(dataset_toml("csv", options, ("A note.",)), "utf-8")
    back = read_dataset_file(path)
    assert back.format == "csv"
    assert back.options == options


def test_trackers_taken_for_people_are_pointed_out(tmp_path: Path) -> None:
    names = tuple(f"{t}/{p}.csv" for t in ("tobii", "EyeLink 1000") for p in ("sea", "city"))
    said = heard(own_columns(tmp_path, names))[1]
    doubt = next(s for s in said if "like trackers" in s)
    assert "'EyeLink 1000', 'tobii'" in doubt
    names = tuple(f"{t}/{p}_sea.csv" for t in ("tobii", "EyeLink 1000") for p in ("p01", "p02"))
    cohort, said = heard(own_columns(tmp_path / "named", names))
    assert sorted(cohort.people) == ["p01", "p02"]
    assert not any("people were taken" in s for s in said)


def test_milliseconds_called_seconds_are_pointed_out(tmp_path: Path) -> None:
    gaze = gaze_px()
    ticks = np.arange(len(gaze)) * 4.0
    table(tmp_path / "a.csv", "t_s,x_px,y_px", [ticks, gaze[:, 0], gaze[:, 1]])
    cohort, said = heard(tmp_path, "csv", screen=SCREEN)
    assert any("makes 0.25 Hz: they look like ms. Say time_unit='ms'" in s for s in said)
    assert any("rate that no tracker has" in w for w in summarise(cohort).warnings())
    assert heard(tmp_path, "csv", screen=SCREEN, time_unit="ms", y_axis="down")[1] == []


def test_pixels_called_degrees_are_pointed_out(tmp_path: Path) -> None:
    gaze = np.round(gaze_px() - [640, 360]).clip(-85, 85)
    ticks = np.arange(len(gaze)) * 4.0
    table(tmp_path / "a.csv", "t_ms,x_deg,y_deg", [ticks, gaze[:, 0], gaze[:, 1]])
    cohort, said = heard(tmp_path, screen=Screen(1280, 720, 400.0, 225.0, 900.0))
    assert any("all values are whole numbers: these look like pixels" in s for s in said)
    assert any("most gaze lies beside the screen" in w for w in summarise(cohort).warnings())


def test_a_rate_that_the_times_deny_is_pointed_out(tmp_path: Path) -> None:
    gaze = gaze_px()
    ticks = np.arange(len(gaze)) * 4.0
    table(tmp_path / "a.csv", "t_ms,x_px,y_px", [ticks, gaze[:, 0], gaze[:, 1]])
    said = heard(tmp_path, rate_hz=1000, screen=SCREEN)[1]
    assert any("rate_hz=1000 was said" in s and "250 Hz" in s for s in said)


@pytest.mark.parametrize(
    ("x", "unit"), [("fraction", "fractions of the screen"), ("centred", "from the centre")]
)
def test_other_units_are_guessed_by_their_values(tmp_path: Path, x: str, unit: str) -> None:
    gaze = gaze_px(200)
    gaze = gaze / [1280, 720] if x == "fraction" else (gaze - [640, 360]) * 4
    seconds = 1_600_000_000 + np.arange(len(gaze)) / 60
    path = tmp_path / "a.csv"
    rows = [f"{t:.4f},{a:.6f},{b:.6f}" for t, (a, b) in zip(seconds, gaze, strict=True)]
    path.write_text("\n".join(["stamp,eye_x,eye_y", *rows]) + "\n", "utf-8")
    cohort, said = heard(path)
    assert any(unit in s for s in said)
    assert cohort[0].rate_hz == 60
    assert abs(float(cohort[0].x_deg.mean())) < 3


@pytest.mark.parametrize("names", ["x_cm,y_cm", "x [arcmin],y [arcmin]", "gaze_x_mm,gaze_y_mm"])
@pytest.mark.parametrize("scale", [0.05, 2.0])
def test_a_unit_in_the_name_is_not_overruled_by_a_guess(
    tmp_path: Path, names: str, scale: float
) -> None:
    gaze = (gaze_px(200) - [640, 360]) * scale * 2
    ticks = np.arange(200) * 4.0
    table(tmp_path / "a.csv", f"t_ms,{names}", [ticks, gaze[:, 0], gaze[:, 1]])
    unit = names.rstrip("]")[-2:]
    with pytest.raises(
        FormatError, match=rf"says '\w*{unit}', which is no unit of gaze.*Convert it"
    ):
        gazeveil.read(tmp_path, screen=SCREEN)
    said, _ = heard(tmp_path, screen=SCREEN, unit="px-centred")
    assert len(said[0]) == 200


def test_minutes_are_not_guessed_to_be_seconds(tmp_path: Path) -> None:
    gaze = gaze_px(200)
    table(tmp_path / "a.csv", "time_min,x_px,y_px", [np.arange(200) / 1800, gaze[:, 0], gaze[:, 1]])
    with pytest.raises(FormatError, match=r"says 'min', which is no unit of time.*to seconds"):
        gazeveil.read(tmp_path, screen=SCREEN)


def test_values_that_leave_a_unit_open_are_asked_for(tmp_path: Path) -> None:
    gaze = np.random.default_rng(0).uniform(2, 80, (100, 2))
    ticks = np.arange(100) * 4.0
    table(tmp_path / "a.csv", "t,x,y", [ticks, gaze[:, 0], gaze[:, 1]])
    with pytest.raises(FormatError, match="do not say their unit"):
        gazeveil.read(tmp_path)


def test_a_file_without_rows_does_not_block_a_folder(tmp_path: Path) -> None:
    own_columns(tmp_path, ("anna/sea.csv", "ben/sea.csv"))
    (tmp_path / "anna" / "city.csv").write_text("Uhr,Blick_X,Blick_Y,Lux\n", "utf-8")
    (tmp_path / "ben" / "city.csv").write_text("", "utf-8")
    cohort, said = heard(tmp_path)
    assert [k[:2] for k in cohort.keys] == [("anna", "sea"), ("ben", "sea")]
    assert said[-1] == (
        "2 files were left out: anna/city.csv (no rows below its header), ben/city.csv (the file is"
        " empty)."
    )
    assert {Path(s.path).name for s in cohort.skipped} == {"city.csv"}


def test_a_file_that_does_not_fit_the_pattern_is_named_not_fatal(tmp_path: Path) -> None:
    own_columns(tmp_path, ("anna_sea.csv", "ben_sea.csv", "calibration.csv"))
    cohort, said = heard(tmp_path, pattern="{person}_{stimulus}.csv")
    assert sorted(cohort.people) == ["anna", "ben"]
    assert "calibration.csv (its path does not fit the pattern" in said[-1]
    with pytest.raises(FormatError, match="does not fit the pattern"):
        gazeveil.read(tmp_path, pattern="{person}-{stimulus}.tsv")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", r"a.csv: its first line has numbers where the names of columns should be"),
        ("alpha,beta,gamma\n", r"a.csv: no column of times among alpha, beta, gamma"),
        ("time_ms,beta,gamma\n", r"a.csv: no columns of gaze among time_ms, beta, gamma"),
    ],
)
def test_a_folder_that_cannot_be_guessed_says_what_is_missing(
    tmp_path: Path, header: str, message: str
) -> None:
    lines = [f"{(4 * i) if 'time' in header else i % 7},{i % 50},{i % 30}" for i in range(60)]
    (tmp_path / "a.csv").write_text(header + "\n".join(lines) + "\n", "utf-8")
    for name in (None, "csv"):
        with pytest.raises(FormatError, match=message) as caught:
            gazeveil.read(tmp_path, name)
        assert "--write-dataset" in str(caught.value)


@pytest.mark.parametrize("number", [-1.0, 0.0, 9999.0])
def test_numbers_that_mean_lost_are_lost_and_pointed_out(tmp_path: Path, number: float) -> None:
    gaze = gaze_px(200)
    gaze[::10] = number
    table(tmp_path / "a.csv", "t_ms,x_px,y_px", [np.arange(200) * 4.0, gaze[:, 0], gaze[:, 1]])
    with pytest.warns(ReadingWarning, match=rf"10 % of .*a\.csv have {number:g} in both.*lost"):
        (recording,) = gazeveil.read(tmp_path, screen=SCREEN)
    assert recording.valid.mean() == 0.9
    assert recording.facts["validity"].origin == "guessed"
    (doubt,) = recording.doubts
    assert doubt.remedy == f"[units]\nmissing = [{number:g}]"
    for said in (number, [number]):
        (recording,) = gazeveil.read(tmp_path, screen=SCREEN, missing=said)
        assert recording.doubts == ()
        assert recording.valid.mean() == 0.9
    (recording,) = gazeveil.read(tmp_path, screen=Screen(40000, 40000, 400, 400, 900), missing=[])
    assert recording.doubts == ()
    assert recording.valid.all()


@pytest.mark.parametrize(
    "header",
    ["t_ms,x_px,y_px,validity", "t_ms,left_x_px,left_y_px,validity", "t_ms,lx_px,ly_px,left_valid"],
)
def test_a_validity_that_calls_gaze_lost_is_pointed_out(tmp_path: Path, header: str) -> None:
    px = gaze_px(200)
    px[40:60] = -1
    upside_down = np.zeros(200)
    upside_down[40:60] = 1
    for code, doubted in ((upside_down, True), (1 - upside_down, False)):
        table(tmp_path / "p1" / "a.csv", header, [np.arange(200) * 4, px[:, 0], px[:, 1], code])
        _, said = heard(tmp_path, screen=SCREEN, missing=-1)
        sentences = [s for s in said if "calls 180 of the first 180 samples that have gaze" in s]
        assert len(sentences) == int(doubted)
        assert not doubted or "write 1 for valid and 0 for lost" in sentences[0]


def test_codes_of_validity_are_asked_about(tmp_path: Path) -> None:
    px = gaze_px(100)
    columns = [np.arange(100) * 4, px[:, 0], px[:, 1], np.where(np.arange(100) % 9, 0, 4)]
    table(tmp_path / "p1" / "a.csv", "t_ms,x_px,y_px,validity", columns)
    cohort, said = heard(tmp_path, screen=SCREEN)
    (sentence,) = (s for s in said if "'validity' of a.csv is not used" in s)
    assert "columns={'valid': 'validity'} (1 is valid; other codes with valid=[...])" in sentence
    (recording,) = gazeveil.read(tmp_path, screen=SCREEN, y_axis="down", valid=[0, 1])
    assert recording.valid.tolist() == [bool(i % 9) for i in range(100)]
    assert cohort.read_as.unused == ("validity",)
    with pytest.raises(
        FormatError, match=r"'4' in column 'validity'.*Write 1 .*0 and 1 mean valid"
    ):
        list(heard(tmp_path, screen=SCREEN, columns={"valid": "validity"})[0])
    assert not any("validity" in s for s in heard(tmp_path, screen=SCREEN, ignore=["validity"])[1])


def test_every_verb_reads_it_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    own_columns(tmp_path)
    (tmp_path / "void.csv").write_text("Uhr,Blick_X,Blick_Y,Lux\n", "utf-8")
    done = command_line.gazeveil("inspect", tmp_path, "--write-dataset")
    assert done.code == 0, done.err
    assert (tmp_path / "dataset.toml").is_file()
    assert done.err.count("void.csv (no rows below its header)") == 1
    out = tmp_path.parent / "table.parquet"
    done = command_line.gazeveil("features", tmp_path, "--out", out, "--json", f"{out}.json")
    assert done.code == 0, done.err
    assert done.err.count("void.csv (no rows below its header)") == 1
    assert "Guessed" not in done.err
