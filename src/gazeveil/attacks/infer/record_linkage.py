"""Joining what belongs together: two releases of the same people, a release with raw data, more
tasks of one release, more views of one recording.

* :func:`link_records`: people under two sets of pseudonyms. Each name on its own, and all names at
  once: knowing that both sides hold the same people, the attacker takes the one-to-one matching
  with the best total score (the assignment problem). That gains where scores of different people
  are comparable, and may lose where they are not; both are reported.
* :func:`by_tasks`: how identification grows with the number of tasks published under one pseudonym.
  k-same with groups redrawn per task (David-John et al.'s (2022) pseudocode) puts a person with
  others each time; two pseudonyms stay alike over T tasks with probability ((k - 1) / (N - 1))**T,
  and the mean over tasks goes to the one person who is in all of them. With one partition nothing
  grows.
* :func:`by_views`: r independent releases of one recording averaged sample by sample; noise falls
  as 1 / sqrt(r).
* :func:`fingerprint`: two halves of one release against halves of two independent ones. Noise that
  both halves share, such as the few Fourier coefficients of FPA, names the release and not the
  person: Bozkir et al.'s (2021) protocol reports it as identification.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.identify.curves import Point, prepared
from gazeveil.attacks.result import AttackResult, identification, rate_result
from gazeveil.attacks.views import average_views
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet


@dataclass(frozen=True)
class LinkedReleases:
    """Two releases of the same people, linked: each name of the second looked for on its own
    (`alone`), all names at once, one to one (`together`), and the scores that both come from.
    """

    alone: AttackResult
    together: AttackResult
    scores: Scores


def link_records(
    attack: Attack, first: RecordingSet, second: RecordingSet, seed: int
) -> LinkedReleases:
    """Find each person of the second release in the first; either may be raw recordings. The names
    on both sides only serve to check the answer. The seed also breaks ties.
    """
    scores = attack.identify(first, second, seed)
    alone = identification([scores])
    right = one_to_one(scores, seed)
    protocol = "best one-to-one matching of all names, interval over people"
    return LinkedReleases(
        alone,
        rate_result("identification_rate", float(right.mean()), len(right), alone.chance, protocol),
        scores,
    )


def one_to_one(scores: Scores, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """1 for each probe that the best one-to-one matching gives its own name, else 0; ties are
    broken at random, without regard to names.
    """
    from scipy.optimize import linear_sum_assignment

    values = np.where(np.isfinite(scores.values), scores.values, np.nan)
    if values.size == 0:
        raise DataError("There is nobody to match: one side of the two releases has no people.")
    lowest = float(np.nanmin(values)) - 1 if np.isfinite(values).any() else 0.0
    values = np.where(np.isnan(values), lowest, values)
    # Rows are brought to one scale: a loud row must not outvote the others in the sum.
    spread = values.std(axis=1, keepdims=True)
    values = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(scores.probes)), rng.permutation(len(scores.known))
    named_rows, named_columns = linear_sum_assignment(values[np.ix_(rows, columns)], maximize=True)
    right = np.zeros(len(scores.probes), dtype=np.float64)
    for i, j in zip(rows[named_rows].tolist(), columns[named_columns].tolist(), strict=True):
        right[i] = scores.probes[i] == scores.known[j]
    return right


def by_tasks(
    attack: Attack,
    release: RecordingSet,
    raw: RecordingSet,
    counts: Iterable[int],
    seed: int,
    repetitions: int = 3,
) -> tuple[Point, ...]:
    """How many people are found as more stimuli of the release are used.

    Parameters
    ----------
    attack : Attack
        Who attacks.
    release : RecordingSet
        The published set: the gallery.
    raw : RecordingSet
        Other recordings of the same people: the probe.
    counts : iterable of int
        Numbers of released stimuli to use.
    seed : int
        Of the draws of stimuli and the attacker.
    repetitions : int
        Draws of each number of stimuli (one where all are used).

    Returns
    -------
    tuple of Point
        By number of stimuli.
    """
    stimuli = np.array(release.stimuli)
    release, raw = prepared(attack, release), prepared(attack, raw)
    points = []
    for count in sorted(set(counts)):
        if checks.count("by_tasks", "counts", count) > len(stimuli):
            checks.refuse(
                "by_tasks", "counts", f"at most {len(stimuli)}, the stimuli of the release", count
            )
        rng = np.random.default_rng([seed, count])
        draws = 1 if count == len(stimuli) else checks.count("by_tasks", "repetitions", repetitions)
        scores = []
        for _ in range(draws):
            some = rng.permutation(stimuli)[:count].tolist()
            scores.append(attack.identify(release.select(stimuli=some), raw, seed))
        points.append(Point(count, identification(scores)))
    return tuple(points)


def by_views(
    attack: Attack,
    gallery: RecordingSet,
    views: Sequence[RecordingSet],
    counts: Iterable[int],
    seed: int,
) -> tuple[Point, ...]:
    """How many people are found as more independent releases (`views`) of the probe's recordings
    are averaged: the first `counts` of them. The gallery is what the attacker knows, e.g. raw
    recordings of other stimuli.
    """
    points = []
    for count in sorted(set(counts)):
        if checks.count("by_views", "counts", count) > len(views):
            checks.refuse("by_views", "counts", f"at most {len(views)}, the views there are", count)
        probe = views[0] if count == 1 else average_views(views[:count])
        points.append(Point(count, identification([attack.identify(gallery, probe, seed)])))
    return tuple(points)


def fingerprint(
    attack: Attack, once: RecordingSet, again: RecordingSet, seed: int
) -> tuple[AttackResult, AttackResult]:
    """Does the noise of a release name people? First halves of recordings against second halves, in
    two independent releases of them.

    Returns
    -------
    (one_release, two_releases)
        Second halves of the same release, and of the other one. Where the first is high and the
        second is not, the attacker recognises the noise: nobody could do this who holds anything
        but two halves of that very release.
    """
    gallery, same = once.halves()
    _, other = again.halves()
    return identification([attack.identify(gallery, same, seed)]), identification(
        [attack.identify(gallery, other, seed)]
    )
