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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gazeveil.gatekeeper.core.app_state import AppState, Indicator, InUse, RefusalRows, last_minute
from gazeveil.gatekeeper.core.area_metrics import Observation, Regions, Tiles
from gazeveil.gatekeeper.core.areas import PrecisionLevel
from gazeveil.gatekeeper.core.events import (
    EventLog,
    EventNumbers,
    Listener,
    LoggedEvent,
    SaccadeStart,
    first_number,
    tell,
)
from gazeveil.gatekeeper.core.ongoing_fixation import PLACE_MS, OngoingFixation
from gazeveil.gatekeeper.core.quantise import QuantisedEvent
from gazeveil.gatekeeper.core.selection import Selections
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.decision import WHY_OVER, AccessDecision, GrantUses, Request, decide
from gazeveil.gatekeeper.policy.policy import CHANGED, Policy, account_of, device_account
from gazeveil.gatekeeper.streams.billing import Billing
from gazeveil.gatekeeper.streams.pool import StreamPool
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Grid, Space, Sphere

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit import AuditLog
    from gazeveil.gatekeeper.ledger.database import Sql
    from gazeveil.gatekeeper.ledger.ledger import Ledger
    from gazeveil.gatekeeper.policy.grant import Grant

#: `keep(sql, policy)` writes a policy in the transaction of its audit row.
Keep: TypeAlias = "Callable[[Sql, Policy], None]"


class Arrival(NamedTuple):
    """When a command of the owner came: its number, and how often something had been taken away."""

    number: int
    taken: int


@dataclass(frozen=True)
class AllowedRequest:
    """A request that the policy allowed, for the wearer whose billing that is."""

    request: Request
    billing: Billing
    policy: Policy


def _again(was: Request, now_ns: int) -> Request:
    """A request that was allowed, to be decided anew; what was counted then counts no more."""
    return replace(was, now_ns=now_ns, calls_last_minute=0, open_streams=0, areas=None)


