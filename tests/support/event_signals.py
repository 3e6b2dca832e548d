"""Hand-made gaze whose events are known."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil import Recording, Screen, Sphere

SCREEN = Screen(1680, 1050, 474.0, 297.0, 550.0)


def times(n: int, rate_hz: float) -> NDArray[np.int64]:
    return np.round(np.arange(n) * 1e9 / rate_hz).astype(np.int64)


def ramp(start: float, stop: float, n: int) -> NDArray[np.float64]:
    """A smooth step in n samples, fastest in its middle."""
    share = np.arange(1, n + 1) / n
    return start + (stop - start) * (3 * share**2 - 2 * share**3)


def step_path(
    rate_hz: float,
    places: tuple[float, ...] = (0.0, 8.0, -4.0),
    fixation_ms: float = 400.0,
    saccade_ms: float = 40.0,
) -> NDArray[np.float64]:
    """Fixations at the given places with saccades between them."""
    still, moving = round(fixation_ms * rate_hz / 1000), max(1, round(saccade_ms * rate_hz / 1000))
    parts = [np.full(still, places[0])]
    for before, after in pairwise(places):
        parts += [ramp(before, after, moving), np.full(still, after)]
    return np.concatenate(parts)


def on_screen(
    x: NDArray[np.float64],
    rate_hz: float = 250.0,
    y: NDArray[np.float64] | None = None,
    **more: Any,
) -> Recording:
    return Recording(
        "p",
        "s",
        times(len(x), rate_hz),
        x,
        np.zeros(len(x)) if y is None else y,
        space=SCREEN,
        rate_hz=rate_hz,
        **more,
    )


def on_sphere(
    x: NDArray[np.float64], y: NDArray[np.float64], rate_hz: float = 250.0, **more: Any
) -> Recording:
    return Recording(
        "p",
        "s",
        times(len(x), rate_hz),
        np.mod(x, 360.0),
        y,
        space=Sphere(),
        rate_hz=rate_hz,
        **more,
    )


def jitter(n: int, deg: float = 0.01, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0.0, deg, n)
