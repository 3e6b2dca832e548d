"""The noise of Kaleido follows its laws, doubles and whole numbers decide alike, and audits find no
more than is promised.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Screen, Sphere
from gazeveil.gaze.geometry import haversine_deg
from gazeveil.privacy.audit.run import epsilon_lower
from gazeveil.privacy.noise import arithmetic as functions
from gazeveil.privacy.noise import bigint as sure
from gazeveil.privacy.noise import lattice, spherical
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream.audit import worst_loss
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage
from tests.privacy.noise.test_planar_and_knorm import Rare
from tests.support.laws import assert_distribution, follows

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
WIDE = Screen(1280, 720, 40_000.0, 22_500.0, 450.0)  # its edges are out of reach


def published(
    mechanism: Any, x: float, y: float, count: int, space: Any, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, float]:
    """First publications of many streams that look at one place, and their scale in degrees."""
    plan = mechanism.plan(100.0, space)
    stage = LatticeStage(plan, count, [TestStream(seed)])
    stage.traced = True
    one = np.ones((count, 1))
    _, a, b, _ = stage.run(
        np.zeros((count, 1), dtype=np.int64), x * one, y * one, one.astype(np.bool_)
    )
    assert stage.trace is not None
    scale = plan.scale(int(stage.trace[0, 0]))
    return (
        a[:, 0],
        b[:, 0],
        math.degrees(scale) if isinstance(space, Sphere) else scale * float(plan.step_deg),
    )


def test_publications_on_a_screen_are_planar_laplace() -> None:
    a, b, scale = published(KaleidoUniform(10, 50, 2, slots=1), 0.0, 0.0, 200_000, SCREEN)
    assert scale == pytest.approx(0.2, rel=2e-3)  # r / epsilon, and the rounding to the lattice
    assert_distribution(
        np.hypot(a, b), lambda r, k: 1 - (1 + r / (scale * k)) * np.exp(-r / (scale * k))
    )
    assert follows(np.arctan2(b, a), lambda u, _: u / (2 * np.pi) + 0.5)


@pytest.mark.parametrize(
    ("epsilon", "y"),
    [(20, 90.0), (2, 30.0), (2, 0.0), ("0.145", 60.0), ("0.13", 150.0), ("0.05", 120.0)],
)
def test_publications_on_a_sphere_fall_off_with_arc_length_by_area(epsilon: Any, y: float) -> None:
    """The last two are wide: points are proposed uniformly there. One place is the pole itself."""
    a, b, scale_deg = published(
        KaleidoUniform(epsilon, 50, 10, slots=1), 200.0, y, 400_000, Sphere()
    )
    s = math.radians(scale_deg)
    rho = np.radians(haversine_deg(200.0, y, a, b))

    def cdf(r: np.ndarray, k: float) -> np.ndarray:
        c = 1 / (s * k)
        return (1 - np.exp(-c * r) * (np.cos(r) + c * np.sin(r))) / (1 + np.exp(-c * np.pi))

    if s < spherical.WIDE_RAD:
        assert_distribution(rho, cdf)
    else:
        assert follows(rho, cdf)
        assert not follows(
            rho, cdf, 0.3
        )  # 5 % of a scale of many radians cannot be told from uniform noise
    # Bearings are uniform: as many to the north as to the south of the great circle through the
    # place, and to both sides.
    if 0 < y < 180:
        side = np.sin(np.radians(a - 200.0))
        hits = np.count_nonzero(side > 0) / np.count_nonzero(side)
        assert abs(hits - 0.5) < 5 / (2 * math.sqrt(len(side)))


@pytest.mark.parametrize("gap", [-3.0, -0.3, 0.0, 0.5, 2.0])
def test_the_test_bit_is_laplace_around_the_threshold(gap: float) -> None:
    n, scale, threshold = 200_000, 50.0, 200.0
    words = TestStream(3, str(gap)).take(n)
    hits = sum(step.test_passes(threshold + gap * scale, threshold, scale, w)[0] for w in words)
    p = 0.5 * math.exp(-gap) if gap > 0 else 1 - 0.5 * math.exp(gap)
    assert abs(hits - n * p) < 5 * math.sqrt(n * p * (1 - p))
    wrong = 0.5 * math.exp(-gap / 1.05) if gap > 0 else 1 - 0.5 * math.exp(gap / 1.05)
    if abs(gap) >= 0.3:
        assert abs(hits - n * wrong) > 2 * math.sqrt(n * p * (1 - p))


# --- doubles and whole numbers
# --------------------------------------------------------------------------------------------------


def drawn_on(words: np.ndarray, first: int, seed: int) -> np.ndarray:
    return np.concatenate((words[:first], TestStream(seed, "more").take(sure.MORE * first)))


def test_whole_numbers_decide_as_doubles_where_these_are_sure() -> None:
    words = TestStream(1, "pairs").take(4000)
    rng = np.random.default_rng(1)
    for i in range(100):
        w = words[4 * i : 4 * i + 4]
        scale = float(rng.uniform(10, 1e5))
        x, y, settled = lattice.screen_noise(scale, w[0], w[1], w[2])
        assert settled == spherical.SETTLED
        assert sure.screen_noise(scale, drawn_on(w, 3, i)) == (x, y)
        d, threshold = rng.integers(0, 2000), float(rng.uniform(0, 500))
        near, settled = step.test_passes(float(d), threshold, scale, w[0])
        assert settled == spherical.SETTLED
        assert (
            sure.test_passes(sure.distance_steps(int(d), 0), threshold, scale, drawn_on(w, 1, i))
            == near
        )
        ix, iy, g = int(rng.integers(0, 360 * 128)), int(rng.integers(0, 180 * 128)), 1 / 128
        bx, by = int(rng.integers(0, 360 * 128)), int(rng.integers(0, 180 * 128))
        cos_lon, sin_lon, up, flat = spherical.axes(np.int64(ix), np.int64(iy), g)
        there = spherical.axes(np.int64(bx), np.int64(by), g)
        chord = np.hypot(
            np.hypot(flat * sin_lon - there[3] * there[1], up - there[2]),
            flat * cos_lon - there[3] * there[0],
        )
        arc = sure.distance_rad(ix, iy, bx, by, g)
        assert abs(2 * np.sin(arc / 2**640 / 2) - chord) < 2.0**-46
        for spread in (0.2, 1.2, 1.3, 3.0):
            near, settled = step.arc_test_passes(chord * chord, 0.1, spread, w[3])
            assert settled == spherical.SETTLED
            assert sure.test_passes(arc, 0.1, spread, drawn_on(w[3:], 1, i)) == near
            shrink, lead = spherical.tangent(0.7)
            settled, side = spherical.arc_kept(spread, w[0], w[1], w[3], shrink, lead)
            assert settled != spherical.UNSETTLED
            found = sure.sphere_noise(
                ix,
                iy,
                spread,
                g,
                drawn_on(w, 4 if spread < spherical.WIDE_RAD else 3, i),
                shrink,
                lead,
            )
            assert (found is None) == (settled == spherical.REJECTED)
            if found is not None:
                x, y, settled = spherical.sphere_point(
                    np.int64(iy), spread, g, w[0], w[2], w[3], shrink, side
                )
                assert settled == spherical.SETTLED
                assert (found[0] % (360 * 128), found[1]) == ((ix + x) % (360 * 128), y)


def test_distances_at_the_ends_are_exact() -> None:
    assert sure.distance_rad(5, 7, 5, 7, 1 / 32) == 0
    assert sure.distance_rad(0, 90 * 32, 180 * 32, 90 * 32, 1 / 32) / 2**640 == pytest.approx(
        math.pi
    )
    assert (
        sure.distance_rad(0, 0, 17, 0, 1 / 32) < 2**600
    )  # the pole is one place, whatever its longitude


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize(("cls", "parameters"), [(Kaleido, {}), (KaleidoUniform, {"slots": 10})])
def test_unsettled_draws_are_decided_alike_in_any_blocks(
    space: Any, cls: Any, parameters: dict[str, int]
) -> None:
    plan = cls(3, 50, 2, **parameters).plan(100.0, space)
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-10, 10, (1, 300)), rng.uniform(-5, 5, (1, 300))
    if isinstance(space, Sphere):
        x, y = x + 180, y + 90
    outs = []
    for size in (300, 7, 1):
        stage = LatticeStage(plan, 1, [Rare(1)])
        parts = [
            stage.run(
                np.zeros((1, size), dtype=np.int64),
                *(a[:, i : i + size].copy() for a in (x, y)),
                np.ones((1, size), dtype=np.bool_),
            )
            for i in range(0, 300 - 300 % size, size)
        ]
        outs.append(np.concatenate([p[1] for p in parts], axis=1)[:, :294])
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])
    assert len(np.unique(outs[0])) > 5


def test_rounding_costs_less_than_two_parts_in_a_thousand() -> None:
    for r in (0.001, 0.5, 1, 2, 10, 31):
        mechanism = Kaleido(1, 50, r)
        plan = mechanism.plan(100.0, SCREEN)
        assert 1 < plan.r_steps * plan.step_deg / Fraction(mechanism.r_deg) < 1.002
    assert lattice.lattice_bits(Kaleido(1, 1, 360).r_deg) == 5  # type: ignore[arg-type]


def test_scales_never_fall_below_the_exact_ones() -> None:
    for cls in (Kaleido, KaleidoUniform):
        for epsilon in ("1/3", "0.7", 7):
            for r in ("1/3", 2, "9.7"):
                plan = cls(epsilon, 50, r).plan(100.0, SCREEN)
                for units in (1, 3, plan.units // 7, plan.units // 2):
                    wanted = plan.r_steps * plan.units / (plan.epsilon_publish * units)
                    assert Fraction(plan.scale(units)) >= wanted
                if plan.epsilon_test:
                    assert Fraction(plan.settings.test_scale) >= plan.r_steps / plan.epsilon_test


def test_the_compiled_functions_keep_their_bounds() -> None:
    from gazeveil.privacy import rational

    rng = np.random.default_rng(5)
    bits = 128
    edges = [1.0, 0.5, math.nextafter(1.0, 0.0), math.nextafter(0.5, 1.0), 2.0**-100, 0.75]
    for x in [*edges, *np.exp(-rng.uniform(0, 60, 400)), *rng.uniform(0.5, 1.0, 400)]:
        truth = (
            rational.log(int(Fraction(float(x)) * 2**bits), bits) / 2**bits
            if x * 2.0**bits >= 2**60
            else math.log(x)
        )
        assert abs(functions.log(float(x)) - truth) <= (1 + abs(truth)) * 2.0**-49
    for x in [0.0, -1e-300, -64.0, *-rng.uniform(0, 4, 600), *-rng.uniform(0, 64, 200)]:
        truth = Fraction(rational.exp_minus(Fraction(-float(x)), 256), 2**256)
        assert abs(Fraction(functions.exp(float(x))) - truth) <= truth / 2**49
    for turns in [0.0, 0.5, 1 / 512, 255 / 256, *rng.uniform(0, 1, 600)]:
        cos, sin = rational.cos_sin_of_turn(int(Fraction(float(turns)) * 2**bits), bits)
        found = functions.cos_sin(float(turns))
        assert abs(found[0] - cos / 2**bits) <= 2.0**-50
        assert abs(found[1] - sin / 2**bits) <= 2.0**-50
    for _ in range(600):
        y, x = (float(v) for v in rng.normal(size=2) * 10.0 ** rng.uniform(-6, 0, 2))
        y, x = y / math.hypot(x, y), x / math.hypot(x, y)
        assert abs(functions.turn_of(y, x) - math.atan2(y, x) / (2 * math.pi)) <= 2.0**-51
        off = 1 + 2.0**-30
        assert (
            abs(functions.turn_of(y * off, x * off) - math.atan2(y, x) / (2 * math.pi))
            <= 2.0**-51 + 0.2 * 2.0**-30
        )
    for y, x, turn in (
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 0.25),
        (0.0, -1.0, 0.5),
        (-1.0, 0.0, -0.25),
        (math.sqrt(0.5), math.sqrt(0.5), 0.125),
    ):
        assert functions.turn_of(y, x) == turn


# --- audits
# --------------------------------------------------------------------------------------------------


def test_audit_of_the_test_bit_finds_its_budget_and_no_more() -> None:
    """Distances l and l + r: the answer 'near' is exp(epsilon_test) times
    likelier for the first."""
    mechanism = Kaleido(1, 10, 2, t_skip_ms=100)
    plan = mechanism.plan(100.0, SCREEN)
    r = math.floor(mechanism.r_deg / plan.step_deg)  # type: ignore[operator]
    threshold, n = plan.settings.threshold, 200_000

    def found(scale: float) -> float:
        bits = []
        for side in (0, 1):
            words = TestStream(7, side).take(n)
            distance = threshold * (1 + 1e-9) + side * r
            bits.append(
                np.array(
                    [step.test_passes(distance, threshold, scale, w)[0] for w in words],
                    dtype=np.float64,
                )
            )
        return epsilon_lower(*bits, 0.999).epsilon

    claimed, scale = float(plan.epsilon_test), plan.settings.test_scale
    assert claimed == 0.5
    assert 0.9 * claimed <= found(scale) <= claimed
    # Without r (2 degrees) in the scale, as published, the same audit finds twice as much.
    assert found(scale / 2) > 1.7 * claimed


@pytest.mark.parametrize("space", [WIDE, Sphere()], ids=["screen", "sphere"])
def test_audit_of_one_publication_finds_its_budget_and_no_more(space: Any) -> None:
    mechanism = KaleidoUniform(1, 50, 2, slots=1)
    x, y = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    statistics = []
    for side in (0, 1):
        a, b, _ = published(mechanism, x + 2.0 * side, y, 200_000, space, seed=20 + side)
        d = [
            (
                haversine_deg(x + 2.0 * s, y, a, b)
                if isinstance(space, Sphere)
                else np.hypot(a - x - 2.0 * s, b - y)
            )
            for s in (0, 1)
        ]
        statistics.append(d[1] - d[0])
    found = epsilon_lower(*statistics, 0.999).epsilon
    assert 0.75 <= found <= 1.0


@pytest.mark.parametrize(
    ("text", "refuted"),
    [
        ("kaleido:epsilon=1,w=50,r_deg=2", False),
        ("kaleido:epsilon=3,w=10,r_deg=2", False),
        ("kaleido-uniform:epsilon=1,w=50,r_deg=2", False),
        ("kaleido:epsilon=1,w=50,r_deg=2,reading=published", True),
        ("kaleido:epsilon=2,w=50,r_deg=10,reading=published", True),
        ("kaleido:epsilon=1,w=50,r_deg=0.5,reading=published", True),
    ],
)
def test_audits_of_whole_windows(text: str, refuted: bool) -> None:
    # Honest noise is refuted by chance in at most one run in a million.
    found = gazeveil.audit(text, trials=10_000, confidence=1 - 1e-6)
    assert found.unit == "window"
    assert found.refuted == refuted
    assert found.epsilon_claimed is not None
    assert found.epsilon_lower is not None
    assert found.statistical is not None
    assert found.epsilon_lower > 0.8 * found.epsilon_claimed
    if not refuted:
        assert found.statistical <= found.epsilon_claimed


def test_the_worst_loss_is_found_by_hand() -> None:
    # Two slots, threshold far away: a test tells r / scale whatever it says; shares 1/2 and 1/4.
    loss = worst_loss(2, 10.0, 1000.0, 1.0, lambda s: ((1 - s) / 2,) * 2, True)
    assert loss == pytest.approx(0.75 + 0.2)
    assert worst_loss(2, 10.0, 1000.0, 1.0, lambda s: ((1 - s) / 2,) * 2, False) == pytest.approx(
        0.75 + 0.1
    )
    assert worst_loss(4, 0.0, 0.0, 1.0, lambda s: (0.25, 0.25), True) == 1.0
