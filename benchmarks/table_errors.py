"""Errors of mechanisms on tables: what a release is before it is clamped, and its expected squared
error in closed form. Both come from the data, so they are for studies and never for publication.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.tables.dct_knorm import DCTKNorm
from gazeveil.privacy.tables.dp_ksame import DPKSame, grouped_table
from gazeveil.privacy.tables.fourier import CFPA, DCFPA, FPA, bin_weights, difference_filter
from gazeveil.privacy.tables.ksame import random_groups
from gazeveil.privacy.tables.noisy import LPA, NoisyTable
from gazeveil.privacy.tables.recordings import STEPS, Share, lattice, sequences
from gazeveil.privacy.tables.spectrum import (
    coordinates,
    cosine_rows,
    dct,
    difference_rows,
    fourier_rows,
    public_cosine,
    public_fourier,
    synthesis,
    wiener,
)


@dataclass(frozen=True, eq=False)
class Estimator:
    """A linear mechanism in closed form, for range 1 about the midpoint.

    Parameters
    ----------
    mean : array of float64, shape (n, n)
        The expected release is this matrix times the block.
    noise : array of float64, shape (n,)
        Variance of each released value.
    """

    mean: Floats
    noise: Floats

    @classmethod
    def of(cls, back: Floats, rows: Floats, variance: float) -> Estimator:
        """From coefficients `rows @ block` with noise of one variance, turned back by `back`."""
        return cls(back @ rows, variance * np.sum(back**2, axis=1))


def unclamped(mechanism: NoisyTable, data: FeatureTable, seed: int) -> Floats:
    """A corrected release before it is clamped, shape (recordings, length, features)."""
    _, grid, steps, _ = mechanism._noisy(sequences(mechanism.name, data), seed)
    return grid.real(steps)


def unclamped_groups(mechanism: DPKSame, data: FeatureTable, seed: int) -> FeatureTable:
    """A release of `dp-k-same` before it is clamped."""
    work = mechanism._prepare(data)
    words = Words(source(seed, mechanism.name))
    groups = random_groups(len(work.people), mechanism.k, words)
    steps = mechanism._noisy(work, groups, words)[0]
    return grouped_table(work, groups, work.grid.real(steps.transpose(0, 1, 3, 2)))


def expected_error(
    mechanism: Mechanism[FeatureTable], data: FeatureTable, seed: int | None = None
) -> Floats:
    """Expected mean squared error of a corrected release per feature, in squared ranges, before
    clamping (which only lowers it). Padding does not count.

    `dp-k-same` is compared with each person's own values, for the one partition of the seed.
    """
    if isinstance(mechanism, DPKSame):
        return _group_error(mechanism, data, seed)
    assert isinstance(mechanism, NoisyTable)
    seqs = sequences(mechanism.name, data)
    grid = lattice(mechanism.name, seqs, mechanism.length)
    recordings, length, features = grid.values.shape
    size = mechanism.block(length)
    chunks = -(-length // size)
    share = Share.of(mechanism.budget, mechanism.per, seqs, chunks)
    shape = estimator(mechanism, size, float(share.block))
    padded = np.zeros((recordings, chunks * size, features))
    padded[:, :length] = grid.values / STEPS - 0.5
    blocks = padded.reshape(recordings * chunks, size, features)
    bias = np.einsum("ts,bsf->btf", shape.mean - np.eye(size), blocks, optimize=True)
    wrong = (bias**2 + shape.noise[:, None]).reshape(recordings, chunks * size, features)
    real = np.arange(chunks * size) < np.minimum(seqs.lengths, length)[:, None]
    return np.asarray(wrong[real].mean(axis=0))


def estimator(mechanism: NoisyTable, n: int, epsilon: float) -> Estimator:
    """What becomes of a block of n values on average, and the noise it gets, before clamping."""
    if isinstance(mechanism, LPA):
        variance = 2.0 * (n / epsilon) ** 2
        cosines, back = dct(np.eye(n), axis=0), np.eye(n)
        if mechanism.shrinks:
            back = cosines.T * wiener(public_cosine(n), variance) @ cosines
        return Estimator.of(back, np.eye(n), variance)
    if isinstance(mechanism, DCTKNorm):
        plan = mechanism.design(n, Fraction(epsilon))
        places, variance = np.array(plan.places), n * plan.noise.variance
        rows = cosine_rows(n, places)
        shrunk = wiener(public_cosine(n)[places], variance)
        weights = shrunk if mechanism.shrinks else np.ones(len(rows))
        return Estimator.of(rows.T * weights, rows, variance)
    if isinstance(mechanism, DCFPA):
        k = mechanism.bins(epsilon)
        scale = np.sqrt(n * k * (4 * n - 3)) / epsilon
        plain = np.cumsum(synthesis(n, k), axis=0)
        back = difference_filter(n, k, scale) if mechanism.shrinks else plain
        return Estimator.of(back, difference_rows(n, k), 2.0 * scale**2)
    assert isinstance(mechanism, FPA | CFPA)
    k = mechanism.bins(n, epsilon) if isinstance(mechanism, FPA) else mechanism.bins(epsilon)
    scale = n * np.sqrt(k) / epsilon
    back = synthesis(n, k)
    if mechanism.shrinks:
        weights = bin_weights(public_fourier(n)[:k], n, scale)
        back = back * np.concatenate((weights, weights[1 : coordinates(n, k) - k + 1]))
    return Estimator.of(back, fourier_rows(n, k), 2.0 * scale**2)


def _group_error(mechanism: DPKSame, data: FeatureTable, seed: int | None) -> Floats:
    work = mechanism._prepare(data)
    groups = random_groups(len(work.people), mechanism.k, Words(source(seed, mechanism.name)))
    n = work.sizes.length
    chosen = mechanism.plan(work.sizes)
    rows = cosine_rows(n, np.array(chosen.places))
    own = work.grid.values.astype(np.float64) / STEPS - 0.5
    wrong, count = np.zeros(work.sizes.features), 0
    for group in groups:
        variance = n * chosen.noise.variance / len(group) ** 2
        weights = mechanism._weights(chosen, n, variance)
        noise = ((rows.T * weights) ** 2).sum(axis=1) * variance
        for cell in range(work.sizes.cells):
            members = [r for r in work.places[group, cell].tolist() if r >= 0]
            expected = (rows.T * weights) @ (rows @ own[members].sum(axis=0)) / len(group)
            for recording in members:
                real = min(int(work.seqs.lengths[recording]), n)
                wrong += ((own[recording] - expected) ** 2 + noise[:, None])[:real].sum(axis=0)
                count += real
    return wrong / count
