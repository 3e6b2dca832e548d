"""Recordings as fixations and saccades, and samples drawn from them again."""

import numpy as np
import pytest

from gazeveil.errors import DataError
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Sphere, distance_deg
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.synthesis.motion import Motion, motion, motion_of, render

SCREEN = Screen(1280, 720, 400, 225, 450)
RATE = 100.0


def words(seed: int = 1) -> Words:
    return Words(source(seed, "test"))


def recording(x, y, space=SCREEN, valid=None, rate=RATE) -> Recording:
    return Recording(
        "a",
        "s",
        np.rint(np.arange(len(x)) * 1e9 / rate).astype(np.int64),
        x,
        y,
        valid,
        space=space,
        rate_hz=rate,
    )


def events(*parts: tuple[str, int, int]) -> Events:
    kind, onset, offset = zip(*parts, strict=True)
    return Events(
        np.array(kind),
        np.array(onset),
        np.array(offset),
        np.array(onset) * 10**7,
        np.array(offset) * 10**7,
    )


def made(
    space, places, spread=(0.5, 0.3), samples=20_000, saccade=(300.0, 0.4, 0.2, 30.0)
) -> Motion:
    """Fixations at places with a saccade between any two."""
    n = len(places)
    fixations = np.array([[x, y, *spread, samples] for x, y in places], dtype=float)
    order = np.arange(2 * n - 1) % 2 == 0
    lengths = np.where(order, samples, int(saccade[3]))
    onset = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return Motion(
        space,
        RATE,
        int(lengths.sum()),
        fixations,
        np.tile(saccade, (n - 1, 1)).reshape(-1, 4),
        order,
        onset,
    )


def tangent(x0, y0, x, y):
    """Bearing coordinates around a place, by vectors: independent of the code under test."""
    centre, v = Sphere().vectors([x0], [y0])[0], Sphere().vectors(x, y)
    lon, lat = np.radians(x0 - 180), np.radians(90 - y0)
    east = np.array([np.cos(lon), 0.0, -np.sin(lon)])
    south = np.array([np.sin(lat) * np.sin(lon), -np.cos(lat), np.sin(lat) * np.cos(lon)])
    angle = np.degrees(np.arccos(np.clip(v @ centre, -1, 1)))
    u, w = v @ east, v @ south
    flat = np.maximum(np.hypot(u, w), 1e-300)
    return angle * u / flat, angle * w / flat


# --- taking apart
# --------------------------------------------------------------------------------------------------


def test_a_fixation_on_a_screen_is_its_mean_and_standard_deviations() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(3, 0.5, 400), rng.normal(-2, 0.2, 400)
    valid = rng.random(400) > 0.1
    m = motion_of(recording(x, y, valid=valid), events(("fixation", 10, 299)))
    part = slice(10, 300)
    kept = valid[part]
    want = [
        x[part][kept].mean(),
        y[part][kept].mean(),
        x[part][kept].std(),
        y[part][kept].std(),
        290,
    ]
    assert np.allclose(m.fixations[0], want, rtol=1e-12)
    assert m.lost == 110


@pytest.mark.parametrize(
    "place", [(180.0, 90.0), (0.001, 90.0), (359.9, 30.0), (77.0, 2.0), (200.0, 178.0)]
)
def test_a_fixation_on_a_sphere_does_not_know_the_seam_or_the_poles(
    place: tuple[float, float],
) -> None:
    law = made(Sphere(), [place], spread=(1.0, 0.4))
    x, y = render(law, words())
    assert ((x >= 0) & (x < 360) & (y >= 0) & (y < 180)).all()
    u, v = tangent(*place, x, y)
    found = motion_of(recording(x, y, Sphere()), events(("fixation", 0, len(x) - 1))).fixations[0]
    assert distance_deg(Sphere(), *place, found[0], found[1]) < 5 * 1.0 / np.sqrt(len(x)) * 1.5
    # measured around the mean found, whose axes differ a little from the place's near a pole
    assert np.allclose(found[2:4], [u.std(), v.std()], rtol=0.02)
    assert np.allclose([u.std(), v.std()], [1.0, 0.4], rtol=5 / np.sqrt(2 * len(x)))


def test_a_saccade_is_the_curve_of_its_speed() -> None:
    t = np.linspace(0, 1, 61)
    share = np.cumsum(np.exp(-(((t - 0.45) / 0.2) ** 2)))
    x = np.concatenate((np.zeros(50), 10 * share / share[-1], np.full(50, 10.0)))
    m = motion_of(
        recording(x, 0 * x, rate=1000.0),
        events(("fixation", 0, 49), ("saccade", 50, 110), ("fixation", 111, 160)),
    )
    a, b, c, samples = m.saccades[0]
    assert samples == 61
    assert b == pytest.approx(0.45, abs=0.02)
    assert c == pytest.approx(0.2, rel=0.03)
    # the way is the integral of the speed: a c sqrt(pi) over the saccade's own time
    assert a * c * np.sqrt(np.pi) * 0.06 == pytest.approx(10.0, rel=0.02)
    assert m.profiles.shape == (1, 30)


