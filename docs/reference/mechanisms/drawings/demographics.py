"""What demographics does: people by age and gender, and the groups they end up
in, for several k.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil


def draw(path: Path) -> None:
    """Draw it."""
    rng = np.random.default_rng(1)
    people = {
        str(i): {
            "age": int(np.clip(rng.gamma(6, 5) + 18, 18, 75)),
            "gender": "mf"[int(rng.random() < 0.35)],
        }
        for i in range(60)
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
    height = {"f": 1.0, "m": 0.0}
    for axis, k in zip(axes, (3, 6, 15), strict=True):
        released = gazeveil.mechanism("demographics", k=k).release(people).data
        groups = Counter((str(a["age"]), str(a["gender"])) for a in released.values())
        for (ages, gender), size in groups.items():
            low, _, high = ages.partition("-")
            base, tall = (-0.3, 1.6) if gender == "any" else (height[gender] - 0.3, 0.6)
            width = float(high or low) - float(low) + 0.8
            axis.add_patch(
                plt.Rectangle(
                    (float(low) - 0.4, base),
                    width,
                    tall,
                    fill=False,
                    ec="C3" if gender == "any" else "C0",
                    lw=1.2,
                )
            )
            axis.text(float(low) - 0.2, base + tall, str(size), fontsize=7, va="bottom")
        spread = rng.uniform(-0.2, 0.2, len(people))
        axis.plot(
            [a["age"] for a in people.values()],
            [height[str(a["gender"])] + s for a, s in zip(people.values(), spread, strict=True)],
            ".",
            color="0.4",
            ms=3,
        )
        axis.set(
            title=f"k = {k}: {len(groups)} groups",
            xlabel="age",
            yticks=(0, 1),
            yticklabels=("m", "f"),
            ylim=(-0.5, 1.6),
        )
    figure.savefig(path, dpi=85)
    plt.close(figure)
