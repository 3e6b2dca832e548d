"""`trace`: the attacker holds raw recordings of the very stimuli that were released, and looks for
the same trace.

The strongest position: not "does this look like Anna" but "is this the recording of Anna that I
have". Both traces become trajectories of averages over `slot_s` seconds, which leaves 1/sqrt(n) of
independent noise; two trajectories are compared by the mean squared angle between them, at the lag
that fits best (filters delay), and averaged over the stimuli that two people share. With
independent Gaussian noise of one width the smallest mean is the largest likelihood, so no attacker
who only knows that much does better.

It needs the same stimuli on both sides, so it is run on raw recordings and a release of the same
recordings, not on a split by stimulus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.vectors.paths import slot_means
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet

#: Least share of a shorter trajectory that two trajectories must have in common to be compared.
LEAST_SHARED = 0.25


@dataclass(frozen=True)
class Trace(Attack):
    """Find each released trace among raw ones of the same stimulus.

    Parameters
    ----------
    slot_s : float
        Length of the averages in seconds.
    lag_s : float
        Largest shift between the two traces that is tried, in seconds, both ways; 0 compares them
        as they are.

    Examples
    --------
    >>> str(Trace(slot_s=0.5))
    'trace:slot_s=0.5'
    """

    name: ClassVar[str] = "trace"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    #: Gallery and probe hold the same stimuli.
    same_stimulus: ClassVar[bool] = True

    slot_s: float = 0.2
    lag_s: float = 0.4

    def check(self) -> None:
        """Two lengths of time."""
        self.store("slot_s", checks.positive(self.name, "slot_s", self.slot_s))
        self.store("lag_s", checks.not_negative(self.name, "lag_s", self.lag_s))

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Minus the mean squared angle to each known person over the stimuli they share; nothing is
        random.
        """
        known, probes = gallery.persons, probe.persons
        here, there = self._trajectories(gallery), self._trajectories(probe)
        shared = sorted(set(here) & set(there))
        if not shared:
            raise DataError(
                "The trace attacker needs the same stimuli on both sides, and there is none in"
                " common."
            )
        total, weight = np.zeros((len(probes), len(known))), np.zeros((len(probes), len(known)))
        lags = int(self.lag_s / self.slot_s + 1e-9)
        rows, columns = {p: i for i, p in enumerate(probes)}, {p: i for i, p in enumerate(known)}
        for stimulus in shared:
            owners = np.array([columns[person] for person, _ in here[stimulus]])
            candidates = _stacked([trajectory for _, trajectory in here[stimulus]])
            for person, trajectory in there[stimulus]:
                apart = np.full(len(known), np.inf)
                # Of several recordings of one person with one stimulus the nearest counts.
                np.minimum.at(apart, owners, distances(trajectory, candidates, lags))
                comparable = np.isfinite(apart)
                total[rows[person], comparable] -= len(trajectory) * apart[comparable]
                weight[rows[person], comparable] += len(trajectory)
        mean = total / np.where(weight > 0, weight, np.nan)
        # Somebody without a stimulus in common is the least likely; a probe that shares none with
        # anybody gets zeros.
        least = np.where(np.isnan(mean), 0.0, mean).min(axis=1, keepdims=True) - 1.0
        values = np.where(np.isnan(mean), least, mean)
        values[~(weight > 0).any(axis=1)] = 0.0
        return Scores(known, probes, values.round(9))

    def _trajectories(self, recording_set: RecordingSet) -> dict[str, list[tuple[str, Floats]]]:
        """Trajectories with their person, by stimulus."""
        if recording_set.cohort is None:
            raise DataError(
                "The trace attacker needs samples on both sides, and one side holds tables only."
            )
        result: dict[str, list[tuple[str, Floats]]] = {}
        for recording in recording_set.cohort:
            result.setdefault(recording.stimulus, []).append(
                (recording.person, slot_means(recording, self.slot_s).vectors)
            )
        return result


def _stacked(trajectories: list[Floats]) -> Floats:
    """Trajectories in one array, shape (trajectories, slots, 3), NaN behind the end of shorter
    ones.
    """
    result = np.full((len(trajectories), max(len(p) for p in trajectories), 3), np.nan)
    for i, trajectory in enumerate(trajectories):
        result[i, : len(trajectory)] = trajectory
    return result


def distances(trajectory: Floats, candidates: Floats, lags: int = 0) -> Floats:
    """Mean squared angle in deg^2 between a trajectory and each of others at the best lag; infinite
    where they share too little.

    Parameters
    ----------
    trajectory : array, shape (slots, 3)
        Unit vectors; NaN where unknown.
    candidates : array, shape (trajectories, slots, 3)
        The others.
    lags : int
        Largest shift in slots, both ways.
    """
    best = np.full(len(candidates), np.inf)
    lengths = np.isfinite(candidates[:, :, 0]).sum(axis=1)
    least = np.maximum(1.0, LEAST_SHARED * np.minimum(np.isfinite(trajectory[:, 0]).sum(), lengths))
    for lag in range(-lags, lags + 1):
        u, v = trajectory[max(0, lag) :], candidates[:, max(0, -lag) :]
        n = min(len(u), v.shape[1])
        # Twice the arc of half the chord: exact for small and for large angles.
        chord = np.sqrt(((u[None, :n] - v[:, :n]) ** 2).sum(axis=2))
        finite = np.isfinite(chord)
        angle = np.degrees(2 * np.arcsin(np.minimum(np.where(finite, chord, 0.0) / 2, 1.0)))
        shared = finite.sum(axis=1)
        best = np.where(
            shared >= least, np.minimum(best, (angle**2).sum(axis=1) / np.maximum(shared, 1)), best
        )
    return best
