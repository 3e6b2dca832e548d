"""Made tables of people who differ, for tests of attackers."""

from __future__ import annotations

import numpy as np

from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys


def table(
    people: list[str],
    stimuli: list[str],
    events: int,
    features: int = 4,
    apart: float = 1.0,
    seed: int = 0,
) -> FeatureTable:
    """Events whose features are normal around a trait of the person; `apart` is the spread of
    traits in units of the spread of events.
    """
    rng = np.random.default_rng(seed)
    traits = {p: apart * rng.normal(size=features) for p in people}
    recordings = [(p, s, "", "") for p in people for s in stimuli]
    values = np.concatenate(
        [traits[p] + rng.normal(size=(events, features)) for p, _, _, _ in recordings]
    )
    return FeatureTable(
        values,
        tuple(f"f{i}" for i in range(features)),
        Keys.of_recordings(recordings, [np.arange(events)] * len(recordings)),
    )


def recording_set(
    people: int = 8, stimuli: int = 4, events: int = 20, apart: float = 1.0, seed: int = 0
) -> RecordingSet:
    """Fixations and saccades of people p0, p1, ... on stimuli s0, s1, ..."""
    names, clips = [f"p{i}" for i in range(people)], [f"s{i}" for i in range(stimuli)]
    return RecordingSet(
        None,
        {
            kind: table(names, clips, events, 4 + i, apart, seed + i)
            for i, kind in enumerate(("fixation", "saccade"))
        },
    )


def sides(whole: RecordingSet, test: int = 1) -> tuple[RecordingSet, RecordingSet]:
    """The last stimuli as the probe, the others as the gallery."""
    stimuli = whole.stimuli
    return whole.select(stimuli=stimuli[:-test]), whole.select(stimuli=stimuli[-test:])


def without(whole: RecordingSet, kind: str, person: str) -> RecordingSet:
    """The same without the events of one kind of one person."""
    tables = {
        name: t.where(t.keys.person != person) if name == kind else t
        for name, t in whole.tables.items()
    }
    return RecordingSet(None, tables)


def shuffled(whole: RecordingSet, seed: int = 0) -> RecordingSet:
    """Names dealt anew among those who saw a stimulus, the same for all tables: nothing is left
    that tells people apart across stimuli.
    """
    rng = np.random.default_rng(seed)
    seen = {s: sorted({k[0] for k in whole.keys if k[1] == s}) for s in whole.stimuli}
    deal = {
        s: dict(zip(people, rng.permutation(people).tolist(), strict=True))
        for s, people in seen.items()
    }
    tables = {}
    for name, t in whole.tables.items():
        keys = t.keys
        person = [
            deal[s][p] for s, p in zip(keys.stimulus.tolist(), keys.person.tolist(), strict=True)
        ]
        tables[name] = FeatureTable(
            t.values,
            t.columns,
            Keys(np.array(person), keys.stimulus, keys.session, keys.task, keys.index),
            t.bounds,
            t.counts,
        )
    return RecordingSet(None, tables)
