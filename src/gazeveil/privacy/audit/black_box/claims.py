"""What a release claims for a change, where some thousand releases can show it false."""

from __future__ import annotations

from fractions import Fraction

from gazeveil.privacy.audit.games import DELTA
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import PromiseError


def claim_of(
    guarantee: Guarantee, change: Change, most_epsilon: float = 5.0
) -> tuple[float, float] | None:
    """Epsilon and delta that a promise bounds a change by; None where it has no bound, or one above
    the most that releases could show.
    """
    try:
        loss = guarantee.map(change)
        delta = Fraction(0) if loss.measure == "pure" else max(DELTA, loss.delta)
        epsilon = float(loss.epsilon_at(delta))
    except PromiseError:
        return None
    return (epsilon, float(delta + loss.delta_num)) if epsilon <= most_epsilon else None
