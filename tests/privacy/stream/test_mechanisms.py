"""What each stream mechanism does to gaze, against its law, its formula or a slow second way of
computing it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from gazeveil import Recording, Sphere
from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import angle_deg
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.chain import Chain, parse_stages
from gazeveil.privacy.stream.gaussian import Gaussian, GaussianLattice
from tests.support.gaussian_epsilon import epsilon_of_gaussian
from tests.support.laws import assert_distribution
from tests.support.strategies import SCREEN

SPHERE = Sphere()
READINGS = ("corrected", "published")


def steady(
    n: int, x: float = 180.0, y: float = 90.0, rate_hz: float = 100.0, **more: object
) -> Recording:
    return Recording(
        "p",
        "s",
        np.arange(n) * round(1e9 / rate_hz),
        np.full(n, x),
        np.full(n, y),
        rate_hz=rate_hz,
        **more,
    )  # type: ignore[arg-type]


def released(text: str, r: Recording, seed: int | None = 1) -> Recording:
    out: Recording = mechanism(text).release(r, seed=seed).data
    return out


# --- gaussian
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("sigma", [3.0, 0.02])
@pytest.mark.parametrize("space", [SPHERE, SCREEN])
def test_noise_is_normal_along_both_axes(reading: str, sigma: float, space: object) -> None:
    centre = (180.0, 90.0) if space is SPHERE else (0.0, 0.0)
    out = released(
        f"gaussian:sigma_deg={sigma},reading={reading}", steady(200_000, *centre, space=space)
    )
    step = 2.0 ** -GaussianLattice.of(Fraction(str(sigma))).bits if reading == "corrected" else None
    for values, middle in ((out.x_deg, centre[0]), (out.y_deg, centre[1])):
        # the law of a discrete Gaussian is the continuous one at half steps, up to terms far below
        # what the test can see
        assert_distribution(
            values - middle,
            lambda v, scale: ndtr((v + (step or 0.0) / 2) / (sigma * scale)),
            step=step,
        )


@pytest.mark.parametrize("reading", READINGS)
def test_noise_is_independent_over_axes_and_time(reading: str) -> None:
    n = 100_000
    out = released(f"gaussian:sigma_deg=2,reading={reading}", steady(n))
    x, y = out.x_deg - 180, out.y_deg - 90
    for a, b in ((x, y), (x[1:], x[:-1]), (y[1:], x[:-1]), (y[2:], y[:-2])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize("reading", READINGS)
def test_places_go_round_the_seam_and_are_reflected_at_the_poles(reading: str) -> None:
    n, sigma = 200_000, 5.0
    north = released(f"gaussian:sigma_deg={sigma},reading={reading}", steady(n, 0.0, 0.0))
    assert (
        (north.x_deg >= 0) & (north.x_deg < 360) & (north.y_deg >= 0) & (north.y_deg < 180)
    ).all()
    around = np.mod(north.x_deg + 180, 360) - 180
    # reflection happens half a step beyond the pole, so steps -1 and 0 fall together
    step = 2.0**-10 if reading == "corrected" else 0.0
    assert_distribution(
        around, lambda v, scale: ndtr((v + step / 2) / (sigma * scale)), step=step or None
    )
    assert_distribution(
        north.y_deg,
        lambda v, scale: (
            ndtr((v + step / 2) / (sigma * scale)) - ndtr(-(v + 1.5 * step) / (sigma * scale))
        ),
        step=step or None,
    )
    south = released(f"gaussian:sigma_deg={sigma},reading={reading}", steady(n, 359.999, 179.999))
    assert south.y_deg.max() < 180
    assert south.y_deg.mean() == pytest.approx(180 - sigma * np.sqrt(2 / np.pi), abs=0.05)


def test_huge_noise_stays_in_the_space() -> None:
    for space, place in ((SPHERE, (1.0, 1.0)), (SCREEN, (-89.0, 89.0))):
        for reading in READINGS:
            out = released(
                f"gaussian:sigma_deg=1024,reading={reading}", steady(20_000, *place, space=space)
            )
            assert out.valid.all()  # Recording itself refuses places outside its space


def test_the_account_is_that_of_the_theory() -> None:
    for sigma, r, epsilon in ((10, 1, 3.66), (10, 5, 25.3), (10, 10, 66.0), (3, 1, 15.0)):
        g = Gaussian(sigma, r_deg=r, w=60).promise(60.0, SPHERE)
        assert g.rho is not None
        assert 1 <= float(g.rho) / (60 * r**2 / (2 * sigma**2)) < 1.003
        assert float(epsilon_of_gaussian(g.rho, Fraction(1, 10**6))) == pytest.approx(
            epsilon, rel=0.01
        )
    one = Gaussian(10, w=1).promise(60.0, SPHERE)
    assert (one.unit, one.rho) == ("sample", GaussianLattice.of(Fraction(10)).rho(Fraction(1)))


def test_rho_bounds_every_pair_of_neighbours_and_is_nearly_reached() -> None:
    # Pairs of places r apart, rounded to the grid: the integer distance decides rho exactly.
    rng = np.random.default_rng(0)
    for sigma, r in (("0.1", Fraction(1, 100)), ("3", Fraction(1)), ("10", Fraction(5))):
        lattice = GaussianLattice.of(Fraction(sigma))
        scale = 1 << lattice.bits
        a = rng.uniform(0, 100, (200_000, 2))
        turn = rng.uniform(0, 2 * np.pi, 200_000)
        b = a + float(r) * np.stack((np.cos(turn), np.sin(turn)), axis=1)
        worst = int((np.square(np.rint(a * scale) - np.rint(b * scale)).sum(axis=1)).max())
        exact = Fraction(worst, 2 * lattice.sigma_steps**2)
        assert exact <= lattice.rho(r)
        assert exact > lattice.rho(r) * Fraction(9, 10)


def test_noise_that_is_held_cannot_be_averaged_away() -> None:
    sigma, trials = 2.0, 400
    lengths = (16, 64, 256)
    independent, held = [], []
    for n in lengths:
        several = (
            np.broadcast_to(np.arange(n) * 10**7, (trials, n)),
            np.full((trials, n), 180.0),
            np.full((trials, n), 90.0),
        )
        for text, errors in (
            (f"gaussian:sigma_deg={sigma}", independent),
            (f"chain:stages=gaussian(sigma_deg={sigma})+temporal(K=256;hold=True)", held),
        ):
            x = mechanism(text).open_many(trials, 100.0, seed=n).push(*several)[1]
            errors.append(float(np.sqrt(np.mean((x.mean(axis=1) - 180) ** 2))))
    for n, error in zip(lengths, independent, strict=True):
        assert error == pytest.approx(sigma / np.sqrt(n), rel=0.2)
    for error in held:
        assert error == pytest.approx(sigma, rel=0.2)


# --- temporal
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(1, 11))
def test_temporal_keeps_exactly_the_samples_of_the_formula(k: int) -> None:
    for g in range(1, 51):
        r = Recording(
            "p",
            "s",
            np.arange(g) * 10**7,
            np.arange(g, dtype=float),
            np.arange(g, dtype=float),
            rate_hz=100.0,
        )
        numbers = {k * p + 1 for p in range((g - 1) // k + 1)}
        for reading in READINGS:
            out = released(f"temporal:K={k},reading={reading}", r)
            assert set((out.x_deg + 1).astype(int)) == numbers
            assert len(out) == -(-g // k)
            np.testing.assert_array_equal(out.t_ns, r.t_ns[::k])
        held = released(f"temporal:K={k},hold=True", r)
        np.testing.assert_array_equal(held.x_deg, np.arange(g) // k * k)
        assert held.rate_hz == 100.0


def test_holding_a_lost_sample_holds_its_loss() -> None:
    r = steady(6)
    valid = np.array([True, True, False, True, True, True])
    out = released("temporal:K=2,hold=True,losses=keep", r.with_(valid=valid))
    assert out.valid.tolist() == [True, True, False, False, True, True]


# --- spatial
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["table", "prose"])
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_spatial_is_idempotent_bounded_and_uniform(steps: str, reading: str, size: int) -> None:
    rng = np.random.default_rng(size)
    n = 200_000
    r = Recording(
        "p",
        "s",
        np.arange(n) * 10**7,
        rng.uniform(0, 360, n),
        rng.uniform(0, 180, n),
        rate_hz=100.0,
    )
    m = mechanism(f"spatial:L={size},steps={steps},reading={reading}")
    out = m.release(r).data
    again = m.release(out).data
    np.testing.assert_array_equal(out.x_deg, again.x_deg)
    np.testing.assert_array_equal(out.y_deg, again.y_deg)
    table = (360 * size / 3840, 180 * size / 2160)
    dx, dy = table if steps == "table" else table[::-1]
    for got, given, step, extent in ((out.x_deg, r.x_deg, dx, 360), (out.y_deg, r.y_deg, dy, 180)):
        error = given - got
        if reading == "published":
            np.testing.assert_allclose(got, np.floor(given / step) * step, atol=1e-9)
            assert error.min() >= 0
            assert error.max() < step
            assert np.sqrt(np.mean(error**2)) == pytest.approx(step / np.sqrt(3), rel=0.02)
        else:
            assert np.abs(error).max() <= step / 2 + 1e-12
            if extent / step == round(extent / step):
                assert error.var() == pytest.approx(step**2 / 12, rel=0.02)
                assert abs(error.mean()) < 5 * step / np.sqrt(12 * n)
        assert len(np.unique(got)) <= int(np.ceil(extent / step - 1e-9))


# --- smoothing and kalman
# --------------------------------------------------------------------------------------------------


def weighted(values: np.ndarray, n: int) -> np.ndarray:
    """The linearly weighted mean of the last n rows, the slow way."""
    out = np.empty_like(values)
    for i in range(len(values)):
        last = values[max(0, i - n + 1) : i + 1]
        w = np.arange(n - len(last) + 1, n + 1.0)
        out[i] = (last * w[:, None]).sum(axis=0) / w.sum()
    return out


def test_smoothing_is_two_weighted_means() -> None:
    rng = np.random.default_rng(6)
    n = 300
    x, y = 170 + rng.normal(0, 1, n).cumsum(), 90 + rng.normal(0, 0.5, n).cumsum()
    r = Recording("p", "s", np.arange(n) * 10**7, np.mod(x, 360), np.clip(y, 0, 179), rate_hz=100.0)
    v = weighted(weighted(SPHERE.vectors(r.x_deg, r.y_deg), 10), 50)
    wx, wy = SPHERE.degrees(v)
    out = released("smoothing:", r)
    assert not out.valid[0]
    np.testing.assert_allclose(out.x_deg[1:], wx[1:], atol=1e-6)
    np.testing.assert_allclose(out.y_deg[1:], wy[1:], atol=1e-6)
    flat = Recording("p", "s", r.t_ns, r.x_deg - 180, r.y_deg - 90, space=SCREEN, rate_hz=100.0)
    want = weighted(weighted(np.stack((flat.x_deg, flat.y_deg), axis=1), 10), 50)
    on_screen = released("smoothing:", flat)
    np.testing.assert_allclose(on_screen.x_deg[1:], want[1:, 0], atol=1e-6)
    padded = np.concatenate((np.zeros((60, 2)), np.stack((flat.x_deg, flat.y_deg), axis=1)))
    want = weighted(weighted(padded, 10), 50)[60:]
    published = released("smoothing:reading=published", flat)
    np.testing.assert_allclose(published.x_deg, want[:, 0], atol=1e-6)
    np.testing.assert_allclose(published.y_deg, want[:, 1], atol=1e-6)


def test_smoothing_passes_the_seam_where_the_published_reading_jumps() -> None:
    x = np.mod(350 + 0.1 * np.arange(300), 360)
    r = Recording("p", "s", np.arange(300) * 10**7, x, np.full(300, 90.0), rate_hz=100.0)
    steps = [
        np.abs(
            np.mod(np.diff(released(f"smoothing:reading={k}", r).x_deg[70:]) + 180, 360) - 180
        ).max()
        for k in READINGS
    ]
    # a trace that is smoothed with wrong means spends many samples far from anywhere it has been
    assert steps[0] < 0.11
    assert steps[1] > 5


def test_smoothing_never_drifts() -> None:
    rng = np.random.default_rng(7)
    n = 200_000
    r = Recording(
        "p",
        "s",
        np.arange(n) * 10**6,
        rng.uniform(0, 360, n),
        rng.uniform(1, 179, n),
        rate_hz=1000.0,
    )
    late = r.slice(n - 200, n)
    whole, part = (
        released("smoothing:first=5,second=20", r),
        released("smoothing:first=5,second=20", late),
    )
    np.testing.assert_array_equal(whole.x_deg[-100:], part.x_deg[-100:])


def test_kalman_follows_and_calms() -> None:
    rng = np.random.default_rng(8)
    n = 4000
    truth = 10 * np.sin(np.arange(n) / 500)
    r = Recording(
        "p",
        "s",
        np.arange(n) * 10**7,
        truth + rng.normal(0, 1, n),
        rng.normal(0, 1, n),
        space=SCREEN,
        rate_hz=100.0,
    )
    ball = Recording("p", "s", r.t_ns, r.x_deg + 180, r.y_deg + 90, rate_hz=100.0)
    for recording, shift in ((r, 0), (ball, 180)):
        out = released("kalman:noise_deg=1,acceleration_deg_s2=20", recording)
        error = out.x_deg[100:] - shift - truth[100:]
        assert error.std() < 0.4
    # a slow second way: the textbook matrices
    dt, q = 0.01, 20.0**2
    f, h = np.array([[1, dt], [0, 1]]), np.array([[1.0, 0.0]])
    noise = q * np.array([[dt**4 / 4, dt**3 / 2], [dt**3 / 2, dt**2]])
    state, p = np.array([r.x_deg[0], 0.0]), np.array([[1.0, 0.0], [0.0, 2 / dt**2]])
    want = [np.nan]
    for z in r.x_deg[1:500]:
        state, p = f @ state, f @ p @ f.T + noise
        gain = p @ h.T / (h @ p @ h.T + 1.0)
        state, p = state + (gain * (z - state[0])).ravel(), (np.eye(2) - gain @ h) @ p
        want.append(state[0])
    got = released("kalman:noise_deg=1,acceleration_deg_s2=20", r).x_deg[:500]
    np.testing.assert_allclose(got[1:], want[1:], atol=1e-8)


def test_kalman_on_the_sphere_passes_poles_and_losses() -> None:
    v = np.stack(
        (0.01 * np.sin(np.arange(200) / 7), np.ones(200), 0.01 * np.cos(np.arange(200) / 7)), axis=1
    )
    x, y = SPHERE.degrees(v)
    valid = np.ones(200, dtype=bool)
    valid[90:120] = False
    out = released(
        "kalman:losses=keep",
        Recording("p", "s", np.arange(200) * 10**7, x, y, valid, rate_hz=100.0),
    )
    np.testing.assert_array_equal(out.valid[1:], valid[1:])
    assert angle_deg(out.vectors[out.valid], SPHERE.vectors(x, y)[out.valid]).max() < 3


# --- chains
# --------------------------------------------------------------------------------------------------


def test_what_follows_noise_is_free_and_what_precedes_it_is_accounted() -> None:
    plain = Gaussian(5, r_deg=1, w=30).promise(100.0, SPHERE)
    after = Chain(
        "gaussian(sigma_deg=5;w=30)+temporal(K=3)+smoothing()+gaussian(sigma_deg=1)"
    ).promise(100.0, SPHERE)
    assert (after.rho, after.numbers["w_samples"], after.status) == (plain.rho, 30, "proved")
    sample = GaussianLattice.of(Fraction(5)).rho(Fraction(1))
    decimated = Chain("temporal(K=4)+gaussian(sigma_deg=5;w=30)").promise(100.0, SPHERE)
    # 30 samples in a row hold at most 8 of every fourth
    assert decimated.rho == 8 * sample
    assert decimated.numbers["w_samples"] == 30
    held = Chain("temporal(K=4;hold=True)+gaussian(sigma_deg=5;w=30)").promise(100.0, SPHERE)
    assert held.rho == 32 * sample
    snapped = Chain("spatial(L=64)+gaussian(sigma_deg=5;w=1)").promise(100.0, SPHERE)
    assert snapped.rho is not None
    assert snapped.rho > GaussianLattice.of(Fraction(5)).rho(Fraction(1) + 6)
    nothing = [
        Chain("smoothing()+gaussian(sigma_deg=5)"),
        Chain("temporal(K=2)+spatial(L=2)"),
        Chain("gaussian(sigma_deg=5;reading=published)"),
    ]
    for chain in nothing:
        assert chain.promise(100.0, SPHERE).definition == "none"
        assert chain.promise(100.0, SPHERE).rho is None


def test_a_chain_does_what_its_stages_do_one_after_the_other() -> None:
    rng = np.random.default_rng(9)
    r = Recording(
        "p",
        "s",
        np.arange(99) * 10**7,
        rng.uniform(0, 360, 99),
        rng.uniform(0, 180, 99),
        rate_hz=100.0,
    )
    chain = released("chain:stages=temporal(K=2)+spatial(L=64)", r)
    apart = released("spatial:L=64", released("temporal:K=2", r))
    np.testing.assert_array_equal(chain.x_deg, apart.x_deg)
    assert chain.rate_hz == 50.0
    nested = Chain([Chain("temporal(K=2)"), mechanism("spatial:L=64")])
    np.testing.assert_array_equal(nested.release(r).data.x_deg, apart.x_deg)


def test_two_equal_stages_have_noise_of_their_own() -> None:
    r = steady(1000)
    once, twice = (
        released("gaussian:sigma_deg=3", r),
        released("chain:stages=gaussian(sigma_deg=3)+gaussian(sigma_deg=3)", r),
    )
    assert (twice.x_deg - 180).std() == pytest.approx(3 * np.sqrt(2), rel=0.1)
    assert (once.x_deg - 180).std() == pytest.approx(3, rel=0.1)


def test_a_chain_is_written_as_it_is_read() -> None:
    chain = mechanism("chain:stages=gaussian(sigma_deg=1/3;w=30)+temporal(K=3)")
    assert mechanism(str(chain)) == chain
    assert str(parse_stages("temporal(K=3)")) == "temporal(K=3;hold=False;reading=corrected)"


# --- parameters
# --------------------------------------------------------------------------------------------------

PARAMETERS = [
    ("gaussian:sigma_deg=0", "sigma_deg"),
    ("gaussian:sigma_deg=-1", "sigma_deg"),
    ("gaussian:sigma_deg=nan", "sigma_deg"),
    ("gaussian:sigma_deg=1025", "sigma_deg"),
    ("gaussian:sigma_deg=1e-12", "sigma_deg"),
    ("gaussian:sigma_deg=1,r_deg=0", "r_deg"),
    ("gaussian:sigma_deg=1,w=0", "'w'"),
    ("gaussian:sigma_deg=1,w=1.5", "'w'"),
    ("gaussian:sigma_deg=1,reading=intended", "reading"),
    ("gaussian:", "needs the parameter 'sigma_deg'"),
    ("gaussian:sigma=1", "Did you mean 'sigma_deg'"),
    ("temporal:K=0", "'K'"),
    ("temporal:K=2.5", "'K'"),
    ("temporal:K=2,hold=maybe", "hold"),
    ("temporal:K=10000000", "at most"),
    ("spatial:L=0", "'L'"),
    ("spatial:L=4000", "at most 2160"),
    ("spatial:L=2,steps=both", "steps"),
    ("smoothing:first=0", "first"),
    ("smoothing:second=100000", "at most 4096"),
    ("smoothing:first=1,second=1", "as it is"),
    ("kalman:noise_deg=0", "noise_deg"),
    ("kalman:acceleration_deg_s2=inf", "acceleration_deg_s2"),
    ("chain:stages=", "written name:parameter=value"),
    ("chain:stages=temporal(K=2", "written name"),
    ("chain:stages=lpa(epsilon=1)", "stream mechanisms"),
    ("chain:stages=nothing()", "name"),
]


@pytest.mark.parametrize(("text", "words"), PARAMETERS)
def test_wrong_parameters_are_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        mechanism(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("stages", [(), 5, [1], ["temporal(K=2)"], ["x"] * 17])
def test_chains_of_other_things_are_refused(stages: object) -> None:
    with pytest.raises(ParameterError, match="stages"):
        Chain(stages)


def test_the_largest_windows_do_not_overflow() -> None:
    r = Recording(
        "p",
        "s",
        np.arange(20_000) * 10**6,
        np.full(20_000, 359.999),
        np.full(20_000, 179.999),
        rate_hz=1000.0,
    )
    for text in (
        "smoothing:first=4096,second=4096",
        "smoothing:first=4096,second=4096,reading=published",
    ):
        out = released(text, r)
        assert abs(out.x_deg[-1] - 359.999) < 1e-3
        assert abs(out.y_deg[-1] - 179.999) < 1e-3
