"""Games for marginals: noise on one histogram, and one vector under the randomised test."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.privacy.audit.bounds import epsilon_at
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.noise.exact import discrete_laplace, laplace_scale
from gazeveil.privacy.plausible_deniability import charge_candidates, pass_probability
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.uniform import uniform_below
from gazeveil.privacy.tables.marginals.histograms import BinnedRows, bin_codes
from gazeveil.privacy.tables.sequences.recordings import (
    ROWS,
    WHOLE,
    Reals,
    batches,
    neighbours,
    sequences,
)

if TYPE_CHECKING:
    from gazeveil.privacy.tables.marginals.mechanism import Marginals


def marginals(mechanism: Marginals, unit: str | None) -> Game:
    """Noise on one histogram: one person in the first bin against the last."""
    if mechanism.reading == "published":
        description = (
            f"The plausible-deniability test of {mechanism.title} passes for every k up to the"
            " number of records and every gamma: there is nothing to break."
        )
        return Game("user", None, description)
    if mechanism.pd == "randomised":
        return _randomised(mechanism, unit)
    epsilon = Fraction(mechanism.epsilon)
    codes = [
        (sequences("audit", t), bin_codes(t.values, np.zeros(1), np.ones(1), mechanism.bins))
        for t in neighbours(mechanism.k)
    ]
    counts = [
        BinnedRows.of(seqs, code, sorted(seqs.people), ["s"])
        .weights(mechanism.bins)[0, 0]
        .astype(np.float64)
        for seqs, code in codes
    ]
    scale = mechanism._scale(epsilon)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, scores = Words(source(seed, "audit")), []
        for count in batches(trials, mechanism.bins):
            noisy = counts[side] + discrete_laplace(scale, count * mechanism.bins, words).reshape(
                count, -1
            )
            scores.append((np.abs(noisy - counts[1]) - np.abs(noisy - counts[0])).sum(axis=1))
        return np.concatenate(scores)[:, None]

    t, s = laplace_scale(scale)
    exact = float(Fraction(int(np.abs(counts[0] - counts[1]).sum()) * s, t))
    description = (
        f"{mechanism.k} people, one feature of {ROWS} rows in {mechanism.bins} bins: one of them in"
        " the first against the last bin, before sampling."
    )
    return Game(asked_unit(unit, mechanism.per, WHOLE), float(epsilon), description, play, exact)


def _randomised(mechanism: Marginals, unit: str | None) -> Game:
    """One vector under the randomised test, with even histograms: an outlying person, against one
    like all the others.
    """
    audited = asked_unit(unit, "user", ("user",))
    people, bins = 2 * mechanism.k, mechanism.bins
    gamma, epsilon0 = Fraction(mechanism.gamma), Fraction(mechanism.epsilon0)
    claimed, delta = charge_candidates(
        mechanism.k, gamma, epsilon0, people, 1, Fraction(mechanism.delta)
    )
    pmf = np.full((1, bins), 1.0 / bins)
    sides = []
    for alone in (1, 0):
        seat = np.zeros(people, dtype=np.int64)
        seat[0] = alone
        sides.append(
            BinnedRows(
                np.arange(people), np.zeros(people, dtype=np.int64), seat[:, None], people, 1
            )
        )

    def law(rows: BinnedRows) -> Reals:
        """Probability of each bin, as proofs/marginals.md has it."""
        crowd = np.bincount(rows.codes[:, 0], minlength=bins)
        passes = pass_probability(crowd, mechanism.k, epsilon0)
        kept, rejected = crowd * passes / people, float((crowd * (1 - passes)).sum()) / people
        anyhow = 1 / people
        return np.asarray((1 - anyhow) * (kept + rejected / bins) + anyhow / bins, dtype=np.float64)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words = Words(source(seed, "audit"))
        drawn = uniform_below(np.full(trials, bins), words)[:, None]
        mechanism._seeded(drawn, sides[side], 0, pmf, words)
        return drawn.astype(np.float64)

    description = (
        f"One vector under the randomised test, {people} people and {bins} bins, even histograms:"
        " one person like nobody else against one like all."
    )
    return Game(
        audited,
        float(claimed),
        description,
        play,
        epsilon_at(law(sides[0]), law(sides[1]), float(delta)),
        float(delta),
    )
