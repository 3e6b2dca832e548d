"""Joining what belongs together: a release with raw data or with another release of the same
people, and demographics with gaze.

David-John et al. 2023: k-anonymous age and gender leave at least k people, and gaze features name
one of them. The attacker filters first and recognises gaze inside the group.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.attacks.base import Attack, InferenceAttack, Scores
from gazeveil.attacks.matching import matching_credit
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import AttackResult, InferenceResult, identification, rate_result
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
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
