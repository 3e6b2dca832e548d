"""Composition: what several releases about the same people promise together.

Rules (no others exist):

1. Releases about the same people add up, loss by loss for the same change
   (:mod:`gazeveil.privacy.composition`).
2. Releases about disjoint people count as the worst of them, if who is in which part was fixed
   without looking at the data.
3. Post-processing costs nothing and never appears here.
4. k-anonymity and plausible deniability do not compose: a second release about the same people is
   refused. Of disjoint people the smallest k counts.
5. What is not proved, or has no bound for the change, is refused.

Budgets are fractions. Conversions that need logarithms are rounded up, on a grid of one billionth,
so a printed number is never better than the truth.

Operations on maps: recordings of a cohort, releases about the same people, releases about
disjoint people.

Each takes the loss of every part *for the same change*. Nothing is compared by its numbers alone: a
window of 500 samples at 60 Hz is not one of 500 samples at 1000 Hz, and a move along a great circle
is not one in a plane.

Sums of pure epsilon and of rho stay valid when the next mechanism is chosen after seeing the last
answer (Rogers et al. 2016 for pure sums; Feldman and Zrnic 2021 and Whitehouse et al. 2023 for
rho).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.promise.loss import Change, Loss, PromiseError, worst
from gazeveil.privacy.promise.privacy_map import PrivacyMap, StreamMap


@dataclass(frozen=True)
class RecordingsMap(PrivacyMap):
    """Recordings that were protected one by one, each with noise of its own.

    A sample, a window and a recording lie in one recording, which is unknown: the largest loss
    counts. A person's loss is the sum over their recordings; the largest person's loss counts.

    Parameters
    ----------
    streams : tuple of StreamMap
        The different ones there are.
    people : frozenset of tuples of (int, int or None)
        For each person the stream and the samples of every recording, sorted; None where the length
        is not known.
    """

    streams: tuple[StreamMap, ...]
    people: frozenset[tuple[tuple[int, int | None], ...]]

    @classmethod
    def of(cls, recordings: Iterable[tuple[str, StreamMap, int | None]]) -> RecordingsMap:
        """From (person, map, samples) of every recording.

        Raises
        ------
        PromiseError
            If there are no recordings.
        """
        places: dict[StreamMap, int] = {}
        people: dict[str, list[tuple[int, int | None]]] = {}
        for person, stream, samples in recordings:
            people.setdefault(person, []).append((places.setdefault(stream, len(places)), samples))
        if not places:
            raise PromiseError("There are no recordings to promise anything about.")
        return cls(
            tuple(places),
            frozenset(
                tuple(sorted(p, key=lambda r: (r[0], -1 if r[1] is None else r[1])))
                for p in people.values()
            ),
        )

    @property
    def spaces(self) -> frozenset[str]:
        """Of all streams."""
        return frozenset().union(*(s.spaces for s in self.streams))

    @property
    def rates_hz(self) -> frozenset[float]:
        """Of all streams."""
        return frozenset(s.rate_hz for s in self.streams)

    def samples_of(self, change: Change) -> int | None:
        """The least number, which is the one that holds for every recording."""
        counts = [s.samples_of(change) for s in self.streams]
        return None if any(c is None for c in counts) else min(c for c in counts if c is not None)

    def loss(self, change: Change) -> Loss:
        """The worst recording, or the worst person."""
        if change.unit in ("sample", "window"):
            return worst(s.within(change) for s in self.streams)
        if change.unit == "recording":
            longest: dict[int, int] = {}
            for stream, samples in {recording for person in self.people for recording in person}:
                longest[stream] = max(longest.get(stream, 0), _known(samples))
            return worst(
                self.streams[stream].whole(change, samples) for stream, samples in longest.items()
            ).grouped(change.count)
        if change.unit == "user":
            return worst(self._person(change, person) for person in self.people).grouped(
                change.count
            )
        return self.streams[0].loss(change)

    def _person(self, change: Change, person: tuple[tuple[int, int | None], ...]) -> Loss:
        return reduce(
            add, (self.streams[stream].whole(change, _known(samples)) for stream, samples in person)
        )


def _known(samples: int | None) -> int:
    if samples is None:
        raise PromiseError(
            "What a recording or a person adds up to depends on the lengths of recordings, which"
            " are not known before they are read."
        )
    return samples


@dataclass(frozen=True)
class TogetherMap(PrivacyMap):
    """Several releases about the same people, with independent noise or each chosen after the last:
    their losses for the same change add up.
    """

    parts: tuple[PrivacyMap, ...]

    @property
    def spaces(self) -> frozenset[str]:
        """Of all parts."""
        return frozenset().union(*(p.spaces for p in self.parts))

    @property
    def rates_hz(self) -> frozenset[float]:
        """Of all parts."""
        return frozenset().union(*(p.rates_hz for p in self.parts))

    @property
    def about_table(self) -> bool:  # type: ignore[override]
        """Where every part is."""
        return all(p.about_table for p in self.parts)

    def samples_of(self, change: Change) -> int | None:
        """The least number."""
        counts = [c for c in (p.samples_of(change) for p in self.parts) if c is not None]
        return min(counts, default=None)

    def loss(self, change: Change) -> Loss:
        """The sum."""
        return reduce(add, (p.loss(change) for p in self.parts))


@dataclass(frozen=True)
class ApartMap(TogetherMap):
    """Several releases about disjoint people, who were parted without looking at the data: the
    worst of them counts.
    """

    def loss(self, change: Change) -> Loss:
        """The worst; several people or recordings may lie in different parts, so each counts as
        much as the worst one.
        """
        largest = worst(p.loss(change) for p in self.parts)
        if change.count == 1 or change.unit not in ("recording", "user"):
            return largest
        single = Change(change.unit, move_deg=change.move_deg, metric=change.metric)
        return worst([largest, worst(p.loss(single) for p in self.parts).grouped(change.count)])


class BudgetError(GazeveilError):
    """A release was refused by the account; nothing was spent. The message is the whole
    sentence.
    """

    def __init__(self, message: str, guarantee: Guarantee | None = None) -> None:
        super().__init__(message)
        self.guarantee = guarantee


_DEFINITION_OF = {
    "pure": "epsilon-dp",
    "concentrated": "rho-zcdp",
    "approximate": "epsilon-delta-dp",
}


def usable(guarantee: object) -> Guarantee:
    """The guarantee itself, if it can be added up."""
    if not isinstance(guarantee, Guarantee):
        raise BudgetError(
            f"The account takes guarantees. Got {type(guarantee).__name__}: what is not known"
            " cannot be added up."
        )
    if guarantee.definition in OF_PEOPLE:
        raise BudgetError(
            f"{guarantee.mechanism or guarantee.definition} does not compose: two such releases"
            " about the same people can single them out together. Reuse the partition in one"
            " release, or use a differentially private mechanism.",
            guarantee,
        )
    if guarantee.status != "proved" or guarantee.losses is None:
        status = guarantee.status if guarantee.definition != "none" else guarantee.definition
        raise BudgetError(
            f"{guarantee.mechanism or 'This release'} cannot be added up: its promise is"
            f" '{status}'. Only proved budgets can.",
            guarantee,
        )
    return guarantee


def compose(
    guarantees: Iterable[Guarantee],
    people: str = "same",
    partition: str = "unknown",
    change: Change | None = None,
) -> Guarantee:
    """Compose the promises of several releases, for every change that all of them bound.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        All proved. Differential privacy of any kind; k-anonymity and plausible deniability only
        about disjoint people.
    people : str
        `same`: about the same people, losses for the same change add up. `disjoint`: no person is
        in two of them, the worst counts.
    partition : str
        For `disjoint`: `data-independent` if who is in which part was fixed without looking at the
        data. Anything else is refused.
    change : Change, optional
        The change that the result speaks of first. By default that of the parts where they agree,
        else everything of one person.

    Raises
    ------
    BudgetError
        Where no rule applies, or a part has no bound for the change.
    """
    if isinstance(guarantees, Guarantee) or not isinstance(guarantees, Iterable):
        checks.refuse(
            "compose", "guarantees", "several guarantees", guarantees, "Put them into a list."
        )
    if not (change is None or isinstance(change, Change)):
        checks.refuse("compose", "change", "a Change", change)
    parts = list(guarantees)
    checks.one_of("compose", "people", people, ("same", "disjoint"))
    if not parts:
        raise BudgetError("There is nothing to compose. Give at least one guarantee.")
    if people == "disjoint" and all(
        isinstance(g, Guarantee) and g.definition in OF_PEOPLE for g in parts
    ):
        return _of_people(parts)
    parts = [usable(g) for g in parts]
    if people == "disjoint" and partition != "data-independent":
        raise BudgetError(
            "The largest of several budgets counts only if people were split without looking at the"
            " data. Say partition='data-independent'."
        )
    maps = tuple(g.losses for g in parts if g.losses is not None)
    together = TogetherMap(maps) if people == "same" else ApartMap(maps)
    own = [g.change for g in parts if g.change is not None]
    about = change or (
        own[0]
        if len(set(own)) == 1 and (people == "same" or own[0].unit == "user")
        else Change.person()
    )
    try:
        loss = together.loss(about)
    except PromiseError as error:
        raise BudgetError(
            f"These releases have no common promise about this change: {about}. {error}"
        ) from None
    kinds = {g.definition for g in parts}
    return Guarantee(
        kinds.pop() if len(kinds) == 1 and about in own else _DEFINITION_OF[loss.measure],
        together,
        about,
        mechanism=_joined(g.mechanism for g in parts),
        assumptions=tuple(dict.fromkeys(a for g in parts for a in g.assumptions)),
        not_covered=tuple(dict.fromkeys(c for g in parts for c in g.not_covered)),
        reason=(
            "sum over releases about the same people"
            if people == "same"
            else "largest over disjoint people"
        ),
    )


def _joined(names: Iterable[str]) -> str:
    several = list(dict.fromkeys(n for n in names if n))
    return (
        several[0]
        if len(several) == 1
        else ", ".join(several[:-1]) + f" and {several[-1]} together"
        if several
        else ""
    )


def _of_people(parts: list[Guarantee]) -> Guarantee:
    """k-anonymity or plausible deniability of disjoint people. Each record is shared within its own
    part, so the smallest k counts.
    """
    if len({(g.definition, g.alike) for g in parts}) > 1 or any(
        g.status != "proved" for g in parts
    ):
        raise BudgetError(
            "Promises of different kinds, or unproved ones, that compare people cannot be put"
            " together. Publish them as releases of their own."
        )
    counts = {"k": min(g.counts["k"] for g in parts)}
    if "gamma" in parts[0].counts:
        counts["gamma"] = max(g.counts["gamma"] for g in parts)
    return Guarantee(
        parts[0].definition,
        counts=counts,
        alike=parts[0].alike,
        mechanism=_joined(g.mechanism for g in parts),
        assumptions=tuple(dict.fromkeys(a for g in parts for a in g.assumptions)),
        not_covered=tuple(dict.fromkeys(c for g in parts for c in g.not_covered)),
        reason="smallest k over disjoint people",
    )
