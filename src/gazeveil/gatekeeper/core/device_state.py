"""State shared by the tracker's side and the apps' side of a Gatekeeper: the event log, the policy,
the streams, and one lock around them.

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
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gazeveil.gatekeeper.core.app_state import AppState
from gazeveil.gatekeeper.core.areas import Rectangle
from gazeveil.gatekeeper.core.counters import Counters
from gazeveil.gatekeeper.core.events.listeners import Listener, SaccadeStart, tell
from gazeveil.gatekeeper.core.events.log import EventLog, LoggedEvent
from gazeveil.gatekeeper.core.events.numbers import EventNumbers, first_number
from gazeveil.gatekeeper.core.events.quantise import QuantisedEvent
from gazeveil.gatekeeper.core.in_use import Indicator, InUse, scope_of
from gazeveil.gatekeeper.core.level import PrecisionLevel
from gazeveil.gatekeeper.core.observation import Observation, Regions
from gazeveil.gatekeeper.core.refusal_rows import RefusalRows
from gazeveil.gatekeeper.core.selection import Selections
from gazeveil.gatekeeper.core.tiles import TilePublisher, Tiles
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.decision import AccessDecision, Request, decide
from gazeveil.gatekeeper.policy.grant_duration import GrantUses, why_over
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.wearers import CHANGED, account_of, device_account
from gazeveil.gatekeeper.streams.billing import Billing
from gazeveil.gatekeeper.streams.pool import StreamPool, mechanism_of
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.grid import Grid

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Ledger
    from gazeveil.gatekeeper.policy.grant import Grant


@dataclass(frozen=True)
class AllowedRequest:
    """A request that the policy allowed, for the wearer whose billing that is."""

    request: Request
    billing: Billing
    policy: Policy


def _again(was: Request, now_ns: int) -> Request:
    """A request that was allowed, to be decided anew; what was counted then counts no more."""
    return Request(was.app, was.action, was.mechanism, now_ns, 0, 0, was.origin, was.rate_hz)


class DeviceState:
    """The state of a Gatekeeper.

    Parameters
    ----------
    policy, ledger, audit, clock_ns, device, level, space, rate_hz, seed
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
        level: PrecisionLevel,
        space: Space,
        rate_hz: float,
        counters: Counters,
        seed: int | None,
        tile_stream: str | None,
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
        self.billing = Billing(
            self.ledger, self.clock_ns, self.device_name, secrets.token_hex(8), self.wearer
        )
        self.pool = StreamPool(
            self.rate_hz, self.space, self.billing, self.policy.device.r_deg, self._seed
        )
        self.tile = TilePublisher(
            Tiles(self.space, self.level),
            self.tile_stream,
            self.pool,
            lambda: Subscription(next(self.numbers), "", self.leave),
            lambda: self.t_ms,
        )
        self.regions = Regions(isinstance(self.space, Sphere))
        self.observations: dict[Subscription, Observation] = {}
        self.tick = 0
        #: Up to which horizon the device has paid for an area's counter.
        self.charged: dict[Rectangle, int] = {}
        self.app_states: dict[str, AppState] = {}
        #: Refusals of all apps without a grant, together.
        self.refusals_of_unknown = RefusalRows()
        self.listeners: list[Listener] = []
        self.subscriptions: dict[Subscription, Request] = {}
        self.expiry_ns: int | None = None

    @property
    def t_ms(self) -> int:
        """The public clock: the current tick, in milliseconds since the wearer's session began."""
        return self.tick * self.level.tick_ms

    @property
    def device(self) -> str:
        """The ledger's account of the device, for its present wearer."""
        return device_account(self.device_name, self.wearer)

    def accounts(self) -> tuple[str, ...]:
        """The ledger's accounts of the device and of the apps, for the present wearer."""
        return self.device, *(account_of(app, self.wearer) for app in self.policy.apps)

    def switch(self, wearer: str | None) -> None:
        """Switch to another wearer: end all subscriptions, reset all state, allow nothing yet."""
        with self.lock:
            for subscription in tuple(self.subscriptions):
                subscription.end(CHANGED, "wearer")
            self.tile.end(CHANGED, "wearer")
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
    def answering(self, allowed: AllowedRequest) -> Iterator[None]:
        """Hold the lock for an answer to a request that was allowed, and refuse it where the wearer
        has changed since, or the policy does not allow it any more, its time being over among
        others: its row of the audit log, or its charge, may have waited for a disk.
        """
        with self.lock:
            if allowed.billing is not self.billing:
                raise Denied("wearer", CHANGED)
            if denied := self._denied_now(allowed):
                raise denied
            yield

    def _denied_now(self, allowed: AllowedRequest) -> Denied | None:
        again = _again(allowed.request, self.clock_ns())
        # The request was counted as use of its grant, and may have been the last one that the grant
        # allows: use is asked about only where the policy is another one.
        unchanged = allowed.policy is self.policy
        decision = decide(self.policy, again) if unchanged else self.decide(again)
        return None if decision.allow else Denied(decision.code, decision.reason)

    def app_state(self, app: str) -> AppState:
        """Return the state of an app, created on first use."""
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
        """Build the policy request."""
        now = self.clock_ns()
        app_state = self.app_states.get(app)
        calls = 0 if app_state is None else app_state.calls_last_minute(now)
        streams = self.opening[app] + sum(
            1 for s, r in self.subscriptions.items() if s.app == app and r.action == "stream"
        )
        return Request(app, action, mechanism, now, calls, streams, origin, rate_hz, areas)

    def ask(self, request: Request, what: str) -> AllowedRequest:
        """Refuse, or let an answer be given; the call is counted and recorded.

        Returns
        -------
        AllowedRequest
            What :meth:`answering` takes.

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
            allowed = AllowedRequest(request, self.billing, self.policy)
            decision = self.decide(request)
            refusals = self.refusals_of_unknown
            # No state is held for apps without a grant.
            if request.app in self.policy.apps:
                app_state = self.app_state(request.app)
                app_state.calls_last_minute(request.now_ns)
                if decision.code != "rate":
                    app_state.called()
                refusals = app_state.refusals
            unrecorded = None if decision.allow else refusals.refused(request.now_ns)
        detail: dict[str, object] = {"what": what, "code": decision.code}
        if not decision.allow:
            if unrecorded is not None:
                detail |= {"unrecorded": unrecorded} if unrecorded else {}
                self.record("denied", request.app, detail)
            raise Denied(decision.code, decision.reason)
        if request.mechanism is not None:
            detail["mechanism"] = request.mechanism[:300]
        self.record("answer", request.app, detail)
        self._used(request)
        return allowed

    def decide(self, request: Request) -> AccessDecision:
        """Return the policy's decision, with grants that ended by their use refused."""
        grant = self.policy.apps.get(request.app)
        if (
            grant is not None
            and not grant.revoked
            and self.policy.consent
            and self.uses.over(request.app, grant, request.now_ns)
        ):
            return AccessDecision(False, "expired", why_over(request.app))
        return decide(self.policy, request)

    def in_force(self, app: str, grant: Grant) -> bool:
        """Whether a grant of an app is neither revoked nor over, by the clock or by its use."""
        now = self.clock_ns()
        expired = grant.expires_ns is not None and now >= grant.expires_ns
        return not (grant.revoked or expired or self.uses.over(app, grant, now))

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
        self.uses.opened(subscription.app)
        self._expiries()
        self.in_use()

    def leave(self, subscription: Subscription) -> None:
        """Take a subscription off all lists."""
        with self.lock:
            if self.subscriptions.pop(subscription, None) is not None:
                self.uses.closed(
                    subscription.app, self.policy.apps.get(subscription.app), self.clock_ns()
                )
                self.in_use()
            self.listeners = [
                listener for listener in self.listeners if listener.subscription is not subscription
            ]
            self.tile.leave(subscription)
            self.regions.leave(subscription)
            self.observations.pop(subscription, None)
            self.selections.leave(subscription)
            self.pool.leave(subscription)

    def _decided_anew(self) -> Iterator[tuple[Subscription, AccessDecision]]:
        """Apply the present policy to every subscription."""
        now = self.clock_ns()
        for subscription, was in tuple(self.subscriptions.items()):
            yield subscription, self.decide(_again(was, now))

    def review(self) -> None:
        """End the subscriptions that the policy no longer allows."""
        for subscription, decision in self._decided_anew():
            if not decision.allow or subscription.ended is not None:
                subscription.end(decision.reason, decision.code)
        self._expiries()

    def has_expired(self) -> bool:
        """Whether a grant that something is subscribed under has ended by time or by its use."""
        expiry_ns = self.expiry_ns  # another thread may change it
        return expiry_ns is not None and self.clock_ns() >= expiry_ns

    def end_expired(self) -> None:
        """End the subscriptions whose grant has ended so."""
        if self.has_expired():
            self.review()

    def stop_denied(self) -> None:
        """Have nothing more delivered that the policy no longer allows; :meth:`review` ends it when
        the lock is free.
        """
        for subscription, decision in self._decided_anew():
            if not decision.allow:
                subscription.stop(decision.reason, decision.code)

    def _expiries(self) -> None:
        grants = (self.policy.apps.get(s.app) for s in self.subscriptions)
        self.expiry_ns = min(
            (g.expires_ns for g in grants if g is not None and g.expires_ns is not None),
            default=None,
        )

    def limits(self, policy: Policy) -> None:
        """Set the new limits of a policy in the ledger, for its wearer.

        An unknown wearer has no account.
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

    def publish(self, quantised: QuantisedEvent) -> None:
        """Log an event whose tick is over and call the listeners."""
        if quantised.kind == "saccade-start":
            start = SaccadeStart(quantised.onset_tick * self.level.tick_ms)
            for listener in tuple(self.listeners):
                if listener.starts and start.t_ms >= listener.since_ms:
                    tell(listener.subscription, listener.callback, start)
            return
        if quantised.cell is None:
            for app_state in self.app_states.values():
                for measured in app_state.areas.values():
                    measured.left()
            for observation in self.observations.values():
                observation.left()
            return
        entry = self._write(quantised)
        event = entry.event
        if event.kind == "fixation":
            # In the tick that it is told in, however samples were cut into blocks.
            self.counters.add(entry.row, entry.column, quantised.decided_tick + 1)
        for app_state in self.app_states.values():
            for measured in app_state.areas.values():
                app_state.visited = measured.take(entry, app_state.visited)
        for observation in self.observations.values():
            observation.take(entry)
        for listener in tuple(self.listeners):
            wanted = listener.kind == event.kind and listener.ends
            # A look that began before is told no more than by an area that was registered since.
            if wanted and event.t_ms >= listener.since_ms and listener.subscription.ended is None:
                tell(
                    listener.subscription,
                    listener.callback,
                    self.app_state(listener.subscription.app).events.told(
                        entry, self.event_log.oldest
                    ),
                )
        self.tile.see_event(event.x_deg, event.y_deg)
        self.regions.see_event(event.x_deg, event.y_deg, self.t_ms)

    def _write(self, quantised: QuantisedEvent) -> LoggedEvent:
        assert quantised.cell is not None
        row, column = quantised.cell
        tick, ticks = quantised.onset_tick, quantised.offset_tick - quantised.onset_tick
        if quantised.kind == "saccade":  # of which the landing alone is told
            tick, ticks = quantised.offset_tick, 0
        step_ms = self.level.tick_ms
        place = self.grid.centre(row, column)
        return self.event_log.write(
            quantised.kind, row, column, *place, tick * step_ms, ticks * step_ms
        )

    def forget_look(self) -> None:
        """The eye is gone, or is not to be looked at."""
        self.tile.forget()
        self.regions.forget(self.t_ms)
        self.selections.forget()

    def tick_over(self) -> None:
        """A tick is over: what is in use and the tile may have changed."""
        if self.indicator.waiting:
            self.in_use()
        self.tile.tick_over()
        for observation in tuple(self.observations.values()):
            observation.push(self.t_ms)
