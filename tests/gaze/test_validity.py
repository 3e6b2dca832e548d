"""One rule of plain gaze and one threshold of a clock that was set back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gazeveil.events.online.detector import OnlineDetector
from gazeveil.gatekeeper.blocks import block
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import SET_BACK_S, are_plain, set_back_samples
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain
from gazeveil.relay.protector import Protector

SCREEN = Screen(1680, 1050, 474, 297, 550)
ABOVE, BELOW = math.nextafter(-90.0, 0.0), [math.nextafter(v, 0.0) for v in (90.0, 180.0, 360.0)]
EDGES = np.array(
    [-90.0, ABOVE, -5e-324, -0.0, 0.0, *BELOW, 90.0, 180.0, 360.0, math.nan, math.inf, -math.inf]
)


@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_kernels_and_arrays_agree_on_plain_gaze(space: Sphere | Screen) -> None:
    sphere = isinstance(space, Sphere)
    x, y = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    expected = (
        (x >= 0) & (x < 360) & (y >= 0) & (y < 180) if sphere else (abs(x) < 90) & (abs(y) < 90)
    )
    np.testing.assert_array_equal(are_plain(space, x, y), expected)
    bounds = bounds_deg(sphere)
    assert [is_plain(a, b, bounds) for a, b in zip(x, y, strict=True)] == expected.tolist()


def test_the_threshold_is_half_a_second_and_at_least_one_sample() -> None:
    assert [set_back_samples(rate) for rate in (0.5, 1.0, 60.0, 250.0)] == [1, 1, 30, 125]


def test_the_detector_believes_a_clock_that_has_been_back_for_longer() -> None:
    rate_hz, period_ns, n = 100.0, 10_000_000, 300
    t = np.arange(n) * period_ns
    t[100:] -= 50 * period_ns * 100
    detector = OnlineDetector(rate_hz, SCREEN)
    edges = detector.push(t, np.zeros(n), np.zeros(n)) + detector.close()
    onsets = [e.index for e in edges if e.kind == "fixation" and e.edge == "onset"]
    assert onsets == [0, 100 + set_back_samples(rate_hz)]


@pytest.mark.parametrize(("back_s", "count"), [(0.9 * SET_BACK_S, 0), (1.2 * SET_BACK_S, 1)])
def test_the_relay_has_the_same_threshold(back_s: float, count: int) -> None:
    n, period_ns = 100, 10_000_000
    t = 10**12 + np.arange(n) * period_ns
    protector = Protector("gaussian:sigma_deg=1", 100.0, Sphere(), seed=1)
    protector.push(block(t, np.full(n, 180.0), np.full(n, 90.0)))
    later = t + n * period_ns - round(1e9 * back_s)
    protector.push(block(later, np.full(n, 180.0), np.full(n, 90.0)))
    assert protector.counts["clocks set back"] == count
