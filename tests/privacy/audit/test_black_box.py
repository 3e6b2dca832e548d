"""The audit's black-box games: random cohorts and random changes never lose more than the printed
promise, and broken promises are caught.

Releases of tables as a stranger sees them: what one person's data change of everybody else's
rows, and the games that attack them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Change, Screen, Sphere
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.releases import CohortGame, RecordingKind, changed_samples, cohort_games
from gazeveil.privacy.audit.run import black_box_games, epsilon_lower, judge
from gazeveil.privacy.composition import RecordingsMap
from gazeveil.privacy.stream.mechanism import StreamMechanism

# Each case fails by chance with a probability of at most one in a million.
SURE = 1 - 1e-6
TRIALS = 400
SPACES = (
    Sphere(),
    Screen(1920, 1080, 1600.0, 900.0, 400.0),
    Screen(1280, 720, 300.0, 170.0, 700.0),
)
MECHANISMS = (
    "gaussian:sigma_deg=4",
    "kaleido:epsilon=1,w=20,r_deg=2",
    "kaleido-uniform:epsilon=1,w=20,r_deg=2",
    "clock-render:epsilon=1,r_deg=2",
    "clock-render:epsilon=2,r_deg=2,form=offline,slot_s=0.1",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=4)",
    "chain:stages=spatial(L=64)+kaleido-uniform(epsilon=1;w=20;r_deg=2)",
)


def random_case(mechanism: StreamMechanism, rng: np.random.Generator) -> tuple[CohortGame, Change]:
    """A cohort of a few unequal recordings and a change of one of them, or of all of a person's."""
    every = tuple(
        RecordingKind(
            f"s{i}",
            float(rng.choice([30.0, 59.94, 90.0, 120.0, 500.0, 1000.0])),
            SPACES[int(rng.integers(3))],
            int(rng.integers(20, 90)),
        )
        for i in range(int(rng.integers(1, 4)))
    )
    metric = str(rng.choice(["space", "coordinates"]))
    move = Fraction(int(rng.integers(1, 16)), 4)
    change = [
        Change.sample(move, metric),
        Change.window(int(rng.integers(2, 60)), move_deg=move, metric=metric),
        Change.window(
            seconds=Fraction(int(rng.integers(1, 60)), 100), move_deg=move, metric=metric
        ),
        Change.recording(move, metric),
        Change.person(move, metric),
    ][int(rng.integers(5))]
    chosen = every if change.unit == "user" else (every[int(rng.integers(len(every)))],)
    # Across a pole a move by the space's distance is half a turn of x, which no move of the
    # coordinates by so little is.
    pole = metric == "space" and bool(rng.integers(2))
    return (
        CohortGame(
            mechanism,
            every,
            tuple((kind, changed_samples(change, kind)) for kind in chosen),
            float(move),
            pole,
        ),
        change,
    )


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("text", MECHANISMS)
def test_no_random_change_of_a_random_cohort_loses_more_than_is_promised(
    text: str, times: int
) -> None:
    mechanism: Any = gazeveil.mechanism(text)
    for _ in range(times):
        seed = int(np.random.SeedSequence().entropy % 2**32)  # type: ignore[operator]
        game, change = random_case(mechanism, np.random.default_rng(seed))
        loss = mechanism.release(game.cohort(0, 1)).guarantee.map(change)
        delta = Fraction(0) if loss.measure == "pure" else Fraction(1, 10**6)
        lower = epsilon_lower(
            game.play(0, TRIALS, None), game.play(1, TRIALS, None), SURE, float(delta)
        ).epsilon
        assert lower <= float(loss.epsilon_at(delta)), (text, seed, str(change))


