"""A test that failed once is asked again; one that is broken ends the run all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repeat_failed import MOST, TIMES, failed, passes, verdict


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
