"""Synthetic fixations of David-John et al.'s (2023) published test, drawn and tested one attempt
after another in compiled code that stops as soon as the answer is known.

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
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.plausible_deniability import cell
from gazeveil.privacy.randomness.rng import Source, WordArray
from gazeveil.privacy.synthesis.events_pd.attempts import Attempts, PublishedTest, all_events
from gazeveil.privacy.synthesis.events_pd.seeded_events import unit_uniform
from gazeveil.privacy.synthesis.motion import Motion

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
    k: int,
    width: float,
    attempts: int,
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
    k, width, attempts
        As in :class:`gazeveil.privacy.synthesis.events_pd.seeded_events.Rule`.
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
    rows, test = np.ascontiguousarray(seeds), PublishedTest(k - 1, width, attempts)
    return all_events(
        np.empty((len(seeds), 4)),
        people,
        lambda words, out: _fixations(rows, person, records, sphere, test, words, out),
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
