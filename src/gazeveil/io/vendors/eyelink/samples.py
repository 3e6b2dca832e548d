"""The sample lines of an EyeLink ASC file as columns of numbers.

The `SAMPLES` line of a block says what its rows hold (EyeLink 1000 user manual, 4.9.2 and 4.9.4):
time; x, y and pupil of each eye; with `VEL` two velocities of each eye; with `RES` pixels per
degree of x and y; with `INPUT` the input port; with `HTARGET` (remote mode) x, y and distance of
the target on the forehead. Fields of letters and dots (`...`) are warnings and stand between them.

* A tracker that was told to record no pupil gives 0 in every row, or no such column. Pupils of 0
  mean a lost eye only in files where some pupil is not 0.
* edf2asc writes whole milliseconds unless asked for more, so that two rows of a 2000 Hz recording
  carry one time; the later row is put half a millisecond after the earlier one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import MOST_NS, printable

_WARNINGS = re.compile(r"[A-Z.]{3,}")
_LOST = (".", "MISSING_DATA", "-32768", "-32768.0")
_OPTIONS = ("VEL", "RES", "INPUT", "HTARGET")
_FEW_VALUES = 16


@dataclass(frozen=True)
class SampleBlock:
    """What a START block says about its samples."""

    line: int
    left: bool = True
    right: bool = False
    kind: str = "GAZE"
    rate_hz: float = float("nan")
    known: bool = False
    options: tuple[str, ...] = ()

    @property
    def layout(self) -> tuple[bool, bool, bool, tuple[str, ...]]:
        """What blocks must share for their rows to have the same columns."""
        return self.left, self.right, self.known, self.options


@dataclass(frozen=True)
class Samples:
    """All samples of a file, in file order.

    Parameters
    ----------
    t_ns : array of int64, shape (n,)
        Time in nanoseconds.
    eyes : dict of str to array, shape (n, 3)
        x, y and pupil of each eye in the file's units, NaN where lost.
    recorded : dict of str to array of bool, shape (n,)
        Where each eye was recorded at all.
    resolution : array, shape (n, 2), optional
        Pixels per degree of x and y at the place of gaze.
    distance_mm : array, shape (n,), optional
        From the camera to the target on the forehead, NaN where it was lost.
    has_pupil : bool
        Whether any pupil was measured.
    shared_times : int
        Rows whose time was that of the row before.
    """

    t_ns: Ints
    eyes: dict[str, Floats]
    recorded: dict[str, Bools]
    resolution: Floats | None = None
    distance_mm: Floats | None = None
    has_pupil: bool = True
    shared_times: int = 0


def find_blocks(path: Path, other: list[tuple[int, str]]) -> list[SampleBlock]:
    """Blocks in file order; a file without START has one that its samples must explain.

    Raises
    ------
    FormatError
        For raw pupil positions.
    """
    blocks: list[SampleBlock] = []
    for number, line in other:
        tokens = line.split()
        if not tokens or tokens[0] not in ("START", "SAMPLES"):
            continue
        eyes = ("LEFT" in tokens or "RIGHT" not in tokens, "RIGHT" in tokens)
        known = "LEFT" in tokens or "RIGHT" in tokens
        if tokens[0] == "START":
            blocks.append(SampleBlock(number, *eyes, known=known))
        elif len(tokens) > 1:
            if tokens[1] == "PUPIL":
                raise FormatError(
                    path,
                    "its samples are raw pupil positions, not gaze",
                    "Convert the EDF file again with edf2asc, with gaze (not -sp).",
                    number + 1,
                )
            rate = next(
                (
                    float(b)
                    for a, b in pairwise(tokens)
                    if a == "RATE" and re.fullmatch(r"\d{1,6}(?:\.\d+)?", b)
                ),
                float("nan"),
            )
            rate = rate if rate > 0 else float("nan")
            options = tuple(o for o in _OPTIONS if o in tokens)
            if blocks and not np.isfinite(blocks[-1].rate_hz):
                number = blocks.pop().line
            blocks.append(SampleBlock(number, *eyes, tokens[1], rate, known, options))
    return blocks or [SampleBlock(-1)]


def read_samples(
    path: Path, lines: pl.Series, at: Ints, blocks: list[SampleBlock], block_of: Ints
) -> Samples:
    """Columns of all sample lines.

    Parameters
    ----------
    path : Path
        The file, for messages.
    lines : polars.Series of str
        The sample lines.
    at : array of int64
        Their line numbers in the file, from 0.
    blocks, block_of
        The blocks, and the block of each line.
    """
    n = len(at)
    columns: dict[str, Floats] = {}
    recorded: dict[str, Bools] = {}
    t_ns = np.zeros(n, dtype=np.int64)
    for layout in sorted({blocks[i].layout for i in np.unique(block_of)} if n else set()):
        mine = np.flatnonzero(np.array([b.layout == layout for b in blocks])[block_of])
        text = lines.gather(mine)
        numbers = _columns(path, text, at[mine], _names(text, layout))
        t_ns[mine] = _times(path, text, at[mine], numbers["time"])
        for name, values in numbers.items():
            columns.setdefault(name, np.full(n, np.nan))[mine] = values
        for eye in ("left", "right"):
            if f"{eye} x" in numbers:
                recorded.setdefault(eye, np.zeros(n, dtype=np.bool_))[mine] = True
    if not recorded:
        recorded["left"] = np.zeros(n, dtype=np.bool_)
    nothing = np.full(n, np.nan)
    eyes: dict[str, Floats] = {
        e: np.stack([columns.get(f"{e} {c}", nothing) for c in ("x", "y", "pupil")], axis=1)
        for e in ("left", "right")
        if e in recorded
    }
    has_pupil = drop_lost(eyes)
    t_ns, shared = _apart(t_ns, block_of, np.array([b.rate_hz for b in blocks]))
    resolution = None
    if "resolution x" in columns:
        resolution = np.stack([columns[f"resolution {a}"] for a in "xy"], axis=1)
    return Samples(
        t_ns, eyes, recorded, resolution, _distance_mm(columns.get("distance")), has_pupil, shared
    )


def drop_lost(eyes: Mapping[str, Floats]) -> bool:
    """Make samples with a pupil of 0 NaN, or the pupil alone where none was measured; returns
    whether one was.
    """
    has_pupil = any((values[:, 2] > 0).any() for values in eyes.values())
    for values in eyes.values():
        if has_pupil:
            values[values[:, 2] == 0] = np.nan
        else:
            values[:, 2] = np.nan
    return has_pupil


def _names(text: pl.Series, layout: tuple[bool, bool, bool, tuple[str, ...]]) -> list[str]:
    """Name of each field of a row; empty for a field that is not used."""
    left, right, known, options = layout
    fields = max([str(t).split() for t in text.head(20).to_list()], key=len)
    warned = [bool(_WARNINGS.fullmatch(f)) for f in fields]
    count = warned.count(False)
    if not known:
        right = count >= 7
    eyes = [e for e, there in (("left", left), ("right", right)) if there]
    extra: list[str] = []
    if "VEL" in options:
        extra += [f"{e} velocity {a}" for e in eyes for a in "xy"]
    if "RES" in options:
        extra += ["resolution x", "resolution y"]
    inputs = ["input"] if "INPUT" in options else []
    target = ["target x", "target y", "distance"] if "HTARGET" in options else []
    whole = 1 + 3 * len(eyes) + len(extra) + len(inputs) + len(target)
    parts = ["x", "y", "pupil"]
    if known and count == whole - len(eyes):
        place = 1 + 2 * len(eyes)
        if len(eyes) == 2 or not inputs or _has_few_values(text, place + len(extra)):
            parts = ["x", "y"]
        else:
            inputs = []
    expected = ["time", *(f"{e} {p}" for e in eyes for p in parts), *extra, *inputs, *target]
    if count != len(expected):
        # Columns that no option explains: only those that every file has are certain.
        expected = expected[: 1 + len(parts) * len(eyes)]
    following = iter(expected)
    return ["" if w else next(following, "") for w in warned] + list(following)


def _has_few_values(text: pl.Series, place: int) -> bool:
    """Whether a field looks like an input port, which changes seldom, rather than like a pupil."""
    cells = [str(t).split() for t in text.to_list()]
    return len({c[place] for c in cells if len(c) > place}) <= min(_FEW_VALUES, len(cells) // 4)


def _columns(path: Path, text: pl.Series, at: Ints, names: list[str]) -> dict[str, Floats]:
    """The named fields of sample lines as numbers."""
    if "\t" not in str(text[0]):
        text = text.str.strip_chars().str.replace_all(r"\s+", "\t")
    frame = pl.read_csv(
        io.BytesIO("\n".join(text.to_list()).encode()),
        separator="\t",
        has_header=False,
        infer_schema=False,
        quote_char=None,
        truncate_ragged_lines=True,
    )
    certain = sum(n in ("time", *_EYE_FIELDS) for n in names)
    result = {}
    for i, name in enumerate(names):
        if not name:
            continue
        column = (
            frame.to_series(i).str.strip_chars()
            if i < frame.width
            else pl.Series([None] * len(text), dtype=pl.String)
        )
        values = column.cast(pl.Float64, strict=False)
        lost = column.is_in(_LOST).fill_null(False) if i else pl.Series([False] * len(text))
        wrong = (values.is_null() & ~lost).arg_true()
        if len(wrong):
            row = int(wrong[0])
            problem = (
                f"'{printable(column[row])}' is not a number"
                if column[row] is not None
                else f"the sample has fewer than {certain} values"
            )
            raise FormatError(
                path,
                f"{problem} (column {i + 1})",
                "The file was cut; convert the EDF file again or remove the line.",
                int(at[row]) + 1,
            )
        result[name] = np.where(lost.to_numpy(), np.nan, values.to_numpy())
    return result


_EYE_FIELDS = tuple(f"{e} {p}" for e in ("left", "right") for p in ("x", "y", "pupil"))


def _times(path: Path, text: pl.Series, at: Ints, milliseconds: Floats) -> Ints:
    wild = np.flatnonzero(~(np.abs(milliseconds) * 1e6 < MOST_NS))
    if len(wild):
        raise FormatError(
            path,
            f"'{str(text[int(wild[0])]).split()[0][:30]}' is too large for a time in ms",
            "Mend or remove the line.",
            int(at[wild[0]]) + 1,
        )
    return np.round(milliseconds * 1e6).astype(np.int64)


def _apart(t_ns: Ints, block_of: Ints, rates_hz: Floats) -> tuple[Ints, int]:
    """Times of rows that share one because the file has whole milliseconds, and how many rows that
    were.
    """
    rate = rates_hz[block_of] if len(t_ns) else np.empty(0)
    fast = np.nan_to_num(rate) > 1000
    same = np.zeros(len(t_ns), dtype=np.bool_)
    same[1:] = (np.diff(t_ns) == 0) & (np.diff(block_of) == 0)
    # Place of a row in its run of equal times; more rows than a millisecond holds are faults.
    starts = np.flatnonzero(~same)
    place = np.arange(len(t_ns)) - np.repeat(starts, np.diff(np.append(starts, len(t_ns))))
    with np.errstate(invalid="ignore"):
        moved = fast & (place > 0) & (place < rate / 1000) & (t_ns % 1_000_000 == 0)
    result = t_ns.copy()
    result[moved] += np.round(place[moved] * (1e9 / rate[moved])).astype(np.int64)
    return result, int(np.count_nonzero(moved))


def _distance_mm(distance: Floats | None) -> Floats | None:
    """Distances as millimetres; the tracker's own unit is a tenth of one."""
    if distance is None or not (distance > 0).any():
        return None
    known = np.where(distance > 0, distance, np.nan)
    return known / 10 if np.nanmedian(known) > 2500 else known