def test_the_evidence_tells_two_places_apart_where_there_is_no_noise_to_speak_of() -> None:
    # A game that sees nothing proves nothing.
    for text in (
        "gaussian:sigma_deg=1/8",
        "kaleido-uniform:epsilon=200,w=20,r_deg=2",
        "clock-render:epsilon=200,r_deg=2,form=offline",
    ):
        mechanism: Any = gazeveil.mechanism(text)
        for kind in (
            RecordingKind("a", 60.0, SPACES[0], 60),
            RecordingKind("b", 120.0, SPACES[1], 60),
        ):
            game = CohortGame(mechanism, (kind,), ((kind, slice(0, 60)),), 4.0)
            first, second = game.play(0, 100, None), game.play(1, 100, None)
            assert first[:, 0].max() < 0 < second[:, 0].min(), (text, kind)


# --- promises that are put together wrongly
# -------------------------------------------------------------------------------------------


# One game in some hundred misses a planted fault, so no more than four are played.
TRIES = 4


def lost(text: str, only: str, confidence: float = 0.999, tries: int = 1) -> bool:
    """Whether a black-box game whose words hold a part is lost."""
    games = [g for g in black_box_games(gazeveil.mechanism(text)) if only in g.description]
    assert games, f"no game of {text} says '{only}'"
    each = 1 - (1 - confidence) / tries
    return any(judge(text, g, 1500, each).refuted for _ in range(tries) for g in games)


@pytest.mark.heavy
def test_the_largest_window_of_unequal_rates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    text, only = "clock-render:epsilon=1,r_deg=2", "samples in a row"
    assert not lost(text, "its own change", SURE)

    def largest(self: RecordingsMap, change: Change) -> int | None:
        return max(s.samples_of(change) or 0 for s in self.streams)

    def of_one(self: RecordingsMap, change: Change) -> Any:
        return (
            min((s.loss(change) for s in self.streams), key=lambda loss: loss.amount)
            if change.unit in ("sample", "window")
            else old(self, change)
        )

    old = RecordingsMap.loss
    monkeypatch.setattr(RecordingsMap, "samples_of", largest)
    monkeypatch.setattr(RecordingsMap, "loss", of_one)
    assert lost(text, only, tries=TRIES)


def test_noise_that_is_too_small_is_caught_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    from gazeveil.privacy.stream.gaussian import GaussianLattice

    old = GaussianLattice.of.__func__  # type: ignore[attr-defined]
    text = "gaussian:sigma_deg=20,w=20"
    assert not lost(text, "its own change", SURE)
    told = gazeveil.mechanism(text).promise  # type: ignore[attr-defined]
    honest = told(100.0, Sphere()).rho
    monkeypatch.setattr(
        GaussianLattice,
        "of",
        classmethod(
            lambda cls, sigma: replace(
                old(cls, sigma), sigma_steps=old(cls, sigma).sigma_steps // 8
            )
        ),
    )
    monkeypatch.setattr(
        GaussianLattice, "rho", lambda self, r: honest / 20
    )  # the account still believes in the old noise
    assert lost(text, "its own change", tries=TRIES)


def test_games_are_there_for_every_kind_of_promise() -> None:
    assert {
        g.unit for g in black_box_games(gazeveil.mechanism("kaleido:epsilon=1,w=50,r_deg=2"))
    } >= {"sample", "window", "recording"}
    assert list(cohort_games(gazeveil.mechanism("temporal:K=2"))) == [], (
        "what promises nothing has nothing to lose"
    )


TABLES = [
    "lpa:epsilon=1",
    "fpa:epsilon=1,k=2",
    "cfpa:epsilon=1,chunk=4,k=1",
    "dcfpa:epsilon=1,chunk=4",
    "dct-knorm:epsilon=1",
    "exponential-dp:epsilon=1",
]


