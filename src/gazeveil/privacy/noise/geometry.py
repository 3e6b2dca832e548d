"""Noise with a shape in space: lattice planar Laplace for points, l2 K-norm for vectors.

Each sampler has a companion that bounds what finite arithmetic costs, as `delta_num` per draw.
"""

from __future__ import annotations

from gazeveil.privacy.noise.knorm import knorm, knorm_delta
from gazeveil.privacy.noise.planar import planar_delta, planar_laplace

__all__ = ["knorm", "knorm_delta", "planar_delta", "planar_laplace"]
