"""What dp-k-same does: one feature of one person under equal budgets, and the error at budgets for
a whole person.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.dct_knorm import DCTKNorm
from gazeveil.privacy.tables.dp_ksame import DPKSame
from table_errors import expected_error


def draw(path: Path) -> None:
    """Draw it."""
    rng = np.random.default_rng(2)
    people, rows, features = 24, 100, 8
    t = np.arange(rows)
    level = rng.uniform(0.1, 0.35, features) + rng.normal(0, 0.04, (people, features))
    values = level[:, None] + 0.04 * np.sin(
        t[:, None] / 15 + rng.uniform(0, 6, (people, 1, features))
    )
    keys = Keys.of_recordings([(f"{p:02}", "clip", "", "") for p in range(people)], [t] * people)
    table = FeatureTable(
        values.reshape(-1, features),
        tuple(f"f{i}" for i in range(features)),
        keys,
        [[0.0, 1.0]] * features,
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    epsilon = 30
    alone, group = (
        m.release(table, seed=5).data.values[:rows, 0]
        for m in (DCTKNorm(epsilon, per="user"), DPKSame(8, epsilon))
    )
    left.plot(values[0, :, 0], color="0.2", label="raw")
    left.plot(alone, color="C3", label="dct-knorm, per person")
    left.plot(group, color="C0", label="dp-k-same, k = 8")
    left.axhline(0.5, color="0.6", ls=":", label="public midpoint")
    left.set(
        xlabel="window",
        ylabel="feature, range 0 to 1",
        ylim=(0, 1),
        title=f"epsilon = {epsilon} for everything of one person",
    )
    left.legend(fontsize=7)
    budgets = np.geomspace(1, 1000, 13)
    for label, colour, make in (
        ("dct-knorm, per person", "C3", lambda e: expected_error(DCTKNorm(e, per="user"), table)),
        ("dp-k-same, k = 4", "C9", lambda e: expected_error(DPKSame(4, e), table, seed=1)),
        ("dp-k-same, k = 8", "C0", lambda e: expected_error(DPKSame(8, e), table, seed=1)),
    ):
        right.plot(
            budgets,
            [float(np.sqrt(make(float(e)).mean())) for e in budgets],
            color=colour,
            label=label,
        )
    right.axhline(
        float(np.sqrt(np.mean((values - 0.5) ** 2))), color="0.6", ls=":", label="public midpoint"
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon for everything of one person",
        ylabel="error (ranges)",
        title="24 people, 8 features, one clip",
    )
    right.legend(fontsize=7)
    figure.savefig(path, dpi=90)
    plt.close(figure)
