"""What the k-same mechanisms on recordings share: who is in a group, what a group has in common,
and when it is left out.

One partition of all people serves everything; it never looks at the data. For each group and each
stimulus, session and task: if fewer than k members have a recording of it, it is left out for the
whole group; otherwise every member, those without one too, gets the same. That is the promise of
proofs/k-same-synth.md and proofs/clock-render-k-same.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words
from gazeveil.privacy.tables.ksame import fewest_sharing, random_groups

#: Stimulus, session, task.
Cell: TypeAlias = tuple[str, str, str]


class Timed(Protocol):
    """What is known of a recording."""

    @property
    def rate_hz(self) -> float:
        """Samples per second; not above 0, or NaN, where it is not known."""


class Framed(Timed, Protocol):
    """What is known of one with samples in a space."""

    @property
    def space(self) -> Space:
        """What degrees mean."""

    @property
    def samples(self) -> int:
        """How many there are."""


@dataclass(frozen=True)
class Frame:
    """What recordings that must not be told apart have in common whatever happens in them.

    Parameters
    ----------
    space : Sphere or Screen
        What their degrees mean.
    rate_hz : float
        Samples per second.
    samples : int
        How many each of them has.
    """

    space: Space
    rate_hz: float
    samples: int

    @property
    def seconds(self) -> float:
        """How long they last."""
        return self.samples / self.rate_hz


_NOT_COVERED = (
    "what all members of a group have in common",
    "which stimuli a group saw, and how long its recordings are",
    "somebody who knows the other members' raw data and can subtract it",
    "a second release about the same people with another partition",
)

Member = TypeVar("Member", bound=Timed)
Law = TypeVar("Law")


def enough_people(owner: str, data: Cohort, k: int) -> list[str]:
    """The people of a cohort, sorted; fewer than k are refused."""
    if not isinstance(data, Cohort):
        checks.refuse(
            owner,
            "data",
            "a Cohort",
            data,
            "Put recordings into one with gazeveil.Cohort(recordings).",
        )
    people = sorted({key[0] for key in data.keys})
    if len(people) < k:
        raise DataError(
            f"{owner} with k = {k} needs at least {k} people, and this cohort has recordings of"
            f" {len(people)}. Choose a smaller k. Nothing was released."
        )
    return people


def law_guarantee(title: str, k: int, proof: str) -> Guarantee:
    """Recordings of one law for at least k people."""
    return Guarantee(
        "k-anonymity",
        counts={"k": Fraction(k)},
        alike="law",
        mechanism=title,
        assumptions=("the release is the only one made about these people", ASSUMPTION),
        not_covered=_NOT_COVERED,
        reason=proof,
    )


def groups_of(people: list[str], k: int, words: Words) -> list[tuple[str, ...]]:
    """A partition in groups of k to 2k - 1, drawn without looking at the data."""
    return [tuple(people[i] for i in group) for group in random_groups(len(people), k, words)]


def shared(
    known: Mapping[RecordingKey, Member],
    groups: Iterable[tuple[str, ...]],
    k: int,
    common: Callable[[list[Member]], Law],
) -> tuple[dict[RecordingKey, Law], dict[str, int]]:
    """What each person gets, and counts for the curator: how many people share a cell at least and
    at most, and how many cells of groups were left out.

    Parameters
    ----------
    known : mapping
        What is known of each recording. One whose rate is not known tells nothing about time: it
        counts as not there.
    groups : iterable of tuples of people
        The partition.
    k : int
        Members who must have a recording.
    common : callable
        What members with a recording have in common.

    Raises
    ------
    DataError
        If nothing is left.
    """
    laws: dict[RecordingKey, Law] = {}
    sharing: list[int] = []
    suppressed, most = 0, 0
    cells = sorted({key[1:] for key in known})
    for group in groups:
        for cell in cells:
            recordings = [known[p, *cell] for p in group if (p, *cell) in known]
            members = [r for r in recordings if r.rate_hz > 0]
            most = max(most, len(members))
            if len(members) >= k:
                sharing.append(len(members))
                laws.update(dict.fromkeys([(p, *cell) for p in group], common(members)))
            else:
                suppressed += bool(recordings)
    if not laws:
        raise DataError(
            f"No stimulus, session and task has recordings of {k} members of one group (the most"
            f" is {most}). Choose a smaller k, or give recordings that belong together the same"
            " names. Nothing was released."
        )
    return laws, {**fewest_sharing("k-same", sharing, k), "suppressed": suppressed}


def unknown_rates(known: Mapping[RecordingKey, Timed]) -> int:
    """Recordings whose rate is not known."""
    return sum(not recording.rate_hz > 0 for recording in known.values())


def one_kind_of_space(spaces: Iterable[tuple[RecordingKey, Space]]) -> None:
    """Refuse a stimulus that some saw on a sphere and some on a screen: their degrees cannot be
    averaged.
    """
    kinds: dict[tuple[str, str, str], bool] = {}
    for key, space in spaces:
        if kinds.setdefault(key[1:], isinstance(space, Sphere)) != isinstance(space, Sphere):
            raise DataError(
                f"Some recordings of stimulus '{key[1]}' are on a sphere and some on a screen. Give"
                " the two different names. Nothing was released."
            )


def mean(values: list[float]) -> float:
    """The mean, and exactly the value where all are equal."""
    return values[0] if min(values) == max(values) else float(np.mean(values))


def common_space(spaces: list[Space]) -> Space:
    """One space for all members: a sphere, or a screen of the mean size where screens differ."""
    first = spaces[0]
    if isinstance(first, Sphere) or all(s == first for s in spaces):
        return first
    names = ("width_px", "height_px", "width_mm", "height_mm", "distance_mm")
    return Screen(**{n: mean([getattr(s, n) for s in spaces]) for n in names})


def common_frame(members: Sequence[Framed], k: int) -> Frame:
    """One frame for at least k recordings of known rate: their common space, the mean of their
    rates, and the length of the k-th longest.

    Exact rates and lengths are nearly as unique as names: of recordings that are to be exchangeable
    none may keep its own. The k-th longest, because until then at least k people have something to
    give.
    """
    rate = mean([m.rate_hz for m in members])
    seconds = sorted((m.samples / m.rate_hz for m in members), reverse=True)[k - 1]
    return Frame(common_space([m.space for m in members]), rate, round(seconds * rate))
