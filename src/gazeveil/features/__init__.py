"""Features: numbers that describe events and windows of gaze, in a table with keys and public
bounds.

Everything loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.features.mpii import mpii_features, table_from_mpii
    from gazeveil.features.rows import (
        event_features,
        fixation_and_saccade_features,
        window_features,
        without_minima,
    )
    from gazeveil.features.table import FeatureTable, Keys

_HOME = {
    "FeatureTable": "gazeveil.features.table",
    "Keys": "gazeveil.features.table",
    "event_features": "gazeveil.features.rows",
    "fixation_and_saccade_features": "gazeveil.features.rows",
    "mpii_features": "gazeveil.features.mpii",
    "table_from_mpii": "gazeveil.features.mpii",
    "window_features": "gazeveil.features.rows",
    "without_minima": "gazeveil.features.rows",
}

__all__ = [
    "FeatureTable",
    "Keys",
    "event_features",
    "fixation_and_saccade_features",
    "mpii_features",
    "table_from_mpii",
    "window_features",
    "without_minima",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gazeveil.features' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
