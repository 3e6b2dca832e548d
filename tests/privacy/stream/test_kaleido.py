"""Kaleido: what it spends, what it releases, how it takes bad input.

What a release of Kaleido shows of its own noise: the scale of every publication.

Noise on the sphere never takes long: few tries at every scale that a plan can reach, by the law
at each of them.

Blocks of Kaleido: proposals on the sphere, and releases that do not depend on how samples and
words are cut into portions.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gaze.geometry import haversine_deg
from gazeveil.privacy.noise import spherical
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream import session
from gazeveil.privacy.stream.kaleido import stage as kaleido_stage
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage, noise_scales_deg
from gazeveil.privacy.stream.kaleido.step import tangent_of
from gazeveil.privacy.synthesis.clock.render import ClockRender
from tests.support.laws import assert_distribution

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


@pytest.mark.parametrize("name", ["kaleido", "kaleido-uniform"])
@pytest.mark.parametrize("space", [SCREEN, Sphere()])
def test_scales_from_the_release_are_those_its_noise_was_drawn_with(name, space):
    mechanism = gazeveil.mechanism(f"{name}:epsilon=4,w=25,r_deg=1")
    plan = mechanism.plan(100.0, space)
    rng = np.random.default_rng(3)
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    steps = rng.normal(size=(2, 20_000)) * (rng.random(20_000) < 0.05) * 4.0
    x, y = (m + 8.0 * np.tanh(np.cumsum(d) / 8.0) for m, d in zip(middle, steps, strict=True))
    valid = rng.random(20_000) > 0.02
    x, y, shown = x[None].copy(), y[None].copy(), valid[None].copy()
    stage = LatticeStage(plan, 1, Bits((5,)).sources(1, "test"))
    stage.traced = True
    stage.run(np.zeros((1, 20_000), dtype=np.int64), x, y, shown)
    assert stage.trace is not None
    units = stage.trace[0]
    got = noise_scales_deg(plan.settings, x[0], y[0], shown[0])
    published = units > 0
    assert published.sum() > 500
    unit_deg = np.degrees(1.0) if isinstance(space, Sphere) else plan.settings.step_deg
    drawn = plan.settings.scale_times_units * unit_deg / units[published]
    np.testing.assert_allclose(got[published], drawn, rtol=1e-12)


def test_before_the_first_publication_nothing_is_known():
    mechanism = gazeveil.mechanism("kaleido:epsilon=4,w=25,r_deg=1")
    settings = mechanism.plan(100.0, SCREEN).settings
    x = np.array([1.0, 1.0, 2.0])
    got = noise_scales_deg(settings, x, x, np.array([False, True, True]))
    assert np.isinf(got[0])
    assert got[2] == pytest.approx(2 * got[1])


def test_the_published_reading_shows_no_scale():
    mechanism = gazeveil.mechanism("kaleido:epsilon=4,w=25,r_deg=1,reading=published")
    cohort = gazeveil.simulate(1, 1, seconds=2, rate_hz=100, seed=1)
    assert mechanism.noise_scale_deg(cohort[0]) is None


#: Five sigma and less: a false alarm in a million.
SIGMAS = 4.9

EPSILONS = (Fraction(1, 1 << 20), Fraction(1, 100), 1, 4, 64, 1024)
WINDOWS = (1, 60, 720, 1 << 20)
RADII = (Fraction(1, 1 << 10), Fraction(1, 20), 1, 20, 360)


class Bounded:
    """Test words that do not go on for ever: whoever waits for more is stuck."""

    secure = False

    def __init__(self, stream: TestStream, most: int) -> None:
        self.stream, self.left = stream, most

    def take(self, count: int) -> np.ndarray:
        self.left -= count
        assert self.left >= 0, "a point takes too many tries"
        return self.stream.take(count)

    def child(self, *keys: str | int) -> Bounded:
        return Bounded(self.stream.child(*keys), self.left)


def published(
    plan: KaleidoPlan, count: int, source: Any, units: int | None = None, y: float = 90.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """First publications of many streams that look at one place, and their units; `units` is what
    they are to be published with.
    """
    stage = LatticeStage(plan, count, [source])
    stage.traced = True
    if units is not None:
        stage.states[:, step.SPENT] = plan.units - 2 * units
    one = np.ones((count, 1))
    _, a, b, _ = stage.run(
        np.zeros((count, 1), dtype=np.int64), 200.0 * one, y * one, one.astype(np.bool_)
    )
    assert stage.trace is not None
    assert stage.trace.min() == stage.trace.max()
    return a[:, 0], b[:, 0], int(stage.trace[0, 0])


# --- no session waits
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
@pytest.mark.parametrize("rate_hz", [10.0, 120.0, 2000.0])
def test_no_setting_takes_many_tries(cls: Any, rate_hz: float) -> None:
    for epsilon, w, r_deg in itertools.product(EPSILONS, WINDOWS, RADII):
        plan = cls(epsilon, w, r_deg).plan(rate_hz, Sphere())
        assert plan.tries() <= 1.0 + spherical.WIDE_RAD**2  # the bound of the proof for every plan
        stage = LatticeStage(plan, 1, [Bounded(TestStream(1), 4000)])
        good = np.ones((1, 50), dtype=np.bool_)
        for y in (90.0, 0.0):
            stage.run(
                np.zeros((1, 50), dtype=np.int64),
                np.full((1, 50), 180.0),
                np.full((1, 50), y),
                good.copy(),
            )


@pytest.mark.parametrize("r_deg", RADII)
def test_readings_at_public_times_take_few_tries(r_deg: Any) -> None:
    for epsilon, rate_hz in itertools.product(EPSILONS, (10.0, 2000.0)):
        scale = ClockRender(epsilon, r_deg).noise(rate_hz, Sphere()).scale
        # equal shares have the tangent that fits them best
        own = spherical.tangent(min(scale, spherical.WIDE_RAD))
        assert spherical.most_tries(scale, scale, *own) <= spherical.MOST_TRIES


# --- the bound
# --------------------------------------------------------------------------------------------------


def tries_of(scale: float, shrink: float, lead: float) -> float:
    """Tries of a point on average, by the proof."""
    if scale > spherical.WIDE_RAD:
        return 1.0 + scale**-2
    return (
        (1.0 + scale**2) * shrink**2 * math.exp(lead / scale) / (1.0 + math.exp(-math.pi / scale))
    )


@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
def test_the_bound_of_a_plan_holds_at_every_scale_it_can_reach(cls: Any) -> None:
    for epsilon, w, r_deg in itertools.product(EPSILONS, WINDOWS, RADII):
        plan = cls(epsilon, w, r_deg).plan(120.0, Sphere())
        fitted, least, most = (plan.settings.fitted, plan.settings.least_units, plan.share(0)[0])
        spent = [
            int(v)
            for v in plan.units
            * np.concatenate((np.linspace(0.0, 1.0, 30), 1.0 - 2.0 ** -np.arange(1.0, 40.0)))
        ]
        reached = {plan.share(s)[0] for s in spent} | {fitted, fitted + 1, fitted - 1, least, most}
        low = plan.share(plan.units)[0]
        for units in (u for u in reached if max(least, low) <= u <= most):
            line = tangent_of(units, fitted, plan.settings.shrink, plan.settings.lead)
            assert tries_of(plan.scale(units), *line) <= plan.tries() * (1 + 1e-12)


@pytest.mark.parametrize(
    ("scale", "of"),
    [(0.01, 0.0), (0.5, 0.8), (0.6, 0.0), (1.25, 0.0), (1.25, 1.25), (1.26, 1.25), (0.3, 0.9)],
)
def test_tries_are_as_many_as_the_proof_says(scale: float, of: float) -> None:
    words = TestStream(2, str(scale)).take(160_000).reshape(-1, 4)
    line = spherical.tangent(of)
    kept = np.mean(
        [spherical.arc_kept(scale, *w[[0, 1, 3]], *line)[0] == spherical.SETTLED for w in words]
    )
    wanted = 1.0 / tries_of(scale, *line)
    assert abs(kept - wanted) < SIGMAS * math.sqrt(wanted * (1 - wanted) / len(words))
    assert spherical.most_tries(scale, scale, *line) * wanted >= 1 - 1e-12


def test_a_plan_that_might_take_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No parameters lead there; a plan would have to go wrong."""
    monkeypatch.setattr(
        kaleido_stage, "FITTING", 0.01
    )  # as if the one tangent served nearly every scale
    with pytest.raises(
        ParameterError, match=r"at most 4 tries on average\. Got 4\.0 instead\. Choose less\."
    ):
        Kaleido(4, 720, 1).open(120.0, Sphere())


