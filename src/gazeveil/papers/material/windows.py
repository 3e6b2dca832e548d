"""A part's recordings reduced to their table of windows, and the annotation of MPIIPrivacEye."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gazeveil.evaluation.sources import Files
from gazeveil.evaluation.study import Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable


def window_material(
    raw: RecordingSet, study: Study, drop: Sequence[str], documents: bool
) -> RecordingSet:
    """The table of windows alone, without some columns and maybe without tasks.

    Windows in which no feature was measured, such as the end of MPIIPrivacEye's P10 R1, are left
    out: mechanisms on sequences have no place for them. MPIIPrivacEye's windows carry what the
    annotators saw, as an annotation and not as a feature.
    """
    table = raw.windows
    dropped = [c for c in drop if c in table.columns]
    table = table.drop(dropped) if dropped else table
    empty = np.isnan(table.values).all(axis=1)
    table = table.where(~empty) if empty.any() else table
    if isinstance(study.source, Files) and study.source.format == "mpiiprivaceye":
        table = _annotated(table, study.source.path)
    if documents:
        keys = replace(table.keys, task=np.full(len(table), ""))
        table = replace(table, keys=keys)
    return RecordingSet(None, {"window": table}, raw.pipeline, raw.people)


def _annotated(table: FeatureTable, path: str) -> FeatureTable:
    """The table with the annotation of those of its windows that the files annotate."""
    from gazeveil.io.datasets.mpiiprivaceye import privacy_by_window
    from gazeveil.utility.classification.classify import PRIVACY_COLUMN

    by_window = privacy_by_window(path)
    keys = zip(
        table.keys.person.tolist(),
        table.keys.stimulus.tolist(),
        table.keys.index.tolist(),
        strict=True,
    )
    labels = np.array([by_window.get(key, -1) for key in keys], dtype=np.float64)
    return replace(table, annotations={PRIVACY_COLUMN: np.where(labels < 0, np.nan, labels)})
