"""event-synth-PD as printed (davidjohn2023, 2.2): every event is replaced by one that its own
parameters generate, once enough other people could have.

For each stimulus, person and event, in up to a number of attempts (the paper has no limit, and
would not end):

* a fixation's samples are t draws of N(mu, diag sigma**2). The test asks all fixations of all other
  people at that stimulus; how many samples those have is ignored, as in the paper.
* a saccade's latent numbers are drawn from the normals its profile is encoded to, and decoded with
  its own amplitude, duration and person. The test asks all saccades of the others at that
  stimulus, by the latent normals; or each other person's histograms of speeds,
  whose bin probabilities are *summed* over the steps (main paper).

Order, gaps, durations and the number of events are the person's own. On a sphere angles along x
count by the sine of y, and the surroundings of a fixation are taken as flat. A saccade whose
fixation before or after it was dropped has no line to go along, and is dropped too.

David-John et al.'s (2023) published test of events, drawn and tested one attempt after another
in compiled code that stops as soon as the answer is known, and goes on with more random words where
they ran out. Latent numbers of saccades are asked of all others' normals.

Fixations. All that the test sees of a synthetic fixation's t samples is their mean and spread.
These are drawn from their own laws (normal, chi-square), so an attempt costs the same however long
the fixation is; samples with that mean and spread are drawn when the recording is written.

No record gives samples more density than the normals with exactly their mean and spread do, and
lying aside costs in proportion to the squared distance. So records farther away than a known number
of their own standard deviations cannot reach the cell of the seed. Records are kept sorted along x
in classes of spread, and only those near enough are looked at: the answer is that of asking all of
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import LAST_Y_DEG, Sphere, wrap_x
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Source, WordArray, Words
from gazeveil.privacy.synthesis.events_pd.coding import SyntheticRecording
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    Generator,
    conditions,
    speed_histograms,
    summed_probability,
)
from gazeveil.privacy.synthesis.events_pd.seeds import cell, plausible_counts, unit_uniform
from gazeveil.privacy.synthesis.motion import Motion, normals


def published_plans(
    motions: Mapping[RecordingKey, Motion],
    identity: Mapping[str, float],
    generator: Generator,
    test: PublishedTest,
    by_histograms: bool,
    release_failed: bool,
    source: Callable[[RecordingKey], Source],
) -> tuple[dict[RecordingKey, SyntheticRecording], dict[str, int]]:
    """Each recording with its events replaced, and counts: fixations, saccades, those that failed
    the test, those dropped, attempts.

    Parameters
    ----------
    motions : mapping
        Recordings as events; those of unknown rate have none.
    identity : mapping of person to float
        The number that stands for a person in the generator's conditions.
    generator : Generator
        Of saccades.
    test : PublishedTest
        Of each event.
    by_histograms : bool
        Test saccades by each person's histograms of speeds instead of latent normals.
    release_failed : bool
        Release the last attempt of an event that never passed instead of dropping it.
    source : callable
        Random words of a recording.
    """
    names = {person: i for i, person in enumerate(sorted({key[0] for key in motions}))}
    histograms = _histograms(motions, names) if by_histograms else None
    notes = dict.fromkeys(
        (
            "fixations",
            "fixations_dropped",
            "saccades",
            "saccades_failed",
            "saccades_dropped",
            "attempts",
        ),
        0,
    )
    plans = {}
    for about in sorted({key[1:] for key in motions}):
        keys = [key for key in motions if key[1:] == about]
        here = [motions[key] for key in keys]
        fixations = pool(here)
        codes = [
            _encoded(m, identity[key[0]], generator) for key, m in zip(keys, here, strict=True)
        ]
        asked = Latents.of(codes, [names[key[0]] for key in keys]).asked()
        for i, key in enumerate(keys):
            m, bits = here[i], source(key)
            sphere = isinstance(m.space, Sphere)
            means, looks, tried = fixation_means(
                m.fixations, i, fixations, len(keys), sphere, test, bits
            )
            amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
            who = np.full(len(duration), identity[key[0]])
            own = Latents.of([codes[i]], [names[key[0]]])
            if histograms is None:
                draw = partial(draw_latents, own, asked, test)
                z, moves, more = all_events(np.empty_like(own.mean), len(names), draw, bits)
            else:
                z, moves, more = _by_histograms(
                    own, generator, (amplitude, duration, who), histograms, test, bits
                )
            failed = int((~moves).sum())
            if release_failed:
                looks, moves = np.ones_like(looks), np.ones_like(moves)
            plan, dropped = _framed(
                m, means, looks, generator.decode(z, amplitude, duration, who), moves
            )
            plans[key] = plan
            for name, count in (
                ("fixations", len(looks)),
                ("fixations_dropped", int((~looks).sum())),
                ("saccades", len(moves)),
                ("saccades_failed", failed),
                ("saccades_dropped", dropped),
                ("attempts", tried + more),
            ):
                notes[name] += count
    return plans, notes


def _encoded(m: Motion, who: float, generator: Generator) -> tuple[Floats, Floats]:
    amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
    return generator.encode(m.profiles, amplitude, duration, np.full(len(duration), who))


def _histograms(motions: Mapping[RecordingKey, Motion], names: Mapping[str, int]) -> Floats:
    profiles = [
        np.concatenate(
            [m.profiles for key, m in motions.items() if key[0] == person] or [np.empty((0, 30))]
        )
        for person in names
    ]
    return speed_histograms(
        np.concatenate(profiles),
        np.concatenate(([0], np.cumsum([len(p) for p in profiles]))).astype(np.int64),
    )


def _by_histograms(
    own: Latents,
    generator: Generator,
    about: tuple[Floats, Floats, Floats],
    histograms: Floats,
    test: PublishedTest,
    bits: Source,
) -> tuple[Floats, Bools, int]:
    """Latent numbers under the test by summed bin probabilities, all saccades of a recording at a
    time.
    """
    z, passed, tried = own.mean.copy(), np.zeros(len(own.mean), dtype=np.bool_), 0
    words = Words(bits)
    for _ in range(test.attempts):
        left = np.flatnonzero(~passed)
        if len(left) == 0:
            break
        tried += len(left)
        z[left] = own.mean[left] + own.spread[left] * normals(z[left].size, words).reshape(
            z[left].shape
        )
        made = generator.decode(z[left], *(a[left] for a in about))
        with np.errstate(divide="ignore"):
            log_p = np.log(summed_probability(histograms, made))
        counts = plausible_counts(log_p, own.person[left], test.width)
        passed[left] = counts > test.others
    return z, passed, tried


def _framed(
    m: Motion, means: Floats, looks: Bools, profiles: Floats, moves: Bools
) -> tuple[SyntheticRecording, int]:
    """Synthetic events in a person's own frame, and how many saccades were dropped."""
    kept = np.zeros(len(m), dtype=np.bool_)
    kept[m.is_fixation] = looks
    if len(m):
        # A saccade goes from the fixation before it to the one after it, and needs both.
        place = np.cumsum(m.is_fixation)[~m.is_fixation]
        before, after = np.maximum(place - 1, 0), np.minimum(place, len(looks) - 1)
        between = (place > 0) & (place < len(looks))
        moves = (
            moves & between & looks[before] & looks[after] if len(looks) else np.zeros_like(moves)
        )
    kept[~m.is_fixation] = moves
    x, y = means[:, 0], means[:, 1]
    if isinstance(m.space, Sphere):
        x, y = wrap_x(x), np.clip(y, 0.0, LAST_Y_DEG)
    fixations = np.column_stack((x, y, means[:, 2:], m.fixations[:, 4]))[looks]
    made = Motion(
        m.space,
        m.rate_hz,
        m.samples,
        fixations,
        m.saccades[moves],
        m.is_fixation[kept],
        m.onset[kept],
    )
    return SyntheticRecording(made, np.maximum(profiles[moves], 0.0)), int((~moves).sum())


