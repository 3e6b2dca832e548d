"""Protocols of the experiments on docs/reference/attacks/others.md: attacks of the package, asked
again over sessions, tasks, releases and heat maps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.curves import Point, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.infer.people import FALSE_ALARMS, groups_of, judged, nearness
from gazeveil.attacks.result import AttackResult, InferenceResult, identification, rate_result
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort, natural
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.demographics import People
from gazeveil.privacy.heatmaps import WEIGHT, HeatMap, viewer_weights
from gazeveil.privacy.tables.ksame import KSameSelect


def prepared(attack: Attack, recording_set: RecordingSet) -> RecordingSet:
    """The material with the tables an attacker looks at computed now, so that its parts share the
    work; of events where the attacker does not say.
    """
    return recording_set.prepared(
        [n for n in attack.needs if n != "samples"] or ("fixation", "saccade")
    )


def template_age(
    attack: Attack,
    recording_set: RecordingSet,
    seed: int,
    days: Mapping[str, float] | None = None,
    repetitions: int = 5,
) -> tuple[Point, ...]:
    """Identification rate by the time between gallery and probe.

    Parameters
    ----------
    attack : Attack
        Who attacks.
    recording_set : RecordingSet
        Recordings with at least two sessions and two stimuli.
    seed : int
        Of the splits and the attacker.
    days : mapping of session to number, optional
        When each session was; default its place among the sessions in natural order.
    repetitions : int
        Random splits of the stimuli into halves.

    Returns
    -------
    tuple of Point
        One per distance in time that two sessions have, 0 first; at each, the mean over all pairs
        of sessions so far apart and all splits.

    Raises
    ------
    DataError
        With fewer than two sessions or stimuli, or where no two sessions share two people.
    """
    when = _times(recording_set, days)
    if len(when) < 2:
        raise DataError(
            f"A template's age needs recordings of at least two sessions. Got {len(when)}."
        )
    if len(recording_set.stimuli) < 2:
        raise DataError(
            "A template's age needs at least two stimuli: gallery and probe never hold the same"
            " one. Got 1."
        )
    recording_set = prepared(attack, recording_set)
    scores_by_age: dict[float, list[Scores]] = {}
    rng = np.random.default_rng(seed)
    for _ in range(checks.count("template_age", "repetitions", repetitions)):
        mixed = rng.permutation(np.array(recording_set.stimuli))
        half = {str(s) for s in mixed[: len(mixed) // 2]}
        for early, since in when.items():
            gallery_keys = {k for k in recording_set.keys if k[2] == early and k[1] in half}
            for late, until in when.items():
                if until < since:
                    continue
                probe_keys = {k for k in recording_set.keys if k[2] == late and k[1] not in half}
                scores = _between(attack, recording_set, seed, gallery_keys, probe_keys)
                if scores is not None:
                    scores_by_age.setdefault(until - since, []).append(scores)
    if not scores_by_age:
        raise DataError(
            "No two sessions hold recordings of the same two people with different stimuli, so"
            " there is no template to age."
        )
    return tuple(Point(age, identification(scores_by_age[age])) for age in sorted(scores_by_age))


def last_session(
    attack: Attack,
    recording_set: RecordingSet,
    seed: int,
    days: Mapping[str, float] | None = None,
    repetitions: int = 5,
) -> tuple[AttackResult, AttackResult]:
    """Each person's last session held out, beside random splits of the same sizes that mix
    sessions.

    Returns
    -------
    (held_out, mixed)
        The second is what a split by stimulus reports; the difference is what it owes to recordings
        of one day on both sides.

    Raises
    ------
    DataError
        If fewer than two people have two sessions.
    """
    when = _times(recording_set, days)
    sessions: dict[str, set[str]] = {}
    for person, _, session, _ in recording_set.keys:
        sessions.setdefault(person, set()).add(session)
    last = {
        p: max(own, key=lambda s: (when[s], natural(s)))
        for p, own in sessions.items()
        if len(own) > 1
    }
    if len(last) < 2:
        raise DataError(
            "Holding out the last session needs at least two people with two sessions. Got"
            f" {len(last)}."
        )
    recording_set = prepared(attack, recording_set)
    own = {k for k in recording_set.keys if k[0] in last}
    latest = {k for k in own if k[2] == last[k[0]]}
    held_out = _between(attack, recording_set, seed, own - latest, latest)
    assert held_out is not None  # everybody in `last` has both kinds of sessions
    rng = np.random.default_rng(seed)
    mixed = []
    for _ in range(checks.count("last_session", "repetitions", repetitions)):
        out: set[RecordingKey] = set()
        for person, session in sorted(last.items()):
            mine = sorted(k for k in own if k[0] == person)
            size = sum(k[2] == session for k in mine)
            out |= {mine[i] for i in rng.permutation(len(mine))[:size].tolist()}
        scores = _between(attack, recording_set, seed, own - out, out)
        assert scores is not None
        mixed.append(scores)
    return identification([held_out]), identification(mixed)


def _times(recording_set: RecordingSet, days: Mapping[str, float] | None) -> dict[str, float]:
    sessions = sorted({key[2] for key in recording_set.keys}, key=natural)
    if days is None:
        return {s: float(i) for i, s in enumerate(sessions)}
    missing = [s for s in sessions if s not in days]
    if missing:
        checks.refuse(
            "template_age",
            "days",
            "a number for every session",
            dict(days),
            f"Session '{missing[0]}' has none.",
        )
    return {s: checks.number("template_age", "days", days[s]) for s in sessions}


def _between(
    attack: Attack,
    recording_set: RecordingSet,
    seed: int,
    gallery_keys: set[RecordingKey],
    probe_keys: set[RecordingKey],
) -> Scores | None:
    """Scores of the people who are on both sides; None for fewer than two of them."""
    both = {k[0] for k in gallery_keys} & {k[0] for k in probe_keys}
    if len(both) < 2:
        return None
    gallery, probe = (
        recording_set.where({k for k in side if k[0] in both}.__contains__)
        for side in (gallery_keys, probe_keys)
    )
    return attack.identify(gallery, probe, seed)


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


def membership_game(
    recording_set: RecordingSet,
    publish: Callable[[RecordingSet, int], RecordingSet],
    seed: int,
    rounds: int = 5,
) -> tuple[AttackResult, ...]:
    """The whole game: publish a random half of the people, ask about all with recordings of other
    stimuli, and again. The mean area over rounds has the interval of one round, because rounds ask
    about the same people; hits are counted over the scores of all rounds together.
    """
    people, stimuli = recording_set.persons, recording_set.stimuli
    prepared = recording_set.prepared(("fixation", "saccade"))
    rng = np.random.default_rng(seed)
    areas: list[float] = []
    inside: list[float] = []
    outside: list[float] = []
    for place in range(rounds):
        members = rng.permutation(np.array(people))[: len(people) // 2].tolist()
        mixed = rng.permutation(np.array(stimuli)).tolist()
        shown, held = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
        own = int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
        release = publish(prepared.select(people=members, stimuli=shown), own)
        scores = nearness(release, prepared.select(stimuli=held))
        areas.append(judged(scores, members, "one round").result("auc").value)
        for person, score in scores.items():
            (inside if person in members else outside).append(score)
    half, value = len(people) // 2, float(np.mean(areas))
    protocol = f"{rounds} rounds, half of {len(people)} people published, other stimuli held"
    edges = roc_area_interval(value, half, len(people) - half)
    hits = []
    for share in FALSE_ALARMS:
        pooled = tpr_at_fpr(inside, outside, share, protocol)
        hits.append(rate_result(pooled.metric, pooled.value, half, pooled.chance, protocol))
    return (AttackResult("auc", value, *edges, len(people), 0.5, math.nan, protocol), *hits)


def map_membership(
    maps: Mapping[str, HeatMap], targets: Cohort, members: Collection[str]
) -> InferenceResult:
    """Judge heat maps by people who are in them and people who are not.

    Parameters
    ----------
    maps : mapping of stimulus to HeatMap
        As published; `noisy`, the viewers per cell, is what the attacker looks at.
    targets : Cohort
        Recordings of the same stimuli by everybody asked about: the very ones for the worst case,
        or of another session.
    members : collection of str
        Who took part: the truth, for judging alone.
    """
    rows: dict[str, list[tuple[str, Floats]]] = {}
    for recording in targets:
        if recording.stimulus in maps:
            shape = maps[recording.stimulus].noisy.shape
            rows.setdefault(recording.stimulus, []).append(
                (recording.person, viewer_weights(recording, *shape).ravel() / WEIGHT)
            )
    if not rows:
        raise DataError("None of the targets' recordings is of a stimulus that has a map.")
    scores: dict[str, float] = {}
    for stimulus, viewings in sorted(rows.items()):
        own = np.stack([w for _, w in viewings])
        published = maps[stimulus].noisy.ravel()
        viewers = max(float(published.sum()), 1.0)
        for i, (person, weights) in enumerate(viewings):
            # The usual map comes from the other targets; cells weigh by how little viewers differ
            # in them.
            others = np.delete(own, i, axis=0) if len(own) > 1 else own
            usual, spread = others.mean(axis=0), others.var(axis=0)
            precision = 1.0 / (spread + float(spread.mean()) + 1e-12)
            scores[person] = scores.get(person, 0.0) + float(
                ((weights - usual) * (published / viewers - usual) * precision).sum()
            )
    return judged(scores, members, f"{len(rows)} heat maps against maps of single viewers")
