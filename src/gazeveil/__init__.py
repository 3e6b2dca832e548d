"""Gazeveil: privacy for eye tracking, with the promise stated, accounted and attacked.

Everything public is here and loads on first use, so that `import gazeveil` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.evaluate.api import evaluate
    from gazeveil.events import detect
    from gazeveil.features import FeatureTable, event_features, window_features
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.events import Events
    from gazeveil.gaze.geometry import Screen, Sphere
    from gazeveil.gaze.recording import Recording
    from gazeveil.gaze.simulate import simulate
    from gazeveil.io.registry import read
    from gazeveil.privacy.audit.run import audit
    from gazeveil.privacy.guarantee import Guarantee
    from gazeveil.privacy.promise.change import Change
    from gazeveil.privacy.promise.loss import Loss
    from gazeveil.privacy.registry import mechanism, mechanisms

__version__ = "0.1.0"

_HOME = {
    "Change": "gazeveil.privacy.promise.change",
    "Cohort": "gazeveil.gaze.cohort",
    "Events": "gazeveil.gaze.events",
    "FeatureTable": "gazeveil.features",
    "Guarantee": "gazeveil.privacy.guarantee",
    "Loss": "gazeveil.privacy.promise.loss",
    "Recording": "gazeveil.gaze.recording",
    "Screen": "gazeveil.gaze.geometry",
    "Sphere": "gazeveil.gaze.geometry",
    "audit": "gazeveil.privacy.audit.run",
    "detect": "gazeveil.events",
    "evaluate": "gazeveil.evaluate",
    "event_features": "gazeveil.features",
    "mechanism": "gazeveil.privacy.registry",
    "mechanisms": "gazeveil.privacy.registry",
    "read": "gazeveil.io.registry",
    "simulate": "gazeveil.gaze.simulate",
    "window_features": "gazeveil.features",
}

__all__ = [
    "Change",
    "Cohort",
    "Events",
    "FeatureTable",
    "Guarantee",
    "Loss",
    "Recording",
    "Screen",
    "Sphere",
    "__version__",
    "audit",
    "detect",
    "evaluate",
    "event_features",
    "mechanism",
    "mechanisms",
    "read",
    "simulate",
    "window_features",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gazeveil' has no attribute '{name}'")
    home = import_module(_HOME[name])
    # `evaluate` is a package that can be called; everything else is a name in a module.
    value = home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
