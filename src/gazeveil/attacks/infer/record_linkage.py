"""Joining what belongs together: a release with raw data or with another release of the same
people, and demographics with gaze.

David-John et al. 2023: k-anonymous age and gender leave at least k people, and gaze features name
one of them. The attacker filters first and recognises gaze inside the group.

Membership inference: decide from a release whether a person took part.

The attacker holds raw recordings of a target (other ones than those released, unless said
otherwise) and the release. The score is the similarity of the nearest published pseudonym: the
largest cosine between the target's vector and a published one. Vectors are whitened by the
within-person covariance. The unit is the cosines between the target and the other targets, since
some people resemble many.

Evaluated on participants and on people of the same kind who did not take part. A release without
membership information gives an area under the curve of 0.5. The rate at few false alarms is
reported too: certainty about a few people is worse than slight evidence about all.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, InferenceAttack, Scores
from gazeveil.attacks.curves import auc, tpr_at_fpr
from gazeveil.attacks.kernel_ridge import whitened
from gazeveil.attacks.matching import matching_credit
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import AttackResult, InferenceResult, identification, rate_result
from gazeveil.attacks.vectors.kinds import (
    centred,
    person_means,
    person_vectors,
    places_of,
    unit_rows,
)
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_deviations
from gazeveil.privacy.demographics import Demographics, People


@dataclass(frozen=True)
class RecordLinkage(InferenceAttack):
    """Find each person's pseudonym, alone and by the best one-to-one matching of all. `attack` is
    the text of an identifying attacker.
    """

    name: ClassVar[str] = "record-linkage"
    summary: ClassVar[str] = "finds the pseudonym of each person with raw recordings"

    attack: str = "linkage"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Identify the people of the raw recordings, or of another release, in the release. Names
        serve to check the answer alone; the seed also breaks ties.
        """
        scores = attack_by_name(self.attack).identify(release, raw, seed)
        alone, right = identification([scores]), matching_credit(scores, seed)
        together = rate_result(
            "identification_rate",
            float(right.mean()),
            len(right),
            alone.chance,
            "best one-to-one matching of all names, interval over people",
        )
        return InferenceResult(self.name, (alone, together), {"attack": self.attack})


@dataclass(frozen=True)
class DemographicLinkage(InferenceAttack):
    """Filter by generalised age and gender, then compare gaze (David-John et al. 2023).

    Parameters
    ----------
    attack : str
        Text of the identifying attacker that looks at the gaze.
    k, attributes : int, tuple of str
        As in :class:`gazeveil.privacy.demographics.Demographics`, which generalises the attributes.
    """

    name: ClassVar[str] = "demographics"
    summary: ClassVar[str] = "filters by generalised age and gender, then compares gaze"

    attack: str = "linkage"
    k: int = 4
    attributes: tuple[str, ...] = ("age", "gender")

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Generalise the attributes of the raw recordings' people and identify within groups."""
        people = {p: raw.people.get(p, {}) for p in raw.persons}
        released = Demographics(self.k, attributes=self.attributes).release(people, seed=seed).data
        result, _ = demographic_attack(attack_by_name(self.attack), release, raw, released, seed)
        return InferenceResult(self.name, (result,), {"attack": self.attack, "k": self.k})


def groups_of(released: People) -> dict[str, tuple[Hashable, ...]]:
    """Who shares the released attributes: person -> the released values, in the order of their
    names.
    """
    return {p: tuple(str(a[n]) for n in sorted(a)) for p, a in released.items()}


