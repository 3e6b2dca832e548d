"""Utilities that take the weights of `gazeveil train` in place of training: what must fit, and what
is said of people who were trained on.

A network tested on its own training people looks better than it is. Files carry marks of their
training recordings (:mod:`gazeveil.models.marks`). People with a marked recording are left out of
the test set. Where that leaves no test set they stay in it, and the notes say so. Marks do not
cover other recordings of the same person. They do not cover a recording that was cut at its
beginning, resampled or protected before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.models.marks import RecordingMarks
from gazeveil.utility.base import Utility, UtilityResult

#: The value of the parameter `weights` that means: train here.
NONE = "none"

#: What a note says where weights were trained on recordings of the test.
TRAINED_ON = "were trained on by these weights, which may do better for them than for others"


def check_weights(owner: str, weights: object, allowed: bool, next_step: str) -> None:
    """Refuse a name of a file that is no text, or where nothing takes weights."""
    if not isinstance(weights, str) or not weights:
        checks.refuse(owner, "weights", "the name of a file, or none", weights)
    if weights != NONE and not allowed:
        checks.refuse(owner, "weights", "none where no network is used", weights, next_step)


def need_same(utility: Utility, name: str, trained_with: object, weights: str) -> None:
    """Refuse a parameter that differs from what the weights were trained with.

    Raises
    ------
    ParameterError
        Where it does.
    """
    got = getattr(utility, name)
    if got != trained_with:
        raise ParameterError(
            f"The weights in {weights} were trained with {name}={trained_with}. Got {name}={got}"
            f" instead. Write {utility.name}:{name}={trained_with},..., or train others.",
            name=name,
            got=got,
        )


def origin_of(weights: str, about: Mapping[str, object]) -> str:
    """Where a network comes from, for a note."""
    people = about.get("people_trained")
    # A stranger wrote it: nothing but a number of people goes into a note.
    known = type(people) is int and 0 < people < 10**9
    whom = f"{people:,} people" if known else "people it does not tell of"
    return f"weights of {Path(weights).name}, trained on {whom}, not here"


def trained_people(raw: RecordingSet, marks: RecordingMarks) -> frozenset[str]:
    """Whose recordings are marked: the people who were trained on, as far as it is known."""
    return frozenset() if raw.cohort is None else marks.people(raw.cohort)


def to_test(people: Iterable[str], trained: Collection[str]) -> tuple[str, ...]:
    """Who is tested with weights, sorted: people who were not trained on, or all where there are no
    others.

    Examples
    --------
    >>> to_test("cab", "b"), to_test("ab", "abc")
    (('a', 'c'), ('a', 'b'))
    """
    everybody = sorted(people)
    return tuple(p for p in everybody if p not in trained) or tuple(everybody)


def named_if_trained_on(
    results: tuple[UtilityResult, ...], raw: RecordingSet, trained: frozenset[str]
) -> tuple[UtilityResult, ...]:
    """The same figures; their notes say how many of the people tested were trained on, or that such
    people were left out, as far as it is known.

    Parameters
    ----------
    results : tuple of UtilityResult
        Whose parts are people.
    raw : RecordingSet
        As recorded.
    trained : frozenset of str
        As :func:`trained_people` gives them.
    """
    asked = {name for result in results for name in result.names}
    # Names of a release may be new: then everybody may have been tested.
    people = asked & set(raw.persons) or set(raw.persons)
    if people & trained:
        note = f"{len(people & trained)} of {len(people)} people tested {TRAINED_ON}"
    elif trained:
        note = f"{len(trained)} people who were trained on by these weights are left out"
    else:
        note = "none of these recordings was trained on, as far as its marks tell"
    return tuple(replace(r, note=f"{r.note}; {note}") for r in results)


def cautions(notes: Iterable[tuple[str, str]]) -> list[str]:
    """One sentence for each utility whose weights were trained on people it tested.

    Parameters
    ----------
    notes : iterable of (str, str)
        The utility and the notes of its figures, of every draw and release.

    Examples
    --------
    >>> cautions([("prediction", ""), ("prediction", f"1 of 2 people tested {TRAINED_ON}")])
    ... # doctest: +ELLIPSIS
    ['prediction: in 1 of 2 cells, people tested were trained on by these weights...']
    """
    counts: dict[str, list[bool]] = {}
    for utility, note in notes:
        counts.setdefault(utility, []).append(TRAINED_ON in note)
    return [
        f"{utility}: in {sum(known)} of {len(known)} cells, people tested {TRAINED_ON}. Test"
        " others, or train weights on others."
        for utility, known in counts.items()
        if any(known)
    ]
