"""The Gatekeeper: gaze for apps that are not trusted (David-John et al. 2021, section 4).

The core needs no web server; everything public is here and loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.gatekeeper.core.app import App
    from gazeveil.gatekeeper.core.area_metrics import AreaMetrics
    from gazeveil.gatekeeper.core.areas import RegisteredArea
    from gazeveil.gatekeeper.core.counters import CounterAnswer
    from gazeveil.gatekeeper.core.events.listeners import SaccadeStart
    from gazeveil.gatekeeper.core.events.log import PublicEvent
    from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
    from gazeveil.gatekeeper.core.level import LEVELS, PrecisionLevel
    from gazeveil.gatekeeper.core.targets import Target
    from gazeveil.gatekeeper.errors import Denied, LedgerError
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
    from gazeveil.gatekeeper.policy.grant import DeviceLimits, Grant
    from gazeveil.gatekeeper.policy.policy import Policy
    from gazeveil.gatekeeper.policy.presets import PRESETS
    from gazeveil.gatekeeper.policy.rules import MechanismRule
    from gazeveil.gatekeeper.streams.subscription import PrivateStream, Subscription

_MODULES = {
    "App": "core.app",
    "AreaMetrics": "core.area_metrics",
    "AuditLog": "ledger.audit.log",
    "Charge": "ledger.ledger",
    "CounterAnswer": "core.counters",
    "Denied": "errors",
    "DeviceLimits": "policy.grant",
    "Gatekeeper": "core.gatekeeper",
    "Grant": "policy.grant",
    "LEVELS": "core.level",
    "Ledger": "ledger.ledger",
    "LedgerError": "errors",
    "MechanismRule": "policy.rules",
    "PRESETS": "policy.presets",
    "Policy": "policy.policy",
    "PrecisionLevel": "core.level",
    "PrivateStream": "streams.subscription",
    "PublicEvent": "core.events.log",
    "RegisteredArea": "core.areas",
    "SaccadeStart": "core.events.listeners",
    "Subscription": "streams.subscription",
    "Target": "core.targets",
}

__all__ = [
    "LEVELS",
    "PRESETS",
    "App",
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
    "MechanismRule",
    "Policy",
    "PrecisionLevel",
    "PrivateStream",
    "PublicEvent",
    "RegisteredArea",
    "SaccadeStart",
    "Subscription",
    "Target",
]

_RENAMED = {"Area": "RegisteredArea", "Level": "PrecisionLevel", "SeenEvent": "PublicEvent"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        raise AttributeError(f"gazeveil.gatekeeper.{name} is called {_RENAMED[name]} now.")
    if name not in _MODULES:
        raise AttributeError(f"module 'gazeveil.gatekeeper' has no attribute '{name}'")
    value = getattr(import_module(f"gazeveil.gatekeeper.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
