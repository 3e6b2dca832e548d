"""Noisy places through the Gatekeeper: one noise for a day, whoever listens and however often it
restarts, paid for once.
"""

from __future__ import annotations

import json
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import (
    Denied,
    DeviceLimits,
    Gatekeeper,
    Grant,
    Ledger,
    LedgerError,
    MechanismRule,
    Policy,
)
from gazeveil.gatekeeper.ledger.accounts import DAY_NS
from gazeveil.gatekeeper.streams.day_keys import FILE, DayKeys
from gazeveil.gatekeeper.streams.place import place_rho
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.privacy.stream.place.mechanism import GaussianPlace

RULE = MechanismRule("gaussian-place", {"sigma_deg": (">=", 1)})
MORNING_NS = 20_000 * DAY_NS + DAY_NS // 3


def price(sigma: int, r_deg: int = 1) -> Fraction:
    return place_rho(GaussianPlace(sigma), 100.0, Sphere(), Fraction(r_deg))


class Device:
    """A Gatekeeper that can be started again on its folder and ledger, with a clock that can be
    set.
    """

    def __init__(self, *apps: str, folder: Path | None = None, **changes: Any) -> None:
        self.ledger = Ledger.open("sqlite://")
        self.now_ns, self.folder, self.first = MORNING_NS, folder, 0
        budgets = {"place": Fraction(100)}
        grant = Grant(
            **{
                "scopes": {"samples", "tile"},
                "mechanisms": (RULE,),
                "budgets": budgets,
                "streams": 9,
                "calls_per_minute": 10**6,
                **changes,
            }
        )
        self.policy = Policy(
            dict.fromkeys(apps, grant), DeviceLimits(place=Fraction(1000)), consent=True
        )
        self.start()

    def start(self, name: str = "device") -> None:
        self.keeper = Gatekeeper(
            self.policy,
            self.ledger,
            rate_hz=100.0,
            device=name,
            clock_ns=lambda: self.now_ns,
            folder=self.folder,
        )

    def restart(self, name: str = "device") -> None:
        self.keeper.close()
        self.start(name)

    def open(self, app: str, sigma: int) -> Taken:
        taken = Taken()
        taken.stream = self.keeper.app(app).open_private_stream(
            f"gaussian-place:sigma_deg={sigma}", taken
        )
        return taken

    def rest(self, x_deg: float = 182.0, y_deg: float = 92.0, count: int = 50) -> None:
        self.keeper.push(
            np.arange(self.first, self.first + count) * 10_000_000,
            np.full(count, x_deg),
            np.full(count, y_deg),
        )
        self.first += count

    def spent(self, account: str) -> Fraction:
        return self.ledger.spent(account, "place", self.now_ns)


class Taken:
    """What an app got."""

    def __init__(self) -> None:
        self.places: list[tuple[float, float]] = []
        self.stream: Any = None

    def __call__(
        self, t_ns: np.ndarray, x_deg: np.ndarray, y_deg: np.ndarray, valid: np.ndarray
    ) -> None:
        self.places += zip(x_deg[valid].tolist(), y_deg[valid].tolist(), strict=True)

    @property
    def different(self) -> set[tuple[float, float]]:
        return set(self.places)


def test_a_place_has_one_noise_for_all_apps_and_sessions_of_a_day_and_is_paid_for_once() -> None:
    d = Device("a", "b")
    one, other = d.open("a", 5), d.open("b", 5)
    d.rest()
    one.stream.close()
    again = d.open("a", 5)
    d.rest()
    d.rest(181.0, 93.0)
    assert len(one.different | other.different | again.different) == 1, "one cell, one place"
    assert len(other.places) == 150
    assert d.spent("app:a") == d.spent("app:b") == d.spent("device") == price(5)
    d.rest(222.0, 92.0)
    assert len(other.different) == 2
    assert d.spent("device") == price(5), "another cell costs nothing more: the change is one place"
    assert other.stream.guarantee.change.unit == "place"
    d.keeper.close()