def demographic_attack(
    attack: Attack, gallery: RecordingSet, probe: RecordingSet, released: People, seed: int
) -> tuple[AttackResult, Scores]:
    """Filter by released demographics, then identify inside the group.

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

    Returns
    -------
    (result, scores)
        Chance is that of the demographics alone: the mean of 1 / people left by the filter. Scores
        of people outside the group are minus infinity.

    Raises
    ------
    DataError
        If a person has no released demographics.
    """
    known, probes, groups = gallery.persons, probe.persons, groups_of(released)
    missing = [p for p in (*probes, *known) if p not in groups]
    if missing:
        raise DataError(
            f"Person '{missing[0]}' has no released demographics to filter by. Leave them out, or"
            " release their attributes too."
        )
    values = np.full((len(probes), len(known)), -np.inf)
    for group in dict.fromkeys(groups[p] for p in probes):
        members = [p for p in known if groups[p] == group]
        targets = [p for p in probes if groups[p] == group]
        part = Scores(tuple(members), tuple(targets), np.zeros((len(targets), len(members))))
        if len(members) > 1:  # else the filter alone has named the person
            part = attack.identify(
                gallery.select(people=members), probe.select(people=targets), seed
            )
        rows, columns = [probes.index(t) for t in part.probes], [known.index(m) for m in part.known]
        # A person without a score stays the last candidate; only the filter removes people.
        least = np.nanmin(part.values, initial=0.0) - 1
        values[np.ix_(rows, columns)] = np.nan_to_num(part.values, nan=least, neginf=least)
    scores, left = Scores(known, probes, values), np.isfinite(values).sum(axis=1)
    protocol = (
        f"filtered to {min(left, default=0)} to {max(left, default=0)} people by demographics,"
        " interval over people"
    )
    chance, rate = np.nan, np.nan
    if len(left):
        chance = float(np.mean(np.where(left > 0, 1 / np.maximum(left, 1), 0.0)))
        rate = float(scores.credit().mean())
    return rate_result("identification_rate", rate, len(left), chance, protocol), scores


#: Shares of false alarms at which hits are counted.
FALSE_ALARMS = (0.001, 0.01, 0.1)


@dataclass(frozen=True)
class MembershipInference(InferenceAttack):
    """Tell who is in the release. The raw recordings must hold people who are not in it, too.

    Parameters
    ----------
    features : {"summary", "extended", "trajectory"}
        As in :func:`gazeveil.attacks.vectors.kinds.recording_vectors`.
    """

    name: ClassVar[str] = "membership"
    summary: ClassVar[str] = "tells who of the people with raw recordings is in the release"

    features: str = "summary"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Score everybody with raw recordings; people named in the release are the members."""
        scores = nearness(release, raw, self.features)
        return judged(
            scores, release.persons, "raw recordings of targets against the nearest pseudonym"
        )


def judged(scores: Mapping[str, float], members: Collection[str], protocol: str) -> InferenceResult:
    """Scores of members against those of the others: AUC and hits at few false alarms.

    Raises
    ------
    DataError
        If no candidate took part, or all did.
    """
    inside = [s for p, s in scores.items() if p in set(members)]
    outside = [s for p, s in scores.items() if p not in set(members)]
    if not inside or not outside:
        raise DataError(
            f"Membership needs targets who took part and targets who did not. Got {len(inside)} and"
            f" {len(outside)}."
        )
    hits = (tpr_at_fpr(inside, outside, f, protocol) for f in FALSE_ALARMS)
    results = (auc(inside, outside, protocol), *hits)
    return InferenceResult(MembershipInference.name, results, {"scores": dict(scores)})


def nearness(
    release: RecordingSet, targets: RecordingSet, features: str = "summary"
) -> dict[str, float]:
    """The attacker's score of every target, without knowing who took part; names of the release are
    not looked at.

    Raises
    ------
    DataError
        If release and targets have no feature in common.
    """
    if features == "summary" and not (release.has("fixation") or release.has("saccade")):
        # Both sides are seen through the same tables, so a release of windows is compared with
        # windows.
        targets = RecordingSet(tables={"window": targets.windows}, people=targets.people)
    mine, theirs = centred(targets, features), centred(release, features)
    columns = tuple(c for c in mine.columns if c in set(theirs.columns))
    if not columns:
        raise DataError(
            "The release and the targets' recordings have no features in common, so they cannot be"
            " compared."
        )
    mine, theirs = mine.select(columns), theirs.select(columns)
    spread = column_deviations(mine.values)
    scale = np.where(spread > 1e-12, spread, np.inf)
    people, published = person_vectors(mine), person_vectors(theirs)
    rows, asked, shown = (np.nan_to_num(v.values / scale) for v in (mine, people, published))
    of = places_of(mine.persons, people.people)[0]
    rest = (rows - person_means(rows, mine.persons, people.people)[of])[np.bincount(of)[of] > 1]
    if len(rest):
        asked, shown = whitened(rest, asked, shown)
    asked, shown = unit_rows(asked), unit_rows(shown)
    near: Floats = (asked @ shown.T).max(axis=1)
    # A release that holds nothing says the same of everybody.
    if len(asked) > 2 and shown.any():
        usual = asked @ asked.T
        others = usual[~np.eye(len(usual), dtype=np.bool_)].reshape(len(usual), -1)
        deviation = others.std(axis=1)
        near = (near - others.mean(axis=1)) / np.where(deviation > 0, deviation, 1.0)
    return dict(zip(people.people, near.tolist(), strict=True))
