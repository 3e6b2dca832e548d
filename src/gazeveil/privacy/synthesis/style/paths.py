"""The likeliest path near a person's readings that moves as the donor moves.

In each slot the path is at one of the `NEAREST` readings of the crowd that lie nearest to the own
one, the own one among them. A place that lies d degrees from the own reading costs d / `UNIT_DEG`;
a step, and a distance from the crowd's middle, earn `weight` times the logarithm of how much more
often the donor makes them. The path of least cost is found by dynamic programming (Viterbi 1967).
With weight 0 it is the own readings.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.privacy.synthesis.style.movement import DIRECTIONS, EDGES_DEG, arc_deg, bin_of
from gazeveil.privacy.synthesis.style.readings import StimulusReadings

#: How many readings of a slot a path may choose from.
NEAREST = 24

#: A place so far from the own reading costs as much as a step that the donor makes e times as often
#: earns with weight 1.
UNIT_DEG = 1.0


def path_of(crowd: StimulusReadings, viewer: int, ratios: Floats, weight: float) -> Floats:
    """The path of one viewer, shape (slots, 3); NaN in slots in which nobody has a reading.

    Parameters
    ----------
    crowd : StimulusReadings
        Everybody's readings of this stimulus.
    viewer : int
        Row of the viewer.
    ratios : array, shape (2, BINS)
        See :func:`gazeveil.privacy.synthesis.style.movement.log_ratios`.
    weight : float
        How much they count.
    """
    if weight == 0:
        return crowd.places[viewer].copy()
    return _cheapest(
        crowd.places,
        viewer,
        crowd.middle,
        crowd.sphere,
        weight * ratios,
        EDGES_DEG,
        DIRECTIONS,
        min(NEAREST, len(crowd.keys)),
        UNIT_DEG,
    )


@compiled
def _cheapest(
    places: Floats,
    viewer: int,
    middle: Floats,
    sphere: bool,
    gains: Floats,
    edges: Floats,
    directions: int,
    nearest: int,
    unit_deg: float,
) -> Floats:
    viewers, slots = places.shape[0], places.shape[1]
    out = np.full((slots, 3), np.nan)
    choice = np.zeros((slots, nearest), dtype=np.int64)
    before = np.zeros((slots, nearest), dtype=np.int64)
    cost, fresh = np.zeros(nearest), np.zeros(nearest)
    away = np.zeros(viewers)
    for j in range(slots):
        if np.isnan(places[viewer, j, 0]):
            before[j] = np.arange(nearest)
            continue
        for c in range(viewers):
            away[c] = arc_deg(places[c, j], places[viewer, j], sphere)
        away[viewer] = -1.0
        choice[j] = np.argsort(away)[:nearest]
        away[viewer] = 0.0
        seen_before = j > 0 and not np.isnan(places[viewer, j - 1, 0])
        for c in range(nearest):
            here = places[choice[j, c], j]
            own = away[choice[j, c]] / unit_deg
            if not np.isnan(middle[j, 0]):
                own -= gains[1, bin_of(middle[j], here, sphere, edges, directions)]
            if seen_before:
                best = np.inf
                for b in range(nearest):
                    there = places[choice[j - 1, b], j - 1]
                    way = cost[b] - gains[0, bin_of(there, here, sphere, edges, directions)]
                    if way < best:
                        best, before[j, c] = way, b
            else:
                best, before[j, c] = cost.min(), np.argmin(cost)
            fresh[c] = best + own
        cost[:] = fresh
    last = np.argmin(cost)
    for j in range(slots - 1, -1, -1):
        if not np.isnan(places[viewer, j, 0]):
            out[j] = places[choice[j, last], j]
        last = before[j, last]
    return out
