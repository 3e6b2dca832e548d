"""Small attackers, a utility and mechanisms for tests of the runner; importable by worker
processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gazeveil.attacks.base import Attack, Scores
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.guarantee import no_promise
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.release import Release
from gazeveil.utility.base import Utility, UtilityResult


def means(recording_set: RecordingSet) -> dict[str, np.ndarray]:
    """The mean gaze of each person, and how far it strays."""
    found = {}
    for person in recording_set.persons:
        x, y = [], []
        for r in recording_set.cohort or ():
            if r.person == person:
                x.append(r.x_deg[r.valid])
                y.append(r.y_deg[r.valid])
        xs, ys = np.concatenate([*x, np.empty(0)]), np.concatenate([*y, np.empty(0)])
        found[person] = (
            np.array([xs.mean(), ys.mean(), xs.std(), ys.std()]) if len(xs) else np.zeros(4)
        )
    return found


@dataclass(frozen=True)
class Place(Attack):
    """Names people by where they look: quick, and blind to nothing that noise adds on average."""

    name: ClassVar[str] = "place"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    wait_s: float = 0.0

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        time.sleep(self.wait_s)
        known, asked = means(gallery), means(probe)
        values = np.array(
            [[-float(np.sum((a - k) ** 2)) for k in known.values()] for a in asked.values()]
        )
        return Scores(tuple(known), tuple(asked), values)


@dataclass(frozen=True)
class Duration(Attack):
    """Names people by the mean of their fixation features: works on tables too."""

    name: ClassVar[str] = "duration"
    needs: ClassVar[tuple[str, ...]] = ("fixation",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        def of(recording_set: RecordingSet) -> dict[str, np.ndarray]:
            table = recording_set.fixations
            rows = {p: table.values[table.keys.person == p] for p in recording_set.persons}
            return {
                p: v.mean(axis=0) if len(v) else np.zeros(len(table.columns))
                for p, v in rows.items()
            }

        known, asked = of(gallery), of(probe)
        scale = np.std(list(known.values()), axis=0) + 1e-9
        values = np.array(
            [
                [-float(np.sum(((a - k) / scale) ** 2)) for k in known.values()]
                for a in asked.values()
            ]
        )
        return Scores(tuple(known), tuple(asked), values)


#: What :class:`Spy` was given, newest last.
SEEN: list[tuple[RecordingSet, RecordingSet]] = []


@dataclass(frozen=True)
class Spy(Attack):
    """Remembers what it was handed."""

    name: ClassVar[str] = "spy"
    needs: ClassVar[tuple[str, ...]] = ("fixation",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        SEEN.append((gallery, probe))
        return Scores(
            gallery.persons, probe.persons, np.zeros((len(probe.persons), len(gallery.persons)))
        )


@dataclass(frozen=True)
class Twin(Spy):
    """A spy on the same stimuli."""

    name: ClassVar[str] = "twin"
    same_stimulus: ClassVar[bool] = True


@dataclass(frozen=True)
class Refusing(Place):
    name: ClassVar[str] = "refusing"

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        raise DataError("There is nothing to learn from here.")


@dataclass(frozen=True)
class Buggy(Place):
    name: ClassVar[str] = "buggy"

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        raise ZeroDivisionError("by a careless author")


@dataclass(frozen=True)
class Deadly(Place):
    """Ends the process it runs in; `lives` times in all, counted in a file. It never does so in the
    process that is named.
    """

    name: ClassVar[str] = "deadly"

    file: str = ""
    lives: int = 1
    spare: int = 0

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        counted = Path(self.file)
        deaths = len(counted.read_text()) if counted.exists() else 0
        if deaths < self.lives and os.getpid() != self.spare:
            with counted.open("a") as file:
                file.write("x")
            os._exit(9)
        return super().identify(gallery, probe, seed)


@dataclass(frozen=True)
class Shift(Utility):
    """How far gaze moved on average, person by person."""

    name: ClassVar[str] = "shift"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        a, b = means(raw), means(test)
        parts = np.array([float(np.hypot(*(a[p][:2] - b[p][:2]))) for p in a])
        return (UtilityResult("shift_deg", float(parts.mean()), parts, "person", tuple(a)),)


@dataclass(frozen=True)
class Told(Shift):
    """What stands in a file."""

    name: ClassVar[str] = "told"

    file: str = ""

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        value = float(Path(self.file).read_text())
        return (UtilityResult("told", value, np.array([value]), "person", ("p1",)),)


@dataclass(frozen=True)
class Learning(Shift):
    """The same, called a utility that trains."""

    name: ClassVar[str] = "learning"
    trains: ClassVar[bool] = True


@dataclass(frozen=True)
class Blackout(Mechanism[Any]):
    """Loses every sample."""

    name: ClassVar[str] = "blackout"
    kind: ClassVar[str] = "cohort"
    paper: ClassVar[str] = "none"
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("none", "recording", "empirical")}

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        lost = [
            r.with_(
                valid=np.zeros(len(r), dtype=bool),
                x_deg=np.full(len(r), np.nan),
                y_deg=np.full(len(r), np.nan),
                labels={},
            )
            for r in data
        ]
        promise = no_promise(self.name, "a test")
        return Release(Cohort(lost, data.people), promise, self.provenance(seed))
