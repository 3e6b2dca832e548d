"""Noisy beginnings of windows: planar Laplace noise on a public lattice, so that places r apart
cannot be told from each other by more than epsilon1.

On a screen the noise is that of :mod:`gazeveil.privacy.noise.planar` in the plane of the two
angles; places beside the screen are first brought to its edge, which carries no two places farther
apart. On a sphere it is an arc with density proportional to exp(-arc / scale) by area
(:mod:`gazeveil.privacy.noise.spherical`, proofs/kaleido.md), so that r is an arc everywhere, at the
poles too.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout

#: Noisy places beyond this many steps are brought back to it: they fit in 32 bits.
MOST_STEPS = (1 << 31) - 1


def noisy_starts(plan: WindowLayout, x_deg: Floats, y_deg: Floats, source: Source) -> Ints:
    """Noisy places in steps of the lattice, shape (windows, 2)."""
    if len(x_deg) == 0:
        return np.empty((0, 2), dtype=np.int64)
    steps = 2.0**plan.step_bits
    if plan.sphere:
        x, y, valid = x_deg[None].copy(), y_deg[None].copy(), np.ones((1, len(x_deg)), dtype=bool)
        LatticeLaw(plan.grid.space, plan.r_deg, plan.starts).sampler([source]).add(x, y, valid)
        return np.column_stack([np.rint(v[0] * steps).astype(np.int64) for v in (x, y)])
    space = plan.grid.space
    assert isinstance(space, Screen)
    # Bringing a place to the nearest one of a rectangle never increases a distance.
    inside = [
        np.clip(v, -side / 2, side / 2)
        for v, side in ((x_deg, space.width_deg), (y_deg, space.height_deg))
    ]
    there = np.column_stack([np.rint(v * steps).astype(np.int64) for v in inside])
    return np.clip(
        there + planar_laplace(plan.start_scale, len(there), Words(source)), -MOST_STEPS, MOST_STEPS
    )


def degrees(plan: WindowLayout, steps: Ints) -> tuple[Floats, Floats]:
    """Noisy places in degrees."""
    places = steps.astype(np.float64) * 2.0**-plan.step_bits
    return places[:, 0], places[:, 1]
