"""What a model of gaze prediction knows before it is tested: learnt here, or read from a file.

A linear model of the past with the least mean angle.

Least squares would serve the few large saccades and lose to `hold` in the mean angle, which is what
is measured; so after the first fit the moments are weighted by one over their error, a few times,
which leads to the least mean angle.

The network `dgaze` in the place of an analyst: it learns from histories of some people and says
where gaze of others will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.geometry import from_tangents
from gazeveil.models.headset.dgaze import GazePredictor, train_dgaze
from gazeveil.models.headset.weights import TrainedPredictor, load_dgaze
from gazeveil.models.resumable import TrainingRun
from gazeveil.models.train import best_device
from gazeveil.utility.base import Utility
from gazeveil.utility.prediction.moments import (
    CHANNELS,
    LAGS,
    Histories,
    Moments,
    from_plane,
    seen_as_tangents,
)
from gazeveil.utility.trained_weights import need_same

#: How often the model is fitted again with moments weighted by one over their error, and the
#: smallest error that counts as one.
ROUNDS = 8
FINEST_DEG = 0.1


def inputs_of(moments: Moments) -> Floats:
    """The past without the newest sample, which is always 0, and a one; shape (moments, inputs)."""
    return np.concatenate(
        (moments.past_deg[:, 1:].reshape(len(moments), 2 * (LAGS - 1)), np.ones((len(moments), 1))),
        axis=1,
    )


def fit(x: Floats, y: Floats, penalty: float, rounds: int = ROUNDS) -> Floats:
    """Weights (inputs, 2) of the linear model with the least mean error |x w - y|, held back by
    ridge regression.

    Parameters
    ----------
    x : array of float64, shape (moments, inputs)
        The last input is the constant and is not held back.
    y : array of float64, shape (moments, 2)
        Where gaze went, in degrees right and down.
    penalty : float
        In mean squares of the inputs.
    rounds : int
        How often moments are weighted anew; 0 gives least squares.
    """
    importance = np.ones(len(x))
    size = x.shape[1]
    w: Floats = np.zeros((size, 2))
    for _ in range(rounds + 1):
        weighted = x * importance[:, None]
        inner = x.T @ weighted
        back = np.full(size, penalty * float(np.trace(inner[:-1, :-1])) / max(size - 1, 1) + 1e-9)
        back[-1] = 0.0
        w = np.asarray(np.linalg.solve(inner + np.diag(back), weighted.T @ y), dtype=np.float64)
        error = np.linalg.norm(x @ w - y, axis=1)
        importance = np.asarray(1.0 / np.maximum(error, FINEST_DEG), dtype=np.float64)
    return w


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
