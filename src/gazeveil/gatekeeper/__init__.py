"""The Gatekeeper: gaze for apps that are not trusted (S001, section 4).

The core needs no web server; everything public is here and loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.gatekeeper.app import App
    from gazeveil.gatekeeper.areas import Area
    from gazeveil.gatekeeper.audit_log import AuditLog
    from gazeveil.gatekeeper.core import Gatekeeper
    from gazeveil.gatekeeper.counters import CounterAnswer
    from gazeveil.gatekeeper.errors import Denied, LedgerError
    from gazeveil.gatekeeper.ledger import Charge, Ledger
    from gazeveil.gatekeeper.level import LEVELS, Level
    from gazeveil.gatekeeper.metrics import AreaMetrics
    from gazeveil.gatekeeper.policy import DeviceLimits, Grant, Policy
    from gazeveil.gatekeeper.presets import PRESETS
    from gazeveil.gatekeeper.room import SaccadeStart
    from gazeveil.gatekeeper.rules import MechanismRule
    from gazeveil.gatekeeper.sheet import SeenEvent
    from gazeveil.gatekeeper.subscription import PrivateStream, Subscription

_HOME = {
    "App": "app",
    "Area": "areas",
    "AreaMetrics": "metrics",
    "AuditLog": "audit_log",
    "Charge": "ledger",
    "CounterAnswer": "counters",
    "Denied": "errors",
    "DeviceLimits": "policy",
    "Gatekeeper": "core",
    "Grant": "policy",
    "LEVELS": "level",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "Level": "level",
    "MechanismRule": "rules",
    "PRESETS": "presets",
    "Policy": "policy",
    "PrivateStream": "subscription",
    "SaccadeStart": "room",
    "SeenEvent": "sheet",
    "Subscription": "subscription",
}

__all__ = [
    "LEVELS",
    "PRESETS",
    "App",
    "Area",
    "AreaMetrics",
    "AuditLog",
    "Charge",
    "CounterAnswer",
    "Denied",
    "DeviceLimits",
    "Gatekeeper",
    "Grant",
    "Ledger",
    "LedgerError",
    "Level",
    "MechanismRule",
    "Policy",
    "PrivateStream",
    "SaccadeStart",
    "SeenEvent",
    "Subscription",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gazeveil.gatekeeper' has no attribute '{name}'")
    value = getattr(import_module(f"gazeveil.gatekeeper.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
