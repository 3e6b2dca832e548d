"""What the benchmarks share: the fastest of a few runs, how slow the machine is, figures as JSON
lines, and tables on pages.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

#: Seconds of :func:`yardstick` on the quiet aarch64 core that limits in seconds were set on.
YARDSTICK_S = 0.053


def best_s(
    work: Callable[[], object], runs: int = 3, clock: Callable[[], float] = perf_counter
) -> float:
    """Seconds of the fastest of a few runs."""
    times = []
    for _ in range(runs):
        gc.collect()
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def yardstick() -> None:
    """A fixed piece of work, half of it numpy's and half Python's."""
    values = np.random.default_rng(1).random(300_000)
    np.fft.rfft(np.sort(values))
    np.exp(values).cumsum()
    sum(i * i for i in range(300_000))


def slower(clock: Callable[[], float] = perf_counter) -> float:
    """How many times as long work takes here and now as where the limits in seconds were set; at
    least 1.

    A limit in seconds says nothing about the code on another machine or beside other work. Times
    this, measured beside the figure and by the same clock, it is a ratio of two times of one run.
    """
    times = []
    for _ in range(9):
        begin = clock()
        yardstick()
        times.append(clock() - begin)
    return max(1.0, median(times) / YARDSTICK_S)


class Lines:
    """Figures as they come: printed, and written one JSON line each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: list[dict[str, object]] = []

    def add(self, figure: str, floor: float, value: float, unit: str, **more: object) -> None:
        """Print and keep one figure that must reach its floor."""
        self.keep(
            {
                "figure": figure,
                "value": round(value, 3),
                "unit": unit,
                "floor": floor,
                "met": value >= floor,
                **more,
            }
        )

    def keep(self, row: dict[str, object]) -> None:
        """Print and keep one figure that says itself whether it is met: `met` is None where it
        cannot be judged here, and `why` says what is in the way.
        """
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    def close(self) -> bool:
        """Write the file; whether nothing was missed."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text("".join(json.dumps(r) + "\n" for r in self.rows), encoding="utf-8")
        return all(r.get("met") in (None, True) for r in self.rows)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(row) + " |" for row in ([c.strip() for c in columns], *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def put_into(page: Path, name: str, text: str) -> None:
    """Write text between the marks `<!-- begin NAME -->` and `<!-- end NAME -->` of a page."""
    marks = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    old = page.read_text(encoding="utf-8")
    before, _, rest = old.partition(marks[0])
    _, mark, after = rest.partition(marks[1])
    if not mark:
        sys.exit(f"{page} has no place for this: it needs the lines '{marks[0]}' and '{marks[1]}'.")
    page.write_text(f"{before}{marks[0]}\n\n{text}\n\n{mark}{after}", encoding="utf-8")
