"""The headline of a release, and how it stands beside the papers' RBF network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Headline:
    """What stands over a release; rates are fractions of 1, NaN where they were not measured.

    Parameters
    ----------
    chosen, chosen_low, chosen_high : float
        Rate of whoever is the strongest on the other repetitions, with its interval over people.
    p_value : float
        How often the best of all attackers does as well where names are dealt anew.
    guessed : float
        The largest rate of the best that these people could not tell from guessing.
    other_value : float
        Rate of the RBF network at its best.
    difference, difference_low, difference_high : float
        The headline less the network, person by person, with its interval over people.
    called_safe : bool
        Whether the network alone would have called the release safe, where the battery shows that
        it is not.
    """

    chosen: float
    chosen_low: float
    chosen_high: float
    p_value: float
    guessed: float
    other_value: float
    difference: float
    difference_low: float
    difference_high: float
    called_safe: bool


def strongest_of(count: str, battery: str) -> str:
    """What a strongest attacker is the strongest of.

    Examples
    --------
    >>> strongest_of("7", "strong battery"), strongest_of("1", "")
    ('strongest of 7 attackers (strong battery)', 'only attacker tried')
    """
    words = "only attacker tried" if count == "1" else f"strongest of {count} attackers"
    return words + (f" ({battery})" if battery else "")


def headline_of(row: Mapping[str, Any]) -> Headline:
    """From a row of :meth:`gazeveil.evaluation.results.Results.strongest_against`."""
    numbers = {f.name: number_of(row[f.name]) for f in fields(Headline) if f.name != "called_safe"}
    return Headline(**numbers, called_safe=bool(row["called_safe"]))


def number_of(value: object) -> float:
    """A number of a table; NaN where there is none."""
    return float(value) if isinstance(value, int | float) else math.nan
