"""What exponential-dp does: the laws of its noise, and what the published one really loses."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.exponential import ExponentialDP, published_loss


def draw(path: Path) -> None:
    """Draw it."""
    rows = 100
    signal = 0.5 + 0.4 * np.sin(np.arange(rows) / 9)
    keys = Keys.of_recordings([("a", "text", "", "")], [np.arange(rows)])
    table = FeatureTable(signal[:, None], ("feature",), keys, [[0.0, 1.0]])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for reading, colour in (("corrected", "C0"), ("published", "C3")):
        left.plot(
            ExponentialDP(20, reading=reading).release(table, seed=3).data.values[:, 0],
            color=colour,
            lw=0.8,
            label=f"{reading}, epsilon = 20",
        )
    left.plot(signal, color="0.2", lw=1.5, label="raw")
    left.set(
        xlabel="window",
        ylabel="feature, range 0 to 1",
        ylim=(-4, 5),
        title="one feature of one recording",
    )
    left.legend(fontsize=8)
    claimed = np.geomspace(0.1, 100, 25)
    right.plot(claimed, claimed, color="0.5", ls=":", label="claimed, for 100 values")
    right.plot(
        claimed,
        [published_loss(float(e), 1.0, 100) for e in claimed],
        color="C1",
        label="published, one value",
    )
    right.plot(
        claimed,
        [published_loss(float(e), 1.0, 100, values=100) for e in claimed],
        color="C3",
        label="published, 100 values",
    )
    right.plot(claimed, claimed, color="C0", lw=1, label="corrected, 100 values")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon claimed",
        ylabel="true loss",
        title="range 1, recordings of 100 vectors",
    )
    right.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)
