"""Generators of saccades' speed profiles given how far and how long they go: probabilistic PCA in
closed form, and per-person histograms (David-John et al. 2023).

A generator knows a saccade by a few *latent* numbers. `encode` gives their normal law for a
profile, `decode` a profile for latent numbers and *conditions*: amplitude, duration and, where the
model has one, identity. The C-VAE of David-John et al. 2023 (:mod:`gazeveil.models.cvae`) is one
such generator. Its decoder is linear, so the best it can do is probabilistic PCA (Tipping and
Bishop 1999), which needs no training loop:

    x = B f + W z + noise,   z ~ N(0, I),   noise ~ N(0, s**2 I),

x the shape of the profile, that is its speeds over their mean, f = (1, ln amplitude, ln duration)
around public middles. B is least squares of x on f; the columns of W are the largest eigenvectors
of the covariance of the residuals times sqrt(eigenvalue - s**2), and s**2 is the mean of the other
eigenvalues. Everything comes from one matrix of second moments, people weighing the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.synthesis.profiles import POINTS

if TYPE_CHECKING:
    pass

#: Latent numbers of the closed-form generator.
LATENT = 4

#: Speeds beyond this are no eye's: they count as this much. Also the range of David-John et al.'s
#: (2023) 50 bins.
MOST_DEG_S, BINS = 1000.0, 50

#: Amplitude and duration in the middle of the features, and the least ones told apart.
MIDDLE_DEG, MIDDLE_S, LEAST_DEG, LEAST_S = 5.0, 0.05, 0.1, 1e-3


_FEATURES = 3


class Generator(Protocol):
    """Gives profiles of saccades from latent numbers."""

    @property
    def latent(self) -> int:
        """How many latent numbers."""
        ...

    def encode(
        self, profiles: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> tuple[Floats, Floats]:
        """Means and standard deviations of the latent numbers, each of shape (saccades, latent)."""
        ...

    def decode(
        self, latent: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> Floats:
        """Profiles in deg/s, shape (saccades, 30)."""
        ...


def amplitudes_deg(profiles: Floats, duration_s: Floats) -> Floats:
    """How far saccades go along their way: the mean of the speeds
    (trapezoids) times the duration.
    """
    return np.asarray(np.trapezoid(profiles, axis=1) / (POINTS - 1) * duration_s, dtype=np.float64)


def conditions(profiles: Floats, duration_s: Floats) -> tuple[Floats, Floats]:
    """Amplitudes in degrees and durations in seconds of saccades, both at least the least ones told
    apart; speeds that are no eye's count as 1000 deg/s.
    """
    return np.maximum(
        amplitudes_deg(np.minimum(profiles, MOST_DEG_S), duration_s), LEAST_DEG
    ), np.maximum(duration_s, LEAST_S)


def features(amplitude_deg: Floats, duration_s: Floats) -> Floats:
    """What the mean shape depends on, shape (saccades, 3): 1 and the halved logarithms of amplitude
    and duration around public middles.
    """
    amplitude = np.log(np.maximum(amplitude_deg, LEAST_DEG) / MIDDLE_DEG)
    duration = np.log(np.maximum(duration_s, LEAST_S) / MIDDLE_S)
    return np.column_stack((np.ones(len(amplitude)), amplitude / 2, duration / 2))


def shapes(profiles: Floats) -> Floats:
    """Speeds over their mean (trapezoids), shape as given; a profile that never moves is even."""
    speeds = np.clip(profiles, 0.0, MOST_DEG_S)
    mean = np.asarray(np.trapezoid(speeds, axis=1), dtype=np.float64)[:, None] / (POINTS - 1)
    return np.where(mean > 0, speeds / np.where(mean > 0, mean, 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class PPCA:
    """Probabilistic PCA of shapes around a mean that depends on amplitude and duration.

    Parameters
    ----------
    mean : array, shape (3, 30)
        B of the module's formula, transposed.
    loading : array, shape (30, latent)
        W, columns orthogonal.
    noise : float
        s, above 0.
    """

    mean: Floats = field(repr=False)
    loading: Floats = field(repr=False)
    noise: float

    @property
    def latent(self) -> int:
        """How many latent numbers."""
        return int(self.loading.shape[1])

    @property
    def spread(self) -> Floats:
        """Standard deviation of each latent number given a profile, s / sqrt(w'w + s**2): the same
        for all saccades.
        """
        return np.asarray(
            self.noise / np.sqrt((self.loading**2).sum(axis=0) + self.noise**2), dtype=np.float64
        )

    def encode(
        self, profiles: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> tuple[Floats, Floats]:
        """See :class:`Generator`; there is no identity in this model."""
        rest = shapes(profiles) - features(amplitude_deg, duration_s) @ self.mean
        centre = rest @ self.loading / ((self.loading**2).sum(axis=0) + self.noise**2)
        return centre, np.broadcast_to(self.spread, centre.shape).copy()

    def decode(
        self, latent: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> Floats:
        """See :class:`Generator`; where the model would go backwards it stands still."""
        shape = np.maximum(
            features(amplitude_deg, duration_s) @ self.mean + latent @ self.loading.T, 0.0
        )
        return np.asarray(
            shape * (amplitude_deg / np.maximum(duration_s, LEAST_S))[:, None], dtype=np.float64
        )


def moments(profiles: Floats, amplitude_deg: Floats, duration_s: Floats, starts: Ints) -> Floats:
    """Second moments of (shape / sqrt(30), features), averaged over each person's saccades and
    summed over people, shape (33, 33).

    Parameters
    ----------
    profiles : array, shape (saccades, 30)
        In deg/s, the saccades of one person after those of another.
    amplitude_deg, duration_s : arrays, shape (saccades,)
        Of each saccade.
    starts : array of int64, shape (people + 1,)
        Where each person's saccades begin, and the end; a person without any adds nothing.
    """
    rows = np.column_stack(
        (shapes(profiles) / math.sqrt(POINTS), features(amplitude_deg, duration_s))
    )
    total = np.zeros((POINTS + _FEATURES,) * 2)
    for first, last in pairwise(starts):
        if last > first:
            total += rows[first:last].T @ rows[first:last] / (last - first)
    return total


def fitted(second: Floats, latent: int = LATENT) -> PPCA:
    """The model of a matrix of second moments; directions that noise left without variance get a
    little.

    Raises
    ------
    ParameterError
        For a number of latent numbers that is not between 1 and 29.
    """
    if not 1 <= checks.count("fitted", "latent", latent) < POINTS:
        checks.refuse("fitted", "latent", f"between 1 and {POINTS - 1}", latent)
    values, vectors = np.linalg.eigh(second / max(float(second[POINTS, POINTS]), 1.0))
    second = (vectors * np.maximum(values, 1e-9)) @ vectors.T
    inside, across = second[POINTS:, POINTS:], second[POINTS:, :POINTS] * math.sqrt(POINTS)
    mean = np.linalg.solve(inside + 1e-6 * np.eye(_FEATURES), across)
    covariance = (
        second[:POINTS, :POINTS] * POINTS
        - across.T @ mean
        - mean.T @ across
        + mean.T @ inside @ mean
    )
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    values, vectors = np.maximum(values[::-1], 1e-6), vectors[:, ::-1]
    noise = math.sqrt(float(values[latent:].mean()))
    loading = vectors[:, :latent] * np.sqrt(np.maximum(values[:latent] - noise**2, 0.0))
    return PPCA(np.asarray(mean, dtype=np.float64), loading, noise)


def speed_histograms(profiles: Floats, starts: Ints) -> Floats:
    """Share of each person's saccades in each of 50 bins of speed at each of 30 steps, shape
    (people, 30, 50); David-John et al. 2023.

    Speeds beyond 1000 deg/s count into the last bin; a person without saccades has zeros.
    """
    codes = bin_codes(profiles)
    out = np.zeros((len(starts) - 1, POINTS, BINS))
    for p, (first, last) in enumerate(pairwise(starts)):
        for step in range(POINTS):
            out[p, step] = np.bincount(codes[first:last, step], minlength=BINS) / max(
                last - first, 1
            )
    return out


def bin_codes(profiles: Floats) -> Ints:
    """Bin of each speed, shape as given."""
    return np.clip(np.floor(profiles * (BINS / MOST_DEG_S)), 0, BINS - 1).astype(np.int64)


def summed_probability(histograms: Floats, profiles: Floats) -> Floats:
    """Sum over the 30 steps of the share of each person's saccades in the profile's bin, shape
    (saccades, people): above 1 it may well be.
    """
    codes = bin_codes(profiles)
    return np.asarray(histograms[:, np.arange(POINTS), codes].sum(axis=2).T, dtype=np.float64)
