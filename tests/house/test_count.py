"""What the run expects is there, and the check notices when it is not.

A test that failed once is asked again; one that is broken ends the run all the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXIT_UNWANTED_SKIPS
from tests.support.expected import REASONS, expected, is_here, marks_of, missed
from tests.support.places import ROOT
from tests.support.repeat_failed import MOST, TIMES, failed, passes, verdict


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


def test_a_wavering_test_is_named_and_forgiven() -> None:
    asked: list[str] = []

    def ask(test: str) -> bool:
        asked.append(test)
        return True

    good, why = verdict(["a.py::one"], ask)
    assert good
    assert asked == ["a.py::one"] * TIMES
    assert "a.py::one" in why
    assert "wavers" in why


@pytest.mark.parametrize("time_of_failure", range(TIMES))
def test_one_failure_alone_ends_the_run(time_of_failure: int) -> None:
    answers = iter([True] * time_of_failure + [False] * TIMES)
    good, why = verdict(["a.py::one"], lambda _: next(answers))
    assert not good
    assert "a.py::one" in why


def test_many_failures_and_a_run_that_broke_off_are_not_asked_again() -> None:
    def never(test: str) -> bool:
        raise AssertionError(test)

    assert not verdict([f"a.py::t{i}" for i in range(MOST + 1)], never)[0]
    assert not verdict([], never)[0]


def test_pytest_says_which_tests_failed_and_a_broken_one_fails_alone(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("def test_good(): pass\ndef test_bad(): assert 0\n", encoding="utf-8")
    run = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    ended = subprocess.run([*run, str(file)], cwd=tmp_path, check=False, capture_output=True)
    assert ended.returncode == 1
    names = failed(tmp_path / ".pytest_cache/v/cache/lastfailed")
    assert names == ["test_two.py::test_bad"]
    assert json.loads((tmp_path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert passes(f"{file}::test_good")
    assert not passes(f"{file}::test_bad")
    assert failed(tmp_path / "nothing") == []
