"""Task-based marginals with plausible deniability ("For Your Eyes Only", ETRA 2022, after
Bindschaedler, Shokri and Gunter 2017).

`published`: each feature is cut into B equal bins between its smallest and largest value in the
data; for each task (each stimulus where no task is named) a histogram of each feature; as many
synthetic vectors as each person has, every feature drawn alone; each vector must pass the
plausible-deniability test; a bin becomes a uniform value inside it. The generator never looks at
its seed, so every record is equally plausible and the test passes for every k up to the number of
records, whatever gamma is: it protects nothing. The marginals are free of noise and the outer bin
edges are the extreme values of single people.

`corrected`: public bin edges; a person has weight 1 in each histogram, in 2**16 parts, so replacing
their values changes it by at most 2; discrete Laplace noise of scale 2 / epsilon; projection on the
simplex; sampling, for fresh pseudonyms with a public number of rows. That is epsilon-DP for one
feature of one recording, and epsilon times features times tasks for everything of one person. The
test is kept as printed: k people must take part.

proofs/marginals.md has the proofs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.exact import (
    MOST_T,
    discrete_laplace,
    laplace_scale,
    refuse_budget,
    tail_delta,
)
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, generator, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.exponential import complete_values
from gazeveil.privacy.tables.ksame import fewest_sharing, need
from gazeveil.privacy.tables.recordings import (
    PUBLIC,
    ROWS,
    TABLE_NOT_COVERED,
    WHOLE,
    Sequences,
    batches,
    neighbours,
    public_bounds,
    public_length,
    rebuild_rows,
    sequences,
    task_of,
)

#: Parts of the weight 1 that each person has in a histogram.
PARTS = 1 << 16


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows of a table with the numbers of their people and tasks.

    Parameters
    ----------
    person, task : array of int64, shape (rows,)
        Whose, and of which task.
    codes : array of int64, shape (rows, features)
        Bins; -1 where not measured.
    people, tasks : int
        How many there are.
    """

    person: Ints
    task: Ints
    codes: Ints
    people: int
    tasks: int

    @classmethod
    def of(cls, seqs: Sequences, codes: Ints, people: list[str], tasks: list[str]) -> BinnedRows:
        """The rows of a table, recording by recording."""
        person, task = ({name: i for i, name in enumerate(names)} for names in (people, tasks))
        whose = np.repeat([person[key[0]] for key in seqs.keys], seqs.lengths)
        which = np.repeat([task[task_of(key)] for key in seqs.keys], seqs.lengths)
        return cls(whose, which, codes[seqs.order], len(people), len(tasks))

    @property
    def contributors(self) -> Ints:
        """How many people have rows of each task."""
        return np.array([np.unique(self.person[self.task == t]).size for t in range(self.tasks)])

    def weights(self, bins: int) -> Ints:
        """Histograms in which each person weighs at most :data:`PARTS`, shape (tasks, features,
        bins): whole numbers, rounded down.
        """
        features = self.codes.shape[1]
        total = np.zeros((self.tasks, features, bins), dtype=np.int64)
        order = np.argsort(self.person, kind="stable")
        ends = np.cumsum(np.bincount(self.person, minlength=self.people))
        for mine in np.split(order, ends[:-1]):
            codes, task = self.codes[mine], self.task[mine]
            place = (task[:, None] * features + np.arange(features)) * bins + codes
            own = np.bincount(place[codes >= 0], minlength=total.size).reshape(total.shape)
            total += own * PARTS // np.maximum(own.sum(axis=2, keepdims=True), 1)
        return total


def bin_codes(values: Floats, low: Floats, high: Floats, bins: int) -> Ints:
    """Bin of each value, min(B - 1, floor(B (x - low) / (high - low))), clamped; bin 0 where low
    equals high; -1 for NaN.
    """
    width = high - low
    with np.errstate(invalid="ignore"):
        scaled = np.divide(
            bins * (values - low),
            width,
            out=np.zeros_like(values),
            where=np.broadcast_to(width > 0, values.shape),
        )
        floored = np.clip(np.floor(scaled), 0, bins - 1)
    return np.where(np.isnan(values), -1, floored).astype(np.int64)


