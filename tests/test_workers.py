"""Tasks in worker processes: all are done, and the one that ends its process is found out.

Tests with a limit of time get more of it, and a program that is wrong gets none.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

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
from tests.support.more_time import with_more_time


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


def test_what_fails_with_a_short_limit_is_tried_with_a_longer_one_and_no_longer() -> None:
    tried: list[float] = []

    def work(limit_s: float) -> float:
        tried.append(limit_s)
        assert limit_s > 1, "cut"
        return limit_s

    assert with_more_time(work, 0.5, 5, 50) == 5
    assert tried == [0.5, 5]


def test_what_fails_with_every_limit_fails() -> None:
    def work(limit_s: float) -> None:
        raise OSError(f"cut after {limit_s} s")

    with pytest.raises(OSError, match="cut after 50 s"):
        with_more_time(work, 0.5, 5, 50)
