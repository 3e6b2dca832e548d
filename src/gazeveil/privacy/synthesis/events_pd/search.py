"""Synthetic events of David-John et al.'s (2023) published test, drawn and tested one attempt after
another in compiled code that stops as soon as the answer is known.

All that the test sees of a synthetic fixation's t samples is their mean and spread. These are drawn
from their own laws (normal, chi-square), so an attempt costs the same however long the fixation is;
samples with that mean and spread are drawn when the recording is written.

No record gives samples more density than the normals with exactly their mean and spread do, and
lying aside costs in proportion to the squared distance. So records farther away than a known number
of their own standard deviations cannot reach the cell of the seed. Records are kept sorted along x
in classes of spread, and only those near enough are looked at: the answer is that of asking all of
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.plausible_deniability import cell
from gazeveil.privacy.randomness.rng import Source, WordArray
from gazeveil.privacy.synthesis.events_pd.deniable_seeds import unit_uniform
from gazeveil.privacy.synthesis.motion import Motion

#: Records are looked up in this many classes of spread: the narrower a record, the nearer it must
#: lie.
CLASSES = 8

# Random words taken at a time.
_WORDS = 1 << 15

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
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

    fixations: Floats = field(repr=False)
    person: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    widest: Floats = field(repr=False)


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
    k: int,
    width: float,
    attempts: int,
    source: Source,
) -> tuple[Floats, NDArray[np.bool_], int]:
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
    k, width, attempts
        As in :class:`gazeveil.privacy.synthesis.events_pd.deniable_seeds.Rule`.
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
    out, passed, numbers = (
        np.empty((len(seeds), 4)),
        np.zeros(len(seeds), dtype=np.bool_),
        np.zeros(3, dtype=np.int64),
    )
    rows, seen, words = (
        np.ascontiguousarray(seeds),
        np.full(people, -1, dtype=np.int64),
        source.take(_WORDS),
    )
    while not _fixations(
        rows,
        person,
        records.fixations,
        records.person,
        records.starts,
        records.widest,
        sphere,
        k,
        width,
        attempts,
        words,
        seen,
        out,
        passed,
        numbers,
    ):
        words = _more(words, numbers, source)
    return out, passed, int(numbers[0])


@dataclass(frozen=True, eq=False)
class Latents:
    """The latent normals of all saccades at one stimulus.

    Parameters
    ----------
    mean, spread : arrays, shape (records, latent)
        Of each saccade.
    person : array of int64, shape (records,)
        Whose.
    index : array of int64, shape (records,)
        Which of that person's.
    """

    mean: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    person: Ints = field(repr=False)
    index: Ints = field(repr=False)

    @property
    def constant(self) -> Floats:
        """Logarithm of each record's density at its own mean."""
        return np.asarray(
            -(np.log(self.spread) + 0.5 * math.log(2 * math.pi)).sum(axis=1), dtype=np.float64
        )


def latent_draws(
    own: Latents,
    records: Latents,
    people: int,
    same_index: bool,
    k: int,
    width: float,
    attempts: int,
    source: Source,
) -> tuple[Floats, NDArray[np.bool_], int]:
    """Latent numbers of synthetic saccades under the test by latent normals, whether each passed,
    and how many attempts were made.

    Parameters
    ----------
    own : Latents
        One person's saccades.
    records : Latents
        All saccades there.
    people : int
        How many people there are.
    same_index : bool
        Whether only others' saccades of the same index are asked.
    k, width, attempts
        As in :class:`gazeveil.privacy.synthesis.events_pd.deniable_seeds.Rule`.
    source : Source
        Random words.
    """
    # Each person's records lie scattered over the whole, so that few need to be looked at until
    # enough people are found.
    order = np.argsort(records.index, kind="stable")
    mean, inverse, constant = (
        np.ascontiguousarray(a[order])
        for a in (records.mean, 1.0 / records.spread, records.constant)
    )
    out, passed, numbers = (
        np.empty_like(own.mean),
        np.zeros(len(own.mean), dtype=np.bool_),
        np.zeros(3, dtype=np.int64),
    )
    seen, words, known = np.full(people, -1, dtype=np.int64), source.take(_WORDS), own.constant
    whose, which = records.person[order], records.index[order]
    while not _latents(
        own.mean,
        own.spread,
        known,
        own.person,
        own.index,
        mean,
        inverse,
        constant,
        whose,
        which,
        same_index,
        k,
        width,
        attempts,
        words,
        seen,
        out,
        passed,
        numbers,
    ):
        words = _more(words, numbers, source)
    return out, passed, int(numbers[0])


def _more(words: WordArray, numbers: Ints, source: Source) -> WordArray:
    """Words for the event that ran out of them: what is left of the old ones from its first attempt
    on, and as many new ones.
    """
    left = words[numbers[2] :]
    numbers[2] = 0
    # An event that used up all words by itself needs more than there were.
    return np.concatenate((left, source.take(max(len(left), _WORDS))))


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


