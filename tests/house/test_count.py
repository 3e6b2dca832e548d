"""What the run expects is there, and the check notices when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXIT_UNWANTED_SKIPS
from tests.support.expected import expected, is_here
from tests.support.places import ROOT


def test_what_the_run_expects_is_here() -> None:
    missing = [word for word in expected() if not is_here(word)]
    assert not missing, f"GAZEVEIL_EXPECTS names {missing}, and they are not on this machine."


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
