"""`demographics`: attributes of the people, generalised to k-anonymity (supplement of David-John et
al. 2023).

Every person ends up in a group of at least k people with the same released age range and gender.
`corrected` finds the partition with the most groups
(:mod:`gazeveil.privacy.demographics`): on the 31 people of the supplement 7 groups for
k = 4, or 6 with every gender kept, where the supplement has 5. `published` applies the supplement's
own ranges, which exist for k = 4, 6, 8 and 15.

The game for demographics: count how many people share each released record.

Groups of at least k people with the same generalised attributes: the exact optimum for age and
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

import math
import numbers
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import ClassVar, NamedTuple, TypeAlias

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.ksame import fewest_sharing

#: Person to attributes, as `cohort.people` has it.
People: TypeAlias = Mapping[str, Mapping[str, object]]

#: The supplement's ranges: k -> (gender or None for both, youngest, oldest).
PUBLISHED: Mapping[int, tuple[tuple[str | None, int, int], ...]] = {
    4: (("F", 23, 31), ("M", 23, 27), ("M", 29, 31), ("M", 32, 33), ("M", 35, 52)),
    6: (("F", 23, 31), ("M", 23, 27), ("M", 29, 33), ("M", 35, 52)),
    8: ((None, 23, 27), (None, 28, 31), (None, 32, 52)),
    15: ((None, 23, 28), (None, 29, 52)),
}

#: What stands for a withheld value.
ANY = "any"


class AttributeNames(tuple[str, ...]):
    """Names of attributes, `age:gender` as text: a comma parts parameters on the command line and
    in a certificate, from which the mechanism is made again.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return ":".join(self)


