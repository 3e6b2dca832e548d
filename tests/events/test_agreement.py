"""Agreement of labellings (benchmarks/agreement.py) against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.agreement import agreement

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
