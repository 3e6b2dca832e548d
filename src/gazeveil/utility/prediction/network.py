"""The network `dgaze` in the place of an analyst: it learns from histories of some people and says
where gaze of others will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import from_tangents
from gazeveil.models.headset.dgaze import GazePredictor, train_dgaze
from gazeveil.models.resumable import TrainingRun
from gazeveil.utility.head_channel import seen_as_tangents
from gazeveil.utility.prediction.history import Histories
from gazeveil.utility.prediction.moments import from_plane

#: Most moments that a network learns from, spread evenly over recordings.
MOST_HISTORIES = 150_000


@dataclass(frozen=True, eq=False)
class LearntPredictor:
    """A trained network with the channels it looks at.

    Parameters
    ----------
    network : GazePredictor
        Trained.
    channels : array of int64
        Those that were not 0 all the time in training.
    map_size : int
        Numbers of the saliency maps that it looks at; 0 for none.
    losses : tuple of float
        The loss of every step; empty for weights from a file.
    digest : str
        Of the material it was trained on, where a checkpoint asked for one.
    """

    network: GazePredictor
    channels: Ints
    map_size: int
    losses: tuple[float, ...] = ()
    digest: str = ""

    def directions(self, seen: Histories) -> Floats:
        """Where gaze will be, as unit vectors of the frame of the moments, shape (moments, 3).

        Raises
        ------
        DataError
            For a network that looks at saliency maps, where there are none or others.
        """
        maps = None
        if self.map_size:
            maps = seen.saliency
            if maps is None or maps.shape[1] != self.map_size:
                raise DataError(
                    f"These weights look at saliency maps of {self.map_size} numbers, and a"
                    " recording has none of that size. Use weights that were trained without maps."
                )
        told = self.network.predict(seen.values[:, self.channels], maps)
        if self.network.reading == "published":
            return seen.outside(from_tangents(*np.clip(told, -89.0, 89.0).T))
        return seen.outside(from_plane(seen.centre, told))


def learn(
    seen: Sequence[Histories], truth: Sequence[Floats], reading: str, run: TrainingRun
) -> LearntPredictor | None:
    """Train on histories and on the directions gaze took, one array per recording; None where there
    are fewer than two moments.
    """
    if sum(map(len, truth)) < 2:
        return None
    values = np.concatenate([s.values for s in seen])
    target = np.concatenate([_target(s, t, reading) for s, t in zip(seen, truth, strict=True)])
    channels = np.flatnonzero((values != 0).any(axis=(0, 2)))
    if len(channels) == 0:
        channels = np.arange(2)
    given = [s.saliency for s in seen if s.saliency is not None]
    maps = np.concatenate(given) if len(given) == len(seen) else None
    whole = run.of(f"dgaze {reading}", values, target, *(() if maps is None else (maps,)))
    network, losses = train_dgaze(
        values[:, channels],
        target,
        whole.plan,
        maps,
        reading,
        device=run.device,
        progress=run.progress,
    )
    size = 0 if maps is None else maps.shape[1]
    return LearntPredictor(network, channels, size, losses, whole.plan.of)


def _target(seen: Histories, truth: Floats, reading: str) -> Floats:
    if reading == "published":
        return np.nan_to_num(seen_as_tangents(truth))
    return seen.offsets_deg(truth)
