"""k-same-synth: recordings drawn from event parameters that groups of people share (David-John et
al. 2023 and its supplement, section 2.1).

Fixations are (mu_x, mu_y, sigma_x, sigma_y, samples), saccades (a, b, c, samples): see
:mod:`gazeveil.privacy.synthesis.motion`.

`published`: k-same-select on the sequences of fixations and, in a second call with groups of its
own, on those of saccades, redrawn for each task (each stimulus where no task is named); sequences
are padded by their last row and cut back to each person's own number of events. Samples are drawn
from the averages in each person's own order of events, with their own gaps, to their own length.
A recording whose fixations or saccades no other member of its group contributes to is left out.
Refuted, as k-same-select is.

`corrected`, for N >= k people:

1. one partition of all people for everything, in floor(N / k) groups of k to 2k - 1;
2. for each group and each stimulus, session and task: if fewer than k members have it, it is left
   out for the whole group;
3. the members' sequences of (fixation, following saccade, lost time) are averaged pair by pair,
   durations in seconds included, places on a sphere as directions; as many pairs as at least k
   members have, and as many seconds as the k-th longest recording;
4. every member, those without data too, gets samples drawn anew from these same parameters, with
   the same times and the same lost samples. Samples of a fixation hang together over 20 ms, where
   the paper draws them independently: that looks like saccades to detectors.

Within a group only the draws differ, and they have one law: proofs/k-same-synth.md. `match="crowd"`
is an improvement of step 3 under the same promise: pairs are averaged on a common clock instead of
by their number, and places are weighted by agreement (:func:`average_in_time`).

k-same-synth as printed: two calls of k-same-select on event parameters, and each person's own
frame of events around the averages.

What the k-same mechanisms on recordings share: who is in a group, what a group has in common,
and when it is left out.

One partition of all people serves everything; it never looks at the data. For each group and each
stimulus, session and task: if fewer than k members have a recording of it, it is left out for the
whole group; otherwise every member, those without one too, gets the same. That is the promise of
proofs/k-same-synth.md and proofs/clock-render-k-same.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.events import METHODS
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.audit.people import crowd_game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, source
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.ksame.pairs import (
    average,
    average_in_time,
    degrees,
    laid_out,
    pairs,
    places,
)
from gazeveil.privacy.synthesis.motion import DRIFT_S, Motion, drawn_recordings, motion, render
from gazeveil.privacy.tables.ksame import blocks, fewest_sharing, random_groups
from gazeveil.privacy.tables.recordings import task_of

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


#: How pairs of different people are matched.
MATCHES = ("index", "crowd")

_MOST_THREADS = 8

_REFUTED = (
    "groups are drawn anew for each task, and once more for saccades, and only the person is in all"
    " of theirs, so averaging over tasks finds them; the last group may have fewer than k members,"
    " a stimulus that some members did not see is shared by fewer, and each person keeps their own"
    " number and order of events, gaps and length"
)


@dataclass(frozen=True)
class KSameSynth(Mechanism[Cohort]):
    """Replace each person's recordings by samples drawn from the average events of a group.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    match : str
        `index`: the first fixation with the first, the second with the second, as the paper does.
        `crowd`: what people do at the same time, places weighted by agreement; `corrected` alone.
    detector : str, optional
        Which detector finds the events (:func:`gazeveil.detect`); other events than fixations and
        saccades are lost time. By default `is5t` in `published`, as David-John et al. 2023 has it,
        and `ivt` in `corrected`.
    reading : str
        `corrected` or `published`.

    Examples
    --------
    >>> print(KSameSynth(4))
    k-same-synth:k=4,match=index,detector=ivt,reading=corrected
    """

    k: int
    match: str = "index"
    detector: str | None = None

    name: ClassVar[str] = "k-same-synth"
    label: ClassVar[str] = "k-same-synth"
    summary: ClassVar[str] = "Draws gaze for k people from one model of all of them."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = (
        "David-John et al., Privacy-preserving datasets of eye-tracking samples (2023)"
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "k-anonymity",
            "user",
            "proved",
            "one partition for everything, and samples of one law for all members of a group",
        ),
        "published": Claim(
            "k-anonymity",
            "user",
            "refuted",
            "groups redrawn per task and for saccades single people out",
        ),
    }

    def check(self) -> None:
        """Check the size of groups and the names."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        checks.one_of(self.name, "match", self.match, MATCHES)
        if self.detector is None:
            self.store("detector", "is5t" if self.reading == "published" else "ivt")
        checks.one_of(self.name, "detector", self.detector, METHODS)
        if self.reading == "published" and self.match != "index":
            checks.refuse(
                self.name,
                "match",
                "index in the published reading",
                self.match,
                "Use reading='corrected'.",
            )

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Synthesise a cohort; see :class:`Mechanism`.

        Recordings are held one at a time, their events all together. A release of recordings that
        are not loaded yet is drawn each time it is looked at, with the same draws each time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than k people, a sphere and a screen under one stimulus, or nothing that k
            members of a group have in common.
        """
        laws, notes = self._laws(data, Words(source(seed, self.name, self.reading)))
        published = self.reading == "published"
        guarantee = law_guarantee(self.title, self.k, "proofs/k-same-synth.md")
        if published:
            guarantee = guarantee.with_status("refuted", _REFUTED).with_not_covered(
                "the attributes of people"
            )
        drift_s = 0.0 if published else DRIFT_S
        draws = {
            key: (laws[key], partial(render, laws[key], drift_s=drift_s)) for key in sorted(laws)
        }
        lazy = any(isinstance(item, Handle) for item in data.items)
        out = Cohort(
            drawn_recordings(draws, seed, (self.name,), lazy),
            data.people if published else None,
            name=data.name,
            read_as=data.read_as,
        )
        return self.released(out, guarantee, seed, notes)

    def laws(self, data: Cohort, seed: int | None = None) -> dict[RecordingKey, Motion]:
        """The parameters that :meth:`release` with the same seed draws samples from, by (person,
        stimulus, session, task): what the promise is about.
        """
        return self._laws(data, Words(source(seed, self.name, self.reading)))[0]

    def partition(self, data: Cohort, seed: int | None = None) -> list[tuple[str, ...]]:
        """A partition as `corrected` draws it: for tests and for reuse in a release of one's own.
        Groups are drawn anew on each call without a seed.
        """
        return groups_of(
            enough_people(self.name, data, self.k),
            self.k,
            Words(source(seed, self.name, "corrected")),
        )

    def _motions(self, data: Cohort) -> dict[RecordingKey, Motion]:
        """The events of every recording; each thread holds one recording at a time."""
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
            return dict(pool.map(partial(_motion, self.detector or "ivt"), data.items))

    def _laws(
        self, data: Cohort, words: Words
    ) -> tuple[dict[RecordingKey, Motion], dict[str, int]]:
        """The law of each released recording, and counts for the curator."""
        people = enough_people(self.name, data, self.k)
        motions = self._motions(data)
        one_kind_of_space((key, m.space) for key, m in motions.items())
        notes = {"recordings_of_unknown_rate": unknown_rates(motions)}
        if self.reading == "published":
            published, sharing = published_motions(motions, self.k, words)
            notes |= fewest_sharing(self.name, sharing, self.k)
            return published, {**notes, "suppressed": sharing.count(1)}
        laws, counts = shared(motions, groups_of(people, self.k, words), self.k, self._average)
        return laws, {**notes, **counts}

    def _average(self, members: list[Motion]) -> Motion:
        """The group's parameters for one cell."""
        frame, sequences = common_frame(members, self.k), [pairs(m) for m in members]
        values = (
            average_in_time(sequences, self.k, isinstance(frame.space, Sphere))
            if self.match == "crowd"
            else average(sequences, self.k)
        )
        return laid_out(values, frame.space, frame.rate_hz, frame.samples)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return crowd_game(self, unit, self._arrays)

    def _arrays(
        self, data: Cohort, seed: int
    ) -> dict[RecordingKey, tuple[Floats | Bools | Ints, ...]]:
        """What makes up each law."""
        return {
            key: (law.fixations, law.saccades, law.is_fixation, law.onset)
            for key, law in self.laws(data, seed).items()
        }


