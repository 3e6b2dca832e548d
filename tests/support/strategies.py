"""Hypothesis strategies for recordings of every shape a tracker can produce."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from gazeveil import Recording, Screen, Sphere
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import increasing

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@st.composite
def recordings(
    draw: st.DrawFn, min_samples: int = 0, max_samples: int = 200, space: Space | None = None
) -> Recording:
    """Gaze that drifts, jumps, wraps, stops and loses track, at any usual rate."""
    spaces: list[Space] = [Sphere(), SCREEN]
    where = space if space is not None else draw(st.sampled_from(spaces))
    n = draw(st.integers(min_samples, max_samples))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rate = draw(st.sampled_from([30.0, 60.0, 120.0, 250.0, 1000.0]))
    steps = rng.normal(0, draw(st.sampled_from([0.0, 0.05, 1.0])), (n, 2)) + (
        rng.random((n, 1)) < 0.05
    ) * rng.normal(0, 20, (n, 2))
    path = np.cumsum(steps, axis=0) if n else steps
    if isinstance(where, Sphere):
        x, y = np.mod(path[:, 0] + rng.uniform(0, 360), 360.0), np.clip(path[:, 1] + 90, 0, 179.9)
    else:
        x, y = np.clip(path[:, 0], -60, 60), np.clip(path[:, 1], -60, 60)
    x[x >= 360] = 0.0
    jitter = rng.integers(-100_000, 100_000, n) if draw(st.booleans()) else 0
    t = (np.arange(n) * 1e9 / rate).astype(np.int64) + jitter
    lost = rng.random(n) < draw(st.sampled_from([0.0, 0.02, 0.3, 1.0]))
    x[lost], y[lost] = np.nan, np.nan
    return Recording("p", "s", t, x, y, increasing(t, ~lost), space=where, rate_hz=rate)
