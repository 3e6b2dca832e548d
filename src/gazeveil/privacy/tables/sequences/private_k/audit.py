"""The game of `fpa-private-k`: one feature between 0 and 1, 100 rows, of one recording.

Pairs are weighed, and the worst is played: the corners that move the noisy bins most, whose costs
are the same, and a level against waves of more and more periods, whose costs differ by up to the
whole spread. What an observer sees is k and the noisy bins, so the exact loss is the largest over k
of the loss of the choice and that of k bins together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.noise.exact import MOST_T, laplace_scale
from gazeveil.privacy.noise.selection import permute_and_flip
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.tables.audit_tables import ROWS, Reals
from gazeveil.privacy.tables.sequences.audit import worst_corner
from gazeveil.privacy.tables.sequences.fourier import fourier_noise
from gazeveil.privacy.tables.sequences.half_spectrum import coordinates, fourier_rows
from gazeveil.privacy.tables.sequences.integer_transform import coefficients, grid_l1
from gazeveil.privacy.tables.sequences.private_k.costs import UNITS
from gazeveil.privacy.tables.sequences.recordings import STEPS, WHOLE, per_feature_epsilon

if TYPE_CHECKING:
    from gazeveil.privacy.tables.sequences.private_k.mechanism import BinChoice, FPAPrivateK


@dataclass(frozen=True)
class _Pair:
    """Two neighbouring sequences of whole numbers, and what is known of them exactly."""

    name: str
    ends: tuple[Ints, Ints]
    chances: tuple[Floats, Floats]
    loss: float


def private_k(mechanism: FPAPrivateK, unit: str | None) -> Game:
    """The worst of the pairs."""
    game_unit = asked_unit(unit, mechanism.per, WHOLE)
    epsilon = per_feature_epsilon(mechanism.budget, mechanism.per, 1, 1, 1)
    choice = mechanism.choice(ROWS, epsilon)
    corner = worst_corner(fourier_rows(ROWS, choice.bins[0]))
    level = np.ones(ROWS, dtype=np.int64)
    turns = np.arange(ROWS) / ROWS
    pairs = [_weighed(choice, "0 where the neighbour is 1", corner, 1 - corner)]
    for k in (*choice.bins, ROWS // 2):
        wave = (np.cos(2 * np.pi * (k * turns + 1e-6)) >= 0).astype(np.int64)
        pairs.append(_weighed(choice, f"a level against {k} square waves", level, wave))
    worst = max(pairs, key=lambda pair: pair.loss)
    return Game(
        game_unit,
        float(mechanism.budget),
        f"One feature of {ROWS} rows: {worst.name}. k is one of {choice.bins}.",
        lambda side, trials, seed: _play(mechanism, choice, worst, side, trials, seed),
        worst.loss,
    )


def _weighed(choice: BinChoice, name: str, first: Ints, second: Ints) -> _Pair:
    ends = (first * STEPS, second * STEPS)
    chances = tuple(choice.probabilities(choice.totals(end[:, None])) for end in ends)
    with np.errstate(divide="ignore"):
        chosen = np.abs(np.log(chances[0]) - np.log(chances[1]))
    # A k that neither of them is ever given counts for nothing.
    seen = np.maximum(*chances) > 0
    losses = [_bins_loss(ends, k, choice.noise) for k in choice.bins]
    return _Pair(name, ends, (chances[0], chances[1]), float(np.max((chosen + losses)[seen])))


def _bins_loss(ends: tuple[Ints, Ints], k: int, epsilon: Fraction) -> float:
    """The loss of k noisy bins, in the integers that get noise."""
    n, d = ROWS, coordinates(ROWS, k)
    grid = grid_l1("audit", n, d, n * k * n * STEPS**2, n * STEPS, epsilon, MOST_T)
    table = fourier_rows(n, k)
    both = np.stack(ends, axis=1) - STEPS // 2
    whole = grid.rounded(coefficients(lambda first, last: table[first:last], d, both))
    t, s = laplace_scale(Fraction(grid.sensitivity) / epsilon)
    return float(Fraction(int(np.abs(whole[:, 0] - whole[:, 1]).sum()) * s, t))


def _play(
    mechanism: FPAPrivateK, choice: BinChoice, pair: _Pair, side: int, trials: int, seed: int | None
) -> Reals:
    """The log likelihood ratio of k and of the noisy bins."""
    words = Words(source(seed, "audit"))
    # Shrinking is post-processing: what comes before it tells at least as much.
    plain = replace(mechanism, shrink=None)
    block = pair.ends[side][:, None]
    if len(choice.bins) > 1:
        picks = permute_and_flip(choice.totals(block), choice.choosing, UNITS, words, trials)
    else:
        picks = np.zeros(trials, dtype=np.int64)
    scores = np.empty(trials)
    for at, k in enumerate(choice.bins):
        mine = np.flatnonzero(picks == at)
        if not len(mine):
            continue
        rows = fourier_rows(ROWS, k)
        noisy = (
            rows
            @ fourier_noise(
                plain, np.repeat(block, len(mine), axis=1), k, choice.noise, words
            ).values
        )
        near, far = (np.abs(noisy - (rows @ end)[:, None]).sum(axis=0) for end in pair.ends)
        scale = ROWS * np.sqrt(k) / float(choice.noise) * STEPS
        tiny = np.finfo(np.float64).tiny
        chosen = np.log(np.maximum([c[at] for c in pair.chances], tiny))
        scores[mine] = chosen[0] - chosen[1] + (far - near) / scale
    return scores[:, None]
