"""How identification changes with the size of the gallery and with the age of what the attacker
holds.

**Gallery size.** Somebody who is beaten by b of the other N - 1 people of a gallery is found in a
random gallery of m people if none of those b is in it:

    P(found among m) = C(N - 1 - b, m - 1) / C(N - 1, m - 1),

and a tie with t others is found in the mean 1 / (1 + ties that are in it). So one attack on all
people gives the whole curve, without drawing galleries. It assumes that scores against one person
do not depend on who else is in the gallery.

**Template age.** The same split by stimulus at every age: the gallery holds some stimuli of one
session, the probe the other stimuli of a session so much later. Age 0 is then the usual split
within a session, and what differs is time alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.result import AttackResult, beaten_by, identification, share_result, tied_with
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import natural
from gazeveil.gaze.recording import RecordingKey


@dataclass(frozen=True)
class Point:
    """One point of a curve.

    Parameters
    ----------
    at : float
        Gallery size, or age.
    result : AttackResult
        What was achieved there.
    """

    at: float
    result: AttackResult


def found_among(beaten: int, tied: int, known: int, size: int) -> float:
    """Probability of being found in a random gallery of `size` of the `known` people, oneself among
    them; exact.
    """
    others, drawn = known - 1, size - 1
    if beaten > others:
        return 0.0
    rest = others - beaten - tied
    whole = math.comb(others, drawn)
    return sum(
        math.comb(tied, j) * math.comb(rest, drawn - j) / ((j + 1) * whole)
        for j in range(min(tied, drawn) + 1)
    )


def gallery_curve(
    scores_per_repetition: Sequence[Scores], sizes: Iterable[int] | None = None
) -> tuple[Point, ...]:
    """Identification rate by the size of the gallery, in closed form.

    Parameters
    ----------
    scores_per_repetition : sequence of Scores
        As for :func:`gazeveil.attacks.result.identification`.
    sizes : iterable of int, optional
        From 2 to the number of people known; default all of them, at most 50 evenly spread.

    Returns
    -------
    tuple of Point
        The last one, at the full size, is the identification rate itself.
    """
    known = min((len(s.known) for s in scores_per_repetition), default=0)
    if known < 2:
        raise DataError(f"A gallery curve needs at least two people known. Got {known}.")
    wanted = (
        sorted({round(m) for m in np.linspace(2, known, min(known - 1, 50))})
        if sizes is None
        else sorted(set(sizes))
    )
    for size in wanted:
        if not 2 <= checks.count("gallery_curve", "sizes", size) <= known:
            checks.refuse("gallery_curve", "sizes", f"from 2 to {known}, the people known", size)
    rivals = [
        (beaten_by(s).tolist(), tied_with(s).tolist(), len(s.known)) for s in scores_per_repetition
    ]
    people = sorted({p for s in scores_per_repetition for p in s.probes})
    points = []
    for size in wanted:
        found = [
            {
                p: found_among(b, t, known, size)
                for p, b, t in zip(s.probes, above, level, strict=True)
            }
            for s, (above, level, known) in zip(scores_per_repetition, rivals, strict=True)
        ]
        credit = [[own.get(p, np.nan) for own in found] for p in people]
        protocol = f"random galleries of {size}, closed form"
        result = share_result("identification_rate", credit, 1 / size, protocol)
        points.append(Point(size, result))
    return tuple(points)


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


def prepared(attack: Attack, recording_set: RecordingSet) -> RecordingSet:
    """The material with the tables an attacker looks at computed now, so that its parts share the
    work; of events where the attacker does not say.
    """
    return recording_set.prepared(
        [n for n in attack.needs if n != "samples"] or ("fixation", "saccade")
    )
