"""Whether a request is allowed: a pure function of a policy and of one request.

Every decision has a word for programs and a sentence for people. A decision that cannot be made is
a denial: :func:`decide` never raises. Budgets are not spent here;
:mod:`gazeveil.gatekeeper.ledger.ledger` does that.

How long a visit lasts, which a clock alone cannot end.

A grant for this visit is over two minutes after its last connection or call, or when its wearer
leaves: it survives a reload of a page, and no evening. What is over stays over: only the owner
grants again, which is another grant.

A restart ends it (:func:`ended_by_restart`).
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace

from gazeveil.gatekeeper.policy.grant import FAMILIES, PRESETS, SCOPES, Grant, granted_mechanism
from gazeveil.gatekeeper.policy.policy import Policy


@dataclass(frozen=True)
class Request:
    """What an app asks for, and what the Gatekeeper knows about it at that moment.

    Parameters
    ----------
    app : str
        Who asks.
    action : str
        A scope; the scope `samples` opens or continues protected samples.
    mechanism : str, optional
        For `samples`: one that is granted, word for word.
    now_ns : int
        Time since the Unix epoch, in nanoseconds.
    calls_last_minute : int
        Questions the app asked in the last minute, without this one.
    open_streams : int
        Streams the app has open, without this one.
    origin : str, optional
        Where a web page is from, as the browser says.
    areas : int, optional
        Where one more area is to be registered: how many the app has.
    """

    app: str
    action: str
    mechanism: str | None = None
    now_ns: int = 0
    calls_last_minute: int = 0
    open_streams: int = 0
    origin: str | None = None
    areas: int | None = None


@dataclass(frozen=True)
class AccessDecision:
    """The answer of the policy: `allowed`, or the word of
    :class:`gazeveil.gatekeeper.errors.Denied`, and one sentence.
    """

    allow: bool
    code: str
    reason: str


_ALLOWED = {
    scope: AccessDecision(True, "allowed", f"The scope '{scope}' is granted.") for scope in SCOPES
}


def decide(policy: Policy, request: Request) -> AccessDecision:
    """Whether a request is allowed, and why; pure, and total: it never raises."""
    try:
        denied = _denied(policy, request)
    except Exception:
        # Whatever is wrong with a request, its sender must not get past the policy by it.
        denied = "unknown", "The request cannot be read, so it is denied."
    return AccessDecision(False, *denied) if denied else _ALLOWED[request.action]


def _denied(policy: Policy, request: Request) -> tuple[str, str] | None:
    """Code and sentence of a denial; None where the request is allowed."""
    app, scope, now_ns = request.app, request.action, request.now_ns
    if policy.consent is not True:
        return (
            "no-consent",
            "Sharing is off, so no app gets anything. The wearer's page has the switch.",
        )
    if type(now_ns) is not int or type(request.calls_last_minute) is not int:
        return "unknown", "The request cannot be read, so it is denied."
    grant = policy.apps.get(app)
    if grant is None:
        return "no-grant", f"The app '{_short(app)}' has no grant. Ask the owner for one."
    if grant.revoked:
        return "revoked", "The wearer has stopped this app: its grant was revoked."
    if grant.expires_ns is not None and now_ns >= grant.expires_ns:
        return "expired", "The grant of this app has expired. Call ask() for a new one."
    if request.origin is not None and request.origin not in grant.origins:
        return (
            "origin",
            f"Pages from '{_short(request.origin)}' may not use the grant of the app '{app}'. Ask"
            " the owner to add that origin to it.",
        )
    if scope not in SCOPES:
        return "scope", f"There is no scope '{_short(scope)}'. Scopes are: {', '.join(SCOPES)}."
    if scope not in grant.scopes:
        presets = (f'"{name}"' for name, one in PRESETS.items() if scope in one.grant().scopes)
        calls = f"Call ask({' or '.join(presets)})."
        return "scope", f"The scope '{scope}' is not granted to this app. {calls}"
    if request.calls_last_minute >= grant.calls_per_minute:
        return (
            "rate",
            f"The app '{app}' may ask {grant.calls_per_minute} times a minute. Wait a moment.",
        )
    if request.areas is not None and request.areas >= grant.areas:
        return (
            "area",
            f"The app '{app}' may have {grant.areas} areas at a time. Remove one first.",
        )
    return _denied_samples(grant, request) if scope == "samples" else None


def _denied_samples(grant: Grant, request: Request) -> tuple[str, str] | None:
    app, asked = request.app, request.mechanism
    if asked not in grant.mechanisms:
        offered = "; ".join(grant.mechanisms) or "none"
        return (
            "mechanism",
            f"Samples are given only through a mechanism that is granted, written as here:"
            f" {offered}.",
        )
    if request.open_streams >= grant.streams:
        reason = f"The app '{app}' may have {grant.streams} streams open at a time."
        return "rate", f"{reason} Close one first."
    currency = currency_of(str(asked))
    if not grant.limit(currency):
        return (
            "budget",
            f"The app '{app}' has no budget in {currency}, which this costs. Ask the owner for"
            " one.",
        )
    return None


def currency_of(text: str) -> str:
    """What a granted mechanism is paid in.

    Examples
    --------
    >>> currency_of("gaussian:sigma_deg=2"), currency_of("kaleido:epsilon=1,w=60,r_deg=2")
    ('rho', 'epsilon')
    """
    return "rho" if FAMILIES[granted_mechanism(text).name] == "gaussian" else "epsilon"


def _short(text: object) -> str:
    """What a stranger wrote, made harmless for a sentence."""
    shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in str(text)[:40])
    return shown.replace("'", "?")


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


#: The sentence for an app whose visit is over.
WHY_OVER = (
    "The grant of this app was for one visit, which is over: it was not used for"
    f" {UNUSED_NS // (60 * 10**9)} minutes. Ask again."
)


def ended_by_restart(policy: Policy, now_ns: int) -> Policy:
    """The policy with what must not outlive the process expired, for all wearers."""

    def ended(_: str, grant: Grant) -> Grant:
        lasting = grant.expires_ns is None or grant.expires_ns > now_ns
        return replace(grant, expires_ns=now_ns) if grant.lasts == "visit" and lasting else grant

    return policy.with_apps(ended)
