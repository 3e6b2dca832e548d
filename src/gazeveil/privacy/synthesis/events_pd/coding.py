"""From events to the numbers that noise is added to, and from synthetic events to samples: what
both readings of event-synth-pd share.

A :class:`Coding` turns fixations and saccades into values in units of the noise, and back. A
fixation has a place and the logarithms of its two spreads and of its seconds; a saccade has the
latent numbers of a generator, the logarithm of its amplitude, and how much longer it takes than the
main sequence (21 + 2.2 A) ms says (Carpenter 1988), as a logarithm. Each of these except the place
is drawn towards a middle before noise is added, y = keep * v + sqrt(1 - keep**2) * noise, so that
synthetic events spread as much as real ones do.

A :class:`SyntheticRecording` is to be drawn: events, profiles, and how samples hang together inside
fixations.

Synthetic events whose seed is a random person of a crowd, each with a randomised test of
plausible deniability.

The people who saw one stimulus are a *pool* of N. At a time of a synthetic recording an event is
drawn as follows, in up to so many attempts:

1. with probability 1/N the attempt is rejected in any case;
2. a person is drawn uniformly from the pool, and one of their *records* around that time,
   uniformly; who has none there is a rejection;
3. the event is the record moved by normal noise of a public size (its place on a sphere by the von
   Mises-Fisher law), rounded to a public grid;
4. with p_a the density that person a's records there would have given, averaged over them, the
   people are counted whose p_a lies in the cell of the drawn person's. The event passes if there
   are at least k + max(0, z) of them, z fresh discrete Laplace noise of scale 1/epsilon0.

The floor k is there because of the attempts: without it, noise would let events pass that fewer
than k people could have seeded, if only one tried often enough. Nothing here knows for whom a
recording is made, so all names get recordings of one law: proofs/event-synth-pd.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere, angle_deg
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.synthesis.events_pd.saccade_models import LEAST_DEG, Generator, conditions
from gazeveil.privacy.synthesis.events_pd.seeds import (
    LEAST_FIXATION_S,
    EventsSoFar,
    EventTiming,
    Rule,
    SeedRecords,
    fill,
)
from gazeveil.privacy.synthesis.motion import (
    LEAST_SPREAD_DEG,
    SCREEN_LAST_DEG,
    Motion,
    normals,
    render_with,
)

# Random words that a fixation and a saccade take together, and some more.
_WORDS = 80


@dataclass(frozen=True, eq=False)
class Drawn:
    """Events of one synthetic recording, fixations and saccades in turn.

    Parameters
    ----------
    fixations, saccades : arrays, shape (n, numbers)
        Values as in :class:`SeedRecords`; rows of NaN are events that never passed.
    places : array, shape (n, 3)
        Places on a sphere.
    attempts : int
        How many were made.
    """

    fixations: Floats = field(repr=False)
    places: Floats = field(repr=False)
    saccades: Floats = field(repr=False)
    attempts: int


def most_events(length_s: float, clock: EventTiming) -> int:
    """Most fixations that a recording of that length can hold, and most saccades."""
    return int((1.05 * length_s + 1.0) / (LEAST_FIXATION_S + clock.between_s)) + 2


def draw(
    fixations: SeedRecords,
    saccades: SeedRecords,
    rule: Rule,
    clock: EventTiming,
    length_s: float,
    source: Source,
) -> Drawn:
    """Events for one recording.

    Parameters
    ----------
    fixations, saccades : SeedRecords
        Of the same pool.
    rule : Rule
        Which events may be released.
    clock : EventTiming
        How time goes on.
    length_s : float
        How long the recording is; a little more is drawn, because saccades differ in length.
    source : Source
        Random words.
    """
    room, drawn_s = most_events(length_s, clock), 1.05 * length_s + 1.0
    out = EventsSoFar(
        np.full((room, fixations.values.shape[1]), np.nan),
        np.full((room, 3), np.nan),
        np.full((room, saccades.values.shape[1]), np.nan),
        np.zeros(2, dtype=np.int64),
        np.zeros(1),
    )
    # Enough for some attempts per event; what is drawn does not depend on how many are taken at
    # once.
    pair_s = min(math.exp(clock.middle), clock.lost_s) + clock.between_s
    words = source.take(4096 + int(_WORDS * drawn_s / pair_s))
    while True:
        position, enough = fill(length_s, clock, fixations, saccades, rule, words, out)
        if enough:
            words[:] = 0  # used bits must not linger in memory
            n = int(out.counts[0])
            return Drawn(out.fixations[:n], out.places[:n], out.saccades[:n], int(out.counts[1]))
        # The pair of events that ran out of words begins again with the same ones, and more after
        # them.
        more = source.take(len(words))
        both = np.concatenate((words[position:], more))
        words[:], more[:] = 0, 0
        words = both


#: Share of an event's own deviation from the middle that is kept; 1 - keep**2 of the variance is
#: noise.
KEEP = 0.7

#: Noise of places where it is not given, as a share of the smaller extent of the space: 9 degrees
#: on a sphere.
PLACE_SHARE = 0.05

#: Seconds of a fixation and of a saccade that never passed.
LOST_S, LOST_SACCADE_S = 0.2, 0.05

#: Public middles and units of (ln spread x, ln spread y, ln seconds) of fixations and (ln
#: amplitude, ln of seconds over main sequence) of saccades.
PUBLIC_FIXATIONS = ((-1.5, -1.5, -1.4), (0.8, 0.8, 0.6))
PUBLIC_SACCADES = ((2.0, 0.3), (1.0, 0.5))

#: How long drift inside a fixation remembers: eyes move slowly between microsaccades (Engbert and
#: Kliegl 2004 see about 0.1 s).
DRIFT_S = 0.1

#: How many events a synthetic fixation may move, so that saccades go about as far as they were
#: drawn to: about as many as two windows of seeds hold.
REACH = 50

_MOST_SPREAD_DEG, _MOST_FIXATION_S, _MOST_SACCADE_S = 10.0, 10.0, 1.0


@dataclass(frozen=True, eq=False)
class SyntheticRecording:
    """One synthetic recording.

    Parameters
    ----------
    motion : Motion
        Its events.
    profiles : array, shape (saccades, 30)
        Speeds of its saccades.
    drift_s : float
        How long samples inside a fixation remember one another; 0 for independent ones.

    Notes
    -----
    The samples of a fixation have exactly its mean and spread: these are what was drawn and tested,
    and the rest of the samples follows from them by the law of normals whose mean and spread are
    known.
    """

    motion: Motion
    profiles: Floats = field(repr=False)
    drift_s: float = 0.0

    def samples(self, words: Words) -> tuple[Floats, Floats]:
        """Samples in degrees, NaN in no event."""
        m = self.motion
        counts = m.fixations[:, 4].astype(np.int64)
        drawn = normals(2 * int(counts.sum()), words)
        if self.drift_s > 0 and m.rate_hz > 0:
            _drifting(drawn, counts, math.exp(-1.0 / (self.drift_s * m.rate_hz)))
        _standardised(drawn, counts)
        return render_with(m, drawn, self.profiles)


@compiled
def _standardised(drawn: Floats, counts: Ints) -> None:
    """Normals of each fixation and axis, shifted and scaled to mean 0 and mean square 1; a single
    sample lies in the middle.
    """
    at = 0
    for n in counts:
        for axis in range(2):
            mean, square = 0.0, 0.0
            for i in range(n):
                mean += drawn[at + 2 * i + axis] / n
            for i in range(n):
                square += (drawn[at + 2 * i + axis] - mean) ** 2 / n
            scale = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
            for i in range(n):
                drawn[at + 2 * i + axis] = (drawn[at + 2 * i + axis] - mean) * scale
        at += 2 * n


@compiled
def _drifting(drawn: Floats, counts: Ints, memory: float) -> None:
    """Normals of each fixation and axis made an autoregressive sequence of the same variance."""
    at, fresh = 0, math.sqrt(1.0 - memory * memory)
    for n in counts:
        for i in range(2, 2 * n):
            drawn[at + i] = memory * drawn[at + i - 2] + fresh * drawn[at + i]
        at += 2 * n


@dataclass(frozen=True, eq=False)
class Coding:
    """Values of events in units of the noise, and back.

    Parameters
    ----------
    generator : Generator
        Of saccades.
    place_deg : float
        Standard deviation of the noise of places along each axis.
    fixation_middle, fixation_unit : arrays, shape (3,)
        Of ln spread x, ln spread y and ln seconds.
    saccade_middle, saccade_unit : arrays, shape (2,)
        Of ln amplitude and ln of seconds over the main sequence.
    """

    generator: Generator
    place_deg: float
    fixation_middle: Floats = field(default_factory=lambda: np.array(PUBLIC_FIXATIONS[0]))
    fixation_unit: Floats = field(default_factory=lambda: np.array(PUBLIC_FIXATIONS[1]))
    saccade_middle: Floats = field(default_factory=lambda: np.array(PUBLIC_SACCADES[0]))
    saccade_unit: Floats = field(default_factory=lambda: np.array(PUBLIC_SACCADES[1]))

    def clock(self, space: Space) -> EventTiming:
        """How time goes on."""
        column = 2 if isinstance(space, Sphere) else 4
        amplitude, longer = np.exp(self.saccade_middle)
        saccade_s = float(np.clip(main_sequence_s(amplitude) * longer, 0.02, 0.2))
        return EventTiming(
            column,
            float(self.fixation_unit[2]) * _NOISE,
            float(self.fixation_middle[2]),
            LOST_S,
            saccade_s,
        )

    def records(self, pool: Sequence[Motion]) -> tuple[SeedRecords, SeedRecords]:
        """Fixations and saccades of some people at one stimulus, all on a sphere
        or all on screens.
        """
        sphere = isinstance(pool[0].space, Sphere)
        values, places = [], []
        for m in pool:
            own = (fixation_numbers(m) - self.fixation_middle) / self.fixation_unit
            own *= KEEP / _NOISE
            at = m.fixations[:, :2]
            values.append(own if sphere else np.column_stack((at / self.place_deg, own)))
            places.append(m.space.vectors(*at.T) if sphere else np.zeros((len(own), 3)))
        kappa = 1.0 / math.radians(self.place_deg) ** 2 if sphere else 0.0
        onsets = [m.onset[m.is_fixation] / m.rate_hz for m in pool]
        fixations = _records(values, places, kappa, onsets)
        values = []
        for m in pool:
            numbers = saccade_numbers(m)
            duration = m.saccades[:, 3] / m.rate_hz
            nobody = np.zeros(len(duration))
            latent = self.generator.encode(m.profiles, np.exp(numbers[:, 0]), duration, nobody)[0]
            own = (numbers - self.saccade_middle) / self.saccade_unit
            values.append(np.column_stack((latent, own)) * (KEEP / _NOISE))
        nowhere = [np.zeros((len(v), 3)) for v in values]
        onsets = [m.onset[~m.is_fixation] / m.rate_hz for m in pool]
        return fixations, _records(values, nowhere, 0.0, onsets)

    def plan(self, drawn: Drawn, space: Space, rate_hz: float, samples: int) -> SyntheticRecording:
        """A recording of synthetic events: put in order, laid out in time, cut off at its length.
        Events that never passed are lost time.
        """
        passed, moves = np.isfinite(drawn.fixations[:, -1]), np.isfinite(drawn.saccades[:, -1])
        own, places, numbers = self._decoded(drawn, isinstance(space, Sphere))
        far = _distances(places, isinstance(space, Sphere))
        moves &= passed & np.append(passed[1:], False)
        takes_s = np.clip(main_sequence_s(far) * np.exp(numbers[:, 1]), 0.0, _MOST_SACCADE_S)
        lasts_s = np.clip(own[:, 2], LEAST_FIXATION_S, _MOST_FIXATION_S)
        fixation = np.maximum(np.rint(lasts_s * rate_hz), 1.0)
        fixation[~passed] = np.rint(LOST_S * rate_hz)
        saccade = np.maximum(np.rint(takes_s * rate_hz), 2.0)
        saccade[~moves] = np.rint(LOST_SACCADE_S * rate_hz)
        onset = np.concatenate(([0.0], np.cumsum(fixation + saccade)))[:-1]
        leaves = onset + fixation
        passed &= onset < samples
        # A saccade needs the fixation it goes to.
        moves &= (leaves < samples) & np.append(passed[1:], False)
        x, y = space.degrees(places) if isinstance(space, Sphere) else (places[:, 0], places[:, 1])
        spread = np.clip(own[:, :2], LEAST_SPREAD_DEG, _MOST_SPREAD_DEG)
        fixations = np.column_stack((x, y, spread, np.minimum(fixation, samples - onset)))[passed]
        # Speeds come from the profiles: the curve is a stand-in.
        saccades = np.tile((0.0, 0.5, 0.25, 0.0), (int(moves.sum()), 1))
        saccades[:, 3] = np.minimum(saccade, samples - leaves)[moves]
        begins = np.concatenate((onset[passed], leaves[moves])).astype(np.int64)
        by_time = np.argsort(begins, kind="stable")
        kinds = np.arange(len(begins)) < len(fixations)
        motion = Motion(
            space, rate_hz, samples, fixations, saccades, kinds[by_time], begins[by_time]
        )
        latent = drawn.saccades[moves, : self.generator.latent] * _NOISE
        amplitude = np.maximum(far[moves], LEAST_DEG)
        profiles = self.generator.decode(latent, amplitude, takes_s[moves], np.zeros(len(latent)))
        return SyntheticRecording(motion, profiles, drift_s=DRIFT_S)

    def _decoded(self, drawn: Drawn, sphere: bool) -> tuple[Floats, Floats, Floats]:
        """Spreads and seconds of fixations and their places, both in an order in which saccades go
        about as far as they were drawn to, and numbers of saccades.
        """
        own = np.exp(self.fixation_middle + self.fixation_unit * _NOISE * drawn.fixations[:, -3:])
        # Noise may lead beyond what a screen can show: saccades go to such a place, so it is moved
        # to the edge before anything is laid out.
        flat = np.clip(drawn.fixations[:, :2] * self.place_deg, -SCREEN_LAST_DEG, SCREEN_LAST_DEG)
        places = drawn.places if sphere else np.column_stack((flat, np.zeros(len(own))))
        numbers = self.saccade_middle + self.saccade_unit * _NOISE * drawn.saccades[:, -2:]
        # Only released events are looked at here: their order is one more thing to draw them by.
        there = np.flatnonzero(np.isfinite(drawn.fixations[:, -1]))
        order = there[_ordered(places[there], sphere, np.exp(numbers[there, 0]), REACH)]
        own[there], places[there] = own[order], places[order]
        return own, places, numbers


def _distances(places: Floats, sphere: bool) -> Floats:
    """Degrees from each place to the next; 0 for the last."""
    steps = (
        angle_deg(places[:-1], places[1:])
        if sphere
        else np.linalg.norm(np.diff(places, axis=0), axis=1)
    )
    far = np.zeros(len(places))
    far[:-1] = steps
    return far


_NOISE = math.sqrt(1.0 - KEEP**2)


def _records(
    values: Sequence[Floats], places: Sequence[Floats], kappa: float, onsets: Sequence[Floats]
) -> SeedRecords:
    starts = np.concatenate(([0], np.cumsum([len(v) for v in values]))).astype(np.int64)
    return SeedRecords.of(
        np.ascontiguousarray(np.concatenate(values)),
        np.ascontiguousarray(np.concatenate(places)),
        kappa,
        np.concatenate(onsets),
        starts,
    )


def main_sequence_s(amplitude_deg: Floats) -> Floats:
    """How long saccades of some amplitudes take."""
    return np.asarray(0.021 + 0.0022 * amplitude_deg, dtype=np.float64)


def fixation_numbers(motion: Motion) -> Floats:
    """Natural logarithms of spread x, spread y and seconds of each
    fixation, shape (fixations, 3).
    """
    return np.log(motion.fixations[:, 2:5] / np.array([1.0, 1.0, motion.rate_hz]))


def saccade_numbers(motion: Motion) -> Floats:
    """Natural logarithms of amplitude and of seconds over the main sequence of each saccade, shape
    (saccades, 2).
    """
    amplitude, duration = conditions(motion.profiles, motion.saccades[:, 3] / motion.rate_hz)
    return np.column_stack((np.log(amplitude), np.log(duration / main_sequence_s(amplitude))))


@compiled
def _ordered(places: Floats, sphere: bool, far_deg: Floats, reach: int) -> Ints:
    """An order of events in which each lies about as far from the one before as that one's saccade
    goes.

    From each place the event is taken, of the next `reach` that are left, whose distance differs
    least from the saccade's on a logarithmic scale; none waits for longer than that many events.
    """
    n = len(places)
    order, left = np.empty(n, dtype=np.int64), np.arange(n)
    for i in range(n):
        best, least = 0, math.inf
        if i > 0 and left[0] > i - reach:
            here = places[order[i - 1]]
            for j in range(min(reach, n - i)):
                there = places[left[j]]
                if sphere:
                    dot = here[0] * there[0] + here[1] * there[1] + here[2] * there[2]
                    away = math.degrees(math.acos(min(max(dot, -1.0), 1.0)))
                else:
                    away = math.hypot(here[0] - there[0], here[1] - there[1])
                miss = abs(math.log(max(away, 0.1) / max(far_deg[i - 1], 0.1)))
                if miss < least:
                    best, least = j, miss
        order[i] = left[best]
        left[best : n - i - 1] = left[best + 1 : n - i].copy()
    return order
