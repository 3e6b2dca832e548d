"""`gazeveil` in this process, with what it printed: to start a process takes a second each time.

What a process of its own is for (signals, imports, entry points, exit codes of the system) is
tested with one.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from gazeveil.cli.main import main


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def run(*arguments: object) -> int:
    """The exit code of a command, whose words pytest captures."""
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    return int(stopped.value.code or 0)


def heard(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The exit code of a command and what it printed, for tests that capture more than that."""
    code = run(*arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def gazeveil(*arguments: object, folder: Path | None = None) -> Said:
    """Run a command, in a folder if one is named. A traceback is an error of the test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder or Path.cwd()),
        warnings.catch_warnings(),  # the command line says warnings in its own way
    ):
        code = run(*arguments)
    return Said(code, out.getvalue(), err.getvalue())
