"""What the tracker's side and the apps' side of a Gatekeeper share: the event log, the policy, the
streams, and one lock around them.

:class:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper` writes into it,
:class:`gazeveil.gatekeeper.core.app.App` reads from it. Every question passes
:meth:`DeviceState.ask`: the policy decides anew, and where there is an audit log the answer waits
for its row.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper.core.area_metrics import Watched
from gazeveil.gatekeeper.core.areas import Rectangle
from gazeveil.gatekeeper.core.counters import Counters
from gazeveil.gatekeeper.core.event_log import EventLog, LoggedEvent, PublicEvent
from gazeveil.gatekeeper.core.event_numbers import EventNumbers, first_number
from gazeveil.gatekeeper.core.in_use import Indicator, InUse, scope_of
from gazeveil.gatekeeper.core.level import Grid, Level
from gazeveil.gatekeeper.core.quantise import QuantisedEvent
from gazeveil.gatekeeper.core.selection import Selections
from gazeveil.gatekeeper.core.tiles import Tiles
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.decision import Decision, Request, decide
from gazeveil.gatekeeper.policy.grant_duration import GrantUses, why_over
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.wearers import CHANGED, account_of, device_account
from gazeveil.gatekeeper.streams.billing import Billing
from gazeveil.gatekeeper.streams.day_keys import DayKeys
from gazeveil.gatekeeper.streams.pool import StreamPool, mechanism_of
from gazeveil.gatekeeper.streams.shared import PATIENCE_S, Subscriber
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Ledger

#: How long the tile's stream goes on when nobody asks.
TILE_IDLE_MS = 10_000

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SaccadeStart:
    """A saccade has begun: the tick and nothing else.

    Parameters
    ----------
    t_ms : int
        The tick in milliseconds since the session began.
    kind : str
        Always `saccade-start`.
    """

    t_ms: int
    kind: str = "saccade-start"


@dataclass(eq=False)
class Listener:
    """Somebody who wants to be told of events of one kind."""

    subscription: Subscription
    kind: str
    starts: bool
    callback: Callable[[PublicEvent | SaccadeStart], None]


@dataclass(eq=False)
class TileListener:
    """Somebody who wants to be told of tiles."""

    subscription: Subscription
    callback: Callable[[int | None, int], None]


@dataclass
class AppState:
    """What the device remembers of an app while it runs."""

    events: EventNumbers
    areas: dict[int, Watched] = field(default_factory=dict)
    area_count: int = 0
    visited: int = 0
    calls: list[int] = field(default_factory=lambda: [0] * 60)
    calls_second: int = 0
    horizons: dict[Rectangle, int] = field(default_factory=dict)

    def calls_last_minute(self, now_ns: int) -> int:
        """Questions in the last sixty seconds."""
        second = now_ns // _SECOND_NS
        if second > self.calls_second:
            for old in range(self.calls_second + 1, min(second, self.calls_second + 60) + 1):
                self.calls[old % 60] = 0
            self.calls_second = second
        elif second < self.calls_second:
            # The clock was put back: what was asked counts as asked now, and is forgotten a minute
            # from now.
            total = sum(self.calls)
            self.calls[:] = [0] * 60
            self.calls[second % 60], self.calls_second = total, second
        return sum(self.calls)

    def called(self) -> None:
        """One more question."""
        self.calls[self.calls_second % 60] += 1


class DeviceState:
    """The state of a Gatekeeper.

    Parameters
    ----------
    policy, ledger, audit, clock_ns, device, level, space, rate_hz, seed, folder
        As :class:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper` takes them.
    counters : Counters
        The counters of areas.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        audit: AuditLog | None,
        clock_ns: Callable[[], int],
        device: str,
        level: Level,
        space: Space,
        rate_hz: float,
        counters: Counters,
        seed: int | None,
        tile_stream: str | None,
        folder: Path | None,
    ) -> None:
        self.lock = threading.RLock()
        #: Guards the policy in force where something is taken away; never held while anybody waits.
        self.policy_lock = threading.Lock()
        self.taken = 0
        self.wearer = policy.wearer
        self.policy = policy
        self.ledger, self.audit, self.clock_ns = ledger, audit, clock_ns
        self.device_name, self.level, self.space, self.rate_hz = device, level, space, rate_hz
        self.grid = Grid(space, level.resolution_deg)
        self.selections = Selections(
            self.grid, level, self.lock, None if audit is None else self.record
        )
        self.tile_stream = None if tile_stream is None else mechanism_of(tile_stream)
        self.numbers = itertools.count(1)
        self.closed = False
        self.opening: Counter[str] = Counter()  # streams of each app that are being paid for
        self._limits: dict[tuple[str, str], tuple[Fraction, str]] = {}
        self._seed = seed
        self.day_keys = DayKeys(folder, clock_ns, seed)
        self.uses = GrantUses()
        self.uses.granted(policy, clock_ns())
        self.indicator = Indicator()
        self._begin(counters)

    def _begin(self, counters: Counters) -> None:
        """Make all that comes of one wearer's gaze, so that nothing of it can be there for the next
        one's apps.
        """
        self.event_log = EventLog()
        self.counters = counters
        self.tiles = Tiles(self.space, self.level)
        self.billing = Billing(
            self.ledger, self.clock_ns, self.device_name, secrets.token_hex(8), self.wearer
        )
        key_now = partial(self.day_keys.now, self.wearer)
        self.pool = StreamPool(
            self.rate_hz, self.space, self.billing, self.policy.device.r_deg, self._seed, key_now
        )
        self._tile_place: tuple[float, float] | None = None
        self._tile_subscription: Subscription | None = None
        self._tile_asked = 0
        self.tick = 0
        self.charged: dict[
            Rectangle, int
        ] = {}  # up to which horizon the device has paid for a counter
        self.app_states: dict[str, AppState] = {}
        self.listeners: list[Listener] = []
        self.tile_listeners: list[TileListener] = []
        self.subscriptions: dict[Subscription, Request] = {}
        self.expiry_ns: int | None = None

    @property
    def device(self) -> str:
        """The ledger's account of the device, for its present wearer."""
        return device_account(self.device_name, self.wearer)

    def switch(self, wearer: str | None) -> None:
        """Somebody else wears the device: all that was subscribed ends, everything begins anew, and
        nothing is allowed yet.
        """
        with self.lock:
            for subscription in tuple(self.subscriptions):
                subscription.end(CHANGED, "wearer")
            if self._tile_subscription is not None:
                self._tile_subscription.end(CHANGED, "wearer")
            self.billing.retire()
            self.selections.anew()
            self.indicator.forget()
            self.in_use()
            self.uses.switched(self.policy)
            with self.policy_lock:
                self.wearer, self.policy = wearer, self.policy.worn_by(None)
            # Test streams of two wearers must not share their noise either.
            self._seed = None if self._seed is None else self._seed + 104_729
            self._begin(self.counters.anew())

    @contextlib.contextmanager
    def answering(self, billing: Billing) -> Iterator[None]:
        """Hold the lock for an answer that was allowed while that billing was in use, and refuse it
        where the wearer has changed since.
        """
        with self.lock:
            if billing is not self.billing:
                raise Denied("wearer", CHANGED)
            yield

    def app_state(self, app: str) -> AppState:
        """What is remembered of an app."""
        if app not in self.app_states:
            self.app_states[app] = AppState(EventNumbers(first_number(self._seed, app)))
        return self.app_states[app]

    # Asking.

    def request(
        self,
        app: str,
        action: str,
        origin: str | None,
        mechanism: str | None = None,
        rate_hz: float | None = None,
        areas: int | None = None,
    ) -> Request:
        """What the policy is to decide."""
        now = self.clock_ns()
        app_state = self.app_states.get(app)
        calls = 0 if app_state is None else app_state.calls_last_minute(now)
        streams = self.opening[app] + sum(
            1 for s, r in self.subscriptions.items() if s.app == app and r.action == "stream"
        )
        return Request(app, action, mechanism, now, calls, streams, origin, rate_hz, areas)

    def ask(self, request: Request, what: str) -> Billing:
        """Refuse, or let an answer be given; the call is counted and recorded.

        Returns
        -------
        Billing
            Of the wearer that the answer was allowed for; :meth:`answering` takes it.

        Raises
        ------
        Denied
            With the policy's reason.
        LedgerError
            Where the audit log cannot be written.
        """
        with self.lock:
            if self.closed:
                raise Denied("closed", "The Gatekeeper is closed.")
            decision, billing = self.decide(request), self.billing
            if (
                request.app in self.policy.apps
            ):  # nothing is remembered of names that nobody granted anything
                app_state = self.app_state(request.app)
                app_state.calls_last_minute(request.now_ns)
                if decision.code != "rate":
                    app_state.called()
        detail: dict[str, object] = {"what": what, "code": decision.code}
        if decision.allow and request.mechanism is not None:
            detail["mechanism"] = request.mechanism[:300]
        self.record("answer" if decision.allow else "denied", request.app, detail)
        if not decision.allow:
            raise Denied(decision.code, decision.reason)
        self._used(request)
        return billing

    def decide(self, request: Request) -> Decision:
        """What the policy says, and whether the grant is not over by its use."""
        grant = self.policy.apps.get(request.app)
        if (
            grant is not None
            and not grant.revoked
            and self.policy.consent
            and self.uses.over(request.app, grant, request.now_ns)
        ):
            return Decision(False, "expired", why_over(request.app, grant))
        return decide(self.policy, request)

    def _used(self, request: Request) -> None:
        """An answer is given: count it as use of the grant, and show it."""
        with self.lock:
            grant = self.policy.apps.get(request.app)
            if grant is not None:
                self.uses.called(grant, request.now_ns)
            self.indicator.answered(request.app, request.action, request.now_ns)
            self.in_use()

    def in_use(self) -> InUse:
        """Which apps use which scopes now. It never waits: while another thread holds the lock,
        as samples that wait for the ledger do, a change is told a moment later.
        """
        free = self.lock.acquire(blocking=False)
        try:
            uses = ((s.app, scope_of(r.action)) for s, r in self.subscriptions.copy().items())
            return self.indicator.look(uses, self.clock_ns(), tell=free)
        finally:
            if free:
                self.lock.release()

    def record(
        self, kind: str, app: str, detail: dict[str, object], at_ns: int | None = None
    ) -> None:
        """Write a row of the audit log; without it nothing is answered."""
        if self.audit is None:
            return
        who = (app.replace("\x00", "?") or "?")[:300] if isinstance(app, str) else "?"
        try:
            self.audit.record(kind, who, detail, self.clock_ns() if at_ns is None else at_ns)
        except Exception as error:
            raise LedgerError("The audit log cannot be written, so nothing is answered.") from error

    # Subscriptions.

    def enter(self, subscription: Subscription, request: Request) -> None:
        """Put a subscription on the list that every change of the policy is checked against."""
        self.subscriptions[subscription] = request
        self.uses.subscribed(subscription.app)
        self._expiries()
        self.in_use()

    def leave(self, subscription: Subscription) -> None:
        """Take a subscription off all lists."""
        with self.lock:
            if self.subscriptions.pop(subscription, None) is not None:
                self.uses.unsubscribed(
                    subscription.app, self.policy.apps.get(subscription.app), self.clock_ns()
                )
                self.in_use()
            self.listeners = [one for one in self.listeners if one.subscription is not subscription]
            self.tile_listeners = [
                one for one in self.tile_listeners if one.subscription is not subscription
            ]
            self.selections.leave(subscription)
            self.pool.leave(subscription)

    def review(self) -> None:
        """Ask the policy about every subscription anew, and end those it no longer allows."""
        now = self.clock_ns()
        for subscription, was in tuple(self.subscriptions.items()):
            again = Request(was.app, was.action, was.mechanism, now, 0, 0, was.origin, was.rate_hz)
            decision = self.decide(again)
            if not decision.allow or subscription.ended is not None:
                subscription.end(decision.reason, decision.code)
        self._expiries()

    def stop_denied(self) -> None:
        """Have nothing more delivered that the policy no longer allows; :meth:`review` ends it when
        the lock is free.
        """
        now = self.clock_ns()
        for subscription, was in list(self.subscriptions.items()):
            decision = self.decide(
                Request(was.app, was.action, was.mechanism, now, 0, 0, was.origin, was.rate_hz)
            )
            if not decision.allow:
                subscription.stop(decision.reason, decision.code)

    def _expiries(self) -> None:
        grants = (self.policy.apps.get(s.app) for s in self.subscriptions)
        self.expiry_ns = min(
            (g.expires_ns for g in grants if g is not None and g.expires_ns is not None),
            default=None,
        )

    def limits(self, policy: Policy) -> None:
        """Tell the ledger the limits of a policy for its wearer, as far as they are new. Somebody
        unknown has no account.
        """
        if policy.wearer is None:
            return
        now, device = self.clock_ns(), policy.device
        of_device = device_account(self.device_name, policy.wearer)
        wanted = {
            (of_device, currency): (limit, device.per)
            for currency, limit in device.limits().items()
        }
        for app, grant in policy.apps.items():
            wanted |= {
                (account_of(app, policy.wearer), currency): (limit, grant.per)
                for currency, limit in grant.limits().items()
            }
        for (account, currency), (limit, per) in wanted.items():
            if self._limits.get((account, currency)) != (limit, per):
                self.ledger.set_limit(account, currency, limit, per, now)
                self._limits[account, currency] = (limit, per)

    # Events.

    def publish(self, told: QuantisedEvent) -> None:
        """Log an event whose tick is over and call the listeners."""
        if told.kind == "saccade-start":
            start = SaccadeStart(told.onset_tick * self.level.tick_ms)
            for listener in tuple(self.listeners):
                if listener.starts:
                    _tell(listener.subscription, listener.callback, start)
            return
        if told.cell is None:
            for app_state in self.app_states.values():
                for watched in app_state.areas.values():
                    watched.left()
            return
        entry = self._write(told)
        event = entry.event
        if event.kind == "fixation":
            # In the tick that it is told in, however samples were cut into blocks.
            self.counters.add(entry.row, entry.column, told.decided_tick + 1)
        for app_state in self.app_states.values():
            for watched in app_state.areas.values():
                app_state.visited = watched.take(entry, app_state.visited)
        for listener in tuple(self.listeners):
            if listener.kind == event.kind and listener.subscription.ended is None:
                _tell(
                    listener.subscription,
                    listener.callback,
                    self.app_state(listener.subscription.app).events.told(
                        entry, self.event_log.oldest
                    ),
                )
        if self.tile_stream is None:
            self.see_tile(event.x_deg, event.y_deg)

    def _write(self, told: QuantisedEvent) -> LoggedEvent:
        assert told.cell is not None
        row, column = told.cell
        x, y = self.grid.centre(row, column)
        tick_ms = self.level.tick_ms
        if told.kind == "saccade":
            return self.event_log.write("saccade", row, column, x, y, told.offset_tick * tick_ms, 0)
        return self.event_log.write(
            told.kind,
            row,
            column,
            x,
            y,
            told.onset_tick * tick_ms,
            (told.offset_tick - told.onset_tick) * tick_ms,
        )

    # Tiles.

    def follow_tile(self, allowed: Billing) -> None:
        """Somebody asks for the tile: where it has a protected stream, that stream must be open.
        The device pays for it.
        """
        with self.answering(allowed):
            self._tile_asked = self.tick
            if self.tile_stream is None or (
                self._tile_subscription is not None and self._tile_subscription.ended is None
            ):
                return
            shared, view = self.pool.reserve(self.tile_stream, 1)
            try:
                # Everything waits for this lock: the ledger gets no longer than it gets for a
                # lease.
                paid = shared.billing.wait(
                    shared.billing.later(shared.first_lease(view, None)), lambda: True, PATIENCE_S
                )
            except BaseException:
                self.pool.give_back(shared)
                raise
            subscription = Subscription(next(self.numbers), "", self.leave)
            self.pool.subscribe(
                shared, Subscriber("", self._tile_samples, subscription, view, pays=False), paid
            )
            self._tile_subscription = subscription
        subscription.on_end(self._tile_ended)

    def _tile_samples(
        self,
        t_ns: object,
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
    ) -> None:
        seen = np.flatnonzero(valid)
        if len(seen):
            self._tile_place = (float(x_deg[seen[-1]]), float(y_deg[seen[-1]]))

    def _tile_ended(self, reason: str, code: str) -> None:
        self._tile_subscription, self._tile_place = None, None
        self.forget_tile()
        if code != "idle":
            for listener in tuple(self.tile_listeners):
                listener.subscription.end(reason, code)

    def tick_over(self) -> None:
        """A tick is over: the tile follows its protected stream, where it has one and somebody
        still asks.
        """
        if self.indicator.waiting:
            self.in_use()
        if self._tile_place is not None:
            place, self._tile_place = self._tile_place, None
            self.see_tile(*place)
        if (
            self._tile_subscription is not None
            and not self.tile_listeners
            and (self.tick - self._tile_asked) * self.level.tick_ms > TILE_IDLE_MS
        ):
            self._tile_subscription.end("Nobody asks for the tile.", "idle")

    def forget_tile(self) -> None:
        """The eye is gone."""
        if self.tiles.tile is not None:
            self.tiles.forget()
            self.tell_tile()

    def see_tile(self, x_deg: float, y_deg: float) -> None:
        """A new place of the tile's source."""
        before = self.tiles.tile
        if self.tiles.see(x_deg, y_deg) != before:
            self.tell_tile()

    def tell_tile(self) -> None:
        """Tell those who follow the tile."""
        for listener in tuple(self.tile_listeners):
            if listener.subscription.ended is None:
                _tell(
                    listener.subscription,
                    listener.callback,
                    self.tiles.tile,
                    self.tick * self.level.tick_ms,
                )


def _tell(subscription: Subscription, callback: Callable[..., None], *what: object) -> None:
    if subscription.ended is not None:
        return
    try:
        callback(*what)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscription.end("Its callback failed.", "closed")
