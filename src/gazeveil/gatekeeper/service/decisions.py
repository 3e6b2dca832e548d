"""What the owner decides, and where it is written: grants, consent, apps, asks and wearers.

What gives something is written first, to the policy file and then to the audit log, and comes in
force then; not where something was taken away since the command came, whatever it waited for. A
crash between the two leaves in the file what the owner gave, and the next start puts it in force,
without a row of its own in the log; every answer under it has one. What takes something away is in
force at once, from memory, and is written when the disk and the database take it
(:mod:`gazeveil.gatekeeper.service.revocations`). Where both meet, taking away holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.core.areas import RegisteredArea
from gazeveil.gatekeeper.core.policy_changes import TAKEN_MEANWHILE
from gazeveil.gatekeeper.errors import Denied, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.file import PolicyFile
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.grant_duration import as_written
from gazeveil.gatekeeper.policy.identity import LocalIdentity
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS, STUDY_MECHANISM, preset_of
from gazeveil.gatekeeper.policy.rules import judge, weakest
from gazeveil.gatekeeper.policy.wearers import OWNER, Wearer
from gazeveil.gatekeeper.service.access_requests import AccessRequest, name_of_origin
from gazeveil.gatekeeper.service.answers import ServiceQueries
from gazeveil.gatekeeper.service.credentials.callers import Callers
from gazeveil.gatekeeper.service.revocations import Revocation, Revocations
from gazeveil.gatekeeper.service.sockets.connections import Broadcaster


def unknown_name(kind: str, known: Iterable[str]) -> Refused:
    """What is answered to a name that is not on a list."""
    reason = f"There is no such {kind}. {kind.capitalize()}s are: {', '.join(known)}."
    return Refused(422, kind, reason)


def disk_refused(what: str, error: OSError) -> Refused:
    """What is answered while a file cannot be written; `what` says which."""
    why = (error.strerror or "no reason given").lower()
    return Refused(503, "disk", f"{what} ({why}). Free some space, then try again.")


@contextmanager
def _dismissals_not_written() -> Iterator[None]:
    """Go on where the file of dismissals cannot be written: they count until the next start."""
    try:
        yield
    except OSError as error:
        LOG.error("the count of dismissed asks cannot be written", exc_info=error)


class Decisions(ServiceQueries):
    """The part of :class:`gazeveil.gatekeeper.service.service.Service` that changes what is
    allowed.
    """

    broadcaster: Broadcaster
    revocations: Revocations
    callers: Callers
    policy_file: PolicyFile
    areas: dict[tuple[str, int], RegisteredArea]
    _lock: threading.RLock
    _writing: threading.Lock

    def changed(self, *what: str) -> None:
        """Tell the owner's page to look again."""
        for topic in what:
            self.broadcaster.tell({"type": "changed", "what": topic})

    # --- giving
    # ----------------------------------------------------------------------------------------------

    # `taken` of the following is what :attr:`Gatekeeper.taken` was when the command came.

    def set_grant(
        self, app: str, grant: Grant, taken: int | None = None, asked: AccessRequest | None = None
    ) -> None:
        """Grant: written to the policy file first, so that what is allowed can be read there. Where
        it answers a question, the one that asked is the app from now on.
        """
        with self._lock:
            taken = self._ready_to_give(taken)
            if asked is not None and asked.origin is not None:
                grant = replace(grant, origins=(asked.origin,))
            if asked is not None and asked.identity is not None:
                grant = replace(grant, identity=asked.identity)
            with self._written(
                lambda policy: policy.with_grant(app, grant),
                Revocation("revoke", app, self.policy.wearer, self.ledger.now_ns()),
            ):
                self.keeper.grant(app, grant, taken)
            if asked is not None and asked.token:
                self.tokens.adopt(app, "app", asked.token, self.token_end_ns())
            self._forget_asks(app)
        self.changed("apps", "asks", "audit")

    def add_app(self, app: str, origins: tuple[str, ...], taken: int | None = None) -> None:
        """Make an app known that holds no token.

        A grant that the owner wrote for an app to come is its own. What an earlier app of the name
        was granted, by any wearer, is not.
        """
        with self._lock:
            taken = self._ready_to_give(taken)
            before = self.policy.without(app) if self.tokens.ever(app) else self.policy
            policy = before.with_grant(app, replace(before.apps.get(app, Grant()), origins=origins))
            self._set_policy(self._write(policy), taken)
        self.changed("apps", "audit")

    def rotate_token(self, app: str, expires_ns: int | None, taken: int | None = None) -> str:
        """A new token in the place of the app's others; not while the end of those waits to be
        written, which would end this one too.
        """
        with self._lock:
            self._ready_to_give(taken)
            return self.tokens.rotate(app, "app", expires_ns)

    def consent(self, on: bool, taken: int | None = None) -> bool:
        """Give consent, or take it back; whether that is written."""
        if not on:
            return self._take("consent", "", "consent", "apps", "audit")
        with self._lock:
            taken = self._ready_to_give(taken)
            with self._written(
                lambda policy: replace(policy, consent=True),
                Revocation("consent", "", self.policy.wearer, self.ledger.now_ns()),
            ):
                self.keeper.consent(True, taken)
        self.changed("consent", "apps", "audit")
        return True

    def _ready_to_give(self, taken: int | None) -> int:
        """See that nothing waits to be written that was taken away, and that nothing was since the
        command came; how often something was, for the core to compare.
        """
        if not self.revocations.settle():
            raise Refused(
                503,
                "ledger",
                "What was taken away last is in force but not written yet, so nothing new is given."
                " Try again when the disk and the ledger work.",
            )
        if taken not in (None, self.keeper.taken):
            raise Denied("changed", TAKEN_MEANWHILE)
        return self.keeper.taken

    @contextmanager
    def _written(self, change: Callable[[Policy], Policy], undo: Revocation) -> Iterator[None]:
        """Have a change of the policy in its file before it comes in force, and out of it again
        where it does not.
        """
        self._write(change(self.policy))
        try:
            yield
        except BaseException:
            try:
                self._write(self.policy)
            except GazeveilError:
                self.revocations.add(undo)  # or the next start would give what never came in force
            raise

    # --- taking away
    # ----------------------------------------------------------------------------------------------

    def revoke(self, app: str) -> bool:
        """Take the grant of an app back; whether that is written."""
        self.access_requests.withdraw(app)
        return self._take("revoke", app, "apps", "asks", "audit")

    def drop_token(self, app: str) -> bool:
        """Take the token of an app away, and its grants back, those of all wearers; whether that is
        written.
        """
        self.tokens.forget(app)  # first, or it connects again before its token has ended
        self.broadcaster.hang_up(
            self.broadcaster.of(app),
            "token",
            "The app's token was taken away. Ask the owner for a new one.",
            4001,
        )
        self.access_requests.withdraw(app)
        return self._take("token", app, "apps", "asks", "audit")

    def drop(self, app: str) -> bool:
        """Forget an app: its token, grant, areas, asks and block; whether that is written. Its
        account in the ledger stays.
        """
        self.tokens.forget(app)  # first, or it connects again before its token has ended
        self.broadcaster.hang_up(
            self.broadcaster.of(app), "token", "The owner has removed the app.", 4001
        )
        self._forget_asks(app, "dismissed")
        for key in [key for key in list(self.areas) if key[0] == app]:
            self.areas.pop(key, None)
        return self._take("drop", app, "apps", "asks", "audit")

    def _take(self, kind: str, app: str, *changed: str) -> bool:
        revocation = Revocation(kind, app, self.keeper.wearer, self.ledger.now_ns())
        self.keeper.take(revocation.from_policy)
        self.discard_denied()
        self.changed(*changed)
        written = self.revocations.add(revocation)
        if written:
            self.changed("audit")
        return written

    def mechanism_for(self, app: str) -> str:
        """What protects an app's samples where it leaves that to the device."""
        grant = self.policy.apps.get(app, Grant())
        usual = judge(grant.mechanisms, STUDY_MECHANISM).code == "allowed"
        return STUDY_MECHANISM if usual or not grant.mechanisms else weakest(grant.mechanisms[0])

    def discard_denied(self) -> None:
        """Throw away what a slow reader was to get of streams that had ended by their budget, where
        its grant has ended since; of open streams the core does it.
        """
        for connection in tuple(self.broadcaster.connections):
            if connection.waiting:
                connection.discard_ended(partial(self._may_have, connection.app))

    def _may_have(self, app: str, mechanism: str) -> bool:
        """Whether an app may have samples of a mechanism now."""
        policy, grant = self.policy, self.policy.apps.get(app)
        return (
            policy.consent
            and grant is not None
            and "samples" in grant.scopes
            and self.keeper.state.in_force(app, grant)
            and judge(grant.mechanisms, mechanism).code == "allowed"
        )

    def write_revocation(self, revocation: Revocation) -> None:
        """Write what was taken away to the policy file, the tokens and the audit log; may be
        repeated.

        Raises
        ------
        GazeveilError
            Where that is not possible now.
        """
        if revocation.of_token:
            # First: a policy file that cannot be written must not keep a token alive.
            self.tokens.revoke(revocation.app, "app")
        self._write(self.policy)
        self.keeper.record_revocation(revocation.kind, revocation.app or "device", revocation.at_ns)

    # --- the policy file
    # ----------------------------------------------------------------------------------------------

    def reload_policy(self, taken: int | None = None) -> None:
        """Put in force what the policy file says now; what it takes away is gone at once.

        Raises
        ------
        Refused
            Where it cannot be read, with the line or the key; the old policy stays in force.
        """
        with self._lock:
            try:
                edit = self.policy_file.edit()
            except GazeveilError as error:
                raise Refused(
                    409, "policy", f"{str(error).rstrip('.')}. The old policy stays in force."
                ) from None
            took = self.keeper.take_as(edit.onto(self.policy))
            self.discard_denied()
            try:
                taken = self._ready_to_give(None if taken is None else taken + took)
                self._set_policy(edit.onto(self.policy), taken)
            except BaseException:
                self.policy_file.refuse(self.policy)  # to be read again, and not overwritten
                raise
            self.policy_file.accept()
        LOG.info("the policy was read again")
        self.changed("consent", "apps", "asks", "audit")

    def _set_policy(self, policy: Policy, taken: int | None = None) -> None:
        """Put a policy in force, for connections that are open too."""
        self.keeper.set_policy(policy, taken)
        self.discard_denied()
        self.hang_up_other_programs()

    def hang_up_other_programs(self) -> None:
        """Close connections that came without a token, where the policy does not name their program
        as the app any more.
        """
        others = [
            connection
            for connection in tuple(self.broadcaster.connections)
            if connection.local is not None
            and self.callers.local_app(connection.local) != connection.app
        ]
        reason = "The policy does not name this program as the app any more. Ask the owner."
        self.broadcaster.hang_up(others, "token", reason, 4001)

    def _write(self, policy: Policy) -> Policy:
        """Write a policy together with edits made in its file meanwhile, and put both in force."""
        try:
            with self._writing:
                edit = self.policy_file.write(as_written(policy, self.ledger.now_ns()))
        except OSError as error:
            raise disk_refused("The policy file cannot be written", error) from None
        except GazeveilError as error:
            reason = (
                "The policy file was edited and cannot be read now, so it is not written:"
                f" {str(error).rstrip('.')}. Mend it, then try again."
            )
            raise Refused(409, "edited", reason) from None
        if edit is None:
            return policy
        both = edit.onto(policy)
        try:
            self._set_policy(both)
        except BaseException:
            self.policy_file.refuse(self.policy)  # to be read again, and not overwritten
            raise
        return both

    # --- asks
    # ----------------------------------------------------------------------------------------------

    def ask(
        self, app: str, want: str, origin: str | None = None, identity: LocalIdentity | None = None
    ) -> dict[str, str]:
        """Put an app's question to the wearer, unless it has what it wants; `origin` or `identity`
        are of one that brought no token.
        """
        if want not in PRESETS:
            raise unknown_name("preset", PRESETS)
        new = origin is not None or identity is not None
        known = preset_of(self.policy.apps.get(app, Grant()))
        if not new and known is not None and known.name == want and self.state(app) == "granted":
            return {"state": "granted"}
        if self.access_requests.blocked(app):
            raise Refused(
                403,
                "blocked",
                "The owner has dismissed this app three times, so it may not ask again. The owner"
                " can lift that on the dashboard.",
            )
        waits = self.access_requests.of(app)
        if waits is not None and waits.want == want and not new:
            return {"state": "waiting"}
        asked = self.access_requests.add(app, want, origin, identity)
        if asked is None:
            raise Refused(
                409,
                "waiting",
                "An ask of this app waits for the owner already. Wait until it is answered.",
            )
        self.changed("asks")
        return {"state": "waiting", **({"token": asked.token} if asked.token else {})}

    def origin_app(self, origin: str) -> str:
        """The name of the app that a page is, which must not be that of another app."""
        name = name_of_origin(origin)
        grant = self.policy.apps.get(name or "")
        if name is None or (grant is not None and grant.origins != (origin,)):
            reason = "A page of this origin cannot ask. Ask the owner to add the app by hand."
            raise Refused(403, "origin", reason)
        return name

    def dismiss(self, number: int) -> bool:
        """Dismiss an ask; False where none of that number waits."""
        was_waiting = True
        with _dismissals_not_written():
            was_waiting = self.access_requests.dismiss(number) is not None
        self.changed("asks", "apps")
        return was_waiting

    def unblock(self, app: str) -> None:
        """Let an app ask again that was dismissed too often."""
        self._forget_asks(app)
        self.changed("asks", "apps")

    def _forget_asks(self, app: str, answer: str = "granted") -> None:
        """Forget the ask and the dismissals of an app."""
        with _dismissals_not_written():
            self.access_requests.forget(app, answer)

    # --- wearers
    # ----------------------------------------------------------------------------------------------

    def add_wearer(self, name: str, taken: int | None = None) -> None:
        """Name one more person in the policy, who has decided nothing yet."""
        with self._lock:
            taken = self._ready_to_give(taken)
            if name in self.policy.wearers:
                reason = "There is a wearer of this name already. Choose another name."
                raise Refused(409, "taken", reason)
            others = {**self.policy.others, name: Wearer()}
            self._put_policy(replace(self.policy, others=others), taken)

    def drop_wearer(self, name: str, taken: int | None = None) -> None:
        """Take a person out of the policy, with consent and grants. What was spent stays in the
        ledger.
        """
        with self._lock:
            taken = self._ready_to_give(taken)
            if name == OWNER or name not in self.policy.wearers:
                reason = f"There is no such wearer, or it is '{OWNER}', who always is."
                raise Refused(404, "unknown", reason)
            worn = self.policy.worn_by(OWNER)
            others = {other: wearer for other, wearer in worn.others.items() if other != name}
            self._put_policy(replace(worn, others=others), taken)

    def _put_policy(self, policy: Policy, taken: int) -> None:
        self._set_policy(self._write(policy), taken)
        self.changed("wearer", "apps", "audit")

    def wearer_figures(self) -> dict[str, object]:
        """Who wears the device, and whom the policy names."""
        return {
            "name": self.keeper.wearer,
            "known": self.policy.wearer is not None,
            "wearers": sorted(self.policy.wearers),
        }
