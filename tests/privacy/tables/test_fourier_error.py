"""Closed forms against many draws, the public rules, and who has the smaller error on real
recordings.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from benchmarks.table_errors import expected_error, unclamped

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.dct_knorm import DCTKNorm
from gazeveil.privacy.tables.recordings import STEPS
from gazeveil.privacy.tables.spectrum import (
    dcfpa_error,
    dct,
    fpa_error,
    public_cosine,
    public_covariance,
    public_difference_k,
    public_fourier,
    public_k,
)


def signal(n: int, seed: int = 3) -> np.ndarray:
    return np.clip(0.45 + 0.03 * np.cumsum(np.random.default_rng(seed).standard_normal(n)), 0, 1)


def measured(text: str, x: np.ndarray, epsilon: int, runs: int) -> float:
    """Mean squared error, summed over the block, of many noisy copies of one block."""
    block = np.rint(x * STEPS).astype(np.int64)
    m = mechanism(text + f",epsilon={epsilon}")
    noisy = (
        m.perturb(
            np.repeat(block[:, None], runs, axis=1), Fraction(epsilon), Words(source(11))
        ).values
        / STEPS
    )
    return float(((noisy - block[:, None] / STEPS) ** 2).sum(axis=0).mean())


# 2 % of a sum of squared Laplace variables with D effective ones takes about 5 * 2500 * 9 / D runs
# at three sigma.
@pytest.mark.parametrize(("n", "k"), [(64, 1), (64, 5), (63, 7), (32, 17), (33, 17)])
def test_the_error_of_fpa_is_the_closed_form(n, k):
    x = signal(n)
    form = fpa_error(np.abs(np.fft.rfft(x - 0.5)) ** 2, n, np.sqrt(n), 30)[k - 1]
    assert measured(f"fpa:k={k}", x, 30, 120_000 // k) == pytest.approx(form, rel=0.02)


@pytest.mark.parametrize(("n", "k"), [(32, 1), (32, 4), (33, 17), (32, 17)])
def test_the_error_of_dcfpa_is_the_closed_form(n, k):
    x = signal(n)
    spectrum = np.fft.rfft(np.diff(x, prepend=0.5))
    form = dcfpa_error(spectrum, n, np.sqrt(4 * n - 3), 100)[k - 1]
    assert measured(f"dcfpa:chunk={n},k={k}", x, 100, 120_000) == pytest.approx(form, rel=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "lpa:",
        "fpa:",
        "cfpa:chunk=20",
        "dcfpa:chunk=20",
        "dct-knorm:",
        "dct-knorm:profile=exponential",
    ],
)
@pytest.mark.parametrize("shrink", ["none", "wiener"])
def test_expected_errors_of_a_table_are_what_many_releases_have(text, shrink):
    x, copies = signal(50), 4000
    keys = Keys.of_recordings(
        [(f"p{i}", "s", "1", "") for i in range(copies)], [np.arange(50)] * copies
    )
    t = FeatureTable(np.tile(x, copies)[:, None], ("a",), keys, [[0.0, 1.0]])
    m = mechanism(text + f",shrink={shrink},epsilon=20")
    many = np.mean(
        [
            ((unclamped(m, t, seed=s)[:, :, 0] - np.rint(x * STEPS) / STEPS) ** 2).mean()
            for s in range(6)
        ]
    )
    assert many == pytest.approx(expected_error(m, t)[0], rel=0.05)


def test_public_rules_look_at_public_things_and_follow_the_budget():
    assert [public_k(128, e, False) for e in (0.1, 10, 1000, 100_000)] == sorted(
        public_k(128, e, False) for e in (0.1, 10, 1000, 100_000)
    )
    assert public_k(128, 1e9, True) == public_k(128, 1e9, False) == 65
    assert public_difference_k(32, 1e9, True) == public_difference_k(32, 1e9, False) == 17
    assert DCTKNorm(1).design(128, Fraction("0.01")).noise.profile == "exponential"
    assert len(DCTKNorm(1).design(128, Fraction("0.01")).places) == 1
    assert len(DCTKNorm(1).design(128, Fraction("100.0")).places) > len(
        DCTKNorm(1).design(128, Fraction("10.0")).places
    )


@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_public_spectra_are_the_variances_of_the_public_model(n):
    covariance = public_covariance(n)
    cosines = dct(np.eye(n), axis=0)
    assert np.allclose(np.diag(cosines @ covariance @ cosines.T), public_cosine(n))
    fourier = np.fft.fft(np.eye(n))
    assert np.allclose(
        np.diag(fourier @ covariance @ fourier.conj().T).real[: n // 2 + 1], public_fourier(n)
    )
