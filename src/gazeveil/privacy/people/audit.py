"""The game for demographics: count how many people share each released record."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.errors import DataError
from gazeveil.privacy.audit.games import Game

if TYPE_CHECKING:
    from gazeveil.privacy.people.demographics import Demographics


_COHORTS = 200


def demographics(mechanism: Demographics, unit: str | None) -> Game:
    """Random cohorts: the smallest group of any release must have k people."""
    rng = np.random.default_rng(0)
    smallest = None
    for _ in range(_COHORTS):
        size = int(rng.integers(mechanism.k, 5 * mechanism.k + 20))
        people = {str(i): {n: _value(n, rng) for n in mechanism.attributes} for i in range(size)}
        try:
            released = mechanism.release(people).data
        except DataError:
            continue  # no partition exists for this cohort, and nothing was released
        sizes = Counter(tuple(sorted((k, str(v)) for k, v in a.items())) for a in released.values())
        smallest = min(sizes.values()) if smallest is None else min(smallest, *sizes.values())
    description = (
        f"{_COHORTS} random cohorts: the smallest group had {smallest} people, k = {mechanism.k} is"
        " claimed."
    )
    broken = "A group is smaller than k." if smallest is not None and smallest < mechanism.k else ""
    return Game("user", None, description, broken=broken)


def _value(name: str, rng: np.random.Generator) -> object:
    if name == "gender":
        return "FM"[int(rng.random() < 0.7)]
    return int(rng.integers(23, 53)) if name == "age" else float(rng.integers(0, 9))
