"""Shared protected streams, paid for in leases.

Apps that ask for the same mechanism get the same bytes: one :class:`Base` for each normal form of the registry's text. All `gaussian`
streams are views of one graded session (:mod:`gazeveil.privacy.stream.graded`), whatever their sigma: a coarser view is the finer one plus
noise of its own, so a coalition learns what its finest view tells. A base of another mechanism is a further release about the same gaze and
is charged to the device in full.

Nothing leaves before its charge is durable. Samples are paid for in leases: where a promise has one budget for windows of w samples, w samples
at a time, all others a second at a time. What a lease costs is fixed by the device (:mod:`gazeveil.gatekeeper.till`), whatever change an app
wrote into its mechanism. One transaction pays the device once and every app for itself.
The next lease is asked for on a thread of its own when half of the current one is used; a stream that has used up its lease waits for the
answer at most :data:`PATIENCE_S` and then ends. A crash loses the rest of a lease: too much may be charged, too little never.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gatekeeper.till import Cost, Till, charged_change, cost_of, lease_samples
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.exactly import shown
from gazeveil.privacy.guarantee import Change, Guarantee
from gazeveil.privacy.stream.gaussian import GRID_BITS, Gaussian
from gazeveil.privacy.stream.graded import Graded, GradedSession
from gazeveil.privacy.stream.session import Samples, Session, StreamMechanism

#: Seconds a stream without a lease waits for the ledger.
PATIENCE_S = 2.0

#: Bases that are kept; the one idle for longest makes room.
MOST_BASES = 64

#: Different amounts of Gaussian noise at a time: each is drawn for every sample.
MOST_VIEWS = 8

#: A Gaussian stream's sigma is rounded up to a multiple of this, in degrees: levels of one graded session must not lie nearer to each other,
#: and none can be finer.
SIGMA_STEP_DEG = Fraction(1, 64)

Deliver: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class View:
    """What an app gets of a base.

    Parameters
    ----------
    guarantee : Guarantee
        What it promises.
    scale_deg : Fraction, optional
        Of a graded view: its noise.
    every : int
        Of a graded view: every how many samples of the base it gets.
    """

    guarantee: Guarantee
    scale_deg: Fraction | None = None
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
        What it gets.
    pays : bool
        False for the device's own seats, which its account alone pays for.
    """

    app: str
    deliver: Deliver
    subscription: Subscription
    view: View
    pays: bool = True


@dataclass
class _Lease:
    """A lease that was asked for: who paid, who could not and why, and up to what the device paid."""

    paid: set[Seat]
    refused: dict[Seat, Denied] = field(default_factory=dict)
    device: Fraction = Fraction(0)


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
    r_deg : Fraction
        How far samples move in the change that leases are charged for, in degrees.
    seed : int, optional
        A test stream.
    """

    currency: str

    def __init__(self, mechanism: StreamMechanism, rate_hz: float, every: int, space: Space, till: Till, r_deg: Fraction, seed: int | None) -> None:
        self.mechanism, self.every, self.till = mechanism, every, till
        self.rate_hz = rate_hz / every
        self.promise = mechanism.promise(self.rate_hz, space)
        self.seats: list[Seat] = []
        self.idle_since = 0
        self.key = (str(mechanism), every)
        self._open(space, seed)
        self.charge_at(r_deg)
        self._phase = 0
        self._left = 0
        self._device = Fraction(0)
        self._next: Future[_Lease] | None = None

    def _open(self, space: Space, seed: int | None) -> None:
        self._session: Session | GradedSession = self.mechanism.open(self.rate_hz, space, seed)
        self.lease = lease_samples(self.promise, self.rate_hz)

    # What a graded base does otherwise.

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees; known for a whole lease at once, because samples must not wait for arithmetic."""
        self.currency, self._amount = cost_of(self.promise, self.lease, r_deg)

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> View:
        """What an app that asks for this mechanism gets here; nothing is kept of who asks."""
        assert isinstance(self._session, Session)
        return View(self._session.guarantee)

    def cost(self, views: Iterable[View]) -> Fraction:
        """What a lease costs whoever has these views together: an app, or for all seats the device."""
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
        wanted = self.cost([*self._views(), view])
        return self.currency, wanted if self._left == 0 else max(Fraction(0), wanted - self._device)

    def priced(self, view: View) -> Cost:
        """What a lease of a view costs the app that has it."""
        return self.currency, self.cost([view])

    def sit(self, seat: Seat, paid_device: Fraction) -> None:
        """Take a seat that is paid for, with what the device paid for it."""
        self.seats.append(seat)
        if self._left == 0:
            self._left, self._device = self.lease, paid_device
        else:
            self._device += paid_device
        if self._device < self.cost(self._views()):
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
        device = self.cost([seat.view for seat in seats])
        why = f"lease of {self.lease} samples of {self.mechanism.name}"
        by_app: dict[str, Cost] = {}
        for app in dict.fromkeys(seat.app for seat in seats if seat.pays):
            # Several seats of one app are what a coalition of them is to the device.
            by_app[app] = (self.currency, self.cost([seat.view for seat in seats if seat.app == app]))
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
        more = self.cost(self._views()) - lease.device
        if late or more > 0:
            rest = self._paid_late(late, max(Fraction(0), more))
            for seat, no in rest.items():
                seat.subscription.end(no.reason, no.code)
        self._device = max(lease.device, self.cost(self._views()))

    def _paid_late(self, late: list[Seat], more: Fraction) -> dict[Seat, Denied]:
        refused: dict[Seat, Denied] = {}
        self.till.pay("a finer view", (self.currency, more), ())
        for seat in late:
            try:
                self.till.pay("a lease begun late", None, [(seat.app, self.priced(seat.view))] if seat.pays else ())
            except Denied as no:
                refused[seat] = no
        return refused

    def end(self, reason: str, code: str) -> None:
        """End all seats."""
        for seat in tuple(self.seats):
            seat.subscription.end(reason, code)


