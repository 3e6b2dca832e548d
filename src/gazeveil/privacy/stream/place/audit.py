"""The game of mechanisms that tell a place once: looks at one cell, again and again with looks
elsewhere between them, against looks at another cell.

If each look had noise of its own, the mean of all would tell the cell; if two cells shared their
noise, their difference would. So both are what the attacker looks at, besides one look alone, which
is best against honest noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.audit.games import DELTA, Game, asked_unit
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.randomness.supply import derived_seed

if TYPE_CHECKING:
    from gazeveil.privacy.stream.place.mechanism import GaussianPlace


_RATE_HZ = 100.0
_VISITS, _SAMPLES = 16, 2
_AT_ONCE = 2000  # streams held at a time
_ELSEWHERE_DEG = -60.0


def two_cells(
    mechanism: GaussianPlace, space: Any, near_deg: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Centres of the cell of a place and of one to its right, at most r away, or the next one where
    r is less than a cell.
    """
    grid = mechanism.grid(space)
    first = grid.centre_of(grid.index(*near_deg))
    steps = max(1, math.floor(float(mechanism.r_deg) / grid.column_deg))
    return first, grid.centre_of(grid.index(first[0] + steps * grid.column_deg, first[1]))


def evidence(there: Floats, elsewhere: Floats) -> Floats:
    """Of x released at the place and elsewhere, shape (trials, samples): one look, the mean of all,
    and how far the two are apart.
    """
    return np.stack((there[:, 0], there.mean(axis=1), there[:, 0] - elsewhere[:, 0]), axis=1)


def _play(
    mechanism: GaussianPlace,
    centres: tuple[tuple[float, float], tuple[float, float]],
    side: int,
    trials: int,
    seed: int | None,
) -> Floats:
    looks = np.repeat(np.arange(2 * _VISITS) % 2 == 0, _SAMPLES)
    x = np.where(looks, centres[side][0], centres[0][0] + _ELSEWHERE_DEG)
    rows = []
    for begin in range(0, trials, _AT_ONCE):
        n = min(_AT_ONCE, trials - begin)
        session = mechanism.open_many(
            n, _RATE_HZ, seed=None if seed is None else derived_seed(seed, begin, side)
        )
        t = np.broadcast_to(np.arange(len(x)) * round(1e9 / _RATE_HZ), (n, len(x)))
        released = session.push(t, np.tile(x, (n, 1)), np.full((n, len(x)), centres[0][1]))[1]
        rows.append(evidence(released[:, looks], released[:, ~looks]))
    return np.concatenate(rows)


def place(mechanism: GaussianPlace, unit: str | None) -> Game:
    """Zero-concentrated differential privacy of one place, judged as (epsilon, delta) at delta =
    1e-6.
    """
    asked_unit(unit, "place", ("place",))
    centres = two_cells(mechanism, Sphere(), (180.0, 90.0))
    move = Fraction(centres[1][0] - centres[0][0])
    loss = mechanism.promise(_RATE_HZ, Sphere()).map(
        Change.place(move, cell_deg=mechanism.cell_deg)
    )
    description = (
        f"{_VISITS} looks at one cell, with looks elsewhere between them, against looks at a cell"
        f" {float(move):g} degrees to the right."
    )
    description += f" rho = {float(loss.amount):.4g} is judged as epsilon at delta = 1e-6."
    claimed = float(loss.epsilon_at(DELTA))
    return Game(
        "place",
        claimed,
        description,
        lambda side, n, seed: _play(mechanism, centres, side, n, seed),
        delta=float(DELTA),
    )
