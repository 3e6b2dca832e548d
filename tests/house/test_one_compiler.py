"""A kernel is compiled by one of several processes."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.one_compiler import alone, compile_in_one_process, lock_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

KERNEL = """
import numba

@numba.njit(cache=True)
def twice(x):
    return 2 * x
"""


@pytest.fixture
def twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    compile_in_one_process()
    (tmp_path / "twice_kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("twice_kernel").twice


def begun(kernel: Any) -> int:
    """A child that calls the kernel and ends with how often it compiled it."""
    child = os.fork()
    if child == 0:
        try:
            kernel(1.0)
            os._exit(sum(kernel.stats.cache_misses.values()))
        finally:
            os._exit(99)
    return child


def ended_with(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_waits_for_one_that_compiles_and_loads_what_it_wrote(twice: Any) -> None:
    path = lock_of(twice)
    assert path is not None
    with alone(path):
        child = begun(twice)
        time.sleep(0.3)  # a child that does not wait compiles now
        twice(1.0)
    assert sum(twice.stats.cache_misses.values()) == 1
    assert ended_with(child) == 0


def test_whoever_is_stopped_while_it_compiles_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with alone(tmp_path / "lock"):
        child = os.fork()
        if child == 0:
            with alone(tmp_path / "lock", wait_s=0.05):
                os._exit(0)
        assert ended_with(child) == 0
