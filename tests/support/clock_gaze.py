"""Gaze for tests of `clock-render`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gazeveil import Recording, Sphere

TEXTS = [
    "clock-render:epsilon=10,r_deg=2",
    "clock-render:epsilon=1,r_deg=2,slot_s=0.05,window_s=0.2,fill_s=0.1",
    "clock-render:epsilon=3,r_deg=5,slot_s=0.3,window_s=0.1,pursuit=False",
]


def gaze(
    n: int, space: Any, seed: int, rate: float = 100.0, lost: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fixations with jumps between them."""
    rng = np.random.default_rng(seed)
    jumps = np.cumsum(rng.random(n) < 3 / rate)
    places = rng.normal(0, 6, (jumps[-1] + 1 if n else 1, 2))
    path = places[jumps] + rng.normal(0, 0.05, (n, 2))
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    return (
        (np.arange(n) * 1e9 / rate).astype(np.int64),
        path[:, 0] + middle[0],
        path[:, 1] + middle[1],
        rng.random(n) >= lost,
    )


def recorded(
    n: int, space: Any, seed: int = 1, rate: float = 100.0, lost: float = 0.0
) -> Recording:
    t, x, y, ok = gaze(n, space, seed, rate, lost)
    return Recording(
        "p", "s", t, np.where(ok, x, np.nan), np.where(ok, y, np.nan), ok, space=space, rate_hz=rate
    )
