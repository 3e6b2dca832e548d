"""The audit of streams: nothing honest is refuted, and noise that is too small is.

The noise is the operating system's, so a verdict can be wrong. How often is stated: a test here
fails with probability at most :data:`FALSE_ALARM` although all is right. What is refuted is so at
that confidence. What must be found is found by one audit in 99 of 100 at least, which follows from
the law of its statistics (:func:`test_one_audit_in_a_hundred_finds_less`), so that three in a row
miss it once in a million.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.audit.games import GAME_SCREEN, Game
from gazeveil.privacy.audit.run import Audit, epsilon_lower, judge
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream import audit as streams
from gazeveil.privacy.stream.audit import samplewise
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage
from gazeveil.privacy.stream.session import Stage

#: Most often that a test of this file fails without a cause.
FALSE_ALARM = 1e-6

_AUDITS, _MISSED = 3, 0.01  # _MISSED**_AUDITS is the rate of false alarms
# By the statistical bound and by black-box games, in each of the audits.
_CONFIDENCE = 1 - FALSE_ALARM / (2 * _AUDITS)


@dataclass(frozen=True)
class Expected:
    """What one audit finds in 99 of 100 runs.

    Parameters
    ----------
    trials : int
        Releases per input.
    least : float
        The bound on epsilon.
    shifts_sd : tuple of float
        How far the change moves each statistic, in standard deviations; empty for the likelihood
        ratio of planar Laplace noise.
    epsilon : float
        Of the planar Laplace noise.
    """

    trials: int
    least: float
    shifts_sd: tuple[float, ...] = ()
    epsilon: float = 0.0

    def draw(self, side: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Statistics of the outputs for one of two inputs, by their law."""
        if self.shifts_sd:
            noise = generator.normal(size=(self.trials, len(self.shifts_sd)))
            return noise + side * np.array(self.shifts_sd)
        radius, angle = generator.gamma(2, size=self.trials), generator.uniform(size=self.trials)
        x = side * self.epsilon + radius * np.cos(2 * math.pi * angle)
        y = radius * np.sin(2 * math.pi * angle)
        return np.asarray(np.hypot(x - self.epsilon, y) - np.hypot(x, y))

    def found(self, game: Game) -> Audit:
        """The first audit that finds that much."""
        for _ in range(_AUDITS):
            result = judge("", game, self.trials, _CONFIDENCE)
            assert result.statistical is not None
            if result.statistical >= self.least:
                return result
        raise AssertionError(f"{_AUDITS} audits found less than {self.least}: {result}")


#: Sum and last value of a window: one degree, of 60, 30 or 10 samples with noise of their own.
HONEST = {
    "gaussian:sigma_deg=10": Expected(20_000, 0.79, (math.sqrt(60) / 10, 1 / 10)),
    "gaussian:sigma_deg=10,w=1,r_deg=10": Expected(20_000, 1.05, (1.0, 1.0)),
    "chain:stages=temporal(K=3)+gaussian(sigma_deg=5;w=30)": Expected(
        40_000, 0.65, (math.sqrt(10) / 5, 1 / 5)
    ),
    "kaleido-uniform:epsilon=1,w=50,r_deg=2,slots=1": Expected(100_000, 0.7, epsilon=1.0),
    "kaleido-uniform:epsilon=1,w=1048576,r_deg=2,slots=1": Expected(100_000, 0.7, epsilon=1.0),
}

#: Noise of a quarter of the scale that is claimed, and of half of it.
QUARTER = Expected(20_000, 4.2, (4 * math.sqrt(60) / 10, 4 / 10))
HALF = Expected(20_000, 1.3, epsilon=2.0)


@pytest.mark.parametrize(("text", "expected"), HONEST.items())
def test_honest_noise_is_not_refuted_but_seen(text: str, expected: Expected) -> None:
    game = gazeveil.mechanism(text).audit_game(None)
    result = expected.found(game)
    assert not result.refuted
    assert game.claimed is not None
    assert 0.15 * game.claimed < expected.least <= result.statistical <= game.claimed


@pytest.mark.parametrize("text", [text for text in HONEST if not text.startswith("kaleido")])
def test_honest_noise_is_not_refuted_by_black_box_games(text: str) -> None:
    result = gazeveil.audit(text, trials=1000, confidence=_CONFIDENCE)
    assert result.black_box
    assert not result.refuted


