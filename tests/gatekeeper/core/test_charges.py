"""What apps could once do to the accounts of streams and to the noise they share, done again:
choose the change they are charged for, be refused until others no longer share noise, and read off
their own answers what other apps spend.
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil.gatekeeper import Denied, DeviceLimits, Gatekeeper, Grant, Ledger, Policy
from gazeveil.gatekeeper.policy.grant import CURRENCIES
from gazeveil.gatekeeper.streams.billing import NOT_NOW, charged_change, cost_of, lease_samples
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.privacy import registry
from tests.support.stream_apps import Taken

MORE = ("r_deg=0.001", "r_deg=100", "w=1", "w=100000", "r_deg=1/1000,w=1")
SIGMAS = ("1/10", "0.4", "1e-6", "1", "2", "2.00001", "2.01", "3", "500")
GAUSSIANS = tuple(f"gaussian:sigma_deg={sigma}" for sigma in SIGMAS)
WINDOWS = tuple(f"kaleido-uniform:epsilon=1,w={w},r_deg=2" for w in (30, 60, 120, 240))
RADII = tuple(f"kaleido-uniform:epsilon=1,w=60,r_deg={r}" for r in ("1/4", "0.001"))
MECHANISMS = (
    *(f"gaussian:sigma_deg=2,{more}" for more in MORE),
    *(*GAUSSIANS, *WINDOWS, *RADII),
    "kaleido-uniform:epsilon=2,w=60,r_deg=2",
    "kaleido:epsilon=1,w=60,r_deg=2",
)

#: No limit of the device that these tests come near to.
ROOMY = DeviceLimits(epsilon=Fraction(10**9), rho=Fraction(10**12))


def rich(**changes: Any) -> Grant:
    budgets = dict.fromkeys(CURRENCIES, Fraction(10**9))
    given = {"scopes": frozenset({"samples", "tile"}), "budgets": budgets, "streams": 50}
    return Grant(**{**given, "mechanisms": MECHANISMS, **changes})  # type: ignore[arg-type]


def device(
    *apps: str, limits: DeviceLimits | None = None, **options: Any
) -> tuple[Gatekeeper, Ledger]:
    ledger = Ledger.open("sqlite://")
    policy = Policy({app: rich() for app in apps}, limits or ROOMY, consent=True)
    return (
        Gatekeeper(
            policy, ledger, **{"rate_hz": 100.0, "seed": 1, "clock_ns": lambda: 10**18, **options}
        ),
        ledger,
    )


def spent(ledger: Ledger, account: str, currency: str = "rho") -> Fraction:
    return ledger.spent(account, currency, 10**18)


def nothing(*block: np.ndarray) -> None:
    """Takes samples and forgets them."""


def rest(k: Gatekeeper, first: int, count: int) -> None:
    """Gaze that stays in the middle."""
    k.push(
        np.arange(first, first + count) * 10_000_000, np.full(count, 180.0), np.full(count, 90.0)
    )


def coalition(*errors: np.ndarray) -> float:
    """What is left of the noise if apps put their streams together as well as can be."""
    together = np.stack(errors)
    weights = np.linalg.pinv(np.cov(together)) @ np.ones(len(errors))
    return float(np.std(weights / weights.sum() @ together))


# --- the change that is charged for
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", MORE)
def test_an_app_does_not_choose_what_it_is_charged_for(more: str) -> None:
    k, ledger = device("plain", "sly")
    k.app("plain").open_private_stream("gaussian:sigma_deg=2", nothing)
    stream = k.app("sly").open_private_stream(f"gaussian:sigma_deg=2,{more}", nothing)
    rest(k, 1000, 1000)
    k.close()
    assert spent(ledger, "app:sly") == spent(ledger, "app:plain") > 3
    assert stream.guarantee.numbers["r_deg"] == 1, "the promise is said for what it is charged for"
    assert spent(ledger, "device") == spent(ledger, "app:plain"), "one noise, paid for once"


def test_a_small_r_of_kaleido_costs_as_many_steps_as_it_takes_to_the_devices() -> None:
    k, ledger = device("a", "b", "c")
    for app, r in (("a", "2"), ("b", "1/4"), ("c", "0.001")):
        k.app(app).open_private_stream(f"kaleido-uniform:epsilon=1,w=60,r_deg={r}", nothing).close()
    k.close()
    assert [spent(ledger, f"app:{app}", "epsilon") for app in "abc"] == [1, 4, 1000]


def test_the_policy_says_how_far_and_its_change_counts_from_the_next_leases_on() -> None:
    k, ledger = device("a", limits=replace(ROOMY, r_deg=Fraction(2)))
    stream = k.app("a").open_private_stream("gaussian:sigma_deg=2,r_deg=100", nothing)
    two = spent(ledger, "app:a")
    assert stream.guarantee.numbers["r_deg"] == 2
    k.set_policy(replace(k.policy, device=replace(ROOMY, r_deg=Fraction(4))))
    rest(k, 0, 101)
    k.close()
    four = spent(ledger, "app:a") - two
    assert float(four) == pytest.approx(4 * float(two), rel=0.01)
    assert Policy.parse(k.policy.text()).device.r_deg == 4


@pytest.mark.parametrize("space", [Sphere(), Screen(1.0, 0.6, 1920, 1080, 0.6)])
@pytest.mark.parametrize("text", ["gaussian:sigma_deg=2", MECHANISMS[-1], *RADII])
def test_leases_cost_together_no_less_than_all_their_samples_at_once(text: str, space: Any) -> None:
    """So the sum of an account bounds what is lost if all samples of the period had been elsewhere
    by the device's r.
    """
    mechanism: Any = registry.mechanism(text)
    promise = mechanism.promise(100.0, space)
    lease = lease_samples(promise, 100.0)
    for leases in (1, 2, 7):
        at_once = promise.map(charged_change(leases * lease, Fraction(1))).amount
        assert leases * cost_of(promise, lease, Fraction(1))[1] >= at_once > 0


# --- one noise
# --------------------------------------------------------------------------------------------------


def test_requests_that_are_refused_do_not_part_the_noise_of_others() -> None:
    """Refused requests once filled the levels, and the next app got noise of its own: a coalition
    of two was left with 1.42 degrees instead of 2.
    """
    k, ledger = device("a", "b")
    k.grant("poor", rich(budgets=dict.fromkeys(CURRENCIES, Fraction(1, 10**6))))
    for text in (*GAUSSIANS[4:], *WINDOWS):
        with pytest.raises(Denied) as no:
            k.app("poor").open_private_stream(text, nothing)
        assert no.value.code == "budget"
    pool: Any = k._state.pool
    assert (pool._streams, pool._subscribers, pool._reserved) == ({}, {}, []), "nothing is left"
    got = {name: Taken() for name in "ab"}
    k.app("a").open_private_stream("gaussian:sigma_deg=2", got["a"])
    with pytest.raises(Denied):
        k.app("poor").open_private_stream("gaussian:sigma_deg=3", nothing)
    assert list(pool._streams["gaussian"]._graded.levels) == [2]
    k.app("b").open_private_stream("gaussian:sigma_deg=2.01", got["b"])
    rest(k, 0, 4000)
    k.close()
    a, b = got["a"].column(1), got["b"].column(1)
    assert coalition(a, b) > 1.9, "independent noise would leave 1.42"
    assert np.corrcoef(a, b)[0, 1] > 0.99
    assert spent(ledger, "device") == spent(ledger, "app:a"), "the coarser view cost nothing more"
    assert spent(ledger, "app:poor") == 0


def test_a_finer_view_that_comes_later_shares_the_noise_from_then_on() -> None:
    k, _ = device("a", "b")
    three, two = Taken(), Taken()
    k.app("a").open_private_stream("gaussian:sigma_deg=3", three)
    rest(k, 0, 600)  # in the middle of a block of noise
    k.app("b").open_private_stream("gaussian:sigma_deg=2", two)
    rest(k, 600, 3000)
    k.close()
    fine, coarse = two.column(1), three.column(1)
    assert np.std(fine) == pytest.approx(2, rel=0.1)
    assert np.var(coarse[600:] - fine) == pytest.approx(5, rel=0.25)
    assert coalition(fine, coarse[600:]) > 1.85
    assert abs(np.corrcoef(coarse[:600], coarse[600:1200])[0, 1]) < 0.15, "none comes twice"


def test_the_first_app_does_not_decide_which_noise_others_can_share() -> None:
    """A session on a grid for sigma = 500 once could not carry 0.4, nor one with 2 a second one
    with 2.00001.
    """
    k, _ = device("a", "b")
    streams = [
        k.app("ab"[i % 2]).open_private_stream(f"gaussian:sigma_deg={sigma}", nothing)
        for i, sigma in enumerate(("500", "0.4", "2", "2.00001", "1e-6"))
    ]
    assert len(k._state.pool._streams) == 1
    finest = [re.findall(r"finest view (\S+) degrees", str(s.guarantee))[0] for s in streams]
    assert finest == ["500", "0.40625", "2", "2.01562", "0.015625"], "rounded up, never down"
    rest(k, 0, 10)
    k.close()


def test_other_streams_never_drive_the_one_noise_out() -> None:
    k, _ = device("a", "b")
    k.app("a").open_private_stream("gaussian:sigma_deg=2", nothing).close()
    shared_streams: Any = k._state.pool._streams
    graded = next(iter(shared_streams.values()))
    for text in (*WINDOWS, WINDOWS[0]):
        k.app("b").open_private_stream(text, nothing).close()
    assert len(shared_streams) == 2, "one of each family is kept"
    k.app("b").open_private_stream("gaussian:sigma_deg=3", nothing)
    assert [shared for shared in shared_streams.values() if shared.subscribers] == [graded]
    k.close()


def test_apps_that_come_at_the_same_moment_share_one_noise() -> None:
    """Each finds no shared stream yet; only the first to pay brings one."""
    names = [f"app{i}" for i in range(12)]
    k, _ = device(*names)
    got = [Taken() for _ in names]
    start = threading.Barrier(len(names))

    def come(i: int) -> None:
        start.wait()
        k.app(names[i]).open_private_stream(
            ("gaussian:sigma_deg=2", "kaleido-uniform:epsilon=1,w=60,r_deg=2")[i % 2], got[i]
        )

    threads = [threading.Thread(target=come, args=(i,)) for i in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rest(k, 0, 50)
    assert len(k._state.pool._streams) == 2
    k.close()
    for one in got[2:]:
        assert any(np.array_equal(one.column(1), first.column(1)) for first in got[:2])


# --- what an app sees of other apps' spending
# --------------------------------------------------------------------------------------------------


def reasons(epsilon: int, rho: int, others: int) -> list[tuple[str, str]]:
    """Everything an app is told by a device whose limits other apps have nearly used up."""
    k, _ = device("busy", "b", limits=DeviceLimits(epsilon=Fraction(epsilon), rho=Fraction(rho)))
    for _ in range(others):
        k.app("busy").open_private_stream(WINDOWS[0], nothing).close()
        k.app("busy").open_private_stream(WINDOWS[1], nothing).close()
        k.app("busy").open_private_stream("gaussian:sigma_deg=2", nothing)
    told = []
    for text in ("kaleido-uniform:epsilon=2,w=60,r_deg=2", "gaussian:sigma_deg=1/10"):
        with pytest.raises(Denied) as no:
            k.app("b").open_private_stream(text, nothing)
        told.append((no.value.code, no.value.reason))
    k.close()
    return told


def test_a_refusal_for_the_devices_sake_says_neither_what_is_left_nor_what_there_was() -> None:
    one, other = reasons(3, 14, 1), reasons(9, 40, 4)
    assert one == other == [("budget", NOT_NOW)] * 2
    assert not re.search(r"\d", NOT_NOW)


@pytest.mark.parametrize("name", ["device", "Aunt May's headset"])
def test_who_has_no_budget_left_is_told_of_that_and_not_of_the_device(name: str) -> None:
    k, _ = device("busy", limits=DeviceLimits(rho=Fraction(13)), device=name)
    k.app("busy").open_private_stream("gaussian:sigma_deg=2", nothing)
    k.grant("poor", rich(budgets={"rho": Fraction(1)}))
    with pytest.raises(
        Denied, match=r"1 rho of 1 is left today, and this costs about 50\.14"
    ) as no:
        k.app("poor").open_private_stream("gaussian:sigma_deg=1", nothing)
    assert "13" not in no.value.reason
    k.close()
