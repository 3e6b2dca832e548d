"""An app, or several together, after the raw gaze behind protected streams: copies of samples,
fresh noise by other parameters, many sockets at once.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import FormatError, ParameterError
from gazeveil.gatekeeper import (
    PRESETS,
    Denied,
    DeviceLimits,
    Gatekeeper,
    Grant,
    Ledger,
    MechanismRule,
    Policy,
)
from gazeveil.gatekeeper.policy.families import COPIES, FAMILIES, PUBLIC
from gazeveil.gatekeeper.policy.grant import APP_LIMITS, CURRENCIES, DEVICE_LIMITS
from gazeveil.gatekeeper.policy.rules import judge
from gazeveil.gatekeeper.streams.billing import cost_of, lease_samples
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy import registry
from tests.support.gatekeeper_running import ALL as GRANT
from tests.support.gatekeeper_running import running
from tests.support.places import ROOT

RATE_HZ = 100.0
ANY: tuple[str, None] = ("any", None)
NOW_NS = 1_800_000_000 * 10**9


class Taken:
    """What an app got, by the time of each sample."""

    def __init__(self) -> None:
        self.at: dict[int, tuple[float, float]] = {}

    def __call__(
        self, t_ns: np.ndarray, x_deg: np.ndarray, y_deg: np.ndarray, valid: np.ndarray
    ) -> None:
        self.at.update(
            (int(t), (float(x), float(y)))
            for t, x, y, ok in zip(t_ns, x_deg, y_deg, valid, strict=True)
            if ok
        )

    @property
    def x(self) -> np.ndarray:
        return np.array([x for x, _ in self.at.values()])


def device(grants: dict[str, Grant], **options: Any) -> tuple[Gatekeeper, Ledger]:
    ledger = Ledger.open("sqlite://")
    policy = Policy(grants, options.pop("limits", DeviceLimits()), consent=True)
    return (
        Gatekeeper(
            policy, ledger, **{"rate_hz": RATE_HZ, "seed": 3, "clock_ns": lambda: NOW_NS, **options}
        ),
        ledger,
    )


def granted(*rules: MechanismRule, **changes: Any) -> Grant:
    budgets = {"epsilon": Fraction(10**6), "rho": Fraction(10**6), "samples": Fraction(10**9)}
    return Grant(
        **{
            "scopes": frozenset({"samples", "tile"}),
            "mechanisms": rules,
            "budgets": budgets,
            "streams": 20,
            "calls_per_minute": 10**6,
            **changes,
        }
    )


def rest(k: Gatekeeper, first: int, count: int, x_deg: Any = 180.0) -> None:
    k.push(
        np.arange(first, first + count) * 10_000_000,
        np.broadcast_to(np.asarray(x_deg, dtype=np.float64), count).copy(),
        np.full(count, 90.0),
    )


# --- copies of samples
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PRESETS))
def test_no_preset_gives_a_sample_of_raw_gaze_however_phases_are_put_together(name: str) -> None:
    """`study` once gave `temporal:K=2` and, a sample later, the same with `hold`: both phases,
    1,000 of 1,000 samples bit for bit.
    """
    k, _ = device({"study": PRESETS[name].grant(streams=20, calls_per_minute=10**6)})
    rng = np.random.default_rng(1)
    x = 180.0 + rng.normal(0, 3, 1200)
    taken: list[Taken] = []
    first = 0
    texts = [
        f"{copy}:{more}"
        for copy, more in zip(COPIES, ("K=2", "L=2", "first=1,second=1", ""), strict=True)
    ]
    weakest = [
        f"{r.name}:"
        + ",".join(f"{p}={v}" for p, (sign, v) in r.parameters.items() if sign != "any")
        for r in PRESETS[name].mechanisms
    ]
    for text in (*texts, "temporal:K=2,hold=True", "chain:stages=temporal(K=2)", *weakest):
        got = Taken()
        try:
            k.app("study").open_private_stream(text, got)
        except Denied:
            continue
        taken.append(got)
        rest(k, first, 1, x[first])
        first += 1
    rest(k, first, 1200 - first, x[first:])
    k.close()
    assert taken or not PRESETS[name].mechanisms, "the attack must have something to put together"
    raw = sum(
        any(got.at.get(10_000_000 * i, (None,))[0] == x[i] for got in taken) for i in range(1200)
    )
    assert raw <= 3, "noise of nought comes now and then"


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("unproved", [True, False])
def test_a_mechanism_that_copies_samples_cannot_be_granted_alone(name: str, unproved: bool) -> None:
    needs = {"temporal": {"K": ANY}, "spatial": {"L": ANY}}.get(name, {})
    with pytest.raises(
        ParameterError,
        match=rf"{name} adds no noise.*chain:stages=gaussian\(sigma_deg=3\)\+temporal",
    ) as no:
        MechanismRule(name, needs, unproved)
    chain = str(no.value).split("chain:stages=")[1].rstrip(".")
    assert MechanismRule("chain", {"stages": ("=", chain)}), (
        "the chain that the sentence gives can be granted"
    )


def test_a_policy_file_from_before_with_copies_in_it_does_not_load_and_says_what_to_write(
    tmp_path: Path,
) -> None:
    file = tmp_path / "policy.toml"
    rule = (
        '[[apps.study.mechanisms]]\nname = "temporal"\nparameters = { K = ">= 2", hold = "any"'
        " }\nunproved = true\n"
    )
    file.write_text('consent = true\n[apps.study]\nscopes = ["samples"]\n' + rule)
    with pytest.raises(
        FormatError,
        match=(
            r"policy\.toml.*temporal adds no noise, so it would copy gaze. Put noise before it:"
            r" chain:stages="
        ),
    ):
        Policy.load(file)


def test_a_device_refuses_copies_for_its_own_tile_too() -> None:
    with pytest.raises(Denied, match="adds no noise"):
        device({}, tile_stream="temporal:K=2")


def test_every_stream_mechanism_either_copies_or_has_a_family() -> None:
    streams = {name for name in registry.mechanisms() if registry.get(name).kind == "stream"} - {
        "chain"
    }
    known = set(COPIES) | set(FAMILIES)
    assert streams <= known
    assert not set(COPIES) & set(FAMILIES)
    assert set(PUBLIC) == set(FAMILIES)


CHAIN, HELD = (
    "chain:stages=gaussian(sigma_deg=2)+temporal(K=4)",
    "chain:stages=gaussian(sigma_deg=2)+temporal(K=4;hold=True)",
)


def test_thinned_out_noise_is_the_noise_that_all_share_with_one_phase() -> None:
    rules = [MechanismRule("gaussian", {"sigma_deg": ANY})]
    rules += [
        MechanismRule("chain", {"stages": ("=", text.split("=", 1)[1])}) for text in (CHAIN, HELD)
    ]
    k, ledger = device({name: granted(*rules) for name in "abc"})
    got = {text: Taken() for text in (CHAIN, HELD, "gaussian:sigma_deg=2", "late")}
    thin = k.app("a").open_private_stream(CHAIN, got[CHAIN])
    assert thin.rate_hz == 25.0
    assert thin.guarantee.definition == "rho-zcdp"
    quarter = ledger.spent("device", "rho", NOW_NS)
    rest(k, 0, 5)
    held = k.app("b").open_private_stream(HELD, got[HELD])
    assert held.rate_hz == 100.0
    assert ledger.spent("app:b", "rho", NOW_NS) == ledger.spent("app:a", "rho", NOW_NS) == quarter
    assert ledger.spent("device", "rho", NOW_NS) == quarter, "one place in four, the same for both"
    rest(k, 5, 1)
    k.app("a").open_private_stream(CHAIN, got["late"])
    k.app("c").open_private_stream("gaussian:sigma_deg=2", got["gaussian:sigma_deg=2"])
    rest(k, 6, 394)
    k.close()
    every = got["gaussian:sigma_deg=2"].at
    assert sorted(got[CHAIN].at) == [40_000_000 * i for i in range(100)], (
        "samples 0, 4, 8 ... whenever it was opened"
    )
    assert set(got["late"].at.items()) <= set(got[CHAIN].at.items()), "one phase for all"
    assert len(got["late"].at) == 98
    for t, place in got[CHAIN].at.items():
        assert t not in every or every[t] == place, "the same noise"
    for t, place in got[HELD].at.items():
        assert got[CHAIN].at[t // 40_000_000 * 40_000_000] == place
    assert min(got[HELD].at) == 80_000_000, "nothing from before it was paid for"
    assert len(k._state.pool._streams) == 1


# --- fresh noise
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("gaussian", "sigma_deg"), ("kaleido-uniform", "r_deg"), ("clock-render", "r_deg")],
)
def test_parameters_a_hair_apart_do_not_give_fresh_noise(name: str, parameter: str) -> None:
    """sigma = 2, 2.0001, 2.0002 ... were independent releases of one gaze: ten of them left a third
    of the error.
    """
    needs = {
        p: ("=", {"epsilon": 1, "w": 60}[p])
        for p in ("epsilon", "w")
        if p in PUBLIC[name] and "sigma_deg" not in PUBLIC[name]
    }
    rules = (MechanismRule(name, {**needs, parameter: (">=", 2)}),)
    fixed = "".join(f"{p}={v}," for p, (_, v) in needs.items())
    k, _ = device({name: granted(*rules) for name in "ab"})
    k.app("a").open_private_stream(f"{name}:{fixed}{parameter}=2", Taken())
    for i in range(1, 10):
        with pytest.raises(
            Denied,
            match=(
                f"The parameter '{parameter}' of {name} must be one of 2, .*a public list;"
                f" {2 + i / 10_000:g} was asked for."
            ),
        ) as no:
            k.app("ab"[i % 2]).open_private_stream(
                f"{name}:{fixed}{parameter}={2 + i / 10_000}", Taken()
            )
        assert no.value.code == "parameter"
    k.close()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gaussian:sigma_deg=2", "gaussian:sigma_deg=2,reading=published"),
        ("gaussian:sigma_deg=2,reading=published", "gaussian:sigma_deg=2"),
        ("gaussian:sigma_deg=2,reading=published", "gaussian:sigma_deg=3,reading=published"),
        ("kaleido:epsilon=1,w=60,r_deg=2", "kaleido-uniform:epsilon=1,w=60,r_deg=2"),
        ("kaleido-uniform:epsilon=1,w=60,r_deg=2", "kaleido-uniform:epsilon=2,w=60,r_deg=2"),
        (
            "kaleido-uniform:epsilon=1,w=60,r_deg=2",
            "chain:stages=kaleido(epsilon=1;w=60;r_deg=2)+temporal(K=2)",
        ),
        ("clock-render:epsilon=1,r_deg=2", "clock-render:epsilon=1,r_deg=5"),
    ],
)
def test_a_family_has_one_session_at_a_time_and_the_refusal_names_it(
    first: str, second: str
) -> None:
    three = {"epsilon": ANY, "w": ANY, "r_deg": ANY}
    rules = (
        MechanismRule("gaussian", {"sigma_deg": ANY, "reading": ANY}, unproved=True),
        *(MechanismRule(name, three) for name in ("kaleido", "kaleido-uniform")),
        MechanismRule("clock-render", {"epsilon": ANY, "r_deg": ANY}),
        MechanismRule("chain", {"stages": ("=", "kaleido(epsilon=1;w=60;r_deg=2)+temporal(K=2)")}),
    )
    k, ledger = device({name: granted(*rules) for name in "ab"})
    before = k.app("a").open_private_stream(first, Taken())
    with pytest.raises(Denied, match=f"at a time, now {first.split(':')[0]}") as no:
        k.app("b").open_private_stream(second, Taken())
    assert no.value.code == "rate"
    assert all(ledger.spent("app:b", currency, NOW_NS) == 0 for currency in CURRENCIES)
    k.app("b").open_private_stream(first, Taken()).close()
    before.close()
    k.app("b").open_private_stream(second, Taken())
    k.close()


def test_the_stream_of_the_tile_counts_as_a_session_of_its_family() -> None:
    rule = MechanismRule("kaleido-uniform", {"epsilon": ANY, "w": ANY, "r_deg": ANY})
    k, _ = device(
        {name: granted(rule) for name in "ab"}, tile_stream="kaleido-uniform:epsilon=1,w=60,r_deg=2"
    )
    k.app("a").current_tile()
    with pytest.raises(Denied, match="at a time, now kaleido-uniform:epsilon=1") as no:
        k.app("b").open_private_stream("kaleido-uniform:epsilon=2,w=60,r_deg=2", Taken())
    assert no.value.code == "rate"
    k.app("b").open_private_stream("kaleido-uniform:epsilon=1,w=60,r_deg=2", Taken())
    k.close()


def test_changing_to_other_parameters_and_back_is_never_cheaper_than_staying() -> None:
    rule = MechanismRule("kaleido-uniform", {"epsilon": ANY, "w": ANY, "r_deg": ANY})
    spent = {}
    for name, texts in (("stays", ("w=60", "w=60")), ("changes", ("w=60", "w=120"))):
        k, ledger = device({"a": granted(rule)})
        for i in range(12):
            stream = k.app("a").open_private_stream(
                f"kaleido-uniform:epsilon=1,{texts[i % 2]},r_deg=2", Taken()
            )
            rest(k, 20 * i, 20)
            stream.close()
        spent[name] = ledger.spent("device", "epsilon", NOW_NS)
        k.close()
    assert spent["stays"] in (4, 5), "240 samples in leases of 60, the next one asked for ahead"
    assert spent["changes"] == 12, "a lease for each of the sessions, which share nothing"


def test_an_app_does_not_choose_the_change_it_is_charged_for_in_any_preset() -> None:
    """`study` let an app write `r_deg` = 0.001 into its mechanism, and with it a price of 0.0014
    instead of 662 rho.
    """
    for preset in PRESETS.values():
        for rule in preset.mechanisms:
            if rule.name.startswith("gaussian"):
                assert (
                    judge(preset.mechanisms, f"{rule.name}:sigma_deg=12,r_deg=0.001").code
                    == "parameter"
                )
    k, ledger = device({"study": PRESETS["study"].grant()})
    k.app("study").open_private_stream("gaussian:sigma_deg=1", Taken())
    assert (
        ledger.spent("app:study", "rho", NOW_NS)
        == ledger.spent("device", "rho", NOW_NS)
        > RATE_HZ / 2
    ), "by the owner's r of one degree"
    k.close()


# --- limits and counts
# --------------------------------------------------------------------------------------------------


def test_every_currency_has_a_limit_for_every_app_and_the_device_where_nothing_is_written() -> None:
    k, ledger = device(
        {
            "a": Grant(),
            "b": granted(MechanismRule("gaussian", {"sigma_deg": ANY}), budgets={"rho": 5}),
        }
    )
    for currency in CURRENCIES:
        assert ledger.limit("device", currency) == DEVICE_LIMITS[currency] > 0
        assert ledger.limit("app:a", currency) == APP_LIMITS[currency]
        assert ledger.limit("app:b", currency) == (5 if currency == "rho" else APP_LIMITS[currency])
    k.close()


@pytest.mark.heavy
def test_what_proves_nothing_ends_at_the_default_limit() -> None:
    rule = MechanismRule(
        "gaussian", {"sigma_deg": ANY, "reading": ("=", "published")}, unproved=True
    )
    k, _ = device({"a": granted(rule, budgets={})})
    stream = k.app("a").open_private_stream("gaussian:sigma_deg=1,reading=published", Taken())
    for first in range(0, 500_000, 50_000):
        rest(k, first, 50_000)
    assert stream.code == "budget"
    assert "samples of 432000 is left" in str(stream.ended)
    k.close()


def test_the_page_says_the_default_limits_in_hours_of_use() -> None:
    page = (ROOT / "docs" / "howto" / "gatekeeper" / "running.md").read_text(encoding="utf-8")
    found = 0
    for currency in ("epsilon", "rho"):
        row = next(line for line in page.splitlines() if line.startswith(f"| `{currency}` |"))
        assert f"| {DEVICE_LIMITS[currency]} |" in row
        for hours, text in re.findall(r"([\d.]+) of `([^`]+)`", row):
            promise = registry.mechanism(text).promise(120.0, Sphere())
            lease = lease_samples(promise, 120.0)
            name, amount = cost_of(promise, lease, Fraction(1))
            assert name == currency
            assert float(hours) == pytest.approx(
                float(DEVICE_LIMITS[currency] / amount) * lease / 120 / 3600, abs=0.05
            )
            found += 1
    assert found == 5
    assert float(DEVICE_LIMITS["samples"]) == 2 * 3600 * 120
    assert float(APP_LIMITS["samples"]) == 3600 * 120


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """What so many threads got or were refused with that begin at the same moment."""
    start, found = threading.Barrier(count), []

    def run(i: int) -> None:
        start.wait()
        try:
            found.append(work(i))
        except Denied as no:
            found.append(no.code)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == count
    return found


def slow(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every charge take as long as a disk may, so that all who come at once are there before
    the first has paid.
    """
    charge = ledger.charge

    def later(*given: Any) -> Any:
        time.sleep(0.05)
        return charge(*given)

    monkeypatch.setattr(ledger, "charge", later)


