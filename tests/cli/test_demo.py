"""The demonstration: all steps on simulated people, small here and run twice."""

from __future__ import annotations

import json
import re
import webbrowser
from pathlib import Path

import pytest

from gazeveil.attacks.registry import DEFAULT, battery
from gazeveil.cli import demo
from gazeveil.cli.main import main
from gazeveil.evaluation.report import canvas
from gazeveil.evaluation.results import Results

AUDIT = "gazeveil.privacy.audit.run.audit"
#: Fewer attackers than the demonstration has: the strong battery takes minutes.
ATTACKS = (
    "quick",
    "linkage:features=extended",
    "linkage:knowledge=white-box",
    "linkage:denoiser=lowpass",
)
SMALL = ("--people", 5, "--seconds", 6, "--repetitions", 1, "--workers", 1)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    opened: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbrowser, "open", opened.append)
        patch.setattr(canvas, "_DPI", 60)
        patch.setattr(demo, "_MOVED", ("gaussian:sigma_deg=3", "temporal:K=3"))
        patch.setattr(demo, "_ATTACKS", ATTACKS)
        patch.setattr(AUDIT, lambda text, trials: f"{text}: not audited")
        out = tmp_path_factory.mktemp("demo") / "demo"
        assert run("demo", "--out", out, *SMALL) == 0
    assert opened == [], "a browser is opened only where it was asked for"
    return out


def test_the_demo_ends_with_a_report_and_pictures(folder: Path) -> None:
    for name in (
        "headset.png",
        "reading.png",
        "protected.png",
        "identification.png",
        "traces.png",
        "maps.png",
        "confusion.png",
        "adaptive.png",
        "front-1.png",
    ):
        assert (folder / name).stat().st_size > 5_000, name
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in (
        "Without protection an attacker",
        "simulated people read on a screen",
        "k-same-select as published",
        "heatmap-laplace",
        "k-same-synth",
        "dpgazesynth-one-report",
        "demographics",
        "refuted",
        "of 5 attackers (quick battery and 3 more)",
        "These people are simulated.",
    ):
        assert words in page, words


def test_the_demo_attacks_as_a_study_does() -> None:
    assert demo._ATTACKS == (DEFAULT,)


def test_the_demo_ends_with_the_page_to_explore(folder: Path) -> None:
    page = (folder / "explore.html").read_text(encoding="utf-8")
    held = re.search(r'id="figures">(.*?)</script>', page)
    assert held is not None
    figures = json.loads(held[1])
    assert [m["name"] for m in figures["board"]["mechanisms"]] == ["gaussian", "temporal"]
    assert all(found["n"] == 5 for row in figures["attacks"] for found in row["values"])


def test_the_demo_shows_one_mechanism_of_each_kind_and_all_its_attackers(folder: Path) -> None:
    results = Results.read(folder / "study")
    cells = {(r["mechanism"], r["reading"]) for r in results.frame.iter_rows(named=True)}
    streams = {(m, "corrected") for m in ("gaussian", "temporal", "spatial", "kaleido")}
    drawn = {("k-same-synth", "corrected"), ("dpgazesynth-one-report", "corrected")}
    assert cells == {
        ("none", ""),
        *streams,
        ("k-same-select", "published"),
        ("k-same-select", "corrected"),
        ("exponential-dp", "corrected"),
        *drawn,
    }
    assert list(results.failures) == []
    assert {a for a in results.frame["attack"].to_list() if a} == {*battery("quick"), *ATTACKS[1:]}
    assert {u for u in results.frame["utility"].to_list() if u} == {
        "document:split=people",
        "saliency",
        "events",
    }


def test_the_demo_runs_again_computes_nothing_twice_and_says_what_it_found(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    # What costs time and is the same every time.
    monkeypatch.setattr(demo, "_ATTACKS", ATTACKS)
    monkeypatch.setattr(AUDIT, lambda text, trials: f"{text}: not audited")
    monkeypatch.setattr(demo, "_explore", lambda out, *_: out / "explore.html")
    monkeypatch.setattr("gazeveil.cli.figures.draw_overview", lambda *_: None)
    monkeypatch.setattr(
        "gazeveil.evaluation.report.page.write_report", lambda _, path, __: path / "report.html"
    )
    before = (folder / "study" / "results.parquet").read_bytes()
    assert run("demo", "--out", folder, "--open", *SMALL) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "- Without protection an attacker who has seen these people look at other things in the"
        " same sitting recognises" in said
    )
    assert "With k-same-select as published (k=4)" in said
    assert f"Report: {folder / 'report.html'}" in said
    assert opened == [(folder / "report.html").resolve().as_uri()]
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
