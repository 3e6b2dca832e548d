"""`rocket`: random convolutions of the released path, learnt by ridge regression.

The vectors (:mod:`gazeveil.attacks.vectors.convolutions`) are of two kinds, fine and coarse in
time. Each is judged by a ridge regression of its own on features weighed by how far people differ
in them, and the two are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.score_fusion`). Fine convolutions know people by the shape of their
saccades, where there is little noise; coarse ones by where they go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.held_out import held_out_scores
from gazeveil.attacks.kernel_ridge import TrainingLabels, fold_of, ridge_scores
from gazeveil.attacks.score_fusion import fused, fusion_weights
from gazeveil.attacks.vectors.convolutions import convolution_vectors
from gazeveil.attacks.vectors.deviations import (
    between_share,
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
        return match_convolutions(*convolution_vectors(gallery, probe))


def match_convolutions(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    """Scores of the people of the probe against those of the gallery."""
    kinds = [
        kind
        for kind in dict.fromkeys(gallery.blocks)
        if _known(gallery.of_block(kind)) and _known(probe.of_block(kind))
    ]
    if not kinds:
        raise DataError(
            "Rocket needs recordings on both sides that are long enough for its filters: two"
            " seconds or more with some gaze in them."
        )
    pairs = [(gallery.of_block(kind), probe.of_block(kind)) for kind in kinds]
    scores = [match_kind(*pair) for pair in pairs]
    weights = np.ones(1)
    if len(pairs) > 1:
        held_out, own = held_out_scores([g for g, _ in pairs], [match_kind] * len(pairs))
        weights = fusion_weights(held_out, own)
    values = fused([s.values for s in scores], weights)
    return Scores(scores[0].known, scores[0].probes, values.round(9))


def _known(vectors: RecordingVectors) -> bool:
    return bool(np.isfinite(vectors.values).any())


def match_kind(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    """Scores by the convolutions of one kind."""
    known = tuple(sorted(set(gallery.persons.tolist())))
    probes = tuple(sorted(set(probe.persons.tolist())))
    g = standardised_deviations(gallery, gallery)
    p = standardised_deviations(probe, gallery)
    of = places_of(gallery.persons, known)[0]
    people = person_means(g, gallery.persons, known)
    weight: Floats = np.sqrt(between_share(people, g - people[of]))
    stimuli = np.unique(gallery.stimuli, return_inverse=True)[1]
    rows = ridge_scores(g * weight, p * weight, TrainingLabels(of, len(known), fold_of(stimuli)))
    return Scores(known, probes, person_means(rows, probe.persons, probes))
