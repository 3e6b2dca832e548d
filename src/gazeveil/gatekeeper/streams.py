"""Shared protected streams and what they cost.

Apps that ask for the same mechanism get the same bytes: one :class:`Base` for each normal form of the registry's text. All `gaussian`
streams are views of one graded session (:mod:`gazeveil.privacy.stream.graded`), whatever their sigma: a coarser view is the finer one plus
noise of its own, so a coalition learns what its finest view tells. A base of another mechanism is a further release about the same gaze and
is charged to the device in full.

Nothing leaves before its charge is durable. Samples are paid for in leases: a promise about windows of w samples is leased w samples at a
time, the graded streams and those that promise nothing a second at a time. One transaction pays the device once and every app for itself.
The next lease is asked for on a thread of its own when half of the current one is used; a stream that has used up its lease waits for the
answer at most :data:`PATIENCE_S` and then ends. A crash loses the rest of a lease: too much may be charged, too little never.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.graded import Graded, GradedSession
from gazeveil.privacy.stream.session import Samples, Session, StreamMechanism

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger import Ledger

#: Seconds a stream without a lease waits for the ledger.
PATIENCE_S = 2.0

#: Bases that are kept; the one idle for longest makes room.
MOST_BASES = 64

#: Different amounts of Gaussian noise in one graded session: each is drawn for every sample.
MOST_VIEWS = 8

#: Currency and amount.
Cost: TypeAlias = tuple[str, Fraction]

Deliver: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


def cost_of(promise: Guarantee, samples: int) -> Cost:
    """What that many samples of a stream cost.

    A promise about windows of w samples costs its epsilon (or rho) for every w samples begun: whatever windows lie across them, by basic
    composition. What is not proved costs no epsilon; its samples are counted.

    Examples
    --------
    >>> from gazeveil.gaze.geometry import Sphere
    >>> from gazeveil.privacy.registry import mechanism
    >>> cost_of(mechanism("kaleido:epsilon=1/2,w=60,r_deg=2").promise(120.0, Sphere()), 90)
    ('epsilon', Fraction(1, 1))
    """
    if promise.definition == "none" or promise.status != "proved":
        return "samples", Fraction(samples)
    currency = "rho" if "rho" in promise.numbers else "epsilon"
    w = promise.numbers.get("w_samples", Fraction(1) if promise.unit == "sample" else None)
    if currency not in promise.numbers or w is None:
        raise Denied("mechanism", f"The promise of {promise.mechanism} cannot be added up over an endless stream.")
    return currency, promise.numbers[currency] * math.ceil(samples / w)


def lease_samples(promise: Guarantee, rate_hz: float) -> int:
    """How many samples one lease is for."""
    return int(promise.numbers.get("w_samples", Fraction(max(1, math.ceil(rate_hz)))))


@dataclass(frozen=True)
class View:
    """What an app gets of a base.

    Parameters
    ----------
    guarantee : Guarantee
        What it promises.
    cost : (str, Fraction)
        Of one lease, for the app.
    scale_deg, r_deg : Fraction, optional
        Of a graded view: its noise, and how far a sample moves in its promise.
    every : int
        Of a graded view: every how many samples of the base it gets.
    """

    guarantee: Guarantee
    cost: Cost
    scale_deg: Fraction | None = None
    r_deg: Fraction | None = None
    every: int = 1


@dataclass(eq=False)
class Seat:
    """An app at a base.

    Parameters
    ----------
    app : str
        Who pays.
    deliver : callable
        Gets the samples.
    subscription : Subscription
        Ends with the seat.
    view : View
        What it gets and what that costs.
    """

    app: str
    deliver: Deliver
    subscription: Subscription
    view: View

    @property
    def cost(self) -> Cost:
        """Of one lease, for the app."""
        return self.view.cost


@dataclass
class _Lease:
    """A lease that was asked for: who paid, who could not and why, and up to what the device paid."""

    paid: set[Seat]
    refused: dict[Seat, Denied] = field(default_factory=dict)
    device: Fraction = Fraction(0)


class Till:
    """Where leases are paid.

    Parameters
    ----------
    ledger : Ledger
        Durable when `charge` returns.
    clock_ns : callable
        Wall clock.
    device : str
        The device's account.
    session : str
        Makes request ids unique.
    """

    def __init__(self, ledger: Ledger, clock_ns: Callable[[], int], device: str, session: str) -> None:
        self._ledger, self._clock_ns, self._device, self._session = ledger, clock_ns, device, session
        self._numbers = itertools.count(1)
        self._worker: ThreadPoolExecutor | None = None

    def pay(self, why: str, device: Cost | None, apps: Iterable[tuple[str, Cost]]) -> None:
        """Charge the device and apps, all or none; raises Denied or LedgerError with nothing spent."""
        from gazeveil.gatekeeper.ledger import Charge

        charges = [] if device is None or device[1] == 0 else [Charge(self._device, *device)]
        charges += [Charge(account_of(app), *cost) for app, cost in apps if cost[1] > 0]
        if charges:
            self._ledger.charge(f"{self._session}:{next(self._numbers)}", charges, why, self._clock_ns())

    def later(self, work: Callable[[], _Lease]) -> Future[_Lease]:
        """Run on the ledger's own thread."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="gazeveil-ledger")
        return self._worker.submit(work)

    def close(self) -> None:
        """End the thread; what it was asked for is finished first, so that nothing half-paid stays."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None


def account_of(app: str) -> str:
    """The ledger's account of an app."""
    return f"app:{app}"


