"""Closed forms against many draws, the public rules, and who has the smaller error on real
recordings.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil.features import without_minima
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.sequences.closed_forms import (
    dcfpa_error,
    fpa_error,
    fpa_real_error,
    public_difference_k,
    public_k,
    sum_noise,
)
from gazeveil.privacy.tables.sequences.dct_knorm import design
from gazeveil.privacy.tables.sequences.laplace import lpa_error
from gazeveil.privacy.tables.sequences.published import plan
from gazeveil.privacy.tables.sequences.recordings import STEPS, sequences
from gazeveil.privacy.tables.sequences.spectrum import (
    PublicSpectrum,
    dct,
    fourier_rows,
    synthesis,
    wiener,
)
from tests.support.recordings import real_cohort


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


def test_the_error_of_lpa_is_the_closed_form():
    assert measured("lpa:", signal(40), 5, 4000) == pytest.approx(
        lpa_error(40, 40.0, 5.0), rel=0.02
    )


def dct_error(energy, variance, weights):
    return np.sum((1 - weights) ** 2 * energy + weights**2 * variance)


@pytest.mark.parametrize(("d", "epsilon"), [(1, 2), (4, 2), (12, 2)])
def test_the_error_of_dct_knorm_is_the_closed_form(d, epsilon):
    n, x = 48, signal(48)
    energy = dct(x - 0.5) ** 2
    weights = np.zeros(n)
    variance = (d + 1) * n / epsilon**2
    weights[:d] = wiener(PublicSpectrum().cosine(n)[:d], variance)
    text = f"dct-knorm:profile=exponential,D={d}"
    assert measured(text, x, epsilon, 60_000) == pytest.approx(
        dct_error(energy, variance, weights), rel=0.02
    )
    weights[:d] = 1
    assert measured(text + ",shrink=none", x, epsilon, 60_000) == pytest.approx(
        dct_error(energy, variance, weights), rel=0.02
    )


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
            ((m.unclamped(t, seed=s)[:, :, 0] - np.rint(x * STEPS) / STEPS) ** 2).mean()
            for s in range(6)
        ]
    )
    assert many == pytest.approx(m.expected_error(t)[0], rel=0.05)


def test_the_first_value_of_dcfpa_is_noised_as_row_one_of_the_running_sum_says():
    n, k, epsilon = 32, 4, 3
    m = mechanism(f"dcfpa:chunk={n},k={k},epsilon={epsilon}")
    noisy = (
        m.perturb(np.full((n, 60_000), STEPS // 2), Fraction(epsilon), Words(source(2))).values
        / STEPS
        - 0.5
    )
    scale = np.sqrt(n * k * (4 * n - 3)) / epsilon
    rows = np.cumsum(synthesis(n, k), axis=0)
    assert noisy[0].var() == pytest.approx(2 * scale**2 * np.sum(rows[0] ** 2), rel=0.03)
    assert noisy[-1].var() == pytest.approx(2 * scale**2 * np.sum(rows[-1] ** 2), rel=0.03)


@pytest.mark.parametrize(("k", "ratio"), [(1, 1397), (2, 442), (4, 193), (8, 91), (17, 44)])
def test_with_public_bounds_differences_cost_what_theory_says(k, ratio):
    n = 32
    nu = np.array([2.0] + [8.0] * 15 + [2.0])
    assert (4 - 3 / n) * n * np.sum(sum_noise(n)[:k]) / np.sum(nu[:k]) == pytest.approx(
        ratio, rel=0.01
    )


@pytest.mark.parametrize("n", [31, 32])
def test_the_closed_forms_for_every_k_agree_with_the_transform_itself(n):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(n)
    spectrum = np.fft.rfft(x)
    for k in range(1, n // 2 + 2):
        cut = spectrum.copy()
        cut[k:] = 0
        rest = x - np.fft.irfft(cut, n)
        assert fpa_error(np.abs(spectrum) ** 2, n, 0.0, 1.0)[k - 1] == pytest.approx(
            np.sum(rest**2), abs=1e-9
        )
        assert dcfpa_error(spectrum, n, 0.0, 1.0)[k - 1] == pytest.approx(
            np.sum(np.cumsum(rest) ** 2), abs=1e-9
        )
        assert dcfpa_error(spectrum * 0, n, 1.0, 1.0)[k - 1] == pytest.approx(
            2 * n * k * np.sum(np.cumsum(synthesis(n, k), axis=0) ** 2)
        )
        one_sided = np.real(np.fft.ifft(np.where(np.arange(n) < k, np.fft.fft(x), 0)))
        assert fpa_real_error(np.abs(spectrum) ** 2, n, 0.0, 1.0)[k - 1] == pytest.approx(
            np.sum((x - one_sided) ** 2), abs=1e-9
        )
        assert np.allclose(synthesis(n, k) @ fourier_rows(n, k) @ x, np.fft.irfft(cut, n))


def test_published_k_is_the_one_that_noisy_runs_find():
    rng = np.random.default_rng(8)
    keys = Keys.of_recordings([(f"p{i}", "s", "1", "") for i in range(6)], [np.arange(64)] * 6)
    t = FeatureTable(np.cumsum(rng.standard_normal((6, 64)), axis=1).reshape(-1, 1), ("a",), keys)
    seqs = sequences("fpa", t)
    best = int(plan("fpa", seqs, 40.0, None, None).batches[0].k[0, 0])
    runs = []
    for k in range(1, 34):
        work = plan("fpa", seqs, 40.0, None, k)
        runs.append(
            np.mean(
                [
                    np.sum((np.concatenate(work.recordings(work.draw(rng))) - t.values) ** 2)
                    for _ in range(60)
                ]
            )
        )
    assert runs[best - 1] <= 1.1 * min(runs)
    assert 1 < best < 33


def test_public_rules_look_at_public_things_and_follow_the_budget():
    s = PublicSpectrum()
    assert [public_k(128, e, s, False) for e in (0.1, 10, 1000, 100_000)] == sorted(
        public_k(128, e, s, False) for e in (0.1, 10, 1000, 100_000)
    )
    assert public_k(128, 1e9, s, True) == public_k(128, 1e9, s, False) == 65
    assert public_difference_k(32, 1e9, s, True) == public_difference_k(32, 1e9, s, False) == 17
    assert design(128, 0.01, s, True).profile == "exponential"
    assert len(design(128, 0.01, s, True).places) == 1
    assert len(design(128, 100.0, s, True).places) > len(design(128, 10.0, s, True).places)


@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_public_spectra_are_the_variances_of_the_public_model(n):
    s = PublicSpectrum(0.3, 0.2, 7)
    covariance = s.covariance(n)
    cosines = dct(np.eye(n), axis=0)
    assert np.allclose(np.diag(cosines @ covariance @ cosines.T), s.cosine(n))
    fourier = np.fft.fft(np.eye(n))
    assert np.allclose(
        np.diag(fourier @ covariance @ fourier.conj().T).real[: n // 2 + 1], s.fourier(n)
    )


@pytest.mark.parametrize(
    ("name", "window_s", "step_s"), [("gazecom", 5.0, 0.1), ("eyenavgs_nthu", 10.0, 0.5)]
)
def test_on_real_recordings_dct_knorm_never_has_the_higher_error(name, window_s, step_s):
    cohort = real_cohort(name)
    people, stimuli = sorted(cohort.people)[:2], sorted(cohort.stimuli)[:6]
    t = without_minima(
        gazeveil.window_features(
            cohort.select(people=people, stimuli=stimuli), window_s=window_s, step_s=step_s
        )
    )
    bounds = t.bounds
    values = np.where(
        np.isnan(t.values), bounds.mean(axis=1), np.clip(t.values, bounds[:, 0], bounds[:, 1])
    )
    midpoint = np.sqrt(
        np.mean(((values - bounds.mean(axis=1)) / np.diff(bounds).T) ** 2, axis=0)
    ).mean()
    others = ["fpa:", *(f"{m}:chunk={c}" for m in ("cfpa", "dcfpa") for c in (32, 64, 128))]
    for epsilon in ("0.01", "0.1", "1", "10", "100"):
        error = {
            m: np.sqrt(mechanism(m + f",epsilon={epsilon},shrink=wiener").expected_error(t)).mean()
            for m in ("dct-knorm:", *others)
        }
        ours, best = error.pop("dct-knorm:"), min(error.values())
        assert ours <= best * (1 + 1e-12), epsilon
        assert ours <= midpoint
        if float(epsilon) >= 10:
            assert ours < 0.6 * best
        elif float(epsilon) == 1:
            assert ours < best