@pytest.mark.heavy
@pytest.mark.parametrize("expected", [*HONEST.values(), QUARTER, HALF])
def test_one_audit_in_a_hundred_finds_less(expected: Expected) -> None:
    generator, delta = np.random.default_rng(8), 1e-6 if expected.shifts_sd else 0.0
    missed = sum(
        epsilon_lower(
            *(expected.draw(side, generator) for side in (0, 1)), _CONFIDENCE, delta
        ).epsilon
        < expected.least
        for _ in range(500)
    )
    assert missed <= 500 * _MISSED


@pytest.mark.parametrize(
    "text",
    [
        "temporal:K=3",
        "spatial:L=64",
        "smoothing:",
        "kalman:",
        "gaussian:sigma_deg=1,reading=published",
    ],
)
def test_what_promises_nothing_has_no_epsilon(text: str) -> None:
    result = gazeveil.audit(text)
    assert (result.epsilon_claimed, result.epsilon_lower, result.refuted) == (None, None, False)


class Quarter(Gaussian):
    """Claims its sigma and adds a quarter of it."""

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        return Gaussian(Fraction(self.sigma_deg) / 4).stage(rate_hz, space, streams, bits)


class Half(KaleidoUniform):
    """Claims its epsilon and adds the noise of twice as much."""

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        return KaleidoUniform(2 * Fraction(self.epsilon), self.w, self.r_deg, slots=1).plan(
            rate_hz, space
        )


def test_noise_that_is_too_small_is_caught() -> None:
    quarter = samplewise(Quarter(10), None)
    half = replace(streams.kaleido(Half(1, 50, 2, slots=1), None), exact=None)
    for expected, game in ((QUARTER, quarter), (HALF, half)):
        assert game.claimed is not None
        assert expected.least > game.claimed
        assert expected.found(game).refuted


# --- long windows
# --------------------------------------------------------------------------------------------------

#: An audit of a window of 2**20 samples where all memory is 4 GB: one copy of it for all trials
#: would be 8.
_LITTLE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import gazeveil
for text in sys.argv[2:]:
    result = gazeveil.audit(text, trials=1000, confidence=float(sys.argv[1]))
    assert result.refuted == ("published" in text), result
    assert result.statistical <= result.epsilon_claimed or result.refuted, result
"""


@pytest.mark.heavy
def test_windows_of_a_million_samples_are_audited_in_little_memory() -> None:
    pytest.importorskip("resource")
    texts = [
        "kaleido-uniform:epsilon=1,w=1048576,r_deg=1",
        "kaleido-uniform:epsilon=1,w=1048576,r_deg=1,t_skip_ms=0,slots=1048576",
        "kaleido:epsilon=1,w=1048576,r_deg=1",
        "kaleido:epsilon=1,w=1048576,r_deg=1,reading=published",
        "clock-render:epsilon=1,r_deg=1,window_s=3600,slot_s=3600",
    ]
    done = subprocess.run(
        [sys.executable, "-c", _LITTLE, str(_CONFIDENCE), *texts],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_window_that_is_played_in_part_says_so() -> None:
    part, whole = (
        gazeveil.mechanism(f"kaleido:epsilon=1,w=2000,r_deg=1,t_skip_ms={ms}").audit_game(None)
        for ms in (0, 50)
    )
    assert "Of its 2,000 slots the first 1,024 are played." in part.description
    assert "are played" not in whole.description


@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
def test_slots_alone_are_released_as_within_their_window(cls: type[Kaleido]) -> None:
    plan = cls(3, 53, 2, t_skip_ms=40).plan(streams.RATE_HZ, GAME_SCREEN)
    x = np.tile(np.linspace(-10, 10, 53), (50, 1))
    outs = []
    for made, there in ((plan, x), (streams.slots_alone(plan), x[:, :: plan.skip])):
        stage = LatticeStage(made, 50, [TestStream(1)])
        stage.traced = True
        outs.append(
            (
                *stage.run(
                    np.zeros(there.shape, dtype=np.int64),
                    there.copy(),
                    np.zeros_like(there),
                    np.ones(there.shape, dtype=np.bool_),
                )[1:],
                stage.trace,
            )
        )
    for whole, slots in zip(*outs, strict=True):
        assert whole is not None
        np.testing.assert_array_equal(whole[:, :: plan.skip], slots)


def test_what_is_held_at_a_time_is_bounded() -> None:
    assert streams.at_a_time(10) == 5000  # as ever
    for each in (1, 600, 10_000, 1 << 20, 1 << 24):
        assert 1 <= streams.at_a_time(each) <= 5000
        assert streams.at_a_time(each) == 1 or streams.at_a_time(each) * each <= 1 << 21
