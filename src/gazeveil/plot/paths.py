"""Gaze over time, and gaze as recorded beside gaze as released."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.plot.canvas import DrawnPath, axes_or_new, titled
from gazeveil.plot.inks import light
from gazeveil.plot.kinds import events_ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What :func:`before_after` can show.
VIEWS = ("x", "y", "path")


def trace(
    recording: Recording,
    ax: Axes | None = None,
    *,
    events: Events | None = None,
    start_s: float | None = None,
    seconds: float = 10.0,
) -> Axes:
    """Gaze over time: x and y in degrees, lost samples as gaps, events as a ribbon below.

    Parameters
    ----------
    recording : Recording
        What to draw.
    ax : Axes, optional
        Where to draw; new axes if not given.
    events : Events, optional
        Drawn below, as :func:`~gazeveil.plot.events_ribbon` draws them.
    start_s : float, optional
        First second, from the recording's first time; default the first valid sample.
    seconds : float
        How much is shown.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        For a recording without a valid sample.
    """
    length_s = checks.positive("plot.trace", "seconds", seconds)
    path = DrawnPath.of(recording)
    begin = path.first_s if start_s is None else checks.number("plot.trace", "start_s", start_s)
    shown = path.between(begin, begin + length_s)
    shown = shown.around(shown.centre_deg)
    axes = axes_or_new("plot.trace", ax)
    axes.plot(shown.t_s, shown.x_deg, color=light("ink"), lw=0.9, label="x")
    axes.plot(shown.t_s, shown.y_deg, color="#56B4E9", lw=0.9, label="y")
    end = min(begin + length_s, float(path.t_s.max()))
    if events is not None:
        inside = (events.offset_ns - recording.t_ns.min() >= begin * 1e9) & (
            events.onset_ns - recording.t_ns.min() <= end * 1e9
        )
        events_ribbon(events.where(inside), recording, axes, below=True)
    else:
        axes.legend(loc="upper right", fontsize=7, frameon=False)
    axes.set(xlabel="time (s)", ylabel="gaze (deg)")
    if end > begin:
        axes.set_xlim(begin, end)
    titled(axes, f"{recording.person}, {recording.stimulus}")
    return axes


def before_after(
    raw: Recording | DrawnPath,
    released: Recording | DrawnPath,
    ax: Axes | None = None,
    *,
    view: str = "x",
    seconds: float = 10.0,
    colour: str | None = None,
    label: str = "released",
    legend: bool = True,
) -> Axes:
    """One recording as it was (a thin line) on what a mechanism made of it (a broad one).

    Parameters
    ----------
    raw, released : Recording
        As recorded, and as released.
    ax : Axes, optional
        Where to draw; new axes if not given.
    view : {"x", "y", "path"}
        One coordinate over time, or the path in the plane.
    seconds : float
        How much is shown, from the first valid sample of the recording.
    colour : str, optional
        Of the release.
    label : str
        Of the release.
    legend : bool
        Say which line is which.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        For a recording without a valid sample.
    """
    checks.one_of("plot.before_after", "view", view, VIEWS)
    length_s = checks.positive("plot.before_after", "seconds", seconds)
    origin = int(raw.t_ns.min()) if isinstance(raw, Recording) and len(raw) else None
    before = raw if isinstance(raw, DrawnPath) else DrawnPath.of(raw)
    after = released if isinstance(released, DrawnPath) else _after(released, origin)
    begin = before.first_s
    centre = before.between(begin, begin + length_s).centre_deg
    axes = axes_or_new("plot.before_after", ax, *((4.0, 4.0) if view == "path" else (7.0, 3.5)))
    lines = (
        (after, colour or light("vermilion"), 2.0 if view != "path" else 1.2, 0.55, label),
        (before, light("ink"), 0.8, 1.0, "as recorded"),
    )
    for path, ink, width, alpha, name in lines:
        shown = path.between(begin, begin + length_s).around(centre)
        across = shown.x_deg if view == "path" else shown.t_s
        up = shown.x_deg if view == "x" else shown.y_deg
        axes.plot(across, up, "-", color=ink, lw=width, alpha=alpha, label=name)
    axes.set(
        xlabel="x (deg)" if view == "path" else "time (s)",
        ylabel="x (deg)" if view == "x" else "y (deg)",
    )
    if view != "x" and not axes.yaxis_inverted():
        axes.invert_yaxis()  # y grows downwards
    if legend:
        axes.legend(loc="upper right", fontsize=8)
    return axes


def _after(released: Recording, origin_ns: int | None) -> DrawnPath:
    """The release on the clock of the recording; where that was changed, from its own start."""
    if not isinstance(released, Recording):
        checks.refuse("plot.before_after", "released", "a Recording", released)
    if origin_ns is not None and len(released):
        start = (int(released.t_ns.min()) - origin_ns) / 1e9
        if not math.isfinite(start) or abs(start) > max(1.0, released.duration_s):
            return DrawnPath.of(released)
    if not np.any(released.valid):
        return DrawnPath(np.empty(0), np.empty(0), np.empty(0))  # all of it is lost: no line
    return DrawnPath.of(released, origin_ns)
