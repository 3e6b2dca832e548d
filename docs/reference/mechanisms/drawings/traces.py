"""The picture on the pages of the Laplace and Fourier family: one feature before and after, and the
error against the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from table_errors import expected_error

ROWS = 192


def made_up() -> FeatureTable:
    """Six people, one slow feature between 0 and 1."""
    rng = np.random.default_rng(12)
    smooth = np.exp(-(np.arange(-40, 41) ** 2) / 300.0)
    parts = []
    for _ in range(6):
        wiggle = np.convolve(rng.standard_normal(ROWS + 80), smooth, mode="valid")
        parts.append(
            np.clip(0.3 + 0.07 * rng.standard_normal() + 0.09 * wiggle / wiggle.std(), 0, 1)
        )
    keys = Keys.of_recordings([(f"p{i}", "text", "", "") for i in range(6)], [np.arange(ROWS)] * 6)
    return FeatureTable(np.concatenate(parts)[:, None], ("feature",), keys, [[0.0, 1.0]])


def draw_pair(
    path: Path, shown: Sequence[tuple[str, str, str]], curves: Sequence[tuple[str, str, str]]
) -> None:
    """Draw releases of one feature on the left and expected errors on the right.

    Parameters
    ----------
    path : Path
        The picture.
    shown : sequence of (label, mechanism, colour)
        Releases to draw.
    curves : sequence of (label, mechanism without epsilon, colour)
        Mechanisms whose error is drawn against epsilon.
    """
    table = made_up()
    raw = table.values[:ROWS, 0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for label, text, colour in shown:
        left.plot(
            mechanism(text).release(table, seed=4).data.values[:ROWS, 0],
            color=colour,
            lw=0.9,
            label=label,
        )
    left.plot(raw, color="0.2", lw=1.6, label="raw")
    left.axhline(0.5, color="0.7", ls=":", lw=1)
    left.set(
        xlabel="window",
        ylabel="feature, range 0 to 1",
        ylim=(-0.1, 1.1),
        title="one feature of one recording",
    )
    left.legend(fontsize=8, loc="upper right")
    budgets = np.geomspace(0.1, 300, 18)
    for label, text, colour in curves:
        errors = [
            float(np.sqrt(expected_error(mechanism(text + f",epsilon={e:.4g}"), table)[0]))
            for e in budgets
        ]
        right.plot(budgets, errors, color=colour, label=label)
    right.axhline(
        float(np.sqrt(np.mean((table.values - 0.5) ** 2))),
        color="0.5",
        ls=":",
        label="public midpoint",
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon of one recording-feature",
        ylabel="RMSE in ranges",
        ylim=(5e-3, 20),
        title="expected error, before clamping",
    )
    right.legend(fontsize=8)
    figure.savefig(path, dpi=84)
    plt.close(figure)
