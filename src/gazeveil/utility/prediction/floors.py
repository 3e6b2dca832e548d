"""What a predictor must beat: the straight line through the last samples, and a Kalman filter.

Both are linear in the past, the same for right and down, and so are weights of its moments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.utility.prediction.moments import LAGS

#: How much of the past the straight line is fitted to.
LINE_S = 0.1

#: Ratios that the Kalman filter chooses from: spectral density of the acceleration's noise over the
#: variance of a reading, in 1/s^3. The smallest averages over the whole past, the largest follows
#: every sample.
RATIOS = tuple(10.0**power for power in range(-2, 9))


def line_weights(horizon_s: float, past_s: float) -> Floats:
    """How much each moment of the past weighs in the line through the last 100 ms, continued to the
    horizon; shape (lags,).
    """
    times = -np.arange(LAGS) * (past_s / LAGS)
    used = times >= -LINE_S - 1e-9
    used[:2] = True
    weights = np.zeros(LAGS)
    basis = np.stack((np.ones(int(used.sum())), times[used]), axis=1)
    weights[used] = np.array([1.0, horizon_s]) @ np.linalg.pinv(basis)
    return weights


def kalman_weights(ratio: float, horizon_s: float, past_s: float) -> Floats:
    """How much each moment of the past weighs in what a Kalman filter says of the horizon; shape
    (lags,).

    The filter knows place and speed, the speed changes at random (white noise of acceleration), it
    begins at the oldest moment without knowing a speed, and continues its last speed.

    Parameters
    ----------
    ratio : float
        One of :data:`RATIOS`: small for noisy readings.
    horizon_s, past_s : float
        How far ahead, and how long the past is, in seconds.
    """
    step = past_s / LAGS
    forward = np.array([[1.0, step], [0.0, 1.0]])
    drift = ratio * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
    # Rows: place and speed as weights of the moments, which are read from the oldest on.
    state, spread = np.zeros((2, LAGS)), np.diag([1.0, 1e6])
    state[0, -1] = 1.0
    for lag in range(LAGS - 2, -1, -1):
        state, spread = forward @ state, forward @ spread @ forward.T + drift
        gain = spread[:, 0] / (spread[0, 0] + 1.0)
        seen = np.zeros(LAGS)
        seen[lag] = 1.0
        state = state + gain[:, None] * (seen - state[0])[None, :]
        spread = spread - np.outer(gain, spread[0])
    return np.asarray(state[0] + horizon_s * state[1])


def best_kalman(
    past_deg: Sequence[Floats], target_deg: Sequence[Floats], horizon_s: float, past_s: float
) -> Floats:
    """The weights of the ratio with the least mean error on training moments; the middle one where
    there are none.

    Parameters
    ----------
    past_deg : sequence of arrays, shape (moments, lags, 2)
        Past gaze.
    target_deg : sequence of arrays, shape (moments, 2)
        Where gaze went.
    horizon_s, past_s : float
        In seconds.
    """
    choices = [kalman_weights(r, horizon_s, past_s) for r in RATIOS]
    if not sum(map(len, past_deg)):
        return choices[len(choices) // 2]
    past, target = np.concatenate(past_deg), np.concatenate(target_deg)
    errors = [
        float(np.linalg.norm(np.einsum("nlk,l->nk", past, w) - target, axis=1).mean())
        for w in choices
    ]
    return choices[int(np.argmin(errors))]
