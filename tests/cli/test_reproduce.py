"""`gazeveil reproduce`: the studies of the package by name."""

import json
from pathlib import Path

import pytest

from gazeveil.papers import catalogue
from gazeveil.papers.catalogue import study_names
from tests.cli.test_evaluate import run

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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("reproduce", "davidjohn2021/fig"), "Did you mean 'davidjohn2021/fig4'"),
        (("reproduce", "gazecom", "--workers", 2, "--cluster", "tcp://x:1"), "exclude one another"),
        (("evaluate", "studies/gazecom.toml"), "run `gazeveil reproduce gazecom`"),
        (("evaluate", "studies/S001/fig4.toml"), "'S001' is called 'davidjohn2021' now"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    arguments: tuple[object, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
