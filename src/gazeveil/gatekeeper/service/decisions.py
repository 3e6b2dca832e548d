"""What the owner decides: grants, consent, apps, asks and wearers.

What gives something is written first, policy and audit row in one transaction, and comes in force
then; not where since the command came something was taken away, or a later one about the same is in
force, whatever it waited for. What takes
something away is in force at once, from memory, and is written when the database takes it
(:mod:`gazeveil.gatekeeper.service.store`). Where both meet, taking away holds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gazeveil.gatekeeper.core.device_state import Arrival
from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.policy.decision import Request
from gazeveil.gatekeeper.policy.grant import PRESETS, Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.answers import ServiceQueries
from gazeveil.gatekeeper.service.asks import AccessRequest, name_of_origin
from gazeveil.gatekeeper.service.connections import Connection
from gazeveil.gatekeeper.service.store import Revocation, Revocations, write_policy

_DAY_NS = 86_400 * 10**9


class Decisions(ServiceQueries):
    """The part of :class:`gazeveil.gatekeeper.service.service.Service` that changes what is
    allowed.
    """

    revocations: Revocations
    _lock: threading.RLock

    def changed(self, *what: str) -> None:
        """Tell the owner's page to look again."""
        for topic in what:
            self.broadcaster.tell({"type": "changed", "what": topic})

    def token_end_ns(self) -> int:
        """When the token of an app or a tracker ends that is given out now."""
        return self.ledger.now_ns() + round(self.settings.token_days * _DAY_NS)

    # --- giving
    # ----------------------------------------------------------------------------------------------
    # `arrival` of the following says when the command came, by default now.

    @contextmanager
    def _giving(self, *changed: str) -> Iterator[None]:
        """Give something, one after the other; where it cannot be written, what is in force is
        written again as soon as that is possible: what was may be unknown.
        """
        with self._lock:
            try:
                yield
            except LedgerError:
                self.ledger.database.owe(lambda sql: write_policy(sql, self.policy))
                raise
        self.changed(*changed, "audit")

    def set_grant(
        self,
        app: str,
        grant: Grant,
        arrival: Arrival | None = None,
        asked: AccessRequest | None = None,
    ) -> None:
        """Grant something. Where it answers a question, the one that asked is the app from now
        on.
        """
        with self._giving("apps", "asks"):
            before = self.policy.apps.get(app, Grant())
            grant = replace(grant, origins=before.origins, uid=before.uid)
            if asked is not None and asked.origin is not None:
                grant = replace(grant, origins=(asked.origin,))
            if asked is not None and asked.uid is not None:
                grant = replace(grant, uid=asked.uid)
            self.keeper.grant(app, grant, arrival)
            if asked is not None and asked.token:
                self.tokens.admit(app, self.token_end_ns())
            self.access_requests.forget(app)

    def add_app(self, app: str, origins: tuple[str, ...], arrival: Arrival | None = None) -> None:
        """Make an app known that holds no token.

        A grant that the owner imported for an app to come is its own. What an earlier app of the
        name was granted, by any wearer, is not.
        """
        with self._giving("apps"):
            before = self.policy.without(app) if self.tokens.ever(app) else self.policy
            grant = replace(before.apps.get(app, Grant()), origins=origins)
            self._set_policy(before.with_grant(app, grant), arrival, app)

    def consent(self, on: bool, arrival: Arrival | None = None) -> bool:
        """Give consent, or take it back; whether that is written."""
        if not on:
            return self._take("consent", "", "consent", "apps", "audit")
        with self._giving("consent", "apps"):
            self.keeper.consent(True, arrival)
        return True

    def import_policy(self, policy: Policy, arrival: Arrival | None = None) -> None:
        """Put a policy in force in place of all that was decided; what it takes away is gone at
        once.
        """
        with self._giving("consent", "apps", "asks"):
            self._set_policy(policy, arrival)

    def _set_policy(self, policy: Policy, arrival: Arrival | None, *about: str) -> None:
        """Put a policy in force, for connections that are open too."""
        self.keeper.set_policy(policy, arrival, *about)
        self.discard_denied()
        self.hang_up_other_programs()

    # --- taking away
    # ----------------------------------------------------------------------------------------------

    def revoke(self, app: str) -> bool:
        """Take the grant of an app back; whether that is written."""
        self.access_requests.withdraw(app)
        return self._take("revoke", app, "apps", "asks", "audit")

    def drop(self, app: str) -> bool:
        """Forget an app: its token, grant, areas, asks and block; whether that is written. Its
        account in the ledger stays.
        """
        self.tokens.end(app=app, role="app")  # first, or it connects again before that
        reason = "The owner has removed the app."
        self.broadcaster.hang_up(self.broadcaster.of(app), "token", reason, 4001)
        self.access_requests.forget(app, "dismissed")
        return self._take("drop", app, "apps", "asks", "audit")

    def _take(self, kind: str, app: str, *changed: str) -> bool:
        revocation = Revocation(kind, app, self.keeper.wearer, self.ledger.now_ns())
        self.keeper.take(revocation.from_policy)
        self.discard_denied()
        self.changed(*changed)
        return self.revocations.add(revocation)

    def discard_denied(self) -> None:
        """Throw away what a slow reader was to get of streams that had ended by their budget, where
        its grant has ended since; of open streams the core does it. Then tell whose grant has
        ended.
        """
        for connection in tuple(self.broadcaster.connections):
            if connection.waiting:
                connection.discard_ended(partial(self._may_have, connection.app))
            if connection.app:
                self.tell_end(connection)

    def tell_end(self, connection: Connection) -> None:
        """Tell an app once that its grant has ended, also where it has nothing open; then what it
        had open has said so before.
        """
        state, grant = self.keeper.state, self.policy.apps.get(connection.app, Grant())
        scope, mechanism = min(grant.scopes, default=""), next(iter(grant.mechanisms), None)
        now = state.decide(Request(connection.app, scope, mechanism, state.clock_ns()))
        was, connection.granted = connection.granted, now.allow
        if was and not now.allow:
            connection.answer({"type": "ended", "code": now.code, "reason": now.reason})

    def _may_have(self, app: str, mechanism: str) -> bool:
        """Whether an app may have samples of a mechanism now."""
        state = self.keeper.state
        return state.decide(Request(app, "samples", mechanism, state.clock_ns())).allow

    # --- asks
    # ----------------------------------------------------------------------------------------------

    def ask(
        self, app: str, want: str, origin: str | None = None, uid: int | None = None
    ) -> dict[str, str]:
        """Put an app's question to the wearer, unless it has what it wants; `origin` or `uid`
        are of one that brought no token.
        """
        if want not in PRESETS:
            raise unknown_preset()
        new = origin is not None or uid is not None
        if (
            not new
            and self.policy.apps.get(app, Grant()).preset == want
            and self.state(app) == "granted"
        ):
            return {"state": "granted"}
        if app in self.access_requests.blocked_apps():
            raise Refused(
                403,
                "blocked",
                "The wearer has said no to this app three times, so it may not ask again. The"
                " wearer's page can lift that.",
            )
        waits = self.access_requests.of(app)
        if waits is not None and waits.want == want and not new:
            return {"state": "waiting"}
        asked = self.access_requests.add(app, want, origin, uid)
        if asked is None:
            raise Refused(
                409,
                "waiting",
                "A question of this app waits for the wearer already. Wait until it is answered.",
            )
        self.changed("asks")
        return {"state": "waiting", **({"token": asked.token} if asked.token else {})}

    def origin_app(self, origin: str) -> str:
        """The name of the app that a page is, which must not be that of another app."""
        name = name_of_origin(origin)
        grant = self.policy.apps.get(name or "")
        if name is None or (grant is not None and grant.origins != (origin,)):
            raise Refused(
                403, "origin", "A page of this origin cannot ask. Ask the owner to add it by hand."
            )
        return name

    def dismiss(self, number: int) -> bool:
        """Dismiss an ask; False where none of that number waits."""
        asked = self.access_requests.dismiss(number)
        if asked is not None:
            self._note("dismiss", asked.app, {"want": asked.want})
        return asked is not None

    def unblock(self, app: str) -> None:
        """Let an app ask again that was dismissed too often."""
        self.access_requests.forget(app)
        self._note("unblock", app, {})

    def _note(self, kind: str, app: str, detail: dict[str, object]) -> None:
        """Have a row of the audit log written for what counts already, before anything else."""
        self.ledger.database.owe(self.audit.writes(kind, app, detail, self.ledger.now_ns()))
        self.changed("asks", "apps", "audit")

    # --- programs of this machine
    # ----------------------------------------------------------------------------------------------

    def local_app(self, uid: int) -> str | None:
        """The app that a user's programs are, as the policy of any wearer says."""
        return next(
            (app for (_, app), grant in self.policy.grants.items() if grant.uid == uid), None
        )

    def hang_up_other_programs(self) -> None:
        """Close connections that came without a token, where the policy does not name their program
        as the app any more.
        """
        others = [
            connection
            for connection in tuple(self.broadcaster.connections)
            if connection.local is not None and self.local_app(connection.local) != connection.app
        ]
        self.broadcaster.hang_up(
            others,
            "token",
            "The policy does not name this program as the app any more. Ask the owner.",
            4001,
        )

    def wearer_figures(self) -> dict[str, object]:
        """Who wears the device, and whom the policy names."""
        return {
            "name": self.keeper.wearer,
            "known": self.policy.wearer is not None,
            "wearers": sorted(self.policy.wearers),
        }


def unknown_preset() -> Refused:
    """What is answered to a name that is no preset."""
    return Refused(422, "preset", f"There is no such preset. Presets are: {', '.join(PRESETS)}.")
