"""Graded release: each view has its law, all views together tell no more than the finest one,
questions have one answer.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, norm

from gazeveil import Screen, Sphere
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.privacy.stream.graded import Graded, GradedSession, _steps
from tests.support.laws import ALPHA, assert_distribution

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
N = 52_000


# --- the law
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "late"),
    [((1, 2, "2.5", 20), ()), ((2, 6), (1, 4, 3, "1/2", "0.7", 12))],
    ids=["at the start", "finer than any, between two, finer still"],
)
def test_every_view_follows_its_law(declared: Any, late: Any) -> None:
    session = Graded(declared).open(100.0, seed=2)
    for level in late:
        session.declare(level)
    for level in session.levels:
        steps = float(_steps(level, session.bits))
        noise = session.noise_steps(level, 0, N).ravel()
        assert_distribution(noise, lambda x, k, b=steps: norm.cdf((x + 0.5) / (b * k)), step=1.0)


def test_increments_do_not_depend_on_finer_noise_in_whatever_order_levels_came() -> None:
    session = Graded((4, 8)).open(100.0, seed=3)
    for level in (1, 2):
        session.declare(level)
    noise = {level: session.noise_steps(level, 0, N).ravel() for level in session.levels}
    for fine, coarse in zip(session.levels, session.levels[1:], strict=False):
        size, step = noise[fine], noise[coarse] - noise[fine]
        # Independent: the law of the increment is the same where the finer noise is small and where
        # it is large.
        small = np.abs(size) < np.median(np.abs(size))
        assert ks_2samp(step[small], step[~small]).pvalue > ALPHA
        assert ks_2samp(step[size > 0], step[size < 0]).pvalue > ALPHA


def test_the_reverse_conditional_is_the_closed_form() -> None:
    session = Graded((2,)).open(100.0, seed=5)
    session.declare(1)
    coarse, fine = (session.noise_steps(level, 0, N).ravel() for level in (2, 1))
    rest = fine - coarse / 4
    assert_distribution(rest, lambda x, k: norm.cdf(x / (512 * np.sqrt(0.75) * k)))
    assert abs(np.corrcoef(coarse, rest)[0, 1]) < 5 / np.sqrt(2 * N)


# --- coalitions
# --------------------------------------------------------------------------------------------------


def squared_errors(views: np.ndarray, truth: np.ndarray, trained: bool) -> np.ndarray:
    """On the second half: of the best linear combination of the views, or of a regressor trained to
    correct the finest one.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    half = len(truth) // 2
    if not trained:
        design = np.column_stack((views, np.ones(len(views))))
        fit = np.linalg.lstsq(design[:half], truth[:half], rcond=None)[0]
        return np.asarray((design[half:] @ fit - truth[half:]) ** 2)
    inputs = np.column_stack((views[:, 0], views[:, 1:] - views[:, :1]))
    model = HistGradientBoostingRegressor(max_iter=60, learning_rate=0.15, random_state=0)
    model.fit(inputs[:half], (truth - views[:, 0])[:half])
    return np.asarray((views[half:, 0] + model.predict(inputs[half:]) - truth[half:]) ** 2)


def most_gain(views: np.ndarray, truth: np.ndarray, trained: bool) -> float:
    """Upper end (five standard errors) of what all views save of the RMS error that the finest one
    alone leaves, as a share.
    """
    alone, together = (
        squared_errors(views[:, :1], truth, trained),
        squared_errors(views, truth, trained),
    )
    gain = (alone - together) / (2 * alone.mean())
    return float(gain.mean() + 5 * gain.std() / np.sqrt(len(gain)))


@pytest.mark.parametrize("m", [2, 10])
def test_colluding_apps_gain_nothing_over_the_finest_view(m: int) -> None:
    n = 40_000
    truth = np.random.default_rng(m).uniform(-15, 15, n)
    levels = [Fraction(4) * Fraction(5, 4) ** i for i in range(m)]
    session = Graded(tuple(levels)).open(100.0, SCREEN, seed=m)
    views = np.stack(
        [truth + session.noise_steps(level, 0, n)[:, 0] / 2.0**session.bits for level in levels],
        axis=1,
    )
    assert most_gain(views, truth, trained=False) < 0.02
    assert most_gain(views, truth, trained=True) < 0.02


def test_the_measure_of_collusion_sees_a_gain_where_there_is_one() -> None:
    n = 40_000
    rng = np.random.default_rng(1)
    truth = rng.uniform(-15, 15, n)
    views = truth[:, None] + rng.normal(0, 4, (n, 2))
    assert most_gain(views, truth, trained=False) > 0.2
    assert most_gain(views, truth, trained=True) > 0.1


# --- one answer
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=5))
def test_any_split_into_blocks_gives_the_same_views(space: Any, cuts: list[int]) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(1, 20, 600), rng.uniform(1, 12, 600)
    t, ok = np.arange(600) * 10**7, rng.random(600) > 0.1
    whole = Graded((1, 3)).open(100.0, space, seed=8).push(t, x, y, ok)
    session = Graded((1, 3)).open(100.0, space, seed=8)
    edges = sorted({0, 600, *cuts})
    parts = [session.push(t[i:j], x[i:j], y[i:j], ok[i:j]) for i, j in itertools.pairwise(edges)]
    for level, want in whole.items():
        for k in range(4):
            np.testing.assert_array_equal(np.concatenate([p[level][k] for p in parts]), want[k])


