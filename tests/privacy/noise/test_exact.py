"""Exact discrete Laplace and Gaussian noise: its law, its controls, and its kernels word for word
against plain integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.opendp_noise import opendp_gaussian, opendp_laplace, opendp_noise
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, norm

from gazeveil.errors import ParameterError
from gazeveil.privacy import rational
from gazeveil.privacy.noise import exact
from gazeveil.privacy.noise.blocks import alias_table, half_gaussian
from gazeveil.privacy.noise.exact import (
    MOST_S,
    MOST_SIGMA,
    MOST_T,
    TAIL_DELTA,
    discrete_gaussian,
    discrete_laplace,
    laplace_scale,
)
from gazeveil.privacy.randomness.rng import TestStream, Words, high_word, source
from tests.support.laws import (
    ALPHA,
    assert_distribution,
    assert_pmf,
    discrete_laplace_cdf,
    laplace_cdf,
)

WORD = 1 << 64


# --- the law
# --------------------------------------------------------------------------------------------------


def laplace(scale: Fraction, n: int, seed: int) -> np.ndarray:
    return discrete_laplace(scale, n, Words(TestStream(seed)))


def gaussian(sigma: int, n: int, seed: int) -> np.ndarray:
    return discrete_gaussian(sigma, n, Words(TestStream(seed)))


def cells(x: np.ndarray, reach: int) -> np.ndarray:
    inside = np.abs(x) <= reach
    return np.append(
        np.bincount(x[inside] + reach, minlength=2 * reach + 1), np.count_nonzero(~inside)
    )


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(10, 7), Fraction(10), Fraction(300)]
)
def test_discrete_laplace_has_its_probabilities(scale: Fraction) -> None:
    reach = int(8 * scale) + 4

    def law(factor: float) -> np.ndarray:
        a = np.exp(-1 / (float(scale) * factor))
        p = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
        return np.append(p, max(0.0, 1 - p.sum()))

    assert_pmf(cells(laplace(scale, 400_000, 11), reach), law)


@pytest.mark.parametrize(
    "scale",
    [Fraction(700), Fraction(2**26 - 1), Fraction(2**26 + 1), Fraction(10**12, 7), Fraction(2**40)],
)
def test_discrete_laplace_of_large_scale_follows_the_continuous_law(scale: Fraction) -> None:
    # the step is below a thousandth of the scale: randomising inside it leaves no trace at this
    # sample size
    x = laplace(scale, 200_000, 12)
    if scale < 10**6:
        assert_distribution(x, discrete_laplace_cdf(float(scale)), step=1.0)
    else:
        assert_distribution(x, laplace_cdf(float(scale)))


@pytest.mark.parametrize("sigma", [1, 2, 40, 1000])
def test_discrete_gaussian_has_its_probabilities(sigma: int) -> None:
    reach = 6 * sigma

    def law(factor: float) -> np.ndarray:
        i = np.arange(-12 * sigma, 12 * sigma + 1)
        p = np.exp(-(i**2) / (2 * (sigma * factor) ** 2))
        p /= p.sum()
        inside = p[np.abs(i) <= reach]
        return np.append(inside, max(0.0, 1 - inside.sum()))

    assert_pmf(cells(gaussian(sigma, 400_000, 13), reach), law)


def test_discrete_gaussian_of_the_largest_sigma_follows_the_continuous_law() -> None:
    x = discrete_gaussian(MOST_SIGMA, 200_000, Words(TestStream(14)))
    assert_distribution(x, lambda v, factor: norm.cdf(v, scale=MOST_SIGMA * factor))


def test_noise_from_the_system_follows_the_law_too() -> None:
    x = discrete_laplace(Fraction(50), 200_000, Words(source(None)))
    assert_distribution(x, discrete_laplace_cdf(50.0), step=1.0)


@pytest.fixture(scope="module")
def theirs() -> dict[str, np.ndarray]:
    return {
        "laplace": opendp_noise(opendp_laplace(9.0), 100_000),
        "gaussian": opendp_noise(opendp_gaussian(7.0), 30_000),
    }


def deviations(a: np.ndarray, b: np.ndarray) -> float:
    """Difference of the mean sizes in standard deviations."""
    x, y = np.abs(a), np.abs(b)
    return float(abs(x.mean() - y.mean()) / np.sqrt(x.var() / len(x) + y.var() / len(y)))


def test_opendp_agrees(theirs: dict[str, np.ndarray]) -> None:
    for name, ours, reach in (
        ("laplace", laplace(Fraction(9), 200_000, 15), 40),
        ("gaussian", gaussian(7, 200_000, 17), 20),
    ):
        assert (
            chi2_contingency(np.stack((cells(theirs[name], reach), cells(ours, reach)))).pvalue
            > ALPHA / 10
        )
        # Ours are drawn once and for all, and lie up to a deviation from their law.
        assert deviations(theirs[name], ours) < 6
    for factor in ("0.95", "1.05"):
        assert deviations(theirs["laplace"], laplace(9 * Fraction(factor), 200_000, 16)) > 6


# --- the kernels, word for word
# --------------------------------------------------------------------------------------------------


def plain_below(m: int, words: Iterator[int]) -> int:
    while True:
        word = next(words)
        if word * m % WORD >= WORD % m:
            return word * m // WORD


def plain_geometric(words: Iterator[int]) -> tuple[int, int]:
    total = 0
    while True:
        word = next(words)
        bits, digits = 63, word >> 1
        j = 0
        while j < 64:
            # more words of the same real until it is told from the threshold
            threshold = THRESHOLDS[j] >> (1087 - bits)
            if digits == threshold:
                digits, bits = digits * WORD + next(words), bits + 64
            elif digits > threshold:
                j += 1
            else:
                break
        total += j
        if j < 64:
            return total, word & 1


THRESHOLDS = [
    (1 << 1087) - (rational.exp_minus(Fraction(j, 4), 1200) >> 113) - 1 for j in range(1, 65)
]


def plain_after(a: int, b: int, words: Iterator[int]) -> bool:
    k = 2
    while plain_below(k, words) == 0 and plain_below(b, words) < a:
        k += 1
    return k % 2 == 1


def plain_laplace(t: int, s: int, words: Iterator[int]) -> int:
    while True:
        if t < 1 << 26:
            word = next(words)
            a, b = word % 2**32 * t, word // 2**32 * 4 * t
            if a % 2**32 < 2**32 % t or b % 2**32 < 2**32 % (4 * t):
                continue
            u, drawn = a // 2**32, b // 2**32
        else:
            a, b = next(words) * t, next(words) * 4 * t
            if a % WORD < WORD % t or b % WORD < WORD % (4 * t):
                continue
            u, drawn = a // WORD, b // WORD
        if drawn < u and not plain_after(u, 4 * t, words):
            continue
        v, negative = plain_geometric(words)
        size = (u + t * v) // (4 * s)
        if not (negative and size == 0):
            return -size if negative else size


def plain_gaussian(sigma: int, words: Iterator[int]) -> int:
    while True:
        value = plain_laplace(sigma, 1, words)
        a, b = (abs(value) - sigma) ** 2, 2 * sigma**2
        if a >= b and plain_geometric(words)[0] // 4 < a // b:
            continue
        a %= b
        if plain_below(b, words) >= a or plain_after(a, b, words):
            return value


class Given:
    """A source of given words, then of a test stream."""

    secure = False

    def __init__(self, words: list[int]) -> None:
        self.words, self.stream = list(words), TestStream(99)

    def take(self, count: int) -> np.ndarray:
        first, self.words = self.words[:count], self.words[count:]
        return np.concatenate(
            (np.array(first, dtype=np.uint64), self.stream.take(count - len(first)))
        )

    def __iter__(self) -> Iterator[int]:
        while True:
            yield int(self.take(1)[0])


edges = st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
near_ties = st.integers(0, 63).flatmap(
    lambda j: st.integers(-2, 2).map(lambda d: ((THRESHOLDS[j] >> 1024) * 2 + d) % WORD)
)
any_words = st.lists(st.one_of(st.integers(0, WORD - 1), edges, near_ties), max_size=40)
numerators = st.one_of(
    st.integers(1, 50), st.integers(2**26 - 3, 2**26 + 3), st.integers(1, MOST_T), st.just(MOST_T)
)


@given(
    t=numerators,
    s=st.one_of(st.integers(1, 9), st.integers(1, MOST_S), st.just(MOST_S)),
    words=any_words,
)
@settings(max_examples=150)
def test_laplace_kernel_equals_plain_integers(t: int, s: int, words: list[int]) -> None:
    scale = Fraction(t, s)
    reference = iter(Given(words))
    expected = [plain_laplace(scale.numerator, scale.denominator, reference) for _ in range(20)]
    assert discrete_laplace(scale, 20, Words(Given(words))).tolist() == expected


@given(
    sigma=st.one_of(st.integers(1, 9), st.integers(1, MOST_SIGMA), st.just(MOST_SIGMA)),
    words=any_words,
)
@settings(max_examples=100)
def test_gaussian_kernel_equals_plain_integers(sigma: int, words: list[int]) -> None:
    reference = iter(Given(words))
    expected = [plain_gaussian(sigma, reference) for _ in range(10)]
    assert discrete_gaussian(sigma, 10, Words(Given(words))).tolist() == expected


@pytest.mark.parametrize(
    ("further", "reached"), [([-1], False), ([1], True), ([0, -1], False), ([0] * 16, True)]
)
def test_a_tie_with_a_threshold_is_settled_by_the_next_words(
    further: list[int], reached: bool
) -> None:
    limbs, _ = exact.thresholds()
    words = [int(limbs[5, 0]) * 2 + 1, *(int(limbs[5, 1 + i]) + d for i, d in enumerate(further))]
    value, bit, position = exact.draw_geometric(np.array(words, dtype=np.uint64), 0)
    assert (int(value), int(bit), position) == (6 if reached else 5, 1, len(words))
    assert exact.draw_geometric(np.array(words[:-1], dtype=np.uint64), 0)[2] == -1


def test_thresholds_are_right_to_the_last_digit() -> None:
    limbs, guide = exact.thresholds()
    with localcontext() as context:
        context.prec = 340
        for j in (0, 1, 17, 63):
            digits = int(limbs[j, 0])
            for limb in limbs[j, 1:].tolist():
                digits = digits * WORD + limb
            assert digits == int((1 - (Decimal(-(j + 1)) / 4).exp()) * Decimal(2) ** 1087)
    firsts = limbs[:, 0]
    for b in range(256):
        assert guide[b] == np.count_nonzero(firsts < np.uint64(b << 55))


@pytest.mark.parametrize(
    ("a", "b"), [(0, 5), (1, 5), (5, 5), (7, 5), (23, 5), (2**61, 2**60), (3, 2**61)]
)
def test_bernoulli_exp_has_its_probability(a: int, b: int) -> None:
    words, position, kept, n = TestStream(3).take(600_000), 0, 0, 40_000
    for _ in range(n):
        success, position = exact.draw_bernoulli_exp(np.uint64(a), np.uint64(b), words, position)
        kept += success
    p = np.exp(-a / b)
    assert abs(kept - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9


@given(a=st.integers(0, WORD - 1), b=st.integers(0, WORD - 1))
def test_high_is_the_upper_half_of_the_product(a: int, b: int) -> None:
    assert int(high_word(np.uint64(a), np.uint64(b))) == a * b >> 64


# --- parameters
# --------------------------------------------------------------------------------------------------


@given(scale=st.fractions(min_value=Fraction(1, 10**9), max_value=MOST_T))
def test_a_scale_is_rounded_up_never_down_and_hardly(scale: Fraction) -> None:
    t, s = laplace_scale(scale)
    assert t <= MOST_T + 1
    assert s <= MOST_S
    assert scale <= Fraction(t, s) <= scale + Fraction(1, s)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(MOST_T + 1)])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(
        ParameterError,
        match=r"The 'scale' parameter of discrete_laplace must be positive and at most 2\*\*40",
    ):
        discrete_laplace(scale, 1, Words(TestStream(1)))


@pytest.mark.parametrize("sigma", [0, -1, MOST_SIGMA + 1, 1.5, True, Fraction(3, 2)])
def test_a_sigma_out_of_range_is_refused(sigma: object) -> None:
    with pytest.raises(
        ParameterError,
        match="The 'sigma' parameter of discrete_gaussian must be a whole number of grid steps",
    ):
        discrete_gaussian(sigma, 1, Words(TestStream(1)))


@pytest.mark.parametrize("count", [-1, 1.5, None])
def test_a_count_that_is_none_is_refused(count: object) -> None:
    words = Words(TestStream(1))
    for draw in (
        lambda: discrete_laplace(Fraction(1), count, words),
        lambda: discrete_gaussian(1, count, words),
    ):
        with pytest.raises(ParameterError, match="The 'count' parameter"):
            draw()


def test_what_is_charged_is_next_to_nothing() -> None:
    assert 0 < TAIL_DELTA < Fraction(1, 10**250)


# --- tables
# --------------------------------------------------------------------------------------------------


def fixed(weights: list[int]):
    """A law with whole weights."""
    return lambda bits: [w << bits for w in weights]


@given(weights=st.lists(st.integers(0, 2**60), min_size=1, max_size=70).filter(any))
def test_an_alias_table_gives_every_outcome_its_slots(weights: list[int]) -> None:
    table = alias_table(fixed(weights))
    columns, capacity = 1 << table.bits, 1 << (63 - table.bits)
    owned = [0] * columns
    for column in range(columns):
        keep = int(table.keep[column])
        assert 0 <= keep <= capacity
        owned[column] += keep
        owned[int(table.alias[column])] += capacity - keep
    n = len(table.owned)
    assert owned[:n] == table.owned
    assert owned[n] == table.escapes <= 2 * len(weights)
    assert not any(owned[n + 1 :])
    for x, w in enumerate(weights):
        slots = Fraction(w << 63, sum(weights))
        assert 0 <= slots - (table.owned[x] if x < n else 0) <= 1 + Fraction(1, 1 << 99)


def escape_word(table) -> int:
    """A word whose slot nobody owns."""
    n, capacity = len(table.owned), 1 << (table.slot_bits - table.bits)
    column = next(
        c
        for c in range(1 << table.bits)
        if (c == n and table.keep[c] > 0) or (table.alias[c] == n and table.keep[c] < capacity)
    )
    slot = column * capacity + (0 if column == n else capacity - 1)
    return slot << (64 - table.slot_bits)


def test_an_escape_gives_outcomes_their_fraction_of_a_slot() -> None:
    table = alias_table(
        fixed([1, 1, 1])
    )  # thirds: of the two slots left over each outcome has two thirds
    assert table.escapes == 2
    assert table.owned == [(1 << 63) // 3] * 3
    third = (1 << 1216) // 3
    for place, outcome in [
        (0, 0),
        (2 * third - 1, 0),
        (2 * third + 2, 1),
        (4 * third - 1, 1),
        (4 * third + 4, 2),
        (6 * third - 9, 2),
    ]:
        slot, rest = divmod(place, 1 << 1216)
        words = np.array(
            [
                escape_word(table),
                slot << 63,
                *(rest >> (64 * i) & (WORD - 1) for i in range(18, -1, -1)),
            ],
            dtype=np.uint64,
        )
        assert table.look_up(words, 0) == (outcome, 0, 21)
        assert table.look_up(words[:-1], 0)[2] == -1
        assert table.look_up(words[:1], 0)[2] == -1


def test_an_escape_reaches_outcomes_beyond_the_table() -> None:
    table = alias_table(half_gaussian(Fraction(3)))
    n = len(table.owned)
    assert n < len(table.law(1296))
    # the last places of the last slot belong to outcomes with less than one slot
    words = np.array([escape_word(table), WORD - 1, *[WORD - 1] * 19], dtype=np.uint64)
    assert table.look_up(words, 0)[0] in {0, *range(n, 200)}
