"""Raw recordings and a release of them, cut by stimulus: what an attacker learns from and is asked
about when stimuli are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
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
    """A gallery in which the recordings of each stimulus are dealt out anew among those who saw it,
    so that a name stands for nobody.
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
