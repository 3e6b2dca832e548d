"""What a release of Kaleido shows of its own noise: the scale of every publication."""

import numpy as np
import pytest

import gazeveil
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.kaleido.stage import LatticeStage, noise_scales_deg

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


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
