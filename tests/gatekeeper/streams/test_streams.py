"""Shared protected streams: the same bytes for all, paid for before they leave, ended with the
reason.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.gatekeeper import Denied, LedgerError, Policy
from gazeveil.gatekeeper.streams.billing import STALL_S, Billing
from tests.support.stalls import SteadyClock
from tests.support.stream_apps import KALEIDO, Faulty, Taken, one_by_one, push_still
from tests.support.wearers import Trace, keeper, looks


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


# --- Charges of shared streams: leases, a slow or silent ledger, and every sample paid for
# whoever comes and goes.
# --------------------------------------------------------------------------------------------------


TEXTS = (
    KALEIDO,
    "kaleido:epsilon=1,w=30,r_deg=2",
    "gaussian:sigma_deg=1",
    "gaussian:sigma_deg=2",
    "gaussian:sigma_deg=5",
    "gaussian:sigma_deg=8",
)


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


def test_a_slow_disk_does_not_stall_the_tracker_before_half_a_lease_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import gazeveil.gatekeeper.streams.shared as streams

    # A machine that stands still for a second must not end the stream: it is not what is tested.
    monkeypatch.setattr(streams, "PATIENCE_S", 60.0)
    ledger = Faulty(slow_s=1.0)
    text = "kaleido:epsilon=1/2,w=100,r_deg=2"
    k = keeper("a", ledger=ledger, grants={"mechanisms": (text,)})
    got = Taken()
    k.app("a").open_private_stream(text, got)
    longest = 0.0
    with SteadyClock() as clock:
        for i in range(140):
            begin = clock()
            k.push(i * 10_000_000, 100.0, 80.0)
            if i not in (0, 100):
                longest = max(longest, clock() - begin)
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
    go_on, charge = threading.Event(), ledger.charge

    def never(*given: Any) -> Any:
        go_on.wait(120)
        return charge(*given)

    monkeypatch.setattr(ledger, "charge", never)
    k.push(*looks([(102, 82)], each_s=0.8))
    assert (len(got), stream.code) == (20, "ledger")
    go_on.set()
    k.close()


def test_time_in_which_the_machine_stood_still_is_not_the_ledgers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    billing = Billing(Faulty(), time.time_ns, "d1", "s1", None, Policy)  # type: ignore[arg-type]
    looks_taken = 0

    def stands_still_once(asked: list[Future[int]], timeout: float) -> None:
        nonlocal looks_taken
        looks_taken += 1
        time.sleep(timeout if looks_taken > 1 else STALL_S + 1.0)
        if looks_taken == 3:
            asked[0].set_result(7)

    monkeypatch.setattr("gazeveil.gatekeeper.streams.billing.wait", stands_still_once)
    assert billing.wait(Future(), lambda: True, 0.5) == 7
    looks_taken = 4
    with pytest.raises(LedgerError, match="in time"):
        billing.wait(Future(), lambda: True, 0.05)


def test_a_finer_view_that_comes_late_is_charged_to_the_device_in_this_lease_and_the_next() -> None:
    ledger = Faulty()
    k = keeper("a", "c", ledger=ledger, grants={"mechanisms": TEXTS})
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


def test_every_sample_is_paid_for_when_apps_come_and_go_on_threads_of_their_own() -> None:
    ledger = Faulty()
    k = keeper(
        *"abc",
        ledger=ledger,
        grants={
            "mechanisms": TEXTS,
            "streams": 6,
            "budgets": {"epsilon": Fraction(10**6), "rho": Fraction(10**9)},
        },
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
        thread.join(60)
    k.close()
    assert broken == []
    books.check(ledger, "abc")
