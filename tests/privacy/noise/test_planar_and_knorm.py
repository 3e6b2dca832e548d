"""Planar and K-norm noise: laws, controls, moments, and the whole-number arithmetic behind them.

Noisy places on the lattice: the noise of Kaleido with one publication to a window, and exact
where doubles cannot settle it.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Screen, Sphere
from gazeveil.compiled import compiled
from gazeveil.errors import ParameterError
from gazeveil.privacy import rational
from gazeveil.privacy.noise import knorm as knorm_module
from gazeveil.privacy.noise import planar
from gazeveil.privacy.noise.knorm import knorm
from gazeveil.privacy.noise.lattice import LatticeLaw, lattice_bits, limits
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import TestStream, Words
from gazeveil.privacy.stream.kaleido.stage import LatticeStage, plan
from gazeveil.privacy.stream.kaleido.step import UNIFORM
from tests.support.laws import assert_distribution, assert_pmf

# --- arithmetic to any number of bits
# ---------------------------------------------------------------------------------------------


@given(value=st.integers(1, 2**300), bits=st.integers(64, 300))
def test_log_is_right_to_its_last_bits(value: int, bits: int) -> None:
    with localcontext() as context:
        context.prec = 220
        truth = (Decimal(value) / Decimal(2) ** bits).ln() * Decimal(2) ** bits
        assert abs(Decimal(rational.log(value, bits)) - truth) < 4


@given(x=st.fractions(min_value=0, max_value=500), bits=st.integers(64, 300))
@settings(max_examples=50)
def test_exp_is_right_to_its_last_bits(x: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 220
        truth = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp() * Decimal(2) ** bits
        assert abs(Decimal(rational.exp_minus(x, bits)) - truth) < 4


def test_pi_is_right() -> None:
    digits = str(rational.pi(400) * 10**100 >> 400)
    assert (
        digits == "314159265358979323846264338327950288419716939937510"
        "58209749445923078164062862089986280348253421170679"
    )


@given(turn=st.integers(0, 2**200 - 1))
@settings(max_examples=50)
def test_cos_and_sin_lie_on_the_circle_at_the_right_angle(turn: int) -> None:
    cos, sin = rational.cos_sin_of_turn(turn, 200)
    assert abs(cos * cos + sin * sin - (1 << 400)) < 1 << 204
    angle = 2 * math.pi * (turn / 2**200)
    assert math.isclose(cos / 2**200, math.cos(angle), abs_tol=1e-14)
    assert math.isclose(sin / 2**200, math.sin(angle), abs_tol=1e-14)
    half_cos, half_sin = rational.cos_sin_of_turn(turn // 2, 200)
    assert (
        abs((half_cos**2 - half_sin**2 >> 200) - cos) < 64
    )  # cos 2a = cos**2 a - sin**2 a ties the digits together
    assert abs((half_cos * half_sin >> 199) - sin) < 64


@compiled
def _platform(x: float) -> tuple[float, float, float, float]:
    return math.log(x), math.sqrt(x), math.cos(2.0 * math.pi * x), math.sin(2.0 * math.pi * x)


def test_the_platform_keeps_what_the_knorm_proof_assumes() -> None:
    bits = 200
    for x in np.concatenate(
        (
            np.random.default_rng(1).random(3000),
            2.0 ** -np.arange(1, 40),
            1 - 2.0 ** -np.arange(2, 50),
        )
    ).tolist():
        exact = int(Fraction(x) * (1 << bits))
        angle = Fraction(2.0 * math.pi * x) / (2 * Fraction(rational.pi(bits), 1 << bits))
        cos, sin = rational.cos_sin_of_turn(int(angle % 1 * (1 << bits)), bits)
        truths = (rational.log(exact, bits), math.isqrt(exact << bits), cos, sin)
        for got, truth in zip(_platform(x), truths, strict=True):
            assert abs(Fraction(got) - Fraction(truth, 1 << bits)) <= 2 * Fraction(
                math.ulp(got)
            ) + Fraction(1, 1 << 190)


# --- planar Laplace
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "n"), [(Fraction(1, 2), 400_000), (Fraction(1), 400_000), (Fraction(7, 2), 400_000)]
)
def test_planar_laplace_has_its_probabilities(scale: Fraction, n: int) -> None:
    z = planar_laplace(scale, n, Words(TestStream(21)))
    b = float(scale)
    reach, far = int(6 * b) + 2, int(60 * b) + 10
    inside = (np.abs(z) <= reach).all(axis=1)
    counts = np.append(
        np.bincount((z[inside] + reach) @ [2 * reach + 1, 1], minlength=(2 * reach + 1) ** 2),
        np.count_nonzero(~inside),
    )

    def law(factor: float) -> np.ndarray:
        grid = np.arange(-far, far + 1)
        p = np.exp(-np.hypot(*np.meshgrid(grid, grid)) / (b * factor))
        p /= p.sum()
        near = p[far - reach : far + reach + 1, far - reach : far + reach + 1].ravel()
        return np.append(near, max(0.0, 1 - near.sum()))

    assert_pmf(counts, law)


@pytest.mark.parametrize("scale", [1000, 2**22])
def test_planar_laplace_on_a_fine_grid_is_the_continuous_law(scale: int) -> None:
    from scipy.stats import gamma

    z = planar_laplace(scale, 200_000, Words(TestStream(22))).astype(np.float64)
    r = np.hypot(z[:, 0], z[:, 1])
    assert_distribution(r, lambda v, factor: gamma.cdf(v, 2, scale=scale * factor))
    angle = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) + 0.5
    from scipy.stats import kstest

    assert kstest(angle, "uniform").pvalue > 1e-6
    assert abs(r.mean() / (2 * scale) - 1) < 0.02
    assert abs((r**2).mean() / (6 * scale**2) - 1) < 0.02
    assert abs(np.median(r) / (1.678 * scale) - 1) < 0.02
    np.testing.assert_allclose((z**2).mean(axis=0), 3 * scale**2, rtol=0.03)


@given(
    n=st.integers(0, 2**30 - 1),
    share=st.floats(0, 1),
    v=st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**64 - 1])),
)
def test_beyond_ring_compares_a_root_exactly(n: int, share: float, v: int) -> None:
    excess = round(share * 2 * n)
    for word in (
        v,
        *(
            max(0, min(2**64 - 1, math.isqrt((n * n + excess) << 128) - (n << 64) + d))
            for d in (-1, 0, 1)
        ),
    ):
        success, position = planar._beyond_ring(
            np.uint64(n), np.uint64(excess), np.array([word], dtype=np.uint64), 0
        )
        assert position == 1
        assert success == ((n * 2**64 + word) ** 2 < (n * n + excess) << 128)


@given(
    square=st.one_of(
        st.integers(-5, 100), st.integers(0, 2**60), st.integers(0, 2**30 - 1).map(lambda c: c * c)
    ),
    d=st.integers(-1, 1),
)
def test_root_up_is_the_first_whole_root(square: int, d: int) -> None:
    c = int(planar._root_up(square + d))
    assert c >= 0
    assert c * c >= square + d
    assert c == 0 or (c - 1) ** 2 < square + d


@given(scale=st.fractions(min_value=Fraction(1, 16), max_value=2**22))
def test_the_raised_scale_pays_for_the_last_bit(scale: Fraction) -> None:
    raised = planar.raised_scale(scale)
    # one step costs 1 / raised, and the last bits of two probabilities 2**-64 / raised
    assert (1 + Fraction(1, 2**63)) / raised <= 1 / scale
    assert raised <= scale * (1 + Fraction(1, 2**15))


@pytest.mark.parametrize("scale", [0, -1, "1/17", 2**22 + 1, "x", float("nan")])
def test_a_planar_scale_out_of_range_is_refused(scale: object) -> None:
    with pytest.raises(ParameterError, match="The 'scale_steps' parameter of planar_"):
        planar_laplace(scale, 1, Words(TestStream(1)))


# --- l2 K-norm
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2, 3, 16])
def test_the_radius_of_knorm_noise_is_gamma(dimension: int) -> None:
    from scipy.stats import gamma

    z = knorm(dimension, 5000, 100_000, Words(TestStream(31))).astype(np.float64)
    r = np.sqrt((z**2).sum(axis=1))
    assert_distribution(r, lambda v, factor: gamma.cdf(v, dimension, scale=5000 * factor))
    assert abs((r**2).mean() / (dimension * (dimension + 1) * 5000**2) - 1) < 0.02


@pytest.mark.parametrize("dimension", [2, 3, 7, 16])
def test_the_direction_of_knorm_noise_is_uniform(dimension: int) -> None:
    from scipy.stats import beta, kstest

    z = knorm(dimension, 5000, 100_000, Words(TestStream(32))).astype(np.float64)
    u = z / np.sqrt((z**2).sum(axis=1, keepdims=True))
    # one coordinate of a uniform direction is 2 Beta((D-1)/2, (D-1)/2) - 1, also along a skew axis
    skew = np.random.default_rng(1).normal(size=dimension)
    skew /= np.sqrt((skew**2).sum())
    for c in (u[:, 0], u[:, -1], u @ skew):
        assert kstest((c + 1) / 2, beta((dimension - 1) / 2, (dimension - 1) / 2).cdf).pvalue > 1e-6
    assert np.sqrt((u.mean(axis=0) ** 2).sum()) < 5 / np.sqrt(len(u))
    r = np.sqrt((z**2).sum(axis=1))
    assert abs(np.corrcoef(r, u[:, 0])[0, 1]) < 5 / np.sqrt(len(u))
    assert abs(np.corrcoef(r, np.abs(u[:, 0]))[0, 1]) < 5 / np.sqrt(len(u))


def test_two_dimensions_on_a_coarse_grid_have_the_mass_of_their_cells() -> None:
    z = knorm(2, 1, 400_000, Words(TestStream(34)))
    reach, fine = 4, 64

    def law(factor: float) -> np.ndarray:
        mid = (np.arange((2 * reach + 1) * fine) + 0.5) / fine - reach - 0.5
        density = (
            np.exp(-np.hypot(*np.meshgrid(mid, mid)) / factor) / (2 * np.pi * factor**2) / fine**2
        )
        p = density.reshape(2 * reach + 1, fine, 2 * reach + 1, fine).sum(axis=(1, 3)).ravel()
        return np.append(p, 1 - p.sum())

    inside = (np.abs(z) <= reach).all(axis=1)
    counts = np.bincount((z[inside] + reach) @ [2 * reach + 1, 1], minlength=(2 * reach + 1) ** 2)
    assert_pmf(np.append(counts, np.count_nonzero(~inside)), law)


@pytest.mark.parametrize(
    ("dimension", "scale", "least"),
    [
        (1, Fraction(1000), 35),
        (2, Fraction(2**20), 35),
        (5, Fraction(1, 3), 35),
        (8, Fraction(2**26), 35),
        (9, Fraction(2**30), 20),
        (9, Fraction(2**40), 0),
    ],
)
def test_a_settled_vector_stays_whatever_the_further_bits_are(
    dimension: int, scale: Fraction, least: int
) -> None:
    uniforms = dimension + (dimension + 1) // 2
    words = TestStream(35).take(uniforms * 40)
    settled = 0
    for i in range(40):
        own = words[i * uniforms : (i + 1) * uniforms]
        out = np.zeros(dimension, dtype=np.int64)
        done, _, _ = knorm_module._settled(
            dimension, float(scale), out, 0, own, 0, np.empty(dimension + 1)
        )
        for further in (0, 2**64 - 1):
            rest = np.full(uniforms * 31, further, dtype=np.uint64)
            all_of_them = np.concatenate((own, rest))
            vectors = [
                knorm_module._surely(dimension, scale, all_of_them[: uniforms * width], width)
                for width in (4, 32)
            ]
            assert all(settled for _, settled in vectors)
            assert vectors[0] == vectors[1]
            assert done == 0 or out.tolist() == vectors[0][0]
        settled += done > 0
    assert settled >= least


def test_unsettled_vectors_are_drawn_from_more_bits() -> None:
    # one uniform below 2**-20: double precision is not asked
    own = np.array([1, 2**62, 2**61], dtype=np.uint64)
    out = np.zeros(2, dtype=np.int64)
    assert (
        knorm_module._settled(2, 100.0, out, 0, own, 0, np.empty(3))[2] == knorm_module._UNSETTLED
    )
    kernel = knorm_module._KNormKernel(2, Fraction(100))
    rest = TestStream(1).take(9)
    assert kernel(out, 0, own, 0) == (0, 0)
    assert kernel(out, 0, np.concatenate((own, rest)), 0) == (2, 12)
    assert np.hypot(*out) > 100 * 40  # -ln(2**-64) is 44


def test_a_vector_that_256_bits_do_not_settle_is_drawn_on() -> None:
    # uniforms of 2**-200 and less say nothing within 256 bits
    kernel, out = knorm_module._KNormKernel(2, Fraction(100)), np.zeros(2, dtype=np.int64)
    words = np.concatenate((np.zeros(12, dtype=np.uint64), TestStream(1).take(400)))
    assert not knorm_module._surely(2, Fraction(100), words[:12], 4)[1]
    assert kernel(out, 0, words[:95], 0) == (0, 0)
    assert kernel(out, 0, words, 0) == (2, 96)
    nothing = np.zeros(400, dtype=np.uint64)
    assert kernel(out, 0, nothing[:383], 0) == (0, 0)
    assert kernel(out, 0, nothing[:384], 0) == (
        2,
        384,
    )  # given up, as charged: it has probability 2**-8192


def test_large_scales_use_the_slow_arithmetic_and_keep_the_law() -> None:
    z = knorm(2, 2**40, 400, Words(TestStream(36))).astype(np.float64)
    r = np.hypot(z[:, 0], z[:, 1]) / 2**40
    from scipy.stats import gamma, kstest

    assert kstest(r, gamma(2).cdf).pvalue > 1e-6
    assert abs(r.mean() - 2) < 5 * np.sqrt(2 / 400)


@pytest.mark.parametrize(
    ("dimension", "scale", "message"),
    [
        (0, 1, "The 'dimension' parameter of knorm must be a whole number of at least 1"),
        (4097, 1, "The 'dimension' parameter of knorm must be at most 4096"),
        (2.5, 1, "The 'dimension' parameter"),
        (2, 0, "The 'scale_steps' parameter"),
        (2, -1.0, "The 'scale_steps' parameter"),
        (2, 2**41, r"The 'scale_steps' parameter of knorm must be from 2\*\*-20 to 2\*\*40"),
        (2, float("inf"), "The 'scale_steps' parameter"),
    ],
)
def test_bad_knorm_parameters_are_refused(dimension: object, scale: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        knorm(dimension, scale, 1, Words(TestStream(1)))


SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


class Rare(TestStream):
    """Words of which every seventh says too little for double precision."""

    taken = 0

    def take(self, count: int) -> np.ndarray:
        words, place = super().take(count), np.arange(self.taken, self.taken + count)
        self.taken += count
        return np.where(place % 7 == 0, words >> np.uint64(30), words)

    def child(self, *keys: str | int) -> Rare:
        return Rare(self._seed, *self._keys, *keys)


def places(space: Any, rows: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-10, 10, (2, rows, count))
    if isinstance(space, Sphere):
        x, y = x + 180.0, y + 90.0
    return x, y, rng.random((rows, count)) > 0.1


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize("epsilon", ["30", "1", "1/50"])  # narrow and wide arcs
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(("source", "count"), [(TestStream, 3000), (Rare, 60)])
def test_noise_is_that_of_kaleido_with_one_publication_to_a_window(
    space: Any, epsilon: str, inside: bool, source: Any, count: int
) -> None:
    e, r = Fraction(epsilon), Fraction(2)
    made = plan(UNIFORM, space, e, 1, r, None, 1, 1, r)
    edges = zip(
        ("x_low", "x_high", "y_low", "y_high"), limits(space, lattice_bits(r), inside), strict=True
    )
    made = replace(made, settings=made.settings._replace(**dict(edges)))
    stage = LatticeStage(made, 2, [source(1), source(2)])
    there = places(space, 2, count)
    wanted = stage.run(np.zeros((2, count), dtype=np.int64), *(a.copy() for a in there))[1:]
    x, y, valid = (a.copy() for a in there)
    sampler = LatticeLaw(space, r, e, inside).sampler([source(1), source(2)])
    for part in (slice(0, count // 3), slice(count // 3, count)):
        own = [np.ascontiguousarray(a[:, part]) for a in (x, y, valid)]
        sampler.add(own[0], own[1], own[2])
        x[:, part], y[:, part], valid[:, part] = own
        sampler = pickle.loads(pickle.dumps(sampler))
    for ours, theirs in zip((x, y, valid), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert valid.any()


def test_noise_beyond_the_samplers_loses_all_places() -> None:
    x, y, valid = places(SCREEN, 1, 10)
    LatticeLaw(SCREEN, Fraction(2), Fraction(1, 10**9)).sampler([TestStream(1)]).add(x, y, valid)
    assert np.isnan(x).all()
    assert np.isnan(y).all()
    assert not valid.any()


def test_arrays_that_cannot_be_changed_in_place_are_refused() -> None:
    x, y, valid = places(SCREEN, 2, 10)
    sampler = LatticeLaw(SCREEN, Fraction(2), Fraction(1)).sampler([TestStream(1)])
    with pytest.raises(ValueError, match="contiguous"):
        sampler.add(x[:, ::2], y[:, ::2], valid[:, ::2])
