"""Shared protected streams: the same bytes for all, paid for before they leave, ended with the
reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.gatekeeper import Denied, Ledger, LedgerError
from gazeveil.gatekeeper.ledger.ledger import Charge
from gazeveil.gatekeeper.streams.billing import cost_of
from gazeveil.gatekeeper.streams.pool import every_of
from gazeveil.gaze.geometry import Sphere
from tests.support.wearers import grant, keeper, looks

KALEIDO = "kaleido:epsilon=1/2,w=20,r_deg=2"


class Taken:
    """What an app got."""

    def __init__(self) -> None:
        self.blocks: list[tuple[np.ndarray, ...]] = []

    def __call__(self, *block: np.ndarray) -> None:
        self.blocks.append(block)

    def __len__(self) -> int:
        return sum(len(b[0]) for b in self.blocks)

    def column(self, i: int) -> np.ndarray:
        return np.concatenate([b[i] for b in self.blocks]) if self.blocks else np.empty(0)


class Faulty:
    """A ledger whose N-th charge fails, and which remembers what it committed."""

    def __init__(
        self,
        fails: Sequence[int] | range = (),
        error: type[Exception] = LedgerError,
        slow_s: float = 0.0,
    ) -> None:
        self.ledger = Ledger.open("sqlite://")
        self.fails, self.error, self.slow_s = fails, error, slow_s
        self.calls = 0
        self.committed: list[tuple[Charge, ...]] = []
        self.lock = threading.Lock()

    def charge(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int) -> Any:
        with self.lock:
            self.calls += 1
            number = self.calls
        if number in self.fails:
            raise self.error("disk full")
        time.sleep(self.slow_s)
        done = self.ledger.charge(request_id, charges, why, now_ns)
        self.committed.append(tuple(charges))
        return done

    def total(self, account: str, currency: str = "epsilon") -> Fraction:
        return sum(
            (
                c.amount
                for charges in self.committed
                for c in charges
                if c.account == account and c.currency == currency
            ),
            Fraction(0),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)


def one_by_one(k: Any, trace: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    for a, b, c in zip(*(column.tolist() for column in trace), strict=True):
        k.push(a, b, c)


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


@pytest.mark.parametrize("error", [LedgerError, OSError, RuntimeError])
@pytest.mark.parametrize("single", [True, False])
def test_whichever_charge_fails_no_sample_leaves_without_a_committed_charge(
    error: type[Exception], single: bool
) -> None:
    trace = looks([(102, 82), (142, 82)], each_s=0.5)
    met = set()
    for n in range(1, 9):
        ledger = Faulty([n], error)
        k = keeper("a", "b", ledger=ledger)
        got = {name: Taken() for name in ("a", "b")}
        streams = {}
        for name in got:
            try:
                streams[name] = k.app(name).open_private_stream(KALEIDO, got[name])
            except (LedgerError, OSError, RuntimeError):
                met.add("open")
        if single:
            one_by_one(k, trace)
        else:
            k.push(*trace)
        k.close()
        for name, taken in got.items():
            assert len(taken) * Fraction(1, 40) <= ledger.total(f"app:{name}"), (
                f"charge {n} failed and {name} got samples for nothing"
            )
        most = max(len(taken) for taken in got.values())
        assert most * Fraction(1, 40) <= ledger.total("device")
        met.update(stream.code for stream in streams.values())
        if error is LedgerError and n in (3, 4):
            assert {s.code for s in streams.values()} == {"ledger"}
            assert all("disk full" not in str(s.ended) for s in streams.values())
    assert met >= {"open", "ledger", "closed"}


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


def test_a_slow_disk_does_not_stall_the_tracker_before_half_a_lease_is_over() -> None:
    ledger = Faulty(slow_s=1.0)
    k = keeper("a", ledger=ledger)
    got = Taken()
    k.app("a").open_private_stream("kaleido:epsilon=1/2,w=100,r_deg=2", got)
    longest = 0.0
    for i in range(140):
        begin = time.perf_counter()
        k.push(i * 10_000_000, 100.0, 80.0)
        if i not in (0, 100):
            longest = max(longest, time.perf_counter() - begin)
        time.sleep(0.002)
    assert len(got) == 140
    assert longest < 0.8, "no push waited for the disk, which takes a second"
    k.close()


def test_a_ledger_that_never_answers_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    import gazeveil.gatekeeper.streams.shared as streams

    monkeypatch.setattr(streams, "PATIENCE_S", 0.1)
    ledger = Faulty()
    k = keeper("a", ledger=ledger)
    got = Taken()
    stream = k.app("a").open_private_stream(KALEIDO, got)
    ledger.slow_s = 0.6
    k.push(*looks([(102, 82)], each_s=0.8))
    assert len(got) == 20
    assert stream.code == "ledger"
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


def test_what_samples_cost() -> None:
    one = Fraction(1)
    kaleido = gazeveil.mechanism(KALEIDO).promise(100.0, Sphere())  # type: ignore[attr-defined]
    assert [cost_of(kaleido, n, one)[1] for n in (1, 20, 21, 40)] == [
        Fraction(1, 2),
        Fraction(1, 2),
        1,
        1,
    ]
    assert [cost_of(kaleido, 20, Fraction(r))[1] for r in ("1/1000", "2", "2.001", "7")] == [
        Fraction(1, 2),
        Fraction(1, 2),
        1,
        2,
    ], "in steps of its own r"
    gaussian = gazeveil.mechanism("gaussian:sigma_deg=2").promise(100.0, Sphere())
    assert cost_of(gaussian, 120, one) == ("rho", 2 * gaussian.numbers["rho"])
    assert float(cost_of(gaussian, 120, 3 * one)[1]) == pytest.approx(
        9 * float(cost_of(gaussian, 120, one)[1]), rel=0.01
    )
    published = gazeveil.mechanism("kaleido:epsilon=1,w=20,r_deg=2,reading=published").promise(
        100.0, Sphere()
    )  # type: ignore[attr-defined]
    assert published.status != "proved"
    assert cost_of(published, 7, one) == ("samples", 7)
    from gazeveil.privacy.guarantee import Change, Guarantee, Loss
    from gazeveil.privacy.promise.privacy_map import UnitMap

    with pytest.raises(Denied):
        cost_of(
            Guarantee(
                "epsilon-dp", UnitMap.of("user", Loss.pure(1)), Change.person(), mechanism="m"
            ),
            5,
            one,
        )


def test_the_thread_of_the_ledger_ends_with_the_gatekeeper() -> None:
    before = threading.active_count()
    for _ in range(5):
        k = keeper("a")
        k.app("a").open_private_stream(KALEIDO, Taken())
        k.push(*looks([(102, 82)], each_s=0.8))
        k.close()
    assert threading.active_count() <= before


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


def push_still(k: Any, first: int, count: int) -> None:
    k.push(
        np.arange(first, first + count) * 10_000_000, np.full(count, 100.0), np.full(count, 80.0)
    )


def test_who_comes_after_the_next_lease_was_asked_for_pays_when_it_begins() -> None:
    ledger = Faulty()
    k = keeper("a", "b", ledger=ledger)
    got = Taken()
    k.app("a").open_private_stream(KALEIDO, Taken())
    push_still(k, 0, 12)  # more than half of the lease: the next one is asked for, for a alone
    k.app("b").open_private_stream(KALEIDO, got)
    push_still(k, 12, 9)
    assert len(got) == 9
    assert ledger.total("app:b") == 1, "eight samples of the first lease, one of the second"
    k.close()


def test_a_finer_view_that_comes_late_is_charged_to_the_device_in_this_lease_and_the_next() -> None:
    ledger = Faulty()
    k = keeper("a", "c", ledger=ledger)
    k.app("a").open_private_stream("gaussian:sigma_deg=5", Taken())
    coarse = ledger.total("device", "rho")
    push_still(
        k, 0, 60
    )  # a lease is 100 samples; the next one is asked for at the price of the coarse view
    k.app("c").open_private_stream("gaussian:sigma_deg=1", Taken())
    fine = ledger.total("app:c", "rho")
    assert fine > 20 * coarse
    time.sleep(0.05)
    assert ledger.total("device", "rho") in (fine, fine + coarse), "the current lease was topped up"
    push_still(k, 60, 45)
    assert ledger.total("device", "rho") == 2 * fine
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


class Books:
    """Keeps, beside the ledger, what apps really got: for every sample the dearest view that left,
    and each app's own.
    """

    def __init__(self) -> None:
        self.device: dict[tuple[str, int], Fraction] = {}
        self.apps: dict[tuple[str, str, int], Fraction] = {}

    def taker(self, app: str, family: str, each: Fraction) -> Any:
        def take(t_ns: np.ndarray, x_deg: np.ndarray, y_deg: np.ndarray, valid: np.ndarray) -> None:
            for t in t_ns.tolist():
                self.device[family, t] = max(each, self.device.get((family, t), Fraction(0)))
                self.apps[app, family, t] = max(each, self.apps.get((app, family, t), Fraction(0)))

        return take

    def check(self, ledger: Faulty, names: str) -> None:
        for currency in ("epsilon", "rho"):
            families = {f for f, _ in self.device if (f == "gaussian") == (currency == "rho")}
            assert sum(
                (v for (f, _), v in self.device.items() if f in families), Fraction(0)
            ) <= ledger.total("device", currency)
            for name in names:
                got = sum(
                    (v for (a, f, _), v in self.apps.items() if a == name and f in families),
                    Fraction(0),
                )
                assert got <= ledger.total(f"app:{name}", currency)


def opened(k: Any, books: Books, app: str, text: str) -> Any:
    """A stream whose samples are counted at the price its guarantee states."""
    family = "gaussian" if text.startswith("gaussian") else text
    early: list[tuple[np.ndarray, ...]] = []
    takers: list[Any] = []

    def take(*block: np.ndarray) -> None:  # may be called before the price is known
        early.append(block)
        while takers and early:
            takers[0](*early.pop())

    stream = k.app(app).open_private_stream(text, take)
    numbers = stream.guarantee.numbers
    takers.append(
        books.taker(
            app,
            family,
            numbers["rho"] if "rho" in numbers else numbers["epsilon"] / numbers["w_samples"],
        )
    )
    return stream


TEXTS = (
    KALEIDO,
    "kaleido:epsilon=1,w=30,r_deg=2",
    "gaussian:sigma_deg=1",
    "gaussian:sigma_deg=2",
    "gaussian:sigma_deg=5",
    "gaussian:sigma_deg=8",
)


@pytest.mark.parametrize("seed", range(6))
def test_whoever_comes_and_goes_in_whatever_order_every_sample_is_paid_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fails = set(rng.integers(5, 200, 4).tolist()) if seed % 2 else ()
    ledger = Faulty(fails)  # type: ignore[arg-type]
    k = keeper(
        *"abc",
        ledger=ledger,
        grants={"streams": 6, "budgets": {"epsilon": Fraction(12), "rho": Fraction(3000)}},
    )
    books, streams, t = Books(), [], 0
    for _ in range(150):
        move = rng.random()
        if move < 0.35:
            try:
                streams.append(
                    opened(k, books, "abc"[rng.integers(3)], TEXTS[rng.integers(len(TEXTS))])
                )
            except (Denied, LedgerError):
                continue
        elif move < 0.55 and streams:
            streams.pop(rng.integers(len(streams))).close()
        else:
            n = int(rng.integers(1, 40))
            k.push(np.arange(t, t + n) * 10_000_000, np.full(n, 100.0), np.full(n, 80.0))
            t += n
    k.close()
    assert len(books.device) > 200
    books.check(ledger, "abc")


def test_every_sample_is_paid_for_when_apps_come_and_go_on_threads_of_their_own() -> None:
    ledger = Faulty()
    k = keeper(
        *"abc",
        ledger=ledger,
        grants={"streams": 6, "budgets": {"epsilon": Fraction(10**6), "rho": Fraction(10**9)}},
    )
    books, done, broken = Books(), threading.Event(), []

    def come_and_go(app: str) -> None:
        rng = np.random.default_rng(ord(app))
        try:
            while not done.is_set():
                try:
                    stream = opened(k, books, app, TEXTS[rng.integers(len(TEXTS))])
                except Denied as no:
                    if no.code != "rate":  # another app has the family with other parameters
                        raise
                    continue
                time.sleep(0.005 * rng.random())
                stream.close()
        except Exception as error:
            broken.append(error)

    threads = [threading.Thread(target=come_and_go, args=(app,)) for app in "abc"]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 1.5
    t = 0
    while time.monotonic() < end:
        k.push(t * 10_000_000, 100.0, 80.0)
        t += 1
    done.set()
    for thread in threads:
        thread.join(20)
    k.close()
    assert broken == []
    books.check(ledger, "abc")


def test_a_budget_of_a_session_is_whole_again_with_new_consent_and_never_otherwise() -> None:
    ledger = Ledger.open("sqlite://")
    one_lease: dict[str, Any] = {"budgets": {"epsilon": Fraction(1, 2)}, "per": "session"}
    here = keeper("shop", ledger=ledger, grants=one_lease)

    def lasts() -> int:
        """How many samples an app gets before its budget is used up."""
        taken = Taken()
        try:
            here.app("shop").open_private_stream(KALEIDO, taken)
        except Denied as no:
            if no.code != "budget":
                raise
            return 0
        here.push(*looks([(180.0, 90.0)] * 3))
        return len(taken)

    assert lasts() == 20
    assert lasts() == 0
    here.consent(True)  # it was on already
    assert lasts() == 0
    here.consent(False)
    here.consent(True)
    assert lasts() == 20
    assert lasts() == 0
    here.close()
    here = keeper("shop", ledger=ledger, grants=one_lease)
    assert lasts() == 0
