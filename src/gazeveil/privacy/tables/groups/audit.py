"""Games for groups of people: `dp-k-same` with one member replaced, and who shares a record of
`k-same-select`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.audit.sharing import sharing_game
from gazeveil.privacy.noise.shells import shells
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.tables.audit_tables import ROWS, Reals, batches, neighbours
from gazeveil.privacy.tables.sequences.recordings import WHOLE

if TYPE_CHECKING:
    from gazeveil.privacy.tables.groups.dp_ksame import DPKSame
    from gazeveil.privacy.tables.groups.ksame import KSameSelect


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
    grid = mechanism._draw(chosen, sizes, 1, Words(source(1, "audit")))[0]
    ends = [
        grid.rounded(mechanism._sums(work, group, chosen)).astype(np.float64).reshape(-1)
        for work in works
    ]

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, scores = Words(source(seed, "audit")), []
        for count in batches(trials, 10 * len(ends[0])):
            noise = mechanism._draw(chosen, sizes, count, words)[1].reshape(count, -1)
            noisy = ends[side] + noise
            near, far = (np.linalg.norm(noisy - end, axis=1) for end in ends)
            scores.append(np.stack((far - near, noisy @ (ends[0] - ends[1])), axis=1))
        return np.concatenate(scores)

    budget = mechanism.budget  # one feature of one recording: nothing shares the budget
    if chosen.profile == "staircase":
        exact = shells(len(chosen.places), budget, grid.sensitivity, chosen.gamma).least_loss
    else:
        # The density of noise that is rounded lies within half a diagonal of that of the noise
        # itself; in one dimension it is discrete from the start.
        diagonal = math.sqrt(len(ends[0])) if len(ends[0]) > 1 else 0.0
        apart = max(0.0, float(np.linalg.norm(ends[0] - ends[1])) - diagonal)
        exact = apart / grid.sensitivity * float(budget)
    records = [mechanism.release(t, seed=1).data.values.reshape(mechanism.k, -1) for t in tables]
    alike = all((r == r[0]).all() for r in records)
    description = (
        f"A group of {mechanism.k} people, one feature of {ROWS} rows: one person all 0 against all"
        f" 1. D = {len(chosen.places)}, {chosen.profile} noise."
    )
    broken = "" if alike else "Members of one group have different records."
    return Game(audited, float(budget), description, play, exact, broken=broken)


def k_same(mechanism: KSameSelect, unit: str | None) -> Game:
    """Count the people whose whole released record is the same."""

    def records(
        trial: int, people: int, tasks: int, rng: np.random.Generator
    ) -> Iterable[tuple[bytes, ...]]:
        keys = [(f"p{p}", f"s{t}", "1", f"t{t}") for p in range(people) for t in range(tasks)]
        parts = [rng.random((int(rng.integers(3, 9)), 2)) for _ in keys]
        index = [np.arange(len(part), dtype=np.int64) for part in parts]
        table = FeatureTable(
            np.concatenate(parts),
            ("a", "b"),
            Keys.of_recordings(keys, index),
            np.array([[0.0, 1.0]] * 2),
        )
        out = mechanism.release(table, seed=trial).data
        names, owner = np.unique(out.keys.person, return_inverse=True)
        for person in range(len(names)):
            rows = np.flatnonzero(owner == person)
            columns = (out.keys.stimulus, out.keys.index)
            yield out.values[rows].tobytes(), *(repr(c[rows].tolist()).encode() for c in columns)

    return sharing_game(mechanism.k, unit, "record", 30, (4, "tasks"), records)
