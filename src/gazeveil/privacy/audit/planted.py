"""Broken mechanisms that the auditor must catch. An auditor that misses one of these proves nothing
about the others.

Each is a mistake that was made in a paper or in published code: half the noise, values that are not
clipped, noise on the real parts of a spectrum alone, noise on more bins than the half spectrum has,
groups redrawn per task, test noise without the radius, Laplace noise in floating point, one seed
used twice, and a promise about chunks sold as one about people.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.audit import worst_corner

_GRID = 1000


@dataclass(frozen=True)
class Planted:
    """One broken mechanism: what is wrong with it, and what makes the game it must lose."""

    name: str
    game: Callable[[], Game]


def _laplace(scale: Fraction, trials: int, seed: int | None) -> Floats:
    """Discrete Laplace noise in units of the range, on a grid of a thousandth."""
    return discrete_laplace(scale * _GRID, trials, Words(source(seed, "planted"))) / _GRID


def _half_noise() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        return side + _laplace(Fraction(1, 2), trials, seed)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "One value 0 against 1, epsilon 1, noise of scale 1/2 instead of 1.",
        play,
    )


def _no_clipping() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        # The public bounds say [0, 1]; the value is 10 and is not clipped.
        return 10.0 * side + _laplace(Fraction(1), trials, seed)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "Bounds [0, 1], epsilon 1, a value of 10 that is not clipped against 0.",
        play,
    )


def _real_only() -> Game:
    return mechanism("fpa", epsilon=1, k=5, reading="published-real").audit_game(None)


def _beyond_half() -> Game:
    """Independent noise on all n bins with the scale of the formula: conjugate pairs are counted
    twice.
    """
    n = 64
    turns = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    rows = np.concatenate((np.cos(turns), np.sin(turns)))
    corner = 2.0 * worst_corner(rows) - 1.0
    scale = math.sqrt(n * n) * math.sqrt(
        n
    )  # sqrt(n k) Delta_2 with k = n and Delta_2 = sqrt(n), epsilon 1
    return Game(
        "recording-feature",
        1.0,
        f"{n} rows, noise on all {n} bins of the spectrum: mirrored bins tell everything twice.",
        None,
        float(np.abs(rows @ corner).sum()) / scale,
    )


def _regrouped() -> Game:
    return mechanism("k-same-select", k=4, reading="published").audit_game(None)


def _missing_r() -> Game:
    radius, threshold, epsilon_test = 50, 30, Fraction(3, 100)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        distance = threshold + radius * side
        noise = (
            discrete_laplace(1 / epsilon_test * _GRID, trials, Words(source(seed, "planted")))
            / _GRID
        )
        return (distance <= threshold + noise).astype(np.float64)[:, None]

    description = (
        f"Kaleido's test bit with noise Lap(1/epsilon_test): a distance of {threshold} against"
        f" {threshold + radius} pixels, r = {radius}."
    )
    return Game("sample", float(epsilon_test), description, play)


def _float_laplace() -> Game:
    """Mironov 2012: the doubles that textbook Laplace noise can reach from 0 are mostly not those
    it can reach from 1.
    """

    def play(side: int, trials: int, seed: int | None) -> Floats:
        rng = np.random.default_rng(seed)
        uniform = rng.integers(1, 2**53, trials)
        sign = np.where(rng.integers(0, 2, trials) == 1, 1.0, -1.0)
        return _reachable(side + sign * np.log(uniform * 2.0**-53), 1.0)[:, None]

    return Game(
        "recording-feature",
        1.0,
        "x + Lap(1) in doubles, 0 against 1: is the output one that centre 1 can give at all?",
        play,
    )


def _reachable(output: Floats, centre: float, around: int = 40) -> Floats:
    """1 where some 53-bit uniform number gives exactly this double from that centre."""
    reached = np.zeros(len(output), dtype=bool)
    for sign in (1.0, -1.0):
        guess = np.rint(np.exp(sign * (output - centre)) * 2.0**53)
        for step in range(-around, around + 1):
            uniform = guess + step
            inside = (uniform >= 1) & (uniform < 2.0**53)
            again = centre + sign * np.log(np.where(inside, uniform, 1.0) * 2.0**-53)
            reached |= inside & (again == output)
    return reached.astype(np.float64)


def _seed_reuse() -> Game:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        noise = _laplace(Fraction(1), trials, seed)
        # Two answers about one person, each with epsilon 1, drawn from the same seed: their
        # difference has no noise.
        return ((side + noise) - (0.0 + noise))[:, None]

    return Game(
        "user",
        2.0,
        "Two answers with epsilon 1 each whose noise comes from one seed: their difference is"
        " exact.",
        play,
    )


def _chunk_as_user() -> Game:
    honest = mechanism("cfpa", epsilon=Fraction(1, 2), chunk=32, k=1, per="chunk").audit_game(
        "user"
    )
    return Game(
        "user",
        0.5,
        f"{honest.description} Epsilon 0.5 of one chunk is sold as the person's.",
        honest.play,
        honest.exact,
    )


PLANTED = (
    Planted("half noise", _half_noise),
    Planted("no clipping", _no_clipping),
    Planted("real-only Fourier noise", _real_only),
    Planted("noise beyond half the spectrum", _beyond_half),
    Planted("k-same regrouped per task", _regrouped),
    Planted("Kaleido test noise without r", _missing_r),
    Planted("Laplace noise in floating point", _float_laplace),
    Planted("one seed used twice", _seed_reuse),
    Planted("chunk claim sold as user claim", _chunk_as_user),
)
