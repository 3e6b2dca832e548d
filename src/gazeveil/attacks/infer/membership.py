"""Membership inference: decide from a release whether a person took part.

The attacker holds raw recordings of a target (other ones than those released, unless said
otherwise) and the release. The score is the similarity of the nearest published pseudonym: the
largest cosine between the target's vector and a published one. Vectors are whitened by the
within-person covariance. The unit is the cosines between the target and the other targets, since
some people resemble many. For heat maps the score is the shift of the published map from the usual
one towards the target's own (Homer et al. 2008).

Evaluated on participants and on people of the same kind who did not take part. A release without
membership information gives an area under the curve of 0.5. The rate at few false alarms is
reported too: certainty about a few people is worse than slight evidence about all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.curves import auc, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.result import AttackResult, rate_result
from gazeveil.attacks.vectors.kinds import centred, person_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, column_deviations

#: Shares of false alarms at which hits are counted.
FALSE_ALARMS = (0.001, 0.01, 0.1)


@dataclass(frozen=True, eq=False)
class Membership:
    """Membership inference result. It holds the probability that a participant scores above a
    non-participant, the share of participants found at few false alarms (:data:`FALSE_ALARMS`), and
    each target's score.
    """

    auc: AttackResult
    hits: tuple[AttackResult, ...]
    scores: Mapping[str, float] = field(repr=False)


def membership(
    release: RecordingSet,
    targets: RecordingSet,
    members: Collection[str],
    features: str = "summary",
) -> Membership:
    """Judge a release by people who are in it and people who are not.

    Parameters
    ----------
    release : RecordingSet
        As published; its names are not looked at.
    targets : RecordingSet
        Raw recordings of everybody asked about.
    members : collection of str
        Which of them took part: the truth, used for judging alone.
    features : {"summary", "extended", "trajectory"}
        As in :func:`gazeveil.attacks.vectors.kinds.recording_vectors`; for a release of window
        features these are used.

    Raises
    ------
    DataError
        Without targets of both kinds.
    """
    names, scores = nearness(release, targets, features)
    return judged(
        dict(zip(names, scores.tolist(), strict=True)),
        members,
        "raw recordings of targets against the nearest pseudonym",
    )


def nearness(
    release: RecordingSet, targets: RecordingSet, features: str = "summary"
) -> tuple[tuple[str, ...], Floats]:
    """The attacker's score of every target, without knowing who took part."""
    windows = not (release.has("fixation") or release.has("saccade"))
    # Both sides are seen through the same tables, so a release of windows is compared with windows.
    own = (
        RecordingSet(tables={"window": targets.windows}, people=targets.people)
        if windows and features == "summary"
        else targets
    )
    mine, theirs = centred(own, features), centred(release, features)
    columns = tuple(c for c in mine.columns if c in set(theirs.columns))
    if not columns:
        raise DataError(
            "The release and the targets' recordings have no features in common, so they cannot be"
            " compared."
        )
    mine, theirs = mine.select(columns), theirs.select(columns)
    people, published = person_vectors(mine), person_vectors(theirs)
    scale = _spread(mine.values)
    whiten = _whitening(mine, scale)
    asked, shown = (
        _directions(np.where(np.isfinite(p.values), p.values / scale, 0.0) @ whiten)
        for p in (people, published)
    )
    near = (asked @ shown.T).max(axis=1)
    usual = asked @ asked.T
    if (
        len(people.people) < 3 or not shown.any()
    ):  # a release that holds nothing says the same of everybody
        return people.people, near
    others = usual[~np.eye(len(usual), dtype=np.bool_)].reshape(len(usual), -1)
    deviation = others.std(axis=1)
    return people.people, np.asarray(
        (near - others.mean(axis=1)) / np.where(deviation > 0, deviation, 1.0), dtype=np.float64
    )


def _spread(values: Floats) -> Floats:
    """Deviation of each column; infinite where it does not vary, so that it counts nothing."""
    spread = column_deviations(values)
    return np.where(spread > 1e-12, spread, np.inf)


