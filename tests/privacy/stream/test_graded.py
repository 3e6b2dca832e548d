"""Graded release: each view has its law, all views together tell no more than the finest one,
questions have one answer.
"""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, norm

from gazeveil import Screen, Sphere
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.privacy.randomness.rng import TestStream, Words
from gazeveil.privacy.stream.graded import LAWS, Graded, GradedSession
from gazeveil.privacy.stream.graded_noise import around, changed, pieces
from tests.support.laws import ALPHA, Cdf, assert_distribution, discrete_laplace_cdf, follows

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
N = 52_000


def law_of(law: str, steps: float) -> tuple[Cdf, float | None]:
    if law == "gaussian":
        return (lambda x, k: norm.cdf((x + 0.5) / (steps * k))), 1.0
    if law == "laplace":
        return discrete_laplace_cdf(steps), 1.0
    return (lambda r, k: 1 - (1 + r / (steps * k)) * np.exp(-r / (steps * k))), None


def values(session: GradedSession, level: Any, n: int = N) -> np.ndarray:
    noise = session.noise_steps(level, 0, n)
    return np.hypot(*noise.T) if session.graded.law == "planar-laplace" else noise.ravel()


# --- the laws
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_each_declared_view_follows_its_law(law: str) -> None:
    session = Graded(law, (1, 2, "2.5", 20)).open(100.0, seed=1)
    n = N if law != "planar-laplace" else 2 * N
    for level in session.levels:
        cdf, step = law_of(law, float(session._steps(level)))
        assert_distribution(values(session, level, n), cdf, step=step)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_views_that_come_late_follow_their_law_too(law: str) -> None:
    """Finer than any, between two, finer still: by the conditional laws."""
    session = Graded(law, (2, 6)).open(100.0, seed=2)
    for level in (1, 4, 3, "1/2", "0.7", 12):
        session.declare(level)
    for level in session.levels:
        cdf, step = law_of(law, float(session._steps(level)))
        assert_distribution(values(session, level), cdf, step=step)


@pytest.mark.parametrize("law", LAWS)
def test_increments_do_not_depend_on_finer_noise_in_whatever_order_levels_came(law: str) -> None:
    if law == "planar-laplace":
        session = Graded(law, (1, 8)).open(100.0, seed=3)
        late: tuple[Any, ...] = (2, 4)
    else:
        session = Graded(law, (4, 8)).open(100.0, seed=3)
        late = (1, 2)
    for level in late:
        session.declare(level)
    noise = {level: session.noise_steps(level, 0, N) for level in session.levels}
    for fine, coarse in zip(session.levels, session.levels[1:], strict=False):
        step = noise[coarse] - noise[fine]
        power = {"gaussian": None, "laplace": 2, "planar-laplace": 3}[law]
        same = (step == 0).all(axis=1) if law == "planar-laplace" else (step == 0)
        if power is not None:
            p = float(fine / coarse) ** power
            assert abs(same.mean() - p) < 5 * np.sqrt(p * (1 - p) / same.size)
        # Independent: the law of the increment is the same where the finer noise is small and where
        # it is large.
        size, move = (
            np.hypot(*v.T) if law == "planar-laplace" else v.ravel() for v in (noise[fine], step)
        )
        small = np.abs(size) < np.median(np.abs(size))
        assert ks_2samp(move[small], move[~small]).pvalue > ALPHA
        assert (
            ks_2samp(move[size > 0], move[size < 0]).pvalue > ALPHA
            if law != "planar-laplace"
            else True
        )


def test_the_reverse_conditional_of_laplace_is_the_closed_form() -> None:
    """P(X = Y | Y = y) = (b1/b2) exp(-|y| (1/b1 - 1/b2)) in the limit of a fine grid."""
    session = Graded("laplace", (2,)).open(100.0, seed=4)
    session.declare(1)
    coarse, fine = (session.noise_steps(level, 0, 2 * N).ravel() for level in (2, 1))
    b1, b2 = 512.0, 1024.0
    for low, high in ((0, 200), (500, 700), (1500, 2000)):
        here = (np.abs(coarse) >= low) & (np.abs(coarse) < high)
        p = np.mean(b1 / b2 * np.exp(-np.abs(coarse[here]) * (1 / b1 - 1 / b2)))
        assert abs(np.mean(fine[here] == coarse[here]) - p) < 5 * np.sqrt(p * (1 - p) / here.sum())


def test_the_reverse_conditional_of_gaussian_is_the_closed_form() -> None:
    session = Graded("gaussian", (2,)).open(100.0, seed=5)
    session.declare(1)
    coarse, fine = (session.noise_steps(level, 0, N).ravel() for level in (2, 1))
    rest = fine - coarse / 4
    assert_distribution(rest, lambda x, k: norm.cdf(x / (512 * np.sqrt(0.75) * k)))
    assert abs(np.corrcoef(coarse, rest)[0, 1]) < 5 / np.sqrt(2 * N)