def table(first: float, rows: int = 8) -> FeatureTable:
    """Somebody with two recordings, one of which is full of one value, and others whose recordings
    are short.
    """
    keys = [("a", "s", "1", ""), ("a", "s", "2", ""), *((name, "s", "1", "") for name in "bcd")]
    parts = [
        np.full((rows, 2), first),
        np.full((8, 2), 0.5),
        *(np.full((n, 2), 0.25) for n in (1, 2, 5)),
    ]
    indices = [np.arange(len(p), dtype=np.int64) for p in parts]
    return FeatureTable(
        np.concatenate(parts),
        ("x", "y"),
        Keys.of_recordings(keys, indices),
        np.array([[0.0, 1.0]] * 2),
    )


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("rows", [8, 3])
def test_what_others_get_does_not_depend_on_one_person(text: str, rows: int) -> None:
    # The same test stream draws the same noise, so whatever differs comes from the data; with
    # little noise it is seen.
    quiet, loud = (
        gazeveil.mechanism(text.replace("epsilon=1", "epsilon=500")).release(one, seed=1).data
        for one in (table(0.0), table(1.0, rows))
    )
    assert quiet.values.shape == loud.values.shape
    for name in ("b", "c", "d"):
        np.testing.assert_array_equal(
            quiet.select(people=name).values, loud.select(people=name).values
        )
    assert (quiet.select(people="a").values != loud.select(people="a").values).any()


@pytest.mark.parametrize("text", TABLES)
def test_the_length_of_a_recording_is_not_told(text: str) -> None:
    released = [gazeveil.mechanism(text).release(one).data for one in (table(0.0), table(0.0, 1))]
    assert [len(r) for r in released] == [5 * 8, 5 * 8]
    for name in ("person", "stimulus", "session", "task", "index"):
        np.testing.assert_array_equal(released[0].keys[name], released[1].keys[name])


@pytest.mark.parametrize("text", TABLES)
def test_a_person_loses_the_sum_over_all_their_recordings(text: str) -> None:
    promised = gazeveil.mechanism(f"{text},length=8").release(table(0.0)).guarantee
    feature = promised.map(Change.recording_feature()).epsilon
    assert feature == Fraction(1)
    assert promised.map(Change.recording()).epsilon == 2
    assert promised.map(Change.person()).epsilon == 4


@pytest.mark.parametrize(
    "text",
    [
        "lpa:epsilon=1",
        pytest.param("cfpa:epsilon=1/2,chunk=2,k=1,per=chunk", marks=pytest.mark.heavy),
        pytest.param("dp-k-same:k=3,epsilon=1", marks=pytest.mark.heavy),
        pytest.param("marginals:k=3,epsilon=1", marks=pytest.mark.heavy),
    ],
)
def test_honest_tables_lose_no_black_box_game(text: str) -> None:
    mechanism = gazeveil.mechanism(text)
    verdicts = [judge(text, game, 1000, SURE) for game in black_box_games(mechanism)]
    assert len(verdicts) >= 3
    assert {"user"} < {v.unit for v in verdicts}
    assert not [str(v) for v in verdicts if v.refuted]


@pytest.mark.parametrize(
    "text",
    [
        "k-same-synth:k=2",
        pytest.param("clock-render-k-same:k=2", marks=pytest.mark.heavy),
        "heatmap-laplace:epsilon=1",
    ],
)
def test_honest_releases_about_people_lose_no_black_box_game(text: str) -> None:
    mechanism = gazeveil.mechanism(text)
    verdicts = [judge(text, game, 300, SURE) for game in black_box_games(mechanism)]
    assert verdicts
    assert not [str(v) for v in verdicts if v.refuted]


def test_all_maps_of_a_person_share_one_budget() -> None:
    def spread(text: str, stimuli: int) -> float:
        t = np.arange(4) * 10_000_000
        seen = [
            gazeveil.Recording("p", f"s{i}", t, np.full(4, 90.0), np.full(4, 90.0), rate_hz=100.0)
            for i in range(stimuli)
        ]
        maps = gazeveil.mechanism(text).release(gazeveil.Cohort(seen), seed=1).data
        return float(np.mean([one.noisy.std() for one in maps.values()]))

    # Nine maps: Laplace noise of nine times the scale, Gaussian noise of three times.
    assert spread("heatmap-laplace:epsilon=1", 9) == pytest.approx(
        9 * spread("heatmap-laplace:epsilon=1", 1), rel=0.1
    )
    assert spread("heatmap-gaussian:rho=1", 9) == pytest.approx(
        3 * spread("heatmap-gaussian:rho=1", 1), rel=0.1
    )
