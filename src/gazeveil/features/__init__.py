"""Features: numbers that describe events and windows of gaze, in a table with keys and public
bounds.

Everything loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gazeveil.lazily import lazily

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


__getattr__, __dir__ = lazily(__name__, _HOME)
