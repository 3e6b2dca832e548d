"""The vectors by which attackers compare whole recordings, each made once per recording set.

`summary` (:mod:`gazeveil.features.recordings`) needs tables only, so it also reads releases that
hold no samples; `extended` (:mod:`gazeveil.attacks.vectors.extended`) and `trajectory`
(:mod:`gazeveil.attacks.vectors.trajectory`) and `steps` (:mod:`gazeveil.attacks.vectors.steps`)
need samples.

Person vectors: one per person, free of what was shown.

From the vector of each recording the mean over people of that stimulus is taken away, so that what
is left is the person and not the picture; a person's vector is the mean over their recordings. A
release of window features alone gives mean and deviation of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.vectors import extended, steps, trajectory
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import (
    RecordingVectors,
    column_deviations,
    column_means,
    summary_vectors,
)

_MAKERS = {
    "summary": summary_vectors,
    "extended": extended.vectors,
    "trajectory": trajectory.vectors,
    "steps": steps.vectors,
}

#: Kinds of vectors.
FEATURES = tuple(_MAKERS)

# Kinds that describe a recording without looking at others: those of a part are rows of the whole.
_OF_ONE_RECORDING = ("summary", "extended")

# Attackers with and without a denoiser ask for the vectors of the same material: they are made
# once, and forgotten with it.
_KEPT: WeakKeyDictionary[RecordingSet, dict[str, RecordingVectors]] = WeakKeyDictionary()


def recording_vectors(recording_set: RecordingSet, features: str = "summary") -> RecordingVectors:
    """Vectors of the recordings of a recording set, in the order of `recording_set.keys`.

    Parameters
    ----------
    recording_set : RecordingSet
        Samples or tables.
    features : {"summary", "extended", "trajectory", "steps"}
        Means and standard deviations of event features; about 300 features; the trajectory of
        0.2 s averages of position; or steps at many scales.

    Raises
    ------
    DataError
        If the recording set lacks what the features are made of.
    """
    checks.one_of("recording_vectors", "features", features, FEATURES)
    kept = _KEPT.setdefault(recording_set, {})
    if features not in kept:
        if features != "summary" and recording_set.cohort is None:
            raise DataError(
                f"{features.capitalize()} vectors need samples, and this release holds tables only."
                " Use features='summary'."
            )
        shared = _from_others(recording_set, features) if features in _OF_ONE_RECORDING else None
        kept[features] = shared or _MAKERS[features](recording_set)
    return kept[features]


def _from_others(recording_set: RecordingSet, features: str) -> RecordingVectors | None:
    """Rows of the vectors of the set that this is a part of, or of the sets it is made of; None
    where it is neither.
    """
    keys = recording_set.keys
    if recording_set.part_of is not None:
        whole = recording_set.part_of
        places = {key: i for i, key in enumerate(whole.keys)}
        rows = np.array([places[key] for key in keys], dtype=np.int64)
        return recording_vectors(whole, features).where(rows)
    if recording_set.made_of is None:
        return None
    origins = [recording_set.made_of[key] for key in keys]
    parts = {
        part: recording_vectors(part, features) for part in dict.fromkeys(p for p, _ in origins)
    }
    first = next(iter(parts.values()))
    if any(vectors.columns != first.columns for vectors in parts.values()):
        return None
    at = {part: {key: i for i, key in enumerate(part.keys)} for part in parts}
    values = [parts[part].values[at[part][key]] for part, key in origins]
    return RecordingVectors(keys, np.stack(values), first.columns, first.blocks)


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
