"""Attempts of the published test at one event after another, in compiled code that goes on with
more random words where they ran out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.privacy.randomness.rng import Source, WordArray

# Random words taken at a time.
_WORDS = 1 << 15


class PublishedTest(NamedTuple):
    """People who must be plausible besides the seed's, width of a cell, most attempts."""

    others: int
    width: float
    attempts: int


class Attempts(NamedTuple):
    """What is filled: values of the events and whether they passed; attempts made, the event to go
    on with and the first of its words; and when each person was last counted.
    """

    values: Floats
    passed: Bools
    progress: Ints
    counted: Ints


def all_events(
    values: Floats, people: int, draw: Callable[[WordArray, Attempts], bool], source: Source
) -> tuple[Floats, Bools, int]:
    """Values, passes and attempts of a kernel that is called again with more words until it has
    done all events.
    """
    progress = np.zeros(3, dtype=np.int64)
    out = Attempts(
        values, np.zeros(len(values), dtype=np.bool_), progress, np.empty(people, np.int64)
    )
    words = source.take(_WORDS)
    while not draw(words, out):
        # What is left from the first attempt of the event that ran out of words, and as many new
        # ones; an event that used up all words by itself needs more than there were.
        left = words[progress[2] :]
        progress[2] = 0
        words = np.concatenate((left, source.take(max(len(left), _WORDS))))
    return out.values, out.passed, int(progress[0])
