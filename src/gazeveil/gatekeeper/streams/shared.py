"""Shared protected streams, paid for in leases.

Apps that ask for the same mechanism get the same bytes of one :class:`SharedStream`. All `gaussian`
streams, also those that `temporal` thins out, are views of one graded session
(:mod:`gazeveil.privacy.stream.graded`), whatever their sigma: a coarser view is the finer
one plus noise of its own, so a coalition learns what its finest view tells. A device has one shared
stream of a family (:mod:`gazeveil.gatekeeper.policy.families`) at a time; a shared stream of
another family is a further release about the same gaze and is charged to the device in full.

Nothing leaves before its charge is durable. Samples are paid for in leases: where a promise has one
budget for windows of w samples, w samples at a time, all others a second at a time. What a lease
costs is fixed by the device (:mod:`gazeveil.gatekeeper.streams.billing`), whatever change an app
wrote into its mechanism. One transaction pays the device once and every app for itself. The next
lease is asked for on a thread of its own when half of the current one is used; a stream that has
used up its lease waits for the answer at most :data:`PATIENCE_S` and then ends. A crash loses the
rest of a lease: too much may be charged, too little never.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.families import family_of
from gazeveil.gatekeeper.streams.billing import Billing, Cost, cost_of, lease_samples
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.stream.graded import GradedSession
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Session

#: Seconds a stream without a lease waits for the ledger.
PATIENCE_S = 2.0

Deliver: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class StreamView:
    """What an app gets of a shared stream.

    Parameters
    ----------
    guarantee : Guarantee
        What it promises.
    scale_deg : Fraction, optional
        Of a graded view: its noise.
    every : int
        Every how many samples of the shared stream it gets. Which ones is counted by the shared
        stream, so that all views have one phase.
    held : int
        For how many of those a place is repeated; 1 for a new place each time.
    """

    guarantee: Guarantee
    scale_deg: Fraction | None = None
    every: int = 1
    held: int = 1

    @property
    def places_every(self) -> int:
        """Every how many samples of the shared stream it tells a new place."""
        return self.every * self.held


@dataclass(eq=False)
class Subscriber:
    """An app that subscribes to a shared stream.

    Parameters
    ----------
    app : str
        Who pays.
    deliver : callable
        Gets the samples.
    subscription : Subscription
        Ends with the subscriber.
    view : StreamView
        What it gets.
    pays : bool
        False for the device's own subscribers, which its account alone pays for.
    place : pair of float
        The place that a view which holds repeats now, NaN before its first. Kept for each
        subscriber: who comes later must not be given what was told, and paid for, before.
    """

    app: str
    deliver: Deliver
    subscription: Subscription
    view: StreamView
    pays: bool = True
    place: tuple[float, float] = (math.nan, math.nan)


@dataclass
class Lease:
    """A lease that was asked for: who paid, who could not and why, and up to
    what the device paid.
    """

    paid: set[Subscriber]
    refused: dict[Subscriber, Denied] = field(default_factory=dict)
    device: Fraction = Fraction(0)


class SharedStream:
    """One protected stream that several apps share.

    Parameters
    ----------
    mechanism : StreamMechanism
        What protects it.
    rate_hz : float
        Rate of the tracker.
    every : int
        Only every so many samples reach the mechanism.
    space : Sphere or Screen
        What the degrees mean.
    billing : Billing
        Where it pays.
    r_deg : Fraction
        How far samples move in the change that leases are charged for, in degrees.
    seed : int, optional
        A test stream.
    """

    currency: str

    def __init__(
        self,
        mechanism: StreamMechanism,
        rate_hz: float,
        every: int,
        space: Space,
        billing: Billing,
        r_deg: Fraction,
        seed: int | None,
    ) -> None:
        self.mechanism, self.every, self.billing = mechanism, every, billing
        self.family = family_of(mechanism)
        self.rate_hz = rate_hz / every
        self.promise = mechanism.promise(self.rate_hz, space)
        self.subscribers: list[Subscriber] = []
        self.key = (str(mechanism), every)
        self._open(space, seed)
        self.charge_at(r_deg)
        self._phase = 0
        self._told = 0
        self._left = 0
        self._device = Fraction(0)
        self._next: Future[Lease] | None = None
        #: Whether single samples (True) and longer blocks (False) have passed.
        self._compiled_for: set[bool] = set()

    def _open(self, space: Space, seed: int | None) -> None:
        self._session: Session | GradedSession = self.mechanism.open(self.rate_hz, space, seed)
        self.lease = lease_samples(self.promise, self.rate_hz)

    # What a graded stream does otherwise.

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees; known for a whole lease at once,
        because samples must not wait for arithmetic.
        """
        self.currency, self._amount = cost_of(self.promise, self.lease, r_deg)

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> StreamView:
        """What an app that asks for this mechanism gets here; nothing is kept of who asks."""
        assert isinstance(self._session, Session)
        return StreamView(self._session.guarantee, every=every)

    def cost(self, views: Iterable[StreamView]) -> Fraction:
        """Return the price of a lease for these views together.

        They are the views of one app, or of all subscribers for the device.
        """
        return self._amount if any(True for _ in views) else Fraction(0)

    def _views(self) -> list[StreamView]:
        return [subscriber.view for subscriber in self.subscribers]

    def _release(self, samples: Samples) -> Callable[[Subscriber], Samples]:
        assert isinstance(self._session, Session)
        if len(samples[0]) == 1:  # one sample has a shorter way through a session
            out = self._session.push(
                int(samples[0][0]), float(samples[1][0]), float(samples[2][0]), bool(samples[3][0])
            )
        else:
            out = self._session.push(*samples)
        first, self._told = self._told, self._told + len(out[0])
        made = {1: out}

        def of(subscriber: Subscriber) -> Samples:
            every = subscriber.view.every
            if every not in made:
                made[every] = cut(out, first, every)
            return made[every]

        return of

    # Subscribers.

    def owed(self, view: StreamView) -> Cost:
        """What the device must pay for a new subscriber now: the whole lease, or what the current
        one does not cover.
        """
        wanted = self.cost([*self._views(), view])
        return self.currency, wanted if self._left == 0 else max(Fraction(0), wanted - self._device)

    def priced(self, view: StreamView) -> Cost:
        """What a lease of a view costs the app that has it."""
        return self.currency, self.cost([view])

    def first_lease(self, view: StreamView, app: str | None) -> Callable[[], Fraction]:
        """What pays for a new subscriber of an app, or for None of the device itself, and says what
        the device paid. Calling it needs no lock.
        """
        owed = self.owed(view)
        apps = () if app is None else ((app, self.priced(view)),)

        def pay() -> Fraction:
            self.billing.pay(f"first lease of {self.mechanism.name}", owed, apps)
            return owed[1]

        return pay

    def subscribe(self, subscriber: Subscriber, paid_device: Fraction) -> None:
        """Add a subscriber that is paid for, with what the device paid for it."""
        self.subscribers.append(subscriber)
        if self._left == 0:
            self._left, self._device = self.lease, paid_device
        else:
            self._device += paid_device
        if self._device < self.cost(self._views()):
            # Other subscribers came, went or used the lease up while the ledger wrote: the next
            # sample waits for a lease of its own.
            self._left = 0

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber. The rest of the lease stays with the shared stream."""
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)

    # Samples.

    def ready(self, count: int) -> bool:
        """Whether so many samples can be pushed without waiting: they are paid for, and what works
        them off has been compiled.
        """
        kinds = {True} if count == 1 else {False} if self.every == 1 else {True, False}
        return count <= self._left and kinds <= self._compiled_for

    def push(self, samples: Samples, released_ns: int = 0) -> None:
        """Protect and deliver samples as far as they are paid for; `released_ns` is added to the
        times that are released.
        """
        if self.every > 1:
            picked = slice((-self._phase) % self.every, None, self.every)
            self._phase = (self._phase + len(samples[0])) % self.every
            samples = _part(samples, picked)
        done, count = 0, len(samples[0])
        while done < count and self.subscribers:
            if self._left == 0 and not self._turn():
                return
            n = min(self._left, count - done)
            part = slice(done, done + n)
            self._left -= n
            done += n
            view = self._release(_part(samples, part))
            self._compiled_for.add(n == 1)
            made: Samples | None = None
            for subscriber in tuple(self.subscribers):
                if subscriber.subscription.ended is None:
                    its_samples = view(subscriber)
                    # Subscribers of one view follow one another and share its arrays.
                    if its_samples is not made:
                        made = its_samples
                        shared = _read_only(_later(made, released_ns))
                    _hand_over(subscriber, shared)
            if self._next is None and 2 * self._left <= self.lease and self.subscribers:
                self._ask()

    def _ask(self) -> None:
        """Ask for the next lease, on the ledger's thread."""
        subscribers = tuple(self.subscribers)
        self._next = self.billing.later(lambda: self._paid(subscribers))

    def _paid(self, subscribers: tuple[Subscriber, ...]) -> Lease:
        """Pay for a lease: together, or if that is refused one by one. Touches no state of the
        shared stream.
        """
        device = self.cost([subscriber.view for subscriber in subscribers])
        why = f"lease of {self.lease} samples of {self.mechanism.name}"
        by_app: dict[str, Cost] = {}
        for app in dict.fromkeys(subscriber.app for subscriber in subscribers if subscriber.pays):
            # Several subscriptions of one app are what a coalition of them is to the device.
            amount = self.cost([s.view for s in subscribers if s.app == app])
            by_app[app] = (self.currency, amount)
        try:
            self.billing.pay(why, (self.currency, device), by_app.items())
        except Denied:
            # If the device cannot pay, that is the reason for all.
            self.billing.pay(why, (self.currency, device), ())
        else:
            return Lease(set(subscribers), device=device)
        lease = Lease({s for s in subscribers if s.app not in by_app}, device=device)
        for app, cost in by_app.items():
            mine = [subscriber for subscriber in subscribers if subscriber.app == app]
            try:
                self.billing.pay(why, None, [(app, cost)])
            except Denied as no:
                lease.refused.update(dict.fromkeys(mine, no))
            else:
                lease.paid.update(mine)
        return lease

    def _turn(self) -> bool:
        """Begin the next lease; says whether anybody is left to deliver to."""
        if self._next is None:
            self._ask()
        assert self._next is not None
        asked, self._next = self._next, None
        try:
            lease = self.billing.wait(asked, self._wanted, PATIENCE_S)
            self._settle(lease)
        except Denied as no:
            self.end(no.reason, no.code)
        except Exception:
            # Whatever the ledger failed with (a full disk, a lost database, a lock), an unpaid
            # sample must not leave.
            self.end("The ledger did not confirm the charge, so the stream has ended.", "ledger")
        else:
            self._left = self.lease
        return bool(self.subscribers) and self._left > 0

    def _wanted(self) -> bool:
        return any(subscriber.subscription.ended is None for subscriber in self.subscribers)

    def _settle(self, lease: Lease) -> None:
        """End subscribers that could not pay; let those that came after the lease was
        asked for pay now.
        """
        for subscriber, no in lease.refused.items():
            subscriber.subscription.end(no.reason, no.code)
        late = [subscriber for subscriber in self.subscribers if subscriber not in lease.paid]
        more = self.cost(self._views()) - lease.device
        if late or more > 0:
            asked = self.billing.later(lambda: self._paid_late(late, max(Fraction(0), more)))
            rest = self.billing.wait(asked, self._wanted, PATIENCE_S)
            for subscriber, no in rest.items():
                subscriber.subscription.end(no.reason, no.code)
        self._device = max(lease.device, self.cost(self._views()))

    def _paid_late(self, late: list[Subscriber], more: Fraction) -> dict[Subscriber, Denied]:
        refused: dict[Subscriber, Denied] = {}
        self.billing.pay("a finer view", (self.currency, more), ())
        for subscriber in late:
            cost = self.priced(subscriber.view)
            try:
                if subscriber.pays:
                    self.billing.pay("a lease begun late", None, [(subscriber.app, cost)])
            except Denied as no:
                refused[subscriber] = no
        return refused

    def end(self, reason: str, code: str) -> None:
        """End all subscribers."""
        for subscriber in tuple(self.subscribers):
            subscriber.subscription.end(reason, code)


def cut(samples: Samples, first: int, every: int) -> Samples:
    """Every so many samples, counted from the shared stream's first; copies, so that there is no
    way back to what was left out.
    """
    t, x, y, valid = _part(samples, slice((-first) % every, None, every))
    return t.copy(), x.copy(), y.copy(), valid.copy()


def _part(samples: Samples, part: slice) -> Samples:
    t, x, y, valid = samples
    return t[part], x[part], y[part], valid[part]


def _later(samples: Samples, by_ns: int) -> Samples:
    return (samples[0] + by_ns, *samples[1:]) if by_ns else samples


def _read_only(samples: Samples) -> Samples:
    """All apps at a view share its arrays: one that writes must not change what others see."""
    for array in samples:
        array.setflags(write=False)
    return samples


def _hand_over(subscriber: Subscriber, samples: Samples) -> None:
    if not len(samples[0]):
        return
    try:
        subscriber.deliver(*samples)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscriber.subscription.end("Its callback failed.", "closed")
