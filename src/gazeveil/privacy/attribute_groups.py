"""Groups of at least k people with the same generalised attributes: the exact optimum for age and
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
from itertools import accumulate
from typing import NamedTuple, TypeAlias

#: Number of groups, minus the people whose gender is withheld, minus the cost in years: larger is
#: better.
Value: TypeAlias = tuple[int, int, float]

#: Gender (None where it is withheld), first age and one past the last, as indices.
AgeRange: TypeAlias = tuple[str | None, int, int]


@dataclass(frozen=True)
class Group:
    """People who become alike: the youngest and oldest age among them, and their gender, or None
    where it is withheld.
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
    distinct = sorted(set(ages.values()))
    place = {age: i for i, age in enumerate(distinct)}
    counts = {g: [0] * (len(distinct) + 1) for g in sorted(set(genders.values()))}
    for person, age in ages.items():
        counts[genders[person]][place[age] + 1] += 1
    best = _best_split(distinct, {g: list(accumulate(c)) for g, c in counts.items()}, k, mixed)
    return [] if best is None else [_group(ages, genders, distinct, *r) for r in best.ranges]


class _Split(NamedTuple):
    """A way to split people, and what it is worth."""

    value: Value
    ranges: tuple[AgeRange, ...]


_NOBODY = _Split((0, 0, 0.0), ())


def _best_split(
    ages: Sequence[float], sums: Mapping[str, Sequence[int]], k: int, mixed: bool
) -> _Split | None:
    """The best split of everybody, None where there is none; `sums` are the running sums of people
    of each gender over the distinct ages.
    """

    def whole(gender: str | None, i: int, j: int) -> _Split | None:
        """All people of some ages as one group."""
        people = sum(s[j] - s[i] for g, s in sums.items() if gender in (None, g))
        cost = (ages[j - 1] - ages[i]) * people
        value = (1, -people if gender is None else 0, -cost)
        return _Split(value, ((gender, i, j),)) if people >= k else None

    @cache
    def one_gender(gender: str, i: int, j: int) -> _Split | None:
        if sums[gender][j] == sums[gender][i]:
            return _NOBODY
        best = whole(gender, i, j)
        for m in range(i + 1, j):
            # The last group starts at m, and both parts must be non-empty.
            last = whole(gender, m, j)
            if last is None or sums[gender][m] == sums[gender][i]:
                continue
            best = _better(best, _joined(one_gender(gender, i, m), last))
        return best

    @cache
    def band(i: int, j: int) -> _Split | None:
        apart: _Split | None = _NOBODY
        for gender in sums:
            apart = _joined(apart, one_gender(gender, i, j))
        return _better(apart, whole(None, i, j)) if mixed else apart

    @cache
    def up_to(j: int) -> _Split | None:
        best = _NOBODY if j == 0 else None
        for i in range(j):
            best = _better(best, _joined(up_to(i), band(i, j)))
        return best

    if mixed:
        return up_to(len(ages))
    return band(0, len(ages)) if ages else None


def _joined(a: _Split | None, b: _Split | None) -> _Split | None:
    if a is None or b is None:
        return None
    value = (a.value[0] + b.value[0], a.value[1] + b.value[1], a.value[2] + b.value[2])
    return _Split(value, a.ranges + b.ranges)


def _better(old: _Split | None, new: _Split | None) -> _Split | None:
    """The new one only where it is worth more."""
    return new if new is not None and (old is None or new.value > old.value) else old


def _group(
    ages: Mapping[str, float],
    genders: Mapping[str, str],
    distinct: Sequence[float],
    gender: str | None,
    i: int,
    j: int,
) -> Group:
    low, high = distinct[i], distinct[j - 1]
    people = tuple(
        p for p, a in ages.items() if low <= a <= high and (gender is None or genders[p] == gender)
    )
    own = [ages[p] for p in people]
    return Group(people, min(own), max(own), gender)


def mondrian(
    rows: Mapping[str, Mapping[str, float | str]], names: Sequence[str], k: int
) -> list[tuple[str, ...]]:
    """Groups of at least k people by recursive median cuts along the named attributes: numbers, or
    text for categories.
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
