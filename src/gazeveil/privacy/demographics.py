"""`demographics`: attributes of the people, generalised to k-anonymity (supplement of David-John et
al. 2023).

Every person ends up in a group of at least k people with the same released age range and gender.
`corrected` finds the partition with the most groups
(:mod:`gazeveil.privacy.attribute_groups`): on the 31 people of the supplement 7 groups for
k = 4, or 6 with every gender kept, where the supplement has 5. `published` applies the supplement's
own ranges, which exist for k = 4, 6, 8 and 15.

The game for demographics: count how many people share each released record.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, TypeAlias

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.privacy.attribute_groups import best_groups, mondrian
from gazeveil.privacy.audit.crowds import crowd_game
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.release import Release

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
        given = self.attributes
        names = AttributeNames(given.split(":") if isinstance(given, str) else given)
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
        return Release({p: released[p] for p in data}, self._guarantee(), self.provenance(None))

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
        sizes: dict[tuple[object, ...], int] = {}
        for r in result.values():
            sizes[tuple(r.values())] = sizes.get(tuple(r.values()), 0) + 1
        if min(sizes.values()) < self.k:
            raise DataError(
                f"With the supplement's ranges a group has {min(sizes.values())} people, fewer than"
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
        return crowd_game(self, unit)


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"


def _general(values: list[float | str]) -> str:
    distinct = sorted(set(map(str, values)))
    if all(not isinstance(v, str) for v in values):
        own = [float(v) for v in values]
        return _span(min(own), max(own))
    return distinct[0] if len(distinct) == 1 else ANY