@dataclass(frozen=True)
class Demographics(Mechanism[People]):
    """Age and gender (or other attributes) generalised to k-anonymity.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    attributes : tuple of str
        What to release; all else is left out. `("age", "gender")` is solved exactly, any other
        choice by Mondrian.
    mixed : bool
        Whether age bands may withhold the gender where that gives more groups.
    """

    name: ClassVar[str] = "demographics"
    label: ClassVar[str] = "k-anonymous demographics"
    summary: ClassVar[str] = "Coarsens age and gender until k people share them."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "people"
    paper: ClassVar[str] = "David-John et al. 2023, supplement"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim("k-anonymity", "user", "proved", "the released attributes alone"),
        "published": Claim(
            "k-anonymity",
            "user",
            "proved",
            "the released attributes alone; ranges exist for k = 4, 6, 8, 15",
        ),
    }

    k: int
    attributes: tuple[str, ...] = field(default=("age", "gender"), kw_only=True)
    mixed: bool = field(default=True, kw_only=True)

    def check(self) -> None:
        """Check k and the attributes."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        names = AttributeNames(
            self.attributes.split(":") if isinstance(self.attributes, str) else self.attributes
        )
        if (
            not names
            or not all(isinstance(n, str) and n for n in names)
            or len(set(names)) < len(names)
        ):
            checks.refuse(self.name, "attributes", "a tuple of different names", self.attributes)
        self.store("attributes", names)
        if self.reading == "published":
            if self.k not in PUBLISHED:
                checks.refuse(
                    self.name,
                    "k",
                    "4, 6, 8 or 15 in the published reading, for which the supplement gives ranges",
                    self.k,
                )
            if set(names) != {"age", "gender"}:
                checks.refuse(
                    self.name,
                    "attributes",
                    "age and gender in the published reading",
                    self.attributes,
                )

    def release(self, data: People, seed: int | None = None) -> Release[People]:
        """Generalised attributes of the same people, as `cohort.people` has them. The seed is
        accepted for uniformity: nothing here is random.

        Raises
        ------
        DataError
            For fewer than k people, for a missing attribute, or where no partition exists.
        """
        if not isinstance(data, Mapping):
            checks.refuse(
                self.name,
                "data",
                "a mapping of person to attributes",
                type(data).__name__,
                "Take cohort.people.",
            )
        rows = {p: {n: self._value(p, n, a) for n in self.attributes} for p, a in data.items()}
        if len(rows) < self.k:
            raise DataError(
                f"{self.name} needs at least k = {self.k} people. Got {len(rows)}. Nothing was"
                " released."
            )
        if self.reading == "published":
            released = self._published(rows)
        elif set(self.attributes) == {"age", "gender"}:
            released = self._exact(rows)
        else:
            released = self._mondrian(rows)
        return Release(
            {p: released[p] for p in data},
            self._guarantee(),
            self.provenance(None),
            fewest_sharing(self.name, _alike(released), self.k),
        )

    def _value(self, person: str, name: str, attributes: object) -> float | str:
        value = attributes.get(name) if isinstance(attributes, Mapping) else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise DataError(
                f"Person '{person}' has no {name}. Leave the person or the attribute out; a blank"
                " would single people out. Nothing was released."
            )
        if name == "gender" or isinstance(value, str):
            if name == "age":
                raise DataError(
                    f"The age of person '{person}' must be a number. Got {value!r} instead. Nothing"
                    " was released."
                )
            return str(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, numbers.Real)
            or not math.isfinite(value)
        ):
            raise DataError(
                f"The {name} of person '{person}' must be a finite number or text. Got {value!r}"
                " instead. Nothing was released."
            )
        return float(value)

    def _exact(self, rows: Mapping[str, Mapping[str, float | str]]) -> dict[str, dict[str, object]]:
        ages = {p: float(a["age"]) for p, a in rows.items()}
        genders = {p: str(a["gender"]) for p, a in rows.items()}
        groups = best_groups(ages, genders, self.k, self.mixed)
        if not groups:
            raise DataError(
                f"No partition keeps the gender of everybody in groups of k = {self.k}. Allow"
                " mixed=True or choose a smaller k. Nothing was released."
            )
        return {
            p: {"age": _span(g.low, g.high), "gender": g.gender if g.gender is not None else ANY}
            for g in groups
            for p in g.people
        }

    def _published(
        self, rows: Mapping[str, Mapping[str, float | str]]
    ) -> dict[str, dict[str, object]]:
        result: dict[str, dict[str, object]] = {}
        for person, a in rows.items():
            fitting = [
                b
                for b in PUBLISHED[self.k]
                if (b[0] is None or str(a["gender"]).upper().startswith(b[0]))
                and b[1] <= float(a["age"]) <= b[2]
            ]
            if not fitting:
                raise DataError(
                    f"Person '{person}' fits none of the supplement's ranges for k = {self.k}. Use"
                    " the corrected reading. Nothing was released."
                )
            gender, low, high = fitting[0]
            result[person] = {
                "age": _span(low, high),
                "gender": ANY if gender is None else str(a["gender"]),
            }
        if min(_alike(result)) < self.k:
            raise DataError(
                f"With the supplement's ranges a group has {min(_alike(result))} people, fewer than"
                f" k = {self.k}. Nothing was released."
            )
        return result

    def _mondrian(
        self, rows: Mapping[str, Mapping[str, float | str]]
    ) -> dict[str, dict[str, object]]:
        result: dict[str, dict[str, object]] = {}
        for group in mondrian(rows, self.attributes, self.k):
            shared = {n: _general([rows[p][n] for p in group]) for n in self.attributes}
            result |= {p: dict(shared) for p in group}
        return result

    def _guarantee(self) -> Guarantee:
        return Guarantee(
            "k-anonymity",
            counts={"k": Fraction(self.k)},
            alike="attributes",
            mechanism=self.title,
            assumptions=("an attacker links by the released attributes alone",),
            not_covered=(
                "the gaze itself, which identifies people within a group",
                "what a whole group has in common",
                "the youngest and the oldest age of each group, which are ages of real people",
                "other releases about the same people",
            ),
            reason="proofs/demographics.md",
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.audit.people import crowd_game

        return crowd_game(self, unit)


def _alike(released: Mapping[str, Mapping[str, object]]) -> Collection[int]:
    """How many people share each released row."""
    return Counter(tuple(row.values()) for row in released.values()).values()


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"


def _general(values: list[float | str]) -> str:
    distinct = sorted(set(map(str, values)))
    if all(not isinstance(v, str) for v in values):
        own = [float(v) for v in values]
        return _span(min(own), max(own))
    return distinct[0] if len(distinct) == 1 else ANY


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

    return up_to(len(ages)) if mixed else band(0, len(ages)) if ages else None


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
