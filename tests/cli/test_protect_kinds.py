"""`gazeveil protect` and `gazeveil.protect` look at what they get: recordings, feature tables, heat
maps of recordings, and what is known about people.

`gazeveil attack --kind`: every inference attack is reached from the command line.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.features import FeatureTable
from gazeveil.io.tables_file import read_people, write_table
from gazeveil.privacy.conformance import sample_data
from gazeveil.privacy.publication.names import read_key
from tests.support.command_line import run

PEOPLE = {f"p{i}": {"age": 20 + i, "gender": "fm"[i % 2]} for i in range(8)}


@pytest.fixture(scope="module")
def cohort() -> gazeveil.Cohort:
    screen = gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0)
    recordings = list(gazeveil.simulate(8, 2, 3.0, 100.0, space=screen, seed=1))
    names = sorted({r.person for r in recordings})
    people = dict(zip(names, PEOPLE.values(), strict=True))
    return gazeveil.Cohort(recordings, people)


@pytest.fixture(scope="module")
def raw(cohort: gazeveil.Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cohort.write(tmp_path_factory.mktemp("protect") / "raw")


@pytest.fixture
def people_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{person},{a['age']},{a['gender']}" for person, a in PEOPLE.items()]
    path.write_text("\n".join(["person,age,gender", *rows]) + "\n")
    return path


def test_a_table_is_protected_into_a_new_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "table.parquet", tmp_path / "safe.parquet"
    write_table(sample_data("table"), table)
    assert run("protect", table, out, "-m", "lpa:epsilon=1") == 0
    assert "a factor of at most 2.72. It is a claim because" in capsys.readouterr().out
    assert len(FeatureTable.read(out)) == len(sample_data("table"))
    assert run("protect", table, out, "-m", "lpa:epsilon=1") == 2
    assert "exists already" in capsys.readouterr().err
    assert run("protect", tmp_path, tmp_path / "other", "-m", "lpa:epsilon=1") == 2
    assert "takes a feature table" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_recordings_become_heat_maps_in_a_table(
    suffix: str,
    raw: Path,
    cohort: gazeveil.Cohort,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, figures = tmp_path / f"maps.{suffix}", tmp_path / "m.json"
    text = "heatmap-laplace:epsilon=1,rows=6,columns=10"
    assert run("protect", raw, out, "-m", text, "--seed", 3, "--json", figures) == 0
    said = capsys.readouterr().out
    assert "2 heat maps written" in said
    assert "Claimed, not promised: Replacing all recordings" in said
    assert "This is a test" in said
    frame = {
        "parquet": pl.read_parquet,
        "csv": pl.read_csv,
        "tsv": lambda path: pl.read_csv(path, separator="\t"),
    }[suffix](out)
    assert frame.columns == ["stimulus", "row", "column", "x_deg", "y_deg", "share", "viewers"]
    released = gazeveil.protect(cohort, text, seed=3)
    half = cohort[0].space.width_deg / 2
    for stimulus, heat_map in released.data.items():
        rows = frame.filter(pl.col("stimulus") == stimulus)
        np.testing.assert_allclose(rows["share"].to_numpy().reshape(6, 10), heat_map.cells)
        np.testing.assert_allclose(rows["viewers"].to_numpy().reshape(6, 10), heat_map.noisy)
        assert rows["share"].sum() == pytest.approx(1)
        assert rows["x_deg"][0] == pytest.approx(-0.9 * half)
        assert rows["x_deg"][9] == pytest.approx(0.9 * half)
    assert json.loads(figures.read_text())["maps"] == 2


def test_people_are_protected_from_a_table_and_from_recordings(
    people_file: Path, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.tsv"
    key = ("--key-file", tmp_path / "key.json")
    assert run("protect", people_file, one, "-m", "demographics:k=4", *key) == 0
    said = capsys.readouterr().out
    assert "8 people written" in said
    assert "is the same for at least 4 participants" in said
    figures = tmp_path / "f.json"
    kept_names = ("--keep", "person", "--json", figures)
    assert run("protect", raw, two, "-m", "demographics:k=4", *kept_names) == 0
    released = gazeveil.protect(PEOPLE, "demographics:k=4").data
    named = read_key(tmp_path / "key.json").people
    assert read_people(one) == {named[person]: row for person, row in released.items()}
    assert not set(named) & set(named.values())
    kept = read_people(two)
    assert [kept[p] for p in sorted(kept)] == list(released.values())
    assert "the names of people, kept as they were" in json.loads(figures.read_text())["sentence"]


BAD = [
    (["{raw}", "{tmp}/maps", "-m", "heatmap-laplace:epsilon=1"], "Use .parquet, .csv or .tsv"),
    (["{tmp}/no", "{tmp}/maps.csv", "-m", "heatmap-laplace:epsilon=1"], "no such file"),
    (["{raw}", "{tmp}/maps.csv", "-m", "heatmap-laplace:epsilon=0"], "epsilon"),
    (["{raw}", "{tmp}/m.csv", "-m", "heatmap-gaussian:rho=1", "--keep", "pupil"], "be kept"),
    (["{people}", "{tmp}/safe.parquet", "-m", "demographics:k=4"], "Use .csv or .tsv"),
    (["{people}", "{people}", "-m", "demographics:k=4"], "exists already"),
    (["{people}", "{tmp}/safe.csv", "-m", "demographics:k=9"], "at least k = 9 people"),
    (["{people}", "{tmp}/s.csv", "-m", "demographics:k=4,attributes=shoe"], "has no shoe"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    words: list[str],
    sentence: str,
    raw: Path,
    people_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = people_file.read_text()
    assert (
        run("protect", *(w.format(raw=raw, tmp=tmp_path, people=people_file) for w in words)) == 2
    )
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert sorted(tmp_path.iterdir()) == [people_file]
    assert people_file.read_text() == before


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("table", "gaussian:sigma_deg=2", "a Recording or a Cohort, for gaussian"),
        ("stream", "k-same-synth:k=2", "must be a Cohort"),
        ("people", "heatmap-laplace:epsilon=1", "does not say what one viewer adds"),
        ("map", "lpa:epsilon=1", "must be a FeatureTable"),
        ("table", "demographics:k=4", "a mapping of person to attributes"),
    ],
)
def test_data_of_another_kind_is_refused(kind: str, text: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        gazeveil.protect(sample_data(kind), text)


def test_bad_arguments_of_protect_are_refused(cohort: gazeveil.Cohort) -> None:
    with pytest.raises(ParameterError, match="nothing of the raw data can be kept"):
        gazeveil.protect(cohort, "demographics:k=4", keep=("pupil",))
    with pytest.raises(ParameterError, match="a mechanism or its text"):
        gazeveil.protect(cohort, 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has no age"):
        gazeveil.protect(gazeveil.Cohort(list(cohort)), "demographics:k=4")


def test_pieces_are_not_counted_as_recordings_left_out(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pieces have names of their own: that none is called like a recording is no loss."""
    text = "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,crowd=8"
    assert run("protect", raw, tmp_path / "out", "-m", text, "--seed", 1) == 0
    said = capsys.readouterr()
    assert "left out" not in said.out + said.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("attack")
    counts = ("--people", "6", "--stimuli", "3", "--seconds", "5", "--rate", "100", "--seed", "1")
    assert run("simulate", here / "raw", *counts) == 0
    mechanism, key = "gaussian:sigma_deg=1/100", ("--key-file", here / "key.json")
    assert run("protect", here / "raw", here / "safe", "--mechanism", mechanism, *key) == 0
    return here


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("attributes:attribute=gender", "accuracy"),
        ("record-linkage", "identification_rate"),
        ("demographics:k=2", "identification_rate"),
        ("stimulus-risk:attacks=linkage,draws=99", "across_rate"),
    ],
)
def test_a_kind_is_run_and_written(folder: Path, tmp_path: Path, kind: str, metric: str) -> None:
    out = tmp_path / "found.json"
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, "--kind", kind, "--json", out) == 0
    found = json.loads(out.read_text())
    assert found["kind"] == kind.partition(":")[0]
    assert found["results"][0]["metric"] == metric
    assert found["results"][0]["n"] > 0


def test_stimuli_are_compared_and_how_far_to_read_it_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = folder / "raw"
    assert run("attack", raw, raw, "--kind", "stimulus-risk:attacks=linkage,draws=99") == 0
    said = capsys.readouterr().out
    assert "free-viewing-1" in said
    assert "of 3 stimuli differ from the mean. A difference below" in said


def test_membership_needs_people_who_are_not_in_the_release(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, "--kind", "membership") == 2
    assert "who took part and targets who did not" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kind", "nonsense"), "must be one of attributes, demographics, identify"),
        (("--kind", "record-linkage:foo=1"), "has no parameter 'foo'"),
        (("--kind", "attributes", "-a", "linkage"), "Leave them out, or leave --kind out"),
    ],
)
def test_a_bad_kind_gets_one_sentence(
    folder: Path, arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, *arguments) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_every_kind_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "attacks") == 0
    text = capsys.readouterr().out
    for kind in ("attributes", "membership", "record-linkage", "demographics", "relinking"):
        assert kind in text
