"""What is published about people: age and gender in groups of at least k who are alike.

A person without an attribute would stand out by the gap. So the number of people without a row is
zero or at least k. Where neither is possible, an attribute is left out, or the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gazeveil.errors import DataError
from gazeveil.privacy.demographics import Demographics
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.publication.choices import PublicationChoices

# Words for an attribute that is generalised, and its published name.
_KNOWN = {"age": "age", "gender": "gender", "sex": "gender"}

_CHOICES = (("age", "gender"), ("age",), ("gender",))


@dataclass(frozen=True)
class PeopleTable:
    """The published table of people, by raw name; people without a row have no entry. `guarantee`
    is that of the generalised attributes, None where none are published. `kept` are released
    unchanged; notes are sentences for the curator.
    """

    rows: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    guarantee: Guarantee | None = None
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def attribute_names(people: Mapping[str, Mapping[str, object]]) -> tuple[str, ...]:
    """All attributes that anybody has."""
    return tuple(dict.fromkeys(n for attributes in people.values() for n in attributes))


def people_table(
    people: Mapping[str, Mapping[str, object]], choices: PublicationChoices
) -> PeopleTable:
    """Generalise what is known about everybody who has a recording in the release."""
    names = attribute_names(people)
    if not names:
        return PeopleTable()
    if "attributes" in choices.keep:
        return PeopleTable({p: dict(a) for p, a in people.items()}, None, names)
    kept = tuple(n for n in names if n in choices.keep)
    groups, promise, notes = _generalised(people, choices.k, kept)
    rows = {
        p: {**groups.get(p, {}), **{n: a[n] for n in kept if n in a}} for p, a in people.items()
    }
    rows = {p: row for p, row in rows.items() if row}
    published = {n for row in groups.values() for n in row}
    dropped = [n for n in names if n not in kept and _KNOWN.get(n.lower()) not in published]
    if dropped:
        notes = (*notes, f"Not published about people: {', '.join(dropped)}.")
    return PeopleTable(rows, promise, kept, notes)


def _generalised(
    people: Mapping[str, Mapping[str, object]], k: int, kept: tuple[str, ...]
) -> tuple[Mapping[str, Mapping[str, object]], Guarantee | None, tuple[str, ...]]:
    """Groups of people, what they promise, and notes."""
    usual = {
        p: {
            _KNOWN[n.lower()]: v
            for n, v in attributes.items()
            if n.lower() in _KNOWN and n not in kept
        }
        for p, attributes in people.items()
    }
    notes: list[str] = []
    for attributes in _CHOICES:
        whole = {p: a for p, a in usual.items() if all(_is_known(a.get(n)) for n in attributes)}
        if not whole:
            continue
        without = len(people) - len(whole)
        words = " and ".join(attributes)
        if len(whole) < k or 0 < without < k:
            few = f"{len(whole)} people have them and {without} have not"
            notes.append(f"Not published: {words} of people, because {few}, and k is {k}.")
            continue
        try:
            release = Demographics(k, attributes=attributes).release(whole)
        except DataError as error:
            notes.append(f"Not published: {words} of people. {error}")
            continue
        if without:
            notes.append(f"{without} people have no row in the people's table.")
        return release.data, release.guarantee, tuple(notes)
    return {}, None, tuple(notes)


def _is_known(value: object) -> bool:
    # NaN is the one value that is not itself.
    return value is not None and value != "" and value == value
