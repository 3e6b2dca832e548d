"""The Gatekeeper: gaze for apps that are not trusted (David-John et al. 2021, section 4).

The core needs no web server; everything public is here and loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.gatekeeper.core.app import App
    from gazeveil.gatekeeper.core.area_metrics import AreaMetrics
    from gazeveil.gatekeeper.core.areas import LEVELS, PrecisionLevel, RegisteredArea, Target
    from gazeveil.gatekeeper.core.events import PublicEvent, SaccadeStart
    from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
    from gazeveil.gatekeeper.errors import Denied, LedgerError
    from gazeveil.gatekeeper.ledger.audit import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
    from gazeveil.gatekeeper.policy.grant import PRESETS, DeviceLimits, Grant
    from gazeveil.gatekeeper.policy.policy import Policy
    from gazeveil.gatekeeper.streams.subscription import PrivateStream, Subscription

_MODULES = {
    "App": "core.app",
    "AreaMetrics": "core.area_metrics",
    "AuditLog": "ledger.audit",
    "Charge": "ledger.ledger",
    "Denied": "errors",
    "DeviceLimits": "policy.grant",
    "Gatekeeper": "core.gatekeeper",
    "Grant": "policy.grant",
    "LEVELS": "core.areas",
    "Ledger": "ledger.ledger",
    "LedgerError": "errors",
    "PRESETS": "policy.grant",
    "Policy": "policy.policy",
    "PrecisionLevel": "core.areas",
    "PrivateStream": "streams.subscription",
    "PublicEvent": "core.events",
    "RegisteredArea": "core.areas",
    "SaccadeStart": "core.events",
    "Subscription": "streams.subscription",
    "Target": "core.areas",
}

__all__ = [
    "LEVELS",
    "PRESETS",
    "App",
    "AreaMetrics",
    "AuditLog",
    "Charge",
    "Denied",
    "DeviceLimits",
    "Gatekeeper",
    "Grant",
    "Ledger",
    "LedgerError",
    "Policy",
    "PrecisionLevel",
    "PrivateStream",
    "PublicEvent",
    "RegisteredArea",
    "SaccadeStart",
    "Subscription",
    "Target",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'gazeveil.gatekeeper' has no attribute '{name}'")
    value = getattr(import_module(f"gazeveil.gatekeeper.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