def _motion(detector: str, item: Recording | Handle) -> tuple[RecordingKey, Motion]:
    return item.key, motion(item if isinstance(item, Recording) else item.load(), detector)


def published_motions(
    motions: Mapping[RecordingKey, Motion], k: int, words: Words
) -> tuple[dict[RecordingKey, Motion], list[int]]:
    """The parameters of each recording, replaced by averages over groups that are drawn for each
    task, once for fixations and once for saccades, and how many people share each cell.

    A recording whose fixations or saccades are alone in their cell is left out.
    """
    # Rows hold places as they are averaged, and seconds instead of samples.
    fixations = {key: _fixation_rows(m) for key, m in motions.items()}
    saccades = {
        key: m.saccades / np.array([1.0, 1.0, 1.0, m.rate_hz]) for key, m in motions.items()
    }
    sharing: list[int] = []
    averaged = [_k_same(rows, k, words, sharing) for rows in (fixations, saccades)]
    laws = {
        key: _framed(m, averaged[0][key], averaged[1][key])
        for key, m in motions.items()
        if key in averaged[0] and key in averaged[1]
    }
    return laws, sharing


def _fixation_rows(m: Motion) -> Floats:
    return np.column_stack(
        (
            places(m.space, m.fixations[:, 0], m.fixations[:, 1]),
            m.fixations[:, 2:4],
            m.fixations[:, 4] / m.rate_hz,
        )
    )


