"""What the noisy heat maps do: the same stimulus raw, with Laplace noise and with Gaussian noise,
for few and for many viewers.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import smooth_map
from gazeveil.privacy.heatmaps import viewer_weights
from gazeveil.privacy.mechanism import Mechanism


def truth(cohort: Cohort) -> np.ndarray:
    """The map without noise, smoothed alike."""
    cells = smooth_map(sum(viewer_weights(r, 45, 90) for r in cohort), cohort[0].space, 3.0)
    return cells / cells.sum()


def rows(path: Path, mechanism: Mechanism[Cohort], words: str) -> None:
    """Raw and released maps for 20 and for 500 viewers."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), layout="constrained")
    for line, viewers in zip(axes, (20, 500), strict=True):
        cohort = gazeveil.simulate(viewers, 1, 20.0, 60.0, seed=5)
        maps = (truth(cohort), mechanism.release(cohort).data[cohort.stimuli[0]].cells)
        for axis, cells, name in zip(line, maps, ("raw", words), strict=True):
            axis.imshow(
                np.sqrt(cells),
                extent=(0, 360, 180, 0),
                cmap="magma",
                vmin=0,
                vmax=np.sqrt(maps[0].max()),
            )
            axis.set_title(f"{viewers} viewers, {name}", fontsize=9)
            axis.set(xticks=(0, 180, 360), yticks=(0, 90, 180))
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw(path: Path) -> None:
    """Draw it."""
    rows(path, gazeveil.mechanism("heatmap-laplace", epsilon=2), "epsilon = 2 per person")