class DeviceState:
    """The state of a Gatekeeper.

    Parameters
    ----------
    policy, ledger, audit, clock_ns, device, level, space, rate_hz, seed, keep
        As :class:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper` takes them.
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
        seed: int | None,
        keep: Keep | None,
    ) -> None:
        self.lock = threading.RLock()
        #: Guards the policy in force where something is taken away; never held while anybody waits.
        self.policy_lock = threading.Lock()
        #: How often something was taken away; read before a change is prepared, it says whether
        #: something was meanwhile.
        self.taken = 0
        self._arrivals = itertools.count(1)
        #: Number of the last command that gave something which is in force, by what it is about: an
        #: app, or everything at once.
        self.given: dict[str, int] = {}
        self.wearer = policy.wearer
        self.policy = policy
        self.ledger, self.audit, self.clock_ns, self._keep = ledger, audit, clock_ns, keep
        self.device_name, self.level, self.space, self.rate_hz = device, level, space, rate_hz
        self.grid = Grid(space, level.resolution_deg)
        self.selections = Selections(
            self.grid, level, self.lock, None if audit is None else self.record
        )
        self.numbers = itertools.count(1)
        self.closed = False
        self.opening: Counter[str] = Counter()  # streams of each app that are being paid for
        self._seed = seed
        self.uses = GrantUses()
        self.uses.granted(policy, clock_ns())
        self.indicator = Indicator()
        self._begin()

    def arrival(self) -> Arrival:
        """The next number for a command of the owner, as it comes."""
        return Arrival(next(self._arrivals), self.taken)

    def _begin(self) -> None:
        """Make all that comes of one wearer's gaze, so that nothing of it can be there for the next
        one's apps.
        """
        self.event_log = EventLog()
        self.billing = Billing(
            self.ledger,
            self.clock_ns,
            self.device_name,
            secrets.token_hex(8),
            self.wearer,
            lambda: self.policy,
        )
        self.pool = StreamPool(
            self.rate_hz, self.space, self.billing, self.policy.device.r_deg, self._seed
        )
        self.tile = Tiles(self.space, self.level)
        self.regions = Regions(isinstance(self.space, Sphere))
        #: Start of the rest that tile and regions were told of last; -1 after an event.
        self._rest_ns = -1
        self.observations: dict[Subscription, Observation] = {}
        self.tick = 0
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

    def account(self, app: str | None = None) -> str:
        """The ledger's account of an app, or of the device, for the present wearer."""
        if app is None:
            return device_account(self.device_name, self.wearer)
        return account_of(app, self.wearer)

    def switch(self, wearer: str | None) -> None:
        """Switch to another wearer: end all subscriptions, reset all state, allow nothing yet."""
        with self.lock:
            for subscription in tuple(self.subscriptions):
                subscription.end(CHANGED, "wearer")
            self.selections.anew()
            self.indicator.forget()
            self.in_use()
            self.uses.switched(self.policy)
            with self.policy_lock:
                self.wearer, self.policy = wearer, self.policy.worn_by(None)
            # Test streams of two wearers must not share their noise either.
            self._seed = None if self._seed is None else self._seed + 104_729
            self._begin()

    @contextlib.contextmanager
    def answering(self, allowed: AllowedRequest) -> Iterator[None]:
        """Hold the lock for an answer to a request that was allowed, and refuse it where the wearer
        has changed since, or the policy does not allow it any more, its time being over among
        others: its row of the audit log, or its charge, may have waited for a disk.
        """
        with self.lock:
            if allowed.billing is not self.billing:
                raise Denied("wearer", CHANGED)
            again = _again(allowed.request, self.clock_ns())
            # The request was counted as use of its grant, and may have been the last one that the
            # grant allows: use is asked about only where the policy is another one.
            unchanged = allowed.policy is self.policy
            decision = decide(self.policy, again) if unchanged else self.decide(again)
            if not decision.allow:
                raise Denied(decision.code, decision.reason)
            yield

    def app_state(self, app: str) -> AppState:
        """Return the state of an app, created on first use."""
        if app not in self.app_states:
            self.app_states[app] = AppState(EventNumbers(first_number(self._seed, app)))
        return self.app_states[app]

    # Asking.

    def request(
        self,
        app: str,
        scope: str,
        origin: str | None,
        mechanism: str | None = None,
        areas: int | None = None,
    ) -> Request:
        """Build the policy request."""
        now_ns = self.clock_ns()
        app_state = self.app_states.get(app)
        calls = 0 if app_state is None else last_minute(app_state.calls_ns, now_ns)
        streams = self.opening[app] + sum(
            1 for s, r in self.subscriptions.items() if s.app == app and r.action == "samples"
        )
        return Request(app, scope, mechanism, now_ns, calls, streams, origin, areas)

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
                if decision.code != "rate":
                    app_state.calls_ns.append(request.now_ns)
                refusals = app_state.refusals
            unrecorded = None if decision.allow else refusals.refused(request.now_ns)
        detail: dict[str, object] = {"what": what, "code": decision.code}
        if not decision.allow:
            if unrecorded is not None:
                detail |= {"unrecorded": unrecorded} if unrecorded else {}
                self.record("denied", request.app, detail)
            raise Denied(decision.code, decision.reason)
        if request.mechanism is not None:
            detail["mechanism"] = request.mechanism
        self.record("answer", request.app, detail)
        with self.lock:
            grant = self.policy.apps.get(request.app)
            if grant is not None:
                self.uses.called(grant, request.now_ns)
            self.indicator.answered(request.app, request.action, request.now_ns)
            self.in_use()
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
            return AccessDecision(False, "expired", WHY_OVER)
        return decide(self.policy, request)

    def in_force(self, app: str, grant: Grant) -> bool:
        """Whether a grant of an app is neither revoked nor over, by the clock or by its use."""
        now = self.clock_ns()
        expired = grant.expires_ns is not None and now >= grant.expires_ns
        return not (grant.revoked or expired or self.uses.over(app, grant, now))

    def in_use(self) -> InUse:
        """Which apps use which scopes now. It never waits: while another thread holds the lock,
        as samples that wait for the ledger do, a change is told a moment later.
        """
        free = self.lock.acquire(blocking=False)
        try:
            uses = ((s.app, r.action) for s, r in self.subscriptions.copy().items())
            return self.indicator.look(uses, self.clock_ns(), tell=free)
        finally:
            if free:
                self.lock.release()

    def record(
        self,
        kind: str,
        app: str,
        detail: dict[str, object],
        policy: Policy | None = None,
        taken: int | None = None,
    ) -> None:
        """Write a row of the audit log, and a policy with it; without it nothing is answered.

        `taken` is what it was when the command came that gives: where something is taken away
        before this is written, the policy in force is, because what was taken may be written
        before, and an older policy must not follow it.
        """
        if self.audit is None:
            return
        who = (app.replace("\x00", "?") or "?")[:300] if isinstance(app, str) else "?"
        try:
            self.audit.record(kind, who, detail, self.clock_ns(), self.keeping(policy, taken))
        except Exception as error:
            raise LedgerError("The audit log cannot be written, so nothing is answered.") from error

    def keeping(
        self, policy: Policy | None, taken: int | None = None
    ) -> Callable[[Sql], None] | None:
        """What writes a policy, where there is one and it is kept."""
        keep = self._keep
        if policy is None or keep is None:
            return None
        return lambda sql: keep(sql, policy if taken in (None, self.taken) else self.policy)

    # Subscriptions.

    def enter(self, subscription: Subscription, request: Request) -> None:
        """Put a subscription on the list that every change of the policy is checked against.

        Raises
        ------
        Denied
            Where the policy has changed while the audit log or the ledger was written.
        """
        self.subscriptions[subscription] = request
        self.uses.opened(subscription.app)
        self.in_use()
        self.review()
        if self.closed:
            subscription.end("The Gatekeeper is closed.", "closed")
        if subscription.ended is not None:
            raise Denied(subscription.code or "closed", subscription.ended)

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
        grants = (self.policy.apps.get(s.app) for s in self.subscriptions)
        self.expiry_ns = min(
            (g.expires_ns for g in grants if g is not None and g.expires_ns is not None),
            default=None,
        )

    def has_expired(self) -> bool:
        """Whether a grant that something is subscribed under has ended by time."""
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
        entry = self._write(*quantised.cell, quantised)
        event = entry.event
        for app_state in self.app_states.values():
            for measured in app_state.areas.values():
                app_state.visited = measured.take(entry, app_state.visited)
        for observation in self.observations.values():
            observation.take(entry)
        for listener in tuple(self.listeners):
            wanted = listener.kind == event.kind and listener.ends
            # A look that began before is told no more than by an area that was registered since.
            if wanted and event.t_ms >= listener.since_ms and listener.subscription.ended is None:
                told = self.app_state(listener.subscription.app).events.told(
                    entry, self.event_log.oldest
                )
                tell(listener.subscription, listener.callback, told)
        self._rest_ns = -1
        self._see(event.x_deg, event.y_deg)

    def rests(self, fixation: OngoingFixation) -> None:
        """The eye rested when a tick was over: tile and regions are told of each rest once, and
        once more after an event, in case no saccade was seen that led there.
        """
        rested = fixation.end_ns - fixation.start_ns >= PLACE_MS * 1_000_000 and fixation.settled
        if rested and fixation.cell is not None and fixation.start_ns != self._rest_ns:
            self._rest_ns = fixation.start_ns
            self._see(*self.grid.centre(*fixation.cell))

    def _see(self, x_deg: float, y_deg: float) -> None:
        self.tile.see_event(x_deg, y_deg, self.t_ms)
        self.regions.see_event(x_deg, y_deg, self.t_ms)

    def _write(self, row: int, column: int, quantised: QuantisedEvent) -> LoggedEvent:
        tick, ticks = quantised.onset_tick, quantised.offset_tick - quantised.onset_tick
        if quantised.kind == "saccade":  # of which the landing alone is told
            tick, ticks = quantised.offset_tick, 0
        step_ms, place = self.level.tick_ms, self.grid.centre(row, column)
        return self.event_log.write(
            quantised.kind, row, column, *place, tick * step_ms, ticks * step_ms
        )

    def forget_look(self) -> None:
        """The eye is gone, or is not to be looked at."""
        self.tile.forget(self.t_ms)
        self.regions.forget(self.t_ms)
        self.selections.forget()
