"""The owner's side of a Gatekeeper: what is given is written first, what is taken holds at once."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace

from gazeveil.gatekeeper.core.device_state import DeviceState
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import preset_of
from gazeveil.gatekeeper.policy.rules import rule_text

#: Longest text of what was granted in a row of the audit log.
_LONGEST = 300

#: How long taking something away waits for samples that are being worked off, in seconds; what is
#: taken is stopped before.
TIDY_S = 0.2


#: Why what was given before something was taken away does not come in force.
TAKEN_MEANWHILE = (
    "Something was taken away while this was written, so it is not in force. Look again, and decide"
    " anew."
)

#: Scopes that read what was looked at before the question; the counts of `counter` begin apart.
READ_BACK = frozenset({"areas", "fixations", "saccades"})


class PolicyChanges(ABC):
    """Changes the policy in force, in the state that depends on it."""

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self._owner = threading.RLock()  # changes of the policy follow one another
        #: Wearers and apps that lost a grant to another policy, which no row of the audit log says.
        self._unrecorded: set[tuple[str, str]] = set()
        #: Wearers and apps whose grants have ended by time, as far as that is written.
        self._ended = self._ended_by_time()

    @abstractmethod
    def _forget_gaze(self) -> None:
        """Forget samples and events that are not published yet."""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._state.policy

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
                self._record_grant_changes(before, after)
                self._give(lambda _: after, "policy", "device", taken)
            except LedgerError:
                unlike = {app for app, grant in before.apps.items() if after.apps.get(app) != grant}
                self._remember_loss(before, unlike)
                self.take(lambda now: _reduced(now, replace(after, apps={}), unlike))
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
        self._remember_loss(before, gone)
        self.take(lambda now: _reduced(now, after, gone))
        return True

    def _remember_loss(self, before: Policy, apps: Iterable[str]) -> None:
        lost = (app for app in apps if _allows_anything(before.apps[app]))
        self._unrecorded |= {(before.wearer or "", app) for app in lost}

    def _record_grant_changes(self, before: Policy, after: Policy) -> None:
        """Write a row for every app whose grant another policy changes, of any wearer, as if the
        owner had pressed a button for each.
        """
        state, gone = self._state, set(self._unrecorded)
        old, new = _grants_of_all(before), _grants_of_all(after)
        for key in sorted({*old, *new, *gone}):
            name, app = key
            grant = new.get(key)
            allows, allowed = _allows_anything(grant), _allows_anything(old.get(key))
            unchanged = grant == old.get(key) if allows else not allowed and key not in gone
            if unchanged:
                continue
            theirs = after.wearers.get(name)
            detail: dict[str, object] = {
                "apps": len(theirs.apps) if theirs else 0,
                "consent": bool(theirs and theirs.consent),
            }
            if name != state.wearer and state.audit is not None:
                # Names of people are not in the log.
                detail["wearer"] = state.audit.pseudonym(f"wearer:{name}")
            detail |= _audit_detail(grant) if allows else {}
            state.record("grant" if allows else "revoke", app, detail)
        self._unrecorded -= gone

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
        detail: dict[str, object] = {"apps": len(policy.apps), "consent": policy.consent}
        detail |= _audit_detail(policy.apps.get(app)) if kind == "grant" else {}
        state.record(kind, app, detail)
        state.limits(policy)
        self._apply(policy, taken)

    def _apply(self, policy: Policy, taken: int) -> None:
        state = self._state
        with state.lock:
            with state.policy_lock:
                if state.taken != taken:
                    raise Denied("changed", TAKEN_MEANWHILE)
                for app in policy.apps:
                    self._leave_past_untold(app, policy.apps[app])
                state.policy = policy
            self._tidy()

    def _leave_past_untold(self, app: str, grant: Grant) -> None:
        """Have the areas of an app count from now on, and its counters from its next question on,
        where another grant would let it read what was looked at while it might not.
        """
        state, had = self._state, self._state.policy.apps.get(app)
        if app not in state.app_states or had is grant:
            return
        lapsed = had is None or not state.in_force(app, had)
        gained = grant.scopes - had.scopes if had is not None else grant.scopes
        if lapsed or gained & READ_BACK:
            state.app_states[app].begin_anew(state.t_ms)
        if lapsed or "counter" in gained:
            state.app_states[app].counted_before.clear()

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

    def _tidy_soon(self) -> None:
        if self._state.lock.acquire(timeout=TIDY_S):
            try:
                self._tidy()
            finally:
                self._state.lock.release()
        else:
            # Samples wait for the ledger: what was stopped leaves the lists when they have passed.
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

        Consent after a withdrawal begins a session and resets budgets `per="session"`. Only the
        owner can do that; a restart does not.
        """
        if not on:
            self.take(lambda policy: replace(policy, consent=False))
            self.record_revocation("consent", "device")
            return
        with self._owner:
            if not self._state.policy.consent:
                now = self._state.clock_ns()
                for account in self._state.accounts():
                    self._state.ledger.begin_session(account, f"consent {now}", now)
            self._give(lambda policy: replace(policy, consent=True), "consent", "device", taken)

    def record_ends(self) -> None:
        """Write into the audit log which grants have ended by time since the last call, so that
        no restart with a clock that was set back gives them again. For the platform, now and then.

        Raises
        ------
        LedgerError
            Where that is not possible now.
        """
        ended = self._ended_by_time()
        for _, app in sorted(ended - self._ended):
            self._state.record("end", app, {"code": "expired"})
        self._ended = ended

    def _ended_by_time(self) -> set[tuple[str, str]]:
        now_ns, grants = self._state.clock_ns(), _grants_of_all(self._state.policy)
        return {
            key
            for key, grant in grants.items()
            if grant.expires_ns is not None and grant.expires_ns <= now_ns
        }

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


def _reduced(now: Policy, after: Policy, gone: set[str]) -> Policy:
    """The policy in force without consent that the other one does not give, and with the other's
    grants, if any, for apps that lose theirs.
    """
    apps = {app: after.apps.get(app) if app in gone else grant for app, grant in now.apps.items()}
    return replace(
        now,
        consent=now.consent and after.consent,
        apps={app: grant for app, grant in apps.items() if grant is not None},
    )


def _allows_anything(grant: Grant | None) -> bool:
    """Whether a grant allows anything; one of an app that was only made known does not."""
    return grant is not None and not grant.revoked and bool(grant.scopes)


def _audit_detail(grant: Grant | None) -> dict[str, object]:
    """Describe a grant for the audit log, in the system's own names, cut to the length of a row."""
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


def _grants_of_all(policy: Policy) -> dict[tuple[str, str], Grant]:
    """All grants, by wearer and app."""
    return {
        (name, app): grant
        for name, wearer in policy.wearers.items()
        for app, grant in wearer.apps.items()
    }