class GradedBase(Base):
    """All Gaussian streams: views of one graded session at the tracker's rate. A device has one, so that there is one noise.

    A bounded rate leaves samples out of the view, not out of the session: views of different rates would otherwise have noise of their own. A
    sample that goes to no view costs nothing.

    A level is made known when its first lease is paid; who is refused leaves nothing behind. There are at most :data:`MOST_VIEWS`. Levels that
    nobody sits at stay until another needs the room: then the session goes on with those in use and a new key, which is the same law, because
    noise of different samples is independent and every sample is told from one key.
    """

    def _open(self, space: Space, seed: int | None) -> None:
        # A public grid: which sigmas it can carry must not depend on who came first.
        self._graded = Graded("gaussian", (), bits=GRID_BITS).open(self.rate_hz, space, seed)
        self._session = self._graded
        self.lease = max(1, math.ceil(self.rate_hz))
        self.currency = "rho"
        self._count = 0

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees."""
        # Kept together, because the ledger's thread reads them too.
        self._tariff: tuple[Fraction, dict[tuple[Fraction, int], Fraction]] = (r_deg, {})

    def _rho(self, scale_deg: Fraction, samples: int) -> Fraction:
        r_deg, known = self._tariff
        if (scale_deg, samples) not in known:
            # A test stream's promise is only claimed; it is charged all the same.
            known[scale_deg, samples] = self._graded.guarantee(scale_deg).claimed_loss(charged_change(samples, r_deg)).amount
        return known[scale_deg, samples]

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> View:
        """The view, which is not there before somebody sits at it.

        Raises
        ------
        Denied
            Where all levels are in use: a second session would have noise of its own, and averaging the two would take noise away.
        """
        assert isinstance(mechanism, Gaussian)
        scale = -(-Fraction(mechanism.sigma_deg) // SIGMA_STEP_DEG) * SIGMA_STEP_DEG
        self._used_with(scale)
        # The promise of the noise, said for the change that the device charges for.
        return View(replace(self._graded.guarantee(scale), change=Change.sample(self._tariff[0], "coordinates")), scale, every)

    def _used_with(self, scale_deg: Fraction) -> set[Fraction]:
        """The levels in use, this one among them."""
        used = {view.scale_deg for view in self._views() if view.scale_deg is not None}
        if scale_deg not in used and len(used) >= MOST_VIEWS:
            there = ", ".join(shown(one) for one in sorted(used))
            raise Denied("rate", f"This device gives Gaussian streams with {MOST_VIEWS} different sigma_deg at a time, now {there}. Ask for one of these.")
        return used | {scale_deg}

    def sit(self, seat: Seat, paid_device: Fraction) -> None:
        """Make the level of a paid seat known, and take the seat.

        Raises
        ------
        Denied
            Where others took the last levels while this one was paid for; the lease is lost.
        """
        scale = seat.view.scale_deg
        assert scale is not None
        used = self._used_with(scale)
        if scale not in self._graded.levels:
            if len(self._graded.levels) >= MOST_VIEWS:
                self._graded.keep_only(*(used - {scale}))
            self._graded.declare(scale)
        super().sit(seat, paid_device)

    def cost(self, views: Iterable[View]) -> Fraction:
        """The finest of the views, for all samples that go to any of them: what a coalition learns. Noise is independent from sample to sample."""
        known = [(v.scale_deg, v.every) for v in views if v.scale_deg is not None]
        if not known:
            return Fraction(0)
        samples = min(self.lease, sum(math.ceil(self.lease / every) for every in {e for _, e in known}))
        return self._rho(min(scale for scale, _ in known), samples)

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
