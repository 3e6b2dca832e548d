"""Scores of the gallery's own people on stimuli that were held out: by these an attacker chooses,
without the probe, how far to trust each kind of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.attacks.denoiser import standardised_scores
from gazeveil.features.recordings import RecordingVectors

#: From vectors of a gallery and of a probe to scores of people.
Matcher = Callable[[RecordingVectors, RecordingVectors], Scores]

#: Parts into which stimuli are dealt; each costs one more training.
PARTS = 4

#: Most people on whom evidence is weighed: more do not make the weights better.
MOST_PEOPLE = 60


def held_out_scores(
    galleries: Sequence[RecordingVectors], matchers: Sequence[Matcher]
) -> tuple[list[Floats], Ints]:
    """Standardised scores of held-out decisions for each kind of evidence.

    Parameters
    ----------
    galleries : sequence of RecordingVectors
        Vectors of the same recordings, one kind each.
    matchers : sequence of callables
        What judges each kind.

    Returns
    -------
    held_out : list of arrays of float64, shape (decisions, people)
        One per kind; empty where the gallery has one stimulus or fewer than three people.
    own : array of int64, shape (decisions,)
        The right person of each decision.
    """
    everybody = sorted(set(galleries[0].persons.tolist()))[:MOST_PEOPLE]
    used = np.isin(galleries[0].persons, everybody)
    stimuli = np.unique(galleries[0].stimuli, return_inverse=True)[1]
    part = stimuli % PARTS
    held_out: list[list[Floats]] = [[] for _ in galleries]
    own: list[Ints] = []
    for k in np.unique(part[used]):
        asked, learnt = used & (part == k), used & (part != k)
        persons = galleries[0].persons
        both = sorted(set(persons[asked].tolist()) & set(persons[learnt].tolist()))
        if len(both) < 3:
            continue
        rows = np.isin(persons, both)
        for kind, (vectors, matcher) in enumerate(zip(galleries, matchers, strict=True)):
            scores = matcher(vectors.where(learnt & rows), vectors.where(asked & rows))
            wide = np.zeros((len(both), len(everybody)))
            columns = np.searchsorted(everybody, both)
            wide[:, columns] = standardised_scores(scores.values)
            # Somebody who cannot be chosen must not be: far below everybody.
            absent = np.setdiff1d(np.arange(len(everybody)), columns)
            wide[:, absent] = -10.0
            held_out[kind].append(wide)
        own.append(np.searchsorted(everybody, both))
    if not own:
        return [np.zeros((0, len(everybody))) for _ in galleries], np.empty(0, dtype=np.int64)
    return [np.concatenate(h) for h in held_out], np.concatenate(own).astype(np.int64)
