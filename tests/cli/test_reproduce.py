"""`gazeveil reproduce`: the studies of the package by name."""

import json
import os
from pathlib import Path

import pytest

from gazeveil.papers import figures as catalogue
from gazeveil.papers.figures import CITATIONS, published_figures, study_names
from tests.support.command_line import run

STUDY = """
name = "small"
attacks = ["rbfn:prototypes=4"]
scenarios = ["private/private"]
mechanisms = ["gaussian:sigma_deg={1,10}"]

[[part]]
label = "ET-DK2"
simulate = { people = 4, stimuli = 4, seconds = 8, rate_hz = 60, seed = 1 }
"""


def test_without_a_name_the_studies_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("reproduce", "--json", tmp_path / "studies.json") == 0
    rows = json.loads((tmp_path / "studies.json").read_text())
    assert tuple(row["study"] for row in rows) == study_names()
    assert "davidjohn2021/fig4" in capsys.readouterr().out


def test_a_study_is_run_by_name_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    arguments = ("reproduce", "small", "-o", out, "-r", 1, "--workers", 1, "--json", figures)
    assert run(*arguments) == 0
    assert (out / "report.html").is_file()
    assert json.loads(figures.read_text())
    assert f"Report: {out / 'report.html'}" in capsys.readouterr().out.replace("\n", "")


def test_the_list_covers_every_published_figure_and_says_which_recordings_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GAZEVEIL_DATA", raising=False)
    (tmp_path / "et-dk2").mkdir()
    (tmp_path / "dgaze").mkdir()
    place = tmp_path / "list.json"
    assert run("reproduce", "--list", "--data", tmp_path, "--json", place) == 0
    assert "GAZEVEIL_DATA" not in os.environ
    rows = json.loads(place.read_text())
    everything = {(f.source, f.location) for paper in CITATIONS for f in published_figures(paper)}
    assert {(r["paper"], r["location"]) for r in rows} == everything
    assert sum(r["figures"] for r in rows) == 1714
    for row in rows:
        assert row["studies"]
    by_place = {(r["paper"], r["location"]): r for r in rows}
    table = by_place["davidjohn2021", "Table 4"]["folders"]
    assert table["et-dk2"]
    assert table["dgaze"]  # the arrays, whose part is left out where they are not there
    assert not table["dgaze-recordings"]
    assert "1714 published figures" in " ".join(capsys.readouterr().out.split())


PAPER_STUDY = STUDY.replace('name = "small"', 'name = "small"\npaper = "davidjohn2021"').replace(
    "rbfn:prototypes=4", "rbfn:prototypes=4,reading=published"
)


def test_all_studies_of_a_paper_make_one_page_and_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    studies, out = tmp_path / "studies", tmp_path / "out"
    (studies / "davidjohn2021").mkdir(parents=True)
    (studies / "davidjohn2021" / "fig4.toml").write_text(PAPER_STUDY)
    broken = PAPER_STUDY.replace("people = 4", "people = 1")
    (studies / "davidjohn2021" / "fig3.toml").write_text(broken)
    (studies / "own.toml").write_text(STUDY)
    monkeypatch.setattr(catalogue, "FOLDER", studies)
    arguments = ("reproduce", "--all", "-o", out, "-r", 1, "--workers", 1)
    assert run(*arguments) == 0
    record = json.loads((out / "record.json").read_text())
    # A study that fails stops no other, and studies of no paper are not among them.
    assert set(record) == {"davidjohn2021/fig4"}
    rows = record["davidjohn2021/fig4"]
    assert {"published", "ours", "verdict", "reason", "beside"} <= rows[0].keys()
    page = (out / "davidjohn2021.html").read_text()
    link = "davidjohn2021/fig4/parts/et-dk2/report.html"
    assert f'href="{link}"' in page
    assert (out / link).is_file()
    assert "Not computed: No part" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("reproduce", "--list", "--all"), "exclude one another"),
        (("reproduce", "gazecom", "--data", "nowhere"), "--data must be a folder"),
        (("reproduce", "--all", "--part", "GazeCom"), "--part needs a study"),
        (("reproduce", "davidjohn2021/fig4", "--part", "GazeCom"), "VR-EyeTracking"),
        (("reproduce", "davidjohn2021/fig"), "Did you mean 'davidjohn2021/fig4'"),
        (("reproduce", "gazecom", "--workers", 2, "--cluster", "tcp://x:1"), "exclude one another"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    arguments: tuple[object, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
