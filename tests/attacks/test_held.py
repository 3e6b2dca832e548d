"""Who somebody is by how long places are held: what noise on places leaves as it is.

Names that were exchanged are found, and answers that are wrong for another reason are not taken
for that.
"""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.evidence import LEVEL, find_renaming
from gazeveil.attacks.identify.fusion import match_steps
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.attacks.vectors.places import HELD_NAMES, held_statistics
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from tests.support.recordings import real_cohort


def looks(order: list[int], lengths: list[int], places: np.ndarray) -> Recording:
    """Gaze that stays at places, one after the other, for so many samples at 100 Hz."""
    x, y = np.repeat(places[order], lengths, axis=0).T
    return Recording("p", "s", np.arange(len(x)) * 10_000_000, x, y, rate_hz=100.0)


def test_runs_returns_and_shares_are_counted() -> None:
    places = np.array([[1.0, 2.0], [3.5, 4.0], [8.0, 0.5]])
    order, lengths = [0, 1, 0, 2, 1, 0, 1, 0], [20, 5, 30, 10, 5, 40, 5, 60]
    own = dict(zip(HELD_NAMES, held_statistics(looks(order, lengths, places)), strict=True))
    assert all(np.isfinite(v) for v in own.values())
    assert np.exp(own["held_places"]) == pytest.approx(3)
    assert own["held_share_0"] == pytest.approx(150 / 175)
    assert np.exp(own["held_q50"]) == pytest.approx(0.15)
    # Three runs are new places; of the others three came back after two runs, two after three.
    ago = [own[f"held_runs_ago_{i}"] ** 2 * 8 for i in range(13)]
    np.testing.assert_allclose(ago[:4], [3, 0, 3, 2], atol=1e-9)
    counts = sum(own[f"held_runs_{i}"] ** 2 for i in range(26)) * (175 - 1) / 100
    assert counts == pytest.approx(8)


def noisy_places(cohort: Cohort, sigma_deg: float, seed: int) -> Cohort:
    """Gaze as one noisy place for each cell of some 3 degrees that a person looks at."""
    rng = np.random.default_rng(seed)
    noise: dict[tuple[str, float, float], np.ndarray] = {}
    made = []
    for recording in gazeveil.mechanism("spatial:L=32,losses=keep").release(cohort).data:
        places = np.stack((recording.x_deg, recording.y_deg), axis=1)
        cells, number = np.unique(places, axis=0, return_inverse=True)
        for k, (x, y) in enumerate(cells.tolist()):
            key = (recording.person, x, y)
            if key not in noise:
                noise[key] = rng.normal(0, sigma_deg, 2)
            cells[k] += noise[key]
        x_deg, y_deg = cells[number.ravel()].T
        made.append(recording.with_(x_deg=x_deg, y_deg=y_deg))
    return Cohort(made)


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=1",
        "spatial:L=64",
        "kaleido:epsilon=1,w=60,r_deg=2",
        "temporal:K=25,hold=True",
    ],
)
def test_only_places_of_their_own_are_held(text: str) -> None:
    cohort = gazeveil.simulate(2, 1, 20.0, 120.0, seed=1)
    for recording in gazeveil.mechanism(text).release(cohort).data:
        assert np.isnan(held_statistics(recording)).all()
    for recording in noisy_places(cohort, 5.0, seed=1):
        assert np.isfinite(held_statistics(recording)).all()


@pytest.mark.data
def test_noise_on_places_does_not_hide_how_long_they_are_held() -> None:
    """Of 24 people the other kinds of numbers find 8 under noise of 8 degrees on places."""
    cohort = real_cohort("gazecom").load()
    stimuli = np.random.default_rng(3).permutation(cohort.stimuli).tolist()
    learnt = round(0.75 * len(stimuli))
    gallery, probe = (RecordingSet(noisy_places(cohort, 8.0, seed=s)) for s in (1, 2))
    sides = [
        recording_vectors(side.select(stimuli=some), "steps")
        for side, some in ((gallery, stimuli[:learnt]), (probe, stimuli[learnt:]))
    ]
    with_timing = match_steps(*sides).credit().mean()
    others = [c for c in sides[0].columns if c not in HELD_NAMES]
    without = match_steps(*(side.select(others) for side in sides)).credit().mean()
    assert with_timing > 0.35
    assert with_timing > without + 0.1


def test_nothing_is_known_of_nothing() -> None:
    still = looks([0], [50], np.array([[1.0, 2.0]]))
    assert np.isnan(held_statistics(still)).all()
    lost = still.with_(valid=np.zeros(50, dtype=bool))
    assert np.isnan(held_statistics(lost)).all()
    assert np.isnan(held_statistics(looks([0], [1], np.array([[1.0, 2.0]])))).all()


#: How often the test of chance below fails though all is well: a share of at most LEVEL of 1,000
#: draws lies above 0.04 less often than this (binomial).
FALSE_ALARM = 1e-4


def found(answers: np.ndarray) -> bool:
    """Whether a renaming is found in rows of draws and columns of people."""
    draws, people = np.indices(answers.shape)
    names = [str(p) for p in people.ravel()]
    return find_renaming(draws.ravel().tolist(), names, [str(a) for a in answers.ravel()]).found


def test_a_renaming_is_found_though_some_answers_are_wrong() -> None:
    rng = np.random.default_rng(1)
    for n in (6, 10, 24):
        renamed = np.tile((np.arange(n) + 1) % n, (10, 1))
        noisy = np.where(rng.random(renamed.shape) < 0.2, rng.integers(n, size=renamed.shape), 0)
        assert found(np.where(noisy > 0, noisy, renamed))


def test_people_who_are_recognised_or_not_at_all_are_not_renamed() -> None:
    rng = np.random.default_rng(2)
    own = np.tile(np.arange(12), (10, 1))
    assert not found(own)
    half = np.where(rng.random(own.shape) < 0.5, own, rng.integers(12, size=own.shape))
    assert not found(half)
    assert not found(rng.integers(12, size=own.shape))
    assert not found(np.tile(own[0] // 2 * 2, (10, 1))), "pairs that are taken for one of them"
    swapped = own.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    assert not found(swapped), "two people who look alike are not a renaming of all"


def test_answers_that_are_always_the_same_wrong_ones_seldom_look_like_a_renaming() -> None:
    rng = np.random.default_rng(3)
    alarms = [found(np.tile(rng.integers(10, size=10), (3, 1))) for _ in range(1000)]
    assert np.mean(alarms) < 2 * LEVEL
