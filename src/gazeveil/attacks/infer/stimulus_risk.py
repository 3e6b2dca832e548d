"""Stimulus risk: compare stimuli by re-identification rate.

David-John et al. (2021) find rates that depend on "the type of stimulus used to elicit the eye
movements" between datasets. Here the stimuli of one cohort are compared, with the same people.

* `across`: attackers learn people from all other stimuli and name them from one alone.
* `within`: attackers learn from the first half of each recording of a stimulus and name people from
  the second half.
* `control`: as across, but each stimulus's gallery recordings are permuted among people, which
  breaks the link to names. It must be at chance level.
* `person_share` needs no attacker: the intraclass correlation of features between the two halves of
  a recording, mean over features. 0 means that the features carry nothing about the person, 1
  nothing else.

Several attackers are tried, on a raw gallery and, for a release, on a gallery of it too. The rate
of a stimulus is that of the strongest attacker on the *other* stimuli, so luck does not select it.
:mod:`gazeveil.attacks.infer.told_apart` tests which stimuli differ from the mean.

Longer recordings tell more. `seconds` compares the first seconds of each alone.

Raw recordings and a release of them, cut by stimulus: what an attacker learns from and is asked
about when stimuli are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack
from gazeveil.attacks.infer.told_apart import ToldApart, person_share, told_apart
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import AttackResult, chosen_on_others, rate_result, share_result
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.scratch import set_aside

#: Fewest people who must have seen a stimulus, and fewest stimuli a person must have seen.
FEWEST_PEOPLE = 4
FEWEST_STIMULI = 2


@dataclass(frozen=True, eq=False)
class StimulusSides:
    """Raw recordings and a release of them (the same object where the raw recordings themselves are
    attacked), whole and in first and second halves, by the same people and stimuli; and the stimuli
    that too few people saw.
    """

    raw: RecordingSet
    release: RecordingSet
    halves: dict[str, tuple[RecordingSet, RecordingSet]]
    left_out: tuple[str, ...]

    @property
    def galleries(self) -> tuple[str, ...]:
        """What an attacker may learn from: `raw`, and `release` where that is another."""
        return ("raw",) if self.release is self.raw else ("raw", "release")

    def whole(self, name: str) -> RecordingSet:
        """The raw recordings or the release."""
        return self.raw if name == "raw" else self.release


def sides_of(
    raw: RecordingSet, release: RecordingSet, seconds: float | None = None
) -> StimulusSides:
    """Both sides with the people and stimuli that can be compared, cut to the first so many
    seconds.

    Raises
    ------
    DataError
        If too few people saw too few stimuli.
    """
    both = set(raw.persons) & set(release.persons)
    known = {(key[0], key[1]) for key in raw.keys}
    saw = {
        s: {key[0] for key in release.keys if key[1] == s and (key[0], s) in known}
        for s in release.stimuli
    }
    stimuli = sorted(s for s, who in saw.items() if len(who) >= FEWEST_PEOPLE)
    people = [p for p in sorted(both) if sum(p in saw[s] for s in stimuli) >= FEWEST_STIMULI]
    if len(stimuli) < FEWEST_STIMULI or len(people) < FEWEST_PEOPLE:
        raise DataError(
            f"Stimulus risk needs at least {FEWEST_STIMULI} stimuli and {FEWEST_PEOPLE} people who"
            f" saw {FEWEST_STIMULI} of them, in the raw recordings and in the release. Got"
            f" {len(stimuli)} such stimuli and {len(people)} such people."
        )
    left_out = tuple(sorted(set(release.stimuli) - set(stimuli)))
    own = _cut(raw.select(people, stimuli), seconds)
    same = release is raw or (raw.cohort is not None and release.cohort is raw.cohort)
    other = own if same else _cut(release.select(people, stimuli), seconds)
    halves = {"raw": own.halves()}
    halves["release"] = halves["raw"] if other is own else other.halves()
    return StimulusSides(own, other, halves, left_out)


def _cut(recording_set: RecordingSet, seconds: float | None) -> RecordingSet:
    if seconds is None:
        return recording_set
    seconds = checks.positive("stimulus_risk", "seconds", seconds)
    cohort = recording_set.cohort
    if cohort is None:
        checks.refuse("stimulus_risk", "seconds", "None for a release of tables", seconds)
    return RecordingSet(
        set_aside((_beginning(r, seconds) for r in cohort), cohort.people, cohort.name),
        None,
        recording_set.pipeline,
        recording_set.people,
        recording_set.noise_scale_deg,
    )


def _beginning(recording: Recording, seconds: float) -> Recording:
    if len(recording) == 0:
        return recording
    # Lost samples may carry wild times; the valid ones increase.
    clock = np.maximum.accumulate(recording.t_ns)
    end = int(np.searchsorted(clock, int(clock[0]) + round(seconds * 1e9), side="left"))
    return recording.slice(0, end)


def part(whole: RecordingSet, stimulus: str, others: bool = False) -> RecordingSet:
    """The recordings of one stimulus, or of all others; what is computed of each recording alone is
    shared with the whole.
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


