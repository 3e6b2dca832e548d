"""People in groups of at least k: drawn without looking at the data, or formed of people who are
alike (MDAV).

MDAV (maximum distance to average vector, Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and
Torra 2005): while 3k or more people are left, take the one farthest from their centre and the one
farthest from that one, and give each its k - 1 nearest; with 2k to 3k - 1 left take one such group
and let the rest be the last one; with fewer, the rest is the last one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.randomness.uniform import shuffled
from gazeveil.privacy.tables.sequences.recordings import Sequences


def need(owner: str, people: int, k: int) -> None:
    """Refuse a table of fewer than k people."""
    if people < k:
        raise DataError(
            f"{owner} with k = {k} needs at least {k} people, and this table has {people}. Choose a"
            " smaller k. Nothing was released."
        )


def fewest_sharing(owner: str, sharing: Iterable[int], k: int) -> dict[str, int]:
    """How many people share a released cell (one group at one stimulus, session and task), at
    least and at most, for the curator.

    Raises
    ------
    DataError
        Where no cell is shared.
    """
    counts = [count for count in sharing if count > 1]
    if not counts:
        raise DataError(
            f"{owner} with k = {k} averages what the people of a group have in common, and here one"
            " person at most shares a stimulus, session and task with a group. Give recordings that"
            " belong together the same names. Nothing was released."
        )
    return {"fewest_sharing": min(counts), "most_sharing": max(counts)}


def random_groups(people: int, k: int, words: Words) -> list[Ints]:
    """A random partition of 0, ..., people - 1 into floor(people / k) groups of k to 2k - 1.

    The shuffled list is dealt out in turn, so sizes differ by at most one; they depend on the two
    numbers alone.
    """
    order = shuffled(people, words)
    groups = people // k
    return [np.sort(order[g::groups]) for g in range(groups)]


def blocks(people: int, k: int, words: Words) -> list[Ints]:
    """The shuffled list cut into blocks of k; the last block has what is left, be it one person."""
    order = shuffled(people, words)
    return [np.sort(order[start : start + k]) for start in range(0, people, k)]


def mdav(points: Floats, k: int) -> list[Ints]:
    """Groups of k to 2k - 1 points that are near one another.

    Parameters
    ----------
    points : array of float64, shape (people, dimensions)
        One point per person.
    k : int
        Smallest group.
    """
    left = np.arange(len(points))
    groups: list[Ints] = []

    def distance(place: Floats) -> Floats:
        squares: Floats = ((points[left] - place) ** 2).sum(axis=1)
        return squares

    def take(centre: int) -> None:
        nonlocal left
        # Ties go to the earlier person: the same people give the same groups.
        near = np.argsort(distance(points[centre]), kind="stable")[:k]
        groups.append(np.sort(left[near]))
        left = np.delete(left, near)

    while len(left) >= 2 * k:
        more = len(left) >= 3 * k
        far = int(left[distance(points[left].mean(axis=0)).argmax()])
        opposite = int(left[distance(points[far]).argmax()])
        take(far)
        if more:
            # The opposite person may have been among the nearest where points coincide.
            take(opposite if opposite in left else int(left[distance(points[far]).argmax()]))
    groups.append(np.sort(left))
    return groups


def summaries(seqs: Sequences, people: list[str]) -> Floats:
    """One point per person, in the order of `people`, for :func:`mdav`: how their features differ
    from everybody's on the same material.

    Each recording's mean of each feature, less the mean of that over all people with the same
    stimulus, session and task; averaged over the person's recordings; divided by the standard
    deviation over people. What was never measured counts as average.
    """
    ordered = seqs.table.values[seqs.order]
    finite = np.isfinite(ordered)
    sums = np.add.reduceat(np.where(finite, ordered, 0.0), seqs.starts[:-1], axis=0)
    counts = np.add.reduceat(finite.astype(np.float64), seqs.starts[:-1], axis=0)
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    cells = {cell: i for i, cell in enumerate(sorted({key[1:] for key in seqs.keys}))}
    centred = (
        means
        - _mean_by(means, np.array([cells[key[1:]] for key in seqs.keys]), len(cells))[
            [cells[key[1:]] for key in seqs.keys]
        ]
    )
    place = {person: i for i, person in enumerate(people)}
    points = np.nan_to_num(
        _mean_by(centred, np.array([place[key[0]] for key in seqs.keys]), len(people))
    )
    deviation = points.std(axis=0)
    return np.divide(points, deviation, out=np.zeros_like(points), where=deviation > 0)


def _mean_by(values: Floats, labels: Ints, count: int) -> Floats:
    """Means over rows with the same label, NaN left out; NaN where nothing is left."""
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    finite = np.isfinite(values)
    np.add.at(sums, labels, np.where(finite, values, 0.0))
    np.add.at(counts, labels, finite)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
