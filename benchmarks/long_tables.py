"""`inspect` and `protect` of many recordings, against polars' own read and write of the same bytes.

    python benchmarks/long_tables.py [--megabytes 60 600] [--kinds csv tobii bids] [--json FILE]

`csv` is one table of 1,000 recordings (100 at 60 MB and below): participant, stimulus, time, gaze
and validity. `tobii` is the same gaze as one export of Tobii Pro Lab, `bids` as a BIDS folder of a
tenth of the size. Each is protected with Gaussian noise, in one process, and written as CSV or as
BIDS; polars reads and writes all files of it. Both run as processes of their own, by turns;
processor time counts the start of Python too, because a user pays for it. `inspect` may take three
times the processor time of polars' read, `protect` six times that of its read and write, and both
1 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import gazeveil
from lines import Lines

MOST_READS, MOST_COPIES, MOST_MB = 3.0, 6.0, 1000.0
PEOPLE, TURNS = 50, 3
SCREEN = gazeveil.Screen(1920, 1080, 531, 299, 650)
#: Bytes of a row, and the share of the size that is asked for.
KINDS = {"csv": (33.0, 1.0), "tobii": (68.0, 1.0), "bids": (10.0, 0.1)}

_READ = """
import gzip, polars, sys
from pathlib import Path
place, out = Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None
for path in [place] if place.is_file() else sorted(place.rglob("*physio.tsv.gz")):
    mark = "\\t" if ".tsv" in path.name else ","
    frame = polars.read_csv(path, separator=mark, has_header=place.is_file())
    if out is not None and place.is_file():
        frame.write_csv(out, separator=mark)
    elif out is not None:
        with gzip.open(out, "wb", compresslevel=6) as file:
            frame.write_csv(file, separator=mark, include_header=False)
"""
_COMMAND = "from gazeveil.cli.main import main; main()"


def recordings(megabytes: float, kind: str) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Person, stimulus, and time in ms, place in pixels and validity of each recording."""
    per_row, share = KINDS[kind]
    count = 1000 if megabytes > 60 else 100
    rows = int(megabytes * share * 1e6 / per_row / count)
    rng = np.random.default_rng(0)
    for number in range(count):
        gaze = np.array([960, 540]) + rng.normal(0, 1, (rows, 2)).cumsum(axis=0)
        gaze = np.round(gaze.clip(0, [1919, 1079]), 3)
        columns = {
            "t_ms": np.arange(rows) * 4,
            "x_px": gaze[:, 0],
            "y_px": gaze[:, 1],
            # One blink of 150 ms every 7.5 s.
            "valid": (np.arange(rows) % 1875 >= 38).astype(np.int8),
        }
        frame = pl.DataFrame(columns)
        yield f"p{number % PEOPLE:02d}", f"s{number // PEOPLE:03d}", frame


def make(path: Path, megabytes: float, kind: str = "csv") -> Path:
    """Write recordings of about that size; returns the file or the folder."""
    if kind == "bids":
        from gazeveil.io.bids.write import write

        made = (_recording(*parts) for parts in recordings(megabytes, kind))
        return write(gazeveil.Cohort(list(made)), path)
    path = path.with_suffix(".tsv" if kind == "tobii" else ".csv")
    with path.open("wb") as file:
        for number, (person, stimulus, frame) in enumerate(recordings(megabytes, kind)):
            table = frame.with_columns(participant=pl.lit(person), stimulus=pl.lit(stimulus))
            if kind == "tobii":
                table = _as_tobii(table)
            else:
                table = table.select("participant", "stimulus", *frame.columns)
            mark = "\t" if kind == "tobii" else ","
            table.write_csv(file, separator=mark, include_header=number == 0)
    return path


def _recording(person: str, stimulus: str, frame: pl.DataFrame) -> gazeveil.Recording:
    x_deg, y_deg = SCREEN.from_px(frame["x_px"].to_numpy(), frame["y_px"].to_numpy())
    t_ns = frame["t_ms"].to_numpy() * 1_000_000
    valid = frame["valid"].to_numpy() > 0
    return gazeveil.Recording(
        person, stimulus, t_ns, x_deg, y_deg, valid, space=SCREEN, rate_hz=250.0
    )


def _as_tobii(table: pl.DataFrame) -> pl.DataFrame:
    place = {f"Gaze point {a.upper()}": pl.col(f"{a}_px") for a in "xy"}
    words = pl.when(pl.col("valid") > 0).then(pl.lit("Valid")).otherwise(pl.lit("Invalid"))
    return table.select(
        pl.col("t_ms").alias("Recording timestamp [ms]"),
        pl.col("participant").alias("Participant name"),
        pl.col("stimulus").alias("Presented Stimulus name"),
        pl.lit(1920).alias("Recording resolution width"),
        pl.lit(1080).alias("Recording resolution height"),
        *(value.alias(name) for name, value in place.items()),
        words.alias("Validity left"),
        words.alias("Validity right"),
    )


def cost(home: Path, *arguments: str) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of a process."""
    # Bytecode is kept, as Python does where the environment does not say otherwise.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment | {"GAZEVEIL_HOME": str(home)},
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments} ended with status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(path: Path, kind: str, folder: Path) -> dict[str, tuple[float, float]]:
    """The fewest processor seconds of each command, and the most memory."""
    options = ["--screen", "1920x1080px,531x299mm,650mm"] if kind == "csv" else []
    options += ["--set", "y_axis=down"] if kind == "csv" else []
    out = folder / "out"
    kept = "bids" if kind == "bids" else "csv"
    written = ("--mechanism", "gaussian:sigma_deg=1", "--to", kept, "--workers", "1")
    commands: dict[str, tuple[str, ...]] = {
        "read": (_READ, str(path)),
        "copy": (_READ, str(path), str(folder / "copy")),
        "inspect": (_COMMAND, "inspect", str(path), *options, "--rows", "0"),
        "protect": (_COMMAND, "protect", str(path), str(out), *options, *written),
    }
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(TURNS):
        for name, command in commands.items():
            shutil.rmtree(out, ignore_errors=True)
            # Every turn has a ledger of its own: what was released before would count.
            costs[name].append(cost(folder / f"home{turn}", *command))
    return {n: (min(s for s, _ in c), max(mb for _, mb in c)) for n, c in costs.items()}


def main() -> None:
    """Measure each kind and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[60.0, 600.0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lines = Lines(given.json)
    for kind in given.kinds:
        for megabytes in given.megabytes:
            with tempfile.TemporaryDirectory() as name:
                path = make(Path(name) / "table", megabytes, kind)
                found = measure(path, kind, Path(name))
                for verb, base, most in (
                    ("inspect", "read", MOST_READS),
                    ("protect", "copy", MOST_COPIES),
                ):
                    ratio, peak_mb = found[verb][0] / found[base][0], found[verb][1]
                    lines.keep(
                        {
                            "figure": f"{verb} over polars' {base}, {kind}, {megabytes:.0f} MB",
                            "value": round(ratio, 2),
                            "unit": "times",
                            "ceiling": most,
                            "met": ratio <= most and peak_mb <= MOST_MB,
                            "polars_s": round(found[base][0], 2),
                            "memory_mb": round(peak_mb),
                        }
                    )
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
