"""Kaleido: what it spends, what it releases, how it takes bad input."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import GazeveilError
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
FAMILY = (Kaleido, KaleidoUniform)


def gaze(n: int, space: Any, seed: int = 0, lost: float = 0.0) -> tuple[np.ndarray, ...]:
    """Fixations and jumps, with some samples lost."""
    rng = np.random.default_rng(seed)
    jumps = np.cumsum(rng.random(n) < 0.03)
    places = rng.uniform(-12, 12, (n + 1, 2))[jumps] + rng.normal(0, 0.1, (n, 2))
    if isinstance(space, Sphere):
        places = np.stack(((places[:, 0] * 10 + 180) % 360, places[:, 1] * 6 + 90), axis=1)
    return (
        np.arange(n, dtype=np.int64) * 10**7,
        places[:, 0].copy(),
        places[:, 1].copy(),
        rng.random(n) >= lost,
    )


# --- budgets
# --------------------------------------------------------------------------------------------------


def adversarial(streams: int, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Streams that never rest, never move, jump at every slot, sit on the threshold, lose samples
    at the worst moment, or are random.
    """
    rng = np.random.default_rng(seed)
    x, y = np.zeros((streams, n)), np.zeros((streams, n))
    valid = np.ones((streams, n), dtype=np.bool_)
    kind = np.arange(streams) % 6
    x[kind == 0] = rng.uniform(-20, 20, ((kind == 0).sum(), n))
    x[kind == 2] = np.where(np.arange(n) // 3 % 2, 15.0, -15.0)
    x[kind == 3] = np.where(np.arange(n) % 2, 1.0, 0.0)
    x[kind == 4] = np.cumsum(rng.normal(0, 1, ((kind == 4).sum(), n)), axis=1) % 40 - 20
    valid[kind == 4] = rng.random(((kind == 4).sum(), n)) < 0.6
    x[kind == 5] = rng.uniform(-20, 20, ((kind == 5).sum(), n))
    valid[kind == 5] = (np.arange(n) % 7 > rng.integers(0, 6, (kind == 5).sum())[:, None]) | (
        np.arange(n) % 31 == 0
    )
    y[...] = x / 2
    return np.tile(np.arange(n, dtype=np.int64) * 10**7, (streams, 1)), x, y, valid


def windows(values: np.ndarray, w: int) -> int:
    """The largest sum over w in a row."""
    total = np.concatenate(
        (np.zeros((len(values), 1), dtype=np.int64), np.cumsum(values, axis=1)), axis=1
    )
    return int((total[:, w:] - total[:, :-w]).max())


@pytest.mark.parametrize("cls", FAMILY)
@pytest.mark.parametrize(
    ("epsilon", "w", "skip_ms", "h", "threshold"),
    [(1, 50, 50, 2, 1), (3, 37, 30, 10, 0), (10, 20, 10, 2, 5), (2, 8, 200, 3, 30)],
)
def test_no_window_of_ten_thousand_streams_spends_or_tests_too_much(
    cls: Any, epsilon: int, w: int, skip_ms: int, h: int, threshold: int
) -> None:
    mechanism = cls(epsilon, w, 2, h, skip_ms, threshold)
    for space in (SCREEN, Sphere()):
        plan = mechanism.plan(100.0, space)
        stage = LatticeStage(plan, 2500, [TestStream(w, "budget")])
        stage.traced = True
        t, x, y, valid = adversarial(2500, 160, w)
        if isinstance(space, Sphere):
            x, y = x + 180, y + 90
        stage.run(t, x, y, valid)
        assert stage.trace is not None
        tested = (stage.trace != step.SKIPPED) & (stage.trace != step.LOST)
        assert windows(tested.astype(np.int64), w) <= plan.slots
        # Units are whole numbers, so this is exact: the units of a window never exceed what stands
        # for E.
        assert windows(np.maximum(stage.trace, 0), w) <= plan.units
        assert plan.epsilon_test * plan.slots + plan.epsilon_publish == mechanism.epsilon
        assert (stage.states[:, step.LENGTH] <= plan.slots).all()
        assert (stage.trace > 0).any()


@pytest.mark.parametrize("mutant", ["whole history", "no window"])
def test_the_check_of_budgets_catches_a_window_that_is_not_kept(mutant: str) -> None:
    plan = Kaleido(1, 50, 2, l_thresh_deg=0).plan(100.0, SCREEN)
    window = 10 if mutant == "no window" else 10**9
    plan = replace(plan, settings=plan.settings._replace(window=window))
    stage = LatticeStage(plan, 600, [TestStream(1)])
    stage.traced = True
    stage.run(*adversarial(600, 160, 3))
    assert stage.trace is not None
    spent = windows(np.maximum(stage.trace, 0), 50)
    assert (spent > plan.units) == (mutant == "no window")
    if mutant == "whole history":
        # Summing over everything is private and useless: the shares only fall.
        for row in stage.trace[:20]:
            assert (np.diff(row[row > 0]) <= 0).all()


def test_the_budget_of_a_quiet_window_comes_back() -> None:
    plan = Kaleido(1, 50, 2, l_thresh_deg=360).plan(100.0, SCREEN)
    stage = LatticeStage(plan, 1, [TestStream(1)])
    stage.traced = True
    data = gaze(60, SCREEN, 1)
    stage.run(*(a[None].copy() for a in data))
    assert stage.trace is not None
    assert (stage.trace > 0).sum() == 1  # a huge threshold: only the first sample is published
    stage.plan = replace(plan, settings=plan.settings._replace(threshold=-1e9))
    stage.run(*(a[None, :1].copy() for a in data))
    assert stage.trace[0, 0] == plan.units // 2


def test_after_a_reset_windows_across_it_keep_their_budget() -> None:
    plan = Kaleido(1, 50, 2, l_thresh_deg=0).plan(100.0, SCREEN)
    stage = LatticeStage(plan, 300, [TestStream(4)])
    stage.traced = True
    traces = []
    for i in range(8):
        t, x, y, valid = adversarial(300, 13, i)
        stage.run(t, x, y, valid)
        traces.append(stage.trace)
        stage.reset()
    trace = np.concatenate([t for t in traces if t is not None], axis=1)
    assert windows(np.maximum(trace, 0), 50) <= plan.units
    assert (
        windows(((trace != step.SKIPPED) & (trace != step.LOST)).astype(np.int64), 50) <= plan.slots
    )


# --- the letter of the paper
# --------------------------------------------------------------------------------------------------


def test_published_is_the_pseudocode_line_by_line() -> None:
    epsilon, w, r, h, l_thresh = 10.0, 50, 2.0, 2.0, 1.0
    t, x, y, _ = gaze(400, SCREEN, 3)
    t = t + np.where(np.arange(400) > 200, 37_000_000, 0)
    out = Kaleido(epsilon, w, r, h, reading="published").open(100.0, SCREEN, seed=9).push(t, x, y)
    words = iter(TestStream(9, "kaleido", "published").take(4000).tolist())
    n_test = -(-w // 5)
    epsilon_test = epsilon / (h * n_test)
    i_test = i_pub = None
    spent: list[Fraction] = []
    want = np.zeros((400, 2))
    for i in range(400):
        if i_test is not None and (t[i] - t[i_test]) < 50_000_000:
            want[i] = want[i_pub]
            continue
        i_test = i
        if i_pub is not None:
            l_dis = np.hypot(*(np.array([x[i], y[i]]) - want[i_pub]))
            word = next(words)
            eta = -np.log(((word >> 1) + 0.5) / 2**63) / epsilon_test * (1 if word & 1 else -1)
            if l_dis <= l_thresh + eta:
                want[i] = want[i_pub]
                continue
        i_pub = i
        remaining = Fraction(epsilon) - Fraction(epsilon / h) - sum(spent)
        spent.append(remaining / 2)
        radius = (
            -r
            / float(spent[-1])
            * (np.log((next(words) + 0.5) / 2**64) + np.log((next(words) + 0.5) / 2**64))
        )
        bearing = 2 * np.pi * next(words) / 2**64
        want[i] = np.clip(
            (x[i] + radius * np.cos(bearing), y[i] + radius * np.sin(bearing)),
            -89.99999999999999,
            89.99999999999999,
        )
    np.testing.assert_allclose(np.stack(out[1:3], axis=1), want, rtol=1e-9, atol=1e-9)
    assert len(spent) > 20
    np.testing.assert_array_equal(out[0], t)  # published passes the times on


# --- what comes out
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", FAMILY)
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_outputs_lie_on_the_public_grid_and_in_the_space(cls: Any, space: Any) -> None:
    mechanism = cls(1, 20, 2)
    t, x, y, ok = gaze(2000, space, 2, lost=0.05)
    _, a, b, v = mechanism.open(100.0, space).push(t, x, y, ok)
    g = float(mechanism.plan(100.0, space).step_deg)
    inside = np.minimum(b[v], 180 - g) if isinstance(space, Sphere) else b[v]
    np.testing.assert_array_equal(np.rint(a[v] / g), a[v] / g)
    np.testing.assert_array_equal(np.rint(inside / g), inside / g)
    assert not np.isin(x, a).any()  # the raw values are not on the grid
    if isinstance(space, Screen):
        assert (np.abs(a[v]) <= space.width_deg / 2).all()
        assert (np.abs(b[v]) <= space.height_deg / 2).all()
    Recording("p", "s", t, a, b, v, space=space, rate_hz=100.0)


def test_lost_samples_come_out_lost_and_a_test_waits_for_gaze() -> None:
    plan = KaleidoUniform(1, 10, 2, slots=2).plan(100.0, SCREEN)
    stage = LatticeStage(plan, 1, [TestStream(1)])
    stage.traced = True
    valid = np.ones((1, 20), dtype=np.bool_)
    valid[0, 5:8] = False
    x = np.where(valid, 1.0, np.nan)
    _, a, _, v = stage.run(np.zeros((1, 20), dtype=np.int64), x, x.copy(), valid.copy())
    np.testing.assert_array_equal(v, valid)
    assert np.isnan(a[~valid]).all()
    assert stage.trace is not None
    assert np.flatnonzero(stage.trace[0] > 0).tolist() == [0, 8, 13, 18]
    np.testing.assert_array_equal(stage.trace[0, 5:8], step.LOST)


def test_no_output_while_there_is_nothing_published() -> None:
    session = Kaleido(1, 50, 2).open(100.0, SCREEN, seed=1)
    assert np.isnan(session.push(0, np.nan, 0.0, False)[1]).all()
    assert session.push(10**7, 1.0, 1.0, True)[3].all()
    session.reset()
    lost = session.push(2 * 10**7, 1.0, 1.0, True)
    assert not lost[3][0]
    assert np.isnan(lost[1][0])


# --- parameters
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": "1e-9"}, "at least 2"),
        ({"epsilon": 5000}, "at most"),
        ({"w": 0}, "whole number"),
        ({"w": 2.5}, "whole number"),
        ({"w": 2**21}, "at most"),
        ({"r_deg": 0}, "r_deg"),
        ({"r_deg": 400}, "at most"),
        ({"h": 1}, "above 1"),
        ({"t_skip_ms": -1}, "t_skip_ms"),
        ({"l_thresh_deg": -1}, "l_thresh_deg"),
        ({"reading": "improved"}, "reading"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        Kaleido(**{"epsilon": 1, "w": 50, "r_deg": 2, **parameters})


def test_more_slots_than_tests_fit_are_refused() -> None:
    with pytest.raises(GazeveilError, match="at most ceil"):
        KaleidoUniform(1, 50, 2, slots=11).open(100.0)


@pytest.mark.parametrize(
    ("epsilon", "w", "r"), [("1/1000000", 10, 1), (1024, 1, 360), (1, 1, "1/1024"), (1, 2**20, 2)]
)
def test_the_limits_of_parameters_work(epsilon: Any, w: int, r: Any) -> None:
    for cls in FAMILY:
        for space in (SCREEN, Sphere()):
            _, a, _, v = (
                cls(epsilon, w, r, t_skip_ms=0)
                .open(100.0, space, seed=1)
                .push(*gaze(300, space, 1))
            )
            assert v.all()
            assert np.isfinite(a).all()


def test_the_guarantee_says_what_it_promises() -> None:
    g = Kaleido(1, 50, 2).open(100.0).guarantee
    assert g.status == "proved"
    assert dict(g.numbers) == {
        "epsilon": Fraction(1),
        "w_samples": Fraction(50),
        "r_deg": Fraction(2),
    }
    assert "great circle" in str(g)
    assert "which samples are lost" in str(g)
    assert Kaleido(1, 50, 2).open(100.0, seed=1).guarantee.status == "claimed"
    published = Kaleido(1, 50, 2, reading="published").open(100.0).guarantee
    assert published.status == "refuted"
    assert published.epsilon is None
    assert "leaves out r" in str(published)
