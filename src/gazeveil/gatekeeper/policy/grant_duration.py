"""How long a visit lasts, which a clock alone cannot end.

A grant for this visit is over two minutes after its last connection or call, or when its wearer
leaves: it survives a reload of a page, and no evening. What is over stays over: only the owner
grants again, which is another grant.

A restart ends it. So that no crash can give it again, it stands in the policy file as expired
already (:func:`as_written`).
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace

from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy

#: A visit without a connection or a call lasts so long.
UNUSED_NS = 2 * 60 * 10**9


@dataclass
class GrantUse:
    """Use of one grant: this very value, not one that is equal to it; when it was granted or last
    used, since the Unix epoch, and whether it is over.
    """

    grant: Grant
    seen_ns: int
    over: bool = False


class GrantUses:
    """The use of all grants of a device, and the open connections of its apps.

    It has a lock of its own, so that a connection ends without waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[int, GrantUse] = {}
        #: Connections, and subscriptions, which count where a platform tells of no connections.
        self._open: Counter[str] = Counter()

    def _of(self, grant: Grant, now_ns: int) -> GrantUse:
        return self._uses.setdefault(id(grant), GrantUse(grant, now_ns))

    def granted(self, policy: Policy, now_ns: int) -> None:
        """Begin to count for grants that are new."""
        for grant in policy.apps.values():
            self.over("", grant, now_ns)

    def called(self, grant: Grant, now_ns: int) -> None:
        """An answer was given under a grant, or a connection has ended."""
        if grant.lasts == "visit":
            with self._lock:
                use = self._of(grant, now_ns)
                use.seen_ns = max(use.seen_ns, now_ns)

    def opened(self, app: str) -> None:
        """An app has connected, or a subscription has begun."""
        with self._lock:
            self._open[app] += 1

    def closed(self, app: str, grant: Grant | None, now_ns: int) -> None:
        """A connection or a subscription of an app has ended."""
        with self._lock:
            self._open[app] -= 1
        if grant is not None:
            self.called(grant, now_ns)

    def switched(self, policy: Policy) -> None:
        """The wearer of a policy has left, and with the wearer all visits."""
        with self._lock:
            for grant in policy.apps.values():
                if grant.lasts == "visit":
                    self._of(grant, 0).over = True

    def over(self, app: str, grant: Grant, now_ns: int) -> bool:
        """Whether a grant is over; once it is, it stays so."""
        if grant.lasts != "visit":
            return False
        with self._lock:
            use = self._of(grant, now_ns)
            if self._open[app] <= 0 and now_ns - use.seen_ns >= UNUSED_NS:
                use.over = True
            return use.over


def why_over(app: str) -> str:
    """The sentence for an app whose visit is over."""
    return (
        f"The grant of the app '{app}' was for one visit, which is over: it was not used for"
        f" {UNUSED_NS // (60 * 10**9)} minutes. Ask again."
    )


def as_written(policy: Policy, now_ns: int) -> Policy:
    """The policy for its file: what must not outlive the process has expired there already, for all
    wearers.
    """

    def written(grant: Grant) -> Grant:
        lasting = grant.expires_ns is None or grant.expires_ns > now_ns
        brief = grant.lasts == "visit" and lasting
        return replace(grant, expires_ns=now_ns) if brief else grant

    return policy.with_apps(lambda apps: {app: written(grant) for app, grant in apps.items()})
