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
from gazeveil.evaluation.report.charts import WIDTH_IN, Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import mechanism_label
from gazeveil.evaluation.study import NONE
from gazeveil.plot.maps import heat_map
from gazeveil.plot.paths import SERIES, DrawnPath, before_after, light

#: At most so many mechanisms in one picture.
MOST_PANELS = 8

#: A page that may be sent on has maps of a stimulus that so many people saw.
LEAST_VIEWERS = 5

#: A blue of middle lightness, red, green, blue from 0 to 1.

_SHOWN_S = 8.0


def traces(findings: Findings, folder: Path) -> Picture | None:
    """One recording, raw and as each mechanism releases it: horizontal gaze over time, and the
    path.
    """
    by_mechanism = findings.results.examples.get("traces", {})
    raw = by_mechanism.get(NONE)
    others = [t for t in _ordered(by_mechanism, findings) if t != NONE][:MOST_PANELS]
    if not raw or not others:
        return None
    sphere = findings.results.examples.get("space") == "sphere"
    before = _path(raw, sphere)
    drawn = figure(0.5 + 1.35 * len(others))
    grid = drawn.subplots(len(others), 2, squeeze=False, sharex="col", width_ratios=[2.1, 1])
    colours = {r.text: r.colour for r in findings.releases}
    for row, text in enumerate(others):
        after = _path(by_mechanism[text], sphere)
        colour = light(colours.get(text, SERIES[row % len(SERIES)]))
        for axes, view in zip(grid[row], ("x", "path"), strict=True):
            before_after(
                before, after, axes, view=view, seconds=_SHOWN_S, colour=colour, legend=False
            )
            axes.set_xlabel("")
        grid[row][0].set_title(shorten(_label(text, findings), 44, placeholder="..."))
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


def few_viewers(findings: Findings) -> bool:
    """Whether too few people saw the stimulus of the maps to show them to others, or that is not
    known.
    """
    viewers = findings.results.examples.get("viewers", 0)
    return not isinstance(viewers, int) or viewers < LEAST_VIEWERS


def maps(findings: Findings, folder: Path, with_names: bool = False) -> Picture | None:
    """Where people looked on one stimulus, raw and as each mechanism releases it; one colour scale
    for all. Where few people saw it, only beside their names: a map of one person is nearly a
    recording.
    """
    by_mechanism = findings.results.examples.get("maps", {})
    if not with_names and few_viewers(findings):
        (folder / "maps.png").unlink(missing_ok=True)  # of an earlier report in this folder
        return None
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
    top = _brightest(arrays[0])
    for axes in grid.ravel()[len(texts) :]:
        axes.set_visible(False)
    rows_columns = arrays[0].shape
    place = extent or (0.0, float(rows_columns[1]), 0.0, float(rows_columns[0]))
    for axes, text, values in zip(grid.ravel(), texts, arrays, strict=False):
        covered = (place[0], place[1], place[3], place[2])
        heat_map(values, ax=axes, extent_deg=covered, top=top)
        axes.set(xlabel="", ylabel="")
        lines = wrap(_label(text, findings), 27, max_lines=2, placeholder="...")
        axes.set_title("\n".join(lines), fontsize=9.5)
    drawn.supxlabel("x (deg)", fontsize=10, color=light("ink"))
    drawn.supylabel("y (deg)", fontsize=10, color=light("ink"))
    title = findings.results.examples.get("title", "") if with_names else ""
    caption = (
        "Where people looked; bright is often. One scale for all, set by the raw map (square"
        f" root). {title}".strip()
    )
    return finish(
        drawn,
        folder,
        "maps",
        f"Heat maps of one stimulus: {', '.join(_label(t, findings) for t in texts)}.",
        caption,
    )


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


def _brightest(cells: Floats) -> float:
    """What is brightest in all maps, set by the raw one: a high quantile of how often its cells are
    looked at, in multiples of looking everywhere alike.
    """
    shares = np.where(np.isfinite(cells) & (cells > 0), cells, 0.0)
    looked_at = shares[shares > 0]
    return float(np.quantile(looked_at, 0.995) / shares.mean()) if len(looked_at) else 1.0


def _ordered(by_mechanism: Mapping[str, object], findings: Findings) -> list[str]:
    """Texts of the examples: raw, then in the order of the releases, then the rest."""
    first = [NONE, *(r.text for r in findings.releases)]
    return list(dict.fromkeys([*(t for t in first if t in by_mechanism), *by_mechanism]))


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


def _path(values: Mapping[str, object], sphere: bool) -> DrawnPath:
    """A trace of the examples, lost samples as NaN."""
    t, x, y = (np.asarray(values.get(k, ()), dtype=np.float64) for k in ("t_s", "x_deg", "y_deg"))
    valid = np.asarray(values.get("valid", np.ones(len(t))), dtype=np.bool_)
    x, y = np.where(valid, x, np.nan), np.where(valid, y, np.nan)
    return DrawnPath(t - (t[0] if len(t) else 0.0), x, y, sphere)


def _extent(value: object) -> tuple[float, float, float, float] | None:
    if not isinstance(value, tuple | list) or len(value) != 4:
        return None
    x0, x1, y0, y1 = (float(v) for v in value)
    return (x0, x1, min(y0, y1), max(y0, y1)) if x0 != x1 and y0 != y1 else None