def histograms(codes: Ints, bins: int) -> Floats:
    """Counts per feature and bin, shape (features, bins)."""
    features = codes.shape[1]
    return (
        np.bincount((codes + np.arange(features) * bins).ravel(), minlength=features * bins)
        .reshape(features, bins)
        .astype(np.float64)
    )


def on_simplex(values: Floats) -> Floats:
    """The nearest probabilities, along the last axis (Held, Wolfe and Crowder 1974)."""
    falling = -np.sort(-values, axis=-1)
    over = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    last = (falling > over).sum(axis=-1, keepdims=True) - 1
    kept = np.maximum(values - np.take_along_axis(over, last, axis=-1), 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)


def sample_bins(pmf: Floats, rows: int, draw: np.random.Generator) -> Ints:
    """Independent bins for each feature, shape (rows, features)."""
    features, bins = pmf.shape
    out = np.empty((rows, features), dtype=np.int64)
    for feature in range(features):
        steps = np.cumsum(pmf[feature])
        # A last step below 1 by rounding must not open a bin of probability 0.
        steps[np.flatnonzero(pmf[feature])[-1] :] = 1.0
        out[:, feature] = np.searchsorted(steps, draw.random(rows), side="right")
    return np.minimum(out, bins - 1)


def inside(codes: Ints, low: Floats, high: Floats, bins: int, draw: np.random.Generator) -> Floats:
    """A uniform value inside each bin."""
    width = (high - low) / bins
    values: Floats = low + (codes + draw.random(codes.shape)) * width
    return np.clip(values, low + codes * width, np.minimum(low + (codes + 1) * width, high))


#: Stimulus, session and task.
Cell: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class PublicShape:
    """What is taken for public about a table.

    Parameters
    ----------
    people, tasks : list of str
        Sorted.
    cells : list of (stimulus, session, task)
        Sorted.
    most_tasks : int
        The largest number of tasks any person has.
    length, features : int
        Rows of each synthetic recording, and its columns.
    """

    people: list[str]
    tasks: list[str]
    cells: list[Cell]
    most_tasks: int
    length: int
    features: int

    @classmethod
    def of(cls, seqs: Sequences, length: int | None) -> PublicShape:
        """Of a table; without a length the longest recording's is taken."""
        tasks: dict[str, set[str]] = {}
        for key in seqs.keys:
            tasks.setdefault(key[0], set()).add(task_of(key))
        return cls(
            sorted(seqs.people),
            sorted(set.union(*tasks.values())),
            sorted({key[1:] for key in seqs.keys}),
            max(len(own) for own in tasks.values()),
            int(seqs.lengths.max()) if length is None else length,
            len(seqs.table.columns),
        )


def under_pseudonyms(
    table: FeatureTable, shape: PublicShape, synthetic: Mapping[Cell, Floats]
) -> FeatureTable:
    """Synthetic vectors of each cell, shape (people, length, features), under pseudonyms."""
    people = len(shape.people)
    names = [f"synthetic-{i + 1:0{len(str(people))}}" for i in range(people)]
    keys = Keys.of_recordings(
        [(name, *cell) for name in names for cell in shape.cells],
        [np.arange(shape.length, dtype=np.int64)] * (people * len(shape.cells)),
    )
    stacked = np.stack([synthetic[cell] for cell in shape.cells], axis=1)
    return FeatureTable(stacked.reshape(-1, shape.features), table.columns, keys, table.bounds)


_EMPTY = (
    "its plausible-deniability test passes for every k up to the number of records and every gamma,"
    " because the generator ignores its seed, so that claim is true of any output and protects"
    " nothing; the marginals carry no noise and their outer edges are the extreme values of single"
    " people"
)