@compiled
def _people_near(
    n: float,
    mx: float,
    my: float,
    vx: float,
    vy: float,
    log_p: float,
    stretch: float,
    person: int,
    rows: Floats,
    owner: Ints,
    starts: Ints,
    widest: Floats,
    wanted: int,
    width: float,
    seen: Ints,
    stamp: int,
) -> int:
    """How many others have a fixation in the cell of log_p, counted up to `wanted`.

    No record gives samples of spread sqrt(vx), sqrt(vy) more than the normals with exactly that
    spread and their mean do, and each step away costs; so records farther than a number of their
    own sigma_x cannot reach the cell and are not looked at.
    """
    mine = cell(log_p, width)
    most = -n * (math.log(2.0 * math.pi * math.sqrt(max(vx, 1e-300) * max(vy, 1e-300))) + 1.0)
    room = 2.0 * (most + (mine + 1.0) * width) / n + 1e-6
    if not room > 0.0:
        return 0
    reach, count = math.sqrt(room), 0
    for c in range(len(widest)):
        far = reach * widest[c] / max(stretch, 1e-9)
        r = _first(rows, starts[c], starts[c + 1], mx - far)
        while r < starts[c + 1] and rows[r, 0] <= mx + far:
            if seen[owner[r]] != stamp and owner[r] != person:
                dx, dy = (mx - rows[r, 0]) * stretch, my - rows[r, 1]
                if dy * dy <= room * rows[r, 3] * rows[r, 3]:
                    other = _normal_log_likelihood(n, dx, dy, vx, vy, rows[r, 2], rows[r, 3])
                    if -(mine + 1.0) * width < other <= -mine * width:
                        seen[owner[r]] = stamp
                        count += 1
                        if count >= wanted:
                            return count
            r += 1
    return count


@compiled
def _fixations(
    seeds: Floats,
    person: int,
    rows: Floats,
    owner: Ints,
    starts: Ints,
    widest: Floats,
    sphere: bool,
    k: int,
    width: float,
    attempts: int,
    words: WordArray,
    seen: Ints,
    out: Floats,
    passed: NDArray[np.bool_],
    numbers: Ints,
) -> bool:
    position, tried, stamp = 0, numbers[0], 0
    seen[:] = -1
    for e in range(numbers[1], len(seeds)):
        numbers[0], numbers[1], numbers[2] = tried, e, position
        n, sx, sy = seeds[e, 4], seeds[e, 2], seeds[e, 3]
        stretch = math.sin(math.radians(seeds[e, 1])) if sphere else 1.0
        for _ in range(attempts):
            tried += 1
            stamp += 1
            if position + 2 > len(words):
                return False
            radius, turn = (
                math.sqrt(-2.0 * math.log(unit_uniform(words[position])) / n),
                2.0 * math.pi * unit_uniform(words[position + 1]),
            )
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
            out[e, 0], out[e, 1] = seeds[e, 0] + mx / max(stretch, 1e-9), seeds[e, 1] + my
            out[e, 2], out[e, 3] = math.sqrt(vx), math.sqrt(vy)
            near = _people_near(
                n,
                out[e, 0],
                out[e, 1],
                vx,
                vy,
                log_p,
                stretch,
                person,
                rows,
                owner,
                starts,
                widest,
                k - 1,
                width,
                seen,
                stamp,
            )
            if near >= k - 1:
                passed[e] = True
                break
    numbers[0] = tried
    return True


@compiled
def _latents(
    mean: Floats,
    spread: Floats,
    constant: Floats,
    person: Ints,
    own_index: Ints,
    means: Floats,
    inverses: Floats,
    constants: Floats,
    owner: Ints,
    index: Ints,
    same_index: bool,
    k: int,
    width: float,
    attempts: int,
    words: WordArray,
    seen: Ints,
    out: Floats,
    passed: NDArray[np.bool_],
    numbers: Ints,
) -> bool:
    position, tried, size = 0, numbers[0], mean.shape[1]
    seen[:] = -1
    stamp = 0
    for e in range(numbers[1], len(mean)):
        numbers[0], numbers[1], numbers[2] = tried, e, position
        for _ in range(attempts):
            tried += 1
            stamp += 1
            log_p = constant[e]
            for d in range(size):
                if d % 2 == 0:
                    if position + 2 > len(words):
                        return False
                    radius, turn = (
                        math.sqrt(-2.0 * math.log(unit_uniform(words[position]))),
                        2.0 * math.pi * unit_uniform(words[position + 1]),
                    )
                    position += 2
                    normal = radius * math.cos(turn)
                else:
                    normal = radius * math.sin(turn)
                out[e, d] = mean[e, d] + spread[e, d] * normal
                log_p -= 0.5 * normal * normal
            mine, count = cell(log_p, width), 0
            upper, lower = -mine * width, -(mine + 1.0) * width
            for r in range(len(means)):
                if count >= k - 1:
                    break
                if (
                    owner[r] == person[e]
                    or seen[owner[r]] == stamp
                    or (same_index and index[r] != own_index[e])
                ):
                    continue
                other = constants[r]
                for d in range(size):
                    away = (out[e, d] - means[r, d]) * inverses[r, d]
                    other -= 0.5 * away * away
                if lower < other <= upper:
                    seen[owner[r]] = stamp
                    count += 1
            if count >= k - 1:
                passed[e] = True
                break
    numbers[0] = tried
    return True
