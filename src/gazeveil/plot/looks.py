"""A scanpath: fixations in order, on what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.plot.canvas import axes_or_new, image_array, light, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Area in points squared of a fixation of one second.
_AREA_OF_1_S = 500.0

# The smallest circle, and the smallest one that a number fits in.
_LEAST_S, _NUMBERED_S = 0.05, 0.12


def scanpath(
    recording: Recording,
    image: Any = None,
    ax: Axes | None = None,
    *,
    events: Events | None = None,
    most: int = 40,
    numbers: bool = True,
) -> Axes:
    """Fixations in their order: circles as large as the fixations are long, joined by lines.

    Parameters
    ----------
    recording : Recording
        Whose gaze.
    image : path or array, optional
        What was looked at: the whole screen, or the whole sphere as an equirectangular picture. On
        a screen the axes are then in pixels, because pictures are.
    ax : Axes, optional
        Where to draw; new axes if not given.
    events : Events, optional
        Where the fixations are; detected if not given.
    most : int
        How many fixations are drawn, the first ones.
    numbers : bool
        Write the place of each fixation into its circle, where it fits.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        Where there is no fixation.
    """
    if not isinstance(recording, Recording):
        checks.refuse("plot.scanpath", "recording", "a Recording", recording)
    shown = checks.count("plot.scanpath", "most", most)
    x, y, seconds = _fixations(recording, _events(recording) if events is None else events)
    if not len(x):
        raise DataError(f"{recording.title} has no fixation, so there is no scanpath to draw.")
    total, x, y, seconds = len(x), x[:shown], y[:shown], seconds[:shown]
    axes = axes_or_new("plot.scanpath", ax, height_in=4.5)
    pixels = image is not None and isinstance(recording.space, Screen)
    if pixels and isinstance(recording.space, Screen):
        x, y = recording.space.to_px(x, y)
    frame_picture(axes, recording.space, image)
    for a, b in zip(range(len(x) - 1), range(1, len(x)), strict=True):
        for across in _joined(recording.space, float(x[a]), float(x[b])):
            axes.plot(across, (y[a], y[b]), "-", color=light("muted"), lw=1.0, zorder=2)
    marks = axes.scatter(
        x,
        y,
        s=_AREA_OF_1_S * np.maximum(seconds, _LEAST_S),
        c=np.arange(len(x)),
        cmap="viridis",
        alpha=0.75,
        zorder=3,
    )
    marks.set_edgecolor(light("paper"))
    if numbers:
        for place in np.flatnonzero(seconds >= _NUMBERED_S).tolist():
            ink = light("paper") if place < 0.6 * len(x) else light("ink")
            at = (float(x[place]), float(y[place]))
            words = axes.annotate(str(place + 1), at, fontsize=7, ha="center", va="center")
            words.set(color=ink, zorder=4)
    unit = "px" if pixels else "deg"
    axes.set(xlabel=f"x ({unit})", ylabel=f"y ({unit})")
    of_all = f" of {total}" if total > len(x) else ""
    titled(axes, f"{recording.person}, {recording.stimulus}: {len(x)}{of_all} fixations")
    return axes


def frame_picture(axes: Axes, space: Space, image: Any) -> None:
    """Show the picture that was looked at, or the edge of the space, with y downwards."""
    extent = space_extent(space)
    if image is not None:
        if isinstance(space, Screen):
            extent = (0.0, space.width_px, space.height_px, 0.0)
        pixels = image_array("plot", image)
        axes.imshow(pixels, extent=extent, aspect="auto", cmap="gray", zorder=0, alpha=0.8)
    axes.set(xlim=extent[:2], ylim=extent[2:])
    axes.set_aspect("equal")


def space_extent(space: Space) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of a space in degrees, y downwards."""
    wide, high = space.width_deg, space.height_deg
    if isinstance(space, Screen):
        return -wide / 2, wide / 2, high / 2, -high / 2
    return 0.0, wide, high, 0.0


def _joined(space: Space, x0: float, x1: float) -> list[tuple[float, float]]:
    """The line from one fixation to the next; over the seam of a sphere as two that leave it."""
    if isinstance(space, Screen) or abs(x1 - x0) <= 180:
        return [(x0, x1)]
    turn = 360.0 if x1 < x0 else -360.0
    return [(x0, x1 + turn), (x0 - turn, x1)]


def _events(recording: Recording) -> Events:
    """What is detected; of a recording without samples the events that came with it."""
    if len(recording):
        return detect(recording)
    return recording.events if recording.events is not None else Events.empty()


def _fixations(recording: Recording, events: Events) -> tuple[Floats, Floats, Floats]:
    """Place and length of each fixation with a valid sample."""
    fixations = events.of("fixation")
    if fixations.x_deg is not None and fixations.y_deg is not None and not len(recording):
        return fixations.x_deg, fixations.y_deg, fixations.duration_s
    places, seconds = [], []
    vectors = recording.vectors
    for fixation in fixations:
        inside = vectors[fixation.onset : fixation.offset + 1]
        inside = inside[np.isfinite(inside[:, 0])]
        if fixation.onset >= 0 and len(inside):
            places.append(inside.mean(axis=0))
            seconds.append(max(fixation.duration_ns / 1e9, 0.02))
    if not places:
        return np.empty(0), np.empty(0), np.empty(0)
    x, y = recording.space.degrees(np.stack(places))
    return x, y, np.array(seconds)
