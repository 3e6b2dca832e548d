"""k-same-select on sequences of feature vectors ("For Your Eyes Only", ETRA 2022, after Gross et
al. 2005): groups get their average.

`published`: for each task (each stimulus where no task is named) the people who have it are put
into random groups of k, the last one holding the remainder; sequences are padded by their last
vector, averaged index by index, and every person gets the group's average at their own length.
A cell (one group at one stimulus, session and task) with one contributor is left out: nothing was
averaged there, and the paper assumes data of at least k.
Refuted: groups change from task to task, and only the person is in all of theirs.

`corrected`, for N >= k people:

1. one partition of all people for everything, in floor(N / k) groups of k to 2k - 1;
2. for each group and each stimulus, session and task: if fewer than k members have it, it is left
   out for the whole group;
3. its length is the k-th largest of the members' lengths, and each of its vectors is the mean over
   the members who have that vector, so at least k contribute (a single value fewer than k have
   measured becomes the public midpoint);
4. every member gets the same array, those without data too.

Nothing then tells the members of a group apart: proofs/k-same-select.md.

Games for groups of people: `dp-k-same` with one member replaced, and who shares a record of
`k-same-select`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.audit.people import crowd_game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, shuffled, source
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.exponential import complete_values
from gazeveil.privacy.tables.recordings import (
    ROWS,
    WHOLE,
    Reals,
    Sequences,
    batches,
    neighbours,
    rebuild_rows,
    sequences,
    task_of,
)

if TYPE_CHECKING:
    from gazeveil.privacy.tables.dp_ksame import DPKSame


def need(owner: str, people: int, k: int) -> None:
    """Refuse a table of fewer than k people."""
    if people < k:
        raise DataError(
            f"{owner} with k = {k} needs at least {k} people, and this table has {people}. Choose a"
            " smaller k. Nothing was released."
        )


def fewest_sharing(owner: str, sharing: Iterable[int], k: int, least: int = 2) -> dict[str, int]:
    """How many people share a released cell (one group at one stimulus, session and task), at
    least and at most, for the curator; cells of fewer than `least` are not released.

    Raises
    ------
    DataError
        Where no cell is shared.
    """
    counts = [count for count in sharing if count >= least]
    if not counts:
        raise DataError(
            f"{owner} with k = {k} releases what people of a group have in common, and here one"
            " person at most shares a stimulus, session and task with a group. Give recordings that"
            " belong together the same names. Nothing was released."
        )
    return {"fewest_sharing": min(counts), "most_sharing": max(counts)}


def random_groups(people: int, k: int, words: Words) -> list[Ints]:
    """A random partition of 0, ..., people - 1 into floor(people / k) groups of k to 2k - 1.

    The shuffled list is dealt out in turn, so sizes differ by at most one; they depend on the two
    numbers alone.
    """
    order = shuffled(people, words)
    groups = people // k
    return [np.sort(order[g::groups]) for g in range(groups)]


def blocks(people: int, k: int, words: Words) -> list[Ints]:
    """The shuffled list cut into blocks of k; the last block has what is left, be it one person."""
    order = shuffled(people, words)
    return [np.sort(order[start : start + k]) for start in range(0, people, k)]


#: Stimulus, session and task.
Cell = tuple[str, str, str]


_REFUTED = (
    "groups are drawn anew for each task and only the person is in all of theirs, so averaging over"
    " tasks finds them (at k = 4 of 20 people, in a model, 65 % after 3 tasks);"
    " the last group may have fewer than k members, a stimulus that some members did not see is"
    " shared by fewer, and each person keeps their own length"
)

_NOT_COVERED = (
    "what all members of a group have in common",
    "which stimuli a group saw, and how long its sequences are",
    "somebody who knows the other members' raw data and can subtract it",
    "a second release about the same people with another partition",
)


@dataclass(frozen=True)
class KSameSelect(Mechanism[FeatureTable]):
    """Replace each person's sequences by the average of a group.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    reading : str
        `corrected` or `published`.

    Examples
    --------
    >>> print(KSameSelect(4))
    k-same-select:k=4,reading=corrected
    """

    k: int

    name: ClassVar[str] = "k-same-select"
    label: ClassVar[str] = "k-same-select"
    summary: ClassVar[str] = "Gives k people the same features, taken from one of them."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = (
        "David-John et al., For Your Eyes Only (ETRA 2022), after Gross et al. 2005"
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "k-anonymity",
            "user",
            "proved",
            "one partition for everything, at least k contributors to every vector",
        ),
        "published": Claim(
            "k-anonymity", "user", "refuted", "groups redrawn per task single people out"
        ),
    }

    def check(self) -> None:
        """Check the size of groups."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        """Average a table over groups; see :class:`Mechanism`.

        Raises
        ------
        DataError
            For a table without rows, fewer than k people, or nothing that k members of a group have
            in common.
        """
        seqs = sequences(self.name, data)
        need(self.name, len(seqs.people), self.k)
        words = Words(source(seed, self.name, self.reading))
        if self.reading == "published":
            return self._published(seqs, words, seed)
        return self._corrected(seqs, words, seed)

    def partition(self, data: FeatureTable, seed: int | None = None) -> list[tuple[str, ...]]:
        """A partition as `corrected` draws it: for tests and for reuse in a release of one's own.
        Groups are drawn anew on each call.
        """
        seqs = sequences(self.name, data)
        need(self.name, len(seqs.people), self.k)
        people = sorted(seqs.people)
        words = Words(source(seed, self.name, "corrected"))
        return [
            tuple(people[i] for i in group) for group in random_groups(len(people), self.k, words)
        ]

    def _guarantee(self) -> Guarantee:
        return Guarantee(
            "k-anonymity",
            counts={"k": Fraction(self.k)},
            mechanism=self.title,
            assumptions=("the release is the only one made about these people", ASSUMPTION),
            not_covered=_NOT_COVERED,
            reason="proofs/k-same-select.md",
        )

    def _corrected(self, seqs: Sequences, words: Words, seed: int | None) -> Release[FeatureTable]:
        people = sorted(seqs.people)
        values, notes = _within_bounds(seqs)
        where = {key: i for i, key in enumerate(seqs.keys)}
        cells = sorted({key[1:] for key in seqs.keys})
        averages: dict[str, list[tuple[Cell, Floats]]] = {}
        suppressed = 0
        sharing: list[int] = []
        for group in random_groups(len(people), self.k, words):
            members = [people[i] for i in group]
            released = []
            for cell in cells:
                members_with_data = [where[(p, *cell)] for p in members if (p, *cell) in where]
                if len(members_with_data) < self.k:
                    suppressed += bool(members_with_data)
                    continue
                sharing.append(len(members_with_data))
                released.append((cell, self._average(seqs, values, members_with_data)))
            averages.update(dict.fromkeys(members, released))
        recordings = [((p, *cell), array) for p in people for cell, array in averages[p]]
        if not recordings:
            raise DataError(
                f"No stimulus, session and task has data of {self.k} members of one group. Choose a"
                " smaller k, or give recordings that belong together the same names. Nothing was"
                " released."
            )
        table = FeatureTable(
            np.concatenate([a for _, a in recordings]),
            seqs.table.columns,
            Keys.of_recordings(
                [key for key, _ in recordings],
                [np.arange(len(a), dtype=np.int64) for _, a in recordings],
            ),
            seqs.table.bounds,
        )
        notes |= {**fewest_sharing(self.name, sharing, self.k), "suppressed": suppressed}
        return self.released(table, self._guarantee(), seed, notes)

    def _average(self, seqs: Sequences, values: Floats, members_with_data: list[int]) -> Floats:
        """The group's array for one cell: means over members who have the vector, at least k of
        them.
        """
        length = int(np.sort(seqs.lengths[members_with_data])[-self.k])
        total = np.zeros((length, values.shape[1]))
        count = np.zeros(total.shape, dtype=np.int64)
        for recording in members_with_data:
            part = values[seqs.rows(recording)[:length]]
            finite = np.isfinite(part)
            total[: len(part)] += np.where(finite, part, 0.0)
            count[: len(part)] += finite
        mean = total / np.maximum(count, 1)
        few = count < self.k
        if few.any():
            if seqs.table.bounds is None:
                raise DataError(
                    f"{self.name} fills a value that fewer than k members have measured with the"
                    " public midpoint, and this table has no bounds. Give them with"
                    " table.with_bounds, or use table.complete() first. Nothing was released."
                )
            mean = np.where(few, seqs.table.bounds.mean(axis=1), mean)
        return mean

    def _published(self, seqs: Sequences, words: Words, seed: int | None) -> Release[FeatureTable]:
        values = complete_values(self, seqs)
        where = {key: i for i, key in enumerate(seqs.keys)}
        parts: list[Floats | None] = [None] * len(seqs.keys)
        sharing: list[int] = []
        for task in sorted({task_of(key) for key in seqs.keys}):
            mine = [key for key in seqs.keys if task_of(key) == task]
            people = sorted({key[0] for key in mine})
            for block in blocks(len(people), self.k, words):
                for cell in sorted({key[1:] for key in mine}):
                    members_with_data = [
                        where[(people[i], *cell)] for i in block if (people[i], *cell) in where
                    ]
                    sharing.append(len(members_with_data))
                    if len(members_with_data) < 2:
                        continue
                    longest = max(int(seqs.lengths[r]) for r in members_with_data)
                    total = np.zeros((longest, values.shape[1]))
                    for recording in members_with_data:
                        rows = seqs.rows(recording)
                        total += values[np.append(rows, np.full(longest - len(rows), rows[-1]))]
                    for recording in members_with_data:
                        parts[recording] = total[: seqs.lengths[recording]] / len(members_with_data)
        notes = {**fewest_sharing(self.name, sharing, self.k), "suppressed": sharing.count(1)}
        promise = self._guarantee().with_status("refuted", _REFUTED)
        return Release(rebuild_rows(seqs, parts), promise, self.provenance(seed), notes)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return crowd_game(self, unit)


def _within_bounds(seqs: Sequences) -> tuple[Floats, dict[str, int]]:
    """Values clamped to the public bounds where the table has them, and counts for the curator."""
    values, bounds = seqs.table.values, seqs.table.bounds
    notes = {"clamped": 0, "missing": int(np.count_nonzero(np.isnan(values)))}
    if bounds is None:
        return values, notes
    inside = np.clip(values, bounds[:, 0], bounds[:, 1])
    notes["clamped"] = (
        int(np.count_nonzero(inside != values)) - notes["missing"]
    )  # NaN differs from itself
    return inside, notes


def dp_k_same(mechanism: DPKSame, unit: str | None) -> Game:
    """Round noise on the sum of a group of k: one member all 0 against all 1, which moves it by the
    whole sensitivity.
    """
    audited = asked_unit(unit, mechanism.per, WHOLE)
    tables = neighbours(mechanism.k)
    works = [mechanism._prepare(table) for table in tables]
    sizes = works[0].sizes
    chosen = mechanism.plan(sizes)
    group = [np.arange(mechanism.k)]
    noise = mechanism.drawn_noise(chosen, sizes)
    ends = [
        noise.grid.rounded(mechanism._sums(work, group, chosen)).astype(np.float64).reshape(-1)
        for work in works
    ]

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, scores = Words(source(seed, "audit")), []
        for count in batches(trials, 10 * len(ends[0])):
            noisy = ends[side] + noise.draw(count, words)
            near, far = (np.linalg.norm(noisy - end, axis=1) for end in ends)
            scores.append(np.stack((far - near, noisy @ (ends[0] - ends[1])), axis=1))
        return np.concatenate(scores)

    budget = mechanism.budget  # one feature of one recording: nothing shares the budget
    records = [mechanism.release(t, seed=1).data.values.reshape(mechanism.k, -1) for t in tables]
    alike = all((r == r[0]).all() for r in records)
    description = (
        f"A group of {mechanism.k} people, one feature of {ROWS} rows: one person all 0 against all"
        f" 1. D = {len(chosen.places)}, {chosen.noise.profile} noise."
    )
    broken = "" if alike else "Members of one group have different records."
    return Game(audited, float(budget), description, play, noise.loss(*ends), broken=broken)
