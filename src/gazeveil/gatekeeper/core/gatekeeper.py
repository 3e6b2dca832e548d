"""The Gatekeeper: one wearer's gaze comes in, quantised events and protected streams go out, each
to whom the policy allows.

Everything any app ever learns is a function of one log of quantised events
(:mod:`gazeveil.gatekeeper.core.event_log`) and of one set of shared protected streams
(:mod:`gazeveil.gatekeeper.streams.shared`). So a coalition of apps learns exactly what the event
log and the finest granted streams tell. There is no call for raw position, pupil, velocity,
confidence or timing at the tracker's rate (David-John et al. 2021, section 4).

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
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.compiled import compiled
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.counters import LEVELS as COUNTER_LEVELS
from gazeveil.gatekeeper.core.counters import Counters
from gazeveil.gatekeeper.core.device_state import DeviceState
from gazeveil.gatekeeper.core.in_use import InUse, OnUse
from gazeveil.gatekeeper.core.level import Level, level_of
from gazeveil.gatekeeper.core.quantise import EventQuantiser, QuantisedEvent
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.presets import preset_of
from gazeveil.gatekeeper.policy.rules import rule_text
from gazeveil.gatekeeper.policy.wearers import CHANGED, OWNER, account_of, wearer_name
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.privacy.rational import Number
from gazeveil.privacy.stream.session import as_samples
from gazeveil.privacy.stream.stage import Samples

__all__ = ["App", "Gatekeeper", "Live"]

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Ledger
    from gazeveil.gatekeeper.policy.grant import Grant
    from gazeveil.gatekeeper.policy.policy import Policy

_WHOLE = (int, np.integer)
_NUMBERS = (float, int, np.floating, np.integer)
_TRUTH = (bool, np.bool_)

#: Longest text of what was granted in a row of the audit log.
_LONGEST = 300

#: How long taking something away waits for samples that are being worked off, in seconds; what is
#: taken is stopped before.
TIDY_S = 0.2

#: Raw blocks, for the owner's own view alone.
Watcher: TypeAlias = Callable[
    [NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]], None
]


class Live:
    """The owner's own view of the raw gaze, for the trusted dashboard of the device; made by
    :meth:`Gatekeeper.live`.
    """

    def __init__(self, state: DeviceState, watchers: dict[Subscription, Watcher]) -> None:
        self._state = state
        self._watchers = watchers

    def watch(self, callback: Watcher) -> Subscription:
        """Have `callback(t_ns, x_deg, y_deg, valid)` called with copies of the raw blocks."""
        with self._state.lock:
            subscription = Subscription(next(self._state.numbers), "", self._forget)
            self._watchers[subscription] = callback
            return subscription

    def _forget(self, subscription: Subscription) -> None:
        with self._state.lock:
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
        How coarse the events are: `coarse`, `fine`, or a level of your own.
    device : str
        Name of the device's account in the ledger; apps have accounts `app:NAME`.
    clock_ns : callable
        Wall clock in nanoseconds since the Unix epoch, for budgets, rates and expiry.
    seed : int, optional
        Test streams instead of the operating system's randomness: repeatable, and promises are only
        `claimed`.
    audit : AuditLog, optional
        Gets a row for every answer, before it is given.
    tile_stream : str, optional
        A mechanism whose protected samples the tile follows, once a tick; by default it follows the
        event log. The device pays for it while it is open, from the first question for a tile on.
    counter_epsilon : number
        Budget of one fixation in one area's counter.
    counter_levels : int
        Levels of the counters' trees: a horizon is 2**levels - 1 ticks.
    folder : path, optional
        Where the key of the day is kept, under which a place has one noise. Without it a restart
        draws another key, which is charged again.
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
        folder: Path | str | None = None,
    ) -> None:
        owner = "Gatekeeper"
        rate = checks.positive(owner, "rate_hz", rate_hz)
        where = Sphere() if space is None else space
        if not isinstance(where, Sphere | Screen):
            checks.refuse(owner, "space", "a Sphere or a Screen", space)
        how = level_of(level)
        counters = Counters(counter_epsilon, counter_levels, how.tick_ms, seed)
        if policy.others:
            policy = policy.worn_by(
                None
            )  # of several people none is taken for another: the platform says who it is
        self._state = DeviceState(
            policy,
            ledger,
            audit,
            clock_ns,
            device,
            how,
            where,
            rate,
            counters,
            seed,
            tile_stream,
            None if folder is None else Path(folder),
        )
        self._quantiser = EventQuantiser(rate, where, self._state.grid, how.tick_ms)
        self._pending: deque[QuantisedEvent] = deque()
        self._watchers: dict[Subscription, Watcher] = {}
        self._samples = 0
        self._blocks_seen = False  # the detector is compiled when the first block has passed
        self._owner = threading.RLock()  # changes of the policy follow one another
        self._gone: set[tuple[str, str]] = (
            set()
        )  # wearers and apps that lost a grant to another policy, which no row says yet
        self._state.limits(policy)

    # The tracker's side.

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> None:
        """Take what the tracker just gave; callbacks run before this returns.

        Parameters
        ----------
        t_ns : int or array of int64
            Time in nanoseconds, from any origin.
        x_deg, y_deg : float or array
            Degrees of the space.
        valid : bool or array of bool
            False where there is no gaze. What is no place of the space, or comes with a time that
            does not go on, is a lost sample too.

        Raises
        ------
        ParameterError
            For arrays of unequal length or of another type; never for what the gaze is.
        """
        state = self._state
        if (
            isinstance(t_ns, _WHOLE)
            and isinstance(x_deg, _NUMBERS)
            and isinstance(y_deg, _NUMBERS)
            and isinstance(valid, _TRUTH)
            and abs(int(t_ns)) < 2**62
        ):
            with state.lock:
                if self._idle():
                    if self._watched():
                        self._watch(_arrays(t_ns, x_deg, y_deg, valid))
                    return
                self._samples += 1
                due = self._quantiser.one(int(t_ns), float(x_deg), float(y_deg), bool(valid))
                if self._watchers or state.pool.active:
                    self._hand_on(
                        (
                            np.array([t_ns], dtype=np.int64),
                            np.array([x_deg], dtype=np.float64),
                            np.array([y_deg], dtype=np.float64),
                            np.array([valid]),
                        )
                    )
                if due:
                    self._take(self._quantiser.look())
            return
        samples = _arrays(t_ns, x_deg, y_deg, valid)
        with state.lock:
            self._push_block(samples)

    def push_now(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> bool:
        """Take what the tracker just gave, if nothing has to be waited for: a lock, the ledger, a
        compiler.

        For an event loop, which must not wait, and to which two changes of threads cost more than
        the work. Who gets False pushes the same samples on another thread.

        Returns
        -------
        bool
            Whether they were taken.
        """
        if not self._blocks_seen:
            return False
        samples = _arrays(t_ns, x_deg, y_deg, valid)
        if not self._state.lock.acquire(blocking=False):
            return False
        try:
            if not self._state.pool.ready(len(samples[0])):
                return False
            self._push_block(samples)
            return True
        finally:
            self._state.lock.release()

    def _push_block(self, samples: Samples) -> None:
        if self._idle():
            if self._watched():
                self._watch(samples)
            return
        self._samples += len(samples[0])
        self._hand_on(samples)
        self._take(self._quantiser.block(*samples))
        self._blocks_seen = True

    def _idle(self) -> bool:
        """Whether samples are not to be looked at; also ends what has expired."""
        state = self._state
        if state.expiry_ns is not None and state.clock_ns() >= state.expiry_ns:
            state.review()
        return state.closed or not state.policy.consent

    def _watched(self) -> bool:
        """Whether the owner looks at gaze that apps do not get: only at the owner's own. Another
        wearer who has not consented is nobody's to look at.
        """
        return (
            bool(self._watchers) and not self._state.closed and self._state.policy.wearer == OWNER
        )

    def _hand_on(self, samples: Samples) -> None:
        if self._watchers:
            self._watch(samples)
        self._state.pool.push(samples)

    def _watch(self, samples: Samples) -> None:
        for subscription, watcher in tuple(self._watchers.items()):
            try:
                watcher(samples[0].copy(), samples[1].copy(), samples[2].copy(), samples[3].copy())
            except Exception:
                subscription.end("Its callback failed.", "closed")

    def _take(self, told: list[QuantisedEvent]) -> None:
        """Publish what was decided in ticks that are over."""
        self._pending.extend(told)
        tick = self._quantiser.tick
        if tick > self._state.tick:
            self._state.tick = tick
            while self._pending and self._pending[0].decided_tick < tick:
                self._state.publish(self._pending.popleft())
            self._state.tick_over()
        ongoing_fixations = self._quantiser.ongoing_fixations()
        if ongoing_fixations:
            self._state.selections.judge(ongoing_fixations, self._state.clock_ns())

    def lost(self) -> None:
        """The tracker vanished: open events end here, what was decided is told, and the tile is not
        known.
        """
        state = self._state
        with state.lock:
            if state.closed:
                return
            told = self._quantiser.close()
            self._pending.extend(told if state.policy.consent else ())
            while self._pending:
                state.publish(self._pending.popleft())
            state.pool.pause()
            state.forget_tile()
            state.selections.forget()

    def confirm(self, app: str | None = None) -> None:
        """The wearer made the platform's gesture for "this one" (a pinch, a press): selections by
        `confirm` are judged by where the eye rests.

        For the platform alone; no app may call it. It says nothing and gives nothing back, whether
        something was chosen or not.

        Parameters
        ----------
        app : str, optional
            Whose gesture it is, where the platform knows which app is in front. Without it a place
            that targets of several apps hold belongs to none.
        """
        state = self._state
        with state.lock:
            if not self._idle():
                state.selections.confirmed(app, state.tick, state.clock_ns())

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
        return App(self._state, app, origin)

    # The owner's side.

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._state.policy

    @property
    def level(self) -> Level:
        """How coarse the events are."""
        return self._state.level

    @property
    def space(self) -> Space:
        """What degrees mean."""
        return self._state.space

    @property
    def rate_hz(self) -> float:
        """Nominal rate of the tracker."""
        return self._state.rate_hz

    @property
    def counter_epsilon(self) -> Fraction:
        """What the counter of an area costs."""
        return self._state.counters.epsilon

    @property
    def state(self) -> DeviceState:
        """What the parts of the Gatekeeper share, for its own service. Never hand it to an app."""
        return self._state

    @property
    def taken(self) -> int:
        """How often something was taken away; read before a change is prepared, it says whether
        something was meanwhile.
        """
        return self._state.taken

    def set_policy(self, policy: Policy, taken: int | None = None) -> None:
        """Put another policy in force, at once; subscriptions it does not allow end with the
        reason.

        Parameters
        ----------
        policy : Policy
            What is allowed from now on.
        taken : int, optional
            What :attr:`taken` was when the policy was prepared.

        Raises
        ------
        LedgerError
            Where the ledger or the audit log cannot be written; what both policies allow alike
            stays in force, and no more.
        """
        with self._owner:
            state = self._state
            taken = state.taken if taken is None else taken
            before, after = state.policy, policy.worn_by(state.wearer)
            taken += self.take_as(after)  # what is taken away does not wait for a disk
            try:
                self._record_grants(before, after)
                self._give(lambda _: after, "policy", "device", taken)
            except LedgerError:
                unlike = {app for app, grant in before.apps.items() if after.apps.get(app) != grant}
                self._gone |= {
                    (before.wearer or "", app) for app in unlike if _gives(before.apps[app])
                }
                self.take(lambda now: _less(now, replace(after, apps={}), unlike))
                raise

    def take_as(self, policy: Policy) -> bool:
        """Take away at once what another policy takes away, and give nothing of what it gives;
        whether there was anything.
        """
        before, after = self._state.policy, policy.worn_by(self._state.wearer)
        gone = {
            app
            for app, grant in before.apps.items()
            if not grant.revoked and (app not in after.apps or after.apps[app].revoked)
        }
        gone |= {app for app in before.apps if app not in after.apps}
        if not gone and (after.consent or not before.consent):
            return False
        self._gone |= {(before.wearer or "", app) for app in gone if _gives(before.apps[app])}
        self.take(lambda now: _less(now, after, gone))
        return True

    def _record_grants(self, before: Policy, after: Policy) -> None:
        """Write a row for every app whose grant another policy changes, of any wearer, as if the
        owner had pressed a button for each.
        """
        state, gone = self._state, set(self._gone)
        old = {
            (name, app): grant
            for name, one in before.wearers.items()
            for app, grant in one.apps.items()
        }
        new = {
            (name, app): grant
            for name, one in after.wearers.items()
            for app, grant in one.apps.items()
        }
        for key in sorted({*old, *new, *gone}):
            name, app = key
            grant = new.get(key)
            if _gives(grant) and grant == old.get(key):
                continue
            if not _gives(grant) and not _gives(old.get(key)) and key not in gone:
                continue
            theirs = after.wearers.get(name)
            detail: dict[str, object] = {
                "apps": len(theirs.apps) if theirs else 0,
                "consent": bool(theirs and theirs.consent),
            }
            if name != state.wearer and state.audit is not None:
                detail["wearer"] = state.audit.pseudonym(
                    f"wearer:{name}"
                )  # names of people are not in the log
            state.record(
                "grant" if _gives(grant) else "revoke",
                app,
                {**detail, **(_granted(grant) if _gives(grant) else {})},
            )
        self._gone -= gone

    def _give(
        self, change: Callable[[Policy], Policy], kind: str, app: str, taken: int | None
    ) -> None:
        """Put a change of the policy in force once it is written.

        Raises
        ------
        Denied
            With code `changed` where something was taken away meanwhile: what the wearer did last
            holds.
        """
        state = self._state
        taken = state.taken if taken is None else taken
        policy = change(state.policy).worn_by(state.wearer)
        state.record(
            kind,
            app,
            {
                "apps": len(policy.apps),
                "consent": policy.consent,
                **(_granted(policy.apps.get(app)) if kind == "grant" else {}),
            },
        )
        state.limits(policy)
        self._apply(policy, taken)

    def _apply(self, policy: Policy, taken: int) -> None:
        state = self._state
        with state.lock:
            with state.policy_lock:
                if state.taken != taken:
                    raise Denied(
                        "changed",
                        "Something was taken away while this was written, so it is not in force."
                        " Look again, and decide anew.",
                    )
                state.policy = policy
            self._tidy()

    def _tidy(self) -> None:
        """End and forget what the policy in force does not allow."""
        state = self._state
        with state.lock:
            policy = state.policy
            state.uses.granted(policy, state.clock_ns())
            state.pool.charge_at(policy.device.r_deg)
            if not policy.consent:
                self._quantiser.reset()
                self._pending.clear()
                state.forget_tile()
                state.selections.forget()
            state.review()
            for name in [n for n in state.app_states if n not in policy.apps]:
                del state.app_states[name]

    def take(self, change: Callable[[Policy], Policy]) -> None:
        """Take something away, at once: when this returns nothing more of it leaves. Nothing is
        written, and no lock is waited for that a disk may hold.

        Parameters
        ----------
        change : callable
            The policy without what is taken, from the policy in force.
        """
        state = self._state
        with state.policy_lock:
            state.taken += 1
            state.policy = change(state.policy)
        state.stop_denied()
        self._tidy_soon()

    def _tidy_soon(self) -> None:
        if self._state.lock.acquire(timeout=TIDY_S):
            try:
                self._tidy()
            finally:
                self._state.lock.release()
        # samples wait for the ledger; what was stopped is taken off the lists when they do not any
        # more
        else:
            threading.Thread(target=self._tidy, name="tidy", daemon=True).start()

    def ledger_silent(self) -> None:
        """The ledger does not answer: end every subscription, those that cost nothing too, because
        nothing can be recorded any more.
        """
        for subscription in list(self._state.subscriptions):
            subscription.stop(
                "The ledger does not answer, so nothing more is given. Try again later.", "ledger"
            )
        if self._state.subscriptions:
            self._tidy_soon()

    def grant(self, app: str, grant: Grant, taken: int | None = None) -> None:
        """Grant an app something, in place of what it had; `taken` as for :meth:`set_policy`."""
        with self._owner:
            self._give(lambda policy: policy.with_grant(app, grant), "grant", app, taken)

    def revoke(self, app: str) -> None:
        """Take an app's grant back; its subscriptions end before the next sample.

        Raises
        ------
        Denied
            For an app without a grant.
        LedgerError
            Where that cannot be recorded; the grant is taken back nevertheless.
        """
        granted = self._state.policy.apps.get(app)
        if granted is None:
            raise Denied("no-grant", f"The app '{app}' has no grant.")
        self.take(
            lambda policy: policy.with_grant(
                app, replace(policy.apps.get(app, granted), revoked=True)
            )
        )
        self.record_revocation("revoke", app)

    def consent(self, on: bool, taken: int | None = None) -> None:
        """Switch everything on or off; `taken` as for :meth:`set_policy`. Without consent samples
        are not even looked at.

        Switching on what was off begins a session: budgets `per="session"` are whole again. Nobody
        but the owner does that, and no restart does.
        """
        if not on:
            self.take(lambda policy: replace(policy, consent=False))
            self.record_revocation("consent", "device")
            return
        with self._owner:
            if not self._state.policy.consent:
                now = self._state.clock_ns()
                for account in (self.device_account, *map(self.account, self._state.policy.apps)):
                    self._state.ledger.begin_session(account, f"consent {now}", now)
            self._give(lambda policy: replace(policy, consent=True), "consent", "device", taken)

    def drop(self, app: str) -> None:
        """Forget an app: its grant, its areas and what it was told. Its account in the ledger
        stays, so that budget does not come back.

        Raises
        ------
        LedgerError
            Where that cannot be recorded; the app is forgotten nevertheless.
        """
        self.take(lambda policy: policy.without(app))
        self.record_revocation("drop", app)

    def record_revocation(self, kind: str, app: str, at_ns: int | None = None) -> None:
        """Write into the audit log that something was taken away; may be done later than it was.

        Raises
        ------
        LedgerError
            Where that is not possible now.
        """
        policy = self._state.policy
        self._state.record(kind, app, {"apps": len(policy.apps), "consent": policy.consent}, at_ns)

    # Who uses the gaze.

    def connected(self, app: str) -> None:
        """An app has connected. Platforms that tell this count grants `once` and `in-use` by
        connections, others by subscriptions.
        """
        self._state.uses.connected(app)

    def disconnected(self, app: str) -> None:
        """A connection of an app has ended; a grant that was for one use is over."""
        state = self._state
        now = state.clock_ns()
        if state.uses.disconnected(app, state.policy.apps.get(app), now):
            state.expiry_ns = (
                now  # what another connection of the app still gets ends with the next sample
            )

    def is_over(self, app: str) -> bool:
        """Whether the grant of an app was for one use or while in use, and that is over."""
        grant = self._state.policy.apps.get(app)
        return grant is not None and self._state.uses.over(app, grant, self._state.clock_ns())

    def in_use(self) -> InUse:
        """Which apps use the gaze now, as pairs of an app and a scope: open subscriptions, and
        answers of the last five seconds.
        """
        return self._state.in_use()

    def on_use(self, callback: OnUse) -> None:
        """Have `callback(in_use)` called whenever :meth:`in_use` changes, for the indicator of the
        platform.

        It runs on the thread that changed it, and must be quick. The end of an answer's five
        seconds is told with the next sample or question.
        """
        with self._state.lock:
            self._state.indicator.on_use(callback)

    @property
    def wearer(self) -> str | None:
        """Who wears the device, as :meth:`switch_wearer` was told; None where that is not known."""
        return self._state.wearer

    def switch_wearer(self, name: str | None) -> None:
        """Somebody else wears the device now.

        All subscriptions end with the code `wearer`. Events, areas, sums, counters and streams
        begin anew, so that no app of the next wearer sees anything of the last one's gaze. Consent,
        grants and budgets are the next wearer's own. What the last one spent stays spent.

        Parameters
        ----------
        name : str, optional
            Who it is; None where the platform does not know. Somebody the policy does not name has
            given no consent and granted nothing.

        Raises
        ------
        LedgerError
            Where the ledger or the audit log cannot be written. The last wearer's gaze is protected
            nevertheless; nothing is allowed to anybody's apps until the switch is made again.
        """
        state = self._state
        if name is not None:
            wearer_name("Gatekeeper.switch_wearer", name)
        with self._owner:
            if name is not None and name == state.wearer and state.policy.wearer == name:
                return
            taken = state.taken
            with state.lock:
                for subscription in tuple(self._watchers):
                    subscription.end(CHANGED, "wearer")
                state.switch(name)
                self._quantiser = EventQuantiser(
                    state.rate_hz, state.space, state.grid, state.level.tick_ms
                )
                self._pending.clear()
            known = state.policy.worn_by(name)
            state.record(
                "wearer",
                f"wearer:{name or ''}",
                {"known": known.wearer is not None, "consent": known.consent},
            )
            state.limits(known)
            self._apply(known, taken)

    def account(self, app: str) -> str:
        """The ledger's account of an app, for the present wearer."""
        return account_of(app, self._state.wearer)

    @property
    def device_account(self) -> str:
        """The ledger's account of the device, for the present wearer."""
        return self._state.device

    def watch(self, callback: Watcher) -> Subscription:
        """As :meth:`live` and `watch`."""
        return self.live().watch(callback)

    def live(self) -> Live:
        """The owner's own view of the raw gaze. Never hand it to an app."""
        return Live(self._state, self._watchers)

    def status(self) -> dict[str, object]:
        """Counts for a dashboard; no gaze."""
        state = self._state
        with state.lock:
            return {
                "consent": state.policy.consent,
                "closed": state.closed,
                "level": state.level.name,
                "rate_hz": state.rate_hz,
                "samples": self._samples,
                "events": state.event_log.count,
                "t_ms": state.tick * state.level.tick_ms,
                "areas": sum(len(app_state.areas) for app_state in state.app_states.values()),
                "counters": len(state.counters),
                "subscriptions": len(state.subscriptions),
                "streams": len(state.pool),
                "calls": {
                    name: app_state.calls_last_minute(state.clock_ns())
                    for name, app_state in state.app_states.items()
                },
            }

    def close(self) -> None:
        """End all subscriptions and the ledger's thread; the ledger itself stays open."""
        state = self._state
        with state.lock:
            if state.closed:
                return
            state.closed = True
            for subscription in (*state.subscriptions, *self._watchers):
                subscription.end("The Gatekeeper is closed.", "closed")
            self._quantiser.reset()
            self._pending.clear()
        state.billing.close()
        state.selections.close()

    def __enter__(self) -> Gatekeeper:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _less(now: Policy, after: Policy, gone: set[str]) -> Policy:
    """The policy in force without consent that the other one does not give, and with the other's
    grants, if any, for apps that lose theirs.
    """
    apps = {app: after.apps.get(app) if app in gone else grant for app, grant in now.apps.items()}
    return replace(
        now,
        consent=now.consent and after.consent,
        apps={app: grant for app, grant in apps.items() if grant is not None},
    )