class Base:
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
    till : Till
        Where it pays.
    seed : int, optional
        A test stream.
    """

    def __init__(self, mechanism: StreamMechanism, rate_hz: float, every: int, space: Space, till: Till, seed: int | None) -> None:
        self.mechanism, self.every, self.till = mechanism, every, till
        self.rate_hz = rate_hz / every
        self.promise = mechanism.promise(self.rate_hz, space)
        self.seats: list[Seat] = []
        self.idle_since = 0
        self.key = (str(mechanism), every)
        self._open(space, seed)
        self._phase = 0
        self._left = 0
        self._device = Fraction(0)
        self._next: Future[_Lease] | None = None

    def _open(self, space: Space, seed: int | None) -> None:
        self._session: Session | GradedSession = self.mechanism.open(self.rate_hz, space, seed)
        self.lease = lease_samples(self.promise, self.rate_hz)
        self.currency, self._amount = cost_of(self.promise, self.lease)

    # What a graded base does otherwise.

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> View:
        """What an app that asks for this mechanism gets here."""
        assert isinstance(self._session, Session)
        return View(self._session.guarantee, (self.currency, self._amount))

    def device_cost(self, views: Iterable[View]) -> Fraction:
        """What a lease costs the device while apps have these views."""
        return self._amount if any(True for _ in views) else Fraction(0)

    def _views(self) -> list[View]:
        return [seat.view for seat in self.seats]

    def _release(self, samples: Samples) -> Callable[[Seat], Samples]:
        assert isinstance(self._session, Session)
        if len(samples[0]) == 1:  # one sample has a shorter way through a session
            out = self._session.push(int(samples[0][0]), float(samples[1][0]), float(samples[2][0]), bool(samples[3][0]))
        else:
            out = self._session.push(*samples)
        return lambda seat: out

    # Seats.

    def owed(self, view: View) -> Cost:
        """What the device must pay for a new seat now: the whole lease, or what the current one does not cover."""
        wanted = self.device_cost([*self._views(), view])
        return self.currency, wanted if self._left == 0 else max(Fraction(0), wanted - self._device)

    def sit(self, seat: Seat, paid_device: Fraction) -> None:
        """Take a seat that is paid for, with what the device paid for it."""
        self.seats.append(seat)
        if self._left == 0:
            self._left, self._device = self.lease, paid_device
        else:
            self._device += paid_device
        if self._device < self.device_cost(self._views()):
            # Other seats came, went or used the lease up while the ledger wrote: the next sample waits for a lease of its own.
            self._left = 0

    def leave(self, seat: Seat, now: int) -> None:
        """Give a seat up. The rest of the lease stays with the base."""
        if seat in self.seats:
            self.seats.remove(seat)
            self.idle_since = now

    # Samples.

    def push(self, samples: Samples) -> None:
        """Protect and deliver samples as far as they are paid for."""
        if self.every > 1:
            picked = slice((-self._phase) % self.every, None, self.every)
            self._phase = (self._phase + len(samples[0])) % self.every
            samples = (samples[0][picked], samples[1][picked], samples[2][picked], samples[3][picked])
        done, count = 0, len(samples[0])
        while done < count and self.seats:
            if self._left == 0 and not self._turn():
                return
            n = min(self._left, count - done)
            part = slice(done, done + n)
            self._left -= n
            done += n
            view = self._release((samples[0][part], samples[1][part], samples[2][part], samples[3][part]))
            for seat in tuple(self.seats):
                if seat.subscription.ended is None:
                    _hand_over(seat, view(seat))
            if self._next is None and 2 * self._left <= self.lease and self.seats:
                self._ask()

    def _ask(self) -> None:
        """Ask for the next lease, on the ledger's thread."""
        seats = tuple(self.seats)
        self._next = self.till.later(lambda: self._paid(seats))

    def _paid(self, seats: tuple[Seat, ...]) -> _Lease:
        """Pay for a lease: together, or if that is refused one by one. Touches no state of the base."""
        device = self.device_cost([seat.view for seat in seats])
        why = f"lease of {self.lease} samples of {self.mechanism.name}"
        by_app: dict[str, Cost] = {}
        for app in dict.fromkeys(seat.app for seat in seats if seat.cost[1] > 0):
            # Several seats of one app are what a coalition of them is to the device.
            by_app[app] = (self.currency, self.device_cost([seat.view for seat in seats if seat.app == app]))
        try:
            self.till.pay(why, (self.currency, device), by_app.items())
        except Denied:
            self.till.pay(why, (self.currency, device), ())  # if the device cannot pay, that is the reason for all
        else:
            return _Lease(set(seats), device=device)
        lease = _Lease({seat for seat in seats if seat.app not in by_app}, device=device)
        for app, cost in by_app.items():
            mine = [seat for seat in seats if seat.app == app]
            try:
                self.till.pay(why, None, [(app, cost)])
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
            lease = asked.result(timeout=PATIENCE_S)
            self._settle(lease)
        except Denied as no:
            self.end(no.reason, no.code)
        except Exception:
            # Whatever the ledger failed with (a full disk, a lost database, a lock), an unpaid sample must not leave.
            self.end("The ledger did not confirm the charge, so the stream has ended.", "ledger")
        else:
            self._left = self.lease
        return bool(self.seats) and self._left > 0

    def _settle(self, lease: _Lease) -> None:
        """End seats that could not pay; let those that came after the lease was asked for pay now."""
        for seat, no in lease.refused.items():
            seat.subscription.end(no.reason, no.code)
        late = [seat for seat in self.seats if seat not in lease.paid]
        more = self.device_cost(self._views()) - lease.device
        if late or more > 0:
            rest = self._paid_late(late, max(Fraction(0), more))
            for seat, no in rest.items():
                seat.subscription.end(no.reason, no.code)
        self._device = max(lease.device, self.device_cost(self._views()))

    def _paid_late(self, late: list[Seat], more: Fraction) -> dict[Seat, Denied]:
        refused: dict[Seat, Denied] = {}
        self.till.pay("a finer view", (self.currency, more), ())
        for seat in late:
            try:
                self.till.pay("a lease begun late", None, [(seat.app, seat.cost)])
            except Denied as no:
                refused[seat] = no
        return refused

    def end(self, reason: str, code: str) -> None:
        """End all seats."""
        for seat in tuple(self.seats):
            seat.subscription.end(reason, code)


