"""A piece rendered by the public eye of `clock-render`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.clock.stage import show
from gazeveil.privacy.synthesis.mosaic.windows import PublicWindows


@dataclass(frozen=True, eq=False)
class PieceRendering:
    """A piece that is rendered when it is called; the same each time.

    Parameters
    ----------
    key : (person, stimulus, session, task)
        Of the piece.
    space : Sphere or Screen
        What degrees mean.
    windows : PublicWindows
        When pieces are.
    window : int
        Which window it is.
    reader : ClockRender
        Whose eye renders.
    places : array, shape (slots, 3)
        Where the path lies.
    there : array of bool, shape (slots,)
        Whether it has a place.
    eye : int
        Random key of the eye.
    """

    key: RecordingKey
    space: Space
    windows: PublicWindows
    window: int
    reader: ClockRender
    places: Floats = field(repr=False)
    there: Bools = field(repr=False)
    eye: int

    def __call__(self) -> Recording:
        """The piece."""
        n, rate_hz = self.windows.piece_samples, self.windows.rate_hz
        if isinstance(self.space, Sphere):
            slot_x, slot_y = self.space.degrees(self.places)
        else:
            slot_x, slot_y = self.places[:, 0], self.places[:, 1]
        x, y, valid = np.empty((1, n)), np.empty((1, n)), np.empty((1, n), dtype=np.bool_)
        show(
            np.ascontiguousarray(slot_x)[None],
            np.ascontiguousarray(slot_y)[None],
            self.there[None],
            self.windows.slot,
            self.reader.model(rate_hz, self.space),
            self.reader.settings(rate_hz, self.space),
            np.array([self.eye], dtype=np.uint64),
            x,
            y,
            valid,
        )
        person, stimulus, session, task = self.key
        return Recording(
            person,
            stimulus,
            self.windows.times_ns(self.window),
            x[0],
            y[0],
            valid[0],
            space=self.space,
            rate_hz=rate_hz,
            session=session,
            task=task,
        )
