"""`dp-k-same`: group averages with noise for a whole person, k-anonymity and user-level
differential privacy in one release.

An improvement on `k-same-select`. People are put into random groups of k to 2k - 1, drawn without
looking at the data; every member gets the same noisy average. A person moves one average, by 1/k of
what they would move a release of their own, so at the same epsilon the noise is divided by the size
of the group (microaggregation and noise: Soria-Comas et al. 2014). For differential privacy nothing
else may depend on the data: the length is public, a member without a recording counts as the public
midpoint, and sums are divided by the size of the group.

The average is released as its cosine coefficients with the largest public variance, in whole
numbers, with noise in the l2 norm (:mod:`gazeveil.privacy.tables.dct_knorm`), in one of
two ways:

* `separate`: each stimulus and feature has noise and a share of the budget of its own (the
  exponential profile, or the staircase where that is less);
* `joint`: one vector of K-norm noise for everything of the unit. With B blocks of D coefficients,
  of which a person moves at most B', a coefficient gets variance (B D + 1) B' Delta_2**2 / (k
  epsilon)**2 instead of (D + 1) (B Delta_2)**2 / (k epsilon)**2.

Which of them, and D, have the least expected error for the public spectrum; that spectrum also
shrinks the noisy coefficients (Wiener). All these choices look at public numbers alone. Proof:
proofs/dp-k-same.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.knorm import MOST_DIMENSION
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.dct_knorm import (
    Design,
    NoiseLaw,
    RoundNoise,
    check_size,
    least_error,
    noise_law,
)
from gazeveil.privacy.tables.ksame import fewest_sharing, need, random_groups
from gazeveil.privacy.tables.recordings import (
    PUBLIC,
    STEPS,
    WHOLE,
    Sequences,
    TableLattice,
    lattice,
    public_bounds,
    public_length,
    sequences,
)
from gazeveil.privacy.tables.spectrum import Reals, coefficients, cosine_rows, public_cosine, wiener


@dataclass(frozen=True)
class Sizes:
    """Public numbers of a release.

    Parameters
    ----------
    length, features : int
        Rows and features of a recording.
    cells : int
        Stimuli, sessions and tasks that anybody has.
    recordings : int
        Most recordings of one person.
    """

    length: int
    features: int
    cells: int
    recordings: int


def blocks(sizes: Sizes, per: str) -> tuple[int, int]:
    """How many blocks a unit moves at most, and how many share one vector of joint noise."""
    if per == "recording":
        return sizes.features, sizes.features
    return sizes.features * sizes.recordings, sizes.features * sizes.cells


def shares(sizes: Sizes, per: str) -> int:
    """By how many blocks a unit's budget is shared where noise is separate."""
    return {
        "recording-feature": 1,
        "recording": sizes.features,
        "user": sizes.features * sizes.cells,
    }[per]


@lru_cache(maxsize=256)
def plan(
    sizes: Sizes,
    epsilon: float,
    per: str,
    divisor: int,
    shrink: bool,
    size: int | None = None,
    noise: str | None = None,
) -> Design:
    """The coefficients and the noise with the least expected error of a group's average, for
    averages that follow the public spectrum.

    Parameters
    ----------
    sizes : Sizes
        Of the table.
    epsilon : float
        Budget of the unit.
    per : str
        The unit.
    divisor : int
        By how much the average divides the noise's variance.
    shrink : bool
        Whether coefficients are shrunk.
    size : int, optional
        Number of coefficients where it is given.
    noise : str, optional
        Kind of noise where it is given.
    """

    def law(d: int) -> NoiseLaw | None:
        laws = [] if noise == "joint" else [noise_law(d, epsilon / shares(sizes, per))]
        moved, together = blocks(sizes, per)
        if noise != "separate" and per != "recording-feature" and together * d <= MOST_DIMENSION:
            variance = (together * d + 1) * moved / epsilon**2
            laws.append(NoiseLaw("exponential", 0.0, variance, joint=True))
        return min(laws, key=lambda one: one.variance, default=None)

    best = least_error(sizes.length, law, shrink, size, divisor)
    if best is None:
        checks.refuse(
            "dp-k-same",
            "noise",
            f"separate for tables of this size: joint noise has at most {MOST_DIMENSION} numbers",
            noise,
        )
    return best


NOISE = ("joint", "separate")

SHRINK = ("none", "wiener")

#: Coefficients are below 2**51, and groups have fewer than 2k members: their sums stay below 2**62.
MOST_K = 1 << 10


