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
test is kept as printed (k people must take part), or `pd="randomised"` makes it mean something:
each vector takes its first `kept` features from a seed record, the test has a random threshold, and
all its candidates are charged.

proofs/marginals.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.composition import TogetherMap
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.noise.exact import MOST_T, discrete_laplace, refuse_budget, tail_delta
from gazeveil.privacy.plausible_deniability import (
    cell_width,
    charge_candidates,
    deterministic_pass,
    plausible_counts,
    randomised_pass,
)
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, source
from gazeveil.privacy.randomness.uniform import generator, uniform_below
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.exponential import complete_values
from gazeveil.privacy.tables.groups.partition import need
from gazeveil.privacy.tables.marginals.histograms import (
    PARTS,
    BinnedRows,
    Cell,
    PublicShape,
    bin_codes,
    histograms,
    inside,
    on_simplex,
    sample_bins,
    under_pseudonyms,
)
from gazeveil.privacy.tables.sequences.recordings import (
    TABLE_NOT_COVERED,
    WHOLE,
    Sequences,
    public_bounds,
    rebuild_rows,
    sequences,
    task_of,
)
from gazeveil.privacy.tables.sequences.table_guarantee import PUBLIC, public_length

#: Plausible-deniability tests.
TESTS = ("deterministic", "randomised")

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
    pd : str
        `deterministic`, the test as printed; or `randomised` (`corrected` alone).
    kept : int
        `randomised`: how many features, the first ones, come from a seed record.
    epsilon0 : number
        `randomised`: budget of one threshold.
    delta : number
        `randomised`: limit of delta.
    reading : str
        `corrected` or `published`.

    Examples
    --------
    >>> Marginals(4).claim.definition, Marginals(4, pd="randomised").claim.definition
    ('epsilon-dp', 'epsilon-delta-dp')
    """

    k: int
    gamma: Number = 2
    bins: int = 30
    epsilon: Number = 1
    per: str = "recording-feature"
    length: int | None = None
    pd: str = "deterministic"
    kept: int = 1
    epsilon0: Number = 1
    delta: Number = Fraction(1, 10**6)

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
        for name in ("epsilon", "epsilon0", "delta"):
            self.store(name, exact(self.name, name, getattr(self, name), above=0))
        if self._exact("delta") > 1:
            checks.refuse(self.name, "delta", "at most 1: it is a probability", self.delta)
        checks.one_of(self.name, "per", self.per, WHOLE)
        checks.one_of(self.name, "pd", self.pd, TESTS)
        self.store("kept", checks.count(self.name, "kept", self.kept))
        if self.length is not None:
            self.store("length", checks.count(self.name, "length", self.length))
        if self.reading == "published" and self.pd != "deterministic":
            checks.refuse(
                self.name,
                "pd",
                "deterministic in the published reading",
                self.pd,
                "Use reading='corrected'.",
            )

    @property
    def claim(self) -> Claim:
        """The randomised test has a delta, and its unit is the person."""
        if self.reading == "corrected" and self.pd == "randomised":
            return Claim(
                "epsilon-delta-dp",
                "user",
                "proved",
                "noisy histograms, and seed records under a random threshold",
            )
        return super().claim

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
        parts: list[Floats] = [np.empty((0, 0))] * len(seqs.keys)
        for task in sorted({task_of(key) for key in seqs.keys}):
            mine = [i for i, key in enumerate(seqs.keys) if task_of(key) == task]
            rows = np.concatenate([seqs.rows(i) for i in mine])
            # The probability of a vector is the same for every seed, so all records of the task are
            # plausible.
            if not deterministic_pass(len(rows), self.k):
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
        return Release(rebuild_rows(seqs, parts), promise, self.provenance(seed))

    # --- with noise
    # ----------------------------------------------------------------------------------------------

    def _corrected(self, seqs: Sequences, seed: int | None) -> Release[FeatureTable]:
        bounds, raw = public_bounds(self.name, seqs.table), seqs.table.values
        shape = PublicShape.of(seqs, self.length)
        need(self.name, len(shape.people), self.k)
        if self.pd == "randomised" and self.kept > shape.features:
            checks.refuse(
                self.name,
                "kept",
                f"at most {shape.features}, the number of features",
                self.kept,
                "Nothing was released.",
            )
        shares = {
            "recording-feature": 1,
            "recording": shape.features,
            "user": shape.features * shape.most_tasks,
        }
        epsilon = self._exact("epsilon") / shares[self.per]
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
            if self.pd == "randomised":
                self._seeded(drawn, rows, task, pmfs[task], words)
            values = inside(drawn, bounds[:, 0], bounds[:, 1], self.bins, draw)
            synthetic.update(zip(mine, values.reshape(*size, shape.features), strict=True))
        notes = {
            "clamped": int(np.count_nonzero((raw < bounds[:, 0]) | (raw > bounds[:, 1]))),
            "missing": int(np.count_nonzero(np.isnan(raw))),
        }
        table = under_pseudonyms(seqs.table, shape, synthetic)
        return self.released(table, guarantee, seed, notes)

    def _noisy_pmfs(self, rows: BinnedRows, epsilon: Fraction, words: Words) -> Floats:
        """Noisy probabilities, shape (tasks, features, bins)."""
        counts = rows.weights(self.bins)
        noise = discrete_laplace(self._scale(epsilon), counts.size, words).reshape(counts.shape)
        people = np.array([np.unique(rows.person[rows.task == t]).size for t in range(rows.tasks)])
        return on_simplex((counts + noise) / (PARTS * people[:, None, None]))

    def _exact(self, name: str) -> Fraction:
        return exact(self.name, name, getattr(self, name))

    def _scale(self, epsilon: Fraction) -> Fraction:
        scale = 2 * PARTS / epsilon
        if scale > MOST_T:
            least = Fraction(2 * PARTS, MOST_T) * (self._exact("epsilon") / epsilon)
            refuse_budget(self.name, "epsilon", self.epsilon, least, "count")
        return scale

    def _guarantee(self, shape: PublicShape, epsilon: Fraction) -> Guarantee:
        assumptions = (
            *PUBLIC,
            f"it is public who has which tasks, and that nobody has more than {shape.most_tasks} of"
            " them",
            ASSUMPTION,
        )
        not_covered = (
            "how many people took part, and how many of them had each stimulus, session and task",
        )
        draws = tail_delta(epsilon, len(shape.tasks) * shape.features * self.bins)
        of_histograms = (
            UnitMap.of("recording-feature", Loss.pure(epsilon, draws))
            .lift("recording", shape.features)
            .lift("user", shape.most_tasks)
        )
        common: dict[str, Any] = {
            "mechanism": self.title,
            "assumptions": assumptions,
            "not_covered": not_covered,
        }
        if self.pd == "deterministic":
            return Guarantee(
                "epsilon-dp",
                of_histograms,
                Change(self.per),
                reason="proofs/marginals.md",
                **common,
            )
        tests, delta = charge_candidates(
            self.k,
            self._exact("gamma"),
            self._exact("epsilon0"),
            len(shape.people),
            shape.candidates,
            self._exact("delta"),
        )
        together = TogetherMap((of_histograms, UnitMap.of("user", Loss.approximate(tests, delta))))
        parts = (
            ("the histograms alone", Loss.pure(epsilon * shape.features * shape.most_tasks)),
            (f"the tests of {shape.candidates} candidates alone", Loss.approximate(tests, delta)),
        )
        return Guarantee(
            "epsilon-delta-dp",
            together,
            Change.person(),
            also=parts,
            reason="proofs/marginals.md",
            **common,
        )

    def _seeded(self, drawn: Ints, rows: BinnedRows, task: int, pmf: Floats, words: Words) -> None:
        """Put the first features of seed records into the vectors that pass the randomised test, in
        place.
        """
        seed_features = rows.codes[:, : self.kept]
        whole = (rows.task == task) & (seed_features >= 0).all(axis=1)
        person = rows.person[whole]
        kinds, kind = np.unique(seed_features[whole], axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        counts = np.bincount(person, minlength=rows.people)
        share = np.zeros((rows.people, max(len(kinds), 1)))
        np.add.at(share, (person, kind), 1.0)
        share /= np.maximum(counts, 1)[:, None]
        order = np.argsort(person, kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts)))[:-1]
        with np.errstate(divide="ignore"):
            log_share, log_pmf = np.log(share), np.log(pmf)
        n = len(drawn)
        anyhow = uniform_below(np.full(n, rows.people), words) == 0
        seed = uniform_below(np.full(n, rows.people), words)
        record = uniform_below(np.maximum(counts[seed], 1), words)
        able = (counts[seed] > 0) & ~anyhow
        chosen = np.zeros(n, dtype=np.int64)
        if len(order):
            chosen = kind[order[np.minimum(starts[seed] + record, len(order) - 1)]]
        rest = log_pmf[np.arange(self.kept, pmf.shape[0]), drawn[:, self.kept :]].sum(axis=1)
        passed = np.zeros(n, dtype=np.bool_)
        for start in range(0, n, 1 << 14):  # candidates x people at a time
            part = slice(start, start + (1 << 14))
            log_p = log_share[:, chosen[part]].T + rest[part, None]
            passed[part] = randomised_pass(
                plausible_counts(log_p, seed[part], cell_width(self._exact("gamma"))),
                self.k,
                self._exact("epsilon0"),
                words,
            )
        used = able & passed
        drawn[used, : self.kept] = kinds[chosen[used]]

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.marginals.audit import marginals

        return marginals(self, unit)