@pytest.mark.parametrize("streams", [1, 3])
def test_twelve_threads_get_as_many_streams_as_are_allowed(
    streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, ledger = device(
        {"a": granted(MechanismRule("gaussian", {"sigma_deg": ANY}), streams=streams)}
    )
    slow(ledger, monkeypatch)
    found = at_once(12, lambda _: k.app("a").open_private_stream("gaussian:sigma_deg=2", Taken()))
    assert [f for f in found if isinstance(f, str)] == ["rate"] * (12 - streams)
    leases = ledger.spent("app:a", "rho", NOW_NS)
    assert not k._state.opening
    for stream in found:
        if not isinstance(stream, str):
            stream.close()  # type: ignore[attr-defined]
    k.app("a").open_private_stream("gaussian:sigma_deg=2", Taken())
    assert leases == streams * (ledger.spent("app:a", "rho", NOW_NS) - leases), (
        "who is refused pays nothing"
    )
    k.close()


def test_twelve_threads_with_other_parameters_get_one_session_of_a_family(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = MechanismRule("clock-render", {"epsilon": ANY, "r_deg": ANY})
    k, ledger = device({f"a{i}": granted(rule) for i in range(12)})
    slow(ledger, monkeypatch)
    radii_deg = (1, 2, 5, 10)
    found = at_once(
        12,
        lambda i: k.app(f"a{i}").open_private_stream(
            f"clock-render:epsilon=1,r_deg={radii_deg[i % 4]}", Taken()
        ),
    )
    opened = {f.mechanism for f in found if not isinstance(f, str)}  # type: ignore[attr-defined]
    assert len(opened) == 1
    assert {f for f in found if isinstance(f, str)} == {"rate"}
    assert len(k._state.pool.active) == 1
    assert not k._state.pool._reserved
    k.close()


def test_a_place_that_was_reserved_is_given_back_when_it_is_not_paid_for() -> None:
    k, _ = device(
        {
            "poor": granted(
                MechanismRule("clock-render", {"epsilon": ANY, "r_deg": ANY}),
                budgets={"epsilon": Fraction(1, 10**9)},
                streams=1,
            )
        }
    )
    k.grant("rich", granted(MechanismRule("clock-render", {"epsilon": ANY, "r_deg": ANY})))
    for _ in range(3):
        with pytest.raises(Denied) as no:
            k.app("poor").open_private_stream("clock-render:epsilon=1,r_deg=2", Taken())
        assert no.value.code == "budget"
    k.app("rich").open_private_stream("clock-render:epsilon=1,r_deg=5", Taken())
    k.close()


def test_twelve_sockets_at_once_get_one_stream_where_one_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(
        tmp_path / "home",
        requests_per_minute=1_000_000,
        commands_per_minute=100_000,
        connections_per_app=32,
    ) as here:
        token = here.app(grant={**GRANT, "streams": 1})
        assert here.service is not None
        slow(here.service.ledger, monkeypatch)
        answers = at_once(12, lambda _: _held(here, token, done))
        assert sorted(str(a) for a in answers) == ["rate"] * 11 + ["subscribed"]


done = threading.Barrier(12)


def _held(here: Any, token: str, together: threading.Barrier) -> str:
    """Subscribe, and keep the socket open until all others have their answer."""
    with here.talk(token) as talk:
        answer = talk.subscribe(what="samples", mechanism="gaussian:sigma_deg=5")
        together.wait(60)
        return str(answer.get("code", answer["type"]))
