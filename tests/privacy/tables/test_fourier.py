"""lpa, fpa, cfpa, dcfpa and dct-knorm: what they release, promise and refuse.

Closed forms against many draws, the public rules, and who has the smaller error on real
recordings.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.table_errors import unclamped

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.dct_knorm import DCTKNorm
from gazeveil.privacy.tables.fourier import noisy_spectrum
from gazeveil.privacy.tables.published import plan
from gazeveil.privacy.tables.recordings import STEPS, sequences
from gazeveil.privacy.tables.spectrum import (
    bits_for,
    coefficients,
    coordinates,
    dcfpa_error,
    dct,
    fourier_rows,
    fpa_error,
    grid_l1,
    public_cosine,
    public_covariance,
    public_difference_k,
    public_fourier,
    public_k,
)
from tests.support.laws import assert_distribution, laplace_cdf

FAMILY = (
    "lpa:epsilon=2",
    "fpa:epsilon=2",
    "cfpa:epsilon=2,chunk=32",
    "dcfpa:epsilon=2,chunk=32",
    "dct-knorm:epsilon=2",
)


def table(
    lengths: list[int],
    features: int = 2,
    stimuli: int = 1,
    seed: int = 0,
    bounds: bool = True,
    equal: bool = False,
) -> FeatureTable:
    rng = np.random.default_rng(seed)
    names = [(f"p{i}", f"s{s}", "1", "") for i in range(len(lengths)) for s in range(stimuli)]
    rows = [length for length in lengths for _ in range(stimuli)]
    wave = np.cumsum(rng.standard_normal((max(lengths), features)), axis=0) * 0.02 + 0.4
    parts = [
        np.clip(
            wave[:n]
            + (0 if equal else 0.02 * np.cumsum(rng.standard_normal((n, features)), axis=0)),
            0,
            1,
        )
        for n in rows
    ]
    keys = Keys.of_recordings(names, [np.arange(n) for n in rows])
    columns = tuple(f"f{i}" for i in range(features))
    return FeatureTable(
        np.concatenate(parts), columns, keys, [[0.0, 1.0]] * features if bounds else None
    )


def by_recording(t: FeatureTable, values: np.ndarray) -> list[np.ndarray]:
    return [values[rows] for rows in t.recordings().values()]


# --- the noise follows its law
# --------------------------------------------------------------------------------------------------


def test_lpa_noise_is_laplace_with_scale_length_times_range_over_epsilon():
    blocks = np.full((4, 40_000), 12_345)
    noisy = mechanism("lpa:epsilon=2").perturb(blocks, Fraction(2), Words(source(7))).values
    assert_distribution((noisy - blocks) / STEPS, laplace_cdf(4 / 2))


@pytest.mark.parametrize(("n", "k"), [(16, 3), (15, 8), (16, 9)])
def test_fpa_noise_on_both_parts_is_laplace_with_the_papers_lambda_and_uncorrelated(n, k):
    blocks = np.random.default_rng(1).integers(-STEPS // 2, STEPS // 2, (n, 1))
    noisy, scale = noisy_spectrum(
        "fpa",
        np.repeat(blocks, 40_000, axis=1),
        k,
        n * STEPS**2,
        n * STEPS,
        Fraction(3),
        Words(source(3)),
    )
    residual = noisy - np.fft.rfft(blocks, axis=0)[:k]
    assert scale / STEPS == pytest.approx(np.sqrt(n) * np.sqrt(k) * np.sqrt(n) / 3, rel=1e-4)
    real, imaginary = residual.real, residual.imag[1 : coordinates(n, k) - k + 1]
    assert np.abs(residual.imag[0]).max() == 0
    if n % 2 == 0 and k == n // 2 + 1:
        assert np.abs(residual.imag[-1]).max() < 1e-6 * scale
    assert_distribution(np.concatenate((real.ravel(), imaginary.ravel())) / scale, laplace_cdf(1.0))
    everything = np.concatenate((real, imaginary))
    correlation = np.corrcoef(everything) - np.eye(len(everything))
    assert np.abs(correlation).max() < 6 / np.sqrt(40_000)


def test_k_norm_noise_has_a_gamma_radius_and_no_direction():
    from scipy.special import gammainc

    n, d = 50, 6
    m = mechanism("dct-knorm", epsilon=3, D=d, profile="exponential", shrink="none")
    noisy = (
        m.perturb(np.full((n, 100_000), STEPS // 2), Fraction(3), Words(source(5))).values
        - STEPS / 2
    )
    z = dct(noisy, axis=0)[:d] / STEPS
    radius = np.linalg.norm(z, axis=0)
    assert_distribution(
        radius, lambda x, scale: gammainc(d, np.maximum(x, 0) / (scale * np.sqrt(n) / 3))
    )
    assert np.linalg.norm((z / radius).mean(axis=1)) < 5 / np.sqrt(100_000)


# --- what comes out
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [64, 63])
def test_fpa_is_real_and_has_nothing_beyond_k(n):
    out = unclamped(mechanism("fpa:epsilon=5,k=4"), table([n, n]), seed=1)
    assert out.dtype == np.float64
    spectrum = np.abs(np.fft.rfft(out - 0.5, axis=1))
    assert spectrum[:, 4:].max() < 1e-9 * spectrum.max()


@pytest.mark.parametrize("n", [64, 63, 2, 1])
def test_all_bins_without_noise_give_the_signal_back(n):
    t = table([n, n])
    original = t.values.reshape(2, n, 2)
    k = n // 2 + 1
    for text in (
        f"fpa:k={k}",
        *([f"cfpa:chunk={n},k={k}", f"dcfpa:chunk={n},k={k}"] if n > 1 else []),
        f"dct-knorm:D={min(n, 64)},shrink=none",
    ):
        if text.startswith("dct") and n > 63:
            continue
        out = unclamped(mechanism(text + ",epsilon=1000000000"), t, seed=1)
        assert np.abs(out - original).max() < 1e-3, text
    for text in (
        f"fpa:k={k}",
        *([f"cfpa:chunk={n},k={k}", f"dcfpa:chunk={n},k={k}"] if n > 1 else []),
    ):
        out = mechanism(text + ",epsilon=1e15,reading=published").release(t, seed=1).data
        assert np.abs(out.values - t.values).max() < 1e-9, text


@pytest.mark.parametrize(
    "text", ["cfpa:epsilon=20,chunk=32,k=17", "dcfpa:epsilon=20,chunk=32,k=17"]
)
def test_chunks_do_not_touch_one_another(text):
    t = table([100])
    values = t.values.copy()
    values[40:60] = 1 - values[40:60]  # inside chunk 1 alone
    other = FeatureTable(values, t.columns, t.keys, t.bounds)
    changed = (
        np.abs(unclamped(mechanism(text), t, seed=2) - unclamped(mechanism(text), other, seed=2))[
            0
        ].max(axis=1)
        > 1e-9
    )
    assert changed[32:64].any()
    assert not changed[:32].any()
    assert not changed[64:].any()


def test_the_short_tail_is_filled_up_with_the_midpoint_or_kept_short_as_published():
    t = table([70, 70])
    assert (
        mechanism("cfpa:epsilon=20,chunk=32").release(t, seed=1).data.values.shape == t.values.shape
    )
    work = plan("cfpa", sequences("cfpa", t), 1.0, 32, None)
    assert sorted((b.n, len(b.recording)) for b in work.batches) == [(6, 2), (32, 4)]


@pytest.mark.parametrize("text", FAMILY)
def test_missing_values_count_as_the_midpoint_and_values_outside_are_clamped_and_counted(text):
    t = table([40, 40])
    values, filled = t.values.copy(), t.values.copy()
    values[3, 0], filled[3, 0] = np.nan, 0.5
    values[5, 1], filled[5, 1] = 7.0, 1.0
    m = mechanism(text)
    holes = m.release(FeatureTable(values, t.columns, t.keys, t.bounds), seed=4)
    whole = m.release(FeatureTable(filled, t.columns, t.keys, t.bounds), seed=4)
    assert np.array_equal(holes.data.values, whole.data.values)
    assert holes.curator_notes["missing"] == 1
    assert holes.curator_notes["clamped"] == 1


# --- promises
# --------------------------------------------------------------------------------------------------


def test_the_budget_is_shared_by_features_recordings_and_chunks():
    t = table([100, 90], features=3, stimuli=2)  # 2 recordings a person, 3 features, 4 chunks of 32
    cases = [
        ("lpa:epsilon=6", "recording-feature", 6, 36),
        ("lpa:epsilon=6,per=recording", "recording", 6, 12),
        ("fpa:epsilon=6,per=user", "user", 6, 6),
        ("cfpa:epsilon=6,chunk=32", "recording-feature", 6, 36),
        ("cfpa:epsilon=6,chunk=32,per=chunk", "chunk", 6, 6 * 4 * 6),
        ("dcfpa:epsilon=6,chunk=32,per=user", "user", 6, 6),
        ("dct-knorm:epsilon=6,per=recording", "recording", 6, 12),
    ]
    for text, unit, epsilon, user in cases:
        g = mechanism(f"{text},length=100").release(t).guarantee
        assert (g.status, g.unit, g.epsilon, g.user["epsilon"]) == (
            "proved",
            unit,
            epsilon,
            user,
        ), text
        assert g.delta_num < Fraction(1, 10**20)


def test_sharing_a_budget_makes_the_noise_larger_by_the_number_of_shares():
    blocks = np.full((32, 2000), STEPS // 2)
    each = mechanism("cfpa:epsilon=4,chunk=32,k=3,per=chunk")
    share = (
        each.perturb(blocks, Fraction(1), Words(source(1))).values.std()
        / each.perturb(blocks, Fraction(4), Words(source(1))).values.std()
    )
    assert share == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize(
    "name", ["lpa:", "fpa:", "cfpa:chunk=8,", "dcfpa:chunk=8,", "dct-knorm:", "exponential-dp:"]
)
def test_a_length_that_is_derived_from_the_data_makes_a_claim_of_a_proof(name: str) -> None:
    derived = mechanism(f"{name}epsilon=1").release(table([40, 30])).guarantee
    named = mechanism(f"{name}epsilon=1,length=40").release(table([40, 30])).guarantee
    assert (derived.status, derived.epsilon) == ("claimed", None)
    assert "the length of 40 rows is derived from the data" in derived.reason
    assert (named.status, named.epsilon) == ("proved", 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lpa:epsilon=1,reading=published", "where all participants agree the release is exact"),
        ("fpa:epsilon=1,reading=published", "k is the best one for the data"),
        (
            "fpa:epsilon=1,reading=published-real",
            "the imaginary parts of the released coefficients are exact",
        ),
        (
            "cfpa:epsilon=1/2,chunk=5,reading=published",
            "the 20 chunks of the longest recording add up to 10",
        ),
        (
            "dcfpa:epsilon=1/2,chunk=5,reading=published",
            "the 20 chunks of the longest recording add up to 10",
        ),
    ],
)
def test_published_claims_are_refuted_with_the_reason(text, words):
    g = mechanism(text).release(table([100, 90]), seed=1).guarantee
    assert g.status == "refuted"
    assert g.epsilon is None
    assert g.epsilon_claimed == mechanism(text).parameters()["epsilon"]
    assert words in g.reason


@pytest.mark.parametrize("text", ["lpa:", "fpa:", "cfpa:chunk=8,", "dcfpa:chunk=8,"])
def test_where_all_participants_agree_the_published_release_is_exact(text):
    t = table([40, 40, 40], equal=True)
    m = mechanism(text + "epsilon=0.001,reading=published")
    assert np.abs(m.release(t).data.values - t.values).max() < 1e-9
    values = t.values.copy()
    values[:40] = 1 - values[:40]
    assert (
        np.abs(
            m.release(FeatureTable(values, t.columns, t.keys, t.bounds)).data.values - values
        ).max()
        > 1
    )


def test_noise_on_real_parts_alone_leaves_the_imaginary_parts_to_read():
    t = table([64, 64])
    out = mechanism("fpa:epsilon=0.01,k=9,reading=published-real").release(t).data
    for before, after in zip(by_recording(t, t.values), by_recording(out, out.values), strict=True):
        raw, seen = (np.fft.rfft(v, axis=0)[1:9] for v in (before, after))
        assert np.abs(2 * seen.imag - raw.imag).max() < 1e-9
        assert np.abs(2 * seen.real - raw.real).max() > 1


def test_published_sensitivities_are_the_largest_distances_between_participants():
    t = table([70, 64, 70], features=3)
    seqs = sequences("fpa", t)
    padded = np.zeros((3, 70, 3))
    for i, part in enumerate(by_recording(t, t.values)):
        padded[i, : len(part)] = part
    pairs = [(0, 1), (0, 2), (1, 2)]
    whole = max(
        (np.linalg.norm(padded[a] - padded[b], axis=0) for a, b in pairs), key=lambda d: d[0]
    )
    work = plan("fpa", seqs, 1.0, None, None)
    assert {b.n for b in work.batches} == {70, 64}
    assert work.batches[0].delta_2[0, 0] == pytest.approx(whole[0])
    chunked = plan("cfpa", seqs, 1.0, 32, None)
    first = next(b for b in chunked.batches if b.n == 32)
    expected = np.max(
        [np.linalg.norm(padded[a, :32] - padded[b, :32], axis=0) for a, b in pairs], axis=0
    )
    assert first.delta_2[first.start == 0] == pytest.approx(np.tile(expected, (3, 1)))


# --- sensitivity
# --------------------------------------------------------------------------------------------------


def _worst(rows: np.ndarray) -> float:
    """The largest L1 norm of rows @ d over |d|_2 <= 1: the largest |rows.T @ signs|_2, by climbing
    from many starts.
    """
    rng, best = np.random.default_rng(0), 0.0
    for _ in range(60):
        d = rng.standard_normal(rows.shape[1])
        for _ in range(60):
            d = rows.T @ np.sign(rows @ d)
            d /= np.linalg.norm(d)
        best = max(best, float(np.abs(rows @ d).sum()))
    return best


@pytest.mark.parametrize("k", [1, 2, 5, 16, 33])
def test_the_papers_lambda_is_enough_and_the_least_that_is(k):
    assert _worst(fourier_rows(64, k)) == pytest.approx(np.sqrt(64 * k), rel=5e-3)
    assert _worst(fourier_rows(64, k)) <= np.sqrt(64 * k) * (1 + 1e-12)


@pytest.mark.parametrize(("k", "more"), [(40, 1.15), (48, 1.25), (64, 1.38)])
def test_beyond_half_the_spectrum_the_papers_lambda_is_too_small(k, more):
    turns = np.outer(np.arange(k), np.arange(64)) * (2 * np.pi / 64)
    assert _worst(np.concatenate((np.cos(turns), np.sin(turns)))) > more * np.sqrt(64 * k)
    with pytest.raises(ParameterError, match="at most 33"):
        mechanism("fpa", epsilon=1, k=k).release(table([64, 64]))


@pytest.mark.parametrize(("n", "k"), [(64, 5), (63, 32), (2, 2), (1, 1)])
def test_integer_coefficients_are_exact_and_never_farther_apart_than_the_grid_says(n, k):
    rng = np.random.default_rng(2)
    blocks = rng.integers(-(1 << 16), (1 << 16) + 1, (n, 20))
    d, rows = coordinates(n, k), fourier_rows(n, k)
    whole = coefficients(rows, blocks)
    matrix = np.rint(rows * (1 << bits_for(n))).astype(np.int64)
    slow = [
        [sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in blocks.T]
        for row in matrix
    ]
    assert whole.tolist() == slow
    for epsilon in (Fraction(1, 10**6), Fraction(1), Fraction(10**6)):
        grid = grid_l1("fpa", n, d, n * k * n * STEPS**2, n * STEPS, epsilon, 1 << 40)
        assert grid.sensitivity / epsilon <= 1 << 40
        worst = 0
        for _ in range(50):
            pair = rng.choice([-STEPS // 2, STEPS // 2], (n, 2))
            pair[:, 1] = -pair[:, 0] if rng.random() < 0.5 else pair[:, 1]
            q = grid.rounded(coefficients(rows, pair))
            worst = max(worst, int(np.abs(q[:, 0] - q[:, 1]).sum()))
        assert worst <= grid.sensitivity


def test_the_sensitivity_holds_where_every_coefficient_is_rounded_apart() -> None:
    bitten = 0
    for n, d in ((16, 3), (64, 9), (64, 31), (100, 51)):
        for epsilon in (Fraction(1, 10**3), Fraction(1), Fraction(10**3)):
            grid = grid_l1("fpa", n, d, n * d * n * STEPS**2, n * STEPS, epsilon, 1 << 20)
            if grid.shift == 0:
                continue
            fine = math.isqrt(n * d * n * STEPS**2 << (2 * grid.bits)) + 1 + d * n * STEPS
            # Neighbours whose coefficients differ by a multiple of the step and one more, and lie
            # on both sides of where rounding turns: each is rounded apart by one step more.
            step = 1 << grid.shift
            times = (fine // d - 1) // step
            low = np.full(d, step // 2 - 1, dtype=np.int64)
            high = low + times * step + 1
            assert int((high - low).sum()) <= fine
            apart = int((grid.rounded(high) - grid.rounded(low)).sum())
            assert apart <= grid.sensitivity
            bitten += apart > -(-fine >> grid.shift)
    assert bitten


# --- refusals
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lpa:epsilon=0", "'epsilon' parameter of lpa"),
        ("lpa:epsilon=-1", "above 0"),
        ("lpa:epsilon=much", "exact number"),
        ("lpa:epsilon=1,per=chunk", "one of recording, recording-feature, user"),
        ("fpa:epsilon=1,k=0", "'k' parameter of fpa"),
        ("fpa:epsilon=1,k=1.5", "'k' parameter of fpa"),
        ("fpa:epsilon=1,length=0", "'length' parameter of fpa"),
        ("fpa:epsilon=1,shrink=half", "one of none, wiener"),
        ("fpa:epsilon=1,reading=intended", "one of corrected, published, published-real"),
        ("cfpa:epsilon=1", "needs the parameter 'chunk'"),
        ("cfpa:epsilon=1,chunk=1", "at least 2"),
        ("dcfpa:epsilon=1,chunk=32,k=18", "at most 17"),
        ("dct-knorm:epsilon=1,D=0", "'D' parameter of dct-knorm"),
        ("dct-knorm:epsilon=1,profile=round", "one of exponential, staircase"),
        ("dct-knorm:epsilon=1,reading=published", "'reading' parameter of dct-knorm"),
    ],
)
def test_bad_parameters_get_one_sentence(text, message):
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        mechanism(text)


@pytest.mark.parametrize(
    ("text", "data", "error", "message"),
    [
        ("lpa:epsilon=1", table([20, 20], bounds=False), DataError, "needs public bounds"),
        ("dct-knorm:epsilon=1", table([20, 20], bounds=False), DataError, "needs public bounds"),
        (
            "fpa:epsilon=1,reading=published",
            table([20]),
            DataError,
            "pairs of participants and this table has one person",
        ),
        ("fpa:epsilon=1,k=12", table([20, 20]), ParameterError, "at most 11"),
        (
            "dct-knorm:epsilon=1,D=21",
            table([20, 20]),
            ParameterError,
            "at most the length of 20 rows",
        ),
        (
            "dct-knorm:epsilon=1/2,profile=staircase",
            table([20, 20]),
            ParameterError,
            "epsilon of at least 1",
        ),
        ("lpa:epsilon=1e-12", table([20, 20]), ParameterError, "Give a larger epsilon"),
        ("lpa:epsilon=1", table([20, 20]).where(np.zeros(40, dtype=bool)), DataError, "0 rows"),
        ("lpa:epsilon=1", table([20, 20]).values, ParameterError, "a FeatureTable"),
    ],
)
def test_bad_data_gets_one_sentence_and_nothing_released(text, data, error, message):
    with pytest.raises(error, match=message):
        mechanism(text).release(data)


def test_published_takes_a_table_without_bounds_and_a_document_that_one_person_has():
    t = table([30, 30], bounds=False)
    assert len(mechanism("fpa:epsilon=1,reading=published").release(t).data) == 60
    alone = FeatureTable.concat(
        [table([30, 30]), table([30, 30], stimuli=2).select(people="p0", stimuli="s1")]
    )
    assert len(mechanism("dcfpa:epsilon=1,chunk=8,reading=published").release(alone).data) == 90


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
