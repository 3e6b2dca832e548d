"""What the run expects is there, and the check notices when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXIT_UNWANTED_SKIPS
from tests.support.expected import REASONS, expected, is_here, marks_of, missed
from tests.support.places import ROOT


def test_what_the_run_expects_is_here() -> None:
    missing = [word for word in expected() if not is_here(word)]
    assert not missing, f"GAZEVEIL_EXPECTS names {missing}, and they are not on this machine."


def test_an_unknown_expectation_is_refused() -> None:
    assert expected({"GAZEVEIL_EXPECTS": "data torch"}) == ("data", "torch")
    with pytest.raises(ValueError, match="not 'tortch'"):
        expected({"GAZEVEIL_EXPECTS": "tortch"})


def test_a_skip_for_another_reason_is_fine() -> None:
    everything = tuple(REASONS)
    assert missed("the recordings 'x' are not under GAZEVEIL_DATA (/x)", everything) == "data"
    assert missed("no Chromium is installed: the page ...", everything) == "chromium"
    assert missed("needs another user's folder", everything) is None
    assert missed("no Chromium is installed", ("data",)) is None


def test_missing_data_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    assert not is_here("data")
    (tmp_path / "gazecom").mkdir()
    assert is_here("data")


@pytest.mark.parametrize("word", ["chromium", "postgres", "torch", "dask"])
def test_a_missing_program_is_noticed(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("tests.support.expected.programs", lambda: None)
    monkeypatch.setattr("tests.support.expected.find_spec", lambda name: None)
    assert not is_here(word)


def test_marks_follow_fixtures_and_functions_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(
        "def folder():\n    return real('gazecom')\n"
        "def cohort():\n    return read(folder())\n"
        "def test_a(cohort): ...\n"
        "def test_b(postgres): ...\n"
        "def test_c(): ...\n"
    )
    assert marks_of(path, "test_a") == {"data"}
    assert marks_of(path, "test_b") == {"postgres"}
    assert marks_of(path, "test_c") == set()


@pytest.mark.parametrize(
    ("expects", "code"), [("", 0), ("torch", 0), ("data", EXIT_UNWANTED_SKIPS)]
)
def test_a_run_fails_for_a_skip_that_was_not_expected(
    tmp_path: Path, expects: str, code: int
) -> None:
    test = tmp_path / "test_needs_data.py"
    test.write_text("from tests.support.recordings import real\ndef test_it(): real('nowhere')\n")
    plugins = ("-p", "tests.conftest", "-p", "no:schemathesis")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "-c", os.devnull, str(test)],
        cwd=tmp_path,
        env=os.environ
        | {"GAZEVEIL_EXPECTS": expects, "GAZEVEIL_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert ("SKIPPED for want of data" in run.stdout) == (code != 0)
