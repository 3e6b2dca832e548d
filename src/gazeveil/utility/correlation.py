"""Correlation curves of Bozkir et al. 2021 (Figs 3 to 6): how much a feature at one step says about
the same feature later, over participants.

The correlation coefficient, over the people who read one document, between a feature at the fifth
window and at each later one; of the signals as they are, and of their differences from step to step
(d_1 = x_1, d_t = x_t - x_(t-1)), which DCFPA adds its noise to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable


@dataclass(frozen=True, eq=False)
class Curves:
    """Correlation curves.

    Parameters
    ----------
    stimuli, columns : tuple of str
        What the first two axes are.
    steps : array of int64, shape (steps,)
        Time steps, counted from 1 as in the paper.
    values : array of float64, shape (stimuli, features, steps)
        Correlation with the reference step; NaN where fewer than three people have both, or one
        side does not vary.
    people : array of int64, shape (stimuli, steps)
        Recordings that reach the step.
    """

    stimuli: tuple[str, ...]
    columns: tuple[str, ...]
    steps: Ints
    values: Floats
    people: Ints


def correlation_curves(
    table: FeatureTable, reference: int = 5, last: int = 200, difference: bool = False
) -> Curves:
    """Correlation over participants between a feature at one step and at the later ones.

    Parameters
    ----------
    table : FeatureTable
        Windows in order of time; each recording of a stimulus is one participant's signal.
    reference : int
        The step to compare with, from 1.
    last : int
        The last step, above the reference; steps nobody reaches are NaN.
    difference : bool
        Of the differences from step to step instead of the signals.

    Raises
    ------
    DataError
        For a table without rows.

    Examples
    --------
    >>> from gazeveil.features.table import Keys
    >>> who = np.repeat(["a", "b", "c", "d"], 3)
    >>> keys = Keys(who, ["text"] * 12, ["1"] * 12, [""] * 12, np.tile([0, 1, 2], 4))
    >>> level = np.repeat([1.0, 2.0, 3.0, 4.0], 3)
    >>> table = FeatureTable((level * np.tile([1, 2, -1], 4))[:, None], ("f",), keys)
    >>> curves = correlation_curves(table, reference=1, last=3)
    >>> curves.steps.tolist(), curves.values.round(6).tolist()
    ([2, 3], [[[1.0, -1.0]]])
    """
    reference = checks.count("correlation_curves", "reference", reference)
    last = checks.count("correlation_curves", "last", last, least=reference + 1)
    if len(table) == 0:
        raise DataError("correlation_curves needs a table with rows. Got an empty one.")
    recordings = table.recordings()
    stimuli = tuple(dict.fromkeys(key[1] for key in recordings))
    steps = np.arange(reference + 1, last + 1)
    values = np.full((len(stimuli), len(table.columns), len(steps)), np.nan)
    people = np.zeros((len(stimuli), len(steps)), dtype=np.int64)
    for s, stimulus in enumerate(stimuli):
        viewings = [rows for key, rows in recordings.items() if key[1] == stimulus]
        signals = np.full((len(viewings), last, len(table.columns)), np.nan)
        for i, rows in enumerate(viewings):
            place = table.keys.index[rows]
            signals[i, place[place < last]] = table.values[rows[place < last]]
        if difference:
            signals[:, 1:] = np.diff(signals, axis=1)
        later = signals[:, reference:]
        values[s] = _correlation(signals[:, reference - 1][:, None], later).T
        people[s] = (~np.isnan(later).all(axis=2)).sum(axis=0)
    return Curves(stimuli, table.columns, steps, values, people)


def _correlation(x: Floats, y: Floats) -> Floats:
    """Pearson correlation over the first axis of what both have; shapes broadcast."""
    both = ~(np.isnan(x) | np.isnan(y))
    n = both.sum(axis=0)
    least = np.maximum(n, 1)
    centred = []
    for v in (np.broadcast_to(x, both.shape), np.broadcast_to(y, both.shape)):
        mean = np.where(both, v, 0.0).sum(axis=0) / least
        centred.append(np.where(both, v - mean, 0.0))
    squares = [(c**2).sum(axis=0) for c in centred]
    # Rounding leaves equal values with tiny squares, and their ratio would be a correlation of
    # rounding errors.
    sizes = [(np.where(both, np.broadcast_to(v, both.shape), 0.0) ** 2).sum(axis=0) for v in (x, y)]
    varies = (squares[0] > 1e-24 * sizes[0]) & (squares[1] > 1e-24 * sizes[1]) & (n >= 3)
    scale = np.sqrt(squares[0] * squares[1])
    correlation: Floats = np.where(
        varies, (centred[0] * centred[1]).sum(axis=0) / np.where(varies, scale, 1.0), np.nan
    )
    return np.clip(correlation, -1.0, 1.0)
