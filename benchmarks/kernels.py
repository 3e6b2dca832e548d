"""What the machine code of a wheel, made for plain processors of a kind, costs beside code for this
one: processor time of each work, the least of several runs by turns.

    python benchmarks/kernels.py dist/gazeveil-*.whl [--runs 7] [--page docs/results/benchmarks.md]

Each set of machine code has a process: those of the wheel, and this checkout's, which is compiled
for this processor where it is not yet.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from lines import markdown, put_into

ROOT = Path(__file__).resolve().parent.parent

MECHANISMS = (
    "gaussian:sigma_deg=1",
    "temporal:K=3",
    "spatial:L=64",
    "smoothing",
    "kalman",
    "kaleido:epsilon=1,w=60,r_deg=2",
    "kaleido-uniform:epsilon=1,w=60,r_deg=2",
    "mosaic:epsilon=1,r_deg=4",
    "clock-render:epsilon=1,r_deg=5",
    "k-same-synth:k=4",
    "event-synth-pd:k=3,gamma=2",
    "dpgazesynth:epsilon=1",
)
METHODS = ("auto", "ivt", "idt", "dorr", "is5t", "online")


def works() -> dict[str, Callable[[], object]]:
    """Name -> what is timed: 36 recordings of a minute at 120 Hz of the simulator."""
    import gazeveil

    made = partial(gazeveil.simulate, 12, 3, 60.0, 120.0, seed=1)
    cohort: Any = made().load()
    found: dict[str, Callable[[], object]] = {"simulate": lambda: made().load()}
    for text in MECHANISMS:
        found[text.partition(":")[0]] = partial(gazeveil.protect, cohort, text, seed=1)
    for method in METHODS:
        found[f"detect {method}"] = partial(
            lambda m: [gazeveil.detect(r, m) for r in cohort], method
        )
    found["event features"] = partial(gazeveil.event_features, cohort, kind="all")
    found["window features"] = partial(gazeveil.window_features, cohort)
    return found


def serve(processor: str) -> None:
    """Do the works that are named on standard input, with the machine code for a processor."""
    from gazeveil import compiled

    compiled.PROCESSORS = {processor: ()}
    known = works()
    print(*known, sep="|", flush=True)
    for line in sys.stdin:
        began = process_time()
        made: Any = known[line.strip()]()
        for _ in getattr(made, "data", ()):  # recordings are released when they are asked for
            pass
        print(process_time() - began, flush=True)


class Set:
    """A process with one set of machine code."""

    def __init__(self, processor: str, source: Path) -> None:
        command = [sys.executable, __file__, "--serve", processor]
        environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT / 'benchmarks'}"}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names = self.answer().split("|")

    def answer(self) -> str:
        return self.process.stdout.readline().strip()  # type: ignore[union-attr]

    def seconds(self, name: str) -> float:
        """Processor seconds of a work."""
        print(name, file=self.process.stdin, flush=True)
        return float(self.answer())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--serve")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with TemporaryDirectory(prefix="kernels-") as name:
        zipfile.ZipFile(given.wheel).extractall(name)
        brought = sorted(p.name for p in (Path(name) / "gazeveil" / "kernels").iterdir())
        sets = [Set("none", ROOT / "src"), *(Set(processor, Path(name)) for processor in brought)]
        rows: list[list[tuple[float, str]]] = []
        for work in sets[0].names:
            rounds = [[each.seconds(work) for each in sets] for _ in range(given.runs + 1)]
            # The first loads the machine code.
            native_s, *others_s = (min(times) for times in zip(*rounds[1:], strict=True))
            rows.append([(other_s / native_s, work) for other_s in others_s])
            times = " ".join(f"{ratio:.2f}" for ratio, _ in rows[-1])
            print(f"{work}: {native_s * 1000:.0f} ms native, times {times}", flush=True)
        for each in sets:
            each.process.stdin.close()  # type: ignore[union-attr]
            each.process.wait()
    summary = []
    for processor, ratios in zip(brought, zip(*rows, strict=True), strict=True):
        most = ", ".join(f"{ratio:.2f} ({work})" for ratio, work in sorted(ratios)[:-4:-1])
        summary.append([processor, f"{median(ratio for ratio, _ in ratios):.2f}", most])
    table = markdown(["machine code", "median, times native", "largest three"], summary)
    print(table)
    if given.page:
        put_into(given.page, "machine code", table)


if __name__ == "__main__":
    main()
