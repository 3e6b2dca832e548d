"""Charges of shared streams: leases, a slow or silent ledger, and every sample paid for whoever
comes and goes.
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
from gazeveil.gatekeeper import Denied, Ledger, LedgerError
from gazeveil.gatekeeper.streams.billing import STALL_S, Billing, cost_of
from gazeveil.gaze.geometry import Sphere
from tests.support.stalls import SteadyClock
from tests.support.stream_apps import KALEIDO, Faulty, Taken, one_by_one, push_still
from tests.support.wearers import keeper, looks


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
    k = keeper("a", ledger=ledger)
    got = Taken()
    k.app("a").open_private_stream("kaleido:epsilon=1/2,w=100,r_deg=2", got)
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
    assert len(got) == 20
    assert stream.code == "ledger"
    go_on.set()
    k.close()


def test_time_in_which_the_machine_stood_still_is_not_the_ledgers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    billing = Billing(Faulty(), time.time_ns, "d1", "s1")
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
        thread.join(60)
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
