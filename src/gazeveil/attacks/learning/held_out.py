"""Scores of the gallery's own people on stimuli that were held out: by these an attacker chooses,
without the probe, how far to trust each kind of evidence.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.attacks.denoiser import standardised_scores
from gazeveil.errors import DataError
from gazeveil.features.recordings import RecordingVectors

#: From vectors of a gallery and of a probe to scores of people.
Matcher = Callable[[RecordingVectors, RecordingVectors], Scores]

#: Parts into which stimuli are dealt; each costs one more training.
PARTS = 4

#: Most people on whom evidence is weighed: more do not make the weights better.
MOST_PEOPLE = 60


def held_out_scores(gallery: RecordingVectors, matcher: Matcher) -> tuple[Floats, Ints]:
    """Standardised scores of held-out decisions by one kind of evidence. Decisions follow from the
    keys, so that those of several kinds are the same.

    Returns
    -------
    scores : array of float64, shape (decisions, people)
        Empty where the gallery has one stimulus or fewer than three people.
    own : array of int64, shape (decisions,)
        The right person of each decision.
    """
    everybody = sorted(set(gallery.persons.tolist()))[:MOST_PEOPLE]
    used = np.isin(gallery.persons, everybody)
    part = np.unique(gallery.stimuli, return_inverse=True)[1] % PARTS
    held_out: list[Floats] = []
    own: list[Ints] = []
    for k in np.unique(part[used]):
        asked, learnt = used & (part == k), used & (part != k)
        persons = gallery.persons
        both = sorted(set(persons[asked].tolist()) & set(persons[learnt].tolist()))
        if len(both) < 3:
            continue
        rows = np.isin(persons, both)
        columns = np.searchsorted(everybody, both)
        # Somebody who cannot be chosen must not be: far below everybody.
        wide = np.full((len(both), len(everybody)), -10.0)
        try:
            scores = matcher(gallery.where(learnt & rows), gallery.where(asked & rows))
            wide[:, columns] = standardised_scores(scores.values)
        except DataError:
            # Evidence that these stimuli do not carry knows nobody.
            wide[:, columns] = 0.0
        held_out.append(wide)
        own.append(columns)
    if not own:
        return np.zeros((0, len(everybody))), np.empty(0, dtype=np.int64)
    return np.concatenate(held_out), np.concatenate(own).astype(np.int64)
