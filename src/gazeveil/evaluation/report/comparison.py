"""What a strongest attacker is the strongest of, what is left of it without the luck of the choice,
and how it stands beside the papers' RBF network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NetworkComparison:
    """The strongest attacker of a release without the luck of choosing it, and beside the RBF
    network; rates are fractions of 1, NaN where they were not measured.

    Parameters
    ----------
    chosen, chosen_low, chosen_high : float
        Rate of whoever is the strongest on the other repetitions.
    network : float
        Rate of the RBF network at its best.
    difference, low, high : float
        Strongest less network, person by person, with its 95 % interval over people.
    chosen_difference, chosen_difference_low, chosen_difference_high : float
        The same of the chosen one.
    called_safe, chosen_called_safe : bool
        Whether the network alone would have called the release safe, where the strongest (the
        chosen one) shows that it is not.
    """

    chosen: float
    chosen_low: float
    chosen_high: float
    network: float
    difference: float
    low: float
    high: float
    chosen_difference: float
    chosen_difference_low: float
    chosen_difference_high: float
    called_safe: bool
    chosen_called_safe: bool


def strongest_of(count: str, battery: str) -> str:
    """What a strongest attacker is the strongest of.

    Examples
    --------
    >>> strongest_of("7", "strong battery"), strongest_of("1", "")
    ('strongest of 7 attackers tried (strong battery)', 'only attacker tried')
    """
    words = "only attacker tried" if count == "1" else f"strongest of {count} attackers tried"
    return words + (f" ({battery})" if battery else "")


def comparison_of(row: Mapping[str, Any]) -> NetworkComparison:
    """From a row of :meth:`gazeveil.evaluation.results.Results.strongest_against`."""
    columns = {
        **{f"chosen{end}": f"chosen{end}" for end in ("", "_low", "_high")},
        **{name: f"difference_{name}" for name in ("low", "high")},
        **{f"chosen_difference{end}": f"chosen_difference{end}" for end in ("", "_low", "_high")},
        "difference": "difference",
        "network": "other_value",
    }
    return NetworkComparison(
        **{name: number_of(row[column]) for name, column in columns.items()},
        called_safe=bool(row["called_safe"]),
        chosen_called_safe=bool(row["chosen_called_safe"]),
    )


def number_of(value: object) -> float:
    """A number of a table; NaN where there is none."""
    return float(value) if isinstance(value, int | float) else math.nan
