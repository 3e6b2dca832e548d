"""Games: neighbouring inputs for one mechanism, and what its outputs say about them.

A game brings its own worst neighbouring pair and needs no data. `play` releases each side many
times and returns statistics; `exact` gives the worst ratio of probabilities where it can be
computed. A mechanism brings its own: :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`.

"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.loss import Change, PromiseError

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
