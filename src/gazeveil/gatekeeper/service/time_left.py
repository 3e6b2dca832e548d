"""Remaining budget as a time of use: half an hour is clearer than 1800 epsilon.

The time is the remaining budget divided by the price of a second. The price is that of the app's
open streams, or, where none is open, of the dearest stream of its grant. The time is therefore
never overstated. Times are rounded down.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from gazeveil.gatekeeper.core.device_state import DeviceState
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.rules import weakest
from gazeveil.gatekeeper.streams.pool import every_of, mechanism_of
from gazeveil.gatekeeper.streams.shared import SharedStream

_WHEN = {"day": "today", "session": "until consent is given anew", "ever": "in all"}
_USED_UP = {
    "day": "used up for today",
    "session": "used up until consent is given anew",
    "ever": "used up for good",
}

#: How long a price waits for the core's lock.
_PATIENCE_S = 0.05

_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S


@dataclass(frozen=True)
class Price:
    """What use costs in one currency.

    Parameters
    ----------
    per_second : Fraction
        Of a stream that goes on.
    least : Fraction
        What must be there for anything to be given: a lease.
    """

    per_second: Fraction
    least: Fraction

    def __add__(self, other: Price) -> Price:
        return Price(self.per_second + other.per_second, self.least + other.least)

    @classmethod
    def of(cls, shared: SharedStream, lease: Fraction) -> Price:
        """Of a stream whose lease costs so much."""
        return cls(lease * Fraction(shared.rate_hz) / shared.lease, lease)

    def dearer(self, other: Price | None) -> Price:
        """The one of two that costs more."""
        if other is None or (self.per_second, self.least) >= (other.per_second, other.least):
            return self
        return other


class Prices:
    """What a second of use costs. Who asks waits hardly at all for samples that wait for the
    ledger: the last prices are told instead.
    """

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self._last: dict[str | None, dict[str, Price]] = {}
        self._busy_until_s = 0.0
        self._known: dict[tuple[str, int, Fraction], tuple[str, Price] | None] = {}

    def of_app(self, app: str) -> dict[str, Price]:
        """By currency, what a second of an app's open streams costs it, or else a second of the
        dearest it may open.
        """
        grant = self._state.policy.apps.get(app)
        return {**(self._dearest(grant) if grant is not None else {}), **self._open(app)}

    def of_device(self) -> dict[str, Price]:
        """By currency, what a second of all open streams costs the device, or else of the dearest
        that any app may open.
        """
        prices: dict[str, Price] = {}
        for grant in self._state.policy.apps.values():
            for currency, price in self._dearest(grant).items():
                prices[currency] = price.dearer(prices.get(currency))
        return {**prices, **self._open(None)}

    def _open(self, app: str | None) -> dict[str, Price]:
        prices: dict[str, Price] = {}
        with self._soon() as free:
            if not free:
                return self._last.get(app, {}).copy()
            for shared in self._state.pool.active:
                payers = (s for s in shared.subscribers if app is None or (s.app == app and s.pays))
                if views := [subscriber.view for subscriber in payers]:
                    price = Price.of(shared, shared.cost(views))
                    known = prices.get(shared.currency)
                    prices[shared.currency] = price if known is None else known + price
            self._last[app] = prices.copy()
        return prices

    @contextlib.contextmanager
    def _soon(self) -> Iterator[bool]:
        """Hold the state's lock if it is free within a moment; whether it was."""
        patience_s = 0.0 if time.monotonic() < self._busy_until_s else _PATIENCE_S
        free = self._state.lock.acquire(timeout=patience_s)
        if not free:
            # A query about many apps waits for one of them only.
            self._busy_until_s = time.monotonic() + 10 * _PATIENCE_S
        try:
            yield free
        finally:
            if free:
                self._state.lock.release()

    def _dearest(self, grant: Grant) -> dict[str, Price]:
        prices: dict[str, Price] = {}
        for rule in () if grant.revoked else grant.mechanisms:
            priced = self._price(weakest(rule), grant.most_hz)
            if priced is None:
                continue
            currency, price = priced
            prices[currency] = price.dearer(prices.get(currency))
        return prices

    def _price(self, text: str, most_hz: float | None) -> tuple[str, Price] | None:
        """What a second of a mechanism costs; None where that depends on what an app writes."""
        state = self._state
        try:
            made = mechanism_of(text)
        except Denied:
            return None
        every = every_of(state.rate_hz, made.stride, most_hz)
        key = (text, every, state.policy.device.r_deg)
        if key not in self._known:
            try:
                with self._soon() as free:
                    if not free:
                        return None
                    shared, view = state.pool.quoted(made, every)
                    currency, amount = shared.priced(view)
                    self._known[key] = currency, Price.of(shared, amount)
            except Denied:
                return None
        return self._known[key]


def seconds_left(remaining: Fraction | None, price: Price | None) -> int | None:
    """Whole seconds that a budget lasts; None without a limit, or where nothing uses it second by
    second.
    """
    if remaining is not None and remaining <= 0:
        return 0
    if remaining is None or price is None or not price.per_second:
        return None
    return int(remaining / price.per_second) if remaining >= price.least else 0


def words(
    remaining: Fraction | None, seconds: int | None, per: str, counts: int | None = None
) -> str:
    """What is left, for people.

    Parameters
    ----------
    remaining : Fraction or None
        What is left; None without a limit.
    seconds : int or None
        How long it lasts.
    per : str
        The period of the budget.
    counts : int, optional
        Where no stream uses it: how many counters it pays for.

    Examples
    --------
    >>> words(Fraction(3), 11_000, "day"), words(Fraction(9), None, "ever", 9)
    ('about 3 hours of use today', '9 more counts in all')
    >>> words(Fraction(3), 200, "day"), words(Fraction(0), 0, "day")
    ('about 3 minutes of use today', 'used up for today')
    """
    if remaining is None:
        return "no limit"
    if seconds is None:
        if remaining == 0:
            return _USED_UP[per]
        if counts is None:
            return f"not in use, nothing is taken from it {_WHEN[per]}"
        return f"{counts} more {'count' if counts == 1 else 'counts'} {_WHEN[per]}"
    if seconds == 0:
        return _USED_UP[per]
    if per == "day" and seconds >= _DAY_S:
        return "enough for all of today"
    for size, word in ((_HOUR_S, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 2 * size or size == 1:
            count = seconds // size
            return f"about {count} {word}{'' if count == 1 else 's'} of use {_WHEN[per]}"
    raise AssertionError("one of the sizes fits")
