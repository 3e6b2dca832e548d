"""Shared protected streams: the same bytes for all, paid for before they leave, ended with the
reason.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.gatekeeper import Denied, Ledger
from gazeveil.gatekeeper.streams.pool import every_of, mechanism_of
from tests.support.stream_apps import KALEIDO, Faulty, Taken, one_by_one, push_still
from tests.support.wearers import Trace, grant, keeper, looks


def test_apps_with_the_same_mechanism_share_bytes_and_the_device_pays_once() -> None:
    ledger = Faulty()
    k = keeper("a", "b", ledger=ledger)
    got = {name: Taken() for name in ("a", "b")}
    texts = {"a": KALEIDO, "b": "kaleido:w=20,r_deg=2.0,epsilon=0.5,reading=corrected"}
    streams = {name: k.app(name).open_private_stream(texts[name], got[name]) for name in got}
    assert streams["a"].mechanism == streams["b"].mechanism
    k.push(*looks([(102, 82), (142, 82)], each_s=0.5))
    k.close()
    assert len(got["a"]) == len(got["b"]) == 104
    for i in range(4):
        np.testing.assert_array_equal(got["a"].column(i), got["b"].column(i))
    assert all(
        a is b
        for x, y in zip(got["a"].blocks, got["b"].blocks, strict=True)
        for a, b in zip(x, y, strict=True)
    ), "the very arrays"
    with pytest.raises(ValueError, match="read-only"):
        got["a"].blocks[0][1][0] = 0.0
    leases = 6  # 104 samples in leases of 20
    assert ledger.total("device") >= Fraction(leases, 2)
    assert (
        ledger.total("device")
        == ledger.total("app:a")
        == ledger.total("app:b")
        <= Fraction(leases + 1, 2)
    )


def test_the_stream_is_what_the_mechanism_gives() -> None:
    trace = looks([(102, 82), (142, 82)], each_s=0.5)
    k = keeper("a", seed=5)
    got = Taken()
    stream = k.app("a").open_private_stream(KALEIDO, got)
    one_by_one(k, trace)
    t, x, y, valid = gazeveil.mechanism(KALEIDO).open(100.0, seed=5).push(*trace)
    for mine, theirs in zip((got.column(i) for i in range(4)), (t, x, y, valid), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert stream.rate_hz == 100.0
    assert (stream.guarantee.definition, stream.guarantee.status) == (
        "epsilon-w-r-dp",
        "claimed",
    ), "a seed makes it only claimed"
    assert not np.isclose(got.column(1), trace[1]).all()
    k.close()


def test_a_further_mechanism_is_charged_to_the_device_in_full() -> None:
    ledger = Faulty()
    k = keeper("a", "b", ledger=ledger)
    k.app("a").open_private_stream(KALEIDO, Taken())
    assert ledger.total("device") == Fraction(1, 2)
    first = ledger.total("device", "rho")
    k.app("b").open_private_stream("gaussian:sigma_deg=2", Taken())
    assert ledger.total("device") == Fraction(1, 2)
    assert ledger.total("device", "rho") == ledger.total("app:b", "rho") > first == 0
    k.close()


def test_gaussian_streams_are_views_of_one_and_the_device_pays_the_finest() -> None:
    ledger = Faulty()
    k = keeper("a", "b", "c", ledger=ledger, grants={"budgets": {"rho": Fraction(10**9)}})
    got = {name: Taken() for name in ("a", "b", "c")}
    for name, sigma in (("a", 2), ("b", 8)):
        k.app(name).open_private_stream(f"gaussian:sigma_deg={sigma}", got[name])
    after_two = ledger.total("device", "rho")
    assert after_two == ledger.total("app:a", "rho") > ledger.total("app:b", "rho"), (
        "the coarser view costs the device nothing more"
    )
    n = 4000
    t = np.arange(n) * 10_000_000
    k.push(t[:2000], np.full(2000, 180.0), np.full(2000, 90.0))
    k.app("c").open_private_stream("gaussian:sigma_deg=1", got["c"])
    k.push(t[2000:], np.full(2000, 180.0), np.full(2000, 90.0))
    k.close()
    a, b, c = (got[name].column(1) - 180.0 for name in ("a", "b", "c"))
    assert np.std(a) == pytest.approx(2, rel=0.1)
    assert np.std(b) == pytest.approx(8, rel=0.1)
    assert np.std(c) == pytest.approx(1, rel=0.1)
    # Independent noise would give variance 4 + 64 for the difference; a coarser view of the same
    # noise gives 64 - 4.
    assert np.var(a - b) == pytest.approx(60, rel=0.15)
    assert np.corrcoef(a[2000:], c)[0, 1] == pytest.approx(0.5, abs=0.1)
    # The best a coalition can do by averaging is no better than its finest view.
    together = np.stack((a[2000:], b[2000:], c))
    weights = np.linalg.solve(np.cov(together), np.ones(3))
    weights /= weights.sum()
    assert np.std(weights @ together) > 0.93
    assert ledger.total("device", "rho") >= ledger.total("app:c", "rho")


def test_a_coalition_of_equal_streams_cannot_average_the_noise_away() -> None:
    k = keeper(*"abcdefghij")
    got = [Taken() for _ in range(10)]
    for name, taken in zip("abcdefghij", got, strict=True):
        k.app(name).open_private_stream("gaussian:sigma_deg=3", taken)
    t = np.arange(3000) * 10_000_000
    k.push(t, np.full(3000, 180.0), np.full(3000, 90.0))
    k.close()
    mean = np.mean([taken.column(1) for taken in got], axis=0) - 180.0
    assert np.std(mean) == pytest.approx(3.0, rel=0.1), "independent copies would leave 0.95"


def test_the_stream_ends_with_the_reason_when_the_budget_is_gone_and_others_go_on() -> None:
    ledger = Ledger.open("sqlite://")
    k = keeper("rich", "poor", ledger=ledger)
    k.grant("poor", grant(budgets={"epsilon": Fraction(3, 2)}))
    got = {name: Taken() for name in ("rich", "poor")}
    ends: list[tuple[str, str]] = []
    streams = {name: k.app(name).open_private_stream(KALEIDO, got[name]) for name in got}
    streams["poor"].on_end(lambda reason, code: ends.append((reason, code)))
    one_by_one(k, looks([(102, 82), (142, 82)], each_s=0.8))
    assert len(got["poor"]) == 60
    assert len(got["rich"]) == 164
    assert ends[0][1] == "budget"
    assert "epsilon" in ends[0][0]
    assert streams["rich"].ended is None
    with pytest.raises(Denied) as no:
        k.app("poor").open_private_stream(KALEIDO, Taken())
    assert no.value.code == "budget"
    k.close()


def test_the_device_has_a_limit_of_its_own() -> None:
    from gazeveil.gatekeeper import DeviceLimits, Gatekeeper, Policy

    rules = Policy({"a": grant(), "b": grant()}, DeviceLimits(epsilon=Fraction(1)), consent=True)
    k = Gatekeeper(rules, Ledger.open("sqlite://"), rate_hz=100.0)
    got = Taken()
    stream = k.app("a").open_private_stream(KALEIDO, got)
    k.app("b").open_private_stream(KALEIDO, Taken())
    one_by_one(k, looks([(102, 82)], each_s=0.8))
    assert len(got) == 40
    assert stream.code == "budget"
    assert stream.guarantee.status == "proved"
    k.close()


def test_revoking_stops_a_stream_within_one_sample() -> None:
    k = keeper("a", "b")
    got = {name: Taken() for name in ("a", "b")}
    streams = {name: k.app(name).open_private_stream(KALEIDO, got[name]) for name in got}
    for i in range(7):
        k.push(i * 10_000_000, 100.0, 80.0)
    k.revoke("a")
    for i in range(7, 12):
        k.push(i * 10_000_000, 100.0, 80.0)
    assert (len(got["a"]), len(got["b"])) == (7, 12)
    assert streams["a"].code == "revoked"
    k.consent(False)
    k.push(12 * 10_000_000, 100.0, 80.0)
    assert (len(got["b"]), streams["b"].code) == (12, "no-consent")
    k.close()


def test_an_app_that_revokes_another_in_its_callback_stops_it_at_once() -> None:
    k = keeper("a", "b")
    got = Taken()

    def first(*block: np.ndarray) -> None:
        if k.policy.apps["b"].revoked is False:
            k.revoke("b")

    k.app("a").open_private_stream(KALEIDO, first)
    k.app("b").open_private_stream(KALEIDO, got)
    k.push(0, 100.0, 80.0)
    assert len(got) == 0
    k.close()


def test_streams_whose_noise_promises_nothing_are_counted_in_samples_up_to_a_limit() -> None:
    from gazeveil.gatekeeper.policy.grant import APP_LIMITS, DEVICE_LIMITS

    ledger = Faulty()
    k = keeper("a", ledger=ledger)
    got = Taken()
    stream = k.app("a").open_private_stream("gaussian:sigma_deg=2,reading=published", got)
    k.push(*looks([(102, 82), (142, 82)], each_s=0.8))
    assert stream.guarantee.definition == "none"
    assert len(got) == 164
    assert ledger.total("app:a", "samples") >= 164
    assert ledger.total("app:a", "epsilon") == ledger.total("app:a", "rho") == 0
    assert ledger.limit("app:a", "samples") == APP_LIMITS["samples"]
    assert ledger.limit("device", "samples") == DEVICE_LIMITS["samples"]
    k.close()


def test_a_bounded_rate_leaves_samples_out_before_the_mechanism() -> None:
    assert every_of(100.0, 1, 30.0) == 4
    assert every_of(100.0, 4, 30.0) == 1
    assert every_of(100.0, 1, None) == every_of(100.0, 1, 100.0) == 1
    assert every_of(120.0, 1, 60.0) == 2
    k = keeper("a", "b", "c", seed=3)
    k.grant("b", grant(most_hz=30.0))
    k.grant("c", grant(most_hz=13.0))
    got = {name: Taken() for name in ("b", "c")}
    streams = {name: k.app(name).open_private_stream(KALEIDO, got[name]) for name in ("b", "c")}
    assert (streams["b"].rate_hz, streams["c"].rate_hz) == (25.0, 12.5)
    with pytest.raises(Denied, match=r"now kaleido:.* at 25 samples a second") as no:
        k.app("a").open_private_stream(KALEIDO, Taken())
    assert no.value.code == "rate", "a session at another rate would have noise of its own"
    trace = looks([(102, 82), (142, 82)], each_s=0.5)
    for part in np.array_split(np.arange(len(trace[0])), 23):
        k.push(*(column[part] for column in trace))
    k.close()
    assert (len(got["b"]), len(got["c"])) == (26, 13)
    alone = gazeveil.mechanism(KALEIDO).open(25.0, seed=3).push(*(column[::4] for column in trace))
    np.testing.assert_array_equal(got["b"].column(1), alone[1])
    for i in range(4):
        np.testing.assert_array_equal(got["c"].column(i), got["b"].column(i)[::2])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kaleido:epsilon=2,w=20,r_deg=2", "parameter"),
        ("kaleido:epsilon=1", "parameter"),
        ("smoothing", "mechanism"),
        ("k-same-select:k=2", "mechanism"),
        ("nonsense", "mechanism"),
        ("", "mechanism"),
        ("gaussian:sigma_deg=1e999999999", "mechanism"),
        ("gaussian:sigma_deg=nan", "parameter"),
        ("x" * 100_000, "mechanism"),
        (None, "mechanism"),
        (7, "mechanism"),
    ],
)
def test_mechanisms_that_are_not_granted_are_refused(text: Any, code: str) -> None:
    ledger = Faulty()
    k = keeper("a", ledger=ledger)
    with pytest.raises(Denied) as no:
        k.app("a").open_private_stream(text, Taken())
    assert no.value.code == code
    assert ledger.calls == 0
    k.close()


def test_an_app_has_no_more_streams_than_its_grant() -> None:
    k = keeper("a", grants={"streams": 2})
    app = k.app("a")
    one = app.open_private_stream(KALEIDO, Taken())
    app.open_private_stream("gaussian:sigma_deg=2", Taken())
    with pytest.raises(Denied) as no:
        app.open_private_stream("gaussian:sigma_deg=3", Taken())
    assert no.value.code == "rate"
    one.close()
    app.open_private_stream("gaussian:sigma_deg=3", Taken())
    assert k.status()["streams"] == 1
    k.close()


def test_leaving_and_coming_back_goes_on_with_the_same_session() -> None:
    """A fresh session would have a window of its own: one real window would then be told about
    twice.
    """
    ledger = Faulty()
    k = keeper("a", "b", ledger=ledger)
    got = Taken()
    first = k.app("a").open_private_stream(KALEIDO, got)
    k.push(0, 100.0, 80.0)
    first.close()
    shared = next(iter(k._state.pool._streams.values()))
    k.app("b").open_private_stream(KALEIDO, got)
    assert next(iter(k._state.pool._streams.values())) is shared
    assert len(k._state.pool._streams) == 1
    assert ledger.total("device") == Fraction(1, 2), "the device's lease was not used up"
    assert ledger.total("app:b") == Fraction(1, 2)
    k.close()


def test_gaussian_streams_of_different_rates_share_their_noise_too() -> None:
    ledger = Faulty()
    k = keeper("a", "b", ledger=ledger)
    k.grant("b", grant(most_hz=25.0))
    got = {name: Taken() for name in ("a", "b")}
    slow = k.app("b").open_private_stream("gaussian:sigma_deg=2", got["b"])
    quarter = ledger.total("device", "rho")
    assert slow.rate_hz == 25.0
    k.app("a").open_private_stream("gaussian:sigma_deg=2", got["a"])
    assert ledger.total("device", "rho") == 4 * quarter == ledger.total("app:a", "rho"), (
        "samples that reach nobody cost nothing"
    )
    for part in np.array_split(np.arange(90), 17):
        push_still(k, int(part[0]), len(part))
    k.close()
    assert (len(got["a"]), len(got["b"])) == (90, 23)
    for i in range(4):
        np.testing.assert_array_equal(got["a"].column(i)[::4], got["b"].column(i))
    assert all(array.base is None for block in got["b"].blocks for array in block), (
        "no way back to what was left out"
    )


def test_an_app_that_asks_for_ever_new_noise_does_not_make_others_slow() -> None:
    k = keeper("a", "b", grants={"streams": 100, "budgets": {"rho": Fraction(10**9)}})
    k.app("b").open_private_stream("gaussian:sigma_deg=3", Taken())
    for i in range(40):
        k.app("a").open_private_stream(
            f"gaussian:sigma_deg={(1, 2, 5, 8, 12)[i % 5]}", Taken()
        ).close()
    assert k.status()["streams"] == 1
    assert max(len(shared._session.levels) for shared in k._state.pool._streams.values()) <= 8
    k.close()


@pytest.mark.parametrize("told", [True, False])
def test_a_tracker_whose_clock_begins_anew_goes_on_with_the_same_session(told: bool) -> None:
    """Forgetting the past would forget what was spent in the current window."""
    k = keeper("a")
    got = Taken()
    k.app("a").open_private_stream(KALEIDO, got)
    trace = looks([(102, 82)], each_s=1.2)
    one_by_one(k, trace)
    session = next(iter(k._state.pool._streams.values()))._session
    if told:
        k.lost()
    one_by_one(k, trace)  # from time 0 again
    assert next(iter(k._state.pool._streams.values()))._session is session
    t, valid = got.column(0), got.column(3)
    assert len(t) == 240
    assert (np.diff(t) > 0).all()
    assert valid[:120].all()
    assert valid[120:].sum() == (120 if told else 70), (
        "without a word the new clock is believed after half a second"
    )
    k.close()


def some(t0_ns: int, count: int = 80) -> Trace:
    return t0_ns + np.arange(count) * 10**7, np.full(count, 180.0), np.full(count, 90.0)


@pytest.mark.parametrize("told", [True, False])
def test_trackers_whose_clocks_take_turns_go_on_with_the_same_session(told: bool) -> None:
    """One counts from its start and one from 1970; streams once ended for good at the fifth."""
    k = keeper("a")
    got = Taken()
    k.app("a").open_private_stream("gaussian:sigma_deg=2", got)
    unix_ns = 1_800_000_000 * 10**9
    for turn in range(20):
        k.push(*some((unix_ns if turn % 2 else 3600 * 10**9) + turn * 10**10))
        if told:
            k.lost()
    t, valid = got.column(0), got.column(3)
    assert len(t) == 20 * 80
    assert valid.sum() == (20 * 80 if told else 80 + 19 * 30), "believed after half a second"
    assert (np.diff(t) > 0).all()
    assert abs(t[-1] - unix_ns) < 10**12, "released times follow the clock that is ahead"
    assert k._state.pool._clock._state[1] < 3700 * 10**9, "the session's go on by periods"
    k.close()


def test_times_that_no_clock_has_harm_no_stream() -> None:
    """Each was added to the session's time, until that did not fit 64 bits."""
    k = keeper("a")
    got = Taken()
    k.app("a").open_private_stream("gaussian:sigma_deg=2", got)
    rng = np.random.default_rng(3)
    odd = [0, 1, 10**18, -5, 2**63 - 1, -(2**63), 2**62, 2**62 - 1, -(2**62) + 1, 4 * 10**18 - 1]
    for turn in range(60):
        n = int(rng.integers(1, 90))
        wild = rng.choice(odd, n) if turn % 2 else np.sort(rng.integers(-(2**63), 2**63 - 1, n))
        k.push(wild, np.full(n, 180.0), np.full(n, 90.0))
        k.push(int(wild[0]), 180.0, 90.0)
        k.push(np.arange(n) * 80_000 * 10**9, np.full(n, 180.0), np.full(n, 90.0))
    k.push(*some(1_800_000_000 * 10**9, 60))  # a new clock is believed after half a second
    before = len(got)
    k.push(*some(1_800_000_001 * 10**9))
    assert got.column(3)[before:].all()
    k.close()


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=2,losses=fill",
        "gaussian:sigma_deg=2,clock_hz=60",
        "chain:stages=gaussian(sigma_deg=2)+temporal(K=4),losses=fill",
    ],
)
def test_gaussian_streams_do_not_take_an_option_that_they_would_not_keep(text: str) -> None:
    """They are views of one noise, in which lost samples stay lost."""
    with pytest.raises(Denied, match="lost samples stay lost") as no:
        mechanism_of(text)
    assert no.value.code == "mechanism"
    assert mechanism_of("gaussian:sigma_deg=2,losses=keep").losses == "keep"
    assert mechanism_of("kaleido:epsilon=1,w=60,r_deg=2,losses=fill").losses == "fill"
