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

Demographics with gaze: the attacker filters a release by what is known of a person, then
recognises the gaze of those who are left (David-John et al. 2023).

A set is published with generalised ages and genders (k-anonymous) beside the gaze. The attacker
knows a target's age and gender from elsewhere, keeps the pseudonyms with the matching ranges, and
runs an identifying attack among them. The demographics alone leave a guess among at least k; the
gaze does the rest.

Two k-anonymous releases side by side are not k-anonymous together: groups of k-same that were drawn
without regard to the ranges put a target together with people of other ranges, whom the filter
takes away again. :func:`k_same_within` draws the groups inside the ranges, which keeps the bound of
1 / k for both together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.result import AttackResult, identification, rate_result
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.privacy.demographics import People


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


#: What the attacker is trained on: everybody in the release, or those who pass the filter.
TRAINED = ("all", "group")


def groups_of(released: People) -> dict[str, tuple[Hashable, ...]]:
    """Who shares the released attributes: person -> the released values, in the order of their
    names.
    """
    return {p: tuple(str(a[n]) for n in sorted(a)) for p, a in released.items()}


def within(scores: Scores, groups: Mapping[str, Hashable]) -> Scores:
    """Scores after the filter: people of another group than the person asked about are out of the
    question.

    Raises
    ------
    DataError
        If the group of a person is not known.
    """
    _check_groups((*scores.probes, *scores.known), groups)
    same = np.array(
        [[groups[p] == groups[k] for k in scores.known] for p in scores.probes], dtype=np.bool_
    ).reshape(scores.values.shape)
    # A person without a score stays the last candidate; only the filter removes people.
    finite = scores.values[np.isfinite(scores.values)]
    floor = float(finite.min()) - 1 if len(finite) else -1.0
    filled = np.where(np.isfinite(scores.values), scores.values, floor)
    return Scores(scores.known, scores.probes, np.where(same, filled, -np.inf))


def _check_groups(people: Iterable[str], groups: Mapping[str, Hashable]) -> None:
    missing = [p for p in people if p not in groups]
    if missing:
        raise DataError(
            f"Person '{missing[0]}' has no released demographics to filter by. Leave them out, or"
            " release their attributes too."
        )


def demographic_attack(
    attack: Attack,
    gallery: RecordingSet,
    probe: RecordingSet,
    released: People,
    seed: int,
    trained: str = "all",
) -> tuple[AttackResult, Scores]:
    """Filter by released demographics, then identify.

    Parameters
    ----------
    attack : Attack
        Who looks at the gaze.
    gallery, probe : RecordingSet
        The published set under names, and the gaze of the targets; the attacker finds the published
        pseudonym of each target.
    released : mapping of person to attributes
        Generalised attributes, as :class:`gazeveil.privacy.demographics.Demographics`
        releases them. A target's exact age and gender lead to the same entry.
    seed : int
        Of the attacker.
    trained : {"all", "group"}
        Whether the attacker learns from everybody and then filters (at least as strong: more people
        to learn differences from), or filters first, as David-John et al. 2023.

    Returns
    -------
    (result, scores)
        Chance is that of the demographics alone: the mean of 1 / people left by the filter.
    """
    checks.one_of("demographic_attack", "trained", trained, TRAINED)
    groups = groups_of(released)
    scores = within(
        attack.identify(gallery, probe, seed)
        if trained == "all"
        else _group_by_group(attack, gallery, probe, groups, seed),
        groups,
    )
    gallery_groups = [groups[p] for p in scores.known]
    left = [gallery_groups.count(groups[p]) for p in scores.probes]
    chance = float(np.mean([1 / n if n else 0.0 for n in left])) if left else float("nan")
    protocol = (
        f"filtered to {min(left, default=0)} to {max(left, default=0)} people by demographics,"
        f" trained on {trained}, interval over people"
    )
    rate, n = float(scores.credit().mean()), len(scores.probes)
    return rate_result("identification_rate", rate, n, chance, protocol), scores


def _group_by_group(
    attack: Attack,
    gallery: RecordingSet,
    probe: RecordingSet,
    groups: Mapping[str, Hashable],
    seed: int,
) -> Scores:
    _check_groups((*probe.persons, *gallery.persons), groups)
    known, probes = gallery.persons, probe.persons
    values = np.full((len(probes), len(known)), -np.inf)
    for group in dict.fromkeys(groups[p] for p in probes):
        members = [p for p in known if groups[p] == group]
        targets = [p for p in probes if groups[p] == group]
        if len(members) == 1:  # nothing to learn: the filter alone has named the person
            values[np.ix_([probes.index(t) for t in targets], [known.index(members[0])])] = 0.0
        elif members:
            part = attack.identify(
                gallery.select(people=members), probe.select(people=targets), seed
            )
            values[
                np.ix_([probes.index(t) for t in part.probes], [known.index(m) for m in part.known])
            ] = part.values
    return Scores(known, probes, values)
