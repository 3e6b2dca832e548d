"""What k-same-synth does: gaze of a group before and after, and its saccades."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil
from gazeveil import Cohort


def _main_sequence(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    table = gazeveil.event_features(cohort, kind="saccade", method="ivt")
    columns = [table.columns.index(n) for n in ("amplitude", "ang_vel_max")]
    return table.values[:, columns[0]], table.values[:, columns[1]]


def draw(path: Path) -> None:
    """Draw it."""
    raw = gazeveil.simulate(4, 1, 60, 250, task="random-saccade", seed=5).load()
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11, 3.2), layout="constrained", width_ratios=(3, 3, 2)
    )
    shown = slice(0, 1250)
    for recording in raw:
        left.plot(
            np.arange(1250) / 250,
            recording.x_deg[shown],
            lw=0.7,
            label="recorded, one line per person" if recording is raw[0] else None,
        )
    middle.set_prop_cycle(color=["0.75"])
    for recording in raw:
        middle.plot(np.arange(1250) / 250, recording.x_deg[shown], lw=0.5)
    for match, colour in (("index", "C3"), ("crowd", "C0")):
        out = gazeveil.mechanism("k-same-synth", k=4, match=match).release(raw, seed=1).data
        for recording in (out[0], out[1]):
            middle.plot(
                np.arange(1250) / 250,
                recording.x_deg[shown],
                color=colour,
                lw=0.9,
                label=f"match={match}, two of four" if recording is out[0] else None,
            )
        right.loglog(*_main_sequence(out), ".", color=colour, ms=2, label=match)
    right.loglog(*_main_sequence(raw), ".", color="0.6", ms=2, zorder=0, label="recorded")
    left.set(xlabel="s", ylabel="x (deg)", title="a group of four as recorded")
    middle.set(xlabel="s", title="and as released, k = 4")
    right.set(xlabel="amplitude (deg)", ylabel="peak velocity (deg/s)", title="saccades")
    for axes in (left, middle, right):
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=84)
    plt.close(figure)
