"""What the tracker's side and the apps' side of a Gatekeeper share: the sheet, the policy, the streams, and one lock around them.

:class:`gazeveil.gatekeeper.core.Gatekeeper` writes into it, :class:`gazeveil.gatekeeper.app.App` reads from it. Every question passes
:meth:`Room.ask`: the policy decides anew, and where there is an audit log the answer waits for its row.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper.areas import Rectangle
from gazeveil.gatekeeper.counters import Counters
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.level import Grid, Level
from gazeveil.gatekeeper.looking import Told
from gazeveil.gatekeeper.metrics import Watched
from gazeveil.gatekeeper.policy import Policy, Request, decide
from gazeveil.gatekeeper.pool import Pool, mechanism_of
from gazeveil.gatekeeper.sheet import LENGTH, Entry, SeenEvent, Sheet
from gazeveil.gatekeeper.streams import Seat
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gatekeeper.tiles import Tiles
from gazeveil.gatekeeper.till import Till, account_of
from gazeveil.gaze.geometry import Space

if TYPE_CHECKING:
    from gazeveil.gatekeeper.audit_log import AuditLog
    from gazeveil.gatekeeper.ledger import Ledger

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
    callback: Callable[[SeenEvent | SaccadeStart], None]


@dataclass(eq=False)
class TileListener:
    """Somebody who wants to be told of tiles."""

    subscription: Subscription
    callback: Callable[[int | None, int], None]


@dataclass
class Guest:
    """What the device remembers of an app while it runs."""

    areas: dict[int, Watched] = field(default_factory=dict)
    area_count: int = 0
    visited: int = 0
    shown: set[int] = field(default_factory=set)
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
            # The clock was put back: what was asked counts as asked now, and is forgotten a minute from now.
            total = sum(self.calls)
            self.calls[:] = [0] * 60
            self.calls[second % 60], self.calls_second = total, second
        return sum(self.calls)

    def called(self) -> None:
        """One more question."""
        self.calls[self.calls_second % 60] += 1

    def show(self, numbers: list[int], oldest: int) -> None:
        """Remember which events the app was told of."""
        self.shown.update(numbers)
        if len(self.shown) > 2 * LENGTH:
            self.shown = {n for n in self.shown if n >= oldest}


class Room:
    """The state of a Gatekeeper.

    Parameters
    ----------
    policy, ledger, audit, clock_ns, device, level, space, rate_hz, seed
        As :class:`gazeveil.gatekeeper.core.Gatekeeper` takes them.
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
    ) -> None:
        self.lock = threading.RLock()
        self.policy = policy
        self.ledger, self.audit, self.clock_ns = ledger, audit, clock_ns
        self.device, self.level, self.space, self.rate_hz = device, level, space, rate_hz
        self.grid = Grid(space, level.resolution_deg)
        self.sheet = Sheet()
        self.counters = counters
        self.tiles = Tiles(space, level)
        self.till = Till(ledger, clock_ns, device, secrets.token_hex(8))
        self.pool = Pool(rate_hz, space, self.till, policy.device.r_deg, seed)
        self.tile_stream = None if tile_stream is None else mechanism_of(tile_stream)
        self._tile_place: tuple[float, float] | None = None
        self._tile_seat: Subscription | None = None
        self._tile_asked = 0
        self.tick = 0
        self.charged: dict[Rectangle, int] = {}  # up to which horizon the device has paid for a counter
        self.guests: dict[str, Guest] = {}
        self.listeners: list[Listener] = []
        self.tile_listeners: list[TileListener] = []
        self.subscriptions: dict[Subscription, Request] = {}
        self.numbers = itertools.count(1)
        self.closed = False
        self._limits: dict[tuple[str, str], tuple[Fraction | None, str]] = {}
        self.expiry_ns: int | None = None

    def guest(self, app: str) -> Guest:
        """What is remembered of an app."""
        return self.guests.setdefault(app, Guest())

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
        guest = self.guests.get(app)
        calls = 0 if guest is None else guest.calls_last_minute(now)
        streams = sum(1 for s, r in self.subscriptions.items() if s.app == app and r.action == "stream")
        return Request(app, action, mechanism, now, calls, streams, origin, rate_hz, areas)

    def ask(self, request: Request, what: str) -> None:
        """Refuse, or let an answer be given; the call is counted and recorded.

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
            decision = decide(self.policy, request)
            if request.app in self.policy.apps:  # nothing is remembered of names that nobody granted anything
                guest = self.guest(request.app)
                guest.calls_last_minute(request.now_ns)
                if decision.code != "rate":
                    guest.called()
        detail: dict[str, object] = {"what": what, "code": decision.code}
        if decision.allow and request.mechanism is not None:
            detail["mechanism"] = request.mechanism[:300]
        self.record("answer" if decision.allow else "denied", request.app, detail)
        if not decision.allow:
            raise Denied(decision.code, decision.reason)

    def record(self, kind: str, app: str, detail: dict[str, object]) -> None:
        """Write a row of the audit log; without it nothing is answered."""
        if self.audit is None:
            return
        who = (app.replace("\x00", "?") or "?")[:300] if isinstance(app, str) else "?"
        try:
            self.audit.record(kind, who, detail, self.clock_ns())
        except Exception as error:
            raise LedgerError("The audit log cannot be written, so nothing is answered.") from error

    # Subscriptions.

    def enter(self, subscription: Subscription, request: Request) -> None:
        """Put a subscription on the list that every change of the policy is checked against."""
        self.subscriptions[subscription] = request
        self._expiries()

    def leave(self, subscription: Subscription) -> None:
        """Take a subscription off all lists."""
        with self.lock:
            self.subscriptions.pop(subscription, None)
            self.listeners = [one for one in self.listeners if one.subscription is not subscription]
            self.tile_listeners = [one for one in self.tile_listeners if one.subscription is not subscription]
            self.pool.leave(subscription)

    def review(self) -> None:
        """Ask the policy about every subscription anew, and end those it no longer allows."""
        now = self.clock_ns()
        for subscription, was in tuple(self.subscriptions.items()):
            again = Request(was.app, was.action, was.mechanism, now, 0, 0, was.origin, was.rate_hz)
            decision = decide(self.policy, again)
            if not decision.allow:
                subscription.end(decision.reason, decision.code)
        self._expiries()

    def _expiries(self) -> None:
        grants = (self.policy.apps.get(s.app) for s in self.subscriptions)
        self.expiry_ns = min((g.expires_ns for g in grants if g is not None and g.expires_ns is not None), default=None)

    def limits(self, policy: Policy) -> None:
        """Tell the ledger the limits of a policy, as far as they are new."""
        now, device = self.clock_ns(), policy.device
        wanted: dict[tuple[str, str], tuple[Fraction | None, str]] = {}
        for currency, limit in (("epsilon", device.epsilon), ("rho", device.rho), ("samples", None)):
            wanted[self.device, currency] = (limit, device.per)
        for app, grant in policy.apps.items():
            # What promises nothing is counted; a policy that allows it need not bound it.
            for currency, most in {"samples": None, **grant.budgets}.items():
                wanted[account_of(app), currency] = (most, grant.per)
        for (account, currency), (limit, per) in wanted.items():
            if self._limits.get((account, currency)) != (limit, per):
                self.ledger.set_limit(account, currency, limit, per, now)
                self._limits[account, currency] = (limit, per)

    # Events.

    def publish(self, told: Told) -> None:
        """Write an event whose tick is over on the sheet and tell those who listen."""
        if told.kind == "saccade-start":
            start = SaccadeStart(told.onset_tick * self.level.tick_ms)
            for listener in tuple(self.listeners):
                if listener.starts:
                    _tell(listener.subscription, listener.callback, start)
            return
        if told.cell is None:
            for guest in self.guests.values():
                for watched in guest.areas.values():
                    watched.left()
            return
        entry = self._write(told)
        event = entry.event
        if event.kind == "fixation":
            # In the tick that it is told in, however samples were cut into blocks.
            self.counters.add(entry.row, entry.column, told.decided_tick + 1)
        for guest in self.guests.values():
            for watched in guest.areas.values():
                guest.visited = watched.take(entry, guest.visited)
        for listener in tuple(self.listeners):
            if listener.kind == event.kind and listener.subscription.ended is None:
                self.guest(listener.subscription.app).show([event.number], self.sheet.oldest)
                _tell(listener.subscription, listener.callback, event)
        if self.tile_stream is None:
            self.see_tile(event.x_deg, event.y_deg)

    def _write(self, told: Told) -> Entry:
        assert told.cell is not None
        row, column = told.cell
        x, y = self.grid.centre(row, column)
        tick_ms = self.level.tick_ms
        if told.kind == "saccade":
            return self.sheet.write("saccade", row, column, x, y, told.offset_tick * tick_ms, 0)
        return self.sheet.write(told.kind, row, column, x, y, told.onset_tick * tick_ms, (told.offset_tick - told.onset_tick) * tick_ms)

    # Tiles.

    def follow_tile(self) -> None:
        """Somebody asks for the tile: where it has a protected stream, that stream must be open. The device pays for it."""
        with self.lock:
            self._tile_asked = self.tick
            if self.tile_stream is None or (self._tile_seat is not None and self._tile_seat.ended is None):
                return
            base, view = self.pool.find(self.tile_stream, 1)
            owed = base.owed(view)
            self.till.pay("tile", owed, ())
            seat = Subscription(next(self.numbers), "", self.leave)
            self.pool.sit(base, Seat("", self._tile_samples, seat, view, pays=False), owed[1])
            self._tile_seat = seat
        seat.on_end(self._tile_ended)

    def _tile_samples(self, t_ns: object, x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> None:
        seen = np.flatnonzero(valid)
        if len(seen):
            self._tile_place = (float(x_deg[seen[-1]]), float(y_deg[seen[-1]]))

    def _tile_ended(self, reason: str, code: str) -> None:
        self._tile_seat, self._tile_place = None, None
        self.forget_tile()
        if code != "idle":
            for listener in tuple(self.tile_listeners):
                listener.subscription.end(reason, code)

    def tick_over(self) -> None:
        """A tick is over: the tile follows its protected stream, where it has one and somebody still asks."""
        if self._tile_place is not None:
            place, self._tile_place = self._tile_place, None
            self.see_tile(*place)
        if self._tile_seat is not None and not self.tile_listeners and (self.tick - self._tile_asked) * self.level.tick_ms > TILE_IDLE_MS:
            self._tile_seat.end("Nobody asks for the tile.", "idle")

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
                _tell(listener.subscription, listener.callback, self.tiles.tile, self.tick * self.level.tick_ms)


def _tell(subscription: Subscription, callback: Callable[..., None], *what: object) -> None:
    if subscription.ended is not None:
        return
    try:
        callback(*what)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscription.end("Its callback failed.", "closed")
