"""The auditor: what it must find, what it must not claim, and the verdicts of every mechanism.

The audit of streams: nothing honest is refuted, and noise that is too small is.

The noise is the operating system's, so a verdict can be wrong. How often is stated: a test here
fails with probability at most :data:`FALSE_ALARM` although all is right. What is refuted is so at
that confidence. What must be found is found by one audit in 99 of 100 at least, which follows from
the law of its statistics (:func:`test_one_audit_in_a_hundred_finds_less`), so that three in a row
miss it once in a million.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.privacy.audit.games import GAME_SCREEN, Game
from gazeveil.privacy.audit.people import how_many
from gazeveil.privacy.audit.run import PLANTED, Audit, clopper_pearson, epsilon_lower, judge
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream import audit as streams
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage
from gazeveil.privacy.tables.dct_knorm import DCTKNorm

QUICK = 20_000

#: Planted mechanisms whose games take longest.
SLOW = ("real-only Fourier noise", "chunk claim sold as user claim")

#: Enough where the loss is computed from the law, and trials must only not contradict it.
FEW = 5_000

# Honest noise is refuted by chance with at most this much less than certainty.
SURE = 1 - 1e-6

# (mechanism, least lower bound, whether the claim must fall)
VERDICTS = [
    ("lpa:epsilon=1", 0.9, False),
    ("lpa:epsilon=1,reading=published", math.inf, True),
    ("exponential-dp:epsilon=1", 0.9, False),
    ("exponential-dp:epsilon=1,reading=published", 3.0, True),
    ("exponential-dp:epsilon=1,reading=intended", math.inf, True),
    ("fpa:epsilon=1", 0.9, False),
    ("fpa:epsilon=1,k=5", 0.75, False),
    ("fpa:epsilon=1,reading=published", math.inf, True),
    ("fpa:epsilon=1,reading=published-real", math.inf, True),
    ("cfpa:epsilon=1,chunk=32", 0.9, False),
    ("cfpa:epsilon=1/2,chunk=32,reading=published", 2.0, True),
    ("dcfpa:epsilon=1,chunk=32", 0.0, False),
    ("dcfpa:epsilon=1,chunk=32,reading=published", math.inf, True),
    ("dct-knorm:epsilon=1", 0.9, False),
    ("dct-knorm:epsilon=10", 9.0, False),
    ("dp-k-same:k=4,epsilon=1", 0.9, False),
    ("marginals:k=4", 0.9, False),
    ("heatmap-laplace:epsilon=1", 0.9, False),
    ("heatmap-gaussian:rho=1", 1.5, False),
]

#: What trials alone tell.
ESTIMATED = "heatmap-gaussian:rho=1"


@pytest.mark.parametrize("trials", [FEW, pytest.param(100_000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(("mechanism", "least", "falls"), VERDICTS)
def test_every_mechanism_gets_the_verdict_it_deserves(
    mechanism: str, least: float, falls: bool, trials: int
) -> None:
    trials = max(trials, QUICK) if mechanism == ESTIMATED else trials
    found = gazeveil.audit(mechanism, trials=trials, confidence=SURE)
    assert found.epsilon_claimed is not None
    assert found.epsilon_lower is not None
    assert found.refuted is falls
    assert found.epsilon_lower >= least
    if not falls:
        assert found.epsilon_lower <= found.epsilon_claimed * (1 + 1e-9)
        assert found.statistical is None or found.statistical <= found.epsilon_claimed
    json.dumps(found.to_dict())
    assert ("REFUTED" in str(found)) is falls


@pytest.mark.parametrize(
    "planted",
    [pytest.param(p, id=p.name, marks=[pytest.mark.heavy] * (p.name in SLOW)) for p in PLANTED],
)
def test_every_planted_mechanism_is_caught(planted: object) -> None:
    verdict = judge(planted.name, planted.game(), QUICK, 0.999)  # type: ignore[attr-defined]
    assert verdict.refuted, str(verdict)


@pytest.mark.parametrize(
    ("mechanism", "falls"),
    [
        ("k-same-select:k=4", False),
        ("k-same-select:k=4,reading=published", True),
        ("demographics:k=5", False),
    ],
)
def test_claims_without_epsilon_are_counted(mechanism: str, falls: bool) -> None:
    found = gazeveil.audit(mechanism, trials=100)
    assert found.epsilon_claimed is None
    assert found.epsilon_lower is None
    assert found.refuted is falls


def test_a_chunk_claim_is_worth_less_for_a_person() -> None:
    text = "cfpa:epsilon=1/2,chunk=32,per=chunk"
    chunk = gazeveil.audit(text, trials=FEW, confidence=SURE)
    person = gazeveil.audit(text, trials=FEW, confidence=SURE, unit="user")
    assert not chunk.refuted
    assert person.refuted
    assert person.epsilon_lower == pytest.approx(20 * 0.5, rel=0.01)


def test_an_exact_loss_is_that_of_the_noise_as_drawn_and_not_the_claim_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noise = DCTKNorm.noise

    def halved(m: DCTKNorm, *given: Any) -> Any:
        made = noise(m, *given)
        return replace(made, law=made.law / 2)

    for text in ("dct-knorm:epsilon=1/2", "dct-knorm:epsilon=1/2,D=3"):
        assert not gazeveil.audit(text, trials=1000, confidence=SURE).refuted
        with monkeypatch.context() as planted:
            planted.setattr(DCTKNorm, "noise", halved)
            found = gazeveil.audit(text, trials=1000, confidence=SURE)
        assert found.refuted
        assert found.epsilon_lower == pytest.approx(1, rel=1e-3)


# --- the bound itself
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_the_bound_is_tight_for_laplace_noise_and_silent_for_equal_inputs(epsilon: float) -> None:
    rng = np.random.default_rng(5)
    first, second = rng.laplace(0, 1 / epsilon, 100_000), rng.laplace(1, 1 / epsilon, 100_000)
    bound = epsilon_lower(first, second, 0.999).epsilon
    assert 0.9 * epsilon <= bound <= epsilon
    assert epsilon_lower(first, rng.laplace(0, 1 / epsilon, 100_000), 0.999).epsilon < 0.05


def test_noise_of_half_the_scale_is_found_by_every_audit() -> None:
    # Planar Laplace noise at epsilon 2 where 1 is claimed. An event that is chosen as surely as it
    # is judged misses it in 3 of these 200 audits: a rare one looks best on the first halves.
    def log_ratios(rng: np.random.Generator, moved: float) -> np.ndarray:
        radius, angle = rng.gamma(2, size=4000), 2 * math.pi * rng.uniform(size=4000)
        x, y = moved + radius * np.cos(angle), radius * np.sin(angle)
        return np.asarray(np.hypot(x - 2, y) - np.hypot(x, y))

    for seed in range(200):
        rng = np.random.default_rng(seed)
        assert epsilon_lower(log_ratios(rng, 0), log_ratios(rng, 2), 0.999).epsilon > 1.1


def test_the_bound_is_wrong_no_more_often_than_it_says() -> None:
    # 400 audits of two equal laws at confidence 0.9: a bound above 0 is a false alarm and may come
    # in a tenth of them.
    rng = np.random.default_rng(1)
    alarms = sum(
        epsilon_lower(rng.normal(size=400), rng.normal(size=400), 0.9).epsilon > 0
        for _ in range(400)
    )
    assert alarms <= 400 * 0.1 + 5 * math.sqrt(400 * 0.1 * 0.9)


def test_clopper_pearson_agrees_with_its_definition() -> None:
    from scipy.stats import binom

    low, high = clopper_pearson([0, 3, 50, 100], 100, 0.01)
    assert low[0] == 0
    assert high[3] == 1
    assert binom.sf(2, 100, low[1]) == pytest.approx(0.01)
    assert binom.cdf(3, 100, high[1]) == pytest.approx(0.01)


@pytest.mark.parametrize("length", [1, 100, 300])
def test_the_public_length_of_a_table_does_not_stop_its_audit(length: int) -> None:
    assert gazeveil.audit(
        f"exponential-dp:epsilon=1,length={length}", trials=500, confidence=SURE
    ).epsilon_lower == pytest.approx(1)


def test_games_that_count_people_have_fewer_cohorts_where_these_are_large() -> None:
    assert [how_many(30, k) for k in (2, 20, 40, 200, 10**6)] == [30, 30, 15, 3, 2]
    found = gazeveil.audit("k-same-select:k=100", trials=500)
    assert not found.refuted
    assert "6 random cohorts" in str(found)


def test_delta_is_taken_off_before_the_ratio() -> None:
    rng = np.random.default_rng(2)
    # A mechanism that shows its input once in a hundred releases is (0, 0.01)-private and no more.
    shown = [np.where(rng.random(50_000) < 0.01, side, -1.0) for side in (0.0, 1.0)]
    assert epsilon_lower(*shown, 0.999).epsilon > 3
    assert epsilon_lower(*shown, 0.999, delta=0.0115).epsilon < 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mechanism": "lpa:epsilon=1", "trials": 5}, "'trials' parameter of audit"),
        (
            {"mechanism": "lpa:epsilon=1", "confidence": 2},
            "'confidence' parameter of audit must be between 0 and 1",
        ),
        (
            {"mechanism": "lpa:epsilon=1", "unit": "person"},
            "'unit' parameter of audit must be one of",
        ),
        (
            {"mechanism": "lpa:epsilon=1", "unit": "chunk"},
            "'unit' parameter of audit must be one of recording, recording-feature, user",
        ),
        (
            {"mechanism": "heatmap-laplace:epsilon=1", "unit": "sample"},
            "'unit' parameter of audit must be one of user",
        ),
        ({"mechanism": "lapa:epsilon=1"}, "Did you mean 'lpa'"),
        ({"mechanism": 7}, "a mechanism or its text"),
    ],
)
def test_an_audit_refuses_in_words(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        gazeveil.audit(**arguments)  # type: ignore[arg-type]


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
