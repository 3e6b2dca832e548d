"""Shared protected streams, paid for in leases.

Apps that ask for the same mechanism get the same bytes of one :class:`SharedStream`. All `gaussian`
streams are views of one graded session (:mod:`gazeveil.privacy.stream.graded`), whatever their
sigma: a coarser view is the finer one plus noise of its own, so a coalition learns what its finest
view tells. A device has one shared stream of a family at a time; a shared stream of another family
is a further release about the same gaze and is charged to the device in full.

Nothing leaves before its charge is durable. Samples are paid for in leases: where a promise has one
budget for windows of w samples, w samples at a time, all others a second at a time. What a lease
costs is fixed by the device (:mod:`gazeveil.gatekeeper.streams.billing`), whatever change a
mechanism names. One transaction pays the device once and every app for itself. The next lease is
asked for on the ledger's thread when half of the current one is used; a stream that has used up its
lease waits for the answer at most :data:`PATIENCE_S` and then ends. A crash loses the rest of a
lease: too much may be charged, too little never.

The time that shared streams are given: it goes on, whatever the tracker's clock does.

A session would have to forget its past to believe a clock that went back, and with it what it has
spent in the current window; and one that followed every jump of a clock to another one, from the
time since a start to the time since 1970, would soon be at the end of 64 bits. So a session's time
is the tracker's plus a shift. A time that does not come after the last one, or comes more than a
day after it, is of another clock, which is believed after half a second of such samples, or at once
after a pause; then the shift changes so that the session's time goes on by one period. Until then
such samples are lost.

Released times follow the tracker's clock where that goes forward, by whole periods, and never go
back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Bools, Ints
from gazeveil.compiled import compiled
from gazeveil.gatekeeper.blocks import OneSample, columns
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.streams.billing import (
    Billing,
    Cost,
    charged_change,
    cost_of,
    lease_samples,
)
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import set_back_samples
from gazeveil.privacy.guarantee import Change, Guarantee
from gazeveil.privacy.stream.gaussian import GRID_BITS, Gaussian
from gazeveil.privacy.stream.graded import Graded
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Session

#: Seconds a stream without a lease waits for the ledger.
PATIENCE_S = 2.0

#: A Gaussian stream's sigma is rounded up to a multiple of this, in degrees: levels of one graded
#: session must not lie nearer to each other, and none can be finer.
SIGMA_STEP_DEG = Fraction(1, 64)

Deliver: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class StreamView:
    """What an app gets of a shared stream: what it promises and, of a graded one, its noise."""

    guarantee: Guarantee
    scale_deg: Fraction = Fraction(0)


@dataclass(eq=False)
class Subscriber:
    """An app that subscribes to a shared stream, and pays for it."""

    app: str
    deliver: Deliver
    subscription: Subscription
    view: StreamView


@dataclass
class Lease:
    """A lease that was asked for: who paid, who could not and why, and up to what the device
    paid.
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
        space: Space,
        billing: Billing,
        r_deg: Fraction,
        seed: int | None,
    ) -> None:
        self.mechanism, self.rate_hz, self.billing = mechanism, rate_hz, billing
        self.subscribers: list[Subscriber] = []
        self._open(space, seed)
        self.charge_at(r_deg)
        self._left = 0
        self._device = Fraction(0)
        self._next: Future[Lease] | None = None
        #: Whether single samples (True) and longer blocks (False) have passed.
        self._compiled_for: set[bool] = set()

    # What a graded stream does otherwise.

    def _open(self, space: Space, seed: int | None) -> None:
        self.promise = self.mechanism.promise(self.rate_hz, space)
        self._session: Session = self.mechanism.open(self.rate_hz, space, seed)
        self.lease = lease_samples(self.promise, self.rate_hz)

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees; known for a whole lease at once,
        because samples must not wait for arithmetic.
        """
        self.currency, self._amount = cost_of(self.promise, self.lease, r_deg)

    def view_of(self, mechanism: StreamMechanism) -> StreamView:
        """What an app that asks for this mechanism gets here; nothing is kept of who asks."""
        return StreamView(self._session.guarantee)

    def cost(self, views: Iterable[StreamView]) -> Fraction:
        """The price of a lease for these views together: those of one app, or of all subscribers
        for the device.
        """
        return self._amount if any(True for _ in views) else Fraction(0)

    def _release(self, samples: Samples | OneSample) -> Callable[[StreamView], Samples]:
        out = self._session.push(*columns(*samples))
        return lambda view: out

    # Subscribers.

    def _views(self) -> list[StreamView]:
        return [subscriber.view for subscriber in self.subscribers]

    def first_lease(self, view: StreamView, app: str) -> Callable[[], Fraction]:
        """What pays for a new subscriber: the whole lease for its app, and for the device what the
        current one does not cover. It says what the device paid; calling it needs no lock.
        """
        wanted = self.cost([*self._views(), view])
        owed = wanted if self._left == 0 else max(Fraction(0), wanted - self._device)
        price = self.cost([view])

        def pay() -> Fraction:
            device = self.currency, owed
            self.billing.pay(self._why("first lease"), device, [(app, (self.currency, price))])
            return owed

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
        return count <= self._left and (count == 1) in self._compiled_for

    def push(self, samples: Samples | OneSample, released_ns: int = 0) -> None:
        """Protect and deliver samples as far as they are paid for; `released_ns` is added to the
        times that are released.
        """
        done, count = 0, 1 if isinstance(samples, OneSample) else len(samples[0])
        while done < count and self.subscribers:
            if self._left == 0 and not self._turn():
                return
            n = min(self._left, count - done)
            release = self._release(samples if n == count else _part(samples, done, done + n))
            self._left -= n
            done += n
            self._compiled_for.add(n == 1)
            given: dict[int, Samples] = {}
            for subscriber in tuple(self.subscribers):
                if subscriber.subscription.ended is None:
                    made = release(subscriber.view)
                    # Apps of one view share its arrays, which none may write.
                    if id(made) not in given:
                        given[id(made)] = _read_only(made, released_ns)
                    _hand_over(subscriber, given[id(made)])
            if self._next is None and 2 * self._left <= self.lease and self.subscribers:
                self._ask()

    def _ask(self) -> None:
        """Ask for the next lease, on the ledger's thread."""
        subscribers = tuple(self.subscribers)
        self._next = self.billing.later(lambda: self._paid(subscribers))

    def _why(self, what: str) -> str:
        return f"{what} of {self.mechanism.name}"

    def _paid(self, subscribers: tuple[Subscriber, ...]) -> Lease:
        """Pay for a lease: together, or if that is refused one by one. Touches no state of the
        shared stream.
        """
        device = self.currency, self.cost([subscriber.view for subscriber in subscribers])
        why = self._why(f"lease of {self.lease} samples")
        by_app: dict[str, Cost] = {}
        for app in dict.fromkeys(subscriber.app for subscriber in subscribers):
            # Several subscriptions of one app are what a coalition of them is to the device.
            amount = self.cost([s.view for s in subscribers if s.app == app])
            by_app[app] = (self.currency, amount)
        try:
            self.billing.pay(why, device, by_app.items())
        except Denied:
            # If the device cannot pay, that is the reason for all.
            self.billing.pay(why, device, ())
        else:
            return Lease(set(subscribers), device=device[1])
        lease = Lease(set(), device=device[1])
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
            self._settle(self.billing.wait(asked, self._wanted, PATIENCE_S))
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
        """End subscribers that could not pay; let those that came after the lease was asked for pay
        now.
        """
        for subscriber, no in lease.refused.items():
            subscriber.subscription.end(no.reason, no.code)
        late = [subscriber for subscriber in self.subscribers if subscriber not in lease.paid]
        more = max(Fraction(0), self.cost(self._views()) - lease.device)
        if late or more:
            asked = self.billing.later(lambda: self._paid_late(late, more))
            for subscriber, no in self.billing.wait(asked, self._wanted, PATIENCE_S).items():
                subscriber.subscription.end(no.reason, no.code)
        self._device = max(lease.device, self.cost(self._views()))

    def _paid_late(self, late: list[Subscriber], more: Fraction) -> dict[Subscriber, Denied]:
        refused: dict[Subscriber, Denied] = {}
        self.billing.pay("a finer view", (self.currency, more), ())
        for subscriber in late:
            cost = self.currency, self.cost([subscriber.view])
            try:
                self.billing.pay("a lease begun late", None, [(subscriber.app, cost)])
            except Denied as no:
                refused[subscriber] = no
        return refused

    def end(self, reason: str, code: str) -> None:
        """End all subscribers."""
        for subscriber in tuple(self.subscribers):
            subscriber.subscription.end(reason, code)


