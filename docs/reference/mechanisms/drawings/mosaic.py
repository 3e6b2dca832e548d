"""What mosaic does: one viewer's gaze, the pieces made for them, and what a reader of the release
sees.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gazeveil import Screen, mechanism, simulate
from gazeveil.privacy.mechanism import PieceMechanism

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


def draw(path: Path) -> None:
    """Draw it."""
    raw = simulate(24, 1, 17.0, 120.0, task="video", space=SCREEN, seed=11).load()
    made_by = mechanism("mosaic:epsilon=10,r_deg=2")
    assert isinstance(made_by, PieceMechanism)
    made = made_by.release_with_origins(raw, seed=2)
    one = raw[0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained", sharey=True)
    seconds = (one.t_ns - one.t_ns[0]) / 1e9
    left.plot(seconds, np.where(one.valid, one.x_deg, np.nan), "0.35", lw=0.8, label="as recorded")
    for piece in made.release.data:
        own = made.origins[piece.person] == one.key
        if own:
            label = "the pieces made for this viewer" if piece.t_ns[0] == 0 else None
            left.plot(piece.t_ns / 1e9, piece.x_deg, "C0", lw=1.0, label=label)
        right.plot(piece.t_ns / 1e9, piece.x_deg, lw=0.6, alpha=0.8)
    left.set(xlabel="s", ylabel="x (deg)", title="what only the curator knows")
    right.set(xlabel="s", title="what is released: 24 unrelated names in each window")
    left.legend(fontsize=7)
    figure.savefig(path, dpi=84)
    plt.close(figure)
