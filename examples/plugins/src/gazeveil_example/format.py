"""`gaze-lines`: text files that begin with `gaze-lines 1 RATE` and hold `t_ms x_deg y_deg` lines.

Degrees are those of a sphere, x in [0, 360), y in [0, 180). A line `t_ms - -` is a lost sample, one
that begins with `#` a remark. The person is the folder's name, the stimulus the file's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import Recording, Sphere
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.io.registry import Format, LineRules, Scrub
from gazeveil.io.source import Head

_FIRST = b"gaze-lines 1 "


def sniff(head: Head) -> bool:
    """Whether a file begins with the format's first line."""
    return head.data.startswith(_FIRST)


def scan(path: Path, root: Path) -> Iterator[Handle]:
    """One recording per file."""
    person = path.parent.name or "unknown"
    yield Handle(person, path.stem, partial(load, path, person), source=str(path))


def load(path: Path, person: str) -> Recording:
    """Read a file."""
    try:
        first, *lines = path.read_bytes().decode("utf-8").splitlines() or [""]
        if not first.startswith(_FIRST.decode()):
            raise ValueError("the first line is not 'gaze-lines 1 RATE'")
        rate_hz = float(first.removeprefix(_FIRST.decode()))
        rows = [_row(line) for line in lines if line.strip() and not line.startswith("#")]
    except ValueError as error:
        raise FormatError(path, f"it is not a gaze-lines file ({error})", "Check it.") from error
    values = np.array(rows, dtype=np.float64).reshape(-1, 3)
    if not np.isfinite(values[:, 0]).all():
        raise FormatError(path, "a time is not a number", "Check it.")
    valid = np.isfinite(values).all(axis=1)
    return Recording(
        person,
        path.stem,
        np.round(values[:, 0] * 1e6).astype(np.int64),
        values[:, 1],
        values[:, 2],
        valid=valid,
        rate_hz=rate_hz,
        space=Sphere(),
        counts={"rows": len(rows)},
    )


def _row(line: str) -> tuple[float, float, float]:
    time_ms, *place = line.split()
    if len(place) != 2:
        raise ValueError(f"'{line[:20]}' has no three columns")
    x_deg, y_deg = (float("nan") if text == "-" else float(text) for text in place)
    return float(time_ms), x_deg, y_deg


def sample(folder: Path) -> Path:
    """Write a small file."""
    path = folder / "anna" / "picture.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{10 * i} {180 + i / 10:.2f} {90 - i / 20:.2f}" for i in range(100)]
    lines[40] = "400 - -"
    head = ["gaze-lines 1 100", "# recorded by Berta"]
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    return path


#: The first line stays, and samples with times from zero on. What no pattern fits goes: remarks.
SCRUB = Scrub(
    LineRules(
        (
            (r"gaze-lines 1 [\d.]+", ""),
            (r"(?P<shift>[\d.]+)(?: -?\d{1,3}(?:\.\d+)?){2}", ""),
            (r"(?P<shift>[\d.]+) - -", ""),
        )
    )
)

FORMAT = Format(
    "gaze-lines", "Lines of time and direction", sniff, scan, scrub=SCRUB, sample=sample
)
