"""`fusion`: the sum of what all vector attackers say, each with a weight.

No single attacker is the strongest on all releases: convolutions know clean recordings, steps
noisy ones, events and trajectories something of both. Each judges the probe as it would alone;
their standardised scores are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.evidence`), so that an attacker without evidence about a release does not
count.

`rocket`: random convolutions of the released path, learnt by ridge regression.

The vectors (:mod:`gazeveil.attacks.vectors.convolutions`) are of two kinds, fine and coarse in
time. Each is judged by a ridge regression of its own on features weighed by how far people differ
in them, and the two are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.evidence`). Fine convolutions know people by the shape of their
saccades, where there is little noise; coarse ones by where they go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.evidence import Evidence, weighed_sum
from gazeveil.attacks.identify.linkage import link_evidence
from gazeveil.attacks.identify.steps import step_evidence
from gazeveil.attacks.kernel_ridge import TrainingLabels, fold_of, ridge_scores
from gazeveil.attacks.vectors.convolutions import KINDS, convolution_vectors
from gazeveil.attacks.vectors.deviations import (
    between_share_of_rows,
    person_means,
    places_of,
    standardised_deviations,
)
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors


@dataclass(frozen=True)
class Rocket(Attack):
    """Recognise people by random convolutions of their path."""

    name: ClassVar[str] = "rocket"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Weighed sums of standardised scores; nothing is random."""
        if gallery.cohort is None or probe.cohort is None:
            raise DataError("Rocket needs samples on both sides, and one side holds tables only.")
        return weighed_sum(
            convolution_evidence(gallery, probe),
            "Rocket needs recordings on both sides that are long enough for its filters: two"
            " seconds or more with some gaze in them.",
        )


def convolution_evidence(gallery: RecordingSet, probe: RecordingSet) -> list[Evidence]:
    """Evidence by fine and by coarse convolutions."""
    return [
        Evidence(
            f"{kind} convolutions",
            gallery,
            probe,
            partial(convolution_vectors, gallery, probe, kind),
            match_kind,
        )
        for kind in KINDS
    ]


def match_kind(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    """Scores by the convolutions of one kind.

    Raises
    ------
    DataError
        If no recording of a side is long enough.
    """
    if not (np.isfinite(gallery.values).any() and np.isfinite(probe.values).any()):
        raise DataError("No recording is long enough for these convolutions.")
    known = tuple(sorted(set(gallery.persons.tolist())))
    probes = tuple(sorted(set(probe.persons.tolist())))
    g = standardised_deviations(gallery, gallery)
    p = standardised_deviations(probe, gallery)
    of = places_of(gallery.persons, known)[0]
    people = person_means(g, gallery.persons, known)
    weight: Floats = np.sqrt(between_share_of_rows(g, people, of))
    stimuli = np.unique(gallery.stimuli, return_inverse=True)[1]
    g *= weight
    p *= weight
    rows = ridge_scores(g, p, TrainingLabels(of, len(known), fold_of(stimuli)))
    return Scores(known, probes, person_means(rows, probe.persons, probes))


#: Vectors of which linkage makes one piece of evidence each.
_LINKED = ("summary", "extended", "trajectory")


@dataclass(frozen=True)
class Fusion(Attack):
    """Recognise people by the weighed sum of steps, convolutions and linkages."""

    name: ClassVar[str] = "fusion"
    needs: ClassVar[tuple[str, ...]] = ("samples", "fixation", "saccade")

    def can(self, recording_set: RecordingSet) -> bool:
        """Samples are all it needs: events are found in them."""
        return recording_set.cohort is not None

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Weighed sums of standardised scores; nothing is random."""
        if gallery.cohort is None or probe.cohort is None:
            raise DataError("Fusion needs samples on both sides, and one side holds tables only.")
        return weighed_sum(
            _kinds(gallery, probe),
            "Fusion has nothing to go by: no attacker finds a feature that both sides know.",
        )


def _kinds(gallery: RecordingSet, probe: RecordingSet) -> list[Evidence]:
    """One of each kind of evidence."""
    return [
        step_evidence(gallery, probe),
        *convolution_evidence(gallery, probe),
        *(link_evidence(gallery, probe, features) for features in _LINKED),
    ]
