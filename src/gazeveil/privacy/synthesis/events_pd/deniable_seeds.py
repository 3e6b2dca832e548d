"""Synthetic events whose seed is a random person of a crowd, each with a randomised test of
plausible deniability.

The people who saw one stimulus are a *pool* of N. At a time of a synthetic recording an event is
drawn as follows, in up to so many attempts:

1. with probability 1/N the attempt is rejected in any case;
2. a person is drawn uniformly from the pool, and one of their *records* around that time,
   uniformly; who has none there is a rejection;
3. the event is the record moved by normal noise of a public size (its place on a sphere by the von
   Mises-Fisher law), rounded to a public grid;
4. with p_a the density that person a's records there would have given, averaged over them, the
   people are counted whose p_a lies in the cell of the drawn person's. The event passes if there
   are at least max(k, k + margin + z) of them, z fresh discrete Laplace noise of scale 1/epsilon0.

The floor k is there because of the attempts: without it, noise would let events pass that fewer
than k people could have seeded, if only one tried often enough. Nothing here knows for whom a
recording is made, so all names get recordings of one law: proofs/event-synth-pd.md.

:func:`draw` can also take all records from one person, without the test of single events; it then
adds up the logarithm of the density of everything it drew under each person of the pool, for a test
of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.synthesis.events_pd.seed_density import SeedRecords
from gazeveil.privacy.synthesis.events_pd.seeded_events import (
    LEAST_FIXATION_S,
    EventsSoFar,
    EventTiming,
    Rule,
    fill,
)

# Random words that a fixation and a saccade take together, and some more.
_WORDS = 80


@dataclass(frozen=True, eq=False)
class Drawn:
    """Events of one synthetic recording, fixations and saccades in turn.

    Parameters
    ----------
    fixations, saccades : arrays, shape (n, numbers)
        Values as in :class:`SeedRecords`; rows of NaN are events that never passed.
    places : array, shape (n, 3)
        Places on a sphere.
    attempts : int
        How many were made.
    joint : array, shape (people,)
        Where all records were one person's: logarithm of the density of everything under each
        person.
    """

    fixations: Floats = field(repr=False)
    places: Floats = field(repr=False)
    saccades: Floats = field(repr=False)
    attempts: int
    joint: Floats = field(repr=False)


def most_events(length_s: float, clock: EventTiming) -> int:
    """Most fixations that a recording of that length can hold, and most saccades."""
    return int((1.05 * length_s + 1.0) / (LEAST_FIXATION_S + clock.between_s)) + 2


def draw(
    fixations: SeedRecords,
    saccades: SeedRecords,
    rule: Rule,
    clock: EventTiming,
    length_s: float,
    source: Source,
    own: int = -1,
) -> Drawn:
    """Events for one recording.

    Parameters
    ----------
    fixations, saccades : SeedRecords
        Of the same pool.
    rule : Rule
        Which events may be released.
    clock : EventTiming
        How time goes on.
    length_s : float
        How long the recording is; a little more is drawn, because saccades differ in length.
    source : Source
        Random words.
    own : int
        The one person whose records are taken, without a test; -1 for the crowd.
    """
    room, drawn_s = most_events(length_s, clock), 1.05 * length_s + 1.0
    out = EventsSoFar(
        np.full((room, fixations.values.shape[1]), np.nan),
        np.full((room, 3), np.nan),
        np.full((room, saccades.values.shape[1]), np.nan),
        np.zeros(2, dtype=np.int64),
        np.zeros(len(fixations.starts) - 1),
        np.zeros(1),
    )
    # Enough for some attempts per event; what is drawn does not depend on how many are taken at
    # once.
    pair_s = min(math.exp(clock.middle), clock.lost_s) + clock.between_s
    words = source.take(4096 + int(_WORDS * drawn_s / pair_s))
    while True:
        position, enough = fill(length_s, clock, fixations, saccades, rule, own, words, out)
        if enough:
            words[:] = 0  # used bits must not linger in memory
            n = int(out.counts[0])
            return Drawn(
                out.fixations[:n], out.places[:n], out.saccades[:n], int(out.counts[1]), out.joint
            )
        # The pair of events that ran out of words begins again with the same ones, and more after
        # them.
        more = source.take(len(words))
        both = np.concatenate((words[position:], more))
        words[:], more[:] = 0, 0
        words = both
