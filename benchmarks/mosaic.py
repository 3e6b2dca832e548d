"""How fast `mosaic` is, and how its memory grows with the people who saw one stimulus.

    python benchmarks/mosaic.py [--json FILE] [--people 100 200 400 800] [--section PAGE]

**speed.** The recordings of GazeCom under GAZEVEIL_DATA (24 people, 10 clips), read before: seconds
of the fastest of three releases. It must stay below 10 on a quiet aarch64 core.

**growth.** Simulated people who watch one video of 20 s at 60 Hz, recordings that are made when
they are looked at, each size in a process of its own: seconds, and the peak of its memory. Memory
must grow linearly: the last person must cost at most one and a half times what the first ones do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from gazeveil import Cohort, Screen, mechanism, read, simulate
from lines import Lines, best_s, markdown, put_into, slower

TEXT = "mosaic:epsilon=10,r_deg=2"
SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
SIZES = (100, 200, 400, 800)


def speed(lines: Lines) -> None:
    """Seconds of a release of GazeCom."""
    data = os.environ.get("GAZEVEIL_DATA")
    if not data or not (Path(data) / "gazecom").is_dir():
        print("GAZEVEIL_DATA has no gazecom: its speed is left out.", file=sys.stderr)
        return
    cohort = Cohort(list(read(Path(data) / "gazecom", format="gazecom")))
    made = mechanism(TEXT)
    made.release(cohort)  # compiles
    seconds, times = best_s(lambda: made.release(cohort)), slower()
    lines.keep(
        {
            "figure": f"{len(cohort.people)} people, {len(cohort)} recordings",
            "value": round(seconds, 2),
            "unit": "s",
            "ceiling": round(10 * times, 1),
            "met": seconds <= 10 * times,
            "slower": round(times, 2),
        }
    )


def one_size(people: int) -> None:
    """Release one simulated crowd and print seconds and peak memory; in a process of its own."""
    made = mechanism(TEXT)
    made.release(simulate(12, 1, 6.0, 60.0, task="video", space=SCREEN, seed=1))  # compiles
    before = _peak_mib()
    begin = perf_counter()
    released = made.release(simulate(people, 1, 20.0, 60.0, task="video", space=SCREEN, seed=2))
    pieces = sum(1 for _ in released.data)
    seconds = perf_counter() - begin
    print(json.dumps({"people": people, "pieces": pieces, "s": seconds, "before": before,
                      "peak": _peak_mib()}))  # fmt: skip


def _peak_mib() -> float:
    """The most memory this process has held, in MiB."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def growth(lines: Lines, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Seconds and memory by the number of people."""
    rows = []
    for people in sizes:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(people)],
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    first, middle, last = rows[0], rows[len(rows) // 2], rows[-1]
    early = (middle["peak"] - first["peak"]) / (middle["people"] - first["people"])
    late = (last["peak"] - middle["peak"]) / (last["people"] - middle["people"])
    lines.keep(
        {
            "figure": "MiB of one more person, among many over among few",
            "value": round(late / max(early, 1e-3), 2),
            "unit": "ratio",
            "ceiling": 1.5,
            "met": late <= 1.5 * max(early, 1e-3) + 0.01,
        }
    )
    return rows


def main() -> int:
    """Measure; 1 where a figure misses."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    asked.add_argument("--json", type=Path)
    asked.add_argument("--people", type=int, nargs="+", default=list(SIZES))
    asked.add_argument("--section", type=Path, help="page whose table `mosaic-growth` is rewritten")
    asked.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = asked.parse_args()
    if chosen.one:
        one_size(chosen.one)
        return 0
    lines = Lines(chosen.json)
    speed(lines)
    rows = growth(lines, chosen.people)
    if chosen.section is not None:
        table = markdown(
            ("people", "pieces", "seconds", "peak (MiB)"),
            [
                (f"{r['people']}", f"{r['pieces']}", f"{r['s']:.1f}", f"{r['peak']:.0f}")
                for r in rows
            ],
        )
        put_into(chosen.section, "mosaic-growth", table)
    return 0 if lines.close() else 1


if __name__ == "__main__":
    sys.exit(main())
