"""Inspecting a cohort never holds more than a piece of it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gazeveil.gaze.recording import Recording
from gazeveil.io.parquet import write_recording

LIMIT_BYTES = 1_000_000_000

# VmHWM is the peak of this program alone; ru_maxrss would start at the size of the process that
# launched it.
MEASURE = """
import re, sys
from pathlib import Path
from gazeveil.cli.main import main
try:
    main(["inspect", sys.argv[1], "--rows", "1"])
except SystemExit as stopped:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print("peak", int(peak) * 1024, "code", stopped.code)
"""


def folder_of(path: Path, files: int, samples: int) -> Path:
    rng = np.random.default_rng(0)
    x = 180 + np.cumsum(rng.normal(0, 0.01, samples)) % 90
    (path / "people").mkdir(parents=True)
    for i in range(files):
        write_recording(
            Recording(
                f"p{i}",
                "s",
                np.arange(samples) * 1_000_000,
                x,
                np.full(samples, 90.0),
                rate_hz=1000.0,
            ),
            path / "people" / f"{i:03d}.parquet",
        )
    return path / "people"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("files", "samples"),
    [
        (3, 1_500_000),
        pytest.param(100, 1_000_000, marks=pytest.mark.heavy),
        pytest.param(1, 100_000_000, marks=pytest.mark.heavy),
    ],
)
def test_a_hundred_million_samples_are_inspected_in_less_than_a_gigabyte(
    tmp_path: Path, files: int, samples: int
) -> None:
    command = [sys.executable, "-c", MEASURE, str(folder_of(tmp_path, files, samples))]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak, code = (int(w) for w in out.split("peak")[1].split("code"))
    assert code == 0
    assert f"{files * samples:,}" in out
    assert peak < LIMIT_BYTES, f"{peak / 1e6:.0f} MB"
