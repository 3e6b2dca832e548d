"""Stimulus risk: compare stimuli by re-identification rate.

David-John et al. (2021) find rates that depend on "the type of stimulus used to elicit the eye
movements" between datasets. Here the stimuli of one cohort are compared, with the same people.

* `across`: attackers learn people from all other stimuli and name them from one alone.
* `control`: as across, but each stimulus's gallery recordings are permuted among people, which
  breaks the link to names. It must be at chance level.

Several attackers are tried, on a raw gallery and, for a release, on a gallery of it too. The rate
of a stimulus is that of the strongest attacker on the *other* stimuli, so luck does not select it.

Longer recordings tell more. `seconds` compares the first seconds of each alone.

Which stimuli differ from their mean (:func:`told_apart`): if none does, a person's outcomes may
change places among the stimuli. That is drawn, person by person, and no law of the outcomes is
assumed (Cochran's Q, 1950, with its distribution drawn). Each excess is divided by its standard
deviation under these draws. The largest excess of each draw is what the excesses are compared with
(Westfall and Young 1993, "Resampling-based multiple testing"), so that the chance of naming even
one stimulus where none differs is at most 5 %, however many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, InferenceAttack
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import (
    ERROR,
    AttackResult,
    InferenceResult,
    rate_result,
    share_result,
    strongest_elsewhere,
)
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.scratch import set_aside

#: Fewest people who must have seen a stimulus, and fewest stimuli a person must have seen.
FEWEST_PEOPLE, FEWEST_STIMULI = 4, 2

#: An attacker, and what it learns from.
_Try = tuple[Attack, RecordingSet]

#: Numbers drawn at once: bounds the memory.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class StimulusComparison(InferenceAttack):
    """Name people from each stimulus alone, and say which stimuli differ from the mean.

    Parameters
    ----------
    attacks : str
        Who is tried, with `+` between them; default the simplest of the strong attackers and the
        strongest alone.
    seconds : float
        Only the first so many seconds of each recording; 0 for all.
    draws : int
        Of :func:`told_apart`.
    """

    name: ClassVar[str] = "stimulus-risk"
    summary: ClassVar[str] = "names people from each stimulus alone, and compares the stimuli"

    attacks: str = "linkage+steps"
    seconds: float = 0.0
    draws: int = 4999

    def __post_init__(self) -> None:
        checks.not_negative(self.name, "seconds", self.seconds)
        checks.count(self.name, "draws", self.draws)
        for text in self.attacks.split("+"):
            attack_by_name(text)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Name people by every stimulus; the rates of single stimuli are among the details.

        Raises
        ------
        DataError
            For a release of pieces, for fewer than four people who saw two stimuli, or if no
            attacker fits the release.
        """
        if release.origins is not None:
            raise DataError(
                "Stimulus risk follows a person from one stimulus to another, and a release of"
                " pieces, each under a name of its own, does not allow that."
            )
        every = [attack_by_name(text) for text in self.attacks.split("+")]
        whos = [a for a in every if a.can(release) and a.can(raw)]
        if not whos:
            raise DataError(
                f"None of {self.attacks} can attack this release. Name one that takes what it"
                " holds."
            )
        raw, release, left_out = self._comparable(raw, release)
        tries = list(product(whos, (raw,) if release is raw else (raw, release)))
        credit = _across(tries, release, seed)
        chosen = strongest_elsewhere(credit).tolist()
        rng, stimuli = np.random.default_rng(seed), release.stimuli
        across, control = np.empty(credit.shape[1:]), np.empty(credit.shape[1:])
        for i, (stimulus, best) in enumerate(zip(stimuli, chosen, strict=True)):
            attack, gallery = tries[best]
            across[i] = credit[best, i]
            nobody = dealt(_part(gallery, stimulus, others=True), rng)
            control[i] = _asked(attack, nobody, release, stimulus, seed)
        chances = [1 / len({k[0] for k in raw.keys if k[1] != s}) for s in stimuli]
        chance, apart = float(np.mean(chances)), told_apart(across, seed, self.draws)
        words = f"mean of {len(stimuli)} stimuli, interval over people"
        counted = AttackResult(
            "stimuli_apart",
            float((apart.p_value <= ERROR).sum()),
            math.nan,
            math.nan,
            len(stimuli),
            0.0,
            apart.p_any,
            f"of {len(stimuli)} stimuli, adjusted for all; any difference at all: p"
            f" {apart.p_any:.2g}",
        )
        rates = (
            share_result("across_rate", across.T, chance, words),
            share_result("control_rate", control.T, chance, words),
        )
        speakers = [f"{a} on {'raw' if g is raw else 'release'}" for a, g in tries]
        rows = _rows(release, across, control, chances, [speakers[i] for i in chosen], apart)
        least = _known(apart.least_difference)
        details = {"stimuli": rows, "left_out": left_out, "least_difference": least}
        return InferenceResult(self.name, (*rates, counted), details)

    def _comparable(
        self, raw: RecordingSet, release: RecordingSet
    ) -> tuple[RecordingSet, RecordingSet, list[str]]:
        """Both sides (the same object where the raw recordings themselves are attacked) with the
        people and stimuli that can be compared, cut to the first so many seconds; and the stimuli
        that too few people saw.
        """
        known = {(key[0], key[1]) for key in raw.keys}
        seen = sorted({key[:2] for key in release.keys} & known)
        stimuli = {s for s in release.stimuli if sum(k[1] == s for k in seen) >= FEWEST_PEOPLE}
        both = set(raw.persons) & set(release.persons)
        people = {
            p for p in both if sum(k[0] == p and k[1] in stimuli for k in seen) >= FEWEST_STIMULI
        }
        if len(stimuli) < FEWEST_STIMULI or len(people) < FEWEST_PEOPLE:
            raise DataError(
                f"Stimulus risk needs at least {FEWEST_STIMULI} stimuli and {FEWEST_PEOPLE} people"
                f" who saw {FEWEST_STIMULI} of them, in the raw recordings and in the release. Got"
                f" {len(stimuli)} such stimuli and {len(people)} such people."
            )
        own = self._cut(raw.select(people, stimuli))
        same = release is raw or (raw.cohort is not None and release.cohort is raw.cohort)
        other = own if same else self._cut(release.select(people, stimuli))
        return own, other, sorted(set(release.stimuli) - stimuli)

    def _cut(self, recording_set: RecordingSet) -> RecordingSet:
        cohort = recording_set.cohort
        if not self.seconds:
            return recording_set
        if cohort is None:
            checks.refuse(self.name, "seconds", "0 for a release of tables", self.seconds)

        def beginning(recording: Recording) -> Recording:
            if len(recording) == 0:
                return recording
            # Lost samples may carry wild times; the valid ones increase.
            clock = np.maximum.accumulate(recording.t_ns)
            last = int(clock[0]) + round(self.seconds * 1e9)
            return recording.slice(0, int(np.searchsorted(clock, last)))

        return RecordingSet(
            set_aside(map(beginning, cohort), cohort.people, cohort.name),
            None,
            recording_set.pipeline,
            recording_set.people,
            recording_set.noise_scale_deg,
        )


