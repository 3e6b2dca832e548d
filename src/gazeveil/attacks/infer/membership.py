"""Membership inference: decide from a release whether a person took part.

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

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import InferenceAttack
from gazeveil.attacks.curves import auc, tpr_at_fpr
from gazeveil.attacks.kernel_ridge import whitened
from gazeveil.attacks.result import InferenceResult
from gazeveil.attacks.vectors.deviations import person_means, places_of, unit_rows
from gazeveil.attacks.vectors.kinds import centred, person_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_deviations

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
