"""What event-synth-pd does: gaze of one person before and after, and how often people are found
again.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil
from gazeveil import Cohort, mechanism
from gazeveil.privacy.synthesis.events_pd.audit import found_share, sessions

SECONDS = 8.0


def _main_sequence(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    table = gazeveil.event_features(cohort, kind="saccade", method="ivt")
    columns = [table.columns.index(n) for n in ("amplitude", "ang_vel_max")]
    return table.values[:, columns[0]], table.values[:, columns[1]]


def _found(text: str, events: int) -> float:
    rng, shares = np.random.default_rng(3), []
    for trial in range(6):
        released, known = sessions(rng, events=events)
        shares.append(found_share(mechanism(text).release(released, seed=trial).data, known)[0])
    return float(np.mean(shares))


def draw(path: Path) -> None:
    """Draw it."""
    raw = gazeveil.simulate(12, 1, 60, 250, task="random-saccade", seed=5).load()
    texts = {
        "corrected": "event-synth-pd:k=4,gamma=2",
        "published": "event-synth-pd:k=4,gamma=2,reading=published,failed=release",
    }
    shown = {
        "recorded": raw,
        **{name: mechanism(text).release(raw, seed=1).data for name, text in texts.items()},
    }
    colours = {"recorded": "0.3", "corrected": "C0", "published": "C3"}
    figure, axes = plt.subplots(
        1, 5, figsize=(14, 3.1), layout="constrained", width_ratios=(3, 3, 3, 2, 2)
    )
    for column, (name, cohort) in enumerate(shown.items()):
        one, n = cohort[0], int(SECONDS * 250)
        for values, style in ((one.x_deg, "-"), (one.y_deg, ":")):
            axes[column].plot(
                np.arange(n) / 250,
                np.where(one.valid, values, np.nan)[:n],
                style,
                color=colours[name],
                lw=0.8,
            )
        axes[column].set(
            title=name, xlabel="s", ylim=(-20, 20), ylabel="x, y (deg)" if column == 0 else None
        )
        axes[3].loglog(*_main_sequence(cohort), ".", color=colours[name], ms=2, label=name)
    axes[3].set(xlabel="amplitude (deg)", ylabel="peak velocity (deg/s)", title="saccades")
    counts = (5, 10, 20, 40, 60)
    for name in ("published", "corrected"):
        axes[4].plot(
            counts,
            [_found(f"event-synth-pd:k=4,gamma=2,reading={name}", n) for n in counts],
            "o-",
            color=colours[name],
            label=name,
        )
    axes[4].axhline(0.25, color="0.5", ls=":", label="1/k")
    axes[4].set(
        xlabel="events of a person",
        ylabel="people found again",
        ylim=(0, 1),
        title="20 people, k = 4",
    )
    for each in axes[3:]:
        each.legend(fontsize=7)
    figure.savefig(path, dpi=80)
    plt.close(figure)
