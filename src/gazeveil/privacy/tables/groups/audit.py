"""Games for mechanisms over people: one feature between 0 and 1, 100 rows, k people of whom one is
replaced.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.bounds import epsilon_at
from gazeveil.privacy.audit.games import Game, asked_unit, how_many
from gazeveil.privacy.noise.exact import discrete_laplace, laplace_scale
from gazeveil.privacy.noise.shells import shells
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.uniform import uniform_below
from gazeveil.privacy.tables.audit import ROWS, Reals, batches, table_of
from gazeveil.privacy.tables.histograms import BinnedRows, bin_codes
from gazeveil.privacy.tables.plausible_deniability import charge, pass_probability
from gazeveil.privacy.tables.sequences.recordings import WHOLE, sequences

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth
    from gazeveil.privacy.tables.groups.dp_ksame import DPKSame
    from gazeveil.privacy.tables.marginals import Marginals


def _pair(k: int) -> list[FeatureTable]:
    """People at the midpoint, the first of them at 0 or at 1."""
    names = [f"p{i}" for i in range(k)]
    return [
        table_of(np.concatenate((np.full((1, ROWS), end), np.full((k - 1, ROWS), 0.5))), names)
        for end in (0.0, 1.0)
    ]


def dp_k_same(mechanism: DPKSame, unit: str | None) -> Game:
    """Round noise on the sum of a group of k: one member all 0 against all 1, which moves it by the
    whole sensitivity.
    """
    told = asked_unit(unit, mechanism.per, WHOLE)
    works = [mechanism._prepare(table) for table in _pair(mechanism.k)]
    sizes = works[0].sizes
    chosen = mechanism.plan(sizes)
    budget = mechanism.budget  # one feature of one recording: nothing shares the budget
    group = [np.arange(mechanism.k)]
    grid = mechanism._draw(chosen, sizes, 1, Words(source(1, "audit")))[0]
    ends = [
        grid.rounded(mechanism._sums(work, group, chosen)).astype(np.float64).reshape(-1)
        for work in works
    ]

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, scores = Words(source(seed, "audit")), []
        for count in batches(trials, 10 * len(ends[0])):
            found = ends[side] + mechanism._draw(chosen, sizes, count, words)[1].reshape(count, -1)
            near, far = (np.linalg.norm(found - end, axis=1) for end in ends)
            scores.append(np.stack((far - near, found @ (ends[0] - ends[1])), axis=1))
        return np.concatenate(scores)

    words = (
        f"A group of {mechanism.k} people, one feature of {ROWS} rows: one person all 0 against all"
        f" 1. D = {len(chosen.places)}, {chosen.profile} noise."
    )
    if chosen.profile == "staircase":
        exact = shells(len(chosen.places), budget, grid.sensitivity, chosen.gamma).least_loss
    else:
        # The density of noise that is rounded lies within half a diagonal of that of the noise
        # itself; in one dimension it is discrete from the start.
        diagonal = math.sqrt(len(ends[0])) if len(ends[0]) > 1 else 0.0
        exact = (
            max(0.0, float(np.linalg.norm(ends[0] - ends[1])) - diagonal)
            / grid.sensitivity
            * float(budget)
        )
    records = [
        mechanism.release(table, seed=1).data.values.reshape(mechanism.k, -1)
        for table in _pair(mechanism.k)
    ]
    broken = (
        ""
        if all((r == r[0]).all() for r in records)
        else "Members of one group have different records."
    )
    return Game(told, float(mechanism.budget), words, play, exact, broken=broken)


def k_same_synth(mechanism: KSameSynth, unit: str | None) -> Game:
    """Count the people whose recordings are all drawn from the same laws, with the same times and
    losses: at least k, over several cohorts.
    """
    rng = np.random.default_rng(0)
    smallest = None
    cohorts = how_many(8, mechanism.k)
    for trial in range(cohorts):
        people, tasks = int(rng.integers(mechanism.k, 4 * mechanism.k)), int(rng.integers(1, 4))
        cohort = Cohort(
            [scanpath(f"p{p}", f"s{t}", rng) for p in range(people) for t in range(tasks)]
        )
        laws, released = (
            mechanism.laws(cohort, seed=trial),
            mechanism.release(cohort, seed=trial).data,
        )
        records: dict[str, list[bytes]] = {}
        for r in released:
            law = laws[r.key]
            parts = (law.fixations, law.saccades, law.is_fixation, law.onset, r.t_ns, r.valid)
            records.setdefault(r.person, []).append(
                b"|".join([r.stimulus.encode(), *(a.tobytes() for a in parts)])
            )
        same = Counter(b"".join(r) for r in records.values())
        smallest = min([*same.values()] if smallest is None else [smallest, *same.values()])
    words = (
        f"{cohorts} random cohorts with 1 to 3 stimuli and unequal lengths: the smallest number of"
        f" people with one law is {smallest}, k = {mechanism.k} is claimed."
    )
    told = asked_unit(unit, "user", ("user",))
    return Game(
        told,
        None,
        words,
        broken=(
            "A law is shared by fewer than k people."
            if smallest is not None and smallest < mechanism.k
            else ""
        ),
    )


def scanpath(person: str, stimulus: str, rng: np.random.Generator) -> Recording:
    """About three seconds of fixations with jumps between them, 100 Hz."""
    lengths = rng.integers(15, 50, int(rng.integers(6, 11)))
    places = np.cumsum(rng.normal(0, 6, (len(lengths), 2)), axis=0)
    gaze = np.repeat(places, lengths, axis=0) + rng.normal(0, 0.1, (int(lengths.sum()), 2))
    x, y = (180 + gaze[:, 0]) % 360, np.clip(90 + gaze[:, 1], 1, 179)
    return Recording(
        person, stimulus, np.arange(len(x)) * 10**7, x, y, space=Sphere(), rate_hz=100.0
    )


def marginals(mechanism: Marginals, unit: str | None) -> Game:
    """Noise on one histogram: one person in the first bin against the last."""
    if mechanism.reading == "published":
        words = (
            f"The plausible-deniability test of {mechanism.title} passes for every k up to the"
            " number of records and every gamma: there is nothing to break."
        )
        return Game("user", None, words)
    if mechanism.pd == "randomised":
        return _randomised(mechanism, unit)
    epsilon = Fraction(mechanism.epsilon)
    codes = [
        (sequences("audit", t), bin_codes(t.values, np.zeros(1), np.ones(1), mechanism.bins))
        for t in _pair(mechanism.k)
    ]
    counts = [
        BinnedRows.of(seqs, code, sorted(seqs.people), ["s"])
        .weights(mechanism.bins)[0, 0]
        .astype(np.float64)
        for seqs, code in codes
    ]
    scale = mechanism._scale(epsilon)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, scores = Words(source(seed, "audit")), []
        for count in batches(trials, mechanism.bins):
            found = counts[side] + discrete_laplace(scale, count * mechanism.bins, words).reshape(
                count, -1
            )
            scores.append((np.abs(found - counts[1]) - np.abs(found - counts[0])).sum(axis=1))
        return np.concatenate(scores)[:, None]

    t, s = laplace_scale(scale)
    exact = float(Fraction(int(np.abs(counts[0] - counts[1]).sum()) * s, t))
    words = (
        f"{mechanism.k} people, one feature of {ROWS} rows in {mechanism.bins} bins: one of them in"
        " the first against the last bin, before sampling."
    )
    return Game(asked_unit(unit, mechanism.per, WHOLE), float(epsilon), words, play, exact)


def _randomised(mechanism: Marginals, unit: str | None) -> Game:
    """One vector under the randomised test, with even histograms: one person like nobody else,
    against one like all the others.
    """
    told = asked_unit(unit, "user", ("user",))
    people, bins = 2 * mechanism.k, mechanism.bins
    gamma, epsilon0 = Fraction(mechanism.gamma), Fraction(mechanism.epsilon0)
    claimed, delta = charge(mechanism.k, gamma, epsilon0, people, 1, Fraction(mechanism.delta))
    pmf = np.full((1, bins), 1.0 / bins)
    sides = []
    for alone in (1, 0):
        seat = np.zeros(people, dtype=np.int64)
        seat[0] = alone
        sides.append(
            BinnedRows(
                np.arange(people), np.zeros(people, dtype=np.int64), seat[:, None], people, 1
            )
        )

    def law(rows: BinnedRows) -> Reals:
        """Probability of each bin, as proofs/marginals.md has it."""
        crowd = np.bincount(rows.codes[:, 0], minlength=bins)
        passes = pass_probability(crowd, mechanism.k, epsilon0)
        kept, rejected = crowd * passes / people, float((crowd * (1 - passes)).sum()) / people
        anyhow = 1 / people
        return np.asarray((1 - anyhow) * (kept + rejected / bins) + anyhow / bins, dtype=np.float64)

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words = Words(source(seed, "audit"))
        drawn = uniform_below(np.full(trials, bins), words)[:, None]
        mechanism._seeded(drawn, sides[side], 0, people, pmf, words)
        return drawn.astype(np.float64)

    words = (
        f"One vector under the randomised test, {people} people and {bins} bins, even histograms:"
        " one person like nobody else against one like all."
    )
    return Game(
        told,
        float(claimed),
        words,
        play,
        epsilon_at(law(sides[0]), law(sides[1]), float(delta)),
        float(delta),
    )
