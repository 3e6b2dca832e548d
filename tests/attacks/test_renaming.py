"""Names that were exchanged are found, and answers that are wrong for another reason are not taken
for that.
"""

from __future__ import annotations

import numpy as np

from gazeveil.attacks.evidence import LEVEL, find_renaming

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
