"""A heat map: where people looked.

A scanpath: fixations in order, on what was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.plot.paths import axes_or_new, image_array, light, titled

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


#: How numbers become brightness.
SCALES = ("sqrt", "log")

_CELLS = 180


def heat_map(
    data: Recording | Cohort | NDArray[np.floating[Any]],
    image: Any = None,
    ax: Axes | None = None,
    *,
    space: Space | None = None,
    sigma_deg: float = 1.0,
    scale: str = "sqrt",
    top: float | None = None,
    extent_deg: tuple[float, float, float, float] | None = None,
    colourbar: bool | None = None,
    stimulus: str | None = None,
) -> Axes:
    """Draw where people looked; bright is often.

    Parameters
    ----------
    data : Recording, Cohort or array of shape (rows, columns)
        Recordings of one space, or a map that covers the space, first row at the top. Of a cohort
        one stimulus is drawn, see `stimulus`.
    image : path or array, optional
        Drawn below the map: the whole screen, whose axes are then in pixels, or the whole sphere.
    ax : Axes, optional
        Where to draw; new axes if not given.
    space : Sphere or Screen, optional
        What an array covers.
    sigma_deg : float
        Smoothing of recordings in degrees; 0 for none. Arrays are drawn as they are.
    scale : {"sqrt", "log"}
        Brightness is the square root of how often each cell is looked at, or its logarithm.
    top : float, optional
        What is brightest, in multiples of looking everywhere alike, so that several maps have one
        scale; default the 99.5 % quantile of the map.
    extent_deg : (left, right, bottom, top), optional
        What an array covers, instead of the whole space.
    colourbar : bool, optional
        Show the scale beside the map; default on new axes.
    stimulus : str, optional
        Of a cohort: the stimulus to draw, or `*` for all of them on one map; default the first.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        For recordings of several spaces, or without a valid sample.
    """
    checks.one_of("plot.heat_map", "scale", scale, SCALES)
    if isinstance(data, Cohort) and stimulus != "*" and len(data):
        data = data.select(stimuli=[stimulus or data.stimuli[0]])
    cells, where = _cells(data, space, sigma_deg, image is not None)
    if extent_deg is None and where is None:
        checks.refuse("plot.heat_map", "space", "a Sphere or a Screen, for an array", None)
    unit, extent = "deg", extent_deg
    if extent is None and where is not None:
        extent = space_extent(where)
        if image is not None and isinstance(where, Screen) and isinstance(data, Recording | Cohort):
            unit, extent = "px", (0.0, where.width_px, where.height_px, 0.0)
    axes = axes_or_new("plot.heat_map", ax, height_in=4.0)
    if image is not None:
        axes.imshow(image_array("plot.heat_map", image), extent=extent, aspect="auto", cmap="gray")
    shares = np.where(np.isfinite(cells) & (cells > 0), cells, 0.0)
    shares = shares / shares.mean() if shares.any() else shares
    brightest = _top(shares, top)
    # The map is transparent where it is zero.
    alpha = None if image is None else np.clip(np.sqrt(shares / brightest), 0, 0.85)
    if scale == "sqrt":
        values, low, high = np.sqrt(shares / brightest), 0.0, 1.0
    else:
        values = np.log10(shares * (100 / shares.size) + 1e-4)  # percent
        low, high = -4.0, float(values.max(initial=-3.0))
    drawn = axes.imshow(
        values,
        extent=extent,
        aspect="auto",
        cmap="magma",
        vmin=low,
        vmax=high,
        interpolation="nearest",
        alpha=alpha,
    )
    axes.set(xlabel=f"x ({unit})", ylabel=f"y ({unit})")
    axes.grid(visible=False)
    if isinstance(data, Recording):
        titled(axes, f"{data.person}, {data.stimulus}")
    elif isinstance(data, Cohort):
        shown = data.stimuli[0] if len(data.stimuli) == 1 else f"{len(data.stimuli)} stimuli"
        titled(axes, f"{shown}, participants: {len(data.people)}")
    if colourbar if colourbar is not None else ax is None:
        words = (
            "share of samples per cell (log10 %)"
            if scale == "log"
            else "density of samples (square root, 1 = brightest)"
        )
        axes.figure.colorbar(drawn, ax=axes, label=words)
    return axes


def _top(shares: Floats, top: float | None) -> float:
    if top is not None:
        return checks.positive("plot.heat_map", "top", top)
    return float(np.quantile(shares[shares > 0], 0.995)) if (shares > 0).any() else 1.0


def _cells(
    data: Any, space: Space | None, sigma_deg: float, pixels: bool
) -> tuple[Floats, Space | None]:
    """A map of counts, and what it covers; of a screen in cells of pixels where that is asked."""
    if not isinstance(data, Recording | Cohort):
        cells = np.asarray(data)
        if cells.ndim != 2 or cells.size == 0 or cells.dtype.kind not in "uif":
            checks.refuse(
                "plot.heat_map",
                "data",
                "a Recording, a Cohort or an array of rows and columns",
                data,
            )
        return cells.astype(np.float64), space
    recordings: Iterable[Recording] = (data,) if isinstance(data, Recording) else data
    cells, found = np.zeros((_CELLS // 2, _CELLS)), None
    for recording in recordings:
        if found is not None and recording.space != found:
            raise DataError(
                "A heat map needs recordings of one space. Choose some first, such as"
                " cohort.select(stimuli=...)."
            )
        found = recording.space
        cells += _counts(recording, found, pixels)
    if found is None or not cells.any():
        raise DataError("There is no valid sample to draw a heat map of.")
    return smooth_map(cells, found, sigma_deg), found


def _counts(recording: Recording, space: Space, pixels: bool) -> Floats:
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    wide, high = space.width_deg, space.height_deg
    if isinstance(space, Screen):
        # Degrees are not even on a flat screen, and a picture is.
        x, y = space.to_px(x, y) if pixels else (x + wide / 2, y + high / 2)
        wide, high = (space.width_px, space.height_px) if pixels else (wide, high)
    counts, _, _ = np.histogram2d(y, x, bins=(_CELLS // 2, _CELLS), range=((0, high), (0, wide)))
    return counts