def _rows(
    release: RecordingSet,
    across: Floats,
    control: Floats,
    chances: list[float],
    speakers: list[str],
    apart: ToldApart,
) -> list[dict[str, object]]:
    """One row per stimulus as JSON has it, the most identifying first."""
    lengths: dict[str, list[float]] = {s: [] for s in release.stimuli}
    for recording in release.cohort or ():
        lengths[recording.stimulus].append(recording.duration_s)
    rows = []
    for i in np.argsort(-column_means(across.T), kind="stable").tolist():
        stimulus, asked = release.stimuli[i], across[i][np.isfinite(across[i])]
        found = rate_result("", float(asked.mean()) if len(asked) else math.nan, len(asked))
        rows.append(
            {
                "stimulus": stimulus,
                "seconds": _known(float(np.median(lengths[stimulus] or [math.nan]))),
                "across": _known(found.value),
                "across_low": _known(found.low),
                "across_high": _known(found.high),
                "across_people": found.n,
                "excess": _known(float(apart.excess[i])),
                "p_value": _known(float(apart.p_value[i])),
                "control": _known(float(column_means(control[i]))),
                "chance": chances[i],
                "speaker": speakers[i],
            }
        )
    return rows


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _across(tries: list[_Try], release: RecordingSet, seed: int) -> Floats:
    """Credit where all other stimuli are learnt from, shape (tries, stimuli, people).

    Raises
    ------
    DataError
        If no attacker can say anything.
    """
    stimuli = release.stimuli
    credit = np.full((len(tries), len(stimuli), len(release.persons)), np.nan)
    for at, stimulus in enumerate(stimuli):
        # One gallery for all who learn from it, so that they share what they compute of it.
        others = {g: _part(g, stimulus, others=True) for _, g in tries}
        for i, (attack, gallery) in enumerate(tries):
            credit[i, at] = _asked(attack, others[gallery], release, stimulus, seed)
    if not np.isfinite(credit).any():
        raise DataError(
            "No attacker finds anything to go by in these recordings: they may be too short, or"
            " hold no gaze."
        )
    return credit


