"""Demographics with gaze: the attacker filters a release by what is known of a person, then
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

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.result import AttackResult, rate_result
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.people.demographics import People
from gazeveil.privacy.tables.groups.ksame import KSameSelect

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
        If the group of somebody is not known.
    """
    _check_groups((*scores.probes, *scores.known), groups)
    same = np.array(
        [[groups[p] == groups[k] for k in scores.known] for p in scores.probes], dtype=np.bool_
    ).reshape(scores.values.shape)
    # Somebody without a score stays a candidate, the last one; only the filter takes people out.
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
        Generalised attributes, as :class:`gazeveil.privacy.people.demographics.Demographics`
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


def k_same_within(
    table: FeatureTable, released: People, k: int, seed: int | None = None
) -> FeatureTable:
    """k-same (corrected) inside each group of released demographics, so that both together leave at
    least k alike.

    Raises
    ------
    DataError
        If a group has fewer than k people with data, or somebody has no released demographics.
    """
    groups = groups_of(released)
    people = np.unique(table.keys.person).tolist()
    _check_groups(people, groups)
    parts = []
    for place, group in enumerate(sorted({groups[p] for p in people}, key=repr)):
        members = [p for p in people if groups[p] == group]
        own = (
            None
            if seed is None
            else int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
        )
        parts.append(KSameSelect(k).release(table.select(people=members), seed=own).data)
    return FeatureTable.concat(parts)
