"""`linkage`: whole recordings as vectors, matched person by person.

From the vector of each recording the mean of its stimulus over the people of the same side is
taken, so that what is left is what differs between people. A person is the mean of their
recordings. Differences are whitened by the covariance within people, as the gallery shows it
(shrunk after Ledoit and Wolf 2004, "A well-conditioned estimator for large-dimensional covariance
matrices"), and people are compared by the cosine of the angle between them. Simple, and on real
recordings stronger than the network of the papers.

Before whitening each feature is multiplied by the share of its variance that lies between people
(the intraclass correlation, of the gallery), so that features which tell nothing do not drown the
others. Where there are several kinds of features (`extended`, or a denoiser, which gives two
signals) each kind is matched on its own, and the scores are added with weights: how far people
stand out from the others where the gallery is matched with itself, some stimuli against the rest.
Nothing of the probe's truth enters anywhere.

`trace`: the attacker holds raw recordings of the very stimuli that were released, and looks for
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
from gazeveil.attacks.denoiser import Denoised, before, standardised_scores
from gazeveil.attacks.evidence import Evidence
from gazeveil.attacks.kernel_ridge import whitened
from gazeveil.attacks.vectors.deviations import (
    between_share,
    person_means,
    places_of,
    standardised_deviations,
)
from gazeveil.attacks.vectors.kinds import check_features, recording_vectors
from gazeveil.attacks.vectors.paths import slot_means
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors

#: What each kind of vectors is made of.
NEEDS = {
    "summary": ("fixation", "saccade"),
    "extended": ("samples", "fixation", "saccade"),
    "trajectory": ("samples",),
    "steps": ("samples",),
}

#: Parts into which the stimuli of the gallery are dealt to weigh kinds of features.
FOLDS = 5

_TINY = 1e-9


@dataclass(frozen=True)
class Linkage(Attack):
    """Match people by whitened vectors of their recordings.

    Parameters
    ----------
    features : {"summary", "extended", "trajectory", "steps"}
        `summary`: means and standard deviations of event features and event rates, also from
        tables; `extended`: about 300 features of events, places and dynamics; `trajectory`: that of
        0.2 s averages against the crowd's; `steps`: those of the attacker `steps`. All but the
        first need samples.

    Examples
    --------
    >>> str(Linkage(features="extended", denoiser="lowpass"))
    'linkage:denoiser=lowpass,features=extended'
    """

    name: ClassVar[str] = "linkage"
    needs: ClassVar[tuple[str, ...]] = NEEDS["summary"]

    #: It weighs the filtered and the released signal itself
    #: (:func:`gazeveil.attacks.denoiser.identify`).
    two_signals: ClassVar[bool] = True

    features: str = "summary"

    def check(self) -> None:
        """One of the kinds of vectors, and what those are made of."""
        check_features(self.name, self.features)
        self.store("needs", NEEDS[self.features])

    def can(self, recording_set: RecordingSet) -> bool:
        """Summary vectors need a table of events, the others samples."""
        if self.features == "summary":
            return recording_set.has("fixation") or recording_set.has("saccade")
        return recording_set.cohort is not None

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Cosines, or weighted sums of standardised cosines where there are several kinds of
        features; nothing is random.
        """
        if not (isinstance(gallery, Denoised) or isinstance(probe, Denoised)):
            return link_evidence(gallery, probe, self.features).scores()
        pairs = [(gallery, probe), (before(gallery), before(probe))]
        return match(
            [
                (recording_vectors(g, self.features), recording_vectors(p, self.features))
                for g, p in pairs
            ]
        )


def link_evidence(gallery: RecordingSet, probe: RecordingSet, features: str) -> Evidence:
    """Evidence by one kind of vectors, of one signal."""

    def vectors() -> tuple[RecordingVectors, RecordingVectors]:
        return recording_vectors(gallery, features), recording_vectors(probe, features)

    return Evidence(f"linked {features}", gallery, probe, vectors, _match_one)


