"""Several people on one device: nothing of one wearer's gaze, consent or budget reaches the next
one's apps.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.rules import MechanismRule
from gazeveil.gatekeeper.policy.wearers import Wearer
from tests.support.gatekeeper_running import ALL, Running, running

RATE_HZ = 120.0
NOISE = "gaussian:sigma_deg=5"

GRANT = Grant(
    frozenset({"areas", "fixations", "saccades", "events", "tile", "counter", "samples"}),
    (MechanismRule("gaussian", {"sigma_deg": (">=", "1")}),),
    calls_per_minute=100_000,
    streams=8,
    budgets={"epsilon": Fraction(1000), "rho": Fraction(1000)},
    per="ever",
)
FAMILY = Policy(
    {"shop": GRANT},
    consent=True,
    others={"anna": Wearer(True, {"shop": GRANT}), "ben": Wearer(False, {"shop": GRANT})},
)

#: What a Gatekeeper keeps when another person puts the device on. Everything else must be made
#: anew: a new attribute belongs here only if nothing of it comes of gaze.
OF_THE_DEVICE = {
    "lock",
    "ledger",
    "audit",
    "clock_ns",
    "device_name",
    "level",
    "space",
    "rate_hz",
    "grid",
    "tile_stream",
    "numbers",
    "closed",
    "_limits",
    "_seed",
    "opening",  # calls that are under way: each counts itself out
    "day_keys",  # by wearer
    "policy_lock",
    "taken",  # how often something was taken away, by whomever
    "uses",  # by grant, and every wearer has grants of their own
    "indicator",  # forgets the answers of the last wearer
}


class Wear:
    """A Gatekeeper whose clocks a test moves."""

    def __init__(self, ledger: Ledger, policy: Policy = FAMILY, **options: Any) -> None:
        self.now_ns, self.t_ns = 10**18, 0
        self.keeper = Gatekeeper(
            policy, ledger, rate_hz=RATE_HZ, clock_ns=lambda: self.now_ns, **options
        )

    def look(self, x_deg: float, y_deg: float, seconds: float = 1.0) -> None:
        count = round(seconds * RATE_HZ)
        t = self.t_ns + (1 + np.arange(count)) * round(1e9 / RATE_HZ)
        self.t_ns = int(t[-1])
        self.keeper.push(t, np.full(count, x_deg), np.full(count, y_deg))


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as one:
        yield one


@pytest.fixture
def wear(ledger: Ledger) -> Iterator[Wear]:
    one = Wear(ledger)
    with one.keeper:
        yield one


def test_of_several_people_none_is_taken_for_another_at_the_start(wear: Wear) -> None:
    assert wear.keeper.wearer is None
    with pytest.raises(Denied) as no:
        wear.keeper.app("shop").areas()
    assert no.value.code == "no-consent"


def test_a_device_with_one_wearer_needs_no_switch(ledger: Ledger) -> None:
    with Wear(ledger, Policy({"shop": GRANT}, consent=True)).keeper as keeper:
        assert keeper.wearer == "owner"
        assert keeper.app("shop").areas() == ()
        assert (keeper.account("shop"), keeper.device_account) == ("app:shop", "device"), (
            "old ledgers stay valid"
        )


@pytest.mark.parametrize("name", [None, "zoe"])
def test_an_unknown_wearer_has_no_consent_and_no_grant_and_nobody_can_give_them(
    wear: Wear, name: str | None
) -> None:
    wear.keeper.switch_wearer("owner")
    wear.keeper.switch_wearer(name)
    assert wear.keeper.policy.apps == {}
    for call in (
        lambda: wear.keeper.app("shop").areas(),
        lambda: wear.keeper.app("shop").open_private_stream(NOISE, lambda *_: None),
    ):
        with pytest.raises(Denied) as no:
            call()
        assert no.value.code == "no-consent"
    with pytest.raises(ParameterError, match="Nobody known wears the device"):
        wear.keeper.consent(True)
    with pytest.raises(ParameterError, match="Nobody known wears the device"):
        wear.keeper.grant("shop", GRANT)


def test_consent_and_grants_follow_the_wearer(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("ben")
    with pytest.raises(Denied, match="consent"):
        keeper.app("shop").areas()
    keeper.consent(True)
    keeper.app("shop").areas()
    keeper.revoke("shop")
    keeper.switch_wearer("anna")
    assert keeper.app("shop").areas() == (), "what ben took back, anna has not"
    keeper.consent(False)
    keeper.switch_wearer("owner")
    assert keeper.app("shop").areas() == ()
    keeper.switch_wearer("ben")
    with pytest.raises(Denied, match="revoked"):
        keeper.app("shop").areas()


def test_every_subscription_ends_with_the_code_wearer(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    shop = keeper.app("shop")
    open_ = [
        shop.open_private_stream(NOISE, lambda *_: None),
        shop.add_event_listener("fixation", lambda _: None),
        shop.on_tile(lambda *_: None),
        keeper.watch(lambda *_: None),
    ]
    keeper.switch_wearer("anna")
    assert [one.code for one in open_] == ["wearer"] * 4
    assert keeper.status()["subscriptions"] == 0


def test_nothing_of_one_wearers_gaze_is_seen_by_the_next_ones_apps(wear: Wear) -> None:
    """The apps of two wearers are one app with one token: it keeps every number and id it got under
    the first.
    """
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    shop = keeper.app("shop")
    area = shop.register_area("left", 60, 60, 60, 60)
    seen: list[Any] = []
    shop.add_event_listener("fixation", seen.append)
    for x in (90.0, 200.0, 90.0, 200.0, 90.0):
        wear.look(x, 90.0)
    shop.counter(area.id)
    assert shop.get_fixations(area.id)
    assert shop.metrics(area.id).fixations
    assert shop.current_tile() is not None
    assert seen
    keeper.switch_wearer("anna")
    for call in (
        lambda: shop.get_fixations(area.id),
        lambda: shop.metrics(area.id),
        lambda: shop.counter(area.id),
        lambda: shop.get_dwell_time(seen[0].number),
    ):
        with pytest.raises(Denied) as no:
            call()
        assert no.value.code == "unknown"
    assert shop.current_tile() is None
    again = shop.register_area("left", 60, 60, 60, 60)
    wear.look(90.0, 90.0, 0.02)  # the first samples of the new wearer decide nothing yet
    assert shop.get_fixations(again.id) == ()
    assert shop.metrics(again.id).fixations == 0
    assert keeper.status()["t_ms"] == 0, "the clock of the events begins with the wearer"


def test_a_fixation_across_the_switch_belongs_to_nobody(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    wear.look(90.0, 90.0, 5.0)
    keeper.switch_wearer("anna")
    heard: list[Any] = []
    keeper.app("shop").add_event_listener("fixation", heard.append)
    wear.look(90.0, 90.0, 0.5)
    wear.look(250.0, 40.0, 0.5)
    wear.look(90.0, 90.0, 1.0)
    assert heard
    assert max(event.duration_ms for event in heard) <= 1000, (
        "five seconds of the last wearer's are not told"
    )


def test_only_what_is_of_the_device_outlives_a_switch(ledger: Ledger) -> None:
    one = Wear(ledger, tile_stream=NOISE)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        shop = keeper.app("shop")
        shop.open_private_stream(NOISE, lambda *_: None)
        area = shop.register_area("left", 60, 60, 60, 60)
        shop.current_tile()
        for x in (90.0, 200.0, 90.0, 200.0):
            one.look(x, 90.0)
        shop.counter(area.id)
        state = keeper._state
        before = dict(vars(state))
        quantiser = keeper._quantiser
        keeper.switch_wearer("anna")
        fresh = Gatekeeper(FAMILY.worn_by("anna"), ledger, rate_hz=RATE_HZ)
        plain = (int, str, float, bool, tuple, type(None))
        for name, value in vars(state).items():
            if name in OF_THE_DEVICE or name in ("wearer", "policy"):
                continue
            if (
                name == "selections"
            ):  # keeps how often apps opened one, and nothing of where anybody looked
                assert (value._fixation, value._open, value._chosen_ns) == (None, {}, {})
                continue
            if isinstance(value, plain):
                assert value == vars(fresh._state)[name], name
            else:
                assert value is not before[name], f"{name} is the same object for both wearers"
        assert keeper._quantiser is not quantiser
        assert not keeper._pending
        fresh.close()


def test_budgets_do_not_come_back_by_switching_away_and_back(ledger: Ledger) -> None:
    poor = Grant(
        GRANT.scopes,
        GRANT.mechanisms,
        streams=8,
        calls_per_minute=10**5,
        budgets={"epsilon": Fraction(2), "rho": Fraction(1000)},
        per="session",
    )
    one = Wear(
        ledger, Policy({"shop": poor}, consent=True, others={"anna": Wearer(True, {"shop": poor})})
    )
    with one.keeper as keeper:

        def spend() -> None:
            for at in range(2):
                keeper.app("shop").counter(
                    keeper.app("shop").register_area("a", 60 + 30 * at, 60, 30, 30).id
                )

        keeper.switch_wearer("owner")
        spend()
        keeper.switch_wearer("anna")
        spend()  # hers is whole
        for name in ("owner", "anna", None, "owner"):
            keeper.switch_wearer(name)
            with pytest.raises(Denied) as no:
                spend()
            assert no.value.code == ("budget" if name else "no-consent")
            assert "anna" not in no.value.reason, "an app is not told who wears the device"
        assert ledger.spent("app:shop", "epsilon", one.now_ns) == 2
        assert ledger.spent("wearer:anna:app:shop", "epsilon", one.now_ns) == 2
        assert ledger.spent("device", "epsilon", one.now_ns) == 2
        assert ledger.spent("wearer:anna:device", "epsilon", one.now_ns) == 2
    assert not ledger.verify()


def test_a_lease_asked_for_under_one_wearer_is_not_paid_by_the_next(ledger: Ledger) -> None:
    one = Wear(ledger)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        keeper.app("shop").open_private_stream(NOISE, lambda *_: None)
        gate, worker = threading.Event(), keeper._state.billing
        worker.later(gate.wait)  # the ledger is slow: the next lease waits behind this
        one.look(90.0, 90.0, 0.8)  # more than half of the first lease: the second is asked for
        keeper.switch_wearer("anna")
        gate.set()
        worker.close()
        rho = ledger.spent("app:shop", "rho", one.now_ns)
        assert rho > 0
        assert ledger.spent("wearer:anna:app:shop", "rho", one.now_ns) == 0
        assert ledger.spent("wearer:anna:device", "rho", one.now_ns) == 0


@pytest.mark.parametrize(
    "what", ["events", "tile", "samples", "current_tile", "counter", "fixations"]
)
def test_an_answer_that_was_allowed_under_one_wearer_is_not_given_under_the_next(
    ledger: Ledger, what: str
) -> None:
    """The switch falls between the decision and the answer: while the audit log writes its row."""
    log = AuditLog(ledger)
    one = Wear(ledger, FAMILY, audit=log)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        shop = keeper.app("shop")
        area = shop.register_area("left", 60, 60, 60, 60)
        calls = {
            "events": lambda: shop.add_event_listener("fixation", lambda _: None),
            "tile": lambda: shop.on_tile(lambda *_: None),
            "samples": lambda: shop.open_private_stream(NOISE, lambda *_: None),
            "current_tile": shop.current_tile,
            "counter": lambda: shop.counter(area.id),
            "fixations": lambda: shop.get_fixations(area.id),
        }
        written = log.record

        def slow(kind: str, app: str, detail: Any, now_ns: int) -> int:
            if kind == "answer":
                log.record = written  # type: ignore[method-assign]
                keeper.switch_wearer("ben")
            return written(kind, app, detail, now_ns)

        log.record = slow  # type: ignore[method-assign]
        with pytest.raises(Denied) as no:
            calls[what]()
        assert no.value.code == "wearer"
        assert keeper.status()["subscriptions"] == 0


def test_a_listener_allowed_just_before_consent_was_taken_back_is_refused(ledger: Ledger) -> None:
    log = AuditLog(ledger)
    one = Wear(ledger, Policy({"shop": GRANT}, consent=True), audit=log)
    with one.keeper as keeper:
        written = log.record

        def slow(kind: str, app: str, detail: Any, now_ns: int) -> int:
            if kind == "answer":
                log.record = written  # type: ignore[method-assign]
                keeper.consent(False)
            return written(kind, app, detail, now_ns)

        log.record = slow  # type: ignore[method-assign]
        with pytest.raises(Denied) as no:
            keeper.app("shop").add_event_listener("fixation", lambda _: None)
        assert no.value.code == "no-consent"
        assert keeper.status()["subscriptions"] == 0


def test_with_a_broken_ledger_a_switch_takes_away_and_gives_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(ledger)
    one = Wear(ledger, FAMILY, audit=log)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        stream = keeper.app("shop").open_private_stream(NOISE, lambda *_: None)

        def broken(*_: object) -> int:
            raise LedgerError("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(log, "record", broken)
            with pytest.raises(LedgerError):
                keeper.switch_wearer("anna")
            assert stream.code == "wearer"
            assert keeper.policy.consent is False
        keeper.switch_wearer("anna")  # made again, it is whole
        assert keeper.app("shop").areas() == ()


def test_raw_gaze_of_an_unknown_wearer_is_not_shown_to_the_owner(wear: Wear) -> None:
    shown: list[Any] = []
    wear.keeper.watch(lambda *block: shown.append(block))
    wear.look(90.0, 90.0, 0.1)
    assert not shown
    wear.keeper.switch_wearer("owner")
    wear.keeper.watch(lambda *block: shown.append(block))
    wear.look(90.0, 90.0, 0.1)
    assert shown


def test_a_policy_of_several_wearers_reads_back_whoever_wears_the_device(tmp_path: Path) -> None:
    for name in ("owner", "anna", "ben", None, "zoe"):
        assert Policy.parse(FAMILY.worn_by(name).text()) == FAMILY
        assert pickle.loads(pickle.dumps(FAMILY.worn_by(name))) == FAMILY.worn_by(name)
    path = tmp_path / "policy.toml"
    path.write_text(
        "consent = true\n[wearers.anna]\nconsent = true\n[wearers.anna.apps.shop]\npreset ="
        ' "count"\n'
    )
    assert Policy.load(path).worn_by("anna").apps["shop"].scopes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[wearers.owner]\nconsent = true\n", "wearers.owner is not allowed"),
        ("[wearers.anna]\nconsented = true\n", "policy key wearers.anna has no key 'consented'"),
        ('[wearers."an na"]\nconsent = true\n', "1 to 64 letters"),
        ("wearers = 3\n", "a table of wearers"),
        ('[wearers.anna.apps.shop]\nscopes = ["raw"]\n', "wearers.anna.apps.shop"),
    ],
)
def test_a_policy_with_a_wrong_wearer_says_where(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Policy.parse(text)


# The service.


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("wearers") / "home") as one:
        yield one


def test_a_switch_over_http_ends_feeds_and_shows_whose_device_it_is(here: Running) -> None:
    owner, token = here.owner, here.app("shop", budgets={"epsilon": "5", "rho": "1000000"})
    assert owner.get("/v1/wearer").json() == {"name": "owner", "known": True, "wearers": ["owner"]}
    assert owner.post("/v1/wearers", json={"name": "anna"}).status_code == 201
    assert owner.post("/v1/wearers", json={"name": "anna"}).status_code == 409
    with here.talk(token) as talk, here.client(token) as client:
        assert talk.subscribe(what="fixation")["type"] == "subscribed"
        assert owner.post("/v1/wearer", json={"name": "anna"}).json()["known"] is True
        ended = talk.until("ended", 10)
        assert (ended["code"], "anna" in str(ended)) == ("wearer", False)
        assert owner.get("/v1/apps").json()["wearer"]["name"] == "anna"
        assert talk.subscribe(2, what="fixation")["code"] == "no-consent"
        assert client.get("/v1/me").json()["consent"] is False
        owner.post("/v1/consent", json={"on": True})
        assert (
            owner.post(
                "/v1/apps/shop/grant", json={"grant": {**ALL, "budgets": {"epsilon": "5"}}}
            ).status_code
            == 200
        )
        assert talk.subscribe(3, what="fixation")["type"] == "subscribed"
        assert "anna" not in client.get("/v1/me").text, "an app is not told who wears the device"
        assert owner.post("/v1/wearer", json={"name": None}).json() == {
            "name": None,
            "known": False,
            "wearers": ["anna", "owner"],
        }
        assert talk.until("ended", 10)["code"] == "wearer"
        no = owner.post("/v1/consent", json={"on": True})
        assert (no.status_code, "Nobody known wears the device" in no.text) == (422, True)
    assert Policy.load(here.service.settings.policy_path).others["anna"].consent is True
    assert owner.delete("/v1/wearers/anna").status_code == 204
    assert owner.delete("/v1/wearers/owner").status_code == 404
    assert owner.post("/v1/wearer", json={"name": "anna"}).json()["known"] is False
    assert owner.post("/v1/wearer", json={"name": "owner"}).json()["known"] is True


def test_the_tracker_says_who_wears_it_between_two_samples(here: Running) -> None:
    """Samples before the message are the last wearer's to the last one, samples after it the next
    one's from the first.
    """
    here.owner.post("/v1/wearers", json={"name": "ben"})
    token = here.app("gallery")
    with here.tracker() as tracker, here.client(token) as client:
        area = client.post(
            "/v1/areas",
            json={"name": "all", "x_deg": 60, "y_deg": 60, "width_deg": 60, "height_deg": 60},
        ).json()["id"]
        for x in (90.0, 200.0, 90.0, 200.0):
            tracker.look(x, 90.0, 0.5)
        tracker.talk.say(type="wearer", name="ben")
        assert tracker.talk.until("wearer")["known"] is True
        assert client.get(f"/v1/areas/{area}/fixations").json()["error"]["code"] == "no-consent"
        here.owner.post("/v1/consent", json={"on": True})
        here.owner.post("/v1/apps/gallery/grant", json={"grant": ALL})
        assert client.get(f"/v1/areas/{area}/fixations").json()["error"]["code"] == "unknown"
        for bad in (
            {"type": "wearer"},
            {"type": "wearer", "name": 3},
            {"type": "wearer", "name": "a b"},
            {"type": "wearer", "name": "x", "more": 1},
        ):
            tracker.talk.say(**bad)
            assert tracker.talk.until("error")["code"] == "message"
        tracker.talk.say(type="wearer", name="owner")
        assert tracker.talk.until("wearer")["name"] == "owner"


def test_an_app_and_a_stranger_cannot_say_who_wears_the_device(here: Running) -> None:
    token = here.app("sly")
    with here.client(token) as client, here.client("nobody") as stranger:
        for one, status in ((client, 403), (stranger, 401)):
            assert one.post("/v1/wearer", json={"name": None}).status_code == status
            assert one.get("/v1/wearer").status_code == status
            assert one.post("/v1/policy/reload").status_code == status
