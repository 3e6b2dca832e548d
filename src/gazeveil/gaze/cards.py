"""What a notebook shows of a value: a small table, in HTML.

Everything that comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from gazeveil.gaze.geometry import Screen

if TYPE_CHECKING:
    from gazeveil.gaze.recording import Recording


def card(title: str, rows: Iterable[tuple[str, object]], note: str = "") -> str:
    """A value in HTML: its name, a sentence and a table.

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
    return f"<div><strong>{escape(title)}</strong>{said}<table>{body}</table></div>"


def recording_html(recording: Recording) -> str:
    """A recording: whose it is, how long, how much of it is valid, and what it holds besides."""
    space, valid = recording.space, recording.valid
    channels = [n for n in _CHANNELS if getattr(recording, n) is not None]
    rows = {
        "person": recording.person,
        "stimulus": recording.stimulus,
        "session, task": f"{recording.session}, {recording.task or 'none'}",
        "space": f"screen of {space.width_px:g} x {space.height_px:g} px"
        if isinstance(space, Screen)
        else "sphere",
        "samples": f"{len(valid):,}, {valid.mean():.1%} valid" if len(valid) else "none",
        "rate": f"{recording.rate_hz:g} Hz" if recording.rate_hz > 0 else "not known",
        "duration": f"{recording.duration_s:.2f} s",
        "also": ", ".join([*channels, *(f"label {name}" for name in recording.labels)]) or "-",
    }
    return card("Recording", rows.items())


_CHANNELS = ("left_deg", "right_deg", "head_deg", "eye_in_head_deg", "pupil", "confidence")
