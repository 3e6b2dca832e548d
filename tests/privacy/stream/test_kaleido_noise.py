"""The noise of Kaleido follows its laws, doubles and whole numbers decide alike, and audits find no
more than is promised.

Kaleido with an r that follows the regions of a stimulus: public, or not.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Screen, Sphere
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gatekeeper.policy.decision import Request, decide
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import haversine_deg
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.run import epsilon_lower
from gazeveil.privacy.audit.run import judge as judge_game
from gazeveil.privacy.noise import arithmetic as functions
from gazeveil.privacy.noise import bigint as sure
from gazeveil.privacy.noise import lattice, spherical
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.audit import worst_loss
from gazeveil.privacy.stream.chain import Chain
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform, regions_on
from gazeveil.privacy.stream.kaleido.stage import LatticeStage
from gazeveil.privacy.stream.mechanism import StreamMechanism
from tests.privacy.noise.test_local import Rare
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


def test_the_worst_loss_is_found_by_hand() -> None:
    # Two slots, threshold far away: a test tells r / scale whatever it says; shares 1/2 and 1/4.
    loss = worst_loss(2, 10.0, 1000.0, 1.0, lambda s: ((1 - s) / 2,) * 2, True)
    assert loss == pytest.approx(0.75 + 0.2)
    assert worst_loss(2, 10.0, 1000.0, 1.0, lambda s: ((1 - s) / 2,) * 2, False) == pytest.approx(
        0.75 + 0.1
    )
    assert worst_loss(4, 0.0, 0.0, 1.0, lambda s: (0.25, 0.25), True) == 1.0


REGION_SCREEN = Screen(1920, 1080, 600.0, 340.0, 600.0)
FAMILY = ("kaleido", "kaleido-uniform")

AREAS = """unit = "deg"
area = [
  {stimulus = "page", name = "title", left = -8.0, top = -6.0, right = 8.0, bottom = 6.0},
  {stimulus = "page", name = "button", left = 10.0, top = 2.0, right = 13.0, bottom = 6.0},
  {stimulus = "face", name = "eyes", left = 0.0, top = 0.0, right = 4.0, bottom = 3.0},
]
"""


@pytest.fixture
def areas(tmp_path: Path) -> str:
    path = tmp_path / "areas.toml"
    path.write_text(AREAS, "utf-8")
    return str(path)


def _recording(stimulus: str, space: Any = REGION_SCREEN, n: int = 400) -> Recording:
    t = np.arange(n)
    x, y = 9.0 + 3.0 * np.sin(t / 9.0), 4.0 * np.cos(t / 7.0)
    return Recording("p", stimulus, t * 10_000_000, x, y, space=space, rate_hz=100.0)


def _kaleido(areas: str, name: str = "kaleido", **more: Any) -> Any:
    return mechanism(name, **{"epsilon": 2, "w": 50, "r_deg": "largest", "regions": areas, **more})


# --- which r
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "stimulus", "r_deg"),
    [("largest", "page", 20), ("median", "page", 5), ("largest", "face", 5)],
)
def test_r_is_as_wide_as_a_region_of_the_stimulus(
    areas: str, rule: str, stimulus: str, r_deg: int
) -> None:
    made = _kaleido(areas, r_deg=rule, stimulus=stimulus)
    assert made.radius_deg(REGION_SCREEN) == r_deg


@pytest.mark.parametrize("across", [0.1, 1 / 3, 7.3, 21.21])
def test_widths_are_rounded_up_and_by_less_than_a_1024th(tmp_path: Path, across: float) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"name,left_deg,top_deg,right_deg,bottom_deg\na,0,0,{across!r},{across!r}\n")
    (width,) = regions_on("k", str(path), "s", REGION_SCREEN).widths_deg
    exact = 2 * Fraction(across) ** 2
    assert (width - Fraction(1, 1024)) ** 2 < exact <= width**2


@pytest.mark.parametrize("polar", [(80.0, 100.0), (5.0, 20.0), (0.0, 180.0), (150.0, 175.0)])
@pytest.mark.parametrize("across", [10.0, 170.0, 350.0])
def test_no_two_places_of_a_region_on_a_sphere_are_farther_apart_than_r(
    tmp_path: Path, polar: tuple[float, float], across: float
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "stimulus,name,left_deg,top_deg,right_deg,bottom_deg\n"
        f"s,a,0,{polar[0]},{across},{polar[1]}\n"
    )
    r_deg = float(regions_on("k", str(path), "s", Sphere()).r_deg("largest"))
    x, y = np.meshgrid(np.linspace(0, across, 12), np.linspace(*polar, 12))
    places = Sphere().vectors(x.ravel(), y.ravel())
    apart = np.degrees(np.arccos(np.clip(places @ places.T, -1, 1)))
    assert apart.max() <= r_deg + 1e-6


@pytest.mark.parametrize("name", FAMILY)
def test_a_recording_is_released_as_with_the_r_of_its_stimulus_given_as_a_number(
    areas: str, name: str
) -> None:
    made = _kaleido(areas, name)
    for stimulus in ("page", "face"):
        radius = _kaleido(areas, name, stimulus=stimulus).radius_deg(REGION_SCREEN)
        plain = mechanism(name, epsilon=2, w=50, r_deg=radius)
        ours = made.release(_recording(stimulus), seed=3).data
        theirs = plain.release(_recording(stimulus), seed=3).data
        np.testing.assert_array_equal(ours.x_deg, theirs.x_deg)
        assert made.noise_scale_deg(ours) is not None
    live = _kaleido(areas, name, stimulus="face").open(100.0, REGION_SCREEN, seed=3)
    assert isinstance(plain, StreamMechanism)  # that of the face
    fixed = plain.open(100.0, REGION_SCREEN, seed=3)
    r = _recording("face")
    samples = r.t_ns, r.x_deg, r.y_deg, r.valid
    np.testing.assert_array_equal(live.push(*samples)[1], fixed.push(*samples)[1])


def test_r_does_not_depend_on_gaze(areas: str) -> None:
    # The same noise on gaze elsewhere, shifted by whole steps of the lattice, is shifted as much.
    made = _kaleido(areas, l_thresh_deg=0, epsilon=1000)
    one = _recording("page").with_(x_deg=np.full(400, -12.0), y_deg=np.zeros(400))
    two = one.with_(x_deg=np.full(400, 12.0))
    left, right = (made.release(r, seed=1).data.x_deg for r in (one, two))
    np.testing.assert_allclose(right[:5] - left[:5], 24.0, atol=1e-9)


# --- what is promised
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_the_guarantee_gives_the_r_of_every_stimulus_and_that_regions_are_public(
    areas: str, name: str
) -> None:
    made = _kaleido(areas, name)
    cohort = Cohort([_recording("page"), _recording("face")])
    promised = made.release(cohort).guarantee
    face, page = (_kaleido(areas, stimulus=s).radius_deg(REGION_SCREEN) for s in ("face", "page"))
    assert promised.map(Change.window(50, move_deg=face)).epsilon == 2
    assert promised.map(Change.window(50, move_deg=page)).epsilon == 2 * -(-page // face)
    text = str(promised)
    for r in (face, page):
        assert f"on a stimulus whose r is {format_exact(r)} degrees, moved by at most that" in text
    assert "page" not in text  # a release may withhold names of stimuli
    assert "face" not in text
    assert "regions of interest of every stimulus are public" in text
    assert promised.status == "proved"


def test_the_median_says_which_regions_it_does_not_span(areas: str) -> None:
    promised = _kaleido(areas, r_deg="median", stimulus="page").promise(100.0, REGION_SCREEN)
    assert any("inside the region that is wider" in clause for clause in promised.not_covered)
    assert not _kaleido(areas, stimulus="page").promise(100.0, REGION_SCREEN).not_covered


def test_regions_on_every_stimulus_serve_those_without_any(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(AREAS.replace('"face"', '"*"'), "utf-8")
    made = _kaleido(str(path))
    assert made.release(_recording("anything"), seed=1).data.x_deg.shape == (400,)
    assert len(made.promise(100.0, REGION_SCREEN).also) == 2


def test_a_chain_takes_regions_of_several_stimuli_in_pixels_of_a_screen(tmp_path: Path) -> None:
    path = tmp_path / "pixels.csv"
    path.write_text(
        "stimulus,name,left_px,top_px,right_px,bottom_px\n"
        "page,text,100,100,700,300\nface,eyes,500,200,600,250\n",
        "utf-8",
    )
    stage = f"kaleido(epsilon=200;w=50;r_deg=largest;regions={path})"
    alone, chain = _kaleido(str(path), epsilon=200), mechanism("chain", stages=stage)
    assert isinstance(chain, Chain)
    assert chain.claim.definition == "epsilon-w-r-dp"
    cohort = Cohort([_recording("page"), _recording("face")])
    released = chain.release(cohort, seed=1)
    assert released.guarantee.numbers == alone.release(cohort, seed=1).guarantee.numbers
    assert len(released.guarantee.also) >= 2  # the r of each stimulus
    page, face = (
        chain.on_stimulus(s).stages[0].radius_deg(REGION_SCREEN) for s in ("page", "face")
    )
    assert page > 3 * face  # each has the noise of its own regions
    # A stage before it moves gaze farther: r costs more than epsilon, and nothing else is said.
    moved = mechanism("chain", stages=f"spatial(L=64)+{stage}")
    assert isinstance(moved, Chain)
    behind = moved.promise(100.0, REGION_SCREEN)
    assert behind.numbers["epsilon"] > alone.promise(100.0, REGION_SCREEN).numbers["epsilon"]
    assert behind.also == ()


def test_the_audit_of_one_r_per_stimulus_finds_nothing(areas: str) -> None:
    game = _kaleido(areas, stimulus="face", epsilon=1).audit_game(None)
    # One run in a million refutes honest noise by chance.
    assert not judge_game("largest", game, 2000, 1 - 1e-6).refuted


# --- what is refused
# --------------------------------------------------------------------------------------------------


def test_a_stimulus_without_regions_is_an_error_that_names_it(areas: str) -> None:
    with pytest.raises(DataError, match=r"No region .* lies on the stimulus 'desert'"):
        _kaleido(areas).release(_recording("desert"))


def test_a_live_stream_must_say_what_it_shows(areas: str) -> None:
    with pytest.raises(ParameterError, match="'stimulus' parameter of kaleido"):
        _kaleido(areas).open(100.0, REGION_SCREEN)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"r_deg": "largest"}, "'regions' parameter of kaleido"),
        ({"r_deg": "widest", "regions": "a.toml"}, "'r_deg' parameter of kaleido"),
        ({"r_deg": 2, "regions": "a.toml"}, "'r_deg' parameter of kaleido"),
        ({"r_deg": 2, "stimulus": "s"}, "'stimulus' parameter of kaleido"),
        ({"r_deg": "wide"}, "'r_deg' parameter of kaleido"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_file_is_opened(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        mechanism("kaleido", epsilon=1, w=50, **parameters)


def test_a_file_that_is_not_there_is_one_sentence() -> None:
    made = _kaleido("/nowhere/areas.toml")
    with pytest.raises(FormatError):
        made.promise(100.0, REGION_SCREEN)


def test_an_app_cannot_make_a_gatekeeper_open_a_file(areas: str, tmp_path: Path) -> None:
    plain = "kaleido:epsilon=1,w=60,r_deg=2"
    grant = Grant(frozenset({"samples"}), (plain,), budgets={"epsilon": 10}, streams=1)
    policy = Policy({"app": grant}, consent=True)
    (tmp_path / "secret.json").write_text('{"password": 1}')
    reasons = set()
    for file in (tmp_path / "secret.json", areas, "none.toml"):
        text = f"kaleido:epsilon=1,w=60,r_deg=largest,regions={file}"
        decision = decide(policy, Request("app", "samples", text))
        assert decision.code == "mechanism"
        reasons.add(decision.reason)
    assert len(reasons) == 1  # it was not even looked at
    assert decide(policy, Request("app", "samples", plain)).code == "allowed"


def test_a_grant_names_no_file_because_the_app_is_told_its_grant(areas: str) -> None:
    named = f"kaleido:epsilon=1,w=60,r_deg=largest,regions={areas},stimulus=page"
    with pytest.raises(ParameterError, match="would be told where a file"):
        Grant(frozenset({"samples"}), (named,))


def test_results_and_pages_give_the_name_of_the_file_alone(areas: str, tmp_path: Path) -> None:
    from gazeveil.explore.board import parse_slider

    people = [_recording("page").with_(person=f"p{i}", session=s) for i in range(3) for s in "ab"]
    text = f"kaleido:epsilon=2,w=50,r_deg=largest,regions={areas}"
    (tmp_path / "broken.toml").write_text("[[area]]\nleft = 'x'\n")
    utilities = ["signal", f"aoi:areas={areas}", f"dwell:areas={tmp_path / 'broken.toml'}"]
    results = gazeveil.evaluate(Cohort(people), [text], attacks=[], utilities=utilities, seed=1)
    assert "aoi:areas=areas.toml" in results.frame["utility"].to_list()
    assert results.failures[0]["cell"].startswith("dwell:areas=broken.toml,")
    results.write(tmp_path / "results")
    results.report(tmp_path / "report.html")
    written = [tmp_path / "report.html", *(tmp_path / "results").rglob("*")]
    for held in (f.read_bytes() for f in written if f.is_file()):
        assert str(tmp_path).encode() not in held
    assert set(results.frame["parameters"].to_list()) >= {
        mechanism(text).public_text.partition(":")[2].removesuffix(",reading=corrected")
    }
    shown = parse_slider(f"kaleido:epsilon=2|3,w=50,r_deg=largest,regions={areas}").public_texts
    assert "regions=areas.toml" in shown[1]
    other = tmp_path / "other"
    other.mkdir()
    (other / "areas.toml").write_text(Path(areas).read_text())
    twice = f"kaleido:epsilon=2,w=50,r_deg=largest,regions={other / 'areas.toml'}"
    with pytest.raises(ParameterError, match="same name in different folders"):
        gazeveil.evaluate(Cohort(people), [text, twice], utilities=["signal"])
    same = [f"aoi:areas={areas}", f"aoi:areas={other / 'areas.toml'}"]
    with pytest.raises(ParameterError, match="Two files of aoi have the same name"):
        gazeveil.evaluate(Cohort(people), [], utilities=same)


def test_a_relay_takes_the_r_of_what_is_shown(areas: str) -> None:
    from gazeveil.relay.protector import Protector

    text = f"kaleido-uniform:epsilon=5,w=60,r_deg=largest,regions={areas},stimulus=page"
    assert "r = 20 degrees" in str(Protector(text, 100.0, REGION_SCREEN).guarantee)
