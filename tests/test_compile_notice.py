"""A command that compiles for long says so once, whichever process does; Python code does not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from gazeveil import compile_notice
from gazeveil.workers import OwnProcesses
from tests.support.places import ROOT

SOURCE = """
from gazeveil.compiled import compiled

@compiled
def first(x):
    return x + 1.5

@compiled
def second(x):
    return first(x) * x
"""


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose functions no run has compiled; notices come at once."""
    name = f"fresh_{os.urandom(6).hex()}"
    (tmp_path / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(compile_notice, "AFTER_S", 0.0)
    return import_module(name)


def call(name: str, function: str) -> float:
    """What a worker process does."""
    return float(getattr(import_module(name), function)(2.0))


def again(module: ModuleType) -> ModuleType:
    """The module as the next run of a program imports it."""
    del sys.modules[module.__name__]
    return import_module(module.__name__)


def test_it_is_said_once_and_only_by_the_run_that_compiles(
    fresh: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    with compile_notice.compiling_is_said():
        assert fresh.first(2.0) == 3.5
        assert fresh.second(2.0) == 7.0
    assert capfd.readouterr() == ("", compile_notice.SENTENCE + "\n")
    later = again(fresh)
    with compile_notice.compiling_is_said():
        assert later.second(2.0) == 7.0
    assert capfd.readouterr() == ("", "")


def test_nothing_is_said_to_a_program_nor_before_the_time(
    fresh: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fresh.first(2.0) == 3.5
    monkeypatch.setattr(compile_notice, "AFTER_S", 600.0)
    with compile_notice.compiling_is_said():
        assert fresh.second(2.0) == 7.0
    assert capfd.readouterr() == ("", "")


def test_of_several_worker_processes_one_says_it(
    fresh: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = [lambda f=f: (fresh.__name__, f) for f in ("first", "second")]
    with compile_notice.compiling_is_said():
        with OwnProcesses(2) as pool:
            found = {r.value for r in pool.do(call, tasks) if r is not None and hasattr(r, "value")}
        assert found == {3.5, 7.0}
        # The process that started them knows that it is said.
        assert again(fresh).first(2) == 3.5
    assert capfd.readouterr().err == compile_notice.SENTENCE + "\n"


@pytest.mark.heavy
def test_the_command_says_it_where_nothing_is_compiled_yet(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    command = [sys.executable, "-m", "gazeveil", "simulate"]
    said = []
    for run in ("first", "second"):
        options = [str(tmp_path / run), "--people", "1", "--stimuli", "1", "--seconds", "2"]
        done = subprocess.run(
            command + options, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        said.append(done.stderr)
    assert said == [compile_notice.SENTENCE + "\n", ""]
