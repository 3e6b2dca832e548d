"""What k-same-select does: one feature of four people, and how often an attacker finds people
again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.ksame import KSameSelect

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))
import ksame_attack


def draw(path: Path) -> None:
    """Draw it."""
    rng = np.random.default_rng(3)
    people, lengths = 8, [70, 80, 64, 76, 80, 72, 60, 78]
    level, t = rng.normal(0.3, 0.08, people), np.arange(80)
    parts = [
        level[p] + 0.05 * np.sin(t[:n] / 9 + rng.uniform(0, 6)) + 0.01 * rng.normal(size=n)
        for p, n in enumerate(lengths)
    ]
    keys = Keys.of_recordings(
        [(str(p), "text", "", "") for p in range(people)], [np.arange(n) for n in lengths]
    )
    out = KSameSelect(4).release(
        FeatureTable(np.concatenate(parts)[:, None], ("mean fixation (s)",), keys)
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for p in range(people):
        left.plot(
            parts[p], color="0.75", lw=0.8, label="raw, one line per person" if p == 0 else None
        )
    seen = {
        out.data.select(people=str(p)).values.tobytes(): out.data.select(people=str(p)).values[:, 0]
        for p in range(people)
    }
    for colour, line in zip(("C0", "C3"), seen.values(), strict=False):
        left.plot(line, color=colour, lw=1.8, label="released, the same for 4 people")
    left.set(xlabel="window", ylabel="mean fixation (s)", title="one feature, 8 people, k = 4")
    left.legend(fontsize=7)
    tasks = (1, 3, 10, 50)
    for reading, colour in (("published", "C3"), ("corrected", "C0")):
        right.plot(
            tasks,
            [ksame_attack.rate(4, t, reading, 20)[0] for t in tasks],
            "o-",
            color=colour,
            label=reading,
        )
    right.axhline(0.25, color="0.5", ls=":", label="1/k")
    right.set(
        xscale="log",
        xlabel="tasks",
        ylabel="people found again",
        ylim=(0, 1),
        title="attack on 20 people, k = 4",
        xticks=tasks,
        xticklabels=tasks,
    )
    right.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)
