"""Smoothing maps of gaze so that a blob is as wide in visual angle everywhere.

On the sphere an equirectangular row at latitude phi is stretched by 1/cos(phi): the horizontal
width grows accordingly, columns wrap at 0/360, and rows continue over the poles half a turn away.
On a screen cells are taken as equally wide in degrees, and nothing wraps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space, Sphere


def smooth_map(cells: ArrayLike, space: Space, sigma_deg: float) -> Floats:
    """A map smoothed with a Gaussian of `sigma_deg` degrees; the total is kept.

    Parameters
    ----------
    cells : array of float64, shape (rows, columns)
        Any map that covers the whole space, first row at the top.
    space : Sphere or Screen
        What it covers.
    sigma_deg : float
        Standard deviation in degrees; 0 gives the map back.
    """
    grid = np.array(cells, dtype=np.float64)
    if grid.ndim != 2:
        raise DataError(f"A map needs two dimensions. Got shape {grid.shape}.")
    sigma = checks.not_negative("smooth_map", "sigma_deg", sigma_deg)
    if sigma == 0 or grid.size == 0:
        return grid
    total = grid.sum()
    rows, columns = grid.shape
    down, across = sigma * rows / space.height_deg, sigma * columns / space.width_deg
    if isinstance(space, Sphere):
        latitude = np.radians(90.0 - (np.arange(rows) + 0.5) * 180.0 / rows)
        widths = np.minimum(across / np.maximum(np.cos(latitude), 1e-3), columns)
        result = _over_the_poles(_around(grid, widths), down)
    else:
        from scipy.ndimage import gaussian_filter

        result = gaussian_filter(grid, (down, across), mode="reflect", truncate=6.0)
    if grid.min() >= 0:
        result = np.maximum(result, 0.0)  # the Fourier series leaves rounding of either sign
    mass = result.sum()
    return result * (total / mass) if mass != 0 else result


def _around(grid: Floats, widths: Floats) -> Floats:
    """Each row convolved with a wrapped Gaussian of its own width (cells), exactly, by its Fourier
    series.
    """
    columns = grid.shape[1]
    frequency = np.fft.rfftfreq(columns)
    gain = np.exp(-2.0 * (np.pi * frequency[None, :] * widths[:, None]) ** 2)
    return np.fft.irfft(np.fft.rfft(grid, axis=1) * gain, n=columns, axis=1)


def _over_the_poles(grid: Floats, width: float) -> Floats:
    """Rows convolved along meridians, which continue on the other side of each pole."""
    from scipy.ndimage import gaussian_filter1d

    rows, columns = grid.shape
    pad = min(rows, int(np.ceil(6 * width)) + 1)
    turned = np.roll(grid, columns // 2, axis=1)
    # A cell near a pole covers less area than one at the equator: densities are smoothed, not
    # counts.
    area = np.sin((np.arange(rows) + 0.5) * np.pi / rows)[:, None]
    density, opposite = grid / area, turned / area
    whole = np.concatenate((opposite[:pad][::-1], density, opposite[-pad:][::-1]))
    return (
        gaussian_filter1d(whole, width, axis=0, mode="nearest", truncate=6.0)[pad : pad + rows]
        * area
    )
