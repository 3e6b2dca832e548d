"""`mean-place`: recognise people by how wide and where they look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gazeveil.attacks.base import Attack, Scores
from gazeveil.errors import DataError


@dataclass(frozen=True)
class MeanPlace(Attack):
    """Match people by the mean and the spread of their gaze on each stimulus."""

    name: ClassVar[str] = "mean-place"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    summary: ClassVar[str] = "Match people by the mean and the spread of their gaze"

    def identify(self, gallery: Any, probe: Any, seed: int) -> Scores:
        """Score each person of the probe against each of the gallery."""
        known, asked = _vectors(gallery), _vectors(probe)
        people, probes = sorted(known), sorted(asked)
        scale = np.std([known[p] for p in people], axis=0) + 1e-9
        values = [
            [-float(np.abs((known[p] - asked[q]) / scale).sum()) for p in people] for q in probes
        ]
        return Scores(tuple(people), tuple(probes), np.array(values))


def _vectors(recordings: Any) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Person -> median of (mean x, mean y, spread x, spread y) over recordings."""
    if recordings.cohort is None:
        raise DataError("'mean-place' looks at samples, and this release has none.")
    rows: dict[str, list[list[float]]] = {}
    for recording in recordings.cohort:
        x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
        if len(x):
            row = [float(f(a)) for f in (np.mean, np.std) for a in (x, y)]
            rows.setdefault(recording.person, []).append(row)
    return {person: np.median(values, axis=0) for person, values in rows.items()}
