"""What a notebook shows of a value: a small picture and a table, in HTML.

Pictures are SVG in the reader's own text colour, so that they stand on light and on dark paper.
Everything that comes from data is escaped. A cohort of files is shown without reading one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Space, Sphere, unwrap_x

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.recording import Recording

#: A second colour that can be read on light and on dark paper.
ACCENT = "#2a86c8"

_WIDTH, _HEIGHT = 360, 90
_MOST_POINTS = 400
_MOST_SIDE = 60


def card(
    title: str,
    rows: Iterable[tuple[str, object]],
    picture: str = "",
    note: str = "",
    more: str = "",
) -> str:
    """A value in HTML: its name, a picture that is SVG already, a table, a sentence, and what is
    shown on request.

    Examples
    --------
    >>> card("A <b>", [("n", 3)])
    '<div><strong>A &lt;b&gt;</strong><table><tr><th style="text-align:left">n</th><td
    style="text-align:left">3</td></tr></table></div>'
    """
    left = 'style="text-align:left"'
    body = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    said = f"<p>{escape(note)}</p>" if note else ""
    if more:
        said += f"<details><summary>exact statement</summary><p>{escape(more)}</p></details>"
    return f"<div><strong>{escape(title)}</strong>{picture}{said}<table>{body}</table></div>"


def svg(content: str, title: str, height: int = _HEIGHT, width: int = _WIDTH) -> str:
    """A picture of its own lines, with words for those who do not see it."""
    return (
        f'<div><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' style="max-width:100%"><title>{escape(title)}</title>{content}</svg></div>'
    )


def bar_picture(
    names: Sequence[str],
    shares: Sequence[float],
    title: str,
    intervals: Sequence[tuple[float, float]] = (),
    mark: float = math.nan,
) -> str:
    """Bars of shares of 1 with their names, whiskers where there are intervals, and a line."""
    rows, room, step = len(names), 0.48 * _WIDTH, 16
    wide = _WIDTH - room - 4
    parts = []
    for i, (name, share) in enumerate(zip(names, shares, strict=True)):
        y = step * i + 3
        shown = name if len(name) <= 34 else name[:33] + "…"
        parts.append(
            f'<text x="{room - 4:.0f}" y="{y + 8}" font-size="9" text-anchor="end"'
            f' fill="currentColor">{escape(shown)}</text>'
            f'<rect x="{room:.1f}" y="{y}" width="{wide * min(max(share, 0), 1):.1f}" height="10"'
            f' fill="{ACCENT}"/>'
        )
        if i < len(intervals) and all(math.isfinite(v) for v in intervals[i]):
            low, high = (room + wide * min(max(v, 0), 1) for v in intervals[i])
            parts.append(f'<path d="M{low:.1f} {y + 5}H{high:.1f}" stroke="currentColor"/>')
    if math.isfinite(mark):
        parts.append(
            f'<path d="M{room + wide * mark:.1f} 0V{step * rows}" stroke="currentColor"'
            ' stroke-dasharray="2 2"/>'
        )
    return svg("".join(parts), title, step * rows + 2)


def recording_html(recording: Recording) -> str:
    """A recording: x and y over time, and what is known of it."""
    valid = int(np.count_nonzero(recording.valid))
    samples = len(recording)
    channels = [n for n in _CHANNELS if getattr(recording, n) is not None]
    rows: list[tuple[str, object]] = [
        ("person", recording.person),
        ("stimulus", recording.stimulus),
        ("session, task", f"{recording.session}, {recording.task or 'none'}"),
        ("space", _space_words(recording.space)),
        ("samples", f"{samples:,}, {100 * valid / samples:.1f} % valid" if samples else "none"),
        ("rate", f"{recording.rate_hz:g} Hz" if recording.rate_hz > 0 else "not known"),
        ("duration", f"{recording.duration_s:.2f} s"),
    ]
    more = [*channels, *(f"label {name}" for name in recording.labels)]
    if more:
        rows.append(("also", ", ".join(more)))
    if recording.events is not None:
        rows.append(("events", f"{len(recording.events)}"))
    return card("Recording", rows, _trace_picture(recording) if valid > 1 else "")


def cohort_html(cohort: Cohort) -> str:
    """A cohort: who saw what, and what is known of the people. No file is read."""
    attributes = sorted({name for known in cohort.people.values() for name in known})
    rows: list[tuple[str, object]] = [
        ("recordings", f"{len(cohort):,}"),
        ("people", f"{len(cohort.people):,}"),
        ("stimuli", f"{len(cohort.stimuli):,}"),
        ("known of people", ", ".join(attributes) or "nothing"),
    ]
    if cohort.skipped:
        rows.append(("files left out", len(cohort.skipped)))
    name = f"Cohort {cohort.name}".strip()
    return card(name, rows, _grid_picture(cohort) if len(cohort) else "")


_CHANNELS = ("left_deg", "right_deg", "head_deg", "eye_in_head_deg", "pupil", "confidence")


def _space_words(space: Space) -> str:
    if isinstance(space, Sphere):
        return "sphere"
    return (
        f"screen of {space.width_px:g} x {space.height_px:g} px, {space.width_deg:.1f} x"
        f" {space.height_deg:.1f} deg"
    )


def _trace_picture(recording: Recording) -> str:
    step = max(1, math.ceil(len(recording) / _MOST_POINTS))
    order = np.arange(0, len(recording), step)
    x = np.where(recording.valid, recording.x_deg, np.nan)[order]
    y = np.where(recording.valid, recording.y_deg, np.nan)[order]
    if isinstance(recording.space, Sphere):
        x = unwrap_x(x)
    t = (recording.t_ns[order] - recording.t_ns.min()) / max(recording.duration_s * 1e9, 1.0)
    across = _WIDTH * t
    lines = _line(across, x, "currentColor") + _line(across, y, ACCENT)
    words = f"Gaze over {recording.duration_s:.1f} s: x, and y in blue, each over its own range."
    return svg(lines, words)


def _line(across: Floats, values: Floats, colour: str) -> str:
    """A line through the finite points, over the whole height."""
    finite = np.isfinite(values)
    if np.count_nonzero(finite) < 2:
        return ""
    low, high = float(values[finite].min()), float(values[finite].max())
    down = 3 + (_HEIGHT - 6) * (values - low) / max(high - low, 1e-9)
    down = down if colour == ACCENT else _HEIGHT - down  # y grows downwards, x upwards
    steps, pen = [], "M"
    for x, y, there in zip(across.tolist(), down.tolist(), finite.tolist(), strict=True):
        if there:
            steps.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L" if there else "M"
    return f'<path d="{"".join(steps)}" fill="none" stroke="{colour}" stroke-width="1"/>'


def _grid_picture(cohort: Cohort) -> str:
    """Who (rows) saw what (columns), the first sixty of each."""
    people = {name: i for i, name in enumerate(list(cohort.people)[:_MOST_SIDE])}
    stimuli = {name: i for i, name in enumerate(cohort.stimuli[:_MOST_SIDE])}
    seen = {
        (people[key[0]], stimuli[key[1]])
        for key in cohort.keys
        if key[0] in people and key[1] in stimuli
    }
    size = max(2, min(10, _WIDTH // max(len(stimuli), 1), 120 // max(len(people), 1)))
    cells = "".join(
        f"M{size * column} {size * row}h{size - 1}v{size - 1}h-{size - 1}z"
        for row, column in sorted(seen)
    )
    words = f"Who saw what: {len(people)} people in rows, {len(stimuli)} stimuli in columns."
    return svg(f'<path d="{cells}" fill="{ACCENT}"/>', words, size * len(people) or 1)
