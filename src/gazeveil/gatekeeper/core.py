"""The Gatekeeper: one wearer's gaze comes in, quantised events and protected streams go out, each to whom the policy allows.

Everything any app ever learns is a function of one sheet of quantised events (:mod:`gazeveil.gatekeeper.sheet`) and of one set of shared
protected streams (:mod:`gazeveil.gatekeeper.streams`). So a coalition of apps learns exactly what the sheet and the finest granted streams
tell. There is no call for raw position, pupil, velocity, confidence or timing at the tracker's rate (S001, section 4).

    with Ledger.open("sqlite:///gaze.db") as ledger:
        keeper = Gatekeeper(policy, ledger, rate_hz=120.0)
        shop = keeper.app("shop")
        shelf = shop.register_area("shelf", 90, 60, 30, 30)
        keeper.push(t_ns, x_deg, y_deg)                 # from the tracker
        shop.metrics(shelf.id)
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.gatekeeper.app import App
from gazeveil.gatekeeper.counters import LEVELS as COUNTER_LEVELS
from gazeveil.gatekeeper.counters import Counters
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.level import Level, level_of
from gazeveil.gatekeeper.looking import Looker, Told
from gazeveil.gatekeeper.room import Room
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gatekeeper.till import account_of
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.privacy.exactly import Number
from gazeveil.privacy.stream.session import Samples

__all__ = ["App", "Gatekeeper", "Live"]

if TYPE_CHECKING:
    from gazeveil.gatekeeper.audit_log import AuditLog
    from gazeveil.gatekeeper.ledger import Ledger
    from gazeveil.gatekeeper.policy import Grant, Policy

_WHOLE = (int, np.integer)
_NUMBERS = (float, int, np.floating, np.integer)
_TRUTH = (bool, np.bool_)

#: Raw blocks, for the owner's own view alone.
Watcher: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]], None]


class Live:
    """The owner's own view of the raw gaze, for the trusted dashboard of the device; made by :meth:`Gatekeeper.live`."""

    def __init__(self, room: Room, watchers: dict[Subscription, Watcher]) -> None:
        self._room = room
        self._watchers = watchers

    def watch(self, callback: Watcher) -> Subscription:
        """Have `callback(t_ns, x_deg, y_deg, valid)` called with copies of the raw blocks."""
        with self._room.lock:
            subscription = Subscription(next(self._room.numbers), "", self._forget)
            self._watchers[subscription] = callback
            return subscription

    def _forget(self, subscription: Subscription) -> None:
        with self._room.lock:
            self._watchers.pop(subscription, None)


