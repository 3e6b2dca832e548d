"""A heat map: where people looked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.plot.canvas import axes_or_new, image_array, titled
from gazeveil.plot.looks import space_extent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        percent = shares * (100 / shares.size)
        values = np.log10(percent + 1e-4)
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
