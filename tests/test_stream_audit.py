"""The audit of streams: nothing honest is refuted, and noise that is too small is."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.audit.run import judge
from gazeveil.privacy.audit.samplewise import samplewise
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.session import Stage
from gazeveil.privacy.stream.supply import Bits


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=10",
        "gaussian:sigma_deg=10,w=1,r_deg=10",
        "gaussian-fixation:sigma_deg=3,changes=clock",
        "chain:stages=temporal(K=3)+gaussian(sigma_deg=5;w=30)",
    ],
)
def test_honest_noise_is_not_refuted_but_seen(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # how much 20,000 trials see varies from run to run, so the keys of the noise are those of a test
    monkeypatch.setattr(os, "urandom", np.random.default_rng(1).bytes)
    result = gazeveil.audit(text, trials=20_000)
    assert not result.refuted
    assert result.epsilon_claimed is not None
    assert result.epsilon_lower is not None
    assert 0.2 * result.epsilon_claimed < result.epsilon_lower <= result.epsilon_claimed


@pytest.mark.parametrize("text", ["temporal:K=3", "spatial:L=64", "spatial-equal-area:L=2", "smoothing:", "kalman:", "gaussian:sigma_deg=1,reading=published"])
def test_what_promises_nothing_has_no_epsilon(text: str) -> None:
    result = gazeveil.audit(text)
    assert (result.epsilon_claimed, result.epsilon_lower, result.refuted) == (None, None, False)


class Quarter(Gaussian):
    """Claims its sigma and adds a quarter of it."""

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        return Gaussian(Fraction(self.sigma_deg) / 4).stage(rate_hz, space, streams, bits)


def test_a_quarter_of_the_noise_is_caught() -> None:
    result = judge("quarter", samplewise(Quarter(10), None), 20_000, 0.999)
    assert result.refuted
