"""fpa-private-k: what is chosen, what that costs, and what comes out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.noise.selection import exponents, selection_probabilities
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.tables.sequences.private_k.costs import UNITS, candidates, dropped
from gazeveil.privacy.tables.sequences.private_k.mechanism import FPAPrivateK
from gazeveil.privacy.tables.sequences.recordings import STEPS
from tests.support.laws import fits

ROWS = 40


def _blocks(count: int, waves: int, seed: int = 0) -> np.ndarray:
    """Recordings whose first `waves` bins hold everything."""
    rng = np.random.default_rng(seed)
    turns = 2 * np.pi * np.outer(np.arange(ROWS), np.arange(1, waves + 1)) / ROWS
    made = np.cos(turns + rng.uniform(0, 2 * np.pi, (count, 1, waves))).sum(axis=2).T
    made /= np.abs(made).max()
    return np.rint((made + 1) / 2 * STEPS).astype(np.int64)


def _table(features: int = 3, people: int = 30, recordings: int = 2) -> FeatureTable:
    """Feature f has waves up to bin 3 f + 1, so the best k differs from feature to feature."""
    values = np.stack(
        [_blocks(people * recordings, 3 * f + 1, f).T.ravel() / STEPS for f in range(features)],
        axis=1,
    )
    names = [(f"p{i}", f"s{s}", "1", "") for i in range(people) for s in range(recordings)]
    keys = Keys.of_recordings(names, [np.arange(ROWS)] * len(names))
    columns = tuple(f"f{i}" for i in range(features))
    return FeatureTable(values, columns, keys, [[0.0, 1.0]] * features)


@st.composite
def blocks(draw: st.DrawFn) -> np.ndarray:
    """Any sequence of whole numbers, corners of the box among them."""
    n = draw(st.integers(1, 60))
    steps = st.sampled_from([0, STEPS]) if draw(st.booleans()) else st.integers(0, STEPS)
    return np.array(draw(st.lists(steps, min_size=n, max_size=n)), dtype=np.int64)


@given(blocks(), st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_costs_never_rise_with_k_and_one_recording_changes_them_within_the_spread(
    block: np.ndarray, seed: int
) -> None:
    bins = tuple(range(1, len(block) // 2 + 2))
    other = np.random.default_rng(seed).permutation(STEPS - block)
    ours, theirs = dropped(np.stack((block, other), axis=1), bins)
    for units in (ours, theirs):
        assert (np.diff(units) <= 0).all()
        assert units.min() >= 0
        assert units.max() <= UNITS
    change = theirs - ours
    assert change.max() - change.min() <= UNITS


def test_what_is_dropped_is_the_squared_size_of_the_bins_above() -> None:
    block = _blocks(3, 5)
    units = dropped(block, (1, 4, 7))
    spectra = np.fft.rfft(block - STEPS / 2, axis=0)
    for i, k in enumerate((1, 4, 7)):
        low = spectra.copy()
        low[:k] = 0
        size = (np.fft.irfft(low, ROWS, axis=0) ** 2).sum(axis=0) / (ROWS * (STEPS / 2) ** 2)
        np.testing.assert_allclose(units[:, i] / UNITS, size, atol=2 / UNITS)


def test_candidates_are_public_and_none_is_dearer_than_it_could_be_worth() -> None:
    few, costs = candidates(100, 10.0)
    assert few == (1, 2)
    assert costs[1] - costs[0] < UNITS
    many, _ = candidates(100, 1000.0)
    assert many[-1] == 51
    assert candidates(100, 1.0)[0] == (1,)


def test_one_candidate_costs_no_budget_and_all_of_it_is_noise() -> None:
    choice = FPAPrivateK(1).choice(ROWS, Fraction(1))
    assert (choice.bins, choice.choosing, choice.noise) == ((1,), 0, 1)
    choice = FPAPrivateK(100, k_share=Fraction(1, 4)).choice(ROWS, Fraction(100))
    assert (choice.choosing, choice.noise) == (25, 75)
    assert len(choice.bins) > 4


def test_the_number_of_released_bins_follows_the_law_of_the_choice() -> None:
    # Small budgets for the choice, so that it is far from certain; false-alarm rate 1e-6.
    mechanism = FPAPrivateK(60, k_share=Fraction(1, 50))
    block = _blocks(1, 4)
    choice = mechanism.choice(ROWS, Fraction(60))
    law = choice.probabilities(choice.totals(block))
    assert law.max() < 0.9
    words, counts = Words(source(5)), np.zeros(len(choice.bins))
    for _ in range(2000):
        noisy = np.fft.rfft(mechanism.perturb(block, Fraction(60), words).values[:, 0])
        seen = int(np.flatnonzero(np.abs(noisy) > 1e-3).max()) + 1
        counts[choice.bins.index(seen)] += 1
    assert fits(counts, law)
    for budget in (Fraction(1, 25), Fraction(1, 500)):
        gaps, unit = exponents(choice.totals(block), budget * 60, UNITS)
        assert not fits(counts, selection_probabilities(gaps / unit))


def test_each_feature_has_the_k_that_suits_it_and_all_recordings_the_same() -> None:
    table = _table()
    out = FPAPrivateK(400).unclamped(table, seed=1)
    seen = []
    for feature in range(3):
        spectra = np.abs(np.fft.rfft(out[:, :, feature] - 0.5, axis=1))
        bins = (spectra > 1e-9).sum(axis=1)
        assert len(set(bins.tolist())) == 1
        seen.append(int(bins[0]))
    assert seen == sorted(seen)
    assert seen[0] < 4 < seen[2]


def test_the_guarantee_adds_choice_and_noise_up_exactly_at_every_unit() -> None:
    promised = FPAPrivateK("1/3", k_share="1/7", length=ROWS).release(_table()).guarantee
    assert promised.epsilon == Fraction(1, 3)
    assert promised.also == ()  # one candidate: nothing is chosen
    promised = FPAPrivateK(70, k_share="1/7", length=ROWS).release(_table()).guarantee
    assert promised.status == "proved"
    assert promised.epsilon == 70
    assert [loss.amount for _, loss in promised.also] == [10, 60]
    assert "which of 1, 2" in str(promised)
    assert promised.map(Change.recording()).epsilon == 210
    assert promised.map(Change.person()).epsilon == 420
    user = FPAPrivateK(420, k_share="1/7", per="user", length=ROWS).release(_table()).guarantee
    assert user.epsilon == 420
    assert [loss.amount for _, loss in user.also] == [10, 60]


def test_the_expected_error_is_that_of_releases() -> None:
    table = _table()
    mechanism = FPAPrivateK(150)
    wrong = [
        ((mechanism.unclamped(table, seed=s).reshape(-1, 3) - table.values) ** 2).mean(axis=0)
        for s in range(60)
    ]
    np.testing.assert_allclose(np.mean(wrong, axis=0), mechanism.expected_error(table), rtol=0.05)


def test_where_the_public_model_is_wrong_the_private_k_is_better() -> None:
    # Features with waves far above what the public spectrum expects.
    table = _table()
    private = FPAPrivateK(400).expected_error(table)
    public = gazeveil.mechanism("fpa:epsilon=400,spectrum=0.3/0.5/1000").expected_error(table)
    assert private[2] < 0.8 * public[2]


@pytest.mark.parametrize("share", [0, 1, 2, -1])
def test_a_share_must_leave_something_to_both(share: int) -> None:
    with pytest.raises(ParameterError, match="'k_share' parameter"):
        FPAPrivateK(1, k_share=share)


def test_a_choice_that_spends_twice_its_budget_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from gazeveil.privacy.tables.sequences.private_k import mechanism as module

    text = "fpa-private-k:epsilon=20,k_share=1/2"
    # One run in a million refutes the honest choice by chance.
    assert not gazeveil.audit(text, trials=2000, confidence=1 - 1e-6).refuted
    old = module.exponents
    monkeypatch.setattr(module, "exponents", lambda c, e, s: old(c, 2 * e, s))
    assert gazeveil.audit(text, trials=2000).refuted
