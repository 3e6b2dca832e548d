"""Partitions of people into groups of at least k that are alike: the exact optimum for age and
gender, Mondrian for more.

**Exact.** People are sorted by age. A *band* is a run of consecutive distinct ages; its value is 1
if it stays whole and has at least k people of whatever gender, or the sum over genders of the best
split of that gender's people inside the band, if every gender there can be split at all. The best
sequence of bands by dynamic programming over distinct ages maximises the number of groups; among
these, the smallest number of people whose gender is withheld, then the smallest sum of (width of
the age range times people). O(A**4) steps for A distinct ages inside a table of inner optima, less
than a second for a hundred ages.

**Mondrian** (LeFevre et al. 2006). The group is cut at the median of the attribute with the largest
normalised spread, as long as both halves keep k people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

#: Groups, minus the people whose gender is withheld, minus the cost in years.
Value: TypeAlias = tuple[int, int, float]


@dataclass(frozen=True)
class Group:
    """People who become alike.

    Parameters
    ----------
    people : tuple of str
        Who.
    low, high : float
        Youngest and oldest age among them.
    gender : str or None
        Their gender, or None where it is withheld.
    """

    people: tuple[str, ...]
    low: float
    high: float
    gender: str | None


def best_groups(
    ages: Mapping[str, float], genders: Mapping[str, str], k: int, mixed: bool = True
) -> list[Group]:
    """The partition with the most groups of at least k people, and among those the narrowest age
    ranges.

    Parameters
    ----------
    ages, genders : mapping of person
        One entry per person in each.
    k : int
        Smallest group.
    mixed : bool
        Whether bands of ages may withhold the gender. Without it everybody's gender is kept, if
        that is possible at all.

    Returns
    -------
    list of Group
        Empty where no partition exists.
    """
    steps = sorted(set(ages.values()))
    place = {a: i for i, a in enumerate(steps)}
    kinds = sorted(set(genders.values()))
    counts = {g: [0] * (len(steps) + 1) for g in kinds}
    for person, age in ages.items():
        counts[genders[person]][place[age] + 1] += 1
    prefix = {g: _sums(c) for g, c in counts.items()}

    def size(gender: str, i: int, j: int) -> int:
        return prefix[gender][j] - prefix[gender][i]

    # A value is (groups, -people whose gender is withheld, -cost): larger is better. None:
    # impossible.
    @cache
    def one_gender(gender: str, i: int, j: int) -> tuple[Value, tuple[tuple[int, int], ...]] | None:
        if size(gender, i, j) == 0:
            return (0, 0, 0.0), ()
        best: tuple[Value, tuple[tuple[int, int], ...]] | None = None
        if size(gender, i, j) >= k:
            best = (1, 0, -_width(steps, i, j) * size(gender, i, j)), ((i, j),)
        for m in range(i + 1, j):
            # The last group starts at m, and both parts must hold somebody.
            if size(gender, m, j) < k or size(gender, i, m) == 0:
                continue
            head = one_gender(gender, i, m)
            if head is None:
                continue
            value = (head[0][0] + 1, 0, head[0][2] - _width(steps, m, j) * size(gender, m, j))
            if best is None or value > best[0]:
                best = value, (*head[1], (m, j))
        return best

    @cache
    def band(i: int, j: int) -> tuple[Value, tuple[tuple[str | None, int, int], ...]] | None:
        people = sum(size(g, i, j) for g in kinds)
        best: tuple[Value, tuple[tuple[str | None, int, int], ...]] | None = None
        parts = [(g, one_gender(g, i, j)) for g in kinds]
        if all(p is not None for _, p in parts):
            found = [(g, p) for g, p in parts if p is not None]
            best = (
                (sum(p[0][0] for _, p in found), 0, sum(p[0][2] for _, p in found)),
                tuple((g, a, b) for g, p in found for a, b in p[1]),
            )
        if mixed and people >= k:
            whole = (1, -people, -_width(steps, i, j) * people)
            if best is None or whole > best[0]:
                best = whole, ((None, i, j),)
        return best

    @cache
    def upto(j: int) -> tuple[Value, tuple[tuple[str | None, int, int], ...]] | None:
        if j == 0:
            return (0, 0, 0.0), ()
        best = None
        for i in range(j):
            head, tail = upto(i), band(i, j)
            if head is None or tail is None:
                continue
            value = (head[0][0] + tail[0][0], head[0][1] + tail[0][1], head[0][2] + tail[0][2])
            if best is None or value > best[0]:
                best = value, (*head[1], *tail[1])
        return best

    answer = upto(len(steps)) if mixed else band(0, len(steps)) if steps else None
    return (
        [] if answer is None else [_group(ages, genders, steps, g, i, j) for g, i, j in answer[1]]
    )


def _sums(counts: Sequence[int]) -> list[int]:
    total, result = 0, []
    for c in counts:
        total += c
        result.append(total)
    return result


def _width(steps: Sequence[float], i: int, j: int) -> float:
    return steps[j - 1] - steps[i]


def _group(
    ages: Mapping[str, float],
    genders: Mapping[str, str],
    steps: Sequence[float],
    gender: str | None,
    i: int,
    j: int,
) -> Group:
    inside = tuple(
        p
        for p, a in ages.items()
        if steps[i] <= a <= steps[j - 1] and (gender is None or genders[p] == gender)
    )
    own = [ages[p] for p in inside]
    return Group(inside, min(own), max(own), gender)


def mondrian(
    rows: Mapping[str, Mapping[str, float | str]], names: Sequence[str], k: int
) -> list[tuple[str, ...]]:
    """Groups of at least k people by recursive median cuts.

    Parameters
    ----------
    rows : mapping of person to attributes
        Numbers, or text for categories.
    names : sequence of str
        The attributes to cut by.
    k : int
        Smallest group.
    """
    ranks = {n: _ranks([rows[p][n] for p in rows]) for n in names}

    def cut(people: tuple[str, ...]) -> list[tuple[str, ...]]:
        spread = {
            n: (max(v) - min(v)) / max(len(ranks[n]) - 1, 1)
            for n in names
            for v in [[ranks[n][rows[p][n]] for p in people]]
        }
        for name in sorted(names, key=lambda n: -spread[n]):
            values = sorted(ranks[name][rows[p][name]] for p in people)
            for middle in dict.fromkeys((values[len(values) // 2], values[(len(values) - 1) // 2])):
                left = tuple(p for p in people if ranks[name][rows[p][name]] < middle)
                right = tuple(p for p in people if ranks[name][rows[p][name]] >= middle)
                if len(left) >= k and len(right) >= k:
                    return [*cut(left), *cut(right)]
        return [people]

    return cut(tuple(rows)) if len(rows) >= k else []


def _ranks(values: Sequence[float | str]) -> dict[float | str, int]:
    """Order of distinct values; numbers before text."""
    order = sorted(
        set(values),
        key=lambda v: (
            isinstance(v, str),
            v if isinstance(v, str) else "",
            0.0 if isinstance(v, str) else v,
        ),
    )
    return {v: i for i, v in enumerate(order)}
