"""Machine code that was compiled in one folder runs in another, without compiling.

A command that compiles for long says so once, whichever process does; Python code does not.

Tasks in worker processes: all are done, and the one that ends its process is found out.
"""

from __future__ import annotations

import importlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gazeveil import compile_notice, compiled
from gazeveil.errors import DataError
from gazeveil.workers import (
    ATTEMPTS,
    LostTask,
    OwnProcesses,
    TaskResult,
    ThisProcess,
    Workers,
    return_memory,
    workers_for,
)
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


def test_a_kernel_is_made_anew_where_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    head = "from gazeveil.compiled import compiled\nfrom constants import STEP\n"
    called = "from called import step\n@compiled\ndef twice(x):\n    return step(step(x)) + STEP\n"
    (tmp_path / "caller.py").write_text(head + called)
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for step, constant in ((1, "0"), (2, "0"), (2, "5"), (2, "np.uint64(5)"), (2, "np.uint64(6)")):
        (tmp_path / "constants.py").write_text(f"import numpy as np\nSTEP = {constant}\n")
        text = f"{head}@compiled\ndef step(x):\n    return x + {step}.0\n"
        (tmp_path / "called.py").write_text(text)
        code = f"from caller import twice, STEP; assert twice(1.0) == {1 + 2 * step} + STEP"
        subprocess.run([sys.executable, "-B", "-c", code], check=True, cwd=tmp_path, env=settings)


def test_a_kernel_is_made_anew_where_fields_of_its_argument_changed_places(tmp_path: Path) -> None:
    head = "from __future__ import annotations\nfrom gazeveil.compiled import compiled\n"
    kernel = "from pairs import Pair\n@compiled\ndef first(pair: Pair):\n    return pair.x\n"
    (tmp_path / "kernel.py").write_text(head + kernel)
    code = "from kernel import first, Pair; assert first(Pair(x=1.0, y=2.0)) == 1.0"
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for fields in ("x: float\n    y: float\n", "y: float\n    x: float\n"):
        pair = f"from typing import NamedTuple\nclass Pair(NamedTuple):\n    {fields}"
        (tmp_path / "pairs.py").write_text(pair)
        subprocess.run([sys.executable, "-B", "-c", code], check=True, cwd=tmp_path, env=settings)


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


def square(value: int, log: Path) -> int:
    """The square; a process that is asked for that of 3 is killed, as by want of memory."""
    with log.open("a") as file:
        file.write(f"{value}\n")
    if value == 3:
        time.sleep(0.2)  # so that others are in flight
        os.kill(os.getpid(), signal.SIGKILL)
    if value == 99:
        raise ArithmeticError("too large")
    return value * value


def arguments(values: list[int], log: Path):
    return [partial(lambda *given: given, value, log) for value in values]


@pytest.mark.parametrize("ahead", [0, 1])
def test_the_task_that_kills_its_process_is_found_and_all_others_are_done(ahead, tmp_path):
    values, log = [1, 2, 3, 4, 5, 6], tmp_path / "log"
    with OwnProcesses(2, ahead) as workers:
        got = list(workers.do(square, arguments(values, log)))
    lost = [answer for answer in got if isinstance(answer, LostTask)]
    done = {a.number: a.value for a in got if isinstance(a, TaskResult)}
    assert [answer.number for answer in lost] == [2]
    assert "ended without an answer, 3 times: killed, or out of memory" in lost[0].reason
    assert done == {i: v * v for i, v in enumerate(values) if v != 3}
    assert log.read_text().split().count("3") == ATTEMPTS


def test_a_worker_goes_on_with_what_it_has_worked_on(tmp_path: Path) -> None:
    tasks = arguments([1, 2, 4, 5, 6], tmp_path / "log")
    got = list(ThisProcess().do(square, tasks, material=["a", "b", "a", "c", "b"]))
    assert [r.number for r in got if isinstance(r, TaskResult)] == [0, 2, 1, 4, 3]


def test_a_look_comes_before_every_result_and_while_nothing_is_ready(tmp_path):
    with OwnProcesses(1) as workers:
        got = list(workers.do(square, arguments([1, 2], tmp_path / "log"), look_s=0.05))
    assert [a.value for a in got if a is not None] == [1, 4]
    assert got[0] is None
    assert got.count(None) > 2  # a new process takes longer than two looks


def test_an_error_of_a_task_is_raised_and_the_processes_are_ended(tmp_path):
    workers = OwnProcesses(1)
    with pytest.raises(ArithmeticError, match="too large"):
        list(workers.do(square, arguments([1, 99, 2], tmp_path / "log")))
    assert workers._pool is not None
    processes = list(workers._pool._processes.values())
    workers.stop()
    assert processes
    assert not any(p.is_alive() for p in processes)


class Failing(Executor):
    """Loses the worker of every task but the last attempts."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error = times, error

    def submit(self, function, /, *given):
        future = Future()
        self.times -= 1
        if self.times >= 0:
            future.set_exception(self.error)
        else:
            future.set_result(function(*given))
        return future


@pytest.mark.parametrize(("times", "done"), [(2, [9]), (3, [])])
def test_a_task_whose_worker_is_lost_elsewhere_is_given_out_again(times: int, done: list) -> None:
    got = list(Workers(Failing(times, ValueError("gone."))).do(pow, [lambda: (3, 2)]))
    assert [a.value for a in got if isinstance(a, TaskResult)] == done
    sentence = "The worker that computed it was lost 3 times (gone)."
    assert [a.reason for a in got if isinstance(a, LostTask)] == [sentence] * (not done)


@pytest.mark.parametrize("error", [DataError("Its own."), OSError(28, "No space left")])
def test_an_error_of_a_task_elsewhere_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        list(Workers(Failing(1, error)).do(pow, [lambda: (3, 2)]))


def test_workers_are_no_more_than_tasks_and_one_is_this_process() -> None:
    pool = ThreadPoolExecutor(1)
    assert workers_for("a study", pool, 5).executor is pool
    assert isinstance(workers_for("a study", 8, 1), ThisProcess)
    assert isinstance(workers_for("a study", 1, 5), ThisProcess)
    many = workers_for("a study", 8, 5)
    assert isinstance(many, OwnProcesses)
    assert many.count == 5


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="asks glibc for it"
)
def test_freed_memory_between_blocks_in_use_goes_back_to_the_system():
    # Blocks of 40 kB come from the heap; every fiftieth stays in use, so the heap cannot shrink.
    blocks = [bytearray(b"x") * 40_000 for _ in range(4_000)]
    kept = blocks[::50]
    del blocks
    before = resident_mib()
    return_memory()
    assert len(kept) == 80
    assert before - resident_mib() > 50


def test_a_build_that_would_lack_kernels_fails_and_names_what_failed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "packaging")
    kernels = import_module("kernels")
    monkeypatch.setattr(kernels, "work", lambda: [("good", list), ("bad", lambda: 1 / 0)])
    monkeypatch.setattr(kernels, "_prepare", list)
    with pytest.raises(SystemExit, match=r"bad: ZeroDivisionError: division by zero$"):
        kernels.main("")
    kernels.main("good")
    assert "2/2" in capfd.readouterr().err