def test_conditional_samplers_against_counting() -> None:
    words = Words(TestStream(6))
    a, b, same_low, same_high, total, n = np.exp(-1 / 3), np.exp(-1 / 5), 0.3, 0.4, 4, 200_000
    k = np.arange(-200, 201)

    def increment(same: float, ratio: float, x: np.ndarray) -> np.ndarray:
        return np.where(x == 0, same, 0) + (1 - same) * (1 - ratio) / (1 + ratio) * ratio ** np.abs(
            x
        )

    for y in (total, -total, 0):
        p = increment(same_low, a, k) * increment(same_high, b, y - k)
        p /= p.sum()
        drawn = pieces(np.full(n, y, dtype=np.int64), a, b, same_low, same_high, words)
        seen = np.bincount(drawn + 200, minlength=401)[:401]
        big = p * n > 30
        assert ((seen - n * p)[big] ** 2 / (n * p)[big]).sum() < big.sum() + 7 * np.sqrt(
            2 * big.sum()
        )
    centre = np.full(n, 2.3)
    p = np.exp(-((k - 2.3) ** 2) / (2 * 4.0**2))
    p /= p.sum()
    seen = np.bincount(around(centre, 4.0, words) + 200, minlength=401)[:401]
    big = p * n > 30
    assert ((seen - n * p)[big] ** 2 / (n * p)[big]).sum() < big.sum() + 7 * np.sqrt(2 * big.sum())
    assert abs(
        (changed(0.25, Fraction(1000), n, words) == 0).mean() - 0.25 - 0.75 / 2000
    ) < 5 * np.sqrt(0.1875 / n)


def test_bearings_of_planar_views_are_uniform() -> None:
    session = Graded("planar-laplace", (1, 5)).open(100.0, seed=7)
    for level in (1, 5):
        noise = session.noise_steps(level, 0, N)
        assert follows(np.arctan2(noise[:, 1], noise[:, 0]), lambda u, _: u / (2 * np.pi) + 0.5)


# --- collusion
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


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("m", [2, 5, 10])
def test_colluding_apps_gain_nothing_over_the_finest_view(law: str, m: int) -> None:
    n = 40_000
    truth = np.random.default_rng(m).uniform(-15, 15, n)
    levels = [Fraction(4) * Fraction(5, 4) ** i for i in range(m)]
    session = Graded(law, tuple(levels)).open(100.0, SCREEN, seed=m)
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


@pytest.mark.parametrize("m", [2, 5, 10])
def test_independent_noise_is_averaged_away(m: int) -> None:
    n = 50_000
    truth = np.random.default_rng(m).uniform(-15, 15, n)
    views = []
    for app in range(m):
        session = Graded("planar-laplace", (4,)).open(100.0, SCREEN, seed=100 + app)
        views.append(truth + session.noise_steps(4, 0, n)[:, 0] / 2.0**session.bits)
    mean = np.mean(views, axis=0)
    variance = float(np.var(mean - truth))
    assert variance == pytest.approx(3 * 16 / m, rel=0.05)  # per-axis variance 3 b**2, over m


# --- one answer
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=5))
def test_any_split_into_blocks_gives_the_same_views(law: str, space: Any, cuts: list[int]) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(1, 20, 600), rng.uniform(1, 12, 600)
    t, ok = np.arange(600) * 10**7, rng.random(600) > 0.1
    whole = Graded(law, (1, 3)).open(100.0, space, seed=8).push(t, x, y, ok)
    session = Graded(law, (1, 3)).open(100.0, space, seed=8)
    edges = sorted({0, 600, *cuts})
    parts = [session.push(t[i:j], x[i:j], y[i:j], ok[i:j]) for i, j in itertools.pairwise(edges)]
    for level, want in whole.items():
        for k in range(4):
            np.testing.assert_array_equal(np.concatenate([p[level][k] for p in parts]), want[k])


@pytest.mark.parametrize("law", LAWS)
def test_the_same_question_has_the_same_answer(law: str) -> None:
    session = Graded(law, (1, 3)).open(100.0, SCREEN, remember=1300)
    x, y = np.linspace(-5, 5, 700), np.linspace(3, -3, 700)
    ok = np.arange(700) % 9 > 0
    views = session.push(np.arange(700) * 10**7, x, y, ok)
    session.declare(2)  # another level later changes no answer
    later = session.push(np.arange(700, 1400) * 10**7, x, y, ok)
    for level in (1, 3):
        for k, again in enumerate(session.view(level, 250, 350)):
            np.testing.assert_array_equal(again, views[Fraction(level)][k + 1][250:600])
    old, new = session.view(2, 100, 600), session.view(2, 700, 700)
    for k in range(3):
        np.testing.assert_array_equal(new[k], later[Fraction(2)][k + 1])
        np.testing.assert_array_equal(old[k], session.view(2, 100, 600)[k])
    assert (old[0][old[2]] != views[Fraction(1)][1][100:][old[2]]).mean() > 0.5
    for first, n in ((99, 1), (1399, 2), (1400, 1)):
        with pytest.raises(GazeveilError, match="remembered: samples 100 to 1399"):
            session.view(1, first, n)
    assert len(pickle.dumps(session)) < 10_000
    other = Graded(law, (1, 3)).open(100.0, SCREEN)
    assert (
        other.push(np.arange(700) * 10**7, x, y)[Fraction(1)][1] != views[Fraction(1)][1]
    ).mean() > 0.9