class Gatekeeper:
    """Keeps the gaze of one wearer.

    Parameters
    ----------
    policy : Policy
        Who may have what; nothing is allowed that it does not name.
    ledger : Ledger
        Where budgets are kept.
    rate_hz : float
        Nominal rate of the tracker.
    space : Sphere or Screen
        What its degrees mean.
    level : Level or str
        How coarse the sheet is: `coarse`, `fine`, or a level of your own.
    device : str
        Name of the device's account in the ledger; apps have accounts `app:NAME`.
    clock_ns : callable
        Wall clock in nanoseconds since the Unix epoch, for budgets, rates and expiry.
    seed : int, optional
        Test streams instead of the operating system's randomness: repeatable, and promises are only `claimed`.
    audit : AuditLog, optional
        Gets a row for every answer, before it is given.
    tile_stream : str, optional
        A mechanism whose protected samples the tile follows, once a tick; by default it follows the sheet. The device pays for it while it
        is open, from the first question for a tile on.
    counter_epsilon : number
        Budget of one fixation in one area's counter.
    counter_levels : int
        Levels of the counters' trees: a horizon is 2**levels - 1 ticks.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        *,
        rate_hz: float,
        space: Space | None = None,
        level: Level | str = "coarse",
        device: str = "device",
        clock_ns: Callable[[], int] = time.time_ns,
        seed: int | None = None,
        audit: AuditLog | None = None,
        tile_stream: str | None = None,
        counter_epsilon: Number = 1,
        counter_levels: int = COUNTER_LEVELS,
    ) -> None:
        owner = "Gatekeeper"
        rate = checks.positive(owner, "rate_hz", rate_hz)
        where = Sphere() if space is None else space
        if not isinstance(where, Sphere | Screen):
            checks.refuse(owner, "space", "a Sphere or a Screen", space)
        how = level_of(level)
        counters = Counters(counter_epsilon, counter_levels, how.tick_ms, seed)
        self._room = Room(policy, ledger, audit, clock_ns, device, how, where, rate, counters, seed, tile_stream)
        self._looker = Looker(rate, where, self._room.grid, how.tick_ms)
        self._pending: deque[Told] = deque()
        self._watchers: dict[Subscription, Watcher] = {}
        self._samples = 0
        self._owner = threading.RLock()  # changes of the policy follow one another
        self._room.limits(policy)

    # The tracker's side.

    def push(self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True) -> None:
        """Take what the tracker just gave; callbacks run before this returns.

        Parameters
        ----------
        t_ns : int or array of int64
            Time in nanoseconds, from any origin.
        x_deg, y_deg : float or array
            Degrees of the space.
        valid : bool or array of bool
            False where there is no gaze. What is no place of the space, or comes with a time that does not go on, is a lost sample too.

        Raises
        ------
        ParameterError
            For arrays of unequal length or of another type; never for what the gaze is.
        """
        room = self._room
        if isinstance(t_ns, _WHOLE) and isinstance(x_deg, _NUMBERS) and isinstance(y_deg, _NUMBERS) and isinstance(valid, _TRUTH) and abs(int(t_ns)) < 2**62:
            with room.lock:
                if self._idle():
                    if self._watchers and not room.closed:
                        self._watch(_arrays(t_ns, x_deg, y_deg, valid))
                    return
                self._samples += 1
                due = self._looker.one(int(t_ns), float(x_deg), float(y_deg), bool(valid))
                if self._watchers or room.pool.active:
                    self._hand_on(
                        (np.array([t_ns], dtype=np.int64), np.array([x_deg], dtype=np.float64), np.array([y_deg], dtype=np.float64), np.array([valid]))
                    )
                if due:
                    self._take(self._looker.look())
            return
        samples = _arrays(t_ns, x_deg, y_deg, valid)
        with room.lock:
            if self._idle():
                if self._watchers and not room.closed:
                    self._watch(samples)
                return
            self._samples += len(samples[0])
            self._hand_on(samples)
            self._take(self._looker.block(*samples))

    def _idle(self) -> bool:
        """Whether samples are not to be looked at; also ends what has expired."""
        room = self._room
        if room.expiry_ns is not None and room.clock_ns() >= room.expiry_ns:
            room.review()
        return room.closed or not room.policy.consent

    def _hand_on(self, samples: Samples) -> None:
        if self._watchers:
            self._watch(samples)
        self._room.pool.push(samples)

    def _watch(self, samples: Samples) -> None:
        for subscription, watcher in tuple(self._watchers.items()):
            try:
                watcher(samples[0].copy(), samples[1].copy(), samples[2].copy(), samples[3].copy())
            except Exception:
                subscription.end("Its callback failed.", "closed")

    def _take(self, told: list[Told]) -> None:
        """Publish what was decided in ticks that are over."""
        self._pending.extend(told)
        tick = self._looker.tick
        if tick > self._room.tick:
            self._room.tick = tick
            while self._pending and self._pending[0].decided_tick < tick:
                self._room.publish(self._pending.popleft())
            self._room.tick_over()

    def lost(self) -> None:
        """The tracker vanished: open events end here, what was decided is told, and the tile is not known."""
        room = self._room
        with room.lock:
            if room.closed:
                return
            told = self._looker.close()
            self._pending.extend(told if room.policy.consent else ())
            while self._pending:
                room.publish(self._pending.popleft())
            room.pool.pause()
            room.forget_tile()

    # The apps' side.

    def app(self, app: str, origin: str | None = None) -> App:
        """An app's view.

        Parameters
        ----------
        app : str
            Its name in the policy; an unknown one gets a view that refuses everything.
        origin : str, optional
            The web page it is, as a browser says.
        """
        return App(self._room, app, origin)

    # The owner's side.

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._room.policy

    @property
    def level(self) -> Level:
        """How coarse the sheet is."""
        return self._room.level

    @property
    def space(self) -> Space:
        """What degrees mean."""
        return self._room.space

    @property
    def rate_hz(self) -> float:
        """Nominal rate of the tracker."""
        return self._room.rate_hz

    def set_policy(self, policy: Policy) -> None:
        """Put another policy in force, at once; subscriptions it does not allow end with the reason.

        Raises
        ------
        LedgerError
            Where the ledger or the audit log cannot be written; the old policy stays in force.
        """
        with self._owner:
            self._put(policy, "policy", "device", always=False)

    def _put(self, policy: Policy, kind: str, app: str, always: bool) -> None:
        if always:  # what takes something away does not wait for a disk, and works with a broken one
            self._apply(policy)
        self._room.record(kind, app, {"apps": len(policy.apps), "consent": policy.consent})
        self._room.limits(policy)
        if not always:
            self._apply(policy)

    def _apply(self, policy: Policy) -> None:
        room = self._room
        with room.lock:
            room.policy = policy
            room.pool.charge_at(policy.device.r_deg)
            if not policy.consent:
                self._looker.reset()
                self._pending.clear()
                room.forget_tile()
            room.review()
            for name in [n for n in room.guests if n not in policy.apps]:
                del room.guests[name]

    def grant(self, app: str, grant: Grant) -> None:
        """Grant an app something, in place of what it had."""
        with self._owner:
            self._put(self._room.policy.with_grant(app, grant), "grant", app, always=False)

    def revoke(self, app: str) -> None:
        """Take an app's grant back; its subscriptions end before the next sample.

        Raises
        ------
        Denied
            For an app without a grant.
        LedgerError
            Where that cannot be recorded; the grant is taken back nevertheless.
        """
        with self._owner:
            granted = self._room.policy.apps.get(app)
            if granted is None:
                raise Denied("no-grant", f"The app '{app}' has no grant.")
            self._put(self._room.policy.with_grant(app, replace(granted, revoked=True)), "revoke", app, always=True)

    def consent(self, on: bool) -> None:
        """Switch everything on or off. Without consent samples are not even looked at.

        Switching on what was off begins a session: budgets `per="session"` are whole again. Nobody but the owner does that, and no restart does.
        """
        with self._owner:
            if on and not self._room.policy.consent:
                now = self._room.clock_ns()
                for account in (self._room.device, *map(account_of, self._room.policy.apps)):
                    self._room.ledger.begin_session(account, f"consent {now}", now)
            self._put(replace(self._room.policy, consent=bool(on)), "consent", "device", always=not on)

    def account(self, app: str) -> str:
        """The ledger's account of an app."""
        return account_of(app)

    @property
    def device_account(self) -> str:
        """The ledger's account of the device."""
        return self._room.device

    def watch(self, callback: Watcher) -> Subscription:
        """As :meth:`live` and `watch`."""
        return self.live().watch(callback)

    def live(self) -> Live:
        """The owner's own view of the raw gaze. Never hand it to an app."""
        return Live(self._room, self._watchers)

    def status(self) -> dict[str, object]:
        """Counts for a dashboard; no gaze."""
        room = self._room
        with room.lock:
            return {
                "consent": room.policy.consent,
                "closed": room.closed,
                "level": room.level.name,
                "rate_hz": room.rate_hz,
                "samples": self._samples,
                "events": room.sheet.count,
                "t_ms": room.tick * room.level.tick_ms,
                "areas": sum(len(guest.areas) for guest in room.guests.values()),
                "counters": len(room.counters),
                "subscriptions": len(room.subscriptions),
                "streams": len(room.pool),
                "calls": {name: guest.calls_last_minute(room.clock_ns()) for name, guest in room.guests.items()},
            }

    def close(self) -> None:
        """End all subscriptions and the ledger's thread; the ledger itself stays open."""
        room = self._room
        with room.lock:
            if room.closed:
                return
            room.closed = True
            for subscription in (*room.subscriptions, *self._watchers):
                subscription.end("The Gatekeeper is closed.", "closed")
            self._looker.reset()
            self._pending.clear()
        room.till.close()

    def __enter__(self) -> Gatekeeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _arrays(t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike) -> Samples:
    """The samples as arrays of their own: what a caller does to his afterwards changes nothing here."""
    owner = "Gatekeeper.push"
    try:
        t, x, y, v = (np.atleast_1d(np.asarray(a)) for a in (t_ns, x_deg, y_deg, valid))
    except (TypeError, ValueError):
        checks.refuse(owner, "samples", "numbers or arrays of equal length", "something else")
    for name, array, kinds, allowed in (
        ("t_ns", t, "iu", "whole nanoseconds"),
        ("x_deg", x, "fiu", "degrees"),
        ("y_deg", y, "fiu", "degrees"),
        ("valid", v, "b", "truth values"),
    ):
        if array.dtype.kind not in kinds and array.size:
            # The message names the type alone: a sample must not end up in a log.
            checks.refuse(owner, name, allowed, array.dtype.name)
    if v.shape == (1,) and x.shape != (1,):
        v = np.broadcast_to(v, x.shape)
    if not (x.ndim == 1 and t.shape == y.shape == v.shape == x.shape):
        checks.refuse(owner, "samples", "numbers or arrays of equal length", (t.shape, x.shape, y.shape, v.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        # A time beyond 62 bits is no time; it stays behind all others, so its sample is lost.
        t = np.where((t.astype(np.float64) < 2.0**62) & (t.astype(np.float64) > -(2.0**62)), t, -(2**62)).astype(np.int64)
        return t, x.astype(np.float64), y.astype(np.float64), v.astype(np.bool_)
