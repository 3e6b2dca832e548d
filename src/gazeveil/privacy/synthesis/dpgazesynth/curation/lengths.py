"""From noisy fixation times to whole numbers of samples that add up to W: free of charge, since
nothing but the noisy times is looked at (Ren et al. 2024, 4.3).
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints


def rounded(values: Floats, totals: Ints) -> Ints:
    """Whole numbers near the values of each row that add up to the row's total: all rounded down,
    then one more for the largest remainders.

    Parameters
    ----------
    values : array of float64, shape (rows, n)
        At least 0; each row adds up to its total, but for rounding.
    totals : array of int64, shape (rows,)
        Whole totals.
    """
    down = np.floor(values)
    # Rounding may have left a row a little short or long of its total, so that one more or one less
    # must be given than there are remainders.
    missing = (totals - down.sum(axis=1)).astype(np.int64)
    order = np.argsort(down - values, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(values.shape[1]), order.shape), axis=1)
    return down.astype(np.int64) + (rank < missing[:, None])


def stretched(noisy: Floats, samples: int) -> Ints:
    """Run lengths from vectors of c noisy ones (`corrected`): at least 1 in the first m places, 0
    in the others, adding up to W.

    How many runs there are is told from the noisy vector alone: as many as are above 0, or the
    largest one. What is left of W after one sample each is shared in proportion to the noisy
    lengths.

    Parameters
    ----------
    noisy : array of float64, shape (windows, c)
        Noisy lengths.
    samples : int
        W.

    Returns
    -------
    array of int64, shape (windows, c)
    """
    rank = np.argsort(np.argsort(-noisy, axis=1, kind="stable"), axis=1, kind="stable")
    # more runs than samples cannot be
    active = ((noisy > 0) | (rank == 0)) & (rank < samples)
    kept = np.where(active, np.maximum(noisy, 1.0), 0.0)
    rest = samples - active.sum(axis=1)
    whole = rounded(kept * (rest / kept.sum(axis=1))[:, None], rest) + active
    # active runs first, in their order
    order = np.argsort(~active, axis=1, kind="stable")
    return np.take_along_axis(whole, order, axis=1)


def rescaled(noisy: Floats, counts: Ints, samples: int) -> Ints:
    """Run lengths from noisy ones as Ren et al. 2024 has it (`published`): negative ones become 0,
    the rest is stretched to W and rounded; runs of 0 stay.

    Parameters
    ----------
    noisy : array of float64, shape (windows, most)
        Noisy lengths; entries from `counts` on are not looked at.
    counts : array of int64, shape (windows,)
        Runs of each window.
    samples : int
        W. Where nothing is above 0 all runs get the same.
    """
    there = np.arange(noisy.shape[1]) < counts[:, None]
    kept = np.where(there, np.maximum(noisy, 0.0), 0.0)
    kept = np.where((kept.sum(axis=1) > 0)[:, None], kept, there.astype(np.float64))
    return rounded(
        kept * (samples / kept.sum(axis=1))[:, None], np.full(len(noisy), samples, dtype=np.int64)
    )
