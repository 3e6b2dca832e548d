"""The vectors by which attackers compare whole recordings, each made once per recording set.

`summary` (:mod:`gazeveil.features.recordings`) needs tables only, so it also reads releases that
hold no samples; `extended` (:mod:`gazeveil.attacks.vectors.extended`) and `trajectory`
(:mod:`gazeveil.attacks.vectors.trajectory`) and `steps` (:mod:`gazeveil.attacks.vectors.steps`)
need samples.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from gazeveil import checks
from gazeveil.attacks.vectors import extended, steps, trajectory
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, summary_vectors

_MAKERS = {
    "summary": summary_vectors,
    "extended": extended.vectors,
    "trajectory": trajectory.vectors,
    "steps": steps.vectors,
}

#: Kinds of vectors.
FEATURES = tuple(_MAKERS)

# Kinds that describe a recording without looking at others: those of a part are rows of the whole.
_OF_ONE_RECORDING = ("summary", "extended")

# Former names of the kinds of vectors.
_FORMER = {"narrow": "summary", "wide": "extended", "path": "trajectory"}

# Attackers with and without a denoiser ask for the vectors of the same material: they are made
# once, and forgotten with it.
_KEPT: WeakKeyDictionary[RecordingSet, dict[str, RecordingVectors]] = WeakKeyDictionary()


def recording_vectors(recording_set: RecordingSet, features: str = "summary") -> RecordingVectors:
    """Vectors of the recordings of a recording set, in the order of `recording_set.keys`.

    Parameters
    ----------
    recording_set : RecordingSet
        Samples or tables.
    features : {"summary", "extended", "trajectory", "steps"}
        Means and standard deviations of event features; about 300 features; the trajectory of
        0.2 s averages of position; or steps at many scales.

    Raises
    ------
    DataError
        If the recording set lacks what the features are made of.
    """
    check_features("recording_vectors", features)
    kept = _KEPT.setdefault(recording_set, {})
    if features not in kept:
        if features != "summary" and recording_set.cohort is None:
            raise DataError(
                f"{features.capitalize()} vectors need samples, and this release holds tables only."
                " Use features='summary'."
            )
        whole = recording_set.part_of
        if whole is not None and features in _OF_ONE_RECORDING:
            places = {key: i for i, key in enumerate(whole.keys)}
            rows = [places[key] for key in recording_set.keys]
            kept[features] = recording_vectors(whole, features).where(
                np.array(rows, dtype=np.int64)
            )
        else:
            kept[features] = _MAKERS[features](recording_set)
    return kept[features]


def check_features(owner: str, features: object, allowed: tuple[str, ...] = FEATURES) -> None:
    """Refuse a word that is no kind of vectors; a former one is answered with the new one."""
    if isinstance(features, str) and features in _FORMER:
        checks.renamed(owner, "kind of features", features, _FORMER[features])
    checks.one_of(owner, "features", features, allowed)
