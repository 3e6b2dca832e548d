"""How a person moves, estimated from noisy readings: how far and in which direction from slot to
slot, and how far and in which direction from the middle of the crowd.

Both are histograms over (length, direction). A donor's are compared with those of everybody: the
logarithm of the ratio, with `PRIOR` counts of everybody's law added to the donor's, so that few
counts say little. Compared with the law of the viewer whose path is drawn, a path would
avoid the viewer's own habits in every release, which is a habit too: with a large weight more
people were found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.privacy.synthesis.style.readings import Shown, StimulusReadings

#: Lengths of steps in degrees from which on the next bin counts.
EDGES_DEG = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])
DIRECTIONS = 8
BINS = (len(EDGES_DEG) + 1) * DIRECTIONS

#: Counts of the crowd's law that are added to a person's.
PRIOR = 40.0


@compiled
def arc_deg(a: Floats, b: Floats, sphere: bool) -> float:
    """The distance of two places in degrees."""
    square = (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
    if not sphere:
        return math.sqrt(square)
    return math.degrees(2.0 * math.asin(min(1.0, 0.5 * math.sqrt(square))))


@compiled
def bin_of(a: Floats, b: Floats, sphere: bool, edges: Floats, directions: int) -> int:
    """The bin of the step from a to b."""
    if sphere:
        # along the parallel and the meridian through a
        flat = max(math.hypot(a[0], a[2]), 1e-9)
        right = (a[2] * b[0] - a[0] * b[2]) / flat
        up = b[1] * flat - a[1] * (a[0] * b[0] + a[2] * b[2]) / flat
        down = -up
    else:
        right, down = b[0] - a[0], b[1] - a[1]
    length = np.searchsorted(edges, arc_deg(a, b, sphere), side="right")
    turn = math.atan2(down, right) / (2.0 * math.pi) + 1.0 + 0.5 / directions
    return int(length) * directions + int(turn * directions) % directions


@compiled
def _count(
    path: Floats, middle: Floats, sphere: bool, edges: Floats, directions: int, counts: Floats
) -> None:
    for j in range(len(path)):
        if np.isnan(path[j, 0]):
            continue
        if not np.isnan(middle[j, 0]):
            counts[1, bin_of(middle[j], path[j], sphere, edges, directions)] += 1.0
        if j > 0 and not np.isnan(path[j - 1, 0]):
            counts[0, bin_of(path[j - 1], path[j], sphere, edges, directions)] += 1.0


def movements(crowds: Mapping[Shown, StimulusReadings], people: Iterable[str]) -> dict[str, Floats]:
    """Counts of every person's steps and distances from the middle, shape (2, BINS)."""
    counts = {person: np.zeros((2, BINS)) for person in people}
    for crowd in crowds.values():
        middle = crowd.middle
        for i, key in enumerate(crowd.keys):
            _count(crowd.places[i], middle, crowd.sphere, EDGES_DEG, DIRECTIONS, counts[key[0]])
    return counts


def log_ratios(donor: Floats, everybody: Floats) -> Floats:
    """Logarithms of a donor's laws over everybody's, from counts; shape (2, BINS)."""
    law = (everybody + 1.0) / (everybody + 1.0).sum(axis=1, keepdims=True)
    own = (donor + PRIOR * law) / (donor.sum(axis=1, keepdims=True) + PRIOR)
    return np.asarray(np.log(own / law))
