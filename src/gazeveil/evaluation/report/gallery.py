"""How the rate of identification falls with the number of people an attacker knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.evaluation.report.canvas import Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import percent
from gazeveil.plot.inks import GUESS_DASHES, light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A release, and its rates among 2 people to all.
Line: TypeAlias = tuple[ReleaseFindings, Floats]

#: At most so many lines in one chart: more cannot be told apart.
MOST_LINES = 9

_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))


def draw_gallery(findings: Findings, folder: Path) -> Picture | None:
    """The strongest attacker of each release, in closed form from how many others score above the
    true person; None where nobody knows three people.
    """
    lines = _lines(findings)
    people = max((len(curve) + 1 for _, curve in lines), default=0)
    if people < 3:
        return None
    drawn = figure(4.0)
    axes = drawn.subplots()
    sizes = np.arange(2, people + 1)
    axes.plot(sizes, 100 / sizes, color=light("muted"), lw=1.4, ls=GUESS_DASHES)
    for i, (release, curve) in enumerate(lines):
        axes.plot(
            np.arange(2, len(curve) + 2),
            100 * curve,
            color=light(release.colour),
            lw=1.9,
            ls=_DASHES[i % len(_DASHES)],
        )
    axes.set(
        ylim=(-3, 105),
        xlim=(2, people),
        xlabel="people the attacker knows",
        ylabel="people recognised (%)",
    )
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _label_ends(axes, lines, people)
    listed = "; ".join(
        f"{r.label} from {percent(float(c[0]))} among 2 to {percent(float(c[-1]))} among"
        f" {len(c) + 1}"
        for r, c in lines
    )
    caption = (
        f"The {findings.strongest} on each release, among a random choice of people. Computed from"
        " how many others score above the true person: a rate quoted without the number of people"
        " says little. Numbers as in the key."
    )
    alt = f"People recognised by how many the attacker knows. {listed}."
    return finish(drawn, folder, "gallery", alt, caption)


def gallery_curve(beaten_by: Sequence[int | None], credit: Sequence[float], people: int) -> Floats:
    """Probability of being found among m people drawn at random, the true one among them, for m = 2
    to all.

    Parameters
    ----------
    beaten_by : sequence of int or None
        How many others score above the true person; None for a person who is not among those known.
    credit : sequence of float
        What the person counted among all: 1, 1/(t+1) in a tie with t others at the top, or 0.
    people : int
        N, the people known.

    Returns
    -------
    array of float64, shape (N - 1,)
        Mean over the persons asked about, :func:`gazeveil.attacks.identify.curves.found_among` for
        each.

    Examples
    --------
    >>> gallery_curve([0, 1], [1.0, 0.0], 3).tolist()
    [0.75, 0.5]
    """
    from gazeveil.attacks.identify.curves import found_among

    asked = Counter(
        (people if b is None else b, round(1 / c) - 1 if b == 0 and 0 < c < 1 else 0)
        for b, c in zip(beaten_by, credit, strict=True)
    )
    curve = np.zeros(people - 1)
    for (beaten, tied), times in asked.items():
        curve += times * np.array(
            [found_among(beaten, min(tied, people - 1), people, m) for m in range(2, people + 1)]
        )
    return curve / max(asked.total(), 1)


def _lines(findings: Findings) -> list[Line]:
    lines: list[Line] = []
    for release in _spread(findings.attacked, MOST_LINES):
        if release.worst is None or not release.worst.chance > 0:
            continue
        known = round(1 / release.worst.chance)
        answers = findings.answers(release, release.worst)
        if answers.height and known >= 2:
            beaten_by, credit = answers["beaten_by"].to_list(), answers["value"].to_list()
            lines.append((release, gallery_curve(beaten_by, credit, known)))
    return lines


def _label_ends(axes: Axes, lines: Sequence[Line], people: int) -> None:
    """Write each release's number, and what guessing is, at the right end of its line."""
    ends = _apart([*(100 * float(curve[-1]) for _, curve in lines), 100 / people], least=5.0)
    thread = {"arrowstyle": "-", "color": light("faint"), "lw": 0.7, "shrinkA": 1, "shrinkB": 0}
    for (release, curve), y in zip(lines, ends, strict=False):
        axes.annotate(
            str(release.number),
            (1, 100 * curve[-1]),
            (1.045, y),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            color=light(release.colour),
            fontweight="bold",
            va="center",
            arrowprops=thread,
            annotation_clip=False,
        )
    across = axes.get_yaxis_transform()
    style: dict[str, Any] = {"color": light("muted"), "va": "center", "fontsize": 9.5}
    axes.text(1.02, ends[-1], "guess", transform=across, **style)


def _apart(values: Sequence[float], least: float) -> list[float]:
    """The values, moved as little as needed to be `least` apart."""
    order = np.argsort(values, kind="stable")
    moved = np.array(values, dtype=np.float64)
    for _ in range(200):
        pushed = False
        for a, b in pairwise(order):
            gap = least - (moved[b] - moved[a])
            if gap > 1e-6:
                moved[a] -= gap / 2
                moved[b] += gap / 2
                pushed = True
        if not pushed:
            break
    return [float(v) for v in moved]


def _spread(releases: Sequence[ReleaseFindings], most: int) -> list[ReleaseFindings]:
    """At most so many releases, the first (the baseline) and others spread evenly over the list."""
    if len(releases) <= most:
        return list(releases)
    return [releases[i] for i in np.unique(np.linspace(0, len(releases) - 1, most).astype(int))]