@dataclass(frozen=True)
class DPKSame(Mechanism[FeatureTable]):
    """Noisy averages of random groups.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    epsilon : number
        Budget at the unit `per`; by default of everything of one person.
    per : {"user", "recording", "recording-feature"}
        What epsilon is the whole budget of.
    length : int, optional
        Public number of rows of a recording; None takes the longest recording's and assumes it
        public.
    D : int, optional
        Cosine coefficients per stimulus and feature; None takes the number with the least expected
        error for the public spectrum.
    noise : {"joint", "separate"}, optional
        None takes the one with the least expected error; there is no joint noise for one
        recording-feature.
    shrink : {"wiener", "none"}
        Shrink noisy coefficients by their public variances.

    Examples
    --------
    >>> print(DPKSame(4, 10))
    dp-k-same:k=4,epsilon=10,per=user,shrink=wiener,reading=corrected
    """

    name: ClassVar[str] = "dp-k-same"
    label: ClassVar[str] = "DP-k-same"
    summary: ClassVar[str] = "Gives k people their mean features with noise."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = (
        "an improvement on k-same-select; Soria-Comas et al. 2014, Hardt and Talwar 2010"
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "user",
            "proved",
            "k-anonymity besides: noise on averages of random groups, divided by k",
        )
    }

    k: int
    epsilon: Number
    per: str = "user"
    length: int | None = None
    D: int | None = None
    noise: str | None = None
    shrink: str = "wiener"

    def check(self) -> None:
        """Store the numbers exactly."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        if self.k > MOST_K:
            checks.refuse(
                self.name,
                "k",
                f"at most {MOST_K}: larger sums do not fit into 64-bit integers",
                self.k,
            )
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        checks.one_of(self.name, "per", self.per, WHOLE)
        for name in ("length", "D"):
            if getattr(self, name) is not None:
                self.store(name, checks.count(self.name, name, getattr(self, name)))
        if self.noise is not None:
            checks.one_of(self.name, "noise", self.noise, NOISE)
            if self.noise == "joint" and self.per == "recording-feature":
                checks.refuse(
                    self.name,
                    "noise",
                    "separate where the budget is for one recording-feature",
                    self.noise,
                )
        checks.one_of(self.name, "shrink", self.shrink, SHRINK)

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Average a table over groups, with noise; see :class:`Mechanism`.

        Raises
        ------
        DataError
            For a table without rows or public bounds, or of fewer than k people.
        """
        work, bounds = self._prepare(data), public_bounds(self.name, data)
        words = Words(source(seed, self.name))
        groups = random_groups(len(work.people), self.k, words)
        steps, delta, assumptions = self._noisy(work, groups, words)
        values = np.clip(work.grid.real(steps.transpose(0, 1, 3, 2)), *bounds.T)
        guarantee = self._guarantee(work.sizes, delta, assumptions)
        # Cells of one contributor stay: leaving them out would tell which recordings there are.
        sharing = (n for group in groups for n in (work.places[group] >= 0).sum(axis=0).tolist())
        notes = {**work.grid.notes(), **fewest_sharing(self.name, sharing, self.k, least=1)}
        return self.released(grouped_table(work, groups, values), guarantee, seed, notes)

    def plan(self, sizes: Sizes) -> Design:
        """What is released for a table of that size; public numbers alone decide."""
        check_size(self.name, self.D, sizes.length)
        return plan(
            sizes,
            float(self.budget),
            self.per,
            self.k**2,
            self.shrink == "wiener",
            self.D,
            self.noise,
        )

    @property
    def budget(self) -> Fraction:
        """Epsilon, exactly."""
        return exact(self.name, "epsilon", self.epsilon)

    def _weights(self, chosen: Design, n: int, variance: float) -> Reals:
        if self.shrink == "none":
            return np.ones(len(chosen.places))
        return wiener(public_cosine(n)[np.array(chosen.places)], variance)

    def _prepare(self, data: FeatureTable) -> TableWork:
        seqs = sequences(self.name, data)
        people = sorted(seqs.people)
        need(self.name, len(people), self.k)
        grid = lattice(self.name, seqs, self.length)
        cells = sorted({key[1:] for key in seqs.keys})
        person, cell = ({name: i for i, name in enumerate(names)} for names in (people, cells))
        places = np.full((len(people), len(cells)), -1, dtype=np.int64)
        for recording, key in enumerate(seqs.keys):
            places[person[key[0]], cell[key[1:]]] = recording
        return TableWork(seqs, grid, people, cells, places)

    def _sums(self, work: TableWork, groups: list[Ints], chosen: Design) -> Ints:
        """Sums over members of the coefficients about the midpoint, shape (groups, cells, features,
        D), in whole numbers.

        Sums of whole numbers are exact: a member's coefficients enter as they would alone, and one
        without the recording adds none.
        """
        sizes, d = work.sizes, len(chosen.places)
        rows = cosine_rows(sizes.length, np.array(chosen.places))
        centred = (work.grid.values - STEPS // 2).transpose(1, 0, 2).reshape(sizes.length, -1)
        whole = coefficients(rows, centred).reshape(d, -1, sizes.features)
        sums = np.zeros((len(groups), sizes.cells, sizes.features, d), dtype=np.int64)
        for g, group in enumerate(groups):
            for cell in range(sizes.cells):
                members_with_data = [r for r in work.places[group, cell].tolist() if r >= 0]
                sums[g, cell] = whole[:, members_with_data].sum(axis=1).T
        return sums

    def _noisy(
        self, work: TableWork, groups: list[Ints], words: Words
    ) -> tuple[Reals, Fraction, tuple[str, ...]]:
        """Averages in grid steps, shape (groups, cells, features, length), what finite arithmetic
        costs, and what the sampler assumes.
        """
        sizes, chosen = work.sizes, self.plan(work.sizes)
        rows = cosine_rows(sizes.length, np.array(chosen.places))
        sums = self._sums(work, groups, chosen)
        noise = self.drawn_noise(chosen, sizes)
        vectors = sums.size // noise.size
        steps = noise.grid.rounded(sums) + noise.draw(vectors, words).reshape(sums.shape)
        noisy = steps.astype(np.float64) * noise.grid.step
        out = np.empty((len(groups), sizes.cells, sizes.features, sizes.length))
        for g, group in enumerate(groups):
            # The weights take the noise that was really drawn, which the grid makes a little larger
            # than planned.
            weights = self._weights(chosen, sizes.length, noise.variance / len(group) ** 2)
            out[g] = (noisy[g] / len(group) * weights) @ rows
        return out + STEPS / 2, noise.delta_num(vectors), noise.assumptions

    def drawn_noise(self, chosen: Design, sizes: Sizes) -> RoundNoise:
        """The noise of a vector: of a block, or where it is joint of all that a unit may move."""
        size, gamma = len(chosen.places), chosen.noise.gamma
        if not chosen.noise.joint:
            epsilon = self.budget / shares(sizes, self.per)
            return RoundNoise.of(self.name, sizes.length, size, epsilon, gamma)
        moved, together = blocks(sizes, self.per)
        return RoundNoise.of(self.name, sizes.length, together * size, self.budget, gamma, moved)

    def _guarantee(self, sizes: Sizes, delta: Fraction, assumptions: tuple[str, ...]) -> Guarantee:
        losses = UnitMap.of(self.per, Loss.pure(self.budget, delta), presence=True)
        if self.per == "recording-feature":
            losses = losses.lift("recording", sizes.features)
        if self.per != "user":
            losses = losses.lift("user", sizes.cells)
        return Guarantee(
            "epsilon-dp",
            losses,
            Change(self.per),
            counts={"k": Fraction(self.k)},
            mechanism=self.title,
            assumptions=(
                *PUBLIC,
                f"it is public that nobody has more than {sizes.recordings} recordings",
                BITS_ASSUMPTION,
                *assumptions,
            ),
            not_covered=("who took part, and which stimuli, sessions and tasks there were",),
            reason="proofs/dp-k-same.md",
        ).resting_on(public_length(sizes.length, self.length is None))

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.tables.ksame import dp_k_same

        return dp_k_same(self, unit)


@dataclass(frozen=True, eq=False)
class TableWork:
    """A table made ready.

    Parameters
    ----------
    seqs, grid
        Recordings, and their whole numbers.
    people : list of str
        Sorted.
    cells : list of (stimulus, session, task)
        Sorted.
    places : array of int64, shape (people, cells)
        Which recording it is, -1 where there is none.
    """

    seqs: Sequences
    grid: TableLattice
    people: list[str]
    cells: list[tuple[str, str, str]]
    places: Ints

    @property
    def sizes(self) -> Sizes:
        """The public numbers."""
        return Sizes(
            self.grid.length,
            len(self.seqs.table.columns),
            len(self.cells),
            self.seqs.most_recordings(),
        )


def grouped_table(work: TableWork, groups: list[Ints], values: Reals) -> FeatureTable:
    """Every member's copy of their group's values, shape (groups, cells, length, features)."""
    of = np.empty(len(work.people), dtype=np.int64)
    for g, group in enumerate(groups):
        of[group] = g
    length, features = values.shape[2:]
    keys = [(person, *cell) for person in work.people for cell in work.cells]
    indices = [np.arange(length, dtype=np.int64)] * len(keys)
    table = work.seqs.table
    return FeatureTable(
        values[of].reshape(-1, features),
        table.columns,
        Keys.of_recordings(keys, indices),
        table.bounds,
    )
