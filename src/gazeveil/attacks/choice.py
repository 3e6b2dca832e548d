"""Choosing the strongest of several attackers without looking at what it is judged by.

The largest of several rates on the same people and splits is an upper envelope: chance adds to it.
Here the attacker of each repetition is chosen on the other repetitions alone, so that the luck of
its split and of its noise has no part in the choice. The people are the same in all repetitions:
what these people have in common stays.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.columns import column_means


def chosen_on_others(credit: Floats) -> Floats:
    """The credit of whoever is the strongest on all other repetitions, repetition by repetition.

    Parameters
    ----------
    credit : array of float64, shape (attackers, repetitions, people)
        Credit of each person (:meth:`gazeveil.attacks.base.Scores.credit`); NaN where the attacker
        was not asked.

    Returns
    -------
    array of float64, shape (repetitions, people)
        Of attackers that tie the first. NaN in a repetition without an attacker that was asked both
        there and elsewhere; so all of it where there is one repetition.

    Examples
    --------
    The second attacker finds everybody in the last repetition alone, and is not chosen for it.

    >>> chosen_on_others(np.array([[[1.0, 0], [1, 0], [1, 0]], [[0.0, 0], [0, 0], [1, 1]]]))[2]
    array([1., 0.])
    """
    own = np.asarray(credit, dtype=np.float64)
    if own.ndim != 3:
        raise DataError(f"Credit needs attackers, repetitions and people. Got shape {own.shape}.")
    rates = column_means(np.moveaxis(own, 2, 0))
    chosen = np.full(own.shape[1:], np.nan)
    for here in range(own.shape[1]):
        others = column_means(np.delete(rates, here, axis=1).T)
        able = np.isfinite(others) & np.isfinite(rates[:, here])
        if able.any():
            chosen[here] = own[int(np.argmax(np.where(able, others, -np.inf))), here]
    return chosen
