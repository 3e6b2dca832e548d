"""Latent numbers of synthetic saccades of David-John et al.'s (2023) published test, drawn and
tested one attempt after another in compiled code that stops as soon as the answer is known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.plausible_deniability import cell
from gazeveil.privacy.randomness.rng import Source, WordArray
from gazeveil.privacy.synthesis.events_pd.attempts import Attempts, PublishedTest, all_events
from gazeveil.privacy.synthesis.events_pd.seeded_events import unit_uniform


class Latents(NamedTuple):
    """The latent normals of all saccades at one stimulus.

    Parameters
    ----------
    mean, spread : arrays, shape (records, latent)
        Of each saccade.
    person : array of int64, shape (records,)
        Whose.
    number : array of int64, shape (records,)
        Which of that person's.
    """

    mean: Floats
    spread: Floats
    person: Ints
    number: Ints

    @property
    def constant(self) -> Floats:
        """Logarithm of each record's density at its own mean."""
        return np.asarray(
            -(np.log(self.spread) + 0.5 * math.log(2 * math.pi)).sum(axis=1), dtype=np.float64
        )


def latent_draws(
    own: Latents,
    records: Latents,
    people: int,
    same_index: bool,
    k: int,
    width: float,
    attempts: int,
    source: Source,
) -> tuple[Floats, Bools, int]:
    """Latent numbers of synthetic saccades under the test by latent normals, whether each passed,
    and how many attempts were made.

    Parameters
    ----------
    own : Latents
        One person's saccades.
    records : Latents
        All saccades there.
    people : int
        How many people there are.
    same_index : bool
        Whether only others' saccades of the same index are asked.
    k, width, attempts
        As in :class:`gazeveil.privacy.synthesis.events_pd.seeded_events.Rule`.
    source : Source
        Random words.
    """
    # Each person's records lie scattered over the whole, so that few need to be looked at until
    # enough people are found.
    order = np.argsort(records.number, kind="stable")
    others = _Normals(
        np.ascontiguousarray(records.mean[order]),
        np.ascontiguousarray(1.0 / records.spread[order]),
        records.constant[order],
        records.person[order],
        records.number[order],
    )
    mine = _Normals(own.mean, own.spread, own.constant, own.person, own.number)
    test = PublishedTest(k - 1, width, attempts)
    return all_events(
        np.empty_like(own.mean),
        people,
        lambda words, out: _latents(mine, others, same_index, test, words, out),
        source,
    )


class _Normals(NamedTuple):
    """:class:`Latents` for the kernel; scales are spreads, or for others one over them."""

    mean: Floats
    scale: Floats
    constant: Floats
    person: Ints
    number: Ints


@compiled
def _people_alike(
    z: Floats,
    log_p: float,
    person: int,
    index: int,
    others: _Normals,
    test: PublishedTest,
    counted: Ints,
    stamp: int,
) -> int:
    """How many others have a saccade, of that index unless it is negative, in the cell of log_p."""
    mine, count = cell(log_p, test.width), 0
    upper, lower = -mine * test.width, -(mine + 1.0) * test.width
    for r in range(len(others.mean)):
        if count >= test.others:
            break
        owner = others.person[r]
        if owner == person or counted[owner] == stamp:
            continue
        if index >= 0 and others.number[r] != index:
            continue
        other = others.constant[r]
        for d in range(len(z)):
            away = (z[d] - others.mean[r, d]) * others.scale[r, d]
            other -= 0.5 * away * away
        if lower < other <= upper:
            counted[owner] = stamp
            count += 1
    return count


@compiled
def _latents(
    own: _Normals,
    others: _Normals,
    same_index: bool,
    test: PublishedTest,
    words: WordArray,
    out: Attempts,
) -> bool:
    """Draw and test from the event that `out` stands at; whether the words sufficed."""
    position, tried, stamp = 0, out.progress[0], 0
    out.counted[:] = -1
    for e in range(out.progress[1], len(own.mean)):
        out.progress[0], out.progress[1], out.progress[2] = tried, e, position
        z, index = out.values[e], own.number[e] if same_index else -1
        for _ in range(test.attempts):
            tried += 1
            stamp += 1
            log_p, radius, turn = own.constant[e], 0.0, 0.0
            for d in range(len(z)):
                if d % 2 == 0:
                    if position + 2 > len(words):
                        return False
                    radius = math.sqrt(-2.0 * math.log(unit_uniform(words[position])))
                    turn = 2.0 * math.pi * unit_uniform(words[position + 1])
                    position += 2
                normal = radius * (math.cos(turn) if d % 2 == 0 else math.sin(turn))
                z[d] = own.mean[e, d] + own.scale[e, d] * normal
                log_p -= 0.5 * normal * normal
            person = own.person[e]
            alike = _people_alike(z, log_p, person, index, others, test, out.counted, stamp)
            if alike >= test.others:
                out.passed[e] = True
                break
    out.progress[0] = tried
    return True
