"""Views of one stream at several sigmas of one noise of places: one walk from cell to cell, and for
each sigma the noisy place of the cell.

Sessions of :meth:`~gazeveil.privacy.stream.place.mechanism.GaussianPlace.open_with` that begin at
different times may be in different cells near an edge, and who holds both is told two places
instead of one. Here all views have one walk, so together they are what the finest of them tells.

    views = PlaceViews(GaussianPlace(5), 120.0, Sphere())
    seen = views.push(noise, t_ns, x_deg, y_deg, valid)
    seen(5)                                              # what an app with sigma 5 gets
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gazeveil.gaze.geometry import Space
from gazeveil.privacy.rational import Number
from gazeveil.privacy.stream.place.cell_walk import NO_CELL, CellWalk
from gazeveil.privacy.stream.place.mechanism import GaussianPlace
from gazeveil.privacy.stream.place.noise import PlaceNoise
from gazeveil.privacy.stream.raw import RawGaze
from gazeveil.privacy.stream.session import Session
from gazeveil.privacy.stream.stage import Samples


class PlaceViews:
    """A stream whose samples are told as noisy places, at any sigma of a noise.

    Parameters
    ----------
    mechanism : GaussianPlace
        Says which cells and which hysteresis; its sigma is not used.
    rate_hz : float
        Nominal samples per second.
    space : Sphere or Screen
        What the degrees mean.
    """

    def __init__(self, mechanism: GaussianPlace, rate_hz: float, space: Space) -> None:
        self._validated = Session(RawGaze(), rate_hz, space)
        self._walk = CellWalk(mechanism.grid(space), float(mechanism.hysteresis_deg or 0))

    def push(
        self, noise: PlaceNoise, t_ns: object, x_deg: object, y_deg: object, valid: object = True
    ) -> Callable[[Number], Samples]:
        """Take new samples, parameters as for a stream's session; what comes back gives their view
        at a sigma of the noise's list.
        """
        t, x, y, ok = self._validated.push(t_ns, x_deg, y_deg, valid)  # type: ignore[arg-type]
        cells = self._walk.run(x[np.newaxis], y[np.newaxis], ok[np.newaxis])[0]
        visited = np.unique(cells[cells != NO_CELL])

        def view(sigma_deg: Number) -> Samples:
            places = np.full((len(visited) + 1, 2), np.nan)  # the last is that of lost samples
            for i, cell in enumerate(visited.tolist()):
                places[i] = noise.place(self._walk.grid, cell, sigma_deg)
            noisy = places[
                np.where(cells == NO_CELL, len(visited), np.searchsorted(visited, cells))
            ]
            return t.copy(), noisy[:, 0].copy(), noisy[:, 1].copy(), ok.copy()

        return view