def _asked(
    attack: Attack, gallery: RecordingSet, release: RecordingSet, stimulus: str, seed: int
) -> Floats:
    """Credit of each person, asked about by one stimulus; NaN where not asked or not known."""
    people = release.persons
    try:
        scores = attack.identify(gallery, _part(release, stimulus), seed)
    except DataError:
        # A release may hide what this attacker looks at: then nothing was asked, and another
        # attacker speaks.
        return np.full(len(people), np.nan)
    credit = dict(zip(scores.probes, scores.credit().tolist(), strict=True))
    return np.array([credit[p] if p in credit and p in scores.known else np.nan for p in people])


def _part(whole: RecordingSet, stimulus: str, others: bool = False) -> RecordingSet:
    """The recordings of one stimulus, or of all others; what is computed of each recording alone is
    computed once, for the whole.
    """
    some = whole.where(lambda key: (key[1] != stimulus) == others)
    some.part_of = whole
    return some


def dealt(gallery: RecordingSet, rng: np.random.Generator) -> RecordingSet:
    """Permute the gallery's recordings of each stimulus among its viewers, which breaks the link to
    names.
    """
    names: dict[tuple[str, str], str] = {}
    for stimulus in gallery.stimuli:
        saw = sorted({key[0] for key in gallery.keys if key[1] == stimulus})
        names |= dict(zip(((s, stimulus) for s in saw), rng.permutation(saw).tolist(), strict=True))
    if gallery.cohort is not None:
        recordings = (r.with_(person=names[r.person, r.stimulus]) for r in gallery.cohort)
        return RecordingSet(
            set_aside(recordings), None, gallery.pipeline, noise_scale_deg=gallery.noise_scale_deg
        )
    tables = {}
    for name, table in gallery.tables.items():
        keys = table.keys
        own = zip(keys.person.tolist(), keys.stimulus.tolist(), strict=True)
        tables[name] = replace(table, keys=replace(keys, person=np.array([names[k] for k in own])))
    return RecordingSet(None, tables, gallery.pipeline)


@dataclass(frozen=True, eq=False)
class ToldApart:
    """Conditions beside their mean.

    Parameters
    ----------
    excess : array of float64, shape (conditions,)
        Mean over people of a person's outcome less the person's mean over conditions.
    p_value : array of float64, shape (conditions,)
        Chance of so large an excess, of either sign, in any of the conditions if none differs;
        adjusted for their number.
    p_any : float
        Chance of so large a spread of all conditions if none differs.
    least_difference : float
        The smallest excess that could have been told apart here, median over conditions; NaN where
        no person's outcomes vary.
    """

    excess: Floats
    p_value: Floats
    p_any: float
    least_difference: float


def told_apart(outcomes: Floats, seed: int, draws: int = 4999) -> ToldApart:
    """Compare conditions with their mean, when the same people were asked in all of them.

    Parameters
    ----------
    outcomes : array of float64, shape (conditions, people)
        NaN where a person was not asked.
    seed : int
        Of the draws.
    draws : int
        How many.

    Examples
    --------
    All of ten people are found in the last condition alone.

    >>> apart = told_apart(np.repeat([[0.0], [0.0], [1.0]], 10, axis=1), seed=1)
    >>> int(np.argmax(apart.excess)), apart.p_value.round(2).tolist()
    (2, [0.11, 0.11, 0.0])
    """
    asked = np.isfinite(outcomes)
    deviations = np.where(asked, outcomes - column_means(outcomes), 0.0)
    of_person = (deviations**2).sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    variance = np.where(asked, of_person, 0.0).sum(axis=1)
    scale = np.sqrt(np.where(variance > 0, variance, np.inf))
    z = deviations.sum(axis=1) / scale
    rng = np.random.default_rng(seed)
    largest, spread = np.empty(draws), np.empty(draws)
    step = max(1, _AT_ONCE // deviations.size)
    for begin in range(0, draws, step):
        many = min(step, draws - begin)
        total = np.zeros((many, len(deviations)))
        for person in range(deviations.shape[1]):
            there = np.flatnonzero(asked[:, person])
            values = np.broadcast_to(deviations[there, person], (many, len(there)))
            total[:, there] += rng.permuted(values, axis=1)
        drawn = total / scale
        largest[begin : begin + many] = np.abs(drawn).max(axis=1)
        spread[begin : begin + many] = (drawn**2).sum(axis=1)
    # A draw that ties, but for the last digit of its sums, counts as one that did as well.
    as_large = (largest >= np.abs(z)[:, None] - 1e-9).sum(axis=1)
    as_spread = int((spread >= float((z**2).sum()) - 1e-9).sum())
    n, varies = np.maximum(asked.sum(axis=1), 1), np.isfinite(scale)
    told = float(np.quantile(largest, 1 - ERROR)) * scale[varies] / n[varies]
    return ToldApart(
        deviations.sum(axis=1) / n,
        (1 + as_large) / (1 + draws),
        (1 + as_spread) / (1 + draws),
        float(np.median(told)) if len(told) else math.nan,
    )