class GradedStream(SharedStream):
    """All Gaussian streams: views of one graded session at the tracker's rate. A device has one, so
    that there is one noise.

    A level is made known when its first lease is paid; who is refused leaves nothing behind.
    """

    def _open(self, space: Space, seed: int | None) -> None:
        # A public grid: which sigmas it can carry must not depend on who came first.
        self._graded = Graded(bits=GRID_BITS).open(self.rate_hz, space, seed)
        self.lease = max(1, math.ceil(self.rate_hz))
        self.currency = "rho"

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees."""
        # Kept together, because the ledger's thread reads them too.
        self._tariff: tuple[Fraction, dict[Fraction, Fraction]] = (r_deg, {})

    def view_of(self, mechanism: StreamMechanism) -> StreamView:
        """What an app that asks for this mechanism gets here."""
        assert isinstance(mechanism, Gaussian)
        scale = -(-Fraction(mechanism.sigma_deg) // SIGMA_STEP_DEG) * SIGMA_STEP_DEG
        # The promise of the noise, said for the change that the device charges for.
        change = Change.sample(self._tariff[0], "coordinates")
        return StreamView(replace(self._graded.guarantee(scale), change=change), scale)

    def subscribe(self, subscriber: Subscriber, paid_device: Fraction) -> None:
        """Make the level of a paid subscriber known, and add the subscriber."""
        if subscriber.view.scale_deg not in self._graded.levels:
            self._graded.declare(subscriber.view.scale_deg)
        super().subscribe(subscriber, paid_device)

    def cost(self, views: Iterable[StreamView]) -> Fraction:
        """The finest of the views: what a coalition learns."""
        finest = min((view.scale_deg for view in views), default=None)
        if finest is None:
            return Fraction(0)
        r_deg, known = self._tariff
        if finest not in known:
            promise = self._graded.guarantee(finest)
            known[finest] = promise.claimed_loss(charged_change(self.lease, r_deg)).amount
        return known[finest]

    def _release(self, samples: Samples | OneSample) -> Callable[[StreamView], Samples]:
        # By whole numbers: a hash of a Fraction costs as much as all else that is done here.
        views = {
            (scale.numerator, scale.denominator): view
            for scale, view in self._graded.views(*columns(*samples))
        }

        def of(view: StreamView) -> Samples:
            return views[view.scale_deg.numerator, view.scale_deg.denominator]

        return of


def _part(samples: Samples | OneSample, begin: int, end: int) -> Samples:
    t_ns, x_deg, y_deg, valid = (np.atleast_1d(column)[begin:end] for column in samples)
    return t_ns, x_deg, y_deg, valid


def _read_only(samples: Samples, later_ns: int) -> Samples:
    made = (samples[0] + later_ns, *samples[1:]) if later_ns else samples
    for column in made:
        column.setflags(write=False)
    return made


def _hand_over(subscriber: Subscriber, samples: Samples) -> None:
    if not len(samples[0]):
        return
    try:
        subscriber.deliver(*samples)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscriber.subscription.end("Its callback failed.", "closed")


#: Beyond this a time leaves no room to count on in 64 bits.
MOST_NS = 4 * 10**18

_SECOND_NS, _DAY_NS = 10**9, 86_400 * 10**9

# Places in the state.
_BEGUN, _LAST, _SHIFT, _BEHIND, _STATE = range(5)


class SessionClock:
    """The time of the shared streams of a device.

    Parameters
    ----------
    rate_hz : float
        Of the tracker.
    """

    def __init__(self, rate_hz: float) -> None:
        self._period_ns, self._believe = round(1e9 / rate_hz), set_back_samples(rate_hz)
        self._state = np.zeros(_STATE, dtype=np.int64)
        self._released_ns = 0  # released time minus the session's

    def pause(self) -> None:
        """The tracker vanished: another clock is believed at once."""
        self._state[_BEHIND] = self._believe

    def runs(self, samples: Samples | OneSample) -> Iterator[tuple[Samples | OneSample, int]]:
        """The samples with the session's times, cut where another clock is believed, each run with
        what is to be added to the times that are released of it.
        """
        if isinstance(samples, OneSample):
            begun, last_ns, shift_ns, *_ = self._state.tolist()
            t_ns = samples.t_ns + shift_ns
            if begun and last_ns < t_ns <= last_ns + _SECOND_NS and abs(samples.t_ns) < MOST_NS:
                self._state[_LAST], self._state[_BEHIND] = t_ns, 0
                yield OneSample(t_ns, *samples[1:]), self._released_ns
                return
            samples = samples.arrays()
        t, x, y, valid = samples[0].copy(), samples[1], samples[2], samples[3].copy()
        begin = 0
        while begin < len(t):
            shift_ns = int(self._state[_SHIFT])
            end = _follow(t, valid, begin, self._believe, self._period_ns, self._state)
            if (now_ns := int(self._state[_SHIFT])) != shift_ns:
                ahead_ns = max(0, -now_ns - self._released_ns)
                self._released_ns += ahead_ns // self._period_ns * self._period_ns
            run = slice(begin, end)
            yield (t[run], x[run], y[run], valid[run]), self._released_ns
            begin = end


@compiled
def most_step_ns(last_ns: int) -> int:
    """What comes later than this after a time of a session is of another clock. Steps of just below
    a day bring no session to the end of 64 bits.
    """
    return _DAY_NS if last_ns < MOST_NS else _SECOND_NS


@compiled
def _follow(t_ns: Ints, valid: Bools, begin: int, believe: int, period_ns: int, state: Ints) -> int:
    """Put times on the session's, in place, and mark what has none as lost; says where the run
    ends, before the first sample of a clock that is believed from there on.
    """
    for i in range(begin, len(t_ns)):
        t = t_ns[i]
        if t <= -MOST_NS or t >= MOST_NS:
            t_ns[i], valid[i] = state[_LAST], False
            continue
        if state[_BEGUN] == 0:
            state[_BEGUN], state[_LAST], state[_BEHIND] = 1, t, 0
            continue
        # In floating point first: the difference of two wild clocks may not fit 64 bits.
        near = abs(float(t) + float(state[_SHIFT]) - float(state[_LAST])) < 2.0 * _DAY_NS
        step = t + state[_SHIFT] - state[_LAST] if near else np.int64(0)
        if 0 < step <= most_step_ns(state[_LAST]):
            state[_LAST] += step
            state[_BEHIND] = 0
            t_ns[i] = state[_LAST]
            continue
        state[_BEHIND] += 1
        if state[_BEHIND] > believe:
            if i > begin:
                state[_BEHIND] = believe
                return i
            state[_LAST] += period_ns
            state[_SHIFT], state[_BEHIND] = state[_LAST] - t, 0
            t_ns[i] = state[_LAST]
        elif near and step <= 0:
            t_ns[i] = state[_LAST] + step  # it came late: the session has it lost
        else:
            t_ns[i], valid[i] = state[_LAST], False
    return len(t_ns)
