"""The tile that gaze is in, told only when it changes: post-processing of a protected stream.

S001 offers the current tile of a public tiling to streaming of 360-degree video. Here tiles are computed from what a protected session
released, never from gaze itself, so they promise what that session promises. Hysteresis keeps the tile until the released place is more
than `hysteresis_deg` outside it, and `least_s` keeps it at least that long, so that noise at an edge does not make tiles flicker.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.stream.session import Session


class Tiles:
    """Tiles of one protected stream.

    Parameters
    ----------
    session : Session
        The protected stream, of one person.
    columns, rows : int
        The public tiling of the whole sphere or screen; 8 x 4 makes tiles of 45 degrees.
    hysteresis_deg : float
        How far outside its tile the released place must be for the tile to change.
    least_s : float
        How long a tile lasts at least.
    """

    def __init__(self, session: Session, columns: int = 8, rows: int = 4, hysteresis_deg: float = 2.0, least_s: float = 0.1) -> None:
        if not isinstance(session, Session) or session.streams is not None:
            checks.refuse("Tiles", "session", "a session of one protected stream, as open() gives it", session)
        self.session = session
        self.columns, self.rows = checks.count("Tiles", "columns", columns), checks.count("Tiles", "rows", rows)
        space = session.space
        sphere = isinstance(space, Sphere)
        left, top = (0.0, 0.0) if sphere else (-space.width_deg / 2, -space.height_deg / 2)
        sides = (space.width_deg / self.columns, space.height_deg / self.rows)
        slack = checks.not_negative("Tiles", "hysteresis_deg", hysteresis_deg)
        if slack >= min(sides):
            checks.refuse("Tiles", "hysteresis_deg", f"below the smaller side of a tile, {min(sides):g} degrees", hysteresis_deg)
        ticks = math.ceil(checks.not_negative("Tiles", "least_s", least_s) * session.rate_hz / session.mechanism.stride)
        self._layout = np.array([left, top, *sides, slack, float(sphere)])
        self._shape = np.array([self.columns, self.rows, ticks], dtype=np.int64)
        self._state = np.array([-1, 0], dtype=np.int64)  # tile, samples it has lasted

    @property
    def current(self) -> int | None:
        """The tile now, row by row from the top left; None before the first."""
        return None if self._state[0] < 0 else int(self._state[0])

    @property
    def guarantee(self) -> Guarantee:
        """That of the session: tiles are post-processing."""
        return self.session.guarantee

    def reset(self) -> None:
        """Begin a new stream."""
        self.session.reset()
        self._state[:] = -1, 0

    def push(self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Protect samples and tell the changes of tile.

        Returns
        -------
        t_ns, tile : arrays of int64, shape (changes,)
            When the tile changed, and to which; lost samples change nothing.
        """
        t, x, y, ok = self.session.push(t_ns, x_deg, y_deg, valid)
        tile = np.full(len(t), -1, dtype=np.int64)
        _follow(x, y, ok, self._layout, self._shape, self._state, tile)
        changed = tile >= 0
        return t[changed], tile[changed]


@compiled
def _follow(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    valid: NDArray[np.bool_],
    layout: NDArray[np.float64],
    shape: NDArray[np.int64],
    state: NDArray[np.int64],
    tile: NDArray[np.int64],
) -> None:
    """Write the new tile at every sample where it changes."""
    left, top, width, height, slack, sphere = layout[0], layout[1], layout[2], layout[3], layout[4], layout[5] != 0.0
    columns, rows, least = shape[0], shape[1], shape[2]
    for i in range(len(x)):
        state[1] += 1
        if not valid[i]:
            continue
        now = state[0]
        if now >= 0:
            if state[1] <= least:
                continue
            dx = x[i] - (left + (now % columns + 0.5) * width)
            if sphere:
                dx -= 360.0 * np.rint(dx / 360.0)
            dy = y[i] - (top + (now // columns + 0.5) * height)
            if abs(dx) <= 0.5 * width + slack and abs(dy) <= 0.5 * height + slack:
                continue
        column = min(max(np.int64(np.floor((x[i] - left) / width)), np.int64(0)), columns - 1)
        row = min(max(np.int64(np.floor((y[i] - top) / height)), np.int64(0)), rows - 1)
        found = row * columns + column
        if found != now:
            tile[i] = found
            state[0], state[1] = found, 0