def _k_same(
    rows: Mapping[RecordingKey, Floats], k: int, words: Words, sharing: list[int]
) -> dict[RecordingKey, Floats]:
    """k-same-select sequence: blocks per task, padded by the last row, averaged row by row, cut
    back to each person's own number of rows. `sharing` gets the number of people in each cell, and
    a recording alone in its cell is left out.
    """
    out = dict(rows)
    for task in sorted({task_of(key) for key in rows}):
        mine = [key for key in rows if task_of(key) == task]
        people = sorted({key[0] for key in mine})
        for block in blocks(len(people), k, words):
            for cell in sorted({key[1:] for key in mine}):
                # Who made no such event has no row to repeat, and shares nothing.
                having = [
                    (people[i], *cell) for i in block if len(rows.get((people[i], *cell), ())) > 0
                ]
                sharing.append(len(having))
                if len(having) < 2:
                    for key in having:
                        del out[key]
                    continue
                longest = max(len(rows[key]) for key in having)
                total: Floats = np.sum(
                    [
                        rows[key][np.minimum(np.arange(longest), len(rows[key]) - 1)]
                        for key in having
                    ],
                    axis=0,
                )
                for key in having:
                    out[key] = total[: len(rows[key])] / len(having)
    return out


def _framed(own: Motion, fixations: Floats, saccades: Floats) -> Motion:
    """Averages in a person's own order of events, with their own gaps and length."""
    if len(own) == 0:
        return own
    samples = [
        np.maximum(np.rint(rows[:, -1] * own.rate_hz), 1.0) for rows in (fixations, saccades)
    ]
    counts = np.empty(len(own))
    counts[own.is_fixation], counts[~own.is_fixation] = samples
    before = np.diff(own.onset, prepend=0) - np.concatenate(([0], own.counts[:-1]))
    onset = (np.cumsum(before) + np.concatenate(([0.0], np.cumsum(counts)[:-1]))).astype(np.int64)
    x, y = degrees(own.space, fixations[:, :3])
    return Motion(
        own.space,
        own.rate_hz,
        own.samples,
        np.column_stack((x, y, fixations[:, 3:5], samples[0])),
        np.column_stack((saccades[:, :3], samples[1])),
        own.is_fixation,
        onset,
    )
