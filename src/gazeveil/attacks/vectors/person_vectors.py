"""Person vectors: one per person, free of what was shown.

From the vector of each recording the mean over people of that stimulus is taken away, so that what
is left is the person and not the picture; a person's vector is the mean over their recordings. A
release of window features alone gives mean and deviation of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.columns import column_deviations, column_means
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors


@dataclass(frozen=True, eq=False)
class PersonVectors:
    """One row per person.

    Parameters
    ----------
    people : tuple of str
        Sorted.
    values : array of float64, shape (people, features)
        Means over recordings; NaN where a feature was never measured.
    columns : tuple of str
        One name per feature.
    """

    people: tuple[str, ...]
    values: Floats = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)

    def select(self, columns: tuple[str, ...]) -> PersonVectors:
        """Some columns, in the order asked for."""
        at = {name: i for i, name in enumerate(self.columns)}
        return PersonVectors(self.people, self.values[:, [at[c] for c in columns]], columns)


def centred(recording_set: RecordingSet, features: str = "summary") -> RecordingVectors:
    """Vectors of recordings without what their stimulus has in common; a stimulus that one
    person saw alone loses the mean over everything.
    """
    if features == "summary" and not (
        recording_set.has("fixation") or recording_set.has("saccade")
    ):
        vectors = _window_vectors(recording_set)
    else:
        vectors = recording_vectors(recording_set, features)
    values = vectors.values.copy()
    everything = column_means(values)
    persons, stimuli = vectors.persons, vectors.stimuli
    for stimulus in np.unique(stimuli):
        rows = stimuli == stimulus
        values[rows] -= (
            column_means(vectors.values[rows]) if len(np.unique(persons[rows])) > 1 else everything
        )
    return RecordingVectors(vectors.keys, values, vectors.columns)


def person_vectors(vectors: RecordingVectors) -> PersonVectors:
    """The mean vector of each person."""
    persons = vectors.persons
    people = tuple(sorted(set(persons.tolist())))
    if not people:
        raise DataError("There are no recordings to draw people from.")
    return PersonVectors(
        people,
        np.stack([column_means(vectors.values[persons == p]) for p in people]),
        vectors.columns,
    )


def _window_vectors(recording_set: RecordingSet) -> RecordingVectors:
    table = recording_set.windows
    parts = table.recordings()
    rows = []
    for places in parts.values():
        own = table.values[places]
        rows.append(np.concatenate((column_means(own), column_deviations(own))))
    columns = tuple(f"window_{n}_{stat}" for stat in ("mean", "sd") for n in table.columns)
    return RecordingVectors(
        tuple(parts), np.array(rows, dtype=np.float64).reshape(len(parts), len(columns)), columns
    )
