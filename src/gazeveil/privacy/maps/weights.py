"""One viewer's heat map in whole numbers, of which each viewer has the same."""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording

#: Steps of a viewer's total weight.
WEIGHT = 1 << 12


def viewer_weights(recording: Recording, rows: int, columns: int) -> Ints:
    """One viewer's map in steps of 1/4096, adding up to at most 4096; nothing valid gives zeros.

    Shares are rounded down, so no viewer ever weighs more than one whatever the recording holds.
    """
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    space = recording.space
    if isinstance(space, Screen):
        x, y = x + space.width_deg / 2, y + space.height_deg / 2
    # Gaze off the screen counts at its edge: dropping it would make the weight depend on it.
    column = np.clip(np.floor(x / space.width_deg * columns), 0, columns - 1).astype(np.int64)
    row = np.clip(np.floor(y / space.height_deg * rows), 0, rows - 1).astype(np.int64)
    counts = np.bincount(row * columns + column, minlength=rows * columns).astype(np.int64)
    total = int(counts.sum())
    if total:
        return (counts * WEIGHT // total).reshape(rows, columns)
    return np.zeros((rows, columns), dtype=np.int64)
