"""Whether a request is allowed: a pure function of a policy and of one request.

Every decision has a word for programs and a sentence for people. A decision that cannot be made is
a denial: :func:`decide` never raises.

Budgets are not spent here; :mod:`gazeveil.gatekeeper.ledger.ledger` does that. This module only
checks that a grant has a budget in the currency of the answer. An unforeseen cost is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from gazeveil.gatekeeper.policy.grant import ACTIONS, SCOPES, Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.rules import judge


@dataclass(frozen=True)
class Request:
    """What an app asks for, and what the Gatekeeper knows about it at that moment.

    Parameters
    ----------
    app : str
        Who asks.
    action : str
        A scope, or `stream`.
    mechanism : str, optional
        For `stream`: the text `name:parameter=value,...`.
    now_ns : int
        Time since the Unix epoch, in nanoseconds.
    calls_last_minute : int
        Questions the app asked in the last minute, without this one.
    open_streams : int
        Streams the app has open, without this one.
    origin : str, optional
        Where a web page is from, as the browser says.
    rate_hz : float, optional
        For `stream`: the tracker's rate; must be told where the grant bounds it.
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
    rate_hz: float | None = None
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
    action: AccessDecision(True, "allowed", f"The scope '{action}' is granted.")
    for action in SCOPES
}


def decide(policy: Policy, request: Request) -> AccessDecision:
    """Whether a request is allowed, and why; pure, and total: it never raises."""
    try:
        return _decide(policy, request)
    except Exception:
        # Whatever is wrong with a request, its sender must not get past the policy by it.
        return _deny("unknown", "The request cannot be read, so it is denied.")


def _deny(code: str, reason: str) -> AccessDecision:
    return AccessDecision(False, code, reason)


def _decide(policy: Policy, request: Request) -> AccessDecision:
    if policy.consent is not True:
        return _deny(
            "no-consent",
            "The wearer has not given consent, so no app gets anything. The wearer can give it on"
            " the dashboard.",
        )
    app, now_ns = request.app, request.now_ns
    if (
        not isinstance(app, str)
        or type(now_ns) is not int
        or type(request.calls_last_minute) is not int
        or type(request.open_streams) is not int
    ):
        return _deny("unknown", "The request cannot be read, so it is denied.")
    grant = policy.apps.get(app)
    if grant is None:
        return _deny("no-grant", f"The app '{_short(app)}' has no grant. Ask the owner for one.")
    if grant.revoked:
        return _deny(
            "revoked", f"The grant of the app '{app}' was revoked. Ask the owner for a new one."
        )
    if grant.expires_ns is not None and now_ns >= grant.expires_ns:
        return _deny(
            "expired", f"The grant of the app '{app}' has expired. Ask the owner for a new one."
        )
    if request.origin is not None and request.origin not in grant.origins:
        return _deny(
            "origin",
            f"Pages from '{_short(request.origin)}' may not use the grant of the app '{app}'. Ask"
            " the owner to add that origin to it.",
        )
    action = request.action
    if action not in ACTIONS:
        return _deny(
            "scope", f"There is no scope '{_short(action)}'. Scopes are: {', '.join(SCOPES)}."
        )
    scope = "samples" if action == "stream" else action
    if scope not in grant.scopes:
        return _deny(
            "scope", f"The scope '{scope}' is not granted to the app '{app}'. Ask the owner for it."
        )
    if request.calls_last_minute >= grant.calls_per_minute:
        return _deny(
            "rate",
            f"The app '{app}' may ask {grant.calls_per_minute} times a minute. Wait a moment.",
        )
    if scope == "samples":
        return _stream(grant, request)
    if scope == "areas" and request.areas is not None and request.areas >= grant.areas:
        return _deny(
            "area", f"The app '{app}' may have {grant.areas} areas at a time. Remove one first."
        )
    if scope == "counter" and not grant.limits()["epsilon"]:
        return _deny(
            "budget",
            f"The app '{app}' has no budget in epsilon, which this costs. Ask the owner for one.",
        )
    return _ALLOWED[scope]


def _stream(grant: Grant, request: Request) -> AccessDecision:
    app = request.app
    if not isinstance(request.mechanism, str) or not request.mechanism:
        return _deny(
            "mechanism",
            "Samples are given only through a mechanism. Name one that is granted, as GET /v1/me"
            " lists them.",
        )
    if request.open_streams >= grant.streams:
        return _deny(
            "rate",
            f"The app '{app}' may have {grant.streams} streams open at a time. Close one first.",
        )
    verdict = judge(grant.mechanisms, request.mechanism)
    if verdict.code != "allowed":
        return _deny(verdict.code, verdict.reason)
    if grant.most_hz is not None:
        rate_hz = request.rate_hz
        if rate_hz is None or not 0 < rate_hz < float("inf"):
            return _deny(
                "rate",
                f"The app '{app}' may have at most {grant.most_hz:g} samples a second, and the rate"
                " of this stream is not known.",
            )
        if rate_hz / verdict.stride > grant.most_hz:
            return _deny(
                "rate",
                f"The app '{app}' may have at most {grant.most_hz:g} samples a second; this stream"
                f" gives {rate_hz / verdict.stride:g}.",
            )
    if not grant.limits()[verdict.currency]:
        return _deny(
            "budget",
            f"The app '{app}' has no budget in {verdict.currency}, which this costs. Ask the owner"
            " for one.",
        )
    return AccessDecision(True, "allowed", verdict.reason)


def _short(text: object) -> str:
    """What a stranger wrote, made harmless for a sentence."""
    shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in str(text)[:40])
    return shown.replace("'", "?")
