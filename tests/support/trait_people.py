"""Model people for tests of attacks: each has a trait, each recording shows the trait plus noise;
and a plain attacker on their means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys


def trait_table(
    people: int = 20,
    stimuli: int = 6,
    sessions: int = 1,
    apart: float = 1.0,
    noise: float = 0.3,
    drift: float = 0.0,
    features: int = 12,
    rows: int = 1,
    seed: int = 1,
) -> FeatureTable:
    """A table: trait (normal, spread `apart`) plus a drift that walks from session to session plus
    noise of each row.
    """
    rng = np.random.default_rng(seed)
    trait = apart * rng.normal(size=(people, 1, features)) + np.cumsum(
        drift * rng.normal(size=(people, sessions, features)), axis=1
    )
    names = [
        (f"p{p:02}", f"s{s:02}", f"{d + 1}", "")
        for p in range(people)
        for d in range(sessions)
        for s in range(stimuli)
    ]
    values = np.repeat(np.repeat(trait, stimuli, axis=1).reshape(-1, features), rows, axis=0)
    keys = Keys.of_recordings(names, [np.arange(rows)] * len(names))
    columns = tuple(f"f{i}" for i in range(features))
    bounds = np.tile([-10.0, 10.0], (features, 1))
    return FeatureTable(values + noise * rng.normal(size=values.shape), columns, keys, bounds)


def trait_material(
    table: FeatureTable | None = None,
    about: Mapping[str, Mapping[str, object]] | None = None,
    **parameters: Any,
) -> RecordingSet:
    """The same as a recording set that holds a table of fixations and nothing else."""
    return RecordingSet(
        tables={"fixation": trait_table(**parameters) if table is None else table}, people=about
    )


def means(recording_set: RecordingSet) -> dict[str, Floats]:
    """Mean row of each person."""
    table = recording_set.fixations
    return {p: table.values[table.keys.person == p].mean(axis=0) for p in recording_set.persons}


@dataclass(frozen=True)
class Nearest(Attack):
    """Names the person whose mean is nearest."""

    name: ClassVar[str] = "nearest"
    needs: ClassVar[tuple[str, ...]] = ("fixation",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        known, asked = means(gallery), means(probe)
        apart = [[-np.linalg.norm(a - k) for k in known.values()] for a in asked.values()]
        return Scores(tuple(known), tuple(asked), np.array(apart))


@dataclass(frozen=True)
class Blind(Attack):
    """Scores at random: what every attack must fall to where there is nothing to find."""

    name: ClassVar[str] = "blind"
    needs: ClassVar[tuple[str, ...]] = ("fixation",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        rng = np.random.default_rng(seed)
        return Scores(
            gallery.persons,
            probe.persons,
            rng.normal(size=(len(probe.persons), len(gallery.persons))),
        )
