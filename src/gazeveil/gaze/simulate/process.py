"""Processes that a loop over samples carries on from one time to the next."""

from __future__ import annotations

import math

from gazeveil.compiled import compiled


@compiled
def ornstein_uhlenbeck(dt_s: float, constant_s: float, deviation: float) -> tuple[float, float]:
    """The share of an Ornstein-Uhlenbeck process that is left after `dt_s`, and the deviation of
    what comes new.
    """
    kept = math.exp(-dt_s / constant_s)
    return kept, deviation * math.sqrt(1.0 - kept * kept)