#: Default attackers: the simplest of the strong ones and the strongest alone.
ATTACKS = ("linkage", "steps")

#: An attacker, and what it learns from: `raw` or `release`.
_Try = tuple[Attack, str]


@dataclass(frozen=True, eq=False)
class StimulusRisk:
    """How far each stimulus identifies.

    Parameters
    ----------
    stimuli, people : tuple of str
        What was compared, sorted.
    across, within, control : array of float64, shape (stimuli, people)
        Credit of each person in each stimulus; NaN where not asked.
    chance : array of float64, shape (stimuli,)
        One over the people known.
    speakers : tuple of str
        Who speaks for each stimulus across stimuli, and what it learnt from.
    person_share : array of float64, shape (stimuli,)
        Without an attacker; NaN where there are too few people or events.
    seconds : array of float64, shape (stimuli,)
        Median length of its recordings; NaN for tables.
    apart : ToldApart
        Which stimuli differ from the mean, across stimuli.
    left_out : tuple of str
        Stimuli that too few people saw.
    """

    stimuli: tuple[str, ...]
    people: tuple[str, ...]
    across: Floats = field(repr=False)
    within: Floats = field(repr=False)
    control: Floats = field(repr=False)
    chance: Floats = field(repr=False)
    speakers: tuple[str, ...]
    person_share: Floats
    seconds: Floats
    apart: ToldApart
    left_out: tuple[str, ...]

    def of(self, stimulus: str, which: str = "across") -> AttackResult:
        """The rate of one stimulus, with its interval over people; `which` is what the attacker
        learns from.
        """
        place = self.stimuli.index(checks.one_of("of", "stimulus", stimulus, self.stimuli))
        credit = self._credit(which)[place]
        asked = credit[np.isfinite(credit)]
        value = float(asked.mean()) if len(asked) else math.nan
        return rate_result(f"{which}_rate", value, len(asked), float(self.chance[place]), stimulus)

    def mean(self, which: str = "across") -> AttackResult:
        """The mean over stimuli of the people's rates, with its interval over people."""
        protocol = f"mean of {len(self.stimuli)} stimuli, interval over people"
        return share_result(
            f"{which}_rate", self._credit(which).T, float(self.chance.mean()), protocol
        )

    def _credit(self, which: str) -> Floats:
        known = {"across": self.across, "within": self.within, "control": self.control}
        return known[checks.one_of("StimulusRisk", "which", which, known)]

    def rows(self) -> list[dict[str, object]]:
        """One row per stimulus as JSON has it, the most identifying first."""
        shrunk = float(self.mean().value) + self.apart.shrunk
        order = np.argsort(-column_means(self.across.T), kind="stable").tolist()
        return [
            {
                "stimulus": self.stimuli[i],
                "seconds": _number(self.seconds[i]),
                **_columns("across", self.of(self.stimuli[i])),
                "excess": _number(self.apart.excess[i]),
                "p_value": _number(self.apart.p_value[i]),
                "expected": _number(min(1.0, max(0.0, float(shrunk[i])))),
                **_columns("within", self.of(self.stimuli[i], "within")),
                "control": _number(self.of(self.stimuli[i], "control").value),
                "chance": _number(self.chance[i]),
                "person_share": _number(self.person_share[i]),
                "speaker": self.speakers[i],
            }
            for i in order
        ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _columns(name: str, result: AttackResult) -> dict[str, object]:
    return {
        name: _number(result.value),
        f"{name}_low": _number(result.low),
        f"{name}_high": _number(result.high),
        f"{name}_people": result.n,
    }


def stimulus_risk(
    raw: RecordingSet,
    release: RecordingSet | None = None,
    attacks: Sequence[str] = ATTACKS,
    seconds: float | None = None,
    seed: int = 0,
    draws: int = 4999,
) -> StimulusRisk:
    """Compare the stimuli of a cohort by how well they identify.

    Parameters
    ----------
    raw : RecordingSet
        Raw recordings with true names.
    release : RecordingSet, optional
        The release that is attacked, under the same names; None for the raw recordings themselves.
    attacks : sequence of str
        Who is tried, as in `gazeveil attack --attack`.
    seconds : float, optional
        Only the first so many seconds of each recording; None for all.
    seed : int
        Of attackers, of the control and of the draws.
    draws : int
        Of :func:`gazeveil.attacks.infer.told_apart.told_apart`.

    Raises
    ------
    DataError
        For a release of pieces, for fewer than four people who saw two stimuli, or if no attacker
        fits the release.
    """
    attacked = raw if release is None else release
    if attacked.origins is not None:
        raise DataError(
            "Stimulus risk follows a person from one stimulus to another, and a release of pieces,"
            " each under a name of its own, does not allow that."
        )
    whos = [a for a in (attack_by_name(text) for text in attacks) if a.can(attacked) and a.can(raw)]
    if not whos:
        raise DataError(
            f"None of {', '.join(attacks) or 'no attackers'} can attack this release. Name one that"
            " takes what it holds."
        )
    sides = sides_of(raw, attacked, seconds)
    tries = list(product(whos, sides.galleries))
    across, within = _across(sides, tries, seed), _within(sides, tries, seed)
    speakers = [tries[i] for i in _speakers(across)]
    credit = _spoken(across)
    halves = sides.halves["release"]
    stimuli = sides.release.stimuli
    return StimulusRisk(
        stimuli,
        sides.release.persons,
        credit,
        _spoken(within),
        _control(sides, speakers, seed),
        _chances(sides),
        tuple(f"{attack} on {gallery}" for attack, gallery in speakers),
        np.array([person_share(*(part(half, s) for half in halves)) for s in stimuli]),
        _lengths(sides),
        told_apart(credit, seed, draws),
        sides.left_out,
    )


def _asked(
    attack: Attack, gallery: RecordingSet, probe: RecordingSet, people: tuple[str, ...], seed: int
) -> Floats:
    """Credit of each person; NaN where not asked or not known."""
    try:
        scores = attack.identify(gallery, probe, seed)
    except DataError:
        # A release may hide what this attacker looks at, as half of a short recording may hold no
        # event: then nothing was asked, and another attacker speaks.
        return np.full(len(people), np.nan)
    known = set(scores.known)
    credit = dict(zip(scores.probes, scores.credit().tolist(), strict=True))
    return np.array([credit[p] if p in credit and p in known else math.nan for p in people])


def _across(sides: StimulusSides, tries: list[_Try], seed: int) -> Floats:
    """Credit where all other stimuli are learnt from, shape (tries, stimuli, people).

    Raises
    ------
    DataError
        If no attacker can say anything.
    """
    stimuli, people = sides.release.stimuli, sides.release.persons
    credit = np.full((len(tries), len(stimuli), len(people)), np.nan)
    for at, stimulus in enumerate(stimuli):
        probe = part(sides.release, stimulus)
        # One gallery for all who learn from it, so that they share what they compute of it.
        others = {g: part(sides.whole(g), stimulus, others=True) for g in sides.galleries}
        for i, (attack, gallery) in enumerate(tries):
            credit[i, at] = _asked(attack, others[gallery], probe, people, seed)
    if not np.isfinite(credit).any():
        raise DataError(
            "No attacker finds anything to go by in these recordings: they may be too short, or"
            " hold no gaze."
        )
    return credit


def _within(sides: StimulusSides, tries: list[_Try], seed: int) -> Floats:
    """Credit where first halves are learnt from, shape (tries, stimuli, people)."""
    stimuli, people = sides.release.stimuli, sides.release.persons
    credit = np.full((len(tries), len(stimuli), len(people)), np.nan)
    for at, stimulus in enumerate(stimuli):
        late = part(sides.halves["release"][1], stimulus)
        early = {g: part(sides.halves[g][0], stimulus) for g in sides.galleries}
        for i, (attack, gallery) in enumerate(tries):
            credit[i, at] = _asked(attack, early[gallery], late, people, seed)
    return credit


def _control(sides: StimulusSides, tries: list[_Try], seed: int) -> Floats:
    """Credit of one attacker for each stimulus where galleries are dealt out anew."""
    rng = np.random.default_rng(seed)
    stimuli, people = sides.release.stimuli, sides.release.persons
    credit = [
        _asked(
            attack,
            dealt(part(sides.whole(gallery), stimulus, others=True), rng),
            part(sides.release, stimulus),
            people,
            seed,
        )
        for stimulus, (attack, gallery) in zip(stimuli, tries, strict=True)
    ]
    return np.stack(credit)


def _spoken(credit: Floats) -> Floats:
    """Of several attackers the one that is strongest on the other stimuli, stimulus by stimulus."""
    return credit[0] if len(credit) == 1 else chosen_on_others(credit)


def _speakers(credit: Floats) -> list[int]:
    """Which try speaks for each stimulus, as :func:`chosen_on_others` chooses."""
    rates = column_means(np.moveaxis(credit, 2, 0))
    chosen = []
    for here in range(credit.shape[1]):
        others = column_means(np.delete(rates, here, axis=1).T)
        able = np.isfinite(others) & np.isfinite(rates[:, here])
        chosen.append(int(np.argmax(np.where(able, others, -np.inf))))
    return chosen


def _chances(sides: StimulusSides) -> Floats:
    """One over the people that galleries know, for each stimulus."""
    keys = sides.raw.keys
    return np.array([1 / len({k[0] for k in keys if k[1] != s}) for s in sides.release.stimuli])


def _lengths(sides: StimulusSides) -> Floats:
    """Median seconds of the recordings of each stimulus; NaN for tables."""
    lengths: dict[str, list[float]] = {s: [] for s in sides.release.stimuli}
    for recording in sides.release.cohort or ():
        lengths[recording.stimulus].append(recording.duration_s)
    return np.array([float(np.median(own)) if own else math.nan for own in lengths.values()])
