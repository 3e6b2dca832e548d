"""The benchmark of latency measures what it says: known delays, and frames of a renderer that are
good or late by construction.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

import gazeveil
from gazeveil.gaze.recording import Recording
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def latency() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import gatekeeper_latency  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    return gatekeeper_latency  # type: ignore[no-any-return]


def test_delays_that_are_known_are_measured(latency: ModuleType) -> None:
    assert latency.delay_ms("gaussian:sigma_deg=2", 100.0, streams=100) < 0.5
    assert latency.delay_ms("spatial:L=64", 100.0, streams=100) < 0.5
    # a sample held for K samples is (0 + 1 + ... + K - 1) / K samples old on average
    for held in (2, 5):
        assert latency.delay_ms(
            f"temporal:K={held},hold=True", 100.0, streams=100
        ) == pytest.approx(10 * (held - 1) / 2, rel=0.02)
    # Kaleido looks every 50 ms, so on average at least 20 ms (0 to 40 by samples) pass
    assert latency.delay_ms("kaleido:epsilon=50,w=50,r_deg=1", 100.0, streams=100) >= 19.0


def test_frames_are_inside_where_gaze_stands_and_outside_where_it_jumps_further_than_the_radius(
    latency: ModuleType,
) -> None:
    n, rate = 600, 60.0
    t = np.round(np.arange(n) * (1e9 / rate)).astype(np.int64)

    def share(x: np.ndarray, text: str | None, radius: float) -> float:
        recording = Recording(
            "p",
            "s",
            t,
            x,
            np.full(n, 90.0),
            np.ones(n, dtype=np.bool_),
            space=gazeveil.Sphere(),
            rate_hz=rate,
        )
        good, every = latency.inside(recording, text)[60.0, radius]
        assert every > 0.95 * n
        return float(good) / float(every)

    still = np.full(n, 180.0)
    assert share(still, None, 10.0) == 1.0
    assert share(still, "gaussian:sigma_deg=0.5", 10.0) == 1.0
    # 12 degrees to and fro every sixth sample, shown in blocks of six: half of the frames show the
    # other side
    jumping = 180.0 + 12.0 * (np.arange(n) // 6 % 2)
    assert share(jumping, None, 10.0) > 0.99
    late = share(jumping, "temporal:K=12,hold=True", 10.0)
    assert late == pytest.approx(0.5, abs=0.03)
    assert share(jumping, "temporal:K=12,hold=True", 15.0) > 0.99


def test_the_page_in_the_manual_has_every_mechanism_of_the_benchmark(latency: ModuleType) -> None:
    page = (ROOT / "docs" / "results" / "gatekeeper_latency.md").read_text(encoding="utf-8")
    for text in latency.texts():
        assert f"`{latency.shown(text)}`" in page, (
            "run python benchmarks/gatekeeper_latency.py --page docs/results/gatekeeper_latency.md"
        )