def test_views_lie_on_the_public_grid_and_lost_samples_stay_lost() -> None:
    for space, shift in ((SCREEN, 0.0), (Sphere(), 90.0)):
        session = Graded((2, 40)).open(100.0, space, seed=1)
        rng = np.random.default_rng(3)
        x, y = rng.uniform(-20, 20, 3000) + shift, rng.uniform(-10, 10, 3000) + shift
        ok = rng.random(3000) > 0.2
        for _, a, b, v in session.push(np.arange(3000) * 10**7, x, y, ok).values():
            np.testing.assert_array_equal(v, ok)
            assert np.isnan(a[~v]).all()
            for c in (a[v], b[v]):
                np.testing.assert_array_equal(np.rint(c * 2.0**session.bits), c * 2.0**session.bits)
            if isinstance(space, Sphere):
                assert ((a[v] >= 0) & (a[v] < 360) & (b[v] >= 0) & (b[v] < 180)).all()
            else:
                assert ((np.abs(a[v]) < 90) & (np.abs(b[v]) < 90)).all()


def test_a_level_declared_later_changes_no_other_view() -> None:
    t, x = np.arange(600) * 10**7, np.linspace(-5, 5, 600)
    alone, other = (Graded((1, 3)).open(100.0, SCREEN, seed=1) for _ in range(2))
    alone.push(t[:300], x[:300], x[:300])
    other.push(t[:300], x[:300], x[:300])
    other.declare(2)
    wanted, found = (session.push(t[300:], x[300:], x[300:]) for session in (alone, other))
    assert sorted(found) == [1, 2, 3]
    for level in wanted:
        np.testing.assert_array_equal(found[level][1], wanted[level][1])
    secret = Graded((1, 3)).open(100.0, SCREEN)
    assert (secret.push(t[300:], x[300:], x[300:])[Fraction(1)][1] != found[Fraction(1)][1]).any()


# --- refusals and promises
# --------------------------------------------------------------------------------------------------


def near(session: GradedSession) -> None:
    session.declare("16/1024")
    session.declare("17/1024")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Graded(()), "at least one"),
        (lambda: Graded("1"), "several sigmas"),
        (lambda: Graded((0,)), "sigma_deg"),
        (lambda: Graded((5000,)), "sigma_deg"),
        (lambda: Graded((1,), r_deg=0), "r_deg"),
        (lambda: Graded((1,)).open(0.0), "rate_hz"),
        (lambda: Graded((1,)).open(100.0).declare("1/1000"), "sigma_deg"),
        (lambda: Graded((1,)).open(100.0).declare("1/200"), "Open a session with a finer level"),
        (lambda: near(Graded((1,)).open(100.0)), "Use the level that is there"),
        (lambda: Graded((1,)).open(100.0).noise_steps(1, 0, 1), "with a seed"),
        (lambda: Graded((1,)).open(100.0).push(0.5, 1.0, 1.0), "whole nanoseconds"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        make()


def test_a_coalition_is_promised_what_its_finest_view_is() -> None:
    session = Graded((1, 2, 5)).open(100.0)
    assert session.guarantee(5, 2).numbers == session.guarantee(2).numbers
    each = [session.guarantee(s).numbers["rho"] for s in (1, 2, 5)]
    assert each[0] > each[1] > each[2]
    assert 0.5 < float(each[0]) < 1.005 * 0.5
    assert session.guarantee(1).status == "proved"
    assert Graded((1,)).open(100.0, seed=1).guarantee(1).status == "claimed"
    assert "whole numbers" in str(session.guarantee(1))


def test_levels_nobody_needs_are_forgotten_and_the_rest_goes_on_with_the_same_law() -> None:
    session = Graded(bits=10).open(100.0, seed=3)
    t = np.arange(4000) * 10_000_000
    assert session.push(t[:5], np.full(5, 180.0), np.full(5, 90.0)) == {}
    for level in (4, 1, 2, 3):
        session.declare(level)
    n = 300  # in the middle of a block of noise
    before = session.push(t[5:n], np.full(n - 5, 180.0), np.full(n - 5, 90.0))
    session.keep_only(1, 3)
    after = session.push(t[n:], np.full(4000 - n, 180.0), np.full(4000 - n, 90.0))
    assert tuple(sorted(after)) == session.levels == (1, 3)
    assert (
        np.diff(np.concatenate((before[Fraction(1)][0], after[Fraction(1)][0]))) == 10_000_000
    ).all(), "the clock goes on"
    fine, coarse = (after[Fraction(level)][1] - 180.0 for level in (1, 3))
    assert np.var(fine) == pytest.approx(1.0, rel=0.15)
    assert np.var(coarse - fine) == pytest.approx(8.0, rel=0.2), "a coarser view of the same noise"
    with pytest.raises(ParameterError, match="declared level: 1, 3"):
        session.keep_only(1, 2)
    session.declare(2)
    assert session.levels == (1, 2, 3)


def test_a_session_without_levels_needs_its_grid() -> None:
    for bits in (4, 21, True, "10"):
        with pytest.raises(ParameterError, match="bits"):
            Graded(bits=bits)  # type: ignore[arg-type]
    session = Graded(bits=10).open(100.0)
    with pytest.raises(ParameterError, match="no level is declared"):
        session.guarantee()
    assert session.guarantee(2).numbers["rho"] > 0, "known before the level is"
