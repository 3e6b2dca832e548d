"""The smoke of the networks: each beats its floor in well under a minute of processor time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytest.importorskip("torch", reason="the extra 'deep' is not installed")


@pytest.mark.heavy
def test_each_network_beats_its_floor_within_a_minute_of_processor_time(tmp_path: Path) -> None:
    figures = tmp_path / "figures.jsonl"
    command = [sys.executable, "networks.py", "smoke", "--json", str(figures)]
    subprocess.run(command, cwd=ROOT / "benchmarks", check=True, timeout=600)
    rows = [json.loads(line) for line in figures.read_text().splitlines()]
    assert [row["figure"] for row in rows] == ["smoke dgaze", "smoke ehtask"]
    assert all(row["met"] and row["cpu_s"] < 60 for row in rows), rows