def test_nothing_to_find_gives_no_events() -> None:
    empty = Recording("a", "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), space=SCREEN)
    one = Recording("a", "s", np.array([5]), np.array([1.0]), np.array([1.0]), space=SCREEN)
    lost = recording(np.full(300, np.nan), np.full(300, np.nan))
    for r in (empty, one, lost):
        m = motion(r)
        assert len(m) == 0
        assert m.samples == m.lost == len(r)
        x, y = render(m, words())
        assert len(x) == len(r)
        assert np.isnan(x).all()
        assert np.isnan(y).all()


def test_events_of_other_kinds_and_events_without_a_valid_sample_are_lost_time() -> None:
    x = np.zeros(400)
    valid = np.ones(400, dtype=bool)
    valid[100:200] = False
    m = motion_of(
        recording(x, x, valid=valid),
        events(
            ("fixation", 0, 99),
            ("fixation", 100, 199),
            ("pursuit", 200, 299),
            ("fixation", 300, 399),
        ),
    )
    assert m.onset.tolist() == [0, 300]
    assert m.lost == 200


# --- drawing
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()])
def test_fixation_samples_have_the_moments_of_their_law(space) -> None:
    places = [(3.0, -4.0), (-8.0, 2.0)] if space is SCREEN else [(359.0, 20.0), (4.0, 130.0)]
    law = made(space, places)
    x, y = render(law, words())
    for onset, place in zip(law.onset[::2], places, strict=True):
        part = slice(onset, onset + 20_000)
        u, v = (
            (x[part] - place[0], y[part] - place[1])
            if space is SCREEN
            else tangent(*place, x[part], y[part])
        )
        for values, sigma in ((u, 0.5), (v, 0.3)):
            assert abs(values.mean()) < 5 * sigma / np.sqrt(20_000)
            assert abs(values.std() / sigma - 1) < 5 / np.sqrt(2 * 20_000)
        assert abs(np.corrcoef(u, v)[0, 1]) < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("rate", [50.0, 1000.0])
def test_samples_that_drift_have_the_same_law_each_and_move_smoothly(rate: float) -> None:
    drift, fixations = 0.05, 4000
    n = int(0.3 * rate)
    rows = np.tile([1.0, -2.0, 0.5, 0.3, n], (fixations, 1))
    law = Motion(
        SCREEN,
        rate,
        fixations * n,
        rows,
        np.empty((0, 4)),
        np.ones(fixations, dtype=bool),
        np.arange(fixations) * n,
    )
    x, y = (v.reshape(fixations, n) for v in render(law, words(), drift_s=drift))
    for values, mu, sigma in ((x, 1.0, 0.5), (y, -2.0, 0.3)):
        for at in (0, 1, n // 2, n - 1):
            assert abs(values[:, at].mean() - mu) < 5 * sigma / np.sqrt(fixations)
            assert abs(values[:, at].std() / sigma - 1) < 5 / np.sqrt(2 * fixations)
    # the two filters' correlation, in whole samples: close to (1 + t / drift) exp(-t / drift)
    lag = max(round(drift * rate), 1)
    t = lag / rate / drift
    found = np.corrcoef(x[:, 0], x[:, lag])[0, 1]
    assert found == pytest.approx((1 + t) * np.exp(-t), abs=0.08)
    assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) < 5 / np.sqrt(fixations)
    if rate > 500:
        assert (np.diff(x, axis=1) * rate).std() == pytest.approx(0.5 / drift, rel=0.05)


@pytest.mark.parametrize("space", [SCREEN, Sphere()])
def test_a_rendered_saccade_goes_from_the_last_sample_to_the_next_fixation_at_its_speed(
    space,
) -> None:
    places = [(-6.0, 1.0), (9.0, -3.0)] if space is SCREEN else [(355.0, 40.0), (8.0, 60.0)]
    a, b, c, n = 300.0, 0.4, 0.15, 400
    law = made(space, places, samples=50, saccade=(a, b, c, n))
    x, y = render(law, words())
    start = (x[49], y[49])
    way = slice(50, 50 + n)
    if space is SCREEN:
        gone = np.hypot(x[way] - start[0], y[way] - start[1])
        whole = np.hypot(places[1][0] - start[0], places[1][1] - start[1])
    else:
        gone, whole = (
            distance_deg(space, *start, x[way], y[way]),
            distance_deg(space, *start, *places[1]),
        )
        # on the great circle all the way: what is gone and what is left make up the whole
        assert np.allclose(gone + distance_deg(space, x[way], y[way], *places[1]), whole, atol=1e-5)
    assert gone[-1] == pytest.approx(float(whole), rel=1e-9)
    steps = np.diff(gone, prepend=0.0)
    t = (np.arange(n) + 0.5) / n
    speed = a * np.exp(-(((t - b) / c) ** 2))
    assert np.allclose(steps / whole, speed / speed.sum(), atol=2e-4)
    # full support: the sum of v dt is a c sqrt(pi)
    assert speed.sum() / n == pytest.approx(a * c * np.sqrt(np.pi), rel=0.02)


def test_a_saccade_without_a_line_to_go_along_stays_lost() -> None:
    fixation, saccade = [[1.0, 1.0, 0.1, 0.1, 10]], [[300.0, 0.5, 0.2, 5.0], [300.0, 0.5, 0.2, 5.0]]
    m = Motion(
        SCREEN,
        RATE,
        20,
        np.array(fixation),
        np.array(saccade),
        np.array([False, True, False]),
        np.array([0, 5, 15]),
    )
    x, _ = render(m, words())
    assert np.isnan(x).tolist() == [True] * 5 + [False] * 10 + [True] * 5


def test_rows_that_do_not_fit_the_order_are_refused() -> None:
    with pytest.raises(DataError, match="Motion of 1 fixations and 1 saccades"):
        Motion(
            SCREEN,
            RATE,
            10,
            np.zeros((2, 5)),
            np.zeros((1, 4)),
            np.array([True, False]),
            np.array([0, 5]),
        )
