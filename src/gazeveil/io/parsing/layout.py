"""What readers of fixed layouts share: names in paths, columns of a header line, and units told
from the step between samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.io.source import Head, stem

#: Seconds in one tick of the clocks that datasets write.
TICK_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def folder_name(path: Path) -> str:
    """Name of the folder a file is in, also for paths like `file.csv` and `../file.csv`."""
    return Path(os.path.abspath(path)).parent.name


def person_in_folder(path: Path) -> tuple[str, str]:
    """(person, stimulus) of `<stimulus>/<person>_<stimulus>.<suffix>`.

    A file name that does not end in its folder's name is split at the first underscore; without one
    the whole name is the person and the folder the stimulus.
    """
    name, folder = stem(path), folder_name(path)
    if folder and name.endswith(f"_{folder}") and len(name) > len(folder) + 1:
        return name[: -len(folder) - 1], folder
    person, _, stimulus = name.partition("_")
    return (person, stimulus) if person and stimulus else (name, folder)


def columns(head: Head, separator: str = ",") -> frozenset[str]:
    """Lower-case column names of a file's first line."""
    return frozenset(c.strip().strip('"').lower() for c in head.first.split(separator))


def numbers(line: str, separator: str | None = ",") -> list[float] | None:
    """The cells of a line as numbers, or None if one is not."""
    try:
        return [float(c) for c in line.split(separator)]
    except ValueError:
        return None


def guess_unit(ticks: Floats, rate_hz: float, units: Iterable[str] = TICK_S) -> str:
    """The unit in which the median step between samples is nearest to one over `rate_hz`; seconds
    where there is no step.
    """
    steps = np.diff(ticks)
    steps = steps[steps > 0]
    if len(steps) == 0:
        return "s"
    median = float(np.median(steps))
    return min(units, key=lambda u: abs(np.log(median * TICK_S[u] * rate_hz)))
