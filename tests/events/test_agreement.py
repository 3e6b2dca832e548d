"""Agreement of labellings (benchmarks/agreement.py) against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.agreement import agreement, pool

F, S, N, P = "fixation", "saccade", "noise", "pso"


def t_ns(n: int) -> np.ndarray:
    return np.arange(n) * 2_000_000


def test_sample_f1_counts_every_sample() -> None:
    truth = [F] * 6 + [S] * 2 + [N] * 2
    found = [F] * 5 + [S] * 4 + [N]
    a = agreement(truth, found, t_ns(10))
    assert a[F].f1 == pytest.approx(2 * 5 / (6 + 5))
    assert a[S].f1 == pytest.approx(2 * 2 / (2 + 4))
    assert a[N].f1 == pytest.approx(2 * 1 / (2 + 1))
    assert a.samples == 10
    assert a.f1 == {w: a[w].f1 for w in (F, S, N)}


def test_kappa_is_cohens() -> None:
    truth = [F] * 25 + [S] * 25
    found = [F] * 20 + [S] * 5 + [F] * 10 + [S] * 15
    # observed 35/50 = 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5
    a = agreement(truth, found)
    assert a.kappa == pytest.approx(0.4)
    assert a[F].kappa == pytest.approx(0.4)


def test_a_hit_needs_half_of_the_union_and_pairs_once() -> None:
    truth = [S] * 4 + [F] * 8
    half = [S] * 8 + [F] * 4  # 4 of 8: just a hit
    less = [S] * 9 + [F] * 3  # 4 of 9
    assert agreement(truth, half)[S].hits == 1
    assert agreement(truth, less)[S].hits == 0
    assert agreement(truth, less, overlap=0.4)[S].hits == 1
    split = [S] * 2 + [F] + [S] + [F] * 8
    a = agreement(truth, split)
    assert (a[S].events_true, a[S].events_found, a[S].hits) == (1, 2, 1)
    assert a[S].event_f1 == pytest.approx(2 / 3)


def test_one_shared_sample_is_an_overlap_and_no_hit() -> None:
    truth = [F] * 4 + [S] * 4 + [F] * 4
    found = [F] * 7 + [S] * 4 + [F]  # one of seven samples is shared
    a = agreement(truth, found)
    assert (a[S].hits, a[S].overlaps) == (0, 1)
    assert (a[S].event_f1, a[S].event_f1_overlap) == (0.0, 1.0)
    apart = [F] * 8 + [S] * 4
    assert agreement(truth, apart)[S].overlaps == 0


def test_overlapping_events_pair_one_to_one_and_the_largest_overlap_first() -> None:
    truth = [S] * 10 + [F] * 2
    split = [S] * 2 + [F] + [S] * 3 + [F] + [S] * 3 + [F] * 2
    a = agreement(truth, split)
    assert (a[S].events_true, a[S].events_found, a[S].overlaps) == (1, 3, 1)
    assert a[S].event_f1_overlap == pytest.approx(2 * 1 / (1 + 3))
    # The true events share 1 and 5 samples with the first one found, and the second of them 2 with
    # the other: 5 goes first, so the events at both ends have no partner left.
    truth = [S] * 3 + [F] + [S] * 9 + [F] * 4
    found = [F] * 2 + [S] * 7 + [F] * 2 + [S] * 4 + [F] * 2
    a = agreement(truth, found)
    assert (a[S].events_true, a[S].events_found, a[S].overlaps) == (2, 2, 1)


def test_joined_words_are_one_class_and_one_event() -> None:
    truth = [F] * 4 + [S] * 5 + [F] * 3
    found = [F] * 4 + [S] * 3 + [P] * 2 + [F] * 3
    apart = agreement(truth, found, t_ns(12))
    assert apart[S].f1 == pytest.approx(2 * 3 / (5 + 3))
    assert apart[S].offset_error_ms == -4.0
    a = agreement(truth, found, t_ns(12), join={P: S})
    assert P not in a.classes
    assert (a[S].f1, a[S].events_found, a[S].event_f1) == (1.0, 1, 1.0)
    assert (a[S].offset_error_ms, a.kappa) == (0.0, 1.0)
    assert a == pool([(truth, found, t_ns(12))], join={P: S})
    assert agreement(truth, found, join={}).f1 == agreement(truth, found).f1


def test_errors_of_onset_and_offset_are_medians_in_ms_with_their_sign() -> None:
    truth = np.array([F] * 30)
    found = truth.copy()
    for k, shift in enumerate((1, 2, 3)):
        truth[10 * k + 2 : 10 * k + 6] = S
        found[10 * k + 2 : 10 * k + 6 + shift] = S
    a = agreement(truth, found, t_ns(30))
    assert (a[S].onset_error_ms, a[S].offset_error_ms) == (0.0, 4.0)
    b = agreement(found, truth, t_ns(30))
    assert (b[S].offset_error_ms, b[S].offset_distance_ms) == (-4.0, 4.0)
    assert np.isnan(agreement(truth, found)[S].onset_error_ms)


def test_pooling_adds_samples_and_not_figures() -> None:
    one = ([S] * 2 + [F] * 8, [S] * 2 + [F] * 8, t_ns(10))
    other = ([F] * 90 + [S] * 10, [F] * 100, t_ns(100))
    a = pool([one, other])
    assert a.samples == 110
    assert a[S].f1 == pytest.approx(2 * 2 / (12 + 2))
    assert (a[S].events_true, a[S].events_found, a[S].hits) == (2, 1, 1)