def test_views_of_several_sigmas_are_worth_the_finest_and_priced_so() -> None:
    d = Device("a", "b", streams=6)
    got = {sigma: d.open("a", sigma) for sigma in (12, 2, 5)}
    coarse = d.open("b", 8)
    assert d.spent("app:a") == price(2), "in whatever order they were asked for"
    assert d.spent("app:b") == price(8)
    assert d.spent("device") == price(2)
    # Each of 480 cells once: a standard deviation of 960 values that is off by 12 % is a false
    # alarm in a million runs. Cells that come again have the same noise and would add nothing.
    cells = [(5.0 * i + 2.5, 5.0 * j + 2.5) for i in range(6, 66) for j in range(14, 22)]
    truth = np.random.default_rng(1).permutation(cells)
    for x, y in truth:
        d.rest(x, y, 1)
    d.keeper.close()
    off = {sigma: np.array(taken.places) - truth for sigma, taken in {**got, 8: coarse}.items()}
    for sigma, noise in off.items():
        # Longitude 359 is 2 degrees from longitude 1: noise that crosses the seam is no larger.
        noise[:, 0] = (noise[:, 0] + 180) % 360 - 180
        assert np.std(noise) == pytest.approx(sigma, rel=0.12)
    # Coarser is finer plus an increment of its own: the best of all together is no better than the
    # finest.
    together = np.stack([off[sigma].ravel() for sigma in (2, 5, 8, 12)])
    weights = np.linalg.solve(np.cov(together), np.ones(4))
    assert np.std(weights / weights.sum() @ together) > 0.93 * np.std(off[2])


def test_a_restart_on_the_same_day_gives_the_same_noise_and_charges_nothing_more(
    tmp_path: Path,
) -> None:
    d = Device("a", folder=tmp_path)
    before = d.open("a", 5)
    d.rest()
    d.restart()
    d.now_ns += DAY_NS // 4
    after = d.open("a", 5)
    d.rest()
    assert before.different == after.different
    assert d.spent("app:a") == d.spent("device") == price(5)
    finer = d.open("a", 2)
    d.rest()
    assert d.spent("app:a") == price(2), "what was paid before the restart counts"
    assert finer.different != after.different
    d.keeper.close()


def test_a_key_that_was_lost_is_another_noise_and_is_charged_again(tmp_path: Path) -> None:
    d = Device("a", folder=tmp_path)
    before = d.open("a", 5)
    d.rest()
    (tmp_path / FILE).unlink()
    d.restart()
    after = d.open("a", 5)
    d.rest()
    assert before.different != after.different
    assert d.spent("app:a") == d.spent("device") == 2 * price(5)
    d.keeper.close()


def test_the_next_day_has_another_noise_which_is_paid_for_before_it_leaves(tmp_path: Path) -> None:
    d = Device("a", "b", folder=tmp_path)
    taken, other = d.open("a", 5), d.open("b", 8)
    d.rest()
    today = taken.different
    old = json.loads((tmp_path / FILE).read_text())
    d.now_ns += DAY_NS
    d.rest()
    assert len(taken.different) == 2
    assert len(other.different) == 2
    assert d.spent("app:a") == d.spent("device") == price(5), "of this day"
    assert d.spent("app:b") == price(8)
    new = json.loads((tmp_path / FILE).read_text())
    assert new["day"] == old["day"] + 1
    assert new["key"] != old["key"]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert old["key"] not in "".join(path.read_text() for path in tmp_path.iterdir())
    d.now_ns -= DAY_NS
    d.rest()
    assert len(taken.different) == 2, "a clock that is set back does not bring a day back"
    assert today < taken.different
    d.keeper.close()


def test_who_cannot_pay_for_the_next_day_ends_with_it_and_others_go_on() -> None:
    d = Device("a", "poor", per="ever", budgets={"place": price(5)})
    taken, poor = d.open("a", 12), d.open("poor", 5)
    d.rest()
    d.now_ns += DAY_NS
    d.rest()
    assert (poor.stream.code, len(poor.places)) == ("budget", 50)
    assert len(taken.places) == 100
    d.keeper.close()


