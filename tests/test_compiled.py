"""Machine code that was compiled in one folder runs in another, without compiling.

A command that compiles for long says so once, whichever process does; Python code does not.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gazeveil import compile_notice, compiled
from gazeveil.workers import OwnProcesses
from tests.support.places import ROOT

PROCESSOR = "x86-64" if platform.machine() == "x86_64" else "generic"
MODULE = """
from gazeveil.compiled import compiled, inlined

@inlined
def once(x):
    return x + 1

@compiled
def twice(x):
    return once(once(x))
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that was compiled elsewhere for a plain processor, as a wheel brings it."""
    built, package = tmp_path / "built", tmp_path / "package"
    for folder in (built, package):
        folder.mkdir()
        (folder / "brought_kernels.py").write_text(MODULE, "utf-8")
    settings = {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": ""}
    code = "from brought_kernels import twice; assert twice(1.5) == 3.5"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=built, env=os.environ | settings)
    (package / "kernels").mkdir()
    (built / "__pycache__").rename(package / "kernels" / PROCESSOR)
    monkeypatch.setattr(compiled, "KERNELS", package / "kernels")
    monkeypatch.syspath_prepend(package)
    compiled.processor.cache_clear()
    yield package
    compiled.processor.cache_clear()
    sys.modules.pop("brought_kernels", None)


def counts(kernel: Any) -> tuple[int, int]:
    """How often machine code was found, and how often it was compiled."""
    return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())


def test_what_a_wheel_brings_is_not_compiled_again(installed: Path) -> None:
    twice = importlib.import_module("brought_kernels").twice
    assert compiled.processor() == PROCESSOR
    assert compiled.is_kept(twice)
    assert twice(1.5) == 3.5
    assert counts(twice) == (1, 0)


def test_other_types_are_compiled_as_before(installed: Path) -> None:
    twice = importlib.import_module("brought_kernels").twice
    assert twice(1) == 3
    assert counts(twice) == (0, 1)


def test_machine_code_of_another_source_is_left_alone(installed: Path) -> None:
    (installed / "brought_kernels.py").write_text(MODULE + "# another\n", "utf-8")
    twice = importlib.import_module("brought_kernels").twice
    assert twice(1.5) == 3.5
    assert counts(twice) == (0, 1)


def test_machine_code_that_names_a_module_which_has_moved_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "before.py").write_text(
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    x: float\n    y: float\n"
    )
    (tmp_path / "pairs.py").write_text("from before import Pair\n")
    (tmp_path / "kernel.py").write_text(
        "from gazeveil.compiled import compiled\n@compiled\ndef total(pair):\n"
        "    return pair.x + pair.y\n"
    )
    code = "from kernel import total; from pairs import Pair; assert total(Pair(1.0, 2.0)) == 3.0"
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run = partial(subprocess.run, [sys.executable, "-c", code], cwd=tmp_path, env=settings)
    run(check=True)
    (tmp_path / "before.py").rename(tmp_path / "after.py")
    (tmp_path / "pairs.py").write_text("from after import Pair\n")
    run(check=True)


@pytest.mark.parametrize(("lacking", "best"), [((), "x86-64-v3"), (("fma",), "x86-64")])
def test_the_best_machine_code_that_a_processor_runs_is_taken(
    lacking: tuple[str, ...], best: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x86-64-v3", "x86-64"):
        (tmp_path / name).mkdir()
    has = {feature: feature not in lacking for feature in compiled.PROCESSORS["x86-64-v3"]}
    monkeypatch.setattr(compiled, "KERNELS", tmp_path)
    monkeypatch.setattr(compiled, "get_host_cpu_features", lambda: has)
    compiled.processor.cache_clear()
    assert compiled.processor() == best
    compiled.processor.cache_clear()


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
