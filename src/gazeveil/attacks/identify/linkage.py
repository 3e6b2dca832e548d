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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores, standardised_scores
from gazeveil.attacks.denoiser import Denoised, before
from gazeveil.attacks.evidence import Evidence
from gazeveil.attacks.kernel_ridge import whitened
from gazeveil.attacks.vectors.kinds import (
    FEATURES,
    between_share,
    person_means,
    places_of,
    recording_vectors,
    standardised_deviations,
    unit_rows,
)
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

# Gallery and probe.
_Pair = tuple[RecordingVectors, RecordingVectors]


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
        checks.one_of(self.name, "features", self.features, FEATURES)
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
        filtered, plain = (
            (recording_vectors(g, self.features), recording_vectors(p, self.features))
            for g, p in ((gallery, probe), (before(gallery), before(probe)))
        )
        return match(*filtered, plain)


def link_evidence(gallery: RecordingSet, probe: RecordingSet, features: str) -> Evidence:
    """Evidence by one kind of vectors, of one signal."""

    def vectors() -> tuple[RecordingVectors, RecordingVectors]:
        return recording_vectors(gallery, features), recording_vectors(probe, features)

    return Evidence(f"linked {features}", gallery, probe, vectors, match)


def match(gallery: RecordingVectors, probe: RecordingVectors, *others: _Pair) -> Scores:
    """Scores of the people of the probe against those of the gallery.

    Parameters
    ----------
    gallery, probe : RecordingVectors
        Both sides.
    *others : pair of RecordingVectors
        Both sides by other signals of the same recordings.

    Raises
    ------
    DataError
        If both sides know no feature in common.
    """
    known = tuple(sorted({key[0] for key in gallery.keys}))
    probes = tuple(sorted({key[0] for key in probe.keys}))
    blocks = [block for pair in ((gallery, probe), *others) for block in _blocks(*pair)]
    if not blocks:
        raise DataError(
            "Linkage needs recordings on both sides with at least one feature that both sides know."
        )
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


def _blocks(gallery: RecordingVectors, probe: RecordingVectors) -> list[_Pair]:
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
    return unit_rows(b) @ unit_rows(a).T


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