# Random words taken at a time.
_WORDS = 1 << 15


class PublishedTest(NamedTuple):
    """People who must be plausible besides the seed's, width of a cell, most attempts."""

    others: int
    width: float
    attempts: int


class Attempts(NamedTuple):
    """What is filled: values of the events and whether they passed; attempts made, the event to go
    on with and the first of its words; and when each person was last counted.
    """

    values: Floats
    passed: Bools
    progress: Ints
    counted: Ints


def all_events(
    values: Floats, people: int, draw: Callable[[WordArray, Attempts], bool], source: Source
) -> tuple[Floats, Bools, int]:
    """Values, passes and attempts of a kernel that is called again with more words until it has
    done all events.
    """
    progress = np.zeros(3, dtype=np.int64)
    out = Attempts(
        values, np.zeros(len(values), dtype=np.bool_), progress, np.empty(people, np.int64)
    )
    words = source.take(_WORDS)
    while not draw(words, out):
        # What is left from the first attempt of the event that ran out of words, and as many new
        # ones; an event that used up all words by itself needs more than there were.
        left = words[progress[2] :]
        progress[2] = 0
        words = np.concatenate((left, source.take(max(len(left), _WORDS))))
    return out.values, out.passed, int(progress[0])


class Latents(NamedTuple):
    """Latent normals of saccades.

    Parameters
    ----------
    mean, spread : arrays, shape (saccades, latent)
        Of each saccade; of those that are asked about, one over the spread.
    constant : array, shape (saccades,)
        Logarithm of each one's density at its own mean.
    person : array of int64, shape (saccades,)
        Whose.
    """

    mean: Floats
    spread: Floats
    constant: Floats
    person: Ints

    @classmethod
    def of(cls, codes: Sequence[tuple[Floats, Floats]], people: Sequence[int]) -> Latents:
        """From means and spreads of each person's saccades."""
        mean, spread = (
            np.ascontiguousarray(np.concatenate(part)) for part in zip(*codes, strict=True)
        )
        constant = -(np.log(spread) + 0.5 * math.log(2 * math.pi)).sum(axis=1)
        return cls(mean, spread, constant, np.repeat(people, [len(m) for m, _ in codes]))

    def asked(self) -> Latents:
        """The same scattered, so that few of them are looked at until enough people are found."""
        sizes = np.unique(self.person, return_counts=True)[1]
        place = np.arange(len(self.person)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        order = np.argsort(place, kind="stable")
        mean, inverse = self.mean[order], np.ascontiguousarray(1.0 / self.spread[order])
        return Latents(mean, inverse, self.constant[order], self.person[order])


@compiled
def _people_alike(
    z: Floats,
    log_p: float,
    person: int,
    others: Latents,
    test: PublishedTest,
    counted: Ints,
    stamp: int,
) -> int:
    """How many others have a saccade in the cell of log_p."""
    mine, count = cell(log_p, test.width), 0
    upper, lower = -mine * test.width, -(mine + 1.0) * test.width
    for r in range(len(others.mean)):
        if count >= test.others:
            break
        owner = others.person[r]
        if owner == person or counted[owner] == stamp:
            continue
        other = others.constant[r]
        for d in range(len(z)):
            away = (z[d] - others.mean[r, d]) * others.spread[r, d]
            other -= 0.5 * away * away
        if lower < other <= upper:
            counted[owner] = stamp
            count += 1
    return count


@compiled
def draw_latents(
    own: Latents, others: Latents, test: PublishedTest, words: WordArray, out: Attempts
) -> bool:
    """Latent numbers of saccades under the test by latent normals, from the event that `out` stands
    at; whether the words sufficed.
    """
    position, tried, stamp = 0, out.progress[0], 0
    out.counted[:] = -1
    for e in range(out.progress[1], len(own.mean)):
        out.progress[0], out.progress[1], out.progress[2] = tried, e, position
        z = out.values[e]
        for _ in range(test.attempts):
            tried += 1
            stamp += 1
            log_p, radius, turn = own.constant[e], 0.0, 0.0
            for d in range(len(z)):
                if d % 2 == 0:
                    if position + 2 > len(words):
                        return False
                    radius = math.sqrt(-2.0 * math.log(unit_uniform(words[position])))
                    turn = 2.0 * math.pi * unit_uniform(words[position + 1])
                    position += 2
                normal = radius * (math.cos(turn) if d % 2 == 0 else math.sin(turn))
                z[d] = own.mean[e, d] + own.spread[e, d] * normal
                log_p -= 0.5 * normal * normal
            person = own.person[e]
            alike = _people_alike(z, log_p, person, others, test, out.counted, stamp)
            if alike >= test.others:
                out.passed[e] = True
                break
    out.progress[0] = tried
    return True


#: Records are looked up in this many classes of spread: the narrower a record, the nearer it must
#: lie.
CLASSES = 8


class Pool(NamedTuple):
    """The fixations of all people at one stimulus, in classes of spread and sorted along x inside
    each.

    Parameters
    ----------
    fixations : array, shape (records, 4)
        mu_x, mu_y, sigma_x, sigma_y; on a sphere with copies a whole turn to the left and to the
        right.
    person : array of int64, shape (records,)
        Whose.
    starts : array of int64, shape (classes + 1,)
        Where classes begin, and the end.
    widest : array, shape (classes,)
        Largest sigma_x of each class.
    """

    fixations: Floats
    person: Ints
    starts: Ints
    widest: Floats


def pool(motions: Sequence[Motion]) -> Pool:
    """The pool of some people at one stimulus, all on a sphere or all on screens."""
    rows = np.concatenate([m.fixations[:, :4] for m in motions])
    person = np.repeat(np.arange(len(motions)), [len(m.fixations) for m in motions])
    if isinstance(motions[0].space, Sphere):
        turn = np.array([360.0, 0.0, 0.0, 0.0])
        rows, person = np.concatenate((rows - turn, rows, rows + turn)), np.tile(person, 3)
    edges = (
        np.quantile(rows[:, 2], np.linspace(0, 1, CLASSES + 1)[1:-1]) if len(rows) else np.empty(0)
    )
    kind = np.searchsorted(edges, rows[:, 2], side="left")
    order = np.lexsort((rows[:, 0], kind))
    starts = np.searchsorted(kind[order], np.arange(CLASSES + 1)).astype(np.int64)
    rows = np.ascontiguousarray(rows[order])
    widest = np.array([rows[a:b, 2].max() if b > a else 0.0 for a, b in pairwise(starts)])
    return Pool(rows, np.ascontiguousarray(person[order]), starts, widest)


def fixation_means(
    seeds: Floats,
    person: int,
    records: Pool,
    people: int,
    sphere: bool,
    test: PublishedTest,
    source: Source,
) -> tuple[Floats, Bools, int]:
    """Means and spreads of synthetic fixations, whether each passed, and how many attempts were
    made.

    Parameters
    ----------
    seeds : array, shape (fixations, 5)
        mu_x, mu_y, sigma_x, sigma_y, samples of one person's fixations.
    person : int
        Who that is among the people of `records`.
    records : Pool
        All fixations there.
    people : int
        How many.
    sphere : bool
        Whether x counts by the sine of y.
    test : PublishedTest
        Of each fixation.
    source : Source
        Random words.

    Returns
    -------
    means : array, shape (fixations, 4)
        Mean x, mean y, spread x, spread y of the synthetic samples; of the last attempt where none
        passed.
    passed : array of bool
        Whether.
    attempts : int
        Made in all.
    """
    return all_events(
        np.empty((len(seeds), 4)),
        people,
        partial(_fixations, np.ascontiguousarray(seeds), person, records, sphere, test),
        source,
    )


@compiled
def _gamma(shape: float, words: WordArray, position: int) -> tuple[float, int]:
    """A gamma number of that shape and scale 1 (Marsaglia and Tsang 2000); position -1 when the
    words ran out.
    """
    boost = 1.0
    if shape < 1.0:
        if position >= len(words):
            return 0.0, -1
        boost = unit_uniform(words[position]) ** (1.0 / shape)
        position += 1
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        if position + 3 > len(words):
            return 0.0, -1
        x = math.sqrt(-2.0 * math.log(unit_uniform(words[position]))) * math.cos(
            2.0 * math.pi * unit_uniform(words[position + 1])
        )
        u = unit_uniform(words[position + 2])
        position += 3
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost, position


@compiled
def _normal_log_likelihood(
    n: float, dx: float, dy: float, vx: float, vy: float, sx: float, sy: float
) -> float:
    """Of n samples with mean squares vx, vy about a mean that lies dx, dy from the normals' own."""
    return -n * (
        math.log(2.0 * math.pi * sx * sy)
        + (dx * dx + vx) / (2.0 * sx * sx)
        + (dy * dy + vy) / (2.0 * sy * sy)
    )


@compiled
def _first(rows: Floats, lo: int, hi: int, x: float) -> int:
    while lo < hi:
        middle = (lo + hi) // 2
        if rows[middle, 0] < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


class SampleMoments(NamedTuple):
    """What the test sees of a synthetic fixation: samples, their mean and mean squares about it,
    the logarithm of their density under the seed, and by how much degrees along x count.
    """

    n: float
    mx: float
    my: float
    vx: float
    vy: float
    log_p: float
    stretch: float


@compiled
def people_near(
    made: SampleMoments,
    person: int,
    records: Pool,
    limit: int,
    width: float,
    counted: Ints,
    stamp: int,
) -> int:
    """How many others have a fixation in the cell of the seed's density, counted up to `limit`.

    No record gives samples of spread sqrt(vx), sqrt(vy) more than the normals with exactly that
    spread and their mean do, and each step away costs; so records farther than a number of their
    own sigma_x cannot reach the cell and are not looked at.
    """
    n, mx, my, vx, vy, log_p, stretch = made
    rows, owner, starts = records.fixations, records.person, records.starts
    mine = cell(log_p, width)
    most = -n * (math.log(2.0 * math.pi * math.sqrt(max(vx, 1e-300) * max(vy, 1e-300))) + 1.0)
    room = 2.0 * (most + (mine + 1.0) * width) / n + 1e-6
    if not room > 0.0:
        return 0
    reach, count = math.sqrt(room), 0
    for c in range(len(records.widest)):
        far = reach * records.widest[c] / max(stretch, 1e-9)
        r = _first(rows, starts[c], starts[c + 1], mx - far)
        while r < starts[c + 1] and rows[r, 0] <= mx + far:
            if counted[owner[r]] != stamp and owner[r] != person:
                dx, dy = (mx - rows[r, 0]) * stretch, my - rows[r, 1]
                if dy * dy <= room * rows[r, 3] * rows[r, 3]:
                    other = _normal_log_likelihood(n, dx, dy, vx, vy, rows[r, 2], rows[r, 3])
                    if -(mine + 1.0) * width < other <= -mine * width:
                        counted[owner[r]] = stamp
                        count += 1
                        if count >= limit:
                            return count
            r += 1
    return count


@compiled
def _fixations(
    seeds: Floats,
    person: int,
    records: Pool,
    sphere: bool,
    test: PublishedTest,
    words: WordArray,
    out: Attempts,
) -> bool:
    """Draw and test from the event that `out` stands at; whether the words sufficed."""
    position, tried, stamp = 0, out.progress[0], 0
    out.counted[:] = -1
    for e in range(out.progress[1], len(seeds)):
        out.progress[0], out.progress[1], out.progress[2] = tried, e, position
        n, sx, sy = seeds[e, 4], seeds[e, 2], seeds[e, 3]
        stretch = math.sin(math.radians(seeds[e, 1])) if sphere else 1.0
        for _ in range(test.attempts):
            tried += 1
            stamp += 1
            if position + 2 > len(words):
                return False
            radius = math.sqrt(-2.0 * math.log(unit_uniform(words[position])) / n)
            turn = 2.0 * math.pi * unit_uniform(words[position + 1])
            position += 2
            mx, my, vx, vy = sx * radius * math.cos(turn), sy * radius * math.sin(turn), 0.0, 0.0
            if n > 1.0:
                g, position = _gamma(0.5 * (n - 1.0), words, position)
                if position < 0:
                    return False
                h, position = _gamma(0.5 * (n - 1.0), words, position)
                if position < 0:
                    return False
                vx, vy = 2.0 * g * sx * sx / n, 2.0 * h * sy * sy / n
            log_p = _normal_log_likelihood(n, mx, my, vx, vy, sx, sy)
            x, y = seeds[e, 0] + mx / max(stretch, 1e-9), seeds[e, 1] + my
            out.values[e, 0], out.values[e, 1] = x, y
            out.values[e, 2], out.values[e, 3] = math.sqrt(vx), math.sqrt(vy)
            made = SampleMoments(n, x, y, vx, vy, log_p, stretch)
            near = people_near(made, person, records, test.others, test.width, out.counted, stamp)
            if near >= test.others:
                out.passed[e] = True
                break
    out.progress[0] = tried
    return True
