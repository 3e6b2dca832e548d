"""What marginals does: the histogram of one feature, and what is lost, the course over time."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.marginals import Marginals


def draw(path: Path) -> None:
    """Draw it."""
    rng = np.random.default_rng(4)
    people, rows = 40, 120
    values = np.clip(
        0.3
        + 0.08 * rng.normal(size=(people, 1))
        + 0.1 * np.sin(np.arange(rows) / 12 + rng.uniform(0, 6, (people, 1))),
        0,
        1,
    )
    keys = Keys.of_recordings(
        [(f"{p:02}", "text", "", "") for p in range(people)], [np.arange(rows)] * people
    )
    table = FeatureTable(values.reshape(-1, 1), ("feature",), keys, [[0.0, 1.0]])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    edges = np.linspace(0, 1, 31)
    left.hist(values.ravel(), edges, density=True, color="0.8", label="raw")
    for epsilon, colour in ((10, "C0"), (1, "C3")):
        out = Marginals(4, epsilon=epsilon).release(table, seed=2).data.values.ravel()
        left.hist(
            out,
            edges,
            density=True,
            histtype="step",
            color=colour,
            lw=1.5,
            label=f"corrected, epsilon = {epsilon}",
        )
    left.set(xlabel="feature, range 0 to 1", ylabel="density", title="40 people, one task")
    left.legend(fontsize=8)
    right.plot(values[0], color="0.3", label="raw, one person")
    right.plot(
        Marginals(4, epsilon=10).release(table, seed=2).data.values[:rows, 0],
        ".",
        ms=3,
        color="C0",
        label="one pseudonym, epsilon = 10",
    )
    right.set(
        xlabel="window",
        ylabel="feature",
        ylim=(0, 1),
        title="rows are drawn one by one: no course is left",
    )
    right.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)
