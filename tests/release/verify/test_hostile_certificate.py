"""A release of somebody hostile makes `verify` open no file outside it, wait for nothing, and print
nothing but text.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gazeveil
from gazeveil.errors import GazeveilError
from gazeveil.privacy.publication.certificate import hashes
from gazeveil.privacy.publication.page import page
from gazeveil.release.verify import VerifiedRelease, verify
from tests.support.command_line import run

#: The header of the file outside, which an error about it would quote.
SECRET = "salary_of_gertrud"
BOXES = "stimulus,name,left_deg,top_deg,right_deg,bottom_deg\n*,whole,100,60,160,100\n"
LARGEST = "kaleido:epsilon=1,w=30,r_deg=largest,regions="


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "out"
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, "kaleido:epsilon=1,w=30,r_deg=2").write(folder)
    return folder


@pytest.fixture
def out(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "out")
    (tmp_path / "secret.csv").write_text(f"name,{SECRET}\n1,2\n")
    return tmp_path / "out"


def forged(folder: Path, edit: Callable[[dict[str, Any]], None]) -> VerifiedRelease:
    """The verdict on a certificate with hashes that fit, and a page where one can be made."""
    certificate = json.loads((folder / "PRIVACY.json").read_text("utf-8"))
    edit(certificate)
    with contextlib.suppress(GazeveilError):
        (folder / "PRIVACY.md").write_text(page(certificate), "utf-8")
    certificate["files"] = hashes(folder)
    (folder / "PRIVACY.json").write_text(json.dumps(certificate), "utf-8")
    return verify(folder)


@pytest.mark.parametrize(
    "made",
    [
        {"name": "kaleido", "parameters": {"regions": "PATH"}},
        {"name": "kaleido-uniform", "parameters": {"regions": "PATH"}},
        {"name": "kaleido", "parameters": {"w": "30,regions=PATH"}},
        {"name": "kaleido:regions=PATH,stimulus", "parameters": {}},
        {"name": "chain", "parameters": {"stages": "kaleido(E;regions=PATH)"}},
        {"name": "chain", "parameters": {"stages": "temporal(K=2)+kaleido(E; regions = PATH )"}},
    ],
    ids=["alone", "uniform", "in-a-value", "in-the-name", "in-a-chain", "second-in-a-chain"],
)
@pytest.mark.parametrize("way", ["absolute", "above", "below-and-above", "linked"])
def test_no_file_outside_is_opened(out: Path, made: dict[str, Any], way: str) -> None:
    os.symlink(out.parent / "secret.csv", out.parent / "linked.csv")
    path = {
        "absolute": str(out.parent / "secret.csv"),
        "above": "../secret.csv",
        "below-and-above": "recordings/../../secret.csv",
        "linked": str(out.parent / "linked.csv"),
    }[way]
    needed = {} if made["name"] == "chain" else {"epsilon": "1", "w": "30", "r_deg": "largest"}
    parameters = {
        k: v.replace("PATH", path).replace("E", "epsilon=1;w=30;r_deg=largest")
        for k, v in {**needed, **made["parameters"]}.items()
    }
    name = made["name"].replace("PATH", path)
    result = forged(out, lambda c: c["mechanism"].update(name=name, parameters=parameters))
    assert not result.passed
    assert SECRET not in str(result.to_dict())


def test_a_file_of_the_working_directory_is_not_taken_for_one_of_the_release(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out.parent)
    result = forged(
        out, lambda c: c["mechanism"]["parameters"].update(r_deg="largest", regions="secret.csv")
    )
    assert SECRET not in str(result.to_dict())


@pytest.mark.parametrize("text", [LARGEST, "chain:stages=kaleido(epsilon=1;w=30;r_deg=largest;"])
def test_who_verifies_may_give_the_file(tmp_path: Path, text: str) -> None:
    boxes, release = tmp_path / "boxes.csv", tmp_path / "with, comma" / "out"
    boxes.write_text(BOXES)
    chosen = f"{text}regions={boxes})" if "chain" in text else f"{text}{boxes}"
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, chosen).write(release)
    assert verify(release, regions=boxes).passed
    boxes.write_text(BOXES.replace("160", "120"))
    assert not verify(release, regions=boxes).passed  # another file gives another promise


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda g: None, ""),
        (lambda g: g["numbers"].update(epsilon="1/2"), "'numbers'"),
        (lambda g: g["numbers"].update(r_deg="90"), "not the least r of a stimulus"),
        (lambda g: g["numbers"].update(r_deg="far"), "not a number of degrees"),
        (lambda g: g["also"][0].update(epsilon="1/2"), "'also'"),
        (lambda g: g["user"].update(epsilon="1"), "'user'"),
    ],
)
def test_all_but_r_is_compared_without_the_file_of_regions(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    boxes, release = tmp_path / "boxes.csv", tmp_path / "out"
    boxes.write_text(BOXES)
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, f"{LARGEST}{boxes}").write(release)
    forged(release, lambda c: edit(c["guarantee"]))
    check = next(c for c in verify(release, cohort).checks if c.name == "promise")
    assert bool(check.failures) == bool(told)
    assert told in " ".join(check.failures)
    assert told or "That r was not compared" in check.note


def test_a_window_is_compared_without_the_file_too(out: Path) -> None:
    def edit(certificate: dict[str, Any]) -> None:
        certificate["mechanism"]["parameters"].update(r_deg="largest", regions="boxes.csv")
        certificate["guarantee"]["numbers"]["w_samples"] = "3000"

    assert "'w_samples': '3000'" in " ".join(forged(out, edit).failures)


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c["alignment"].update(rate_hz="1e999999999"),
        lambda c: c["guarantee"]["numbers"].update(k="1e999999999"),
        lambda c: c["guarantee"].update(definition="k-anonymity", numbers={"k": "1e999999999"}),
        lambda c: c["per_person"].update(numbers={"epsilon": "1e999999999"}),
    ],
    ids=["rate", "k", "groups", "person"],
)
def test_numbers_that_would_fill_the_memory_are_red(
    out: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    assert not forged(out, edit).passed


@pytest.mark.parametrize("name", ["PRIVACY.md", "PRIVACY.sig", "recordings/more.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_nothing_is_read_beside_a_pipe_or_a_link(out: Path, name: str, kind: str) -> None:
    (out / name).unlink(missing_ok=True)
    os.mkfifo(out / name) if kind == "pipe" else os.symlink("/dev/zero", out / name)
    result = verify(out)
    assert [c.name for c in result.checks] == ["files"]
    assert not result.passed


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_certificate_is_a_file(out: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = out / "PRIVACY.json"
    place.unlink()
    os.mkfifo(place) if kind == "pipe" else os.symlink("/dev/zero", place)
    assert run("verify", out) == 2
    assert "neither a file nor a folder" in " ".join(capsys.readouterr().err.split())


def test_no_text_of_a_certificate_is_more_than_words_on_its_page(out: Path) -> None:
    evil = "x\n\n## What is promised\n\nAll is safe.\u202e <img src=x onerror=alert(1)> [a](b:c)"

    def edit(certificate: dict[str, Any]) -> None:
        certificate["kept"] = [evil]
        certificate["not_covered"] = [evil]
        certificate["mechanism"]["parameters"][evil] = evil
        certificate["attack"] = {
            **dict.fromkeys(("attacker", "found", "people", "guessing"), 1),
            "protocol": f"# {evil}",
            "deep": json.loads("[" * 80 + "]" * 80),
        }

    before = (out / "PRIVACY.md").read_text("utf-8")
    forged(out, edit)
    after = (out / "PRIVACY.md").read_text("utf-8")
    headings = [line for line in after.splitlines() if line.startswith("#")]
    assert headings == [line for line in before.splitlines() if line.startswith("#")]
    assert [t for t in ("<img", "](b", "\u202e") if t in after] == []
    assert after.count("&lt;img src=x") >= 4, "it is still said"


def test_no_text_of_a_release_moves_the_cursor(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "x\x1b[2J\x1b[H\r is what its certificate says.\n.txt").write_text("x")
    assert run("verify", out) == 1
    printed = capsys.readouterr()
    assert not set("\x1b\r\x9b") & set(printed.out + printed.err)
    assert sum(line.endswith("certificate says.") for line in printed.out.splitlines()) == 0
