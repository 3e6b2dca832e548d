"""Evidence: one kind of vectors of both sides, with what judges them.

Attackers that add up several kinds weigh each by how well it knows people of the gallery from
stimuli that were held out (:mod:`gazeveil.attacks.learning.held_out`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.attacks.learning.held_out import Matcher, held_out_scores
from gazeveil.attacks.learning.remembered import remembered
from gazeveil.attacks.learning.score_fusion import fused, fusion_weights
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors


@dataclass(frozen=True, eq=False)
class Evidence:
    """One kind of evidence about two recording sets. The name, with the sets, says everything about
    the judgement; `vectors` gives those of both sides, worked out on first use; `matcher` judges
    them.
    """

    name: str
    gallery: RecordingSet
    probe: RecordingSet
    vectors: Callable[[], tuple[RecordingVectors, RecordingVectors]]
    matcher: Matcher

    def scores(self) -> Scores:
        """The judgement about the probe, made once."""
        return remembered(
            self.gallery, self.probe, self.name, lambda: self.matcher(*self.vectors())
        )

    def held_out(self) -> tuple[Floats, Ints]:
        """Judgements about held-out stimuli of the gallery, made once, whoever is asked about."""
        return remembered(
            self.gallery,
            self.gallery,
            f"held out {self.name}",
            lambda: held_out_scores(self.vectors()[0], self.matcher),
        )


def weighed_sum(kinds: Sequence[Evidence], nothing: str) -> Scores:
    """The sum of standardised scores of all kinds that can judge, each with its weight. `nothing`
    is what to say where no kind can.

    Raises
    ------
    DataError
        If no kind can judge.
    """
    judged: list[tuple[Evidence, Scores]] = []
    for kind in kinds:
        try:
            judged.append((kind, kind.scores()))
        except DataError:
            # A release may leave no events, or paths that are too short: then the others judge.
            continue
    if not judged:
        raise DataError(nothing)
    weights = np.ones(1)
    if len(judged) > 1:
        held_out = [kind.held_out() for kind, _ in judged]
        weights = fusion_weights([scores for scores, _ in held_out], held_out[0][1])
    values = fused([scores.values for _, scores in judged], weights)
    return Scores(judged[0][1].known, judged[0][1].probes, values.round(9))