@pytest.mark.parametrize("error", [LedgerError, OSError])
def test_without_a_committed_charge_no_place_of_a_new_day_leaves(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    d = Device("a")
    taken = d.open("a", 5)
    d.rest()
    monkeypatch.setattr(d.ledger, "charge", lambda *_: (_ for _ in ()).throw(error("disk full")))
    d.now_ns += DAY_NS
    d.rest()
    assert (taken.stream.code, len(taken.places)) == ("ledger", 50)
    with pytest.raises((LedgerError, OSError)):
        d.open("a", 5)
    assert not d.keeper._state.pool._reserved
    d.keeper.close()


def test_an_app_without_enough_budget_gets_nothing_and_the_device_pays_nothing() -> None:
    d = Device("a", budgets={"place": price(8)})
    with pytest.raises(Denied, match=r"place of .* is left today") as no:
        d.open("a", 5)
    assert no.value.code == "budget"
    assert d.spent("device") == 0
    d.open("a", 8)
    assert d.spent("app:a") == d.spent("device") == price(8), (
        "what it paid towards the finer sigma counts for the coarser"
    )
    d.keeper.close()


def test_wearers_have_keys_of_their_own_and_get_theirs_back(tmp_path: Path) -> None:
    from gazeveil.gatekeeper.policy.wearers import Wearer

    d = Device("a", folder=tmp_path)
    d.keeper.close()
    d.policy = Policy(
        d.policy.apps, d.policy.device, True, others={"anna": Wearer(True, d.policy.apps)}
    )
    d.start()
    seen = {}
    for who in ("owner", "anna", "owner"):
        d.keeper.switch_wearer(who)
        taken = d.open("a", 5)
        d.rest()
        assert seen.setdefault(who, taken.different) == taken.different
    assert seen["owner"] != seen["anna"]
    assert d.spent("app:a") == d.spent("device") == price(5), "coming back costs nothing more"
    assert d.spent("wearer:anna:app:a") == price(5)
    d.keeper.close()


def test_streams_of_other_rates_and_sigmas_share_one_walk() -> None:
    d = Device("a", "slow")
    d.keeper.grant(
        "slow",
        Grant(scopes={"samples"}, mechanisms=(RULE,), budgets={"place": Fraction(9)}, most_hz=25.0),
    )
    taken = d.open("a", 5)
    d.rest(184.6, 92.0, 10)  # just left of an edge at 185
    d.rest(185.4, 92.0, 10)  # beyond it, but not by the hysteresis
    slow = d.open("slow", 5)
    d.rest(185.4, 92.0, 40)
    assert slow.stream.rate_hz == 25.0
    assert slow.different == taken.different, (
        "who begins here would be in the next cell with a walk of its own"
    )
    assert len(slow.places) == 10
    d.keeper.close()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sigma_deg": ("=", 4)}, "must be one of 1, 2, 3, 5, 8, 12"),
        ({"sigma_deg": ("in", (5, 6))}, "must be one of 1, 2, 3, 5, 8, 12"),
        ({"sigma_deg": ("=", 5), "cell_deg": ("=", 1)}, "'cell_deg' parameter"),
    ],
)
def test_a_rule_cannot_name_places_that_would_need_a_noise_of_their_own(
    parameters: Any, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        MechanismRule("gaussian-place", parameters)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"day": 20000, "key": "00"}',
        '{"day": -1, "key": "' + "0" * 64 + '"}',
        "[1]",
        '{"day": "x", "key": 3}',
    ],
)
def test_a_key_file_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    (tmp_path / FILE).chmod(0o600)
    key = DayKeys(tmp_path, lambda: MORNING_NS).now("owner")
    assert key.day == 20_000
    assert DayKeys(tmp_path, lambda: MORNING_NS).now("owner").fingerprint == key.fingerprint


def test_a_key_file_that_others_could_read_is_not_used(tmp_path: Path) -> None:
    key = DayKeys(tmp_path, lambda: MORNING_NS).now("owner")
    (tmp_path / FILE).chmod(0o644)
    assert DayKeys(tmp_path, lambda: MORNING_NS).now("owner").fingerprint != key.fingerprint
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_leaves_the_key_in_memory(tmp_path: Path) -> None:
    keys = DayKeys(tmp_path / "nowhere", lambda: MORNING_NS)
    assert keys.now("owner") is keys.now("owner")
    assert keys.now("owner").fingerprint not in str(keys.now("owner").noise)


def test_the_tile_can_follow_noisy_places_and_the_device_pays_for_the_day() -> None:
    ledger = Ledger.open("sqlite://")
    policy = Policy({"a": Grant(scopes={"tile"})}, consent=True)
    k = Gatekeeper(
        policy,
        ledger,
        rate_hz=100.0,
        clock_ns=lambda: MORNING_NS,
        tile_stream="gaussian-place:sigma_deg=8",
        space=Screen(1.0, 0.6, 1920, 1080, 0.6),
    )
    assert k.app("a").current_tile() is None
    k.push(np.arange(100) * 10_000_000, np.zeros(100), np.zeros(100))
    assert k.app("a").current_tile() is not None
    assert ledger.spent("device", "place", MORNING_NS) > 0
    assert ledger.spent("app:a", "place", MORNING_NS) == 0
    k.close()


def test_a_device_that_is_renamed_pays_from_its_new_account(tmp_path: Path) -> None:
    """Its charge had the id of the one before, and every stream was refused until midnight."""
    device = Device("a", "b", folder=tmp_path)
    device.open("a", 8)
    device.restart("headset")
    for app in ("a", "b"):
        taken = device.open(app, 8)
        device.rest()
        assert taken.places
    assert device.spent("app:a") == device.spent("app:b") == price(8)
    assert device.spent("device") == device.spent("headset") == price(8)
