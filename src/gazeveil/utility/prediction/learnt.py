"""What a model of gaze prediction knows before it is tested: learnt here, or read from a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.models.headset.weights import TrainedPredictor, load_dgaze
from gazeveil.models.train import best_device
from gazeveil.utility.base import Utility
from gazeveil.utility.prediction.history import CHANNELS
from gazeveil.utility.prediction.moments import LAGS
from gazeveil.utility.prediction.network import LearntPredictor
from gazeveil.utility.trained_weights import need_same


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt from the training people; None where there was nothing to learn from, or
    nothing is learnt.

    Parameters
    ----------
    ridge : array of float64, shape (inputs, 2), optional
        Weights of the linear model.
    kalman : array of float64, shape (lags,), optional
        Weights of the Kalman filter.
    network : LearntPredictor, optional
        The network.
    weights : TrainedPredictor, optional
        The file it came from.
    """

    ridge: Floats | None = None
    kalman: Floats | None = None
    network: LearntPredictor | None = None
    weights: TrainedPredictor | None = None

    @classmethod
    def from_file(cls, kalman: Floats | None, weights: TrainedPredictor | None) -> Learnt:
        """A Kalman filter, and the network of a file where there is one."""
        if weights is None:
            return cls(None, kalman)
        network = LearntPredictor(weights.network, weights.channels, weights.given.map_size)
        return cls(None, kalman, network, weights)


def predictor_of(task: Utility, file: str) -> TrainedPredictor:
    """The weights in a file, if they are those of a task with the parameters `horizon_s`, `past_s`,
    `reading` and `head`.

    Raises
    ------
    FormatError
        For a file that holds none.
    ParameterError
        For weights of another task.
    """
    weights = load_dgaze(file, best_device())
    given = weights.given
    for name in ("horizon_s", "past_s", "reading", "head"):
        need_same(task, name, getattr(given, name), file)
    if given.lags != LAGS or max(given.channels) >= CHANNELS:
        raise FormatError(
            file,
            "these weights see other histories than this version makes",
            "Train them again with `gazeveil train --network dgaze`.",
        )
    return weights


def spread(count: int, quota: int) -> Ints:
    """At most `quota` of so many moments, spread evenly."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.linspace(0, count - 1, min(quota, count)).astype(np.int64))
