"""How long grants last that a clock alone cannot end: `once`, and `in-use`.

`once` is over when the first connection of the app that used it ends, when its wearer leaves, or
ten minutes after its first call where the app has no connection. `in-use` is over after five
minutes without a connection or a call. What is over stays over: only the owner grants again, which
is another grant.

A restart ends both. So that no crash can give them again, they stand in the policy file as expired
already (:func:`as_written`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy

#: A grant `once` without a connection lasts so long after its first call.
ONCE_NS = 10 * 60 * 10**9

#: A grant `in-use` that is not used lasts so long.
UNUSED_NS = 5 * 60 * 10**9

#: What ends with its use.
BRIEF = frozenset({"once", "in-use"})


@dataclass
class GrantUse:
    """What is known of the use of one grant.

    Parameters
    ----------
    grant : Grant
        Which one: this very value, not one that is equal to it.
    seen_ns : int
        When it was granted or last used, since the Unix epoch.
    first_call_ns : int, optional
        When it was first used.
    over : bool
        Whether a connection that used it has ended.
    """

    grant: Grant
    seen_ns: int
    first_call_ns: int | None = None
    over: bool = False


class GrantUses:
    """The use of all grants of a device, and the open connections of its apps.

    It has a lock of its own, so that a connection that ends waits for nobody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[int, GrantUse] = {}
        self._connections: dict[str, int] = {}
        self._subscriptions: dict[str, int] = {}

    def _of(self, grant: Grant, now_ns: int) -> GrantUse:
        return self._uses.setdefault(id(grant), GrantUse(grant, now_ns))

    def granted(self, policy: Policy, now_ns: int) -> None:
        """Begin to count for grants that are new."""
        with self._lock:
            for grant in policy.apps.values():
                if grant.lasts in BRIEF:
                    self._of(grant, now_ns)

    def called(self, grant: Grant, now_ns: int) -> None:
        """An answer was given under a grant."""
        if grant.lasts in BRIEF:
            with self._lock:
                use = self._of(grant, now_ns)
                use.seen_ns = max(use.seen_ns, now_ns)
                use.first_call_ns = now_ns if use.first_call_ns is None else use.first_call_ns

    def connected(self, app: str) -> None:
        """An app has connected."""
        with self._lock:
            self._connections[app] = self._connections.get(app, 0) + 1

    def disconnected(self, app: str, grant: Grant | None, now_ns: int) -> bool:
        """A connection of an app has ended; whether its grant is over by that."""
        with self._lock:
            self._connections[app] = self._connections.get(app, 1) - 1
            return self._left(grant, now_ns)

    def subscribed(self, app: str) -> None:
        """A subscription has begun; for an app whose platform tells of no connections it is one."""
        with self._lock:
            self._subscriptions[app] = self._subscriptions.get(app, 0) + 1

    def unsubscribed(self, app: str, grant: Grant | None, now_ns: int) -> None:
        """A subscription has ended."""
        with self._lock:
            left = self._subscriptions[app] = self._subscriptions.get(app, 1) - 1
            if not left and not self._connections.get(app):
                self._left(grant, now_ns)

    def switched(self, policy: Policy) -> None:
        """The wearer of a policy has left: what was for one use and was used is over, because its
        connection may end while somebody else wears the device.
        """
        with self._lock:
            for grant in policy.apps.values():
                use = self._uses.get(id(grant))
                if grant.lasts == "once" and use is not None and use.first_call_ns is not None:
                    use.over = True

    def _left(self, grant: Grant | None, now_ns: int) -> bool:
        if grant is None or grant.lasts not in BRIEF:
            return False
        use = self._of(grant, now_ns)
        use.seen_ns = max(use.seen_ns, now_ns)
        # A connection that was given nothing has not used it.
        if grant.lasts == "once" and use.first_call_ns is not None:
            use.over = True
        return use.over

    def over(self, app: str, grant: Grant, now_ns: int) -> bool:
        """Whether a grant is over; once it is, it stays so."""
        if grant.lasts not in BRIEF:
            return False
        with self._lock:
            use = self._of(grant, now_ns)
            open_now = self._connections.get(app, 0) + self._subscriptions.get(app, 0) > 0
            if not use.over and not open_now:
                since_ns = use.first_call_ns if grant.lasts == "once" else use.seen_ns
                use.over = since_ns is not None and now_ns - since_ns >= (
                    ONCE_NS if grant.lasts == "once" else UNUSED_NS
                )
            return use.over


def why_over(app: str, grant: Grant) -> str:
    """The sentence for an app whose grant is over."""
    if grant.lasts == "once":
        return (
            f"The grant of the app '{app}' was for one use, which is over. Ask the owner for a new"
            " one."
        )
    return (
        f"The grant of the app '{app}' was for while it is used, and it was not used for"
        f" {UNUSED_NS // (60 * 10**9)} minutes. Ask the owner for a new one."
    )


def as_written(policy: Policy, now_ns: int) -> Policy:
    """The policy for its file: what must not outlive the process has expired there already, for all
    wearers.
    """

    def written(grant: Grant) -> Grant:
        lasting = grant.expires_ns is None or grant.expires_ns > now_ns
        return replace(grant, expires_ns=now_ns) if grant.lasts in BRIEF and lasting else grant

    return policy.with_apps(lambda apps: {app: written(grant) for app, grant in apps.items()})


def tonight_ns(now_ns: int) -> int:
    """The next midnight of the local clock, in nanoseconds since the Unix epoch."""
    today = datetime.fromtimestamp(now_ns // 10**9).astimezone()
    midnight = datetime.combine(today.date() + timedelta(days=1), datetime.min.time()).astimezone()
    return round(midnight.timestamp()) * 10**9
