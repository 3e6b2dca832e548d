"""What a service tells of itself: states, grants, budgets and lines of the audit log, as JSON has
them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.ledger.accounts import Balance
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import preset_of
from gazeveil.gatekeeper.policy.rules import rule_text
from gazeveil.gatekeeper.policy.wearers import account_of
from gazeveil.gatekeeper.service.access_requests import AccessRequests
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.time_left import Price, Prices, seconds_left, words
from gazeveil.gatekeeper.service.tracker_input import TrackerInput
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.guarantee import Guarantee


class ServiceQueries:
    """The part of :class:`gazeveil.gatekeeper.service.service.Service` that only reads."""

    settings: Settings
    keeper: Gatekeeper
    ledger: Ledger
    audit: AuditLog
    tokens: Tokens
    access_requests: AccessRequests
    tracker_input: TrackerInput
    prices: Prices
    balances: dict[tuple[str, str], Balance]

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
        sides = ("width_mm", "height_mm", "distance_mm")
        known = {} if isinstance(space, Sphere) else {name: getattr(space, name) for name in sides}
        return {
            "level": {
                "name": level.name,
                "resolution_deg": level.resolution_deg,
                "tick_ms": level.tick_ms,
                "least_side_deg": level.least_side_deg,
                "tiles": list(level.tiles),
            },
            "space": {
                "kind": "sphere" if isinstance(space, Sphere) else "screen",
                "width_deg": space.width_deg,
                "height_deg": space.height_deg,
                **known,
            },
            "rate_hz": self.keeper.rate_hz,
            "charged_r_deg": str(self.policy.device.r_deg),
        }

    def token_end_ns(self) -> int:
        """When the token of an app or a tracker ends that is given out now."""
        return self.ledger.now_ns() + round(self.settings.token_days * 86_400e9)

    def tracker_here(self) -> dict[str, bool]:
        """Whether gaze comes, and whether it is a mouse's."""
        mouse = self.settings.tracker == "mouse"
        return {"connected": self.tracker_input.connected, "mouse": mouse}

    def left_s(self, app: str, budgets: list[dict[str, Any]]) -> int | None:
        """Whole seconds until the grant of an app or its budget ends; None without an end."""
        grant = self.policy.apps.get(app)
        ends = [row["seconds_left"] for row in budgets if row["seconds_left"] is not None]
        if grant is not None and grant.expires_ns is not None:
            ends.append(max(0, grant.expires_ns - self.ledger.now_ns()) // 10**9)
        return min(ends, default=None)

    def state(self, app: str) -> str:
        """none, granted, spent, revoked or expired; told from memory, which is at most a second
        old.
        """
        grant = self.policy.apps.get(app)
        if grant is None:
            return "none"
        if grant.revoked:
            return "revoked"
        if (
            grant.expires_ns is not None and self.ledger.now_ns() >= grant.expires_ns
        ) or self.keeper.is_over(app):
            return "expired"
        if not grant.scopes:
            return "none"
        return "spent" if self._is_spent(app, grant) else "granted"

    def _is_spent(self, app: str, grant: Grant) -> bool:
        """Whether nothing that costs budget can be paid for any more, though there is a budget."""
        prices = self.prices.of_app(app)
        if "counter" in grant.scopes and "epsilon" not in prices:
            prices["epsilon"] = Price(Fraction(0), self.keeper.counter_epsilon)
        account = self.keeper.account(app)

        def pays(currency: str, price: Price) -> bool:
            balance = self.balances.get((account, currency))
            gone = Fraction(0) if balance is None else balance.spent + balance.reserved
            return grant.limits()[currency] - gone >= price.least

        return any(grant.budgets.get(currency) for currency in prices) and not any(
            pays(c, price) for c, price in prices.items()
        )

    def grant_figures(self, app: str) -> dict[str, Any] | None:
        """An app's grant as JSON has it."""
        grant = self.policy.apps.get(app)
        if grant is None or not grant.scopes:
            return None
        known = preset_of(grant)
        return {
            "preset": known.name if known else None,
            "means": known.means if known else "",
            "scopes": sorted(grant.scopes),
            "mechanisms": [rule_text(rule) for rule in grant.mechanisms],
            "areas": grant.areas,
            "calls_per_minute": grant.calls_per_minute,
            "streams": grant.streams,
            "most_hz": grant.most_hz,
            "budgets": {currency: str(limit) for currency, limit in grant.budgets.items()},
            "per": grant.per,
            "expires_ns": grant.expires_ns,
            "lasts": grant.lasts,
        }

    def budgets(self, app: str | None) -> list[dict[str, Any]]:
        """Budgets of an app, or of the device where none is named; an app's currencies that its
        grant does not name and that it has not spent are left out.

        An app is shown its own alone: what is left of the device's tells it what other apps did.
        """
        now = self.ledger.now_ns()
        if app is None:
            device = self.policy.device
            account, limits, per = self.keeper.device_account, device.limits(), device.per
            named = set(limits)
        else:
            grant = self.policy.apps.get(app) or Grant()
            account, limits, per = self.keeper.account(app), grant.limits(), grant.per
            named = set(grant.budgets)
            if any(rule.unproved for rule in grant.mechanisms):
                named.add("samples")
        prices = self.prices.of_device() if app is None else self.prices.of_app(app)
        rows: list[dict[str, Any]] = []
        for currency, limit in limits.items():
            balance = self.balances[account, currency] = self.ledger.balance(account, currency, now)
            spent, reserved = balance.spent, balance.reserved
            if not spent and not reserved and currency not in named:
                continue
            left, price = max(Fraction(0), limit - spent - reserved), prices.get(currency)
            seconds, counts = seconds_left(left, price), None
            if self._counts(app, currency):
                counts = int(left / self.keeper.counter_epsilon)
            rows.append(
                {
                    # An app is not told who wears the device.
                    "account": account if app is None else account_of(app),
                    "app": app,
                    "currency": currency,
                    "per": per,
                    "limit": str(limit),
                    "spent": str(spent),
                    "reserved": str(reserved),
                    "remaining": str(left),
                    "seconds_left": seconds,
                    "words": words(left, seconds, per, counts),
                }
            )
        return rows

    def _counts(self, app: str | None, currency: str) -> bool:
        """Whether a budget may be used for counters."""
        apps = self.policy.apps
        grants = apps.values() if app is None else [apps.get(app) or Grant()]
        return currency == "epsilon" and any("counter" in grant.scopes for grant in grants)

    def audit_page(self, after: int, limit: int, last: int | None, verify: bool) -> dict[str, Any]:
        """Lines of the audit log as JSON has them."""
        after = max(0, after)
        rows = self.audit.entries(after, limit) if last is None else self.audit.last(last)
        known = (
            *self.policy.apps,
            *self.tokens.apps(),
            *(ask.app for ask in self.access_requests.waiting()),
            "device",
        )
        names = {self.audit.pseudonym(app): app for app in known}
        return {
            "entries": [
                {
                    "number": r.id,
                    "t_ns": r.at_ns,
                    "kind": r.kind,
                    "app": r.app,
                    "name": names.get(r.app),
                    "detail": dict(r.detail),
                }
                for r in rows
            ],
            "verified": self.audit.verify() if verify else None,
            "last": rows[-1].id if rows else after,
        }