def _match_one(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    return match([(gallery, probe)])


def match(signals: list[tuple[RecordingVectors, RecordingVectors]]) -> Scores:
    """Scores of the people of the probe against those of the gallery.

    Parameters
    ----------
    signals : list of (gallery vectors, probe vectors)
        One pair for each signal of the same recordings.

    Raises
    ------
    DataError
        Without recordings on either side, or if no feature is known on both.
    """
    blocks = [block for gallery, probe in signals for block in _blocks(gallery, probe)]
    if not blocks:
        raise DataError(
            "Linkage needs recordings on both sides with at least one feature that both sides know."
        )
    known = tuple(sorted({key[0] for key in signals[0][0].keys}))
    probes = tuple(sorted({key[0] for key in signals[0][1].keys}))
    values = [_cosines(gallery, probe, known, probes) for gallery, probe in blocks]
    if len(blocks) == 1:
        return Scores(known, probes, values[0].round(9))
    weights = np.array([_worth(gallery) for gallery, _ in blocks])
    weights = (
        weights / weights.sum() if weights.sum() > 0 else np.full(len(blocks), 1 / len(blocks))
    )
    total = sum(
        (w * standardised_scores(v) for w, v in zip(weights, values, strict=True)),
        np.zeros((len(probes), len(known))),
    )
    # People whose material is the same must tie, whatever the last digit of a product says.
    return Scores(known, probes, total.round(9))


def _blocks(
    gallery: RecordingVectors, probe: RecordingVectors
) -> list[tuple[RecordingVectors, RecordingVectors]]:
    """Kinds of features that both sides know, each with the columns that both know."""
    if not len(gallery) or not len(probe):
        return []
    shared = _known_columns(gallery) & _known_columns(probe)
    both = [c for c in gallery.columns if c in shared]
    g, p = gallery.select(both), probe.select(both)
    return [(g.of_block(name), p.of_block(name)) for name in dict.fromkeys(g.blocks)]


def _known_columns(vectors: RecordingVectors) -> set[str]:
    """Columns in which at least one recording has a value."""
    return {
        vectors.columns[i] for i in np.flatnonzero(np.isfinite(vectors.values).any(axis=0)).tolist()
    }


def _cosines(
    gallery: RecordingVectors,
    probe: RecordingVectors,
    known: tuple[str, ...],
    probes: tuple[str, ...],
) -> Floats:
    """Cosines between people, shape (probes, known); 0 for people with nothing to go by."""
    g = standardised_deviations(gallery, gallery)
    p = standardised_deviations(probe, gallery)
    used = (np.abs(g).max(axis=0) > 0) & (np.abs(p).max(axis=0) > 0)
    if not used.any():
        return np.zeros((len(probes), len(known)))
    g, p = g[:, used], p[:, used]
    people = person_means(g, gallery.persons, known)
    rest = g - people[places_of(gallery.persons, known)[0]]
    weight = between_share(people, rest)
    # Differences within people; those from the mean where everybody has one recording.
    source = (rest if np.abs(rest * weight).max() > _TINY else g) * weight
    asked = person_means(p, probe.persons, probes)
    a, b = whitened(source, people * weight, asked * weight)
    return _unit(b) @ _unit(a).T


def _unit(rows: Floats) -> Floats:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > _TINY, rows / np.maximum(length, _TINY), 0.0)


def _worth(gallery: RecordingVectors) -> float:
    """How far people stand out where some stimuli of the gallery are matched with the rest.

    The mean, over people, of their own score less the mean of the others', in standard deviations
    of the others'. At least 0; 1 where the gallery has one stimulus, or fewer than 3 people to
    compare.
    """
    stimuli = np.unique(gallery.stimuli)
    fold = np.searchsorted(stimuli, gallery.stimuli) % FOLDS
    gains: list[float] = []
    for k in range(min(FOLDS, len(stimuli))):
        probe, rest = gallery.where(fold == k), gallery.where(fold != k)
        people = tuple(sorted(set(probe.persons.tolist()) & set(rest.persons.tolist())))
        if len(people) < 3:
            continue
        values = _cosines(
            rest.where(np.isin(rest.persons, people)),
            probe.where(np.isin(probe.persons, people)),
            people,
            people,
        )
        own = np.diag(values)
        others = values[~np.eye(len(people), dtype=np.bool_)].reshape(len(people), -1)
        gains += ((own - others.mean(axis=1)) / np.maximum(others.std(axis=1), _TINY)).tolist()
    return max(0.0, float(np.mean(gains))) if gains else 1.0


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
        # A candidate without a common stimulus ranks last; a probe without any common stimulus gets
        # zeros.
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
