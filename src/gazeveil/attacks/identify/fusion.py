"""`fusion`: the sum of what all vector attackers say, each with a weight.

No single attacker is the strongest on all releases: convolutions know clean recordings, steps
noisy ones, events and trajectories something of both. Each judges the probe as it would alone;
their standardised scores are added with weights from held-out stimuli of the gallery
(:mod:`gazeveil.attacks.score_fusion`), so that whoever knows nothing of a release does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.held_out import Matcher, held_out_scores
from gazeveil.attacks.identify.linkage import match
from gazeveil.attacks.identify.rocket import match_kind
from gazeveil.attacks.identify.steps import match_steps
from gazeveil.attacks.score_fusion import fused, fusion_weights
from gazeveil.attacks.vectors.convolutions import convolution_vectors
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors

_Member = tuple[RecordingVectors, RecordingVectors, Matcher]

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
        """Weighed sums of standardised scores; nothing is random but the approximation of large
        kernels.
        """
        if gallery.cohort is None or probe.cohort is None:
            raise DataError("Fusion needs samples on both sides, and one side holds tables only.")
        judged: list[tuple[_Member, Scores]] = []
        for member in _members(gallery, probe):
            first, second, matcher = member
            try:
                judged.append((member, matcher(first, second)))
            except DataError:
                # A release may leave no events, or paths that are too short: then the others judge.
                continue
        if not judged:
            raise DataError(
                "Fusion has nothing to go by: no attacker finds a feature that both sides know."
            )
        held_out, own = held_out_scores([m[0] for m, _ in judged], [m[2] for m, _ in judged])
        weights = fusion_weights(held_out, own)
        values = fused([scores.values for _, scores in judged], weights)
        return Scores(judged[0][1].known, judged[0][1].probes, values.round(9))


def _members(gallery: RecordingSet, probe: RecordingSet) -> list[_Member]:
    """Vectors of both sides with what judges them, one of each kind of evidence."""
    members: list[_Member] = [
        (recording_vectors(gallery, "steps"), recording_vectors(probe, "steps"), match_steps)
    ]
    first, second = convolution_vectors(gallery, probe)
    members += [
        (first.of_block(kind), second.of_block(kind), match_kind)
        for kind in dict.fromkeys(first.blocks)
    ]
    for features in _LINKED:
        members.append(
            (recording_vectors(gallery, features), recording_vectors(probe, features), _link)
        )
    return members


def _link(gallery: RecordingVectors, probe: RecordingVectors) -> Scores:
    return match([(gallery, probe)])
