"""k-same-synth: how fixations and saccades of a group are paired and averaged."""

import numpy as np
import pytest

from gazeveil import Screen
from gazeveil.privacy.synthesis.ksame.pairs import (
    BLINK_S,
    PUBLIC_SACCADE,
    Pairs,
    average,
    average_in_time,
    laid_out,
    pairs,
)
from gazeveil.privacy.synthesis.motion import Motion

SCREEN = Screen(1280, 720, 400, 225, 450)


# --- averages
# --------------------------------------------------------------------------------------------------


def sequence(durations, places, length_s=100.0, saccade=(200.0, 0.5, 0.3, 0.04)) -> Pairs:
    """Pairs on a screen, one after the other."""
    values = np.zeros((len(durations), 11))
    values[:, :2], values[:, 3:5], values[:, 5], values[:, 6:10] = places, 0.2, durations, saccade
    onset = np.concatenate(([0.0], np.cumsum(values[:, 5] + values[:, 9])[:-1]))
    return Pairs(values, onset, length_s)


def test_pairs_are_means_over_those_who_have_them_and_as_many_as_k_have() -> None:
    a, b, c = (
        sequence(np.full(n, d), np.full((n, 2), p))
        for n, d, p in ((2, 0.2, 0.0), (3, 0.4, 3.0), (5, 0.6, 6.0))
    )
    mean = average([a, b, c], 2)
    assert len(mean) == 3
    assert mean[:, 5] == pytest.approx([0.4, 0.4, 0.5])
    assert mean[:, 0] == pytest.approx([3.0, 3.0, 4.5])
    assert len(average([a, b, c], 3)) == 2


def test_seconds_become_samples_by_rounding_half_to_even() -> None:
    values = sequence(
        [0.105, 0.115, 0.2], np.zeros((3, 2)), saccade=(200.0, 0.5, 0.3, 0.045)
    ).values
    law = laid_out(values, SCREEN, 100.0, 1000)
    assert law.fixations[:, 4].tolist() == [10, 12, 20]
    assert law.saccades[:, 3].tolist() == [4, 4]


def test_lost_time_is_saved_up_and_released_as_a_blink() -> None:
    values = sequence(np.full(20, 0.2), np.zeros((20, 2))).values
    values[:, 10] = 0.03
    law = laid_out(values, SCREEN, 100.0, 10_000)
    ends = law.onset + law.counts
    gaps = law.onset[1:] - ends[:-1]
    assert set(gaps.tolist()) == {0, round(BLINK_S * 100)}
    assert gaps.sum() == pytest.approx(0.03 * 19 * 100, abs=BLINK_S * 100)


def test_a_fixation_without_a_saccade_borrows_the_recordings_mean_or_a_public_one() -> None:
    fixations = np.array(
        [[0.0, 0.0, 0.2, 0.2, 50], [5.0, 0.0, 0.2, 0.2, 50], [9.0, 0.0, 0.2, 0.2, 50]]
    )
    law = Motion(
        SCREEN,
        100.0,
        200,
        fixations,
        np.array([[400.0, 0.4, 0.2, 5.0]]),
        np.array([True, False, True, True]),
        np.array([0, 50, 60, 130]),
    )
    found = pairs(law).values
    assert np.allclose(found[:, 6:10], [400.0, 0.4, 0.2, 0.05])
    # samples 55 to 59, 110 to 129 and 180 to 199 are in no event
    assert found[:, 10] == pytest.approx([0.05, 0.2, 0.2])
    alone = Motion(
        SCREEN, 100.0, 50, fixations[:1], np.empty((0, 4)), np.array([True]), np.array([0])
    )
    assert pairs(alone).values[0, 6:10].tolist() == list(PUBLIC_SACCADE)


def test_the_crowd_keeps_the_time_at_which_things_happen() -> None:
    """Everybody looks right from second 10 on, with fixations of different lengths: by index they
    never agree when.
    """
    members = []
    for d in (0.2, 0.3, 0.45):
        n = int(20 / (d + 0.04))
        t = np.arange(n) * (d + 0.04)
        members.append(
            sequence(
                np.full(n, d), np.column_stack((np.where(t < 10, -5.0, 5.0), np.zeros(n))), 20.0
            )
        )
    by_time, by_index = average_in_time(members, 3, False), average(members, 3)
    t = np.concatenate(([0.0], np.cumsum(by_time[:, [5, 9, 10]].sum(axis=1))[:-1]))
    assert (by_time[t < 9, 0] < -4).all()
    assert (by_time[t > 11, 0] > 4).all()
    assert t[-1] > 19
    when = np.concatenate(([0.0], np.cumsum(by_index[:, [5, 9]].sum(axis=1))[:-1]))
    assert (np.abs(by_index[(when > 7) & (when < 13), 0]) < 4).any()


def test_the_crowd_does_not_wait_for_who_is_lost() -> None:
    going = [sequence(np.full(80, 0.2), np.zeros((80, 2)), 19.0) for _ in range(2)]
    gone = sequence(np.full(4, 0.2), np.full((4, 2), 3.0), 19.0)
    gone.values[-1, 10] = 18.0
    found = average_in_time([*going, gone], 3, False)
    seconds = found[:, [5, 9, 10]].sum(axis=1)
    assert found[:, 10].max() == pytest.approx(0.5 / 3)
    assert found[:, 10].sum() == pytest.approx(0.5 / 3)
    assert seconds.sum() > 19.0
    assert average([*going, gone], 3)[:, 10].tolist() == pytest.approx([0, 0, 0, 6.0])


def test_the_crowd_looks_where_most_look_and_not_between() -> None:
    n = 40
    places = {"left": (-8.0, 0.0), "right": (8.0, 0.0)}
    members = [
        sequence(np.full(n, 0.3), np.full((n, 2), places[side]))
        for side in ("left", "left", "left", "right")
    ]
    assert average(members, 4)[0, 0] == pytest.approx(-4.0)
    # three agree: weights 9, 9, 9 and 1
    assert average_in_time(members, 4, False)[0, 0] == pytest.approx((-8 * 27 + 8) / 28, abs=0.05)
    apart = [
        sequence(np.full(n, 0.3), np.full((n, 2), p))
        for p in ((-30.0, 0.0), (0.0, 20.0), (30.0, 0.0))
    ]
    assert average_in_time(apart, 3, False)[0, :2] == pytest.approx([0.0, 20 / 3], abs=1e-3)


def test_a_saccade_that_goes_less_far_is_shorter_and_its_fixation_longer() -> None:
    n, meant = 30, 200 * 0.3 * np.sqrt(np.pi) * 0.04
    jumps = np.where(np.arange(n) % 2, 1.0, 0.0)
    members = [
        sequence(np.full(n, 0.3), np.column_stack((jumps, np.zeros(n))), 9.0) for _ in range(2)
    ]
    found = average_in_time(members, 2, False)
    # b = 1/2, c = 0.3: 98 % of the curve lies within the saccade
    share = (21 + 2.2 * 1.0) / (21 + 2.2 * meant * 0.9816)
    assert found[0, 9] == pytest.approx(0.04 * share, rel=1e-3)
    assert found[0, 5] + found[0, 9] == pytest.approx(0.34)