def _gives(grant: Grant | None) -> bool:
    """Whether a grant allows anything; one of an app that was only made known does not."""
    return grant is not None and not grant.revoked and bool(grant.scopes)


def _granted(grant: Grant | None) -> dict[str, object]:
    """What the audit log says was granted: names of the system's own, cut where a row has no room
    for more.
    """
    if grant is None:
        return {}
    preset = preset_of(grant)
    texts = {
        "scopes": " ".join(sorted(grant.scopes)),
        "mechanisms": " ".join(rule_text(rule).replace(" ", "_") for rule in grant.mechanisms),
    }
    cut = {
        name: text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
        for name, text in texts.items()
    }
    return {
        "preset": None if preset is None else preset.name,
        **cut,
        "lasts": grant.lasts,
        "expires_ns": grant.expires_ns,
    }


def _arrays(t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike) -> Samples:
    """The samples as arrays of their own: what a caller does to his afterwards changes nothing
    here.
    """
    owner = "Gatekeeper.push"
    ready = as_samples(t_ns, x_deg, y_deg, valid)
    if ready is not None:
        t, x, y, v = ready
        own = t.copy()
        _bound(own)
        return own, x.copy(), y.copy(), v.copy()
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
        checks.refuse(
            owner,
            "samples",
            "numbers or arrays of equal length",
            (t.shape, x.shape, y.shape, v.shape),
        )
    with np.errstate(invalid="ignore", over="ignore"):
        # A time beyond 62 bits is no time; it stays behind all others, so its sample is lost.
        t = np.where(
            (t.astype(np.float64) < 2.0**62) & (t.astype(np.float64) > -(2.0**62)), t, -(2**62)
        ).astype(np.int64)
        return t, x.astype(np.float64), y.astype(np.float64), v.astype(np.bool_)


@compiled
def _bound(t_ns: NDArray[np.int64]) -> None:
    """A time beyond 62 bits is no time; it stays behind all others, so its sample is lost."""
    for i in range(len(t_ns)):
        if t_ns[i] <= -(1 << 62) or t_ns[i] >= 1 << 62:
            t_ns[i] = -(1 << 62)
