"""The game of a claim of k-anonymity: how many people share one released record, over random
cohorts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import numpy as np

from gazeveil.privacy.audit.games import Game, asked_unit


def sharing_game(
    k: int,
    unit: str | None,
    noun: str,
    cohorts: int,
    tasks: tuple[int, str],
    records: Callable[[int, int, int, np.random.Generator], Iterable[Hashable]],
) -> Game:
    """Count the people who share a record: at least k, over many cohorts.

    Parameters
    ----------
    k : int
        The claim.
    unit : str or None
        What was asked for.
    noun : str
        What people share, for the description.
    cohorts : int
        Most cohorts, see :func:`how_many`.
    tasks : tuple of int and str
        Most tasks or stimuli of a person, and what they are called.
    records : callable
        Trial, number of people, number of tasks and a generator to one record per person.
    """
    audited = asked_unit(unit, "user", ("user",))
    rng = np.random.default_rng(0)
    cohorts = how_many(cohorts, k)
    smallest = 4 * k
    for trial in range(cohorts):
        people, count = int(rng.integers(k, 4 * k)), int(rng.integers(1, tasks[0] + 1))
        smallest = min(smallest, *Counter(records(trial, people, count, rng)).values())
    description = (
        f"{cohorts} random cohorts with 1 to {tasks[0]} {tasks[1]} and unequal lengths: the"
        f" smallest number of people with one {noun} is {smallest}, k = {k} is claimed."
    )
    broken = f"A {noun} is shared by fewer than k people." if smallest < k else ""
    return Game(audited, None, description, broken=broken)


def how_many(most: int, k: int) -> int:
    """Cohorts of a game: fewer where k and with it a cohort is large, so that an audit ends in a
    reasonable time.
    """
    return max(2, min(most, most * 20 // k))
