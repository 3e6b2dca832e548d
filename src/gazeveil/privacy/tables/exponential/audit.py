"""Game for exponential-dp: 100 vectors of one feature, all 0 against all 1."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.noise.exact import laplace_scale
from gazeveil.privacy.tables.audit_tables import ROWS, Reals, batches, table_of
from gazeveil.privacy.tables.exponential.published import (
    published_log_density,
    published_loss,
    published_noise,
)
from gazeveil.privacy.tables.sequences.published import generator
from gazeveil.privacy.tables.sequences.recordings import STEPS, WHOLE

if TYPE_CHECKING:
    from gazeveil.privacy.tables.exponential.mechanism import ExponentialDP


def exponential(mechanism: ExponentialDP, unit: str | None) -> Game:
    """Noise on the values: 100 vectors, all 0 against all 1."""
    epsilon = Fraction(mechanism.epsilon)
    audited = asked_unit(unit, mechanism.per, WHOLE)
    description = f"One feature of {ROWS} rows: all 0 against all 1."
    if mechanism.reading == "published":
        exact = published_loss(epsilon, 1.0, ROWS, values=ROWS)
        return Game(
            audited,
            float(epsilon),
            description,
            lambda s, n, seed: _play_published(float(epsilon), s, n, seed),
            exact,
        )
    if mechanism.reading == "intended":
        people = np.stack([np.full(ROWS, v) for v in (0.0, 0.0, 1e-9)])
        spread = np.ptp(mechanism.release(table_of(people, ["a", "b", "c"]), seed=1).data.values)
        tiny = spread < 1e-3
        description += (
            " Its scale is the range of the data: where people nearly agree the noise nearly"
            " vanishes, so a neighbour is seen with certainty."
        )
        return Game(audited, float(epsilon), description, None, float("inf") if tiny else None)

    # The game has rows of its own; another length would only pad or cut them.
    plain = replace(mechanism, length=None)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        scores = []
        for number, count in enumerate(batches(trials, 10 * ROWS)):
            values = np.full((count, ROWS), float(side))
            out = plain.release(
                table_of(values, [str(i) for i in range(count)]),
                None if seed is None else seed + number,
            ).data.values
            scores.append(np.clip(out.reshape(count, ROWS), 0.0, 1.0).sum(axis=1))
        return np.concatenate(scores)[:, None]

    t, s = laplace_scale(Fraction(ROWS * STEPS) / epsilon)
    return Game(audited, float(epsilon), description, play, float(Fraction(ROWS * STEPS * s, t)))


def _play_published(epsilon: float, side: int, trials: int, seed: int | None) -> Reals:
    """The exact log likelihood ratio of one value, and of all of them."""
    rng = generator(seed, "audit")
    scores = []
    for count in batches(trials, ROWS):
        values = side + published_noise(epsilon, np.array([1.0]), ROWS, (count, ROWS), rng)
        ratio = published_log_density(values, epsilon, 1.0, ROWS) - published_log_density(
            values - 1.0, epsilon, 1.0, ROWS
        )
        scores.append(np.stack((ratio[:, 0], ratio.sum(axis=1)), axis=1))
    return np.concatenate(scores)
