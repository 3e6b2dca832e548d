"""How one reader goes through a document: as its kind is read, and as this reader reads anything.

A simulated page is all of one kind: long lines, narrow columns, or bubbles and pictures. Readers of
real documents of three kinds differ more from one another than the documents do: newspapers have
pictures, textbooks captions, and some people look at every picture and others at none, come nearer
or sit back, skip, go back and linger more or less than others, whatever they read. `alike` is the
share of passages whose kind follows from the reader and not from the document.

The spreads below were chosen by hand so that at `alike` = 0.6 twenty readers of three documents of
10 minutes give about what David-John et al. 2022 print in Fig. 2 for MPIIDPEye; which figures, and
how near they come, is in docs/explain/simulator.md. They are wider than those of readers of one
text: they stand for all that differs between recordings, light and sitting included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from gazeveil.arrays import Floats, frozen
from gazeveil.gaze.simulate.conditions import DOCUMENTS
from gazeveil.gaze.simulate.stimuli import Scene

#: Words of a passage: a line, or a bubble. A window of 30 s holds about twenty of them.
PASSAGE = 6

#: Passages of a reading before it starts again.
PASSAGES = 400

# How near readers' shares of the kinds are to thirds: the Dirichlet distribution's sum.
_NEARNESS = 1.0
# Deviations of logarithms over readers, and over recordings of one reader: the four habits of a
# page (skipping, going back, durations, scatter of landing), distances between words as they are
# seen, pupil size (with the light of the room), blink rate.
_READERS = np.array([0.75, 0.75, 0.225, 0.3, 0.375, 0.0, 0.0])
_RECORDINGS = np.array([0.75, 0.75, 0.24, 0.3, 0.3, 0.30, 0.9])


class SimulatedReader(NamedTuple):
    """How somebody reads on one occasion, whatever it is.

    Parameters
    ----------
    shares : array, shape (3,)
        Of passages read as each kind of document is.
    habits : array, shape (4,)
        Factors of a page's habits.
    zoom : float
        Factor of the distances between words.
    pupil, blinks : float
        Factors of pupil size and blink rate.
    """

    shares: Floats
    habits: Floats
    zoom: float
    pupil: float
    blinks: float


def reader(own: Generator, occasion: Generator) -> SimulatedReader:
    """A reader on one occasion; the same generators give the same one."""
    kinds = len(DOCUMENTS)
    shares = own.dirichlet(np.full(kinds, _NEARNESS / kinds))
    away = _READERS * own.standard_normal(len(_READERS))
    away += _RECORDINGS * occasion.standard_normal(len(_RECORDINGS))
    habits, (zoom, pupil, blinks) = np.exp(away[:4]), np.exp(away[4:]).tolist()
    return SimulatedReader(shares, habits, zoom, pupil, blinks)


def as_read(
    scenes: Mapping[str, Scene], document: str, alike: float, who: SimulatedReader
) -> Scene:
    """A document, one of the pages of all kinds, as one reader reads it; `alike` is from 0
    (passages of its kind alone) to 1 (no matter which kind).

    Returns
    -------
    Scene
        With the words in the order of the reading, and habits between those of the kinds.
    """
    shares = alike * who.shares
    shares[DOCUMENTS.index(document)] += 1.0 - alike
    habits = shares @ np.stack([scenes[d].habits for d in DOCUMENTS]) * who.habits
    read = np.zeros(len(DOCUMENTS))
    passages = []
    for n in range(PASSAGES):
        # Kinds take turns, so that each has its share in every stretch of the reading.
        kind = int(np.argmax(shares * (n + 1) - read))
        words = scenes[DOCUMENTS[kind]].words
        first = int(read[kind]) * PASSAGE
        passage = np.take(words, np.arange(first, first + PASSAGE), 0, mode="wrap")
        passages.append(_zoomed(passage, who.zoom))
        read[kind] += 1
    # Frozen as those of a page are: compiled code takes arrays that can be written to for another
    # type, and would be compiled once more for it.
    whole = frozen(np.ascontiguousarray(np.concatenate(passages)))
    return scenes[document]._replace(words=whole, habits=frozen(habits))


def _zoomed(words: Floats, zoom: float) -> Floats:
    """Directions moved towards or away from their middle by a factor."""
    middle = words.mean(axis=0)
    moved = middle + zoom * (words - middle)
    out: Floats = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return out
