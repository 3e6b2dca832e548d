"""Where gaze lives: the sphere around a head, a flat screen, and the angles on both.

Axes of every vector here: x right, y up, z forward. Degrees of a :class:`Sphere` are
equirectangular (x in [0, 360) from left to right with straight ahead at 180, y in [0, 180) from the
zenith down); degrees of a :class:`Screen` are the two tangent angles from its centre, right and
down. Angles between directions use atan2 of cross and dot product, which is exact near 0 and 180
degrees where the arc cosine is not.

Smoothing maps of gaze so that a blob is as wide in visual angle everywhere.

On the sphere an equirectangular row at latitude phi is stretched by 1/cos(phi): the horizontal
width grows accordingly, columns wrap at 0/360, and rows continue over the poles half a turn away.
On a screen cells are taken as equally wide in degrees, and nothing wraps.

Public cells of a space: places that are told as one.

The grid divides the space into equal columns and rows that are not smaller than the resolution. On
a sphere columns grow together towards the poles, so that a cell is nowhere narrower on the sphere
than seven tenths of the resolution (but at the poles themselves, where a row is one cell).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError

#: The largest double below 180: the south pole stays inside [0, 180).
LAST_Y_DEG = math.nextafter(180.0, 0.0)


@dataclass(frozen=True)
class Sphere:
    """Directions around a viewer in equirectangular degrees.

    Examples
    --------
    >>> Sphere().vectors([180.0], [90.0]).round(6).tolist()
    [[0.0, 0.0, 1.0]]
    """

    @property
    def width_deg(self) -> float:
        """Horizontal extent in degrees."""
        return 360.0

    @property
    def height_deg(self) -> float:
        """Vertical extent in degrees."""
        return 180.0

    def vectors(self, x_deg: ArrayLike, y_deg: ArrayLike) -> Floats:
        """Unit vectors, shape (n, 3), of equirectangular degrees."""
        lon = np.radians(np.asarray(x_deg, dtype=np.float64) - 180.0)
        lat = np.radians(90.0 - np.asarray(y_deg, dtype=np.float64))
        return np.stack(
            (np.cos(lat) * np.sin(lon), np.sin(lat), np.cos(lat) * np.cos(lon)), axis=-1
        )

    def degrees(self, vectors: ArrayLike) -> tuple[Floats, Floats]:
        """Equirectangular degrees (x, y) of vectors of any length above zero; a zero vector gives
        NaN.
        """
        v = np.asarray(vectors, dtype=np.float64)
        flat = np.hypot(v[..., 0], v[..., 2])
        empty = (flat == 0) & (v[..., 1] == 0)
        x = wrap_x(np.degrees(np.arctan2(v[..., 0], v[..., 2])) + 180.0)
        y = np.minimum(90.0 - np.degrees(np.arctan2(v[..., 1], flat)), LAST_Y_DEG)
        return np.where(empty, np.nan, x), np.where(empty, np.nan, y)


@dataclass(frozen=True)
class Screen:
    """A flat screen seen from in front of its centre.

    Parameters
    ----------
    width_px, height_px : float
        Resolution in pixels.
    width_mm, height_mm : float
        Size in millimetres.
    distance_mm : float
        Distance of the eye from the centre in millimetres.

    Examples
    --------
    >>> screen = Screen(1280, 720, 400.0, 225.0, 450.0)
    >>> x, y = screen.from_px([1280.0], [360.0])
    >>> round(float(x[0]), 3), round(float(y[0]), 3)
    (23.962, 0.0)
    """

    width_px: float
    height_px: float
    width_mm: float
    height_mm: float
    distance_mm: float

    def __post_init__(self) -> None:
        for name in ("width_px", "height_px", "width_mm", "height_mm", "distance_mm"):
            object.__setattr__(self, name, checks.positive("Screen", name, getattr(self, name)))

    @property
    def width_deg(self) -> float:
        """Visual angle between the left and the right edge."""
        return float(2 * np.degrees(np.arctan(self.width_mm / 2 / self.distance_mm)))

    @property
    def height_deg(self) -> float:
        """Visual angle between the top and the bottom edge."""
        return float(2 * np.degrees(np.arctan(self.height_mm / 2 / self.distance_mm)))

    def from_px(self, x_px: ArrayLike, y_px: ArrayLike) -> tuple[Floats, Floats]:
        """Degrees of pixels that count from the top-left corner."""
        x_mm = (np.asarray(x_px, dtype=np.float64) - self.width_px / 2) * (
            self.width_mm / self.width_px
        )
        y_mm = (np.asarray(y_px, dtype=np.float64) - self.height_px / 2) * (
            self.height_mm / self.height_px
        )
        return self.from_mm(x_mm, y_mm)

    def from_mm(self, x_mm: ArrayLike, y_mm: ArrayLike) -> tuple[Floats, Floats]:
        """Degrees of millimetres right of and below the centre."""
        x = np.degrees(np.arctan(np.asarray(x_mm, dtype=np.float64) / self.distance_mm))
        y = np.degrees(np.arctan(np.asarray(y_mm, dtype=np.float64) / self.distance_mm))
        return x, y

    def to_px(self, x_deg: ArrayLike, y_deg: ArrayLike) -> tuple[Floats, Floats]:
        """Pixels from the top-left corner of degrees."""
        x_mm = np.tan(np.radians(np.asarray(x_deg, dtype=np.float64))) * self.distance_mm
        y_mm = np.tan(np.radians(np.asarray(y_deg, dtype=np.float64))) * self.distance_mm
        return (
            x_mm * (self.width_px / self.width_mm) + self.width_px / 2,
            y_mm * (self.height_px / self.height_mm) + self.height_px / 2,
        )

    def vectors(self, x_deg: ArrayLike, y_deg: ArrayLike) -> Floats:
        """Unit vectors, shape (n, 3), from the eye to the points on the screen."""
        return from_tangents(x_deg, y_deg)

    def degrees(self, vectors: ArrayLike) -> tuple[Floats, Floats]:
        """Degrees (x, y) of vectors; one that points away from the screen gives NaN."""
        return to_tangents(vectors)


Space: TypeAlias = Sphere | Screen

#: What a :class:`Screen` is made of, in the order of its parameters.
SCREEN_SIZES = ("width_px", "height_px", "width_mm", "height_mm", "distance_mm")

#: A desktop screen of 24 inches, for degrees and fractions that come without their screen.
TYPICAL_SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)


def wrap_x(x_deg: ArrayLike) -> Floats:
    """Longitudes brought into [0, 360)."""
    x = np.mod(np.asarray(x_deg, dtype=np.float64), 360.0)
    # np.mod of a tiny negative number rounds to 360.0 itself.
    return np.where(x >= 360.0, 0.0, x)


def unwrap_x(x_deg: ArrayLike) -> Floats:
    """A path of longitudes without jumps at 0/360, before differences, means or deviations.

    NaN stays NaN and does not break the path: the next finite sample continues from the last finite
    one.
    """
    x = np.asarray(x_deg, dtype=np.float64)
    result = x.copy()
    finite = np.isfinite(x)
    if finite.any():
        result[finite] = np.unwrap(x[finite], period=360.0)
    return result


def from_tangents(x_deg: ArrayLike, y_deg: ArrayLike) -> Floats:
    """Unit vectors of the tangent angles (right, down) of a screen or of an eye in its head."""
    right = np.tan(np.radians(np.asarray(x_deg, dtype=np.float64)))
    down = np.tan(np.radians(np.asarray(y_deg, dtype=np.float64)))
    v = np.stack((right, -down, np.ones_like(right)), axis=-1)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def to_tangents(vectors: ArrayLike) -> tuple[Floats, Floats]:
    """Tangent angles (right, down) of vectors in degrees; a vector at 90 degrees or more from
    straight ahead gives NaN.
    """
    v = np.asarray(vectors, dtype=np.float64)
    ahead = np.where(v[..., 2] > 0, v[..., 2], np.nan)
    return np.degrees(np.arctan(v[..., 0] / ahead)), np.degrees(np.arctan(-v[..., 1] / ahead))


def angle_deg(u: ArrayLike, v: ArrayLike) -> Floats:
    """Angle between vectors (n, 3) in degrees, by atan2: exact at 0 and at 180."""
    a = np.asarray(u, dtype=np.float64)
    b = np.asarray(v, dtype=np.float64)
    cross = np.linalg.norm(np.cross(a, b), axis=-1)
    return np.degrees(np.arctan2(cross, np.sum(a * b, axis=-1)))


def haversine_deg(
    x0_deg: ArrayLike, y0_deg: ArrayLike, x1_deg: ArrayLike, y1_deg: ArrayLike
) -> Floats:
    """Great-circle distance between equirectangular degrees."""
    lat0, lat1 = (
        np.radians(90.0 - np.asarray(y0_deg, dtype=np.float64)),
        np.radians(90.0 - np.asarray(y1_deg, dtype=np.float64)),
    )
    dlon = np.radians(np.asarray(x1_deg, dtype=np.float64) - np.asarray(x0_deg, dtype=np.float64))
    h = np.sin((lat1 - lat0) / 2) ** 2 + np.cos(lat0) * np.cos(lat1) * np.sin(dlon / 2) ** 2
    return np.degrees(2 * np.arctan2(np.sqrt(h), np.sqrt(np.maximum(0.0, 1.0 - h))))


def distance_deg(
    space: Space, x0_deg: ArrayLike, y0_deg: ArrayLike, x1_deg: ArrayLike, y1_deg: ArrayLike
) -> Floats:
    """Visual angle between two points of a space, in degrees."""
    if isinstance(space, Sphere):
        return haversine_deg(x0_deg, y0_deg, x1_deg, y1_deg)
    return angle_deg(space.vectors(x0_deg, y0_deg), space.vectors(x1_deg, y1_deg))


# --- rotations: quaternions as (..., 4) arrays in the order x, y, z, w
# ---------------------------------------------------------


def quaternion_multiply(p: ArrayLike, q: ArrayLike) -> Floats:
    """Hamilton product p q: rotating by the product is rotating by q, then by p."""
    a, b = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + np.cross(av, bv)
    return np.concatenate((vector, aw * bw - np.sum(av * bv, axis=-1, keepdims=True)), axis=-1)


def rotate(q: ArrayLike, vectors: ArrayLike) -> Floats:
    """Vectors turned by quaternions (x, y, z, w); the quaternions need not be normalised, a zero
    one gives NaN.
    """
    a, v = np.asarray(q, dtype=np.float64), np.asarray(vectors, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        a = a / np.linalg.norm(a, axis=-1, keepdims=True)
    axis, w = a[..., :3], a[..., 3:]
    t = 2.0 * np.cross(axis, v)
    return v + w * t + np.cross(axis, t)


def head_axes(head_deg: ArrayLike) -> Floats:
    """Right, up and forward axes, shape (n, 3, 3), of heads given as (x_deg, y_deg, roll_deg).

    A positive roll leans the head to its right. Without roll the right axis is horizontal.
    """
    head = np.asarray(head_deg, dtype=np.float64)
    forward = Sphere().vectors(head[..., 0], head[..., 1])
    lon = np.radians(head[..., 0] - 180.0)
    right = np.stack((np.cos(lon), np.zeros_like(lon), -np.sin(lon)), axis=-1)
    up = np.cross(forward, right)
    roll = np.radians(head[..., 2])[..., None]
    return np.stack(
        (
            np.cos(roll) * right - np.sin(roll) * up,
            np.cos(roll) * up + np.sin(roll) * right,
            forward,
        ),
        axis=-2,
    )


def eye_in_head(gaze_vectors: ArrayLike, head_deg: ArrayLike) -> tuple[Floats, Floats]:
    """Tangent angles (right, down) of gaze seen from the head, in degrees;
    NaN beyond 90 degrees.
    """
    return to_tangents(
        np.einsum(
            "...ij,...j->...i", head_axes(head_deg), np.asarray(gaze_vectors, dtype=np.float64)
        )
    )


def gaze_in_world(eye_x_deg: ArrayLike, eye_y_deg: ArrayLike, head_deg: ArrayLike) -> Floats:
    """Unit gaze vectors in the world of an eye's tangent angles in a head given as (x_deg, y_deg,
    roll_deg).
    """
    return np.einsum("...ij,...i->...j", head_axes(head_deg), from_tangents(eye_x_deg, eye_y_deg))


def combine_eyes(
    left_deg: ArrayLike | None, right_deg: ArrayLike | None, space: Space
) -> tuple[Floats, Floats, Bools]:
    """One line of sight from two eyes: their mean direction where both are there, else the one that
    is.

    Returns
    -------
    x_deg, y_deg, valid
        NaN and False where neither eye is there.
    """
    if left_deg is None and right_deg is None:
        raise DataError("At least one eye is needed to make a line of sight.")
    if left_deg is None or right_deg is None:
        eye = np.asarray(left_deg if right_deg is None else right_deg, dtype=np.float64)
        x, y = eye[:, 0].copy(), eye[:, 1].copy()
    else:
        left, right = (
            np.asarray(left_deg, dtype=np.float64),
            np.asarray(right_deg, dtype=np.float64),
        )
        l_ok, r_ok = np.isfinite(left).all(axis=1), np.isfinite(right).all(axis=1)
        x = np.where(l_ok, left[:, 0], right[:, 0])
        y = np.where(l_ok, left[:, 1], right[:, 1])
        both = l_ok & r_ok
        if both.any():
            if isinstance(space, Sphere):
                total = space.vectors(left[both, 0], left[both, 1]) + space.vectors(
                    right[both, 0], right[both, 1]
                )
                x[both], y[both] = space.degrees(total)
            else:
                # On a screen the eyes meet in a point: the mean is taken on the screen, where
                # pixels are averaged too.
                tangent = np.tan(np.radians(left[both])) + np.tan(np.radians(right[both]))
                x[both], y[both] = (
                    np.degrees(np.arctan(tangent[:, 0] / 2)),
                    np.degrees(np.arctan(tangent[:, 1] / 2)),
                )
    valid = np.isfinite(x) & np.isfinite(y)
    return np.where(valid, x, np.nan), np.where(valid, y, np.nan), valid


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


class Grid:
    """The public cells of a space.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    resolution_deg : float
        Least side of a cell.

    Examples
    --------
    >>> grid = Grid(Sphere(), 5.0)
    >>> grid.cell(182.3, 91.0), grid.centre(18, 36)
    ((18, 36), (182.5, 92.5))
    """

    def __init__(self, space: Space, resolution_deg: float) -> None:
        self.sphere = isinstance(space, Sphere)
        self.width_deg, self.height_deg = space.width_deg, space.height_deg
        self.left_deg, self.top_deg = (
            (0.0, 0.0) if self.sphere else (-self.width_deg / 2, -self.height_deg / 2)
        )
        # A hair more than the resolution divides the extent where it should: 360 / 0.1 is not quite
        # 3600 in floating point.
        self.columns = max(1, math.floor(self.width_deg / resolution_deg + 1e-9))
        self.rows = max(1, math.floor(self.height_deg / resolution_deg + 1e-9))
        self.column_deg, self.row_deg = self.width_deg / self.columns, self.height_deg / self.rows
        self._together = tuple(
            self._columns_together(row, resolution_deg) for row in range(self.rows)
        )
        self._cells = np.array(self._together, dtype=np.int64)

    @property
    def numbers(self) -> tuple[float, float, float, float, int, Ints]:
        """Left and upper edge, width and height of a column and a row, how many columns, and how
        many of them make a cell of each row.
        """
        return self.left_deg, self.top_deg, self.column_deg, self.row_deg, self.columns, self._cells

    def _columns_together(self, row: int, resolution_deg: float) -> int:
        """How many columns make a cell of that row."""
        if not self.sphere:
            return 1
        narrow = self.column_deg * math.sin(math.radians((row + 0.5) * self.row_deg))
        return next(
            g
            for g in range(1, self.columns + 1)
            if self.columns % g == 0 and (g == self.columns or g * narrow >= 0.7 * resolution_deg)
        )

    def cell(self, x_deg: float, y_deg: float) -> tuple[int, int] | None:
        """The cell of a place as (row, column of its middle); None outside the space."""
        row = math.floor((y_deg - self.top_deg) / self.row_deg)
        column = math.floor((x_deg - self.left_deg) / self.column_deg)
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        together = self._together[row]
        return row, column - column % together + together // 2

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Middle of a cell in degrees."""
        together = self._together[row]
        x = self.left_deg + (column - column % together + together / 2) * self.column_deg
        return x, self.top_deg + (row + 0.5) * self.row_deg

    # --- cells by number: row * columns + first column of the cell
    # ----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """What tells this grid from every other one."""
        return (
            f"{'sphere' if self.sphere else 'screen'} {self.width_deg!r} {self.height_deg!r}"
            f" {self.columns} {self.rows}"
        )

    @property
    def size(self) -> int:
        """Cell numbers are below this; where columns grow together some numbers
        stand for no cell.
        """
        return self.rows * self.columns

    def index(self, x_deg: float, y_deg: float) -> int:
        """Number of the cell of a place; outside a screen the nearest cell at its border."""
        row = min(max(math.floor((y_deg - self.top_deg) / self.row_deg), 0), self.rows - 1)
        column = min(
            max(math.floor((x_deg - self.left_deg) / self.column_deg), 0), self.columns - 1
        )
        return row * self.columns + column - column % self._together[row]
