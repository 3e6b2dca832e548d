"""The counters of areas: right on average, with the noise they state, one answer for all, and paid
for.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.gatekeeper import Denied, Ledger
from gazeveil.gatekeeper.core.counters import Counters, TreeCounter
from gazeveil.privacy.randomness.rng import Words, source
from tests.support.laws import assert_distribution, discrete_laplace_cdf
from tests.support.wearers import grant, keeper, looks


def test_without_noise_the_tree_counts_every_prefix_over_many_horizons() -> None:
    rng = np.random.default_rng(1)
    ticks = np.sort(rng.integers(0, 100, 60))
    # Scale 3/10**6: all noise is zero. A horizon is 7 ticks.
    counter = TreeCounter(Fraction(10**6), 3, Words(source(1)), first_tick=5)
    asked = 0
    for now in range(5, 110):
        for tick in ticks[ticks == now - 5]:
            counter.add(int(tick) + 5)
        if rng.random() < 0.5:
            assert counter.count(now) == int((ticks < now - 5).sum())
            asked += 1
    assert asked > 30


def test_the_variance_of_a_count_is_levels_times_that_of_a_block() -> None:
    """theory: (levels) * 2 * (levels / epsilon)**2 within 5 % at the tick whose digits are all
    ones.
    """
    levels, epsilon = 6, Fraction(1)
    words = Words(source(2))
    last = (1 << levels) - 1
    full = np.array([TreeCounter(epsilon, levels, words)._prefix(last) for _ in range(12_000)])
    stated = levels * 2 * (levels / float(epsilon)) ** 2
    assert np.var(full) == pytest.approx(stated, rel=0.05)
    assert abs(full.mean()) < 6 * np.sqrt(stated / len(full))
    half = np.array(
        [TreeCounter(epsilon, levels, words)._prefix(1 << (levels - 1)) for _ in range(12_000)]
    )
    assert np.var(half) == pytest.approx(stated / levels, rel=0.05), (
        "one block alone has one block's noise"
    )


def test_the_noise_of_a_block_follows_its_law() -> None:
    levels, words = 4, Words(source(3))
    draws = np.array(
        [TreeCounter(Fraction(1, 2), levels, words)._prefix(8) for _ in range(100_000)]
    )
    assert_distribution(draws, discrete_laplace_cdf(8.0), step=1.0)


def test_a_block_is_drawn_once_and_answers_agree_with_one_another() -> None:
    counter = TreeCounter(Fraction(1, 10), 10, Words(source(4)))
    assert len({counter.count(512) for _ in range(20)}) == 1, "the same tick has the same answer"
    before = counter.count(512)
    # 513 = 512 + 1: the large block stays as it was, so the two answers differ by one small block.
    again = TreeCounter(Fraction(1, 10), 10, Words(source(4)))
    again.count(512)
    assert counter._blocks[0, 512] == before
    counter.count(513)
    assert counter._blocks[0, 512] == before
    counter.count(100)  # the past is not asked for again: the latest tick stands
    assert counter._blocks[0, 512] == before


def test_every_event_is_in_at_most_one_block_of_each_level() -> None:
    """What the proof needs: over all prefixes, the blocks are aligned, so a tick is in one block
    per length.
    """
    levels = 6
    seen: dict[int, set[tuple[int, int]]] = {}
    counter = TreeCounter(Fraction(1), levels, Words(source(5)))
    for ticks in range(1, 1 << levels):
        counter._prefix(ticks)
        assert sum(b - a for a, b in counter._blocks) == ticks
        for a, b in counter._blocks:
            seen.setdefault(b - a, set()).add((a, b))
    assert sorted(seen) == [1 << i for i in range(levels)]
    for blocks in seen.values():
        for tick in range(1 << levels):
            assert sum(a <= tick < b for a, b in blocks) <= 1


def joint(epsilon: Fraction, there: bool, trials: int, words: Words) -> int:
    """How often all answers that cover the first tick are at least 1: the likeliest sign of a
    fixation in it.
    """
    hits = 0
    for _ in range(trials):
        counter = TreeCounter(epsilon, 3, words)
        if there:
            counter.add(0)
        hits += all(counter.count(tick) >= 1 for tick in (1, 2, 4))
    return hits


def lower_epsilon(epsilon: Fraction, trials: int = 8000) -> float:
    """A bound below the true epsilon with probability 1 - 2e-6."""
    from scipy.stats import beta

    words = Words(source(8))
    with_it, without = joint(epsilon, True, trials, words), joint(epsilon, False, trials, words)
    low = beta.ppf(1e-6, with_it, trials - with_it + 1)
    high = beta.ppf(1 - 1e-6, without + 1, trials - without)
    return float(np.log(low / high))


def test_all_answers_together_lose_epsilon_and_not_more() -> None:
    """The worst event over one block of each level has ratio exp(epsilon) exactly; half the noise
    is seen.
    """
    assert 0.6 < lower_epsilon(Fraction(1)) <= 1.0
    assert lower_epsilon(Fraction(2)) > 1.0, "a counter with half the noise would be caught"


def test_the_guarantee_states_the_event_and_the_sum_over_a_session() -> None:
    counters = Counters("1/2", 4, 100, None)
    g = counters.guarantee
    assert (g.definition, g.status, g.epsilon) == ("epsilon-dp", "proved", Fraction(1, 2))
    assert g.user == {}, "counting goes on, so a person has no sum"
    assert g.also[0][1].epsilon == Fraction(1, 2) * ((15 * 100 + 1000) // 60 + 1)
    assert "of which there are at most 42" in str(g)
    assert "an event is one fixation in the area" in str(g)
    assert Counters(1, 4, 100, 7).guarantee.epsilon is None, "with a seed it is only claimed"


def test_all_apps_get_one_answer_and_each_pays_once_per_horizon() -> None:
    ledger = Ledger.open("sqlite://")
    k = keeper("a", "b", ledger=ledger, counter_epsilon=Fraction(1, 3), counter_levels=5)
    areas = {name: k.app(name).register_area("x", 90, 70, 20, 20).id for name in ("a", "b")}

    def spent(account: str) -> Fraction:
        return ledger.spent(account, "epsilon", time.time_ns())

    first = k.app("a").counter(areas["a"])
    assert (spent("device"), spent("app:a"), spent("app:b")) == (Fraction(1, 3), Fraction(1, 3), 0)
    assert k.app("b").counter(areas["b"]) == first
    assert first.fixations == 0, "what there was before is not told"
    assert k.app("a").counter(areas["a"]) == first
    assert (spent("device"), spent("app:a"), spent("app:b")) == (
        Fraction(1, 3),
        Fraction(1, 3),
        Fraction(1, 3),
    )
    trace = looks([(102, 82), (142, 82)] * 4)  # 3.5 s: 35 ticks, a horizon is 31
    k.push(*trace)
    second = k.app("a").counter(areas["a"])
    assert second == k.app("b").counter(areas["b"])
    assert spent("device") == spent("app:a") == spent("app:b") == Fraction(2, 3)
    # An area of other cells that overlaps has a counter of its own, and the device pays for it.
    k.app("b").counter(k.app("b").register_area("y", 90, 70, 25, 20).id)
    assert spent("device") == 1


def test_a_counter_counts_fixations_of_its_area() -> None:
    k = keeper("a", counter_epsilon=10**3, grants={"budgets": {"epsilon": Fraction(10**4)}})
    app = k.app("a")
    left, right = app.register_area("x", 90, 70, 20, 20), app.register_area("y", 130, 70, 20, 20)
    assert app.counter(left.id).fixations == app.counter(right.id).fixations == 0
    k.push(
        *looks(
            [(102, 82), (142, 82), (102, 82), (142, 82), (102, 82), (200, 92), (210, 92), (200, 92)]
        )
    )
    assert (app.counter(left.id).fixations, app.counter(right.id).fixations) == (3, 2)


@pytest.mark.parametrize("lapse", ["revoked", "scope", "dropped"])
def test_a_counter_tells_nothing_of_what_was_looked_at_without_a_grant(lapse: str) -> None:
    k = keeper("a", "b", counter_epsilon=10**3, grants={"budgets": {"epsilon": Fraction(10**5)}})
    app = k.app("a")
    left = app.register_area("x", 90, 70, 20, 20)
    assert app.counter(left.id).fixations == 0
    t, x, y = looks([(102, 82), (142, 82)] * 3)
    k.push(t, x, y)
    assert app.counter(left.id).fixations == 3
    whole = k.policy.apps["a"]
    if lapse == "revoked":
        k.revoke("a")
    elif lapse == "scope":
        k.grant("a", replace(whole, scopes=whole.scopes - {"counter"}))
    else:
        k.drop("a")
    k.push(t + t[-1] + 10**7, x, y)
    k.grant("a", whole)
    if lapse == "dropped":
        left = app.register_area("x", 90, 70, 20, 20)
    assert app.counter(left.id).fixations == 0
    late = k.app("b").register_area("x", 90, 70, 20, 20)
    assert k.app("b").counter(late.id).fixations == 0, "asked for the first time"
    k.push(t + 2 * t[-1] + 2 * 10**7, x, y)
    assert app.counter(left.id).fixations == k.app("b").counter(late.id).fixations == 3


def test_an_app_pays_for_the_horizons_it_learns_of() -> None:
    ledger = Ledger.open("sqlite://")
    k = keeper("a", "b", ledger=ledger, counter_levels=5)  # a horizon is 31 ticks
    areas = {name: k.app(name).register_area("x", 90, 70, 20, 20).id for name in ("a", "b")}

    def spent(account: str) -> Fraction:
        return ledger.spent(account, "epsilon", time.time_ns())

    k.app("a").counter(areas["a"])
    whole = k.policy.apps["a"]
    k.revoke("a")
    t, x, y = looks([(102, 82), (142, 82)] * 12)  # 10.5 s: 105 ticks
    k.push(t, x, y)
    k.app("b").counter(areas["b"])
    assert (spent("device"), spent("app:b")) == (4, 1)
    k.grant("a", whole)
    k.app("a").counter(areas["a"])
    k.app("a").counter(areas["a"])
    assert spent("app:a") == 2, "the horizon before, and this one"
    k.push(t + t[-1] + 10**7, x, y)
    k.app("a").counter(areas["a"])
    k.app("b").counter(areas["b"])
    assert spent("device") == spent("app:b") + 3 == spent("app:a") + 2


def test_without_budget_there_is_no_count() -> None:
    k = keeper("a", grants={"budgets": {"epsilon": Fraction(3, 2)}})
    app = k.app("a")
    one, two = app.register_area("x", 90, 70, 20, 20), app.register_area("y", 130, 70, 20, 20)
    app.counter(one.id)
    with pytest.raises(Denied) as no:
        app.counter(two.id)
    assert no.value.code == "budget"
    app.counter(one.id)
    k.grant("a", grant(budgets={}))
    with pytest.raises(Denied):
        app.counter(one.id)


def test_a_counter_that_nobody_asks_stays_small_and_stays_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import gazeveil.gatekeeper.core.counters as counters

    monkeypatch.setattr(counters, "MOST_WAITING", 50)
    counter = TreeCounter(Fraction(10**6), 5, Words(source(6)))
    for tick in range(1000):
        counter.add(tick)
    assert len(counter._later) + len(counter._events) <= 50 + counter.horizon + 1
    assert counter.count(1000) == 1000