def test_hardly_any_budget_for_points_is_a_plan_that_publishes_nothing() -> None:
    plan = Kaleido(Fraction(1, 1 << 20), 1 << 20, 360, h=1 + Fraction(1, 1 << 40)).plan(
        10.0, Sphere()
    )
    assert plan.settings.least_units > plan.share(0)[0]


# --- the law
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "which"),
    [(600, "first"), (720, "first"), (60, "unfitted"), (60, "fitted"), (60, "usual")],
)
def test_arcs_follow_their_law_at_narrow_scales_and_on_both_sides_of_the_change(
    w: int, which: str
) -> None:
    """Density proportional to exp(-arc / b) sin(arc), to within 5 % of b."""
    plan = Kaleido(4, w, 1 if w > 60 else 10).plan(120.0, Sphere())
    fitted = plan.settings.fitted
    units = {
        "first": None,
        "unfitted": fitted + 1,
        "fitted": fitted,
        "usual": plan.units // (plan.slots + 1),
    }[which]
    parts = []
    for seed in range(10):
        a, b, found = published(plan, 20_000, TestStream(seed, which), units)
        parts.append(np.radians(haversine_deg(200.0, 90.0, a, b)))
    assert units in (None, found)
    assert (found > fitted) == (which in ("first", "unfitted"))
    scale = plan.scale(found)

    def cdf(rho: np.ndarray, k: float) -> np.ndarray:
        c = 1.0 / (scale * k)
        return (1.0 - np.exp(-c * rho) * (np.cos(rho) + c * np.sin(rho))) / (
            1.0 + math.exp(-c * math.pi)
        )

    rho = np.concatenate(parts)
    assert_distribution(rho, cdf)
    for q in (0.01, 0.1, 0.5, 0.9, 0.99):
        below = float(np.mean(cdf(rho, 1.0) <= q))
        assert abs(below - q) < SIGMAS * math.sqrt(q * (1 - q) / len(rho))


