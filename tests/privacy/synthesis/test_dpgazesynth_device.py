"""What DPGazeSynth's devices send: noise of the right law, and messages of one shape."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil import Recording
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.synthesis.dpgazesynth.grid import Windows, windows_of
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynth, DPGazeSynthOneReport
from gazeveil.privacy.synthesis.dpgazesynth.messages import ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    Streams,
    degrees,
    message,
    noisy_starts,
    report,
)
from tests.support.laws import assert_distribution
from tests.support.strategies import SCREEN, recordings

MANY = 120_000


# --- D8: starts
# --------------------------------------------------------------------------------------------------


def radii(scale: float):  # type: ignore[no-untyped-def]
    def cdf(x: np.ndarray, factor: float) -> np.ndarray:
        b = scale * factor
        return np.where(x < 0, 0.0, 1.0 - (1.0 + x / b) * np.exp(-x / b))

    return cdf


def test_d8_starts_have_planar_laplace_radii_and_even_bearings() -> None:
    plan = DPGazeSynth(2).scheme().plan(SCREEN, 100.0)
    assert plan.start_scale_deg == pytest.approx(float(plan.r_deg) / 1.2, rel=2e-3)
    x, y = degrees(plan, noisy_starts(plan, np.full(MANY, 3.0), np.full(MANY, -2.0), source(4)))
    assert_distribution(np.hypot(x - 3.0, y + 2.0), radii(plan.start_scale_deg))
    assert_distribution(
        np.arctan2(y + 2.0, x - 3.0), lambda a, f: np.clip(0.5 + a / (2 * np.pi * f), 0.0, 1.0)
    )


def test_gaze_beside_the_screen_starts_at_its_edge() -> None:
    plan = DPGazeSynth(100).scheme().plan(SCREEN, 100.0)
    x, _ = degrees(plan, noisy_starts(plan, np.full(1000, 80.0), np.zeros(1000), source(1)))
    assert abs(float(np.mean(x)) - SCREEN.width_deg / 2) < 0.01


def test_times_have_laplace_noise_of_scale_2w_minus_2_over_epsilon2() -> None:
    from tests.support.laws import discrete_laplace_cdf

    scheme = DPGazeSynth(1).scheme()
    plan = scheme.plan(SCREEN, 100.0)
    n = MANY // 6 + 1
    still = Windows(
        50, np.zeros(n), np.zeros(n), np.arange(n + 1), np.full(n, 1830), np.full(n, 50)
    )
    told, _ = scheme.ask(
        plan, ReportHeader("p", "s", "1", "", 100.0, 50 * n, 0, SCREEN), still, Streams(3)
    )
    assert told.lengths.shape == (n, 6)
    noise = told.lengths - np.array([50.0, 0, 0, 0, 0, 0])
    assert_distribution(noise, discrete_laplace_cdf(98 / 0.2), step=1.0)


# --- D3, D9: answers
# --------------------------------------------------------------------------------------------------


def test_d3_bits_of_a_message_have_the_oracles_probabilities() -> None:
    recording = gazeveil.simulate(1, 1, 400.0, 20.0, space=SCREEN, seed=2)[0]
    mechanism = DPGazeSynth(10, G=5)
    scheme = mechanism.scheme()
    plan, told = report(scheme, recording, Streams(1))
    oracle = scheme.questions(plan)["steps"]
    bits = np.unpackbits(told.answers["steps"], axis=1, bitorder="little")
    assert bits.shape == (800 * 5, 8 * (-(-oracle.categories // 8)))
    assert not bits[:, oracle.categories :].any()
    windows = windows_of(recording, plan.grid, plan.samples)
    cells, directions = windows.slots(plan.grid, 6)
    truth = np.where(cells >= 0, plan.grid.number[cells, directions], plan.grid.transitions).ravel()
    own = bits[np.arange(len(bits)), truth].mean()
    others = (bits[:, : oracle.categories].sum() - own * len(bits)) / (
        len(bits) * (oracle.categories - 1)
    )
    q = float(oracle.q)
    assert q == pytest.approx(1 / (math.exp(2 / 5) + 1), rel=1e-9)
    assert abs(own - 0.5) < 5 * math.sqrt(0.25 / len(bits))
    assert abs(others - q) < 5 * math.sqrt(q * (1 - q) / (len(bits) * (oracle.categories - 1)))


@pytest.mark.parametrize("text", ["dpgazesynth:epsilon=2", "dpgazesynth-one-report:epsilon=2"])
def test_d9_no_audit_finds_more_than_epsilon_and_the_exact_loss_is_nearly_all_of_it(
    text: str,
) -> None:
    # One run in a million refutes honest noise by chance.
    found = gazeveil.audit(text, trials=20_000, confidence=1 - 1e-6)
    assert not found.refuted
    claimed = found.epsilon_claimed or 0.0
    assert 0.99 * claimed <= (found.epsilon_lower or 0.0) <= claimed
    assert (found.statistical or 0.0) > 0.2 * claimed


def test_the_published_reading_is_refuted_and_its_number_is_not_readable() -> None:
    found = gazeveil.audit("dpgazesynth:epsilon=1,reading=published", trials=1000)
    assert found.refuted
    assert found.epsilon_lower == math.inf


# --- D7: shape
# --------------------------------------------------------------------------------------------------


def shape_of(
    mechanism: DPGazeSynth | DPGazeSynthOneReport, recording: Recording
) -> tuple[int, ...]:
    """Everything about a message that can be seen without reading its numbers."""
    _, told = report(mechanism.scheme(), recording, Streams(1))
    answers = tuple(n for name in sorted(told.answers) for n in told.answers[name].shape)
    return (
        len(message(mechanism.scheme(), "x", recording, Streams(1))),
        len(told),
        told.lengths.shape[1],
        *answers,
        *np.unique(told.counts).tolist(),
    )


SHAPES = [
    DPGazeSynth(1, G=6),
    DPGazeSynth(1, G=6, cap=3),
    DPGazeSynthOneReport(1, G=6),
    DPGazeSynthOneReport(9, G=6),
]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_d7_the_shape_of_a_message_does_not_depend_on_what_was_recorded(
    data: st.DataObject,
) -> None:
    drawn = data.draw(recordings(min_samples=1, max_samples=150))
    empty = drawn.with_(
        x_deg=np.full(len(drawn), np.nan),
        y_deg=np.full(len(drawn), np.nan),
        valid=np.zeros(len(drawn), dtype=np.bool_),
    )
    mechanism = data.draw(st.sampled_from(SHAPES))
    assert shape_of(mechanism, drawn) == shape_of(mechanism, empty)


def test_d7_the_published_reading_fails_that() -> None:
    still = Recording(
        "p", "s", np.arange(100) * 10**7, np.zeros(100), np.zeros(100), space=SCREEN, rate_hz=100.0
    )
    moving = still.with_(x_deg=np.linspace(-20, 20, 100))
    published = DPGazeSynth(1, G=6, reading="published")
    assert shape_of(published, still) != shape_of(published, moving)  # type: ignore[arg-type]
    assert shape_of(DPGazeSynth(1, G=6), still) == shape_of(DPGazeSynth(1, G=6), moving)
