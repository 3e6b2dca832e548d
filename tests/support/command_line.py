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


def gazeveil(*arguments: object, folder: Path | None = None) -> Said:
    """Run a command, in a folder if one is named. A traceback is an error of the test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder or Path.cwd()),
        warnings.catch_warnings(),  # the command line says warnings in its own way
        pytest.raises(SystemExit) as stopped,
    ):
        main([str(a) for a in arguments])
    return Said(int(stopped.value.code or 0), out.getvalue(), err.getvalue())