# --- proposals
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-8, 0.001, 0.1, 0.5, 1.0, spherical.WIDE_RAD])
def test_the_tangent_lies_below_the_arc_of_every_chord(scale: float) -> None:
    shrink, lead = spherical.tangent(scale)
    half = np.concatenate(
        (
            np.linspace(0.0, 1.0, 100_001),
            np.sin(0.5 * np.arccos(shrink)) * np.linspace(0.99, 1.01, 1001),
        )
    )
    gap = 2.0 * np.arcsin(np.minimum(half, 1.0)) - 2.0 * half / shrink + lead
    assert gap.min() >= 0.0
    assert gap.min() < 1e-9  # it touches


# --- portions
# --------------------------------------------------------------------------------------------------


def random_walk(space: Any, count: int, lost: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x, y = np.cumsum(rng.normal(0, 0.5, (2, 1, count)), axis=2)
    x, y = (
        (np.mod(x + 180, 360), np.clip(y + 90, 0, 179.9))
        if isinstance(space, Sphere)
        else (np.clip(x, -30, 30), np.clip(y, -15, 15))
    )
    good = rng.random((1, count)) > 0.05
    if lost == "at first":
        good[:, : count // 2] = False
    elif lost == "at last":
        good[:, count // 2 :] = False
    elif lost == "all":
        good[...] = False
    return x, y, good


def released(
    plan: Any,
    samples: tuple[np.ndarray, np.ndarray, np.ndarray],
    sizes: list[int],
    traced: bool = False,
) -> list[np.ndarray]:
    stage = LatticeStage(plan, 1, [TestStream(3)])
    stage.traced = traced
    parts, begin = [], 0
    for size in sizes:
        x, y, good = (a[:, begin : begin + size].copy() for a in samples)
        parts.append(
            (
                *stage.run(np.zeros((1, size), dtype=np.int64), x, y, good)[1:],
                stage.trace if traced else np.zeros((1, 0)),
            )
        )
        begin += size
    return [np.concatenate([p[k] for p in parts], axis=1) for k in range(4)]


@pytest.mark.parametrize("lost", ["some", "at first", "at last", "all"])
@pytest.mark.parametrize("skip_ms", [10, 60])
@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_portions_of_samples_and_words_release_the_same(
    space: Any, cls: Any, skip_ms: int, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = cls(1, 60, 2, t_skip_ms=skip_ms).plan(100.0, space)
    count = 12_000
    samples = random_walk(space, count, lost)
    found = []
    for chunk, sizes, traced in (
        (32_768, [count], True),
        (500, [count], True),
        (500, [count], False),
        (500, [3000, 7, 2993, 6000], False),
        (64, [1000] * 12, False),
    ):
        monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", chunk)
        found.append(released(plan, samples, sizes, traced))
    for other in found[1:]:
        for a, b in zip(found[0][:3], other[:3], strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found[0][3], found[1][3])
    assert found[0][2].any() == (lost != "all")
    assert (found[0][2] <= samples[2]).all()


def test_a_source_that_fails_stops_the_block_and_its_words_are_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failing:
        secure = True

        def __init__(self, left: list[int]) -> None:
            self.left = left

        def take(self, count: int) -> np.ndarray:
            self.left[0] -= 1
            if self.left[0] < 0:
                raise OSError("no entropy")
            return TestStream(self.left[0]).take(count)

        def child(self, *keys: str | int) -> Failing:
            return self

    monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", 500)
    for space in (SCREEN, Sphere()):
        source = Failing([9])
        stage = LatticeStage(Kaleido(1, 60, 2, t_skip_ms=10).plan(100.0, space), 1, [source])
        samples = random_walk(space, 12_000, "some")
        with pytest.raises(OSError, match="no entropy"):
            stage.run(np.zeros((1, 12_000), dtype=np.int64), *(a.copy() for a in samples))
        draws = stage.draws[0]
        assert len(draws.tests.words) == len(draws.points.words) == 0
        source.left[0] = 1000
        stage.run(np.zeros((1, 12_000), dtype=np.int64), *(a.copy() for a in samples))


def test_used_words_are_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[np.ndarray] = []

    class Kept(TestStream):
        def take(self, count: int) -> np.ndarray:
            given.append(super().take(count))
            return given[-1]

        def child(self, *keys: str | int) -> Kept:
            return Kept(5, *keys)

    monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", 500)
    stage = LatticeStage(Kaleido(1, 60, 2, t_skip_ms=10).plan(100.0, Sphere()), 1, [Kept(5)])
    stage.run(np.zeros((1, 6000), dtype=np.int64), *random_walk(Sphere(), 6000, "some"))
    draws = stage.draws[0]
    left = len(draws.tests.words) + len(draws.points.words)
    assert len(given) > 20
    # what is not zero is what is left over, or was copied there
    assert sum(np.count_nonzero(g) for g in given) <= left


# --- the front
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sphere", [True, False])
@pytest.mark.parametrize(
    ("keeps_tracker_times", "hides_losses"), [(True, False), (False, False), (False, True)]
)
def test_whole_pieces_pass_the_front_as_single_samples_do(
    sphere: bool, keeps_tracker_times: bool, hides_losses: bool
) -> None:
    rng = np.random.default_rng(8)
    n, period = 20 * session.PIECE, 1e9 / 120.0
    steps, second_ns = np.arange(n) * period, 10**9
    beyond_x, beyond_y = (-1e-300, 180.0) if sphere else (-90.0, 90.0)
    whole = slice(None, None)
    at = int(rng.integers(2 * session.PIECE, n - 2 * session.PIECE))
    here, later, before = slice(at, at + 1), slice(at, n), slice(0, at)
    usual = np.rint(steps + rng.normal(0, 1e5, n)).astype(np.int64)
    troubles: list[tuple[str, slice, Any]] = [
        ("valid", whole, True),  # none
        ("valid", here, False),
        ("valid", before, False),
        ("x", here, np.nan),
        ("x", here, beyond_x),
        ("y", here, beyond_y),
        ("t", here, usual[at - 1]),
        ("t", here, 2**63 - 1),
        ("t", later, usual[later] + second_ns),  # a pause
        ("t", later, usual[later] - second_ns),  # a clock that is set back
        ("t", later, usual[later] + int(3 * period)),
        ("t", whole, np.rint(0.7 * steps).astype(np.int64)),  # faster than it says
        ("t", whole, np.rint(1.4 * steps).astype(np.int64)),
    ]
    for name, part, value in troubles:
        given = {"t": usual.copy(), "x": rng.uniform(-89, 89, n), "y": rng.uniform(-89, 89, n)}
        if sphere:
            given |= {"x": rng.uniform(0, 360, n), "y": rng.uniform(0, 180, n)}
        given["valid"] = np.ones(n, dtype=np.bool_)
        given[name][part] = value
        found = []
        for size in (n, 1, 700):
            arrays = [given[k].reshape(1, -1).copy() for k in ("t", "x", "y", "valid")]
            clock = np.zeros((1, 5), dtype=np.int64)
            for begin in range(0, n, size):
                session.validate_samples(
                    *(a[:, begin : begin + size] for a in arrays),
                    sphere,
                    keeps_tracker_times,
                    hides_losses,
                    period,
                    clock,
                )
            found.append([*arrays, clock])
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
        assert found[0][3].any()
