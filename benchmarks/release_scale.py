"""Releases of 1, 10 and 100 million samples: time, processor time and memory, beside polars' own
reading and writing of the same files; one JSON line per figure.

    python benchmarks/release_scale.py [--json FILE] [--millions 10 100] [--page FILE]

The input is simulated: ten recordings of 100,000 samples (250 Hz, losses included), of which larger
cohorts have copies that begin elsewhere. All of it lies in a temporary folder and is removed.
`--folder` names a disk with 10 GB of room for 100 million samples. Memory is the largest sum of the
resident memory of all processes, looked at 20 times a second. Every run is a process of its own,
draws from the operating system, and has as many workers as there are cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import gazeveil
from gazeveil.gaze.recording import Recording
from gazeveil.io.parquet import index_row, write_index, write_recording
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.protecting import protected
from gazeveil.privacy.registry import mechanism
from gazeveil.release.run import run
from lines import Lines, markdown, put_into

MECHANISMS = ("gaussian:sigma_deg=2", "kaleido:epsilon=1,w=50,r_deg=2", "k-same-synth:k=4")
STIMULI = 10
SAMPLES = 100_000
RATE_HZ = 250.0
MOST_MIB = 1_500e6 / 2**20


def write_input(folder: Path, millions: int) -> None:
    """Recordings of so many million samples: people times ten clips, or five people with two."""
    base = list(gazeveil.simulate(10, 1, SAMPLES / RATE_HZ, RATE_HZ, seed=1))
    count = millions * 1_000_000 // SAMPLES
    clips = STIMULI if count >= 50 else 2
    (folder / "recordings").mkdir(parents=True)
    rows = []
    for number in range(count):
        old = base[number % len(base)]
        start = (7919 * (number // len(base))) % SAMPLES
        x, y = np.roll(old.x_deg, -start), np.roll(old.y_deg, -start)
        valid = np.roll(old.valid, -start)
        made = Recording(
            f"p{number // clips:04d}",
            f"clip{number % clips}",
            old.t_ns,
            x,
            y,
            valid,
            space=old.space,
            rate_hz=old.rate_hz,
        )
        file = f"recordings/{number + 1:06d}.parquet"
        write_recording(made, folder / file)
        rows.append(index_row(made, file))
    write_index(folder, rows, {})


def release(source: Path, out: Path, text: str) -> None:
    """Protect and write, as `gazeveil protect` and `publish` do."""
    cohort = gazeveil.read(source)
    run(protected(cohort, mechanism(text), PublicationChoices()), out, raw=cohort)


def copy(source: Path, out: Path) -> None:
    """What polars needs to read all files and write them again, compressed as ours are."""
    out.mkdir()
    for file in sorted((source / "recordings").iterdir()):
        pl.read_parquet(file).write_parquet(
            out / file.name, compression="zstd", compression_level=1
        )


def memory_of(pid: int) -> int:
    """Bytes of resident memory of a process and its children, and theirs."""
    total = 0
    try:
        with open(f"/proc/{pid}/statm") as file:
            total = int(file.read().split()[1]) * resource.getpagesize()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                total += sum(memory_of(int(child)) for child in file.read().split())
    except (OSError, ValueError):
        pass  # it has ended
    return total


def measured(work: str, source: Path, out: Path) -> dict[str, float]:
    """Wall seconds, processor seconds and most MiB of one run in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = os.getloadavg()[0]
    begin, most = time.perf_counter(), 0
    process = subprocess.Popen(
        [sys.executable, __file__, "--work", work, "--source", str(source), "--out", str(out)]
    )
    while process.poll() is None:
        most = max(most, memory_of(process.pid))
        time.sleep(0.05)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(f"{work} failed")
    shutil.rmtree(out)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_s": cpu, "mib": most / 2**20, "load_before": load}


def bench(lines: Lines, folder: Path, sizes: list[int]) -> list[list[str]]:
    """All sizes and mechanisms; rows of the page's table."""
    table: list[list[str]] = []
    per_million: dict[str, dict[int, float]] = {}
    for millions in sizes:
        source, out = folder / f"in-{millions}", folder / "out"
        write_input(source, millions)
        polars = measured("copy", source, out)
        table.append(_row(millions, "polars reads and writes", polars, polars))
        for text in MECHANISMS:
            found = measured(text, source, out)
            table.append(_row(millions, f"`{text}`", found, polars))
            name = text.partition(":")[0]
            per_million.setdefault(name, {})[millions] = found["cpu_s"] / millions
            figures = {k: round(v, 1) for k, v in found.items()}
            lines.keep(
                {
                    "figure": f"{name}, {millions} M samples: memory of all processes",
                    "value": round(found["mib"]),
                    "unit": "MiB",
                    "ceiling": round(MOST_MIB),
                    "met": found["mib"] <= MOST_MIB,
                    **figures,
                }
            )
            if name == "gaussian" and millions >= 10:
                # Seconds on the clock are told alone: beside other work they are the queue's, where
                # our processes stand otherwise than polars' threads.
                times = found["cpu_s"] / polars["cpu_s"]
                lines.keep(
                    {
                        "figure": f"gaussian, {millions} M samples, beside polars",
                        "value": round(times, 2),
                        "unit": "times polars' processor time for reading and writing",
                        "ceiling": 4.0,
                        "met": times <= 4.0,
                        "clock_times": round(found["seconds"] / polars["seconds"], 2),
                    }
                )
        shutil.rmtree(source)
    for name, costs in per_million.items():
        growth = costs[max(costs)] / costs[min(costs)]
        lines.keep(
            {
                "figure": f"{name}: processor time per sample, {max(sizes)} M over {min(sizes)} M",
                "value": round(growth, 2),
                "unit": "times",
                "ceiling": 1.2,
                "met": growth <= 1.2,
            }
        )
    return table


def _row(millions: int, what: str, found: dict[str, float], polars: dict[str, float]) -> list[str]:
    return [
        f"{millions:,}",
        what,
        f"{found['seconds']:.1f}",
        f"{found['cpu_s']:.1f}",
        f"{millions / found['seconds']:.2f}",
        f"{found['seconds'] / polars['seconds']:.1f}",
        f"{found['cpu_s'] / polars['cpu_s']:.1f}",
        f"{found['mib']:,.0f}",
        f"{found['load_before']:.1f}",
    ]


def main() -> None:
    """Run all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--page", type=Path, help="put the table into this page")
    parser.add_argument("--millions", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--folder", type=Path, help="where to put the recordings")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work == "copy":
        copy(arguments.source, arguments.out)
    elif arguments.work:
        release(arguments.source, arguments.out, arguments.work)
    else:
        lines = Lines(arguments.json)
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            table = bench(lines, Path(folder), arguments.millions)
        if arguments.page is not None:
            columns = (
                *("million samples", "what", "seconds", "processor s", "million samples a second"),
                *("times polars", "times polars' processor s", "MiB in all", "other load"),
            )
            put_into(arguments.page, "scale", markdown(columns, table))
        if not lines.close():
            sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
