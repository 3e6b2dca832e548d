"""A linear model of the past with the least mean angle.

Least squares would serve the few large saccades and lose to `hold` in the mean angle, which is what
is measured; so after the first fit the moments are weighted by one over their error, a few times,
which leads to the least mean angle.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.utility.prediction.moments import LAGS, Moments

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