def _whitening(vectors: RecordingVectors, scale: Floats) -> Floats:
    """A matrix after which recordings of one person differ alike in all directions (Ledoit and
    Wolf's covariance); the identity without repeated recordings.
    """
    from sklearn.covariance import ledoit_wolf

    values = np.where(np.isfinite(vectors.values), vectors.values / scale, 0.0)
    persons = vectors.persons
    rests = [
        values[persons == p] - values[persons == p].mean(axis=0)
        for p in np.unique(persons)
        if np.count_nonzero(persons == p) > 1
    ]
    if not rests:
        return np.eye(values.shape[1])
    covariance = ledoit_wolf(np.concatenate(rests), assume_centered=True)[0]
    level, axes = np.linalg.eigh(covariance)
    return np.asarray(
        axes / np.sqrt(np.maximum(level, 1e-9 * max(float(level.max()), 1e-12))), dtype=np.float64
    )


def _directions(values: Floats) -> Floats:
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(length > 0, length, 1.0), dtype=np.float64)


def judged(scores: Mapping[str, float], members: Collection[str], protocol: str) -> Membership:
    """Scores of members against those of the others: AUC and hits at few false alarms.

    Raises
    ------
    DataError
        If all targets are members, or none.
    """
    inside = [s for p, s in scores.items() if p in members]
    outside = [s for p, s in scores.items() if p not in members]
    if not inside or not outside:
        raise DataError(
            f"Membership needs targets who took part and targets who did not. Got {len(inside)} and"
            f" {len(outside)}."
        )
    return Membership(
        auc(inside, outside, protocol),
        tuple(tpr_at_fpr(inside, outside, f, protocol) for f in FALSE_ALARMS),
        dict(scores),
    )


def play(
    recording_set: RecordingSet,
    publish: Callable[[RecordingSet, int], RecordingSet],
    seed: int,
    rounds: int = 5,
    features: str = "summary",
    same: bool = False,
) -> Membership:
    """The whole game: publish a random half of the people, ask about all, and again.

    Parameters
    ----------
    recording_set : RecordingSet
        Raw recordings.
    publish : callable
        Makes a release of a recording set with a seed.
    seed : int
        Of everything.
    rounds : int
        Draws of the half.
    features : str
        As in :func:`membership`.
    same : bool
        Whether the attacker holds the very recordings that were released instead of other stimuli
        of the same people: the worst case.

    Returns
    -------
    Membership
        Means over rounds; intervals as for one round, because rounds ask about the same people
        again. Hits are counted over the scores of all rounds together. `scores` are means over
        rounds.

    Raises
    ------
    DataError
        With fewer than four people, or fewer than two stimuli unless `same`.
    """
    people, stimuli = recording_set.persons, recording_set.stimuli
    if len(people) < 4 or (len(stimuli) < 2 and not same):
        raise DataError(
            f"The membership game needs at least four people and two stimuli. Got {len(people)} and"
            f" {len(stimuli)}."
        )
    prepared = recording_set.prepared(("fixation", "saccade"))
    rng = np.random.default_rng(seed)
    areas: list[float] = []
    inside: list[float] = []
    outside: list[float] = []
    total = dict.fromkeys(people, 0.0)
    rounds = checks.count("play", "rounds", rounds)
    for round_index in range(rounds):
        members = rng.permutation(np.array(people))[: len(people) // 2].tolist()
        mixed = rng.permutation(np.array(stimuli)).tolist()
        shown = mixed if same else mixed[: len(mixed) // 2]
        held = mixed if same else mixed[len(mixed) // 2 :]
        release = publish(
            prepared.select(people=members, stimuli=shown),
            int(np.random.SeedSequence([seed, round_index]).generate_state(1)[0]),
        )
        outcome = membership(release, prepared.select(stimuli=held), members, features)
        areas.append(outcome.auc.value)
        for p, score in outcome.scores.items():
            total[p] += score / rounds
            (inside if p in members else outside).append(score)
    half = len(people) // 2
    value = float(np.mean(areas))
    protocol = (
        f"{rounds} rounds, half of {len(people)} people published, attacker holds"
        f" {'the same' if same else 'other'} stimuli"
    )
    low, high = roc_area_interval(value, half, len(people) - half)
    hits = []
    for share in FALSE_ALARMS:
        pooled = tpr_at_fpr(inside, outside, share, protocol)
        counted = rate_result(pooled.metric, pooled.value, half)
        hits.append(replace(pooled, low=counted.low, high=counted.high, n=half))
    return Membership(
        AttackResult("auc", value, low, high, len(people), 0.5, math.nan, protocol),
        tuple(hits),
        total,
    )
