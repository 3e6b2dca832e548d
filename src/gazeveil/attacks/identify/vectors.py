"""The vectors by which attackers compare whole recordings, each made once per recording set.

`summary` (:mod:`gazeveil.features.recordings`) needs tables only, so it also reads releases that
hold no samples; `extended` (:mod:`gazeveil.attacks.identify.extended`) and `trajectory`
(:mod:`gazeveil.attacks.identify.trajectory`) need samples.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from gazeveil import checks
from gazeveil.attacks.identify import extended, trajectory
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors, summary_vectors

_MAKERS = {
    "summary": summary_vectors,
    "extended": extended.vectors,
    "trajectory": trajectory.vectors,
}

#: Kinds of vectors.
FEATURES = tuple(_MAKERS)

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
    features : {"summary", "extended", "trajectory"}
        Means and standard deviations of event features; about 300 features; or the trajectory of
        0.2 s averages of position.

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
        kept[features] = _MAKERS[features](recording_set)
    return kept[features]


def check_features(owner: str, features: object, allowed: tuple[str, ...] = FEATURES) -> None:
    """Refuse a word that is no kind of vectors; a former one is answered with the new one."""
    if isinstance(features, str) and features in _FORMER:
        checks.renamed(owner, "kind of features", features, _FORMER[features])
    checks.one_of(owner, "features", features, allowed)
