"""What a service tells of itself: states, grants, budgets as time of use, lines of the audit log,
and the certificate, as JSON has them. All but the audit log comes from memory, which is at most a
second behind the database.

The time that is left is the remaining budget divided by the price of a second: of the app's open
streams, or, where none is open, of the dearest of its grant. So it is never overstated, and it is
rounded down.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from gazeveil import __version__
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.ledger.audit import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import (
    CURRENCIES,
    PRESETS,
    SCOPES,
    DeviceLimits,
    Grant,
    granted_mechanism,
)
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.asks import AccessRequests
from gazeveil.gatekeeper.service.connections import Broadcaster
from gazeveil.gatekeeper.service.credentials import Tokens
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.tracker_input import TrackerInput
from gazeveil.gatekeeper.streams.billing import averaging_words, cost_of, lease_samples
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee

#: What no setting of the device protects against.
NOT_COVERED = (
    "a dishonest platform: the device itself sees raw gaze",
    "what is inferred from the content an app shows and from the areas it chose",
    "side channels outside the service, for example the timing of frames under foveated rendering",
    "what apps learned before a grant was revoked",
)

_DAY_S = 86_400


class Price(NamedTuple):
    """What use costs: a second, and a lease, which is the least that must be there."""

    per_second: Fraction
    least: Fraction


@lru_cache(maxsize=256)
def price_of(text: str, rate_hz: float, space: Space, r_deg: Fraction) -> tuple[str, Price]:
    """Currency and price of a granted mechanism."""
    promise = granted_mechanism(text).promise(rate_hz, space)
    samples = lease_samples(promise, rate_hz)
    currency, amount = cost_of(promise, samples, r_deg)
    return currency, Price(amount * Fraction(rate_hz) / samples, amount)


def time_words(seconds: int | None) -> str:
    """What is left of a day's budget, for people; None where nothing uses it.

    Examples
    --------
    >>> time_words(11_000), time_words(200), time_words(0)
    ('about 3 hours of use today', 'about 3 minutes of use today', 'used up for today')
    """
    if seconds is None:
        return "not in use, nothing is taken from it today"
    if seconds == 0:
        return "used up for today"
    if seconds >= _DAY_S:
        return "enough for all of today"
    sizes = ((3600, "hour"), (60, "minute"), (1, "second"))
    size, word = next(one for one in sizes if seconds >= 2 * one[0] or one[0] == 1)
    count = seconds // size
    return f"about {count} {word}{'' if count == 1 else 's'} of use today"


class ServiceQueries:
    """The part of :class:`gazeveil.gatekeeper.service.service.Service` that only reads."""

    settings: Settings
    keeper: Gatekeeper
    ledger: Ledger
    audit: AuditLog
    tokens: Tokens
    access_requests: AccessRequests
    tracker_input: TrackerInput
    broadcaster: Broadcaster
    #: What is gone of each account today, at most a second ago.
    spent: dict[tuple[str, str], Fraction]

    @property
    def policy(self) -> Policy:
        """The policy now."""
        return self.keeper.policy

    def guarantee(self, promise: Guarantee) -> dict[str, object]:
        """A guarantee as apps read it."""
        fields = promise.to_dict()
        return {
            "plain": promise.plain,
            "text": str(promise),
            **{name: fields[name] for name in ("definition", "unit", "status", "numbers")},
        }

    def public(self) -> dict[str, object]:
        """What everybody with a token may know about the device."""
        level, space = self.keeper.level, self.keeper.space
        sphere = isinstance(space, Sphere)
        sides = () if sphere else ("width_mm", "height_mm", "distance_mm")
        return {
            "level": {
                "name": level.name,
                "resolution_deg": level.resolution_deg,
                "tick_ms": level.tick_ms,
                "least_side_deg": level.least_side_deg,
                "tiles": list(level.tiles),
            },
            "space": {
                "kind": "sphere" if sphere else "screen",
                "width_deg": space.width_deg,
                "height_deg": space.height_deg,
                **{name: getattr(space, name) for name in sides},
            },
            "rate_hz": self.keeper.rate_hz,
        }

    def tracker_here(self) -> dict[str, bool]:
        """Whether gaze comes, and whether it is a mouse's."""
        return {
            "connected": self.tracker_input.connected,
            "mouse": self.settings.tracker == "mouse",
        }

    def t_ms(self, app: str) -> int | None:
        """The time that events count in, for an app with a grant: it begins anew with a wearer."""
        return self.keeper.state.t_ms if self.state(app) == "granted" else None

    # --- grants and budgets
    # ----------------------------------------------------------------------------------------------

    def state(self, app: str) -> str:
        """none, granted, spent, revoked or expired."""
        grant = self.policy.apps.get(app)
        if grant is None:
            return "none"
        if grant.revoked:
            return "revoked"
        if not self.keeper.state.in_force(app, grant):
            return "expired"
        if not grant.scopes:
            return "none"
        budgets = self.budgets(app)
        # Nothing that costs budget can be paid for any more, though there is a budget.
        return "spent" if budgets and not any(b["seconds_left"] for b in budgets) else "granted"

    def grant_figures(self, app: str) -> dict[str, Any] | None:
        """An app's grant as JSON has it."""
        grant = self.policy.apps.get(app)
        if grant is None or not grant.scopes:
            return None
        return {
            "preset": grant.preset or None,
            "scopes": sorted(grant.scopes),
            "mechanisms": list(grant.mechanisms),
            "expires_ns": grant.expires_ns,
            "lasts": grant.lasts,
        }

    def budgets(self, app: str | None) -> list[dict[str, Any]]:
        """Budgets of an app, or of the device where none is named, in the currencies that something
        granted is paid in.

        An app is shown its own alone: what is left of the device's tells it what other apps did.
        """
        account = self.keeper.state.account(app)
        limits: Grant | DeviceLimits = (
            self.policy.device if app is None else self.policy.apps.get(app, Grant())
        )
        prices, rows = self._prices(app), []
        for currency in CURRENCIES:
            limit, price = limits.limit(currency), prices.get(currency)
            spent = self.spent.get((account, currency), Fraction(0))
            if not limit or (app is not None and price is None and not spent):
                continue
            left = max(Fraction(0), limit - spent)
            seconds = None
            if price is not None or not left:
                pays = price is not None and left >= price.least
                seconds = int(left / price.per_second) if price and pays else 0
            rows.append(
                {
                    "app": app,
                    "currency": currency,
                    "limit": str(limit),
                    "spent": str(spent),
                    "remaining": str(left),
                    "seconds_left": seconds,
                    "limit_s": int(limit / price.per_second) if price else None,
                    "words": time_words(seconds),
                }
            )
        return rows

    def _prices(self, app: str | None) -> dict[str, Price]:
        """By currency, what a second costs: the dearest of the open streams, for the others of a
        family are views of it, or else of those that may be opened.
        """
        apps = self.policy.apps
        grants = [apps.get(app, Grant())] if app is not None else list(apps.values())
        granted = {text for grant in grants if not grant.revoked for text in grant.mechanisms}
        subscriptions = self.keeper.state.subscriptions.copy().items()
        used = {r.mechanism for s, r in subscriptions if r.mechanism and app in (None, s.app)}
        return {**self._dearest(granted), **self._dearest(used)}

    def _dearest(self, texts: set[str]) -> dict[str, Price]:
        keeper, prices = self.keeper, dict[str, Price]()
        for text in texts:
            currency, price = price_of(text, keeper.rate_hz, keeper.space, self.policy.device.r_deg)
            prices[currency] = max(price, prices.get(currency, price))
        return prices

    def left_s(self, app: str) -> int | None:
        """Whole seconds until the grant of an app or its budget ends; None without an end."""
        grant = self.policy.apps.get(app)
        left = [b["seconds_left"] for b in self.budgets(app) if b["seconds_left"] is not None]
        ends = [min(left)] if left else []
        if grant is not None and grant.expires_ns is not None:
            ends.append(max(0, grant.expires_ns - self.ledger.now_ns()) // 10**9)
        return min(ends, default=None)

    # --- the audit log and the certificate
    # ----------------------------------------------------------------------------------------------

    def audit_page(self, after: int, limit: int, last: int | None, verify: bool) -> dict[str, Any]:
        """Lines of the audit log as JSON has them."""
        rows = self.audit.entries(max(0, after), limit) if last is None else self.audit.last(last)
        asked = self.access_requests
        newcomers = {*asked.blocked_apps(1), *(one.app for one in asked.waiting())}
        known = {*self.policy.apps, *self.tokens.apps(), *newcomers, "device"}
        names = {self.audit.pseudonym(app): app for app in known}
        return {
            "entries": [
                {
                    "number": row.id,
                    "t_ns": row.at_ns,
                    "kind": row.kind,
                    "app": row.app,
                    "name": names.get(row.app),
                    "detail": json.loads(row.detail),
                }
                for row in rows
            ],
            "verified": self.audit.verify() if verify else None,
        }

    def certificate(self) -> dict[str, Any]:
        """What the device promises now: a statement for the owner, without gaze."""
        now = datetime.fromtimestamp(self.ledger.now_ns() / 1e9, UTC)
        return {
            "device": self.settings.device,
            "version": __version__,
            "t": now.isoformat(timespec="seconds"),
            "consent": self.policy.consent,
            "charged_r_deg": str(self.policy.device.r_deg),
            **self.public(),
            "budgets": self.budgets(None),
            "apps": [self._promised(name) for name in sorted(self.policy.apps)],
            "not_covered": list(NOT_COVERED),
        }

    def _promised(self, name: str) -> dict[str, Any]:
        grant, keeper = self.policy.apps[name], self.keeper
        preset = PRESETS.get(grant.preset)
        mechanisms = []
        for text in grant.mechanisms:
            made = granted_mechanism(text)
            promise = made.promise(keeper.rate_hz, keeper.space)
            averaging = averaging_words(made, keeper.rate_hz)
            mechanisms.append({"mechanism": text, "plain": promise.plain, "averaging": averaging})
        steady = preset.steady.words() if preset and preset.steady else ""
        return {
            "app": name,
            "state": self.state(name),
            "scopes": {scope: SCOPES[scope] for scope in sorted(grant.scopes)},
            "mechanisms": mechanisms,
            "open": [
                {"mechanism": channel.mechanism, "guarantee": channel.guarantee}
                for connection in self.broadcaster.of(name)
                for channel in tuple(connection.channels.values())
                if channel.mechanism is not None
            ],
            "averaging": steady and f"With all that it is granted, {steady}.",
            "budgets": self.budgets(name),
        }


def certificate_text(figures: dict[str, Any]) -> str:
    """The certificate for people."""
    level = figures["level"]
    lines = [
        f"Certificate of the device '{figures['device']}', {figures['t']}, Gazeveil"
        f" {figures['version']}",
        "",
        f"Consent is {'on' if figures['consent'] else 'off: no app gets anything'}.",
        f"No app sees places finer than {level['resolution_deg']:g} degrees or times finer than"
        f" {level['tick_ms']} ms, but through a granted mechanism. Areas are at least"
        f" {level['least_side_deg']:g} degrees wide and high; tiles are {level['tiles'][0]} by"
        f" {level['tiles'][1]}.",
        "Raw samples, pupils, velocities and the tracker's own timing are never given: every"
        " mechanism that can be granted adds noise with a proved promise.",
        "Streams of samples are charged for gaze that was anywhere within"
        f" {figures['charged_r_deg']} degrees of where it was, whatever an app asks for.",
        *_budget_lines("The device", figures["budgets"]),
    ]
    for app in figures["apps"]:
        lines += ["", f"App '{app['app']}': {app['state']}."]
        if app["state"] == "granted":
            lines += [f"  It may {means}." for means in app["scopes"].values()]
            lines += [
                f"  Mechanism {m['mechanism']}. {m['plain']} {m['averaging']}"
                for m in app["mechanisms"]
            ]
            lines += [f"  {app['averaging']}"] if app["averaging"] else []
        lines += [f"  Open now: {one['mechanism']}." for one in app["open"]]
        lines += [f"  {line}" for line in _budget_lines("It", app["budgets"])]
    if not figures["apps"]:
        lines += ["", "No app is known."]
    lines += ["", "Not covered:", *(f"  {clause}." for clause in figures["not_covered"])]
    return "\n".join(lines) + "\n"


def _budget_lines(who: str, budgets: list[dict[str, Any]]) -> list[str]:
    lines = []
    for b in budgets:
        line = f"{who} has spent {b['spent']} of {b['limit']} {b['currency']} today"
        if b["limit_s"]:
            line += f"; the limit is about {b['limit_s'] / 3600:.3g} hours of use"
        lines.append(f"{line}.")
    return lines
