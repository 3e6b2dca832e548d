"""Benchmarks start as `make bench` starts them: with nothing but their own folder on the path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.places import ROOT

IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def names() -> list[str]:
    listed = re.search(r"^BENCHES := (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert listed is not None
    return listed[1].split()


def test_every_benchmark_of_make_bench_is_there_and_can_be_imported(tmp_path: Path) -> None:
    assert len(names()) > 20
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(ROOT / "benchmarks"), *names()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
