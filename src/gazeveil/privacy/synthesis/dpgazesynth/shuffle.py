"""Amplification by shuffling: the loss of reports if a shuffler between devices and curator removes
names and order.

Feldman, McMillan and Talwar, "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of
Privacy Amplification by Shuffling" (2021), Theorem 3.1: n reports of which each is epsilon0-locally
private are, once shuffled, (epsilon, delta)-private with

    epsilon = ln(1 + (e^epsilon0 - 1) / (e^epsilon0 + 1) (8 sqrt(e^epsilon0 ln(4 / delta)) / sqrt(n)
    + 8 e^epsilon0 / n)),

for epsilon0 <= ln(n / (16 ln(2 / delta))). It assumes that the shuffler is honest, that who looks
sees the shuffled reports alone, and that all n devices report as they should.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from gazeveil.privacy.promise.loss import Loss, raised
from gazeveil.privacy.rational import format_exact

#: Delta of the number that guarantees print.
DELTA = Fraction(1, 10**6)


def shuffled_epsilon(epsilon: Fraction, reports: int, delta: Fraction = DELTA) -> Fraction | None:
    """Epsilon of shuffled reports at that delta, rounded up; None where the theorem does not apply
    or does not help.

    Examples
    --------
    >>> round(float(shuffled_epsilon(Fraction(2, 5), 100_000)), 4)
    0.0235
    >>> shuffled_epsilon(Fraction(2, 5), 100) is None
    True
    """
    e0, d = float(epsilon), float(delta)
    if reports < 2 or not 0 < d < 1 or e0 > math.log(reports / (16 * math.log(2 / d))):
        return None
    grown = math.exp(e0)
    loss = math.log1p(
        (grown - 1)
        / (grown + 1)
        * (8 * math.sqrt(grown * math.log(4 / d) / reports) + 8 * grown / reports)
    )
    amplified = raised(loss)
    return amplified if amplified < epsilon else None


def shuffled(epsilon: Fraction, windows: Sequence[int]) -> tuple[tuple[str, Loss], ...]:
    """What is left of the answers of a window if those of all windows are shuffled, with the
    condition in words; empty where the theorem does not apply.

    Windows with an even and with an odd number answer different questions, so a window hides only
    among those of its own kind.

    Parameters
    ----------
    epsilon : Fraction
        Of the answers of one window.
    windows : sequence of int
        Windows of each recording.
    """
    alike = min(sum((n + 1) // 2 for n in windows), sum(n // 2 for n in windows))
    mixed = shuffled_epsilon(epsilon, alike)
    if mixed is None:
        return ()
    condition = (
        f"the answers of one window, which are {format_exact(epsilon)} of its epsilon, if an honest"
        f" shuffler mixes those of all {sum(windows)} windows, at least {alike} of which answer the"
        " same questions, before anybody sees them"
    )
    return ((condition, Loss.approximate(mixed, DELTA)),)
