"""Planted bugs of the Gatekeeper: what it charges, and when."""

from __future__ import annotations

from typing import Any

from planted.plant import Plant, everywhere, method

STREAMS = "tests/test_gatekeeper_core_streams.py"


def _half(old: Any) -> Any:
    def cost_of(promise: Any, samples: int) -> Any:
        currency, amount = old(promise, samples)
        return currency, amount / 2

    return cost_of


def _apps_free(old: Any) -> Any:
    return lambda self, why, device, apps: old(self, why, device, ())


PLANTS = (
    Plant(
        "undercharging",
        "A lease of the Gatekeeper costs half of what its samples lose.",
        lambda p: everywhere(p, "gatekeeper.streams", "cost_of", _half),
        (STREAMS,),
    ),
    Plant(
        "apps do not pay",
        "The Gatekeeper charges leases to the device and not to the app.",
        lambda p: method(p, "gatekeeper.streams", "Till", "pay", _apps_free),
        (STREAMS,),
    ),
)
