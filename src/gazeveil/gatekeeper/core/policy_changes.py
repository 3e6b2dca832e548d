"""The owner's side of a Gatekeeper: what is given is written first, what is taken holds at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gazeveil.gatekeeper.core.device_state import Arrival, DeviceState
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy

#: How long taking something away waits for samples that are being worked off, in seconds; what is
#: taken is stopped before.
TIDY_S = 0.2

#: Why what was given before a later command does not come in force.
CHANGED_MEANWHILE = (
    "Something was taken away, or decided otherwise, while this waited, so it is not in force. Look"
    " again, and decide anew."
)

#: What a command is about that is about no one app: no app has such a name.
_CONSENT, _ALL = ":consent", ":all"

#: Scopes that read what was looked at before the question.
READ_BACK = frozenset({"areas", "fixations", "saccades"})


class PolicyChanges:
    """Changes the policy in force, in the state that depends on it."""

    def __init__(self, state: DeviceState, forget_gaze: Callable[[], None]) -> None:
        self._state, self._forget_gaze = state, forget_gaze
        self._owner = threading.RLock()  # changes of the policy follow one another
        #: Wearers and apps that lost a grant to another policy, which no row of the audit log says.
        self._unrecorded: set[tuple[str, str]] = set()
        #: Wearers and apps whose grants have ended by time, as far as that is written.
        self._ended = self._ended_by(state.ledger.now_ns.written_ns)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._state.policy

    # Giving: written first. `arrival` says when the command came, by default now.

    def grant(self, app: str, grant: Grant, arrival: Arrival | None = None) -> None:
        """Grant an app something, in place of what it had.

        Raises
        ------
        Denied
            With code `changed` where something was taken away meanwhile, or a later command about
            the same is in force: what the wearer did last holds.
        LedgerError
            Where it cannot be written; nothing has changed.
        """
        detail: dict[str, object] = {
            "preset": grant.preset or " ".join(sorted(grant.scopes)),
            "lasts": grant.lasts,
            "expires_ns": grant.expires_ns,
        }
        with self._owner:
            self._give(lambda policy: policy.with_grant(app, grant), "grant", app, arrival, detail)

    def consent(self, on: bool, arrival: Arrival | None = None) -> None:
        """Switch everything on or off; without consent samples are not even looked at."""
        if on:
            with self._owner:
                self._give(partial(replace, consent=True), "consent", _CONSENT, arrival, {})
        else:
            self.take(lambda policy: replace(policy, consent=False))
            self._record("consent", "device", self.policy)

    def set_policy(self, policy: Policy, arrival: Arrival | None = None, about: str = _ALL) -> None:
        """Put another policy in force. What it takes away is gone at once; what it gives comes in
        force when it is written. `about` is the app that it changes, where it is one alone.

        Raises
        ------
        Denied, LedgerError
            As for :meth:`grant`; what both policies allow alike stays in force, and no more.
        """
        with self._owner:
            state = self._state
            arrival = self._in_turn(arrival, about)
            before, after = state.policy, policy.worn_by(state.wearer)
            gone = {
                app
                for app, grant in before.apps.items()
                if app not in after.apps or (after.apps[app].revoked and not grant.revoked)
            }
            if gone or (before.consent and not after.consent):
                lost = {(before.wearer or "", app) for app in gone}
                self._unrecorded |= {key for key in lost if _allows(before.apps[key[1]])}
                self.take(lambda now: _without(now, after, gone))
                arrival = arrival._replace(taken=arrival.taken + 1)
            try:
                self._record_grants(before, after)
                self._give(lambda _: after, "policy", about, arrival, {})
            except LedgerError:
                unlike = {app for app, grant in before.apps.items() if after.apps.get(app) != grant}
                self._unrecorded |= {
                    (before.wearer or "", app) for app in unlike if _allows(before.apps[app])
                }
                self.take(lambda now: _without(now, replace(after, apps={}), unlike))
                raise

    def _record_grants(self, before: Policy, after: Policy) -> None:
        """Write a row for every app whose grant another policy changes, of any wearer, as if the
        owner had pressed a button for each.
        """
        old, new, gone = before.grants, after.grants, set(self._unrecorded)
        for key in sorted({*old, *new, *gone}):
            grant, was = new.get(key), old.get(key)
            allows = _allows(grant)
            if grant == was if allows else not (_allows(was) or key in gone):
                continue
            detail: dict[str, object] = {"preset": grant.preset} if grant and allows else {}
            if key[0] != self._state.wearer and self._state.audit is not None:
                # Names of people are not in the log.
                detail["wearer"] = self._state.audit.pseudonym(f"wearer:{key[0]}")
            self._state.record("grant" if allows else "revoke", key[1], detail)
        self._unrecorded -= gone

    def _give(
        self,
        change: Callable[[Policy], Policy],
        kind: str,
        about: str,
        arrival: Arrival | None,
        detail: dict[str, object],
    ) -> None:
        """Put a change of the policy in force once it is written."""
        state, arrival = self._state, self._in_turn(arrival, about)
        if state.taken != arrival.taken:
            raise Denied("changed", CHANGED_MEANWHILE)
        policy = change(state.policy).worn_by(state.wearer)
        app = about if kind == "grant" else "device"
        state.record(kind, app, _detail(policy, detail), policy, arrival.taken)
        self._apply(policy, arrival.taken)
        state.given[about] = arrival.number

    def _in_turn(self, arrival: Arrival | None, about: str) -> Arrival:
        """When a command came, where none that came later is in force about the same: commands may
        be written in another order than they came in.
        """
        arrival, given = arrival or self._state.arrival(), self._state.given
        alike = given if about == _ALL else {about, _ALL} & given.keys()
        if any(given[one] > arrival.number for one in alike):
            raise Denied("changed", CHANGED_MEANWHILE)
        return arrival

    def _apply(self, policy: Policy, taken: int) -> None:
        state = self._state
        with state.lock:
            with state.policy_lock:
                if state.taken != taken:
                    raise Denied("changed", CHANGED_MEANWHILE)
                for app, grant in policy.apps.items():
                    self._leave_past_untold(app, grant)
                state.policy = policy
            self._tidy()

    def _leave_past_untold(self, app: str, grant: Grant) -> None:
        """Have the areas of an app count from now on where another grant would let it read what was
        looked at while it might not.
        """
        state, had = self._state, self._state.policy.apps.get(app)
        if app not in state.app_states or had is grant:
            return
        lapsed = had is None or not state.in_force(app, had)
        gained = grant.scopes - had.scopes if had is not None else grant.scopes
        if lapsed or gained & READ_BACK:
            state.app_states[app].begin_anew(state.t_ms)

    # Taking away: at once.

    def take(self, change: Callable[[Policy], Policy]) -> None:
        """Take something away, at once: when this returns nothing more of it leaves. `change` gives
        the policy without what is taken, from the policy in force. Nothing is written, and no lock
        is waited for that a disk may hold.
        """
        state = self._state
        with state.policy_lock:
            state.taken += 1
            state.policy = change(state.policy)
        state.stop_denied()
        self._tidy_soon()

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
        self._record("revoke", app, self.policy)

    def drop(self, app: str) -> None:
        """Forget an app: its grant, its areas and what it was told. Its account in the ledger
        stays, so that budget does not come back.

        Raises
        ------
        LedgerError
            Where that cannot be recorded; the app is forgotten nevertheless.
        """
        self.take(lambda policy: policy.without(app))
        self._record("drop", app, self.policy)

    def _record(self, kind: str, app: str, policy: Policy) -> None:
        self._state.record(kind, app, _detail(policy, {}), policy)

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

    def record_ends(self) -> None:
        """Write into the audit log which grants have ended by time since the last call, so that
        no restart with a clock that was set back gives them again. For the platform, now and then.

        Raises
        ------
        LedgerError
            Where that is not possible now.
        """
        ended = self._ended_by(self._state.clock_ns())
        for _, app in sorted(ended - self._ended):
            self._state.record("end", app, {"code": "expired"})
        self._ended = ended

    def _ended_by(self, time_ns: int) -> set[tuple[str, str]]:
        return {
            key
            for key, grant in self._state.policy.grants.items()
            if grant.expires_ns is not None and grant.expires_ns <= time_ns
        }

    def _tidy_soon(self) -> None:
        if self._state.lock.acquire(timeout=TIDY_S):
            try:
                self._tidy()
            finally:
                self._state.lock.release()
        else:
            # Samples wait for the ledger: what was stopped leaves the lists when they have passed.
            threading.Thread(target=self._tidy, name="tidy", daemon=True).start()

    def _tidy(self) -> None:
        """End and forget what the policy in force does not allow."""
        state = self._state
        with state.lock:
            policy = state.policy
            state.uses.granted(policy, state.clock_ns())
            state.pool.charge_at(policy.device.r_deg)
            if not policy.consent:
                self._forget_gaze()
                state.forget_look()
            state.review()
            for name in [n for n in state.app_states if n not in policy.apps]:
                del state.app_states[name]


def _detail(policy: Policy, more: dict[str, object]) -> dict[str, object]:
    return {"apps": len(policy.apps), "consent": policy.consent, **more}


def _without(now: Policy, after: Policy, gone: set[str]) -> Policy:
    """The policy in force without consent that the other one does not give, and with the other's
    grants, if any, for apps that lose theirs.
    """
    apps = {app: after.apps.get(app) if app in gone else grant for app, grant in now.apps.items()}
    return replace(
        now,
        consent=now.consent and after.consent,
        apps={app: grant for app, grant in apps.items() if grant is not None},
    )


def _allows(grant: Grant | None) -> bool:
    """Whether a grant allows anything; one of an app that was only made known does not."""
    return grant is not None and not grant.revoked and bool(grant.scopes)
