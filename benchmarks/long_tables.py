"""`inspect` of one CSV with many recordings, against polars' own read of the same bytes.

    python benchmarks/long_tables.py [--megabytes 60 600] [--json FILE]

Each table has 1,000 recordings (100 at 60 MB and below): participant, stimulus, time, gaze and
validity. Both run as processes of their own, by turns; processor time counts the start of Python
too, because a user pays for it. `inspect` may take three times the processor time of polars' read,
and 1 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from lines import Lines

MOST_TIMES, MOST_MB = 3.0, 1000.0
PEOPLE, ROWS, TURNS = 50, 20_000, 3
BYTES_PER_ROW = 33.0

_READ = "import polars, sys; polars.read_csv(sys.argv[1])"
_INSPECT = "from gazeveil.cli.main import main; main()"


def make(path: Path, megabytes: float) -> None:
    """Write a table of about that size."""
    recordings = 1000 if megabytes > 60 else 100
    rows = int(megabytes * 1e6 / BYTES_PER_ROW / recordings)
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(b"participant,stimulus,t_ms,x_px,y_px,valid\n")
        for number in range(recordings):
            gaze = np.array([960, 540]) + rng.normal(0, 1, (rows, 2)).cumsum(axis=0)
            gaze = np.round(gaze.clip(0, [1919, 1079]), 3)
            frame = pl.DataFrame(
                {
                    "participant": [f"p{number % PEOPLE:02d}"] * rows,
                    "stimulus": [f"s{number // PEOPLE:03d}"] * rows,
                    "t_ms": np.arange(rows) * 4,
                    "x_px": gaze[:, 0],
                    "y_px": gaze[:, 1],
                    "valid": (rng.random(rows) > 0.02).astype(np.int8),
                }
            )
            frame.write_csv(file, include_header=False)


def cost(*arguments: str) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of a process."""
    # Bytecode is kept, as Python does where the environment does not say otherwise.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments} ended with status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[60.0, 600.0])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lines = Lines(given.json)
    screen = ("--screen", "1920x1080px,531x299mm,650mm", "--set", "y_axis=down", "--rows", "0")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in given.megabytes:
            path = Path(folder) / "table.csv"
            make(path, megabytes)
            size = path.stat().st_size / 1e6
            read, inspect = [], []
            for _ in range(TURNS):
                read.append(cost(_READ, str(path)))
                inspect.append(cost(_INSPECT, "inspect", str(path), *screen))
            seconds = [min(s for s, _ in turns) for turns in (read, inspect)]
            memory = max(mb for _, mb in inspect)
            for figure, value, unit, most in (
                ("inspect over polars' read", seconds[1] / seconds[0], "times", MOST_TIMES),
                ("memory of inspect", memory, "MB", MOST_MB),
            ):
                lines.keep(
                    {
                        "figure": f"{figure}, {size:.0f} MB",
                        "value": round(value, 2),
                        "unit": unit,
                        "ceiling": most,
                        "met": value <= most,
                        "polars_s": round(seconds[0], 2),
                    }
                )
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
