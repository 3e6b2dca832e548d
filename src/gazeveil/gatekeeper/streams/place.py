"""All `gaussian-place` streams of a device: one walk from cell to cell, one noise for a day, paid
for once a day.

The promise is about a place: all gaze of the day in one cell goes to another cell that is not
looked at otherwise. It holds for the whole day, however long and often somebody looks and whoever
listens, so a day costs once: an app by the finest sigma it had that day, the device by the finest
that any app had. Sigmas are nested, so the price of the public list is paid in steps, from the
coarsest sigma to the one asked for. Each step has a request id of its own that names the day and
the key: paid again after a restart it costs nothing, and with another key it is paid anew.

The change that is charged for goes from one cell to the next: by the side of a cell, or by the
device's `r_deg` where that is more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.streams.billing import Billing, Cost
from gazeveil.gatekeeper.streams.day_keys import DayKey
from gazeveil.gatekeeper.streams.shared import Lease, SharedStream, StreamView, Subscriber, cut
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Change
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.place.mechanism import GaussianPlace
from gazeveil.privacy.stream.place.noise import PLACE_SIGMAS_DEG
from gazeveil.privacy.stream.place.views import PlaceViews
from gazeveil.privacy.stream.stage import Samples

#: Samples of a lease: as many as there are until the day is over.
_ALL_DAY = 2**62


@dataclass
class DayLease(Lease):
    """A day that was asked for, with its key."""

    key: DayKey = field(kw_only=True)


def place_rho(mechanism: GaussianPlace, rate_hz: float, space: Space, r_deg: Fraction) -> Fraction:
    """What a day of places costs, in zCDP about one place.

    Examples
    --------
    >>> from gazeveil.gaze.geometry import Sphere
    >>> round(float(place_rho(GaussianPlace(5), 60.0, Sphere(), Fraction(1))), 3)
    0.5
    """
    cell_deg = Fraction(mechanism.cell_deg)
    return (
        mechanism.promise(rate_hz, space)
        .claimed_loss(Change.place(max(r_deg, cell_deg), cell_deg=cell_deg))
        .amount
    )


class PlaceStream(SharedStream):
    """All streams of noisy places.

    Parameters
    ----------
    key_now : callable
        The key of the day, of the wearer whose streams these are.
    mechanism, rate_hz, every, space, billing, r_deg, seed
        As :class:`~gazeveil.gatekeeper.streams.shared.SharedStream` takes them; `every` is 1.
    """

    def __init__(
        self,
        key_now: Callable[[], DayKey],
        mechanism: StreamMechanism,
        rate_hz: float,
        every: int,
        space: Space,
        billing: Billing,
        r_deg: Fraction,
        seed: int | None,
    ) -> None:
        self._key_now, self._space = key_now, space
        self._key: DayKey | None = None
        self._paid_for: set[tuple[str | None, DayKey, Fraction, Fraction]] = set()
        super().__init__(mechanism, rate_hz, every, space, billing, r_deg, seed)

    def _open(self, space: Space, seed: int | None) -> None:
        assert isinstance(self.mechanism, GaussianPlace)
        self._views_of_walk = PlaceViews(self.mechanism, self.rate_hz, space)
        self.lease = _ALL_DAY

    # Prices.

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further days for moves of a place by so many degrees."""
        self.currency, self._r_deg = "place", r_deg
        self._rho = {
            sigma: place_rho(GaussianPlace(sigma), self.rate_hz, self._space, r_deg)
            for sigma in PLACE_SIGMAS_DEG
        }

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> StreamView:
        """The view at a sigma."""
        assert isinstance(mechanism, GaussianPlace)
        promise = mechanism.promise(self.rate_hz, self._space)
        cell_deg = Fraction(mechanism.cell_deg)
        promise = replace(
            promise, change=Change.place(max(self._r_deg, cell_deg), cell_deg=cell_deg)
        )
        return StreamView(
            promise.tested() if self._key_now().noise.seeded else promise,
            Fraction(mechanism.sigma_deg),
            every,
        )

    def cost(self, views: Iterable[StreamView]) -> Fraction:
        """A whole day of the finest of the views."""
        sigmas = [view.scale_deg for view in views if view.scale_deg is not None]
        return self._rho[min(sigmas)] if sigmas else Fraction(0)

    def owes(self, app: str | None, sigma_deg: Fraction) -> bool:
        """Whether an app, or for None the device, has something to pay for this day's places; after
        a restart the ledger knows better.
        """
        return (app, self._key_now(), self._r_deg, sigma_deg) not in self._paid_for

    # Paying.

    def first_lease(self, view: StreamView, app: str | None) -> Callable[[], Fraction]:
        """What pays for a new subscriber: this day, for the app and for the device."""
        sigma = view.scale_deg
        assert sigma is not None

        def pay() -> Fraction:
            key = self._key_now()
            for who in dict.fromkeys((app, None)):  # an app's own reason goes before the device's
                self._pay(who, sigma, key)
            return Fraction(0)

        return pay

    def _pay(self, app: str | None, sigma_deg: Fraction, key: DayKey) -> None:
        """Pay for a day, as far as it is not paid for; what was paid before a refusal stays paid
        for, and is not asked for again.
        """
        before = Fraction(0)
        for sigma in reversed([s for s in PLACE_SIGMAS_DEG if s >= sigma_deg]):
            step: Cost = (self.currency, self._rho[sigma] - before)
            before = self._rho[sigma]
            if (app, key, self._r_deg, sigma) not in self._paid_for:
                once = f"place {key.day} {key.fingerprint} {sigma} {float(step[1]):.9g} "
                if app is None:
                    # By its account: one that is renamed pays anew, as another device.
                    self.billing.pay("places of a day", step, (), once + self.billing.device)
                else:
                    self.billing.pay("places of a day", None, [(app, step)], once + f"app {app}")
                self._paid_for.add((app, key, self._r_deg, sigma))

    def _paid(self, subscribers: tuple[Subscriber, ...]) -> DayLease:
        return self._paid_under(self._key_now(), subscribers)

    def _paid_under(self, key: DayKey, subscribers: Iterable[Subscriber]) -> DayLease:
        lease = DayLease(set(), key=key)
        for subscriber in subscribers:
            assert subscriber.view.scale_deg is not None
            try:
                if subscriber.pays:
                    self._pay(subscriber.app, subscriber.view.scale_deg, key)
            except Denied as no:
                lease.refused[subscriber] = no
            else:
                lease.paid.add(subscriber)
        for sigma in {s.view.scale_deg for s in lease.paid if s.view.scale_deg is not None}:
            self._pay(None, sigma, key)  # if the device cannot pay, that is the reason for all
        return lease

    def _settle(self, lease: Lease) -> None:
        """End subscribers that could not pay; who came since pays now, and the day's
        key comes into use.
        """
        assert isinstance(lease, DayLease)
        known = {*lease.paid, *lease.refused}
        late = self._paid_under(lease.key, [s for s in self.subscribers if s not in known])
        for subscriber, no in {**lease.refused, **late.refused}.items():
            subscriber.subscription.end(no.reason, no.code)
        self._key = lease.key
        self._paid_for = {paid for paid in self._paid_for if paid[1] is lease.key}

    def _covered(self, key: DayKey) -> bool:
        """Whether every subscriber, and the device, have paid for a key."""
        return all(
            (who, key, self._r_deg, subscriber.view.scale_deg) in self._paid_for
            for subscriber in self.subscribers
            for who in (subscriber.app if subscriber.pays else None, None)
        )

    def subscribe(self, subscriber: Subscriber, paid_device: Fraction) -> None:
        """Add a subscriber that is paid for."""
        self.subscribers.append(subscriber)
        key = self._key_now()
        # Where the day ended while the ledger wrote, the next sample waits for the new day to be
        # paid for.
        self._key, self._left = key, _ALL_DAY if self._covered(key) else 0

    # Samples.

    def ready(self, count: int) -> bool:
        """Whether so many samples can be pushed without waiting; not the first ones of a day."""
        return self._key is self._key_now() and super().ready(count)

    def push(self, samples: Samples, released_ns: int = 0) -> None:
        """Protect and deliver samples; the first ones of a day wait for it to be paid for."""
        if self._key is not self._key_now():
            self._left = 0
        super().push(samples, released_ns)

    def _release(self, samples: Samples) -> Callable[[Subscriber], Samples]:
        assert self._key is not None
        seen = self._views_of_walk.push(self._key.noise, *samples)
        first, self._told = self._told, self._told + len(samples[0])
        made: dict[tuple[Fraction, int], Samples] = {}

        def of(subscriber: Subscriber) -> Samples:
            sigma, every = subscriber.view.scale_deg, subscriber.view.every
            assert sigma is not None
            if (sigma, every) not in made:
                whole = seen(sigma)
                made[sigma, every] = whole if every == 1 else cut(whole, first, every)
            return made[sigma, every]

        return of
