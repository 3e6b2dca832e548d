"""Pictures of the data itself: traces and heat maps, raw beside protected, and who is taken for
whom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten, wrap

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.evaluation.columns import NONE
from gazeveil.evaluation.report.canvas import WIDTH_IN, Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import mechanism_label, percent
from gazeveil.evaluation.report.theme import SERIES, light

#: At most so many mechanisms in one picture.
MOST_PANELS = 8

#: A blue of middle lightness, red, green, blue from 0 to 1.
_SHADE = np.array([0.11, 0.52, 0.80])

_SHOWN_S = 8.0
_MOST_POINTS = 1600


def traces(findings: Findings, folder: Path) -> Picture | None:
    """One recording, raw and as each mechanism releases it: horizontal gaze over time, and the
    path.
    """
    by_mechanism = _mapping(findings.results.examples.get("traces"))
    raw = _mapping(by_mechanism.get(NONE))
    others = [t for t in _ordered(by_mechanism, findings) if t != NONE][:MOST_PANELS]
    if not raw or not others:
        return None
    sphere = findings.results.examples.get("space") == "sphere"
    centre = _centre(raw) if sphere else None
    before = _trace(raw, centre)
    drawn = figure(0.5 + 1.35 * len(others))
    grid = drawn.subplots(len(others), 2, squeeze=False, sharex="col", width_ratios=[2.1, 1])
    colours = _colours(findings)
    for row, text in enumerate(others):
        t, x, y = _trace(_mapping(by_mechanism[text]), centre)
        colour = light(colours.get(text, SERIES[row % len(SERIES)]))
        over_time, path = grid[row]
        # The recording is a thin line on the broad one of the release: seen where both agree, and
        # inside the noise where they do not.
        over_time.plot(t, x, "-", color=colour, lw=2, alpha=0.55, zorder=2)
        over_time.plot(before[0], before[1], "-", color=light("ink"), lw=0.8, zorder=3)
        path.plot(x, y, "-", color=colour, lw=1.2, alpha=0.55, zorder=2)
        path.plot(before[1], before[2], "-", color=light("ink"), lw=0.7, zorder=3)
        path.invert_yaxis()
        over_time.set_title(shorten(_label(text, findings), 44, placeholder="..."))
        over_time.set_ylabel("x (deg)")
        path.set_ylabel("y (deg)")
    grid[-1][0].set_xlabel("time (s)")
    grid[-1][1].set_xlabel("x (deg)")
    title = str(findings.results.examples.get("title", ""))
    caption = (
        "Thin line: as recorded. Broad, coloured: as released. Left: horizontal gaze over time."
        f" Right: the path. {title}".strip()
    )
    alt = (
        "One recording as recorded and as released by"
        f" {', '.join(_label(t, findings) for t in others)}."
    )
    return finish(drawn, folder, "traces", alt, caption)


def maps(findings: Findings, folder: Path) -> Picture | None:
    """Where people looked on one stimulus, raw and as each mechanism releases it; one colour scale
    for all.
    """
    by_mechanism = _mapping(findings.results.examples.get("maps"))
    texts = _ordered(by_mechanism, findings)[: MOST_PANELS + 1]
    arrays = [np.asarray(by_mechanism[t], dtype=np.float64) for t in texts]
    if len(texts) < 2 or any(a.ndim != 2 or a.size == 0 for a in arrays):
        return None
    rows = math.ceil(len(texts) / 2)
    extent = _extent(findings.results.examples.get("extent"))
    ratio = (
        abs(extent[3] - extent[2]) / abs(extent[1] - extent[0])
        if extent
        else arrays[0].shape[0] / arrays[0].shape[1]
    )
    ratio = min(max(ratio, 0.4), 1.2)
    drawn = figure(rows * (0.48 + 0.44 * WIDTH_IN * ratio) + 0.35)
    grid = drawn.subplots(rows, 2, squeeze=False, sharex=True, sharey=True)
    shares = [np.where(np.isfinite(a) & (a > 0), a, 0.0) for a in arrays]
    # Relative to looking everywhere alike, so that maps of coarse and of fine cells can be
    # compared.
    shares = [s / s.mean() if s.sum() > 0 else s for s in shares]
    top = float(np.quantile(shares[0][shares[0] > 0], 0.995)) if (shares[0] > 0).any() else 1.0
    for axes in grid.ravel()[len(texts) :]:
        axes.set_visible(False)
    for axes, text, values in zip(grid.ravel(), texts, shares, strict=False):
        place = {"extent": (extent[0], extent[1], extent[3], extent[2])} if extent else {}
        axes.imshow(
            np.sqrt(values / top),
            cmap="magma",
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            **place,
        )
        axes.set_title(_wrapped(_label(text, findings)), fontsize=9.5)
        axes.grid(visible=False)
    drawn.supxlabel("x (deg)", fontsize=10, color=light("ink"))
    drawn.supylabel("y (deg)", fontsize=10, color=light("ink"))
    caption = (
        "Where people looked; bright is often. One scale for all, set by the raw map (square"
        f" root). {findings.results.examples.get('title', '')}".strip()
    )
    return finish(
        drawn,
        folder,
        "maps",
        f"Heat maps of one stimulus: {', '.join(_label(t, findings) for t in texts)}.",
        caption,
    )


def confusion(findings: Findings, folder: Path) -> Picture | None:
    """Who is taken for whom by the strongest attacker of each release."""
    shown: list[tuple[ReleaseFindings, Floats]] = []
    for release in findings.attacked:
        if release.worst is not None and len(shown) < 6:
            people_and_table = confused(findings, release)
            if people_and_table is not None:
                shown.append((release, people_and_table[1]))
    if not shown:
        return None
    rows = math.ceil(len(shown) / 2)
    drawn = figure(rows * 2.55 + 0.35)
    grid = drawn.subplots(rows, 2, squeeze=False)
    for axes in grid.ravel()[len(shown) :]:
        axes.set_visible(False)
    for axes, (release, table) in zip(grid.ravel(), shown, strict=False):
        n = len(table)
        # One colour, the more opaque the more often: it stands on light and on dark paper.
        coloured = np.concatenate(
            (np.broadcast_to(_SHADE, (n, n, 3)), np.sqrt(np.clip(table, 0, 1))[..., None]), axis=2
        )
        axes.imshow(coloured, interpolation="nearest", extent=(0.5, n + 0.5, n + 0.5, 0.5))
        axes.set_title(_wrapped(f"{release.number}. {release.label}"), fontsize=9.5)
        axes.grid(visible=False)
        ticks = (
            [1, *range(5, n + 1, 5 if n <= 30 else 10 * math.ceil(n / 60))]
            if n > 4
            else list(range(1, n + 1))
        )
        axes.set(xticks=ticks, yticks=ticks)
    drawn.supxlabel("person the attacker names", fontsize=10, color=light("ink"))
    drawn.supylabel("true person", fontsize=10, color=light("ink"))
    diagonals = "; ".join(
        f"{r.label} {percent(float(np.trace(t)) / len(t))} on the diagonal" for r, t in shown
    )
    caption = (
        f"The {findings.strongest} on each release. People stand in the same order on both sides:"
        " a diagonal means they are recognised."
    )
    return finish(drawn, folder, "confusion", f"Who is taken for whom. {diagonals}.", caption)


def confused(findings: Findings, release: ReleaseFindings) -> tuple[tuple[str, ...], Floats] | None:
    """People, and the share of repetitions in which each (row) was taken for each (column) by the
    strongest attacker.
    """
    if release.worst is None:
        return None
    answers = findings.answers(release, release.worst).drop_nulls("part")
    if answers.height == 0:
        return None
    named = [a for a in answers["answer"].to_list() if a is not None]
    people = tuple(sorted({*answers["part"].to_list(), *named}))
    at = {p: i for i, p in enumerate(people)}
    table = np.zeros((len(people), len(people)))
    asked = np.zeros(len(people))
    for part, answer in answers.select("part", "answer").iter_rows():
        asked[at[part]] += 1
        if answer is not None:
            table[at[part], at[answer]] += 1
    return people, table / np.maximum(asked, 1)[:, None]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _ordered(by_mechanism: Mapping[str, object], findings: Findings) -> list[str]:
    """Texts of the examples: raw, then in the order of the releases, then the rest."""
    first = [NONE, *(r.text for r in findings.releases)]
    return list(dict.fromkeys([*(t for t in first if t in by_mechanism), *by_mechanism]))


def _wrapped(label: str) -> str:
    """A title of a narrow panel, on two lines where one is too short."""
    return "\n".join(wrap(label, 27, max_lines=2, placeholder="..."))


def _colours(findings: Findings) -> dict[str, str]:
    return {r.text: r.colour for r in findings.releases}


def _label(text: str, findings: Findings) -> str:
    release = next((r for r in findings.releases if r.text == text), None)
    if text == NONE:
        return "as recorded"
    if release is not None:
        return f"{release.number}. {release.label}"
    name, _, rest = text.partition(":")
    pairs = [p for p in rest.split(",") if p]
    reading = next((p.removeprefix("reading=") for p in pairs if p.startswith("reading=")), "")
    return mechanism_label(
        name, reading, ",".join(p for p in pairs if not p.startswith("reading="))
    )


def _centre(values: Mapping[str, object]) -> float:
    """Mean longitude of a trace on the sphere: pictures are cut open opposite to it."""
    x = np.radians(np.asarray(values.get("x_deg", ()), dtype=np.float64))
    x = x[np.isfinite(x)]
    return (
        float(np.degrees(np.arctan2(np.sin(x).sum(), np.cos(x).sum()))) % 360 if len(x) else 180.0
    )


def _trace(values: Mapping[str, object], centre: float | None) -> tuple[Floats, Floats, Floats]:
    """Time, x and y of the first seconds, lost samples as NaN, thinned to what
    a picture can show.
    """
    t, x, y = (np.asarray(values.get(k, ()), dtype=np.float64) for k in ("t_s", "x_deg", "y_deg"))
    valid = np.asarray(values.get("valid", np.ones(len(t))), dtype=np.bool_)
    shown = t - (t[0] if len(t) else 0.0) <= _SHOWN_S
    t, x, y, valid = t[shown], x[shown], y[shown], valid[shown]
    x, y = np.where(valid, x, np.nan), np.where(valid, y, np.nan)
    step = max(1, math.ceil(len(t) / _MOST_POINTS))
    t, x, y = t[::step], x[::step].copy(), y[::step]
    if centre is not None:
        x = (x - centre + 180) % 360 - 180 + centre
        # A step over the cut would draw a line across the picture.
        x[1:][np.abs(np.diff(x)) > 180] = np.nan
    return t, x, y


def _extent(value: object) -> tuple[float, float, float, float] | None:
    if not isinstance(value, tuple | list) or len(value) != 4:
        return None
    x0, x1, y0, y1 = (float(v) for v in value)
    return (x0, x1, min(y0, y1), max(y0, y1)) if x0 != x1 and y0 != y1 else None
