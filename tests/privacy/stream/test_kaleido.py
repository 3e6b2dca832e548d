"""Kaleido: what it spends, what it releases, how it takes bad input."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import GazeveilError
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.conformance import conform
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.randomness.supply import derived_seed
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido
from gazeveil.privacy.stream.kaleido.slotted import KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage
from tests.support.recordings import real_cohort

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
FAMILY = (Kaleido, KaleidoUniform)
EVERY = [(c, "corrected") for c in FAMILY] + [(Kaleido, "published")]


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


def same(a: Any, b: Any) -> bool:
    return all(
        np.array_equal(p, q, equal_nan=p.dtype.kind == "f") for p, q in zip(a, b, strict=True)
    )


# --- batch equals stream
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "reading"), EVERY)
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@settings(max_examples=12, deadline=None)
@given(cuts=st.lists(st.integers(0, 150), max_size=12), seed=st.integers(0, 2**31))
def test_any_split_into_blocks_gives_the_same_bits(
    cls: Any, reading: str, space: Any, cuts: list[int], seed: int
) -> None:
    mechanism = cls(2, 30, 1, reading=reading, t_skip_ms=30)
    data = gaze(150, space, seed, lost=0.1)
    whole = mechanism.open(100.0, space, seed=seed).push(*data)
    session = mechanism.open(100.0, space, seed=seed)
    edges = sorted({0, 150, *cuts})
    parts = [session.push(*(a[i:j] for a in data)) for i, j in itertools.pairwise(edges)]
    assert same(whole, [np.concatenate(p) for p in zip(*parts, strict=True)])


@pytest.mark.parametrize(("cls", "reading"), EVERY)
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_single_samples_a_release_and_many_streams_give_the_same_bits(
    cls: Any, reading: str, space: Any
) -> None:
    mechanism = cls(2, 30, 1, reading=reading, losses="keep")
    t, x, y, ok = gaze(200, space, 1, lost=0.1)
    seeds = [derived_seed(5, "stream", i) for i in range(3)]
    alone = [mechanism.open(100.0, space, seed=s).push(t, x, y, ok) for s in seeds]
    session = mechanism.open(100.0, space, seed=seeds[0])
    single = [session.push(int(t[i]), float(x[i]), float(y[i]), bool(ok[i])) for i in range(200)]
    assert same(alone[0], [np.concatenate(p) for p in zip(*single, strict=True)])
    together = mechanism.open_many(3, 100.0, space, seed=5)
    steps = [
        together.push(*(np.tile(a[i : i + 50], (3, 1)) for a in (t, x, y, ok)))
        for i in range(0, 200, 50)
    ]
    for i in range(3):
        assert same(alone[i], [np.concatenate([p[k][i] for p in steps]) for k in range(4)])
    recording = Recording("p", "s", t, x, y, ok, space=space, rate_hz=100.0)
    out = mechanism.release(recording, seed=seeds[0]).data
    assert same(alone[0][1:], (out.x_deg, out.y_deg, out.valid))


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


def test_the_published_reading_is_caught_spending_more_than_epsilon() -> None:
    mechanism = Kaleido(1, 50, 10, reading="published")
    session = mechanism.open_many(200, 100.0, SCREEN, seed=1)
    t, x, y, valid = adversarial(200, 160, 1)
    session.push(t, x, y, valid)
    stage: Any = session._stage
    tested = np.concatenate([[stage.trace[i] != 0] for i in range(200)]) & valid
    # A test with noise Lap(1/epsilon_test) tells r epsilon_test about a move of r degrees.
    tests = windows(tested.astype(np.int64), 50)
    loss = float(mechanism.r_deg) * float(stage.settings[2]) * tests
    assert loss > 1.0
    assert gazeveil.audit(mechanism, trials=2000).refuted


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
@pytest.mark.parametrize("after", ["none", "clamp", "snap", "posterior-mean"])
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_outputs_lie_on_the_public_grid_and_in_the_space(cls: Any, after: str, space: Any) -> None:
    mechanism = cls(1, 20, 2, after=after, snap_deg=2)
    t, x, y, ok = gaze(2000, space, 2, lost=0.05)
    _, a, b, v = mechanism.open(100.0, space).push(t, x, y, ok)
    g = float(mechanism.plan(100.0, space).step_deg)
    inside = np.minimum(b[v], 180 - g) if isinstance(space, Sphere) else b[v]
    np.testing.assert_array_equal(np.rint(a[v] / g), a[v] / g)
    np.testing.assert_array_equal(np.rint(inside / g), inside / g)
    assert not np.isin(x, a).any()  # the raw values are not on the grid
    if isinstance(space, Screen) and after != "none":
        assert (np.abs(a[v]) <= space.width_deg / 2).all()
        assert (np.abs(b[v]) <= space.height_deg / 2).all()
    if after == "snap":
        edge = (
            (np.abs(a[v]) > 22) | (np.abs(b[v]) > 12)
            if isinstance(space, Screen)
            else (a[v] > 358) | (b[v] > 178)
        )
        assert (a[v][~edge] % 2 == 0).all()
        assert (b[v][~edge] % 2 == 0).all()
    Recording("p", "s", t, a, b, v, space=space, rate_hz=100.0)


@settings(max_examples=40, deadline=None)
@given(x=st.floats(-80, 80), y=st.floats(-80, 80), cls=st.sampled_from(FAMILY))
def test_a_raw_coordinate_comes_out_only_if_it_is_on_the_grid(x: float, y: float, cls: Any) -> None:
    mechanism = cls(5, 10, 1, after="none")
    g = float(mechanism.plan(100.0, SCREEN).step_deg)
    _, a, b, _ = mechanism.open(100.0, SCREEN).push(0, x, y)
    assert a[0] != x or x % g == 0
    assert b[0] != y or y % g == 0


def test_the_posterior_mean_is_closer_than_the_noisy_point() -> None:
    errors = {}
    t, x, y, _ = gaze(20_000, SCREEN, 5)
    for after in ("clamp", "posterior-mean"):
        _, a, b, _ = (
            KaleidoUniform(1, 50, 2, slots=5, after=after).open(100.0, SCREEN, seed=1).push(t, x, y)
        )
        errors[after] = float(np.sqrt(np.mean((a - x) ** 2 + (b - y) ** 2)))
    assert errors["posterior-mean"] < 0.8 * errors["clamp"]


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


def test_a_million_samples_go_through_in_one_block() -> None:
    _, x, y, ok = (np.tile(a, 100) for a in gaze(10_000, SCREEN, 1))
    out = Kaleido(1, 50, 2).open(100.0, SCREEN).push(np.arange(10**6) * 10**7, x, y, ok)
    assert out[3].all()
    assert 10**6 / 60 < np.count_nonzero(np.diff(out[1])) < 10**6 / 5


def test_a_pickled_session_goes_on_with_noise_of_its_own() -> None:
    t, x, y, ok = gaze(100, SCREEN, 1)
    seeded = Kaleido(5, 20, 2).open(100.0, SCREEN, seed=1)
    seeded.push(t, x, y, ok)
    copy = pickle.loads(pickle.dumps(seeded))
    assert same(seeded.push(t + 10**10, x, y, ok), copy.push(t + 10**10, x, y, ok))
    secure = Kaleido(5, 20, 2).open(100.0, SCREEN)
    secure.push(t, x, y, ok)
    copy = pickle.loads(pickle.dumps(secure))
    assert not same(secure.push(t + 10**10, x, y, ok), copy.push(t + 10**10, x, y, ok))
    assert len(pickle.dumps(seeded)) < 10_000


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
        ({"after": "clam"}, "Did you mean 'clamp'"),
        ({"snap_deg": 0}, "snap_deg"),
        ({"reading": "improved"}, "reading"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        Kaleido(**{"epsilon": 1, "w": 50, "r_deg": 2, **parameters})


def test_more_slots_than_tests_fit_are_refused() -> None:
    with pytest.raises(GazeveilError, match="at most ceil"):
        KaleidoUniform(1, 50, 2, slots=11).open(100.0)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(GazeveilError, match="rate_hz"):
        Kaleido(1, 50, 2).open(rate)


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


@pytest.mark.parametrize(("cls", "reading"), EVERY)
def test_the_family_passes_the_conformance_kit(cls: Any, reading: str) -> None:
    assert conform(cls(1, 50, 2, reading=reading)) == []


# --- real recordings
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("gazecom", 3), ("eyenavgs_nthu", 3)])
def test_uniform_beats_halving_on_real_gaze(name: str, count: int) -> None:
    cohort = real_cohort(name)
    recordings = [cohort[i].resample(100.0) for i in range(0, len(cohort), len(cohort) // count)][
        :count
    ]

    def rms(mechanism: Kaleido) -> float:
        squares = []
        for i, recording in enumerate(recordings):
            out = mechanism.release(recording, seed=i).data
            ok = recording.valid & out.valid
            squares.append(
                distance_deg(
                    recording.space,
                    recording.x_deg[ok],
                    recording.y_deg[ok],
                    out.x_deg[ok],
                    out.y_deg[ok],
                )
                ** 2
            )
        return float(np.sqrt(np.concatenate(squares).mean()))

    for epsilon, r in ((1, 2), (5, 2), (10, 10)):
        halving, uniform = (rms(c(epsilon, 50, r)) for c in FAMILY)
        assert uniform < 0.7 * halving
