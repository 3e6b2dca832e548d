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
        (f"{CHARGES}::test_a_small_r_of_kaleido_costs_as_many_steps_as_it_takes_to_the_devices",),
    ),
    Plant(
        "apps do not pay",
        "The Gatekeeper charges leases to the device and not to the app.",
        lambda p: method(p, "gatekeeper.till", "Till", "pay", _apps_free),
        (f"{CHARGES}::test_an_app_does_not_choose_what_it_is_charged_for",),
    ),
    Plant(
        "level before payment",
        "A level of noise is declared when an app asks for it, before it is paid for.",
        lambda p: method(p, "gatekeeper.streams", "GradedBase", "view_of", _declared_at_once),
        (f"{CHARGES}::test_where_all_levels_are_in_use_a_further_one_is_refused_and_one_that_is_left_makes_room",),
    ),
    Plant(
        "app-chosen r",
        "A lease is charged for the change that the app wrote into its mechanism.",
        _own_r,
        (f"{CHARGES}::test_an_app_does_not_choose_what_it_is_charged_for",),
    ),
    Plant(
        "coalition pays for its coarsest view",
        "The device pays for the coarsest of the views that apps have together.",
        lambda p: method(p, "gatekeeper.streams", "GradedBase", "cost", _coarsest),
        (f"{CHARGES}::test_requests_that_are_refused_do_not_part_the_noise_of_others",),
    ),
)
