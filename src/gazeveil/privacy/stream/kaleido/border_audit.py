"""The game against an r that depends on where gaze is: two places a hair apart, on either side of
a region's edge.

The first sample of a stream is published with scale b = r / epsilon_1, epsilon_1 half of what a
window has for publications. With r_1 < r_2 on the two sides, a point that comes out at distance d
has the log likelihood ratio

    2 ln(b_2 / b_1) - d (1 / b_1 - 1 / b_2),

although the two places differ by next to nothing. At d = 0 that is 2 ln(r_2 / r_1), however small
epsilon is. As d grows it has no bound in a plane; the procedure stops at angles of 90 degrees, so
the exact loss here is that of the farthest point that can come out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.randomness.rng import Source, source
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.kaleido.regions import StimulusRegions

if TYPE_CHECKING:
    from gazeveil.privacy.stream.kaleido.mechanism import Kaleido

_RATE_HZ = 100.0
_HAIR_DEG = 1e-6
_EDGE_DEG = 90.0  # beyond it there is no screen, and the procedure stops


class _OneSource(Bits):
    """Hands one source to all streams of a stage."""

    def __init__(self, bits: Source) -> None:
        super().__init__()
        self.bits = bits

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        return [self.bits]


def border_loss(r_near_deg: float, r_far_deg: float, epsilon: float, distance_deg: float) -> float:
    """The log likelihood ratio of a point that comes out so far away, of a publication with budget
    epsilon.

    Examples
    --------
    >>> [round(border_loss(1, 5, 0.25, d), 2) for d in (0, 10, 50, 100)]
    [3.22, 1.22, -6.78, -16.78]
    """
    near, far = r_near_deg / epsilon, r_far_deg / epsilon
    return 2 * math.log(far / near) - distance_deg * (1 / near - 1 / far)


def crossing(regions: StimulusRegions) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Two places a hair apart with the most different radii: across the edges of regions; None
    where all have the same.
    """
    boxes = regions.boxes
    middle = (boxes.top_deg + boxes.bottom_deg) / 2
    across = (boxes.left_deg + boxes.right_deg) / 2
    pairs = [
        *((x, y, _HAIR_DEG, 0.0) for x, y in zip(boxes.left_deg, middle, strict=True)),
        *((x, y, _HAIR_DEG, 0.0) for x, y in zip(boxes.right_deg, middle, strict=True)),
        *((x, y, 0.0, _HAIR_DEG) for x, y in zip(across, boxes.top_deg, strict=True)),
        *((x, y, 0.0, _HAIR_DEG) for x, y in zip(across, boxes.bottom_deg, strict=True)),
    ]
    best, found = 1.0, None
    for x, y, dx, dy in pairs:
        sides = (float(x - dx), float(y - dy)), (float(x + dx), float(y + dy))
        r = [float(regions.radii_deg(np.array([a]), np.array([b]))[0]) for a, b in sides]
        if max(r) / min(r) > best:
            best, found = max(r) / min(r), sides if r[0] < r[1] else (sides[1], sides[0])
    return found


def border(mechanism: Kaleido, screen: Screen) -> Game:
    """Gaze on one side of an edge, and on the other; what is seen is how far away the first
    published point lies.
    """
    regions = mechanism.regions_of(screen)
    assert regions is not None
    places = crossing(regions)
    if places is None:
        description = "All regions have one radius, so it tells nothing; the other faults stay."
        return Game("window", float(Fraction(mechanism.epsilon)), description, None, None)
    r = [float(regions.radii_deg(np.array([x]), np.array([y]))[0]) for x, y in places]

    def play(side: int, trials: int, seed: int | None) -> Floats:
        x, y = places[side]
        stage = mechanism.stage(_RATE_HZ, screen, trials, _OneSource(source(seed, "audit")))
        shape = np.ones((trials, 1))
        times = np.zeros((trials, 1), dtype=np.int64)
        _, seen_x, seen_y, _ = stage.run(times, x * shape, y * shape, shape.astype(np.bool_))
        return np.hypot(seen_x - x, seen_y - y)

    epsilon = Fraction(mechanism.epsilon)
    publish = float((epsilon - epsilon / Fraction(mechanism.h)) / 2)
    x, y = places[0]
    farthest = math.hypot(_EDGE_DEG + abs(x), _EDGE_DEG + abs(y))
    return Game(
        "window",
        float(epsilon),
        (
            f"Two places {2 * _HAIR_DEG:g} degrees apart, on either side of a region's edge: r ="
            f" {r[0]:g} and {r[1]:g} degrees. The farther the first point comes out, the surer it"
            " is the second."
        ),
        play,
        max(abs(border_loss(r[0], r[1], publish, d)) for d in (0.0, farthest)),
    )
