"""What colluding apps learn from graded and from independent noise."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from gazeveil import Screen
from gazeveil.privacy.stream.graded import Graded

APPS = (1, 2, 3, 5, 7, 10)
SAMPLES = 20_000


def draw(path: Path) -> None:
    """RMS error of the mean of all views (equal levels) or of the best combination of graded ones,
    against the number of apps.
    """
    screen = Screen(1280, 720, 400.0, 225.0, 450.0)
    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    levels = [2.0 * 1.2**i for i in range(max(APPS))]
    session = Graded(tuple(levels)).open(100.0, screen, seed=1)
    views = np.stack([session.noise_steps(b, 0, SAMPLES)[:, 0] for b in levels]) / 2.0**session.bits
    own = [Graded((2,)).open(100.0, screen, seed=10 + i) for i in range(max(APPS))]
    alone = np.stack([s.noise_steps(2, 0, SAMPLES)[:, 0] for s in own]) / 2.0 ** own[0].bits
    graded = []
    for m in APPS:
        inverse = np.linalg.pinv(np.cov(views[:m]).reshape(m, m))
        graded.append(float(np.std(inverse.sum(axis=0) / inverse.sum() @ views[:m])))
    axis.plot(APPS, graded, "o-", color="C0", label="graded: best combination of m views")
    independent = [float(np.std(alone[:m].mean(axis=0))) for m in APPS]
    axis.plot(APPS, independent, "s-", color="C1", label="independent: mean of m views")
    axis.set(xlabel="colluding apps", ylabel="error along x (deg)", ylim=(0, 3))
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)