@dataclass(frozen=True)
class Marginals(Mechanism[FeatureTable]):
    """Synthetic vectors from histograms of each feature.

    Parameters
    ----------
    k : int
        People (`published`: records) that must be plausible, at least 2.
    gamma : number
        How far probabilities may differ and be called alike; above 1.
    bins : int
        Bins per feature.
    epsilon : number
        Budget of one recording-feature, or of the unit `per` names (`corrected`).
    per : str
        `recording-feature`, `recording` or `user`.
    length : int, optional
        Public number of rows of each synthetic recording (`corrected`); None takes the longest
        recording's and assumes it public.
    reading : str
        `corrected` or `published`.

    Examples
    --------
    >>> print(Marginals(4))
    marginals:k=4,gamma=2,bins=30,epsilon=1,per=recording-feature,reading=corrected
    """

    k: int
    gamma: Number = 2
    bins: int = 30
    epsilon: Number = 1
    per: str = "recording-feature"
    length: int | None = None

    name: ClassVar[str] = "marginals"
    label: ClassVar[str] = "marginals"
    summary: ClassVar[str] = "Draws synthetic features from noisy histograms."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = (
        "David-John et al., For Your Eyes Only (ETRA 2022), after Bindschaedler, Shokri and Gunter"
        " 2017"
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "recording-feature",
            "proved",
            "noisy histograms of equal weight per person, public bins",
        ),
        "published": Claim(
            "none",
            "user",
            "empirical",
            "its plausible-deniability test passes whatever k and gamma are",
        ),
    }

    def check(self) -> None:
        """Store numbers exactly."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        self.store("gamma", exact(self.name, "gamma", self.gamma, above=1))
        self.store("bins", checks.count(self.name, "bins", self.bins, least=2))
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        checks.one_of(self.name, "per", self.per, WHOLE)
        if self.length is not None:
            self.store("length", checks.count(self.name, "length", self.length))

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Synthesise a table; see :class:`Mechanism`.

        Raises
        ------
        DataError
            For a table without rows, fewer than k people or records, no public bounds
            (`corrected`), missing values (`published`).
        """
        seqs = sequences(self.name, data)
        if self.reading == "published":
            return self._published(seqs, seed)
        return self._corrected(seqs, seed)

    # --- as printed
    # ----------------------------------------------------------------------------------------------

    def _published(self, seqs: Sequences, seed: int | None) -> Release[FeatureTable]:
        values = complete_values(self, seqs)
        low, high = values.min(axis=0), values.max(axis=0)
        codes = bin_codes(values, low, high, self.bins)
        draw = generator(source(seed, self.name, "published"))
        parts: list[Floats | None] = [None] * len(seqs.keys)
        sharing = Counter(task for _, task in {(key[0], task_of(key)) for key in seqs.keys})
        for task in sorted(task for task, people in sharing.items() if people > 1):
            mine = [i for i, key in enumerate(seqs.keys) if task_of(key) == task]
            rows = np.concatenate([seqs.rows(i) for i in mine])
            # The probability of a vector is the same for every seed, so all records of the task are
            # plausible.
            if len(rows) < self.k:
                raise DataError(
                    f"No synthetic record of task '{task}' passes the test: it has {len(rows)}"
                    f" records, fewer than k = {self.k}. Choose a smaller k. Nothing was released."
                )
            pmf = histograms(codes[rows], self.bins) / len(rows)
            synthetic = inside(sample_bins(pmf, len(rows), draw), low, high, self.bins, draw)
            for i, part in zip(
                mine, np.split(synthetic, np.cumsum(seqs.lengths[mine])[:-1]), strict=True
            ):
                parts[i] = part
        promise = no_promise(
            self.title,
            _EMPTY,
            (
                "the range of each feature in the data, which is released exactly",
                *TABLE_NOT_COVERED,
                "the length of recordings",
            ),
        )
        notes = {
            **fewest_sharing(self.name, sharing.values(), self.k),
            "suppressed": sum(people == 1 for people in sharing.values()),
        }
        return Release(rebuild_rows(seqs, parts), promise, self.provenance(seed), notes)

    # --- with noise
    # ----------------------------------------------------------------------------------------------

    def _corrected(self, seqs: Sequences, seed: int | None) -> Release[FeatureTable]:
        bounds, raw = public_bounds(self.name, seqs.table), seqs.table.values
        shape = PublicShape.of(seqs, self.length)
        need(self.name, len(shape.people), self.k)
        shares = {
            "recording-feature": 1,
            "recording": shape.features,
            "user": shape.features * shape.most_tasks,
        }
        epsilon = Fraction(self.epsilon) / shares[self.per]
        length = public_length(shape.length, self.length is None)
        guarantee = self._guarantee(shape, epsilon).resting_on(length)
        words = Words(source(seed, self.name))
        codes = bin_codes(raw, bounds[:, 0], bounds[:, 1], self.bins)
        rows = BinnedRows.of(seqs, codes, shape.people, shape.tasks)
        pmfs = self._noisy_pmfs(rows, epsilon, words)
        draw = generator(source(seed, self.name, "sampling"))
        synthetic: dict[Cell, Floats] = {}
        for task, name in enumerate(shape.tasks):
            mine = [cell for cell in shape.cells if (cell[2] or cell[0]) == name]
            size = (len(mine), len(shape.people), shape.length)
            drawn = sample_bins(pmfs[task], math.prod(size), draw)
            values = inside(drawn, bounds[:, 0], bounds[:, 1], self.bins, draw)
            synthetic.update(zip(mine, values.reshape(*size, shape.features), strict=True))
        notes = {
            "clamped": int(np.count_nonzero((raw < bounds[:, 0]) | (raw > bounds[:, 1]))),
            "missing": int(np.count_nonzero(np.isnan(raw))),
            **fewest_sharing(self.name, rows.contributors.tolist(), self.k, least=1),
        }
        return self.released(under_pseudonyms(seqs.table, shape, synthetic), guarantee, seed, notes)

    def _noisy_pmfs(self, rows: BinnedRows, epsilon: Fraction, words: Words) -> Floats:
        """Noisy probabilities, shape (tasks, features, bins)."""
        counts = rows.weights(self.bins)
        noise = discrete_laplace(self._scale(epsilon), counts.size, words).reshape(counts.shape)
        return on_simplex((counts + noise) / (PARTS * rows.contributors[:, None, None]))

    def _scale(self, epsilon: Fraction) -> Fraction:
        scale = 2 * PARTS / epsilon
        if scale > MOST_T:
            least = Fraction(2 * PARTS, MOST_T) * (Fraction(self.epsilon) / epsilon)
            refuse_budget(self.name, "epsilon", self.epsilon, least, "count")
        return scale

    def _guarantee(self, shape: PublicShape, epsilon: Fraction) -> Guarantee:
        draws = tail_delta(epsilon, len(shape.tasks) * shape.features * self.bins)
        return Guarantee(
            "epsilon-dp",
            UnitMap.of("recording-feature", Loss.pure(epsilon, draws))
            .lift("recording", shape.features)
            .lift("user", shape.most_tasks),
            Change(self.per),
            mechanism=self.title,
            assumptions=(
                *PUBLIC,
                f"it is public who has which tasks, and that nobody has more than"
                f" {shape.most_tasks} of them",
                ASSUMPTION,
            ),
            not_covered=(
                "how many people took part, and how many of them had each stimulus, session and"
                " task",
            ),
            reason="proofs/marginals.md",
        )

    def audit_game(self, unit: str | None) -> Game:
        """Noise on one histogram: one person in the first bin against the last."""
        if self.reading == "published":
            description = (
                f"The plausible-deniability test of {self.title} passes for every k up to the"
                " number of records and every gamma: there is nothing to break."
            )
            return Game("user", None, description)
        epsilon = Fraction(self.epsilon)
        codes = [
            (sequences("audit", t), bin_codes(t.values, np.zeros(1), np.ones(1), self.bins))
            for t in neighbours(self.k)
        ]
        counts = [
            BinnedRows.of(seqs, code, sorted(seqs.people), ["s"])
            .weights(self.bins)[0, 0]
            .astype(np.float64)
            for seqs, code in codes
        ]
        scale = self._scale(epsilon)

        def play(side: int, trials: int, seed: int | None) -> Floats:
            words, scores = Words(source(seed, "audit")), []
            for count in batches(trials, self.bins):
                noisy = counts[side] + discrete_laplace(scale, count * self.bins, words).reshape(
                    count, -1
                )
                scores.append((np.abs(noisy - counts[1]) - np.abs(noisy - counts[0])).sum(axis=1))
            return np.concatenate(scores)[:, None]

        t, s = laplace_scale(scale)
        exact = float(Fraction(int(np.abs(counts[0] - counts[1]).sum()) * s, t))
        description = (
            f"{self.k} people, one feature of {ROWS} rows in {self.bins} bins: one of them in"
            " the first against the last bin, before sampling."
        )
        return Game(asked_unit(unit, self.per, WHOLE), float(epsilon), description, play, exact)
