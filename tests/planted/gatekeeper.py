"""Planted bugs of the Gatekeeper: what it charges, and when."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from planted.plant import Plant, everywhere, method

CHARGES = "tests/test_gatekeeper_core_charges.py"


def _half(old: Any) -> Any:
    def cost_of(*given: Any, **named: Any) -> Any:
        currency, amount = old(*given, **named)
        return currency, amount / 2

    return cost_of


def _apps_free(old: Any) -> Any:
    return lambda self, why, device, apps: old(self, why, device, ())


def _declared_at_once(old: Any) -> Any:
    def view_of(self: Any, mechanism: Any, every: int = 1) -> Any:
        view = old(self, mechanism, every)
        self._graded.declare(view.scale_deg)
        return view

    return view_of


def _apps_r(old: Any) -> Any:
    return lambda self, r_deg: old(self, self.promise.numbers.get("r_deg", r_deg))


def _graded_apps_r(old: Any) -> Any:
    return lambda self, r_deg: old(self, Fraction(self.mechanism.r_deg))


def _own_r(patch: Any) -> None:
    method(patch, "gatekeeper.streams", "Base", "charge_at", _apps_r)
    method(patch, "gatekeeper.streams", "GradedBase", "charge_at", _graded_apps_r)


def _coarsest(old: Any) -> Any:
    def cost(self: Any, views: Any) -> Any:
        several = [v for v in views if v.scale_deg is not None]
        return old(self, [max(several, key=lambda v: v.scale_deg)] if several else [])

    return cost


PLANTS = (
    Plant(
        "undercharging",
        "A lease of the Gatekeeper costs half of what its samples lose.",
        lambda p: everywhere(p, "gatekeeper.till", "cost_of", _half),
        (CHARGES, "tests/test_gatekeeper_core_streams.py"),
    ),
    Plant(
        "apps do not pay",
        "The Gatekeeper charges leases to the device and not to the app.",
        lambda p: method(p, "gatekeeper.till", "Till", "pay", _apps_free),
        (CHARGES, "tests/test_gatekeeper_core_streams.py"),
    ),
    Plant(
        "level before payment",
        "A level of noise is declared when an app asks for it, before it is paid for.",
        lambda p: method(p, "gatekeeper.streams", "GradedBase", "view_of", _declared_at_once),
        (CHARGES,),
    ),
    Plant(
        "app-chosen r",
        "A lease is charged for the change that the app wrote into its mechanism.",
        _own_r,
        (CHARGES,),
    ),
    Plant(
        "coalition pays for its coarsest view",
        "The device pays for the coarsest of the views that apps have together.",
        lambda p: method(p, "gatekeeper.streams", "GradedBase", "cost", _coarsest),
        (CHARGES, "tests/test_gatekeeper_core_streams.py"),
    ),
)
