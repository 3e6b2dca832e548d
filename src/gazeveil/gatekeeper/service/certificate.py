"""What the device promises now: the level, every app's grant with the weakest promise it allows,
open streams, and what was spent.

It is a statement about the present, made for the owner; it holds no gaze. What it says follows from
the grants: that raw samples are never given is said only where every granted mechanism adds noise
with a proved promise, which is looked up and not assumed; a mechanism whose noise proves nothing is
named. The weakest promise of a rule is that of the least protection it allows, and beside it stands
what averaging gives.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gazeveil import __version__
from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.policy.families import problem
from gazeveil.gatekeeper.policy.grant import SCOPES
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import preset_of
from gazeveil.gatekeeper.policy.rules import MechanismRule, judge, rule_text, weakest
from gazeveil.gatekeeper.service.time_left import Price, seconds_left
from gazeveil.gatekeeper.streams.averaging import averaging_words
from gazeveil.privacy import registry

if TYPE_CHECKING:
    from gazeveil.gatekeeper.service.service import Service

#: What no setting of the device protects against.
NOT_COVERED = (
    "a dishonest platform: the device itself sees raw gaze",
    "what is inferred from the content an app shows and from the areas it chose",
    "side channels outside the service, for example the timing of frames under foveated rendering",
    "what apps learned before a grant was revoked",
)


def certificate(service: Service) -> dict[str, Any]:
    """The certificate as JSON has it."""
    now = service.ledger.now_ns()
    policy = service.policy
    return {
        "device": service.settings.device,
        "version": __version__,
        "t": datetime.fromtimestamp(now / 1e9, UTC).isoformat(timespec="seconds"),
        "consent": policy.consent,
        **service.public(),
        "raw": raw_statement(policy),
        "budgets": _with_hours(service.budgets(None), service.prices.of_device()),
        "apps": [_app(service, name) for name in sorted(policy.apps)],
        "not_covered": list(NOT_COVERED),
    }


def _app(service: Service, name: str) -> dict[str, Any]:
    grant = service.policy.apps[name]
    known = preset_of(grant)
    open_streams = [
        {
            "mechanism": channel.mechanism,
            "guarantee": channel.guarantee,
            "sent": channel.sent,
            "dropped": channel.dropped,
        }
        for connection in service.broadcaster.of(name)
        for channel in tuple(connection.channels.values())
        if channel.mechanism is not None
    ]
    return {
        "app": name,
        "state": service.state(name),
        "scopes": {scope: SCOPES[scope] for scope in sorted(grant.scopes)},
        "averaging": (
            None
            if known is None or known.steady is None
            else f"With all that it is granted, {known.steady.words()}."
        ),
        "mechanisms": [_weakest(service, rule, grant.most_hz) for rule in grant.mechanisms],
        "streams": open_streams,
        "budgets": _with_hours(service.budgets(name), service.prices.of_app(name)),
        "expires_ns": grant.expires_ns,
    }


def raw_statement(policy: Policy) -> dict[str, Any]:
    """Whether the grants keep raw samples and the tracker's own times on the device, and which do
    not.

    Returns
    -------
    dict
        `never_given`: every mechanism that is granted adds noise, and its promise is proved;
        `unproved`: those whose noise proves nothing; `copies`: those that add none, of which there
        cannot be any; `native`: those that pass the tracker's own times on. Each as `[app, rule]`.
    """
    by_kind: dict[str, list[list[str]]] = {"unproved": [], "copies": [], "native": []}
    for app, grant in policy.apps.items():
        for rule in grant.mechanisms:
            text, named = weakest(rule), [app, rule_text(rule)]
            try:
                mechanism: Any = registry.mechanism(text)
            except GazeveilError:
                # What cannot be made cannot be looked up, so nothing is claimed of it.
                by_kind["unproved"].append(named)
                continue
            if problem(mechanism) is not None:
                by_kind["copies"].append(named)
            if rule.unproved and judge(grant.mechanisms, text).currency == "samples":
                by_kind["unproved"].append(named)
            if mechanism.keeps_tracker_times:
                by_kind["native"].append(named)
    return {"never_given": not any(by_kind.values()), **by_kind}


def _raw_lines(raw: dict[str, Any]) -> list[str]:
    """What the certificate says about raw samples."""
    if raw["never_given"]:
        return [
            "Raw samples, pupils, velocities and the tracker's own timing are never given: every"
            " mechanism that is granted adds noise with a proved promise."
        ]
    lines = ["Pupils and velocities are never given."]
    clauses = {
        "unproved": (
            "adds noise that proves nothing, so how much of raw gaze can be had from it is not"
            " known"
        ),
        "copies": "adds no noise, so it gives raw gaze",
        "native": "passes the tracker's own times on",
    }
    return lines + [
        f"App '{app}': its mechanism {rule} {clauses[kind]}."
        for kind in clauses
        for app, rule in raw[kind]
    ]


def _weakest(service: Service, rule: MechanismRule, most_hz: float | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"rule": rule_text(rule), "unproved": rule.unproved}
    try:
        mechanism: Any = registry.mechanism(weakest(rule))
        rate_hz = service.keeper.rate_hz
        shown["weakest"] = mechanism.public_text
        shown["guarantee"] = service.guarantee(mechanism.promise(rate_hz, service.keeper.space))
        shown["averaging"] = averaging_words(mechanism, min(rate_hz, most_hz or float("inf")))
    except GazeveilError:
        shown["weakest"] = None
    return shown


def certificate_text(figures: dict[str, Any]) -> str:
    """The certificate for people."""
    level = figures["level"]
    lines = [
        (
            f"Certificate of the device '{figures['device']}', {figures['t']}, Gazeveil"
            f" {figures['version']}"
        ),
        "",
        f"Consent is {'on' if figures['consent'] else 'off: no app gets anything'}.",
        (
            f"No app sees places finer than {level['resolution_deg']:g} degrees or times finer than"
            f" {level['tick_ms']} ms, but through a granted mechanism. Areas are at least"
            f" {level['least_side_deg']:g} degrees wide and high; tiles are {level['tiles'][0]} by"
            f" {level['tiles'][1]}."
        ),
        *_raw_lines(figures["raw"]),
        (
            "Streams of samples are charged for gaze that was anywhere within"
            f" {figures['charged_r_deg']} degrees of where it was, whatever an app writes."
        ),
        *_budget_lines("The device", figures["budgets"]),
    ]
    for app in figures["apps"]:
        lines += ["", f"App '{app['app']}': {app['state']}."]
        if app["state"] == "granted":
            lines += [f"  It may {means}." for means in app["scopes"].values()]
            lines += [
                f"  Mechanism {rule['rule']}. {_promise_of(rule)}" for rule in app["mechanisms"]
            ]
            lines += [f"  {app['averaging']}"] if app["averaging"] else []
        lines += [
            f"  Open now: {stream['mechanism']}. {stream['guarantee']['plain']}"
            for stream in app["streams"]
            if stream["guarantee"]
        ]
        lines += [f"  {line}" for line in _budget_lines("It", app["budgets"])]
    if not figures["apps"]:
        lines += ["", "No app is known."]
    lines += ["", "Not covered:", *(f"  {clause}." for clause in figures["not_covered"])]
    return "\n".join(lines) + "\n"


def _promise_of(rule: dict[str, Any]) -> str:
    if (promise := rule.get("guarantee")) is None:
        return "What it promises depends on the parameters asked for."
    return f"At its weakest: {promise['plain']} {rule['averaging']}"


def _with_hours(budgets: list[dict[str, Any]], prices: dict[str, Price]) -> list[dict[str, Any]]:
    """Budgets with the whole limit in hours of use, at the price of what is open or of the dearest
    that is granted.
    """
    rows = []
    for b in budgets:
        seconds = seconds_left(Fraction(b["limit"]), prices.get(b["currency"]))
        rows.append({**b, "limit_hours": None if seconds is None else round(seconds / 3600, 2)})
    return rows


def _budget_lines(who: str, budgets: list[dict[str, Any]]) -> list[str]:
    periods = {"day": "a day", "session": "a session", "ever": "in all"}
    lines = []
    for b in budgets:
        line = f"{who} has spent {b['spent']} of {b['limit']} {b['currency']} {periods[b['per']]}"
        line += f", {b['reserved']} reserved" if b["reserved"] != "0" else ""
        hours = b["limit_hours"]
        line += "" if hours is None else f"; the limit is about {hours:g} hours of use"
        lines.append(line + ".")
    return lines