class GradedBase(Base):
    """All Gaussian streams: views of one graded session at the tracker's rate.

    A bounded rate leaves samples out of the view, not out of the session: views of different rates would otherwise have noise of their own. A
    sample that goes to no view costs nothing.
    """

    def _open(self, space: Space, seed: int | None) -> None:
        assert isinstance(self.mechanism, Gaussian)
        self._graded = Graded("gaussian", (self.mechanism.sigma_deg,), self.mechanism.r_deg).open(self.rate_hz, space, seed)
        self._session = self._graded
        self.lease = max(1, math.ceil(self.rate_hz))
        self.currency, self._amount = "rho", Fraction(0)
        self._count = 0

    def _promise(self, scale_deg: Fraction, r_deg: Fraction) -> Guarantee:
        # The session's guarantee speaks of one r; another r of the same noise is another number, not another stream.
        other = copy.copy(self._graded)
        other.graded = replace(self._graded.graded, r_deg=r_deg)
        return other.guarantee(scale_deg)

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> View:
        """Declare the view.

        Raises
        ------
        ParameterError
            For a scale finer than the session can carry, or one too many: it needs a base of its own.
        """
        assert isinstance(mechanism, Gaussian)
        if len(self._graded.levels) >= MOST_VIEWS and Fraction(mechanism.sigma_deg) not in self._graded.levels:
            checks.refuse("Gatekeeper", "sigma_deg", f"one of the {MOST_VIEWS} in use", mechanism.sigma_deg)
        scale, r = self._graded.declare(mechanism.sigma_deg), Fraction(mechanism.r_deg)
        guarantee = self._promise(scale, r)
        return View(guarantee, (self.currency, guarantee.numbers["rho"] * math.ceil(self.lease / every)), scale, r, every)

    def device_cost(self, views: Iterable[View]) -> Fraction:
        """The finest view in use, at the farthest r, for all samples that go to any: what a coalition of all seats learns."""
        known = [(v.scale_deg, v.r_deg, v.every) for v in views if v.scale_deg is not None and v.r_deg is not None]
        if not known:
            return Fraction(0)
        samples = min(self.lease, sum(math.ceil(self.lease / every) for every in {e for _, _, e in known}))
        return self._promise(min(s for s, _, _ in known), max(r for _, r, _ in known)).numbers["rho"] * samples

    def _release(self, samples: Samples) -> Callable[[Seat], Samples]:
        views, first = self._graded.push(*samples), self._count
        self._count += len(samples[0])
        cut: dict[tuple[Fraction, int], Samples] = {}

        def of(seat: Seat) -> Samples:
            scale, every = seat.view.scale_deg, seat.view.every
            assert scale is not None
            if every == 1:
                return views[scale]
            if (scale, every) not in cut:
                t, x, y, valid = views[scale]
                part = slice((-first) % every, None, every)
                cut[scale, every] = t[part].copy(), x[part].copy(), y[part].copy(), valid[part].copy()
            return cut[scale, every]

        return of


def _hand_over(seat: Seat, samples: Samples) -> None:
    if not len(samples[0]):
        return
    for array in samples:  # all apps at a view share them: one that writes must not change what others see
        array.setflags(write=False)
    try:
        seat.deliver(*samples)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        seat.subscription.end("Its callback failed.", "closed")
