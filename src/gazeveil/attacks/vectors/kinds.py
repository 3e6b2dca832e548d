"""The vectors by which attackers compare whole recordings, each made once per recording set.

`summary` (:mod:`gazeveil.features.recordings`) needs tables only, so it also reads releases that
hold no samples; `extended` (:mod:`gazeveil.attacks.vectors.extended`) and `trajectory`
(:mod:`gazeveil.attacks.vectors.trajectory`) and `steps` (:mod:`gazeveil.attacks.vectors.steps`)
need samples.

Person vectors: one per person, free of what was shown.

From the vector of each recording the mean over people of that stimulus is taken away, so that what
is left is the person and not the picture; a person's vector is the mean over their recordings. A
release of window features alone gives mean and deviation of each feature.

What is left of vectors of recordings without their stimulus: how each person deviates from the
others who saw the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
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


#: Standardised features are cut here: one odd event must not decide.
CLIP = 4.0

#: From this many people on, a side shows by itself how far people differ.
LEAST_PEOPLE = 3

_TINY = 1e-9

# Columns that are handled at one time where a copy of all of them would be large.
_BLOCK_COLUMNS = 256


def standardised_deviations(vectors: RecordingVectors, reference: RecordingVectors) -> Floats:
    """Differences from the mean of the stimulus over people, in units of their source, cut at
    +-CLIP; 0 where nothing is known, as everybody else.

    Sources (which release each recording comes from) are treated apart: a mechanism that moves or
    stretches a feature does so for everybody. A source with fewer than LEAST_PEOPLE people shows no
    unit of its own; its unit is the reference's.
    """
    # RecordingSet.together writes the release behind a `~` into the session.
    sources = np.array(
        [key[2].rpartition("~")[2] if "~" in key[2] else "" for key in vectors.keys], dtype=np.str_
    )
    names = np.unique(sources)
    result = np.zeros(vectors.values.shape) if len(names) != 1 else None
    for source in names:
        rows = sources == source
        centred = _centred(vectors, rows, reference)
        many = vectors is reference or len(np.unique(vectors.persons[rows])) >= LEAST_PEOPLE
        unit = (
            _unit_of(centred)
            if many
            else _unit_of(_centred(reference, np.ones(len(reference), dtype=np.bool_), reference))
        )
        # In place: of thousands of recordings every copy is a hundred megabytes.
        centred /= unit
        np.nan_to_num(centred, copy=False)
        np.clip(centred, -CLIP, CLIP, out=centred)
        if result is None:
            return centred
        result[rows] = centred
    return np.zeros(vectors.values.shape) if result is None else result


def person_means(values: Floats, persons: Texts, names: tuple[str, ...]) -> Floats:
    """Compute the mean row of each person; zeros for a person without rows.

    Parameters
    ----------
    values : array of float64, shape (rows, features)
        All known.
    persons : array of str, shape (rows,)
        The person of each row; persons not in `names` are left out.
    names : tuple of str
        Sorted.
    """
    place, there = places_of(persons, names)
    order = np.argsort(place[there], kind="stable")
    at, chosen = place[there][order], np.flatnonzero(there)[order]
    rows = values if np.array_equal(chosen, np.arange(len(values))) else values[chosen]
    result = np.zeros((len(names), values.shape[1]))
    if len(at) == 0:
        return result
    starts = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
    counts = np.diff(np.append(starts, len(at)))
    result[at[starts]] = np.add.reduceat(rows, starts, axis=0) / counts[:, None]
    return result


def unit_rows(rows: Floats) -> Floats:
    """Rows of length one; zeros where there is nothing."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > _TINY, rows / np.maximum(length, _TINY), 0.0)


def places_of(persons: Texts, names: tuple[str, ...]) -> tuple[Ints, Bools]:
    """Place of each person in sorted names, and whether the name is there at all."""
    listed = np.array(names, dtype=np.str_)
    place = np.minimum(np.searchsorted(listed, persons), max(len(listed) - 1, 0))
    there: Bools = listed[place] == persons if len(listed) else np.zeros(len(persons), np.bool_)
    return place, there


def between_share(people: Floats, rest: Floats) -> Floats:
    """Share of each column's variance of person means that is not chance: 1 - within / between mean
    squares, at least 0; ones where that is not known.

    Parameters
    ----------
    people : array of float64, shape (people, features)
        Person means.
    rest : array of float64, shape (rows, features)
        Rows less the mean of their person.
    """
    return _share(np.einsum("ij,ij->j", rest, rest), len(rest), people)


def between_share_of_rows(values: Floats, people: Floats, of: Ints) -> Floats:
    """As :func:`between_share`, of rows with their person's place in `people`: the rows less the
    mean of their person are formed for some columns at a time, where all would be large.
    """
    parts = [np.zeros(0)]
    for a in range(0, values.shape[1], _BLOCK_COLUMNS):
        rest = values[:, a : a + _BLOCK_COLUMNS] - people[of, a : a + _BLOCK_COLUMNS]
        parts.append(np.einsum("ij,ij->j", rest, rest))
    return _share(np.concatenate(parts), len(values), people)


def _share(squares: Floats, rows: int, people: Floats) -> Floats:
    """Share between people, from sums of squares within them."""
    freedom = rows - len(people)
    if freedom < 1 or len(people) < 2:
        return np.ones(people.shape[1])
    within = squares / freedom
    between = rows / len(people) * (people**2).sum(axis=0) / (len(people) - 1)
    share = np.maximum(0.0, 1.0 - within / np.maximum(between, _TINY))
    return share if (share > 0).any() else np.ones(people.shape[1])


def _centred(vectors: RecordingVectors, rows: Bools, reference: RecordingVectors) -> Floats:
    """The rows of one source less the mean of their stimulus over the people of the source.

    Where another source shows a stimulus by more than twice as many people (a raw gallery with some
    protected examples), its mean there, moved and stretched to fit this source, is the better one.
    For a stimulus with one viewer the mean of the source stands, and that of the reference where
    the side has one person.
    """
    values, persons, stimuli = vectors.values, vectors.persons, vectors.stimuli
    own = values if rows.all() else values[rows]
    result = np.empty(own.shape)
    borrowed: Floats | None = None
    for stimulus in np.unique(stimuli[rows]):
        here, there = rows & (stimuli == stimulus), ~rows & (stimuli == stimulus)
        place, people = stimuli[rows] == stimulus, len(np.unique(persons[here]))
        part = own[place]
        lends = len(np.unique(persons[there])) > 2 * people
        if people > 1 and not lends:
            part -= column_means(part)
        else:
            part -= column_means(own if len(np.unique(persons)) > 1 else reference.values)
        result[place] = part
        if lends:
            borrowed = np.full_like(own, np.nan) if borrowed is None else borrowed
            borrowed[place] = column_means(values[there])
    if borrowed is None:
        return result
    lent = np.isfinite(borrowed).any(axis=1)
    if lent.any():
        x, d = own[lent], borrowed[lent]
        x, d = x - column_means(x), np.nan_to_num(d - column_means(d))
        square = (d**2).sum(axis=0)
        slope = np.where(
            square > _TINY, (np.nan_to_num(x) * d).sum(axis=0) / np.maximum(square, _TINY), 0.0
        )
        result[lent] = x - slope * d
    return result


def _unit_of(values: Floats) -> Floats:
    """Standard deviation of the known values of each column; infinite where they do not vary, so
    that a constant becomes 0.
    """
    spread = column_deviations(values)
    return np.where(spread > _TINY, spread, np.inf)
