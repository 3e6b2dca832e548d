"""Draw the README's picture, gaze before and after: `python docs/start/readme_picture.py`.

Twelve simulated participants, the same as in the README's commands. Counts above the columns are
those of the strong battery, chosen on other splits, in ten test releases.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import gazeveil
from gazeveil.evaluation.report.charts import drawing
from gazeveil.evaluation.report.findings import Findings
from gazeveil.release.recipe import preset

PICTURE = Path(__file__).parent.parent / "figures" / "before-after.png"


def main() -> None:
    """Attack, protect and draw."""
    cohort = gazeveil.simulate(
        people=12, stimuli=4, seconds=20, rate_hz=120, task="reading", seed=1
    )
    chosen = preset("public-events").mechanism
    found = Findings(gazeveil.evaluate(cohort, chosen, scenarios="private/private")).releases
    counts = [r.shown.people for r in found if r.shown is not None]
    released = gazeveil.protect(cohort, chosen, seed=1).data
    titles = (
        f"As recorded: {counts[0]} participants re-identified",
        f"Published: {counts[1]} (chance 1)",
    )
    with drawing():
        figure, axes = plt.subplots(2, 2, figsize=(9.0, 6.0), constrained_layout=True)
        for column, (data, title) in enumerate(zip((cohort, released), titles, strict=True)):
            gazeveil.plot.scanpath(data[0], ax=axes[0, column])
            axes[0, column].set_title(title)
            gazeveil.plot.heat_map(data, ax=axes[1, column], stimulus=data[0].stimulus)
            axes[1, column].set_title("All 12 participants, the same page")
            for ax in axes[:, column]:
                ax.set(xlim=axes[1, 0].get_xlim(), ylim=axes[1, 0].get_ylim(), aspect="equal")
        figure.savefig(PICTURE, dpi=110)
    print(PICTURE, *titles, sep="\n")


if __name__ == "__main__":
    main()
