"""What the readings `published` of Bozkir et al. 2021 take from the data: sensitivities over pairs
of participants, and floating-point noise.

Bozkir et al. (PLOS ONE 2021), equation 7: the sensitivity of a feature is the largest
distance between the sequences of two participants, over the longer of the two. It is computed for
each document (stimulus, session and task) separately, as the paper applies its methods; a shorter
sequence counts as 0 where it has ended. A document that only one person has takes the sensitivity
over all documents. All of this is a function of the very data it should protect: whoever knows the
scale of the noise knows something about the two people farthest apart, and where all participants
agree there is no noise at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.tables.sequences.recordings import Sequences
from gazeveil.privacy.tables.sequences.table_guarantee import midpoints


def generator(seed: int | None, *keys: str | int) -> np.random.Generator:
    """Floating-point randomness, as the papers' programs use it: seeded by the operating system, or
    by a test stream.
    """
    return np.random.default_rng(source(seed, *keys).take(4))


@dataclass(frozen=True, eq=False)
class PublishedDocument:
    """The recordings of one stimulus, session and task.

    Parameters
    ----------
    recordings : array of int64, shape (people,)
        Which recordings of the table.
    lengths : array of int64, shape (people,)
        Rows of each.
    values : array of float64, shape (people, features, longest)
        The sequences, 0 after the end of each.
    people : int
        Different people among them.
    """

    recordings: Ints
    lengths: Ints
    values: Floats
    people: int


def documents(owner: str, seqs: Sequences) -> list[PublishedDocument]:
    """The recordings of a table by document, in order of first appearance.

    Raises
    ------
    DataError
        With one person alone: a distance between participants needs two.
    """
    if len(seqs.people) < 2:
        raise DataError(
            f"{owner} with reading=published takes its sensitivity from pairs of participants and"
            " this table has one person. Use reading=corrected, which takes it from the public"
            " bounds. Nothing was released."
        )
    table = np.where(np.isnan(seqs.table.values), midpoints(seqs), seqs.table.values)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i, key in enumerate(seqs.keys):
        groups.setdefault(key[1:], []).append(i)
    return [
        _document(seqs, table, np.array(members, dtype=np.int64)) for members in groups.values()
    ]


def _document(seqs: Sequences, table: Floats, members: Ints) -> PublishedDocument:
    lengths = seqs.lengths[members]
    values = np.zeros((len(members), table.shape[1], int(lengths.max())))
    for place, (recording, length) in enumerate(
        zip(members.tolist(), lengths.tolist(), strict=True)
    ):
        values[place, :, :length] = table[seqs.rows(recording)].T
    return PublishedDocument(
        members, lengths, values, len({seqs.keys[m][0] for m in members.tolist()})
    )


def everything(seqs: Sequences, docs: list[PublishedDocument]) -> PublishedDocument:
    """All recordings as one document, for documents that only one person has."""
    longest = max(d.values.shape[2] for d in docs)
    values = np.zeros((len(seqs.keys), docs[0].values.shape[1], longest))
    lengths = np.zeros(len(seqs.keys), dtype=np.int64)
    for d in docs:
        values[d.recordings, :, : d.values.shape[2]] = d.values
        lengths[d.recordings] = d.lengths
    return PublishedDocument(np.arange(len(seqs.keys)), lengths, values, len(seqs.people))


def largest_distance(values: Floats, order: int, chunk: int | None = None) -> Floats:
    """The largest distance between two participants, per feature and chunk (equation 7).

    Parameters
    ----------
    values : array of float64, shape (people, features, rows)
        Sequences, padded with 0.
    order : {1, 2}
        Sum of absolute differences, or root of the sum of squares.
    chunk : int, optional
        Rows of a chunk; all rows are one where it is not given.

    Returns
    -------
    array of float64, shape (features, chunks)
    """
    people, features, rows = values.shape
    size = rows if chunk is None else chunk
    edges = np.arange(0, rows, size)
    best = np.zeros((features, len(edges)))
    for person in range(people - 1):
        apart = np.abs(values[person + 1 :] - values[person])
        if order == 2:
            apart *= apart
        np.maximum(best, np.add.reduceat(apart, edges, axis=2).max(axis=0), out=best)
    return np.sqrt(best) if order == 2 else best
