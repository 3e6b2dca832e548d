"""Standardising features with what is known from training rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Bools, Floats


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and scale of each feature of training rows.

    Parameters
    ----------
    mean, scale : array of float64, shape (features,)
        The scale is the standard deviation (ddof 0), and 1 for a feature that does not vary.
    varies : array of bool, shape (features,)
        Which features vary by more than rounding does.
    """

    mean: Floats
    scale: Floats
    varies: Bools

    @classmethod
    def fit(cls, values: Floats) -> Scaler:
        """Statistics of rows, each feature over the rows where it is known (not NaN); one that is
        never known has mean 0.
        """
        present = ~np.isnan(values)
        n = np.maximum(present.sum(axis=0), 1)
        # Divided first and scaled by the largest: sums and squares of very large values would
        # overflow.
        # In one array: of a thousand people every copy of their events is some 60 MB.
        apart = np.where(present, values, 0.0)
        apart /= n
        mean: Floats = apart.sum(axis=0)
        np.subtract(values, mean, out=apart)
        apart[~present] = 0.0
        largest = np.maximum(apart.max(axis=0, initial=0.0), -apart.min(axis=0, initial=0.0))
        unit = np.where(largest > 0.0, largest, 1.0)
        apart /= unit
        scale = unit * np.sqrt(np.square(apart, out=apart).sum(axis=0) / n)
        # Rounding leaves a constant feature with a tiny deviation, and dividing by it would blow
        # other people's values up.
        varies = scale > 1e-12 * np.abs(mean)
        return cls(mean, np.where(varies, scale, 1.0), varies)

    def apply(self, values: Floats) -> Floats:
        """The rows in units of the training rows; what is missing (NaN) counts as the training
        mean.
        """
        z = values - self.mean
        z /= self.scale
        z[np.isnan(z)] = 0.0
        return z
