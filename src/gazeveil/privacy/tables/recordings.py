"""A FeatureTable as the mechanisms see it: one sequence per recording and feature, on integers
between public bounds.

The steps every table mechanism shares, in one place: rows to recordings, NaN to the public
midpoint, clamping to the public bounds, a common public length, and quantisation to a public grid
of 2**16 steps per feature. After that a value is a whole number from 0 to 65536, whatever the data
was, so the sensitivity of a sum of values is a whole number too.

Tables that games are played on: one feature between 0 and 1, 100 rows a recording.

The promise of the noise mechanisms on tables: one base map for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.guarantee import Guarantee, PublicNumber
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.randomness.rng import ASSUMPTION

#: Steps of the public grid between the two bounds of a feature.
STEPS = 1 << 16

#: Units in which a table mechanism's epsilon may be given, and what it is divided by.
PER = ("chunk", "recording-feature", "recording", "user")

#: The same for mechanisms without chunks.
WHOLE = PER[1:]

#: What every release of a table tells.
TABLE_NOT_COVERED = (
    (
        "who took part, which stimuli, sessions and tasks each person has, how many recordings that"
        " makes, and in which order they come"
    ),
)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Recordings of one table.

    Parameters
    ----------
    keys : tuple of (person, stimulus, session, task)
        One per recording, in order of first appearance.
    starts : array of int64, shape (recordings + 1,)
        Rows of recording i are `order[starts[i]:starts[i + 1]]`.
    order : array of int64
        Row numbers of the table, by recording and by index within it.
    table : FeatureTable
        The table itself.
    """

    keys: tuple[RecordingKey, ...]
    starts: Ints
    order: Ints
    table: FeatureTable

    @property
    def lengths(self) -> Ints:
        """Rows of each recording."""
        return np.diff(self.starts)

    @property
    def people(self) -> tuple[str, ...]:
        """People in order of first appearance."""
        return tuple(dict.fromkeys(k[0] for k in self.keys))

    def most_recordings(self) -> int:
        """The largest number of recordings any person has."""
        counts: dict[str, int] = {}
        for k in self.keys:
            counts[k[0]] = counts.get(k[0], 0) + 1
        return max(counts.values(), default=0)

    def rows(self, recording: int) -> Ints:
        """Row numbers of one recording, in order of index."""
        return self.order[self.starts[recording] : self.starts[recording + 1]]


def sequences(owner: str, table: FeatureTable) -> Sequences:
    """Take a table apart into recordings.

    Raises
    ------
    DataError
        For an empty table, or one without features.
    """
    if not isinstance(table, FeatureTable):
        checks.refuse(
            owner,
            "data",
            "a FeatureTable",
            type(table).__name__,
            "Make one with gazeveil.event_features or gazeveil.window_features.",
        )
    if len(table) == 0 or not table.columns:
        raise DataError(
            f"{owner} needs a table with rows and features. Got {len(table)} rows and"
            f" {len(table.columns)} features. Nothing was released."
        )
    k = table.keys
    # Rows of a recording usually stand together: only the first row of each run is looked up.
    changes = np.zeros(len(table), dtype=np.bool_)
    changes[0] = True
    for column in (k.person, k.stimulus, k.session, k.task):
        changes[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(changes)
    places: dict[RecordingKey, int] = {}
    runs = zip(*(c[first].tolist() for c in (k.person, k.stimulus, k.session, k.task)), strict=True)
    codes = np.repeat(
        [places.setdefault(key, len(places)) for key in runs], np.diff(np.append(first, len(table)))
    ).astype(np.int64)
    order = np.lexsort((np.arange(len(table)), k.index, codes))
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(places))))).astype(
        np.int64
    )
    return Sequences(tuple(places), starts, order.astype(np.int64), table)


def public_bounds(owner: str, table: FeatureTable) -> Floats:
    """The table's public bounds, shape (features, 2).

    Raises
    ------
    DataError
        If the table has none: a bound taken from the data would be a secret of the data. If bounds
        are so close or so far apart that a double cannot hold a step of the grid: a value would
        become any whole number, where the proofs need one from 0 to :data:`STEPS`.
    """
    if table.bounds is None:
        raise DataError(
            f"{owner} needs public bounds for every feature and this table has none. Give them with"
            " table.with_bounds({name: (low, high)}), from physiology or the tracker's limits,"
            " never from the data. Nothing was released."
        )
    with np.errstate(over="ignore"):
        step = (table.bounds[:, 1] - table.bounds[:, 0]) / STEPS
    for name, size in zip(table.columns, step.tolist(), strict=True):
        if not 0 < size < float("inf"):
            raise DataError(
                f"{owner} cuts the range between the public bounds of a feature into {STEPS} steps,"
                f" and the bounds of '{name}' are too close together or too far apart for that."
                " Give them in another unit. Nothing was released."
            )
    return table.bounds


