"""The demonstration: the first commands of a newcomer, small here and run twice."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from gazeveil.cli import demo
from gazeveil.evaluation.results import Results
from tests.support.command_line import run

#: As a newcomer gets them: the fixture `quick` takes less.
STEPS, ATTACKS = demo.STEPS, demo.ATTACKS

SMALL = ("--people", 5, "--seconds", 6, "--repetitions", 1, "--workers", 1)


@pytest.fixture(scope="module")
def quick() -> None:
    """Fewer attackers and values than the demonstration has: those take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "ATTACKS", "quick")
        steps = [s.replace("=1|3|10", "=3").replace("=3|10|30", "=3") for s in demo.STEPS]
        audits = "lpa:epsilon=1 exponential-dp:epsilon=1,reading=published --trials 20000"
        patch.setattr(
            demo, "STEPS", [s.replace(audits, "lpa:epsilon=1 --trials 200") for s in steps]
        )
        yield


@pytest.fixture(scope="module")
def folder(quick: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "of a newcomer"
    assert run("demo", "--out", out, *SMALL) == 0
    return out


def test_the_demo_ends_with_a_report_and_pictures(folder: Path) -> None:
    for name in ("headset.png", "reading.png", "study/identification.png", "study/maps.png"):
        assert (folder / name).stat().st_size > 5_000, name
    page = (folder / "study" / "report.html").read_text(encoding="utf-8")
    for words in ("5 simulated people read on a screen", "k-same-select as published", "refuted"):
        assert words in page, words
    assert "gaussian" in (folder / "explore.html").read_text(encoding="utf-8")


def test_the_demo_shows_one_mechanism_of_each_kind(folder: Path) -> None:
    results = Results.read(folder / "study")
    names = {name for name in results.frame["mechanism"].to_list() if name != "none"}
    assert names == {line.partition(":")[0].strip(' "') for line in demo.STUDY.splitlines()
                     if line.startswith('  "')}  # fmt: skip
    assert list(results.failures) == []
    assert {a for a in results.frame["attack"].to_list() if a} == {"rbfn", "linkage"}


def test_the_first_picture_comes_at_once_and_the_strong_battery_attacks() -> None:
    first = [(step.split()[0], "--plot" in step) for step in STEPS[:2]]
    assert (first, ATTACKS) == ([("simulate", False), ("inspect", True)], "strong")


@pytest.mark.usefixtures("undrawn")
def test_the_demo_runs_again_computes_nothing_twice_and_says_what_it_does(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(demo, "STEPS", [s for s in demo.STEPS if s[:5] in ("simul", "evalu")])
    before = (folder / "study" / "results.parquet").read_bytes()
    assert run("demo", "--out", folder, "--open", *SMALL) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "$ gazeveil simulate" in said
    assert "These people are simulated." in said
    assert opened == [(folder / "study" / "report.html").resolve().as_uri()]
    assert json.loads((folder / "study" / "run.json").read_text())["times"]["computed"] == 0
    assert (folder / "study" / "results.parquet").read_bytes() == before


def test_the_demo_touches_no_folder_it_did_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "other" / "headset"
    mine.mkdir(parents=True)
    (mine / "keep.txt").write_text("mine")
    assert run("demo", "--out", tmp_path / "other", *SMALL) == 2
    assert "was not written by the demo" in capsys.readouterr().err
    assert (mine / "keep.txt").exists()
