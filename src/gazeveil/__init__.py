"""Gazeveil: privacy for eye tracking, with the promise stated, accounted and attacked.

Everything public is here and loads on first use, so that `import gazeveil` costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazeveil.gaze import exchange
from gazeveil.lazily import lazily
from gazeveil.privacy import release_writer

if TYPE_CHECKING:
    from gazeveil import errors, plot
    from gazeveil.evaluation.results import Results
    from gazeveil.evaluation.run import attack, evaluate
    from gazeveil.events import detect
    from gazeveil.features import FeatureTable, event_features, window_features
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.events import Events
    from gazeveil.gaze.geometry import Screen, Sphere
    from gazeveil.gaze.recording import Recording
    from gazeveil.gaze.simulate import simulate
    from gazeveil.io.reading import read
    from gazeveil.plugins import check_mechanism, register
    from gazeveil.privacy.audit.run import audit
    from gazeveil.privacy.guarantee import Guarantee
    from gazeveil.privacy.mechanism import Mechanism
    from gazeveil.privacy.promise.loss import Change, Loss
    from gazeveil.privacy.registry import mechanism, mechanisms, protect
    from gazeveil.privacy.release import Release

__version__ = "0.1.0"

_HOME = {
    "Change": "gazeveil.privacy.promise.loss",
    "Cohort": "gazeveil.gaze.cohort",
    "Events": "gazeveil.gaze.events",
    "FeatureTable": "gazeveil.features",
    "Guarantee": "gazeveil.privacy.guarantee",
    "Loss": "gazeveil.privacy.promise.loss",
    "Mechanism": "gazeveil.privacy.mechanism",
    "Recording": "gazeveil.gaze.recording",
    "Release": "gazeveil.privacy.release",
    "Results": "gazeveil.evaluation.results",
    "Screen": "gazeveil.gaze.geometry",
    "Sphere": "gazeveil.gaze.geometry",
    "attack": "gazeveil.evaluation.run",
    "audit": "gazeveil.privacy.audit.run",
    "check_mechanism": "gazeveil.plugins",
    "detect": "gazeveil.events",
    "errors": "gazeveil.errors",
    "evaluate": "gazeveil.evaluation.run",
    "event_features": "gazeveil.features",
    "mechanism": "gazeveil.privacy.registry",
    "mechanisms": "gazeveil.privacy.registry",
    "plot": "gazeveil.plot",
    "protect": "gazeveil.privacy.registry",
    "read": "gazeveil.io.reading",
    "register": "gazeveil.plugins",
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
    "Mechanism",
    "Recording",
    "Release",
    "Results",
    "Screen",
    "Sphere",
    "__version__",
    "attack",
    "audit",
    "check_mechanism",
    "detect",
    "errors",
    "evaluate",
    "event_features",
    "mechanism",
    "mechanisms",
    "plot",
    "protect",
    "read",
    "register",
    "simulate",
    "window_features",
]


def _write_cohort(cohort: Cohort, path: str | Path) -> Path:
    from gazeveil.io.parquet import write  # polars is heavy: only where something is written

    return write(cohort, path)


def _write_release(release: Any, path: Path, choices: Mapping[str, Any]) -> Path:
    from gazeveil.privacy.publication.protecting import write

    return write(release, path, choices)


def _frame_of(value: Any) -> Any:
    from gazeveil.io.adapters.frames import frame_of

    return frame_of(value)


def _value_of(kind: str, frame: Any, given: Mapping[str, Any]) -> Any:
    from gazeveil.io.adapters.frames import value_of

    return value_of(kind, frame, given)


exchange.frame_of = _frame_of
exchange.value_of = _value_of
exchange.write_cohort = _write_cohort
release_writer.write_release = _write_release


__getattr__, __dir__ = lazily(__name__, _HOME)
