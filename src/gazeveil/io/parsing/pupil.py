"""One pupil size a sample, from what a file has of two eyes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Floats


def mean_of_eyes(left: Floats, right: Floats) -> Floats:
    """The mean of two sizes, or the one that is there."""
    return np.where(
        np.isfinite(left) & np.isfinite(right),
        (left + right) / 2,
        np.where(np.isfinite(left), left, right),
    )


def pupil_of(sizes: Sequence[Floats]) -> Floats | None:
    """The pupil of a recording from the sizes of none, one or both of its eyes."""
    if len(sizes) == 2:
        return mean_of_eyes(*sizes)
    return sizes[0] if sizes else None
