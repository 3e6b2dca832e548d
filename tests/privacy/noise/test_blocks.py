"""Gaussian noise by blocks: its law, its controls, and its kernel word for word against plain
integers.

The tests of noise are tested themselves: what they must accept, and the mutants they must
reject.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.blocks import SLOT_BITS, block_sampler, gaussian_by_blocks
from gazeveil.privacy.noise.exact import MOST_SIGMA
from gazeveil.privacy.randomness.rng import TestStream, Words, source
from tests.privacy.noise.test_exact import (
    WORD,
    Given,
    any_words,
    cells,
    escape_word,
    plain_after,
    plain_below,
)
from tests.support.laws import (
    assert_distribution,
    assert_pmf,
    discrete_laplace_cdf,
    fits,
    follows,
    laplace_cdf,
)


def law_of(sigma: float, reach: int) -> np.ndarray:
    """Probabilities of -reach to reach, and of everything else."""
    i = np.arange(-int(12 * sigma) - 1, int(12 * sigma) + 2)
    p = np.exp(-(i**2) / (2.0 * sigma**2))
    p /= p.sum()
    inside = p[np.abs(i) <= reach]
    return np.append(inside, max(0.0, 1 - inside.sum()))


# --- the law
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1, 2, 40, 64, 127, 128, 1000])
def test_noise_by_blocks_has_its_probabilities(sigma: int) -> None:
    x = gaussian_by_blocks(sigma, 400_000, Words(TestStream(21)))
    assert_pmf(cells(x, 6 * sigma), lambda factor: law_of(sigma * factor, 6 * sigma))


@pytest.mark.parametrize("sigma", [10_240, 16_383, MOST_SIGMA])
def test_noise_of_large_sigma_follows_the_continuous_law(sigma: int) -> None:
    from scipy.stats import norm

    x = gaussian_by_blocks(sigma, 400_000, Words(TestStream(22)))
    assert_distribution(x, lambda v, factor: norm.cdf(v, scale=sigma * factor))


def test_noise_from_the_system_follows_the_law_too() -> None:
    x = gaussian_by_blocks(30, 400_000, Words(source(None)))
    assert_pmf(cells(x, 180), lambda factor: law_of(30 * factor, 180))


def test_values_lean_within_a_block_as_they_should() -> None:
    # What a block keeps differs by a hundredth from its first step to its last: too little for the
    # tests above, which a sampler that keeps everything would pass.
    sigma, n, size = 1000, 20_000_000, 8
    assert block_sampler(sigma).law.k == 3
    x = np.abs(gaussian_by_blocks(sigma, n, Words(TestStream(25))))
    x = x[x > 0]
    i = np.arange(1, 12 * sigma)
    p = np.exp(-(i**2) / (2.0 * sigma**2))
    expected = float(np.average(i % size, weights=p))
    error = float(np.std(x % size) / np.sqrt(len(x)))
    five = 4.9  # standard deviations, a false alarm in a million
    assert abs(float(np.mean(x % size)) - expected) < five * error
    everything_kept = float(np.average(i % size, weights=np.exp(-((i // size) ** 2) / 31250.0)))
    assert abs(float(np.mean(x % size)) - everything_kept) > five * error


# --- the kernel, word for word
# --------------------------------------------------------------------------------------------------


def plain_block(sigma: int, words: Iterator[int]) -> int:
    sampler = block_sampler(sigma)
    table, k = sampler.table, max(0, sigma.bit_length() - 7)
    first, c = 23 - k, 2 * sigma**2
    while True:
        word = next(words)
        slot, v = word >> 24, (word >> (k + 1)) % 2**first
        u, negative = (word >> 1) % 2**k, word % 2
        column, rest = divmod(slot, 1 << (SLOT_BITS - table.bits))
        j = column if rest < int(table.keep[column]) else int(table.alias[column])
        if j == len(table.owned):
            # The slot is drawn until a word is not rejected; then come the 1,216 further bits.
            tail = [next(words)]
            while tail[-1] * table.escapes % WORD < WORD % table.escapes:
                tail.append(next(words))
            tail += [next(words) for _ in range(19)]
            j, used = table.escape(np.array(tail, dtype=np.uint64), 0)
            assert used == len(tail)
        size = j * 2**k + u
        a = size**2 - (j * 2**k) ** 2
        below = Fraction(v, 2**first) < Fraction(a, c)
        if below and Fraction(v + 1, 2**first) > Fraction(a, c):
            below = plain_below(c, words) < a * 2**first - v * c
        if below and not plain_after(a, c, words):
            continue
        if size or not negative:
            return -size if negative else size


def near_a_tie(sigma: int, j: int, u: int, off: int) -> int:
    """A word of that block and step whose first bits of V are about a / c."""
    sampler = block_sampler(sigma)
    table, law = sampler.table, sampler.law
    j = j % len(table.owned)
    columns = np.flatnonzero((table.keep > 0) & (np.arange(len(table.keep)) == j))
    slot = int(columns[0]) << law.shift if len(columns) else 0
    u %= 2**law.k
    a = u * (2 * j * 2**law.k + u)
    v = min(max(a * 2**law.first // int(law.c) + off, 0), 2**law.first - 1)
    return slot << 24 | v << (law.k + 1) | u << 1


sigmas = st.one_of(
    st.integers(1, 300), st.integers(1, MOST_SIGMA), st.sampled_from([64, 127, 128, MOST_SIGMA])
)


@given(
    sigma=sigmas,
    words=any_words,
    ties=st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 2**14 - 1), st.integers(-1, 1)), max_size=8
    ),
    escape=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_kernel_equals_plain_integers(
    sigma: int, words: list[int], ties: list[tuple[int, int, int]], escape: bool
) -> None:
    given_words = [near_a_tie(sigma, *tie) for tie in ties] + words
    if escape:
        given_words.insert(0, escape_word(block_sampler(sigma).table))
    reference = iter(Given(given_words))
    expected = [plain_block(sigma, reference) for _ in range(15)]
    assert gaussian_by_blocks(sigma, 15, Words(Given(given_words))).tolist() == expected


def test_an_escape_waits_for_its_words() -> None:
    sampler = block_sampler(1000)
    words = TestStream(26).take(40)
    words[0] = escape_word(sampler.table)
    out = np.empty(1, dtype=np.int64)
    assert sampler(out, 0, words[:20], 0) == (0, 0)
    done, position = sampler(out, 0, words, 0)
    assert done == 1
    assert position >= 21


# --- parameters
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0, -1, MOST_SIGMA + 1, 1.5, True, Fraction(3, 2)])
def test_a_sigma_out_of_range_is_refused(sigma: object) -> None:
    with pytest.raises(
        ParameterError,
        match="The 'sigma' parameter of gaussian_by_blocks must be a whole number of grid steps",
    ):
        gaussian_by_blocks(sigma, 1, Words(TestStream(1)))


def test_no_bit_of_a_word_serves_twice() -> None:
    for sigma in (1, 64, 128, 10_240, MOST_SIGMA):
        law = block_sampler(sigma).law
        assert SLOT_BITS + law.first + law.k + 1 == WORD.bit_length() - 1
        assert law.first >= 9


N = 100_000


def draws(seed: int, scale: float = 3.0) -> np.ndarray:
    return np.random.default_rng(seed).laplace(scale=scale, size=N)


def whole(seed: int, t: float = 3.0) -> np.ndarray:
    g = np.random.default_rng(seed).geometric(1 - np.exp(-1 / t), size=(2, N))
    return g[0] - g[1]


def cells_of(x: np.ndarray, reach: int = 40) -> np.ndarray:
    return np.append(np.bincount(np.clip(x, -reach, reach) + reach, minlength=2 * reach + 1), 0)


def law(t: float, reach: int = 40):
    def at(scale: float) -> np.ndarray:
        a = np.exp(-1 / (t * scale))
        p = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
        p[[0, -1]] = a**reach / (1 + a)
        return np.append(p, 0.0)

    return at


def test_the_right_noise_is_accepted() -> None:
    assert_distribution(draws(1), laplace_cdf(3.0))
    assert_distribution(whole(1), discrete_laplace_cdf(3.0), step=1.0)
    assert_pmf(cells_of(whole(1)), law(3.0))


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_five_percent_more_or_less_noise_fails(factor: float) -> None:
    with pytest.raises(AssertionError, match="do not follow"):
        assert_distribution(draws(2, 3.0 * factor), laplace_cdf(3.0))
    with pytest.raises(AssertionError, match="do not follow"):
        assert_distribution(whole(2, 3.0 * factor), discrete_laplace_cdf(3.0), step=1.0)
    with pytest.raises(AssertionError, match="do not fit"):
        assert_pmf(cells_of(whole(2, 3.0 * factor)), law(3.0))


def test_a_law_that_ignores_its_scale_fails_because_the_controls_pass() -> None:
    with pytest.raises(AssertionError, match="was not rejected"):
        assert_distribution(draws(4), lambda x, scale: laplace_cdf(3.0)(x, 1.0))
    with pytest.raises(AssertionError, match="was not rejected"):
        assert_pmf(cells_of(whole(4)), lambda scale: law(3.0)(1.0))


def test_false_alarms_come_at_the_stated_rate() -> None:
    alarms = sum(
        not follows(draws(seed)[:2000], laplace_cdf(3.0), alpha=0.1) for seed in range(300)
    )
    assert (
        12 <= alarms <= 50
    )  # 30 expected at most (two tests, not independent); five standard deviations
    alarms = sum(
        not fits(cells_of(whole(seed)[:20_000]), law(3.0)(1.0), alpha=0.1) for seed in range(300)
    )
    assert 8 <= alarms <= 56