@dataclass(frozen=True, eq=False)
class TableLattice:
    """All recordings at one public length, as whole numbers from 0 to :data:`STEPS`.

    Parameters
    ----------
    values : array of int64, shape (recordings, length, features)
        Quantised values; padding and missing values are the public midpoint.
    low, step : array of float64, shape (features,)
        A number n stands for low + n * step.
    clamped, missing, padded, trimmed : int
        How many cells were outside the bounds, were NaN, were added, were cut off. For the curator
        alone.
    """

    values: Ints
    low: Floats
    step: Floats
    clamped: int
    missing: int
    padded: int
    trimmed: int

    @property
    def length(self) -> int:
        """Rows of every recording."""
        return self.values.shape[1]

    def notes(self) -> dict[str, int]:
        """Counts for the curator."""
        return {
            "clamped": self.clamped,
            "missing": self.missing,
            "padded": self.padded,
            "trimmed": self.trimmed,
        }

    def real(self, numbers: NDArray[np.generic]) -> Floats:
        """Grid numbers as feature values."""
        return self.low + np.asarray(numbers, dtype=np.float64) * self.step


def lattice(owner: str, seqs: Sequences, length: int | None) -> TableLattice:
    """Bring every recording to the public length and the public grid. Length None takes the longest
    recording's, which the guarantee then has to assume public.
    """
    bounds = public_bounds(owner, seqs.table)
    low, step = bounds[:, 0].copy(), (bounds[:, 1] - bounds[:, 0]) / STEPS
    n = int(seqs.lengths.max()) if length is None else checks.count(owner, "length", length)
    recordings, features = len(seqs.keys), len(seqs.table.columns)
    out = np.full((recordings, n, features), STEPS // 2, dtype=np.int64)
    lengths = seqs.lengths
    recording = np.repeat(np.arange(recordings), lengths)
    place = np.arange(len(seqs.order)) - seqs.starts[recording]
    kept = place < n
    raw = seqs.table.values[seqs.order[kept]]
    seen = np.isfinite(raw)
    clamped = int(np.count_nonzero(seen & ((raw < bounds[:, 0]) | (raw > bounds[:, 1]))))
    with np.errstate(over="ignore"):  # far outside the bounds is outside the bounds
        scaled = np.clip((np.where(seen, raw, low) - low) / step, 0, STEPS)
    out[recording[kept], place[kept]] = np.where(seen, np.rint(scaled).astype(np.int64), STEPS // 2)
    padded = int(np.maximum(n - lengths, 0).sum()) * features
    return TableLattice(
        out,
        low,
        step,
        clamped,
        int(np.count_nonzero(~seen)),
        padded,
        int(np.count_nonzero(~kept)) * features,
    )


def rebuild(seqs: Sequences, values: Floats) -> FeatureTable:
    """A table of the same recordings at one length.

    Parameters
    ----------
    seqs : Sequences
        Whose recordings.
    values : array of float64, shape (recordings, length, features)
        Released values.
    """
    recordings, length, features = values.shape
    keys = Keys.of_recordings(seqs.keys, [np.arange(length, dtype=np.int64)] * recordings)
    return FeatureTable(values.reshape(-1, features), seqs.table.columns, keys, seqs.table.bounds)


def rebuild_rows(seqs: Sequences, parts: Sequence[Floats | None]) -> FeatureTable:
    """A table of the same recordings, each with rows of its own number, as `published` readings
    release them; a recording without a part is left out.
    """
    made = [(key, part) for key, part in zip(seqs.keys, parts, strict=True) if part is not None]
    keys = Keys.of_recordings(
        [key for key, _ in made], [np.arange(len(part), dtype=np.int64) for _, part in made]
    )
    values = np.concatenate([part for _, part in made])
    return FeatureTable(values, seqs.table.columns, keys, seqs.table.bounds)


def per_feature_epsilon(
    epsilon: Fraction, per: str, features: int, recordings_per_person: int, chunks: int = 1
) -> Fraction:
    """The budget of one recording-feature (of one chunk of it, where there are chunks) from a
    budget at another unit.

    With `per="chunk"` epsilon is each chunk's own; else it is shared evenly over what the unit
    holds.
    """
    shares = {
        "chunk": 1,
        "recording-feature": chunks,
        "recording": chunks * features,
        "user": chunks * features * recordings_per_person,
    }
    return epsilon / shares[per]


def task_of(key: RecordingKey) -> str:
    """The task of a recording as the papers' loops over tasks mean it: the stimulus where no task
    is named.
    """
    return key[3] or key[1]


#: Rows of a recording.
ROWS = 100

_CELLS_AT_ONCE = 4_000_000

Reals: TypeAlias = Floats


def table_of(patterns: Reals, names: list[str]) -> FeatureTable:
    """One person per pattern, one recording each; patterns have shape (people, rows)."""
    rows = np.arange(patterns.shape[1], dtype=np.int64)
    keys = Keys.of_recordings([(n, "s", "1", "") for n in names], [rows] * len(names))
    return FeatureTable(patterns.reshape(-1, 1), ("a",), keys, np.array([[0.0, 1.0]]))


def neighbours(k: int) -> list[FeatureTable]:
    """Two tables of k people at the midpoint but for the first, who is all 0 or all 1."""
    names = [f"p{i}" for i in range(k)]
    rest = np.full((k - 1, ROWS), 0.5)
    return [table_of(np.vstack((np.full((1, ROWS), end), rest)), names) for end in (0.0, 1.0)]


def batches(trials: int, cells: int) -> list[int]:
    """Trials in portions of a few million cells."""
    size = max(1, _CELLS_AT_ONCE // cells)
    return [min(size, trials - i) for i in range(0, trials, size)]


#: What every proof about tables takes for granted.
PUBLIC = (
    (
        "the bounds of the features and the parameters of the mechanism are public and were not"
        " taken from this data"
    ),
)


@dataclass(frozen=True)
class Share:
    """How a budget at one unit is shared by the blocks that get noise of their own.

    Parameters
    ----------
    epsilon : Fraction
        The budget at the unit.
    per : str
        The unit, one of :data:`gazeveil.privacy.tables.recordings.PER`.
    features : int
        Features of the table.
    recordings : int
        The largest number of recordings one person has; recordings are public.
    chunks : int
        Blocks of one recording-feature.
    """

    epsilon: Fraction
    per: str
    features: int
    recordings: int
    chunks: int = 1

    @classmethod
    def of(cls, epsilon: Fraction, per: str, seqs: Sequences, chunks: int = 1) -> Share:
        """The share for the recordings of a table."""
        return cls(epsilon, per, len(seqs.table.columns), seqs.most_recordings(), chunks)

    @property
    def block(self) -> Fraction:
        """Budget of one block."""
        return per_feature_epsilon(
            self.epsilon, self.per, self.features, self.recordings, self.chunks
        )

    def losses(self, delta_num: Fraction = Fraction(0), chunk: int | None = None) -> UnitMap:
        """The base map, a block with noise of its own, lifted to recordings and people.

        Parameters
        ----------
        delta_num : Fraction
            Numerical error of all draws of the release.
        chunk : int, optional
            Rows of a chunk, where there are chunks.
        """
        block = (
            UnitMap.of("chunk", Loss.pure(self.block, delta_num), chunk)
            if chunk is not None
            else None
        )
        feature = (
            UnitMap.of("recording-feature", Loss.pure(self.block, delta_num))
            if block is None
            else block.lift("recording-feature", self.chunks)
        )
        return feature.lift("recording", self.features).lift("user", self.recordings)

    def change(self, chunk: int | None) -> Change:
        """The change that the budget is for."""
        return Change(self.per, rows=chunk if self.per == "chunk" else None)


def proved(
    title: str,
    share: Share,
    length: int,
    assumed: bool,
    proof: str,
    delta_num: Fraction,
    more: tuple[str, ...] = (),
    chunk: int | None = None,
) -> Guarantee:
    """The guarantee of a corrected reading.

    Parameters
    ----------
    title : str
        Mechanism and reading.
    share : Share
        The budget.
    length : int
        Rows every released recording has.
    assumed : bool
        Whether the length was taken from the longest recording.
    proof : str
        The proof page.
    delta_num : Fraction
        Numerical error of all samples of noise.
    more : tuple of str
        Further assumptions.
    chunk : int, optional
        Rows of a chunk, where there are chunks: chunks of another size are other neighbours.
    """
    return Guarantee(
        "epsilon-dp",
        share.losses(delta_num, chunk),
        share.change(chunk),
        mechanism=title,
        assumptions=(*PUBLIC, "how many recordings each person has is public", ASSUMPTION, *more),
        not_covered=TABLE_NOT_COVERED,
        reason=proof,
    ).resting_on(public_length(length, assumed))


def public_length(rows: int, derived: bool) -> PublicNumber:
    """The number of rows that every recording of a release has."""
    return PublicNumber(f"the length of {rows} rows", "length", derived)


def refuted(
    title: str, epsilon: Fraction, unit: str, reason: str, chunk: int | None = None
) -> Guarantee:
    """The guarantee of a published reading whose claim fails."""
    return Guarantee(
        "epsilon-dp",
        UnitMap.of(unit, Loss.pure(epsilon), chunk if unit == "chunk" else None),
        Change(unit, rows=chunk if unit == "chunk" else None),
        mechanism=title,
        not_covered=(*TABLE_NOT_COVERED, "the length of each recording"),
        status="refuted",
        reason=reason,
    )


def midpoints(seqs: Sequences) -> Floats:
    """What stands for a missing value in a published reading: the middle of the bounds, or 0 where
    the table has none; shape (features,).
    """
    bounds = seqs.table.bounds
    return np.zeros(len(seqs.table.columns)) if bounds is None else bounds.mean(axis=1)
