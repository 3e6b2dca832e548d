"""Draw the pictures of docs/explain/promises.md from the maps themselves: `python
docs/explain/promises_pictures.py`.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil
from gazeveil import Change, Cohort, Guarantee, Recording, Screen

FIGURES = Path(__file__).parent.parent / "figures"
SCREEN = Screen(1920, 1080, 530.0, 300.0, 600.0)
SLOW, FAST, MERGED = "#1b6ca8", "#d1495b", "#222222"


def still(person: str, stimulus: str, rate_hz: float, seconds: float) -> Recording:
    """Gaze at rest: promises do not look at where it is."""
    n = round(seconds * rate_hz)
    return Recording(
        person,
        stimulus,
        np.rint(np.arange(n) * 1e9 / rate_hz).astype(np.int64),
        np.zeros(n),
        np.zeros(n),
        space=SCREEN,
        rate_hz=rate_hz,
    )


def unequal_rates(path: Path) -> Guarantee:
    """Two rates: by samples and by seconds."""
    mechanism = gazeveil.mechanism("clock-render:epsilon=1,r_deg=2")
    slow, fast = still("a", "s", 60.0, 10.0), still("b", "s", 1000.0, 10.0)
    promises = {"60 Hz alone": (slow,), "1000 Hz alone": (fast,), "both, merged": (slow, fast)}
    merged = mechanism.release(Cohort([slow, fast])).guarantee
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.2), constrained_layout=True)
    for (name, recordings), colour, width in zip(
        promises.items(), (SLOW, FAST, MERGED), (1.6, 1.6, 3.0), strict=True
    ):
        g = mechanism.release(Cohort(list(recordings))).guarantee
        style = {
            "label": name,
            "color": colour,
            "linewidth": width,
            "alpha": 0.4 if width > 2 else 1.0,
        }
        samples = np.arange(1, 601, 3)
        left.plot(
            samples,
            [float(g.map(Change.window(int(n), move_deg=2)).amount) for n in samples],
            **style,
        )
        seconds = [Fraction(n, 50) for n in range(1, 151)]
        right.plot(
            [float(s) for s in seconds],
            [float(g.map(Change.window(seconds=s, move_deg=2)).amount) for s in seconds],
            **style,
        )
    left.axvline(500, color="#999999", linestyle=":")
    left.annotate(
        "500 samples:\n1 at 1000 Hz, 17 at 60 Hz",
        (500, 17),
        (190, 17.2),
        fontsize=8,
        arrowprops={"arrowstyle": "-", "color": "#999999"},
    )
    left.set(
        xlabel="samples in a row that move by 2 degrees",
        ylabel="epsilon",
        title="the change in samples",
    )
    right.set(xlabel="seconds that move by 2 degrees", title="the change in seconds")
    left.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return merged


def lifted(path: Path) -> Guarantee:
    """From a window to a person: what T epsilon leaves out."""
    cohort = Cohort(
        [still("a", "s", 60.0, 7.5), still("a", "t", 60.0, 7.5), still("b", "s", 60.0, 7.5)]
    )
    g = gazeveil.mechanism("dpgazesynth:epsilon=1,r_deg=5").release(cohort).guarantee
    far = np.linspace(0.25, 60.0, 240)
    figure, axis = plt.subplots(figsize=(6.4, 3.2), constrained_layout=True)
    person = [float(g.map(Change.person(Fraction(str(round(d, 4))))).amount) for d in far]
    axis.plot(far, person, color=MERGED, label="a person, two recordings of 15 windows")
    axis.plot(
        far,
        [float(g.map(Change.recording(Fraction(str(round(d, 4))))).amount) for d in far],
        color=SLOW,
        label="a recording of 15 windows",
    )
    axis.axhline(30.0, color=FAST, linestyle="--", linewidth=1.2)
    axis.annotate(
        "30 = T epsilon holds only up to r", (60.0, 30.0), (33.0, 20.0), fontsize=8, color=FAST
    )
    diagonal = float(np.hypot(SCREEN.width_deg, SCREEN.height_deg))
    axis.axvline(diagonal, color="#999999", linestyle=":")
    axis.annotate(
        "the screen's diagonal:\nnothing is farther",
        (diagonal, 60),
        (diagonal - 13.0, 130),
        fontsize=8,
    )
    axis.set(xlabel="how far windows begin from where they began (degrees)", ylabel="epsilon")
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return g


def together(path: Path) -> Guarantee:
    """Three releases about the same people, for one and the same change."""
    from gazeveil.privacy.composition import compose

    cohort = gazeveil.simulate(people=8, stimuli=3, seconds=20, rate_hz=120, task="reading", seed=1)
    table = gazeveil.window_features(cohort, window_s=10, step_s=1).select(
        ["saccade_rate", "fixation_rate"]
    )
    parts = {
        "heatmap-laplace\nepsilon 1": (
            gazeveil.mechanism("heatmap-laplace:epsilon=1").release(cohort).guarantee
        ),
        "dct-knorm\nepsilon 1/2, 2 features": (
            gazeveil.mechanism("dct-knorm:epsilon=1/2").release(table).guarantee
        ),
        "lpa\nepsilon 1/4 a recording": (
            gazeveil.mechanism("lpa:epsilon=1/4,per=recording").release(table).guarantee
        ),
    }
    whole = compose(parts.values())
    figure, axis = plt.subplots(figsize=(6.4, 3.0), constrained_layout=True)
    for row, (unit, change) in enumerate(
        (("a recording", Change.recording()), ("a person", Change.person()))
    ):
        left = 0.0
        for (name, g), colour in zip(parts.items(), (SLOW, FAST, "#7a9e7e"), strict=True):
            amount = float(g.map(change).amount)
            axis.barh(row, amount, left=left, color=colour, label=name if row == 0 else None)
            left += amount
        axis.text(left, row, f"  {float(whole.map(change).amount):.4g}", va="center")
        axis.text(0.0, row + 0.46, unit, fontsize=9)
    axis.set(
        xlabel="epsilon, for one and the same change", yticks=[], ylim=(-0.6, 2.6), xlim=(0, 7)
    )
    axis.legend(frameon=False, fontsize=8, ncol=3, loc="upper center")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return whole


if __name__ == "__main__":
    for make, name in (
        (unequal_rates, "promises-rates"),
        (lifted, "promises-person"),
        (together, "promises-together"),
    ):
        print(name, "\n", make(FIGURES / f"{name}.png"), "\n")
