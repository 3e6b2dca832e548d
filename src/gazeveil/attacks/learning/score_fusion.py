"""Sums of several scores, weighed by how well each knows people of the gallery from stimuli that
were held out.

The weights maximise the probability that a softmax of the sum gives to the right person, over the
held-out decisions, with a penalty that keeps weights near one another where there is little to
learn from. Nothing of the probe enters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.denoiser import standardised_scores

#: Strength of the pull towards equal weights, in held-out decisions.
_PULL = 0.5


def fusion_weights(held_out: Sequence[Floats], own: Ints) -> Floats:
    """Weights of several scores, at least 0.

    Parameters
    ----------
    held_out : sequence of arrays of float64, shape (decisions, people)
        Standardised scores of each kind for the same decisions.
    own : array of int64, shape (decisions,)
        The right person of each.

    Returns
    -------
    array of float64, shape (kinds,)
        Equal weights where there are no decisions.
    """
    from scipy.optimize import minimize

    kinds = len(held_out)
    if kinds < 2 or len(own) == 0:
        return np.ones(kinds)
    stack = np.stack(held_out)
    rows = np.arange(len(own))

    def loss(weights: Floats) -> tuple[float, Floats]:
        total = np.tensordot(weights, stack, axes=1)
        total -= total.max(axis=1, keepdims=True)
        odds = np.exp(total)
        whole = odds.sum(axis=1)
        value = float((np.log(whole) - total[rows, own]).sum())
        excess = odds / whole[:, None]
        excess[rows, own] -= 1.0
        slope = np.tensordot(stack, excess, axes=([1, 2], [0, 1]))
        centred = weights - weights.mean()
        return value + _PULL * float(centred @ centred), slope + 2 * _PULL * centred

    found = minimize(
        loss, np.full(kinds, 1.0 / kinds), jac=True, method="L-BFGS-B", bounds=[(0.0, 20.0)] * kinds
    )
    weights: Floats = np.asarray(found.x, dtype=np.float64)
    return weights if weights.sum() > 0 else np.ones(kinds)


def fused(parts: Sequence[Floats], weights: Floats) -> Floats:
    """The weighed sum of standardised scores."""
    total = np.zeros_like(parts[0])
    for weight, part in zip(weights, parts, strict=True):
        total += weight * standardised_scores(part)
    return total
