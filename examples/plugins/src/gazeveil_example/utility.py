"""`path-length`: how much longer the path of the eyes is in a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gazeveil.errors import DataError
from gazeveil.utility.base import Utility, UtilityResult


@dataclass(frozen=True)
class PathLength(Utility):
    """Relative error of the length of the gaze path, one part per person."""

    name: ClassVar[str] = "path-length"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    summary: ClassVar[str] = "Relative error of the length of the gaze path"

    def measure(self, raw: Any, train: Any, test: Any, seed: int) -> tuple[UtilityResult, ...]:
        """Compare the lengths of the released paths with the raw ones."""
        truth, released = _lengths(raw), _lengths(test)
        people = tuple(sorted(truth.keys() & released.keys()))
        if not people:
            raise DataError("The release has no person of the raw recordings.")
        parts = np.array([abs(released[p] - truth[p]) / truth[p] for p in people])
        return (
            UtilityResult(
                "path_length_error", float(parts.mean()), parts, "person", people, better="lower"
            ),
        )


def _lengths(recordings: Any) -> dict[str, float]:
    """Person -> sum of the absolute steps in degrees."""
    if recordings.cohort is None:
        raise DataError("'path-length' looks at samples, and this release has none.")
    lengths: dict[str, float] = {}
    for recording in recordings.cohort:
        steps = np.hypot(np.diff(recording.x_deg), np.diff(recording.y_deg))
        length = float(np.nansum(np.minimum(steps, 360 - steps)))
        lengths[recording.person] = lengths.get(recording.person, 1e-9) + length
    return lengths
