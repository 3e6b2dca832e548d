"""`fusion`: the sum of what all vector attackers say, each with a weight.

No single attacker is the strongest on all releases: convolutions know clean recordings, steps
noisy ones, events and trajectories something of both. Each judges the probe as it would alone;
their standardised scores are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.learning.score_fusion`), so that whoever knows nothing of a release does
not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.identify.linkage import link_evidence
from gazeveil.attacks.identify.rocket import convolution_evidence
from gazeveil.attacks.identify.steps import step_evidence
from gazeveil.attacks.learning.evidence import Evidence, weighed_sum
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet

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
        step_evidence(gallery, probe, "all"),
        *convolution_evidence(gallery, probe),
        *(link_evidence(gallery, probe, features) for features in _LINKED),
    ]
