"""What the device promises now: the level, every app's grant with the weakest promise it allows, open streams, and what was spent.

It is a statement about the present, made for the owner; it holds no gaze. The weakest promise of a rule is that of the mechanism with every
bounded parameter at its bound; where a rule leaves a parameter open, it says so instead of guessing.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gazeveil import __version__
from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.policy import SCOPES
from gazeveil.gatekeeper.rules import MechanismRule
from gazeveil.privacy import registry

if TYPE_CHECKING:
    from gazeveil.gatekeeper.service import Service

#: What no setting of the device protects against.
NOT_COVERED = (
    "a dishonest platform: the device itself sees raw gaze",
    "what is inferred from the content an app shows and from the areas it chose",
    "side channels outside the service, for example the timing of frames under foveated rendering",
    "what apps learned before a grant was revoked",
)


def certificate(service: Service) -> dict[str, Any]:
    """The certificate as JSON has it."""
    now = time.time_ns()
    policy = service.policy
    return {
        "device": service.settings.device,
        "version": __version__,
        "t": datetime.fromtimestamp(now / 1e9, UTC).isoformat(timespec="seconds"),
        "consent": policy.consent,
        **service.public(),
        "budgets": service.budgets(None),
        "apps": [_app(service, name) for name in sorted(policy.apps)],
        "not_covered": list(NOT_COVERED),
    }


def _app(service: Service, name: str) -> dict[str, Any]:
    grant = service.policy.apps[name]
    open_streams = [
        {"mechanism": feed.mechanism, "guarantee": feed.guarantee, "sent": feed.sent, "dropped": feed.dropped}
        for line in service.hub.of(name)
        for feed in tuple(line.feeds.values())
        if feed.mechanism is not None
    ]
    return {
        "app": name,
        "state": service.state(name),
        "scopes": {scope: SCOPES[scope] for scope in sorted(grant.scopes)},
        "mechanisms": [_weakest(service, rule) for rule in grant.mechanisms],
        "streams": open_streams,
        "budgets": service.budgets(name),
        "expires_ns": grant.expires_ns,
    }


_BOUNDS = ("<=", ">=", "=")


def weakest(rule: MechanismRule) -> str:
    """The mechanism with every bounded parameter at its bound, as an app would write it."""
    return rule.name + ":" + ",".join(f"{name}={value}" for name, (sign, value) in rule.parameters.items() if sign in _BOUNDS)


def _weakest(service: Service, rule: MechanismRule) -> dict[str, Any]:
    from gazeveil.gatekeeper.service import rule_text

    free = [name for name, (sign, _) in rule.parameters.items() if sign not in _BOUNDS]
    shown: dict[str, Any] = {"rule": rule_text(rule), "unproved": rule.unproved}
    try:
        mechanism: Any = registry.mechanism(weakest(rule))
        shown["weakest"] = str(mechanism)
        shown["guarantee"] = service.guarantee(mechanism.promise(service.keeper.rate_hz, service.keeper.space))
    except GazeveilError:
        shown["weakest"] = None
    if free:
        shown["open_parameters"] = free
    return shown


def certificate_text(figures: dict[str, Any]) -> str:
    """The certificate for people."""
    level = figures["level"]
    lines = [
        f"Certificate of the device '{figures['device']}', {figures['t']}, Gazeveil {figures['version']}",
        "",
        f"Consent is {'on' if figures['consent'] else 'off: no app gets anything'}.",
        f"No app sees places finer than {level['resolution_deg']:g} degrees or times finer than {level['tick_ms']} ms, but through a granted mechanism."
        f" Areas are at least {level['least_side_deg']:g} degrees wide and high; tiles are {level['tiles'][0]} by {level['tiles'][1]}.",
        "Raw samples, pupils, velocities and the tracker's own timing are never given.",
        f"Streams of samples are charged for gaze that was anywhere within {figures['charged_r_deg']} degrees of where it was, whatever an app writes.",
        *_budget_lines("The device", figures["budgets"]),
    ]
    for app in figures["apps"]:
        lines += ["", f"App '{app['app']}': {app['state']}."]
        lines += [f"  It may {means}." for means in app["scopes"].values()] if app["state"] == "granted" else []
        for rule in app["mechanisms"] if app["state"] == "granted" else ():
            promise = rule.get("guarantee")
            lines.append(
                f"  Mechanism {rule['rule']}. " + (f"At its weakest: {promise['text']}" if promise else "What it promises depends on the parameters asked for.")
            )
        lines += [f"  Open now: {stream['mechanism']}. {stream['guarantee']['text']}" for stream in app["streams"] if stream["guarantee"]]
        lines += [f"  {line}" for line in _budget_lines("It", app["budgets"])]
    if not figures["apps"]:
        lines += ["", "No app is known."]
    lines += ["", "Not covered:", *(f"  {clause}." for clause in figures["not_covered"])]
    return "\n".join(lines) + "\n"


def _budget_lines(who: str, budgets: list[dict[str, Any]]) -> list[str]:
    words = {"day": "a day", "session": "a session", "ever": "in all"}
    return [
        f"{who} has spent {b['spent']} of {b['limit'] if b['limit'] is not None else 'no limit'} {b['currency']} {words[b['per']]}"
        + (f", {b['reserved']} reserved" if b["reserved"] != "0" else "")
        + "."
        for b in budgets
    ]
