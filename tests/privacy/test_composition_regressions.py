"""What strangers found false in printed promises, attacked again: merged recordings, people who are
counted, moments that follow gaze.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.privacy.audit.run import epsilon_lower
from gazeveil.privacy.audit.streams import CohortGame, RecordingKind, changed_samples
from gazeveil.privacy.composition import BudgetError, Filter, compose
from gazeveil.privacy.promise.loss import Change, PromiseError, epsilon_of_rho
from tests.support.recordings import real_cohort

# Every statistical assertion here fails by chance less often than once in a million runs.
SURE = 1 - 1e-6
SCREEN = Screen(1920, 1080, 530.0, 300.0, 600.0)
SLOW, FAST, FLAT = (
    RecordingKind("slow", 60.0, Sphere(), 500),
    RecordingKind("fast", 1000.0, Sphere(), 600),
    RecordingKind("flat", 120.0, SCREEN, 60),
)


def steady(person: str, kind: RecordingKind) -> Recording:
    n = kind.samples
    return Recording(
        person,
        kind.stimulus,
        np.rint(np.arange(n) * 1e9 / kind.rate_hz).astype(np.int64),
        np.full(n, 10.0),
        np.full(n, 20.0),
        space=kind.space,
        rate_hz=kind.rate_hz,
    )


# --- unequal rates and spaces
# --------------------------------------------------------------------------------------------------


def test_a_cohort_of_unequal_rates_promises_what_holds_for_each_of_them() -> None:
    clock = gazeveil.mechanism("clock-render:epsilon=1,r_deg=2")
    g = clock.release(Cohort([steady("a", SLOW), steady("b", FAST)])).guarantee
    # Half a second is 30 samples of one and 500 of the other. Of 500 samples in a row the slow one
    # loses seventeen times as much.
    assert (g.epsilon, g.numbers["w_samples"]) == (1, 30)
    assert g.map(Change.window(seconds="1/2", move_deg=2)).epsilon == 1
    assert g.map(Change.window(500, move_deg=2)).epsilon == 17
    assert (
        "the gaze of any 0.5 s of one recording, counted in samples at its nominal rate,"
        in g.neighbours
    )
    assert g.map(Change.window(31, move_deg=2)).epsilon == Fraction(3, 2), (
        "31 samples last half a second from the first to the last, and may be three readings"
    )


def test_an_attack_on_the_slow_stream_stays_below_what_is_promised_and_far_above_what_was() -> None:
    clock: Any = gazeveil.mechanism("clock-render:epsilon=1,r_deg=2")
    change = Change.window(500, move_deg=2)
    game = CohortGame(clock, (SLOW, FAST), ((SLOW, changed_samples(change, SLOW)),), 2.0)
    # 3000 trials give about 1.6 with a deviation of 0.1: below 1 once in a million runs.
    lower = epsilon_lower(game.play(0, 3000, None), game.play(1, 3000, None), SURE).epsilon
    promised = clock.release(game.cohort(0, 1)).guarantee.map(change).epsilon
    assert promised is not None
    assert 1 < lower <= promised


def test_spheres_and_screens_are_each_measured_their_own_way() -> None:
    for text in ("kaleido:epsilon=1,w=50,r_deg=2", "clock-render:epsilon=1,r_deg=2"):
        g = (
            gazeveil.mechanism(text)
            .release(Cohort([steady("a", SLOW), steady("a", FLAT)]))
            .guarantee
        )
        assert (
            "along a great circle on a sphere, in the plane of the two angles on a screen" in str(g)
        ), text
        alone = gazeveil.mechanism(text).release(Cohort([steady("a", FLAT)])).guarantee
        assert "great circle" not in str(alone), text


def test_no_recording_of_a_real_cohort_loses_more_than_is_printed_for_all() -> None:
    cohort = Cohort(real_cohort("eyenavgs_nthu")[:24])
    assert len({r.rate_hz for r in cohort}) > 5
    for text in (
        "clock-render:epsilon=1,r_deg=2",
        "kaleido:epsilon=1,w=18,r_deg=2",
        "gaussian:sigma_deg=5",
    ):
        mechanism: Any = gazeveil.mechanism(text)
        g = mechanism.release(cohort).guarantee
        assert g.change is not None
        for change in (
            g.change,
            Change.window(18, move_deg=1),
            Change.window(seconds=1, move_deg=1),
            Change.sample(1, "coordinates"),
        ):
            alone = [mechanism.promise(r.rate_hz, r.space).map(change).amount for r in cohort]
            assert max(alone) == g.map(change).amount, (text, change)


def test_files_are_read_once_for_what_they_promise() -> None:
    reads = []

    def load(name: str) -> Recording:
        reads.append(name)
        return steady(name, SLOW if name == "a" else FAST)

    files = Cohort([Handle(p, k.stimulus, partial(load, p)) for p, k in (("a", SLOW), ("b", FAST))])
    release = gazeveil.mechanism("clock-render:epsilon=1,r_deg=2").release(files)
    assert reads == []
    assert [r.rate_hz for r in release.data] == [60.0, 1000.0]
    assert release.guarantee.numbers["w_samples"] == 30
    assert reads == ["a", "b"]
    # Asked before anything is loaded, the promise reads what it needs.
    assert gazeveil.mechanism("kaleido:epsilon=1,w=50,r_deg=2").release(files).guarantee.user


# --- what a person adds up to
# --------------------------------------------------------------------------------------------------


def test_all_recordings_of_a_person_count_and_the_worst_person_decides() -> None:
    g = (
        gazeveil.mechanism("kaleido:epsilon=1,w=50,r_deg=2")
        .release(Cohort([steady("a", SLOW), steady("a", FAST), steady("b", FLAT)]))
        .guarantee
    )
    # 500 samples are 10 windows, 600 are 12, 60 are 2
    assert g.map(Change.recording(2)).epsilon == 12
    assert g.map(Change.person(2)).epsilon == 22
    # to anywhere: 90 moves by 2 degrees across half a sphere
    assert g.map(Change.person()).epsilon == 22 * 90
    assert "everything of one person, replaced by any other: epsilon = 1980" in str(g)


@pytest.mark.parametrize(
    "text",
    [
        "dpgazesynth:epsilon=1,G=6,r_deg=2",
        pytest.param("dpgazesynth-one-report:epsilon=1,G=6,r_deg=2", marks=pytest.mark.heavy),
    ],
)
def test_replacing_a_person_moves_where_windows_begin(text: str) -> None:
    mechanism = gazeveil.mechanism(text)

    def play(side: int, trials: int) -> np.ndarray:
        x = np.full(50, 20.0 if side else -20.0)
        people = [
            Recording(
                f"p{i}",
                "s",
                np.arange(50) * 10_000_000,
                x,
                np.zeros(50),
                space=SCREEN,
                rate_hz=100.0,
            )
            for i in range(trials)
        ]
        # Where a window begins is drawn for each on its own; the model of the crowd is the same for
        # both.
        return np.array([r.x_deg[0] for r in mechanism.release(Cohort(people)).data])

    one = mechanism.release(
        Cohort(
            [
                Recording(
                    "p",
                    "s",
                    np.arange(50) * 10_000_000,
                    np.zeros(50),
                    np.zeros(50),
                    space=SCREEN,
                    rate_hz=100.0,
                )
            ]
        )
    ).guarantee
    steps = math.ceil(math.hypot(SCREEN.width_deg, SCREEN.height_deg) / 2)
    assert one.user["epsilon"] == Fraction(2, 5) + Fraction(3, 5) * steps
    lower = epsilon_lower(play(0, 2000), play(1, 2000), SURE).epsilon
    if text.startswith("dpgazesynth:"):
        assert lower > 1, "the attack must be able to refute the old sentence, T times epsilon"
    assert lower <= float(one.user["epsilon"])


def test_a_longer_window_begins_near_but_its_parts_anywhere() -> None:
    def still(rate_hz: float) -> Cohort:
        return Cohort(
            [
                Recording(
                    "p",
                    "s",
                    np.arange(180) * 10**7,
                    np.full(180, 9.0),
                    np.full(180, 9.0),
                    rate_hz=rate_hz,
                )
            ]
        )

    g = gazeveil.mechanism("dpgazesynth:epsilon=1,r_deg=2").release(still(60.0)).guarantee
    # two windows of the grid: one that begins at most 2 degrees away, and one that begins anywhere
    # on the sphere
    assert g.map(Change.window(60, start_deg=2)).epsilon == 1 + Fraction(2, 5) + Fraction(3, 5) * 90
    h = (
        gazeveil.mechanism("dpgazesynth:epsilon=1,r_deg=2,window_s=1")
        .release(still(60.0))
        .guarantee
    )
    assert compose([g, h], change=h.change).epsilon == 2 + Fraction(2, 5) + Fraction(3, 5) * 90
    with pytest.raises(BudgetError):
        Filter(3, unit=h.change or "user").spend([h, g])


def test_windows_that_overlap_move_twice() -> None:
    mechanism: Any = gazeveil.mechanism("gaussian:sigma_deg=5,w=60")
    g = mechanism.promise(100.0, Sphere())
    two = g.map(Change.window(60, move_deg=1, metric="coordinates", count=2)).rho
    # windows from 0 and from 1: 59 samples move by 2 degrees and 2 by 1
    assert (
        two
        >= 59 * g.map(Change.sample(2, "coordinates")).rho
        + 2 * g.map(Change.sample(1, "coordinates")).rho
    )
    assert (
        g.map(Change.sample(1, "coordinates", count=2)).rho
        >= g.map(Change.sample(2, "coordinates")).rho
    )


# --- resets
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hold", [False, True])
def test_a_reset_lets_no_more_samples_through(hold: bool) -> None:
    session = gazeveil.mechanism(
        f"chain:stages=temporal(K=10;hold={hold})+gaussian(sigma_deg=5;w=60)"
    ).open(100.0)  # type: ignore[attr-defined]
    places = 0
    for i in range(60):
        x = session.push(i * 10_000_000, 50.0 + i, 60.0)[1]
        places += int(np.isfinite(x).sum())
        session.reset()
    # One of every ten is let through, however often the session is reset; held ones are lost after
    # a reset, since they are the past.
    assert places <= 6


# --- numbers that there are not
# --------------------------------------------------------------------------------------------------


def test_gaussian_noise_has_no_epsilon_without_a_delta() -> None:
    for delta in (0, 1, -1):
        with pytest.raises(ParameterError, match="with delta = 0 there is no finite epsilon"):
            epsilon_of_rho(Fraction(1), Fraction(delta))


@pytest.mark.parametrize(
    "text",
    [
        "temporal:K=3",
        "spatial:L=64",
        "smoothing",
        "kalman",
        "gaussian:sigma_deg=1,reading=published",
    ],
)
def test_what_promises_nothing_is_not_proved(text: str) -> None:
    g = gazeveil.mechanism(text).release(steady("p", SLOW)).guarantee
    assert (g.definition, g.status) == ("none", "empirical")
    with pytest.raises(PromiseError):
        g.map(Change.sample(1))
