"""Operations on maps: recordings of a cohort, releases about the same people, releases about
disjoint people.

Each takes the loss of every part *for the same change*. Nothing is compared by its numbers alone: a
window of 500 samples at 60 Hz is not one of 500 samples at 1000 Hz, and a move along a great circle
is not one in a plane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss, PromiseError, worst
from gazeveil.privacy.promise.privacy_map import PrivacyMap
from gazeveil.privacy.promise.stream_map import StreamMap


@dataclass(frozen=True)
class RecordingsMap(PrivacyMap):
    """Recordings that were protected one by one, each with noise of its own.

    A sample, a window and a recording lie in one recording, nobody knows in which: the worst of
    them counts. A person is all their recordings: those add up, and the worst person counts.

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
