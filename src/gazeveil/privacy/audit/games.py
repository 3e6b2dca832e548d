"""Games: neighbouring inputs for one mechanism, and what its outputs say about them.

A game brings its own worst neighbouring pair and needs no data. `play` releases each side many
times and returns statistics; `exact` gives the worst ratio of probabilities where it can be
computed. A mechanism brings its own: :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`.

What a release claims for a change, where some thousand releases can show it false.

The game of a claim of k-anonymity: how many people share one released record, over random
cohorts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import PromiseError

#: The screen that games are played on.
GAME_SCREEN = Screen(1920, 1080, 1600.0, 900.0, 400.0)

#: Delta at which losses that have no epsilon of their own are judged.
DELTA = Fraction(1, 10**6)

#: `play(side, trials, seed)` -> statistics, shape (trials, statistics); side 0 or 1.
Play: TypeAlias = Callable[[int, int, int | None], Floats]


@dataclass(frozen=True)
class Game:
    """One neighbouring pair.

    Parameters
    ----------
    unit : str
        What the two inputs differ in.
    claimed : float or None
        Epsilon claimed at that unit.
    description : str
        The pair, in a sentence.
    play : callable, optional
        Releases one side; see :data:`Play`.
    exact : float, optional
        The worst log ratio over reachable outputs, infinity where supports differ.
    delta : float
        Delta of the claim.
    broken : str
        For claims without epsilon: how the claim was seen broken, empty if it was not.
    """

    unit: str
    claimed: float | None
    description: str
    play: Play | None = field(default=None, repr=False)
    exact: float | None = None
    delta: float = 0.0
    broken: str = ""


def asked_unit(unit: str | None, claimed: str, allowed: tuple[str, ...]) -> str:
    """The unit to audit at: the one asked for, or the claim's.

    Raises
    ------
    ParameterError
        For a unit whose neighbours the game does not have: a verdict about another unit's pair
        would be a false one.
    """
    return claimed if unit is None else checks.one_of("audit", "unit", unit, allowed)


def claim_of(
    guarantee: Guarantee, change: Change, most_epsilon: float = 5.0
) -> tuple[float, float] | None:
    """Epsilon and delta that a promise bounds a change by; None where it has no bound, or one above
    the most that releases could show.
    """
    try:
        loss = guarantee.map(change)
        delta = Fraction(0) if loss.measure == "pure" else max(DELTA, loss.delta)
        epsilon = float(loss.epsilon_at(delta))
    except PromiseError:
        return None
    return (epsilon, float(delta + loss.delta_num)) if epsilon <= most_epsilon else None


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
