"""What a release of Kaleido shows of its own noise: the scale of every publication."""

import numpy as np
import pytest

import gazeveil
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.stream.kaleido.public_history import noise_scales_deg


@pytest.mark.parametrize("name", ["kaleido", "kaleido-reserve", "kaleido-uniform"])
@pytest.mark.parametrize("losses", ["keep", "fill"])
def test_scales_from_the_release_are_those_of_its_noise(name, losses):
    """Gaze that stands still: the released distance from it is the noise, and its mean over
    publications of one scale b is 2 b on a plane.
    """
    mechanism = gazeveil.mechanism(f"{name}:epsilon=4,w=25,r_deg=1,after=none,losses={losses}")
    n = 40_000
    still = Recording(
        "p",
        "s",
        (np.arange(n) * 1e7).astype(np.int64),
        np.zeros(n),
        np.zeros(n),
        rate_hz=100.0,
        space=gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0),
    )
    released = mechanism.release(still, seed=5).data
    scale = mechanism.noise_scale_deg(released)
    new = np.append(True, np.diff(released.x_deg) != 0) & np.isfinite(scale)
    ratio = np.hypot(released.x_deg, released.y_deg)[new] / scale[new]
    # A test publishes only what differs from the last value, so publications are not quite a
    # plain sample of the noise; a wrong scale would be off by a factor of two.
    assert 1.6 < ratio.mean() < 2.6
    few, many = scale[new] <= np.median(scale[new]), scale[new] > np.median(scale[new])
    if name != "kaleido-uniform" and many.any():
        assert abs(ratio[few].mean() - ratio[many].mean()) < 0.7


def test_before_the_first_publication_nothing_is_known():
    mechanism = gazeveil.mechanism("kaleido:epsilon=4,w=25,r_deg=1")
    settings = mechanism.plan(100.0, gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0)).settings
    x = np.array([1.0, 1.0, 2.0])
    got = noise_scales_deg(settings, x, x, np.array([False, True, True]))
    assert np.isinf(got[0])
    assert got[2] == pytest.approx(2 * got[1])


def test_the_published_reading_shows_no_scale():
    mechanism = gazeveil.mechanism("kaleido:epsilon=4,w=25,r_deg=1,reading=published")
    cohort = gazeveil.simulate(1, 1, seconds=2, rate_hz=100, seed=1)
    assert mechanism.noise_scale_deg(cohort[0]) is None