@pytest.mark.parametrize("law", LAWS)
def test_views_lie_on_the_public_grid_and_lost_samples_stay_lost(law: str) -> None:
    for space, shift in ((SCREEN, 0.0), (Sphere(), 90.0)):
        session = Graded(law, (2, 40)).open(100.0, space, seed=1)
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


# --- refusals and promises
# --------------------------------------------------------------------------------------------------


def test_planar_laplace_refuses_a_view_finer_than_its_finest_and_says_why() -> None:
    session = Graded("planar-laplace", (1, 2)).open(100.0)
    with pytest.raises(GazeveilError, match="closed form"):
        session.declare("1/2")
    assert session.levels == (1, 2)


def near(session: GradedSession) -> None:
    session.declare("16/1024")
    session.declare("17/1024")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Graded("cauchy", (1,)), "one of gaussian"),
        (lambda: Graded("laplace", ()), "at least one"),
        (lambda: Graded("laplace", "1"), "several scales"),
        (lambda: Graded("laplace", (0,)), "scale_deg"),
        (lambda: Graded("laplace", (5000,)), "scale_deg"),
        (lambda: Graded("laplace", (1,), r_deg=0), "r_deg"),
        (lambda: Graded("laplace", (1,)).open(0.0), "rate_hz"),
        (lambda: Graded("laplace", (1,)).open(100.0).declare("1/1000"), "scale_deg"),
        (
            lambda: Graded("laplace", (1,)).open(100.0).declare("1/200"),
            "Open a session with a finer level",
        ),
        (lambda: near(Graded("gaussian", (1,)).open(100.0)), "Use the level that is there"),
        (lambda: near(Graded("laplace", (1,)).open(100.0)), "Use the level that is there"),
        (lambda: Graded("laplace", (1,)).open(100.0).view(2, 0, 1), "Declare it first"),
        (lambda: Graded("laplace", (1,)).open(100.0).view(1, -1, 1), "first"),
        (lambda: Graded("laplace", (1,)).open(100.0).view(1, 0, 0), "count"),
        (lambda: Graded("laplace", (1,)).open(100.0).view(1, 0, 1), "remembered: none"),
        (lambda: Graded("laplace", (1,)).open(100.0, remember=-1), "remember"),
        (lambda: Graded("laplace", (1,)).open(100.0).noise_steps(1, 0, 1), "with a seed"),
        (lambda: Graded("laplace", (1,)).open(100.0).push(0.5, 1.0, 1.0), "whole nanoseconds"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        make()


@pytest.mark.parametrize("law", LAWS)
def test_a_coalition_is_promised_what_its_finest_view_is(law: str) -> None:
    session = Graded(law, (1, 2, 5)).open(100.0)
    assert session.guarantee(5, 2).numbers == session.guarantee(2).numbers
    number = "rho" if law == "gaussian" else "epsilon"
    each = [session.guarantee(s).numbers[number] for s in (1, 2, 5)]
    assert each[0] > each[1] > each[2]
    exactly = {"gaussian": 0.5, "laplace": 2**0.5, "planar-laplace": 1.0}[law]
    assert exactly < float(each[0]) < 1.005 * exactly
    assert session.guarantee(1).status == "proved"
    assert Graded(law, (1,)).open(100.0, seed=1).guarantee(1).status == "claimed"
    words = "floating point" if law == "planar-laplace" else "whole numbers"
    assert words in str(session.guarantee(1))


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_levels_nobody_needs_are_forgotten_and_the_rest_goes_on_with_the_same_law(law: str) -> None:
    session = Graded(law, (), bits=10).open(100.0, seed=3, remember=4000)
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
    shape = 1.0 if law == "gaussian" else 2.0  # variance of the law over its squared scale
    assert np.var(fine) == pytest.approx(shape, rel=0.15)
    assert np.var(coarse - fine) == pytest.approx(8 * shape, rel=0.2), (
        "a coarser view of the same noise"
    )
    again = session.view(1, n, 4000 - n)
    np.testing.assert_array_equal(again[0], after[Fraction(1)][1])
    with pytest.raises(ParameterError, match="remembered: samples 300 to 3999"):
        session.view(1, n - 1, 2)
    with pytest.raises(ParameterError, match="declared level: 1, 3"):
        session.keep_only(1, 2)
    session.declare(2)
    assert session.levels == (1, 2, 3)


def test_a_session_without_levels_needs_its_grid() -> None:
    with pytest.raises(ParameterError, match="at least one scale"):
        Graded("gaussian", ())
    with pytest.raises(ParameterError, match="at least one scale"):
        Graded("planar-laplace", (), bits=10)
    for bits in (4, 21, True, "10"):
        with pytest.raises(ParameterError, match="bits"):
            Graded("gaussian", (), bits=bits)  # type: ignore[arg-type]
    session = Graded("gaussian", (), bits=10).open(100.0)
    with pytest.raises(ParameterError, match="no level is declared"):
        session.guarantee()
    assert session.guarantee(2).numbers["rho"] > 0, "known before the level is"
