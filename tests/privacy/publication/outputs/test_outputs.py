"""Releases as CSV, as a BIDS derivative and in the input's own layout: they read back here,
the real BIDS validator finds no error, and no name of the input is left.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import Cohort, Handle, ReadAs
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.known import read_index
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.outputs import output
from gazeveil.privacy.publication.outputs.text import BidsOutput, bids_label
from gazeveil.privacy.publication.protecting import protected, write_publication
from tests.support.bids_validator import errors, issues

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
PEOPLE = ("Anna Braun", "Ben", "Cleo", "Dan", "Eva")


def cohort(space: object = SCREEN, rate_hz: float = 250.0, people: int = 5) -> Cohort:
    """Recordings with names, dates and messages that no release may hold."""
    recordings = []
    for p, person in enumerate(PEOPLE[:people]):
        for s, stimulus in enumerate(("sea view", "2021-08-19 city")):
            rng = np.random.default_rng(10 * p + s)
            n = 200
            gaze = np.cumsum(rng.normal(0, 0.1, (n, 2)), axis=0)
            gaze = gaze if isinstance(space, Screen) else gaze + 90
            valid = rng.random(n) > 0.1
            t = 1_629_390_345_000_000_000 + np.round(np.arange(n) * 1e9 / rate_hz).astype(np.int64)
            recordings.append(
                Recording(
                    person,
                    stimulus,
                    t,
                    np.where(valid, gaze[:, 0], np.nan),
                    np.where(valid, gaze[:, 1], np.nan),
                    valid,
                    space=space,  # type: ignore[arg-type]
                    session="2021-08-19",
                    pupil=rng.uniform(2, 5, n),
                    messages=(Message(int(t[3]), "TRIAL\tAnna Braun"),),
                )
            )
    ages = {p: {"age": 20 + 7 * i, "gender": "f"} for i, p in enumerate(PEOPLE[:people])}
    return Cohort(recordings, ages)


def published(
    folder: Path, data: Cohort, to: str, mechanism: str = "gaussian:sigma_deg=1", **choices: object
) -> Path:
    chosen = PublicationChoices(to=to, **choices)  # type: ignore[arg-type]
    made = protected(data, gazeveil.mechanism(mechanism), chosen, seed=3)
    write_publication(made, folder)
    return folder


def text_of(folder: Path) -> bytes:
    """All bytes and names of a folder, archives unzipped."""
    import gzip

    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)).encode())
        if path.is_file():
            data = path.read_bytes()
            parts.append(gzip.decompress(data) if path.suffix == ".gz" else data)
    return b"\n".join(parts)


def same_gaze(one: Cohort, other: Cohort, atol: float = 0.0) -> None:
    by_key = {r.key: r for r in other}
    assert len(one) == len(other)
    for recording in one:
        back = by_key[recording.key]
        np.testing.assert_array_equal(recording.t_ns, back.t_ns)
        np.testing.assert_array_equal(recording.valid, back.valid)
        assert recording.rate_hz == back.rate_hz
        assert recording.space == back.space
        for name in ("x_deg", "y_deg"):
            np.testing.assert_allclose(
                getattr(recording, name)[recording.valid],
                getattr(back, name)[back.valid],
                rtol=0,
                atol=atol,
            )


@pytest.mark.parametrize("space", [SCREEN, gazeveil.Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize("rate_hz", [250.0, 120.0])
@pytest.mark.parametrize("to", ["csv", "bids"])
def test_every_format_holds_the_same_gaze_as_parquet(
    tmp_path: Path, to: str, rate_hz: float, space: object
) -> None:
    data = cohort(space, rate_hz)
    first = gazeveil.read(published(tmp_path / "parquet", data, "parquet"))
    other = gazeveil.read(published(tmp_path / to, data, to))
    same_gaze(first, other)
    assert {p: dict(a) for p, a in first.people.items()}.keys() == other.people.keys()


@pytest.mark.parametrize("to", ["csv", "bids"])
def test_no_name_date_or_clock_of_the_input_is_in_any_byte(tmp_path: Path, to: str) -> None:
    content = text_of(published(tmp_path / to, cohort(), to))
    for word in (b"Anna", b"Braun", b"2021-08", b"TRIAL", b"1629390345", str(tmp_path).encode()):
        assert word not in content, word


def test_the_csv_dictionary_names_every_column_of_every_file(tmp_path: Path) -> None:
    folder = published(tmp_path / "csv", cohort(), "csv", keep=("pupil", "messages"))
    dictionary = json.loads((folder / "data_dictionary.json").read_text("utf-8"))["files"]
    for path in folder.rglob("*.csv"):
        pattern = path.relative_to(folder).as_posix()
        if path.parent.name == "recordings":
            pattern = "recordings/*" + path.name[6:]
        header = path.read_text("utf-8").split("\n", 1)[0].split(",")
        assert header == list(dictionary[pattern]), pattern
    page = (folder / "DATA.md").read_text("utf-8")
    assert "| `x_deg` | gaze: angle from the centre of the screen, to the right | deg |" in page
    back = gazeveil.read(folder)
    assert back[0].pupil is not None
    index = read_index(folder / "recordings.csv")
    assert len(index) == 10


@pytest.mark.parametrize("space", [SCREEN, gazeveil.Sphere()], ids=["screen", "sphere"])
def test_the_real_validator_finds_no_error_in_the_derivative(tmp_path: Path, space: object) -> None:
    folder = published(
        tmp_path / "bids", cohort(space), "bids", keep=("pupil", "messages", "stimulus")
    )
    assert errors(folder) == []
    description = json.loads((folder / "dataset_description.json").read_text("utf-8"))
    assert description["DatasetType"] == "derivative"
    assert description["GeneratedBy"][0]["Name"] == "Gazeveil"
    assert description["Privacy"]["Mechanism"] == "gaussian"
    # The same validator does find what is wrong.
    (folder / ".bidsignore").unlink()
    (folder / "participants.tsv").write_text("name\nsub-1\n", "utf-8")
    codes = {i["code"] for i in issues(folder) if i["severity"] == "error"}
    assert "NOT_INCLUDED" in codes
    assert "TSV_COLUMN_MISSING" in codes


def test_a_message_with_tabs_and_quotes_passes_the_validator_and_comes_back(tmp_path: Path) -> None:
    from gazeveil.io.bids.read import write

    texts = ('TRIAL\t"1"', " a\nb\r\\t", '"', "plain")
    base = cohort(people=1)[0]
    messages = tuple(Message(int(base.t_ns[i]), t) for i, t in enumerate(texts))
    write(Cohort([base.with_(messages=messages)]), tmp_path / "raw")
    assert errors(tmp_path / "raw") == []
    assert gazeveil.read(tmp_path / "raw")[0].messages == messages


def test_labels_need_no_other_recording(tmp_path: Path) -> None:
    names = ("clip 1", "clip_1", "clip1", "Clip1", "")
    assert len({bids_label(n, "stimulus") for n in names}) == len(names)
    rows = [{"file": "sub-a/x_acq-clip1.tsv.gz"}, {"file": "sub-a/x_acq-Clip1.tsv.gz"}]
    with pytest.raises(DataError, match="capital letters alone"):
        BidsOutput().finish(tmp_path, rows, {}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", ["parquet", "csv", "bids"])
def test_a_recording_without_samples_stops_no_release(tmp_path: Path, to: str) -> None:
    none = np.empty(0)
    empty = Recording("Ben", "nothing", none.astype(np.int64), none, none, space=SCREEN)
    data = cohort()
    back = gazeveil.read(published(tmp_path / to, Cohort([*data, empty], data.people), to))
    assert sum(len(r) > 0 for r in back) == len(data)
    if to == "bids":
        assert errors(tmp_path / to) == []


# --- the input's own layout
# --------------------------------------------------------------------------------------------------


def own_csv(folder: Path) -> Path:
    for person in ("p1", "p2", "p3", "p4"):
        for clip in ("sea", "city"):
            rng = np.random.default_rng(sum(f"{person}{clip}".encode()))
            gaze = rng.normal((640, 360), 60, (100, 2))
            path = folder / person / f"{clip}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [f"{4 * i};{x:.2f};{y:.2f}" for i, (x, y) in enumerate(gaze)]
            path.write_text("\n".join(["Uhr;GX;GY", *lines]) + "\n", "utf-8")
    (folder / "dataset.toml").write_text(
        'format = "csv"\npattern = "{person}/{stimulus}.csv"\n'
        '[columns]\nt = "Uhr"\nx = "GX"\ny = "GY"\n[units]\ntime = "ms"\ngaze = "px"\n'
        'missing = [-1]\ny_axis = "up"\n'
        "[screen]\nwidth_px = 1280\nheight_px = 720\nwidth_mm = 400\nheight_mm = 225\n"
        "distance_mm = 450\n",
        "utf-8",
    )
    return folder


def test_same_writes_csv_with_the_columns_of_its_dataset_file(tmp_path: Path) -> None:
    data = gazeveil.read(own_csv(tmp_path / "in"))
    folder = published(tmp_path / "same", data, "same")
    frame = pl.read_csv(folder / "recordings" / "000001.csv", separator=";")
    assert frame.columns == ["Uhr", "GX", "GY"]
    assert frame["Uhr"][1] == 4.0
    assert frame["GX"].max() > 300
    first = gazeveil.read(published(tmp_path / "parquet", data, "parquet"))
    same_gaze(first, gazeveil.read(folder), atol=1e-9)


def test_a_release_in_python_knows_what_its_recordings_were_read_as(tmp_path: Path) -> None:
    data = gazeveil.read(own_csv(tmp_path / "in"))
    for name in ("gaussian:sigma_deg=1", "k-same-synth:k=2"):
        release = gazeveil.mechanism(name).release(data, seed=1)
        out = release.write(tmp_path / name.split(":")[0], to="same")
        assert (out / "recordings" / "000001.csv").read_text("utf-8").startswith("Uhr;GX;GY\n")


@pytest.mark.parametrize(
    ("options", "x", "y"),
    [
        ({"unit": "deg"}, 3.0, 4.0),
        ({"unit": "deg", "y_axis": "up"}, 3.0, -4.0),
        ({"unit": "rad"}, np.radians(3.0), np.radians(4.0)),
        ({"unit": "px-centred"}, None, None),
        ({"unit": "fraction", "y_axis": "up"}, None, None),
        ({"unit": "px", "time_unit": "100ns"}, None, None),
        ({"unit": "px", "time_unit": "ns", "separator": "\t"}, None, None),
    ],
)
def test_every_unit_is_written_as_it_is_read(
    tmp_path: Path, options: dict[str, object], x: float | None, y: float | None
) -> None:
    columns = {"columns": {"t": "when", "x": "right", "y": "down", "valid": "ok"}}
    made = output("same", ReadAs("csv", {"time_unit": "ms", **options, **columns}))
    t = np.arange(10, dtype=np.int64) * 4_000_000
    recording = Recording("p", "s", t, np.full(10, 3.0), np.full(10, 4.0), space=SCREEN)
    row = made.write_recording(tmp_path, 1, recording)
    reading = {"time_unit": "ms", **options, **columns, "screen": SCREEN}
    (back,) = gazeveil.read(tmp_path / str(row["file"]), "csv", **reading)
    np.testing.assert_array_equal(back.t_ns, t)
    np.testing.assert_allclose(back.x_deg, 3.0, atol=1e-12)
    np.testing.assert_allclose(back.y_deg, 4.0, atol=1e-12)
    if x is not None and y is not None:
        first = (tmp_path / str(row["file"])).read_text("utf-8").split("\n")[1].split(",")
        assert float(first[1]) == pytest.approx(x)
        assert float(first[2]) == pytest.approx(y)


@pytest.mark.parametrize("unit", ["lonlat", "equirect", "fraction", "deg", "rad"])
@pytest.mark.parametrize("y_axis", ["down", "up"])
def test_every_unit_of_the_sphere_is_written_as_it_is_read(
    tmp_path: Path, unit: str, y_axis: str
) -> None:
    options: dict[str, object] = {
        "columns": {"t": "t", "x": "x", "y": "y"},
        "time_unit": "s",
        "unit": unit,
        "y_axis": y_axis,
    }
    if unit == "equirect":
        options["panorama"] = [2000, 1000]
    t = np.arange(10, dtype=np.int64) * 4_000_000
    recording = Recording("p", "s", t, np.full(10, 300.0), np.full(10, 30.0))
    row = output("same", ReadAs("csv", options)).write_recording(tmp_path, 1, recording)
    (back,) = gazeveil.read(tmp_path / str(row["file"]), "csv", **options, space="sphere")
    np.testing.assert_allclose(back.x_deg, 300.0, atol=1e-9)
    np.testing.assert_allclose(back.y_deg, 30.0, atol=1e-9)


@pytest.mark.parametrize("name", ["arff", "gazecom"])
def test_same_writes_arff(tmp_path: Path, name: str) -> None:
    data = cohort()
    data = Cohort(data.items, data.people, read_as=ReadAs(name))
    folder = published(tmp_path / "same", data, "same")
    back = gazeveil.read(folder)
    assert back.read_as is not None
    assert back.read_as.format == name
    first = gazeveil.read(published(tmp_path / "parquet", data, "parquet"))
    assert {k[0] for k in back.keys} == {k[0] for k in first.keys}
    one = {k[:2]: r for k, r in zip(first.keys, first, strict=True)}
    for recording in back:
        stimulus = next(k[1] for k in one if k[1].replace(" ", "-") == recording.stimulus)
        origin = one[recording.person, stimulus]
        np.testing.assert_array_equal(recording.valid, origin.valid)
        ok = origin.valid
        np.testing.assert_allclose(recording.x_deg[ok], origin.x_deg[ok], atol=1e-9)


@pytest.mark.parametrize("name", ["parquet", "bids"])
def test_same_writes_what_gazeveil_writes(tmp_path: Path, name: str) -> None:
    data = gazeveil.read(published(tmp_path / "first", cohort(), name))
    again = gazeveil.read(published(tmp_path / "again", data, "same"))
    assert again.read_as is not None
    assert again.read_as.format == name


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("eyelink-asc", "eyelink-asc is read and not written. Written as they were read are arff,"),
        ("", "came from no file"),
        (ReadAs("csv", {"columns": {"left_x": "a"}, "time_unit": "ms"}), "frames or follow"),
        (ReadAs("csv", {"columns": {"t": "a", "left_x": "b"}}), "single eyes alone"),
    ],
)
def test_same_refuses_in_one_sentence(source: ReadAs | str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        output("same", source)
    assert "\n" not in str(caught.value)
    assert "choose csv, parquet or bids" in str(caught.value).lower()


def test_same_refuses_before_a_recording_is_loaded() -> None:
    def never() -> Recording:
        raise AssertionError("loaded")

    data = Cohort([Handle("a", "s", never)], read_as=ReadAs("smi"))
    with pytest.raises(ParameterError, match="smi is read and not written"):
        protected(data, gazeveil.mechanism("gaussian:sigma_deg=1"), PublicationChoices(to="same"))
